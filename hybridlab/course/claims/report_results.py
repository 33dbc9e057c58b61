"""What the published report claims of its results, and the references that it gives, sections 7 to 9."""

from hybridlab.course.claims.claim import Claim
from hybridlab.course.published.benchmarks import METRICS

REPORT, SECTION_7_2 = "report", "section 7.2.2"
THREE, SIX = "lab03_bubbles_and_memory", "lab06_hybrid_step"
EIGHT, NINE = "lab08_threads", "lab09_a100_report"

RESULTS = (
    Claim(
        47, REPORT, "section 7.1.2", "Measured: 1045 ms on one GPU, 1234 ms on four, a speedup of 0.82.", "depends",
        "The times are near those of the model; their quotient is not the printed speedup, and it has the baseline of test 3.",
        printed=tuple(row.observed for row in METRICS[:3]), unit="(ms, ms, times)", labs=(SIX, EIGHT, NINE),
    ),
    Claim(
        48, REPORT, "section 7.2.1", "Computing takes 26 times as long as communication, as for small models.", "depends",
        "The quotient is right, and fits a gradient of nearly a gigabyte on one InfiniBand port; over NVLink the same gradient takes "
        "a tenth.",
        printed=(26,), labs=(SIX, NINE),
    ),
    Claim(
        49, REPORT, "section 7.2.1", "Gradients in 16 bits cost the processor time for compressing them.", "wrong",
        "In mixed precision gradients have 16 bits as the GPU computes them, so a message in FP16 is no smaller than what it carries.",
        sources=("micikevicius2018mixed", "rajbhandari2020zero"), labs=("lab05_wire_formats",),
    ),
    Claim(
        50, REPORT, SECTION_7_2, "Filling and draining the pipeline cost 30 ms.", "wrong",
        "The report's own section 5.3 has the right number for the times of a stage; with those of the model it is half of that.",
        printed=(30,), unit="ms", labs=(THREE, EIGHT),
    ),
    Claim(
        51, REPORT, SECTION_7_2, "Of a step 7 % were expected and 16 % observed as overhead, because of Python's lock.", "wrong",
        "The model's bubble and all-reduce already give most of the difference, which is 189 ms and not 195; threads that sleep hold "
        "no lock.",
        printed=(7, 16), unit="%", labs=(THREE, EIGHT),
    ),
    Claim(
        52, REPORT, "section 7.2.3", "1F1B saves 75 % by perfect interleaving; 40 to 50 % are realistic.", "wrong",
        "The bound of K microbatches on the first stage is that of the order, on any machine: it saves 1 - K/M.",
        printed=((40, 50),), unit="%", labs=(THREE, NINE),
    ),
    Claim(
        53, REPORT, "section 8.1", "A speedup of 0.82 cannot be avoided and is what theory predicts.", "wrong",
        "Against one device that does the same work, theory predicts more than 3.", printed=(0.82,), unit="times", labs=(SIX, EIGHT, NINE),
    ),
    Claim(
        54, REPORT, "section 8.3", "Hybrid parallelism makes the training of a trillion parameters possible.", "right",
        "A model of that size was trained on 3,072 A100s.", sources=("narayanan2021megatron",),
    ),
    Claim(
        55, REPORT, "section 8.3", "Cloud computing becomes 30 to 40 % cheaper.", "depends",
        "The report gives no source; GPU time for the same work falls or rises with what the hybrid is compared to.",
        printed=((30, 40),), unit="%", labs=(SIX,),
    ),
    Claim(
        56, REPORT, "reference 1", "GPipe appeared at MLSys in 2021.", "wrong",
        "It appeared at NeurIPS, two years earlier and under another title.",
        printed=(2021,), sources=("huang2019gpipe",),
    ),
    Claim(
        57, REPORT, "reference 2", "The paper on Megatron-LM is by Narayanan, Shoukry and Shi, at ACM SIGCOMM.", "wrong",
        "Its next authors are Shoeybi and Casper, and it appeared at SC.", sources=("narayanan2021megatron",),
    ),
    Claim(
        58, REPORT, "reference 3", "PyTorch Distributed appeared at VLDB in 2021.", "wrong",
        "It stands in volume 13 of the Proceedings of the VLDB Endowment, number 12.", printed=(2021,), sources=("li2020pytorch",),
    ),
    Claim(
        59, REPORT, "reference 4", "Horovod has the number 1802.16579 at arXiv, and PyTorch and MXNet in its title.", "wrong",
        "Both are another: the title ends with TensorFlow.", sources=("sergeev2018horovod",),
    ),
    Claim(
        60, REPORT, "reference 8", "Rabenseifner's paper stands in Lecture Notes in Computer Science 3241.", "wrong",
        "It is in the proceedings of ICCS.", printed=(3241,), sources=("rabenseifner2004optimization",),
    ),
)  # fmt: skip
