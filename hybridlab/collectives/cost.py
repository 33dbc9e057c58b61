"""The time of an all-reduce: a latency for each message of the longest chain of messages, and a time for each byte sent or added."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import known_name, numbers, one_time, short_repr, whole_number
from hybridlab.errors import HybridLabError, UnsupportedSize

LARGEST_MESSAGE = 1e18  # bytes
SLOWEST_LINK = 1e-30  # bytes a second; far slower than any real link, but fast enough that every computed time is finite
ALGORITHMS = ("ring", "one-shot", "recursive-doubling", "rabenseifner", "tree", "double-tree", "parameter-server")
MOST_PIECES = 2**40  # largest number of pieces into which a message along a double tree is cut
POWERS_OF_TWO = ("recursive-doubling", "rabenseifner")


@dataclass(frozen=True)
class Link:
    """A link between two devices. A message of n bytes takes ``latency`` + n / ``bandwidth`` seconds.

    Parameters
    ----------
    latency : float
        Seconds.
    bandwidth : float
        Bytes a second, above zero. Both directions have this bandwidth at the same time.

    Raises
    ------
    HybridLabError
        The latency is negative, the bandwidth is not above zero, or one of them is not one finite number.

    Examples
    --------
    >>> Link(latency=5e-6, bandwidth=25e9)
    Link(latency=5e-06, bandwidth=25000000000.0)
    """

    latency: float
    bandwidth: float

    def __post_init__(self) -> None:
        latency, bandwidth = one_time(self.latency, "latency"), one_time(self.bandwidth, "bandwidth")
        if bandwidth < SLOWEST_LINK:
            raise HybridLabError(
                f"bandwidth is in bytes a second, such as 25e9, and must be above zero, not {short_repr(self.bandwidth)}", "too-small"
            )
        object.__setattr__(self, "latency", latency)
        object.__setattr__(self, "bandwidth", bandwidth)


class Factors(NamedTuple):
    """The three cost factors of an all-reduce in which each rank holds S bytes.

    Parameters
    ----------
    latency : float
        The number of messages that must be sent one after another.
    bandwidth : float
        The number of bytes that must be sent one after another, divided by S.
    reduce : float
        The number of bytes that one device adds to a sum, divided by S.
    """

    latency: float
    bandwidth: float
    reduce: float


def all_reduce_factors(algorithm: str, ranks: int) -> Factors:
    """Return the three cost factors of an all-reduce: of latency, of bytes sent and of bytes added.

    With D ranks and L = ceil(log2(D)), the three factors of each algorithm are:

    - "ring": 2(D-1), 2(D-1)/D, (D-1)/D (Patarasuk and Yuan 2009);
    - "one-shot": the same as "ring". Each rank owns one chunk, and each rank sends a message to every other rank;
    - "recursive-doubling": L, L, L. D must be a power of two;
    - "rabenseifner": 2L, 2(D-1)/D, (D-1)/D. D must be a power of two;
    - "tree": 2L, 2L, L. The sum goes up a binomial tree, and the result comes back down;
    - "double-tree": 2L, 2, 1. There are two trees, and each carries half of the bytes (Sanders et al. 2009). The factors are the limit for
      messages that are cut into many small pieces. :func:`double_tree_time` has the time for a given number of pieces;
    - "parameter-server": 2, 2D, D. The bytes are those that the server receives, sends and adds.

    Each factor is at least its bound in :func:`least_factors`. The only exception is the latency factor 2 of the parameter server.

    Parameters
    ----------
    algorithm : str
        One of the seven names above, which are ``ALGORITHMS``.
    ranks : int
        The number of ranks, D.

    Returns
    -------
    Factors
        The three factors.

    Raises
    ------
    UnsupportedSize
        The algorithm needs a power of two, but ``ranks`` is not a power of two.
    HybridLabError
        The algorithm is unknown, or ``ranks`` is below one.

    References
    ----------
    Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009): the ring.
    Sanders, Speck and Träff, Parallel Computing 35 (2009): two trees.
    Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19 (2005): recursive doubling, Rabenseifner and tree.

    Examples
    --------
    >>> all_reduce_factors("ring", 4), all_reduce_factors("tree", 4)
    (Factors(latency=6, bandwidth=1.5, reduce=0.75), Factors(latency=4, bandwidth=4, reduce=2))
    """
    algorithm, ranks = known_name(algorithm, ALGORITHMS, "all-reduce"), whole_number(ranks, "ranks")
    rounds = (ranks - 1).bit_length()  # ceil(log2(D)) without rounding errors
    if algorithm in POWERS_OF_TWO and ranks & (ranks - 1):
        raise UnsupportedSize(f"{algorithm} pairs ranks, so ranks must be a power of two, not {ranks}; try {2**rounds}", "unsupported-size")
    if algorithm == "parameter-server":
        return Factors(2, 2 * ranks, ranks)  # one rank also sends messages, because the server is another device
    if ranks == 1:
        return Factors(0, 0, 0)
    share = (ranks - 1) / ranks
    return {
        "ring": Factors(2 * (ranks - 1), 2 * share, share),
        "one-shot": Factors(2 * (ranks - 1), 2 * share, share),
        "recursive-doubling": Factors(rounds, rounds, rounds),
        "rabenseifner": Factors(2 * rounds, 2 * share, share),
        "tree": Factors(2 * rounds, 2 * rounds, rounds),
        "double-tree": Factors(2 * rounds, 2, 1),
    }[algorithm]


def least_factors(ranks: int) -> Factors:
    """Return the lower bounds of the three cost factors with D ranks: ceil(log2(D)), 2(D-1)/D and (D-1)/D.

    Each bound holds for every algorithm in which only ranks add, and a rank sends one message at a time. (A switch that adds needs fewer
    bytes.) An algorithm that reaches one bound may not reach the other two. Latency: in each round, the number of ranks that know the data
    of a given rank at most doubles. Bytes: each rank must receive and add the data of the other D-1 ranks. A parameter server is one more
    device, and receives from all ranks at the same time. Therefore it needs only 2 latencies.

    Parameters
    ----------
    ranks : int
        The number of ranks, D.

    Returns
    -------
    Factors
        The three bounds.

    Raises
    ------
    HybridLabError
        ``ranks`` is not a whole number of at least 1.

    References
    ----------
    Chan et al. 2007. Patarasuk and Yuan 2009 prove the bound for the bytes sent.

    Examples
    --------
    >>> least_factors(8)
    Factors(latency=3, bandwidth=1.75, reduce=0.875)
    """
    ranks = whole_number(ranks, "ranks")
    return Factors((ranks - 1).bit_length(), 2 * (ranks - 1) / ranks, (ranks - 1) / ranks)


def all_reduce_time(algorithm: str, ranks: int, nbytes: Any, link: Link, reduce_seconds_per_byte: float = 0.0) -> Any:
    """Return the seconds that an all-reduce takes: the sum of latency, sending and adding, each multiplied by its cost factor.

    Parameters
    ----------
    algorithm : str
        One of ``ALGORITHMS``; see :func:`all_reduce_factors`.
    ranks : int
        The number of ranks.
    nbytes : float or array
        Encoded bytes that one rank holds.
    link : Link
        All links are equal and work at the same time.
    reduce_seconds_per_byte : float
        Seconds to add one byte to a sum.

    Returns
    -------
    float or array
        Seconds, in the shape of ``nbytes``.

    Raises
    ------
    UnsupportedSize
        The algorithm needs a power of two, but ``ranks`` is not a power of two.
    HybridLabError
        An argument has a wrong type or is out of range.

    Examples
    --------
    >>> round(all_reduce_time("ring", 4, 100e6, Link(latency=5e-6, bandwidth=25e9)), 6)
    0.00603
    """
    factors = all_reduce_factors(algorithm, ranks)
    reduce = one_time(reduce_seconds_per_byte, "reduce_seconds_per_byte")
    return _factors_to_seconds(factors, message_sizes(nbytes), checked_link(link, "link"), reduce)


def double_tree_time(ranks: int, nbytes: Any, link: Link, pieces: int | None = None) -> Any:
    """Return the seconds of a pipelined all-reduce along two binary trees, 4(L + k - 1)(a + S / (2kB)) with L = ceil(log2(D)).

    Each of the two trees spans all ranks and carries half of the S bytes, cut into k pieces. A rank that has children in one tree has no
    children in the other. Therefore every rank sends at most one piece and receives at most one piece in a step. A step takes the latency
    a plus the time of one piece. The reduction takes at most 2(L + k - 1) steps, and so does the broadcast. The time is shortest near
    k = sqrt(S(L - 1) / (2aB)). For long messages the time approaches 2S/B, the time of a ring of many ranks.

    :func:`all_reduce_time` counts only 2L latencies and 2S bytes for "double-tree". This is a limit that no number of pieces reaches: it
    assumes very short pieces whose latencies overlap.

    Parameters
    ----------
    ranks : int
        The number of ranks, D.
    nbytes : float or array
        Encoded bytes that one rank holds, S.
    link : Link
        All links are equal and work at the same time; they have the latency a and the bandwidth B.
    pieces : int, optional
        The number of pieces in each tree, k. None means the whole number that gives the shortest time, for each size.

    Returns
    -------
    float or array
        Seconds, in the shape of ``nbytes``.

    Raises
    ------
    HybridLabError
        ``ranks`` or ``pieces`` is not a whole number of at least 1, ``nbytes`` has a number that is negative or not finite, or ``link`` is
        not a :class:`Link`.

    References
    ----------
    Sanders, Speck and Träff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing 35 (2009).

    Examples
    --------
    >>> link = Link(latency=5e-6, bandwidth=25e9)
    >>> [round(1e3 * double_tree_time(64, 100e6, link, pieces), 2) for pieces in (1, 10, 45, 1000)]  # ms
    [48.12, 12.3, 9.89, 28.14]
    >>> round(1e3 * all_reduce_time("ring", 64, 100e6, link), 2)
    8.51
    """
    ranks, size, link = whole_number(ranks, "ranks"), message_sizes(nbytes), checked_link(link, "link")
    hops = (ranks - 1).bit_length()
    if pieces is None:
        with np.errstate(all="ignore"):  # without latency, the best number is infinite
            best = np.sqrt(size * (hops - 1) / (2 * link.bandwidth * link.latency))
        # the time is convex in the number of pieces, so one of these two whole numbers is the best
        counts = np.clip(np.nan_to_num([np.floor(best), np.ceil(best)], nan=1), 1, MOST_PIECES)
    else:
        counts = np.full((1, *size.shape), whole_number(pieces, "pieces", at_most=MOST_PIECES), dtype=np.float64)
    steps = 4 * (hops + counts - 1) if ranks > 1 else 0  # half for the reduction, half for the broadcast
    seconds = (steps * (link.latency + size / (2 * counts * link.bandwidth))).min(axis=0)
    return seconds if seconds.ndim else float(seconds)


def two_level_time(
    group: int,
    groups: int,
    nbytes: Any,
    inside: Link,
    between: Link,
    reduce_seconds_per_byte: float = 0.0,
    adapters: int | None = None,
) -> Any:
    """Return the seconds of an all-reduce with rings on two levels: inside groups of ranks, and between the groups.

    Take g ranks in a group, M groups and S bytes. Inside a group, a ring takes 2(g-1) latencies, and each rank sends 2(g-1)/g x S bytes.
    Between the groups, each rank averages S/g bytes with one rank of every other group. This ring takes 2(M-1) latencies, and each rank
    sends 2(M-1)/M x S/g bytes.

    Parameters
    ----------
    group : int
        The number of ranks in a group, g.
    groups : int
        The number of groups, M.
    nbytes : float or array
        Encoded bytes that one rank holds, S.
    inside : Link
        The links between ranks of a group.
    between : Link
        The link of one adapter from a group to the other groups.
    reduce_seconds_per_byte : float
        Seconds to add one byte to a sum.
    adapters : int, optional
        The number of network adapters of a group, at most g. None means one adapter for each rank. If there are fewer than g adapters,
        the ranks share them, and sending between the groups takes g / adapters times as long.

    Returns
    -------
    float or array
        Seconds, in the shape of ``nbytes``.

    Raises
    ------
    HybridLabError
        ``group``, ``groups`` or ``adapters`` is not a whole number of at least 1, there are more adapters than ranks in a group, a number
        of ``nbytes`` or ``reduce_seconds_per_byte`` is negative or not finite, or ``inside`` or ``between`` is not a :class:`Link`.

    Examples
    --------
    >>> nvlink, network = Link(3e-6, 300e9), Link(10e-6, 25e9)
    >>> round(two_level_time(8, 4, 1e9, nvlink, network), 4), round(all_reduce_time("ring", 32, 1e9, network), 4)
    (0.0134, 0.0781)
    """
    group, groups = whole_number(group, "group"), whole_number(groups, "groups")
    ports = group if adapters is None else whole_number(adapters, "adapters", at_most=group)
    size, reduce = message_sizes(nbytes), one_time(reduce_seconds_per_byte, "reduce_seconds_per_byte")
    outside = checked_link(between, "between")
    shared = Link(outside.latency, outside.bandwidth * ports / group)  # the share of the bandwidth for each rank
    seconds_inside = _factors_to_seconds(all_reduce_factors("ring", group), size, checked_link(inside, "inside"), reduce)
    return seconds_inside + _factors_to_seconds(all_reduce_factors("ring", groups), size / group, shared, reduce)


def message_sizes(nbytes: Any) -> Floats:
    """Return ``nbytes`` as a float array of message sizes in bytes. Raise an error if a size is negative or too large."""
    size = numbers(nbytes, "nbytes")
    if not ((size >= 0) & (size <= LARGEST_MESSAGE)).all():
        raise HybridLabError(f"nbytes must be from 0 to {LARGEST_MESSAGE:g}, not {short_repr(nbytes)}", "out-of-range")
    return size


def _factors_to_seconds(factors: Factors, size: Floats, link: Link, reduce: float) -> Any:
    """Return the seconds of an all-reduce with these factors, in the shape of ``size``. ``reduce`` is the seconds to add a byte."""
    seconds = factors.latency * link.latency + size * (factors.bandwidth / link.bandwidth + factors.reduce * reduce)
    return seconds if seconds.ndim else float(seconds)


def checked_link(link: Any, name: str) -> Link:
    """Return ``link`` if it is a Link. Raise an error if it is not."""
    if not isinstance(link, Link):
        raise HybridLabError(f"{name} must be a Link, such as Link(latency=5e-6, bandwidth=25e9), not {short_repr(link)}", "wrong-type")
    return link
