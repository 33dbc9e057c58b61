"""The one-shot all-reduce: every rank sends each chunk straight to its owner, which sends the finished chunk to all."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Rng, readonly
from hybridlab.collectives.result import AllReduceResult, Counts, checked_arguments
from hybridlab.collectives.ring import chunk_bounds, nonempty
from hybridlab.collectives.ring_sum import can_go_together, padded_chunks, transmit, transmit_rows
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
    bounds, result = chunk_bounds(size, ranks), numbers.copy()  # one rank keeps its values
    with np.errstate(over="ignore", invalid="ignore"):  # infinite results are refused
        whole = _one_shot_together(numbers, wire, divisor, bounds) if ranks > 1 else None
        if whole is not None:
            result[:] = whole
        elif ranks > 1:
            for chunk, (low, high) in nonempty(bounds):
                owner = (chunk - 1) % ranks
                total = numbers[owner, low:high].copy()  # exact, because the owner does not send its own numbers
                for step in range(1, ranks):
                    sender = (owner + step) % ranks
                    total += transmit(numbers[sender, low:high], wire, rng, sender, f"chunk {chunk}", low)
                result[:, low:high] = transmit(total / divisor, wire, rng, owner, f"the finished chunk {chunk}", low)

    def bytes_sent(count: Callable[[int], int]) -> Counts:
        chunks = np.array([count(high - low) for low, high in bounds])
        owned = np.roll(chunks, -1)  # by each rank
        total: Counts = chunks.sum() - owned + (ranks - 1) * owned  # to the owners of the other chunks, then to all other ranks
        return total

    return AllReduceResult(readonly(result), readonly(bytes_sent(wire.payload_bytes)), readonly(bytes_sent(wire.scale_bytes)))


def _one_shot_together(numbers: Real, wire: WireFormat, divisor: int, bounds: list[tuple[int, int]]) -> Single | None:
    """Return the finished chunks, shape (n,), or None in the same cases as :func:`ring_sum_together`.

    The bits are the same as those of one message at a time. One call encodes a message of every chunk, which is faster for short chunks.
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
