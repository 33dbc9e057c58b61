"""The pieces of a figure of timelines: the rows of devices, the time axis and the legend."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import Affine2D, blended_transform_factory

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr, times, true_or_false
from hybridlab.errors import HybridLabError
from hybridlab.palette import KIND_COLOURS, shade_colour
from hybridlab.plot.bars import (
    SPAN_WORDS,
    Bars,
    bars_of,
    draw_bars,
    draw_idle,
    draw_outline,
    draw_spans,
    draw_spans_of_kind,
    lane_for,
    numbers_for,
    origin,
    outlines_of,
    span_kinds_in,
    write_numbers,
)
from hybridlab.plot.picture import INK, MARGIN, MUTED, RULE, WIDTH, Picture, number, sheet, text_width, write
from hybridlab.schedule import KINDS, F, I
from hybridlab.step.replicas import Replicated
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import SPAN_KINDS

LEFT, RIGHT = 0.76, 0.14  # inches: left of the time axis for the names of devices, right of the axis for half a number
AXIS = WIDTH - LEFT - RIGHT
PAIR_HEIGHT = 1.35  # factor of the height of a bar in a figure with overlapped pairs
ACTIVATION_FILL, ACTIVATION_LINE = "#C4CAD1", "#59636E"
SIZE = 8.5  # points; size of the texts on the axis and in the legend
LEGEND_LINE = 0.25  # inches between two lines of the legend
SAMPLE = 0.22, 0.17  # width and height of a sample in the legend, inches
GAP = 0.15  # inches between two entries of the legend


@dataclass(frozen=True)
class Frame:
    """The sizes that all timelines in a figure share.

    Parameters
    ----------
    span : float
        Length of the time axis, in the timelines' unit.
    bar : float
        Height of a bar of operations, inches.
    lane : float
        Height of the lane below the bars for messages and hops, inches; 0 without a lane.
    memory : float
        Height of the strip for activations, inches; 0 without a strip.
    gap : float
        Space between two devices, inches.
    most : float
        The number of activations that fills the height of a strip.
    """

    span: float
    bar: float
    lane: float
    memory: float
    gap: float
    most: float

    @property
    def pitch(self) -> float:
        """Inches from the top of a device's row to the top of the next row."""
        return self.bar + self.lane + self.memory + self.gap

    def height(self, timeline: Timeline) -> float:
        """Return the height of all rows of a timeline, in inches."""
        return self.pitch * timeline.schedule.devices - self.gap


class Entry(NamedTuple):
    """One entry of the legend: its words, and a function that draws its sample at x, y inches (None without a sample)."""

    words: str
    paint: Callable[[Axes, float, float], None] | None

    @property
    def width(self) -> float:
        """The width of the entry in inches, including the space before the next entry."""
        return text_width(self.words, SIZE) + GAP + (SAMPLE[0] + 0.06 if self.paint else 0)


def frame_for(timelines: Sequence[Timeline], activations: bool, end: Any = None, peak: Any = None) -> Frame:
    """Return a frame with room for all timelines. More devices make each row lower.

    ``end`` is the end of the time axis, and ``peak`` is the number of activations that fills a strip. None means the smallest value that
    suffices for all timelines.
    """
    activations = true_or_false(activations, "activations")
    longest = max(timeline.makespan for timeline in timelines)
    devices = sum(timeline.schedule.devices for timeline in timelines)  # number of rows in the whole figure
    bar, memory, gap = (0.26, 0.21, 0.1) if devices <= 8 else (0.21, 0.16, 0.07) if devices <= 20 else (0.16, 0.11, 0.05)
    if any(timeline.schedule.pairs.size for timeline in timelines):
        bar *= PAIR_HEIGHT
    most = max(float(timeline.peak_activations.max()) for timeline in timelines)
    strip = _at_least(most, peak, "peak", "the most activations that a device holds")
    lane = max(lane_for(timeline, bar) for timeline in timelines)
    # 1.0 if all times are 0, because the length of an axis must not be 0.
    return Frame(_at_least(longest, end, "end", "the makespan") or 1.0, bar, lane, memory if activations else 0.0, gap, strip or 1.0)


def draw_panel(
    figure: Picture,
    top: float,
    timeline: Timeline,
    frame: Frame,
    ticks: list[float],
    makespans_above: Sequence[float],
    marked: Sequence[int] = (),
) -> None:
    """Draw a timeline ``top`` inches below the upper edge of the figure. x is the time since the first start.

    A solid line marks the makespan of this timeline. Dashed lines mark the makespans of the timelines above. The operations of the rows
    ``marked`` have a thick outline.
    """
    height = frame.height(timeline)
    axes = sheet(figure, LEFT, top, AXIS, height, frame.span)
    axes.set_gid("timeline")
    devices = np.arange(timeline.schedule.devices, dtype=float)
    axes.vlines(ticks, -0.02, height + 0.04, color=RULE, linewidth=0.7, zorder=0, clip_on=False)
    draw_idle(axes, 0 * devices, 0 * devices + timeline.makespan, devices * frame.pitch, frame.bar)
    style: dict[str, Any] = {"linewidth": 0.8, "linestyle": (0, (4, 3)), "clip_on": False, "zorder": 1}  # zorder 1: behind bars and numbers
    before = axes.vlines(makespans_above, -0.02, height + 0.05, color=INK, **style)
    before.set_gid("makespans above")
    for bars in bars_of(timeline, frame.pitch, frame.bar):
        draw_bars(axes, bars, AXIS * 72 / frame.span)  # 72 points are an inch
    write_numbers(axes, timeline, numbers_for(timeline, frame.bar, AXIS / frame.span), frame.pitch, frame.bar)
    draw_spans(axes, timeline, frame.pitch, frame.bar, frame.lane, AXIS * 72 / frame.span)
    noun = "rank" if isinstance(timeline.schedule, Replicated) else "device"
    for device, peak in enumerate(timeline.peak_activations.tolist()):
        _write_row_name(axes, noun, device, peak, frame)
        if frame.memory:
            _draw_activations(axes, timeline, device, frame)
    end = axes.vlines([timeline.makespan], -0.04, height + 0.05, color=INK, linewidth=1.2, clip_on=False, zorder=3)
    end.set_gid("makespan")
    for outline in outlines_of(timeline, marked, frame.pitch, frame.bar):
        draw_outline(axes, *outline, frame.span / AXIS, "marked")


def activation_curve(timeline: Timeline, device: int) -> tuple[Floats, Floats]:
    """Return the times since the first start at which a device's activations change, and the activations from each time to the next.

    >>> from hybridlab import Costs, build, simulate
    >>> times, held = activation_curve(simulate(build("gpipe", 1, 2), Costs(forward=1, backward=2)), device=0)
    >>> times.tolist(), held.tolist()
    ([0.0, 0.0, 1.0, 4.0, 6.0, 6.0], [0.0, 1.0, 2.0, 1.0, 0.0, 0.0])
    """
    schedule = timeline.schedule
    # An input gradient frees nothing: the weight gradient still needs the activations.
    rows = np.flatnonzero((schedule.device == device) & (schedule.kind != I))
    takes = schedule.kind[rows] == F
    when = np.where(takes, timeline.start[rows], timeline.end[rows]) - origin(timeline)
    when = np.maximum.accumulate(when)  # measured operations can overlap; then the curve follows the order in the schedule
    # ``timeline.activations`` is the value while an operation runs. At its end, a backward frees the activations of one chunk.
    held = timeline.activations[rows] - ~takes / schedule.chunks
    refilled = (np.diff(when) == 0) & (np.diff(held) > 0)  # the device frees one activation and takes another at the same time
    last = np.append(~refilled, True)[: when.size]
    held = np.concatenate([[0.0], held[last]])
    # The curve begins at the first start with 0 activations and ends at the makespan.
    return np.concatenate([[0.0], when[last], [timeline.makespan]]), np.append(held, held[-1])


def ticks_for(span: float) -> list[float]:
    """Return round times from 0 to ``span`` for the ticks. The distance between two ticks leaves room for their numbers.

    >>> ticks_for(33)
    [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]
    """
    # span * 0.987654 has six digits, so it is about as wide as the widest number up to the span.
    apart = span / AXIS * max(0.5, text_width(number(span * 0.987654), SIZE))
    power = 10.0 ** floor(log10(apart))
    # The tolerance accepts a step that is smaller only by a rounding error.
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= apart * (1 - 1e-9))
    return [place * step for place in range(int(span / step + 1e-9) + 1)]


def draw_axis(axes: Axes, y: float, frame: Frame, ticks: list[float], makespans: list[float], unit: str | None) -> None:
    """Write the numbers of the time axis: makespans in bold, and ticks. Omit numbers that would overlap others."""
    # An overlap omits the later number, so write the makespans first, in decreasing order.
    write(axes, LEFT - 0.14, y, f"time, {unit}" if unit else "time", size=SIZE, color=MUTED, ha="right")
    taken: list[tuple[float, float]] = []
    bold = [(end, {"weight": "bold"}) for end in sorted(set(makespans), reverse=True)]
    for time, style in [*bold, *((tick, {"color": MUTED}) for tick in ticks)]:
        half = text_width(number(time), SIZE, "weight" in style) / 2
        x = min(LEFT + time / frame.span * AXIS, WIDTH - 0.04 - half)  # the last number stays inside the figure
        if all(abs(x - other) > half + reach for other, reach in taken):
            write(axes, x, y, number(time), size=SIZE, ha="center", **style)
            taken.append((x, half + 0.08))


def legend_lines(timelines: Sequence[Timeline], activations: bool, numbered: bool, more: Sequence[Entry] = ()) -> list[list[Entry]]:
    """Return the lines of the legend. Each line is a list of entries.

    ``numbered`` says whether all bars have a number. The last entry explains the numbers, and the entries in ``more`` come before it.
    """
    present = sorted({int(code) for timeline in timelines for code in np.unique(timeline.schedule.kind)})
    spans = {kind for timeline in timelines for kind in span_kinds_in(timeline)}
    entries = [Entry(KINDS[code].words, _operation_sample(KINDS[code].value)) for code in present]
    entries += [Entry("optimiser", _span_sample("optimiser"))] * ("optimiser" in spans) + [Entry("idle", _draw_idle_sample)]
    # Without the last kind, the optimiser: its entry is already beside the operations.
    entries += [Entry(SPAN_WORDS.get(kind, kind), _span_sample(kind)) for kind in SPAN_KINDS[:-1] if kind in spans]
    if activations:
        entries.append(Entry("activations, peak", _draw_activations_sample))
    if any(timeline.schedule.pairs.size for timeline in timelines):
        entries.append(Entry("overlapped pair: both at once", _draw_pair_sample))
    if any(timeline.schedule.chunks > 1 for timeline in timelines):
        entries.append(Entry("first to last chunk", _shades_sample(3)))
    first_devices = {tuple(path[0] for path in timeline.schedule.paths) for timeline in timelines if timeline.schedule.copies > 1}
    if first_devices:
        sample = _shades_sample(min(map(len, first_devices)))
        entries.append(Entry(f"copies of the weights: {_first_devices_text(first_devices)}", sample))
    most = max(timeline.schedule.microbatches for timeline in timelines)
    entries += more
    narrow = f"microbatches 0 to {most - 1}: narrow bars have no number"
    entries.append(Entry("number: microbatch" if numbered else narrow, None))
    lines: list[list[Entry]] = [[]]
    for entry in entries:
        if _width_of_line([*lines[-1], entry]) > WIDTH - 2 * MARGIN:
            lines.append([])
        lines[-1].append(entry)
    return lines


def draw_legend(axes: Axes, top: float, lines: list[list[Entry]]) -> None:
    """Draw the lines of the legend. The first line is ``top`` inches below the upper edge of the figure."""
    # The legend begins at the left end of the time axis if all lines fit, else at the margin, where lines have more room.
    left = LEFT if max(map(_width_of_line, lines)) < WIDTH - LEFT - MARGIN else MARGIN
    for line in lines:
        x = left
        for entry in line:
            text_left = x
            if entry.paint:
                entry.paint(axes, x, top)
                text_left += SAMPLE[0] + 0.06
            style = {"size": SIZE, "va": "center_baseline", "color": INK if entry.paint else MUTED}
            write(axes, text_left, top + SAMPLE[1] / 2, entry.words, **style)
            x += entry.width
        top += LEGEND_LINE


def _at_least(needed: float, given: Any, name: str, what: str) -> float:
    """Return ``given``, or ``needed`` if ``given`` is None. Raise an error if ``given`` is below ``needed`` or not a single number."""
    if given is None:
        return needed
    space = times(given, name)
    if space.ndim or space < needed * (1 - 1e-9):  # the tolerance accepts a makespan that was rounded for printing
        raise HybridLabError(
            f"{name} must be one number, at least {what}, {number(needed)}, not {short_repr(given)}",
            "wrong-shape" if space.ndim else "too-small",
        )
    return max(needed, float(space))


def _write_row_name(axes: Axes, noun: str, device: int, peak: float, frame: Frame) -> None:
    """Write the name and the peak of a device on the left of its row."""
    # x is in inches from the left edge of the figure, y in inches from the top of the panel.
    left_of_axis = blended_transform_factory(axes.figure.dpi_scale_trans, axes.transData)
    size = min(9.0, frame.bar * 45)  # points; 45 points per inch is 0.63 of the bar's height
    y = device * frame.pitch + frame.bar / 2
    write(axes, LEFT - 0.09, y, f"{noun} {device}", size=size, ha="right", va="center_baseline", transform=left_of_axis)
    if frame.memory:
        y += frame.lane + (frame.bar + frame.memory) / 2 + 0.02
        style = {"size": size - 1, "color": MUTED, "ha": "right", "va": "center_baseline", "transform": left_of_axis}
        write(axes, LEFT - 0.09, y, f"peak {peak:.3g}", **style)


def _draw_activations(axes: Axes, timeline: Timeline, device: int, frame: Frame) -> None:
    """Draw the activations of a device below its bars, with a dot at the peak."""
    times, held = activation_curve(timeline, device)
    floor = device * frame.pitch + frame.bar + frame.lane + frame.memory
    # y is the number of activations above the lower edge of the strip. 0.045 inches above the curve stay free for the dot at the peak.
    scale = Affine2D().scale(1, -(frame.memory - 0.045) / frame.most).translate(0, floor) + axes.transData
    axes.fill_between(times, held, step="post", color=ACTIVATION_FILL, linewidth=0, transform=scale, clip_on=False)
    style: dict[str, Any] = {"transform": scale, "clip_on": False}
    curve = Line2D(times, held, drawstyle="steps-post", color=ACTIVATION_LINE, linewidth=0.9, gid="activations", **style)
    curve.set_solid_capstyle("butt")
    curve.set_solid_joinstyle("miter")
    peak = [int(held.argmax())]
    dot = Line2D(times[peak], held[peak], color=INK, marker="o", markersize=3.2, markeredgewidth=0, gid="peak", **style)
    axes.add_artist(curve)
    axes.add_artist(dot)


def _width_of_line(line: list[Entry]) -> float:
    """Return the width in inches of a line of the legend."""
    return sum(entry.width for entry in line) - GAP


def _first_devices_text(first_devices: set[tuple[int, ...]]) -> str:
    """Return the first device of each copy of the weights in words, or "first, second" if timelines differ or have many copies."""
    devices = next(iter(first_devices))
    if len(first_devices) > 1 or len(devices) > 3:
        return "first, second"
    return ", ".join(f"from device {device}" for device in devices)


def _operation_sample(kind: str) -> Callable[[Axes, float, float], None]:
    """Return a function that draws a bar of this kind with its letter."""

    def paint(axes: Axes, x: float, y: float) -> None:
        left, right, top = (np.array([each]) for each in (x, x + SAMPLE[0], y))
        # points=72: in the legend, one unit of x is an inch.
        draw_bars(axes, Bars(kind, left, right, top, np.array([SAMPLE[1]]), np.array([KIND_COLOURS[kind]])), points=72)
        shift = {"F": 0.0, "W": 0.012}.get(kind, -0.012)
        write(axes, x + SAMPLE[0] / 2, y + SAMPLE[1] / 2 + shift, kind, size=7, color="black", ha="center", va="center_baseline")

    return paint


def _span_sample(kind: str) -> Callable[[Axes, float, float], None]:
    """Return a function that draws a span of this kind."""

    def paint(axes: Axes, x: float, y: float) -> None:
        left, right, top = (np.array([each]) for each in (x, x + SAMPLE[0], y + (0.03 if kind != "optimiser" else 0)))
        draw_spans_of_kind(axes, kind, left, right, top, SAMPLE[1] if kind == "optimiser" else 0.12, points=72)

    return paint


def _shades_sample(count: int) -> Callable[[Axes, float, float], None]:
    """Return a function that draws a bar whose pieces have the shades of ``count`` chunks or copies."""

    def paint(axes: Axes, x: float, y: float) -> None:
        edges = np.linspace(x, x + SAMPLE[0], count + 1)
        colours = np.array([shade_colour("F", shade, count) for shade in range(count)])
        draw_bars(axes, Bars("F", edges[:-1], edges[1:], np.full(count, y), np.full(count, SAMPLE[1]), colours), points=72)

    return paint


def _draw_pair_sample(axes: Axes, x: float, y: float) -> None:
    """Draw an overlapped pair as in a row: the forward above, the backward below."""
    left, right, half = np.array([x]), np.array([x + SAMPLE[0]]), np.array([SAMPLE[1] / 2])
    for kind, top in (("F", np.array([y])), ("B", y + half)):
        draw_bars(axes, Bars(kind, left, right, top, half, np.array([KIND_COLOURS[kind]])), points=72)


def draw_marked_sample(axes: Axes, x: float, y: float) -> None:
    """Draw the outline of a marked operation."""
    draw_outline(axes, x, x + SAMPLE[0], y, SAMPLE[1], 1.0, "sample")  # in the legend, one unit of x is an inch


def _draw_idle_sample(axes: Axes, x: float, y: float) -> None:
    """Draw a piece of idle time."""
    draw_idle(axes, np.array([x]), np.array([x + SAMPLE[0]]), np.array([y]), SAMPLE[1])


def _draw_activations_sample(axes: Axes, x: float, y: float) -> None:
    """Draw a small curve of activations with a dot at its peak."""
    steps = x + SAMPLE[0] / 4 * np.arange(5)
    height = y + SAMPLE[1] - np.array([0.04, 0.09, 0.14, 0.07, 0.07])
    axes.fill_between(steps, y + SAMPLE[1], height, step="post", color=ACTIVATION_FILL, linewidth=0)
    axes.step(steps, height, where="post", color=ACTIVATION_LINE, linewidth=0.9, solid_capstyle="butt")
    axes.plot(steps[2], height[2], color=INK, marker="o", markersize=3.2, markeredgewidth=0)
