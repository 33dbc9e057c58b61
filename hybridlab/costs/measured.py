"""Measured times in a CSV file with one column for each stage. An error names the line and the column."""

import csv
import math
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from hybridlab.checks import LONGEST, counted, known_name, short_repr
from hybridlab.costs.checking import SHARES
from hybridlab.errors import HybridLabError

KINDS_OF_TIME = ("forward", "backward", "input_gradient", "weight_gradient", "weight_share", "p2p", "overlap")
LARGEST_FILE = 10_000_000  # bytes; a file of times for 100,000 stages is smaller


Line = tuple[int, list[str]]  # the number of the line in the file, and its cells


def times_in_file(path: str | PathLike[str]) -> dict[str, list[float] | float]:
    """Return the arguments of :class:`Costs` from a file of measured times. See :meth:`Costs.from_csv`.

    Raises
    ------
    HybridLabError
        The file cannot be read, a line or a time is missing, or a time is not a number of zero or more.
    """
    heading, *lines = _lines(Path(path))
    names = heading[1][1:]
    if not names:
        raise HybridLabError(f"line {heading[0]} names no stages: write it like time,stage 0,stage 1", "empty")
    found: dict[str, list[float]] = {}
    for number, cells in lines:
        try:
            kind = known_name(cells[0].lower().replace(" ", "_"), KINDS_OF_TIME, "kind of time")
        except HybridLabError as why:
            raise HybridLabError(f"line {number}, column 1: {why}", why.code) from None
        if kind in found:
            raise HybridLabError(f"line {number}, column 1: there is a line {kind} already: give each kind of time once", "duplicate-name")
        if len(cells) > len(names) + 1:
            message = f"line {number} has {len(cells)} cells, but line {heading[0]} has {len(names) + 1}"
            raise HybridLabError(f"{message}: give one time for each stage", "ragged")
        found[kind] = list(_times_in(number, kind, cells[1:] + [""] * (len(names) + 1 - len(cells)), names))
    return _arguments(found)


def _lines(path: Path) -> list[Line]:
    """Return the lines of a file that are not empty, each with its number."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise HybridLabError(f"{path.name} has more than {LARGEST_FILE:,} bytes: it is not a table of times", "too-large")
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets write a byte order mark
    except OSError as why:
        raise HybridLabError(f"{short_repr(str(path))} cannot be read: {why.strerror or why}", "not-found") from None
    except UnicodeDecodeError:
        raise HybridLabError(f"{path.name} is not a text in UTF-8: save it as CSV in UTF-8", "not-text") from None
    try:
        rows = csv.reader(text.splitlines(), strict=True)
        lines = [(rows.line_num, _without_empty_end([cell.strip() for cell in cells])) for cells in rows if "".join(cells).strip()]
    except csv.Error as why:
        raise HybridLabError(f"{path.name} is not a CSV: {why}", "not-text") from None
    if not lines:
        raise HybridLabError(f"{path.name} is empty: write a line of names, then lines such as forward,10,12", "empty")
    # In countries with decimal commas, spreadsheets put semicolons between cells.
    if all(len(cells) == 1 for _, cells in lines) and ";" in lines[0][1][0]:
        raise HybridLabError(
            f"line {lines[0][0]} has semicolons between its cells: save the file with commas, and with points in numbers", "ragged"
        )
    return lines


def _without_empty_end(cells: list[str]) -> list[str]:
    """Return the cells without the empty cells at the end. Spreadsheets add such cells."""
    return cells[: 1 + max(place for place, cell in enumerate(cells) if cell)]


def _times_in(number: int, kind: str, cells: Sequence[str], names: Sequence[str]) -> Iterator[float]:
    """Yield the times of a line. The line p2p has one time for all links, or one time for each link."""
    given = len(cells)
    if kind == "overlap":
        given = 1 if not any(cells[1:]) else len(cells)
        if given > 1:
            raise HybridLabError(f"line {number} has several values: overlap is one value for all devices", "wrong-length")
    if kind == "p2p":
        given = 1 if not any(cells[1:]) else len(cells) - 1  # the last stage has no next stage, so its column has no link
        if len(cells) > given and cells[-1]:
            message = f"line {number}, column {len(cells) + 1}: {len(names)} stages have {counted(len(names) - 1, 'link')}"
            raise HybridLabError(f"{message}: leave the last cell of p2p empty", "wrong-length")
    for place, cell in enumerate(cells[:given]):
        where = f"line {number}, column {place + 2}"
        if not cell:
            message = f"{where}: there is no time of {kind} for {names[place] or f'stage {place}'}"
            raise HybridLabError(f"{message}: give one for each stage", "missing-time")
        try:
            time = float(cell)
        except ValueError:
            raise HybridLabError(f"{where}: {short_repr(cell)} is not a number, such as 12.5", "not-a-number") from None
        if not 0 <= time <= LONGEST:
            code = "negative" if time < 0 and math.isfinite(time) else "too-large" if math.isfinite(time) else "not-finite"
            raise HybridLabError(f"{where}: {kind} is a finite number of zero or more, not {cell}", code)
        if kind in SHARES and time > 1:
            raise HybridLabError(f"{where}: {kind} is a part of {SHARES[kind]}, from 0 to 1, not {cell}", "out-of-range")
        yield time


def _arguments(found: dict[str, list[float]]) -> dict[str, list[float] | float]:
    """Return the arguments of :class:`Costs` from the lines of a file.

    The file has ``backward``, or ``input_gradient`` and ``weight_gradient``, or ``backward`` and ``weight_gradient``.
    """
    given = set(found)
    if "forward" not in given:
        raise HybridLabError("there is no line forward: give a time for each stage, as in forward,10,12", "missing-time")
    if not given & {"backward", "input_gradient"}:
        message = "there is no line backward"
        raise HybridLabError(f"{message}: give a line backward, or the two lines input_gradient and weight_gradient", "missing-time")
    if "input_gradient" in given and "weight_gradient" not in given:
        raise HybridLabError("there is a line input_gradient without a line weight_gradient: give both", "missing-time")
    if {"backward", "input_gradient"} <= given or {"weight_gradient", "weight_share"} <= given:
        message = "two lines say the same: give one of these: backward; backward and weight_gradient; backward and weight_share"
        raise HybridLabError(f"{message}; input_gradient and weight_gradient", "conflicting-arguments")
    arguments: dict[str, list[float] | float] = {"forward": found["forward"]}
    weight = found.get("weight_gradient")
    backward = found.get("backward") or [sum(parts) for parts in zip(found["input_gradient"], weight or [], strict=True)]
    arguments["backward"] = backward
    if weight:  # Costs takes the share of the weight gradient, so compute the share from both times
        longer = next((place for place, (whole, part) in enumerate(zip(backward, weight, strict=True)) if part > whole), None)
        if longer is not None:
            message = (
                f"weight_gradient cannot exceed backward, but in column {longer + 2} it takes {weight[longer]:g} of {backward[longer]:g}"
            )
            raise HybridLabError(message, "out-of-range")
        # for a backward that takes no time, the share does not matter
        arguments["weight_share"] = [part / whole if whole else 0.0 for whole, part in zip(backward, weight, strict=True)]
    elif "weight_share" in given:
        arguments["weight_share"] = found["weight_share"]
    if "overlap" in given:
        arguments["overlap"] = found["overlap"][0]
    if "p2p" in given:
        links = found["p2p"]
        several = len(links) > 1
        arguments["p2p_between" if several else "p2p"] = links if several else links[0]
    return arguments


def times_as_csv(times: Any) -> str:
    """Return :class:`Costs` as a CSV text with one column for each device or stage.

    Raises
    ------
    HybridLabError
        The costs have several settings, or ``p2p_between`` is a matrix.
    """
    if times.batch:
        raise HybridLabError(f"to_csv() writes one setting, but these costs hold {times.batch}", "several-settings")
    if times.p2p_between is not None and times.p2p_between.ndim > 1:
        message = "a file of times has a latency for each pair of neighbours, and p2p_between is a matrix"
        raise HybridLabError(f"{message}: give it as a list, or give one p2p", "does-not-fit")
    columns = {name: getattr(times, name) for name in ("forward", "backward", "weight_share")}
    width = max(column.size for column in columns.values())
    if times.p2p_between is not None:
        width = max(width, times.p2p_between.size + 1)
    lines = {name: column.tolist() * (width // column.size) for name, column in columns.items()}  # the size of a column is 1 or width
    lines["p2p"] = times.p2p.tolist() if times.p2p_between is None else times.p2p_between.tolist()
    if times.overlap.any():
        lines["overlap"] = times.overlap.tolist()
    heading = ["time", *(f"{times.per} {place}" for place in range(width))] if width > 1 else ["time", "all"]
    # repr writes enough digits that from_csv reads the same number
    cells = ([name, *map(repr, row)] + [""] * (width - len(row)) for name, row in lines.items())
    return "".join(",".join(row) + "\n" for row in [heading, *cells])
