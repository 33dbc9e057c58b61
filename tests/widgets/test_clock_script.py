"""Test that the clock in the page and the library's simulation compute the same times, for many random schedules and costs."""

from pathlib import Path
from typing import Any

import node
import numpy as np
import pytest
from page_runs import case_of, random_runs

from hybridlab import REGISTRY, Timeline, simulate

pytestmark = pytest.mark.needs("node")

TIMED = """
import { blockersOf, figuresOf, timesOf } from "./clock.js";
import { pipelineOf } from "./orders.js";
const answer = (cases) => cases.map(({ orders, costs }) => {
  const pipeline = pipelineOf(orders);
  const times = timesOf(pipeline, costs);
  const { ops, chunks, copies } = pipeline;
  const names = { text: ops.map(({ text }) => text), chunks, copies, copy: ops.map(({ copy }) => copy) };
  const waited = blockersOf(pipeline, times, costs).map((op) => op?.row ?? -1);
  return { start: [...times.start], end: [...times.end], ...figuresOf(pipeline, times), waited, ...names };
});
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.run(tmp_path_factory.mktemp("clock"), TIMED, [case_of(*run) for run in random_runs()])
    return found


def differs(told: dict[str, Any], timeline: Timeline) -> bool:
    """Return whether a time of the page is not the library's, within 1e-12 of the makespan."""
    edges = np.abs(np.subtract([told["start"], told["end"]], [timeline.start, timeline.end], dtype=float))
    return bool(np.isnan(edges).any() or edges.max() > 1e-12 * max(timeline.makespan, 1e-300))


def test_every_time_is_the_simulations(answers: list[dict[str, Any]]) -> None:
    wrong = [run for run, told in zip(random_runs(), answers, strict=True) if differs(told, simulate(*run))]
    assert not wrong, f"{len(wrong)} differ, for example {wrong[0]}"


def test_the_cases_are_of_many_kinds() -> None:
    """The comparison says nothing about a feature that no case has."""
    runs = random_runs()
    assert len(runs) > 200
    schedules = [schedule for schedule, _ in runs]
    assert {schedule.name for schedule in schedules} > set(REGISTRY)
    for enough in (
        sum(schedule.pairs.size > 0 for schedule in schedules),
        sum(schedule.copies > 1 for schedule in schedules),
        sum(schedule.chunks > 1 for schedule in schedules),
        sum(costs.p2p.item() > 0 for _, costs in runs),
        sum(costs.p2p_between is not None for _, costs in runs),
        sum(not costs.same_everywhere for _, costs in runs),
    ):
        assert enough > len(runs) / 50


def test_every_figure_and_every_cause_is_the_librarys(answers: list[dict[str, Any]]) -> None:
    for (schedule, costs), told in zip(random_runs(), answers, strict=True):
        timeline = simulate(schedule, costs)
        assert told["text"] == [str(op) for op in schedule.ops]
        assert (told["chunks"], told["copies"]) == (schedule.chunks, schedule.copies)
        assert told["copy"] == schedule.copy_of[schedule.microbatch].tolist()
        assert told["makespan"] == pytest.approx(timeline.makespan, rel=1e-12)
        assert told["bubble"] == pytest.approx(timeline.bubble_ratio, rel=1e-9, abs=1e-12)
        assert told["peak"] == timeline.peak_activations.tolist()
        assert told["waited"] == timeline.blocking_operation().tolist()


FAULTS = [
    ("clock.js", "if (!source || source.device === device) return 0;", "if (!source) return 0;"),
    ("clock.js", "links[source.device][device] : p2p", "links[source.device][device] : 0"),
    ("clock.js", "links[source.device][device]", "links[device][source.device]"),
    ("clock.js", "f / chunks", "f"),
    ("clock.js", "(b - b * w) / chunks", "(b * w) / chunks"),
    ("clock.js", "overlap * Math.min(f, B[device])", "overlap * Math.max(f, B[device])"),
    ("clock.js", "partner ? arrival(partner) : 0", "0"),
    ("clock.js", "before ? end[before.row] : 0", "before ? start[before.row] : 0"),
    ("orders.js", "`${stage - 1}F${microbatch}`", "`${stage + 1}F${microbatch}`"),
]


@pytest.mark.slow
def test_each_planted_fault_is_found(tmp_path: Path) -> None:
    assert node.unnoticed(tmp_path, TIMED, [case_of(*run) for run in random_runs()], FAULTS) == []


def test_orders_that_wait_for_ever_have_no_times(tmp_path: Path) -> None:
    """Device 0 runs 0B0 first, which needs 1B0, which needs 0F0. Nothing behind it is timed, and the call ends."""
    costs = {"forward": [1, 1], "backward": [2, 2], "weight_share": [0.5, 0.5], "p2p": 0, "overlap": 0}
    told = node.run(tmp_path / "run", TIMED, [{"orders": ["0B0 0F0", "1F0 1B0"], "costs": costs}])
    assert told[0]["start"] == [None] * 4
