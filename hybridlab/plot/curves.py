"""Curves of one quantity against another."""

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from hybridlab.arrays import Floats
from hybridlab.checks import checked_text, numbers, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.palette import line_style
from hybridlab.plot.picture import FONT, MARGIN, MUTED, RULE, WIDTH, Picture, page, text_width, write
from hybridlab.plot.words import number


def style_of(place: int) -> dict[str, Any]:
    """Return the style of line ``place`` as matplotlib takes it."""
    style = line_style(place)
    hollow = {"markerfacecolor": "white", "markeredgewidth": 1.4} if style.hollow else {}
    dash = {"color": style.colour, "linestyle": (0, style.dash) if style.dash else "-", "linewidth": style.width}
    return {**dash, "marker": style.marker, "markersize": style.size, **hollow}


STYLES = tuple(map(style_of, range(6)))
LEFT, RIGHT, HEIGHT = 0.62, 0.2, 2.4  # inches
LINE = 0.25


def lines(x: Any, series: Mapping[str, Any], *, x_label: str, y_label: str, title: str = "", log_y: bool = False) -> Picture:
    """Return a figure of curves: ``series`` holds by name one value for each of the values ``x``, six of them at most.

    Values of x that grow by one factor, such as 1, 2, 4, 8, are spaced evenly; ``log_y`` does so with those of the curves, which
    must then be above zero. Raises :class:`HybridLabError` for what is no
    finite number, for lengths that differ, and for x that does not grow.

    >>> lines([1, 2, 4], {"GPipe": [0.75, 0.6, 0.43]}, x_label="microbatches", y_label="bubble ratio")
    <Figure: bubble ratio against microbatches from 1 to 4. GPipe: from 0.75 to 0.43.>
    """
    places, curves = _checked(x, series)
    labels = checked_text(x_label, "x_label"), checked_text(y_label, "y_label")
    if log_y and min(values.min() for values in curves.values()) <= 0:
        raise HybridLabError("log_y needs curves above zero: leave it out, or leave out the values of zero and less")
    above = textwrap.wrap(checked_text(title, "title"), 66)
    top = MARGIN + LINE * (len(above) + 1 + (legend_rows(list(curves)) if len(curves) > 1 else 0))
    figure = Picture(top + HEIGHT + 0.5, _words(title, labels, places, curves))
    sheet = page(figure)
    for place, line in enumerate(above):
        write(sheet, MARGIN, MARGIN + LINE * place + 0.14, line, size=10.5, weight="bold")
    if len(curves) > 1:
        legend(sheet, MARGIN + LINE * len(above) + 0.1, list(curves))
    write(sheet, MARGIN, top - 0.1, labels[1], color=MUTED)
    write(sheet, (LEFT + WIDTH - RIGHT) / 2, top + HEIGHT + 0.42, labels[0], color=MUTED, ha="center")
    whole = figure.get_figheight()
    box = (LEFT / WIDTH, 1 - (top + HEIGHT) / whole, (WIDTH - LEFT - RIGHT) / WIDTH, HEIGHT / whole)
    axes = figure.add_axes(box, facecolor="white")
    for (name, values), style in zip(curves.items(), STYLES, strict=False):
        axes.plot(places, values, label=name, clip_on=False, zorder=3, solid_capstyle="butt", **style)
    _scale(axes, places, np.stack(list(curves.values())), log_y)
    return figure


def _scale(axes: Axes, places: Floats, values: Floats, log_y: bool) -> None:
    """Set the axes' ranges and ticks: y from 0 where nothing is negative, x in even steps where it grows by one factor."""
    if values.min() >= 0 and not log_y:
        axes.set_ylim(0, 1.08 * values.max() or 1.0)
    if places.size > 3 and places[0] > 0 and _even(np.log(places)):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_locator(FixedLocator(places[:: -(-places.size // 12)].tolist()))
    elif places.size <= 12 and _even(places):
        axes.xaxis.set_major_locator(FixedLocator(places.tolist()))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=bool((places % 1 == 0).all())))
    if log_y:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: number(value))
    dress(axes)


def dress(axes: Axes) -> None:
    """Give axes the look of all figures: a line below, a faint grid across, small muted numbers."""
    axes.tick_params(labelsize=8.5, labelcolor=MUTED, labelfontfamily=FONT, color=RULE, length=3)
    axes.grid(True, axis="y", color=RULE, linewidth=0.7, linestyle="-")
    axes.grid(False, axis="x")
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.spines["bottom"].set(visible=True, color=MUTED, linewidth=0.8)


def _even(places: Floats) -> bool:
    """Return whether values are equally far apart; they grow."""
    steps = np.diff(places)
    return not steps.size or bool(np.ptp(steps) < 1e-6 * steps.max())


def legend(axes: Axes, y: float, names: list[str]) -> None:
    """Draw the styles of the first lines beside their names, in rows from ``y`` inches on."""
    for name, (x, row), place in zip(names, _places(names), range(len(names)), strict=True):
        ends = [x, x + 0.22, x + 0.44]
        axes.add_artist(Line2D(ends, [y + LINE * row] * 3, solid_capstyle="butt", markevery=[1], **style_of(place)))
        write(axes, x + 0.52, y + LINE * row, name, va="center_baseline")


def legend_rows(names: list[str]) -> int:
    """Return how many rows of names :func:`legend` draws."""
    return 1 + _places(names)[-1][1]


def _places(names: list[str]) -> list[tuple[float, int]]:
    """Return the left end (in inches) and the row of each name: as many in a row as there is room for."""
    places: list[tuple[float, int]] = []
    x, row = MARGIN, 0
    for name in names:
        wide = 0.52 + text_width(name, 9)
        if places and x + wide > WIDTH - MARGIN:
            x, row = MARGIN, row + 1
        places.append((x, row))
        x += wide + 0.3
    return places


def _words(title: str, labels: tuple[str, str], places: Floats, curves: dict[str, Floats]) -> str:
    about = f"{labels[1]} against {labels[0]} from {number(places[0])} to {number(places[-1])}."
    facts = [f"{name}: from {number(values[0])} to {number(values[-1])}." for name, values in curves.items()]
    return " ".join([*([f"{title}:"] if title else []), about, *facts])


def _checked(x: Any, series: Mapping[str, Any]) -> tuple[Floats, dict[str, Floats]]:
    """Return the values as arrays, or refuse what no curve can be drawn through."""
    places = _values(x, "x")
    if not (np.diff(places) > 0).all():
        raise HybridLabError(f"x must grow from value to value, not {short_repr(x)}")
    if not isinstance(series, Mapping) or not 1 <= len(series) <= len(STYLES):
        wanted = f'one to {len(STYLES)} curves by name, such as {{"GPipe": [0.75, 0.6]}}'
        raise HybridLabError(f"series must be {wanted}, not {short_repr(series)}")
    curves = {checked_text(name, "the name of a curve"): _values(series[name], f"series {name!r}") for name in series}
    for name, values in curves.items():
        if values.size != places.size:
            raise HybridLabError(f"series {name!r} has {values.size} values for {places.size} of x: give one for each")
    return places, curves


def _values(given: Any, name: str) -> Floats:
    values = numbers(given, name)
    if values.ndim != 1 or not (np.abs(values) < 1e100).all():
        raise HybridLabError(f"{name} must be finite numbers in a row, at most 1e100, not {short_repr(given)}")
    return values
