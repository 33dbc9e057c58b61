"""Test that the files of a step that a page writes are the library's: its orders as CSV, and its trace with messages, rings, optimisers."""

import json
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import node
import numpy as np
import pytest

from hybridlab import FP16, INT8, REGISTRY, Schedule, Timeline, build
from hybridlab.collectives import Link
from hybridlab.step import HybridStep
from hybridlab.timeline.chrome import TRACKS
from hybridlab.widgets import StepExplorer
from hybridlab.widgets.step_explorer import AXES, step_key

pytestmark = pytest.mark.needs("node")

EXPLORERS = len(REGISTRY)
WRITTEN = """
import { stepsOf, timelineOf } from "./step_explorer_data.js";
import { csvText, isTraceable, traceOf } from "./trace.js";
const answer = (cases) => cases.map(([data, settings]) => {
  const stepOf = stepsOf(data);
  return settings.map((setting) => {
    const timeline = timelineOf(stepOf(setting), setting);
    return { csv: csvText(timeline), trace: isTraceable(timeline) ? traceOf(timeline) : null };
  });
});
"""
FAULTS = [
    ("trace.js", ".slice(0, timeline.devices / (timeline.replicas ?? 1))", ""),
    ("trace.js", "item[detail] >= 0", "item[detail] > 0"),
    ("trace.js", "next.free > span.start", "next.free >= span.start"),
    ("trace.js", "one.free - other.free || ", ""),
    ("trace.js", "${tracks.length + 1}", "${tracks.length}"),
    ("trace.js", "one[0] - other[0] || one[1] - other[1]", "one[1] - other[1]"),
    ("trace.js", "trackOf.get(span) ?? span.device", "span.device"),
    ("trace.js", "replicas: timeline.replicas ?? 0", "replicas: 0"),
    ("step_explorer_data.js", ".sort((one, other) => placeAt.get(one.op) - placeAt.get(other.op))", ""),
    ("step_explorer_data.js", 'message("receive", "from")', 'message("receive", "to")'),
    ("step_explorer_data.js", "step: count - 1", "step: count"),
    ("step_explorer_data.js", "chunk: piece", "chunk: stage"),
    ("step_explorer_data.js", '...phase("reduce-scatter"), ...phase("all-gather")', '...phase("all-gather"), ...phase("reduce-scatter")'),
    ("step_explorer_data.js", "round / rounds.length", "round / (rounds.length + 1)"),
]


def explorers(count: int) -> list[StepExplorer]:
    """Return explorers of random steps, all schedules among them, with messages that take time and messages that take none."""
    rng, names = Random(11), list(REGISTRY)  # noqa: S311  # the same in every run
    made = []
    for place in range(count):
        devices = rng.choice((2, 4))
        ring: dict[str, Any] = {"ring_step": rng.choice((0, 0.3, 7))}
        if place % 3 == 0:
            ring = {"link": Link(1e-5, 1e9), "gradient_bytes": 2 * rng.randint(1, 10**7), "wire": (FP16, INT8)}
        made.append(
            StepExplorer(
                names[place % len(names)],
                devices=devices,
                replicas=(1, rng.choice((2, 3))),
                microbatches=2 * devices,
                overlap=(False, True),
                forward=[rng.uniform(0.5, 2) for _ in range(devices)],
                backward=rng.choice((2, 1 / 3)),
                p2p=rng.choice((0, 0.1, 1.7)),
                optimiser=rng.choice((0, 0.7)),
                unit=rng.choice(("s", "ms", "us")),
                **ring,
            )
        )
    return made


def able(explorer: StepExplorer) -> list[dict[str, Any]]:
    settings = (dict(zip(AXES, values, strict=True)) for values in product(*(explorer.data[name] for name in AXES)))
    return [setting for setting in settings if "refusal" not in explorer.data["steps"][step_key(explorer.data, setting)]]


@cache
def given() -> tuple[list[Any], list[HybridStep]]:
    """Return the cases for the scripts, and the step of each setting in them."""
    cases, steps = [], []
    for explorer in explorers(EXPLORERS):
        cases.append([explorer.data, able(explorer)])
        for setting in able(explorer):
            explorer.set_state(setting)
            steps.append(explorer.step)
    return cases, steps


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    answer = node.run(tmp_path_factory.mktemp("steps"), WRITTEN, given()[0])
    return [each for files in answer for each in files]


def with_times_apart(trace: Any) -> tuple[Any, list[float]]:
    """Return a trace without the times of its hops, and these times. A page may write them with another last digit."""
    times = []
    for event in trace["traceEvents"]:
        if event.get("cat") in ("reduce-scatter", "all-gather"):
            start = event["ts"]
            times += [start, start + event["dur"]]
            event |= {"ts": 0, "dur": 0, "args": {name: value for name, value in event["args"].items() if name not in ("start", "end")}}
    return trace, times


def is_right(step: HybridStep, files: dict[str, Any]) -> bool:
    """Return whether the CSV and the trace of a page are the library's."""
    schedule = build(step.timeline.schedule.name, step.mesh.stages, step.timeline.schedule.microbatches)
    found, times = with_times_apart(json.loads(json.dumps(files["trace"])))
    wanted, expected = with_times_apart(json.loads(json.dumps(step.timeline.to_chrome_trace())))
    return files["csv"] == schedule.to_csv() and found == wanted and np.allclose(times, expected, rtol=1e-14, atol=0)


def test_the_csv_and_the_trace_of_each_step_are_the_librarys(written: list[dict[str, Any]]) -> None:
    steps = given()[1]
    wrong = [step for step, files in zip(steps, written, strict=True) if not is_right(step, files)]
    assert len(steps) > 50
    assert not wrong, f"{len(wrong)} of {len(steps)} differ, for example {wrong[0]}"


def test_the_library_reads_the_trace_of_a_step_that_a_page_wrote(written: list[dict[str, Any]], tmp_path: Path) -> None:
    for step, files in list(zip(given()[1], written, strict=True))[::5]:
        path = tmp_path / "trace.json"
        path.write_text(json.dumps(files["trace"]), encoding="utf-8")
        read, own = Timeline.from_chrome_trace(path), step.timeline
        assert Schedule.parse(files["csv"]).turns == own.schedule.turns[: step.mesh.stages]
        assert (read.end == own.end).all()
        assert read.spans is not None
        assert own.spans is not None
        for name in ("kind", "device", "stage", "microbatch", "chunk", "step", "peer", "nbytes", "row"):
            assert (getattr(read.spans, name) == getattr(own.spans, name)).all(), name
        assert np.allclose(read.spans.end, own.spans.end, rtol=1e-14)


def test_no_two_slices_of_an_additional_track_overlap(written: list[dict[str, Any]]) -> None:
    for files in written:
        busy: dict[int, float] = {}
        events = [event for event in files["trace"]["traceEvents"] if event.get("cat") in TRACKS]
        for event in sorted(events, key=lambda event: event["ts"]):
            assert event["ts"] >= busy.get(event["tid"], 0) * (1 - 1e-14)
            busy[event["tid"]] = event["ts"] + event["dur"]


def test_the_steps_are_of_many_kinds() -> None:
    """The comparison says nothing about a feature that no step has."""
    steps = given()[1]
    kinds = [{row["kind"] for row in step.timeline.to_rows()} for step in steps]
    tracks = [json.dumps(step.timeline.to_chrome_trace()) for step in steps]
    assert {step.timeline.schedule.name for step in steps} == set(REGISTRY)
    assert sum("all-gather" in each for each in kinds) > 10
    assert sum("send 2" in each for each in tracks) > 10, "a device sends several messages at a time"
    assert sum('"nbytes": ' in each for each in tracks) > 10
    assert sum(step.timeline.schedule.copies > 1 for step in steps) > 5


@pytest.mark.slow
def test_each_planted_fault_is_found(tmp_path: Path) -> None:
    assert node.unnoticed(tmp_path, WRITTEN, given()[0], FAULTS) == []
