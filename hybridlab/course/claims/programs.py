"""The 16 claims of the implementation notes and of the output of the published programs."""

from hybridlab.course.claims.claim import LAB_1, LAB_2, LAB_3, LAB_4, LAB_5, LAB_6, LAB_7, LAB_8, LAB_9, Claim

# OUTPUT is a place in the report. NOTES and SIMULATOR are keys of DOCUMENTS.
OUTPUT, NOTES, SIMULATOR = "program and its output", "notes", "simulator"

# The formatter would put each argument on its own line, so the table ends with "fmt: skip".
PROGRAM_CLAIMS = (
    Claim(
        61, "report", OUTPUT, "The program sends 2160 bytes in INT8.", "depends",
        "The number counts the codes only; every message also needs a scale of 4 bytes.",
        printed=(2160,), unit="bytes", labs=(LAB_1, LAB_5, LAB_6),
    ),
    Claim(
        62, "report", OUTPUT, "The weights of the replicas of each stage differ by some 0.0003.", "wrong",
        "After a correct all-reduce all ranks hold the same bits; here the rank that sends a chunk first holds its own unrounded numbers, "
        "and all other ranks hold the rounded numbers that they received.",
        printed=(0.0003009646898135543, 0.0002646037610247731, 0.0002457082155160606), labs=(LAB_5, LAB_6),  # one for each stage
        fault="wrong program",
    ),
    Claim(
        63, "report", OUTPUT, "The printed grid of time steps is 1F1B.", "wrong",
        "Stage 2 begins with a backward, the backward of a step overwrites its forward, and 12 operations of a stage do not fit into 8 "
        "steps.",
        labs=(LAB_2, LAB_6), fault="wrong program",
    ),
    Claim(
        64, NOTES, "section 3", "1F1B has smaller bubbles than GPipe.", "depends",
        "The bubbles are equal at every size.",
        sources=("narayanan2021megatron",), labs=(LAB_2, LAB_3),
    ),
    Claim(
        65, NOTES, "section 3", "1F1B needs less memory for activations.", "depends",
        "In the steady state each stage frees an activation before it takes the next.",
        labs=(LAB_3,),
    ),
    Claim(
        66, NOTES, "section 3",
        "In a ring the bytes that a GPU sends do not grow with the number of GPUs; with a parameter server they do.", "depends",
        "The bytes of a GPU in a ring grow from one to two times the gradients and no further, while a server's bytes grow in proportion "
        "to the GPUs; the latency of a ring does grow.",
        sources=("patarasuk2009bandwidth",), labs=(LAB_4,),
    ),
    Claim(
        67, NOTES, "section 3", "The global batch is divided into 8 microbatches.", "depends",
        "There are 8 microbatches in all, as in claim 26; each of the two replicas runs 4 of them.",
        printed=(8,), labs=(LAB_3, LAB_7, LAB_8),
    ),
    Claim(
        68, NOTES, "sections 1 and 3", "One thread for each device, with queues between the stages, imitates the pipeline.", "depends",
        "The claim holds if each thread follows its order and waits for its inputs; an order that ignores its inputs cannot run.",
        labs=(LAB_2, LAB_8),
    ),
    Claim(
        69, NOTES, "section 3", "A ring step of 20 ms stands for a fast interconnect.", "depends",
        "20 ms fits a gradient of nearly a gigabyte on one InfiniBand port; NVLink would carry ten times as much in this time.",
        printed=(20,), unit="ms", sources=("bang2023vtrain",), labs=(LAB_6, LAB_9),
    ),
    Claim(
        70, NOTES, "section 2", "A node has 8 A100 or H100 GPUs, NVLink inside, and InfiniBand to other nodes.", "right",
        "The vendor's own systems are built in this way.",
        printed=(8,),
    ),
    Claim(
        71, NOTES, "section 2", "NCCL uses a ring for the all-reduce.", "depends",
        "A ring is best for large messages and slow for small messages: for small messages NCCL chooses other algorithms, such as trees.",
        labs=(LAB_4,),
    ),
    Claim(
        72, SIMULATOR, "ring all-reduce", "After the program's ring all replicas hold the sum of their gradients.", "wrong",
        "The all-gather starts one chunk too early and overwrites the sums: every chunk ends as the gradient of a single rank, divided "
        "by D.",
        labs=(LAB_4, LAB_7), fault="wrong program",
    ),
    Claim(
        73, SIMULATOR, "check of the replicas", "Agreement of the replicas shows that the all-reduce is right.", "wrong",
        "If messages are exact, the replicas of this program agree and are all wrong; a check must compare them with a mean that is "
        "computed in another way.",
        labs=(LAB_4, LAB_7), fault="false reason",
    ),
    Claim(
        74, SIMULATOR, "prediction accuracy", "The trained model predicts 49.00 % of the points.", "wrong",
        "The weights are ones, the labels come from a vector that no other part of the program knows, and the step changes the weights "
        "at random, so nothing is learnt.",
        printed=(49.0,), unit="%", labs=(LAB_7,), fault="wrong program",
    ),
    Claim(
        75, SIMULATOR, "timeline of 1F1B", "With 3 stages and 6 microbatches 1F1B takes 8 time steps.", "depends",
        "Each stage runs 12 operations, one in each step; the grid has one cell for a forward and a backward, and loses most forwards.",
        printed=(8,), unit="steps", labs=(LAB_2, LAB_6),
    ),
    Claim(
        76, "event log", "event timeline", "The log of 144 events has every forward before its backward.", "wrong",
        "The second event of the log is a backward of stage 2, and three forwards of each replica are missing.",
        printed=(144,), unit="events", labs=(LAB_2, LAB_6), fault="wrong program",
    ),
)  # fmt: skip
