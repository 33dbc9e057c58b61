"""Drawing of a timeline: operations as bars, and spans (messages, hops of rings, optimisers)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.patches import Rectangle

from hybridlab.arrays import Floats, Ints
from hybridlab.palette import SPAN_COLOURS, shade_colour, shades_of
from hybridlab.plot.picture import INK, MUTED, text_width, write
from hybridlab.schedule import KINDS, Operations, W
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import ALL_GATHER, REDUCE_SCATTER, SPAN_KINDS

# Matplotlib draws the hatching in the colour of the edge.
IDLE: dict[str, Any] = {"facecolor": "#F8F9FA", "edgecolor": "#B4BBC4", "linewidth": 0.0, "hatch": "/////"}
SMALLEST = 6.0  # points; the smallest size of a microbatch's number
DRAWN_SPANS = ("optimiser", "reduce-scatter", "all-gather", "send", "receive")  # order of drawing: later kinds cover earlier kinds
SPAN_WORDS = {"send": "message sent", "receive": "message received"}
BETWEEN_RINGS = 0.04  # inches between rings that overlap in time; enough for a mark around a ring
HOLLOW = ("receive", "all-gather")  # hollow, so that a reader can distinguish them from "send" and "reduce-scatter" without colour


@dataclass(frozen=True)
class Bars:
    """The rectangles of all operations of one kind.

    Parameters
    ----------
    kind : str
    start, end : array of float, shape (operations,)
        Times since the first start, in the timeline's unit.
    top, height : array of float, shape (operations,)
        Inches from the top of the panel.
    colours : array of str, shape (operations,)
    """

    kind: str
    start: Floats
    end: Floats
    top: Floats
    height: Floats
    colours: npt.NDArray[np.str_]


@dataclass(frozen=True)
class Numbers:
    """The style in which each bar shows the number of its microbatch.

    Parameters
    ----------
    letter : bool
        Whether a bar shows the letter of the operation's kind before the number.
    size : float
        Size of the text in points.
    rows : array of bool, shape (operations,)
        The operations that get a number.
    """

    letter: bool
    size: float
    rows: npt.NDArray[np.bool_]


def origin(timeline: Timeline) -> float:
    """Return the time at which the axis begins: the first start of an operation or a span."""
    first = float(timeline.start.min())
    return first if timeline.spans is None else min(first, float(timeline.spans.earliest))


def draw_idle(axes: Axes, start: Floats, end: Floats, top: Floats, height: float) -> None:
    """Draw idle time as hatched rectangles."""
    # The rectangles fill whole rows. Bars cover them later, so the hatching stays visible only where a device is idle.
    hatched = PolyCollection(list(_corners(start, end, top, height)), gid="idle", **IDLE)
    hatched.set_hatch_linewidth(0.6)
    axes.add_collection(hatched, autolim=False)


def bars_of(timeline: Timeline, pitch: float, height: float) -> list[Bars]:
    """Return the bars of a timeline, one :class:`Bars` for each kind of operation. The rows of devices are ``pitch`` inches apart."""
    schedule, first = timeline.schedule, origin(timeline)
    shades = schedule.copies * schedule.chunks
    colours = np.array([[shade_colour(kind, shade, shades) for shade in range(shades)] for kind in KINDS])
    shade, (tops, heights) = shades_of(schedule), tops_and_heights(schedule, pitch, height)
    found = []
    for code in np.unique(schedule.kind).tolist():
        rows = np.flatnonzero(schedule.kind == code)
        times = timeline.start[rows] - first, timeline.end[rows] - first
        found.append(Bars(KINDS[code].value, *times, tops[rows], heights[rows], colours[code, shade[rows]]))
    return found


def draw_bars(axes: Axes, bars: Bars, points: float) -> None:
    """Draw the operations of one kind. A mark shows the kind without colour.

    One unit of x is ``points`` points long. The mark is a solid line near the bottom for B, a dotted line near the bottom for I, and a
    solid line near the top for W. F has no mark.
    """
    wide = (bars.end - bars.start) * points
    narrowest = float(wide[wide > 0].min(initial=72.0))  # points; 72 (an inch) if all durations are 0
    edges = np.where(wide > 0, "#FFFFFF", bars.colours)  # an operation without duration becomes a line in the colour of its kind
    style: dict[str, Any] = {"facecolors": bars.colours, "edgecolors": edges, "linewidths": min(0.9, 0.2 * narrowest)}
    body = PolyCollection(list(_corners(bars.start, bars.end, bars.top, bars.height)), gid=f"operations {bars.kind}", **style)
    axes.add_collection(body, autolim=False)
    if bars.kind == "F":
        return
    # In points: at most a tenth of the bar's height (72 points are an inch); thinner if some bars are narrow
    thick = np.minimum(7.3 * bars.height, max(0.35 * narrowest, 0.8))
    inside = 0.012 + thick / 100  # inches from the edge of the bar to the middle of the mark
    y = bars.top + (inside if bars.kind == "W" else bars.height - inside)
    # the mark ends before the left and right edges of the bar, even of a narrow bar
    margin = np.minimum(1.2 / points, (bars.end - bars.start) / 6)
    ends = np.stack([np.stack([bars.start + margin, y], -1), np.stack([bars.end - margin, y], -1)], 1)
    dashes = (0, (0.7, 0.7)) if bars.kind == "I" else "solid"
    marks = LineCollection(list(ends), gid=f"marks {bars.kind}", colors="black", alpha=0.6, linewidths=thick, linestyles=[dashes])
    marks.set_capstyle("butt")
    axes.add_collection(marks, autolim=False)


def numbers_for(timeline: Timeline, height: float, inches: float) -> Numbers:
    """Return the style in which the largest number of bars has room for the microbatch number.

    A bar is ``height`` inches high, and a unit of time is ``inches`` inches long. If two styles fill the same number of bars, the function
    prefers the style with the letter of the kind, and then the larger text. Either all operations of one kind on one device get a number,
    or none of these operations. Operations in overlapped pairs count as separate groups.
    """
    schedule = timeline.schedule
    wide = (timeline.end - timeline.start) * inches
    group = schedule.kind * schedule.devices + schedule.device
    # Bars of a pair are half as high, so a text that fits into other bars of the same kind may not fit into them.
    group[np.append(schedule.pairs, schedule.pairs + 1)] += len(KINDS) * schedule.devices
    narrowest = np.full(int(group.max()) + 1, np.inf)
    np.minimum.at(narrowest, group, np.where(wide > 0, wide, np.inf))
    # The text with the highest number and the widest letter is the widest text. Where this text fits, every text fits.
    last = str(schedule.microbatches - 1)
    widest = "W" if (schedule.kind == W).any() else "B"
    best = Numbers(False, SMALLEST, np.zeros(wide.size, dtype=bool))
    for letter in (True, False):
        # The smallest text with a letter is a point larger than the smallest number alone. The 0.01 includes the last size in the range.
        for size in np.arange(_largest(height), SMALLEST + letter - 0.01, -0.5).tolist():
            rows = (narrowest[group] > text_width(widest * letter + last, size) + 0.032) & (wide > 0)
            if rows.sum() > best.rows.sum():
                best = Numbers(letter, size, rows)
    return best


def write_numbers(axes: Axes, timeline: Timeline, numbers: Numbers, pitch: float, height: float) -> None:
    """Write the number of the microbatch into every chosen bar, with a small distance from the mark of the kind."""
    schedule = timeline.schedule
    middle = (timeline.start + timeline.end) / 2 - origin(timeline)
    shift = {"F": 0.0, "B": -0.02, "I": -0.02, "W": 0.04}  # shares of a bar's height; y increases downwards
    shift_in_pair = {"F": 0.0, "B": -0.07}
    tops, heights = tops_and_heights(schedule, pitch, height)
    for row in np.flatnonzero(numbers.rows).tolist():
        kind = KINDS[schedule.kind[row]].value
        text = f"{kind if numbers.letter else ''}{schedule.microbatch[row]}"
        size = min(numbers.size, _largest(heights[row]))
        y = tops[row] + heights[row] * (0.5 + (shift if heights[row] == height else shift_in_pair)[kind])
        write(axes, middle[row], y, text, size=size, color="black", ha="center", va="center_baseline")


def span_kinds_in(timeline: Timeline) -> list[str]:
    """Return the kinds of spans to draw: all kinds in the timeline, but not optimisers without duration."""
    spans = timeline.spans
    if spans is None:
        return []
    present = {SPAN_KINDS[code] for code in np.unique(spans.kind).tolist()}
    if not (spans.of("optimiser").end > spans.of("optimiser").start).any():
        present.discard("optimiser")
    return [kind for kind in DRAWN_SPANS if kind in present]


def lane_for(timeline: Timeline, bar: float) -> float:
    """Return the height in inches of the lane for messages and hops below a bar of ``bar`` inches.

    The lane is twice as high if a ring overlaps messages in time, or if two rings of one device overlap.
    """
    if not set(span_kinds_in(timeline)) - {"optimiser"}:
        return 0.0
    return bar if _rings_overlap_messages(timeline) or ring_levels(timeline)[1] > 1 else bar / 2


def ring_levels(timeline: Timeline) -> tuple[Ints, int]:
    """Return the level of each span in the lane of its device, and the number of levels.

    If two rings of a device overlap in time, each ring of a device has its own level. Otherwise all spans are at level 0. Only wrong
    answers to a task of the course have rings that overlap.
    """
    spans = timeline.spans
    levels = np.zeros(spans.size if spans is not None else 0, dtype=np.int64)
    if spans is None:
        return levels, 1
    hops = np.isin(spans.kind, (REDUCE_SCATTER, ALL_GATHER))
    overlap = False
    for device in np.unique(spans.device[hops]):
        end = -np.inf
        rings = [np.flatnonzero(hops & (spans.device == device) & (spans.stage == stage)) for stage in np.unique(spans.stage)]
        for level, rows in enumerate(sorted(filter(len, rings), key=lambda rows: float(spans.start[rows].min()))):
            # The end of a ring can equal the start of the next ring; a rounding error must not count as an overlap.
            overlap = overlap or bool(spans.start[rows].min() < end - 1e-9 * timeline.makespan)
            end = max(end, float(spans.end[rows].max()))
            levels[rows] = level
    # Without overlap, all rings share level 0, and the lane stays low.
    return (levels, int(levels.max()) + 1) if overlap else (0 * levels, 1)


def ring_height(strip: float, count: int) -> float:
    """Return the height of a ring in inches if ``count`` levels share a strip of ``strip`` inches."""
    return strip / count - min(BETWEEN_RINGS, strip / count / 2) if count > 1 else strip


def draw_spans(axes: Axes, timeline: Timeline, pitch: float, bar: float, lane: float, points: float) -> None:
    """Draw the spans of a timeline.

    The rows of devices are ``pitch`` inches apart, and one unit of x is ``points`` points long. A row has the operations (``bar`` inches),
    and below them a lane (``lane`` inches) for messages and hops. Sent messages are above received messages. Hops are at the height of the
    messages, or below the messages if rings and messages overlap in time. If rings of a device overlap in time, each ring has its own
    level. The optimiser is in the row of the operations. A span without duration becomes a line.
    """
    below, strip = bar + 0.02, lane - 0.03
    levels, count = ring_levels(timeline)
    if _rings_overlap_messages(timeline):
        strip = (lane - 0.05) / 2
        hop = bar + lane - 0.01 - strip
    else:
        hop = below
        # at most half a bar, because another timeline of the figure can make the lane higher
        strip = strip if count > 1 else min(strip, bar / 2 - 0.03)
    for kind in span_kinds_in(timeline):
        spans = timeline.spans.of(kind)  # type: ignore[union-attr]  # without spans the loop does not run
        start, end = spans.start - origin(timeline), spans.end - origin(timeline)
        row = spans.device.astype(np.float64) * pitch
        if kind in ("optimiser", *SPAN_WORDS):
            shift, height = (0.0, bar) if kind == "optimiser" else (below, strip)
        else:
            # ``levels`` has one entry for each span of the timeline; take the entries of this kind.
            row += levels[timeline.spans.kind == SPAN_KINDS.index(kind)] * (strip / count)  # type: ignore[union-attr]
            shift, height = hop, ring_height(strip, count)
        draw_spans_of_kind(axes, kind, start, end, row + shift, height, points)


def draw_spans_of_kind(axes: Axes, kind: str, start: Floats, end: Floats, top: Floats, height: float, points: float) -> None:
    """Draw spans of one kind. ``top`` has their upper edges in inches, and one unit of x is ``points`` points long."""
    colour = SPAN_COLOURS.get(kind, MUTED)
    wide = (end - start) * points
    line = min(0.9, 0.2 * float(wide[wide > 0].min(initial=72.0)))
    # Sent messages take the upper half of the strip, received messages the lower half, with 0.01 inches between the halves.
    if kind in SPAN_WORDS:
        half = height / 2 - 0.005
        top, height = top + (kind == "receive") * (height - half), half
    hollow = kind in HOLLOW
    style: dict[str, Any] = {"facecolors": "#FFFFFF" if hollow else colour, "linewidths": line if not hollow else max(line, 0.7)}
    edges = np.where((wide > 0) & (not hollow), "#FFFFFF", colour)
    body = PolyCollection(list(_corners(start, end, top, height)), gid=f"spans {kind}", edgecolors=edges, **style)
    axes.add_collection(body, autolim=False)
    if kind == "optimiser":  # the mark of an optimiser: a line near the top and a line near the bottom
        levels = (top + 0.03, top + height - 0.03)
        lines = [[(left, y), (right, y)] for level in levels for left, right, y in zip(start, end, level, strict=True)]
        marks = LineCollection(lines, gid="marks optimiser", colors="black", alpha=0.6, linewidths=max(1.0, 7.3 * height * 0.8))
        marks.set_capstyle("butt")
        axes.add_collection(marks, autolim=False)


def _corners(start: Floats, end: Floats, top: Floats, height: float | Floats) -> Floats:
    """Return the corners of rectangles, shape (rectangles, 4, 2)."""
    bottom = top + height
    return np.stack([np.stack(pair, -1) for pair in ((start, top), (end, top), (end, bottom), (start, bottom))], 1)


def tops_and_heights(schedule: Operations, pitch: float, height: float) -> tuple[Floats, Floats]:
    """Return the top and the height of every operation in inches.

    The two operations of an overlapped pair share one bar, and the forward takes the upper half.
    """
    tops: Floats = schedule.device.astype(np.float64) * pitch
    heights: Floats = np.full(tops.size, height)
    # ``pairs`` has the rows of the forwards; the backward of a pair is in the next row.
    heights[schedule.pairs] /= 2
    heights[schedule.pairs + 1] /= 2
    tops[schedule.pairs + 1] += height / 2
    return tops, heights


def outlines_of(timeline: Timeline, rows: Sequence[int], pitch: float, height: float) -> list[tuple[float, float, float, float]]:
    """Return the start and the end of these operations since the first start, and the top and the height of their bars in inches."""
    first = origin(timeline)
    tops, heights = tops_and_heights(timeline.schedule, pitch, height)
    times = timeline.start - first, timeline.end - first
    return [(float(times[0][row]), float(times[1][row]), float(tops[row]), float(heights[row])) for row in rows]


def draw_outline(axes: Axes, start: float, end: float, top: float, height: float, unit: float, gid: str) -> float:
    """Draw a thick outline and return its right end. One inch of x is ``unit`` units of time."""
    end = max(end, start + 0.03 * unit)  # at least 0.03 inches, so that an operation without duration is visible
    # A wider white line under the outline makes the outline visible on dark bars.
    for colour, width in (("white", 3.6), (INK, 2.0)):
        outline = Rectangle((start, top), end - start, height, fill=False, edgecolor=colour, linewidth=width, clip_on=False, zorder=5)
        outline.set_joinstyle("miter")
        outline.set_gid(gid if colour == INK else "halo")
        axes.add_patch(outline)
    return end


def _largest(height: float) -> float:
    """Return the largest text size in points for a bar of ``height`` inches."""
    return max(min(8.5, 35 * height), SMALLEST)


def _rings_overlap_messages(timeline: Timeline) -> bool:
    """Return whether, on some device, a ring starts before the last message of this device has ended."""
    if timeline.spans is None:
        return False
    hops, messages = timeline.spans.of("reduce-scatter", "all-gather"), timeline.spans.of("send", "receive")
    first, last = np.full(timeline.schedule.devices, np.inf), np.full(timeline.schedule.devices, -np.inf)
    np.minimum.at(first, hops.device, hops.start)
    np.maximum.at(last, messages.device, messages.end)
    return bool((first <= last).any())
