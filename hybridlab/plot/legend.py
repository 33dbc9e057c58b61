"""What stands below the rows: the time axis, and a legend of all that was drawn."""

from collections.abc import Callable, Sequence
from math import floor, log10
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from hybridlab.palette import KIND_COLOURS, shade_colour
from hybridlab.plot.beside import WORDS, draw_kind, kinds_in
from hybridlab.plot.operations import Bars, draw_bars, draw_idle
from hybridlab.plot.panel import AXIS, HELD, HELD_LINE, LEFT, Frame
from hybridlab.plot.picture import INK, MARGIN, MUTED, WIDTH, text_width, write
from hybridlab.plot.words import number
from hybridlab.schedule import KINDS
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import SPAN_KINDS

SIZE = 8.5
LEGEND_LINE = 0.25  # inches from one line of the legend to the next
SWATCH = 0.22, 0.17
GAP = 0.15  # inches between two entries


class Entry(NamedTuple):
    """One thing that the legend explains: words, and what paints its sample at x, y inches."""

    words: str
    paint: Callable[[Axes, float, float], None] | None

    @property
    def width(self) -> float:
        """Inches, with the space to the next entry."""
        return text_width(self.words, SIZE) + GAP + (SWATCH[0] + 0.06 if self.paint else 0)


def entries_for(timelines: Sequence[Timeline], activations: bool, numbered: bool) -> list[list[Entry]]:
    """Return the lines of the legend; ``numbered`` says whether all bars hold a number."""
    present = sorted({int(code) for timeline in timelines for code in np.unique(timeline.schedule.kind)})
    beside = {kind for timeline in timelines for kind in kinds_in(timeline)}
    entries = [Entry(KINDS[code].words, _sample(KINDS[code].value)) for code in present]
    entries += [Entry("optimiser", _span("optimiser"))] * ("optimiser" in beside) + [Entry("idle", _idle)]
    entries += [Entry(WORDS.get(kind, kind), _span(kind)) for kind in SPAN_KINDS[:-1] if kind in beside]
    if activations:
        entries.append(Entry("activations, peak", _curve))
    if any(timeline.schedule.pairs.size for timeline in timelines):
        entries.append(Entry("overlapped pair: both at once", _pair))
    if any(timeline.schedule.chunks > 1 for timeline in timelines):
        entries.append(Entry("first to last chunk", _shades(3)))
    ways = {tuple(path[0] for path in timeline.schedule.paths) for timeline in timelines if timeline.schedule.copies > 1}
    if ways:
        entries.append(Entry(f"copies of the weights: {_ways(ways)}", _shades(min(map(len, ways)))))
    most = max(timeline.schedule.microbatches for timeline in timelines)
    narrow = f"microbatches 0 to {most - 1}: narrow bars have no number"
    entries.append(Entry("number: microbatch" if numbered else narrow, None))
    lines: list[list[Entry]] = [[]]
    for entry in entries:
        if _width([*lines[-1], entry]) > WIDTH - 2 * MARGIN:
            lines.append([])
        lines[-1].append(entry)
    return lines


def _width(line: list[Entry]) -> float:
    return sum(entry.width for entry in line) - GAP


def draw_legend(axes: Axes, top: float, lines: list[list[Entry]]) -> None:
    """Draw the lines of the legend, the first ``top`` inches below the figure's edge."""
    left = LEFT if max(map(_width, lines)) < WIDTH - LEFT - MARGIN else MARGIN
    for line in lines:
        x = left
        for entry in line:
            at = x
            if entry.paint:
                entry.paint(axes, x, top)
                at += SWATCH[0] + 0.06
            write(axes, at, top + SWATCH[1] / 2, entry.words, size=SIZE, va="center_baseline", color=INK if entry.paint else MUTED)
            x += entry.width
        top += LEGEND_LINE


def _sample(kind: str) -> Callable[[Axes, float, float], None]:
    def paint(axes: Axes, x: float, y: float) -> None:
        left, right, top = (np.array([each]) for each in (x, x + SWATCH[0], y))
        draw_bars(axes, Bars(kind, left, right, top, np.array([SWATCH[1]]), np.array([KIND_COLOURS[kind]])), points=72)
        aside = {"F": 0.0, "W": 0.012}.get(kind, -0.012)
        write(axes, x + SWATCH[0] / 2, y + SWATCH[1] / 2 + aside, kind, size=7, color="black", ha="center", va="center_baseline")

    return paint


def _span(kind: str) -> Callable[[Axes, float, float], None]:
    def paint(axes: Axes, x: float, y: float) -> None:
        left, right, top = (np.array([each]) for each in (x, x + SWATCH[0], y + (0.03 if kind != "optimiser" else 0)))
        draw_kind(axes, kind, left, right, top, SWATCH[1] if kind == "optimiser" else 0.12, points=72)

    return paint


def _ways(ways: set[tuple[int, ...]]) -> str:
    """Return where microbatches enter, copy by copy, if that is the same in all figures."""
    each = next(iter(ways))
    return "first, second" if len(ways) > 1 or len(each) > 3 else ", ".join(f"from device {device}" for device in each)


def _shades(count: int) -> Callable[[Axes, float, float], None]:
    def paint(axes: Axes, x: float, y: float) -> None:
        edges = np.linspace(x, x + SWATCH[0], count + 1)
        colours = np.array([shade_colour("F", shade, count) for shade in range(count)])
        draw_bars(axes, Bars("F", edges[:-1], edges[1:], np.full(count, y), np.full(count, SWATCH[1]), colours), points=72)

    return paint


def _pair(axes: Axes, x: float, y: float) -> None:
    left, right, half = np.array([x]), np.array([x + SWATCH[0]]), np.array([SWATCH[1] / 2])
    for kind, top in (("F", np.array([y])), ("B", y + half)):
        draw_bars(axes, Bars(kind, left, right, top, half, np.array([KIND_COLOURS[kind]])), points=72)


def _idle(axes: Axes, x: float, y: float) -> None:
    draw_idle(axes, np.array([x]), np.array([x + SWATCH[0]]), np.array([y]), SWATCH[1])


def _curve(axes: Axes, x: float, y: float) -> None:
    steps = x + SWATCH[0] / 4 * np.arange(5)
    height = y + SWATCH[1] - np.array([0.04, 0.09, 0.14, 0.07, 0.07])
    axes.fill_between(steps, y + SWATCH[1], height, step="post", color=HELD, linewidth=0)
    axes.step(steps, height, where="post", color=HELD_LINE, linewidth=0.9, solid_capstyle="butt")
    axes.plot(steps[2], height[2], color=INK, marker="o", markersize=3.2, markeredgewidth=0)


def ticks_for(span: float) -> list[float]:
    """Return round times from 0 to ``span``, far enough apart for their numbers.

    >>> ticks_for(33)
    [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]
    """
    apart = span / AXIS * max(0.5, text_width(number(span * 0.987654), SIZE))
    power = 10.0 ** floor(log10(apart))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= apart * (1 - 1e-9))
    return [place * step for place in range(int(span / step + 1e-9) + 1)]


def draw_axis(axes: Axes, y: float, frame: Frame, ticks: list[float], ends: list[float], unit: str | None) -> None:
    """Write the numbers of the time axis: every end in bold, and the ticks that keep clear of them."""
    write(axes, LEFT - 0.14, y, f"time, {unit}" if unit else "time", size=SIZE, color=MUTED, ha="right")
    taken: list[tuple[float, float]] = []
    bold = [(end, {"weight": "bold"}) for end in sorted(set(ends), reverse=True)]
    for time, style in [*bold, *((tick, {"color": MUTED}) for tick in ticks)]:
        half = text_width(number(time), SIZE, "weight" in style) / 2
        x = min(LEFT + time / frame.span * AXIS, WIDTH - 0.04 - half)
        if all(abs(x - other) > half + reach for other, reach in taken):
            write(axes, x, y, number(time), size=SIZE, ha="center", **style)
            taken.append((x, half + 0.08))
