"""A grid of settings: axes, and columns that are functions of other columns."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from graphlib import CycleError, TopologicalSorter
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from hybridlab.checks import known_name, refuse_masked, short_repr, whole_number
from hybridlab.errors import HybridLabError

SIZES = ("devices", "microbatches", "chunks")
TOGETHER = ("forward", "backward", "weight_share")  # are those of one model: several values of two of them may belong in pairs
MOST_ROWS = 10**6  # at about 1 kB each

Row = dict[str, Any]


def names_of(key: Any) -> tuple[str, ...]:
    """Return the columns that a key of a grid names: one, or several that have their values together.

    >>> names_of("p2p"), names_of(("forward", "backward"))
    (('p2p',), ('forward', 'backward'))
    """
    names = key if isinstance(key, tuple) else (key,)
    if not names or not all(isinstance(name, str) for name in names):
        wanted = "a grid is a dict from names of columns to their values, such as {'devices': [2, 4]}"
        raise HybridLabError(
            f"{wanted}, or from several names such as ('forward', 'backward') to [(1, 2), (2, 4)], not from {short_repr(key)}"
        )
    return names


def settings(lines: Sequence[Row], grid: Mapping[Any, Any]) -> list[Row]:
    """Return a row for each of ``lines`` and each point of ``grid``: lines outermost, the grid's last axis innermost.

    ``grid`` gives for the name of a column one value, several values, or a function of other columns, named by its
    parameters (those with a default value keep it); for several names it gives a list with a value for each of them. Raises
    :class:`HybridLabError` for sizes that are no whole numbers, axes without values, two axes that may belong together, and
    functions of columns that are not there or that wait for each other.

    >>> settings([{"schedule": "gpipe"}], {"devices": [2, 4], "microbatches": lambda devices: 2 * devices})
    [{'schedule': 'gpipe', 'devices': 2, 'microbatches': 4}, {'schedule': 'gpipe', 'devices': 4, 'microbatches': 8}]
    """
    axes = {names_of(key): _axis(key, value) for key, value in grid.items() if isinstance(key, tuple) or not callable(value)}
    columns = list(dict.fromkeys([*(name for line in lines for name in line), *(name for key in grid for name in names_of(key))]))
    _refuse_two_readings([key for key, points in axes.items() if len(points) > 1])
    needs = {name: _needs(name, value, columns) for name, value in grid.items() if name not in axes and callable(value)}
    try:
        order = [name for name in TopologicalSorter(needs).static_order() if name in needs]
    except CycleError as why:
        message = " -> ".join(map(str, why.args[1]))
        raise HybridLabError(f"the grid's functions wait for each other in a circle: {message}; give one of them values") from None
    count = len(lines) * prod(map(len, axes.values()))
    if count > MOST_ROWS:
        raise HybridLabError(f"a sweep has at most {MOST_ROWS:,} rows, not {count:,}: take fewer values")
    rows = []
    for line in lines:
        for point in product(*axes.values()):
            row = dict(line)
            for names, cells in zip(axes, point, strict=True):
                row.update(zip(names, cells, strict=True))
            for name in order:
                row[name] = _cell(name, grid[name](**{need: row[need] for need in needs[name]}))
            rows.append(row)
    return rows


def _refuse_two_readings(axes: Iterable[tuple[str, ...]]) -> None:
    """Raise where two axes could be one: values that belong together, or every combination of them."""
    lists = [name for names in axes if len(names) == 1 for name in names if name in TOGETHER]
    if len(lists) > 1:
        one, other = lists[:2]
        message = f"the grid gives several values of {one} and several of {other}, which may belong together or not"
        pairs = f"{(one, other)}: [(1, 0.5), (2, 0.4)] where they do, with itertools.product(...) for every combination"
        raise HybridLabError(f"{message}: give {pairs}, or a function, such as '{other}': lambda {one}: {one} / 2")


def _axis(key: Any, value: Any) -> tuple[tuple[Any, ...], ...]:
    """Return the points of an axis, each with one value for every name of its key."""
    if not isinstance(key, tuple):
        return tuple((cell,) for cell in _values(key, value))
    wanted = f"{key!r} takes a list with {len(key)} values at each point, such as {[tuple(range(1, 1 + len(key)))]}"
    if callable(value) or not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping, Set)):
        raise HybridLabError(f"{wanted}, not {short_repr(value)}")
    points = tuple(plain(point) for point in islice(value, MOST_ROWS + 1))
    for point in points:
        if not isinstance(point, tuple) or len(point) != len(key):
            raise HybridLabError(f"{wanted}, not {short_repr(point)}")
    if not points:
        raise HybridLabError(f"{key!r} is empty: give it a list with {len(key)} values at each point")
    return tuple(tuple(_cell(name, cell) for name, cell in zip(key, point, strict=True)) for point in points)


def _values(name: str, value: Any) -> tuple[Any, ...]:
    """Return the values of an axis: several, or the one that was given."""
    if isinstance(value, np.ndarray):
        refuse_masked(value, name)
        value = value.tolist()
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping, Set))
    values = tuple(_cell(name, each) for each in islice(value, MOST_ROWS + 1)) if several else (_cell(name, value),)
    if not values:
        raise HybridLabError(f"{name} is empty: give one value, several, or a function of other columns")
    return values


def _cell(name: str, value: Any) -> Any:
    """Return a value of a column as plain data; sizes are whole numbers."""
    if name in SIZES:
        return whole_number(value, name)
    refuse_masked(value, name)
    return plain(value)


def plain(value: Any) -> Any:
    """Return a value without numpy, a list as a tuple.

    >>> plain(np.array([1, 2])), plain([np.float64(0.5)])
    ((1, 2), (0.5,))
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(each.item() if isinstance(each, np.generic) else each for each in value)
    return value


def _needs(name: str, function: Callable[..., Any], columns: Iterable[str]) -> list[str]:
    """Return the columns that a function of the grid reads: its parameters without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise HybridLabError(f"the parameters of {name}, {short_repr(function)}, cannot be read: wrap it in a lambda") from None
    for parameter in parameters:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD and parameter.kind is not parameter.KEYWORD_ONLY:
            raise HybridLabError(f"the parameters of {name} must be names of columns, not {parameter}: wrap it in a lambda")
    needs = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    return [known_name(need, columns, f"column in the function of {name}:") for need in needs]
