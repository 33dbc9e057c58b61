"""Test that the timeline explorer shows steps that really ran with the times that were measured, and at no other size."""

from pathlib import Path
from typing import Any

import node
import pytest
from cases import in_turn, refusal
from numpy.testing import assert_allclose

from hybridlab import Costs, HybridLabError, Timeline, build, simulate
from hybridlab.course.comparisons import stored_steps
from hybridlab.step.replicas import replicate
from hybridlab.widgets import TimelineExplorer

WAITED = """
import { pipelineOf } from "./orders.js";
import { withTimes } from "./timed.js";
const answer = ({ orders, ...times }) => {
  const { ops, makespan } = withTimes(pipelineOf(orders), times, { p2p: 0 }, {});
  return { waited: ops.map(({ waitedFor }) => waitedFor?.row ?? -1), makespan };
};
"""
STEPS = {name: found[0] for name, found in stored_steps("equal").items()}
SMALL: dict[str, Any] = {"schedules": ("gpipe", "1f1b"), "devices": 4, "microbatches": (4, 8), "forward": 20, "backward": 40}


def explorer(**change: Any) -> TimelineExplorer:
    return TimelineExplorer(**SMALL | {"measured": STEPS, "show": {"microbatches": 8}} | change)


def test_the_entry_of_a_measured_step_has_its_times_and_its_orders() -> None:
    view = explorer()
    for name, step in STEPS.items():
        entry = view.data["pipelines"][f"{name}, measured/4/8/1"]
        assert set(entry) == {"orders", "start", "end"}
        assert entry["orders"] == [" ".join(map(str, order)) for order in build(name, 4, 8).orders]
        assert_allclose(entry["start"], step.start, rtol=1e-8)
        assert_allclose(entry["end"], step.end, rtol=1e-8)
    titles = {each["name"]: each["title"] for each in view.data["schedules"]}
    assert titles["1f1b, measured"] == f"{titles['1f1b']} (measured)"


@pytest.mark.needs("node")
def test_a_simulated_step_given_as_measured_waits_for_what_the_explorer_says_of_the_schedule(tmp_path: Path) -> None:
    """On a step without any jitter, the page names the same causes from measured times as from the times of its clock."""
    for name in ("gpipe", "1f1b", "zb-h1"):
        step = simulate(build(name, 4, 8), Costs(forward=20, backward=40))
        view = explorer(schedules=(name,), measured={name: step})
        same, own = (view.data["pipelines"][f"{each}/4/8/1"] for each in (f"{name}, measured", name))
        assert same["orders"] == own["orders"]
        told = node.run(tmp_path / name, WAITED, same)
        assert told["waited"] == step.blocking_operation().tolist()
        assert told["makespan"] == step.makespan


def test_a_measured_step_can_be_chosen_compared_and_read() -> None:
    view = explorer(show={"microbatches": 8, "schedule": "1f1b", "compare": "1f1b, measured"})
    assert (view.timeline.makespan, view.extra) == (660, {})
    view.schedule = "gpipe, measured"
    assert view.timeline is STEPS["gpipe"]
    assert "gpipe, measured against 1f1b, measured" in repr(view)


def test_at_another_size_the_view_says_with_which_size_the_step_was_measured() -> None:
    view = explorer(show={"microbatches": 8, "schedule": "1f1b, measured"})
    told = {"refusal": "this step was measured with 4 devices and 8 microbatches"}
    assert view.data["pipelines"]["1f1b, measured/4/4/1"] == told
    view.devices = 3
    assert view.extra["pipelines"] == {"1f1b, measured/3/8/1": told}
    view.schedule = "1f1b"
    assert view.timeline.schedule.devices == 3


WRONG: list[tuple[dict[str, Any], str, list[Any]]] = [
    ({"measured": STEPS["1f1b"]}, "wrong-type", ["measured", "1f1b"]),
    ({"measured": {"1f1b": 3}}, "wrong-type", ["Timeline of one pipeline", 3]),
    ({"measured": {"1f1": STEPS["1f1b"]}}, "unknown-name", ["1f1b"]),
    ({"measured": {"1f1b": simulate(replicate(build("1f1b", 4, 8), 2), Costs(forward=20, backward=40))}}, "wrong-type", ["one pipeline"]),
    ({"unit": "us"}, "does-not-fit", ["ms", "us"]),
    ({"devices": 2, "show": None}, "does-not-fit", ["4 devices and 8 microbatches"]),
    ({"show": {"schedule": "zb-h1, measured"}}, "unknown-name", ["zb-h1, measured"]),
]


@in_turn("change, code, words", WRONG)
def test_steps_that_do_not_fit_are_refused(change: dict[str, Any], code: str, words: list[Any]) -> None:
    with refusal(code, *words):
        explorer(**change)


def test_a_planted_time_is_seen_in_the_data() -> None:
    step = STEPS["1f1b"]
    start, end = step.start.copy(), step.end.copy()
    end[-1] += 5
    other = Timeline(step.schedule, start, end, unit="ms")
    assert explorer(measured={"1f1b": other}).data != explorer(measured={"1f1b": step}).data
    with pytest.raises(HybridLabError):
        explorer(measured={"1f1b": step}, devices=())
