"""A sweep's table as lines to draw: which rows make a line, what it is called, and what is left to choose."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hybridlab.checks import known_name, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.palette import MOST_LINES
from hybridlab.sweep.columns import LIST, cell, checked_labels, line_name, ordered, several
from hybridlab.sweep.table import RESULTS, Sweep

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Lines:
    """The lines of a table: ``at[choice, line, x]`` is the row of a point, by the places of its values in the other fields.

    ``choices`` are the columns that neither ``x`` nor the lines fix, with their values: a picture shows one value of each at a
    time, and ``choice`` is a tuple with the place of each. ``unit`` is that of the table's times.
    """

    x: str
    quantities: tuple[str, ...]
    labels: Mapping[str, str]
    places: tuple[float, ...]
    names: tuple[str, ...]
    choices: Mapping[str, tuple[Any, ...]]
    at: Mapping[tuple[tuple[int, ...], int, int], Row]
    unit: str | None


def lines_of(sweep: Any, x: Any, y: Any, lines: Any = None, labels: Any = None, keep: Any = ()) -> Lines:
    """Return the lines of the quantities ``y`` against the column ``x``, one for each combination of the columns ``lines``.

    ``lines`` None means schedule and chunks, less ``x``. Choices are the columns that ``keep`` names, and those that vary and that
    nothing else fixes: not a forward time that follows from the number of devices, and no column of lists. ``labels`` are words for
    columns. Raises :class:`HybridLabError` for columns that cannot be drawn, for more lines than can be told apart, and for rows
    that nothing tells apart.

    >>> times = [("gpipe", 1, devices, 8 / devices, p2p, 9 + p2p) for devices in (4, 2) for p2p in (0, 1)]
    >>> table = Sweep(("schedule", "chunks", "devices", "forward", "p2p", "makespan"), tuple(times))
    >>> found = lines_of(table, "devices", "makespan")
    >>> found.places, found.names, found.choices
    ((2, 4), ('GPipe',), {'p2p': (0, 1)})
    """
    given = sweep.rows if isinstance(sweep, Sweep) else []
    if not given:
        raise HybridLabError(f"sweep is the table of a sweep, with at least one row, not {short_repr(sweep)}")
    words, quantities = checked_labels(labels, sweep.columns), several(y, "y", sweep.columns)
    if not quantities:
        raise HybridLabError("y names no column: give one to draw, such as 'bubble_ratio'")
    wanted = (known_name(x, sweep.columns, "column"), *quantities)
    rows = [{name: cell(row.get(name), name) for name in sweep.columns} for row in given]
    _refuse_undrawable(rows, wanted)
    apart = _columns_apart(sweep, wanted, lines)
    lists = {name for name in sweep.columns if any(row[name] is LIST for row in rows)}
    if lists & set(apart):
        raise HybridLabError(f"lines cannot be told apart by {min(lists & set(apart))!r}, which holds one value a device")
    offered = [name for name in sweep.columns if name not in {*wanted, *apart, *RESULTS, *lists}]
    kept = several(keep, "panels", offered)
    free = [*kept, *_free(rows, (x, *apart, *kept), [name for name in offered if name not in kept])]
    values = {name: ordered(row[name] for row in rows) for name in (x, *apart, *free)}
    place = {name: {value: place for place, value in enumerate(values[name])} for name in values}
    keys = sorted({tuple(place[name][row[name]] for name in apart) for row in rows})
    if len(keys) > MOST_LINES:
        raise HybridLabError(f"{len(keys)} lines are more than the {MOST_LINES} that can be told apart: draw fewer, with sweep.where()")
    at: dict[tuple[tuple[int, ...], int, int], Row] = {}
    for row in rows:
        choice = tuple(place[name][row[name]] for name in free)
        point = choice, keys.index(tuple(place[name][row[name]] for name in apart)), place[x][row[x]]
        if point in at:
            same = ", ".join(f"{name} {short_repr(row[name])}" for name in (x, *apart, *free))
            raise HybridLabError(f"two rows have the same {same}: name what tells them apart in lines, or draw fewer with sweep.where()")
        at[point] = row
    names = tuple(line_name({name: values[name][each] for name, each in zip(apart, key, strict=True)}, words) for key in keys)
    return Lines(x, quantities, words, values[x], names, {name: values[name] for name in free}, at, sweep.unit)


def logarithmic_axes(given: Any, positive: Mapping[str, bool]) -> list[str]:
    """Return which axes are to be logarithmic, or refuse one without ``positive`` values.

    >>> logarithmic_axes("devices", {"devices": True, "p2p": False})
    ['devices']
    """
    asked = several(given, "logarithmic", positive, "axis")
    for name in asked:
        if not positive[name]:
            raise HybridLabError(f"{name!r} has no value above 0, so it cannot stand on a logarithmic axis")
    return [name for name in positive if name in asked]


def _columns_apart(sweep: Sweep, wanted: tuple[str, ...], lines: Any) -> tuple[str, ...]:
    if lines is None:
        return tuple(name for name in ("schedule", "chunks") if name in sweep.columns and name not in wanted)
    return several(lines, "lines", [name for name in sweep.columns if name not in (*wanted, *RESULTS)])


def _refuse_undrawable(rows: list[dict[str, Any]], wanted: tuple[str, ...]) -> None:
    """Refuse axes that are no numbers; a quantity has none where a row was refused."""
    for name in wanted:
        found = {row[name] for row in rows} - ({None} if name != wanted[0] else set())
        if not found:
            raise HybridLabError(f"the column {name!r} has no value to draw: every row was refused")
        for value in found:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                message = "one value a device" if value is LIST else short_repr(value)
                raise HybridLabError(f"the column {name!r} is no axis: it holds {message}, and an axis needs numbers")


def _free(rows: list[dict[str, Any]], fixed: tuple[str, ...], offered: list[str]) -> list[str]:
    """Return the columns that vary and that the others do not fix; of two that fix each other the one of fewer values, or the first."""

    def kinds(names: Iterable[str]) -> int:
        return len({tuple(row[name] for name in names) for row in rows})

    kept = [name for name in offered if kinds([name]) > 1]
    for name in sorted(kept, key=lambda name: (-kinds([name]), -offered.index(name))):
        others = [*fixed, *(each for each in kept if each != name)]
        if kinds(others) == kinds([*others, name]):
            kept.remove(name)
    return kept
