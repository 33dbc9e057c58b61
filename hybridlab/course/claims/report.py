"""The 60 claims of the published report, from its abstract to its list of references."""

from hybridlab.course.claims.claim import (
    LAB_1,
    LAB_2,
    LAB_3,
    LAB_4,
    LAB_5,
    LAB_6,
    LAB_7,
    LAB_8,
    LAB_9,
    LAB_10,
    Claim,
)
from hybridlab.course.published.benchmarks import BENCHMARK_1, BENCHMARK_2, BENCHMARK_3, METRICS, TEST_2, TEST_3, TEST_4
from hybridlab.course.published.report import (
    ALL_REDUCE,
    COMPUTE,
    COOL_DOWN,
    GPIPE_BUBBLE,
    MEMORY_PEAK,
    MEMORY_SAVING,
    MEMORY_WITHOUT,
    MICROBATCH_COUNT,
    ONE_F_ONE_B_BUBBLE,
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
REPORT_CLAIMS = (
    # Abstract, concepts, problem and design: sections 1 to 4
    Claim(
        1, REPORT, "abstract", "Four GPUs, in two stages and two replicas, are expected to be 6 to 8 times as fast as one.", "wrong",
        "Four devices are at most four times as fast as one at the same work, and the bubble and the all-reduce lower the speedup "
        "further.",
        printed=((6, 8),), unit="times", labs=(LAB_6, LAB_9),
    ),
    Claim(
        2, REPORT, "abstract", "Communication takes 15 to 20 % of the training time.", "wrong",
        "With the report's own times the all-reduce takes a few percent of a step, and the report derives no larger share anywhere.",
        printed=((15, 20),), unit="%", labs=(LAB_6, LAB_9),
    ),
    Claim(
        3, REPORT, "abstract", "A pipeline needs 30 to 40 % less memory than a run without one.", "depends",
        "Compared with GPipe, the first stage saves 1 - K/M of its activations, which is in this range with 5 stages and 8 microbatches; "
        "compared with one device that runs its microbatches one after the other, the first of two stages saves no activations, but half "
        "of the weights and of the optimiser.",
        printed=((30, 40),), unit="%", labs=(LAB_3,),
    ),
    Claim(
        4, REPORT, "section 2.1", "Data parallelism copies the model and averages gradients; pipeline parallelism cuts its layers.",
        "right",
        "In a mesh each pipeline has every stage once, each stage has one copy for each replica, and the ring gives all copies the mean.",
        labs=(LAB_1,),
    ),
    Claim(
        5, REPORT, "section 2.2", "The communication of data parallelism alone does not scale to many GPUs.", "depends",
        "A GPU never sends more than twice its gradients, but the number of messages in a ring grows with the GPUs; a model of 175 billion "
        "parameters was measured on 384 and on 1,536 GPUs: the bubble explains its loss of speed.",
        sources=("patarasuk2009bandwidth", "narayanan2021megatron"), labs=(LAB_10,),
    ),
    Claim(
        6, REPORT, "section 2.3", "GPipe runs all forwards, then all backwards, and holds the activations of all microbatches.", "right",
        "The schedule here has this order; the published GPipe also recomputes activations, and then holds only those between the "
        "stages.",
        sources=("huang2019gpipe",), labs=(LAB_2,),
    ),
    Claim(
        7, REPORT, "section 2.3", "1F1B has smaller bubbles than GPipe.", "wrong",
        "Under both schedules every device idles for (K-1)(F+B); 1F1B saves memory, not time.",
        sources=("narayanan2021megatron",), labs=(LAB_2, LAB_3),
    ),
    Claim(
        8, REPORT, "section 2.3", "The communication of a parameter server grows in proportion to the workers.", "right",
        "One central server receives and sends all gradients of every worker; several servers that share the work avoid this.",
        labs=(LAB_4,),
    ),
    Claim(
        9, REPORT, "section 2.3", "In a ring all-reduce each GPU's communication grows as the logarithm of the GPUs.", "wrong",
        "A GPU sends less than twice its gradients; the number of messages in sequence, 2(N-1), grows in proportion to the GPUs; a "
        "logarithm describes trees.",
        sources=("patarasuk2009bandwidth", "thakur2005optimization"), labs=(LAB_4,),
    ),
    Claim(
        10, REPORT, "section 2.3", "A ring takes 2(N-1) steps and uses the links as well as any all-reduce can.", "right",
        "A ring takes exactly this number of hops, and no all-reduce can send fewer bytes.",
        sources=("patarasuk2009bandwidth",), labs=(LAB_4,),
    ),
    Claim(
        11, REPORT, "section 3.2", "An A100 has 16 GB of memory.", "wrong",
        "An A100 is sold with 40 or 80 GB; 16 GB is the memory of the smaller V100.",
        printed=(16,), unit="GB", labs=(LAB_9,),
    ),
    Claim(
        12, REPORT, "sections 3.2 and 4.2", "NVLink carries about 500 GB/s.", "depends",
        "An H100, which section 4.2 also names, sends 450 GB/s in each direction; no rate of an A100 is near 500 GB/s, not in one "
        "direction, not in both together, and not as measured.",
        printed=(500,), unit="GB/s", sources=("bang2023vtrain",), labs=(LAB_9,),
    ),
    Claim(
        13, REPORT, "sections 3.2 and 4.2", "InfiniBand carries about 200 GB/s.", "depends",
        "The eight HDR ports of a node together carry 200 GB/s; one port carries 200 gigabits a second, which is 25 GB/s.",
        printed=(200,), unit="GB/s", labs=(LAB_9,),
    ),
    Claim(
        14, REPORT, "section 3.2", "An A100 computes 312 TFLOP/s.", "right",
        "This is the dense 16-bit peak of the tensor cores; whole training runs reach about half of this peak.",
        printed=(312,), unit="TFLOP/s", sources=("narayanan2021megatron",), labs=(LAB_9,),
    ),
    Claim(
        15, REPORT, "section 3.3.1", "The speedup is nearly the number of devices.", "depends",
        "The bubble alone lowers the speedup to a share M/(M+K-1), which is near one with many microbatches for each stage and far below "
        "one with few; here 'nearly' means 80 %, as in the report's section 3.4.",
        labs=(LAB_6, LAB_9),
    ),
    Claim(
        16, REPORT, "section 3.3.2", "The cost of communication is its time divided by the time of the step.", "right",
        "The library defines the share in the same way, for exposed communication; communication that overlaps with computing does not "
        "lengthen the step.",
        labs=(LAB_6, LAB_9),
    ),
    Claim(
        17, REPORT, "section 3.3.2", "In a well-configured system communication takes 15 to 25 % of the time.", "depends",
        "The share follows from the number of replicas, the size of the gradients and the links; with the report's own times the share is "
        "far smaller with two replicas, and in this range with eight.",
        printed=((15, 25),), unit="%", labs=(LAB_6, LAB_9),
    ),
    Claim(
        18, REPORT, "section 3.3.3", "Activations, gradients and optimiser take 40 to 60 % of a GPU's memory.", "depends",
        "The share follows from the model and its plan; published runs lie within this range and above it.",
        printed=((40, 60),), unit="%", sources=("narayanan2021megatron", "rajbhandari2020zero", "korthikanti2023recomputation"),
        labs=(LAB_9,),
    ),
    Claim(
        19, REPORT, "section 3.3.4", "The time of a step is the time of computing plus the time of communication.", "wrong",
        "The sum leaves out the bubble, which the report's own section 5.3 adds, and the sum ignores all overlap.",
        labs=(LAB_6, LAB_9),
    ),
    Claim(
        20, REPORT, "section 3.3.4", "A step takes 1 to 2 s for a typical model.", "depends",
        "The claim holds for the report's own step; published steps of large models take up to a hundred times as long.",
        printed=((1, 2),), unit="s", sources=("narayanan2021megatron",), labs=(LAB_9,),
    ),
    Claim(
        21, REPORT, "section 3.4", "More than 80 % of the devices' time is used as the system grows.", "depends",
        "The pipeline alone needs at least 4(K-1) microbatches for 80 %.",
        labs=(LAB_3, LAB_9),
    ),
    Claim(
        22, REPORT, "section 4.2, choice 1", "GPipe idles for 30 to 40 % of the time and 1F1B for 2 to 5 %.", "wrong",
        "At every size both schedules idle for the same share of the time: a third with few microbatches, 2 to 5 % with many.",
        printed=(_range(GPIPE_BUBBLE.printed), _range(ONE_F_ONE_B_BUBBLE.printed)), unit="%", labs=(LAB_3,),
    ),
    Claim(
        23, REPORT, "section 4.2, choice 1", "1F1B holds fewer activations at its peak than GPipe.", "right",
        "Under 1F1B stage s holds the activations of at most K - s microbatches; under GPipe it holds those of all microbatches.",
        labs=(LAB_3,),
    ),
    Claim(
        24, REPORT, "section 4.2, choice 2",
        "Latency grows as the logarithm of the number of GPUs, for a ring and for a parameter server.", "wrong",
        "A ring pays the latency 2(N-1) times in sequence; a single server pays it twice, for any number of workers.",
        sources=("thakur2005optimization",), labs=(LAB_4,),
    ),
    Claim(
        25, REPORT, "section 4.2, choice 2", "A parameter server uses half of the available bandwidth, and a ring uses all of it.",
        "depends",
        "A ring keeps every link busy; with a single server each of N workers uses 1/N of its own bandwidth, which is half with two "
        "workers, and real rings reach about three quarters of the peak.",
        printed=(50, 100), unit="%", sources=("bang2023vtrain",), labs=(LAB_4,),
    ),
    Claim(
        26, REPORT, "section 4.2, choice 3", "A global batch of 256 samples in microbatches of 32 makes 8 microbatches.", "depends",
        "There are 8 microbatches in all, but two replicas share them, so each pipeline has 4 and a larger bubble; the report's other "
        "numbers assume 8 microbatches for each replica.",
        printed=MICROBATCH_COUNT.printed, labs=(LAB_7,),
    ),
    Claim(
        27, REPORT, "section 4.2, choice 3", "A pipeline is full only with as many microbatches as stages.", "right",
        "With fewer microbatches, at least one device waits at every moment; interleaved schedules need a multiple of the stages.",
        labs=(LAB_2,),
    ),
    Claim(
        28, REPORT, "section 4.2, choice 4", "Threads on one processor imitate GPUs that run in parallel.", "depends",
        "Sleeping threads do run in parallel, but they follow the order only if they wait for messages; in the printed log stage 1 starts "
        "at the same time as stage 0, although stage 1 needs the output of stage 0.",
        labs=(LAB_8,),
    ),
    # Implementation, tests and benchmarks: sections 5 and 6
    Claim(
        29, REPORT, "section 5.2", "Rank 0 has a warm-up of 1 step, 6 pairs of a forward and a backward, and a cool-down of 2 steps.",
        "wrong",
        "The order is right and the labels are wrong: the pair with the last forward also belongs to the steady state.",
        printed=(1, 6, 2), labs=(LAB_2,),
    ),
    Claim(
        30, REPORT, "section 5.2", "Rank 1 has a warm-up of 1 step too.", "wrong",
        "The last stage has no warm-up and no cool-down: it waits for its first forward, and then runs the backward of each microbatch "
        "right after the forward.",
        printed=(1,), labs=(LAB_2,),
    ),
    Claim(
        31, REPORT, "section 5.3", "A backward takes 80 ms where a forward takes 50, 1.6 times as long.", "right",
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
        34, REPORT, "section 5.3", "Filling the pipeline costs one forward, draining it one backward.", "right",
        "With the times of a stage, filling and draining together take (K-1)(F+B).",
        printed=(*WARM_UP.printed, *COOL_DOWN.printed, *OVERHEAD.printed), unit="ms", labs=(LAB_3,),
    ),
    Claim(
        35, REPORT, "section 5.3", "One step takes 1210 ms.", "right",
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
        printed=TEST_3.printed, unit="times", labs=(LAB_6, LAB_9),
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
    ),
    Claim(
        43, REPORT, "section 6.2, benchmark 1", "Communication takes a smaller share of the step with fewer microbatches.", "wrong",
        "The time of communication stays the same and the step grows with the number of microbatches, so the share falls.",
        labs=(LAB_6, LAB_9),
    ),
    Claim(
        44, REPORT, "section 6.2, benchmark 2", "With 1, 2, 4 and 8 stages a step is shortest for 2 to 4 of them.", "wrong",
        "The report divides the steady state by the number of stages, but not the bubble; under both readings the time has no such "
        "minimum, and 8 stages need 8 GPUs, not 4.",
        printed=tuple(row.total for row in BENCHMARK_2), unit="ms", labs=(LAB_6, LAB_9),
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
    ),
    # Results and references: sections 7 to 9
    Claim(
        47, REPORT, "section 7.1.2", "Measured: 1045 ms on one GPU, 1234 ms on four, a speedup of 0.82.", "wrong",
        "The quotient of the two times is 0.85; compared with one GPU that does the same work, four GPUs are more than three times as "
        "fast.",
        # The two times and the speedup; no claim has the other rows.
        printed=tuple(row.observed for row in METRICS[:3]), unit="(ms, ms, times)", labs=(LAB_6, LAB_8, LAB_9),
    ),
    Claim(
        48, REPORT, "section 7.2.1", "Computing takes 26 times as long as communication, which is typical of small models.", "depends",
        "The quotient is right, and the times fit a gradient of nearly a gigabyte on one InfiniBand port; over NVLink the same gradient "
        "takes a tenth of the time.",
        printed=(26,), labs=(LAB_6, LAB_9),
    ),
    Claim(
        49, REPORT, "section 7.2.1", "Gradients in 16 bits cost processor time for their compression.", "wrong",
        "In mixed precision the GPU computes gradients in 16 bits, so a message in FP16 has the size of the gradients themselves.",
        sources=("micikevicius2018mixed", "rajbhandari2020zero"), labs=(LAB_5,),
    ),
    Claim(
        50, REPORT, "section 7.2.2", "Filling and draining the pipeline cost 30 ms.", "wrong",
        "If the times are those of a stage, the number in the report's own section 5.3 is right, 130 ms; if they are those of the whole "
        "model, the right number is half as large.",
        printed=(30,), unit="ms", labs=(LAB_3, LAB_8),
    ),
    Claim(
        51, REPORT, "section 7.2.2", "The expected overhead was 7 % of a step and the observed one 16 %, because of Python's lock.",
        "wrong",
        "The model's bubble and all-reduce already explain most of the difference, which is 189 ms and not 195; sleeping threads hold no "
        "lock.",
        printed=(7, 16), unit="%", labs=(LAB_3, LAB_8),
    ),
    Claim(
        52, REPORT, "section 7.2.3", "1F1B saves 75 % by perfect interleaving; 40 to 50 % are realistic.", "depends",
        "The reason is wrong: the first stage holds at most K microbatches because of the order, on any machine, so 1F1B saves 1 - K/M of "
        "the activations; this is 75 % with 2 stages and 50 % with 4, and less of all the memory in use.",
        printed=((40, 50),), unit="%", labs=(LAB_3, LAB_9),
    ),
    Claim(
        53, REPORT, "section 8.1", "A speedup of 0.82 is unavoidable and agrees with theory.", "wrong",
        "Compared with one device that does the same work, theory predicts more than 3.",
        printed=(0.82,), unit="times", labs=(LAB_6, LAB_8, LAB_9),
    ),
    Claim(
        54, REPORT, "section 8.3", "Hybrid parallelism makes it possible to train a trillion parameters.", "depends",
        "A model of that size was trained on 3,072 A100s, where groups of 8 GPUs shared each layer; the report means stages and replicas "
        "alone, and then one layer needs twice the memory of an A100.",
        sources=("narayanan2021megatron",),
    ),
    Claim(
        55, REPORT, "section 8.3", "Cloud computing becomes 30 to 40 % cheaper.", "wrong",
        "The report gives no source; by its own times, GPU time for the same work falls by a few percent at most against replicas alone, "
        "does not change against GPipe, and rises against a single GPU.",
        printed=((30, 40),), unit="%", labs=(LAB_6,),
    ),
    Claim(
        56, REPORT, "reference 1", "GPipe appeared at MLSys in 2021.", "wrong",
        "GPipe appeared at NeurIPS, two years earlier and under another title.",
        printed=(2021,), sources=("huang2019gpipe",),
    ),
    Claim(
        57, REPORT, "reference 2", "The paper on Megatron-LM is by Narayanan, Shoukry and Shi, at ACM SIGCOMM.", "wrong",
        "The next authors after Narayanan are Shoeybi and Casper, and the paper appeared at SC.",
        sources=("narayanan2021megatron",),
    ),
    Claim(
        58, REPORT, "reference 3", "PyTorch Distributed appeared at VLDB in 2021.", "wrong",
        "The paper is in volume 13 of the Proceedings of the VLDB Endowment, number 12.",
        printed=(2021,), sources=("li2020pytorch",),
    ),
    Claim(
        59, REPORT, "reference 4", "The paper on Horovod has the arXiv number 1802.16579, and its title names PyTorch and MXNet.", "wrong",
        "The paper has another arXiv number, and its title ends with TensorFlow.",
        sources=("sergeev2018horovod",),
    ),
    Claim(
        60, REPORT, "reference 8", "Rabenseifner's paper is in Lecture Notes in Computer Science 3241.", "wrong",
        "The paper appeared in the proceedings of ICCS.",
        printed=(3241,), sources=("rabenseifner2004optimization",),
    ),
)  # fmt: skip
