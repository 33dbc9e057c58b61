"""The grid of a sweep: axes (columns with several values), and columns that a function computes from other columns."""

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
OF_ONE_MODEL = ("forward", "backward", "weight_share")  # lists of values for two of these columns can mean pairs or all combinations
MOST_ROWS = 10**6  # a row takes about 1 kB of memory

Row = dict[str, Any]


def column_names(key: Any) -> tuple[str, ...]:
    """Return the names of columns in a key of a grid. A tuple names several columns whose values belong together.

    >>> column_names("p2p"), column_names(("forward", "backward"))
    (('p2p',), ('forward', 'backward'))
    """
    names = key if isinstance(key, tuple) else (key,)
    if not names or not all(isinstance(name, str) for name in names):
        wanted = "a grid is a dict from names of columns to their values, such as {'devices': [2, 4]}"
        pairs = "or from several names such as ('forward', 'backward') to [(1, 2), (2, 4)]"
        raise HybridLabError(f"{wanted}, {pairs}, not from {short_repr(key)}", "wrong-type")
    return names


def settings(schedules: Sequence[Row], grid: Mapping[Any, Any]) -> list[Row]:
    """Return a row for each schedule and each point of a grid.

    Parameters
    ----------
    schedules : sequence of dict
        The columns that each schedule fixes.
    grid : mapping
        A key is the name of a column, or a tuple of names. For one name, the grid gives one value, several values, or a function of other
        columns. The parameters of the function are the names of these columns. A parameter with a default value is not a column and keeps
        its default. For a tuple of names, the grid gives a list of points, and each point has one value for each name.

    Returns
    -------
    list of dict
        The rows are sorted by schedule, in the given order. Within a schedule, the last axis of the grid changes fastest.

    Raises
    ------
    HybridLabError
        A size is not a whole number, an axis is empty, two axes may be pairs or combinations, a function reads an unknown column, functions
        need each other's results in a circle, or there are too many rows.

    Examples
    --------
    >>> settings([{"schedule": "gpipe"}], {"devices": [2, 4], "microbatches": lambda devices: 2 * devices})
    [{'schedule': 'gpipe', 'devices': 2, 'microbatches': 4}, {'schedule': 'gpipe', 'devices': 4, 'microbatches': 8}]
    """
    axes = {column_names(key): _axis_points(key, value) for key, value in grid.items() if isinstance(key, tuple) or not callable(value)}
    of_schedules = (name for row in schedules for name in row)
    columns = list(dict.fromkeys([*of_schedules, *(name for key in grid for name in column_names(key))]))
    _refuse_possible_pairs([key for key, points in axes.items() if len(points) > 1])
    reads = {name: _columns_read(name, value, columns) for name, value in grid.items() if name not in axes and callable(value)}
    try:
        # a function comes after the functions whose columns it reads
        order = [name for name in TopologicalSorter(reads).static_order() if name in reads]
    except CycleError as why:
        circle = " -> ".join(map(str, why.args[1]))
        message = f"the grid's functions wait for each other in a circle: {circle}; give one of them values"
        raise HybridLabError(message, "circular-functions") from None
    count = len(schedules) * prod(map(len, axes.values()))  # checked before building the rows, because too many rows would fill the memory
    if count > MOST_ROWS:
        raise HybridLabError(f"a sweep has at most {MOST_ROWS:,} rows, not {count:,}: take fewer values", "too-large")
    rows = []
    for schedule in schedules:
        for point in product(*axes.values()):
            row = dict(schedule)
            for names, values in zip(axes, point, strict=True):
                row.update(zip(names, values, strict=True))
            for name in order:
                row[name] = _checked_value(name, grid[name](**{column: row[column] for column in reads[name]}))
            rows.append(row)
    return rows


def plain_value(value: Any) -> Any:
    """Return a value without numpy types. A list or an array becomes a tuple.

    >>> plain_value(np.array([1, 2])), plain_value([np.float64(0.5)])
    ((1, 2), (0.5,))
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(each.item() if isinstance(each, np.generic) else each for each in value)
    return value


def _refuse_possible_pairs(axes: Iterable[tuple[str, ...]]) -> None:
    """Raise an error if two of forward, backward and weight_share are axes: the values can mean pairs or all combinations."""
    lists = [name for names in axes if len(names) == 1 for name in names if name in OF_ONE_MODEL]
    if len(lists) > 1:
        one, other = lists[:2]
        message = f"the grid gives several values of {one} and several values of {other}, which can mean pairs or all combinations"
        pairs = f"{(one, other)}: [(1, 0.5), (2, 0.4)] for pairs, {(one, other)}: itertools.product(...) for all combinations"
        raise HybridLabError(f"{message}: give {pairs}, or a function, such as '{other}': lambda {one}: {one} / 2", "ambiguous")


def _axis_points(key: Any, value: Any) -> tuple[tuple[Any, ...], ...]:
    """Return the points of an axis, each with one value for every name of its key."""
    if not isinstance(key, tuple):
        return tuple((each,) for each in _axis_values(key, value))
    wanted = f"{key!r} takes a list with {len(key)} values at each point, such as {[tuple(range(1, 1 + len(key)))]}"
    if callable(value) or not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping, Set)):
        raise HybridLabError(f"{wanted}, not {short_repr(value)}", "not-a-list")
    points = tuple(plain_value(point) for point in islice(value, MOST_ROWS + 1))  # islice, because an iterator can be endless
    for point in points:
        if not isinstance(point, tuple) or len(point) != len(key):
            raise HybridLabError(f"{wanted}, not {short_repr(point)}", "wrong-length")
    if not points:
        raise HybridLabError(f"{key!r} is empty: give it a list with {len(key)} values at each point", "empty")
    return tuple(tuple(_checked_value(name, each) for name, each in zip(key, point, strict=True)) for point in points)


def _axis_values(name: str, value: Any) -> tuple[Any, ...]:
    """Return the values of a column as a tuple. A single value becomes a tuple of one value."""
    if isinstance(value, np.ndarray):
        refuse_masked(value, name)
        value = value.tolist()
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping, Set))  # a set has no order
    values = tuple(_checked_value(name, each) for each in islice(value, MOST_ROWS + 1)) if several else (_checked_value(name, value),)
    if not values:
        raise HybridLabError(f"{name} is empty: give one value, several, or a function of other columns", "empty")
    return values


def _checked_value(name: str, value: Any) -> Any:
    """Return a value of a column without numpy types. Raise an error for a size that is not a whole number."""
    if name in SIZES:
        return whole_number(value, name)
    refuse_masked(value, name)
    return plain_value(value)


def _columns_read(name: str, function: Callable[..., Any], columns: Iterable[str]) -> list[str]:
    """Return the columns that a function of the grid reads: its parameters without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        message = f"the parameters of {name}, {short_repr(function)}, cannot be read: wrap it in a lambda"
        raise HybridLabError(message, "unreadable-parameters") from None
    for parameter in parameters:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD and parameter.kind is not parameter.KEYWORD_ONLY:
            message = f"the parameters of {name} must be names of columns, not {parameter}: wrap it in a lambda"
            raise HybridLabError(message, "unreadable-parameters")
    read = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    return [known_name(column, columns, f"column in the function of {name}:") for column in read]
