"""The claims of the published report in its sections 5 and 6: implementation, tests and benchmarks."""

from hybridlab.course.claims.claim import (
    LAB_2,
    LAB_3,
    LAB_4,
    LAB_6,
    LAB_8,
    LAB_9,
    Claim,
)
from hybridlab.course.published.benchmarks import BENCHMARK_1, BENCHMARK_2, BENCHMARK_3, TEST_2, TEST_3, TEST_4
from hybridlab.course.published.report import (
    ALL_REDUCE,
    COMPUTE,
    COOL_DOWN,
    MEMORY_PEAK,
    MEMORY_SAVING,
    MEMORY_WITHOUT,
    OVERHEAD,
    TOTAL,
    WARM_UP,
)

REPORT = "report"  # the key of DOCUMENTS

# The formatter would put each argument on its own line, so the table ends with "fmt: skip". A printed number that also stands in a table
# of the report is taken from the module with this table.
TEST_CLAIMS = (
    # Implementation: section 5
    Claim(
        78, REPORT, "sections 5.1, 5.4 and 5.5",
        "The implementation runs 4 devices and 8 microbatches in threads, with queues, waiting times and a counter of memory.", "wrong",
        "The only program in the document has another mesh and another number of microbatches, and it imports no module for threads or "
        "queues.",
        printed=(4, 8), unit="(devices, then microbatches)", labs=(LAB_8,), fault="false statement",
    ),
    Claim(
        29, REPORT, "section 5.2",
        "Rank 0 has a warm-up of 1 step, 6 pairs of a forward and a backward, and a cool-down of 2 steps, the first of them a pair, too.",
        "wrong",
        "The order of the operations is right, but the cool-down has a forward, although by section 2.3 only backwards are left there; a "
        "warm-up of 1 goes with 7 pairs, and 6 pairs go with a warm-up of 2.",
        printed=(1, 6, 2), unit="(warm-up, pairs, cool-down)", labs=(LAB_2,), fault="false statement",
    ),
    Claim(
        30, REPORT, "section 5.2", "Rank 1 has a warm-up of 1 step too, and a cool-down of 1 step.", "depends",
        "If a pair begins with a forward, as the report writes its pairs, the last stage has no warm-up and no cool-down; if a pair "
        "begins with a backward, as PyTorch counts, it has 1 of each.",
        printed=(1, 1), unit="(warm-up, cool-down)", labs=(LAB_2,),
    ),
    Claim(
        31, REPORT, "section 5.3", "A backward takes 80 ms where a forward takes 50, 1.6 times as long, because it computes more.",
        "depends",
        "A backward does compute more: measured on A100s it takes about 1.6 times as long as a forward, but it has twice as many "
        "operations, and three times as many if it computes the forward again.",
        printed=(50, 80), unit="ms", sources=("qi2024zero",), labs=(LAB_3,),
    ),
    Claim(
        32, REPORT, "section 5.3", "Computing 8 microbatches takes 1040 ms.", "depends",
        "1040 ms is the work of each stage if the times are for a stage, and the work of one GPU if they are for the whole model; by the "
        "same times, one GPU works 2080 ms in the first case, and a stage 520 ms in the second.",
        printed=COMPUTE.printed, unit="ms", labs=(LAB_6,),
    ),
    Claim(
        33, REPORT, "section 5.3", "The ring all-reduce takes 2(D-1) steps of 20 ms, 40 ms in all.", "right",
        "The all-reduce of the report's two replicas takes 40 ms; claim 45 asks whether a ring step takes as long with more replicas.",
        printed=ALL_REDUCE.printed, unit="ms", sources=("patarasuk2009bandwidth",), labs=(LAB_6, LAB_9),
    ),
    Claim(
        99, REPORT, "section 5.3", "The time of the all-reduce is the size of the model divided by the bandwidth.", "depends",
        "It holds for two replicas of the whole model with the bandwidth of one direction, and for two replicas of two stages with that of "
        "both directions together, which is twice as high; with more replicas each GPU sends up to twice its gradients, and with two "
        "stages it has those of half of the model.",
        sources=("patarasuk2009bandwidth",), labs=(LAB_4,),
    ),
    Claim(
        34, REPORT, "section 5.3", "Filling the two stages costs one forward, draining them one backward.", "depends",
        "With the times of a stage, filling takes 50 ms and draining 80 ms; with the times of the whole model, each of the two stages "
        "takes half as long.",
        printed=(*WARM_UP.printed, *COOL_DOWN.printed, *OVERHEAD.printed), unit="ms", labs=(LAB_3,),
    ),
    Claim(
        35, REPORT, "section 5.3", "One step takes 1210 ms.", "depends",
        "The step takes 1210 ms with the times of a stage and 8 microbatches for each replica; in the other readings it is shorter.",
        printed=TOTAL.printed, unit="ms", labs=(LAB_6, LAB_9),
    ),
    Claim(
        36, REPORT, "section 7.2.1", "The simulation leaves out the messages between the stages.", "right",
        "The printed total of 1210 ms has no time for messages, although test 4 adds 20 ms for them to the communication.",
        labs=(LAB_6, LAB_8),
    ),
    # Tests and benchmarks: section 6
    Claim(
        37, REPORT, "section 6.1, test 1", "The order begins with two forwards; then backwards and forwards alternate.", "depends",
        "This is the order of the first stage; the last stage begins with one forward.",
        labs=(LAB_2, LAB_9),
    ),
    Claim(
        87, REPORT, "sections 6.1 and 7.4", "No data races are found, because the log is safe for threads.", "depends",
        "It holds for the log itself, because a safe log loses no line, but the log makes no thread wait: without waiting, operations "
        "start before their inputs are there.",
        labs=(LAB_8,),
    ),
    Claim(
        38, REPORT, "section 6.1, test 2", "A single GPU takes 1040 ms for 8 microbatches.", "depends",
        "It holds if 50 and 80 ms are the times of the whole model; if they are those of a stage, the GPU computes two stages.",
        printed=TEST_2.printed, unit="ms", labs=(LAB_6, LAB_9),
    ),
    Claim(
        39, REPORT, "section 6.1, test 3", "Four GPUs are 0.86 times as fast as one, because of communication.", "wrong",
        "0.86 comes out only against a GPU that does a quarter of the work, so it is the efficiency of the four GPUs and no speedup; in "
        "every reading the bubble explains most of the difference between the speedup and 4.",
        printed=TEST_3.printed, unit="times", labs=(LAB_6, LAB_9), fault="false statement",
    ),
    Claim(
        40, REPORT, "section 6.1, test 4", "Communication of 60 ms is 5 % of a step.", "depends",
        "It holds with the times of a stage and 8 microbatches for each replica, if all 20 ms for messages count; in a simulation only "
        "half of them lengthen the step, and in a shorter step communication has a larger share.",
        printed=TEST_4.printed, unit="%", labs=(LAB_6, LAB_9),
    ),
    Claim(
        41, REPORT, "section 6.1, test 5", "A run without a pipeline holds 80 units of activations and 1F1B 20, which saves 75 %.",
        "depends",
        "It holds for the first stage, against GPipe with 8 microbatches for each replica, or against one device that runs 4 microbatches "
        "of the whole model at once; if such a device runs them one by one, it holds no more than the first stage.",
        printed=(*MEMORY_WITHOUT.printed, *MEMORY_PEAK.printed, *MEMORY_SAVING.printed), unit="(units without, units with, %)",
        labs=(LAB_3, LAB_9),
    ),
    Claim(
        91, REPORT, "section 6.1, test 5",
        "The simulation saves more than the expected 30 to 40 % of the activations, because it interleaves perfectly.", "wrong",
        "The order of the operations fixes how many microbatches a stage holds, so slow messages and unequal stages save as much as "
        "perfect times.",
        printed=((30, 40),), unit="%", labs=(LAB_3,), fault="false reason",
    ),
    Claim(
        42, REPORT, "section 6.2, benchmark 1", "With 2, 4, 8 and 16 microbatches a step takes the printed times.", "wrong",
        "Only the printed time with 8 microbatches includes the bubble, and the others count communication twice, so no reading gives all "
        "four times.",
        printed=tuple(row.total for row in BENCHMARK_1), unit="ms", labs=(LAB_6, LAB_9), fault="false statement",
    ),
    Claim(
        131, REPORT, "section 6.2, benchmark 1", "With 2, 4, 8 and 16 microbatches the speedup of four GPUs falls from 3.47 to 0.48.",
        "wrong",
        "The report divides a fixed 1040 ms by the time of a growing amount of work, and even this quotient does not fall as printed; for "
        "equal work the speedup rises.",
        printed=tuple(row.speedup for row in BENCHMARK_1), unit="times", labs=(LAB_6, LAB_9), fault="false statement",
    ),
    Claim(
        101, REPORT, "section 6.2, benchmark 1", "The all-reduce takes 20 ms with 2 microbatches and 40 ms with more, a constant cost.",
        "wrong",
        "The cost does not depend on the number of microbatches: all rows have 40 ms with the ring step of section 5.3, and 20 ms with "
        "that of benchmark 3.",
        printed=tuple(row.communication for row in BENCHMARK_1), unit="ms", labs=(LAB_6,), fault="false statement",
    ),
    Claim(
        43, REPORT, "section 6.2, benchmark 1", "Communication takes a smaller share of the step with fewer microbatches.", "wrong",
        "The time of communication stays the same and the step grows with the number of microbatches, so the share falls.",
        labs=(LAB_6, LAB_9), fault="false statement",
    ),
    Claim(
        44, REPORT, "section 6.2, benchmark 2", "With 1, 2, 4 and 8 stages a step takes the printed times, longest at both ends.",
        "wrong",
        "The report divides the steady state by the number of stages, but not the bubble; with a GPU for each stage the time only grows "
        "(reading A) or only falls (reading B), and 8 stages need 8 GPUs, not 4.",
        printed=tuple(row.total for row in BENCHMARK_2), unit="ms", labs=(LAB_6, LAB_9), fault="false statement",
    ),
    Claim(
        102, REPORT, "section 6.2, benchmarks 1 and 2",
        "The tables print how long computing, filling, the steady state and draining take.", "depends",
        "Computing, filling and draining fit a pipeline with the times of a stage, and the steady state, like computing on one GPU alone, "
        "fits only the times of the whole model, so the parts of one row do not belong together.",
        labs=(LAB_6, LAB_9),
    ),
    Claim(
        113, REPORT, "section 6.2, benchmark 2", "On four GPUs, 2 to 4 stages are best.", "depends",
        "It holds on exactly four GPUs with 8 microbatches in all and a ring step of 20 ms; with 10 ms, or with 8 microbatches for each "
        "replica, 1 stage is best, and with a GPU for each stage 8 stages are.",
        printed=((2, 4),), unit="stages", labs=(LAB_6, LAB_9),
    ),
    Claim(
        45, REPORT, "section 6.2, benchmark 3", "With 1, 2, 4 and 8 replicas the all-reduce takes 0, 20, 60 and 140 ms.", "depends",
        "It holds if a ring step always takes 10 ms; with the 20 ms of section 5.3 all times are twice as long, and if the bandwidth "
        "limits the step, more replicas send smaller pieces, faster.",
        printed=tuple(row.all_reduce for row in BENCHMARK_3), unit="ms", sources=("patarasuk2009bandwidth",), labs=(LAB_6, LAB_9),
    ),
    Claim(
        46, REPORT, "section 6.2, benchmark 3", "With 2, 4 and 8 replicas the all-reduce takes 1.7, 4.9 and 11.5 % of a step.", "wrong",
        "With the times of a stage and 8 microbatches for each replica the first two shares are right, but the third is 10.7 %; in a step "
        "of 1210 ms, which does not include the longer all-reduce, it is 11.57 %.",
        printed=tuple(row.share for row in BENCHMARK_3[1:]), unit="%", labs=(LAB_6, LAB_9),  # one replica has no all-reduce
        fault="false statement",
    ),
)  # fmt: skip
