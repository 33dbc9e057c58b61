"""The claims of the implementation notes and of the output of the published programs."""

from hybridlab.course.claims.claim import LAB_1, LAB_2, LAB_3, LAB_4, LAB_5, LAB_6, LAB_7, LAB_8, LAB_9, Claim

# OUTPUT is a place in the report. NOTES, SIMULATOR and EVENT_LOG are keys of DOCUMENTS.
OUTPUT, NOTES, SIMULATOR, EVENT_LOG = "program and its output", "notes", "simulator", "event log"

# The formatter would put each argument on its own line, so the table ends with "fmt: skip".
PROGRAM_CLAIMS = (
    Claim(
        61, "report", OUTPUT, "The program sends 2160 bytes in INT8.", "depends",
        "It holds for the codes alone; every message also needs a scale of 4 bytes, so that 2448 bytes are sent.",
        printed=(2160,), unit="bytes", labs=(LAB_1, LAB_5, LAB_6),
    ),
    Claim(
        62, "report", OUTPUT, "An all-reduce leaves small differences between the weights of the replicas of each stage.", "wrong",
        "After a correct all-reduce all ranks hold the same bits; here the rank that sends a chunk first holds its own unrounded numbers, "
        "and all other ranks hold the rounded numbers that they received.",
        printed=(0.0003, 0.00026, 0.00025), labs=(LAB_5, LAB_6),  # one for each stage; the output has more digits
        fault="faulty program",
    ),
    Claim(
        63, "report", OUTPUT, "The printed grid of time steps is 1F1B.", "wrong",
        "Stage 2 begins with a backward, the backward of a step overwrites its forward, and with one operation in a cell the 12 "
        "operations of a stage do not fit into 8 steps.",
        labs=(LAB_2, LAB_6), fault="faulty program",
    ),
    Claim(
        64, NOTES, "section 3", "1F1B has smaller bubbles than GPipe.", "depends",
        "As for claim 7: 1F1B idles less if memory limits GPipe, if a stage before the last is slow, or if forwards and backwards are slow "
        "on different stages; otherwise both idle equally, or GPipe idles less because messages take time.",
        sources=("narayanan2021megatron",), labs=(LAB_2, LAB_3),
    ),
    Claim(
        65, NOTES, "section 3", "1F1B needs less memory for activations at its peak than GPipe.", "depends",
        "It holds if there are more microbatches than stages; otherwise the first stage holds all microbatches, as in GPipe, and only "
        "the later stages hold fewer.",
        labs=(LAB_3,),
    ),
    Claim(
        66, NOTES, "section 3",
        "In a ring the bytes at the bottleneck do not grow with the number of GPUs; with a parameter server they do.", "depends",
        "It holds for one server if growth up to a factor of 2 does not count; in a ring a GPU sends between one and two times the "
        "gradients, and so does each of the GPUs that share the work of a server.",
        sources=("patarasuk2009bandwidth",), labs=(LAB_4,),
    ),
    Claim(
        67, NOTES, "section 3", "In the simulation the global batch is divided into 8 microbatches.", "depends",
        "By the report's sizes there are 8 microbatches in all, as in claim 26, and each of the two replicas runs 4 of them; the printed "
        "program has 6.",
        printed=(8,), labs=(LAB_3, LAB_7, LAB_8),
    ),
    Claim(
        68, NOTES, "sections 1 and 3", "One thread for each device, with queues between the stages, imitates the pipeline.", "depends",
        "It holds if each thread follows the order of 1F1B and waits for its inputs; without waiting, operations start too early, and the "
        "order of the published event log cannot run.",
        labs=(LAB_2, LAB_8),
    ),
    Claim(
        69, NOTES, "section 3",
        "20 ms for a transfer between stages or for a step of the ring stand for a fast interconnect, beside 50 and 80 ms of computing.",
        "depends",
        "The notes give no size: in 20 ms half a gigabyte goes over one InfiniBand port, as in a step of the ring for twice as many bytes "
        "of gradients, and ten times as much over NVLink.",
        printed=(20,), unit="ms", sources=("bang2023vtrain",), labs=(LAB_6, LAB_9),
    ),
    Claim(
        70, NOTES, "section 2", "A node has, for example, 8 A100 or H100 GPUs, NVLink inside, and InfiniBand to other nodes.",
        "right",
        "The vendor's own systems are built in this way, with either GPU.",
        printed=(8,),
    ),
    Claim(
        71, NOTES, "section 2", "NCCL uses a ring for the all-reduce.", "depends",
        "It holds for large messages, where a ring is a little faster than two trees; for small messages a ring is slow, and NCCL chooses "
        "other algorithms, such as trees.",
        labs=(LAB_4,),
    ),
    Claim(
        72, EVENT_LOG, "comment on the ring", 'The ring is a "True" chunked all-reduce: all replicas end with the mean gradient.', "wrong",
        "In both programs the all-gather starts one chunk too early and overwrites the sums: every chunk ends as the gradient of a single "
        "rank, divided by the number of replicas.",
        labs=(LAB_4, LAB_7), fault="faulty program",
    ),
    Claim(
        73, SIMULATOR, "check of the replicas", "To verify the step, it is enough that the replicas agree.", "wrong",
        "If messages are exact, the replicas of this program agree and are all wrong; a check must compare them with a mean that is "
        "computed in another way.",
        labs=(LAB_4, LAB_7), fault="false reason",
    ),
    Claim(
        74, SIMULATOR, "prediction accuracy", "The trained model predicts 49.00 % of the points correctly.", "wrong",
        "The weights begin as ones, the labels come from a random vector that no other part of the program knows, and the step changes the "
        "weights at random, so nothing is learnt.",
        printed=(49.0,), unit="%", labs=(LAB_7,), fault="faulty program",
    ),
    Claim(
        75, SIMULATOR, "timeline of 1F1B", "With 3 stages and 6 microbatches 1F1B takes 8 time steps.", "depends",
        "It holds if a step has room for a forward and a backward and a message arrives within the step; it takes 11 steps if a message "
        "arrives in the next step, as the program's forwards do, and 16 steps with one operation in a step.",
        printed=(8,), unit="steps", labs=(LAB_2, LAB_6),
    ),
    Claim(
        76, EVENT_LOG, "event timeline", 'The log of 144 events is "1F1B".', "wrong",
        "The second event of the log is a backward of stage 2, and three forwards of each replica are missing.",
        printed=(144,), unit="events", labs=(LAB_2, LAB_6), fault="faulty program",
    ),
    Claim(
        103, NOTES, "section 3", "A transfer between two stages takes 20 ms in the simulation.", "wrong",
        "The report says that no transfer is modelled, and its total of 1210 ms has room for none: transfers of 20 ms each make it "
        "1370 ms, more than even the observed 1234 ms, and 20 ms for all transfers of a pipeline make it 1220 ms.",
        printed=(20,), unit="ms", labs=(LAB_9,), fault="false statement",
    ),
    Claim(
        104, NOTES, "section 3", "Thread joins and a shared event log synchronise the devices.", "depends",
        "A join waits until a thread has ended, so all pipelines end before the all-reduce; neither a join nor a log makes an operation "
        "wait for its input.",
        labs=(LAB_8,),
    ),
    Claim(
        105, NOTES, "section 3", "Because of the microbatches, stages compute while they communicate.", "depends",
        "It holds for a part of the messages between stages, although the simulation has none; the all-reduce starts after the last "
        "backward, so no computing hides it.",
        labs=(LAB_6, LAB_8),
    ),
    Claim(
        106, NOTES, "section 3, and section 8.1 of the report",
        "1F1B frees an activation as soon as its backward has ended, before all forwards are done.", "depends",
        "It frees each at once, as GPipe does, and before the last forward on all stages if there are more microbatches than stages; "
        "otherwise the first stage runs all forwards first, like GPipe.",
        labs=(LAB_3,),
    ),
    Claim(
        108, SIMULATOR, "performance report", "In the simulation, a step of 12 GPUs has a runtime of 0.016619 seconds.", "wrong",
        "The program measures how long one processor needs for its random numbers and additions, rank after rank; with 50 and 80 ms for "
        "an operation the same step takes more than twenty times as long.",
        printed=(0.016619,), unit="s", labs=(LAB_6,), fault="faulty program",
    ),
    Claim(
        109, EVENT_LOG, "output", "A deterministic all-reduce leaves small differences between the replicas of each stage.", "wrong",
        "As for claim 62: the program does leave such differences, but a correct all-reduce leaves none.",
        printed=(0.000242, 0.000322, 0.000276), labs=(LAB_5, LAB_6),  # one for each stage; the output has more digits
        fault="faulty program",
    ),
    Claim(
        110, EVENT_LOG, "gradient accumulation", "Each device adds up one gradient for each microbatch.", "wrong",
        "The printed program adds a random gradient in each of its 8 steps, also in a step without a backward.",
        fault="faulty program",
    ),
    Claim(
        111, SIMULATOR, "timeline of 1F1B", "In each step the printed grid has one cell for each of the 12 ranks.", "depends",
        "It holds for the same grid in the report; the rows of the grid in the simulator's own document have 14 or 15 cells, perhaps "
        "because the scan of the page is faulty.",
        printed=(12,), unit="ranks", labs=(LAB_2,),
    ),
    Claim(
        112, EVENT_LOG, "column Time", "The column Time, a logical time in the program, says when an event happens.", "wrong",
        "It has the number of the row, so no two of the 12 ranks do anything at the same time, and not even the order can be right, "
        "because events stand before their inputs.",
        labs=(LAB_2, LAB_8), fault="false statement",
    ),
)  # fmt: skip
