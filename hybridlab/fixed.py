"""Values whose arrays nobody can write to, copies of them included, and which are equal where all they hold is equal."""

from dataclasses import fields
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

Array = TypeVar("Array", bound=npt.NDArray[Any])


def fixed(array: Array) -> Array:
    """Return ``array`` itself, made read-only.

    >>> fixed(np.array([1, 2])).flags.writeable
    False
    """
    array.setflags(write=False)
    return array


def one_object(value: object) -> npt.NDArray[Any]:
    """Return an array without axes that holds ``value``: numpy would take apart a value that has a length and items.

    >>> one_object((1, 2)).shape
    ()
    """
    array = np.empty((), dtype=object)
    array[()] = value
    return array


class Fixed:
    """A frozen dataclass, declared with ``eq=False``, that may hold arrays.

    Its arrays are read-only after unpickling and ``copy.deepcopy`` too: numpy forgets it there. Two are equal if they have one type
    and equal fields, arrays by their shape and their values; equal ones have one hash.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Point(Fixed):
    ...     place: np.ndarray
    >>> Point(np.zeros(2)) == Point(-np.zeros(2)), Point(np.zeros(2)) == Point(np.zeros(3))
    (True, False)
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]  # what a dataclass has

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update((name, fixed(value) if isinstance(value, np.ndarray) else value) for name, value in state.items())

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
    """Return what equal values have in common: of numbers in an array their shape and values, with -0.0 as 0.0."""
    if isinstance(value, np.ndarray):
        return value.shape, (value.astype(np.float64) + 0.0).tobytes() if value.dtype.kind in "biuf" else str(value.tolist())
    return value
