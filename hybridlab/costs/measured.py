"""Measured times in a CSV file with one column for each device or stage. An error names the line and the column."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import IN_A_SECOND, LONGEST, counted, known_name, short_repr
from hybridlab.costs.checking import SHARES
from hybridlab.errors import HybridLabError
from hybridlab.sheets import SheetCell, SheetRow, name_of, numbers_in, table_of, text_of

COMPUTED = ("forward", "backward", "input_gradient", "weight_gradient")  # times of work; a latency can be much shorter than these
KINDS_OF_TIME = (*COMPUTED, "weight_share", "p2p", "p2p_between", "overlap")
LETTERS = {"f": "forward", "b": "backward", "i": "input_gradient", "w": "weight_gradient"}
PLURALS = {"device": "devices", "stage": "stages", "microbatch": "microbatches"}  # values of per
PLACES = {"rank": "device", "gpu": "device"} | {name: name for name in PLURALS}  # first word of a column -> value of per
WORDS_OF_UNITS = {
    "s": ("s", "sec", "second", "seconds"),
    "ms": ("ms", "msec", "millisecond", "milliseconds"),
    "us": ("us", "usec", "microsecond", "microseconds"),
    "slots": ("slot", "slots"),  # times without a length
}
UNITS = {word: unit for unit, words in WORDS_OF_UNITS.items() for word in words}
APART = 100  # times of work that differ by such a factor are asked about, because one of them may be in another unit

_PLACE = re.compile(rf"({'|'.join(PLACES)})s?[\s_:#-]*([0-9]{{1,9}})(?![0-9])", re.IGNORECASE)
_OPERATION = re.compile(r"\(?[0-9]+[FBIW][0-9]+")  # or an overlapped pair
_FROM = re.compile(rf"p2p from (?:{'|'.join(PLACES)}) ([0-9]{{1,9}})")


class LineOfTimes(NamedTuple):
    """A line of a file: its number, what it has, the unit that it names (or ""), and its cells without empty ones at the end.

    ``kind`` is a kind of time. For a line of a matrix of latencies it is "p2p from N". ``for_all`` says that one value holds for all.
    """

    number: int
    kind: str
    unit: str
    for_all: bool
    cells: list[str]


def times_in_file(source: Any, per: str | None, unit: str | None) -> dict[str, Any]:
    """Return the arguments of :class:`Costs` from a file of measured times. See :meth:`Costs.from_csv`.

    Raises
    ------
    HybridLabError
        As :meth:`Costs.from_csv`.
    """
    name = name_of(source)
    table, separator = table_of(text_of(source), name)
    if not table:
        raise HybridLabError(f"{name} is empty: write a line of names, then lines such as forward,10,12", "empty")
    heading, names = table[0], table[0].cells[1:]
    _check_heading(heading, separator)
    lines = [_line(row) for row in table[1:]]
    per, unit = _per_of(heading, per), _unit_of(heading, lines, unit)
    _check_lines(heading, lines)
    cells = {line.kind: _filled_cells(line, names, per) for line in lines}
    numbers = iter(numbers_in([cell for row in cells.values() for cell in row], separator))
    given = {line.kind: np.array([next(numbers) for _ in cells[line.kind]]) for line in lines}
    for line in lines:
        _check_range(line.kind, cells[line.kind], given[line.kind])
        if line.unit and line.unit != unit:
            given[line.kind] = given[line.kind] * (IN_A_SECOND[unit] / IN_A_SECOND[line.unit])
    _ask_about_units(lines, given, unit)
    return _arguments(given) | {"per": per, "unit": None if unit == "slots" else unit}


def _check_heading(heading: SheetRow, separator: str) -> None:
    names = heading.cells[1:]
    if _OPERATION.match(heading.cells[0]):
        raise HybridLabError(
            f"line {heading.number} has the order of a device, so this is a schedule: Schedule.from_csv reads it", "not-a-time"
        )
    if not names:
        message = f"line {heading.number} names no devices and no stages"
        raise HybridLabError(f"{message}: write it like time in ms{separator}device 0{separator}device 1", "empty")
    if len(names) > 1 and all(LETTERS.get(name.lower(), name.lower()) in KINDS_OF_TIME for name in names):
        message = f"line {heading.number} names kinds of time ({', '.join(names)}), so each line is a device or a stage"
        raise HybridLabError(f"{message}: turn the table, so that each kind of time has a line and each device a column", "wrong-shape")


def _check_lines(heading: SheetRow, lines: Sequence[LineOfTimes]) -> None:
    for place, line in enumerate(lines):
        if line.kind in {each.kind for each in lines[:place]}:
            message = f"line {line.number}, column 1: there is a line {line.kind} already"
            raise HybridLabError(f"{message}: give each kind of time once", "duplicate-name")
        if len(line.cells) >= len(heading.cells):
            message = f"line {line.number} has {len(line.cells) + 1} cells, but line {heading.number} has {len(heading.cells)}"
            raise HybridLabError(f"{message}: give one time for each column", "ragged")


# ---- the words of a file ----


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower().replace("\u00b5", "u").replace("\u03bc", "u"))  # a micro sign, and the Greek letter


def _line(row: SheetRow) -> LineOfTimes:
    """Return a line with its kind of time. Its first cell can have a letter (F, B, I, W), a unit, and "for all"."""
    words = _words(row.cells[0])
    units = [word for word in words if word in UNITS]
    plain = [word for word in words if word not in UNITS and not (units and word == "in")]
    for_all = plain[-2:] == ["for", "all"]
    plain = plain[:-2] if for_all else plain
    if found := _FROM.fullmatch(" ".join(plain)):
        kind = f"p2p from {int(found.group(1))}"
    else:
        name = "_".join(words if units and "_".join(plain) in SHARES else plain)  # a share has no unit
        try:
            kind = known_name(LETTERS.get(name, name), KINDS_OF_TIME, "kind of time")
        except HybridLabError as why:
            raise HybridLabError(f"line {row.number}, column 1: {why}", why.code) from None
    return LineOfTimes(row.number, kind, _one_unit(row, units), for_all, row.cells[1:])


def _one_unit(row: SheetRow, words: Sequence[str]) -> str:
    """Return the unit that the first cell of a line names, or ""."""
    units = list(dict.fromkeys(UNITS[word] for word in words))
    if len(units) > 1:
        raise HybridLabError(f"line {row.number}, column 1: {short_repr(row.cells[0])} names {len(units)} units: name one", "ambiguous")
    return units[0] if units else ""


def _per_of(heading: SheetRow, given: str | None) -> str:
    """Return whether the columns are for devices or for stages: as their names say, or else as ``given``, or else for devices."""
    names = heading.cells[1:]
    if given is not None:
        known_name(given, ("device", "stage", "microbatch"), "value of per")
    found = [_PLACE.match(name) for name in names]
    stated = {PLACES[each.group(1).lower()] for each in found if each}
    if one := next((place for place, plural in PLURALS.items() if names == [f"all {plural}"]), None):
        stated = {one}
    elif len(stated) == 1 and all(found):
        places = [int(each.group(2)) for each in found if each]
        if places != list(range(places[0], places[0] + len(places))) or places[0] > 1:
            message = f"line {heading.number}: the columns are {short_repr(', '.join(names))}"
            raise HybridLabError(f"{message}: sort them, so that their numbers are 0, 1, 2, ... without a gap", "wrong-order")
    elif len(stated) > 1 or not all(found):
        stated = set()
    if given is not None and stated and given not in stated:
        message = f"per={given!r} contradicts the file, whose columns are {short_repr(', '.join(names))}"
        raise HybridLabError(f"{message}: leave per out, or rename the columns", "conflicting-arguments")
    return given or next(iter(stated), "device")


def _unit_of(heading: SheetRow, lines: Sequence[LineOfTimes], given: str | None) -> str:
    """Return the unit of the times: as the first cell says, or as ``given``, or the unit that every line of times names."""
    if given is not None and given not in WORDS_OF_UNITS:
        units = ", ".join(map(repr, IN_A_SECOND))
        message = f"unit is the unit of time: {units}, or 'slots' for times without a length, not {short_repr(given)}"
        raise HybridLabError(message, "unknown-name")
    first = heading.cells[0]
    stated = _one_unit(heading, [word for word in _words(first) if word in UNITS])
    if given and stated and given != stated:
        message = f"unit={given!r} contradicts the file, whose first cell is {short_repr(first)}"
        raise HybridLabError(f"{message}: leave unit out, or correct the cell", "conflicting-arguments")
    named = {line.unit for line in lines if line.kind not in SHARES}
    unit = stated or given or (next(iter(named)) if len(named) == 1 else "")
    if not unit:
        message = f"the file does not say the unit of its times: its first cell is {short_repr(first)}"
        raise HybridLabError(f"{message}, not 'time in ms'; write the unit there, or give unit='s', 'ms', 'us' or 'slots'", "no-unit")
    for line in lines:
        if line.unit not in ("", unit) and "slots" in (line.unit, unit):
            raise HybridLabError(
                f"line {line.number} is in {line.unit}, but the other times are in {unit}: use one unit", "different-units"
            )
    return unit


# ---- the cells of a line ----


def _filled_cells(line: LineOfTimes, names: Sequence[str], per: str) -> list[SheetCell]:
    """Return the cells of a line that must have a number. Raise an error for cells that are empty, and for cells too many."""
    wanted = _wanted(line, names, per)
    # The latency from a device to itself is 0, and its cell may be empty.
    own = int(line.kind.split()[-1]) if line.kind.startswith("p2p from") else None
    cells = [*line.cells, *[""] * (wanted - len(line.cells))]
    found = [SheetCell(line.number, place + 2, "0" if place == own and not text else text) for place, text in enumerate(cells)]
    if further := next((cell for cell in found[wanted:] if cell.text), None):
        links = f"{counted(len(names), per)} {'has' if len(names) == 1 else 'have'} {counted(wanted, 'link')}: leave the last cell empty"
        one = f"{line.kind} has one value for all: leave the other cells empty"
        raise HybridLabError(
            f"{further.where}: {links if line.kind in ('p2p', 'p2p_between') and not line.for_all else one}", "wrong-length"
        )
    for cell in found[:wanted]:
        if not cell.text:
            place = names[cell.column - 2] or f"{per} {cell.column - 2}"
            message = f"{cell.where}: there is no time of {line.kind} for {place}"
            raise HybridLabError(f"{message}: give one for each {per}", "missing-time")
    return found[:wanted]


def _wanted(line: LineOfTimes, names: Sequence[str], per: str) -> int:
    """Return how many numbers a line must have."""
    given = len(line.cells)
    if line.for_all or line.kind == "overlap" or (line.kind == "p2p" and given <= 1):
        return 1
    if line.kind in ("p2p", "p2p_between"):  # the last device has no next one, so its column has no link
        return len(names) - 1 if per == "device" or given >= len(names) else given
    # With times per stage there can be fewer devices than columns, but a latency is for a pair of devices.
    if per != "device" and line.kind.startswith("p2p from"):
        return min(len(names), max(given, 1 + int(line.kind.split()[-1])))
    return len(names)


def _check_range(kind: str, cells: Sequence[SheetCell], numbers: Floats) -> None:
    for cell, number in zip(cells, numbers.tolist(), strict=True):
        if not 0 <= number <= LONGEST:
            code = "too-large" if number > 0 and np.isfinite(number) else "negative" if np.isfinite(number) else "not-finite"
            raise HybridLabError(f"{cell.where}: {kind} is a finite number of zero or more, not {cell.text}", code)
        if kind in SHARES and number > 1:
            raise HybridLabError(f"{cell.where}: {kind} is a part of {SHARES[kind]}, from 0 to 1, not {cell.text}", "out-of-range")


# ---- numbers in another unit ----


def _ask_about_units(lines: Sequence[LineOfTimes], given: Mapping[str, Floats], unit: str) -> None:
    """Raise an error for times that look as if they were in another unit. A line that names its own unit is not asked about."""
    of = {line.kind: line for line in lines}
    found = _far_apart(given, {line.kind for line in lines if line.unit})
    if found is None:
        return
    (kind, place), (other_kind, other_place) = found
    number, other = given[kind][place], given[other_kind][other_place]
    where, others = (f"line {of[each].number}, column {column + 2}" for each, column in found)
    name = kind.replace("p2p from", "p2p from device")
    message = f"{where}: {name} is {number:g}, but {other_kind} is {other:g} in {others}. If it is right, write '{name} in {unit}'"
    another = "; if it is in another unit, write this unit there" if kind != other_kind else "; if not, correct it"
    raise HybridLabError(f"{message} into the first cell of line {of[kind].number}{another}", "ambiguous")


def _far_apart(given: Mapping[str, Floats], sure: set[str]) -> tuple[tuple[str, int], tuple[str, int]] | None:
    """Return the place of a time that looks as if it were in another unit, and the place of the nearest other time; None if there is none.

    If the times of work are sorted and one of them is 100 times as long as the one before it, the smaller part of them is doubtful, or the
    shorter times if both parts are equally many. A latency is doubtful if it is 100 times as long as every work.
    """
    work = sorted((number, kind, place) for kind in COMPUTED for place, number in enumerate(given.get(kind, [])) if number > 0)
    for count, (short, long) in enumerate(pairwise(work), start=1):
        if long[0] >= APART * short[0]:
            few, near = (work[:count], long) if 2 * count <= len(work) else (work[count:][::-1], short)
            doubtful = [each for each in reversed(few) if each[1] not in sure]
            if doubtful:
                return doubtful[0][1:], near[1:]
    for kind, numbers in given.items():
        if work and kind.startswith("p2p") and kind not in sure and numbers.max(initial=0.0) >= APART * work[-1][0]:
            return (kind, int(numbers.argmax())), work[-1][1:]
    return None


# ---- the arguments of Costs ----


def _arguments(found: dict[str, Floats]) -> dict[str, Any]:
    """Return the arguments of :class:`Costs` from the lines of a file.

    The file has ``backward``, or ``input_gradient`` and ``weight_gradient``, or ``backward`` and ``weight_gradient``.
    """
    given = set(found)
    if "forward" not in given:
        raise HybridLabError("there is no line forward: give a time for each column, as in forward,10,12", "missing-time")
    if not given & {"backward", "input_gradient"}:
        message = "there is no line backward"
        raise HybridLabError(f"{message}: give a line backward, or the two lines input_gradient and weight_gradient", "missing-time")
    if "input_gradient" in given and "weight_gradient" not in given:
        raise HybridLabError("there is a line input_gradient without a line weight_gradient: give both", "missing-time")
    if {"backward", "input_gradient"} <= given or {"weight_gradient", "weight_share"} <= given:
        message = "two lines say the same: give one of these: backward; backward and weight_gradient; backward and weight_share"
        raise HybridLabError(f"{message}; input_gradient and weight_gradient", "conflicting-arguments")
    weight = found.get("weight_gradient")
    backward = found["backward"] if weight is None or "backward" in given else found["input_gradient"] + weight
    arguments: dict[str, Any] = {"forward": found["forward"], "backward": backward}
    if weight is not None:  # Costs takes the share of the weight gradient, so compute the share from both times
        whole, part = np.broadcast_arrays(backward, weight)
        if (part > whole).any():
            place = int((part > whole).argmax())
            message = f"weight_gradient cannot exceed backward, but in column {place + 2} it takes {part[place]:g} of {whole[place]:g}"
            raise HybridLabError(message, "out-of-range")
        # for a backward that takes no time, the share does not matter
        arguments["weight_share"] = np.divide(part, whole, out=np.zeros(whole.shape), where=whole > 0)
    elif "weight_share" in given:
        arguments["weight_share"] = found["weight_share"]
    if "overlap" in given:
        arguments["overlap"] = found["overlap"][0]
    return arguments | _latencies(found)


def _latencies(found: dict[str, Floats]) -> dict[str, Any]:
    """Return ``p2p`` or ``p2p_between`` from a line p2p, a line p2p_between or the lines of a matrix."""
    matrix = {int(kind.split()[-1]): row for kind, row in found.items() if kind.startswith("p2p from")}
    if ("p2p" in found) + ("p2p_between" in found) + bool(matrix) > 1:
        message = "several lines say the latency of messages: give p2p, or p2p_between, or a line p2p from device N for each device"
        raise HybridLabError(message, "conflicting-arguments")
    if not matrix:
        links = found.get("p2p_between", found.get("p2p"))
        return {} if links is None else {"p2p_between": links} if "p2p_between" in found or links.size > 1 else {"p2p": links[0]}
    size = len(next(iter(matrix.values())))
    if sorted(matrix) != list(range(size)) or len({row.size for row in matrix.values()}) > 1:
        message = f"the latencies p2p from device {', '.join(map(str, matrix))} are no matrix of {size} devices"
        raise HybridLabError(f"{message}: give a line for each device, with a time to each device", "missing-time")
    return {"p2p_between": np.array([matrix[place] for place in range(size)])}


# ---- writing ----


def times_as_csv(times: Any) -> str:
    """Return :class:`Costs` as a CSV text with one column for each device or stage, with its unit. See :meth:`Costs.to_csv`.

    Raises
    ------
    HybridLabError
        The costs have several settings.
    """
    if times.batch:
        raise HybridLabError(f"to_csv() writes one setting, but these costs hold {times.batch}", "several-settings")
    between, unit = times.p2p_between, times.unit or "slots"
    lines: dict[str, Floats] = {name: getattr(times, name) for name in ("forward", "backward", "weight_share")}
    width = max(column.size for column in lines.values())
    if between is None:
        lines["p2p"] = times.p2p
    else:
        if times.per == "microbatch":
            message = "a file of times per microbatch has no columns for links between devices: give one p2p, not p2p_between"
            raise HybridLabError(message, "does-not-fit")
        lines |= {"p2p_between": between} if between.ndim == 1 else {f"p2p from {place}": row for place, row in enumerate(between)}
        width = max(width, between.shape[0] + (between.ndim == 1))
    if times.overlap.any():
        lines["overlap"] = times.overlap
    # A reader would ask about times that differ much, so their lines name the unit.
    own_unit = f" in {unit}" if _far_apart(lines, set()) else ""
    heading = [
        f"time in {unit}",
        *([f"{times.per} {place}" for place in range(width)] if width > 1 else [f"all {PLURALS[times.per]}"]),
    ]
    rows = [heading]
    for name, numbers in lines.items():
        label = name.replace("p2p from", "p2p from device") + (own_unit if name not in SHARES else "")
        if numbers.size < width and name in ("forward", "backward", "weight_share"):
            label += " for all"
        # repr writes enough digits that from_csv reads the same number
        rows.append([label, *map(repr, numbers.tolist()), *[""] * (width - numbers.size)])
    return "".join(",".join(row) + "\n" for row in rows)
