"""The figure of an answer to a task: the answer's timeline above the correct timeline, with marks at wrong operations and stops."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from hybridlab.plot.bars import draw_outline, origin, outlines_of, ring_height, ring_levels
from hybridlab.plot.figures import draw_timelines
from hybridlab.plot.panel import AXIS, LEFT, SAMPLE, Entry, Frame, frame_for
from hybridlab.plot.picture import INK, MUTED, Picture, after_a_number, number, sheet, text_width, write
from hybridlab.timeline import Timeline

PAD = 0.05  # inches between the text of a stop and the edge of its box
SCALE, INSET = 1.05, 0.7  # inches: height of the scale; distance of its ends from the ends of the time axis


class Stopped(NamedTuple):
    """A box at the place where a device stops: device, time, text, and whether the box has the cross of a wrong operation."""

    device: int
    time: float
    text: str
    wrong: bool


def marked_figure(
    timelines: Mapping[str, Timeline],
    results: Mapping[str, str],
    words: str,
    rows: Sequence[int] = (),
    rings: Sequence[tuple[int, int, float, float]] = (),
    stops: Sequence[Stopped] = (),
    scale: Mapping[str, float] | None = None,
) -> Picture:
    """Return a figure of timelines on one time axis, with marks in the first timeline.

    Parameters
    ----------
    timelines : mapping of str to Timeline
        Timelines by their titles.
    results : mapping of str to str
        Title of a timeline -> the text on the right of the title. The default text is the makespan and the bubble ratio.
    words : str
        The description of the figure in words (alternative text).
    rows : sequence of int
        The rows of the wrong operations. Each operation gets a thick outline and a cross.
    rings : sequence of (stage, device, start, end)
        The wrong rings. Each ring gets the same marks in the lane below the operations.
    stops : sequence of Stopped
        The devices that stop. Each device gets a dashed box with a text.
    scale : mapping of str to float, optional
        Name -> time. A scale below the legend shows these times as dots. The time with the name of the first timeline is below the scale,
        in bold.
    """
    drawn = list(timelines.values())
    frame = frame_for(drawn, activations=True)
    size = max(6.0, min(8.0, 33 * frame.bar))  # points; the bar limits the size
    wide = [text_width(stop.text, size) + 2 * PAD for stop in stops]
    # For each stop, the length of the time axis (in units of time) at which its box ends exactly at the end of the axis.
    ends = [stop.time * AXIS / (AXIS - each) for stop, each in zip(stops, wide, strict=True)]
    frame = frame_for(drawn, activations=True, end=max([frame.span, *ends]))
    more = [Entry("wrong", _draw_wrong_sample)] * bool(rows or rings or any(stop.wrong for stop in stops))
    more += [Entry("device stops", _draw_stop_sample)] * bool(stops)
    figure = draw_timelines(timelines, "", frame, words, results, more, SCALE if scale else 0.0)
    if scale:
        _draw_scale(figure, scale, next(iter(timelines)), drawn[0].unit)
    # The first timeline is the answer, which gets all marks.
    axes = next(each for each in figure.axes if each.get_gid() == "timeline")
    yours = drawn[0]
    first, unit = origin(yours), frame.span / AXIS  # unit: units of time in an inch
    for outline in outlines_of(yours, rows, frame.pitch, frame.bar):
        _mark(axes, *outline, unit)
    for stage, device, start, end in rings:
        top, height = _level_of(yours, stage, device, frame)
        _mark(axes, start - first, end - first, top, height, unit)
    for stop, inches in zip(stops, wide, strict=True):
        _draw_stop(axes, stop, inches, size, frame, unit)
    return figure


def _level_of(timeline: Timeline, stage: int, device: int, frame: Frame) -> tuple[float, float]:
    """Return the top and the height in inches of the level that contains a ring."""
    levels, count = ring_levels(timeline)
    spans = timeline.spans
    level = int(levels[(spans.stage == stage) & (spans.device == device)][0]) if spans is not None else 0
    strip = frame.lane - 0.03
    return device * frame.pitch + frame.bar + 0.01 + level * strip / count, ring_height(strip, count) + 0.02


def _mark(axes: Axes, start: float, end: float, top: float, height: float, unit: float) -> None:
    """Draw a thick outline, and a cross on the middle of its upper edge. One inch of x is ``unit`` units of time."""
    end = draw_outline(axes, start, end, top, height, unit, "wrong")
    _draw_cross(axes, (start + end) / 2, top)


def _draw_cross(axes: Axes, x: float, y: float) -> None:
    """Draw the cross of a wrong operation, in front of all bars."""
    axes.plot([x], [y], marker="X", markersize=7, color=INK, markeredgecolor="white", markeredgewidth=0.9, clip_on=False, zorder=7)


def _draw_stop(axes: Axes, stop: Stopped, inches: float, size: float, frame: Frame, unit: float) -> None:
    """Draw the box of a device that stops, ``inches`` wide. One inch of x is ``unit`` units of time."""
    top = stop.device * frame.pitch
    box = Rectangle((stop.time, top), inches * unit, frame.bar, facecolor="white", edgecolor=INK, linewidth=1.4, zorder=6)
    box.set(linestyle=(0, (2.5, 1.2)), clip_on=False, gid="stop")
    axes.add_patch(box)
    middle = top + frame.bar / 2
    write(axes, stop.time + PAD * unit, middle, stop.text, size=size, va="center_baseline", zorder=8)
    if stop.wrong:
        _draw_cross(axes, stop.time, top)


def _draw_scale(figure: Picture, scale: Mapping[str, float], yours: str, unit: str | None) -> None:
    """Draw the scale: times as dots on a line, from the shortest to the longest. Names that would overlap are in two rows."""
    low, high = min(scale.values()), max(scale.values())
    axes = sheet(figure, LEFT, figure.get_figheight() - SCALE, AXIS, SCALE, AXIS)
    axes.set_gid("scale")
    inch, line = (AXIS - 2 * INSET) / ((high - low) or 1.0), SCALE - 0.4  # inches for a unit of time; y of the line in inches
    axes.plot([INSET, AXIS - INSET], [line, line], color=MUTED, linewidth=1.2, solid_capstyle="round")
    right_end = 0.0  # right end of the last name in the lower of the two rows above the line
    for name, time in sorted(scale.items(), key=lambda each: each[1]):
        mine = name == yours
        x, text = INSET + (time - low) * inch, f"{name} {number(time)}{after_a_number(unit)}"
        axes.plot([x], [line], marker="D" if mine else "o", markersize=8 if mine else 6, color=INK if mine else MUTED, zorder=3 + mine)
        if mine:
            write(axes, x, line + 0.27, text, ha="center", va="center_baseline", weight="bold")
            continue
        half = text_width(text, 9) / 2
        overlaps = x - half < right_end
        write(axes, x, line - (0.43 if overlaps else 0.23), text, color=MUTED, ha="center", va="center_baseline")
        right_end = right_end if overlaps else x + half + 0.1  # 0.1 inches between two names


def _draw_wrong_sample(axes: Axes, x: float, y: float) -> None:
    """Draw the outline and the cross of a wrong operation for the legend."""
    _mark(axes, x, x + SAMPLE[0], y + 0.03, SAMPLE[1] - 0.03, 1.0)


def _draw_stop_sample(axes: Axes, x: float, y: float) -> None:
    """Draw the box of a stop for the legend."""
    box = Rectangle((x, y), *SAMPLE, facecolor="white", edgecolor=INK, linewidth=1.4, linestyle=(0, (2.5, 1.2)))
    axes.add_patch(box)
