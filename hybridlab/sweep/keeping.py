"""The file in which a sweep keeps its rows, so that a sweep that was stopped can go on."""

import csv
import io
import json
import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError
from hybridlab.tables import csv_cell, csv_text

Key = tuple[Any, ...]  # the arguments of a row, as numbers where a cell has a number
Values = tuple[Any, ...]  # makespan, device span, bubble ratio, peak activations, refusal
RESULTS = 5


class Keeper:
    """The CSV file of a sweep: the rows that are in it, and rows that are added.

    Each row has its arguments, its results, and the unit of its times. A row is added as soon as it has results. A program that is killed
    can leave half a line at the end of the file. The keeper removes this line.

    Parameters
    ----------
    path : str or path
        The file. It need not exist.
    columns : sequence of str
        The names of the columns of the sweep's table.
    unit : str or None
        The unit of the times.

    Raises
    ------
    HybridLabError
        The file is no CSV file of such a sweep, or it cannot be read or written.
    """

    def __init__(self, path: Any, columns: Sequence[str], unit: str | None) -> None:
        self.path, self.names, self.unit = _checked_path(path), [*columns, "unit"], unit
        self.found: dict[Key, Values] = {}
        whole, torn = self._whole_lines(self._read())
        for line in whole:
            *cells, found_unit = line
            if found_unit != csv_cell(unit):
                raise self._other(f"its times have the unit {found_unit or 'None'}, and not {csv_cell(unit) or 'None'}")
            self.found[tuple(map(_key_of_cell, cells[:-RESULTS]))] = self._results(cells[-RESULTS:])
        if torn:
            self._replace([self.names, *whole])

    def known(self, arguments: Sequence[Values]) -> list[Values | None]:
        """Return the stored results of each row, or None. Raise an error if the file has a row that is not among the arguments."""
        keys = [tuple(map(_key_of_value, row)) for row in arguments]
        if strange := self.found.keys() - set(keys):
            pairs = zip(self.names, min(strange, key=str), strict=False)
            row = ", ".join(f"{name} {value}" for name, value in pairs)
            raise self._other(f"it has the row {row[:300]}, which is not in this sweep")
        return [self.found.get(key) for key in keys]

    def add(self, rows: Iterable[Values]) -> None:
        """Add whole rows of the table to the file."""
        try:
            with self.path.open("a", encoding="utf-8", newline="") as file:
                file.write(csv_text((*row, self.unit) for row in rows))
        except OSError as why:
            raise self._unusable(why) from why

    def finish(self, rows: Iterable[Values]) -> None:
        """Write the rows of the finished table in their order."""
        self._replace([self.names, *((*row, self.unit) for row in rows)])

    def _read(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8-sig", errors="replace") if self.path.exists() else ""
        except OSError as why:
            raise self._unusable(why) from why

    def _whole_lines(self, text: str) -> tuple[list[list[str]], bool]:
        """Return the lines below the head without half a line at the end, and whether there was half a line."""
        head = csv_text([self.names])
        if len(text) < len(head) and head.startswith(text):
            return [], True  # the program was killed before it had written the head
        try:
            names, *lines = csv.reader(io.StringIO(text))
        except csv.Error as why:
            raise self._other(str(why)) from None
        if names != self.names:
            raise self._other(f"its columns are {short_repr(', '.join(names))[1:-1]}, and not {', '.join(self.names)}")
        torn = not text.endswith("\n") or (lines != [] and len(lines[-1]) != len(self.names))
        if torn and lines:
            lines.pop()
        for number, line in enumerate(lines, start=2):
            if len(line) != len(self.names):
                raise self._other(f"its line {number} has {len(line)} cells, and not {len(self.names)}")
        return lines, torn

    def _results(self, cells: list[str]) -> Values:
        *numbers, refused = cells
        try:
            return (*(float(cell) if cell else None for cell in numbers), refused or None)
        except ValueError:
            raise self._other(f"it has {short_repr(', '.join(numbers))} in place of results") from None

    def _replace(self, lines: Iterable[Iterable[Any]]) -> None:
        """Write the file anew. A program that is killed meanwhile leaves the old file."""
        beside = self.path.with_name(f"{self.path.name}.part")
        try:
            beside.write_text(csv_text(lines), encoding="utf-8", newline="")
            beside.replace(self.path)
        except OSError as why:
            raise self._unusable(why) from why

    def _other(self, why: str) -> HybridLabError:
        return HybridLabError(
            f"{self.path} does not have the rows of this sweep: {why}; give the arguments of the sweep that wrote it, or another file",
            "does-not-fit",
        )

    def _unusable(self, why: OSError) -> HybridLabError:
        return HybridLabError(f"the rows cannot be kept in {self.path}: {why.strerror or why}", "not-written")


def _checked_path(path: Any) -> Path:
    """Return the path of a CSV file, or raise an error."""
    wanted = "keep is the name of a CSV file, such as 'rows.csv'"
    if not isinstance(path, (str, os.PathLike)) or isinstance(found := os.fspath(path), bytes) or "\0" in found:
        raise HybridLabError(f"{wanted}, not {short_repr(path)}", "wrong-type")
    if Path(found).suffix.lower() != ".csv":
        after = "a file of another format would be lost if the sweep is killed; write one after the sweep, from table.to_pandas()"
        raise HybridLabError(f"{wanted}, not {short_repr(found)}: {after}", "unknown-format")
    return Path(found)


def _key_of_value(value: Any) -> Any:
    """Return what :func:`_key_of_cell` returns for the cell of a value."""
    number = type(value) in (int, float) and value == value  # nan differs from itself, so its key is a text
    return value if number else _key_of_cell(csv_cell(value))


@lru_cache(maxsize=2**16)  # most cells of a column are alike
def _key_of_cell(cell: str) -> Any:
    """Return the number in a cell, a tuple for a list of numbers, or else the text, so that 1 and 1.0 are the same argument.

    >>> _key_of_cell("1.0") == _key_of_cell("1"), _key_of_cell("[1, 2.5]"), _key_of_cell("gpipe")
    (True, (1, 2.5), 'gpipe')
    """
    try:
        number: Any = tuple(json.loads(cell)) if cell.startswith("[") else float(cell)
        return number if number == number else cell
    except (ValueError, TypeError):
        return cell
