"""What the published report claims of its implementation, its tests and its benchmarks, sections 5 and 6."""

from hybridlab.course.claims.claim import Claim
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

REPORT = "report"
TWO, THREE, SIX = "lab02_one_f_one_b", "lab03_bubbles_and_memory", "lab06_hybrid_step"
EIGHT, NINE = "lab08_threads", "lab09_a100_report"

MODEL = (
    Claim(
        29, REPORT, "section 5.2", "Rank 0 has a warm-up of 1 step, 6 pairs of a forward and a backward, and a cool-down of 2 steps.",
        "wrong",
        "Its order is right and its labels are not: the pair of the last forward belongs to the steady state too.",
        printed=(1, 6, 2), labs=(THREE,),
    ),
    Claim(
        30, REPORT, "section 5.2", "Rank 1 has a warm-up of 1 step too.", "wrong",
        "The last stage has no warm-up: it turns every forward into a backward at once.", printed=(1,), labs=(THREE,),
    ),
    Claim(
        31, REPORT, "section 5.3", "A backward takes 80 ms where a forward takes 50, 1.6 times as long.", "right",
        "By operations alone it would be twice; measured on A100s it is about 1.6 times.",
        printed=(50, 80), unit="ms", sources=("qi2024zero",), labs=(THREE,),
    ),
    Claim(
        32, REPORT, "section 5.3", "Computing 8 microbatches takes 1040 ms.", "right",
        "It is the work of each stage if the times are those of a stage, and of one GPU if they are those of the model.",
        printed=COMPUTE.printed, unit="ms", labs=(THREE, SIX),
    ),
    Claim(
        33, REPORT, "section 5.3", "The ring all-reduce takes 2(D-1) steps of 20 ms, 40 ms in all.", "depends",
        "With two replicas it does; with more a step carries less, so that its time is no constant.",
        printed=ALL_REDUCE.printed, unit="ms", sources=("patarasuk2009bandwidth",), labs=(SIX, NINE),
    ),
    Claim(
        34, REPORT, "section 5.3", "Filling the pipeline costs one forward, draining it one backward.", "right",
        "Together they are (K-1)(F+B), with the times of a stage.",
        printed=(*WARM_UP.printed, *COOL_DOWN.printed, *OVERHEAD.printed), unit="ms", labs=(THREE,),
    ),
    Claim(
        35, REPORT, "section 5.3", "One step takes 1210 ms.", "right",
        "It is (M+K-1)(F+B) and the all-reduce, with the times of a stage, 8 microbatches for each replica and nothing that overlaps.",
        printed=TOTAL.printed, unit="ms", labs=(THREE, SIX, NINE),
    ),
    Claim(
        36, REPORT, "section 7.2.1", "Messages between the stages are left out of the model.", "right",
        "The printed total has no room for them; test 4 adds 20 ms for them all the same.", labs=(SIX, EIGHT),
    ),
    Claim(
        37, REPORT, "section 6.1, test 1", "The order begins with two forwards, then a backward and a forward take turns.", "right",
        "It is that of the first stage; the last stage begins with one forward.", labs=(TWO, THREE, NINE),
    ),
    Claim(
        38, REPORT, "section 6.1, test 2", "A single GPU takes 1040 ms for 8 microbatches.", "depends",
        "It does if 50 and 80 ms are the times of the whole model; if they are those of a stage, it has two stages to compute.",
        printed=TEST_2.printed, unit="ms", labs=(SIX, NINE),
    ),
    Claim(
        39, REPORT, "section 6.1, test 3", "Four GPUs are 0.86 times as fast as one, because of communication.", "wrong",
        "The single GPU of the comparison does a quarter of the work, so that the quotient is the efficiency of the four; what is missing "
        "from 4 is mostly the bubble.",
        printed=TEST_3.printed, unit="times", labs=(SIX, NINE),
    ),
    Claim(
        40, REPORT, "section 6.1, test 4", "Communication of 60 ms is 5 % of a step.", "depends",
        "It is with 20 ms for messages that the step does not contain; the all-reduce alone is less.",
        printed=TEST_4.printed, unit="%", labs=(SIX, NINE),
    ),
    Claim(
        41, REPORT, "section 6.1, test 5", "A run without a pipeline holds 80 units of activations and 1F1B 20, which saves 75 %.",
        "depends",
        "These are the first stage's, and the 80 those of GPipe; one device with the whole model holds one microbatch, 20 units, at "
        "a time.",
        printed=(*MEMORY_WITHOUT.printed, *MEMORY_PEAK.printed, *MEMORY_SAVING.printed), labs=(THREE, NINE),
    ),
    Claim(
        42, REPORT, "section 6.2, benchmark 1", "With 2, 4, 8 and 16 microbatches a step takes longer and the speedup falls.", "wrong",
        "The speedup divides a fixed 1040 ms by a growing amount of work, and the bubble is in one row alone; for equal work the "
        "speedup rises.",
        printed=(*(row.total for row in BENCHMARK_1), *(row.speedup for row in BENCHMARK_1)), unit="(ms, then times)", labs=(SIX, NINE),
    ),
    Claim(
        43, REPORT, "section 6.2, benchmark 1", "Communication weighs less with fewer microbatches.", "wrong",
        "Its time stays and the step grows with the microbatches, so its share falls.", labs=(SIX, NINE),
    ),
    Claim(
        44, REPORT, "section 6.2, benchmark 2", "With 1, 2, 4 and 8 stages a step is shortest for 2 to 4 of them.", "wrong",
        "The steady state is divided by the stages and the bubble is not; under either reading the time has no such minimum, and 8 stages "
        "take 8 GPUs, not 4.",
        printed=tuple(row.total for row in BENCHMARK_2), unit="ms", labs=(SIX, NINE),
    ),
    Claim(
        45, REPORT, "section 6.2, benchmark 3", "With 1, 2, 4 and 8 replicas the all-reduce takes 0, 20, 60 and 140 ms.", "depends",
        "It does if a step of the ring always takes 10 ms; where the bandwidth decides, more replicas have smaller pieces.",
        printed=tuple(row.all_reduce for row in BENCHMARK_3), unit="ms", sources=("patarasuk2009bandwidth",), labs=(SIX, NINE),
    ),
    Claim(
        46, REPORT, "section 6.2, benchmark 3", "Of a step these all-reduces take 1.7, 4.9 and 11.5 %.", "wrong",
        "The third share is that of a step of 1210 ms, in which the longer all-reduce is not.",
        printed=tuple(row.share for row in BENCHMARK_3[1:]), unit="%", labs=(SIX, NINE),
    ),
)  # fmt: skip
