"""Arrays in the result of a student's function that share memory with its arguments, or with each other."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError


def _arrays(value: Any, name: str) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield the arrays in a value and in its lists, tuples and dicts, each after the expression that leads to it: ``"result[1][0]"``."""
    if isinstance(value, np.ndarray):
        yield name, value
    elif isinstance(value, (list, tuple, dict)):
        for place, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _arrays(each, f"{name}[{short_repr(place)}]")


def refuse_shared_memory(returned: Any, arguments: Any) -> None:
    """Raise an error if arrays in a result share memory with the arguments or with each other."""
    result, given = list(_arrays(returned, "result")), [array for _, array in _arrays(arguments, "given")]
    reaching: list[tuple[int, int]] = []  # arrays that may reach into the next one: the end of the memory, and the position in the result
    pairs: list[list[int]] = []
    bounds = sorted((*byte_bounds(array), place) for place, (_, array) in enumerate(result))
    for low, high, place in bounds:
        array = result[place][1]
        if any(np.shares_memory(array, argument) for argument in given):
            raise HybridLabError(
                "the result shares memory with the arguments: a later change to one would change the other; copy", "aliased"
            )
        reaching = [(end, other) for end, other in reaching if end > low]
        pairs += [sorted((place, other)) for _, other in reaching if np.shares_memory(array, result[other][1])]
        reaching.append((high, place))
    if pairs:
        first, second = (result[place][0] for place in min(pairs))
        sharing = f"{first} and {second} share memory, where result is what the function returns"
        raise HybridLabError(f"{sharing}: a later change to one would change the other; copy", "aliased-ranks")
