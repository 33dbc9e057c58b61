"""The ring all-reduce on real arrays: its steps, its chunks, and the messages of each rank."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Frozen, Rng, readonly
from hybridlab.checks import MOST_CELLS, counted, true_or_false
from hybridlab.collectives.result import AllReduceResult, Counts, checked_arguments, refuse_infinite, rows_of_ranks
from hybridlab.collectives.ring_sum import RingSum, ring_sum_together
from hybridlab.errors import HybridLabError
from hybridlab.wire import FP32, Real, WireFormat

REDUCE_SCATTER, ALL_GATHER = "reduce-scatter", "all-gather"


@dataclass(frozen=True, eq=False)
class Hop(Frozen):
    """One step of the ring. All ranks send one chunk to the next rank at the same time.

    Parameters
    ----------
    phase : str
        "reduce-scatter" or "all-gather".
    step : int
        The number of the step in its phase, from 0 to ranks - 2.
    sender, receiver, chunk, nbytes : array, shape (ranks,)
        The message of each rank. Entry i has the sender (rank i), the receiver, the number of the chunk, and the bytes of the message.
    held : array, shape (ranks, n), optional
        The numbers that every rank holds after the step. None if the all-reduce ran without ``record=True``.
    """

    phase: str
    step: int
    sender: Counts
    receiver: Counts
    chunk: Counts
    nbytes: Counts
    held: Real | None = None


@dataclass(frozen=True, eq=False)
class RingResult(AllReduceResult):
    """The result of a ring all-reduce: an :class:`AllReduceResult` with residuals, and with the steps as :attr:`hops`.

    Parameters
    ----------
    values, payload_bytes, scale_bytes : array
        As in :class:`AllReduceResult`.
    residual : array, shape (ranks, n), optional
        The rounding errors of each rank. Pass them to the next all-reduce as ``residual``. None without error feedback.
    """

    residual: Real | None = None
    _chunk_bytes: Counts = field(default_factory=lambda: np.zeros(1, dtype=np.int64), repr=False)
    _record: Real | None = field(default=None, repr=False)

    @cached_property
    def hops(self) -> tuple[Hop, ...]:
        """The 2 (ranks - 1) steps: first those of the reduce-scatter, then those of the all-gather. Empty with one rank."""
        return _hops_of_ring(self._chunk_bytes, self._record)


def ring_all_reduce(
    values: npt.ArrayLike,
    wire: WireFormat = FP32,
    average: bool = True,
    *,
    rng: Rng = None,
    residual: npt.ArrayLike | None = None,
    record: bool = False,
) -> RingResult:
    """Return the mean over the ranks, or the sum, after a ring all-reduce.

    ``numpy.array_split`` cuts the columns into one chunk for each rank. In the reduce-scatter, chunk c starts at rank c and goes around the
    ring. Each rank adds its own numbers to the partial sum, encodes the sum and sends it to the next rank. The rank that completes a chunk
    divides it by the number of ranks and encodes it once. In the all-gather, the ranks forward this packet unchanged. Every rank stores the
    decoded packet; so does the rank that encoded it. Therefore all rows of the result are equal. One rank alone sends nothing: it encodes
    nothing and keeps its numbers.

    Parameters
    ----------
    values : array_like, shape (ranks, n)
        One row of numbers for each rank. float16 and float32 are summed and returned as float32, other real numbers as float64.
    wire : WireFormat
        The format of every message. The default, FP32, rounds float64 numbers.
    average : bool
        True for the mean, False for the sum.
    rng : numpy.random.Generator, optional
        The source of stochastic rounding, needed by wire formats with stochastic rounding.
    residual : array_like, shape (ranks, n), optional
        Turns on error feedback. In the first all-reduce pass zeros, and later pass the residual of the result before. Before a rank encodes
        a sum, it adds its residual to the sum. The rounding error becomes its new residual. No error is lost: ranks x mean plus the sum of
        the new residuals equals the sum of the values plus the sum of the old residuals, up to the rounding of float arithmetic.
    record : bool
        Whether to store the numbers that every rank holds after every step. After a step of the reduce-scatter these are sums, not means.

    Returns
    -------
    RingResult
        The values of each rank, shape (ranks, n), the bytes that each rank sent, and the steps as ``hops``.

    Raises
    ------
    HybridLabError
        A value is NaN or infinite, ``wire`` cannot carry a partial sum, or the shapes differ.

    References
    ----------
    Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009): 2 (ranks - 1) steps of n / ranks numbers each.
    Error feedback: Seide et al., Interspeech 2014.

    Examples
    --------
    >>> ring_all_reduce([[1, 2, 3], [3, 4, 5]]).values
    array([[2., 3., 4.],
           [2., 3., 4.]])
    """
    numbers, wire, divisor = checked_arguments(values, wire, average, rng)
    ranks, size = numbers.shape
    new_residual = None if residual is None else _copy_residual(residual, numbers)
    recorded = _empty_record(numbers) if true_or_false(record, "record") else None
    result = numbers.copy() if ranks == 1 else np.empty_like(numbers)
    bounds = chunk_bounds(size, ranks)
    ring = RingSum(numbers, wire, divisor, rng, new_residual, recorded)
    with np.errstate(over="ignore", invalid="ignore"):  # ``transmit`` raises an error for infinite numbers
        plain = ranks > 1 and new_residual is None and recorded is None  # residuals and records need every single message
        finished = ring_sum_together(numbers, wire, divisor, bounds) if plain else None
        if finished is not None:
            result[:] = finished
        elif ranks > 1:
            for chunk, (low, high) in nonempty(bounds):
                result[:, low:high] = ring.finish_chunk(chunk, low, high)
    payload, scales = (np.array([count(high - low) for low, high in bounds]) for count in (wire.payload_bytes, wire.scale_bytes))
    new_residual, recorded = (array if array is None else readonly(array) for array in (new_residual, recorded))
    payload_sent, scales_sent = (readonly(sent_in_reduce_scatter(each) + sent_in_all_gather(each)) for each in (payload, scales))
    return RingResult(readonly(result), payload_sent, scales_sent, new_residual, readonly(payload + scales), recorded)


def chunk_bounds(size: int, ranks: int) -> list[tuple[int, int]]:
    """Return, for each of the ``ranks`` chunks of ``size`` numbers, its first column and the column after its last.

    The chunks are the same as those of ``numpy.array_split``.

    >>> chunk_bounds(7, 3), chunk_bounds(1, 3)
    ([(0, 3), (3, 5), (5, 7)], [(0, 1), (1, 1), (1, 1)])
    """
    shortest, longer = divmod(size, ranks)
    starts = [chunk * shortest + min(chunk, longer) for chunk in range(ranks + 1)]  # the first ``longer`` chunks have one number more
    return list(pairwise(starts))


def nonempty(bounds: Sequence[tuple[int, int]]) -> list[tuple[int, tuple[int, int]]]:
    """Return the chunks that are not empty, each with its number and its bounds. Empty chunks are not sent.

    >>> nonempty([(0, 1), (1, 2), (2, 2)])
    [(0, (0, 1)), (1, (1, 2))]
    """
    return [(chunk, (low, high)) for chunk, (low, high) in enumerate(bounds) if low < high]


def chunks_sent(ranks: int) -> npt.NDArray[np.int64]:
    """Return the chunk that each rank sends at each of the 2 (ranks - 1) steps, shape (steps, ranks).

    Chunk c starts at rank c. Its sum is complete at rank c - 1, and its all-gather begins there.

    >>> chunks_sent(3).tolist()
    [[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 1, 2]]
    """
    rank, step = np.arange(ranks), np.arange(ranks - 1)[:, None]
    return np.concatenate([rank - step, rank + 1 - step]) % ranks


def sent_in_reduce_scatter(sizes: Counts) -> Counts:
    """Return how much each rank sends in the reduce-scatter: all chunks except the chunk that it owns.

    >>> sent_in_reduce_scatter(np.array([1, 10, 100])).tolist()
    [101, 11, 110]
    """
    sent: Counts = sizes.sum() - np.roll(sizes, -1)  # rank r owns chunk r + 1
    return sent


def sent_in_all_gather(sizes: Counts) -> Counts:
    """Return how much each rank sends in the all-gather: all chunks except the last one that it receives.

    >>> sent_in_all_gather(np.array([1, 10, 100])).tolist()
    [11, 110, 101]
    """
    sent: Counts = sizes.sum() - np.roll(sizes, -2)  # rank r is the last to receive chunk r + 2
    return sent


def _hops_of_ring(nbytes: Counts, record: Real | None) -> tuple[Hop, ...]:
    """Return the 2 (ranks - 1) steps. ``nbytes`` has the bytes of each chunk's message. ``record`` is None, or the recorded numbers."""
    ranks = nbytes.size
    if 2 * ranks * ranks > MOST_CELLS:
        raise HybridLabError(f"{2 * (ranks - 1):,} hops of {ranks:,} messages do not fit in memory: take fewer ranks", "too-large")
    sender = readonly(np.arange(ranks))
    receiver = readonly((sender + 1) % ranks)
    hops = []
    for place, chunk in enumerate(readonly(chunks_sent(ranks))):
        phase, step = divmod(place, ranks - 1)
        held = None if record is None else record[place]
        hops.append(Hop((REDUCE_SCATTER, ALL_GATHER)[phase], step, sender, receiver, chunk, readonly(nbytes[chunk]), held))
    return tuple(hops)


def _copy_residual(residual: npt.ArrayLike, numbers: Real) -> Real:
    """Return a copy of the residual in the precision of ``numbers``. Raise an error if its shape or a number is wrong."""
    precision: Any = numbers.dtype
    with np.errstate(over="ignore"):  # infinite results are refused
        copy: Real = rows_of_ranks(residual, "residual").astype(precision)
    if copy.shape != numbers.shape:
        raise HybridLabError(f"residual must have the shape of values, {numbers.shape}, not {copy.shape}", "wrong-shape")
    refuse_infinite(copy, "residual")
    return copy


def _empty_record(numbers: Real) -> Real:
    """Return the array for the record, shape (steps, ranks, n). At first, every step holds the initial numbers."""
    ranks, size = numbers.shape
    steps = 2 * (ranks - 1)
    if steps * ranks * size > MOST_CELLS:
        asked = f"a record of {counted(steps, 'hop')} of {counted(ranks, 'rank')} x {size:,} numbers"
        raise HybridLabError(f"{asked} does not fit in memory: leave record out, or take fewer numbers", "too-large")
    precision: Any = numbers.dtype
    record: Real = np.empty((steps, ranks, size), dtype=precision)
    record[:] = numbers
    return record
