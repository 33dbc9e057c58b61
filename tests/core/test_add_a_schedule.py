"""Test the example "Add a schedule" of CONTRIBUTING: everything that reads the registry finds the new schedule.

No other change is needed.
"""

import doctest
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import checks
import gallery_page
import oracle
import pytest
from cases import in_turn

from hybridlab import REGISTRY, Costs, HybridLabError, Sweep, UnsupportedSize, build, formulas, hybrid_step, plot, simulate, sweep
from hybridlab.bound import lower_bound
from hybridlab.engines import run
from hybridlab.schedules import Family
from hybridlab.training import train
from hybridlab.widgets import StepExplorer, SweepExplorer, TimelineExplorer

NAME, TITLE = "one-by-one", "One by one"
TEXT = "device 0: 0F0 0B0 0F1 0B1\ndevice 1: 1F0 1B0 1F1 1B1\ndevice 2: 2F0 2B0 2F1 2B1"
GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = GUIDE[GUIDE.index("## Add a schedule") : GUIDE.index("## Refresh a lab")]
DEFINITION = re.compile(r"import |from |@register|def ")


@pytest.fixture(autouse=True)
def added(families: dict[str, Family], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register the rule of the guide, as the first of all schedules, and put its closed form into the library."""
    families.pop(NAME, None)
    others, names = dict(families), dict[str, Any]()
    for example in doctest.DocTestParser().get_examples(SECTION):
        if DEFINITION.match(example.source):
            exec(example.source, names)  # noqa: S102 - our own guide
    assert list(REGISTRY) == [*others, NAME]
    for name in others:
        families[name] = families.pop(name)
    assert list(REGISTRY) == [NAME, *others]
    monkeypatch.setattr(formulas, "one_by_one_makespan", names["one_by_one_makespan"], raising=False)
    yield
    gallery_page.page_of.cache_clear()


def length(devices: int, microbatches: int, p2p: float = 0) -> float:
    """Return the makespan with a forward of 1 and a backward of 2, where each microbatch goes down and back up alone."""
    return microbatches * (3 * devices + 2 * (devices - 1) * p2p)


def test_it_is_built_and_its_text_is_the_golden_text_of_the_guide() -> None:
    assert str(build("One-By-One", 3, 2)) == TEXT
    assert TEXT in SECTION
    assert re.search(r'\("one-by-one", 3, 2\): "(.*)",', SECTION)[1].replace("\\n", "\n") == TEXT  # type: ignore[index]


def test_an_unknown_name_is_answered_with_it() -> None:
    with pytest.raises(HybridLabError, match=rf"^unknown schedule 'one-by-two': did you mean '{NAME}'\? Known: .*\b{NAME}\b"):
        build("one-by-two", 2, 2)
    with pytest.raises(HybridLabError, match=rf"^unknown schedule 'xyzzy'.* Known: {', '.join(REGISTRY)}$"):
        build("xyzzy", 2, 2)


@in_turn(
    "size, sentence",
    [
        ((3, 2, 2), "one-by-one has 1 chunk a device, not 2; leave chunks out"),
        ((10**6, 10**6, 1), "1000000 devices x 1 chunks x 1000000 microbatches is more than the 22,369,621 that fit in memory"),
    ],
)
def test_sizes_are_refused_in_its_name(size: tuple[int, int, int], sentence: str) -> None:
    with pytest.raises(UnsupportedSize, match=re.escape(sentence)):
        build(NAME, *size)
    assert REGISTRY[NAME].sizes == "any numbers of devices and microbatches; 1 chunk a device"


def test_it_passes_the_checks_of_the_property_tests() -> None:
    for devices, microbatches in ((1, 1), (1, 7), (2, 1), (3, 4), (5, 2)):
        schedule = build(NAME, devices, microbatches)
        checks.has_the_size_asked_for(schedule, devices, microbatches, 1)
        for check in checks.SCHEDULE_CHECKS:
            check(schedule)
        setting = oracle.uniform(devices, 1, 2, 0.5, 0.25)
        timeline = simulate(schedule, setting.costs())
        for timeline_check in checks.TIMELINE_CHECKS:
            timeline_check(timeline, setting)
        assert timeline.makespan == length(devices, microbatches, 0.25)
        assert formulas.one_by_one_makespan(devices, microbatches, 1, 2, 0.25) == length(devices, microbatches, 0.25)  # type: ignore[attr-defined]


def swept(*names: str) -> Sweep:
    return sweep(list(names), {"devices": 4, "microbatches": [4, 8], "forward": 1, "backward": 2, "p2p": [0, 0.5]})


def test_a_sweep_has_its_rows() -> None:
    rows = [(row["microbatches"], row["p2p"], row["makespan"]) for row in swept(*REGISTRY).where(schedule=NAME)]
    assert rows == [(microbatches, p2p, length(4, microbatches, p2p)) for microbatches, p2p in product((4, 8), (0, 0.5))]


def test_the_views_list_and_show_it() -> None:
    timelines = TimelineExplorer(tuple(REGISTRY), devices=4, microbatches=8, show={"schedule": NAME})
    assert [(each["name"], each["title"]) for each in timelines.data["schedules"]] == [(name, REGISTRY[name].title) for name in REGISTRY]
    assert timelines.data["pipelines"][f"{NAME}/4/8/1"] == {"orders": [line.split(": ")[1] for line in str(build(NAME, 4, 8)).splitlines()]}
    assert timelines.timeline.makespan == length(4, 8)
    steps = StepExplorer(tuple(REGISTRY), devices=4, replicas=2, microbatches=8, ring_step=1, overlap=False, show={"schedule": NAME})
    assert steps.data["titles"][NAME] == TITLE
    assert steps.step.timeline.makespan >= length(4, 8)
    lines = SweepExplorer(swept("1f1b", NAME), x="microbatches")
    assert TITLE in str(lines.data)


def test_a_view_with_a_kernel_offers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    view, sent = TimelineExplorer(devices=2, microbatches=2), []
    monkeypatch.setattr(view, "send", sent.append)
    view._answer(None, {"ask": "live"}, None)
    offered = {each["name"]: each for each in sent[0]["schedules"]}
    assert list(offered) == list(REGISTRY)
    assert offered[NAME] == {"name": NAME, "title": TITLE, "fewest": 1, "step": 0}


def test_figures_steps_bounds_threads_and_training_take_it() -> None:
    schedule, costs = build(NAME, 2, 2), Costs(forward=1, backward=2)
    assert plot.alt_text(simulate(schedule, costs)).startswith(f"Timeline of {TITLE}, 2 devices, 2 microbatches")
    assert hybrid_step(schedule, costs, 2).makespan == length(2, 2)
    assert lower_bound(schedule, costs) == length(2, 2), "with one activation a device no order is shorter"
    assert run(schedule, costs=costs).timeline.ops == simulate(schedule, costs).ops
    assert not train(schedule, 2, steps=2).spread.any()


def test_the_gallery_has_its_row_its_section_and_its_closed_form_and_compares_it_with_the_others() -> None:
    """The new schedule holds one microbatch, the fewest of all.

    Its timeline is the longest, so it sets the scale of all figures.
    """
    page = gallery_page.page()
    assert gallery_page.table(page).links == [f"#schedule-{name}" for name in gallery_page.names()]
    row = next(row for row in gallery_page.rows(page) if row[0] == TITLE)
    assert row[1:4] == ["96", "96|reached", f"{1 - 24 / 96:.3f}"]
    section = gallery_page.sections(page)[f"schedule-{NAME}"]
    assert section.startswith(f"### {TITLE}\n\nA microbatch goes through all devices and back before the next one starts.\n")
    assert "**Makespan:** 96 by the clock, 96 by the closed form {func}`~hybridlab.formulas.one_by_one_makespan`.\n" in section
    assert f"```text\n{build(NAME, 4, 8)}\n```" in section
    assert "{cite}`huang2019gpipe`" in section
    assert NAME in gallery_page.groups()["One chunk a device"]
    least_memory = next(line for line in page.splitlines() if line.startswith("- **Least memory:**"))
    assert least_memory.startswith(f"- **Least memory:** [{TITLE}](#schedule-{NAME}), with the")
    assert set(re.findall(r"end=(\S+),", page)) == {"96"}


def test_arguments_of_a_closed_form_that_the_gallery_does_not_know_keep_their_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_overlap(backward: float, forward: float, devices: int, microbatches: int, overlap: float = 0.0) -> float:
        return microbatches * devices * (forward + backward - overlap)

    monkeypatch.setattr(formulas, "one_by_one_makespan", with_overlap)
    assert "**Makespan:** 96 by the clock, 96 by the closed form" in gallery_page.sections(gallery_page.page())[f"schedule-{NAME}"]
