"""What the output of the published programs and the implementation notes claim."""

from hybridlab.course.claims.claim import Claim

OUTPUT, NOTES, SIMULATOR = "program and its output", "notes", "simulator"
TWO, FOUR, FIVE, SIX = "lab02_one_f_one_b", "lab04_ring", "lab05_wire_formats", "lab06_hybrid_step"
EIGHT, NINE = "lab08_threads", "lab09_a100_report"

PROGRAMS = (
    Claim(
        61, "report", OUTPUT, "The program sends 2160 bytes in INT8.", "wrong",
        "It counts the codes alone; every message needs a scale of 4 bytes to be read.",
        printed=(2160,), unit="bytes", labs=("lab01_mesh", FIVE, SIX),
    ),
    Claim(
        62, "report", OUTPUT, "The weights of the replicas of each stage differ by some 0.0003.", "wrong",
        "An all-reduce leaves all ranks with the same bits; here the rank that sends a chunk first keeps it unrounded, and all others "
        "hold what arrived.",
        printed=(0.0003009646898135543, 0.0002646037610247731, 0.0002457082155160606), labs=(FIVE, SIX),
    ),
    Claim(
        63, "report", OUTPUT, "The printed grid of time steps is 1F1B.", "wrong",
        "Stage 2 begins with a backward, forwards and backwards of one step overwrite each other, and 12 operations do not fit 8 steps.",
        labs=(TWO, SIX),
    ),
    Claim(
        64, NOTES, "section 3", "1F1B has the smaller bubbles, against GPipe.", "wrong",
        "The two are equal at every size.", sources=("narayanan2021megatron",), labs=(TWO, "lab03_bubbles_and_memory"),
    ),
    Claim(
        65, NOTES, "section 3", "1F1B needs less memory for activations.", "right",
        "Each stage frees an activation before it takes the next.", labs=("lab03_bubbles_and_memory",),
    ),
    Claim(
        66, NOTES, "section 3", "What a GPU sends in a ring does not grow with the GPUs, as it does with a parameter server.", "right",
        "It goes from one to two times the gradients and no further, while a server's bytes grow in proportion; the ring's latency "
        "grows too.",
        sources=("patarasuk2009bandwidth",), labs=(FOUR,),
    ),
    Claim(
        67, NOTES, "section 3", "The global batch is cut into 8 microbatches.", "depends",
        "With one replica it is; two replicas have half as many each.",
        printed=(8,), labs=("lab03_bubbles_and_memory", "lab07_accuracy", EIGHT),
    ),
    Claim(
        68, NOTES, "sections 1 and 3", "A thread a device, with queues between the stages, imitates the pipeline.", "depends",
        "It does where each thread keeps to its order and waits for what it needs; an order that does not know what it needs cannot run.",
        labs=(TWO, EIGHT),
    ),
    Claim(
        69, NOTES, "section 3", "A step of the ring of 20 ms stands for a fast interconnect.", "depends",
        "It is a gradient of nearly a gigabyte on one InfiniBand port; NVLink would carry ten times as much.",
        printed=(20,), unit="ms", sources=("bang2023vtrain",), labs=(SIX, NINE),
    ),
    Claim(
        70, NOTES, "section 2", "A node has 8 A100 or H100 GPUs, NVLink inside, and InfiniBand to other nodes.", "right",
        "So are the vendor's own systems built.", printed=(8,),
    ),
    Claim(
        71, NOTES, "section 2", "NCCL uses a ring for the all-reduce.", "depends",
        "A ring is best for large messages and slow for small ones, where NCCL chooses other algorithms, such as trees.", labs=(FOUR,),
    ),
    Claim(
        72, SIMULATOR, "ring all-reduce", "After the program's ring all replicas hold the sum of their gradients.", "wrong",
        "Its all-gather starts one chunk too early and overwrites the sums: every chunk ends as one rank's own gradient, divided by D.",
        labs=(FOUR, "lab07_accuracy"),
    ),
    Claim(
        73, SIMULATOR, "check of the replicas", "That the replicas agree shows a right all-reduce.", "wrong",
        "With exact messages they are equal and wrong; a check needs the mean, computed in another way.", labs=(FOUR, "lab07_accuracy"),
    ),
    Claim(
        74, SIMULATOR, "prediction accuracy", "The trained model predicts 49.00 % of the points.", "wrong",
        "Its weights are ones, the labels come from a vector that nothing else knows, and the step changes them at random: nothing "
        "is learnt.",
        printed=(49.0,), unit="%", labs=("lab07_accuracy",),
    ),
    Claim(
        75, SIMULATOR, "timeline of 1F1B", "With 3 stages and 6 microbatches 1F1B takes 8 time steps.", "wrong",
        "Each stage has 12 operations, one a step; the grid has one cell for two of them, and most forwards are lost.",
        printed=(8,), unit="steps", labs=(TWO, SIX),
    ),
    Claim(
        76, "event log", "event timeline", "The log of 144 events has every forward before its backward.", "wrong",
        "Stage 2 logs a backward as the second event of all, and three forwards of each replica are never logged.",
        printed=(144,), unit="events", labs=(TWO, SIX),
    ),
)  # fmt: skip
