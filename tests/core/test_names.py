"""Test that a schedule is found by its name in upper or lower case, and keeps its name in the registry."""

from cases import in_turn, refusal
from strategies import supported

from hybridlab import REGISTRY, build, check, formulas, register, sweep
from hybridlab.course import comparisons
from hybridlab.schedules import Family, known_schedule
from hybridlab.widgets import StepExplorer, TimelineExplorer

TIMES = {"devices": 4, "microbatches": 8, "forward": 1, "backward": 2}


@in_turn("name", REGISTRY)
def test_build_finds_a_schedule_in_any_case(name: str) -> None:
    size = supported(name, 2, 4)
    for written in (name.upper(), name.title(), name.swapcase()):
        assert build(written, *size) == build(name, *size)
        assert build(written, *size).name == known_schedule(written) == name


@in_turn("name", ["1F-1B", "ZB_H1", "zbh1", " 1f1b", "1F1B ", "ZB H1", "1F1", b"1F1B", None, ("1F1B",)])
def test_a_name_that_differs_by_more_than_case_is_refused(name: object) -> None:
    with refusal("unknown-name", "schedule"):
        build(name, 2, 4)  # type: ignore[arg-type]


def test_a_sweep_is_of_the_names_in_the_registry_and_its_rows_are_found_in_any_case() -> None:
    table = sweep(["GPipe", ("Interleaved", 2)], TIMES)
    assert table.column("schedule") == ["gpipe", "interleaved"]
    assert table.column("chunks") == [1, 2]
    for written in ("GPipe", "gpipe"):
        assert table.where(schedule=written).column("schedule") == ["gpipe"]
    assert len(table.where(schedule="ZB-H1")) == 0


def test_views_show_a_schedule_in_any_case() -> None:
    view = TimelineExplorer(["GPipe", "gpipe", "1F1B"], devices=2, microbatches=4, forward=1, backward=2, show={"schedule": "1F1B"})
    assert [each["name"] for each in view.data["schedules"]] == ["gpipe", "1f1b"]
    assert view.schedule == "1f1b"
    view.schedule = "GPIPE"
    assert view.schedule == "gpipe"
    step = StepExplorer(["1F1B", "ZB-H1"], devices=2, replicas=2, microbatches=4, forward=1, backward=2, ring_step=1)
    step.schedule = "Zb-H1"
    assert step.schedule == "zb-h1"
    assert step.step.timeline.schedule.name == "zb-h1"


def test_closed_forms_tables_and_tasks_take_any_case() -> None:
    assert formulas.peak_activations("ZB-H1", 4, 8) == formulas.peak_activations("zb-h1", 4, 8)
    assert comparisons.bubble_rates("ZB-H1").holds
    assert str(check("lab18.t1", ("GPipe", 1000))) == str(check("lab18.t1", ("gpipe", 1000)))


def test_names_that_differ_in_case_alone_are_not_registered(families: dict[str, Family]) -> None:
    with refusal("duplicate-name", "zb-h1"):
        register("ZB-H1", title="A", summary="b", source="c")
    families["Mine"] = REGISTRY["gpipe"]
    assert known_schedule("mine") == known_schedule("MINE") == "Mine"
