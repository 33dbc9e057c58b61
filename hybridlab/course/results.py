"""Inspect a student's function and its result in the process that runs the function: a worker of the grader, or a notebook.

This file imports nothing from hybridlab, because the grader copies it to the folder of a worker, where hybridlab may not be installed.
"""

import inspect
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

MOST_YIELDED = 100_000  # the most values that are taken from an iterator, because an iterator can be endless
SHARED = {  # for each code, the sentence about arrays that share memory
    "aliased": "the result shares memory with the arguments: a later change to one would change the other; copy",
    "one-row": "the rows of an array in the result share memory: each rank has numbers of its own; copy",
    "aliased-ranks": "{arrays} share memory: a later change to one would change the other; copy",
}


def is_stub(function: Any) -> bool:
    """Return whether a function has not been written yet: its body is nothing but ``...``, ``pass`` or a docstring.

    Examples
    --------
    >>> def makespan(devices): ...
    >>> is_stub(makespan), is_stub(max)
    (True, False)
    """
    # All functions with an empty body have the same bytecode as one of the two empty functions at the end of this file.
    if not inspect.isfunction(function) or function.__code__.co_code not in _STUBS:
        return False
    # `return True` has the same bytecode as an empty body, but another constant.
    return set(function.__code__.co_consts) <= {None, function.__doc__}


def listed(result: Any) -> Any:
    """Return the first values of an iterator as a list. Return a result that is not an iterator unchanged.

    Examples
    --------
    >>> listed(iter("1F0")), listed("1F0")
    (['1', 'F', '0'], '1F0')
    """
    return list(islice(result, MOST_YIELDED)) if isinstance(result, Iterator) else result


def shared_memory(result: Any, arguments: Any) -> tuple[str, str] | None:
    """Return a code of ``SHARED`` and the names of arrays that share memory; None if no arrays share memory.

    Three things are not allowed: (1) an array of the result shares memory with an argument, (2) two arrays of the result share memory,
    (3) rows of one array share memory.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones(3)
    >>> shared_memory([ones[1:], [ones]], arguments=(np.ones(3),))
    ('aliased-ranks', 'result[0] and result[1][0]')
    """
    # This function does not import numpy: if the student's program has not imported it, the result has no arrays.
    np = sys.modules.get("numpy")
    if np is None:
        return None
    arrays, given = list(_arrays(result, "result")), [array for _, array in _arrays(arguments, "given")]
    if any(np.shares_memory(array, argument) for _, array in arrays for argument in given):
        return "aliased", "the result and the arguments"
    for name, array in arrays:
        if array.ndim == 2 and len(array) > 1 and np.shares_memory(array[0], array[1]):
            return "one-row", name
    # Comparing all pairs of arrays would take long, so the arrays are sorted by their first address. An array can share memory only with
    # earlier arrays that end after this address.
    bounds = sorted((*np.lib.array_utils.byte_bounds(array), place) for place, (_, array) in enumerate(arrays))
    reaching: list[tuple[int, int]] = []  # the earlier arrays that can overlap the next one: (end of the memory, index in `arrays`)
    pairs: list[list[int]] = []
    for low, high, place in bounds:
        reaching = [(end, other) for end, other in reaching if end > low]
        # the memory ranges of two arrays can overlap without a shared element: for example, those of a[::2] and a[1::2]
        pairs += [sorted((place, other)) for _, other in reaching if np.shares_memory(arrays[place][1], arrays[other][1])]
        reaching.append((high, place))
    return ("aliased-ranks", " and ".join(arrays[place][0] for place in min(pairs))) if pairs else None


def _arrays(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the arrays in a value and in its lists, tuples and dicts. With each comes its Python expression: ``"result[1][0]"``."""
    if isinstance(value, sys.modules["numpy"].ndarray):
        yield name, value
    elif isinstance(value, (list, tuple, dict)):
        for place, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _arrays(each, f"{name}[{repr(place)[:40]}]")  # a key can be long


def _empty() -> None: ...


def _described() -> None:
    """Do nothing."""


_STUBS = frozenset((_empty.__code__.co_code, _described.__code__.co_code))
