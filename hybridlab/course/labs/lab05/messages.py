"""Functions for the three coding tasks ("builds") of lab 5: sizes of messages, reading of arrays, INT8 with a scale for each block."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import counted
from hybridlab.course.checking.maps import REVERSED, at, exchanged, of_value, refuse
from hybridlab.errors import HybridLabError
from hybridlab.wire import WireFormat

SMALL = ((1, 1), (2, 1), (3, 2), (4, 8), (5, 4))  # numbers in a message, numbers in a block
NOT_BLOCKS = "your blocks have nearly the same length, as from np.array_split: here every block but the {short} has `block` numbers"

Encoded = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def sizes_of_messages(rng: np.random.Generator) -> tuple[tuple[int, int], ...]:
    """Return numbers of numbers in a message and in a block: the same small ones for each seed, then random ones.

    The random messages have full blocks alone, a short last block, one block, and a short last block again.
    """
    full, short, large = (int(rng.integers(*limits)) for limits in ((3, 8), (5, 14), (64, 257)))
    whole = int(rng.integers(100, 301))
    return (
        *SMALL,
        (full * int(rng.integers(2, 6)), full),
        (short * int(rng.integers(2, 9)) + int(rng.integers(1, short)), short),
        (whole, whole),
        (large * int(rng.integers(2, 5)) + int(rng.integers(1, large)), large),
    )


def in_blocks(size: int, block: int) -> str:
    """Return words for the size of a message and of its blocks, and for the length of a shorter last block."""
    short = f", of which the last has {size % block}" if size > block and size % block else ""
    return f"{counted(size, 'number')} in blocks of {block}{short}"


def array(value: Any, what: str, kind: type, hint: str = "") -> np.ndarray[Any, Any]:
    """Return ``value`` as an array if it has one axis and the type ``kind``. Else raise an error.

    ``what`` names the value in the error. ``hint`` ends the error about a wrong type.
    """
    if not isinstance(value, np.ndarray):
        kind_of = type(value).__name__[:40]
        raise HybridLabError(f"{what} must be a numpy array, but are {'an' if kind_of[0] in 'aeiou' else 'a'} {kind_of}", "not-an-array")
    if value.dtype != kind:
        raise HybridLabError(f"{what} must be {np.dtype(kind)}, but are {value.dtype}{hint}", "wrong-type")
    if value.ndim != 1:
        raise HybridLabError(f"{what} have the shape {value.shape}, not one axis", "wrong-shape")
    return np.asarray(value)


def pair(result: Any, what: str) -> tuple[Any, Any]:
    """Return the two results of a student's function, or raise an error in which ``what`` names them."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise HybridLabError(f"the function returns two arrays, {what}: end the function with `return` and both names", "not-a-pair")
    return result[0], result[1]


def without_the_library(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a student's function. A call of the library's own INT8 raises an error."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise HybridLabError("write INT8 with numpy in this task, not with the library", "library-called")

    with mock.patch.multiple(WireFormat, encode=refuse, decode=refuse):
        return call(*arguments)


def peak(part: Floats) -> float:
    """Return the largest magnitude of the numbers."""
    return float(np.abs(part).max())


def of_each(scales: np.ndarray[Any, Any], block: int, size: int) -> Floats:
    """Return the scale of each number, as float64, shape (size,). All numbers of a block have the same scale."""
    return np.repeat(scales.astype(np.float64), block)[:size]


def there_are(count: int, thing: str) -> str:
    """Return words for a count of things.

    >>> there_are(1, "scale"), there_are(2, "block")
    ('there is 1 scale', 'there are 2 blocks')
    """
    return f"there {'is' if count == 1 else 'are'} {counted(count, thing)}"


def through_int8(values: Floats, block: int) -> Floats:
    """Return the numbers after encoding to INT8 and decoding."""
    wire = WireFormat("INT8", block=block)
    return wire.decode(wire.encode(values)).astype(np.float64)


def nearly_equal_lengths(size: int, block: int) -> Ints:
    """Return a length for each block, such that the lengths differ by at most 1."""
    blocks = -(-size // block)
    return np.array([len(part) for part in np.array_split(np.arange(size), max(blocks, 1))], np.int64)[:blocks]


# --- maps of codes and scales ----------------------------------------------------------------------------------------------------


def _plus_128(codes: Any, given: type, wanted: type) -> Any:
    if not isinstance(codes, np.ndarray) or codes.dtype != given:
        refuse(codes, f"codes in an array of type {np.dtype(given)}")
    return (codes.view(np.uint8) ^ np.uint8(128)).view(wanted)


def _inverse(scales: Any) -> Any:
    if not isinstance(scales, np.ndarray) or scales.dtype.kind != "f":
        refuse(scales, "an array of floats")
    with np.errstate(all="ignore"):
        return np.divide(1, scales, out=np.zeros_like(scales), where=scales != 0)


UNSIGNED = of_value(lambda codes: _plus_128(codes, np.int8, np.uint8), lambda codes: _plus_128(codes, np.uint8, np.int8))
INVERSE = of_value(_inverse, _inverse)
BOTH_REVERSED = at(0, REVERSED).then(at(1, REVERSED))
OTHER_FIRST = exchanged((1, 0))
LOSS_SCALE = 8  # multiplying a float by a power of 2 causes no rounding error
