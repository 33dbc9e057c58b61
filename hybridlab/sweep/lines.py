"""A sweep as the lines of a chart: the points and the name of each line, and the columns for which the reader chooses a value."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.checks import checked_text, counted, each_of, known_name, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.palette import MOST_LINES
from hybridlab.schedules import REGISTRY
from hybridlab.sweep.table import RESULTS, Sweep

TIMES = ("makespan", "device_span", "p2p", "forward", "backward")  # columns that have a unit
NOUNS = MappingProxyType({"devices": "device", "microbatches": "microbatch", "chunks": "chunk", "replicas": "replica"})
LABELS: Mapping[str, str] = MappingProxyType(
    {
        "devices": "Devices K",
        "microbatches": "Microbatches M",
        "chunks": "Chunks v",
        "replicas": "Replicas D",
        "p2p": "Latency",
        "forward": "Forward time",
        "backward": "Backward time",
        "microbatches_per_device": "Microbatches a device",
        "recompute": "Recompute ratio",
        "input_share": "Input gradient's share of the backward",
        "weight_share": "Weight gradient's share of the backward",
    }
)
LARGEST_VALUE = 1e100  # largest value in a figure; its square is still finite
LIST = ("a list",)  # stands for a cell with one value for each device, which a figure cannot show

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Lines:
    """The rows of a sweep as the points of the lines in a chart.

    Parameters
    ----------
    x : str
        The column on the horizontal axis.
    quantities : tuple of str
        The columns that are drawn against ``x``, on the vertical axis.
    labels : mapping of str to str
        The caller's words for columns.
    places : tuple of float
        The values of ``x``, in increasing order.
    names : tuple of str
        The name of each line.
    choices : mapping of str to tuple
        The other columns that vary, each with its values: ``x`` and the lines do not determine them. A figure shows the points for one
        value of each of these columns at a time.
    at : mapping of (choice, line, place) to row
        The row of each point. ``choice`` is a tuple with one index for each column of ``choices``. ``line`` is an index into ``names``, and
        ``place`` is an index into ``places``.
    unit : str or None
        The unit of the times.
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
    """Return the lines of the quantities ``y`` against the column ``x``.

    Parameters
    ----------
    sweep : Sweep
        A table with at least one row.
    x : str
        A column of numbers.
    y : str or sequence of str
        Columns of numbers.
    lines : str or sequence of str, optional
        The columns that distinguish lines: one line for each combination of their values. None means the columns schedule and chunks,
        except a column that is an axis.
    labels : mapping of str to str, optional
        Words for columns.
    keep : str or sequence of str
        Columns that are always choices. Another column is a choice if its values vary and the other columns do not determine them. For
        example, a forward time that is a function of the number of devices is not a choice. A column of lists is never a choice.

    Raises
    ------
    HybridLabError
        A column is unknown or has no numbers, a reader cannot distinguish so many lines, or two rows give the same point.

    Examples
    --------
    >>> times = [("gpipe", 1, devices, 8 / devices, p2p, 9 + p2p) for devices in (4, 2) for p2p in (0, 1)]
    >>> table = Sweep(("schedule", "chunks", "devices", "forward", "p2p", "makespan"), tuple(times))
    >>> found = lines_of(table, "devices", "makespan")
    >>> found.places, found.names, found.choices
    ((2, 4), ('GPipe',), {'p2p': (0, 1)})
    """
    given = sweep.to_rows() if isinstance(sweep, Sweep) else []
    if not given:
        code = "empty" if isinstance(sweep, Sweep) else "wrong-type"
        raise HybridLabError(f"sweep is the table of a sweep, with at least one row, not {short_repr(sweep)}", code)
    words, quantities = checked_labels(labels, sweep.columns), known_names(y, "y", sweep.columns)
    if not quantities:
        raise HybridLabError("y names no column: give one to draw, such as 'bubble_ratio'", "empty")
    drawn = (known_name(x, sweep.columns, "column"), *quantities)
    rows = [{name: drawable(row.get(name), name) for name in sweep.columns} for row in given]
    _refuse_undrawable(rows, drawn)
    of_lines = _line_columns(sweep, drawn, lines)
    lists = {name for name in sweep.columns if any(row[name] is LIST for row in rows)}
    if lists & set(of_lines):
        message = f"{min(lists & set(of_lines))!r} cannot distinguish lines, because it holds one value a device"
        raise HybridLabError(message, "not-a-number")
    offered = [name for name in sweep.columns if name not in {*drawn, *of_lines, *RESULTS, *lists}]
    panels = known_names(keep, "panels", offered)
    choices = [*panels, *_independent(rows, (x, *of_lines, *panels), [name for name in offered if name not in panels])]
    values = {name: unique_values(row[name] for row in rows) for name in (x, *of_lines, *choices)}
    index = {name: {value: place for place, value in enumerate(values[name])} for name in values}
    # sorted by indices, because texts, numbers and None in one column cannot be compared
    keys = sorted({tuple(index[name][row[name]] for name in of_lines) for row in rows})
    if len(keys) > MOST_LINES:
        message = f"{len(keys)} lines are more than the {MOST_LINES} that a reader can distinguish: select fewer rows with sweep.where()"
        raise HybridLabError(message, "too-large")
    at: dict[tuple[tuple[int, ...], int, int], Row] = {}
    for row in rows:
        choice = tuple(index[name][row[name]] for name in choices)
        point = choice, keys.index(tuple(index[name][row[name]] for name in of_lines)), index[x][row[x]]
        if point in at:
            same = ", ".join(f"{name} {short_repr(row[name])}" for name in (x, *of_lines, *choices))
            message = f"two rows have the same {same}: add a column that distinguishes them to lines, or select rows with sweep.where()"
            raise HybridLabError(message, "ambiguous")
        at[point] = row
    names = tuple(line_name({name: values[name][each] for name, each in zip(of_lines, key, strict=True)}, words) for key in keys)
    return Lines(x, quantities, words, values[x], names, {name: values[name] for name in choices}, at, sweep.unit)


def logarithmic_axes(given: Any, positive: Mapping[str, bool]) -> list[str]:
    """Return the names of the logarithmic axes. Raise an error for an axis that cannot be logarithmic.

    Parameters
    ----------
    given : str or sequence of str
        Names of axes.
    positive : mapping of str to bool
        For each axis, whether it has a value above 0.

    Raises
    ------
    HybridLabError
        An axis is unknown or has no value above 0.

    Examples
    --------
    >>> logarithmic_axes("devices", {"devices": True, "p2p": False})
    ['devices']
    """
    asked = known_names(given, "logarithmic", positive, "axis")
    for name in asked:
        if not positive[name]:
            raise HybridLabError(f"{name!r} has no value above 0, so it cannot be drawn on a logarithmic axis", "not-positive")
    return [name for name in positive if name in asked]


def drawable(value: Any, name: str) -> Any:
    """Return a value of column ``name`` for a figure: numbers are rounded to nine digits. Raise an error if a figure cannot show it.

    >>> drawable(np.float64(0.1 + 0.2), "p2p"), drawable(3.0, "p2p"), drawable([1, 2], "forward") is LIST
    (0.3, 3, True)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return LIST
    if value is None or isinstance(value, (str, bool)):
        return value
    number = isinstance(value, (int, float))
    if not number or not abs(value) <= LARGEST_VALUE:  # "not <=" instead of ">", because comparisons with NaN are false
        code = "not-a-number" if not number else "too-large" if abs(value) < math.inf else "not-finite"
        raise HybridLabError(f"a cell of {name!r} is {short_repr(value)}: a figure shows only finite numbers and texts", code)
    short = float(f"{value:.9g}")  # values that differ only by rounding errors become one point on the axis
    return int(short) if short.is_integer() and abs(short) < 1e15 else short  # JavaScript has exact whole numbers up to 9e15


def unique_values(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return each value once: numbers in increasing order, texts in the order of their first appearance.

    >>> unique_values([8, 2, 8]), unique_values(["zb-h1", "1f1b"])
    ((2, 8), ('zb-h1', '1f1b'))
    """
    once = list(dict.fromkeys(values))
    return tuple(once if any(isinstance(value, str) for value in once) else sorted(once, key=lambda value: (value is None, value or 0)))


def label_of(name: str, labels: Mapping[str, str], unit: str | None = None) -> str:
    """Return the words for a column, from ``labels`` or from this library. For a column of times, add the unit.

    >>> label_of("p2p", {"p2p": "T_C"}, "ms"), label_of("bubble_ratio", {}, "ms"), label_of("T_B_share", {})
    ('T_C, ms', 'Bubble ratio', 'T B share')
    """
    spaced = name.replace("_", " ")
    words = labels.get(name) or LABELS.get(name) or spaced[:1].upper() + spaced[1:]
    return f"{words}, {unit}" if unit and name in TIMES else words


def value_text(name: str, value: Any) -> str:
    """Return the words for one value of a column.

    >>> value_text("schedule", "1f1b"), value_text("p2p", 0.5), value_text("overlap", True)
    ('1F1B', '0.5', 'yes')
    """
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, str):
        return REGISTRY[value].title if name == "schedule" and value in REGISTRY else value
    return f"{value:.6g}"


def line_name(key: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Return the name of the line with these values. The name omits the chunks if the schedule supports only one number of chunks.

    >>> line_name({"schedule": "hanayo", "chunks": 4}, {}), line_name({"schedule": "gpipe", "chunks": 1}, {})
    ('Hanayo, 4 chunks', 'GPipe')
    """
    family = REGISTRY.get(str(key.get("schedule")))
    if family and family.chunk_step == 0 and key.get("chunks") in (None, family.fewest_chunks):
        key = {name: value for name, value in key.items() if name != "chunks"}
    parts = []
    for name, value in key.items():
        if name in NOUNS and isinstance(value, int):
            parts.append(counted(value, NOUNS[name]))
        else:
            parts.append(value_text(name, value) if isinstance(value, str) else f"{label_of(name, labels)} {value_text(name, value)}")
    return ", ".join(parts) or "all rows"


def checked_labels(labels: Any, known: Iterable[str]) -> dict[str, str]:
    """Return ``labels`` if it maps columns to words, and an empty dict for None. Raise an error for anything else.

    >>> checked_labels({"ptp": "Latency"}, ["p2p"])
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: unknown column 'ptp': did you mean 'p2p'? Known: p2p
    """
    if not isinstance(labels, Mapping | None):
        raise HybridLabError(f'labels are words by column, such as {{"p2p": "Latency"}}, not {short_repr(labels)}', "wrong-type")
    names = list(known)
    return {known_name(name, names, "column"): checked_text(text, f"the label of {name}") for name, text in (labels or {}).items()}


def known_names(given: Any, argument: str, known: Iterable[str], what: str = "column") -> tuple[str, ...]:
    """Return each given name once. Raise an error for a name that is not in ``known``. ``given`` is one name or several names.

    >>> known_names("makespan", "y", ["makespan", "refused"])
    ('makespan',)
    """
    names = list(known)
    named = [given] if isinstance(given, str) else each_of(given, f"{argument} is a {what} or several")
    return tuple(dict.fromkeys(known_name(each, names, what) for each in named))


def _line_columns(sweep: Sweep, drawn: tuple[str, ...], lines: Any) -> tuple[str, ...]:
    """Return the columns that distinguish lines. Each combination of their values is one line."""
    if lines is None:
        return tuple(name for name in ("schedule", "chunks") if name in sweep.columns and name not in drawn)
    return known_names(lines, "lines", [name for name in sweep.columns if name not in (*drawn, *RESULTS)])


def _refuse_undrawable(rows: list[dict[str, Any]], drawn: tuple[str, ...]) -> None:
    """Raise an error for an axis without numbers. On the vertical axis None is allowed, because refused rows have no results."""
    for name in drawn:
        found = [value for value in dict.fromkeys(row[name] for row in rows) if value is not None or name == drawn[0]]
        if not found:
            raise HybridLabError(f"the column {name!r} has no value to draw: every row was refused", "empty")
        for value in found:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                content = "one value a device" if value is LIST else short_repr(value)
                message = f"the column {name!r} cannot be an axis: it holds {content}, and an axis needs numbers"
                raise HybridLabError(message, "not-a-number")


def _independent(rows: list[dict[str, Any]], fixed: tuple[str, ...], offered: list[str]) -> list[str]:
    """Return the offered columns with varying values that the other columns do not determine.

    If two columns determine each other, the function returns the column with fewer values, or the first column if both have the same number
    of values.
    """

    def combinations(names: Iterable[str]) -> int:
        return len({tuple(row[name] for name in names) for row in rows})

    varying = [name for name in offered if combinations([name]) > 1]
    for name in sorted(varying, key=lambda name: (-combinations([name]), -offered.index(name))):
        others = [*fixed, *(each for each in varying if each != name)]
        if combinations(others) == combinations([*others, name]):  # the other columns determine this column
            varying.remove(name)
    return varying
