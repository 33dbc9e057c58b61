"""The published report's figures: copied exactly, and reproduced by its own rules."""

import re
from pathlib import Path

import pytest
from cases import refusal

from hybridlab import Schedule, build
from hybridlab.course.published import report

REPORT = Path(__file__).parents[3] / "shared" / "sources" / "hybrid-report.txt"

needs_report = pytest.mark.skipif(not REPORT.is_file(), reason="needs ../shared/sources beside the repository")


def numbers(*patterns: str) -> list[tuple[float, ...]]:
    """The numbers in the report's text that each pattern finds, which must be there once."""
    text = REPORT.read_text()
    found = [re.findall(pattern, text) for pattern in patterns]
    assert [len(hits) for hits in found] == [1] * len(patterns), found
    return [tuple(float(n) for n in (hits[0] if isinstance(hits[0], tuple) else hits)) for hits in found]


@needs_report
def test_the_figures_are_what_the_report_prints() -> None:
    gpipe_from, gpipe_to, low, high = numbers(r"Pipeline Bubbles\s+~(\d+)-(\d+)%\s+~(\d+)-(\d+)%")[0]
    assert report.GPIPE_BUBBLE.printed == (gpipe_from, gpipe_to)
    assert report.ONE_F_ONE_B_BUBBLE.printed == (low, high)
    assert numbers(r"Number of micro-batches: (\d+)") == [report.MICROBATCH_COUNT.printed]
    assert numbers(r"= 8 \\times 130 = (\d+)", r"\*\*Total AR Time:\*\* \$2 \\times 20 = (\d+)") == [
        report.COMPUTE.printed,
        report.ALL_REDUCE.printed,
    ]
    assert numbers(r"1 \\times 50 = (\d+)", r"1 \\times 80 = (\d+)", r"Total Pipeline Overhead:\*\* (\d+)") == [
        report.WARM_UP.printed,
        report.COOL_DOWN.printed,
        report.OVERHEAD.printed,
    ]
    assert numbers(r"= 1040 \+ 40 \+ 130 = (\d+)") == [report.TOTAL.printed]
    assert numbers(r"8 \\times 10 = (\d+)\$? units", r"Peak of ~(\d+) units", r"\(80-20\)/80 = (\d+)") == [
        report.MEMORY_WITHOUT.printed,
        report.MEMORY_PEAK.printed,
        report.MEMORY_SAVING.printed,
    ]


@needs_report
def test_the_setting_is_the_reports() -> None:
    assert numbers(r"Global batch size: (\d+)", r"Micro-batch size: (\d+)") == [
        (report.GLOBAL_BATCH,),
        (report.MICROBATCH_SIZE,),
    ]
    assert numbers(r"Forward Pass:\*\* (\d+) ms", r"Backward Pass:\*\* (\d+) ms", r"Per-step Time:\*\* (\d+) ms") == [
        (report.FORWARD,),
        (report.BACKWARD,),
        (report.RING_STEP,),
    ]


@needs_report
def test_the_phases_of_rank_0_are_cut_as_the_report_cuts_them() -> None:
    text = REPORT.read_text()
    section = text[text.index("Rank 0 (Stage 0):") : text.index("Rank 1 (Stage 1):")]
    parts = re.split(r"Warmup|Steady State|Cooldown|All-Reduce", section)[1:4]
    printed = [" ".join(f"0{kind}{number}" for kind, number in re.findall(r"([FB])\((\d)\)", part)) for part in parts]
    assert printed == list(report.PHASES[0])


def test_the_reports_rules_give_its_figures() -> None:
    parts = report.estimate()
    assert (parts.compute,) == report.COMPUTE.printed
    assert (parts.all_reduce,) == report.ALL_REDUCE.printed
    assert (parts.warm_up,) == report.WARM_UP.printed
    assert (parts.cool_down,) == report.COOL_DOWN.printed
    assert (parts.overhead,) == report.OVERHEAD.printed
    assert (parts.total,) == report.TOTAL.printed
    assert (report.microbatch_count(),) == report.MICROBATCH_COUNT.printed
    assert (100 * report.memory_saving(),) == report.MEMORY_SAVING.printed
    assert report.MEMORY_WITHOUT.printed == (report.MICROBATCHES * report.ACTIVATION,)


def test_the_reports_order_is_1f1b_and_its_labels_are_not() -> None:
    labelled = Schedule.parse("\n".join(phases.order for phases in report.PHASES))
    assert labelled.orders == build("1f1b", report.STAGES, report.MICROBATCHES).orders
    warm_up = [min(report.STAGES - 1 - rank, report.MICROBATCHES) for rank in range(report.STAGES)]
    right = [(ahead, 2 * (report.MICROBATCHES - ahead), ahead) for ahead in warm_up]
    assert right == [(1, 14, 1), (0, 16, 0)]
    assert [phases.lengths for phases in report.PHASES] == [(1, 12, 3), (1, 14, 1)]
    assert report.PHASES[0].order.startswith(report.TEST_1_ORDER)


def test_the_reports_rules_refuse_what_they_cannot_take() -> None:
    with refusal("not-divisible", 100, 32, 96, 128):
        report.microbatch_count(100, 32)
    with refusal("too-small", "stages"):
        report.estimate(stages=0)
    with refusal("not-finite", "forward"):
        report.estimate(forward=float("inf"))
    with refusal("wrong-shape", "backward"):
        report.estimate(backward=[80.0, 80.0])  # type: ignore[arg-type]
    with refusal("too-small", "activation"):
        report.memory_saving(activation=0)


def test_a_figure_reads_as_a_line() -> None:
    assert str(report.TOTAL) == "section 5.3: one step of the whole system: 1210 ms"
    assert len({str(figure) for figure in report.FIGURES}) == len(report.FIGURES) == 12
