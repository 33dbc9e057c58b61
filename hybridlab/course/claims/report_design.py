"""What the published report claims before it implements anything: abstract, concepts, problem and design, sections 1 to 4."""

from hybridlab.course.claims.claim import Claim
from hybridlab.course.published.report import GPIPE_BUBBLE, MICROBATCH_COUNT, ONE_F_ONE_B_BUBBLE

REPORT = "report"
TWO, THREE, FOUR = "lab02_one_f_one_b", "lab03_bubbles_and_memory", "lab04_ring"
SIX, EIGHT, NINE = "lab06_hybrid_step", "lab08_threads", "lab09_a100_report"


def _range(printed: tuple[float, ...]) -> tuple[float, float]:
    low, high = printed
    return low, high


DESIGN = (
    Claim(
        1, REPORT, "abstract", "Four GPUs, two stages by two replicas, are expected to be 6 to 8 times as fast as one.", "wrong",
        "Four devices cannot do one device's work more than four times as fast, and the bubble and the all-reduce take their part of that.",
        printed=((6, 8),), unit="times", labs=(SIX, NINE),
    ),
    Claim(
        2, REPORT, "abstract", "Communication takes 15 to 20 % of the training time.", "wrong",
        "With the report's own times the all-reduce is a few percent of a step, and nowhere does it derive more.",
        printed=((15, 20),), unit="%", labs=(SIX, NINE),
    ),
    Claim(
        3, REPORT, "abstract", "A pipeline needs 30 to 40 % less memory than a run without one.", "wrong",
        "Against GPipe the first stage saves 1 - K/M of its activations, which here is more; against one device that runs its microbatches "
        "one after the other it saves none.",
        printed=((30, 40),), unit="%", labs=(THREE,),
    ),
    Claim(
        4, REPORT, "section 2.1", "Data parallelism copies the model and averages gradients; pipeline parallelism cuts its layers.",
        "right",
        "In a mesh each pipeline has every stage once and each stage one copy a replica, and the ring leaves all copies with the mean.",
        labs=("lab01_mesh",),
    ),
    Claim(
        5, REPORT, "section 2.2", "The communication of data parallelism alone does not scale to many GPUs.", "depends",
        "What a GPU sends never exceeds twice its gradients, but the messages of a ring grow with the GPUs; the measured loss of a model "
        "of 175 billion parameters from 384 to 1,536 GPUs is that of its bubble.",
        sources=("patarasuk2009bandwidth", "narayanan2021megatron"), labs=("lab10_scaling",),
    ),
    Claim(
        6, REPORT, "section 2.3", "GPipe runs all forwards, then all backwards, and holds the activations of all microbatches.", "right",
        "So runs its order here; as published GPipe also computes activations again, and then holds only those between the stages.",
        sources=("huang2019gpipe",), labs=(TWO,),
    ),
    Claim(
        7, REPORT, "section 2.3", "1F1B has smaller bubbles than GPipe.", "wrong",
        "On every device both idle for (K-1)(F+B); what 1F1B saves is memory.",
        sources=("narayanan2021megatron",), labs=(TWO, THREE),
    ),
    Claim(
        8, REPORT, "section 2.3", "The communication of a parameter server grows in proportion to the workers.", "right",
        "One central server receives and sends all gradients of every worker; servers that share the work among them avoid it.",
        labs=(FOUR,),
    ),
    Claim(
        9, REPORT, "section 2.3", "In a ring all-reduce each GPU's communication grows as the logarithm of the GPUs.", "wrong",
        "Its bytes stay below twice the gradients and its messages, 2(N-1) in turn, grow in proportion; logarithms belong to trees.",
        sources=("patarasuk2009bandwidth", "thakur2005optimization"), labs=(FOUR,),
    ),
    Claim(
        10, REPORT, "section 2.3", "A ring takes 2(N-1) steps and uses the links as well as any all-reduce can.", "right",
        "So many hops it takes, and its bytes are the fewest that an all-reduce can send.",
        sources=("patarasuk2009bandwidth",), labs=(FOUR,),
    ),
    Claim(
        11, REPORT, "section 3.2", "An A100 has 16 GB of memory.", "wrong",
        "An A100 is sold with 40 or 80 GB; 16 GB are those of the smaller V100.", printed=(16,), unit="GB", labs=(NINE,),
    ),
    Claim(
        12, REPORT, "sections 3.2 and 4.2", "NVLink carries about 500 GB/s.", "wrong",
        "An A100 sends 300 GB/s in each direction, and vendors print the sum of both; NCCL reckons with less, and less still was measured.",
        printed=(500,), unit="GB/s", sources=("bang2023vtrain",), labs=(NINE,),
    ),
    Claim(
        13, REPORT, "sections 3.2 and 4.2", "InfiniBand carries about 200 GB/s.", "depends",
        "It is the sum of a node with eight HDR ports; one port has 200 gigabits a second, an eighth of that in bytes.",
        printed=(200,), unit="GB/s", labs=(NINE,),
    ),
    Claim(
        14, REPORT, "section 3.2", "An A100 computes 312 TFLOP/s.", "right",
        "It is the dense 16-bit peak of the tensor cores; whole training runs on it reach about half.",
        printed=(312,), unit="TFLOP/s", sources=("narayanan2021megatron",), labs=(NINE,),
    ),
    Claim(
        15, REPORT, "section 3.3.1", "The speedup is nearly the number of devices.", "depends",
        "The bubble alone leaves M/(M+K-1) of it, which is near one with many microbatches for each stage and far from it with few; "
        "nearly is here the 80 % of the report's section 3.4.",
        labs=(SIX, NINE),
    ),
    Claim(
        16, REPORT, "section 3.3.2", "The cost of communication is its time divided by the time of the step.", "right",
        "So the share is defined here too, of the communication that is exposed: what runs beside computing lengthens no step.",
        labs=(SIX, NINE),
    ),
    Claim(
        17, REPORT, "section 3.3.2", "In a well-configured system communication takes 15 to 25 % of the time.", "depends",
        "The share follows from the number of replicas, the gradients and the links; the report's own times give far less with two "
        "replicas, and this with eight.",
        printed=((15, 25),), unit="%", labs=(SIX, NINE),
    ),
    Claim(
        18, REPORT, "section 3.3.3", "Activations, gradients and optimiser take 40 to 60 % of a GPU's memory.", "depends",
        "It follows from the model and its plan: published runs lie within and above.",
        printed=((40, 60),), unit="%", sources=("narayanan2021megatron", "rajbhandari2020zero", "korthikanti2023recomputation"),
        labs=(NINE,),
    ),
    Claim(
        19, REPORT, "section 3.3.4", "The time of a step is that of computing plus that of communication.", "wrong",
        "The sum lacks the bubble, which the report's own section 5.3 adds, and anything that overlaps.", labs=(SIX, NINE),
    ),
    Claim(
        20, REPORT, "section 3.3.4", "A step takes 1 to 2 s for a typical model.", "depends",
        "The report's own step does; published steps of large models take up to a hundred times as long.",
        printed=((1, 2),), unit="s", sources=("narayanan2021megatron",), labs=(NINE,),
    ),
    Claim(
        21, REPORT, "section 3.4", "More than 80 % of the devices' time is used as the system grows.", "depends",
        "The pipeline alone needs at least 4(K-1) microbatches for 80 %.", printed=(), labs=(THREE, NINE),
    ),
    Claim(
        22, REPORT, "section 4.2, choice 1", "GPipe idles for 30 to 40 % of the time and 1F1B for 2 to 5 %.", "wrong",
        "At every size both idle for the same share: a third with few microbatches, 2 to 5 % with many.",
        printed=(_range(GPIPE_BUBBLE.printed), _range(ONE_F_ONE_B_BUBBLE.printed)), unit="%", labs=(THREE,),
    ),
    Claim(
        23, REPORT, "section 4.2, choice 1", "1F1B holds fewer activations at its peak than GPipe.", "right",
        "A stage of 1F1B holds no more microbatches than there are stages from it to the end, and of GPipe all.", labs=(THREE,),
    ),
    Claim(
        24, REPORT, "section 4.2, choice 2", "Latency grows as the logarithm of the GPUs, for a ring as for a parameter server.", "wrong",
        "A ring pays the latency 2(N-1) times in turn, one server twice whatever the number of workers.",
        sources=("thakur2005optimization",), labs=(FOUR,),
    ),
    Claim(
        25, REPORT, "section 4.2, choice 2", "A parameter server uses half of the bandwidth there is and a ring all of it.", "depends",
        "A ring keeps every link busy; beside one server each of N workers uses 1/N of its own, which is half with two, and real rings "
        "reach about three quarters of the peak.",
        printed=(50, 100), unit="%", sources=("bang2023vtrain",), labs=(FOUR,),
    ),
    Claim(
        26, REPORT, "section 4.2, choice 3", "A global batch of 256 samples in microbatches of 32 makes 8 microbatches.", "wrong",
        "The replicas share the global batch, so each pipeline has half as many, and a larger bubble.",
        printed=MICROBATCH_COUNT.printed, labs=(THREE, "lab07_accuracy"),
    ),
    Claim(
        27, REPORT, "section 4.2, choice 3", "A pipeline is full only with as many microbatches as stages.", "right",
        "With fewer, some device waits at every moment; interleaved schedules want a multiple of the stages.", labs=(TWO,),
    ),
    Claim(
        28, REPORT, "section 4.2, choice 4", "Threads on one processor imitate GPUs that run side by side.", "depends",
        "Sleeping threads do run side by side, but in order only if they wait for messages: the printed log starts stage 1 together with "
        "stage 0, whose output it needs.",
        labs=(EIGHT,),
    ),
)  # fmt: skip
