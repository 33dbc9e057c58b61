"""Checks of the values that a control of a view offers: one value, or several values."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from hybridlab.checks import LARGEST, short_repr, times, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY, known_schedule
from hybridlab.wire import WireFormat

MOST_VALUES = 1_000  # largest number of values of one control


def one_or_several(value: Any, name: str, at_most: int = MOST_VALUES) -> list[Any]:
    """Return one value or several values as a non-empty list.

    Parameters
    ----------
    value : object or iterable of object
        Texts and arrays without axes count as one value.
    name : str
        The name of the argument, for the message of an error.
    at_most : int
        The largest accepted number of values.

    Raises
    ------
    HybridLabError
        If ``value`` is empty (``empty``) or has more than ``at_most`` values (``too-large``).

    Examples
    --------
    >>> one_or_several(3, "ranks"), one_or_several((3, 4), "ranks")
    ([3], [3, 4])
    """
    single = isinstance(value, np.ndarray) and value.ndim == 0  # such an array counts as Iterable, but iterating over it raises an error
    if single or isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return [value]
    values = list(islice(value, at_most + 1))  # read at most one value too many, because an iterator can be endless
    if not values:
        raise HybridLabError(f"{name} is empty: give one value, or a few to choose from", "empty")
    if len(values) > at_most:
        raise HybridLabError(f"{name} has more than {at_most:,} values: give one value, or a few to choose from", "too-large")
    return values


def whole_numbers(value: Any, name: str, at_least: int = 1, at_most: int = LARGEST) -> list[int]:
    """Return one whole number or several as a sorted list without duplicates.

    >>> whole_numbers((4, 2, 4), "devices")
    [2, 4]
    """
    return sorted({whole_number(each, name, at_least, at_most) for each in one_or_several(value, name)})


def sorted_times(value: Any, name: str) -> list[float]:
    """Return one time or several times as a sorted list without duplicates.

    >>> sorted_times((1, 0.5), "p2p")
    [0.5, 1.0]
    """
    values = one_or_several(value, name)
    if any(isinstance(each, Iterable) for each in values):  # a control offers one time for all devices
        raise HybridLabError(f"{name} must be one number or several, not {short_repr(value)}", "not-a-number")
    return sorted({float(times(each, name)) for each in values})


def wire_formats(value: Any, name: str) -> list[WireFormat]:
    """Return one wire format or several as a list without duplicates, in the given order."""
    formats = one_or_several(value, name)
    for each in formats:
        if not isinstance(each, WireFormat):
            wanted = f'{name} must be a wire format, such as INT8 or WireFormat("INT8", block=256), or several'
            raise HybridLabError(f"{wanted}, not {short_repr(each)}", "wrong-type")
    return list(dict.fromkeys(formats))


def schedule_names(value: Any) -> list[str]:
    """Return the names of schedules without duplicates, in the given order. Names in a set get the order of the registry.

    >>> schedule_names(("1F1B", "gpipe")), schedule_names({"1F1B", "gpipe"})
    (['1f1b', 'gpipe'], ['gpipe', '1f1b'])
    """
    names = list(dict.fromkeys(known_schedule(name) for name in one_or_several(value, "schedules")))
    if isinstance(value, (set, frozenset)):  # the order of a set differs from run to run
        names.sort(key=list(REGISTRY).index)
    return names


def costs_of_one_setting(**arguments: Any) -> Costs:
    """Return :class:`Costs` with these ``arguments``, or raise an error if they describe several settings."""
    costs = Costs(**arguments)
    if costs.batch:
        raise HybridLabError("the costs must be for one setting: give each as one number, or one for each device", "several-settings")
    return costs
