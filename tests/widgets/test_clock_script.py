"""Test that the clock in the page and the library's simulation compute the same times, for thousands of random schedules and costs."""

from pathlib import Path
from typing import Any

import node
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import Setting
from strategies import crossing_orders, legal_orders, settings_of, sizes

from hybridlab import Costs, Schedule, Timeline, simulate
from hybridlab.schedule.text import turn_text

CASES = 2_000
TIMED = """
import { blockersOf, figuresOf, timesOf } from "./clock.js";
import { pipelineOf } from "./orders.js";
const answer = (cases) => cases.map(({ orders, costs }) => {
  const pipeline = pipelineOf(orders);
  const times = timesOf(pipeline, costs);
  const { ops, chunks, copies } = pipeline;
  const names = { text: ops.map(({ text }) => text), chunks, copies, copy: ops.map(({ copy }) => copy) };
  const waited = blockersOf(pipeline, times, costs.p2p).map((op) => op?.row ?? -1);
  return { start: [...times.start], end: [...times.end], ...figuresOf(pipeline, times), waited, ...names };
});
"""


def case_of(schedule: Schedule, costs: Costs) -> dict[str, Any]:
    """Return a schedule and its costs as a page has them."""
    each = {name: np.broadcast_to(getattr(costs, name), schedule.devices).tolist() for name in ("forward", "backward", "weight_share")}
    return {
        "orders": [" ".join(map(turn_text, order)) for order in schedule.turns],
        "costs": {**each, "p2p": costs.p2p.item(), "overlap": costs.overlap.item()},
    }


def without_links(setting: Setting) -> Setting:
    """Return the setting with the same latency between all devices, which is what a page has."""
    return Setting(setting.forward, setting.backward, setting.share, setting.p2p, setting.overlap)


def random_runs(count: int) -> list[tuple[Schedule, Costs]]:
    """Draw schedules of the registry, other legal orders of their operations and orders with crossing paths, each with random costs."""
    runs: list[tuple[Schedule, Costs]] = []

    @settings(max_examples=count, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        built = sizes().map(lambda size: size.build())
        schedule = data.draw(st.one_of(built, built, legal_orders(), crossing_orders()))
        runs.append((schedule, without_links(data.draw(settings_of(schedule.devices))).costs()))

    draw()
    return runs


@pytest.fixture(scope="module")
def runs() -> list[tuple[Schedule, Costs]]:
    return random_runs(CASES)


@pytest.fixture(scope="module")
def answers(runs: list[tuple[Schedule, Costs]], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.run(tmp_path_factory.mktemp("clock"), TIMED, [case_of(*run) for run in runs])
    return found


def differs(told: dict[str, Any], timeline: Timeline) -> bool:
    """Return whether a time of the page is not the library's, within 1e-12 of the makespan."""
    edges = np.abs(np.subtract([told["start"], told["end"]], [timeline.start, timeline.end], dtype=float))
    return bool(np.isnan(edges).any() or edges.max() > 1e-12 * max(timeline.makespan, 1e-300))


def test_every_time_is_the_simulations(runs: list[tuple[Schedule, Costs]], answers: list[dict[str, Any]]) -> None:
    assert len(answers) == len(runs) >= CASES
    wrong = [run for run, told in zip(runs, answers, strict=True) if differs(told, simulate(*run))]
    assert not wrong, f"{len(wrong)} differ, for example {wrong[0]}"


def test_the_cases_are_of_many_kinds(runs: list[tuple[Schedule, Costs]]) -> None:
    """The comparison says nothing about a feature that no case has."""
    schedules = [schedule for schedule, _ in runs]
    assert len({schedule.name for schedule in schedules}) > 15
    for enough in (
        sum(schedule.pairs.size > 0 for schedule in schedules),
        sum(schedule.copies > 1 for schedule in schedules),
        sum(schedule.chunks > 1 for schedule in schedules),
        sum(costs.p2p.item() > 0 for _, costs in runs),
        sum(not costs.same_everywhere for _, costs in runs),
    ):
        assert enough > CASES / 50


def test_every_figure_and_every_cause_is_the_librarys(runs: list[tuple[Schedule, Costs]], answers: list[dict[str, Any]]) -> None:
    for (schedule, costs), told in zip(runs, answers, strict=True):
        timeline = simulate(schedule, costs)
        assert told["text"] == [str(op) for op in schedule.ops]
        assert (told["chunks"], told["copies"]) == (schedule.chunks, schedule.copies)
        assert told["copy"] == schedule.copy_of[schedule.microbatch].tolist()
        assert told["makespan"] == pytest.approx(timeline.makespan, rel=1e-12)
        assert told["bubble"] == pytest.approx(timeline.bubble_ratio, rel=1e-9, abs=1e-12)
        assert told["peak"] == timeline.peak_activations.tolist()
        assert told["waited"] == timeline.blocking_operation().tolist()


FAULTS = [
    ("clock.js", "source.device === device ? 0 : costs.p2p", "costs.p2p"),
    ("clock.js", "source.device === device ? 0 : costs.p2p", "0"),
    ("clock.js", "f / chunks", "f"),
    ("clock.js", "(b - b * w) / chunks", "(b * w) / chunks"),
    ("clock.js", "overlap * Math.min(f, B[device])", "overlap * Math.max(f, B[device])"),
    ("clock.js", "partner ? arrival(partner) : 0", "0"),
    ("clock.js", "before ? end[before.row] : 0", "before ? start[before.row] : 0"),
    ("orders.js", "`${stage - 1}F${microbatch}`", "`${stage + 1}F${microbatch}`"),
]


@pytest.mark.parametrize(("file", "right", "wrong"), FAULTS)
def test_a_planted_fault_is_found(runs: list[tuple[Schedule, Costs]], tmp_path: Path, file: str, right: str, wrong: str) -> None:
    some = runs[:300] + [run for run in runs if run[0].pairs.size][:60]
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for name in ("clock.js", "orders.js"):
        text = (node.WIDGETS / name).read_text(encoding="utf-8")
        if name == file:
            assert right in text
            text = text.replace(right, wrong)
        (scripts / name).write_text(text, encoding="utf-8")
    told = node.run(tmp_path / "run", TIMED, [case_of(*run) for run in some], scripts)
    simulated = [simulate(*run) for run in some]
    assert any(None in each["start"] or differs(each, timeline) for each, timeline in zip(told, simulated, strict=True))


def test_orders_that_wait_for_ever_have_no_times(tmp_path: Path) -> None:
    """Device 0 runs 0B0 first, which needs 1B0, which needs 0F0. Nothing behind it is timed, and the call ends."""
    costs = {"forward": [1, 1], "backward": [2, 2], "weight_share": [0.5, 0.5], "p2p": 0, "overlap": 0}
    told = node.run(tmp_path / "run", TIMED, [{"orders": ["0B0 0F0", "1F0 1B0"], "costs": costs}])
    assert told[0]["start"] == [None] * 4
