"""Fill the column of a lab in a gradebook. The gradebook is a CSV file from Canvas. All other cells keep their bytes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hybridlab.course.grading.escaping import for_log
from hybridlab.course.grading.marks import Marks
from hybridlab.course.grading.records import write_whole
from hybridlab.course.grading.reports import one_each, short_number
from hybridlab.errors import HybridLabError

NAMED_IN = ("SIS Login ID", "ID", "SIS User ID", "Student")  # columns that identify a student; the most reliable column comes first
# names of columns that Canvas computes, such as "Current Score"; Canvas puts these columns among those of assignments
_COMPUTED = re.compile(r"\b(?:Current|Final|Override) (?:Score|Points|Grade|Status)\b")
# cells of a row that Canvas writes below the header: the row marks the columns with grades that students cannot see
_HIDDEN = re.compile(r"\s*(?:Muted|Manual Posting.*)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class FilledGradebook:
    """The result of filling a gradebook.

    Parameters
    ----------
    path : Path
        The new file.
    column : str
        The column that was filled.
    filled : tuple of str
        The students with marks and with a row in the gradebook. Their points are in the new file.
    missing : tuple of str
        The students with marks but without a row in the gradebook.
    without_marks : tuple of str
        The students with a row in the gradebook but without marks, by their names in the first column. Their cells do not change.
    remarks : tuple of str
        Sentences that a person should read before importing the file into Canvas. They name the students in ``missing`` and
        ``without_marks``.
    """

    path: Path
    column: str
    filled: tuple[str, ...]
    missing: tuple[str, ...]
    without_marks: tuple[str, ...]
    remarks: tuple[str, ...]


def fill_canvas(exported: Path, marks: Sequence[Marks], out: Path, *, column: str = "") -> FilledGradebook:
    """Write a copy of a gradebook with the points of a lab, and return the result.

    The row of a student is the row with the student's name in the column "SIS Login ID". If there is no such row, the columns "ID",
    "SIS User ID" and "Student" are searched in this order.

    Parameters
    ----------
    exported : Path
        The gradebook as Canvas exports it, with commas or semicolons.
    marks : sequence of Marks
        The marks of one lab, one for each student.
    out : Path
        The path of the new file, or a folder. In a folder, the new file has the same name as ``exported``.
    column : str, optional
        The name of the column, with or without the number in parentheses at its end. By default, the column whose name contains the
        lab, such as "Lab 2 (12345)" for lab02.

    Raises
    ------
    HybridLabError
        ``no-gradebook``, ``unknown-column``, ``several-columns``, ``several-rows``, ``several-labs``, ``student-twice``, ``same-file``
        or ``not-writable``.
    """
    target = out / exported.name if out.is_dir() else out
    if target.resolve() == exported.resolve():
        raise HybridLabError(f"{out} is the exported gradebook itself: choose another file", "same-file")
    sorted_marks = one_each(marks)
    labs = {each.lab for each in sorted_marks}
    if len(labs) != 1:
        raise HybridLabError(
            f"a column takes the marks of one lab, but the labs of these marks are: {', '.join(sorted(labs)) or 'none'}", "several-labs"
        )
    table = _Table(exported)
    place = _column_of(table.values[0], labs.pop(), column)
    rows = [row for row, cells in enumerate(table.values) if row and _is_of_student(cells)]
    whose = {each.student: _row_of(table.values, rows, each.student) for each in sorted_marks}
    remarks = _possible_points(table.values, place, sorted_marks[0])
    by_row: dict[int, Marks] = {}  # two names, such as a login and a number, can belong to the same row
    for each in sorted_marks:
        row = whose[each.student]
        if row is None:
            remarks.append(f"{for_log(each.student)} is not in the gradebook")
            continue
        if by_row.setdefault(row, each) is not each:
            both = f"{for_log(by_row[row].student)} and {for_log(each.student)}"
            raise HybridLabError(f"{both} have the same row {row + 1} in the gradebook: keep the marks of only one of them", "several-rows")
        points, before = str(short_number(each.points)), table.values[row][place].strip()
        # a person may have changed this grade in Canvas
        if before not in {"", "-", points}:
            remarks.append(f"{for_log(each.student)} had {for_log(before)} in the gradebook and has {points} now")
        table.raw[row][place] = points
    without = tuple(table.values[row][0] for row in rows if row not in by_row)
    remarks += [f"{for_log(student)} of the gradebook has no marks" for student in without]
    filled = tuple(student for student, row in whose.items() if row is not None)
    missing = tuple(student for student, row in whose.items() if row is None)
    return FilledGradebook(write_whole(target, table.text()), table.values[0][place], filled, missing, without, tuple(remarks))


class _Table:
    """The cells of a CSV file. ``values`` has their values. ``raw`` has their original text, so that unchanged cells keep their bytes."""

    def __init__(self, path: Path) -> None:
        try:
            text = path.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as why:
            raise HybridLabError(f"cannot read the gradebook {path}: {why}; export it from Canvas again", "no-gradebook") from why
        # some exports begin with a byte order mark, which does not belong to the first cell
        self.mark = "\ufeff" * text.startswith("\ufeff")
        for self.separator in ",;":  # with the wrong separator, the header is a single cell, and no cell is "ID"
            self._read(text.removeprefix(self.mark))
            self.values = [[_value(cell) for cell in row] for row in self.raw]
            header = self.values[0] if self.values else []
            if {"ID", "Section"} <= set(header) and header[0] in {"Student", "LastName"}:
                break
        else:
            raise HybridLabError(f"{path} is no gradebook of Canvas: its first line must name Student, ID and Section", "no-gradebook")
        if other := [number for number, row in enumerate(self.values, 1) if len(row) != len(header) and any(row)]:
            raise HybridLabError(f"row {other[0]} of {path} has more or fewer cells than row 1: export the gradebook again", "no-gradebook")

    def _read(self, text: str) -> None:
        """Read the cells. A cell in quotes can contain separators and line ends. Two quotes inside such a cell stand for one quote."""
        cell = re.compile(rf'("(?:[^"]|"")*"|(?!")[^{self.separator}\r\n]*)({self.separator}|\r\n|\n|\r|\Z)')
        self.raw: list[list[str]] = []
        self.ends: list[str] = []
        row: list[str] = []
        at = 0
        # after a separator at the end of a row there is an empty cell, even at the end of the file
        while (row or at < len(text)) and (found := cell.match(text, at)):
            row.append(found[1])
            at = found.end()
            if found[2] != self.separator:
                self.raw.append(row)
                self.ends.append(found[2])
                row = []
        if at < len(text):  # a quote stands in the middle of a cell: the file is then refused, because the table has no header
            self.raw = []

    def text(self) -> str:
        """Return the whole file."""
        rows = (self.separator.join(row) + end for row, end in zip(self.raw, self.ends, strict=True))
        return self.mark + "".join(rows)


def _value(cell: str) -> str:
    """Return the value of a cell: its text without the quotes around it."""
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def _column_of(header: Sequence[str], lab: str, column: str) -> int:
    """Return the index of the column named ``column``. If ``column`` is empty, search for a column whose name contains the lab."""
    assignments = [place for place in range(header.index("Section") + 1, len(header)) if not _COMPUTED.search(header[place])]
    names = ", ".join(repr(for_log(header[place])) for place in assignments) or "none"
    if column:
        asked = repr(for_log(column))
        found = [place for place in assignments if column.strip() in {header[place].strip(), _without_number(header[place])}]
    else:
        asked, parts = f"for {lab}", re.fullmatch(r"(.*?)0*(\d+)", lab)
        # "Lab 2" and "LAB-02" mean lab02; "Lab 20" and "Collab 2" do not
        pattern = rf"{re.escape(parts[1])}[\s_-]*0*{parts[2]}(?!\d)" if parts else re.escape(lab)
        found = [place for place in assignments if re.search(rf"(?<![^\W_]){pattern}", header[place], re.IGNORECASE)]
    if not found:
        raise HybridLabError(f"the gradebook has no column {asked}: choose one of {names} with --column", "unknown-column")
    if len(found) > 1:
        several = ", ".join(repr(for_log(header[place])) for place in found)
        raise HybridLabError(f"the gradebook has several columns {asked}: choose one of {several} with --column", "several-columns")
    return found[0]


def _without_number(name: str) -> str:
    return re.sub(r"\s*\(\d+\)\s*$", "", name).strip()


def _is_of_student(cells: Sequence[str]) -> bool:
    """Return whether a row belongs to a student. Other rows are empty, or have the possible points or the words "Manual Posting"."""
    return "Points Possible" not in cells[0] and not all(map(_HIDDEN.fullmatch, cells))


def _row_of(values: Sequence[Sequence[str]], rows: Sequence[int], student: str) -> int | None:
    """Return the index of a student's row, or None if the gradebook does not have this student."""
    for name in NAMED_IN:
        if name in values[0]:
            place = values[0].index(name)
            found = [row for row in rows if values[row][place].strip() == student.strip()]
            if len(found) > 1:
                lines = f"rows {found[0] + 1} and {found[1] + 1}"
                raise HybridLabError(f"{lines} of the gradebook both belong to {for_log(student)}: remove one of them", "several-rows")
            if found:
                return found[0]
    return None


def _possible_points(values: Sequence[Sequence[str]], place: int, marks: Marks) -> list[str]:
    """Return one sentence if the column and the lab have different maximum points; else no sentence."""
    possible = next((row[place] for row in values if "Points Possible" in row[0]), "").strip()
    ours = str(short_number(marks.out_of))
    # Canvas writes 26 points as "26.00", or as "26,00" in countries with a decimal comma
    if possible and re.sub(r"[.,]0+$", "", possible) != ours:
        return [f"the column is out of {for_log(possible)} points and {marks.lab} out of {ours}: the points are entered as they are"]
    return []
