"""Figures of points: named points by two quantities, or the plans of a search by memory and time.

The figures highlight the Pareto front: the points that no other point beats.
"""

import textwrap
from collections.abc import Iterable, Mapping
from itertools import islice, pairwise, starmap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from hybridlab.checks import checked_text, counted, each_of, numbers, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.palette import line_style
from hybridlab.planner import Found, Plan, Search
from hybridlab.plot.charts import LARGEST, LINE, code_of_mapping, dress, title_lines, write_title
from hybridlab.plot.picture import INK, MARGIN, MUTED, WIDTH, Picture, number, page, rectangle, sheet, text_width, write

LEFT, RIGHT, HEIGHT = 0.62, 0.2, 3.6  # inches
WIDE = WIDTH - LEFT - RIGHT
MARK, SIZE = 0.09, 8.5  # half the size of a marker in inches; the size of a name in points
THIN = 0.02  # half the room of a line, in inches
MOST_POINTS = 24
MOST_PLACES = 1000  # largest number of points in the curve of a bound
MEMORY_LABEL, TIME_LABEL = "memory of the fullest GPU, GB", "seconds of an iteration"
# The time axis ends at the smaller of two values: 1.5 times the seconds of the slowest unbeaten plan, and 5 times the seconds of the
# fastest plan. With a longer axis, slow plans would push the other plans together.
BEYOND_UNBEATEN, BEYOND_FASTEST = 1.5, 5.0

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def points(places: Mapping[str, Any], *, x_label: str, y_label: str, title: str = "", bound: Any = None) -> Picture:
    """Return a figure of named points by two quantities. Less is better for both quantities.

    One point beats another if it is smaller in one quantity and not larger in the other. Points that no other point beats are filled.
    Points that are equal to nine digits share a marker.

    Parameters
    ----------
    places : mapping of str to (float, float)
        One to 24 points: name -> (x, y), numbers from 0 to 1e100.
    x_label, y_label, title : str
    bound : sequence of (float, float), optional
        Points (x, y) of a lower bound of y, with increasing x. Between two points, the bound has the value of the right point. The figure
        shows the bound as a dashed curve with the name "lower bound". The vertical axis then begins just below the bound instead of at 0.

    Raises
    ------
    HybridLabError
        There are no points or more than 24, a point is not a pair of numbers from 0 to 1e100, or ``bound`` is not a list of such pairs.

    Examples
    --------
    >>> points({"1F1B": (4, 0.27), "GPipe": (8, 0.27)}, x_label="peak activations", y_label="bubble ratio")
    <Figure: bubble ratio against peak activations. 1F1B: 0.27 at 4, which none beats in both. GPipe: 0.27 at 8.>
    """
    place_of = _checked_points(places)
    x_label, y_label, title = checked_text(x_label, "x_label"), checked_text(y_label, "y_label"), checked_text(title, "title")
    unbeaten = {place for place in place_of.values() if not any(_beats(other, place) for other in place_of.values())}
    facts = [
        f"{name}: {number(y)} at {number(x)}{', which none beats in both' * ((x, y) in unbeaten)}." for name, (x, y) in place_of.items()
    ]
    bounds = each_of(() if bound is None else bound, "bound must be a list of pairs, such as [(2, 0.4), (4, 0.27)]")
    named = {f"bound {place}": each for place, each in enumerate(islice(bounds, MOST_PLACES + 1))}  # islice, because it can be endless
    curve = list(_checked_points(named, MOST_PLACES).values()) if named else []
    facts += [f"The lower bound is {', '.join(f'{number(y)} at {number(x)}' for x, y in curve)}."] * bool(curve)
    words = " ".join([*([f"{title}:"] if title else []), f"{y_label} against {x_label}.", *facts])
    # 1.08 leaves room beside the farthest points. 1.0 if all values are 0, because the length of an axis must not be 0.
    x_end, y_end = (1.08 * max(values) or 1.0 for values in zip(*place_of.values(), strict=True))
    # 0.9 of the lowest value, to show the distance of points from the bound
    y_begin = 0.9 * min(y for _, y in [*place_of.values(), *curve]) if curve else 0.0
    figure, axes, inside = _plane(words, title, x_label, y_label, x_end, y_end, y_begin)

    def on_sheet(x: float, y: float) -> Point:
        return x / x_end * WIDE, HEIGHT * (y_end - y) / (y_end - y_begin)

    taken: list[Box] = []  # what no name may cover: the bound and its name
    if curve:
        axes.plot(*zip(*curve, strict=True), color=MUTED, drawstyle="steps-pre", linestyle=(0, (4, 3)), linewidth=1.2, gid="bound")
        least = min(y for _, y in curve)
        left = max((x for x, y in curve if y > least), default=0.0)  # x at which the last level of the curve begins
        begin, level = on_sheet(left, least)
        write(inside, begin + 0.05, level + 0.14, "lower bound", color=MUTED, size=SIZE)
        taken.append((begin, level, begin + 0.05 + text_width("lower bound", SIZE), level + 0.16))
        for (x, y), (right, lower) in pairwise(starmap(on_sheet, curve)):
            taken += [(x - THIN, min(y, lower), x + THIN, max(y, lower)), (min(x, right), lower - THIN, max(x, right), lower + THIN)]
    for x, y in dict.fromkeys(place_of.values()):  # one marker for points at the same place
        look = {"color": line_style(0).colour, "markersize": 8} if (x, y) in unbeaten else {"color": MUTED, "markerfacecolor": "white"}
        axes.plot([x], [y], "o", clip_on=False, zorder=3, **look)
    names: dict[Point, str] = {}
    for name, (x, y) in place_of.items():
        place = on_sheet(x, y)
        names[place] = f"{names[place]}, {name}" if place in names else name
    _write_names(inside, names, taken)
    return figure


def pareto(search: Search, *, title: str = "") -> Picture:
    """Return a figure of the plans of a search, by memory and seconds. A line joins the plans that no other plan beats.

    One plan beats another if it is faster and needs less memory. The figure names the fastest plan, and a dashed line marks the memory of
    the GPU. The figure omits and counts slow plans: plans that take more than 1.5 times as long as the slowest plan on the line, or more
    than 5 times as long as the fastest plan.

    Parameters
    ----------
    search : Search
        The result of :func:`~hybridlab.search`.
    title : str

    Raises
    ------
    HybridLabError
        If ``search`` is not a :class:`Search`.

    Examples
    --------
    >>> from hybridlab.hardware import A100_80GB
    >>> from hybridlab.model import Transformer
    >>> from hybridlab.planner import search
    >>> pareto(search(Transformer(layers=1, hidden=768, heads=12), 1, A100_80GB, global_batch=1))
    <Figure: seconds of an iteration against memory of the fullest GPU, GB: 3 plans that fit in 80 GB of A100-SXM4-80GB.
     No other beats 1 of them in both. The fastest: 0.00973 s, 1.7 GB, tensor 1, pipeline 1, data 1, microbatch 1.>
    """
    if not isinstance(search, Search):
        raise HybridLabError(
            f"pareto draws a Search, such as search(model, gpus, A100_80GB) returns, not {short_repr(search)}", "wrong-type"
        )
    title, best, unbeaten = checked_text(title, "title"), search.best, search.pareto
    seconds = np.array([each.seconds for each in search.found])
    memory = np.array([each.memory for each in search.found]) / 1e9  # GB, the usual unit of GPU memory
    capacity = search.profile.memory / 1e9
    y_end, x_end = min(BEYOND_UNBEATEN * unbeaten[-1].seconds, BEYOND_FASTEST * best.seconds), 1.08 * capacity
    drawn = seconds <= y_end
    slower = int((~drawn).sum())
    y_label = TIME_LABEL + (f" ({counted(slower, 'slower plan')} not drawn)" if slower else "")
    figure, axes, inside = _plane(_search_text(search, title, slower), title, MEMORY_LABEL, y_label, x_end, y_end)
    axes.plot(memory[drawn], seconds[drawn], "o", color=MUTED, markersize=2.5, alpha=0.5, markeredgewidth=0, gid="plans")
    places = np.array([(each.memory / 1e9, each.seconds) for each in reversed(unbeaten)])
    colour = line_style(0).colour
    # steps-post: between two plans of the front, the left plan is the fastest plan that fits in the memory.
    axes.plot(*places.T, "o-", color=colour, drawstyle="steps-post", linewidth=1.6, markersize=5, gid="front")
    axes.axvline(capacity, color=INK, linestyle=(0, (4, 3)), linewidth=1, gid="capacity")
    right = WIDE * capacity / x_end
    write(inside, right, -0.1, _capacity_text(search), color=MUTED, ha="right")
    x, y = best.memory / 1e9 / x_end * WIDE, HEIGHT * (1 - best.seconds / y_end)
    for row, words in enumerate((f"fastest: {best.seconds:.3g} s", *textwrap.wrap(plan_words(best.plan), 60))):
        half = text_width(words, SIZE, bold=not row) / 2
        # Keep the name between the vertical axis and the line of the GPU memory.
        left = max(min(x - half, right - 0.08 - 2 * half), 0.05)
        write(inside, left, y + 0.22 + 0.17 * row, words, size=SIZE, weight="normal" if row else "bold", va="center_baseline")
    return figure


def plan_words(plan: Plan) -> str:
    """Return a short description of a plan: its sizes and options.

    >>> plan_words(Plan(tensor=8, pipeline=4, data=16, microbatch=2, global_batch=1024, chunks=2, sequence_parallel=True))
    'tensor 8, pipeline 4, data 16, microbatch 2, 2 chunks, full recomputation, sequence parallel'
    """
    sizes = [f"{name} {getattr(plan, name)}" for name in ("tensor", "pipeline", "data", "microbatch")]
    chunks = [f"{plan.chunks} chunks"] if plan.chunks > 1 else []
    recomputation = [f"{plan.recompute} recomputation"] if plan.recompute != "none" else []
    return ", ".join([*sizes, *chunks, *recomputation, *(["sequence parallel"] if plan.sequence_parallel else [])])


def _plane(
    words: str, title: str, x_label: str, y_label: str, x_end: float, y_end: float, y_begin: float = 0.0
) -> tuple[Picture, Axes, Axes]:
    """Return a figure with the description ``words``, its axes (up to ``x_end`` and ``y_end``), and a sheet over these axes.

    The sheet is for texts. Its x and y are inches from the upper left corner of the axes.
    """
    above = title_lines(title)
    top = MARGIN + LINE * (len(above) + 1)
    figure = Picture(top + HEIGHT + 0.5, words)
    paper = page(figure)
    write_title(paper, above)
    write(paper, MARGIN, top - 0.1, y_label, color=MUTED)
    write(paper, (LEFT + WIDTH - RIGHT) / 2, top + HEIGHT + 0.42, x_label, color=MUTED, ha="center")
    axes = figure.add_axes(rectangle(figure, LEFT, top, WIDE, HEIGHT), facecolor="white", xlim=(0, x_end), ylim=(y_begin, y_end))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(lambda value, _: number(value))
    dress(axes)
    return figure, axes, sheet(figure, LEFT, top, WIDE, HEIGHT, WIDE)


def _write_names(axes: Axes, names: Mapping[Point, str], lines: Iterable[Box] = ()) -> None:
    """Write each name at the first free place near its marker, beside the ``lines``.

    The function tries right, left, above and below, in this order. Then it tries places farther up or down, with a thin line from the name
    to the marker.
    """
    taken: list[Box] = [*lines, *((x - MARK, y - MARK, x + MARK, y + MARK) for x, y in names)]  # no name may cover a line or a marker
    for (x, y), name in names.items():
        width, half = text_width(name, SIZE), 0.08
        near = [(x + 0.13, y), (x - 0.13 - width, y), (x - width / 2, y - 0.19), (x - width / 2, y + 0.19)]
        far = [(left, y + 0.17 * rows) for step in range(1, 7) for rows in (-step, step) for left in (x + 0.2, x - 0.2 - width)]
        boxes = [(left, middle - half, left + width, middle + half) for left, middle in near + far]
        free = [
            box
            for box in boxes
            if box[0] > 0  # the name must stay on the sheet
            and box[2] < WIDE + RIGHT
            and box[1] > -0.1
            and box[3] < HEIGHT
            and not any(_overlap(box, other) for other in taken)
        ]
        box = free[0] if free else boxes[0]  # if no place is free, an overlap is better than a point without a name
        taken.append(box)
        middle = (box[1] + box[3]) / 2
        if box in boxes[len(near) :]:
            # The line ends at the side of the name that is nearer to the marker.
            axes.plot([x, box[0] - 0.03 if box[0] > x else box[2] + 0.03], [y, middle], color=MUTED, linewidth=0.5, zorder=2)
        # a background, because a line behind the name makes it hard to read
        behind = {"facecolor": "white", "alpha": 0.8, "pad": 0.5, "linewidth": 0}
        write(axes, box[0], middle, name, size=SIZE, va="center_baseline", bbox=behind)


def _beats(one: Point, other: Point) -> bool:
    """Return whether one point is smaller in one quantity and not larger in the other."""
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def _overlap(one: Box, other: Box) -> bool:
    """Return whether two boxes share some area."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _checked_points(places: Any, most: int = MOST_POINTS) -> dict[str, Point]:
    """Return the points as pairs of floats, or raise an error if a point cannot be drawn."""
    if not isinstance(places, Mapping) or not 1 <= len(places) <= most:
        raise HybridLabError(
            f'points are one to {most} pairs by name, such as {{"GPipe": (8, 0.27)}}, not {short_repr(places)}',
            code_of_mapping(places),
        )
    place_of = {}
    for given, pair in places.items():
        name = checked_text(given, "the name of a point")
        values = numbers(pair, f"point {short_repr(name)}")
        if values.shape != (2,) or not ((values >= 0) & (values < LARGEST)).all():
            raise HybridLabError(
                f"point {short_repr(name)} must be two numbers from 0 to 1e100, not {short_repr(pair)}",
                "wrong-shape" if values.shape != (2,) else "out-of-range",
            )
        x, y = (float(f"{value:.9g}") for value in values)  # nine digits, so that points that differ only by rounding errors share a marker
        place_of[name] = (x, y)
    return place_of


def _search_text(search: Search, title: str, slower: int) -> str:
    """Return a description of a figure of a search in words."""
    best, smallest = search.best, search.pareto[-1]
    sentences = [
        *([f"{title}:"] if title else []),
        f"{TIME_LABEL} against {MEMORY_LABEL}: {counted(len(search.found), 'plan')} that fit in {_capacity_text(search)}.",
        f"No other beats {len(search.pareto)} of them in both.",
        f"The fastest: {_plan_text(best)}.",
        *([f"The smallest: {_plan_text(smallest)}."] if smallest != best else []),
        *([f"{counted(slower, 'slower plan')} not drawn."] if slower else []),
    ]
    return " ".join(sentences)


def _plan_text(found: Found) -> str:
    return f"{found.seconds:.3g} s, {found.memory / 1e9:.1f} GB, {plan_words(found.plan)}"


def _capacity_text(search: Search) -> str:
    return f"{search.profile.memory / 1e9:g} GB of {search.profile.name}"
