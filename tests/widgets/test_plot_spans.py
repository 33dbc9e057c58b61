"""Test figures of whole steps: messages, hops and optimisers are drawn where and when the timeline says.

They must also look different in grey.
"""

from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

from hybridlab import Costs, Timeline, build, hybrid_step, plot, simulate
from hybridlab.course.checking.drawing import Drawing
from hybridlab.palette import KIND_COLOURS, SPAN_COLOURS
from hybridlab.plot.marks import marked_figure
from hybridlab.step import with_rings
from hybridlab.timeline.spans import SPAN_KINDS, Spans

COSTS = {"forward": 50, "backward": 80}


def step(name: str, devices: int, microbatches: int, replicas: int, p2p: float = 0.0, **changes: Any) -> Timeline:
    return hybrid_step(build(name, devices, microbatches), Costs(**COSTS, p2p=p2p), replicas, **changes).timeline


STEPS = {
    "the report's": step("1f1b", 2, 8, 2, ring_step=20),
    "two rings a device, beside computing": step("interleaved", 4, 4, 3, p2p=8, ring_step=30, overlap=True, optimiser=30),
    "one replica": step("zb-h1", 4, 8, 1, p2p=8, optimiser=30),
    "one device": step("gpipe", 1, 2, 1),
    "rings that take no time": step("gpipe", 2, 3, 4),
    "sixteen ranks": step("1f1b", 4, 8, 4, ring_step=5, optimiser=0.5),
}
each_step = in_turn("timeline", STEPS.values())


@cache
def drawn_step(timeline: Timeline, activations: bool) -> plot.Picture:
    """Return the figure of a step, drawn once for all tests that only look at it."""
    return plot.timeline(timeline, activations=activations)


def panel(timeline: Timeline, activations: bool = True) -> Axes:
    (axes,) = [axes for axes in drawn_step(timeline, activations).figure.axes if axes.get_gid() == "timeline"]
    return axes


def rectangles(axes: Axes, gid: str) -> np.ndarray:
    """Return left, right, top and bottom of each rectangle: times, and inches below the top of the panel."""
    found = [each for each in axes.collections if each.get_gid() == gid and isinstance(each, PolyCollection)]
    if not found:
        return np.empty((0, 4))
    corners = np.array([path.vertices[:4] for path in found[0].get_paths()])
    return np.concatenate([corners.min(1), corners.max(1)], 1)[:, [0, 2, 1, 3]]


@each_step
def test_every_span_is_a_bar_from_its_start_to_its_end_below_the_bars_of_its_rank(timeline: Timeline) -> None:
    axes = panel(timeline)
    rows = rectangles(axes, "idle")
    for kind in SPAN_KINDS:
        wanted = [row for row in timeline.to_rows() if row["op"].split()[0] == kind]
        if kind == "optimiser" and not any(row["end"] > row["start"] for row in wanted):
            wanted = []
        drawn = rectangles(axes, f"spans {kind}")
        assert [tuple(each[:2]) for each in drawn] == [(row["start"], row["end"]) for row in wanted]
        for row, (_, _, top, bottom) in zip(wanted, drawn, strict=True):
            bar = rows[row["device"]]
            below = rows[row["device"] + 1][2] if row["device"] + 1 < len(rows) else np.inf
            inside = (bar[2] <= top < bottom <= bar[3]) if kind == "optimiser" else bar[3] < top < bottom < below
            assert inside, f"{row['op']} stands outside its lane"


def test_messages_sent_and_received_stand_one_above_the_other() -> None:
    axes = panel(STEPS["one replica"])
    sent, received = rectangles(axes, "spans send"), rectangles(axes, "spans receive")
    assert sent[:, 3].min() < received[:, 2].min()
    assert set(np.round(sent[:, 3] - sent[:, 2], 9)) == set(np.round(received[:, 3] - received[:, 2], 9))


def test_hops_keep_clear_of_messages_that_they_meet() -> None:
    axes = panel(STEPS["two rings a device, beside computing"])
    rows, received = rectangles(axes, "idle"), rectangles(axes, "spans receive")
    for kind in ("reduce-scatter", "all-gather"):
        for top in rectangles(axes, f"spans {kind}")[:, 2]:
            mine = [low for low in received[:, 3] if rows[rows[:, 3] < top][-1, 3] < low < top + 0.1]
            assert max(mine) < top


def test_activations_keep_clear_of_the_lane() -> None:
    axes = panel(STEPS["the report's"])
    lowest = rectangles(axes, "spans receive")[0, 3]
    curve = next(line for line in axes.lines if line.get_gid() == "activations")
    tops = (curve.get_transform() - axes.transData).transform([[0, curve.get_ydata().max()]])
    assert tops[0, 1] > lowest


def test_kinds_of_spans_differ_without_colour() -> None:
    axes = panel(STEPS["two rings a device, beside computing"])
    white = {}
    for kind in SPAN_KINDS:
        (bars,) = [each for each in axes.collections if each.get_gid() == f"spans {kind}"]
        white[kind] = bool((bars.get_facecolor()[:, :3] == 1).all())
    assert white == {"send": False, "receive": True, "reduce-scatter": False, "all-gather": True, "optimiser": False}
    marks = [each for each in axes.collections if each.get_gid() == "marks optimiser"]
    assert len(marks[0].get_segments()) == 2 * 12  # a line near the top and one near the bottom of each


@in_turn("one, other", list(combinations(SPAN_COLOURS, 2)))
def test_colours_of_spans_differ_from_each_other_and_from_operations(one: str, other: str) -> None:
    colours = np.array([to_rgb(colour) for colour in (SPAN_COLOURS[one], SPAN_COLOURS[other], *KIND_COLOURS.values())])
    apart = np.linalg.norm(colours[:2, None] - colours[None], axis=-1)
    assert (apart[apart > 0] > 0.2).all()
    assert (apart == 0).sum() == 2  # each one equals itself


@in_turn("timeline, activations", product(STEPS.values(), (True, False)))
def test_texts_stay_on_the_page_and_clear_of_each_other(timeline: Timeline, activations: bool) -> None:
    figure = drawn_step(timeline, activations)
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts = [text for axes in figure.axes for text in axes.texts if text.get_text()]
    boxes = np.array([text.get_window_extent(renderer).extents for text in texts])
    width, height = renderer.get_canvas_width_height()
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] <= (width, height)).all()
    shared = np.minimum(boxes[:, None, 2:], boxes[:, 2:]) - np.maximum(boxes[:, None, :2], boxes[:, :2])
    assert (shared.min(axis=-1)[~np.eye(len(boxes), dtype=bool)] <= 1).all()


@each_step
def test_the_legend_names_what_is_drawn_and_nothing_else(timeline: Timeline) -> None:
    figure = drawn_step(timeline, True)
    drawn = {each.get_gid() for axes in figure.axes if axes.get_gid() == "timeline" for each in axes.collections}
    words = {"send": "message sent", "receive": "message received"}
    named = {text.get_text() for text in figure.axes[0].texts}
    for kind in SPAN_KINDS:
        assert (words.get(kind, kind) in named) == (f"spans {kind}" in drawn)


def test_ranks_are_named_and_the_step_is_told_in_words() -> None:
    figure = plot.timeline(STEPS["the report's"])
    names = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert [name for name in names if name.startswith(("rank", "device"))] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert figure.alt_text == (
        "Timeline of 1F1B, 2 devices a pipeline, 2 replicas, 8 microbatches: makespan 1210 ms, bubble ratio 0.140, "
        "peak activations, in microbatches by device: 2, 1, 2, 1; "
        "beside the operations: 32 messages, 8 hops of rings from 1170 to 1210 ms."
    )
    assert plot.alt_text(STEPS["one replica"]).endswith("beside the operations: 48 messages, 4 optimisers of 30 ms.")
    assert plot.alt_text(STEPS["one device"]).endswith("in microbatches: 2.")


def test_time_starts_at_the_first_span_if_that_is_first() -> None:
    plain = simulate(build("1f1b", 2, 2), Costs(**COSTS))
    early = Timeline(plain.schedule, plain.start, plain.end, Spans(kind=[0], device=[1], start=[-40.0], end=[-10.0], peer=[0]))
    axes = panel(early)
    assert axes.get_xlim() == (0, early.makespan) == (0, plain.makespan + 40)
    assert [tuple(each[:2]) for each in rectangles(axes, "spans send")] == [(0, 30)]
    assert rectangles(axes, "operations F")[:, 0].min() == 40


def test_steps_can_be_compared_with_timelines_without_spans() -> None:
    figure = plot.compare({"step": STEPS["the report's"], "pipeline": simulate(build("1f1b", 2, 8), Costs(**COSTS))})
    assert "beside the operations" in figure.alt_text.split("pipeline (")[0]
    assert "beside the operations" not in figure.alt_text.split("pipeline (")[1]


def test_more_messages_and_hops_than_can_be_drawn_are_refused() -> None:
    with refusal("too-large", "4 devices", "1,203 operations and spans"):
        plot.timeline(step("1f1b", 2, 300, 2, ring_step=1))


TWO_STAGES = simulate(build("interleaved", 2, 2, 2), Costs(forward=10, backward=20))  # device 0 has stages 0 and 2


def hops_of(axes: Axes) -> np.ndarray:
    return np.concatenate([rectangles(axes, f"spans {kind}") for kind in ("reduce-scatter", "all-gather")])


def test_rings_of_a_device_that_overlap_in_time_do_not_cover_each_other() -> None:
    axes = panel(with_rings(TWO_STAGES, [(60, 100), (300, 320), (40, 90), (300, 320)]), activations=False)
    boxes = hops_of(axes)
    for (left, right, top, bottom), (start, end, above, below) in combinations(boxes.tolist(), 2):
        assert min(right, end) <= max(left, start) + 1e-9 or min(bottom, below) <= max(top, above) + 1e-9
    early, late = (boxes[boxes[:, 0] == start][0, 2:] for start in (40, 60))
    assert early[1] < late[0], "the ring that starts first is above"
    rows = rectangles(axes, "idle")
    assert (boxes[:, 2] > rows[0, 3]).all()
    assert boxes[boxes[:, 0] < 300][:, 3].max() < rows[1, 2]


def test_rings_that_follow_each_other_are_at_one_height_also_below_a_timeline_whose_rings_overlap() -> None:
    apart = [(60, 100), (300, 320), (10, 60), (280, 300)]
    overlapping = {0: (60, 100), 1: (300, 320), 2: (40, 90), 3: (280, 300)}
    figure = plot.compare({"a": with_rings(TWO_STAGES, overlapping), "b": with_rings(TWO_STAGES, apart)}, activations=False).figure
    _, below = [axes for axes in figure.axes if axes.get_gid() == "timeline"]
    boxes = hops_of(below)
    boxes = boxes[boxes[:, 0] < 280]
    alone = hops_of(panel(with_rings(TWO_STAGES, apart), activations=False))
    assert np.ptp(boxes[:, 2]) == pytest.approx(0)
    assert boxes[0, 3] - boxes[0, 2] == pytest.approx(alone[0, 3] - alone[0, 2])


def test_the_mark_of_a_wrong_operation_surrounds_it_also_if_time_starts_late() -> None:
    timeline = simulate(build("1f1b", 2, 2), Costs(**COSTS))
    late = Timeline(timeline.schedule, timeline.start + 64, timeline.end + 64)
    row = [str(op) for op in late.ops].index("1B0")
    figure = marked_figure({"yours": late}, {}, "words", rows=[row])
    (axes,) = [axes for axes in figure.axes if axes.get_gid() == "timeline"]
    (outline,) = [each for each in axes.patches if each.get_gid() == "wrong"]
    bars = {left: (left, right, top, bottom) for left, right, top, bottom in rectangles(axes, "operations B").tolist()}
    left, right, top, bottom = bars[timeline.start[row]]
    assert (outline.get_x(), outline.get_x() + outline.get_width()) == (left, right)
    assert (outline.get_y(), outline.get_y() + outline.get_height()) == pytest.approx((top, bottom))


def test_marked_operations_have_an_outline_without_a_cross_and_the_texts_name_them() -> None:
    timeline = simulate(build("1f1b", 2, 8), Costs(**COSTS))
    path = [span.op for span in timeline.breakdown().critical_path]
    late = Timeline(timeline.schedule, timeline.start + 64, timeline.end + 64)
    alone = plot.timeline(late, marked=map(str, path), marked_as="critical path")
    two = plot.compare({"a": late, "b": timeline}, marked={"b": [path[0], "0F0"]})
    assert alone.alt_text.endswith(f". Critical path: {', '.join(map(str, path[:16]))} and {len(path) - 16} more.")
    assert two.alt_text.endswith(". Marked: 0F0.")
    assert "Marked" not in two.alt_text.split(" b ")[0]
    for figure, name, wanted in ((alone, "critical path", [path]), (two, "marked", [[], path[:1]])):
        assert name in {text.get_text() for text in figure.axes[0].texts}
        panels = [axes for axes in figure.figure.axes if axes.get_gid() == "timeline"]
        for axes, ops in zip(panels, wanted, strict=True):
            outlines = [each for each in axes.patches if each.get_gid() == "marked"]
            places = {(each.get_x(), each.get_x() + each.get_width(), round(each.get_y(), 9)) for each in outlines}
            bars = np.concatenate([rectangles(axes, f"operations {kind}") for kind in "FB"])
            times = {(timeline.start[row], timeline.end[row]) for row, op in enumerate(timeline.ops) if op in ops}
            assert {each[:2] for each in places} == times
            assert len(outlines) == len(ops)
            assert places <= {(left, right, round(top, 9)) for left, right, top, _ in bars.tolist()}
            assert not [line for line in axes.lines if line.get_marker() == "X"]
    assert "marked" not in {text.get_text() for text in plot.timeline(late).axes[0].texts}


@in_turn(
    "rings, code, words",
    [
        (3, "not-a-list", "rings must have a start and an end for each stage"),
        ({}, "empty", "rings is empty"),
        ([(1, 2)], "wrong-length", "one ring for each of the 4 stages, not 1"),
        ({4: (1, 2)}, "too-large", "the stage of a ring must be at most 3, not 4"),
        ({1: (1, 2, 3)}, "wrong-shape", "the ring of stage 1 must be a start and an end"),
        ({1: (2, 1)}, "ends-before-start", "the ring of stage 1 ends at 1, before it starts at 2"),
        ({1: (1, np.inf)}, "not-finite", "the ring of stage 1"),
    ],
)
def test_rings_that_cannot_be_drawn_are_refused_by_their_stage(rings: Any, code: str, words: str) -> None:
    with refusal(code, words):
        with_rings(TWO_STAGES, rings)


def test_a_stage_that_is_left_out_has_no_ring() -> None:
    spans = with_rings(TWO_STAGES, {3: (60, 100)}).spans
    assert spans is not None
    assert [(row["device"], row["stage"], row["start"], row["end"]) for row in spans.to_rows()] == [(1, 3, 60, 80), (1, 3, 80, 100)]


def test_the_mark_of_a_wrong_ring_surrounds_this_ring_alone() -> None:
    figure = Drawing.of_rings([60, 300, 40, 300], [100, 320, 90, 320], TWO_STAGES, None, [0]).figure()
    assert figure is not None
    (axes,) = [axes for axes in figure.figure.axes if axes.get_gid() == "timeline"]
    (outline,) = [each for each in axes.patches if each.get_gid() == "wrong"]
    top, bottom = outline.get_y(), outline.get_y() + outline.get_height()
    boxes = {left: (above, below) for left, _, above, below in hops_of(axes).tolist()}
    assert top < boxes[60][0] < boxes[60][1] < bottom
    assert boxes[40][1] < top
