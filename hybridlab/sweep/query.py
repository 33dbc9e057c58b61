"""The values that a query of a table, :meth:`Sweep.where`, accepts in a column."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from numbers import Number
from typing import Any

from hybridlab.checks import known_name, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY
from hybridlab.sweep.grid import MOST_ROWS, plain_value

NUMBER, TEXT = "a number", "a text"
Kind = str | type


def accepted_values(name: str, wanted: Any) -> tuple[Any, ...]:
    """Return the values that a row may have in column ``name``: the wanted value, or each value of a list and the list itself.

    >>> accepted_values("schedule", "GPIPE"), accepted_values("p2p", [0, 1])
    (('gpipe',), (0, 1, (0, 1)))
    """
    value = plain_value(wanted)
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)):
        return (_as_in_rows(name, value),)
    several = tuple(_as_in_rows(name, plain_value(each)) for each in islice(value, MOST_ROWS))  # islice, because it can be endless
    of_one_row = several and all(isinstance(each, Number) for each in several)  # the row has one time per device
    return (*several, several) if of_one_row else several


def refuse_impossible(name: str, accepted: Sequence[Any], column: Sequence[Any]) -> None:
    """Raise an error if a query asks a column for a value that no row can have.

    Parameters
    ----------
    name : str
        The name of the column.
    accepted : sequence
        The result of :func:`accepted_values`.
    column : sequence
        The values of the column, row by row.

    Raises
    ------
    HybridLabError
        ``empty`` for an empty list, ``unknown-name`` for a text that is no schedule, ``wrong-type`` for any other value.

    Examples
    --------
    >>> refuse_impossible("devices", ("four",), [2, 4])
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: no row has 'four' in the column devices: give a number, or a list of such values
    """
    if not accepted:
        raise HybridLabError(f"the list of values for the column {name} is empty: give at least one value", "empty")
    kinds = {_kind(value) for value in column if value is not None} or {NUMBER, TEXT}
    for value in accepted:
        kind = _kind(value)
        if name == "schedule" and kind == TEXT and value not in column:
            known_name(value, REGISTRY, "schedule")
        # a number that differs from itself is nan, which equals no number
        if value is not None and (kind not in kinds or value != value):
            there = " or ".join(sorted(each for each in kinds if isinstance(each, str))) or "a value of the column"
            message = f"no row has {short_repr(value)} in the column {name}: give {there}, or a list of such values"
            raise HybridLabError(message, "wrong-type")


def _kind(value: Any) -> Kind:
    """Return whether a value is a number or a text. A list of times is as good as a number. Any other value has its own type."""
    if isinstance(value, (Number, tuple)):
        return NUMBER
    return TEXT if isinstance(value, str) else type(value)


def _as_in_rows(name: str, value: Any) -> Any:
    """Return a value in the form of the rows of column ``name``. The name of a schedule gets the spelling of the registry."""
    known = {each.lower(): each for each in REGISTRY} if name == "schedule" and isinstance(value, str) else {}
    return known.get(value.lower(), value) if known else value
