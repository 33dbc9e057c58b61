"""Test timelines, worked out by hand or measured, and the quantities that are read from them."""

import copy
import json
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from cases import in_turn, refusal

from hybridlab import Costs, Schedule, Timeline, build, simulate
from hybridlab.step import replicate

ONE = Schedule.parse("0F0 0B0")
TWO = build("1f1b", 2, 2)


def starts(timeline: Timeline) -> dict[str, float]:
    return {str(op): start for op, start in zip(timeline.ops, timeline.start.tolist(), strict=True)}


def test_a_pipeline_of_two_by_hand() -> None:
    """The setting is F = 1, B = 2 and latency 0.5: 0F0 starts at 0, its output arrives at 1.5, and so on."""
    timeline = simulate(TWO, Costs(forward=1, backward=2, p2p=0.5))
    assert starts(timeline) == {"0F0": 0, "0F1": 1, "0B0": 5, "0B1": 8, "1F0": 1.5, "1B0": 2.5, "1F1": 4.5, "1B1": 5.5}
    assert timeline.makespan == 10
    assert timeline.device_span == 10
    assert timeline.busy.tolist() == [6, 6]
    assert timeline.bubble_ratio == 0.4
    assert timeline.peak_activations.tolist() == [2, 1]
    assert timeline.device.tolist() == [0] * 4 + [1] * 4


def test_per_device_costs_by_hand() -> None:
    timeline = simulate(TWO, Costs(forward=[1, 3], backward=[2, 4]))
    assert starts(timeline) == {"0F0": 0, "0F1": 1, "0B0": 8, "0B1": 15, "1F0": 1, "1B0": 4, "1F1": 8, "1B1": 11}
    assert timeline.makespan == 17
    assert timeline.busy.tolist() == [6, 14]
    assert timeline.bubble_ratio == pytest.approx(1 - 20 / 34)


def test_a_split_backward_by_hand() -> None:
    """The weight gradient fills the time in which device 1 waits, and keeps the activation until it has run."""
    timeline = simulate(build("zb-h1", 2, 2), Costs(forward=1, backward=2, weight_share=0.5))
    assert str(timeline.schedule) == "device 0: 0F0 0F1 0I0 0W0 0I1 0W1\ndevice 1: 1F0 1I0 1F1 1I1 1W0 1W1"
    assert timeline.start.tolist() == [0, 1, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]
    assert timeline.makespan == 7
    assert timeline.peak_activations.tolist() == [2, 2]


def test_a_chunk_takes_its_part_of_the_time_and_of_the_memory() -> None:
    timeline = simulate(build("interleaved", 1, 1, 4), Costs(forward=8, backward=16))
    assert timeline.start.tolist() == [0, 2, 4, 6, 8, 12, 16, 20]
    assert timeline.peak_activations.tolist() == [1]
    assert timeline.activations.tolist() == [0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25]


def test_no_latency_between_two_stages_of_one_device() -> None:
    """Hanayo's wave turns round on one device, where two stages need no message."""
    timeline = simulate(build("hanayo", 2, 2, 2), Costs(forward=2, backward=4, p2p=10))
    at = starts(timeline)
    assert at["2F0"] == at["1F0"] + 1
    assert at["3F0"] == at["2F0"] + 11


def test_device_span_is_of_one_device_and_makespan_of_all() -> None:
    timeline = simulate(build("1f1b", 4, 4), Costs(forward=1, backward=2, p2p=1))
    spans = [timeline.end[rows].max() - timeline.start[rows].min() for rows in (timeline.device == d for d in range(4))]
    assert timeline.device_span == max(spans)
    uneven = simulate(Schedule.parse("0F0 0B0\n1F0 1B0"), Costs(forward=[0, 5], backward=[0, 7], p2p=2))
    assert (uneven.makespan, uneven.device_span) == (16, 16)
    zero = simulate(build("zb-h1", 2, 2), Costs(forward=[1, 1], backward=[2, 9], weight_share=[1, 0.5], p2p=0))
    assert zero.device_span <= zero.makespan


@in_turn("p2p", [0, 3])
def test_costs_of_zero(p2p: float) -> None:
    """Only messages take time: two in each direction, from the first device to the last of three."""
    timeline = simulate(build("1f1b", 3, 1), Costs(forward=0, backward=0, p2p=p2p))
    assert timeline.makespan == 4 * p2p
    assert timeline.bubble_ratio == (1 if p2p else 0)
    assert timeline.peak_activations.tolist() == [1, 1, 1]
    assert not timeline.busy.any()


@in_turn("name", ["gpipe", "1f1b", "zb-h1", "interleaved", "hanayo"])
def test_one_device_never_waits(name: str) -> None:
    """This also holds for times that are thirds and tenths, which are rounded."""
    timeline = simulate(build(name, 1, 7), Costs(forward=0.1, backward=0.7, weight_share=0.3, p2p=5))
    assert timeline.makespan == pytest.approx(7 * 0.8, rel=1e-14)
    assert timeline.bubble_ratio == pytest.approx(0, abs=1e-14)
    assert timeline.bubble_ratio >= 0


def test_what_an_operation_waited_for() -> None:
    timeline = simulate(TWO, Costs(forward=1, backward=2, p2p=0.5))
    names = [str(op) for op in timeline.ops]
    waited = {name: names[row] if row >= 0 else None for name, row in zip(names, timeline.blocking_operation().tolist(), strict=True)}
    assert waited == {
        "0F0": None, "0F1": "0F0", "0B0": "1B0", "0B1": "1B1", "1F0": "0F0", "1B0": "1F0", "1F1": "1B0", "1B1": "1F1"
    }  # fmt: skip


def test_waits_lead_back_to_the_start() -> None:
    """The waits lead from the last operation back along a critical path, in which the only gaps are latencies."""
    timeline = simulate(build("hanayo", 4, 8, 4), Costs(forward=[3, 4, 5, 3], backward=[6, 9, 7, 8], p2p=1))
    waited, row, hops = timeline.blocking_operation(), int(timeline.end.argmax()), 0
    work = 0.0
    while row >= 0:
        work += timeline.end[row] - timeline.start[row]
        before = int(waited[row])
        hops += before >= 0 and timeline.device[before] != timeline.device[row]
        row = before
    assert work + hops == pytest.approx(timeline.makespan)


def test_a_measured_timeline_is_a_timeline() -> None:
    """The first start may differ from 0, and times may come from a wall clock."""
    noon = 1.7e9
    measured = Timeline(ONE, [noon, noon + 2], [noon + 1, noon + 5])  # type: ignore[arg-type]
    assert measured.makespan == 5
    assert measured.device_span == 5
    assert measured.busy.tolist() == [4]
    assert measured.bubble_ratio == pytest.approx(0.2)
    assert measured.peak_activations.tolist() == [1]
    assert measured.blocking_operation().tolist() == [-1, 0]
    assert Timeline(ONE, np.array([-3, -2]), np.array([-2, 0])).makespan == 3


def test_the_times_of_an_own_program_are_a_timeline() -> None:
    costs = Costs(forward=1, backward=2, p2p=0.5)
    right = simulate(TWO, costs)
    spans = zip(right.start.tolist(), right.end.tolist(), strict=True)
    times = dict(reversed(list(zip(map(str, right.ops), spans, strict=True))))  # in any order
    assert Timeline.from_times(TWO, times) == right
    assert Timeline.from_times(TWO, {op: times[str(op)] for op in right.ops}, unit="s").unit == "s"
    with refusal("missing-operation", "1B1"):  # what a simulator returns after a deadlock
        Timeline.from_times(TWO, {op: span for op, span in times.items() if op != "1B1"})
    with refusal("unknown-operation", "2F0"):
        Timeline.from_times(TWO, times | {"2F0": (0, 1)})
    with refusal("wrong-shape", "start", "end"):
        Timeline.from_times(TWO, dict.fromkeys(times, (0, 1, 2)))
    with refusal("wrong-type", "0F0", "(0, 50)"):
        Timeline.from_times(TWO, [1, 2])
    with refusal("not-a-schedule"):
        Timeline.from_times("0F0 0B0", times)


def test_a_timeline_keeps_its_own_times() -> None:
    start, end = np.array([0.0, 1.0]), np.array([1.0, 3.0])
    view = end[:]
    view.setflags(write=False)  # the view cannot be written, but its numbers can change
    timelines = Timeline(ONE, start, end), Timeline(ONE, start, view)
    end += 1
    assert [each.makespan for each in timelines] == [3, 3]
    timeline = timelines[0]
    whole = np.array([1, 3])
    whole.setflags(write=False)
    assert Timeline(ONE, start, whole).end.dtype == np.float64, "an array that is not copied has the right type"
    for array in (timeline.start, timeline.end, simulate(ONE, Costs(forward=1, backward=2)).end):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def arrays_of(value: object) -> dict[str, np.ndarray]:
    return {name: array for name, array in vars(value).items() if isinstance(array, np.ndarray)}


@in_turn("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])  # noqa: S301 - our own bytes
def test_copies_cannot_be_changed_either(again: Callable[[object], object]) -> None:
    costs = Costs(forward=[1, 2], backward=[2, 3], p2p=1)
    timeline = simulate(TWO, costs)
    before = timeline.peak_activations.tolist(), timeline.makespan
    batch, ordered = (simulate(TWO, each, messages="ordered") for each in (Costs(forward=[[1], [2]], backward=2), costs))
    for value in (TWO, costs, timeline, batch, ordered, simulate(build("dualpipe", 2, 4), costs), replicate(TWO, 2)):
        for array in (*arrays_of(value).values(), *arrays_of(again(value)).values()):
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)
        assert arrays_of(again(value)).keys() == arrays_of(value).keys() != set()
    alike = again(timeline)
    assert isinstance(alike, Timeline)
    assert (alike.peak_activations.tolist(), alike.makespan) == before
    assert alike.schedule == TWO


def test_a_batch_of_settings() -> None:
    batch = simulate(TWO, Costs(forward=[[1], [2]], backward=2, p2p=[[[0]], [[1]], [[5]]]))
    assert batch.start.shape == (3, 2, 8)
    assert batch.makespan.shape == batch.bubble_ratio.shape == batch.device_span.shape == (3, 2)
    assert batch.busy.shape == batch.peak_activations.shape == (3, 2, 2)
    assert batch.at(2, 1).makespan == batch.makespan[2, 1] == batch.at(2).makespan[1] == batch.at(-1, -1).makespan
    assert isinstance(batch.at(0, 0).makespan, float)
    assert batch.at() is not None
    for setting in ((3,), (0, 2), (0, 0, 0), (None,), ("0",), (0.0,), (True,), (slice(None),), (...,)):
        with refusal("out-of-range", "(3, 2)"):
            batch.at(*setting)
    with refusal("out-of-range", "(0,)", "()"):
        batch.at(0, 0).at(0)


def test_a_batch_of_one_stays_a_batch() -> None:
    batch = simulate(TWO, Costs(forward=[[1]], backward=2))
    assert batch.makespan.shape == (1,)
    assert batch.makespan.tolist() == [9]


def test_rows() -> None:
    assert simulate(ONE, Costs(forward=1, backward=2)).to_rows() == [
        {
            "device": 0,
            "op": "0F0",
            "kind": "F",
            "stage": 0,
            "microbatch": 0,
            "start": 0.0,
            "end": 1.0,
            "activations": 1.0,
        },
        {
            "device": 0,
            "op": "0B0",
            "kind": "B",
            "stage": 0,
            "microbatch": 0,
            "start": 1.0,
            "end": 3.0,
            "activations": 1.0,
        },
    ]
    row = simulate(build("hanayo", 2, 2), Costs(forward=1, backward=2)).to_rows()[3]
    assert {name: type(value) for name, value in row.items()} == {
        "device": int, "op": str, "kind": str, "stage": int, "microbatch": int, "start": float, "end": float, "activations": float,
    }  # fmt: skip


def test_a_trace_opens_in_perfetto() -> None:
    """In the trace event format, there are complete events with microseconds, and one named thread for each device."""
    timeline = simulate(build("zb-h1", 4, 8), Costs(forward=1, backward=2, p2p=0.25))
    trace = json.loads(json.dumps(timeline.to_chrome_trace(), allow_nan=False))
    events = trace["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == len(timeline.ops) == 96
    assert {event["ph"] for event in events} <= {"X", "M", "C"}
    for event in slices:
        assert event.keys() >= {"name", "ph", "ts", "dur", "pid", "tid"}
        assert isinstance(event["ts"], (int, float))
        assert event["dur"] > 0
    last = max(event["ts"] + event["dur"] for event in slices)
    assert last == pytest.approx(timeline.makespan * 1000), "times in ms become microseconds"
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert threads == {device: f"device {device}" for device in range(4)}
    titles = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert titles == ["zb-h1"]
    counters = [event for event in events if event["ph"] == "C"]
    most = {device: max(e["args"]["microbatches"] for e in counters if e["name"].endswith(f" {device}")) for device in range(4)}
    assert list(most.values()) == timeline.peak_activations.tolist()
    last_of = {event["name"]: event["args"]["microbatches"] for event in sorted(counters, key=lambda e: e["ts"])}
    assert list(last_of.values()) == [0] * 4, "after the step no activation is held"


def test_a_trace_in_seconds() -> None:
    trace = simulate(ONE, Costs(forward=1, backward=2, unit="s")).to_chrome_trace()
    assert [event["dur"] for event in trace["traceEvents"] if event["ph"] == "X"] == [1e6, 2e6]


def test_a_trace_needs_a_unit_of_time() -> None:
    with refusal("no-unit", "a trace", "unit='ms'"):
        simulate(ONE, Costs(forward=1, backward=2, unit=None)).to_chrome_trace()


def test_a_timeline_shows_itself_in_a_line() -> None:
    assert repr(simulate(ONE, Costs(forward=1, backward=2))) == f"<Timeline of {ONE!r}, makespan 3>"
    assert "settings (2,)" in repr(simulate(ONE, Costs(forward=[[1], [2]], backward=2)))
