"""What an all-reduce returns, and the checks of what it is given."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Frozen
from hybridlab.checks import refuse_masked, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.wire import Real, Single, WireFormat

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AllReduceResult(Frozen):
    """What each rank ends with, and what it sent on the way.

    ``values`` has shape (ranks, n), and all its rows are equal, bit for bit. ``payload_bytes`` and ``scale_bytes`` count
    the bytes that each rank sent as codes and as scales: a place for each rank, and for a server after them if there is one.
    """

    values: Real
    payload_bytes: Counts
    scale_bytes: Counts

    @property
    def bytes_sent(self) -> Counts:
        """Bytes that each rank sent, codes and scales together."""
        return self.payload_bytes + self.scale_bytes


def rows_of_ranks(values: npt.ArrayLike, name: str = "values") -> Real:
    """Return ``values``, shape (ranks, n), as float32 if they are float16 or float32, else as float64; or refuse them.

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
        raise HybridLabError(f"{wanted}, but its rows differ in length: {short_repr(values)}") from None
    if array.dtype.kind not in "iuf":
        raise HybridLabError(f"{wanted}, such as [[0.5, 1.0], [1.5, 2.0]], not {short_repr(values)}")
    if array.ndim != 2:
        raise HybridLabError(f"{wanted}: shape (ranks, n), not {array.shape}")
    if not array.shape[0]:
        raise HybridLabError(f"{name} has no rows: an all-reduce needs at least one rank")
    with np.errstate(over="ignore"):  # a longer float beyond float64 becomes infinite and is refused
        single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
        array = array.astype(np.float32 if single else np.float64, copy=False)
    refuse_infinite(array, name)
    return array


def refuse_infinite(array: Real, name: str) -> None:
    """Raise unless every number is finite; name the first that is not by its rank and place."""
    for rank, row in enumerate(array):  # row by row: no copy of the whole
        if not np.isfinite(row).all():
            place = int(np.flatnonzero(~np.isfinite(row))[0])
            raise HybridLabError(f"{name} must be finite, but value {place} of rank {rank} is {row[place]}")


def wire_format(wire: Any, rng: Any) -> WireFormat:
    """Return ``wire`` if it is a format and has the random numbers it needs, or refuse it."""
    if not isinstance(wire, WireFormat):
        raise HybridLabError(f"wire must be a WireFormat, such as FP16 or WireFormat('INT8', block=256), not {short_repr(wire)}")
    wire.random_source(rng)
    return wire


def carried(numbers: Real, wire: WireFormat, rng: np.random.Generator | None, rank: int, what: str, first: int) -> Single:
    """Return what a message decodes to, or refuse it: which rank cannot send what, and the place of its first number.

    >>> FP16 = WireFormat("FP16")
    >>> carried(np.array([1.0, 7e4]), FP16, None, rank=1, what="chunk 2", first=6)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: rank 1 cannot send chunk 2, whose value 0 is value 6 of the rank: FP16 carries
    numbers up to 65504, but value 1 is 70000: scale the numbers down, or send BF16, which has the range of FP32
    """
    try:
        return wire.decode(wire.encode(numbers, rng))
    except HybridLabError as why:
        broken = np.flatnonzero(~np.isfinite(numbers))
        found = f"the sum at value {broken[0]} is beyond {numbers.dtype}: scale the numbers down" if broken.size else why
        raise HybridLabError(f"rank {rank} cannot send {what}, whose value 0 is value {first} of the rank: {found}") from None
