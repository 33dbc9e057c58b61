"""The cost of an all-reduce in a wire format: the bytes that it sends, including the scales of every message, and its seconds."""

from typing import Any

from hybridlab.checks import whole_number
from hybridlab.collectives.cost import Link, all_reduce_factors, all_reduce_time, two_level_time
from hybridlab.collectives.result import checked_wire
from hybridlab.errors import UnsupportedSize
from hybridlab.wire import WireFormat


def encoded_bytes(algorithm: str, ranks: int, size: int, wire: WireFormat) -> int:
    """Return the bytes that an all-reduce sends one after the other on a link, including the scales of every message.

    If several messages travel at the same time, only the longest one counts. With D ranks these messages count:

    - "ring" and "one-shot": 2(D-1) messages of ceil(size / D) numbers;
    - "rabenseifner": a half of the numbers, then a quarter, then an eighth and so on, and the same messages in reverse order;
    - "tree" and "recursive-doubling": one message of all numbers in each round;
    - "parameter-server": 2D messages of all numbers;
    - "double-tree": as many bytes as in :func:`all_reduce_factors`. Its pieces have no fixed length, so it needs a format without scales.

    For a format without scales, the result is the bandwidth factor of :func:`all_reduce_factors` times the bytes of the numbers. It can
    be slightly larger, because a chunk has a whole number of numbers.

    Parameters
    ----------
    algorithm : str
        One of ``ALGORITHMS``.
    ranks : int
        The number of ranks, D.
    size : int
        How many numbers each rank holds.
    wire : WireFormat
        The format of every message.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    UnsupportedSize
        ``wire`` has scales and the algorithm is "double-tree". Or the algorithm needs a power of two, and ``ranks`` is not one.

    Examples
    --------
    >>> from hybridlab.wire import FP16, INT8
    >>> encoded_bytes("ring", 4, 30, INT8), encoded_bytes("ring", 4, 30, FP16)  # 6 messages of 8 numbers; 4 bytes a scale
    (72, 96)
    """
    rounds, _, _ = all_reduce_factors(algorithm, ranks)
    size, wire = _checked_size(size), checked_wire(wire)
    if algorithm == "double-tree" and wire.scale_bytes(1):
        raise UnsupportedSize(
            f"the pieces of a double-tree have no fixed length, and {wire} adds a scale to each: try 'tree' or 'ring'",
            "conflicting-arguments",
        )
    if algorithm == "rabenseifner":
        return 2 * sum(wire.nbytes(-(-size // 2**halving)) for halving in range(1, int(rounds) // 2 + 1))
    if algorithm in ("ring", "one-shot"):
        return int(rounds) * wire.nbytes(-(-size // ranks))
    whole = {"parameter-server": 2 * ranks, "double-tree": 2 if ranks > 1 else 0}.get(algorithm, int(rounds))
    return whole * wire.nbytes(size)


def encoded_time(algorithm: str, ranks: int, size: int, wire: WireFormat, link: Link) -> float:
    """Return the seconds of an all-reduce in a wire format: the sum of its latencies, and the time to send its bytes.

    Encoding, adding and decoding are not counted.

    Parameters
    ----------
    algorithm, ranks, size, wire
        As for :func:`encoded_bytes`.
    link : Link
        All links are equal and work at the same time.

    Returns
    -------
    float
        Seconds.

    Examples
    --------
    >>> from hybridlab.wire import FP16, INT8
    >>> link = Link(latency=5e-6, bandwidth=25e9)
    >>> [round(1e3 * encoded_time("ring", 8, 10**8, wire, link), 3) for wire in (FP16, INT8)]  # ms
    [14.07, 7.07]
    """
    latencies: Any = all_reduce_time(algorithm, ranks, 0, link)
    return float(latencies + encoded_bytes(algorithm, ranks, size, wire) / link.bandwidth)


def encoded_two_level_time(
    group: int, groups: int, size: int, wire: WireFormat, inside: Link, between: Link, adapters: int | None = None
) -> float:
    """Return the seconds of an all-reduce in a wire format with rings on two levels, as :func:`two_level_all_reduce` runs it.

    Take g ranks in a group, M groups and c = ceil(size / g). The reduce-scatter inside a group sends g-1 messages of c numbers. The ring
    between the groups sends 2(M-1) messages of ceil(c / M) numbers. This ring ends with M packets, one for each part of the c numbers.
    The all-gather inside a group sends g-1 messages, and each message consists of M such packets. Encoding, adding and decoding are
    not counted.

    Parameters
    ----------
    group, groups, inside, between, adapters
        As for :func:`two_level_time`.
    size : int
        How many numbers each rank holds.
    wire : WireFormat
        The format of every message.

    Returns
    -------
    float
        Seconds.

    Examples
    --------
    >>> from hybridlab.wire import FP16, INT8
    >>> nvlink, network = Link(3e-6, 300e9), Link(10e-6, 25e9)
    >>> [round(1e3 * encoded_two_level_time(8, 4, 10**8, wire, nvlink, network), 3) for wire in (FP16, INT8)]  # ms
    [2.769, 1.435]
    """
    group, groups = whole_number(group, "group"), whole_number(groups, "groups")
    latencies = two_level_time(group, groups, 0, inside, between, adapters=adapters)
    size, wire = _checked_size(size), checked_wire(wire)
    chunk = -(-size // group)  # numbers that a rank sums inside its group and then averages with the other groups
    part, longer = divmod(chunk, groups)
    packets = longer * wire.nbytes(part + 1) + (groups - longer) * wire.nbytes(part)
    seconds_inside = (group - 1) * (wire.nbytes(chunk) + packets) / inside.bandwidth
    outside = between.bandwidth * (group if adapters is None else adapters) / group
    return float(latencies + seconds_inside + 2 * (groups - 1) * wire.nbytes(-(-chunk // groups)) / outside)


def _checked_size(size: Any) -> int:
    return whole_number(size, "size", at_least=0, at_most=2**62)
