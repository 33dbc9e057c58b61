"""Fit the times of all-reduces measured on 2 to 8 A100s, and print the constants of hybridlab/collectives/measured.py.

The measurements are in a folder beside the repository: `.venv/bin/python tests/outside/fit_links.py`.

Both fits are by least absolute deviations: they make the mean of the absolute values of the relative errors smallest. So small and large
messages count alike, and a single outlier does not change the fit much. Reweighted least squares finds them.
"""

from typing import Any

import numpy as np
from measured_beside import all_reduces

from hybridlab.arrays import Floats
from hybridlab.collectives import A100_KNOTS, Link

RANKS = range(2, 9)
ROUNDS = 200  # rounds of reweighting; the fits no longer change after 50 rounds
EXACT = 1e-9  # smaller relative errors are set to this value, because a weight is divided by the error and must stay finite


def measured(ranks: int) -> tuple[Any, Any]:
    """Return the sizes in bytes, in increasing order, and the seconds for one number of ranks."""
    nbytes, seconds = all_reduces(ranks)
    order = np.argsort(nbytes)
    return nbytes[order], seconds[order]


def fit_link(ranks: int, nbytes: Floats, seconds: Floats, weights: Floats | None = None) -> Link:
    """Return the link for which the computed times of a ring come nearest to measured times.

    ``weights`` says how much each point counts. ``numpy.gradient(nbytes)`` weights each size by the range of sizes around it.

    >>> sizes = np.array([1e6, 1e7, 1e8, 1e9])
    >>> link = fit_link(8, sizes, 14 * 6e-6 + 1.75 * sizes / 200e9)
    >>> round(link.latency, 12), round(link.bandwidth / 1e9, 6)
    (6e-06, 200.0)
    """
    counts = np.ones(nbytes.size) if weights is None else weights
    columns = np.stack([np.full(nbytes.size, 2 * (ranks - 1)), 2 * (ranks - 1) / ranks * nbytes], axis=1) / seconds[:, None]
    latency, slope = _least_deviations(columns, np.ones(nbytes.size), counts)
    if latency < 0:  # the error is a convex function, so the best link with a latency of at least 0 has latency 0
        latency, slope = 0.0, _least_deviations(columns[:, 1:], np.ones(nbytes.size), counts)[0]
    return Link(float(latency), float(1 / slope))


def fit_knots(nbytes: Floats, seconds: Floats, knots: Any) -> Floats:
    """Return the seconds at the ``knots`` for which straight pieces on logarithmic axes come nearest to measured times.

    A piece between two knots is a power law. Slope 0 means that only latency counts, and slope 1 that only bandwidth counts. Libraries
    change their protocol, channels and threads with the size of the message, so the slope rises from 0 to 1 in several steps. (PLogP lets
    its parameters vary with the size for the same reason: Kielmann, Bal and Verstoep 2000.) The errors are those of the logarithms. A
    piece that falls is made level, because a larger message should not take less time. Each piece needs a measured point.

    >>> fit_knots(np.array([1, 2, 4, 8, 16]), np.array([3.0, 3.0, 3.0, 6.0, 12.0]), [1, 4, 16]).round(6).tolist()
    [3.0, 3.0, 12.0]
    """
    basis = np.stack([np.interp(np.log(nbytes), np.log(knots), unit) for unit in np.eye(len(knots))], axis=1)
    assert np.linalg.matrix_rank(basis) == len(knots), "too many knots for these points, or too far from them"
    return np.maximum.accumulate(np.exp(_least_deviations(basis, np.log(seconds), np.ones(nbytes.size))))


def _least_deviations(columns: Floats, wanted: Floats, counts: Floats) -> Floats:
    """Return the vector x for which the sum of counts * |columns @ x - wanted| is smallest."""
    scale = np.abs(columns).max(axis=0)
    weights, found = counts, scale
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(columns / scale * root[:, None], wanted * root, rcond=None)[0]
        weights = counts / np.maximum(np.abs(columns / scale @ found - wanted), EXACT)
        weights = weights / weights.max()
    return np.asarray(found / scale)


if __name__ == "__main__":
    print("A100_LINKS")
    for ranks in RANKS:
        nbytes, seconds = measured(ranks)
        link = fit_link(ranks, nbytes, seconds, np.gradient(nbytes))
        print(f"    {ranks}: Link({link.latency:.3e}, {link.bandwidth / 1e9:.2f}e9),")
    print("A100_SECONDS")
    for ranks in RANKS:
        print(f"    {ranks}: ({', '.join(f'{each:.4g}' for each in fit_knots(*measured(ranks), A100_KNOTS))}),")
