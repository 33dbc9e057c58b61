"""From measured times of an all-reduce to a rule: a link, or straight pieces on a plot of two logarithmic axes."""

from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import LONGEST, numbers, short_repr
from hybridlab.collectives.cost import MOST_BYTES, Link, all_reduce_factors
from hybridlab.errors import HybridLabError

ROUNDS = 200  # of reweighting: the fits of the tests stand still after 50
EXACT = 1e-9  # a relative error that counts as none


def fit_link(ranks: int, nbytes: Any, seconds: Any, weights: Any = None) -> Link:
    """Return the link with which a ring of ``ranks`` comes nearest to the measured ``seconds`` of messages of ``nbytes``.

    Nearest: the mean relative error of the prediction is least (least absolute deviations, by reweighted least squares).
    That is the error one quotes; it treats small and large messages alike, and single wild points do not bend it.
    ``weights`` says how much each point counts: ``numpy.gradient(nbytes)`` where each size stands for all those around
    it, one each if None.
    Raises :class:`HybridLabError` for fewer than two sizes and for times that do not grow with the size.

    >>> from hybridlab.collectives import all_reduce_time
    >>> link = Link(latency=6e-6, bandwidth=200e9)
    >>> sizes = np.array([1e6, 1e7, 1e8, 1e9])
    >>> fitted = fit_link(8, sizes, all_reduce_time("ring", 8, sizes, link))
    >>> round(fitted.latency, 12), round(fitted.bandwidth / 1e9, 6)
    (6e-06, 200.0)
    """
    factors = all_reduce_factors("ring", ranks)
    if not factors.latency:
        raise HybridLabError("a ring of one rank sends nothing: measure at least two ranks")
    sizes, times, counts = _points(nbytes, seconds, weights)
    columns = np.stack([np.full(sizes.size, factors.latency), factors.bandwidth * sizes], axis=1)
    latency, slope = _least(columns / times[:, None], np.ones(times.size), counts)
    if latency < 0:  # the errors are convex, so that the best of those allowed lies where the latency is 0
        latency, slope = 0.0, _least(columns[:, 1:] / times[:, None], np.ones(times.size), counts)[0]
    if slope <= 0:
        raise HybridLabError("these seconds do not grow with nbytes, so no bandwidth fits them: measure larger messages")
    return Link(float(latency), float(1 / slope))


def fit_knots(nbytes: Any, seconds: Any, knots: Any, weights: Any = None) -> Floats:
    """Return the seconds at the sizes ``knots`` whose straight pieces, on logarithmic axes, come nearest to measured points.

    A piece is a power law: slope 0 is latency alone, slope 1 bandwidth alone, and libraries that change protocol, channels
    and threads with the size pass from one to the other in more than one step (PLogP lets its parameters vary with the
    size for the same reason: Kielmann, Bal and Verstoep 2000). Errors and ``weights`` as in :func:`fit_link`, but of the
    logarithms. Each piece needs a point; where the nearest pieces fall, which no larger message does, they are made level.

    >>> fit_knots([1, 2, 4, 8, 16], [3.0, 3.0, 3.0, 6.0, 12.0], knots=[1, 4, 16]).round(6).tolist()
    [3.0, 3.0, 12.0]
    """
    sizes, times, counts = _points(nbytes, seconds, weights)
    places = numbers(knots, "knots")
    if places.ndim != 1 or not (places > 0).all() or not (np.diff(places) > 0).all():
        raise HybridLabError(f"knots are sizes in bytes that grow from one to the next, not {short_repr(knots)}")
    few = np.eye(min(places.size, sizes.size + 1), places.size)  # one knot more than points is already refused
    basis = np.stack([np.interp(np.log(sizes), np.log(places), unit) for unit in few], axis=1)
    if np.linalg.matrix_rank(basis) < places.size:
        raise HybridLabError(f"{places.size} knots are more than these {sizes.size} points can tell: take fewer, nearer to points")
    found = _least(basis, np.log(times), counts)
    if np.abs(found).max() > np.log(LONGEST):
        raise HybridLabError(f"through these points pieces run far beyond any time at the knots {short_repr(knots)}: take nearer ones")
    return np.maximum.accumulate(np.exp(found))


def _least(columns: Floats, wanted: Floats, counts: Floats) -> Floats:
    """Return the x with the least weighted sum of |columns @ x - wanted|."""
    scale = np.abs(columns).max(axis=0)
    weights, found = counts, scale
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(columns / scale * root[:, None], wanted * root, rcond=None)[0]
        weights = counts / np.maximum(np.abs(columns / scale @ found - wanted), EXACT)
        weights = weights / weights.max()
    best: Floats = found / scale
    return best


def _points(nbytes: Any, seconds: Any, weights: Any) -> tuple[Floats, Floats, Floats]:
    """Return sizes, times and weights as rows of one length, or refuse them."""
    sizes, times = numbers(nbytes, "nbytes"), numbers(seconds, "seconds")
    counts = np.ones(sizes.shape) if weights is None else numbers(weights, "weights")
    for name, row in (("nbytes", sizes), ("seconds", times), ("weights", counts)):
        if row.ndim != 1 or row.shape != sizes.shape:
            raise HybridLabError(f"{name} must be a row with one number for each measured point, of shape {sizes.shape}, not {row.shape}")
        if not ((row >= 1 / MOST_BYTES) & (row <= MOST_BYTES)).all():
            raise HybridLabError(f"{name} must be above 0, from {1 / MOST_BYTES:g} to {MOST_BYTES:g}, for every measured point")
    if np.unique(sizes).size < 2:
        raise HybridLabError("a fit needs measured points of at least two sizes")
    return sizes, times, counts
