"""What devices do beside the operations: messages and hops of a ring in a lane below the bars, the optimizer among them."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from hybridlab.inputs import Floats
from hybridlab.palette import SPAN_COLOURS
from hybridlab.plot.operations import corners, origin
from hybridlab.plot.picture import MUTED
from hybridlab.spans import SPAN_KINDS
from hybridlab.timeline import Timeline

KINDS = ("optimizer", "reduce-scatter", "all-gather", "send", "receive")  # as they are drawn, one over the other
WORDS = {"send": "message sent", "receive": "message received"}
HOLLOW = ("receive", "all-gather")  # told apart from the full ones without colour


def kinds_in(timeline: Timeline) -> list[str]:
    """Return the kinds of spans to draw: all there are, but no optimizer that never takes any time."""
    spans = timeline.spans
    if spans is None:
        return []
    there = {SPAN_KINDS[code] for code in np.unique(spans.kind).tolist()}
    if not (spans.of("optimizer").end > spans.of("optimizer").start).any():
        there.discard("optimizer")
    return [kind for kind in KINDS if kind in there]


def draw_spans(axes: Axes, timeline: Timeline, pitch: float, bar: float, lane: float, points: float) -> None:
    """Draw the spans of a timeline; a device's row is ``pitch`` inches below the one before, a unit of x ``points`` long.

    Below the ``bar`` of operations the ``lane`` holds hops in its whole height, messages sent in its upper half, and received
    in its lower one. The optimizer stands among the operations. What takes no time is a stroke.
    """
    for kind in kinds_in(timeline):
        spans = timeline.spans.of(kind)  # type: ignore[union-attr]  # there are some
        start, end = spans.start - origin(timeline), spans.end - origin(timeline)
        row = spans.device.astype(np.float64) * pitch
        draw_kind(axes, kind, start, end, row if kind == "optimizer" else row + bar + 0.02, bar if kind == "optimizer" else lane, points)


def draw_kind(axes: Axes, kind: str, start: Floats, end: Floats, top: Floats, height: float, points: float) -> None:
    """Draw spans of one kind in lanes of ``height`` inches that begin at ``top``; a unit of x is ``points`` long."""
    colour = SPAN_COLOURS.get(kind, MUTED)
    wide = (end - start) * points
    line = min(0.9, 0.2 * float(wide[wide > 0].min(initial=72.0)))
    if kind in WORDS:
        half = height / 2 - 0.005
        top, height = top + (kind == "receive") * (height - half), half
    hollow = kind in HOLLOW
    style: dict[str, Any] = {"facecolors": "#FFFFFF" if hollow else colour, "linewidths": line if not hollow else max(line, 0.7)}
    edges = np.where((wide > 0) & (not hollow), "#FFFFFF", colour)
    axes.add_collection(
        PolyCollection(list(corners(start, end, top, height)), gid=f"spans {kind}", edgecolors=edges, **style), autolim=False
    )
    if kind == "optimizer":  # a line near the top and one near the bottom
        levels = (top + 0.03, top + height - 0.03)
        lines = [[(left, y), (right, y)] for level in levels for left, right, y in zip(start, end, level, strict=True)]
        marks = LineCollection(lines, gid="marks optimizer", colors="black", alpha=0.6, linewidths=max(1.0, 7.3 * height * 0.8))
        marks.set_capstyle("butt")
        axes.add_collection(marks, autolim=False)
