"""All-reduces other than the ring: one-shot, binomial tree, parameter server, and rings on two levels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Rng, readonly
from hybridlab.checks import whole_number
from hybridlab.collectives.result import AllReduceResult, Counts, checked_arguments
from hybridlab.collectives.ring import chunk_bounds, nonempty, sent_in_all_gather, sent_in_reduce_scatter
from hybridlab.collectives.ring_sum import RingSum, can_go_together, padded_chunks, transmit, transmit_rows
from hybridlab.errors import HybridLabError
from hybridlab.wire import FP32, Real, Single, WireFormat


def one_shot_all_reduce(values: npt.ArrayLike, wire: WireFormat = FP32, average: bool = True, *, rng: Rng = None) -> AllReduceResult:
    """Return the mean, or the sum, after a one-shot all-reduce, in which every number that is sent is rounded at most twice.

    Chunk c is owned by rank c - 1, as in a ring. Every rank encodes each chunk that it does not own, and sends it straight to the owner.
    The owner adds the decoded packets to its own numbers, which are not sent and therefore not rounded. It encodes the finished chunk once
    and sends it to all ranks. The all-reduce sends as many bytes as a ring, in two rounds of messages between all ranks. With 2 ranks it
    sends the same messages as a ring.

    Parameters
    ----------
    values : array_like, shape (ranks, n)
        One row of numbers for each rank.
    wire, average, rng
        As for :func:`ring_all_reduce`.

    Returns
    -------
    AllReduceResult
        The values of each rank, shape (ranks, n), and the bytes that each rank sent.

    Raises
    ------
    HybridLabError
        A value is NaN or infinite, or ``wire`` cannot carry a sum.

    References
    ----------
    Wang et al., ZeRO++, arXiv 2306.10209, sec. 3.3.

    Examples
    --------
    >>> one_shot_all_reduce([[1, 2, 3], [3, 4, 5]]).values[1]
    array([2., 3., 4.])
    """
    numbers, wire, divisor = checked_arguments(values, wire, average, rng)
    ranks, size = numbers.shape
    if ranks == 1:
        return _one_rank(numbers)
    bounds, result = chunk_bounds(size, ranks), np.empty_like(numbers)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite results are refused
        whole = _one_shot_together(numbers, wire, divisor, bounds)
        if whole is not None:
            result[:] = whole
        else:
            for chunk, (low, high) in nonempty(bounds):
                owner = (chunk - 1) % ranks
                total = numbers[owner, low:high].copy()  # exact, because the owner does not send its own numbers
                for step in range(1, ranks):
                    sender = (owner + step) % ranks
                    total += transmit(numbers[sender, low:high], wire, rng, sender, f"chunk {chunk}", low)
                result[:, low:high] = transmit(total / divisor, wire, rng, owner, f"the finished chunk {chunk}", low)

    def sent(count: Callable[[int], int]) -> Counts:
        chunks = np.array([count(high - low) for low, high in bounds])
        owned = np.roll(chunks, -1)  # by each rank
        total: Counts = chunks.sum() - owned + (ranks - 1) * owned  # to the owners of the other chunks, then to all other ranks
        return total

    return _result(result, sent(wire.payload_bytes), sent(wire.scale_bytes))


def tree_all_reduce(values: npt.ArrayLike, wire: WireFormat = FP32, average: bool = True, *, rng: Rng = None) -> AllReduceResult:
    """Return the mean, or the sum, after a reduction to rank 0 along a binomial tree and a broadcast back.

    Rounds are counted from 0. In round k, each rank whose number is an odd multiple of 2^k sends its whole partial sum to the rank with a
    number smaller by 2^k. The reduction takes ceil(log2(ranks)) rounds, and the broadcast takes as many. Rank 0 encodes the result once,
    and the other ranks forward this packet.

    Parameters
    ----------
    values : array_like, shape (ranks, n)
        One row of numbers for each rank.
    wire, average, rng
        As for :func:`ring_all_reduce`.

    Returns
    -------
    AllReduceResult
        The values of each rank, shape (ranks, n), and the bytes that each rank sent.

    Raises
    ------
    HybridLabError
        A value is NaN or infinite, or ``wire`` cannot carry a sum.

    References
    ----------
    Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19 (2005).

    Examples
    --------
    >>> tree_all_reduce([[1, 2, 3], [3, 4, 5], [8, 9, 10]]).values[1]
    array([4., 5., 6.])
    """
    numbers, wire, divisor = checked_arguments(values, wire, average, rng)
    ranks, size = numbers.shape
    if ranks == 1:
        return _one_rank(numbers)
    sums: dict[int, Real] = dict(enumerate(numbers))
    messages = np.zeros(ranks, dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        for sender, receiver in _tree(ranks):
            sums[receiver] = sums[receiver] + transmit(sums.pop(sender), wire, rng, sender, "its partial sum", 0)
            messages[[sender, receiver]] += 1  # sender: in the reduction, receiver: in the broadcast
        done = transmit(sums[0] / divisor, wire, rng, 0, "the result", 0)
    result = np.empty_like(numbers)
    result[:] = done
    return _result(result, messages * wire.payload_bytes(size), messages * wire.scale_bytes(size))


def parameter_server_all_reduce(
    values: npt.ArrayLike, wire: WireFormat = FP32, average: bool = True, *, rng: Rng = None
) -> AllReduceResult:
    """Return the mean, or the sum, that a parameter server computes. The server is one more device beside the ranks.

    Each rank encodes all its numbers and sends them to the server. The server adds them, encodes the result once and sends it to each
    rank. With one rank, too, numbers are sent to the server and back.

    Parameters
    ----------
    values : array_like, shape (ranks, n)
        One row of numbers for each rank.
    wire, average, rng
        As for :func:`ring_all_reduce`.

    Returns
    -------
    AllReduceResult
        The values of each rank, shape (ranks, n). The bytes have ranks + 1 entries. The last entry has the bytes that the server sent,
        as many as all ranks together.

    Raises
    ------
    HybridLabError
        A value is NaN or infinite, or ``wire`` cannot carry the sum.

    Examples
    --------
    >>> parameter_server_all_reduce([[1, 2, 3], [3, 4, 5]]).bytes_sent
    array([12, 12, 24])
    """
    numbers, wire, divisor = checked_arguments(values, wire, average, rng)
    ranks, size = numbers.shape
    total = np.zeros_like(numbers[0])
    with np.errstate(over="ignore", invalid="ignore"):
        for rank, row in enumerate(numbers):
            total += transmit(row, wire, rng, rank, "its row", 0)
        done = transmit(total / divisor, wire, rng, ranks, "the result (this rank is the server)", 0)
    result = np.empty_like(numbers)
    result[:] = done
    messages = np.append(np.ones(ranks, dtype=np.int64), ranks)
    return _result(result, messages * wire.payload_bytes(size), messages * wire.scale_bytes(size))


def two_level_all_reduce(
    values: npt.ArrayLike, group: int, wire: WireFormat = FP32, average: bool = True, *, rng: Rng = None
) -> AllReduceResult:
    """Return the mean, or the sum, after rings on two levels: inside groups of consecutive ranks, and between the groups.

    First comes a reduce-scatter inside each group, where links are fast. Now each chunk has one owner in each group. The owners of the
    same chunk average it in a ring all-reduce between the groups. Last comes an all-gather inside each group. It forwards the packets of
    the rings between the groups unchanged, so that all rows of the result are equal.

    Parameters
    ----------
    values : array_like, shape (ranks, n)
        One row of numbers for each rank.
    group : int
        The number of ranks in a group. It must divide the number of ranks.
    wire, average, rng
        As for :func:`ring_all_reduce`.

    Returns
    -------
    AllReduceResult
        The values of each rank, shape (ranks, n), and the bytes that each rank sent.

    Raises
    ------
    HybridLabError
        ``group`` does not divide the ranks, a value is NaN or infinite, or ``wire`` cannot carry a sum.

    Examples
    --------
    >>> two_level_all_reduce([[1, 2], [3, 4], [5, 6], [7, 8]], group=2).values[3]
    array([4., 5.])
    """
    numbers, wire, divisor = checked_arguments(values, wire, average, rng)
    ranks, size = numbers.shape
    group = whole_number(group, "group")
    if ranks % group:
        raise HybridLabError(f"group must divide the ranks, but {ranks} ranks cannot be cut into groups of {group}", "not-divisible")
    if ranks == 1:
        return _one_rank(numbers)
    groups, result, bounds = ranks // group, np.empty_like(numbers), chunk_bounds(size, group)
    members = [range(first, first + group) for first in range(0, ranks, group)]
    inside = [RingSum(numbers[each.start : each.stop], wire, 1, rng, each) for each in members]
    with np.errstate(over="ignore", invalid="ignore"):
        for chunk, (low, high) in nonempty(bounds):
            sums: Any = np.stack([ring.partial_sum(chunk, low, high) for ring in inside])
            between = RingSum(sums, wire, divisor, rng, range((chunk - 1) % group, ranks, group), low)
            for part, (start, stop) in nonempty(chunk_bounds(high - low, groups)):
                result[:, low + start : low + stop] = between.finished(part, start, stop)
    payload, scales = (_sent_on_two_levels(bounds, groups, count) for count in (wire.payload_bytes, wire.scale_bytes))
    return _result(result, payload, scales)


def _one_shot_together(numbers: Real, wire: WireFormat, divisor: int, bounds: list[tuple[int, int]]) -> Single | None:
    """Return the same bits as with one message at a time, but encode one message for each chunk in one call.

    The result is None in the same cases as in :func:`ring_sum_together`.
    """
    if not can_go_together(numbers, wire):
        return None
    chunks, inside = padded_chunks(numbers, bounds)
    chunk = np.arange(chunks.shape[1])
    owner = (chunk - 1) % len(numbers)
    try:
        total: Real = chunks[owner, chunk]
        for step in range(1, len(numbers)):
            total += transmit_rows(chunks[(owner + step) % len(numbers), chunk], wire)
        finished = transmit_rows(total / divisor, wire)[inside]
    except HybridLabError:
        return None
    return finished if np.isfinite(finished).all() else None


def _tree(ranks: int) -> list[tuple[int, int]]:
    """Return (sender, receiver) for every message of a reduction to rank 0 along a binomial tree, in the order of the rounds."""
    rounds = (2**each for each in range((ranks - 1).bit_length()))
    return [(sender, sender - width) for width in rounds for sender in range(width, ranks, 2 * width)]


def _sent_on_two_levels(bounds: list[tuple[int, int]], groups: int, count: Callable[[int], int]) -> Counts:
    """Return how much each rank sends inside its group and between the groups, where a ring averages the chunk that it owns."""
    group = len(bounds)
    whole = np.array([count(high - low) for low, high in bounds])
    parts = np.array([[count(stop - start) for start, stop in chunk_bounds(high - low, groups)] for low, high in bounds])
    inside = sent_in_reduce_scatter(whole) + sent_in_all_gather(parts.sum(axis=1))
    between = sent_in_reduce_scatter(parts) + sent_in_all_gather(parts)  # sent between the groups, for each chunk and group
    owned = (np.arange(group) + 1) % group
    by_rank: Counts = (inside + between[owned].T).reshape(-1)
    return by_rank


def _one_rank(numbers: Real) -> AllReduceResult:
    """Return the result of a single rank: its own values, and nothing sent."""
    return _result(numbers.copy(), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))


def _result(values: Real, payload: Counts, scales: Counts) -> AllReduceResult:
    return AllReduceResult(readonly(values), readonly(payload), readonly(scales))
