"""Closed forms for an all-reduce: its bytes, and the rounding error in its result.

The error is given as NMSE, the normalised mean square error: the mean square of the error divided by the mean square of the exact result.
There are D ranks. The formulas assume that the values of different ranks are independent, with mean 0 and equal variance.
"""

import math
from functools import lru_cache

import numpy as np

from hybridlab.checks import short_repr, times, true_or_false, whole_number
from hybridlab.errors import HybridLabError

LEVELS = 127  # the largest number in INT8
MOST_NUMBERS = 2**62


def gaussian_crest(count: int) -> float:
    """Return the crest of ``count`` independent normal numbers with variance 1: the expected largest magnitude, E max|x|.

    The crest is the integral of 1 - P(abs(X) <= x)^count over all x >= 0. Simpson's rule computes the integral.

    Raises
    ------
    HybridLabError
        ``count`` is not a whole number of at least 1.

    Examples
    --------
    >>> round(gaussian_crest(2**14), 3)
    4.134
    """
    return _crest(whole_number(count, "count", at_most=MOST_NUMBERS))


def int8_ring_nmse(ranks: int, crest: float, stochastic: bool = False) -> float:
    """Return the NMSE of a ring all-reduce in INT8, c^2/(12 x 127^2) x ((D-1)/2 + 1).

    If the numbers of a message have variance s^2, the scale of the message is c s / 127. Rounding to the nearest gives each number an error
    with variance scale^2/12. Relative to s^2, this is e = c^2/(12 x 127^2). The D-1 hops of the reduce-scatter carry sums over 1, 2, ...,
    D-1 ranks, and the result is a sum over D ranks. So, relative to the variance of the result, these hops together add
    (1 + ... + D-1)/D = (D-1)/2 times e. Rounding the finished chunk adds e once more.

    Parameters
    ----------
    ranks : int
        D.
    crest : float
        c, the largest magnitude of the numbers that share a scale, divided by the standard deviation of the numbers. See
        :func:`gaussian_crest`.
    stochastic : bool
        Whether rounding is stochastic. Stochastic rounding doubles the error.

    Raises
    ------
    HybridLabError
        D is not a whole number of at least 1, c is not one number from 0 to 1e9, or ``stochastic`` is not True or False.

    Examples
    --------
    >>> f"{int8_ring_nmse(8, gaussian_crest(2**14)):.2e}", f"{int8_ring_nmse(64, gaussian_crest(2**11)):.2e}"
    ('3.97e-04', '2.21e-03')
    """
    ranks = whole_number(ranks, "ranks")
    return _rounding_nmse(crest, stochastic) * ((ranks - 1) / 2 + 1 if ranks > 1 else 0)


def int8_one_shot_nmse(ranks: int, crest: float, stochastic: bool = False) -> float:
    """Return the NMSE of a one-shot all-reduce in INT8, c^2/(12 x 127^2) x ((D-1)/D + 1).

    Let e = c^2/(12 x 127^2) be the error of one rounding. The owner of a chunk receives D-1 packets, and each packet is rounded once. The
    owner's own numbers are not sent and not rounded. The result is a sum over D ranks, so the packets together add (D-1)/D times e.
    Rounding the finished chunk adds e once more. With 2 ranks, the error equals that of a ring. With many ranks, it approaches 2e.

    Parameters
    ----------
    ranks : int
        D.
    crest : float
        c, the largest magnitude of the numbers that share a scale, divided by the standard deviation of the numbers.
    stochastic : bool
        Whether rounding is stochastic. Stochastic rounding doubles the error.

    Raises
    ------
    HybridLabError
        D is not a whole number of at least 1, c is not one number from 0 to 1e9, or ``stochastic`` is not True or False.

    Examples
    --------
    >>> f"{int8_one_shot_nmse(8, gaussian_crest(2**14)):.2e}", f"{int8_one_shot_nmse(64, gaussian_crest(2**11)):.2e}"
    ('1.66e-04', '1.35e-04')
    """
    ranks = whole_number(ranks, "ranks")
    return _rounding_nmse(crest, stochastic) * ((ranks - 1) / ranks + 1 if ranks > 1 else 0)


def cast_nmse(roundoff: float) -> float:
    """Return the NMSE of one rounding to a floating-point format, u^2 / (8 ln 2), where u is the largest relative error.

    A number x between 2^e and 2^(e+1) has a mean square error of (2^e u)^2/3. If the logarithm of x is uniformly distributed, the mean
    of 4^e/x^2 is 3/(8 ln 2). Numbers with a wide range of magnitudes come close to this mean. The NMSE of a ring all-reduce is
    (D-1)/2 + 1 times this NMSE, as for INT8.

    Parameters
    ----------
    roundoff : float
        u, from 0 to 1: 2^-11 for FP16, 2^-24 for FP32.

    Raises
    ------
    HybridLabError
        u is not one number from 0 to 1.

    Examples
    --------
    >>> f"{4.5 * cast_nmse(2.0**-11):.1e}"
    '1.9e-07'
    """
    return _one_number(roundoff, "roundoff", 1.0) ** 2 / (8 * math.log(2))


def ring_bytes(ranks: int, size: int, itemsize: int, scale_bytes: int = 0, block: int | None = None) -> int:
    """Return the number of bytes that all ranks of a ring all-reduce send together, scales included.

    Each chunk is sent 2(D-1) times: D-1 times in the reduce-scatter and D-1 times in the all-gather.

    Parameters
    ----------
    ranks : int
        D.
    size : int
        The number of numbers that each rank holds.
    itemsize : int
        Bytes of one number in a message.
    scale_bytes : int
        Bytes of one scale.
    block : int, optional
        The number of numbers that share a scale. None means one scale for each message.

    Raises
    ------
    HybridLabError
        ``ranks``, ``itemsize`` or ``block`` is not a whole number of at least 1, or ``size`` or ``scale_bytes`` is not a whole number of at
        least 0.

    References
    ----------
    Patarasuk and Yuan, J. Parallel Distrib. Comput. 69, 2009: in any all-reduce, each rank sends at least 2(D-1)/D of its numbers.

    Examples
    --------
    >>> 3 * ring_bytes(4, 120, itemsize=1), 3 * ring_bytes(4, 120, itemsize=1, scale_bytes=4), 3 * ring_bytes(4, 120, itemsize=2)
    (2160, 2448, 4320)
    """
    ranks, size = whole_number(ranks, "ranks"), whole_number(size, "size", at_least=0, at_most=MOST_NUMBERS)
    itemsize, scale_bytes = whole_number(itemsize, "itemsize"), whole_number(scale_bytes, "scale_bytes", at_least=0)
    shorter, longer_chunks = divmod(size, ranks)  # numbers in a shorter chunk; ``longer_chunks`` chunks have one more
    width = whole_number(block, "block", at_most=MOST_NUMBERS) if block is not None else shorter + 1
    scales = longer_chunks * -(-(shorter + 1) // width) + (ranks - longer_chunks) * -(-shorter // width)
    return 2 * (ranks - 1) * (size * itemsize + scales * scale_bytes)


@lru_cache(maxsize=256)
def _crest(count: int) -> float:
    """Return the integral of 1 - P(abs(X) <= x)^count from 0 to 16."""
    # Beyond 16 standard deviations, P(|X| > x) is below 1e-56, so even the largest of 2**62 numbers is practically never there.
    points = np.linspace(0.0, 16.0, 4097)
    beyond = np.array([math.erfc(point / math.sqrt(2)) for point in points])  # P(|X| > x)
    with np.errstate(divide="ignore"):  # at x = 0 the logarithm is minus infinity, and the result is right
        # log1p and expm1 are exact for tiny ``beyond``, where 1 - beyond would round to 1
        larger = -np.expm1(count * np.log1p(-beyond))  # P(max > x)
    weights = np.tile([2.0, 4.0], 2049)[:4097]
    weights[[0, -1]] = 1  # the weights of Simpson's rule are 1, 4, 2, 4, ..., 2, 4, 1
    return float(weights @ larger) * 16.0 / 4096 / 3


def _rounding_nmse(crest: float, stochastic: bool) -> float:
    """Return the variance of the error from one rounding, divided by the variance of the numbers."""
    # Stochastic rounding: a number at the share p between two levels has the mean square error p(1 - p). Its mean over p is 1/6, and for
    # rounding to the nearest it is 1/12.
    doubled = 2 if true_or_false(stochastic, "stochastic") else 1
    return _one_number(crest, "crest", 1e9) ** 2 / (12 * LEVELS**2) * doubled


def _one_number(value: float, name: str, at_most: float) -> float:
    """Return ``value`` as a float. Raise an error if it is not a single number from 0 to ``at_most``."""
    number = times(value, name)
    if number.ndim or number > at_most:
        code = "wrong-shape" if number.ndim else "too-large"
        raise HybridLabError(f"{name} must be one number from 0 to {at_most:g}, not {short_repr(value)}", code)
    return float(number)
