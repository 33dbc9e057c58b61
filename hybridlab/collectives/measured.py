"""Measured all-reduces: their bandwidth, fits to their times, and fitted times of 2 to 8 A100 GPUs with NCCL over NVLink.

Source: the measured tables of the vTrain project (Bang et al. 2023, arXiv 2312.12391; MIT licence). Only fitted values are stored here,
for messages of 1 MiB to 1 GiB within one node. Each error below is the mean of the relative errors for one number of ranks. The mean is
taken either over the 20 measured sizes, or over sizes in equal steps of 1 MiB, whose times are interpolated between the 20 measured ones.

- ``A100_LINKS`` has one link for each number of ranks. Its error is 1.1 to 1.6 % over sizes in equal steps, most of which are large. Over
  the 20 sizes, most of which are small, it is 5 to 14 %. Even the link that fits the 20 sizes best has an error of 2.2 to 5.2 % over them,
  since the times below 50 MB do not lie on a straight line.
- :func:`measured_time` has six straight pieces. Its error is 0.8 to 1.7 % over the 20 sizes, and 0.3 to 1.1 % over sizes in equal steps.
  If one size is left out of the fit and then predicted, the error is 2.0 to 3.3 %. It is 0.5 to 1.8 % if each size is weighted by the
  range of sizes around it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import LONGEST, known_name, numbers, short_repr, whole_number
from hybridlab.collectives.cost import LARGEST_MESSAGE, Link, all_reduce_factors, message_sizes
from hybridlab.errors import HybridLabError, UnsupportedSize

# how many times a collective of D ranks sends (D-1)/D of its bytes; 0 means that it sends all bytes once
PASSES = MappingProxyType({"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1, "all-to-all": 1, "broadcast": 0, "reduce": 0})
COLLECTIVES = tuple(PASSES)
ROUNDS = 200  # rounds of reweighting in a fit; the fits of the tests no longer change after 50 rounds
EXACT = 1e-9  # smaller relative errors are set to this value, because a weight is divided by the error and must stay finite

# one link for each number of ranks, fitted by fit_link with the weights numpy.gradient(nbytes)
A100_LINKS: Mapping[int, Link] = MappingProxyType(
    {
        2: Link(2.950e-05, 196.22e9),
        3: Link(1.746e-05, 210.73e9),
        4: Link(1.090e-05, 220.35e9),
        5: Link(1.053e-05, 224.66e9),
        6: Link(8.095e-06, 228.73e9),
        7: Link(8.253e-06, 229.69e9),
        8: Link(5.734e-06, 230.78e9),
    }
)
A100_KNOTS = (1e6, 3e6, 6e6, 16e6, 50e6, 200e6, 1100e6)  # bytes
# for each number of ranks the seconds at the knots, fitted by fit_knots
A100_SECONDS: Mapping[int, tuple[float, ...]] = MappingProxyType(
    {
        2: (43.76e-6, 55.34e-6, 70.69e-6, 127.1e-6, 309.8e-6, 1.099e-3, 5.589e-3),
        3: (63.46e-6, 74.64e-6, 86.48e-6, 149.2e-6, 374e-6, 1.341e-3, 6.912e-3),
        4: (51.06e-6, 59.63e-6, 102.1e-6, 153.9e-6, 395.4e-6, 1.452e-3, 7.4e-3),
        5: (62.76e-6, 62.95e-6, 99.69e-6, 180.6e-6, 440.1e-6, 1.525e-3, 7.833e-3),
        6: (73e-6, 73.01e-6, 102e-6, 196.7e-6, 430.5e-6, 1.577e-3, 8.008e-3),
        7: (77.97e-6, 77.97e-6, 101.9e-6, 212.3e-6, 455.6e-6, 1.665e-3, 8.162e-3),
        8: (92.84e-6, 92.84e-6, 104.6e-6, 217.2e-6, 436.7e-6, 1.6e-3, 8.388e-3),
    }
)


def measured_time(ranks: int, nbytes: Any) -> Any:
    """Return the seconds of an all-reduce among 2 to 8 A100s of one node, from a fit to measurements.

    On two logarithmic axes, the time runs along straight pieces between the sizes ``A100_KNOTS``. Below the first knot this function
    returns a constant time, although a smaller message takes less time in reality. Beyond the last knot the bandwidth stays the same.

    Parameters
    ----------
    ranks : int
        The number of GPUs, 1 to 8. One rank takes no time.
    nbytes : float or array
        Bytes that one rank holds.

    Returns
    -------
    float or array
        Seconds, in the shape of ``nbytes``.

    Raises
    ------
    UnsupportedSize
        ``ranks`` is more than 8, which was not measured.

    Examples
    --------
    >>> round(1e3 * measured_time(8, 2**30), 2)  # ms
    8.19
    """
    ranks = whole_number(ranks, "ranks")
    if ranks > max(A100_SECONDS):
        raise UnsupportedSize(
            f"2 to 8 GPUs of one node were measured, not {ranks}: use two_level_time with A100_LINKS[8]",
            "unsupported-size",
        )
    size = message_sizes(nbytes)
    if ranks == 1:
        return np.zeros(size.shape) if size.ndim else 0.0
    within = np.log(np.clip(size, A100_KNOTS[0], A100_KNOTS[-1]))
    pieces = np.exp(np.interp(within, np.log(A100_KNOTS), np.log(A100_SECONDS[ranks])))
    seconds = pieces * np.maximum(1, size / A100_KNOTS[-1])
    return seconds if seconds.ndim else float(seconds)


def algorithm_bandwidth(nbytes: Any, seconds: Any) -> Any:
    """Return the bandwidth that a program observes: the bytes of a collective, divided by the seconds that it took.

    Parameters
    ----------
    nbytes : float or array
        Bytes of the collective.
    seconds : float or array
        How long it took, in a shape that broadcasts with ``nbytes``.

    Returns
    -------
    float or array
        Bytes a second.

    Raises
    ------
    HybridLabError
        ``seconds`` is not above zero, or the shapes do not broadcast.

    Examples
    --------
    >>> algorithm_bandwidth(1e9, 0.008)
    125000000000.0
    """
    size, time = message_sizes(nbytes), numbers(seconds, "seconds")
    if not ((time >= 1 / LARGEST_MESSAGE) & np.isfinite(time)).all():
        raise HybridLabError(f"seconds must be above zero and finite, not {short_repr(seconds)}", "out-of-range")
    try:
        bandwidth = size / time
    except ValueError:
        raise HybridLabError(
            f"nbytes and seconds must fit together, but have shapes {size.shape} and {time.shape}", "does-not-fit"
        ) from None
    return bandwidth if bandwidth.ndim else float(bandwidth)


def bus_bandwidth(collective: str, ranks: int, nbytes: Any, seconds: Any) -> Any:
    """Return the bandwidth that each link must have had in one direction, to compare with the peak bandwidth of the link.

    This is :func:`algorithm_bandwidth` times the share of the bytes that a rank must send. With D ranks the share is 2(D-1)/D for
    "all-reduce", (D-1)/D for "reduce-scatter", "all-gather" and "all-to-all", and 1 for "broadcast" and "reduce". If the links are the
    limit, the result does not depend on D.

    Parameters
    ----------
    collective : str
        One of the six names above, which are ``COLLECTIVES``.
    ranks : int
        The number of ranks, D, at least two.
    nbytes : float or array
        Bytes of the whole data: the bytes that a rank holds before a reduce-scatter, or after an all-gather.
    seconds : float or array
        How long the collective took.

    Returns
    -------
    float or array
        Bytes a second.

    References
    ----------
    PERFORMANCE.md of nccl-tests.

    Examples
    --------
    >>> bus_bandwidth("all-reduce", 8, 1e9, 0.007)
    250000000000.0
    """
    passes, ranks = PASSES[known_name(collective, PASSES, "collective")], whole_number(ranks, "ranks", at_least=2)
    return algorithm_bandwidth(nbytes, seconds) * (passes * (ranks - 1) / ranks if passes else 1)


def fit_link(ranks: int, nbytes: Any, seconds: Any, weights: Any = None) -> Link:
    """Return the link for which the computed times of a ring come nearest to measured times.

    "Nearest" means that the mean of the absolute values of the relative errors is smallest. This is a fit by least absolute deviations,
    and it is found by reweighted least squares. Small and large messages count alike, and a single outlier does not change the fit much.

    Parameters
    ----------
    ranks : int
        The number of ranks of the ring, at least two.
    nbytes : array, shape (points,)
        The size of each measured message, in bytes.
    seconds : array, shape (points,)
        The time of each measured message.
    weights : array, shape (points,), optional
        How much each point counts; None for equal weights. ``numpy.gradient(nbytes)`` weights each size by the range of sizes around it.

    Returns
    -------
    Link
        Latency in seconds, bandwidth in bytes a second.

    Raises
    ------
    HybridLabError
        There are fewer than two sizes, or the times do not grow with the size.

    Examples
    --------
    >>> from hybridlab.collectives import all_reduce_time
    >>> link = Link(latency=6e-6, bandwidth=200e9)
    >>> sizes = np.array([1e6, 1e7, 1e8, 1e9])
    >>> fitted = fit_link(8, sizes, all_reduce_time("ring", 8, sizes, link))
    >>> round(fitted.latency, 12), round(fitted.bandwidth / 1e9, 6)
    (6e-06, 200.0)
    """
    factors = all_reduce_factors("ring", ranks)
    if not factors.latency:
        raise HybridLabError("a ring of one rank sends nothing: measure at least two ranks", "too-small")
    sizes, times, counts = _measured_points(nbytes, seconds, weights)
    columns = np.stack([np.full(sizes.size, factors.latency), factors.bandwidth * sizes], axis=1)
    latency, slope = _least_deviations(columns / times[:, None], np.ones(times.size), counts)
    if latency < 0:  # the error is a convex function, so the best link with a latency of at least 0 has latency 0
        latency, slope = 0.0, _least_deviations(columns[:, 1:] / times[:, None], np.ones(times.size), counts)[0]
    if slope <= 0:
        raise HybridLabError("these seconds do not grow with nbytes, so no bandwidth fits them: measure larger messages", "no-fit")
    return Link(float(latency), float(1 / slope))


def fit_knots(nbytes: Any, seconds: Any, knots: Any, weights: Any = None) -> Floats:
    """Return the seconds at the ``knots`` for which straight pieces on logarithmic axes come nearest to measured times.

    A piece between two knots is a power law. Slope 0 means that only latency counts, and slope 1 that only bandwidth counts. Libraries
    change their protocol, channels and threads with the size of the message, so the slope rises from 0 to 1 in several steps. "Nearest"
    has the same meaning as in :func:`fit_link`, but for the errors of the logarithms. A piece that falls is made level, because a larger
    message should not take less time.

    Parameters
    ----------
    nbytes : array, shape (points,)
        The size of each measured message, in bytes.
    seconds : array, shape (points,)
        The time of each measured message.
    knots : array, shape (knots,)
        The sizes in bytes where pieces meet, in increasing order. Each piece needs a measured point.
    weights : array, shape (points,), optional
        How much each point counts; None for equal weights.

    Returns
    -------
    array, shape (knots,)
        Seconds at the knots, never decreasing.

    Raises
    ------
    HybridLabError
        The knots do not increase, or there are too many of them, or they are too far from the measured points.

    References
    ----------
    PLogP lets its parameters vary with the size for the same reason: Kielmann, Bal and Verstoep 2000.

    Examples
    --------
    >>> fit_knots([1, 2, 4, 8, 16], [3.0, 3.0, 3.0, 6.0, 12.0], knots=[1, 4, 16]).round(6).tolist()
    [3.0, 3.0, 12.0]
    """
    sizes, times, counts = _measured_points(nbytes, seconds, weights)
    places = numbers(knots, "knots")
    if places.ndim != 1 or not (places > 0).all() or not (np.diff(places) > 0).all():
        raise HybridLabError(f"knots must be increasing sizes in bytes, not {short_repr(knots)}", "not-increasing")
    units = np.eye(min(places.size, sizes.size + 1), places.size)  # one knot more than points is already refused
    basis = np.stack([np.interp(np.log(sizes), np.log(places), unit) for unit in units], axis=1)
    if np.linalg.matrix_rank(basis) < places.size:
        raise HybridLabError(
            f"{places.size} knots cannot be found from these {sizes.size} points: take fewer knots, nearer to points", "too-few-points"
        )
    found = _least_deviations(basis, np.log(times), counts)
    if np.abs(found).max() > np.log(LONGEST):
        raise HybridLabError(
            f"the times at the knots {short_repr(knots)} are too large for any time: take knots nearer to points", "no-fit"
        )
    return np.maximum.accumulate(np.exp(found))


def _least_deviations(columns: Floats, wanted: Floats, counts: Floats) -> Floats:
    """Return the vector x for which the sum of counts * |columns @ x - wanted| is smallest."""
    scale = np.abs(columns).max(axis=0)
    weights, found = counts, scale
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(columns / scale * root[:, None], wanted * root, rcond=None)[0]
        weights = counts / np.maximum(np.abs(columns / scale @ found - wanted), EXACT)
        weights = weights / weights.max()
    best: Floats = found / scale
    return best


def _measured_points(nbytes: Any, seconds: Any, weights: Any) -> tuple[Floats, Floats, Floats]:
    """Return sizes, times and weights as arrays of equal length, or raise an error."""
    sizes, times = numbers(nbytes, "nbytes"), numbers(seconds, "seconds")
    counts = np.ones(sizes.shape) if weights is None else numbers(weights, "weights")
    for name, row in (("nbytes", sizes), ("seconds", times), ("weights", counts)):
        if row.ndim != 1 or row.shape != sizes.shape:
            wanted = f"{name} must be a row with one number for each measured point, of shape {sizes.shape}"
            raise HybridLabError(f"{wanted}, not {row.shape}", "wrong-shape")
        if not ((row >= 1 / LARGEST_MESSAGE) & (row <= LARGEST_MESSAGE)).all():
            allowed = f"from {1 / LARGEST_MESSAGE:g} to {LARGEST_MESSAGE:g}"
            raise HybridLabError(f"{name} must be above 0, {allowed}, for every measured point", "out-of-range")
    if np.unique(sizes).size < 2:
        raise HybridLabError("a fit needs measured points of at least two sizes", "too-few-points")
    return sizes, times, counts
