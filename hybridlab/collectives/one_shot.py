"""The one-shot all-reduce. Every rank sends each chunk directly to the owner of the chunk. The owner sends the finished chunk to all."""

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
    """Return the mean, or the sum, after a one-shot all-reduce. Every number is rounded at most twice.

    Rank c - 1 owns chunk c, as in a ring. Every rank encodes each chunk that it does not own, and sends the chunk directly to its owner.
    The owner adds the decoded packets to its own numbers. Its own numbers are not sent, and therefore not rounded. The owner encodes the
    finished chunk once and sends it to all ranks. Ranks send as many bytes as in a ring, but in two rounds of messages between all ranks.
    With 2 ranks, the messages are the same as in a ring.

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
    bounds, result = chunk_bounds(size, ranks), numbers.copy()  # with one rank, the result is its values
    with np.errstate(over="ignore", invalid="ignore"):  # ``transmit`` raises an error for infinite numbers
        whole = _one_shot_together(numbers, wire, divisor, bounds) if ranks > 1 else None
        if whole is not None:
            result[:] = whole
        elif ranks > 1:
            for chunk, (low, high) in nonempty(bounds):
                owner = (chunk - 1) % ranks
                total = numbers[owner, low:high].copy()  # not rounded, because the owner does not send its own numbers
                for step in range(1, ranks):
                    sender = (owner + step) % ranks
                    total += transmit(numbers[sender, low:high], wire, rng, sender, f"chunk {chunk}", low)
                result[:, low:high] = transmit(total / divisor, wire, rng, owner, f"the finished chunk {chunk}", low)

    def bytes_sent(count: Callable[[int], int]) -> Counts:
        chunks = np.array([count(high - low) for low, high in bounds])
        owned = np.roll(chunks, -1)  # for each rank, the bytes of the chunk that it owns
        total: Counts = chunks.sum() - owned + (ranks - 1) * owned  # the other chunks to their owners, then its own chunk to all others
        return total

    return AllReduceResult(readonly(result), readonly(bytes_sent(wire.payload_bytes)), readonly(bytes_sent(wire.scale_bytes)))


def _one_shot_together(numbers: Real, wire: WireFormat, divisor: int, bounds: list[tuple[int, int]]) -> Single | None:
    """Return the finished chunks, shape (n,), or None in the same cases as :func:`ring_sum_together`.

    One call encodes a message of every chunk. This is faster for short chunks, and gives the same bits as one message at a time.
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
