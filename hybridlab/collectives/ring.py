"""The ring all-reduce: real arrays, hop by hop, in any wire format."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import readonly
from hybridlab.checks import MOST_CELLS, counted, true_or_false
from hybridlab.collectives.hops import Hop, chunk_bounds, filled, gathered, hops_of, scattered
from hybridlab.collectives.result import AllReduceResult, Counts, refuse_infinite, rows_of_ranks, wire_format
from hybridlab.collectives.ring_sum import Ring, ring_sum_at_once
from hybridlab.errors import HybridLabError
from hybridlab.wire import FP32, Real, WireFormat


@dataclass(frozen=True, eq=False)
class RingResult(AllReduceResult):
    """What each rank ends with, what it sent, hop by hop, and what rounding left for the next time.

    ``residual``, shape (ranks, n), is the memory of error feedback, None without it; ``hops`` are the 2 (ranks - 1) steps.
    """

    residual: Real | None = None
    _chunk_bytes: Counts = field(default_factory=lambda: np.zeros(1, dtype=np.int64), repr=False)
    _held: Real | None = field(default=None, repr=False)

    @cached_property
    def hops(self) -> tuple[Hop, ...]:
        """The steps of the reduce-scatter, then those of the all-gather; none for one rank."""
        return hops_of(self._chunk_bytes, self._held)


def ring_all_reduce(
    values: npt.ArrayLike,
    wire: WireFormat = FP32,
    average: bool = True,
    *,
    rng: np.random.Generator | None = None,
    residual: npt.ArrayLike | None = None,
    record: bool = False,
) -> RingResult:
    """Return the mean over the ranks (or the sum, if not ``average``) as every rank holds it after a ring all-reduce.

    ``values``, shape (ranks, n), has a row for each rank; the columns are cut into as many chunks as there are ranks, as
    numpy.array_split cuts. Reduce-scatter: chunk c starts at rank c and goes around; each rank sends what it has summed so
    far, encoded as ``wire``. The rank that completes a chunk takes the mean and encodes it once; all-gather: that packet is
    forwarded as it is, and every rank, the first too, keeps what it decodes to. So all rows of the result are equal.
    float16 and float32 are summed and returned as float32, other real numbers as float64.

    ``residual`` turns on error feedback (Seide et al., Interspeech 2014): shape (ranks, n), zeros to begin with, then the
    last result's. A rank adds its residual to what it encodes and keeps what rounding lost: with r the residuals' sums,
    ranks x mean + r after = sum of the values + r before, but for float rounding. ``record`` keeps what every rank
    holds after every hop: sums in the reduce-scatter, before the mean is taken.

    Raises :class:`HybridLabError` for NaN and infinity, and for a partial sum that ``wire`` cannot carry. The algorithm is
    that of Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009): 2 (ranks - 1) steps of n / ranks numbers each.

    >>> ring_all_reduce([[1, 2, 3], [3, 4, 5]]).values
    array([[2., 3., 4.],
           [2., 3., 4.]])
    """
    numbers, wire = rows_of_ranks(values), wire_format(wire, rng)
    average, record = true_or_false(average, "average"), true_or_false(record, "record")
    ranks, size = numbers.shape
    left = None if residual is None else _residual(residual, numbers)
    held = _record(numbers) if record else None
    result = numbers.copy() if ranks == 1 else np.empty_like(numbers)
    bounds = chunk_bounds(size, ranks)
    divisor = ranks if average else 1
    ring = Ring(numbers, wire, divisor, rng, range(ranks), 0, left, held)
    with np.errstate(over="ignore", invalid="ignore"):  # what becomes infinite is refused
        whole = ring_sum_at_once(numbers, wire, divisor, bounds) if ranks > 1 and left is None and held is None else None
        if whole is not None:
            result[:] = whole
        elif ranks > 1:
            for chunk, (low, high) in filled(bounds):
                result[:, low:high] = ring.reduced(chunk, low, high)
    payload, scales = (np.array([count(high - low) for low, high in bounds]) for count in (wire.payload_bytes, wire.scale_bytes))
    left, held = (array if array is None else readonly(array) for array in (left, held))
    by_rank = readonly(scattered(payload) + gathered(payload)), readonly(scattered(scales) + gathered(scales))
    return RingResult(readonly(result), *by_rank, left, readonly(payload + scales), held)


def _residual(residual: npt.ArrayLike, numbers: Real) -> Real:
    """Return a copy of the residual in the precision of the numbers, or refuse it."""
    precision: Any = numbers.dtype
    with np.errstate(over="ignore"):  # what becomes infinite is refused
        left: Real = rows_of_ranks(residual, "residual").astype(precision)
    if left.shape != numbers.shape:
        raise HybridLabError(f"residual must have the shape of values, {numbers.shape}, not {left.shape}")
    refuse_infinite(left, "residual")
    return left


def _record(numbers: Real) -> Real:
    """Return room for what every rank holds after every hop, filled with what it holds at the start."""
    ranks, size = numbers.shape
    steps = 2 * (ranks - 1)
    if steps * ranks * size > MOST_CELLS:
        message = f"a record of {counted(steps, 'hop')} of {counted(ranks, 'rank')} x {size:,} numbers"
        raise HybridLabError(f"{message} does not fit in memory: leave record out, or take fewer numbers")
    precision: Any = numbers.dtype
    held: Real = np.empty((steps, ranks, size), dtype=precision)
    held[:] = numbers
    return held
