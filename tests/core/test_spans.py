"""Test spans, which are what runs beside the operations: in a timeline, in its rows and in its trace."""

import copy
import json
import pickle
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import outcome, usual_or_junk
from profiles import examples

from hybridlab import Costs, Schedule, Timeline, build, hybrid_step, simulate
from hybridlab.timeline.spans import ALL_GATHER, OPTIMISER, RECEIVE, SEND, SPAN_KINDS, Spans, join_spans

ONE = Schedule.parse("0F0 0B0")
TWO = build("1f1b", 2, 1)
UPDATE = Spans([OPTIMISER], [0], [3.0], [5.0])  # type: ignore[arg-type]
STEP = hybrid_step(build("1f1b", 3, 6), Costs(forward=1, backward=2, p2p=0.25), 4, ring_step=0.5, overlap=True, optimiser=0.5)


def timeline(spans: Spans | None = UPDATE) -> Timeline:
    return Timeline(ONE, [0, 1], [1, 3], spans)  # type: ignore[arg-type]


def test_the_makespan_ends_with_the_last_span() -> None:
    assert timeline().makespan == 5
    assert timeline(None).makespan == 3
    early = Spans([SEND], [0], [-2.0], [0.0])  # type: ignore[arg-type]
    assert timeline(early).makespan == 5
    assert timeline(Spans([], [], [], [])).makespan == 3  # type: ignore[arg-type]


def test_an_optimiser_computes_and_a_message_does_not() -> None:
    assert timeline().busy.tolist() == [5]
    assert timeline().bubble_ratio == 0
    assert timeline().device_span == 3, "of the operations"
    message = Spans([SEND], [0], [3.0], [4.0])  # type: ignore[arg-type]
    assert timeline(message).busy.tolist() == [3]
    assert timeline(message).bubble_ratio == 0.25
    longer = Spans([OPTIMISER] * 2, [1, 0], [7.0] * 2, [8.0, 12.0])  # type: ignore[arg-type]
    assert Timeline(TWO, np.zeros(4), np.ones(4), longer).busy.tolist() == [2 + 5, 2 + 1]  # type: ignore[arg-type]


def test_rows_of_spans_come_after_the_operations() -> None:
    rows = timeline().to_rows()
    assert [row["op"] for row in rows] == ["0F0", "0B0", "optimiser"]
    assert rows[:2] == timeline(None).to_rows()
    assert rows[2] == {
        "device": 0, "op": "optimiser", "kind": "optimiser", "stage": -1, "microbatch": -1, "start": 3.0, "end": 5.0,
        "activations": None, "chunk": -1, "step": -1, "peer": -1, "nbytes": -1,
    }  # fmt: skip
    names = {row["op"] for row in STEP.timeline.to_rows() if row["device"] == 4}
    assert {"1F0", "send 1F0", "receive 0F0", "receive 2B5", "reduce-scatter chunk 3", "all-gather chunk 0", "optimiser"} <= names
    types = {type(row[name]) for row in STEP.timeline.to_rows()[-80:] for name in ("stage", "chunk", "step", "peer", "nbytes")}
    assert types == {int}


def test_columns_and_choosing() -> None:
    spans = STEP.timeline.spans
    assert spans is not None
    assert spans.size == 2 * 4 * (4 * 6 + 3 * 3) + 12
    assert repr(spans) == "<Spans: 96 send, 96 receive, 36 reduce-scatter, 36 all-gather, 12 optimiser>"
    assert set(spans.of("send", "receive").kind.tolist()) == {SEND, RECEIVE}
    assert spans.where(spans.device == 5).size == 6 + 6 + 3 + 3 + 1
    assert join_spans(*(spans.of(kind) for kind in SPAN_KINDS)).to_rows() == spans.to_rows()
    assert repr(spans.of("send").of("receive")) == "<Spans: none>"
    with refusal("unknown-name", "'sends'", "'send'"):
        spans.of("sends")


def test_one_value_for_a_column_stands_for_all() -> None:
    spans = Spans([ALL_GATHER] * 3, [0, 1, 2], [0.0] * 3, [1.0] * 3, stage=0, nbytes=[1, 2, 3])  # type: ignore[arg-type]
    assert (spans.stage.tolist(), spans.peer.tolist(), spans.nbytes.tolist()) == ([0, 0, 0], [-1, -1, -1], [1, 2, 3])


def test_a_batch() -> None:
    both = Spans([OPTIMISER], [0], [[3.0], [4.0]], [[5.0], [9.0]])  # type: ignore[arg-type]
    batch = Timeline(ONE, [[0, 1], [0, 1]], [[1, 3], [1, 4]], both)  # type: ignore[arg-type]
    assert batch.makespan.tolist() == [5, 9]
    assert batch.busy.tolist() == [[5], [9]]
    assert batch.at(1).makespan == 9
    assert batch.at(1).to_rows()[-1]["start"] == 4


@in_turn("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])  # noqa: S301 - our own bytes
def test_spans_cannot_be_changed(again: Callable[[Any], Any]) -> None:
    start, end = np.array([3.0]), np.array([5.0])
    view = end[:]
    view.setflags(write=False)
    spans = again(Spans(np.array([OPTIMISER]), np.array([0]), start, view))
    start += 7
    end += 7
    assert (spans.start.tolist(), spans.end.tolist()) == ([3], [5])
    assert spans.to_rows() == UPDATE.to_rows()
    for name in ("kind", "device", "start", "end", "nbytes", "row"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(spans, name)[0] = 1


GOOD: dict[str, Any] = {"kind": [4], "device": [0], "start": [3.0], "end": [5.0]}


@in_turn(
    "columns, code, words",
    [
        ({"start": [6.0]}, "ends-before-start", "span"),
        ({"start": [float("nan")]}, "not-finite", "span"),
        ({"end": [float("inf")]}, "not-finite", "span"),
        ({"end": [np.longdouble("1e4000")]}, "not-finite", "span"),
        ({"end": [4.0, 5.0]}, "does-not-fit", "(1,) (2,)"),
        ({"start": 3.0, "end": 5.0}, "wrong-shape", "start"),
        ({"start": "3", "end": "5"}, "not-a-number", "start"),
        ({"start": ["3"]}, "not-a-number", "start"),
        ({"start": None}, "not-a-number", "start"),
        ({"start": np.array([3 + 1j])}, "not-a-number", "start"),
        ({"start": [True]}, "not-a-number", "start"),
        ({"start": [10**400]}, "not-a-number", "start"),
        ({"start": np.ma.array([3.0], mask=[True])}, "masked", "start"),
        ({"start": [[1], [2, 3]]}, "not-a-number", "start"),
        ({"kind": [5]}, "out-of-range", "kind 5"),
        ({"kind": ["send"]}, "not-a-whole-number", "kind 1"),
        ({"kind": [-1]}, "too-small", "kind 0"),
        ({"device": [-1]}, "too-small", "device 0"),
        ({"device": [0, 1]}, "wrong-length", "device 1"),
        ({"peer": [0.5]}, "not-a-whole-number", "peer"),
        ({"peer": [-2]}, "too-small", "peer -1 -2"),
        ({"nbytes": 10**30}, "not-a-whole-number", "nbytes"),
        ({"nbytes": np.array([2**63], dtype=np.uint64)}, "too-large", "nbytes"),
    ],
)
def test_refusals(columns: dict[str, Any], code: str, words: str) -> None:
    with refusal(code, *words.split()):
        Spans(**(GOOD | columns))


def test_refusals_of_a_timeline() -> None:
    for spans in ("none", [UPDATE], 3):
        with refusal("wrong-type", "Spans"):
            timeline(spans)  # type: ignore[arg-type]
    with refusal("out-of-range", "device 1", 0):
        timeline(Spans(**(GOOD | {"device": [1]})))
    with refusal("out-of-range", "device 7"):
        timeline(Spans(**(GOOD | {"peer": 7})))
    with refusal("out-of-range", "row 2"):
        timeline(Spans(**(GOOD | {"row": 2})))
    with refusal("does-not-fit", "(1,)", "()"):
        timeline(Spans(**(GOOD | {"start": [[3.0]], "end": [[5.0]]})))


column = usual_or_junk([[0], [1], -1, 0, 4, [4]])


@examples(300)
@given(kind=column, device=column, start=usual_or_junk([[0.0], [1.0]]), end=usual_or_junk([[2.0]]), peer=column)
def test_junk(kind: Any, device: Any, start: Any, end: Any, peer: Any) -> None:
    spans = outcome(Spans, kind, device, start, end, peer=peer)
    if spans is not None:
        assert (spans.end >= spans.start).all()
        assert repr(spans)
        outcome(Timeline, ONE, [0, 1], [1, 3], spans)


# The trace


def slices_of(trace: dict[str, Any]) -> dict[int, list[tuple[float, float]]]:
    tracks = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            tracks[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    return tracks


@examples(30)
@given(p2p=st.sampled_from([0, 0.5, 3, 10]), name=st.sampled_from(["gpipe", "1f1b", "hanayo", "zb-h1"]), overlap=st.booleans())
def test_no_two_slices_of_a_track_overlap(p2p: float, name: str, overlap: bool) -> None:
    """Perfetto draws the slices of one track one after the other, so long messages need tracks of their own."""
    step = hybrid_step(build(name, 3, 6), Costs(forward=1, backward=2, p2p=p2p), 2, ring_step=0.7, overlap=overlap, optimiser=1)
    trace = json.loads(json.dumps(step.timeline.to_chrome_trace(), allow_nan=False))
    tracks = slices_of(trace)
    for slices in tracks.values():
        assert all(earlier[1] <= later[0] + 1e-6 for earlier, later in pairwise(sorted(slices)))
    named = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert set(named) == set(tracks)
    assert len(set(named.values())) == len(named)
    assert sum(map(len, tracks.values())) == len(step.timeline.to_rows())
    last = max(end for slices in tracks.values() for _, end in slices)
    assert last == pytest.approx(1000 * step.makespan)


def test_tracks_beside_a_device_stand_below_it() -> None:
    trace = STEP.timeline.to_chrome_trace()
    named = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    place = {event["tid"]: event["args"]["sort_index"] for event in trace["traceEvents"] if event["name"] == "thread_sort_index"}
    in_order = [named[track] for track in sorted(place, key=place.__getitem__)]
    assert set(in_order[:4]) == {"device 0", "device 0: ring", "device 0: send", "device 0: receive"}
    assert in_order[0] == "device 0"
    assert in_order[4] == "device 1"
    hop = next(event for event in trace["traceEvents"] if event["name"] == "all-gather chunk 0")
    assert hop["args"].keys() == {"stage", "chunk", "step", "peer"}
    assert named[hop["tid"]].endswith(": ring")
    update = next(event for event in trace["traceEvents"] if event["name"] == "optimiser")
    assert update["tid"] == 0, "an optimiser is on the device's own track"
    assert update["args"] == {}


def test_a_timeline_without_spans_traces_as_before() -> None:
    trace = simulate(TWO, Costs(forward=1, backward=2)).to_chrome_trace()
    assert {event["name"] for event in trace["traceEvents"] if event["ph"] == "M"} == {"process_name", "thread_name"}


def test_a_trace_of_spans_too_late_is_refused() -> None:
    late = Timeline(ONE, [0, 1], [1, 3], Spans([4], [0], [1e249], [1e250]))  # type: ignore[arg-type]
    with refusal("too-large", "1e+250 microseconds"):
        late.to_chrome_trace()
