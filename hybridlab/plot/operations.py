"""Operations as bars: a colour and a mark for the kind, a number for the microbatch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from hybridlab.arrays import Floats
from hybridlab.palette import shade_colour, shades_of
from hybridlab.plot.picture import text_width, write
from hybridlab.schedule import KINDS, Operations, W
from hybridlab.timeline import Timeline

IDLE: dict[str, Any] = {"facecolor": "#F8F9FA", "edgecolor": "#B4BBC4", "linewidth": 0.0, "hatch": "/////"}
SMALLEST = 6.0  # points


@dataclass(frozen=True)
class Bars:
    """Operations of one kind as rectangles: times from the first start on, inches from the top and of height, colours."""

    kind: str
    start: Floats
    end: Floats
    top: Floats
    height: Floats
    colours: npt.NDArray[np.str_]


def origin(timeline: Timeline) -> float:
    """Return the first start of all that a timeline holds, where its time axis begins."""
    first = float(timeline.start.min())
    return first if timeline.spans is None else min(first, float(timeline.spans.earliest))


def corners(start: Floats, end: Floats, top: Floats, height: float | Floats) -> Floats:
    """Return the corners of rectangles, shape (rectangles, 4, 2)."""
    bottom = top + height
    return np.stack([np.stack(pair, -1) for pair in ((start, top), (end, top), (end, bottom), (start, bottom))], 1)


def draw_idle(axes: Axes, start: Floats, end: Floats, top: Floats, height: float) -> None:
    """Hatch rectangles in which nothing runs; operations are drawn over them."""
    hatched = PolyCollection(list(corners(start, end, top, height)), gid="idle", **IDLE)
    hatched.set_hatch_linewidth(0.6)
    axes.add_collection(hatched, autolim=False)


def draw_bars(axes: Axes, bars: Bars, points: float) -> None:
    """Draw operations of one kind with the mark that tells it apart without colour; a unit of x is ``points`` long.

    The mark is a line near the bottom for B, a dotted one for I, a line near the top for W, nothing for F.
    """
    wide = (bars.end - bars.start) * points
    narrowest = float(wide[wide > 0].min(initial=72.0))
    edges = np.where(wide > 0, "#FFFFFF", bars.colours)  # what takes no time is a stroke of its own colour
    style: dict[str, Any] = {"facecolors": bars.colours, "edgecolors": edges, "linewidths": min(0.9, 0.2 * narrowest)}
    body = PolyCollection(list(corners(bars.start, bars.end, bars.top, bars.height)), gid=f"operations {bars.kind}", **style)
    axes.add_collection(body, autolim=False)
    if bars.kind == "F":
        return
    thick = np.minimum(7.3 * bars.height, max(0.35 * narrowest, 0.8))  # points
    inside = 0.012 + thick / 100
    y = bars.top + (inside if bars.kind == "W" else bars.height - inside)
    margin = np.minimum(1.2 / points, (bars.end - bars.start) / 6)
    ends = np.stack([np.stack([bars.start + margin, y], -1), np.stack([bars.end - margin, y], -1)], 1)
    dashes = (0, (0.7, 0.7)) if bars.kind == "I" else "solid"
    marks = LineCollection(list(ends), gid=f"marks {bars.kind}", colors="black", alpha=0.6, linewidths=thick, linestyles=[dashes])
    marks.set_capstyle("butt")
    axes.add_collection(marks, autolim=False)


def places_of(schedule: Operations, pitch: float, height: float) -> tuple[Floats, Floats]:
    """Return the top and the height of every operation in inches: those of an overlapped pair share a bar, the forward above."""
    tops: Floats = schedule.device.astype(np.float64) * pitch
    heights: Floats = np.full(tops.size, height)
    heights[schedule.pairs] /= 2
    heights[schedule.pairs + 1] /= 2
    tops[schedule.pairs + 1] += height / 2
    return tops, heights


def bars_of(timeline: Timeline, pitch: float, height: float) -> list[Bars]:
    """Return the operations of a timeline, kind by kind; a device's row is ``pitch`` inches below the one before."""
    schedule, first = timeline.schedule, origin(timeline)
    shades = schedule.copies * schedule.chunks
    colours = np.array([[shade_colour(kind, shade, shades) for shade in range(shades)] for kind in KINDS])
    shade, (tops, heights) = shades_of(schedule), places_of(schedule, pitch, height)
    made = []
    for code in np.unique(schedule.kind).tolist():
        rows = np.flatnonzero(schedule.kind == code)
        times = timeline.start[rows] - first, timeline.end[rows] - first
        made.append(Bars(KINDS[code].value, *times, tops[rows], heights[rows], colours[code, shade[rows]]))
    return made


@dataclass(frozen=True)
class Numbers:
    """What is written into the bars: the kind's letter or not, at which size (points), and into which rows."""

    letter: bool
    size: float
    rows: npt.NDArray[np.bool_]


def numbers_for(timeline: Timeline, height: float, inches: float) -> Numbers:
    """Return the largest writing that fits the most bars; a unit of time is ``inches`` long.

    Of the operations of one kind on one device all get their number or none; those of overlapped pairs count apart.
    """
    schedule = timeline.schedule
    wide = (timeline.end - timeline.start) * inches
    group = schedule.kind * schedule.devices + schedule.device
    group[np.append(schedule.pairs, schedule.pairs + 1)] += len(KINDS) * schedule.devices
    narrowest = np.full(int(group.max()) + 1, np.inf)
    np.minimum.at(narrowest, group, np.where(wide > 0, wide, np.inf))
    last = str(schedule.microbatches - 1)
    widest = "W" if (schedule.kind == W).any() else "B"
    best = Numbers(False, SMALLEST, np.zeros(wide.size, dtype=bool))
    for letter in (True, False):
        for size in np.arange(_largest(height), SMALLEST + letter - 0.01, -0.5).tolist():
            rows = (narrowest[group] > text_width(widest * letter + last, size) + 0.032) & (wide > 0)
            if rows.sum() > best.rows.sum():
                best = Numbers(letter, size, rows)
    return best


def write_numbers(axes: Axes, timeline: Timeline, numbers: Numbers, pitch: float, height: float) -> None:
    """Write into every chosen bar its microbatch, a little off the mark of its kind."""
    schedule = timeline.schedule
    middle = (timeline.start + timeline.end) / 2 - origin(timeline)
    aside = {"F": 0.0, "B": -0.02, "I": -0.02, "W": 0.04}
    half = {"F": 0.0, "B": -0.07}
    tops, heights = places_of(schedule, pitch, height)
    for row in np.flatnonzero(numbers.rows).tolist():
        kind = KINDS[schedule.kind[row]].value
        text = f"{kind if numbers.letter else ''}{schedule.microbatch[row]}"
        size = min(numbers.size, _largest(heights[row]))
        y = tops[row] + heights[row] * (0.5 + (aside if heights[row] == height else half)[kind])
        write(axes, middle[row], y, text, size=size, color="black", ha="center", va="center_baseline")


def _largest(height: float) -> float:
    """Return the largest writing in a bar, in points."""
    return max(min(8.5, 35 * height), SMALLEST)
