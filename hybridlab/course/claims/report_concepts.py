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
        107, REPORT, "section 2.1", "Models such as ResNets and Transformers are hard to fit into the memory of one GPU.", "depends",
        "It holds for large Transformers; ResNets and small Transformers fit into one A100, with their gradients, their optimiser and the "
        "outputs of a microbatch.",
        sources=("he2016deep", "rajbhandari2020zero"), labs=(LAB_9,),
    ),
    Claim(
        4, REPORT, "section 2.1", "Data parallelism copies the model and averages gradients; pipeline parallelism cuts its layers.",
        "right",
        "In a mesh each pipeline has every stage once, each stage has one copy for each replica, and the ring gives all copies the mean.",
        labs=(LAB_1,),
    ),
    Claim(
        77, REPORT, "section 2.2", "Neither replicas alone nor stages alone are best; both together are better.", "depends",
        "On exactly four GPUs two stages and two replicas are best under reading A if the replicas share the microbatches; otherwise four "
        "replicas or four stages are faster.",
        labs=(LAB_9,),
    ),
    Claim(
        5, REPORT, "section 2.2", "The communication of data parallelism alone does not scale to many GPUs.", "depends",
        "A GPU never sends more than twice its gradients, but the number of messages in a ring grows with the GPUs; a model of 175 billion "
        "parameters was measured on 384 and on 1,536 GPUs: the bubble explains its loss of speed.",
        sources=("patarasuk2009bandwidth", "narayanan2021megatron"), labs=(LAB_10,),
    ),
    Claim(
        6, REPORT, "section 2.3", "GPipe runs all forwards, then all backwards, and holds the activations of all microbatches.", "depends",
        "The schedule here has this order; the published GPipe also recomputes activations, and then holds only those between the "
        "stages.",
        sources=("huang2019gpipe",), labs=(LAB_2,),
    ),
    Claim(
        7, REPORT, "section 2.3", "1F1B has smaller bubbles than GPipe.", "depends",
        "Under both schedules every device idles for (K-1)(F+B); 1F1B saves memory, not time.",
        sources=("narayanan2021megatron",), labs=(LAB_2, LAB_3),
    ),
    Claim(
        8, REPORT, "section 2.3", "The communication of a parameter server grows in proportion to the workers.", "depends",
        "One central server receives and sends all gradients of every worker; several servers that share the work avoid this.",
        labs=(LAB_4,),
    ),
    Claim(
        9, REPORT, "section 2.3", "In a ring all-reduce each GPU's communication grows as the logarithm of the GPUs.", "wrong",
        "A GPU sends less than twice its gradients; the number of messages in sequence, 2(N-1), grows in proportion to the GPUs; a "
        "logarithm describes trees.",
        sources=("patarasuk2009bandwidth", "thakur2005optimization"), labs=(LAB_4,), fault="false statement",
    ),
    Claim(
        10, REPORT, "section 2.3", "A ring takes 2(N-1) steps and uses the links as well as any all-reduce can.", "right",
        "A ring takes exactly this number of hops, and no all-reduce can send fewer bytes.",
        sources=("patarasuk2009bandwidth",), labs=(LAB_4,),
    ),
    Claim(
        11, REPORT, "section 3.2", "An A100 has 16 GB of memory.", "wrong",
        "An A100 is sold with 40 or 80 GB; 16 GB is the memory of the smaller V100.",
        printed=(16,), unit="GB", labs=(LAB_9,), fault="false statement",
    ),
    Claim(
        12, REPORT, "sections 3.2 and 4.2", "NVLink carries about 500 GB/s.", "wrong",
        "An H100, which section 4.2 also names, sends 450 GB/s in each direction; no rate of an A100 is near 500 GB/s, not in one "
        "direction, not in both together, and not as measured.",
        printed=(500,), unit="GB/s", sources=("bang2023vtrain",), labs=(LAB_9,), fault="false statement",
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
        labs=(LAB_6, LAB_9), fault="false statement",
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
        22, REPORT, "section 4.2, choice 1", "GPipe idles for 30 to 40 % of the time and 1F1B for 2 to 5 %.", "depends",
        "At every size both schedules idle for the same share of the time: a third with few microbatches, 2 to 5 % with many.",
        printed=(_range(GPIPE_BUBBLE.printed), _range(ONE_F_ONE_B_BUBBLE.printed)), unit="%", labs=(LAB_3,),
    ),
    Claim(
        23, REPORT, "section 4.2, choice 1", "1F1B holds fewer activations at its peak than GPipe.", "depends",
        "Under 1F1B stage s holds the activations of at most K - s microbatches; under GPipe it holds those of all microbatches.",
        labs=(LAB_3,),
    ),
    Claim(
        24, REPORT, "section 4.2, choice 2",
        "Latency grows as the logarithm of the number of GPUs, for a ring and for a parameter server.", "wrong",
        "A ring pays the latency 2(N-1) times in sequence; a single server pays it twice, for any number of workers.",
        sources=("thakur2005optimization",), labs=(LAB_4,), fault="false statement",
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
)  # fmt: skip
