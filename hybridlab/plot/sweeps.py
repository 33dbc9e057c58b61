"""The table of a sweep as small plots side by side."""

import textwrap
from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from hybridlab.arrays import Floats
from hybridlab.checks import checked_text, counted, removed_arguments
from hybridlab.errors import HybridLabError
from hybridlab.plot.curves import LINE, dress, legend, legend_rows, style_of
from hybridlab.plot.picture import MARGIN, MUTED, WIDTH, Picture, page, text_width, write
from hybridlab.plot.words import after_a_number, number
from hybridlab.sweep.lines import TIMES, UNIT_REMOVED, Lines, known_names, label_of, lines_of, logarithmic_axes, value_text

MOST_PLOTS = 20
LEFT, RIGHT, BETWEEN = 0.62, 0.12, 0.24  # inches
HEIGHT, BELOW = 2.1, 0.32  # of one plot, and of the numbers below it
SMALLER = {"linewidth": 0.8, "markersize": 0.7}  # than in a figure of one plot


class Plot(NamedTuple):
    """One plot: its quantity, what is said above it, and its values by line and x, NaN where there is none."""

    quantity: str
    heads: tuple[str, ...]
    values: Floats


@removed_arguments(unit=UNIT_REMOVED)
def panels(
    sweep: Any,
    x: str,
    y: Any,
    *,
    panels: Any = None,
    lines: Any = None,
    labels: Mapping[str, str] | None = None,
    logarithmic: Any = (),
    title: str = "",
) -> Picture:
    """Return a figure of small plots of ``y`` against the column ``x``: one for each value of the columns ``panels``, on one scale.

    ``y`` may be several quantities, each with plots and a scale of its own. ``panels`` None takes every column that varies besides;
    ``lines``, ``labels`` and ``logarithmic`` are those of :class:`hybridlab.widgets.SweepExplorer`, and so are the lines, their
    names and their styles. A point that was refused is a gap. Raises :class:`HybridLabError` for what cannot be drawn.

    >>> from hybridlab.sweep import Sweep
    >>> times = [("gpipe", devices, p2p, 9.0 * devices + p2p) for devices in (2, 4) for p2p in (0, 1)]
    >>> table = Sweep(("schedule", "devices", "p2p", "makespan"), tuple(times))
    >>> panels(table, "devices", "makespan")
    <Figure: Makespan, ms against Devices K from 2 to 4. Latency = 0 ms: GPipe from 18 to 36. Latency = 1 ms: GPipe from 19 to 37.>
    """
    found = lines_of(sweep, x, y, lines, labels, () if panels is None else panels)
    besides = [] if panels is None else [name for name in found.choices if name not in known_names(panels, "panels", found.choices)]
    if besides:
        message = f"name it in panels, or draw one of its values, with sweep.where({besides[0]}=...)"
        raise HybridLabError(f"{besides[0]!r} varies besides: {message}")
    axes = {name: label_of(name, found.labels, found.unit) for name in (found.x, *found.quantities)}
    plots = _plots(found, axes)
    positive = {name: any(bool((plot.values > 0).any()) for plot in plots if plot.quantity == name) for name in found.quantities}
    scales = logarithmic_axes(logarithmic, {found.x: max(found.places) > 0} | positive)
    return _figure(found, plots, axes, scales, checked_text(title, "title"))


def _plots(found: Lines, axes: Mapping[str, str]) -> list[Plot]:
    """Return the plots in their order; a heading names what the vertical axis does not."""
    choices = list(product(*(range(len(values)) for values in found.choices.values())))
    quantities = found.quantities
    if len(choices) * len(quantities) > MOST_PLOTS:
        raise HybridLabError(f"{len(choices) * len(quantities)} plots are more than the {MOST_PLOTS} of a figure: use sweep.where()")
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


def _figure(found: Lines, plots: list[Plot], axes: Mapping[str, str], scales: list[str], title: str) -> Picture:
    quantities = found.quantities
    last = [*found.choices.values(), quantities][-1 if not found.choices else -2]
    columns = len(last) if len(last) in (2, 3) else min(len(plots), 3)
    rows = -(-len(plots) // columns)
    above, names = textwrap.wrap(title, 66), list(found.names)
    one = len(quantities) == 1  # one scale: its name and its numbers stand but once
    top = MARGIN + LINE * (len(above) + legend_rows(names) + one) + 0.06
    note = _left_out(found, plots, scales)
    between = BETWEEN if one else LEFT
    wide = (WIDTH - LEFT - RIGHT - (columns - 1) * between) / columns
    apart = any(text_width(", ".join(plot.heads), 9, bold=True) > wide for plot in plots)
    heads = [plot.heads if apart else (", ".join(plot.heads),) for plot in plots]
    over = LINE * max(map(len, heads)) + 0.06
    tall = over + HEIGHT + BELOW
    figure = Picture(top + rows * tall + LINE * (1 + bool(note)), _words(found, plots, axes, title, note))
    sheet = page(figure)
    for place, line in enumerate(above):
        write(sheet, MARGIN, MARGIN + LINE * place + 0.14, line, size=10.5, weight="bold")
    legend(sheet, MARGIN + LINE * len(above) + 0.1, names)
    if one:
        write(sheet, MARGIN, top - 0.04, axes[quantities[0]], color=MUTED)
    write(sheet, (LEFT + WIDTH - RIGHT) / 2, top + rows * tall + 0.14, axes[found.x], color=MUTED, ha="center")
    write(sheet, MARGIN, top + rows * tall + LINE + 0.14, note, size=8.5, color=MUTED)
    for place, plot in enumerate(plots):
        row, column = divmod(place, columns)
        left, start = LEFT + column * (wide + between), top + row * tall + over
        for each, line in enumerate(reversed(heads[place])):
            write(sheet, left, start - 0.08 - 0.17 * each, line, weight="bold")
        whole = figure.get_figheight()
        box = (left / WIDTH, 1 - (start + HEIGHT) / whole, wide / WIDTH, HEIGHT / whole)
        small = figure.add_axes(box, facecolor="white")
        _draw(small, found, plot, scales)
        _scale(small, found, [each.values for each in plots if each.quantity == plot.quantity], plot.quantity in scales, wide)
        small.tick_params(labelleft=not one or not column)
    return figure


def _draw(axes: Axes, found: Lines, plot: Plot, scales: list[str]) -> None:
    places = np.array(found.places, dtype=np.float64)
    axes.set_xscale("log" if found.x in scales else "linear")
    axes.set_yscale("log" if plot.quantity in scales else "linear")
    shown = _drawn(found, plot, scales)
    for line, (name, values) in enumerate(zip(found.names, plot.values, strict=True)):
        heights = np.where(shown[line], values, np.nan)
        style = {key: value * SMALLER[key] if key in SMALLER else value for key, value in style_of(line).items()}
        axes.plot(places, heights, label=name, clip_on=False, zorder=3, solid_capstyle="butt", **style)


def _scale(axes: Axes, found: Lines, values: list[Floats], logarithmic: bool, wide: float) -> None:
    """Set ranges and ticks: y of all plots of the quantity, x at every value, with its number where there is room."""
    heights = np.stack(values)
    heights = heights[heights > 0] if logarithmic else heights[~np.isnan(heights)]
    low, high = float(heights.min()), float(heights.max())
    if logarithmic:
        axes.set_ylim(low / 1.1, high * 1.1)
    else:
        room = 0.05 * (max(high, 0) - min(low, 0)) or 1.0
        axes.set_ylim(low - room if low < 0 else 0, max(high, 0) + room)
    many = logarithmic and high / low > 8
    subs = (1, 2, 5) if many and high / low < 1000 else (1,)
    axes.yaxis.set_major_locator(LogLocator(subs=subs) if many else MaxNLocator(6, steps=[1, 2, 5, 10]))
    places = [place for place in found.places if place > 0 or axes.get_xscale() == "linear"]
    along = np.log(places) if axes.get_xscale() == "log" else np.array(places, dtype=np.float64)
    along = wide * (along - along[0]) / (float(np.ptp(along)) or 1.0)
    written: list[str] = []
    end = -1.0
    for place, middle in zip(places, along, strict=True):
        half = text_width(number(place), 8.5) / 2
        written.append(number(place) if middle - half > end else "")
        end = middle + half + 0.06 if written[-1] else end
    axes.set_xticks(places, written)
    axes.yaxis.set_major_formatter(lambda value, _: number(value))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    dress(axes)


def _drawn(found: Lines, plot: Plot, scales: list[str]) -> Any:
    """Return which points are in a plot: those that have a place on its axes."""
    across = np.array(found.places) > (0 if found.x in scales else -np.inf)
    return across & (plot.values > (0 if plot.quantity in scales else -np.inf))


def _left_out(found: Lines, plots: list[Plot], scales: list[str]) -> str:
    gaps = sum(int(np.isnan(plot.values).sum()) for plot in plots)
    low = sum(plot.values.size - int(_drawn(found, plot, scales).sum()) for plot in plots) - gaps
    message = [f"{counted(gaps, 'point')} without a result"] if gaps else []
    message += [f"{counted(low, 'point')} at 0 or less, where a logarithmic axis has no place"] if low else []
    return f"Not drawn: {'; '.join(message)}." if message else ""


def _words(found: Lines, plots: list[Plot], axes: Mapping[str, str], title: str, note: str) -> str:
    drawn = " and ".join(axes[name] for name in found.quantities)
    span = f"{drawn} against {axes[found.x]} from {number(found.places[0])} to {number(found.places[-1])}."
    message = []
    for plot in plots:
        facts = []
        for name, values in zip(found.names, plot.values, strict=True):
            there = values[~np.isnan(values)]
            facts.append(f"{name} from {number(there[0])} to {number(there[-1])}" if there.size else f"{name} has no result")
        message.append(f"{', '.join(plot.heads)}{': ' * bool(plot.heads)}{'; '.join(facts)}.")
    return " ".join([*([f"{title}:"] if title else []), span, *message, *filter(None, [note])])
