"""What devices do beside the operations: messages and hops of a ring in a lane below the bars, the optimiser among them."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from hybridlab.arrays import Floats
from hybridlab.palette import SPAN_COLOURS
from hybridlab.plot.operations import corners, origin
from hybridlab.plot.picture import MUTED
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import SPAN_KINDS

KINDS = ("optimiser", "reduce-scatter", "all-gather", "send", "receive")  # as they are drawn, one over the other
WORDS = {"send": "message sent", "receive": "message received"}
HOLLOW = ("receive", "all-gather")  # told apart from the full ones without colour


def kinds_in(timeline: Timeline) -> list[str]:
    """Return the kinds of spans to draw: all there are, but no optimiser that never takes any time."""
    spans = timeline.spans
    if spans is None:
        return []
    there = {SPAN_KINDS[code] for code in np.unique(spans.kind).tolist()}
    if not (spans.of("optimiser").end > spans.of("optimiser").start).any():
        there.discard("optimiser")
    return [kind for kind in KINDS if kind in there]


def lane_for(timeline: Timeline, bar: float) -> float:
    """Return the inches that messages and hops need below a bar of ``bar`` inches: twice as many where they meet."""
    if not set(kinds_in(timeline)) - {"optimiser"}:
        return 0.0
    return bar if _meet(timeline) else bar / 2


def _meet(timeline: Timeline) -> bool:
    """Return whether a device is in a ring before its last message has come or gone."""
    if timeline.spans is None:
        return False
    hops, messages = timeline.spans.of("reduce-scatter", "all-gather"), timeline.spans.of("send", "receive")
    first, last = np.full(timeline.schedule.devices, np.inf), np.full(timeline.schedule.devices, -np.inf)
    np.minimum.at(first, hops.device, hops.start)
    np.maximum.at(last, messages.device, messages.end)
    return bool((first <= last).any())


def draw_spans(axes: Axes, timeline: Timeline, pitch: float, bar: float, lane: float, points: float) -> None:
    """Draw the spans of a timeline; a device's row is ``pitch`` inches below the one before, a unit of x ``points`` long.

    Below the ``bar`` of operations the ``lane`` holds messages, sent ones above those received, and hops: in the same
    place, or below them where they meet. The optimiser stands among the operations. What takes no time is a stroke.
    """
    below, strip = bar + 0.02, lane - 0.03
    if _meet(timeline):
        strip = (lane - 0.05) / 2
    for kind in kinds_in(timeline):
        spans = timeline.spans.of(kind)  # type: ignore[union-attr]  # there are some
        start, end = spans.start - origin(timeline), spans.end - origin(timeline)
        row = spans.device.astype(np.float64) * pitch
        shift = {"optimiser": 0.0, "send": below, "receive": below}.get(kind, bar + lane - 0.01 - strip)
        draw_kind(axes, kind, start, end, row + shift, bar if kind == "optimiser" else strip, points)


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
    if kind == "optimiser":  # a line near the top and one near the bottom
        levels = (top + 0.03, top + height - 0.03)
        lines = [[(left, y), (right, y)] for level in levels for left, right, y in zip(start, end, level, strict=True)]
        marks = LineCollection(lines, gid="marks optimiser", colors="black", alpha=0.6, linewidths=max(1.0, 7.3 * height * 0.8))
        marks.set_capstyle("butt")
        axes.add_collection(marks, autolim=False)
