"""The claims of the published report from its abstract to its section 4: concepts, problem and design."""

from hybridlab.course.claims.claim import (
    LAB_1,
    LAB_2,
    LAB_3,
    LAB_4,
    LAB_6,
    LAB_7,
    LAB_8,
    LAB_9,
    LAB_10,
    LAB_15,
    Claim,
)
from hybridlab.course.published.report import (
    GPIPE_BUBBLE,
    MICROBATCH_COUNT,
    ONE_F_ONE_B_BUBBLE,
)

REPORT = "report"  # the key of DOCUMENTS


def _range(printed: tuple[float, ...]) -> tuple[float, float]:
    """Return the two ends of a printed range as a pair."""
    # A Figure stores the two ends of a range as a tuple of two numbers, but a Claim needs them as one pair within its tuple of numbers.
    low, high = printed
    return low, high


# The formatter would put each argument on its own line, so the table ends with "fmt: skip". A printed number that also stands in a table
# of the report is taken from the module with this table.
CONCEPT_CLAIMS = (
    # Abstract, concepts, problem and design: sections 1 to 4
    Claim(
        1, REPORT, "abstract", "Four GPUs, in two stages and two replicas, are expected to be 6 to 8 times as fast as one.", "wrong",
        "Four devices are at most four times as fast as one at the same work, and the bubble and the all-reduce lower the speedup "
        "further.",
        printed=((6, 8),), unit="times", labs=(LAB_6, LAB_9), fault="false statement",
    ),
    Claim(
        2, REPORT, "abstract", "Communication takes 15 to 20 % of the training time.", "depends",
        "The share follows from the number of microbatches, the number of replicas, the time of a ring step and the messages between "
        "stages: it is in this range with few microbatches or with many replicas, and smaller in the report's own step under reading A.",
        printed=((15, 20),), unit="%", labs=(LAB_6, LAB_9),
    ),
    Claim(
        3, REPORT, "abstract", "A pipeline needs 30 to 40 % less memory than a run without one.", "depends",
        "Against GPipe the first stage saves 1 - K/M of its activations, which is in this range with 5 stages and 8 microbatches; of all "
        "its memory this stage saves between nothing and 83 %, depending on the recomputation, the number of stages and the baseline.",
        printed=((30, 40),), unit="%", labs=(LAB_3,),
    ),
    Claim(
        107, REPORT, "section 2.1", "Models such as ResNets and Transformers are hard to fit into the memory of one GPU.", "depends",
        "It holds for large Transformers, and for a small one with all activations of 32 samples; ResNets, and a small Transformer that "
        "recomputes its activations, fit into an A100 of 40 GB with gradients, optimiser and microbatch.",
        sources=("he2016deep", "rajbhandari2020zero"),
    ),
    Claim(
        4, REPORT, "section 2.1", "Data parallelism copies the model and averages gradients; pipeline parallelism cuts its layers.",
        "right",
        "In a mesh each pipeline has every stage once, each stage has one copy for each replica, and the ring gives all copies the mean.",
        labs=(LAB_1,),
    ),
    Claim(
        77, REPORT, "section 2.2", "Neither replicas alone nor stages alone are best; both together are better.", "depends",
        "Under reading A both together are best on eight GPUs, except with 8 microbatches for each replica and a ring step of 10 ms, and "
        "on four GPUs only if the replicas share 8 microbatches and a ring step takes 20 ms; under reading B replicas alone or stages "
        "alone are best.",
        labs=(LAB_9,),
    ),
    Claim(
        5, REPORT, "section 2.2", "With many GPUs, data parallelism alone scales badly because of its communication.", "depends",
        "A GPU never sends more than twice its gradients, but the number of messages in a ring grows with the GPUs; from 384 to 1,536 GPUs "
        "the speed of a GPU falls by two thirds with replicas alone that share all weights of 175 billion parameters (ZeRO-3), and with "
        "replicas of pipelines no more than the bubble explains.",
        sources=("patarasuk2009bandwidth", "narayanan2021megatron"), labs=(LAB_10,),
    ),
    Claim(
        6, REPORT, "section 2.3", "GPipe runs all forwards, then all backwards, and holds the activations of all microbatches.", "depends",
        "It holds if nothing is recomputed; the published GPipe recomputes activations, and then holds only those between the stages.",
        sources=("huang2019gpipe",), labs=(LAB_2,),
    ),
    Claim(
        7, REPORT, "section 2.3", "1F1B has smaller bubbles than GPipe.", "depends",
        "With as much memory 1F1B idles less; with as many microbatches it does so only if a stage before the last is slow, or if forwards "
        "and backwards are slow on different stages, and with equal stages both idle for (K-1)(F+B), or GPipe idles less because messages "
        "take time.",
        sources=("narayanan2021megatron",), labs=(LAB_2, LAB_3, LAB_15),
    ),
    Claim(
        8, REPORT, "section 2.3", "With a central parameter server, communication grows in proportion to the workers.", "depends",
        "The bytes at the server grow in proportion; each worker sends its gradients once and receives the mean once, with any number of "
        "workers.",
        labs=(LAB_4,),
    ),
    Claim(
        9, REPORT, "section 2.3", "In a ring all-reduce each GPU's communication grows as the logarithm of the GPUs.", "wrong",
        "A GPU sends less than twice its gradients; the number of messages in sequence, 2(N-1), grows in proportion to the GPUs; a "
        "logarithm describes trees.",
        sources=("patarasuk2009bandwidth", "thakur2005optimization"), labs=(LAB_4,), fault="false statement",
    ),
    Claim(
        98, REPORT, "section 2.3", "A ring all-reduce is a sum that goes along the ring, and then a copy that goes along it.", "depends",
        "It holds for each piece of the gradients, if every GPU begins with another piece, so that all GPUs send at the same time; if one "
        "sum of all gradients and then one copy go from GPU to GPU, they take longer than a ring does, even in small pieces.",
        sources=("patarasuk2009bandwidth",), labs=(LAB_4,),
    ),
    Claim(
        10, REPORT, "section 2.3",
        "A ring takes 2(N-1) steps, and no all-reduce makes better use of the links.", "depends",
        "A ring takes exactly this number of steps, and it holds if only GPUs add, because then no all-reduce sends fewer bytes; if the "
        "switch adds (NVLS in nodes of H100s, SHARP between nodes), a GPU sends its gradients only once.",
        sources=("patarasuk2009bandwidth", "graham2020sharp", "nvidia2023nvls"), labs=(LAB_4,),
    ),
    Claim(
        11, REPORT, "section 3.2", "An A100 has 16 GB of memory.", "wrong",
        "An A100 is sold with 40 or 80 GB; 16 GB is the memory of the smaller V100.",
        printed=(16,), unit="GB", labs=(LAB_9,), fault="false statement",
    ),
    Claim(
        12, REPORT, "sections 3.2 and 4.2", "NVLink carries about 500 GB/s.", "wrong",
        "An A100 sends 300 GB/s in each direction and an H100 450 GB/s, which is 10 % less than the claim; both directions together, "
        "NCCL's model and what was measured on A100s are further away.",
        printed=(500,), unit="GB/s", sources=("bang2023vtrain",), labs=(LAB_9,), fault="false statement",
    ),
    Claim(
        13, REPORT, "sections 3.2 and 4.2", "InfiniBand carries about 200 GB/s.", "depends",
        "The eight ports of a node of A100s together send 200 GB/s; one port (of the generation HDR) sends 200 gigabits a second, which is "
        "25 GB/s, and the ports of H100s are twice as fast.",
        printed=(200,), unit="GB/s", labs=(LAB_9,),
    ),
    Claim(
        14, REPORT, "section 3.2", "The computing capacity of an A100 is 312 TFLOP/s.", "right",
        "This is the dense 16-bit peak of the tensor cores; whole training runs reach about half of this peak.",
        printed=(312,), unit="TFLOP/s", sources=("narayanan2021megatron",), labs=(LAB_9,),
    ),
    Claim(
        15, REPORT, "section 3.3.1", "The speedup is nearly the number of devices.", "depends",
        "The bubble leaves a share M/(M+K-1) of it, and the all-reduce lowers it further; if 'nearly' means 80 %, the goal of section 3.4, "
        "it holds for two stages with one replica, or with two replicas of 8 microbatches each.",
        labs=(LAB_6, LAB_9),
    ),
    Claim(
        97, REPORT, "section 3.3.1", "The speedup is the time of one GPU divided by the time of all GPUs.", "depends",
        "It is right if the one GPU does the same work; the report's own speedups divide by the time of a GPU that does a quarter of the "
        "work under reading A, and half of it under reading B.",
        labs=(LAB_6, LAB_9),
    ),
    Claim(
        16, REPORT, "section 3.3.2",
        "The cost of communication is its time, between stages and between replicas, divided by the time of the step.", "right",
        "This is the usual definition, and computing and communication together are the step if neither overlaps the other; of messages "
        "that overlap with computing only the part counts that lengthens the step (exposed communication).",
        labs=(LAB_6, LAB_9),
    ),
    Claim(
        17, REPORT, "section 3.3.2", "In a well-configured system communication takes 15 to 25 % of the time.", "depends",
        "The share follows from the number of microbatches, the number of replicas, the time of a ring step and the messages between "
        "stages: two replicas reach this range only with 4 microbatches or fewer each; eight replicas reach it with 8 each, under "
        "reading A with ring steps of 20 ms and under reading B with ring steps of 10 ms.",
        printed=((15, 25),), unit="%", labs=(LAB_6, LAB_9),
    ),
    Claim(
        96, REPORT, "section 3.3.3", "The memory efficiency is the size of the model divided by the peak memory of one GPU, in percent.",
        "depends",
        "It is an efficiency, at most 100 %, if only the weights on this GPU count, but the weights of a whole model can be many times "
        "the memory of one GPU; the report never computes it.",
        sources=("narayanan2021megatron", "korthikanti2023recomputation"),
    ),
    Claim(
        18, REPORT, "section 3.3.3", "Activations, gradients and optimiser take 40 to 60 % of a GPU's memory.", "depends",
        "The share follows from the model and from what counts as activations: most published runs lie in this range, the two smallest "
        "lie below it if only stored activations count, and the two that recompute only a part lie above it.",
        printed=((40, 60),), unit="%", sources=("narayanan2021megatron", "rajbhandari2020zero", "korthikanti2023recomputation"),
        labs=(LAB_9,),
    ),
    Claim(
        19, REPORT, "section 3.3.4", "The time of a step is the time of computing plus the time of communication.", "depends",
        "It holds if computing includes the bubble and messages between stages take no time; the report's own section 5.3 counts only the "
        "busy time of a GPU as computing, and adds the bubble as a third part, and some messages pass while GPUs compute.",
        labs=(LAB_6, LAB_9),
    ),
    Claim(
        20, REPORT, "section 3.3.4", "A step takes 1 to 2 s for a typical model.", "depends",
        "It holds for the report's own step under reading A with 8 microbatches for each replica, 1.21 s, and otherwise this step is "
        "shorter than 0.7 s; published steps of models with 1.7 to 1008 billion parameters take 3.5 to 103 s.",
        printed=((1, 2),), unit="s", sources=("narayanan2021megatron",), labs=(LAB_9,),
    ),
    Claim(
        21, REPORT, "section 3.4", "The efficiency stays above 80 % as GPUs are added.", "depends",
        "With 8 microbatches it holds for two stages with one replica, or with two replicas of 8 each, and fails with more stages or "
        "replicas; a pipeline alone needs 4(K-1) microbatches to reach 80 %.",
        labs=(LAB_3, LAB_9),
    ),
    Claim(
        22, REPORT, "section 4.2, choice 1", "The bubbles of GPipe are 30 to 40 %, those of 1F1B 2 to 5 %.", "depends",
        "As a part of the step it holds with as much memory, 2 stages, 32 microbatches and messages that take no time, because GPipe then "
        "empties its pipeline after every two microbatches; with as many microbatches 1F1B never idles less.",
        printed=(_range(GPIPE_BUBBLE.printed), _range(ONE_F_ONE_B_BUBBLE.printed)), unit="%", labs=(LAB_3,),
    ),
    Claim(
        23, REPORT, "section 4.2, choice 1", "1F1B holds fewer activations at its peak than GPipe.", "depends",
        "Under 1F1B the first of K stages holds the activations of at most K microbatches, and each later stage those of one fewer; under "
        "GPipe each holds those of all, so the first stage saves nothing unless there are more microbatches than stages.",
        labs=(LAB_3,),
    ),
    Claim(
        24, REPORT, "section 4.2, choice 2",
        "Latency grows as the logarithm of the number of GPUs, for a ring and for a parameter server.", "wrong",
        "A ring pays the latency 2(N-1) times in sequence; a single server pays it twice if all messages travel at once, and 2N times if "
        "they wait for each other.",
        sources=("thakur2005optimization",), labs=(LAB_4,), fault="false statement",
    ),
    Claim(
        25, REPORT, "section 4.2, choice 2", "A parameter server uses half of the available bandwidth, and a ring uses all of it.",
        "depends",
        "With a single server each of N workers uses at most 1/N of its own bandwidth, which is half with two workers; the server uses "
        "half of its own if it receives all before it sends, and otherwise all; a measured ring reaches about three quarters of the peak.",
        printed=(50, 100), unit="%", sources=("bang2023vtrain",), labs=(LAB_4,),
    ),
    Claim(
        100, REPORT, "section 4.2, choice 2", "A ring scales to many GPUs excellently, and a parameter server scales poorly.", "depends",
        "It holds for the bytes at one central server; servers that share the gradients carry hardly more bytes than a ring, and in a ring "
        "the number of messages in sequence grows in proportion to the GPUs.",
        sources=("patarasuk2009bandwidth",), labs=(LAB_4,),
    ),
    Claim(
        26, REPORT, "section 4.2, choice 3", "A global batch of 256 samples in microbatches of 32 makes 8 microbatches.", "depends",
        "There are 8 microbatches in all, but two replicas share them, so each pipeline has 4 and a larger bubble; the report's other "
        "numbers assume 8 microbatches for each replica.",
        printed=MICROBATCH_COUNT.printed, labs=(LAB_7,),
    ),
    Claim(
        27, REPORT, "section 4.2, choice 3", "A pipeline is full only with at least as many microbatches as stages.", "right",
        "With fewer microbatches, at least one device waits at every moment; interleaved schedules even need a multiple of the stages.",
        labs=(LAB_2,),
    ),
    Claim(
        28, REPORT, "section 4.2, choice 4", "Threads on one processor imitate GPUs that run in parallel.", "depends",
        "Sleeping threads do run in parallel, but they follow the order only if they wait for messages; in the printed log rank 1 starts "
        "before rank 2, although rank 1 needs the output of rank 0 and rank 2 needs no input.",
        labs=(LAB_8,),
    ),
)  # fmt: skip
