"""The twists of lab 15's build: the cut, or the times of the layers, are given in another way."""

from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.course.labs.lab15.cuts import read_counts
from hybridlab.course.checking.twists import Function, Twist, in_words_of_the_page, show_changes, together

Standard = Callable[[Function], Function]


def _cut_from(counts_of: Callable[[list[float], int], list[float]]) -> Standard:
    """Return a ``standard`` for a function whose result is a cut in other words; ``counts_of`` also gets the number of layers."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def partition(times: Floats, devices: int) -> Any:
            layers = len(times)
            return in_words_of_the_page(function(times, devices), read_counts, lambda cut: counts_of(cut, layers))

        return partition

    return standard


def _times_as(given: Callable[[Floats], Floats], back: Callable[[Floats], Floats]) -> Standard:
    """Return a ``standard`` for a function that gets other times; ``back`` makes the times of the page from them."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def partition(times: Floats, devices: int) -> Any:
            passed_on = given(times)
            before = passed_on.copy()
            result = function(passed_on, devices)
            show_changes(times, passed_on, before, back)
            return result

        return partition

    return standard


def _scaled(place: int, factor: float) -> Callable[[Floats], Floats]:
    """Return a function that gives the times with one of them scaled."""

    def scaled(times: Floats) -> Floats:
        other = times.copy()
        other[place] *= factor
        return other

    return scaled


def _from_first_layers(cut: list[float], layers: int) -> list[float]:
    return [high - low for low, high in pairwise([*cut, layers])]


def _from_last_layers(cut: list[float], layers: int) -> list[float]:
    return [high - low for low, high in pairwise([-1, *cut])]


FIRST_LAYERS = Twist(
    "first-layers",
    "the function returns the number of the first layer of each device, and layers are counted from 0",
    _cut_from(_from_first_layers),
)
LAST_LAYERS = Twist(
    "last-layers",
    "the function returns the number of the last layer of each device, and layers are counted from 0",
    _cut_from(_from_last_layers),
)
LAST_DEVICE_FIRST = Twist(
    "last-device-first",
    "the list that the function returns begins with the last device, which has the last layers",
    _cut_from(lambda cut, layers: cut[::-1]),
)
LOADS_DATA = Twist(
    "loads-data",
    "the first layer also loads the data and takes twice the time that stands in `times`",
    _times_as(_scaled(0, 0.5), _scaled(0, 2.0)),
)
COMPUTES_LOSS = Twist(
    "computes-loss",
    "the last layer also computes the loss and takes twice the time that stands in `times`",
    _times_as(_scaled(-1, 0.5), _scaled(-1, 2.0)),
)
SUMS = Twist(
    "sums",
    "`times[i]` is the time of the layers 0 to i together",
    _times_as(np.cumsum, lambda sums: np.diff(sums, prepend=0.0)),
)

CUT_TWISTS = (
    FIRST_LAYERS,
    LOADS_DATA,
    together(SUMS, LAST_DEVICE_FIRST),
    COMPUTES_LOSS,
    LAST_LAYERS,
    together(LOADS_DATA, FIRST_LAYERS),
    SUMS,
    LAST_DEVICE_FIRST,
    together(COMPUTES_LOSS, LAST_LAYERS),
)
