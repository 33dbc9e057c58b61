"""All-reduces beside the ring: in one shot, along a tree, by a parameter server, and by rings on two levels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import readonly
from hybridlab.checks import true_or_false, whole_number
from hybridlab.collectives.hops import chunk_bounds, filled, gathered, scattered
from hybridlab.collectives.result import AllReduceResult, Counts, carried, rows_of_ranks, wire_format
from hybridlab.collectives.ring_sum import Ring, cut, delivered, may_be_at_once
from hybridlab.errors import HybridLabError
from hybridlab.wire import FP32, Real, Single, WireFormat

Rng = np.random.Generator | None


def one_shot_all_reduce(values: npt.ArrayLike, wire: WireFormat = FP32, average: bool = True, *, rng: Rng = None) -> AllReduceResult:
    """Return the mean (or the sum) after a one-shot all-reduce: every number is rounded twice, however many ranks there are.

    Rank r owns chunk r. Every rank encodes each of its chunks once, its own too, and sends it straight to its owner; the
    owner adds up what the packets decode to, encodes the finished chunk once and sends it to all. As many bytes as a
    ring, in two rounds of messages between all ranks: Wang et al., ZeRO++, arXiv 2306.10209, sec. 3.3.
    Shapes and errors are those of :func:`ring_all_reduce`.

    >>> one_shot_all_reduce([[1, 2, 3], [3, 4, 5]]).values[1]
    array([2., 3., 4.])
    """
    numbers, wire, divisor = _checked(values, wire, average, rng)
    ranks, size = numbers.shape
    if ranks == 1:
        return _alone(numbers)
    bounds, result = chunk_bounds(size, ranks), np.empty_like(numbers)
    with np.errstate(over="ignore", invalid="ignore"):  # what becomes infinite is refused
        whole = _one_shot_at_once(numbers, wire, divisor, bounds)
        if whole is not None:
            result[:] = whole
        else:
            for owner, (low, high) in filled(bounds):
                total = np.zeros_like(numbers[0, low:high])
                for rank in range(ranks):
                    total += carried(numbers[rank, low:high], wire, rng, rank, f"chunk {owner}", low)
                result[:, low:high] = carried(total / divisor, wire, rng, owner, f"the finished chunk {owner}", low)

    def sent(count: Callable[[int], int]) -> Counts:
        chunks = np.array([count(high - low) for low, high in bounds])
        total: Counts = chunks.sum() - chunks + (ranks - 1) * chunks  # to the owners, then to all others
        return total

    return _result(result, sent(wire.payload_bytes), sent(wire.scale_bytes))


def _one_shot_at_once(numbers: Real, wire: WireFormat, divisor: int, bounds: list[tuple[int, int]]) -> Single | None:
    """Return the same as the messages one by one, all those of a rank encoded together, or None: see :func:`around_at_once`."""
    if not may_be_at_once(numbers, wire):
        return None
    parts, inside = cut(numbers, bounds)
    try:
        total = np.zeros_like(parts[0])
        for part in parts:
            total += delivered(part, wire)
        done = delivered(total / divisor, wire)[inside]
    except HybridLabError:
        return None
    return done if np.isfinite(done).all() else None


def tree_all_reduce(values: npt.ArrayLike, wire: WireFormat = FP32, average: bool = True, *, rng: Rng = None) -> AllReduceResult:
    """Return the mean (or the sum) after a reduction to rank 0 along a binomial tree and a broadcast back along it.

    In round k, ranks that are odd multiples of 2^k send the whole sum they hold to the rank 2^k below: ceil(lg ranks)
    rounds up, as many down. Rank 0 encodes the result once and the packet is forwarded. Thakur, Rabenseifner and Gropp,
    Int. J. High Perform. Comput. Appl. 19 (2005). Shapes and errors are those of :func:`ring_all_reduce`.

    >>> tree_all_reduce([[1, 2, 3], [3, 4, 5], [8, 9, 10]]).values[1]
    array([4., 5., 6.])
    """
    numbers, wire, divisor = _checked(values, wire, average, rng)
    ranks, size = numbers.shape
    if ranks == 1:
        return _alone(numbers)
    sums: dict[int, Real] = dict(enumerate(numbers))
    messages = np.zeros(ranks, dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        for sender, receiver in _tree(ranks):
            sums[receiver] = sums[receiver] + carried(sums.pop(sender), wire, rng, sender, "its partial sum", 0)
            messages[[sender, receiver]] += 1  # the sum on its way up, the result on its way down
        done = carried(sums[0] / divisor, wire, rng, 0, "the result", 0)
    result = np.empty_like(numbers)
    result[:] = done
    return _result(result, messages * wire.payload_bytes(size), messages * wire.scale_bytes(size))


def parameter_server_all_reduce(
    values: npt.ArrayLike, wire: WireFormat = FP32, average: bool = True, *, rng: Rng = None
) -> AllReduceResult:
    """Return the mean (or the sum) that a server, a device beside the ranks, makes of what all ranks send it.

    Each rank sends all it has, encoded; the server adds up, encodes the result once and sends it to each. The bytes have
    ranks + 1 places, the server's last: it sends as many as all ranks together. Even a single rank sends and receives.
    Shapes and errors are those of :func:`ring_all_reduce`.

    >>> parameter_server_all_reduce([[1, 2, 3], [3, 4, 5]]).bytes_sent
    array([12, 12, 24])
    """
    numbers, wire, divisor = _checked(values, wire, average, rng)
    ranks, size = numbers.shape
    total = np.zeros_like(numbers[0])
    with np.errstate(over="ignore", invalid="ignore"):
        for rank, row in enumerate(numbers):
            total += carried(row, wire, rng, rank, "its values", 0)
        done = carried(total / divisor, wire, rng, ranks, "the result (it is the server)", 0)
    result = np.empty_like(numbers)
    result[:] = done
    messages = np.append(np.ones(ranks, dtype=np.int64), ranks)
    return _result(result, messages * wire.payload_bytes(size), messages * wire.scale_bytes(size))


def two_level_all_reduce(
    values: npt.ArrayLike, group: int, wire: WireFormat = FP32, average: bool = True, *, rng: Rng = None
) -> AllReduceResult:
    """Return the mean (or the sum) after rings on two levels: inside groups of ``group`` consecutive ranks, and between them.

    Reduce-scatter inside each group, where links are fast; a whole ring all-reduce of each chunk between the ranks that
    have finished it, one a group; all-gather inside. The packets that end the rings between the groups are
    forwarded inside them as they are, so that all rows are equal. ``group`` must divide the ranks.
    Shapes and errors are those of :func:`ring_all_reduce`.

    >>> two_level_all_reduce([[1, 2], [3, 4], [5, 6], [7, 8]], group=2).values[3]
    array([4., 5.])
    """
    numbers, wire, divisor = _checked(values, wire, average, rng)
    ranks, size = numbers.shape
    group = whole_number(group, "group")
    if ranks % group:
        raise HybridLabError(f"group must divide the ranks, but {ranks} ranks cannot be cut into groups of {group}")
    if ranks == 1:
        return _alone(numbers)
    groups, result, bounds = ranks // group, np.empty_like(numbers), chunk_bounds(size, group)
    members = [range(first, first + group) for first in range(0, ranks, group)]
    inside = [Ring(numbers[each.start : each.stop], wire, 1, rng, each) for each in members]
    with np.errstate(over="ignore", invalid="ignore"):
        for chunk, (low, high) in filled(bounds):
            sums: Any = np.stack([ring.summed(chunk, low, high) for ring in inside])
            between = Ring(sums, wire, divisor, rng, range((chunk - 1) % group, ranks, group), low)
            for part, (start, stop) in filled(chunk_bounds(high - low, groups)):
                result[:, low + start : low + stop] = between.reduced(part, start, stop)

    def sent(count: Callable[[int], int]) -> Counts:
        return _sent_on_two_levels(bounds, groups, count)

    return _result(result, sent(wire.payload_bytes), sent(wire.scale_bytes))


def _sent_on_two_levels(bounds: list[tuple[int, int]], groups: int, count: Callable[[int], int]) -> Counts:
    """Return what each rank sends: group by group the same chunks inside, its part of the rings between."""
    group = len(bounds)
    whole = np.array([count(high - low) for low, high in bounds])
    parts = np.array([[count(stop - start) for start, stop in chunk_bounds(high - low, groups)] for low, high in bounds])
    inside = scattered(whole) + gathered(parts.sum(axis=1))
    between = scattered(parts) + gathered(parts)  # of each chunk, for each group
    owned = (np.arange(group) + 1) % group
    by_rank: Counts = (inside + between[owned].T).reshape(-1)
    return by_rank


def _tree(ranks: int) -> list[tuple[int, int]]:
    """Return (sender, receiver) of every message of a binomial reduction to rank 0, in order."""
    rounds = (2**each for each in range((ranks - 1).bit_length()))
    return [(sender, sender - width) for width in rounds for sender in range(width, ranks, 2 * width)]


def _checked(values: npt.ArrayLike, wire: WireFormat, average: bool, rng: Rng) -> tuple[Real, WireFormat, int]:
    """Return the numbers, the format and what the sum is divided by."""
    numbers = rows_of_ranks(values)
    return numbers, wire_format(wire, rng), len(numbers) if true_or_false(average, "average") else 1


def _alone(numbers: Real) -> AllReduceResult:
    """Return what a single rank ends with: what it has, and nothing is sent."""
    return _result(numbers.copy(), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))


def _result(values: Real, payload: Counts, scales: Counts) -> AllReduceResult:
    return AllReduceResult(readonly(values), readonly(payload), readonly(scales))
