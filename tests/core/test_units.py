"""Test that times carry their unit: a step has the same length in seconds, milliseconds and microseconds."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cases import refusal
from hypothesis import given
from hypothesis import strategies as st
from strategies import sizes

from hybridlab import Costs, Timeline, build, hybrid_step, plot, simulate
from hybridlab.checks import unit_of_time
from hybridlab.collectives import Link
from hybridlab.engines import run
from hybridlab.sweep import Sweep, sweep
from hybridlab.widgets import StepExplorer, SweepExplorer, TimelineExplorer

IN_A_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000}  # by the definition of the units
SCHEDULE = build("1f1b", 2, 8)
REPORT = {"s": Costs(forward=0.05, backward=0.08, unit="s"), "ms": Costs(forward=50, backward=80)}
REPORT["us"] = Costs(forward=50_000, backward=80_000, unit="us")
OVER_A_LINK: dict[str, Any] = {"link": Link(latency=5e-6, bandwidth=25e9), "gradient_bytes": 2e9}
GRID: dict[Any, Any] = {"devices": 2, "microbatches": [2, 4], "forward": 1, "backward": 2}


@pytest.mark.parametrize("unit", IN_A_SECOND)
def test_a_step_over_a_link_takes_the_same_seconds_in_every_unit(unit: str) -> None:
    """(M + K-1)(F + B) = 9 x 0.13 = 1.17 s, and two hops of 5 us + 1e9 bytes / 25e9: 1.25001 s, whatever the unit.

    Costs in seconds were once added to a link's milliseconds: 81.18.
    """
    step = hybrid_step(SCHEDULE, REPORT[unit], 2, **OVER_A_LINK)
    assert step.unit == step.timeline.unit == unit
    assert step.makespan / IN_A_SECOND[unit] == pytest.approx(1.25001)
    assert step.all_reduce_time / IN_A_SECOND[unit] == pytest.approx(0.08001)


@given(size=sizes(), unit=st.sampled_from(list(IN_A_SECOND)), replicas=st.integers(1, 3), overlap=st.booleans())
def test_every_figure_of_a_step_is_the_same_in_every_unit(size: Any, unit: str, replicas: int, overlap: bool) -> None:
    schedule, factor = size.build(), IN_A_SECOND[unit] / 1000

    def step(costs: Costs, by: float) -> Any:
        return hybrid_step(schedule, costs, replicas, **OVER_A_LINK, optimiser=3 * by, overlap=overlap)

    plain = Costs(forward=5, backward=[8], p2p=0.5)
    other = step(Costs(forward=5 * factor, backward=8 * factor, p2p=0.5 * factor, unit=unit), factor)
    one = step(plain, 1)
    for name in ("makespan", "all_reduce_time", "exposed_communication", "single_device_time"):
        assert getattr(other, name) == pytest.approx(factor * getattr(one, name))
    for name in ("speedup", "efficiency", "communication_share"):
        assert getattr(other, name) == pytest.approx(getattr(one, name))
    assert other.timeline.spans.end == pytest.approx(factor * one.timeline.spans.end)


@pytest.mark.parametrize("unit", IN_A_SECOND)
def test_a_trace_is_in_microseconds_whatever_the_unit(unit: str) -> None:
    trace = hybrid_step(SCHEDULE, REPORT[unit], 2, **OVER_A_LINK).timeline.to_chrome_trace()
    last = max(event["ts"] + event["dur"] for event in trace["traceEvents"] if event["ph"] == "X")
    assert last == pytest.approx(1_250_010)


@pytest.mark.parametrize("unit", IN_A_SECOND)
def test_threads_sleep_the_real_length_of_their_costs(unit: str) -> None:
    """The run has 60 ms of work and is never shorter. A wrong unit is wrong by 1000 or more."""
    length = IN_A_SECOND[unit] / 1000
    costs = Costs(forward=10 * length, backward=20 * length, unit=unit)
    timeline = run(build("gpipe", 1, 2), costs=costs).timeline
    assert timeline.unit == unit
    assert 60 <= timeline.makespan / length < 60_000


def test_a_timeline_keeps_its_unit() -> None:
    batch = simulate(SCHEDULE, Costs(forward=[[1], [2]], backward=2, unit="us"))
    assert batch.unit == batch.at(0).unit == pickle.loads(pickle.dumps(batch)).unit == "us"  # noqa: S301
    assert simulate(SCHEDULE, Costs(forward=1, backward=2)).unit == "ms"
    assert Timeline(SCHEDULE, batch.at(0).start, batch.at(0).end).unit == "ms"
    for changed in (REPORT["s"].slower([0], 2, of=2), REPORT["s"].longer(3), Costs(forward=[1, 2], backward=2, unit="s").repeated(2)):
        assert changed.unit == "s"


def test_a_timeline_in_another_unit_is_another_one() -> None:
    one, other = (simulate(SCHEDULE, Costs(forward=1, backward=2, unit=unit)) for unit in ("s", "ms"))
    assert one != other
    assert replace(other, unit="s") == one


WITHOUT = Costs(forward=1, backward=2, unit=None)


@pytest.mark.parametrize(
    ("ask", "user"),
    [
        (lambda: hybrid_step(SCHEDULE, WITHOUT, 2, **OVER_A_LINK), "a link"),
        (lambda: simulate(SCHEDULE, WITHOUT).to_chrome_trace(), "a trace"),
        (lambda: run(SCHEDULE, costs=WITHOUT), "a run"),
        (lambda: StepExplorer(replicas=2, unit=None, **OVER_A_LINK), "a link"),
    ],
)
def test_where_a_length_is_needed_slots_are_asked_for_their_unit(ask: Callable[[], object], user: str) -> None:
    with refusal("no-unit", user, "Costs(..., unit='ms')"):
        ask()


def test_slots_are_enough_for_all_the_rest() -> None:
    step = hybrid_step(SCHEDULE, WITHOUT, 2, ring_step=1, optimiser=1)
    assert (step.unit, step.makespan) == (None, 27 + 2 + 1)
    assert "makespan 30, bubble" in plot.alt_text(step.timeline)
    assert {text.get_text() for text in plot.timeline(step.timeline).axes[0].texts} >= {"time"}


@pytest.mark.parametrize("unit", ["", "seconds", "S", "min", 1, 0.001, b"ms", ["ms"], True])
def test_there_are_three_units_and_none(unit: object) -> None:
    for make in (
        lambda: unit_of_time(unit),
        lambda: Costs(forward=1, backward=2, unit=unit),  # type: ignore[arg-type]
        lambda: Timeline(SCHEDULE, [0] * 32, [1] * 32, unit=unit),  # type: ignore[arg-type]
        lambda: sweep("1f1b", GRID, unit=unit),  # type: ignore[arg-type]
        lambda: Sweep((), (), unit),  # type: ignore[arg-type]
        lambda: TimelineExplorer(unit=unit),  # type: ignore[arg-type]
        lambda: StepExplorer(unit=unit),  # type: ignore[arg-type]
    ):
        with refusal("unknown-name", "unit", "'s', 'ms', 'us'", None):
            make()


@pytest.mark.parametrize("unit", ["s", "ms", "us", None])
def test_figures_views_and_tables_read_the_unit(unit: str | None) -> None:
    after, name = (f" {unit}", f", {unit}") if unit else ("", "")
    timeline = simulate(SCHEDULE, Costs(forward=1, backward=2, unit=unit))
    assert f"makespan 27{after}, bubble" in plot.alt_text(timeline)
    assert f"makespan 27{after}, bubble" in plot.compare({"one": timeline}).alt_text
    assert f"time{name}" in {text.get_text() for text in plot.timeline(timeline).axes[0].texts}
    table = sweep("1f1b", GRID, unit=unit)
    assert table.unit == table.where(microbatches=2).unit == pickle.loads(pickle.dumps(table)).unit == unit  # noqa: S301
    assert plot.panels(table, "microbatches", "makespan").alt_text.startswith(f"Makespan{name} against")
    quantities = SweepExplorer(table, "microbatches").data["quantities"]
    assert [each["unit"] for each in quantities] == ["", unit or ""], "of the bubble ratio and of the makespan"
    timelines, steps = TimelineExplorer(unit=unit), StepExplorer(unit=unit)
    assert timelines.data["unit"] == steps.data["unit"] == (unit or "")
    assert timelines.timeline.unit == steps.step.unit == unit
    assert steps.data["label"] == f"Ring step{name}"
