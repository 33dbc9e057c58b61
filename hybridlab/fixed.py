"""Values whose arrays nobody can write to, copies of them included."""

from typing import Any, TypeVar

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
    """A value whose arrays are read-only after unpickling and ``copy.deepcopy`` too: numpy forgets it there."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update((name, fixed(value) if isinstance(value, np.ndarray) else value) for name, value in state.items())
