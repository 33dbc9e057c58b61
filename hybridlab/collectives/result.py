"""The result that every all-reduce returns, and the checks of the arguments that every all-reduce takes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Frozen
from hybridlab.checks import refuse_masked, short_repr, true_or_false
from hybridlab.errors import HybridLabError
from hybridlab.wire import Real, WireFormat

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AllReduceResult(Frozen):
    """The values of each rank after an all-reduce, and the bytes that each rank sent.

    Parameters
    ----------
    values : array, shape (ranks, n)
        The mean or the sum. All rows are equal, bit for bit.
    payload_bytes : array, shape (ranks,)
        The bytes of encoded numbers that each rank sent, without the scales.
    scale_bytes : array, shape (ranks,)
        The bytes of scales that each rank sent.
    """

    values: Real
    payload_bytes: Counts
    scale_bytes: Counts

    @property
    def bytes_sent(self) -> Counts:
        """Bytes that each rank sent: encoded numbers and scales together."""
        return self.payload_bytes + self.scale_bytes


def checked_arguments(values: npt.ArrayLike, wire: Any, average: Any, rng: Any) -> tuple[Real, WireFormat, int]:
    """Return the values, the wire format and the divisor of the sum (1 if the caller wants the sum). Raise an error if they are wrong."""
    numbers, wire = rows_of_ranks(values), checked_wire(wire)
    wire.random_source(rng)  # raises an error if stochastic rounding has no generator
    return numbers, wire, len(numbers) if true_or_false(average, "average") else 1


def rows_of_ranks(values: npt.ArrayLike, name: str = "values") -> Real:
    """Return ``values``, shape (ranks, n), in the precision for sums. Errors call the argument ``name``.

    float16 and float32 become float32. All other real numbers become float64.

    >>> rows_of_ranks([[1, 2], [3, 4]]).dtype
    dtype('float64')
    >>> rows_of_ranks([[1.0, 2.0], [3.0, float("nan")]])
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: values must be finite, but value 1 of rank 1 is nan
    """
    wanted = f"{name} must have a row for each rank and a column for each number"
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):
        raise HybridLabError(f"{wanted}, but its rows differ in length: {short_repr(values)}", "ragged") from None
    if array.dtype.kind not in "iuf":
        raise HybridLabError(f"{wanted}, such as [[0.5, 1.0], [1.5, 2.0]], not {short_repr(values)}", "not-a-number")
    if array.ndim != 2:
        raise HybridLabError(f"{wanted}: shape (ranks, n), not {array.shape}", "wrong-shape")
    if not array.shape[0]:
        raise HybridLabError(f"{name} has no rows: an all-reduce needs at least one rank", "empty")
    with np.errstate(over="ignore"):  # a number that is too large for float64 becomes infinite, and is refused below
        single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
        array = array.astype(np.float32 if single else np.float64, copy=False)
    refuse_infinite(array, name)
    return array


def refuse_infinite(array: Real, name: str) -> None:
    """Raise an error if a number is not finite. The error names the rank and the index of the first such number."""
    for rank, row in enumerate(array):  # row by row, to need less memory
        if not np.isfinite(row).all():
            place = int(np.flatnonzero(~np.isfinite(row))[0])
            raise HybridLabError(f"{name} must be finite, but value {place} of rank {rank} is {row[place]}", "not-finite")


def checked_wire(wire: Any) -> WireFormat:
    """Return ``wire`` if it is a wire format. Raise an error if it is not."""
    if not isinstance(wire, WireFormat):
        raise HybridLabError(
            f"wire must be a WireFormat, such as FP16 or WireFormat('INT8', block=256), not {short_repr(wire)}", "wrong-type"
        )
    return wire
