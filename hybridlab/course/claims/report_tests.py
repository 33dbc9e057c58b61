"""The claims of the published report in its sections 5 and 6: implementation, tests and benchmarks."""

from hybridlab.course.claims.claim import (
    LAB_2,
    LAB_3,
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


def _range(printed: tuple[float, ...]) -> tuple[float, float]:
    """Return the two ends of a printed range as a pair."""
    # A Figure stores the two ends of a range as a tuple of two numbers, but a Claim needs them as one pair within its tuple of numbers.
    low, high = printed
    return low, high


# The formatter would put each argument on its own line, so the table ends with "fmt: skip". A printed number that also stands in a table
# of the report is taken from the module with this table.
TEST_CLAIMS = (
    # Implementation, tests and benchmarks: sections 5 and 6
    Claim(
        29, REPORT, "section 5.2", "Rank 0 has a warm-up of 1 step, 6 pairs of a forward and a backward, and a cool-down of 2 steps.",
        "wrong",
        "The order is right and the labels are wrong: the pair with the last forward also belongs to the steady state.",
        printed=(1, 6, 2), labs=(LAB_2,), fault="false statement",
    ),
    Claim(
        30, REPORT, "section 5.2", "Rank 1 has a warm-up of 1 step too.", "depends",
        "The last stage has no warm-up and no cool-down: it waits for its first forward, and then runs the backward of each microbatch "
        "right after the forward.",
        printed=(1,), labs=(LAB_2,),
    ),
    Claim(
        31, REPORT, "section 5.3", "A backward takes 80 ms where a forward takes 50, 1.6 times as long.", "depends",
        "By the number of operations a backward would take twice as long; measured on A100s it takes about 1.6 times as long.",
        printed=(50, 80), unit="ms", sources=("qi2024zero",), labs=(LAB_3,),
    ),
    Claim(
        32, REPORT, "section 5.3", "Computing 8 microbatches takes 1040 ms.", "right",
        "1040 ms is the work of each stage if the times are for a stage, and the work of one GPU if they are for the whole model.",
        printed=COMPUTE.printed, unit="ms", labs=(LAB_6,),
    ),
    Claim(
        33, REPORT, "section 5.3", "The ring all-reduce takes 2(D-1) steps of 20 ms, 40 ms in all.", "right",
        "The all-reduce of the report's two replicas takes 40 ms; claim 45 asks whether a ring step takes as long with more replicas.",
        printed=ALL_REDUCE.printed, unit="ms", sources=("patarasuk2009bandwidth",), labs=(LAB_6, LAB_9),
    ),
    Claim(
        34, REPORT, "section 5.3", "Filling the pipeline costs one forward, draining it one backward.", "depends",
        "With the times of a stage, filling and draining together take (K-1)(F+B).",
        printed=(*WARM_UP.printed, *COOL_DOWN.printed, *OVERHEAD.printed), unit="ms", labs=(LAB_3,),
    ),
    Claim(
        35, REPORT, "section 5.3", "One step takes 1210 ms.", "depends",
        "1210 ms is (M+K-1)(F+B) plus the all-reduce, with the times of a stage, 8 microbatches for each replica and no overlap.",
        printed=TOTAL.printed, unit="ms", labs=(LAB_6, LAB_9),
    ),
    Claim(
        36, REPORT, "section 7.2.1", "The model leaves out the messages between the stages.", "right",
        "The printed total does not include them, but test 4 adds 20 ms for them.",
        labs=(LAB_6, LAB_8),
    ),
    Claim(
        37, REPORT, "section 6.1, test 1", "The order begins with two forwards; then backwards and forwards alternate.", "right",
        "This is the order of the first stage; the last stage begins with one forward.",
        labs=(LAB_2, LAB_9),
    ),
    Claim(
        38, REPORT, "section 6.1, test 2", "A single GPU takes 1040 ms for 8 microbatches.", "depends",
        "The claim holds if 50 and 80 ms are the times of the whole model; if they are those of a stage, the GPU computes two stages.",
        printed=TEST_2.printed, unit="ms", labs=(LAB_6, LAB_9),
    ),
    Claim(
        39, REPORT, "section 6.1, test 3", "Four GPUs are 0.86 times as fast as one, because of communication.", "wrong",
        "The single GPU of the comparison does a quarter of the work, so the quotient is the efficiency of the four GPUs; the bubble "
        "explains most of the difference between the speedup and 4.",
        printed=TEST_3.printed, unit="times", labs=(LAB_6, LAB_9), fault="false statement",
    ),
    Claim(
        40, REPORT, "section 6.1, test 4", "Communication of 60 ms is 5 % of a step.", "depends",
        "The claim holds if all 20 ms for the messages between the stages lengthen the step; in the simulation only half of the 20 ms do, "
        "and the share of the all-reduce alone is smaller still.",
        printed=TEST_4.printed, unit="%", labs=(LAB_6, LAB_9),
    ),
    Claim(
        41, REPORT, "section 6.1, test 5", "A run without a pipeline holds 80 units of activations and 1F1B 20, which saves 75 %.",
        "depends",
        "The first stage holds 20 units under 1F1B and 80 under GPipe; one device with the whole model holds one microbatch at a time, "
        "which takes 20 units.",
        printed=(*MEMORY_WITHOUT.printed, *MEMORY_PEAK.printed, *MEMORY_SAVING.printed), labs=(LAB_3, LAB_9),
    ),
    Claim(
        42, REPORT, "section 6.2, benchmark 1", "With 2, 4, 8 and 16 microbatches a step takes longer and the speedup falls.", "wrong",
        "The speedup divides a fixed 1040 ms by a growing amount of work, and only one row includes the bubble; for equal work the "
        "speedup rises.",
        # The printed numbers are first the times of all rows, then the speedups of all rows.
        printed=(*(row.total for row in BENCHMARK_1), *(row.speedup for row in BENCHMARK_1)), unit="(ms, then times)", labs=(LAB_6, LAB_9),
        fault="false statement",
    ),
    Claim(
        43, REPORT, "section 6.2, benchmark 1", "Communication takes a smaller share of the step with fewer microbatches.", "wrong",
        "The time of communication stays the same and the step grows with the number of microbatches, so the share falls.",
        labs=(LAB_6, LAB_9), fault="false reason",
    ),
    Claim(
        44, REPORT, "section 6.2, benchmark 2", "With 1, 2, 4 and 8 stages a step is shortest for 2 to 4 of them.", "wrong",
        "The report divides the steady state by the number of stages, but not the bubble; under both readings the time has no such "
        "minimum, and 8 stages need 8 GPUs, not 4.",
        printed=tuple(row.total for row in BENCHMARK_2), unit="ms", labs=(LAB_6, LAB_9), fault="false statement",
    ),
    Claim(
        45, REPORT, "section 6.2, benchmark 3", "With 1, 2, 4 and 8 replicas the all-reduce takes 0, 20, 60 and 140 ms.", "depends",
        "The claim holds if a ring step always takes 10 ms; if the bandwidth limits the step, more replicas send smaller pieces, faster.",
        printed=tuple(row.all_reduce for row in BENCHMARK_3), unit="ms", sources=("patarasuk2009bandwidth",), labs=(LAB_6, LAB_9),
    ),
    Claim(
        46, REPORT, "section 6.2, benchmark 3", "These all-reduces take 1.7, 4.9 and 11.5 % of a step.", "wrong",
        "The third share is relative to a step of 1210 ms, which does not include the longer all-reduce.",
        printed=tuple(row.share for row in BENCHMARK_3[1:]), unit="%", labs=(LAB_6, LAB_9),  # one replica has no all-reduce
        fault="false statement",
    ),
)  # fmt: skip
