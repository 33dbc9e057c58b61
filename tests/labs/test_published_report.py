"""The published report's figures: copied exactly, and reproduced by its own rules."""

from cases import refusal
from published_data import PRINTED

from hybridlab import Schedule, build
from hybridlab.course.published import benchmarks, report


def test_the_figures_are_what_the_report_prints() -> None:
    ours = {name: getattr(report, name.upper(), getattr(benchmarks, name.upper(), None)) for name in PRINTED["figures"]}
    assert {name: list(figure.printed) for name, figure in ours.items() if figure} == PRINTED["figures"]
    assert {str(figure) for figure in report.FIGURES} <= {str(figure) for figure in ours.values()}


def test_the_setting_is_the_reports() -> None:
    assert {name: getattr(report, name.upper()) for name in PRINTED["setting"]} == PRINTED["setting"]


def test_the_phases_of_rank_0_are_cut_as_the_report_cuts_them() -> None:
    assert list(report.PHASES[0]) == PRINTED["phases_of_rank_0"]


def test_the_reports_rules_give_its_figures() -> None:
    parts = report.estimate()
    assert (parts.compute,) == report.COMPUTE.printed
    assert (parts.all_reduce,) == report.ALL_REDUCE.printed
    assert (parts.warm_up,) == report.WARM_UP.printed
    assert (parts.cool_down,) == report.COOL_DOWN.printed
    assert (parts.overhead,) == report.OVERHEAD.printed
    assert (parts.total,) == report.TOTAL.printed
    assert report.MICROBATCH_COUNT.printed == (report.GLOBAL_BATCH / report.MICROBATCH_SIZE,)
    assert report.MEMORY_WITHOUT.printed == (report.MICROBATCHES * report.ACTIVATION,)
    assert (100 * (1 - report.MEMORY_PEAK.printed[0] / report.MEMORY_WITHOUT.printed[0]),) == report.MEMORY_SAVING.printed


def test_the_reports_order_is_1f1b_and_its_labels_are_not() -> None:
    labelled = Schedule.parse("\n".join(phases.order for phases in report.PHASES))
    assert labelled.orders == build("1f1b", report.STAGES, report.MICROBATCHES).orders
    warm_up = [min(report.STAGES - 1 - rank, report.MICROBATCHES) for rank in range(report.STAGES)]
    right = [(ahead, 2 * (report.MICROBATCHES - ahead), ahead) for ahead in warm_up]
    assert right == [(1, 14, 1), (0, 16, 0)]
    assert [phases.lengths for phases in report.PHASES] == [(1, 12, 3), (1, 14, 1)]
    assert report.PHASES[0].order.startswith(report.TEST_1_ORDER)


def test_the_reports_rules_refuse_what_they_cannot_take() -> None:
    with refusal("too-small", "stages"):
        report.estimate(stages=0)
    with refusal("not-finite", "forward"):
        report.estimate(forward=float("inf"))
    with refusal("wrong-shape", "backward"):
        report.estimate(backward=[80.0, 80.0])  # type: ignore[arg-type]


def test_a_figure_reads_as_a_line() -> None:
    assert str(report.TOTAL) == "section 5.3: one step of the whole system: 1210 ms"
    assert len({str(figure) for figure in report.FIGURES}) == len(report.FIGURES) == 12
