"""Colours that figures and widgets share: one a kind of operation or span, told apart by people who are colour-blind.

Those of operations are four of the eight colours of Okabe and Ito (Color Universal Design, 2008), those of the hops of a
ring two more; the optimiser is grey. Text on operations and on the optimiser is black.
"""

from collections.abc import Mapping
from types import MappingProxyType

KIND_COLOURS: Mapping[str, str] = MappingProxyType({"F": "#56B4E9", "B": "#E69F00", "I": "#F0E442", "W": "#009E73"})
SPAN_COLOURS: Mapping[str, str] = MappingProxyType({"reduce-scatter": "#CC79A7", "all-gather": "#0072B2", "optimiser": "#B8BEC6"})
LIGHTEST = 0.6  # share of white in the colour of a device's last chunk


def chunk_colour(kind: str, chunk: int, chunks: int) -> str:
    """Return the colour of an operation of ``chunk`` (from 0) on a device that holds ``chunks``: later ones are lighter.

    >>> [chunk_colour("F", chunk, 2) for chunk in range(2)]
    ['#56B4E9', '#BBE1F6']
    """
    white = LIGHTEST * chunk / (chunks - 1) if chunks > 1 else 0.0
    channels = (int(KIND_COLOURS[kind][place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(channel + (255 - channel) * white):02X}" for channel in channels)
