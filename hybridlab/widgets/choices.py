"""What a view lets its reader choose from: one value or several, as an author may write them."""

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from hybridlab.checks import LARGEST, short_repr, times, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.widgets.pipeline import short
from hybridlab.wire import WireFormat

MOST_VALUES = 1_000  # of one control


def several(value: Any, name: str, at_most: int = MOST_VALUES) -> list[Any]:
    """Return one value or several as a list that is not empty.

    >>> several(3, "ranks"), several((3, 4), "ranks")
    ([3], [3, 4])
    """
    one = isinstance(value, np.ndarray) and value.ndim == 0
    if one or isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return [value]
    values = list(islice(value, at_most + 1))
    if not 0 < len(values) <= at_most:
        message = "is empty" if not values else f"has more than {at_most:,} values"
        raise HybridLabError(f"{name} {message}: give one value, or a few to choose from")
    return values


def whole_numbers(value: Any, name: str, at_least: int = 1, at_most: int = LARGEST) -> list[int]:
    """Return one whole number or several, sorted, each once."""
    return sorted({whole_number(each, name, at_least, at_most) for each in several(value, name)})


def scalars(value: Any, name: str) -> list[float]:
    """Return one time or several, sorted, each once."""
    values = several(value, name)
    if any(isinstance(each, Iterable) for each in values):
        raise HybridLabError(f"{name} must be a number or several, not {short_repr(value)}")
    return sorted({float(times(each, name)) for each in values})


def wire_formats(value: Any, name: str) -> list[WireFormat]:
    """Return one wire format or several, each once."""
    formats = several(value, name)
    for each in formats:
        if not isinstance(each, WireFormat):
            wanted = f'{name} must be a wire format, such as INT8 or WireFormat("INT8", block=256), or several'
            raise HybridLabError(f"{wanted}, not {short_repr(each)}")
    return list(dict.fromkeys(formats))


class Prices(NamedTuple):
    """What a step of the ring can cost: the name of the choice, its values, and the arguments of hybrid_step for each."""

    label: str
    values: list[Any]
    arguments: list[dict[str, Any]]


def prices(ring_step: Any, link: Any, gradient_bytes: Any, wire: Any, unit: str | None = None) -> Prices:
    """Return what a step of the ring can cost: times to choose from, or wire formats of gradients that cross a link.

    >>> prices((20, 10), None, None, None, "ms")[:2]
    ('Ring step, ms', [10, 20])
    """
    if link is None and gradient_bytes is None:
        steps = short(scalars(0.0 if ring_step is None else ring_step, "ring_step"))
        return Prices(f"Ring step, {unit}" if unit else "Ring step", steps, [{"ring_step": each} for each in steps])
    wires = wire_formats(wire, "wire")
    shared = {"ring_step": ring_step, "link": link, "gradient_bytes": gradient_bytes}
    return Prices("Wire format", [str(each) for each in wires], [shared | {"wire": each} for each in wires])
