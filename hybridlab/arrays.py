"""Types of arrays, read-only arrays, and a base class for frozen dataclasses with array fields."""

from dataclasses import fields
from typing import Any, ClassVar, Optional, TypeVar

import numpy as np
import numpy.typing as npt

Rng = Optional["np.random.Generator"]  # in quotes, because numpy loads np.random only when it is used
Ints = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]
Array = TypeVar("Array", bound=npt.NDArray[Any])


def readonly(array: Array) -> Array:
    """Return ``array`` itself, made read-only.

    >>> readonly(np.array([1, 2])).flags.writeable
    False
    """
    array.setflags(write=False)
    return array


def sorted_places(numbers: npt.NDArray[Any]) -> Ints:
    """Return the places of ``numbers`` from the smallest to the largest; the places of equal numbers keep their order.

    >>> sorted_places(np.array([3, 1, 3, 0])).tolist()
    [3, 1, 0, 2]
    """
    if numbers.size > 500 and numbers.min() >= 0 and numbers.max() < 2**16:
        numbers = numbers.astype(np.uint16)  # numpy sorts short numbers in linear time
    return np.argsort(numbers, kind="stable")


def one_object(value: object) -> npt.NDArray[Any]:
    """Return a 0-dimensional object array that holds ``value``; ``np.array`` would turn a sequence into an axis.

    >>> one_object((1, 2)).shape
    ()
    """
    array = np.empty((), dtype=object)
    array[()] = value
    return array


class Frozen:
    """The base of frozen dataclasses with array fields. A subclass is declared with ``@dataclass(frozen=True, eq=False)``.

    Arrays stay read-only after unpickling and ``copy.deepcopy``; numpy alone would make them writeable. Two values are equal if they
    have the same type and equal fields; two arrays are equal if they have the same shape and equal numbers. Equal values have equal
    hashes.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Point(Frozen):
    ...     place: np.ndarray
    >>> Point(np.zeros(2)) == Point(-np.zeros(2)), Point(np.zeros(2)) == Point(np.zeros(3))
    (True, False)
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]  # set by @dataclass

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update((name, readonly(value) if isinstance(value, np.ndarray) else value) for name, value in state.items())

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented  # Python then asks the other object
        return all(_same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))

    def __hash__(self) -> int:
        return hash((type(self), *(_hashable(getattr(self, field.name)) for field in fields(self))))


def _same(one: Any, other: Any) -> bool:
    """Return whether two fields are equal; arrays need the same shape and equal numbers."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return one is other or (np.shape(one) == np.shape(other) and np.array_equal(one, other))
    return bool(one == other)


def _hashable(value: Any) -> Any:
    """Return a hashable key that is the same for equal values: shape and bytes of an array, with -0.0 as 0.0."""
    if isinstance(value, np.ndarray):
        return value.shape, (value.astype(np.float64) + 0.0).tobytes() if value.dtype.kind in "biuf" else str(value.tolist())
    return value
