"""The twists of lab 7's test of a ring: a right ring has sums, weights, or one column for each rank."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.course.labs.lab07.planted import Ring
from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import show_changes, together


def _of_ring(rename: Callable[[Ring], Ring]) -> Callable[[Function], Function]:
    """Return a ``standard`` that gives the test another ring: a right one for a right one, and with each fault one with this fault."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def ring_is_right(ring: Ring) -> Any:
            return function(rename(ring))

        return ring_is_right

    return standard


def _adds_up(ring: Ring) -> Ring:
    return lambda values: len(values) * ring(values)


def _halved(ring: Ring) -> Ring:
    return lambda values: 0.5 * ring(values)


def _by_columns(ring: Ring) -> Ring:
    return lambda values: ring(values.T).T


def _weighted(ring: Ring) -> Ring:
    """Return a ring in which rank r has the weight r + 1. The result is not divided by the mean weight."""

    def weighted(values: Floats) -> Any:
        weights = np.arange(1.0, len(values) + 1)[:, None]
        other = weights * values
        before = other.copy()
        found = ring(other)
        show_changes(values, other, before, lambda changed: changed / weights)
        return found

    return weighted


def _weighted_mean(ring: Ring) -> Ring:
    return lambda values: _weighted(ring)(values) / ((len(values) + 1) / 2)


SUM = Twist("sum", "a right ring adds up: every row is the sum over the ranks, not the mean", _of_ring(_adds_up))
HALF_OF_THE_MEAN = Twist("half-of-the-mean", "every row of a right ring is half of the mean over the ranks", _of_ring(_halved))
COLUMNS = Twist(
    "columns",
    "values and the result of a right ring have shape (n, D), with one column for each rank, not one row",
    _of_ring(_by_columns),
)
WEIGHTED_MEAN = Twist(
    "weighted-mean",
    "every row of a right ring is the weighted mean of the ranks, where rank r has the weight r + 1",
    _of_ring(_weighted_mean),
)
WEIGHTED_SUM = Twist(
    "weighted-sum",
    "every row of a right ring is a weighted sum: the sum over the ranks of r + 1 times the numbers of rank r",
    _of_ring(lambda ring: _adds_up(_weighted(ring))),
)
COLUMNS_OF_SUMS = Twist(
    "columns-of-sums",
    "values and the result have shape (n, D), with one column for each rank, and every column of a right ring is the sum over the ranks",
    together(SUM, COLUMNS).standard,
)
COLUMNS_OF_WEIGHTED_MEANS = Twist(
    "columns-of-weighted-means",
    "values and the result have shape (n, D), and column r belongs to rank r; a right ring returns in every column the weighted mean, "
    "where rank r has the weight r + 1",
    together(WEIGHTED_MEAN, COLUMNS).standard,
)

RING_TEST_TWISTS = (SUM, COLUMNS, WEIGHTED_MEAN, COLUMNS_OF_SUMS, HALF_OF_THE_MEAN, WEIGHTED_SUM, COLUMNS_OF_WEIGHTED_MEANS)
