"""What an all-reduce costs in a wire format: bytes, with the scales of every message, and seconds."""

from typing import Any

from hybridlab.checks import short_repr, whole_number
from hybridlab.collectives.cost import Link, all_reduce_factors, all_reduce_time, two_level_time
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.wire import WireFormat


def encoded_bytes(algorithm: str, ranks: int, size: int, wire: WireFormat) -> int:
    """Return the bytes that follow each other in an all-reduce of ``size`` numbers a rank, with the scales of every message.

    Of messages that travel at once the longest counts. Among D ranks: 2(D-1) messages of ceil(size / D) numbers for "ring"
    and "one-shot"; halves of halves and back for "rabenseifner"; all numbers in each round of "tree" and "recursive-doubling";
    all of them 2D times through a "parameter-server". A "double-tree" is refused for formats with scales, as its
    pieces have no fixed length. Without scales the bytes are the factor of :func:`all_reduce_factors` times those of the numbers,
    up to the rounding of shares.

    >>> from hybridlab.wire import FP16, INT8
    >>> encoded_bytes("ring", 4, 30, INT8), encoded_bytes("ring", 4, 30, FP16)  # 6 messages of 8 numbers; 4 bytes a scale
    (72, 96)
    """
    rounds, _, _ = all_reduce_factors(algorithm, ranks)
    size, wire = _message(size, wire)
    if algorithm == "double-tree" and wire.scale_bytes(1):
        raise UnsupportedSize(f"the pieces of a double-tree have any length, and {wire} has a scale in each: try 'tree' or 'ring'")
    if algorithm == "rabenseifner":
        return 2 * sum(wire.nbytes(-(-size // 2**halving)) for halving in range(1, int(rounds) // 2 + 1))
    if algorithm in ("ring", "one-shot"):
        return int(rounds) * wire.nbytes(-(-size // ranks))
    whole = {"parameter-server": 2 * ranks, "double-tree": 2 if ranks > 1 else 0}.get(algorithm, int(rounds))
    return whole * wire.nbytes(size)


def encoded_time(algorithm: str, ranks: int, size: int, wire: WireFormat, link: Link) -> float:
    """Return the seconds of an all-reduce of ``size`` numbers a rank in a wire format: its latencies, and its bytes on the link.

    Encoding, adding and decoding are left out.

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
    """Return the seconds of an all-reduce of ``size`` numbers a rank on the two levels of :func:`two_level_time`, in a wire format.

    With g in a group and M groups: g-1 messages of ceil(size / g) numbers inside; 2(M-1) of the M-th part of those numbers,
    rounded up, between; and g-1 inside again, each the M packets that the ring between ended with, as
    :func:`two_level_all_reduce` passes them on. Encoding, adding and decoding are left out.

    >>> from hybridlab.wire import FP16, INT8
    >>> nvlink, network = Link(3e-6, 300e9), Link(10e-6, 25e9)
    >>> [round(1e3 * encoded_two_level_time(8, 4, 10**8, wire, nvlink, network), 3) for wire in (FP16, INT8)]  # ms
    [2.769, 1.435]
    """
    group, groups = whole_number(group, "group"), whole_number(groups, "groups")
    latencies = two_level_time(group, groups, 0, inside, between, adapters=adapters)
    size, wire = _message(size, wire)
    share = -(-size // group)  # numbers that a rank sums inside, and passes on in parts
    part, longer = divmod(share, groups)
    ended = longer * wire.nbytes(part + 1) + (groups - longer) * wire.nbytes(part)
    first = (group - 1) * (wire.nbytes(share) + ended) / inside.bandwidth
    outside = between.bandwidth * (group if adapters is None else adapters) / group
    return float(latencies + first + 2 * (groups - 1) * wire.nbytes(-(-share // groups)) / outside)


def _message(size: int, wire: WireFormat) -> tuple[int, WireFormat]:
    if not isinstance(wire, WireFormat):
        raise HybridLabError(f"wire must be a WireFormat, such as FP16 or WireFormat('INT8', block=256), not {short_repr(wire)}")
    return whole_number(size, "size", at_least=0, at_most=2**62), wire
