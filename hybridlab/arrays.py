"""Arrays: their types, read-only arrays, and frozen values that hold arrays and compare by what they hold."""

from dataclasses import fields
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

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


def one_object(value: object) -> npt.NDArray[Any]:
    """Return an array of no dimensions that holds ``value``; ``np.array(value)`` would split a value that is a sequence.

    >>> one_object((1, 2)).shape
    ()
    """
    array = np.empty((), dtype=object)
    array[()] = value
    return array


class Frozen:
    """The base of frozen dataclasses that hold arrays; they are declared with ``eq=False``.

    Arrays stay read-only after unpickling and ``copy.deepcopy``, where numpy alone would make them writeable again. Two values are equal
    if they have the same type and equal fields; arrays are equal if their shapes and their numbers are. Equal values have equal hashes.

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
            return NotImplemented
        return all(_same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))

    def __hash__(self) -> int:
        return hash((type(self), *(_hashable(getattr(self, field.name)) for field in fields(self))))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return one is other or (np.shape(one) == np.shape(other) and np.array_equal(one, other))
    return bool(one == other)


def _hashable(value: Any) -> Any:
    """Return a key that equal values share: an array becomes its shape and its bytes, with -0.0 counted as 0.0."""
    if isinstance(value, np.ndarray):
        return value.shape, (value.astype(np.float64) + 0.0).tobytes() if value.dtype.kind in "biuf" else str(value.tolist())
    return value
