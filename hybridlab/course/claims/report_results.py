"""The claims of the published report in its sections 7 to 9: results, discussion and references."""

from hybridlab.course.claims.claim import (
    LAB_3,
    LAB_5,
    LAB_6,
    LAB_8,
    LAB_9,
    Claim,
)
from hybridlab.course.published.benchmarks import METRICS

REPORT = "report"  # the key of DOCUMENTS


def _range(printed: tuple[float, ...]) -> tuple[float, float]:
    """Return the two ends of a printed range as a pair."""
    # A Figure stores the two ends of a range as a tuple of two numbers, but a Claim needs them as one pair within its tuple of numbers.
    low, high = printed
    return low, high


# The formatter would put each argument on its own line, so the table ends with "fmt: skip". A printed number that also stands in a table
# of the report is taken from the module with this table.
RESULT_CLAIMS = (
    # Results and references: sections 7 to 9
    Claim(
        47, REPORT, "section 7.1.2", "Measured: 1045 ms on one GPU, 1234 ms on four, a speedup of 0.82.", "wrong",
        "The quotient of the two times is 0.85; compared with one GPU that does the same work, four GPUs are more than three times as "
        "fast.",
        # The two times and the speedup; no claim has the other rows.
        printed=tuple(row.observed for row in METRICS[:3]), unit="(ms, ms, times)", labs=(LAB_6, LAB_8, LAB_9), fault="false statement",
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
        sources=("micikevicius2018mixed", "rajbhandari2020zero"), labs=(LAB_5,), fault="false reason",
    ),
    Claim(
        50, REPORT, "section 7.2.2", "Filling and draining the pipeline cost 30 ms.", "wrong",
        "If the times are those of a stage, the number in the report's own section 5.3 is right, 130 ms; if they are those of the whole "
        "model, the right number is half as large.",
        printed=(30,), unit="ms", labs=(LAB_3, LAB_8), fault="false statement",
    ),
    Claim(
        51, REPORT, "section 7.2.2", "The expected overhead was 7 % of a step and the observed one 16 %, because of Python's lock.",
        "wrong",
        "The model's bubble and all-reduce already explain most of the difference, which is 189 ms and not 195; sleeping threads hold no "
        "lock.",
        printed=(7, 16), unit="%", labs=(LAB_3, LAB_8), fault="false reason",
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
        printed=(0.82,), unit="times", labs=(LAB_6, LAB_8, LAB_9), fault="false reason",
    ),
    Claim(
        54, REPORT, "section 8.3", "Hybrid parallelism makes it possible to train a trillion parameters.", "depends",
        "A model of that size was trained on 3,072 A100s, where groups of 8 GPUs shared each layer; the report means stages and replicas "
        "alone, and then one layer needs twice the memory of an A100.",
        sources=("narayanan2021megatron",),
    ),
    Claim(
        55, REPORT, "section 8.3", "Cloud computing becomes 30 to 40 % cheaper.", "depends",
        "The report gives no source; by its own times, GPU time for the same work falls by a few percent at most against replicas alone, "
        "does not change against GPipe, and rises against a single GPU.",
        printed=((30, 40),), unit="%", labs=(LAB_6,),
    ),
    Claim(
        56, REPORT, "reference 1", "GPipe appeared at MLSys in 2021.", "wrong",
        "GPipe appeared at NeurIPS, two years earlier and under another title.",
        printed=(2021,), sources=("huang2019gpipe",), fault="false statement",
    ),
    Claim(
        57, REPORT, "reference 2", "The paper on Megatron-LM is by Narayanan, Shoukry and Shi, at ACM SIGCOMM.", "wrong",
        "The next authors after Narayanan are Shoeybi and Casper, and the paper appeared at SC.",
        sources=("narayanan2021megatron",), fault="false statement",
    ),
    Claim(
        58, REPORT, "reference 3", "PyTorch Distributed appeared at VLDB in 2021.", "wrong",
        "The paper is in volume 13 of the Proceedings of the VLDB Endowment, number 12.",
        printed=(2021,), sources=("li2020pytorch",), fault="false statement",
    ),
    Claim(
        59, REPORT, "reference 4", "The paper on Horovod has the arXiv number 1802.16579, and its title names PyTorch and MXNet.", "wrong",
        "The paper has another arXiv number, and its title ends with TensorFlow.",
        sources=("sergeev2018horovod",), fault="false statement",
    ),
    Claim(
        60, REPORT, "reference 8", "Rabenseifner's paper is in Lecture Notes in Computer Science 3241.", "wrong",
        "The paper appeared in the proceedings of ICCS.",
        printed=(3241,), sources=("rabenseifner2004optimization",), fault="false statement",
    ),
)  # fmt: skip
