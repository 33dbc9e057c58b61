"""Functions that look at a student's function and at its result where it runs: in a worker of the grader, or in a notebook.

A copy of this file lies beside the program of a worker, where hybridlab may be missing. So it imports nothing of hybridlab.
"""

import inspect
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

MOST_YIELDED = 100_000  # values taken from an iterator, which can be endless
SHARED = {  # sentences about arrays that share memory, by their codes
    "aliased": "the result shares memory with the arguments: a later change to one would change the other; copy",
    "one-row": "the rows of an array in the result share memory: each rank has numbers of its own; copy",
    "aliased-ranks": "{arrays} share memory: a later change to one would change the other; copy",
}


def is_stub(function: Any) -> bool:
    """Return whether a function has no code yet: nothing but ``...``, ``pass`` or a docstring.

    Examples
    --------
    >>> def makespan(devices): ...
    >>> is_stub(makespan), is_stub(max)
    (True, False)
    """
    # The compiler gives all functions without code the same bytecode, so it is compared with that of the two functions below.
    if not inspect.isfunction(function) or function.__code__.co_code not in _STUBS:
        return False
    return set(function.__code__.co_consts) <= {None, function.__doc__}  # `return True` has the same code, and another constant


def listed(result: Any) -> Any:
    """Return the first values of an iterator as a list. Return any other result as it is.

    Examples
    --------
    >>> listed(iter("1F0")), listed("1F0")
    (['1', 'F', '0'], '1F0')
    """
    return list(islice(result, MOST_YIELDED)) if isinstance(result, Iterator) else result


def shared_memory(result: Any, arguments: Any) -> tuple[str, str] | None:
    """Return a code of ``SHARED`` and the names of arrays that share memory, or None if no arrays do.

    Arrays of the result may not share memory with the arguments or with each other, and neither may the rows of one array.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones(3)
    >>> shared_memory([ones[1:], [ones]], arguments=(np.ones(3),))
    ('aliased-ranks', 'result[0] and result[1][0]')
    """
    # numpy is not imported here: a program without it has no arrays.
    np = sys.modules.get("numpy")
    if np is None:
        return None
    arrays, given = list(_arrays(result, "result")), [array for _, array in _arrays(arguments, "given")]
    if any(np.shares_memory(array, argument) for _, array in arrays for argument in given):
        return "aliased", "the result and the arguments"
    for name, array in arrays:
        if array.ndim == 2 and len(array) > 1 and np.shares_memory(array[0], array[1]):
            return "one-row", name
    # To compare all pairs would take long. Sorted by address, an array can share memory only with those that have not ended yet.
    bounds = sorted((*np.lib.array_utils.byte_bounds(array), place) for place, (_, array) in enumerate(arrays))
    reaching: list[tuple[int, int]] = []  # arrays that may reach into the next one: (end of the memory, position)
    pairs: list[list[int]] = []
    for low, high, place in bounds:
        reaching = [(end, other) for end, other in reaching if end > low]
        # bounds can overlap without a shared element, as for a[::2] and a[1::2]
        pairs += [sorted((place, other)) for _, other in reaching if np.shares_memory(arrays[place][1], arrays[other][1])]
        reaching.append((high, place))
    return ("aliased-ranks", " and ".join(arrays[place][0] for place in min(pairs))) if pairs else None


def _arrays(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the arrays in a value and in its lists, tuples and dicts, each with its expression, such as ``"result[1][0]"``."""
    if isinstance(value, sys.modules["numpy"].ndarray):
        yield name, value
    elif isinstance(value, (list, tuple, dict)):
        for place, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _arrays(each, f"{name}[{repr(place)[:40]}]")  # a key can be long


def _empty() -> None: ...


def _described() -> None:
    """Do nothing."""


_STUBS = frozenset((_empty.__code__.co_code, _described.__code__.co_code))
