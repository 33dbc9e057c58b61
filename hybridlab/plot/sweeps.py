"""The figure of a sweep: a grid of small plots from its table."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from hybridlab.arrays import Floats
from hybridlab.checks import checked_text, counted
from hybridlab.errors import HybridLabError
from hybridlab.plot.charts import LINE, curve_style, draw_curve_legend, dress, legend_rows, title_lines, write_title
from hybridlab.plot.picture import MARGIN, MUTED, WIDTH, Picture, after_a_number, number, page, rectangle, text_width, write
from hybridlab.sweep.lines import TIMES, Lines, known_names, label_of, lines_of, logarithmic_axes, value_text

MOST_PLOTS = 20
LEFT, RIGHT, BETWEEN = 0.62, 0.12, 0.24  # inches
HEIGHT, BELOW = 2.1, 0.32  # inches: height of one plot, and of the numbers below the plot
SMALLER = {"linewidth": 0.8, "markersize": 0.7}  # factors of line widths and markers, relative to a figure of one plot


class Plot(NamedTuple):
    """One small plot of the figure.

    Parameters
    ----------
    quantity : str
        Column on the vertical axis.
    heads : tuple of str
        The pieces of the plot's heading, such as ``"Latency = 1 ms"``.
    values : array of float, shape (lines, x)
        The value of each point; NaN for a point without a result.
    """

    quantity: str
    heads: tuple[str, ...]
    values: Floats


def panels(
    sweep: Any,
    x: str,
    y: Any,
    *,
    panels: Any = None,
    lines: Any = None,
    labels: Mapping[str, str] | None = None,
    logarithmic: Any = (),
    drawn: Any = None,
    title: str = "",
) -> Picture:
    """Return a figure of small plots. Each plot shows a quantity against a column, for one combination of values of other columns.

    All plots of a quantity have the same scale. Lines, names and styles are as in :class:`hybridlab.widgets.SweepExplorer`. A line has a
    gap at every point that the sweep refused.

    Parameters
    ----------
    sweep : Sweep
    x : str
        Column on the horizontal axis.
    y : str or sequence of str
        The quantities on the vertical axis. Each quantity has its own plots and its own scale.
    panels : str or sequence of str, optional
        Columns that distinguish plots: one plot for each combination of their values. None means every column that varies and is not an
        axis or a column of ``lines``.
    lines, labels, logarithmic : optional
        As in :class:`hybridlab.widgets.SweepExplorer`.
    drawn : str or sequence of str, optional
        The names of the lines to draw, each in the style that it has among all lines. None means all lines.
    title : str

    Raises
    ------
    HybridLabError
        A column varies but is not in ``panels``, ``lines`` or an axis, there are more than 20 plots, or a value cannot be drawn.

    Examples
    --------
    >>> from hybridlab.sweep import Sweep
    >>> times = [("gpipe", devices, p2p, 9.0 * devices + p2p) for devices in (2, 4) for p2p in (0, 1)]
    >>> table = Sweep(("schedule", "devices", "p2p", "makespan"), tuple(times))
    >>> panels(table, "devices", "makespan")
    <Figure: Makespan, ms against Devices K from 2 to 4. Latency = 0 ms: GPipe from 18 to 36. Latency = 1 ms: GPipe from 19 to 37.>
    """
    found = lines_of(sweep, x, y, lines, labels, () if panels is None else panels)
    unused = [] if panels is None else [name for name in found.choices if name not in known_names(panels, "panels", found.choices)]
    if unused:
        raise HybridLabError(
            f"{unused[0]!r} also varies: name it in panels, or draw one of its values, with sweep.where({unused[0]}=...)", "ambiguous"
        )
    found, styles = _lines_to_draw(found, drawn)
    axes = {name: label_of(name, found.labels, found.unit) for name in (found.x, *found.quantities)}
    plots = _plots(found, axes)
    positive = {name: any(bool((plot.values > 0).any()) for plot in plots if plot.quantity == name) for name in found.quantities}
    scales = logarithmic_axes(logarithmic, {found.x: max(found.places) > 0} | positive)
    return _draw_plots(found, plots, axes, scales, checked_text(title, "title"), styles)


def _lines_to_draw(found: Lines, drawn: Any) -> tuple[Lines, list[int]]:
    """Return the lines whose names are in ``drawn`` and the number of each line's style. Raise an error if no line is drawn."""
    names = found.names if drawn is None else known_names(drawn, "drawn", found.names, "line")
    styles = [place for place, name in enumerate(found.names) if name in names]
    if not styles:
        raise HybridLabError("drawn names no line: name at least one, or leave out drawn", "empty")
    at = {(choice, styles.index(line), place): row for (choice, line, place), row in found.at.items() if line in styles}
    return replace(found, names=tuple(found.names[style] for style in styles), at=at), styles


def _plots(found: Lines, axes: Mapping[str, str]) -> list[Plot]:
    """Return the plots in the order of drawing.

    The heading of a plot has the values of its columns. With several quantities, the heading also has the name of the quantity.
    """
    choices = list(product(*(range(len(values)) for values in found.choices.values())))
    quantities = found.quantities
    if len(choices) * len(quantities) > MOST_PLOTS:
        raise HybridLabError(
            f"{len(choices) * len(quantities)} plots are more than the {MOST_PLOTS} of a figure: use sweep.where()", "too-large"
        )
    plots = []
    for name, choice in product(quantities, choices):
        values = np.full((len(found.names), len(found.places)), np.nan)
        for (point, line, place), row in found.at.items():
            if point == choice and row[name] is not None and row.get("refused") is None:
                values[line, place] = row[name]
        heads = [axes[name]] if len(quantities) > 1 else []
        for column, place in zip(found.choices, choice, strict=True):
            after = after_a_number(found.unit) if column in TIMES else ""
            heads.append(f"{label_of(column, found.labels)} = {value_text(column, found.choices[column][place])}{after}")
        plots.append(Plot(name, tuple(heads), values))
    return plots


def _draw_plots(found: Lines, plots: list[Plot], axes: Mapping[str, str], scales: list[str], title: str, styles: list[int]) -> Picture:
    """Return the figure with the title, the legend and every plot with its heading."""
    quantities = found.quantities
    # Two or three plots that differ only in the last column are in one row.
    last = [*found.choices.values(), quantities][-1 if not found.choices else -2]
    columns = len(last) if len(last) in (2, 3) else min(len(plots), 3)
    rows = -(-len(plots) // columns)  # rounded up
    above, names = title_lines(title), list(found.names)
    one = len(quantities) == 1  # all plots have one scale: write its name once and its numbers once in each row
    top = MARGIN + LINE * (len(above) + legend_rows(names) + one) + 0.06
    note = _missing_points_text(found, plots, scales)
    between = BETWEEN if one else LEFT  # plots with different scales need room for their numbers
    wide = (WIDTH - LEFT - RIGHT - (columns - 1) * between) / columns
    several_lines = any(text_width(", ".join(plot.heads), 9, bold=True) > wide for plot in plots)
    heads = [plot.heads if several_lines else (", ".join(plot.heads),) for plot in plots]
    over = LINE * max(map(len, heads)) + 0.06
    tall = over + HEIGHT + BELOW
    figure = Picture(top + rows * tall + LINE * (1 + bool(note)), _plots_text(found, plots, axes, title, note))
    paper = page(figure)
    write_title(paper, above)
    draw_curve_legend(paper, MARGIN + LINE * len(above) + 0.1, names, styles)
    if one:
        write(paper, MARGIN, top - 0.04, axes[quantities[0]], color=MUTED)
    write(paper, (LEFT + WIDTH - RIGHT) / 2, top + rows * tall + 0.14, axes[found.x], color=MUTED, ha="center")
    write(paper, MARGIN, top + rows * tall + LINE + 0.14, note, size=8.5, color=MUTED)
    for place, plot in enumerate(plots):
        row, column = divmod(place, columns)
        left, start = LEFT + column * (wide + between), top + row * tall + over
        for line, text in enumerate(reversed(heads[place])):  # the lines of the heading, from the bottom to the top
            write(paper, left, start - 0.08 - 0.17 * line, text, weight="bold")
        small = figure.add_axes(rectangle(figure, left, start, wide, HEIGHT), facecolor="white")
        _draw_lines(small, found, plot, scales, styles)
        _set_ranges(small, [each.values for each in plots if each.quantity == plot.quantity], plot.quantity in scales)
        _set_x_ticks(small, found, wide)
        small.tick_params(labelleft=not one or not column)
    return figure


def _draw_lines(axes: Axes, found: Lines, plot: Plot, scales: list[str], styles: list[int]) -> None:
    """Draw the lines of one plot. Points that cannot be drawn leave gaps."""
    places = np.array(found.places, dtype=np.float64)
    axes.set_xscale("log" if found.x in scales else "linear")
    axes.set_yscale("log" if plot.quantity in scales else "linear")
    drawn = _drawable_points(found, plot, scales)
    for line, (name, values) in enumerate(zip(found.names, plot.values, strict=True)):
        heights = np.where(drawn[line], values, np.nan)
        # Use the colours, dashes and markers of a figure of one plot, in a smaller size.
        style = {key: value * SMALLER[key] if key in SMALLER else value for key, value in curve_style(styles[line]).items()}
        axes.plot(places, heights, label=name, clip_on=False, zorder=3, solid_capstyle="butt", **style)


def _set_ranges(axes: Axes, values: list[Floats], logarithmic: bool) -> None:
    """Set the range and the ticks of y. They suit ``values``, the values of all plots of a quantity, so these plots share one scale."""
    heights = np.stack(values)
    heights = heights[heights > 0] if logarithmic else heights[~np.isnan(heights)]
    low, high = float(heights.min()), float(heights.max())
    # A linear axis always includes 0, so that a reader can compare heights. A logarithmic axis cannot show 0.
    if logarithmic:
        axes.set_ylim(low / 1.1, high * 1.1)
    else:
        room = 0.05 * (max(high, 0) - min(low, 0)) or 1.0  # 1.0 if all values are 0, because a range must not be empty
        axes.set_ylim(low - room if low < 0 else 0, max(high, 0) + room)
    many = logarithmic and high / low > 8
    # Over a wide range, ticks at powers of ten are enough. Over a smaller range, add ticks at 2 and 5 times the powers of ten.
    subs = (1, 2, 5) if many and high / low < 1000 else (1,)
    axes.yaxis.set_major_locator(LogLocator(subs=subs) if many else MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(lambda value, _: number(value))


def _set_x_ticks(axes: Axes, found: Lines, wide: float) -> None:
    """Set a tick at every value of x, with a number if there is room, and set the look of the axes."""
    places = [place for place in found.places if place > 0 or axes.get_xscale() == "linear"]
    along = np.log(places) if axes.get_xscale() == "log" else np.array(places, dtype=np.float64)
    along = wide * (along - along[0]) / (float(np.ptp(along)) or 1.0)  # inches; 1.0 with a single value
    written: list[str] = []
    end = -1.0
    for place, middle in zip(places, along, strict=True):
        half = text_width(number(place), 8.5) / 2
        written.append(number(place) if middle - half > end else "")
        end = middle + half + 0.06 if written[-1] else end  # 0.06 inches between two numbers
    axes.set_xticks(places, written)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    dress(axes)


def _drawable_points(found: Lines, plot: Plot, scales: list[str]) -> Any:
    """Return which points can be drawn, shape (lines, x). A point needs a result, and on a logarithmic axis a value above zero."""
    across = np.array(found.places) > (0 if found.x in scales else -np.inf)
    return across & (plot.values > (0 if plot.quantity in scales else -np.inf))  # comparisons with NaN (a point without a result) are False


def _missing_points_text(found: Lines, plots: list[Plot], scales: list[str]) -> str:
    """Return a sentence with the number of points that are not drawn, and the reason. Empty if all points are drawn."""
    gaps = sum(int(np.isnan(plot.values).sum()) for plot in plots)
    low = sum(plot.values.size - int(_drawable_points(found, plot, scales).sum()) for plot in plots) - gaps
    reasons = [f"{counted(gaps, 'point')} without a result"] if gaps else []
    reasons += [f"{counted(low, 'point')} at 0 or less, where a logarithmic axis has no place"] if low else []
    return f"Not drawn: {'; '.join(reasons)}." if reasons else ""


def _plots_text(found: Lines, plots: list[Plot], axes: Mapping[str, str], title: str, note: str) -> str:
    """Return a description of a figure of plots in words."""
    drawn = " and ".join(axes[name] for name in found.quantities)
    span = f"{drawn} against {axes[found.x]} from {number(found.places[0])} to {number(found.places[-1])}."
    sentences = []
    for plot in plots:
        facts = []
        for name, values in zip(found.names, plot.values, strict=True):
            results = values[~np.isnan(values)]
            facts.append(f"{name} from {number(results[0])} to {number(results[-1])}" if results.size else f"{name} has no result")
        sentences.append(f"{', '.join(plot.heads)}{': ' * bool(plot.heads)}{'; '.join(facts)}.")
    return " ".join([*([f"{title}:"] if title else []), span, *sentences, *filter(None, [note])])
