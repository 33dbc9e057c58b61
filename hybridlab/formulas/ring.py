"""Closed forms of an all-reduce: its bytes, and the error that rounding leaves in it.

The errors are NMSE, the mean square of the error over the mean square of the right result, for values that are
independent from rank to rank, with mean 0 and equal variance. Letter of the book: D ranks.
"""

import math
from functools import lru_cache

import numpy as np

from hybridlab.checks import short_repr, times, whole_number
from hybridlab.errors import HybridLabError

LEVELS = 127
MOST_NUMBERS = 2**62


def gaussian_crest(count: int) -> float:
    """Return the crest of ``count`` independent normal numbers of variance 1: the expected largest magnitude, E max|x|.

    The integral over x >= 0 of 1 - P(abs(X) <= x)^count, by Simpson's rule.

    >>> round(gaussian_crest(2**14), 3)
    4.134
    """
    return _crest(whole_number(count, "count", at_most=MOST_NUMBERS))


def int8_ring_nmse(ranks: int, crest: float, stochastic: bool = False) -> float:
    """Return the NMSE of a ring all-reduce in INT8, c^2/(12 x 127^2) x ((D-1)/2 + 1): it grows with the ranks.

    A message of numbers of variance s^2 has a scale of c s / 127, and rounding to the nearest adds an error of scale^2/12.
    The D-1 hops of the reduce-scatter carry sums of 1 to D-1 ranks and add (1 + ... + D-1)/D = (D-1)/2 such parts of the
    result's variance D, the finished chunk one more. ``crest`` is c of the numbers that share a scale;
    ``stochastic`` rounding doubles the error.

    >>> f"{int8_ring_nmse(8, gaussian_crest(2**14)):.2e}", f"{int8_ring_nmse(64, gaussian_crest(2**11)):.2e}"
    ('3.97e-04', '2.21e-03')
    """
    ranks = whole_number(ranks, "ranks")
    return _rounding(crest, stochastic) * ((ranks - 1) / 2 + 1 if ranks > 1 else 0)


def int8_one_shot_nmse(crest: float, stochastic: bool = False) -> float:
    """Return the NMSE of a one-shot all-reduce in INT8, 2c^2/(12 x 127^2), however many ranks there are.

    Each value is rounded once before it is summed and the finished chunk once: two parts of the result's variance. That all
    ranks round what they send, the owner of a chunk its own values too, is taken as given.

    >>> f"{int8_one_shot_nmse(gaussian_crest(2**14)):.2e}"
    '1.77e-04'
    """
    return 2 * _rounding(crest, stochastic)


def cast_nmse(roundoff: float) -> float:
    """Return the NMSE of one rounding to a format whose largest relative error is u: u^2 / (8 ln 2).

    A number from 2^e to 2^(e+1) has an error of (2^e u)^2/3; the mean of 4^e/x^2 is 3/(8 ln 2) where every fraction of a
    power of two is as likely, which a wide range of magnitudes comes close to. A ring has (D-1)/2 + 1 such parts, as INT8.

    >>> f"{4.5 * cast_nmse(2.0**-11):.1e}"
    '1.9e-07'
    """
    return _one(roundoff, "roundoff", 1.0) ** 2 / (8 * math.log(2))


def ring_bytes(ranks: int, size: int, itemsize: int, scale_bytes: int = 0, block: int | None = None) -> int:
    """Return the bytes that all ranks of a ring all-reduce of ``size`` numbers send together, scales included.

    Each chunk travels 2(D-1) links: D-1 to be summed, D-1 to be handed on. A number takes ``itemsize`` bytes; a message has
    a scale of ``scale_bytes`` for every ``block`` of its numbers, or one if block is None. Patarasuk and Yuan, J. Parallel
    Distrib. Comput. 69 (2009): no all-reduce sends less than 2(D-1)/D of its numbers from each rank.

    >>> 3 * ring_bytes(4, 120, itemsize=1), 3 * ring_bytes(4, 120, itemsize=1, scale_bytes=4), 3 * ring_bytes(4, 120, itemsize=2)
    (2160, 2448, 4320)
    """
    ranks, size = whole_number(ranks, "ranks"), whole_number(size, "size", at_least=0, at_most=MOST_NUMBERS)
    itemsize, scale_bytes = whole_number(itemsize, "itemsize"), whole_number(scale_bytes, "scale_bytes", at_least=0)
    shorter, longer = divmod(size, ranks)  # so many chunks have one number more
    width = whole_number(block, "block", at_most=MOST_NUMBERS) if block is not None else shorter + 1
    scales = longer * -(-(shorter + 1) // width) + (ranks - longer) * -(-shorter // width)
    return 2 * (ranks - 1) * (size * itemsize + scales * scale_bytes)


@lru_cache(maxsize=256)
def _crest(count: int) -> float:
    points = np.linspace(0.0, 16.0, 4097)
    beyond = np.array([math.erfc(point / math.sqrt(2)) for point in points])  # P(|X| > x)
    with np.errstate(divide="ignore"):
        larger = -np.expm1(count * np.log1p(-beyond))  # P(max > x)
    weights = np.tile([2.0, 4.0], 2049)[:4097]
    weights[[0, -1]] = 1
    return float(weights @ larger) * 16.0 / 4096 / 3


def _rounding(crest: float, stochastic: bool) -> float:
    """Return the variance of the error of one rounding, in parts of that of the numbers."""
    if not isinstance(stochastic, (bool, np.bool_)):
        raise HybridLabError(f"stochastic must be True or False, not {short_repr(stochastic)}")
    return _one(crest, "crest", 1e9) ** 2 / (12 * LEVELS**2) * (2 if stochastic else 1)


def _one(value: float, name: str, at_most: float) -> float:
    """Return one number from 0 to ``at_most``, or refuse it."""
    number = times(value, name)
    if number.ndim or number > at_most:
        raise HybridLabError(f"{name} must be one number from 0 to {at_most:g}, not {short_repr(value)}")
    return float(number)
