"""Colours that figures and widgets share: one a kind of operation, span or line, told apart by people who are colour-blind.

Those of operations are four of the eight colours of Okabe and Ito (Color Universal Design, 2008), those of the hops of a
ring two more; the optimiser is grey. Text on operations and on the optimiser is black. Lines differ in dash and marker, too.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedule import Operations

KIND_COLOURS: Mapping[str, str] = MappingProxyType({"F": "#56B4E9", "B": "#E69F00", "I": "#F0E442", "W": "#009E73"})
SPAN_COLOURS: Mapping[str, str] = MappingProxyType({"reduce-scatter": "#CC79A7", "all-gather": "#0072B2", "optimiser": "#B8BEC6"})

# Of the parts of a bar, in their order: no two neighbours of one lightness, so that they are told apart without colour, too
PART_COLOURS = (*(KIND_COLOURS[kind] for kind in "FBWI"), *(SPAN_COLOURS[kind] for kind in ("reduce-scatter", "optimiser", "all-gather")))
LIGHTEST = 0.6  # share of white in the lightest shade
MOST_LINES = 18  # each colour with three dashes and markers


class LineStyle(NamedTuple):
    """How one of several lines is drawn: widths and ``size`` (of the marker) in points, ``dash`` in widths of the line (() is full)."""

    colour: str  # on white paper
    on_dark: str
    dash: tuple[float, ...]
    width: float
    marker: str  # as matplotlib names them
    size: float
    hollow: bool


# Colours of Okabe and Ito, the lighter ones darkened for white paper. Where lines coincide, a later and thinner one
# lies on an earlier one, whose marker is larger and hollow.
_LINES = (
    LineStyle("#0072B2", "#6CC0F5", (), 2.4, "o", 9.0, True),
    LineStyle("#C05000", "#FF9F5A", (4, 2), 1.5, "s", 4.5, False),
    LineStyle("#007A59", "#3CCF9F", (1, 1.2), 2.0, "^", 7.5, True),
    LineStyle("#000000", "#E6EDF3", (6, 2, 1, 2), 1.2, "D", 4.0, False),
    LineStyle("#A6548A", "#F09CCB", (2, 1), 1.6, "v", 7.5, True),
    LineStyle("#59636E", "#9FA8B2", (), 1.0, "x", 5.5, False),
)


def line_style(place: int) -> LineStyle:
    """Return the style of line ``place``, from 0; the first eighteen differ in colour, or in both dash and marker.

    >>> line_style(0).marker, line_style(6).colour == line_style(0).colour, line_style(6).marker
    ('o', True, 's')
    """
    count = len(_LINES)
    colours, shape = _LINES[place % count], _LINES[(place + place // count) % count]
    return shape._replace(colour=colours.colour, on_dark=colours.on_dark)


def ink_on(colour: str) -> str:
    """Return the colour of text on one of the colours above: white on the one dark blue.

    >>> ink_on("#F0E442"), ink_on(PART_COLOURS[-1])
    ('#000000', '#FFFFFF')
    """
    return "#FFFFFF" if colour == SPAN_COLOURS["all-gather"] else "#000000"


def shade_colour(kind: str, shade: int, shades: int) -> str:
    """Return the colour of an operation in one of ``shades``, from 0 on: later ones are lighter.

    >>> [shade_colour("F", shade, 2) for shade in range(2)]
    ['#56B4E9', '#BBE1F6']
    """
    white = LIGHTEST * shade / (shades - 1) if shades > 1 else 0.0
    channels = (int(KIND_COLOURS[kind][place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(channel + (255 - channel) * white):02X}" for channel in channels)


def shades_of(schedule: Operations) -> Ints:
    """Return the shade of every operation: the chunk that it runs, after all chunks of the copies of the weights before its own.

    >>> from hybridlab.schedules import build
    >>> shades_of(build("hanayo", devices=1, microbatches=1)).tolist(), shades_of(build("chimera", 2, 2)).tolist()
    ([0, 1, 1, 0], [0, 1, 1, 0, 1, 0, 0, 1])
    """
    chunk_of = np.array([[path[:stage].count(device) for stage, device in enumerate(path)] for path in schedule.paths])
    copy = schedule.copy_of[schedule.microbatch]
    shades: Ints = copy * schedule.chunks + chunk_of[copy, schedule.stage]
    return shades
