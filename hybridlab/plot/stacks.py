"""Bars cut into parts: what a time is made of, one bar below the other on one scale."""

import textwrap
from collections.abc import Mapping
from typing import Any

from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from hybridlab.checks import checked_text, numbers, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.palette import PART_COLOURS, ink_on
from hybridlab.plot.curves import LINE, dress
from hybridlab.plot.picture import MARGIN, MUTED, WIDTH, Picture, page, sheet, text_width, write
from hybridlab.plot.words import number

MOST = 16  # bars
RIGHT, ROW, BAR, SIZE = 0.62, 0.36, 0.24, 8.5  # inches; points


def stacks(bars: Mapping[str, Mapping[str, Any]], *, x_label: str, title: str = "") -> Picture:
    """Return a figure of bars, ``bars`` by name, each cut into its parts: the same parts by name, none below zero, seven at most.

    The sum stands at a bar's end, and the number of a part in it where there is room, to three digits. Raises
    :class:`HybridLabError` for more than 16 bars, for parts that differ from bar to bar, and for what is no number from 0 to 1e100.

    >>> stacks({"1 GPU": {"computing": 8, "bubble": 0}, "2 GPUs": {"computing": 4, "bubble": 0.5}}, x_label="seconds")
    <Figure: seconds. 1 GPU: 8, of which computing 8, bubble 0. 2 GPUs: 4.5, of which computing 4, bubble 0.5.>
    """
    found = _checked(bars)
    sums = {name: sum(parts.values()) for name, parts in found.items()}
    message = [
        f"{name}: {_short(sums[name])}, of which {', '.join(f'{part} {_short(value)}' for part, value in parts.items())}."
        for name, parts in found.items()
    ]
    x_label, above = checked_text(x_label, "x_label"), textwrap.wrap(checked_text(title, "title"), 66)
    names = _legend(list(next(iter(found.values()))))
    top = MARGIN + LINE * (len(above) + names[-1][1] + 1) + 0.12
    figure = Picture(top + ROW * len(found) + 0.5, " ".join([*([f"{title}:"] if title else []), f"{x_label}.", *message]))
    paper = page(figure)
    for row, line in enumerate(above):
        write(paper, MARGIN, MARGIN + LINE * row + 0.14, line, size=10.5, weight="bold")
    for (part, row, x), colour in zip(names, PART_COLOURS, strict=False):
        y = MARGIN + LINE * (len(above) + row) + 0.1
        paper.add_patch(Rectangle((x, y - 0.07), 0.24, 0.14, facecolor=colour))
        write(paper, x + 0.32, y, part, va="center_baseline")
    left = 0.16 + max(text_width(name, 9) for name in found)
    wide, tall = WIDTH - left - RIGHT, ROW * len(found)
    box = (left / WIDTH, 1 - (top + tall) / figure.get_figheight(), wide / WIDTH, tall / figure.get_figheight())
    longest = max(sums.values()) or 1.0
    axes = figure.add_axes(box, facecolor="white", xlim=(0, longest), ylim=(tall, 0), yticks=[])
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: number(value))
    dress(axes)
    write(paper, left + wide / 2, top + tall + 0.42, x_label, color=MUTED, ha="center")
    inside = sheet(figure, left, top, wide, tall, wide)
    for row, (name, parts) in enumerate(found.items()):
        y, x = ROW * row + (ROW - BAR) / 2, 0.0
        write(inside, -0.08, y + BAR / 2, name, ha="right", va="center_baseline")
        for value, colour in zip(parts.values(), PART_COLOURS, strict=False):
            width = value / longest * wide
            inside.add_patch(Rectangle((x, y), width, BAR, facecolor=colour, edgecolor="white", linewidth=0.6))
            if text_width(_short(value), SIZE) + 0.08 < width:
                style = {"size": SIZE, "color": ink_on(colour), "ha": "center", "va": "center_baseline"}
                write(inside, x + width / 2, y + BAR / 2, _short(value), **style)
            x += width
        write(inside, x + 0.07, y + BAR / 2, _short(sums[name]), weight="bold", va="center_baseline")
    return figure


def _short(value: float) -> str:
    return number(float(f"{value:.3g}"))


def _legend(names: list[str]) -> list[tuple[str, int, float]]:
    """Return each name with its row and its left end in inches: as many in a row as there is room for."""
    places: list[tuple[str, int, float]] = []
    row, x = 0, MARGIN
    for name in names:
        width = 0.32 + text_width(name, 9) + 0.26
        if x > MARGIN and x + width > WIDTH:
            row, x = row + 1, MARGIN
        places.append((name, row, x))
        x += width
    return places


def _checked(bars: Any) -> dict[str, dict[str, float]]:
    """Return the bars with their parts as floats, or refuse what is none."""
    if not isinstance(bars, Mapping) or not 1 <= len(bars) <= MOST:
        raise HybridLabError(f'bars are one to {MOST} by name, such as {{"1 GPU": {{"computing": 8}}}}, not {short_repr(bars)}')
    found: dict[str, dict[str, float]] = {}
    for given, parts in bars.items():
        name = checked_text(given, "the name of a bar")
        if not isinstance(parts, Mapping) or not 1 <= len(parts) <= len(PART_COLOURS):
            raise HybridLabError(f"bar {short_repr(name)} must have one to {len(PART_COLOURS)} parts by name, not {short_repr(parts)}")
        values = numbers(list(parts.values()), f"the parts of bar {short_repr(name)}")
        if values.ndim != 1 or not ((values >= 0) & (values < 1e100)).all():
            raise HybridLabError(f"the parts of bar {short_repr(name)} must be numbers from 0 to 1e100, not {short_repr(parts)}")
        found[name] = {checked_text(part, "the name of a part"): float(value) for part, value in zip(parts, values, strict=True)}
        first = next(iter(found.values()))
        if list(found[name]) != list(first):
            raise HybridLabError(f"bar {short_repr(name)} must have the parts of the first, {', '.join(first)}, in that order")
    return found
