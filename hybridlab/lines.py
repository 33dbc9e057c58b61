"""A sweep's table as lines to draw: which rows make a line, what it is called, and what is left to choose."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.errors import HybridLabError
from hybridlab.inputs import checked_text, counted, each_of, known_name, shown, unit_of_time
from hybridlab.palette import MOST_LINES
from hybridlab.schedules import REGISTRY
from hybridlab.sweep import Sweep

Row = Mapping[str, Any]

RESULTS = ("makespan", "device_span", "bubble_ratio", "peak_activations", "refused")
TIMES = ("makespan", "device_span", "p2p", "forward", "backward")
COUNTED = MappingProxyType({"devices": "device", "microbatches": "microbatch", "chunks": "chunk", "replicas": "replica"})
LABELS: Mapping[str, str] = MappingProxyType(
    {
        "devices": "Devices K",
        "microbatches": "Microbatches M",
        "chunks": "Chunks v",
        "replicas": "Replicas D",
        "p2p": "Latency",
        "forward": "Forward time",
        "backward": "Backward time",
        "recompute": "Recompute ratio",
    }
)
LARGEST_VALUE = 1e100  # of what is drawn: far beyond any time, and its squares are finite
LIST = ("a list",)  # stands for a cell that holds one value a device


@dataclass(frozen=True)
class Lines:
    """The lines of a table: ``at[choice, line, x]`` is the row of a point, by the places of its values in the other fields.

    ``choices`` are the columns that neither ``x`` nor the lines fix, with their values: a picture shows one value of each at a
    time, and ``choice`` is a tuple with the place of each.
    """

    x: str
    places: tuple[float, ...]
    names: tuple[str, ...]
    choices: Mapping[str, tuple[Any, ...]]
    at: Mapping[tuple[tuple[int, ...], int, int], Row]


def lines_of(sweep: Any, x: Any, quantities: Any, lines: Any = None) -> Lines:
    """Return the lines of ``quantities`` against the column ``x``, one for each combination of the columns ``lines``.

    ``lines`` None means schedule and chunks, less ``x``. Columns that the others fix (a forward time that follows from the number
    of devices) and columns of lists are no choices. Raises :class:`HybridLabError` for columns that cannot be drawn, for more
    lines than can be told apart, and for rows that nothing tells apart.

    >>> made = [{"schedule": "gpipe", "chunks": 1, "devices": k, "forward": 8 / k, "p2p": t, "makespan": 9} for k in (4, 2) for t in (0, 1)]
    >>> found = lines_of(Sweep(tuple(made)), "devices", ["makespan"])
    >>> found.places, found.names, found.choices
    ((2, 4), ('GPipe',), {'p2p': (0, 1)})
    """
    if not isinstance(sweep, Sweep) or not sweep.rows:
        raise HybridLabError(f"sweep is the table of a sweep, with at least one row, not {shown(sweep)}")
    wanted = tuple(known_name(name, sweep.columns, "column") for name in (x, *quantities))
    rows = [{name: plain(row.get(name), name) for name in sweep.columns} for row in sweep.rows]
    _refuse_undrawable(rows, wanted)
    apart = _columns_apart(sweep, wanted, lines)
    lists = {name for name in sweep.columns if any(row[name] is LIST for row in rows)}
    if lists & set(apart):
        raise HybridLabError(f"lines cannot be told apart by {min(lists & set(apart))!r}, which holds one value a device")
    free = _free(rows, (x, *apart), [name for name in sweep.columns if name not in {*wanted, *apart, *RESULTS, *lists}])
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
            same = ", ".join(f"{name} {shown(row[name])}" for name in (x, *apart, *free))
            raise HybridLabError(f"two rows have the same {same}: name what tells them apart in lines, or draw fewer with sweep.where()")
        at[point] = row
    names = tuple(_name({name: values[name][each] for name, each in zip(apart, key, strict=True)}) for key in keys)
    return Lines(x, values[x], names, {name: values[name] for name in free}, at)


def plain(value: Any, name: str) -> Any:
    """Return the cell of a column as JSON has it, numbers to nine digits; or refuse it.

    >>> plain(np.float64(0.1 + 0.2), "p2p"), plain(3.0, "p2p"), plain([1, 2], "forward") is LIST
    (0.3, 3, True)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return LIST
    if value is None or isinstance(value, (str, bool)):
        return value
    if not isinstance(value, (int, float)) or not isfinite(value) or abs(value) > LARGEST_VALUE:
        raise HybridLabError(f"a cell of {name!r} is {shown(value)}: what is drawn are finite numbers and texts")
    short = float(f"{value:.9g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def ordered(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return each value once: numbers from the least up, texts as they come.

    >>> ordered([8, 2, 8]), ordered(["zb-h1", "1f1b"])
    ((2, 8), ('zb-h1', '1f1b'))
    """
    once = list(dict.fromkeys(values))
    return tuple(once if any(isinstance(value, str) for value in once) else sorted(once, key=lambda value: (value is None, value or 0)))


def label_of(name: str, labels: Mapping[str, str], unit: str = "") -> str:
    """Return a column's words: those of ``labels``, or of this library with the unit of a time.

    >>> label_of("p2p", {}, "ms"), label_of("bubble_ratio", {}), label_of("p2p", {"p2p": "T_C"}, "ms")
    ('Latency, ms', 'Bubble ratio', 'T_C')
    """
    words = LABELS.get(name, name.replace("_", " ").capitalize())
    return labels.get(name) or (f"{words}, {unit}" if unit and name in TIMES else words)


def title_of(name: str, value: Any) -> str:
    """Return the words for one value of a column.

    >>> title_of("schedule", "1f1b"), title_of("p2p", 0.5), title_of("overlap", True)
    ('1F1B', '0.5', 'yes')
    """
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, str):
        return REGISTRY[value].title if name == "schedule" and value in REGISTRY else value
    return f"{value:.6g}"


def checked_words(labels: Any, unit: Any, sweep: Any) -> tuple[dict[str, str], str]:
    """Return ``labels`` and ``unit`` if they name columns of the sweep and a unit of time, or refuse them."""
    if not isinstance(labels, Mapping | None) or not isinstance(sweep, Sweep):
        raise HybridLabError(f'labels are words by column, such as {{"p2p": "Latency"}}, not {shown(labels)}')
    given = {known_name(name, sweep.columns, "column"): checked_text(text, f"the label of {name}") for name, text in (labels or {}).items()}
    return given, unit_of_time(unit)


def several(given: Any, name: str, known: Iterable[str], what: str = "column") -> tuple[str, ...]:
    """Return one name or several, each once, or refuse what is none of ``known``.

    >>> several("makespan", "y", ["makespan", "refused"])
    ('makespan',)
    """
    names = list(known)
    named = [given] if isinstance(given, str) else each_of(given, f"{name} is a {what} or several")
    return tuple(dict.fromkeys(known_name(each, names, what) for each in named))


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
                told = "one value a device" if value is LIST else shown(value)
                raise HybridLabError(f"the column {name!r} is no axis: it holds {told}, and an axis needs numbers")


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


def _name(key: Mapping[str, Any]) -> str:
    """Return what a line is called: "Hanayo, 4 chunks"; chunks are left out where a schedule has but one number of them."""
    family = REGISTRY.get(str(key.get("schedule")))
    if family and family.chunk_step == 0 and key.get("chunks") in (None, family.fewest_chunks):
        key = {name: value for name, value in key.items() if name != "chunks"}
    parts = []
    for name, value in key.items():
        if name in COUNTED and isinstance(value, int):
            parts.append(counted(value, COUNTED[name]))
        else:
            parts.append(title_of(name, value) if isinstance(value, str) else f"{label_of(name, {}).lower()} {title_of(name, value)}")
    return ", ".join(parts) or "all rows"
