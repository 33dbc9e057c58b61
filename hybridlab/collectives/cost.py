"""How long an all-reduce takes: a latency for every message in turn, and a time for every byte."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from hybridlab.arrays import Floats
from hybridlab.checks import known_name, numbers, one_time, short_repr, whole_number
from hybridlab.errors import HybridLabError, UnsupportedSize

MOST_BYTES = 1e18
SLOWEST = 1e-30  # bytes a second: below any link, and far from where a time would be infinite


@dataclass(frozen=True)
class Link:
    """A link between two devices: a message of n bytes takes ``latency`` + n / ``bandwidth`` seconds.

    ``latency`` is in seconds, ``bandwidth`` in bytes a second, each way at once.

    >>> Link(latency=5e-6, bandwidth=25e9)
    Link(latency=5e-06, bandwidth=25000000000.0)
    """

    latency: float
    bandwidth: float

    def __post_init__(self) -> None:
        latency, bandwidth = one_time(self.latency, "latency"), one_time(self.bandwidth, "bandwidth")
        if bandwidth < SLOWEST:
            raise HybridLabError(f"bandwidth is in bytes a second, such as 25e9, and must be above zero, not {short_repr(self.bandwidth)}")
        object.__setattr__(self, "latency", latency)
        object.__setattr__(self, "bandwidth", bandwidth)


class Factors(NamedTuple):
    """What one all-reduce of S bytes costs: ``latency`` messages in turn, ``bandwidth`` x S bytes, ``reduce`` x S added."""

    latency: float
    bandwidth: float
    reduce: float


ALGORITHMS = ("ring", "one-shot", "recursive-doubling", "rabenseifner", "tree", "double-tree", "parameter-server")
POWERS_OF_TWO = ("recursive-doubling", "rabenseifner")


def all_reduce_factors(algorithm: str, ranks: int) -> Factors:
    """Return how often an all-reduce pays the latency, the time of all bytes, and that of adding them up.

    D ranks, L = ceil(lg D): "ring" 2(D-1), 2(D-1)/D, (D-1)/D (Patarasuk and Yuan 2009); "one-shot" the same, a message for
    each peer, which is a parameter server cut up so that every rank serves a share; "recursive-doubling" L, L, L and
    "rabenseifner" 2L, 2(D-1)/D, (D-1)/D, for powers of two; "tree" 2L, 2L, L, a binomial reduction and broadcast (all
    three: Thakur, Rabenseifner and Gropp 2005); "double-tree" 2L, 2, 1, two trees filled with small pieces, the limit
    for long messages; "parameter-server" 2, 2D, D at the server. None is below :func:`least_factors`.

    >>> all_reduce_factors("ring", 4), all_reduce_factors("tree", 4)
    (Factors(latency=6, bandwidth=1.5, reduce=0.75), Factors(latency=4, bandwidth=4, reduce=2))
    """
    algorithm, ranks = known_name(algorithm, ALGORITHMS, "all-reduce"), whole_number(ranks, "ranks")
    rounds = (ranks - 1).bit_length()
    if algorithm in POWERS_OF_TWO and ranks & (ranks - 1):
        raise UnsupportedSize(f"{algorithm} pairs off ranks and needs a power of two of them: {ranks} is none; try {2**rounds}")
    if algorithm == "parameter-server":
        return Factors(2, 2 * ranks, ranks)
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
    """Return what no all-reduce among D ranks goes below: ceil(lg D), 2(D-1)/D and (D-1)/D, each a bound for itself.

    One message at a time reaches at most twice as many ranks; what D - 1 others hold must be sent and added once (Chan et
    al. 2007; Patarasuk and Yuan 2009 prove the middle one). A server is a device more, and needs 2 latencies only.

    >>> least_factors(8)
    Factors(latency=3, bandwidth=1.75, reduce=0.875)
    """
    ranks = whole_number(ranks, "ranks")
    return Factors((ranks - 1).bit_length(), 2 * (ranks - 1) / ranks, (ranks - 1) / ranks)


def all_reduce_time(algorithm: str, ranks: int, nbytes: Any, link: Link, reduce_seconds_per_byte: float = 0.0) -> Any:
    """Return the seconds an all-reduce takes: latency, bytes and adding, each times its factor of :func:`all_reduce_factors`.

    ``nbytes`` is what one rank holds, encoded: a number, or an array for a time each. Links are alike and work all at once.
    Raises :class:`UnsupportedSize` where an algorithm does not fit the ranks.

    >>> round(all_reduce_time("ring", 4, 100e6, Link(latency=5e-6, bandwidth=25e9)), 6)
    0.00603
    """
    factors = all_reduce_factors(algorithm, ranks)
    return _seconds(factors, message_sizes(nbytes), _link(link, "link"), one_time(reduce_seconds_per_byte, "reduce_seconds_per_byte"))


def reduce_scatter_time(ranks: int, nbytes: Any, link: Link, reduce_seconds_per_byte: float = 0.0) -> Any:
    """Return the seconds in which a ring leaves every rank with its share of the sum: half an all-reduce, with all the adding.

    ``nbytes`` is what one rank holds before: D - 1 steps of nbytes / D each.

    >>> reduce_scatter_time(4, 100e6, Link(latency=0, bandwidth=25e9))
    0.003
    """
    steps, reduce = whole_number(ranks, "ranks") - 1, one_time(reduce_seconds_per_byte, "reduce_seconds_per_byte")
    return _seconds(Factors(steps, steps / ranks, steps / ranks), message_sizes(nbytes), _link(link, "link"), reduce)


def all_gather_time(ranks: int, nbytes: Any, link: Link) -> Any:
    """Return the seconds in which a ring gives every rank the shares of all: a reduce-scatter without the adding.

    ``nbytes`` is what one rank holds after it.

    >>> all_gather_time(4, 100e6, Link(latency=0, bandwidth=25e9))
    0.003
    """
    return reduce_scatter_time(ranks, nbytes, link)


def flat_ring_time(
    group: int,
    groups: int,
    nbytes: Any,
    inside: Link,
    between: Link,
    reduce_seconds_per_byte: float = 0.0,
    adapters: int | None = None,
) -> Any:
    """Return the seconds of one ring over all ranks of all groups, which :func:`two_level_time` has on two levels.

    A ring goes at the pace of its slowest link: 2(gM-1) latencies of the slower, and 2(gM-1)/gM S bytes at the lesser of the
    bandwidth ``inside`` and that of all ``adapters`` of a group together, for libraries run a ring through each of them.

    >>> nvlink, network = Link(3e-6, 300e9), Link(10e-6, 25e9)
    >>> round(flat_ring_time(8, 4, 1e9, nvlink, network), 4), round(flat_ring_time(8, 4, 1e9, nvlink, network, adapters=1), 4)
    (0.0103, 0.0781)
    """
    group, groups = whole_number(group, "group"), whole_number(groups, "groups")
    shared = group if adapters is None else whole_number(adapters, "adapters", at_most=group)
    inside, between = _link(inside, "inside"), _link(between, "between")
    out = Link(max(inside.latency, between.latency), between.bandwidth * shared)
    slowest = inside if groups == 1 else out if group == 1 else Link(out.latency, min(inside.bandwidth, out.bandwidth))
    return all_reduce_time("ring", group * groups, nbytes, slowest, reduce_seconds_per_byte)


def two_level_time(
    group: int,
    groups: int,
    nbytes: Any,
    inside: Link,
    between: Link,
    reduce_seconds_per_byte: float = 0.0,
    adapters: int | None = None,
) -> Any:
    """Return the seconds of rings on two levels: ``groups`` groups of ``group`` ranks, links ``inside`` and ``between`` them.

    With g in a group, M groups, S bytes: 2(g-1) latencies and 2(g-1)/g S bytes inside, 2(M-1) and 2(M-1)/M S/g between, for
    a rank has S/g to pass on. ``adapters`` are the links that a group has to the outside, one a rank if None: with fewer,
    ranks share them, and the bytes between take g/adapters times as long.

    >>> nvlink, network = Link(3e-6, 300e9), Link(10e-6, 25e9)
    >>> round(two_level_time(8, 4, 1e9, nvlink, network), 4), round(all_reduce_time("ring", 32, 1e9, network), 4)
    (0.0134, 0.0781)
    """
    group, groups = whole_number(group, "group"), whole_number(groups, "groups")
    shared = group if adapters is None else whole_number(adapters, "adapters", at_most=group)
    size, reduce = message_sizes(nbytes), one_time(reduce_seconds_per_byte, "reduce_seconds_per_byte")
    outside = _link(between, "between")
    slower = Link(outside.latency, outside.bandwidth * shared / group)
    first = _seconds(all_reduce_factors("ring", group), size, _link(inside, "inside"), reduce)
    return first + _seconds(all_reduce_factors("ring", groups), size / group, slower, reduce)


def _seconds(factors: Factors, size: Floats, link: Link, reduce: float) -> Any:
    seconds = factors.latency * link.latency + size * (factors.bandwidth / link.bandwidth + factors.reduce * reduce)
    return seconds if seconds.ndim else float(seconds)


def message_sizes(nbytes: Any) -> Floats:
    """Return the counts of bytes, or refuse them."""
    size = numbers(nbytes, "nbytes")
    if not ((size >= 0) & (size <= MOST_BYTES)).all():
        raise HybridLabError(f"nbytes must be from 0 to {MOST_BYTES:g}, not {short_repr(nbytes)}")
    return size


def _link(link: Any, name: str) -> Link:
    if not isinstance(link, Link):
        raise HybridLabError(f"{name} must be a Link, such as Link(latency=5e-6, bandwidth=25e9), not {short_repr(link)}")
    return link
