"""Charts of named numbers: curves, or bars that are divided into parts."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from hybridlab.arrays import Floats
from hybridlab.checks import checked_text, numbers, short_repr, true_or_false
from hybridlab.errors import HybridLabError
from hybridlab.palette import PART_COLOURS, ink_on, line_style
from hybridlab.plot.picture import FONT, MARGIN, MUTED, RULE, WIDTH, Picture, number, page, rectangle, sheet, text_width, write

MOST_CURVES, MOST_BARS = 6, 16
LARGEST = 1e100  # larger than any time in practice
LEFT, RIGHT, HEIGHT = 0.62, 0.2, 2.4  # inches: left and right of the axes of curves; height of the axes
LINE = 0.25  # inches; height of a line of the title or the legend
# Inches: space right of the bars, distance between two bars, height of a bar. Points: size of a number inside a part.
BAR_RIGHT, BAR_PITCH, BAR, PART_SIZE = 0.62, 0.36, 0.24, 8.5


def lines(x: Any, series: Mapping[str, Any], *, x_label: str, y_label: str, title: str = "", log_y: bool = False) -> Picture:
    """Return a figure of curves.

    Parameters
    ----------
    x : array of float, shape (values,)
        Increasing values. If four or more values increase by a constant factor, such as 1, 2, 4, 8, the axis is logarithmic.
    series : mapping of str to array of float, shape (values,)
        One to six curves: name -> values.
    x_label, y_label, title : str
    log_y : bool
        Whether the vertical axis is logarithmic. On a logarithmic axis, all values must be above zero.

    Raises
    ------
    HybridLabError
        A value is not finite, the lengths differ, x does not increase, there are more than six curves, or a logarithmic axis has a value of
        zero or less.

    Examples
    --------
    >>> lines([1, 2, 4], {"GPipe": [0.75, 0.6, 0.43]}, x_label="microbatches", y_label="bubble ratio")
    <Figure: bubble ratio against microbatches from 1 to 4. GPipe: from 0.75 to 0.43.>
    """
    places, curves = _checked_curves(x, series)
    labels = checked_text(x_label, "x_label"), checked_text(y_label, "y_label")
    if true_or_false(log_y, "log_y") and min(values.min() for values in curves.values()) <= 0:
        raise HybridLabError("log_y cannot show values of zero or less: leave out log_y, or leave out these values", "too-small")
    above = title_lines(title)
    top = MARGIN + LINE * (len(above) + 1 + (legend_rows(list(curves)) if len(curves) > 1 else 0))
    figure = Picture(top + HEIGHT + 0.5, _curves_text(title, labels, places, curves))
    paper = page(figure)
    write_title(paper, above)
    if len(curves) > 1:
        draw_curve_legend(paper, MARGIN + LINE * len(above) + 0.1, list(curves))
    write(paper, MARGIN, top - 0.1, labels[1], color=MUTED)
    write(paper, (LEFT + WIDTH - RIGHT) / 2, top + HEIGHT + 0.42, labels[0], color=MUTED, ha="center")
    axes = figure.add_axes(rectangle(figure, LEFT, top, WIDTH - LEFT - RIGHT, HEIGHT), facecolor="white")
    for place, (name, values) in enumerate(curves.items()):
        # clip_on=False, so that the axes do not cut markers at their edges in half
        axes.plot(places, values, label=name, clip_on=False, zorder=3, solid_capstyle="butt", **curve_style(place))
    _set_scales(axes, places, np.stack(list(curves.values())), log_y)
    return figure


def stacks(bars: Mapping[str, Mapping[str, Any]], *, x_label: str, title: str = "") -> Picture:
    """Return a figure of horizontal bars on one scale. Each bar is divided into its parts.

    The sum of the parts is at the end of each bar. The value of a part is inside the part if there is room. All these numbers have three
    digits.

    Parameters
    ----------
    bars : mapping of str to mapping of str to float
        One to 16 bars: name of the bar -> name of the part -> value from 0. All bars have the same parts, one to seven.
    x_label, title : str

    Raises
    ------
    HybridLabError
        There are too many bars or parts, the names of the parts differ between bars, or a value is not a number from 0 to 1e100.

    Examples
    --------
    >>> stacks({"1 GPU": {"computing": 8, "bubble": 0}, "2 GPUs": {"computing": 4, "bubble": 0.5}}, x_label="seconds")
    <Figure: seconds. 1 GPU: 8, of which computing 8, bubble 0. 2 GPUs: 4.5, of which computing 4, bubble 0.5.>
    """
    parts_of = _checked_bars(bars)
    sums = {name: sum(parts.values()) for name, parts in parts_of.items()}
    x_label, above = checked_text(x_label, "x_label"), title_lines(title)
    names = list(next(iter(parts_of.values())))
    places = _places_in_rows(names, sample=0.32, gap=0.26, right=0.26)
    top = MARGIN + LINE * (len(above) + places[-1][1] + 1) + 0.12
    figure = Picture(top + BAR_PITCH * len(parts_of) + 0.5, _bars_text(title, x_label, parts_of, sums))
    paper = page(figure)
    write_title(paper, above)
    # strict=False, because there can be more colours than parts
    for part, (x, row), colour in zip(names, places, PART_COLOURS, strict=False):
        y = MARGIN + LINE * (len(above) + row) + 0.1
        paper.add_patch(Rectangle((x, y - 0.07), 0.24, 0.14, facecolor=colour))
        write(paper, x + 0.32, y, part, va="center_baseline")
    left = 0.16 + max(text_width(name, 9) for name in parts_of)
    wide, tall = WIDTH - left - BAR_RIGHT, BAR_PITCH * len(parts_of)
    longest = max(sums.values()) or 1.0  # 1.0 if all values are 0, because the length of an axis must not be 0
    axes = figure.add_axes(rectangle(figure, left, top, wide, tall), facecolor="white", xlim=(0, longest), ylim=(tall, 0), yticks=[])
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: number(value))
    dress(axes)
    write(paper, left + wide / 2, top + tall + 0.42, x_label, color=MUTED, ha="center")
    inside = sheet(figure, left, top, wide, tall, wide)
    for row, (name, parts) in enumerate(parts_of.items()):
        y, x = BAR_PITCH * row + (BAR_PITCH - BAR) / 2, 0.0
        write(inside, -0.08, y + BAR / 2, name, ha="right", va="center_baseline")
        for value, colour in zip(parts.values(), PART_COLOURS, strict=False):
            width = value / longest * wide
            inside.add_patch(Rectangle((x, y), width, BAR, facecolor=colour, edgecolor="white", linewidth=0.6))
            if text_width(_three_digits(value), PART_SIZE) + 0.08 < width:  # 0.04 inches on each side of the number
                style = {"size": PART_SIZE, "color": ink_on(colour), "ha": "center", "va": "center_baseline"}
                write(inside, x + width / 2, y + BAR / 2, _three_digits(value), **style)
            x += width
        write(inside, x + 0.07, y + BAR / 2, _three_digits(sums[name]), weight="bold", va="center_baseline")
    return figure


def curve_style(place: int) -> dict[str, Any]:
    """Return the style of curve number ``place``, as keyword arguments of matplotlib."""
    style = line_style(place)
    hollow = {"markerfacecolor": "white", "markeredgewidth": 1.4} if style.hollow else {}
    dash = {"color": style.colour, "linestyle": (0, style.dash) if style.dash else "-", "linewidth": style.width}
    return {**dash, "marker": style.marker, "markersize": style.size, **hollow}


def title_lines(title: Any) -> list[str]:
    """Return the title of a chart, wrapped into lines of text. Raise an error if the title is not a text."""
    return textwrap.wrap(checked_text(title, "title"), 66)  # 66 bold characters of 10.5 points fit into the width


def write_title(axes: Axes, lines: Sequence[str]) -> None:
    """Write the lines of a chart's title at the top of the figure."""
    for row, line in enumerate(lines):
        write(axes, MARGIN, MARGIN + LINE * row + 0.14, line, size=10.5, weight="bold")


def draw_curve_legend(axes: Axes, y: float, names: list[str], styles: Iterable[int] | None = None) -> None:
    """Draw a legend: a sample of each curve beside its name, in rows from ``y`` inches on. ``styles`` has the number of each style."""
    numbers = range(len(names)) if styles is None else styles
    for style, name, (x, row) in zip(numbers, names, _places_of_curve_names(names), strict=True):
        ends = [x, x + 0.22, x + 0.44]
        axes.add_artist(Line2D(ends, [y + LINE * row] * 3, solid_capstyle="butt", markevery=[1], **curve_style(style)))
        write(axes, x + 0.52, y + LINE * row, name, va="center_baseline")


def legend_rows(names: list[str]) -> int:
    """Return the number of rows that :func:`draw_curve_legend` needs."""
    return 1 + _places_of_curve_names(names)[-1][1]


def dress(axes: Axes) -> None:
    """Set the common look of all charts: a line at the bottom, a faint horizontal grid and small grey numbers."""
    axes.tick_params(labelsize=8.5, labelcolor=MUTED, labelfontfamily=FONT, color=RULE, length=3)
    axes.grid(True, axis="y", color=RULE, linewidth=0.7, linestyle="-")
    axes.grid(False, axis="x")
    axes.set_axisbelow(True)  # the grid is behind curves and bars
    axes.spines[:].set_visible(False)
    axes.spines["bottom"].set(visible=True, color=MUTED, linewidth=0.8)


def _places_of_curve_names(names: list[str]) -> list[tuple[float, int]]:
    return _places_in_rows(names, sample=0.52, gap=0.3, right=MARGIN)


def _places_in_rows(names: list[str], sample: float, gap: float, right: float) -> list[tuple[float, int]]:
    """Return the position of each name in a legend: (left end in inches, row). A row has as many names as fit.

    The sample before each name takes ``sample`` inches. ``gap`` inches separate two names, and ``right`` inches stay free at the end of a
    row.
    """
    places: list[tuple[float, int]] = []
    x, row = MARGIN, 0
    for name in names:
        width = sample + text_width(name, 9)
        if x > MARGIN and x + width > WIDTH - right:  # a name that is too long for a row gets its own row
            x, row = MARGIN, row + 1
        places.append((x, row))
        x += width + gap
    return places


def _set_scales(axes: Axes, places: Floats, values: Floats, log_y: bool) -> None:
    """Set ranges and ticks. y begins at 0 if no value is negative. x is logarithmic if its values increase by a constant factor."""
    if values.min() >= 0 and not log_y:
        # 1.08 for room above the highest marker; 1.0 if all values are 0, because a range must not be empty
        axes.set_ylim(0, 1.08 * values.max() or 1.0)
    if places.size > 3 and places[0] > 0 and _evenly_spaced(np.log(places)):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        # At most 12 ticks, because the numbers of more ticks would overlap.
        axes.xaxis.set_major_locator(FixedLocator(places[:: -(-places.size // 12)].tolist()))
    elif places.size <= 12 and _evenly_spaced(places):
        axes.xaxis.set_major_locator(FixedLocator(places.tolist()))
    else:
        # integer: an axis of whole numbers, such as numbers of devices, gets no ticks at fractions.
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=bool((places % 1 == 0).all())))
    if log_y:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: number(value))
    dress(axes)


def _evenly_spaced(places: Floats) -> bool:
    """Return whether the steps between increasing values are equal."""
    steps = np.diff(places)
    # a tolerance, because rounding errors of logarithms make the steps slightly unequal
    return not steps.size or bool(np.ptp(steps) < 1e-6 * steps.max())


def _curves_text(title: str, labels: tuple[str, str], places: Floats, curves: dict[str, Floats]) -> str:
    """Return a description of a figure of curves in words."""
    about = f"{labels[1]} against {labels[0]} from {number(places[0])} to {number(places[-1])}."
    facts = [f"{name}: from {number(values[0])} to {number(values[-1])}." for name, values in curves.items()]
    return " ".join([*([f"{title}:"] if title else []), about, *facts])


def _bars_text(title: str, x_label: str, parts_of: dict[str, dict[str, float]], sums: dict[str, float]) -> str:
    """Return a description of a figure of bars in words."""
    facts = [
        f"{name}: {_three_digits(sums[name])}, of which {', '.join(f'{part} {_three_digits(value)}' for part, value in parts.items())}."
        for name, parts in parts_of.items()
    ]
    return " ".join([*([f"{title}:"] if title else []), f"{x_label}.", *facts])


def _three_digits(value: float) -> str:
    return number(float(f"{value:.3g}"))


def _checked_curves(x: Any, series: Mapping[str, Any]) -> tuple[Floats, dict[str, Floats]]:
    """Return the values of x and of every curve as arrays, or raise an error if they cannot form curves."""
    places = _checked_values(x, "x")
    if not (np.diff(places) > 0).all():
        raise HybridLabError(f"x must grow from value to value, not {short_repr(x)}", "not-growing")
    if not isinstance(series, Mapping) or not 1 <= len(series) <= MOST_CURVES:
        raise HybridLabError(
            f'series must be one to {MOST_CURVES} curves by name, such as {{"GPipe": [0.75, 0.6]}}, not {short_repr(series)}',
            code_of_mapping(series),
        )
    curves = {checked_text(name, "the name of a curve"): _checked_values(series[name], f"series {name!r}") for name in series}
    for name, values in curves.items():
        if values.size != places.size:
            raise HybridLabError(f"series {name!r} has {values.size} values for {places.size} of x: give one for each", "wrong-length")
    return places, curves


def _checked_values(given: Any, name: str) -> Floats:
    """Return a list of numbers as an array, or raise an error if it is not a list of finite numbers."""
    values = numbers(given, name)
    if values.ndim != 1 or not (np.abs(values) < LARGEST).all():
        code = "wrong-shape" if values.ndim != 1 else "too-large" if np.isfinite(values).all() else "not-finite"
        raise HybridLabError(f"{name} must be a list of finite numbers between -1e100 and 1e100, not {short_repr(given)}", code)
    return values


def _checked_bars(bars: Any) -> dict[str, dict[str, float]]:
    """Return the bars with their parts as floats, or raise an error if the bars cannot be drawn."""
    if not isinstance(bars, Mapping) or not 1 <= len(bars) <= MOST_BARS:
        raise HybridLabError(
            f'bars are one to {MOST_BARS} by name, such as {{"1 GPU": {{"computing": 8}}}}, not {short_repr(bars)}', code_of_mapping(bars)
        )
    parts_of: dict[str, dict[str, float]] = {}
    for given, parts in bars.items():
        name = checked_text(given, "the name of a bar")
        if not isinstance(parts, Mapping) or not 1 <= len(parts) <= len(PART_COLOURS):
            raise HybridLabError(
                f"bar {short_repr(name)} must have one to {len(PART_COLOURS)} parts by name, not {short_repr(parts)}",
                code_of_mapping(parts),
            )
        values = numbers(list(parts.values()), f"the parts of bar {short_repr(name)}")
        if values.ndim != 1 or not ((values >= 0) & (values < LARGEST)).all():
            raise HybridLabError(
                f"the parts of bar {short_repr(name)} must be numbers from 0 to 1e100, not {short_repr(parts)}",
                "wrong-shape" if values.ndim != 1 else "out-of-range",
            )
        parts_of[name] = {checked_text(part, "the name of a part"): float(value) for part, value in zip(parts, values, strict=True)}
        first = next(iter(parts_of.values()))
        if list(parts_of[name]) != list(first):
            raise HybridLabError(
                f"bar {short_repr(name)} must have the same parts in the same order as the first, {', '.join(first)}", "does-not-fit"
            )
    return parts_of


def code_of_mapping(given: object) -> str:
    """Return the error code for a refused argument that is not a mapping, is empty, or has too many entries."""
    if not isinstance(given, Mapping):
        return "wrong-type"
    return "too-large" if given else "empty"
