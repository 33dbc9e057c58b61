"""The time of a pipelined all-reduce along two binary trees, with pieces of a chosen size."""

from typing import Any

import numpy as np

from hybridlab.checks import whole_number
from hybridlab.collectives.cost import Link, checked_link, message_sizes

MOST_PIECES = 2**40


def double_tree_time(ranks: int, nbytes: Any, link: Link, pieces: int | None = None) -> Any:
    """Return the seconds of a pipelined all-reduce along two binary trees, 4(L + k - 1)(a + S / (2kB)) with L = ceil(log2(D)).

    Each of the two trees spans all ranks and carries half of the S bytes, cut into k pieces. A rank that has children in one tree has none
    in the other. Therefore every rank sends at most one piece and receives at most one piece in a step, and a step takes the latency a and
    the time of one piece. The reduction takes at most 2(L + k - 1) steps, and the broadcast takes as many. The time is shortest near
    k = sqrt(S(L - 1) / (2aB)). For long messages it approaches 2S/B, the time of a ring of many ranks.

    :func:`all_reduce_time` counts only 2L latencies and 2S bytes for "double-tree". This is the limit of pieces that are so short, and of
    latencies that overlap so well, that filling the pipeline takes no more than one message down the tree.

    Parameters
    ----------
    ranks : int
        The number of ranks, D.
    nbytes : float or array
        Encoded bytes that one rank holds, S.
    link : Link
        All links are equal and work at the same time; they have the latency a and the bandwidth B.
    pieces : int, optional
        The number of pieces in each tree, k. None takes the whole number with the shortest time, for each size.

    Returns
    -------
    float or array
        Seconds, in the shape of ``nbytes``.

    References
    ----------
    Sanders, Speck and Träff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing 35 (2009).

    Examples
    --------
    >>> from hybridlab.collectives import all_reduce_time
    >>> link = Link(latency=5e-6, bandwidth=25e9)
    >>> [round(1e3 * double_tree_time(64, 100e6, link, pieces), 2) for pieces in (1, 10, 45, 1000)]  # ms
    [48.12, 12.3, 9.89, 28.14]
    >>> round(1e3 * all_reduce_time("ring", 64, 100e6, link), 2)
    8.51
    """
    ranks, size, link = whole_number(ranks, "ranks"), message_sizes(nbytes), checked_link(link, "link")
    hops = (ranks - 1).bit_length()
    if pieces is None:
        with np.errstate(all="ignore"):  # without latency, the best number of pieces is infinite
            best = np.sqrt(size * (hops - 1) / (2 * link.bandwidth * link.latency))
        counts = np.clip(np.nan_to_num([np.floor(best), np.ceil(best)], nan=1), 1, MOST_PIECES)  # the time is convex in the count
    else:
        counts = np.full((1, *size.shape), whole_number(pieces, "pieces", at_most=MOST_PIECES), dtype=np.float64)
    steps = 4 * (hops + counts - 1) if ranks > 1 else 0
    seconds = (steps * (link.latency + size / (2 * counts * link.bandwidth))).min(axis=0)
    return seconds if seconds.ndim else float(seconds)
