"""Test that the files of a timeline that a page writes are the library's: its orders as CSV, and its trace for Perfetto."""

import json
from pathlib import Path
from typing import Any

import node
import pytest
from page_runs import case_of, random_runs
from profiles import seeds

from hybridlab import Costs, Schedule, Timeline, simulate

pytestmark = pytest.mark.needs("node")

UNITS = ("s", "ms", "us")
WRITTEN = """
import { pipelineOf } from "./orders.js";
import { csvText, isTraceable, nameOf, traceOf } from "./trace.js";
const answer = (cases) => cases.map(({ orders, start, end, ...about }) => {
  const pipeline = pipelineOf(orders);
  for (const op of pipeline.ops) [op.start, op.end] = [start[op.row], end[op.row]];
  const timeline = { ...pipeline, ...about };
  return { csv: csvText(timeline), name: nameOf(timeline), trace: isTraceable(timeline) ? traceOf(timeline) : null };
});
"""
FAULTS = [
    ("trace.js", '!partner || kind === "F"', "true"),
    ("trace.js", ")OVERLAP_F_B", ")"),
    ("trace.js", "start * length", "start"),
    ("trace.js", "dur: last - ts", "dur: end - start"),
    ("trace.js", "args.start = start", "args.end = start"),
    ("trace.js", "ts / length !== start", "start < 0"),
    ("trace.js", "(ts + (last - ts)) / length !== end", "end < 0"),
    ("trace.js", "held / chunks)]", "held)]"),
    ("trace.js", "held -= 1;", ""),
    ("trace.js", 'op.kind === "F" || op.kind === "I"', 'op.kind === "F"'),
    ("trace.js", "sliceOf(op, op.text, op.device, length)", "sliceOf(op, op.text, 0, length)"),
]


def timed(schedule: Schedule, costs: Costs, unit: str) -> Timeline:
    timeline = simulate(schedule, costs)
    return Timeline(schedule, timeline.start, timeline.end, unit=unit)


def page_data(timeline: Timeline) -> dict[str, Any]:
    """Return a timeline as a page has it."""
    schedule = timeline.schedule
    orders = case_of(schedule, Costs(forward=1, backward=2))["orders"]
    times = {"start": timeline.start.tolist(), "end": timeline.end.tolist(), "makespan": timeline.makespan}
    return {"orders": orders, **times, "title": schedule.name, "unit": timeline.unit}


@pytest.fixture(scope="module")
def given() -> list[Timeline]:
    """Give the timelines of random schedules with random costs, in all units of time."""
    return [timed(*run, UNITS[place % len(UNITS)]) for place, run in enumerate(random_runs()[: len(seeds(600))])]


@pytest.fixture(scope="module")
def written(given: list[Timeline], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.run(tmp_path_factory.mktemp("trace"), WRITTEN, [page_data(timeline) for timeline in given])
    return found


def is_right(timeline: Timeline, files: dict[str, Any]) -> bool:
    """Return whether a page's CSV and trace are the library's."""
    return bool(files["csv"] == timeline.schedule.to_csv() and files["trace"] == json.loads(json.dumps(timeline.to_chrome_trace())))


def test_the_csv_and_the_trace_are_the_librarys(given: list[Timeline], written: list[dict[str, Any]]) -> None:
    assert len(written) > 60
    wrong = [timeline for timeline, files in zip(given, written, strict=True) if not is_right(timeline, files)]
    assert not wrong, f"{len(wrong)} differ, for example {wrong[0]}"


def test_the_library_reads_the_files_of_a_page(given: list[Timeline], written: list[dict[str, Any]], tmp_path: Path) -> None:
    for timeline, files in zip(given[:30], written[:30], strict=True):
        assert Schedule.parse(files["csv"]).turns == timeline.schedule.turns
        path = tmp_path / "trace.json"
        path.write_text(json.dumps(files["trace"]), encoding="utf-8")
        read = Timeline.from_chrome_trace(path)
        assert read.schedule.turns == timeline.schedule.turns
        assert (read.start == timeline.start).all()
        assert (read.end == timeline.end).all()
        assert read.unit == timeline.unit


def test_the_timelines_are_of_many_kinds(given: list[Timeline]) -> None:
    """The comparison says nothing about a feature that no timeline has."""
    traces = [timeline.to_chrome_trace()["traceEvents"] for timeline in given]
    assert len({timeline.schedule.name for timeline in given}) > 10
    assert any(timeline.schedule.pairs.size > 0 for timeline in given)
    assert sum(timeline.schedule.chunks > 1 for timeline in given) > 10
    assert sum("W" in {event.get("cat") for event in events} for events in traces) > 10
    for time in ("start", "end"):
        assert any(time in event["args"] for events in traces for event in events if event["ph"] == "X")


@pytest.mark.slow
def test_each_planted_fault_is_found(given: list[Timeline], tmp_path: Path) -> None:
    assert node.unnoticed(tmp_path, WRITTEN, [page_data(timeline) for timeline in given], FAULTS) == []


def test_times_without_a_unit_and_too_large_times_have_no_trace_and_missing_times_no_slice(tmp_path: Path) -> None:
    one = {"orders": ["0F0 0B0"], "start": [0, 1], "end": [1, 3], "makespan": 3, "title": "one", "unit": "ms"}
    cases = [one | {"unit": ""}, one | {"makespan": 1e300}, one | {"end": [1, None]}, one | {"setting": {"schedule": "gpipe"}}]
    plain, late, partial, named = node.run(tmp_path, WRITTEN, cases)
    assert (plain["trace"], late["trace"]) == (None, None)
    assert plain["csv"] == "0F0,0B0\n"
    assert [event["name"] for event in partial["trace"]["traceEvents"] if event["ph"] == "X"] == ["0F0"]
    assert named["name"] == named["trace"]["traceEvents"][0]["args"]["name"] == "gpipe"
