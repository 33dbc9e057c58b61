"""The claims of the notebook of schedule sweeps, and of a lab of a public course.

The notebook has no printed numbers and no figures, only the settings. So what the page computes for it comes from a second implementation.
"""

from hybridlab.course.claims.claim import LAB_3, LAB_10, LAB_11, LAB_12, LAB_13, LAB_14, LAB_15, Claim

# The formatter would put each argument on its own line, so the table ends with "fmt: skip".
SWEEP_CLAIMS = (
    Claim(
        114, "sweeps", "configuration of seven sweeps", "The latencies of the messages are 0, 5 and 10.", "wrong",
        "The programs and the titles of their figures have 0, 4 and 16; only in the sweep of latencies text and program agree.",
        printed=(0, 5, 10), labs=(LAB_10, LAB_11, LAB_12, LAB_13, LAB_15), fault="false statement",
    ),
    Claim(
        115, "sweeps", "introduction", "Hanayo is covered with one wave and with two waves.", "depends",
        "It holds in the six sweeps that compare all schedules; the sweep of chunks runs three and four waves, too.",
        printed=(1, 2), unit="waves", labs=(LAB_12,),
    ),
    Claim(
        116, "sweeps", "disclaimer", "That the devices divide the microbatches loses no generality.", "wrong",
        "It is a restriction: with other numbers of microbatches GPipe, 1F1B and ZB-H1 run, but interleaved 1F1B and Hanayo, as they were "
        "published, do not.",
        labs=(LAB_10, LAB_12), fault="false statement",
    ),
    Claim(
        117, "sweeps", "configuration of the sweep of microbatches", "The sweep of microbatches has up to 32 devices.", "wrong",
        "The program runs this sweep on 2 to 16 devices.",
        printed=(32,), unit="devices", labs=(LAB_11,), fault="false statement",
    ),
    Claim(
        118, "sweeps", "configuration of the sweep of ZB-H1", "The sweep of ZB-H1 has 1, 2 and 4 microbatches for each device.", "wrong",
        "The program runs 8 microbatches for each device, too.",
        printed=(1, 2, 4), unit="microbatches", labs=(LAB_13,), fault="false statement",
    ),
    Claim(
        119, "sweeps", "disclaimer", "The gradients of the activations take as long as the gradients of the weights.", "depends",
        "It holds in four sweeps; three sweeps give the two parts of a backward different times, and the sweep of chunks has no schedule "
        "that splits backwards.",
        labs=(LAB_11, LAB_13, LAB_15),
    ),
    Claim(
        120, "sweeps", "disclaimer", "Sends and receives are asynchronous: a device goes on while its message travels.", "depends",
        "It holds in the second implementation and in public versions of the module that the document lacks; where a send keeps its device "
        "waiting, as a single send of NCCL does, a step takes longer.",
        sources=("grattafiori2024llama",), labs=(LAB_14,),
    ),
    Claim(
        121, "sweeps", "introduction", "GPipe, 1F1B, interleaved 1F1B, Hanayo and ZB-H1 are covered.", "depends",
        "The document has no schedule, because it lacks the module that it imports, and it has no figure; a second implementation runs "
        "every setting of its program.",
        labs=(LAB_10, LAB_14),
    ),
    Claim(
        122, "sweeps", "configuration of the sweep of imbalance", "The slow devices are up to 0.5 of a forward slower.", "wrong",
        "The program stops at 0.4, because its range leaves out its own end.",
        printed=(0.5,), unit="forwards", labs=(LAB_15,), fault="false statement",
    ),
    Claim(
        123, "sweeps", "configuration of the sweep of imbalance",
        "With slow devices, too, a forward takes 400 divided by the number of devices.", "wrong",
        "In this sweep the program does not divide: a forward takes 400 on any number of devices, so that the same latency is a smaller "
        "part of it.",
        labs=(LAB_15,), fault="false statement",
    ),
    Claim(
        124, "sweeps", "configuration of the sweep of recomputation",
        "In the sweep of recomputation a backward takes 800 divided by the number of devices.", "depends",
        "It holds without recomputation; otherwise the program runs longer backwards, as the definition above the configuration says.",
        labs=(LAB_11,),
    ),
    Claim(
        125, "sweeps", "disclaimer", "A chunk takes a part of the time because interleaved schedules and Hanayo cut the microbatch.",
        "wrong",
        "They cut the layers: every microbatch stays whole and passes through more stages, each with fewer layers.",
        labs=(LAB_12,), fault="false reason",
    ),
    Claim(
        126, "sweeps", "notation", "The bubble ratio is the idle share of all devices from the first start to the last end.", "right",
        "The formula of the notebook gives this share with equal and with unequal devices; no number is printed, so the evidence is a "
        "second implementation.",
        labs=(LAB_3, LAB_15),
    ),
    Claim(
        127, "sweeps", "weak scaling", "The first sweep shows weak scaling.", "depends",
        "It holds for the work of a device, which stays the same; the model does not grow with the devices but is cut into smaller parts.",
        labs=(LAB_10,),
    ),
    Claim(
        128, "sweeps", "configurations and programs", "The figures show all settings of the program.", "depends",
        "It holds in five sweeps; in three, the program hides errors, and by the public versions of its module interleaved 1F1B has no "
        "points with as many microbatches as devices on more than 2 devices, although the schedule exists.",
        labs=(LAB_10, LAB_11, LAB_14),
    ),
    Claim(
        129, "sweeps", "disclaimer",
        "Hanayo runs only as many microbatches as devices, and its schedule is repeated for a fair comparison.", "depends",
        "All schedules run as many microbatches, which is fair; but every further group of microbatches costs Hanayo idle time between two "
        "groups, and the other schedules none.",
        sources=("liu2023hanayo",), labs=(LAB_12,),
    ),
    Claim(
        130, "course", "lab on distributed training",
        "A pipeline of P = 4 stages with m = 16 microbatches idles for 4.7 % of the time, by the formula (P-1)/(P m).", "wrong",
        "The course's own simulator has (P-1)/(m+P-1), 15.8 %; the lab's formula fits 16 stages, four on each of 4 devices, but the lab "
        "cuts its model into 4, and even then the idle time is a part of the time without bubbles.",
        printed=(4.7,), unit="%", sources=("reddi2026labs", "huang2019gpipe"), labs=(LAB_3,), fault="false statement",
    ),
)  # fmt: skip
