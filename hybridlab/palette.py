"""Colours that figures and widgets share: one a kind of operation or span, told apart by people who are colour-blind.

Those of operations are four of the eight colours of Okabe and Ito (Color Universal Design, 2008), those of the hops of a
ring two more; the optimiser is grey. Text on operations and on the optimiser is black.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from hybridlab.columns import Columns
from hybridlab.rows import Ints

KIND_COLOURS: Mapping[str, str] = MappingProxyType({"F": "#56B4E9", "B": "#E69F00", "I": "#F0E442", "W": "#009E73"})
SPAN_COLOURS: Mapping[str, str] = MappingProxyType({"reduce-scatter": "#CC79A7", "all-gather": "#0072B2", "optimiser": "#B8BEC6"})
LIGHTEST = 0.6  # share of white in the lightest shade


def shade_colour(kind: str, shade: int, shades: int) -> str:
    """Return the colour of an operation in one of ``shades``, from 0 on: later ones are lighter.

    >>> [shade_colour("F", shade, 2) for shade in range(2)]
    ['#56B4E9', '#BBE1F6']
    """
    white = LIGHTEST * shade / (shades - 1) if shades > 1 else 0.0
    channels = (int(KIND_COLOURS[kind][place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(channel + (255 - channel) * white):02X}" for channel in channels)


def shades_of(schedule: Columns) -> Ints:
    """Return the shade of every operation: the chunk that it runs, after all chunks of the copies of the weights before its own.

    >>> from hybridlab.schedules import build
    >>> shades_of(build("hanayo", devices=1, microbatches=1)).tolist(), shades_of(build("chimera", 2, 2)).tolist()
    ([0, 1, 1, 0], [0, 1, 1, 0, 1, 0, 0, 1])
    """
    chunk_of = np.array([[path[:stage].count(device) for stage, device in enumerate(path)] for path in schedule.paths])
    copy = schedule.copy_of[schedule.microbatch]
    shades: Ints = copy * schedule.chunks + chunk_of[copy, schedule.stage]
    return shades
