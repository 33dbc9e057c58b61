"""The colours of figures and widgets, for kinds of operations, spans and lines. Colour-blind readers can distinguish them.

The colours are from the palette of eight by Okabe and Ito (Color Universal Design, 2008). Operations use four of them, and the hops of
a ring use two. The optimiser is grey. Lines also differ in dash and marker.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedule import Operations

KIND_COLOURS: Mapping[str, str] = MappingProxyType({"F": "#56B4E9", "B": "#E69F00", "I": "#F0E442", "W": "#009E73"})
SPAN_COLOURS: Mapping[str, str] = MappingProxyType({"reduce-scatter": "#CC79A7", "all-gather": "#0072B2", "optimiser": "#B8BEC6"})

# Colours for the parts of a stacked bar, in order. Neighbours differ in lightness, so they also differ in black and white.
PART_COLOURS = (
    *(KIND_COLOURS[kind] for kind in "FBWI"),
    *(SPAN_COLOURS[kind] for kind in ("reduce-scatter", "optimiser", "all-gather")),
    *("#D55E00", "#DDD3C0", "#4A4A4A"),
)
LIGHTEST = 0.6  # share of white in the lightest shade
MOST_LINES = 18  # 6 colours, each with 3 combinations of dash and marker


class LineStyle(NamedTuple):
    """The colour, dash and marker of one line of a figure."""

    colour: str  # on a light background
    on_dark: str  # on a dark background
    dash: tuple[float, ...]  # lengths of dashes and gaps, in widths of the line; () is a solid line
    width: float  # points
    marker: str  # matplotlib's name
    size: float  # of the marker, points
    hollow: bool


# The colours of Okabe and Ito, where light colours are darker here, for a light background. Thick lines with large hollow markers
# alternate with thin lines with small filled markers. So if two lines overlap, both stay visible.
_LINES = (
    LineStyle("#0072B2", "#6CC0F5", (), 2.4, "o", 9.0, True),
    LineStyle("#C05000", "#FF9F5A", (4, 2), 1.5, "s", 4.5, False),
    LineStyle("#007A59", "#3CCF9F", (1, 1.2), 2.0, "^", 7.5, True),
    LineStyle("#000000", "#E6EDF3", (6, 2, 1, 2), 1.2, "D", 4.0, False),
    LineStyle("#A6548A", "#F09CCB", (2, 1), 1.6, "v", 7.5, True),
    LineStyle("#59636E", "#9FA8B2", (), 1.0, "x", 5.5, False),
)


def line_style(place: int) -> LineStyle:
    """Return the style of the line with index ``place``. Any two of the first 18 styles differ in colour, or in both dash and marker.

    Parameters
    ----------
    place : int
        The index of the line in its figure, from 0.

    Examples
    --------
    >>> line_style(0).marker, line_style(6).colour == line_style(0).colour, line_style(6).marker
    ('o', True, 's')
    """
    count = len(_LINES)
    colours, shape = _LINES[place % count], _LINES[(place + place // count) % count]
    return shape._replace(colour=colours.colour, on_dark=colours.on_dark)


def ink_on(colour: str) -> str:
    """Return the text colour for a background colour of this palette: white on dark blue and dark grey, otherwise black.

    >>> ink_on("#F0E442"), ink_on(PART_COLOURS[-1])
    ('#000000', '#FFFFFF')
    """
    return "#FFFFFF" if colour in (SPAN_COLOURS["all-gather"], PART_COLOURS[-1]) else "#000000"


def shade_colour(kind: str, shade: int, shades: int) -> str:
    """Return the colour of an operation in one of several shades. Later shades are lighter.

    Parameters
    ----------
    kind : str
        F, B, I or W.
    shade : int
        The index of the shade, from 0.
    shades : int
        The number of shades.

    Returns
    -------
    str
        A colour such as "#56B4E9".

    Examples
    --------
    >>> [shade_colour("F", shade, 2) for shade in range(2)]
    ['#56B4E9', '#BBE1F6']
    """
    white = LIGHTEST * shade / (shades - 1) if shades > 1 else 0.0
    channels = (int(KIND_COLOURS[kind][place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(channel + (255 - channel) * white):02X}" for channel in channels)


def shades_of(schedule: Operations) -> Ints:
    """Return the index of the shade of each operation, shape (operations,).

    An operation on chunk c of its device has shade c. With two copies of the weights and v chunks, the operations of the second copy have
    the shades v to 2v - 1.

    >>> from hybridlab.schedules import build
    >>> shades_of(build("hanayo", devices=1, microbatches=1)).tolist(), shades_of(build("chimera", 2, 2)).tolist()
    ([0, 1, 1, 0], [0, 1, 1, 0, 1, 0, 0, 1])
    """
    chunk_of = np.array([[path[:stage].count(device) for stage, device in enumerate(path)] for path in schedule.paths])
    copy = schedule.copy_of[schedule.microbatch]
    shades: Ints = copy * schedule.chunks + chunk_of[copy, schedule.stage]
    return shades
