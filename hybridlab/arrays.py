"""Types for arrays, a function for read-only arrays, and a base class for frozen dataclasses with array fields."""

from dataclasses import fields
from typing import Any, ClassVar, Optional, TypeVar

import numpy as np
import numpy.typing as npt

Rng = Optional["np.random.Generator"]  # in quotes, because numpy imports np.random only on first use
Ints = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]
Array = TypeVar("Array", bound=npt.NDArray[Any])


def readonly(array: Array) -> Array:
    """Set ``array`` to read-only and return a view of it. The view cannot be set to writeable again.

    >>> readonly(np.array([1, 2])).setflags(write=True)
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    array.setflags(write=False)
    return array.view()  # numpy lets the owner of the numbers become writeable again, but not a view of a read-only array


def unchanging(array: npt.NDArray[Any]) -> bool:
    """Return whether ``array`` and the arrays whose memory it shares are read-only.

    >>> numbers = np.array([1, 2])
    >>> unchanging(readonly(numbers[:1])), unchanging(readonly(numbers)[:1])
    (False, True)
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None  # other objects, such as a bytearray or a shared memory, can be changed


def sorted_places(numbers: npt.NDArray[Any]) -> Ints:
    """Return the indices that sort ``numbers`` from the smallest to the largest. Indices of equal numbers stay in order.

    >>> sorted_places(np.array([3, 1, 3, 0])).tolist()
    [3, 1, 0, 2]
    """
    if numbers.size > 500 and numbers.min() >= 0 and numbers.max() < 2**16:
        numbers = numbers.astype(np.uint16)  # numpy sorts 16-bit numbers in linear time
    return np.argsort(numbers, kind="stable")


def one_object(value: object) -> npt.NDArray[Any]:
    """Return a 0-dimensional object array with ``value``. ``np.array`` would turn a sequence into an axis.

    >>> one_object((1, 2)).shape
    ()
    """
    array = np.empty((), dtype=object)
    array[()] = value
    return array


class Frozen:
    """The base class of frozen dataclasses with array fields. Declare a subclass with ``@dataclass(frozen=True, eq=False)``.

    Arrays stay read-only after unpickling and ``copy.deepcopy``. Without this class, numpy would return writeable arrays. Two values are
    equal if they have the same type and equal fields. Two arrays are equal if they have the same shape and equal numbers. Equal values have
    equal hashes.

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
    """Return whether two fields are equal. Equal arrays have the same shape and equal numbers."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return one is other or (np.shape(one) == np.shape(other) and np.array_equal(one, other))
    return bool(one == other)


def _hashable(value: Any) -> Any:
    """Return a hashable key that is the same for equal values. For an array, the key is its shape and bytes, with -0.0 as 0.0."""
    if isinstance(value, np.ndarray):
        return value.shape, (value.astype(np.float64) + 0.0).tobytes() if value.dtype.kind in "biuf" else str(value.tolist())
    return value
