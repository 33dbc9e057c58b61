"""Named points: what two quantities are for each of several things, and which of them none beats in both."""

import textwrap
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from hybridlab.checks import checked_text, numbers, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.palette import line_style
from hybridlab.plot.curves import LINE, dress
from hybridlab.plot.picture import MARGIN, MUTED, WIDTH, Picture, page, sheet, text_width, write
from hybridlab.plot.words import number

LEFT, RIGHT, HEIGHT = 0.62, 0.2, 3.6  # inches
WIDE = WIDTH - LEFT - RIGHT
MARK, SIZE = 0.09, 8.5  # inches that a mark takes to each side, points of a name
MOST = 24

Place = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def points(places: Mapping[str, Any], *, x_label: str, y_label: str, title: str = "") -> Picture:
    """Return a figure of named points, ``places`` by name, each a pair of numbers that are not negative; less is better in both.

    Points that no other beats, with less of one and no more of the other, are filled. Points at one place, to nine digits, share
    a mark. Raises :class:`HybridLabError` for no points, more than 24, and what is no pair of numbers from 0 to 1e100.

    >>> points({"1F1B": (4, 0.27), "GPipe": (8, 0.27)}, x_label="peak activations", y_label="bubble ratio")
    <Figure: bubble ratio against peak activations. 1F1B: 0.27 at 4, which none beats in both. GPipe: 0.27 at 8.>
    """
    found = _checked(places)
    x_label, y_label, title = checked_text(x_label, "x_label"), checked_text(y_label, "y_label"), checked_text(title, "title")
    unbeaten = {place for place in found.values() if not any(_beats(other, place) for other in found.values())}
    message = [
        f"{name}: {number(y)} at {number(x)}{', which none beats in both' * ((x, y) in unbeaten)}." for name, (x, y) in found.items()
    ]
    words = " ".join([*([f"{title}:"] if title else []), f"{y_label} against {x_label}.", *message])
    across, up = (1.08 * max(values) or 1.0 for values in zip(*found.values(), strict=True))
    figure, axes, inside = plane(words, title, x_label, y_label, across, up)
    for x, y in dict.fromkeys(found.values()):
        look = {"color": line_style(0).colour, "markersize": 8} if (x, y) in unbeaten else {"color": MUTED, "markerfacecolor": "white"}
        axes.plot([x], [y], "o", clip_on=False, zorder=3, **look)
    names: dict[Place, str] = {}
    for name, (x, y) in found.items():
        place = (x / across * WIDE, HEIGHT * (1 - y / up))
        names[place] = f"{names[place]}, {name}" if place in names else name
    _name(inside, names)
    return figure


def plane(words: str, title: str, x_label: str, y_label: str, across: float, up: float) -> tuple[Picture, Axes, Axes]:
    """Return a figure with ``words`` as its alternative text, its axes from 0 to ``across`` and ``up``, and a sheet of inches over them."""
    above = textwrap.wrap(title, 66)
    top = MARGIN + LINE * (len(above) + 1)
    figure = Picture(top + HEIGHT + 0.5, words)
    paper = page(figure)
    for row, line in enumerate(above):
        write(paper, MARGIN, MARGIN + LINE * row + 0.14, line, size=10.5, weight="bold")
    write(paper, MARGIN, top - 0.1, y_label, color=MUTED)
    write(paper, (LEFT + WIDTH - RIGHT) / 2, top + HEIGHT + 0.42, x_label, color=MUTED, ha="center")
    whole = figure.get_figheight()
    box = (LEFT / WIDTH, 1 - (top + HEIGHT) / whole, WIDE / WIDTH, HEIGHT / whole)
    axes = figure.add_axes(box, facecolor="white", xlim=(0, across), ylim=(0, up))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(lambda value, _: number(value))
    dress(axes)
    return figure, axes, sheet(figure, LEFT, top, WIDE, HEIGHT, WIDE)


def _name(axes: Axes, names: Mapping[Place, str]) -> None:
    """Write each name beside its mark: right, left, above or below, where the first of them is free."""
    taken: list[Box] = [(x - MARK, y - MARK, x + MARK, y + MARK) for x, y in names]
    for (x, y), name in names.items():
        width, half = text_width(name, SIZE), 0.08
        lefts = [(x + 0.13, y), (x - 0.13 - width, y), (x - width / 2, y - 0.19), (x - width / 2, y + 0.19)]
        boxes = [(left, middle - half, left + width, middle + half) for left, middle in lefts]
        free = [box for box in boxes if box[0] > 0 and box[2] < WIDE + RIGHT and not any(_meet(box, other) for other in taken)]
        box = free[0] if free else boxes[0]
        taken.append(box)
        write(axes, box[0], (box[1] + box[3]) / 2, name, size=SIZE, va="center_baseline")


def _beats(one: Place, other: Place) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _checked(places: Any) -> dict[str, Place]:
    """Return the points as pairs of floats, or refuse what is none."""
    if not isinstance(places, Mapping) or not 1 <= len(places) <= MOST:
        raise HybridLabError(f'points are one to {MOST} pairs by name, such as {{"GPipe": (8, 0.27)}}, not {short_repr(places)}')
    found = {}
    for given, pair in places.items():
        name = checked_text(given, "the name of a point")
        values = numbers(pair, f"point {short_repr(name)}")
        if values.shape != (2,) or not ((values >= 0) & (values < 1e100)).all():
            raise HybridLabError(f"point {short_repr(name)} must be two numbers from 0 to 1e100, not {short_repr(pair)}")
        x, y = (float(f"{value:.9g}") for value in values)
        found[name] = (x, y)
    return found
