"""What a student's function is and what it returns, looked at where it runs: in a worker of the grader, or in the student's own notebook.

A copy of this file lies beside the program of a worker, so it imports nothing of hybridlab.
"""

import inspect
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

MOST_YIELDED = 100_000  # values taken from a generator or another iterator
SHARED = {  # sentences about arrays in a result that share memory, by their codes
    "aliased": "the result shares memory with the arguments: a later change to one would change the other; copy",
    "one-row": "the rows of an array in the result share memory: each rank has numbers of its own; copy",
    "aliased-ranks": "{arrays} share memory: a later change to one would change the other; copy",
}


def is_stub(function: Any) -> bool:
    """Whether the function has no code of its own yet: nothing but ``...``, ``pass`` or a docstring.

    Examples
    --------
    >>> def makespan(devices): ...
    >>> is_stub(makespan), is_stub(max)
    (True, False)
    """
    if not inspect.isfunction(function) or function.__code__.co_code not in _STUBS:
        return False
    return set(function.__code__.co_consts) <= {None, function.__doc__}  # `return True` has the same code, and another constant


def listed(result: Any) -> Any:
    """Return a list of the first values of an iterator, and any other result as it is.

    Examples
    --------
    >>> listed(iter("1F0")), listed("1F0")
    (['1', 'F', '0'], '1F0')
    """
    return list(islice(result, MOST_YIELDED)) if isinstance(result, Iterator) else result


def shared_memory(result: Any, arguments: Any) -> tuple[str, str] | None:
    """Return what arrays in a result share memory with, as a code of ``SHARED``, and names of the arrays; or None if they share nothing.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones(3)
    >>> shared_memory([ones[1:], [ones]], arguments=(np.ones(3),))
    ('aliased-ranks', 'result[0] and result[1][0]')
    """
    np = sys.modules.get("numpy")
    if np is None:  # then there are no arrays
        return None
    arrays, given = list(_arrays(result, "result")), [array for _, array in _arrays(arguments, "given")]
    if any(np.shares_memory(array, argument) for _, array in arrays for argument in given):
        return "aliased", "the result and the arguments"
    for name, array in arrays:
        if array.ndim == 2 and len(array) > 1 and np.shares_memory(array[0], array[1]):
            return "one-row", name
    bounds = sorted((*np.lib.array_utils.byte_bounds(array), place) for place, (_, array) in enumerate(arrays))
    reaching: list[tuple[int, int]] = []  # arrays that may reach into the next one: the end of the memory, and the position in the result
    pairs: list[list[int]] = []
    for low, high, place in bounds:
        reaching = [(end, other) for end, other in reaching if end > low]
        pairs += [sorted((place, other)) for _, other in reaching if np.shares_memory(arrays[place][1], arrays[other][1])]
        reaching.append((high, place))
    return ("aliased-ranks", " and ".join(arrays[place][0] for place in min(pairs))) if pairs else None


def _arrays(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the arrays in a value and in its lists, tuples and dicts, each after the expression that leads to it: ``"result[1][0]"``."""
    if isinstance(value, sys.modules["numpy"].ndarray):
        yield name, value
    elif isinstance(value, (list, tuple, dict)):
        for place, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _arrays(each, f"{name}[{repr(place)[:40]}]")


def _empty() -> None: ...


def _described() -> None:
    """Do nothing."""


_STUBS = frozenset((_empty.__code__.co_code, _described.__code__.co_code))
