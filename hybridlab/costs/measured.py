"""Measured times in a CSV file with one column for each device, stage or microbatch. An error names the line and the column."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import IN_A_SECOND, LONGEST, counted, known_name, short_repr
from hybridlab.costs.checking import SHARES
from hybridlab.errors import HybridLabError
from hybridlab.sheets import SheetCell, SheetRow, name_of, numbers_in, table_of, text_of, without_empty_end

COMPUTED = ("forward", "backward", "input_gradient", "weight_gradient")  # times of work; a latency can be much shorter than these
KINDS_OF_TIME = (*COMPUTED, "weight_share", "p2p", "p2p_between", "overlap")
LETTERS = {"f": "forward", "b": "backward", "i": "input_gradient", "w": "weight_gradient"}
PLURALS = {"device": "devices", "stage": "stages", "microbatch": "microbatches"}  # values of per
PLACES = {"rank": "device", "gpu": "device"} | {name: name for name in PLURALS}  # word -> value of per
SHORT_PLACES = {"d": "device", "s": "stage", "mb": "microbatch"}  # with a number, such as s0; the letters of the book
SUMMARIES = ("sum", "total", "mean", "average", "avg", "median", "min", "max", "std")  # spreadsheets add such columns and lines
WORDS_OF_UNITS = {
    "s": ("s", "sec", "second", "seconds"),
    "ms": ("ms", "msec", "millisecond", "milliseconds"),
    "us": ("us", "usec", "microsecond", "microseconds"),
    "slots": ("slot", "slots"),  # times without a length
}
UNITS = {word: unit for unit, words in WORDS_OF_UNITS.items() for word in words}
APART = 100  # times of work that differ by such a factor are asked about, because one of them may be in another unit

_WORDS_OF_PLACES = "|".join([*PLACES, r"micro[\s_-]batch"])
_WHOLE_PLACE = re.compile(rf"(?<![^\W_])({_WORDS_OF_PLACES})(?:s|es)?(?:[\s_:#-]*([0-9]{{1,9}}))?(?![^\W_])", re.IGNORECASE)
_SHORT_PLACE = re.compile(rf"({'|'.join(SHORT_PLACES)})[\s_:#-]*([0-9]{{1,9}})(?![^\W_])", re.IGNORECASE)
_DIGITS = re.compile("[0-9]{1,9}")
_OPERATION = re.compile(r"\(?[0-9]+[FBIW][0-9]+")  # or an overlapped pair
_FROM = re.compile(rf"p2p from (?:{'|'.join(PLACES)}) ([0-9]{{1,9}})")


class LineOfTimes(NamedTuple):
    """A line of a table: its first cell, what it has, the unit that it names (or ""), and its other cells without empty ones at the end.

    ``kind`` is a kind of time. For a line of a matrix of latencies it is "p2p from N". ``for_all`` says that one value holds for all.
    """

    first: SheetCell
    kind: str
    unit: str
    for_all: bool
    cells: list[SheetCell]


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
    _check_table(table)
    heading, *rows = _turned(table) if _lines_are_places(table) else table
    if not heading[1:] or _kind_of(heading[0].text):
        message = f"line {table[0][0].line} names no devices and no stages"
        raise HybridLabError(f"{message}: write it like time in ms{separator}device 0{separator}device 1", "empty")
    lines = [_line(row) for row in rows]
    _check_kinds(lines)
    unit, per = _unit_of(heading, lines, unit), _per_of(heading, per)
    cells = {line.kind: _filled_cells(line, heading, per) for line in lines}
    numbers = iter(numbers_in([cell for row in cells.values() for cell in row], separator))
    given = {line.kind: np.array([next(numbers) for _ in cells[line.kind]]) for line in lines}
    for line in lines:
        _check_range(line.kind, cells[line.kind], given[line.kind])
        if line.unit and line.unit != unit:
            given[line.kind] = given[line.kind] * (IN_A_SECOND[unit] / IN_A_SECOND[line.unit])
    _ask_about_units({line.kind: line for line in lines}, cells, given, unit)
    return _arguments(given, cells) | {"per": per, "unit": None if unit == "slots" else unit}


def _check_table(table: Sequence[SheetRow]) -> None:
    heading = table[0]
    line = heading[0].line
    if _OPERATION.match(heading[0].text):
        raise HybridLabError(f"line {line} has the order of a device, so this is a schedule: Schedule.from_csv reads it", "not-a-time")
    for row in table:
        if len(row) > len(heading):
            message = f"line {row[0].line} has {len(row)} cells, but line {line} has {len(heading)}"
            raise HybridLabError(f"{message}: give one time for each column", "ragged")


def _lines_are_places(table: Sequence[SheetRow]) -> bool:
    """Return whether each line is a device, stage or microbatch: more names of columns than of lines are kinds of time."""

    def share(names: Sequence[SheetCell]) -> float:
        return sum(bool(_kind_of(cell.text)) for cell in names) / max(len(names), 1)

    return share(table[0][1:]) > share([row[0] for row in table[1:]])  # a device can have the name b, which is also a kind of time


def _turned(table: Sequence[SheetRow]) -> list[SheetRow]:
    """Return the table with its columns as lines. Each cell keeps its place in the file."""
    whole = [[*row, *(SheetCell(row[0].line, head.column, "") for head in table[0][len(row) :])] for row in table]
    return [without_empty_end(list(column)) for column in zip(*whole, strict=True)]


def _check_kinds(lines: Sequence[LineOfTimes]) -> None:
    for place, line in enumerate(lines):
        if line.kind in {each.kind for each in lines[:place]}:
            raise HybridLabError(f"{line.first.where}: {line.kind} is given already: give each kind of time once", "duplicate-name")


# ---- the words of a file ----


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower().replace("\u00b5", "u").replace("\u03bc", "u"))  # a micro sign, and the Greek letter


def _line(row: SheetRow) -> LineOfTimes:
    """Return a line with its kind of time. Its first cell can have a letter (F, B, I, W), a unit, and "for all"."""
    name, units, for_all = _parts(row[0].text)
    try:
        kind = _kind_of(row[0].text) or known_name(name, KINDS_OF_TIME, "kind of time")
    except HybridLabError as why:
        raise HybridLabError(f"{row[0].where}: {why}", why.code) from None
    return LineOfTimes(row[0], kind, _one_unit(row[0], units), for_all, row[1:])


def _kind_of(text: str) -> str:
    """Return the kind of time that a cell names, or "".

    >>> _kind_of("F (ms)"), _kind_of("p2p from rank 1"), _kind_of("stage 0")
    ('forward', 'p2p from 1', '')
    """
    name, _, _ = _parts(text)
    found = _FROM.fullmatch(name)
    return f"p2p from {int(found.group(1))}" if found else name if name in KINDS_OF_TIME else ""


def _parts(text: str) -> tuple[str, list[str], bool]:
    """Return what the first cell of a line has: the name of a kind of time, the words for units, and whether it ends with "for all"."""
    words = _words(text)
    units = [word for word in words if word in UNITS]
    plain = [word for word in words if word not in UNITS and not (units and word == "in")]
    for_all = plain[-2:] == ["for", "all"]
    plain = plain[:-2] if for_all else plain
    if _FROM.fullmatch(" ".join(plain)):
        return " ".join(plain), units, for_all
    name = "_".join(words if units and "_".join(plain) in SHARES else plain)  # a share has no unit
    return LETTERS.get(name, name), units, for_all


def _one_unit(cell: SheetCell, words: Sequence[str]) -> str:
    """Return the unit that the first cell of a line names, or ""."""
    units = list(dict.fromkeys(UNITS[word] for word in words))
    if len(units) > 1:
        raise HybridLabError(f"{cell.where}: {short_repr(cell.text)} names {len(units)} units: name one", "ambiguous")
    return units[0] if units else ""


def _per_of(heading: SheetRow, given: str | None) -> str:
    """Return what has the times: a device, a stage or a microbatch. The names of the columns say it, or the first cell, or ``given``."""
    first, names = heading[0].text, [cell.text for cell in heading[1:]]
    if given is not None:
        known_name(given, tuple(PLURALS), "value of per")
    _check_numbers(heading)
    of_columns = [set(_places_in(name)) for name in names]
    of_first = {_place(found) for found in _WHOLE_PLACE.finditer(first)}
    stated = set.union(*of_columns)
    if len(stated) == 1 and all(of_columns):  # beside them, the first cell can say that a time is the time of one microbatch
        stated |= of_first - {"microbatch"}
    else:
        stated |= of_first
    if given is not None and stated and given not in stated:
        message = f"per={given!r} contradicts the file, whose first line is {short_repr(', '.join([first, *names]))}"
        raise HybridLabError(f"{message}: leave per out, or correct the line", "conflicting-arguments")
    if given is None and len(stated) != 1 and len(names) > 1:
        message = f"the file does not say whether {short_repr(', '.join(names))} are devices, stages or microbatches"
        how = "write 'time in ms per stage' into its first cell, or give per='device', 'stage' or 'microbatch'"
        raise HybridLabError(f"{message}: {how}", "no-per")
    return given or (next(iter(stated)) if len(stated) == 1 else "device")


def _places_in(name: str) -> dict[str, int | None]:
    """Return what has the times of a column by its name: value of per -> its number, or None.

    >>> _places_in("GPU 0: embedding"), _places_in("s1"), _places_in("Head stage"), _places_in("Head")
    ({'device': 0}, {'stage': 1}, {'stage': None}, {})
    """
    short = _SHORT_PLACE.match(name)
    found = [short] if short else list(_WHOLE_PLACE.finditer(name))
    return {_place(each): int(each.group(2)) if each.group(2) else None for each in found}


def _place(found: re.Match[str]) -> str:
    word = found.group(1).lower()
    return (PLACES | SHORT_PLACES).get(word, "microbatch")  # micro batch, in two words


def _check_numbers(heading: SheetRow) -> None:
    """Raise an error if the columns have numbers that are not 0, 1, 2, ... or 1, 2, 3, ..., or if a column is the sum of others."""
    names = [cell.text for cell in heading[1:]]
    if found := next((cell for cell in heading[1:] if len(names) > 1 and cell.text.lower() in SUMMARIES), None):
        message = f"{found.where}: {found.text!r} is no device, no stage and no microbatch"
        raise HybridLabError(f"{message}: leave it out, or give it another name", "not-a-place")
    numbers = [int(name) if _DIGITS.fullmatch(name) else next(iter(_places_in(name).values()), None) for name in names]
    known = [number for number in numbers if number is not None]
    if len(known) == len(numbers) > 0 and (known != list(range(known[0], known[0] + len(known))) or known[0] > 1):
        message = f"{heading[1].where}: the names are {short_repr(', '.join(names))}"
        raise HybridLabError(f"{message}: sort them, so that their numbers are 0, 1, 2, ... without a gap", "wrong-order")


def _unit_of(heading: SheetRow, lines: Sequence[LineOfTimes], given: str | None) -> str:
    """Return the unit of the times: as the first cell says, or as ``given``, or the unit that every line of times names."""
    if given is not None and given not in WORDS_OF_UNITS:
        units = ", ".join(map(repr, IN_A_SECOND))
        message = f"unit is the unit of time: {units}, or 'slots' for times without a length, not {short_repr(given)}"
        raise HybridLabError(message, "unknown-name")
    first = heading[0].text
    stated = _one_unit(heading[0], [word for word in _words(first) if word in UNITS])
    if given and stated and given != stated:
        message = f"unit={given!r} contradicts the file, whose first cell is {short_repr(first)}"
        raise HybridLabError(f"{message}: leave unit out, or correct the cell", "conflicting-arguments")
    named = {line.unit for line in lines if line.kind not in SHARES}
    unit = stated or given or (next(iter(named)) if len(named) == 1 else "")
    if not unit:
        message = f"the file does not say the unit of its times: its first cell is {short_repr(first)}"
        how = "write the unit there, or give unit='s', 'ms', 'us' or 'slots'"
        raise HybridLabError(f"{message}, not 'time in ms'; {how}", "no-unit")
    for line in lines:
        if line.unit not in ("", unit) and "slots" in (line.unit, unit):
            message = f"{line.first.where}: {line.kind} is in {line.unit}, but the other times are in {unit}"
            raise HybridLabError(f"{message}: use one unit", "different-units")
    return unit


# ---- the cells of a line ----


def _filled_cells(line: LineOfTimes, heading: SheetRow, per: str) -> list[SheetCell]:
    """Return the cells of a line that must have a number. Raise an error for cells that are empty, and for cells too many."""
    count = len(heading) - 1
    wanted = _wanted(line, count, per)
    # an empty cell at the end is where its line and its column cross, also in a table that was turned
    rest = [SheetCell(max(line.first.line, head.line), max(line.first.column, head.column), "") for head in heading[1 + len(line.cells) :]]
    found = [*line.cells, *rest]
    if line.kind.startswith("p2p from"):  # the latency from a device to itself is 0, and its cell may be empty
        own = int(line.kind.split()[-1])
        found = [cell._replace(text=cell.text or "0") if place == own else cell for place, cell in enumerate(found)]
    if further := next((cell for cell in found[wanted:] if cell.text), None):
        links = f"{counted(count, per)} {'has' if count == 1 else 'have'} {counted(wanted, 'link')}: leave the last cell empty"
        one = f"{line.kind} has one value for all: leave the other cells empty"
        raise HybridLabError(
            f"{further.where}: {links if line.kind in ('p2p', 'p2p_between') and not line.for_all else one}", "wrong-length"
        )
    for place, (cell, head) in enumerate(zip(found[:wanted], heading[1:], strict=False)):
        if not cell.text:
            name = f"{per} {head.text or place}" if _DIGITS.fullmatch(head.text or "0") else head.text
            raise HybridLabError(f"{cell.where}: there is no time of {line.kind} for {name}: give one for each {per}", "missing-time")
    return found[:wanted]


def _wanted(line: LineOfTimes, count: int, per: str) -> int:
    """Return how many numbers a line must have, if there are ``count`` columns."""
    given = len(line.cells)
    if line.for_all or line.kind == "overlap" or (line.kind == "p2p" and given <= 1):
        return 1
    if line.kind in ("p2p", "p2p_between"):  # the last device has no next one, so its column has no link
        return count - 1 if per == "device" or given >= count else given
    # With times per stage there can be fewer devices than columns, but a latency is for a pair of devices.
    if per != "device" and line.kind.startswith("p2p from"):
        return min(count, max(given, 1 + int(line.kind.split()[-1])))
    return count


def _check_range(kind: str, cells: Sequence[SheetCell], numbers: Floats) -> None:
    for cell, number in zip(cells, numbers.tolist(), strict=True):
        if not 0 <= number <= LONGEST:
            code = "too-large" if number > 0 and np.isfinite(number) else "negative" if np.isfinite(number) else "not-finite"
            raise HybridLabError(f"{cell.where}: {kind} is a finite number of zero or more, not {cell.text}", code)
        if kind in SHARES and number > 1:
            raise HybridLabError(f"{cell.where}: {kind} is a part of {SHARES[kind]}, from 0 to 1, not {cell.text}", "out-of-range")


# ---- numbers in another unit ----


def _ask_about_units(
    of: Mapping[str, LineOfTimes], cells: Mapping[str, Sequence[SheetCell]], given: Mapping[str, Floats], unit: str
) -> None:
    """Raise an error for times that look as if they were in another unit. A line that names its own unit is not asked about."""
    found = _far_apart(given, {kind for kind, line in of.items() if line.unit})
    if found is None:
        return
    (kind, place), (other_kind, other_place) = found
    number, other = given[kind][place], given[other_kind][other_place]
    where, others = cells[kind][place].where, cells[other_kind][other_place].where
    name = kind.replace("p2p from", "p2p from device")
    message = f"{where}: {name} is {number:g}, but {other_kind} is {other:g} in {others}. If it is right, write '{name} in {unit}'"
    another = "; if it is in another unit, write this unit there" if kind != other_kind else "; if not, correct it"
    raise HybridLabError(f"{message} into {of[kind].first.where}{another}", "ambiguous")


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


def _arguments(found: dict[str, Floats], cells: Mapping[str, Sequence[SheetCell]]) -> dict[str, Any]:
    """Return the arguments of :class:`Costs` from the lines of a file. ``cells`` has the cells of each kind, for an error.

    The file has ``backward``, or ``input_gradient`` and ``weight_gradient``, or ``backward`` and ``weight_gradient``.
    """
    given = set(found)
    if "forward" not in given:
        raise HybridLabError("there are no times of forward: give a line such as forward,10,12, or a column", "missing-time")
    if not given & {"backward", "input_gradient"}:
        message = "there are no times of backward"
        raise HybridLabError(f"{message}: give backward, or both input_gradient and weight_gradient", "missing-time")
    if "input_gradient" in given and "weight_gradient" not in given:
        raise HybridLabError("input_gradient is given without weight_gradient: give both", "missing-time")
    if {"backward", "input_gradient"} <= given or {"weight_gradient", "weight_share"} <= given:
        message = "two kinds of time say the same: give one of these: backward; backward and weight_gradient; backward and weight_share"
        raise HybridLabError(f"{message}; input_gradient and weight_gradient", "conflicting-arguments")
    weight = found.get("weight_gradient")
    backward = found["backward"] if weight is None or "backward" in given else found["input_gradient"] + weight
    arguments: dict[str, Any] = {"forward": found["forward"], "backward": backward}
    if weight is not None:  # Costs takes the share of the weight gradient, so compute the share from both times
        whole, part = np.broadcast_arrays(backward, weight)
        if (part > whole).any():
            place = int((part > whole).argmax())
            where = cells["weight_gradient"][min(place, weight.size - 1)].where
            message = f"{where}: weight_gradient cannot exceed backward, but it takes {part[place]:g} of {whole[place]:g}"
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
