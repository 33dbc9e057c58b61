"""Spreadsheets as text: files in the usual encodings, with the separators and the notations of numbers of any country.

Excel puts the list separator of the country between cells: a semicolon where commas are decimal. It writes "CSV UTF-8" with a byte order
mark, "CSV" in the code page of Windows, and "Unicode text" in UTF-16 with tabs. LibreOffice and Google Sheets write UTF-8.
"""

import re
from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError

LARGEST_FILE = 10_000_000  # bytes; a file of times for 100,000 stages is smaller
SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
DECIMAL_MARKS = {",": ".", ";": ","}  # separator of cells -> the decimal mark in the countries whose spreadsheets use it
OTHER_MARK = {",": ".", ".": ","}
LINE_END = re.compile("\r\n|\r|\n")
SEPARATOR_LINE = re.compile(r'[ ]*"?sep=([,;\t|])"?[ \t;,]*', re.IGNORECASE | re.ASCII)  # Excel reads such a first line
BINARY_FILES = {
    b"PK\x03\x04": "a workbook (xlsx or ods) or another zip file",
    b"\xd0\xcf\x11\xe0": "an old workbook (xls)",
    b"\x1f\x8b": "a compressed file (gzip)",
}
ADVICE = "save the file with commas between its cells, with decimal points, and without marks between thousands"

# No pattern has two parts that can take the same characters, so a long cell takes no longer than its length.
_AFTER_FIRST_CELL = re.compile(r'(?:[ ]*"(?:[^"]|"")*"[ ]*|[^\t;,"]*)([\t;,])')
_MARKDOWN_RULE = re.compile(r"[\s|:-]+")  # the second line of a Markdown table
_MARK = re.compile("[.,]")
_NUMBER = re.compile(r"[+-]?(?=[.,]*[0-9])([0-9.,]+)((?:e[+-]?[0-9]+)?)", re.IGNORECASE)
_GROUPS = "|[1-9][0-9]{0,2}(?:[G][0-9]{3})+|[1-9][0-9]?(?:[G][0-9]{2})+[G][0-9]{3}"  # thousands; in India 12,34,567
_WITHOUT_GROUPS = {mark: re.compile(f"[0-9]*(?:[{mark}][0-9]*)?") for mark in OTHER_MARK}
_WITH_GROUPS = {mark: re.compile(f"(?:[0-9]*{_GROUPS.replace('G', other)})(?:[{mark}][0-9]*)?") for mark, other in OTHER_MARK.items()}
_SPACES = "[\u00a0\u2009\u202f'\u2019]"  # between thousands, in France and in Switzerland
_SPACED = re.compile(f"[+-]?[0-9]{{1,3}}(?:{_SPACES}[0-9]{{3}})+(?![0-9]).*")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
Marks = tuple[str, ...]  # the marks, comma or point, that can be the decimal mark of a number


class SheetCell(NamedTuple):
    """A cell: the number of its line, the number of its column (both from 1), and its text."""

    line: int
    column: int
    text: str

    @property
    def where(self) -> str:
        """The place of the cell in words, such as "line 2, column 3"."""
        return f"line {self.line}, column {self.column}"


SheetRow = list[SheetCell]  # the cells of a line that is not empty, without empty cells at the end


def text_of(source: Any, instead: str = "give io.StringIO(text)") -> str:
    """Return the text in a file.

    Parameters
    ----------
    source : str, path or open file
        A string is always a path. A file can be open for text or for bytes. Bytes are decoded as UTF-8, as UTF-16 if they begin with a byte
        order mark, or else as Windows' code page for western Europe.
    instead : str
        For the error about a string that is a text: what to do with it.

    Raises
    ------
    HybridLabError
        ``source`` is none of these (``wrong-type``), it cannot be read (``not-found``), it is too large, or it is not a text.

    Examples
    --------
    >>> import io
    >>> text_of(io.BytesIO("Zeit in µs;Gerät 0".encode("cp1252")))
    'Zeit in µs;Gerät 0'
    """
    from pathlib import Path  # imported here, because most programs read no file

    if isinstance(source, str) and LINE_END.search(source):
        raise HybridLabError(f"a path is needed, but {short_repr(source)} is a text: {instead}", "wrong-type")
    if not isinstance(source, (str, PathLike)) and not callable(getattr(source, "read", None)):
        raise HybridLabError(f"a path or an open file is needed, not {short_repr(source)}", "wrong-type")
    name = name_of(source)
    try:
        if isinstance(source, (str, PathLike)):
            with Path(source).open("rb") as file:
                content: Any = file.read(LARGEST_FILE + 1)
        else:
            content = source.read(LARGEST_FILE + 1)
    except UnicodeDecodeError:
        raise HybridLabError(f"{name} is not in the encoding with which it was opened: give its path", "not-text") from None
    except (OSError, ValueError, TypeError) as why:
        reason = getattr(why, "strerror", None) or why
        raise HybridLabError(f"{short_repr(name)} cannot be read: {reason}", "not-found") from None
    if not isinstance(content, (str, bytes)):
        raise HybridLabError(f"a path or an open file is needed, not {short_repr(source)}", "wrong-type")
    if len(content) > LARGEST_FILE:
        raise HybridLabError(f"{name} has more than {LARGEST_FILE:,} bytes: it is too large for a table of times or of orders", "too-large")
    text = _decoded(content, name) if isinstance(content, bytes) else content
    if "\0" in text:
        raise HybridLabError(f"{name} is not a text: save it as CSV in UTF-8", "not-text")
    return text.removeprefix("\ufeff")


def name_of(source: Any) -> str:
    """Return the name of a file for an error.

    >>> name_of("times/of/today.csv"), name_of(3)
    ('times/of/today.csv', 'the file')
    """
    name = source if isinstance(source, (str, PathLike)) else getattr(source, "name", None)
    return str(name) if isinstance(name, (str, PathLike)) else "the file"


def _decoded(content: bytes, name: str) -> str:
    binary = next((words for head, words in BINARY_FILES.items() if content.startswith(head)), None)
    if binary:
        raise HybridLabError(f"{name} is {binary}, not a text: save the table as CSV in UTF-8", "not-text")
    codings = ("utf-16",) if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "cp1252")
    for coding in codings:
        try:
            return content.decode(coding)
        except UnicodeDecodeError:
            continue
    raise HybridLabError(f"{name} is not a text in UTF-8: save it as CSV in UTF-8", "not-text")


def without_notes(text: str) -> tuple[list[str], str]:
    r"""Return the lines of a text, and the separator that its first line may name (or ""). Comments (#) and that first line become empty.

    >>> without_notes("sep=;\r\n# measured on Monday\r\nforward;10")
    (['', '', 'forward;10'], ';')
    """
    lines = LINE_END.split(text)
    named = SEPARATOR_LINE.fullmatch(lines[0])
    kept = ["" if line.lstrip(' "').startswith("#") else line for line in lines]
    return (["", *kept[1:]], named.group(1)) if named else (kept, "")


def table_of(text: str, name: str) -> tuple[list[SheetRow], str]:
    r"""Return the lines of a spreadsheet or of a Markdown table that are not empty, and the separator of its cells.

    Raises
    ------
    HybridLabError
        Lines have different separators after their first cell (``ragged``), or quotation marks are not closed (``not-text``).

    Examples
    --------
    >>> table, separator = table_of('time;a;b\nforward;"10,5";12', "times.csv")
    >>> [[cell.text for cell in row] for row in table], separator
    ([['time', 'a', 'b'], ['forward', '10,5', '12']], ';')
    >>> table_of("| time |\n|---|\n| 12 |", "times.md")[0]
    [[SheetCell(line=1, column=1, text='time')], [SheetCell(line=3, column=1, text='12')]]
    """
    import csv  # imported here, because most programs read no table

    lines, separator = without_notes(text)
    markdown = not separator and _is_markdown(lines)
    if markdown:
        lines = ["" if _MARKDOWN_RULE.fullmatch(line) else line for line in lines]
    separator = "|" if markdown else separator or _separator_of(lines)
    table = []
    try:
        rows = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
        for cells in rows:
            # a Markdown line begins with a separator
            row = [SheetCell(rows.line_num, column, cell.strip()) for column, cell in enumerate(cells[markdown:], start=1)]
            table.append(without_empty_end(row))
    except csv.Error as why:
        raise HybridLabError(f"{name} is not a CSV: {why}", "not-text") from None
    return [row for row in table if row], separator


def without_empty_end(row: SheetRow) -> SheetRow:
    """Return a row without the empty cells at its end. Spreadsheets add such cells.

    >>> without_empty_end([SheetCell(1, 1, "forward"), SheetCell(1, 2, "10"), SheetCell(1, 3, "")])
    [SheetCell(line=1, column=1, text='forward'), SheetCell(line=1, column=2, text='10')]
    """
    return row[: max((place for place, cell in enumerate(row, start=1) if cell.text), default=0)]


def _is_markdown(lines: Sequence[str]) -> bool:
    filled = [line for line in lines if line.strip()]
    return len(filled) > 1 and all(line.lstrip().startswith("|") for line in filled)


def _separator_of(lines: Sequence[str]) -> str:
    """Return the separator that stands behind the first cell of the lines. The heading counts only if it is the only such line."""
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip(' \t;,"')]
    found = [(number, match.group(1)) for number, line in filled if (match := _AFTER_FIRST_CELL.match(line))]
    counted = found[1:] if len(found) > 1 and found[0][0] == filled[0][0] else found
    for number, separator in counted:
        if separator != counted[0][1]:
            there = f"line {counted[0][0]} has {SEPARATORS[counted[0][1]]} after its first cell"
            raise HybridLabError(f"{there}, but line {number} has {SEPARATORS[separator]}: {ADVICE}", "ragged")
    return counted[0][1] if counted else ","


def numbers_in(cells: Sequence[SheetCell], separator: str) -> list[float]:
    """Return the numbers in cells, in the notation that all cells have in common.

    A comma or a point is decimal if it cannot stand between thousands: 10,5 or 0,125 or 1.234,5. Where this does not tell, semicolons
    between cells stand for decimal commas, and commas between cells for decimal points. All other cases are refused.

    Raises
    ------
    HybridLabError
        A cell is not a number (``not-a-number``), or numbers can be read in two ways or contradict each other (``ambiguous``).

    Examples
    --------
    >>> numbers_in([SheetCell(2, 2, "1.234,5"), SheetCell(2, 3, "10,125")], ";")
    [1234.5, 10.125]
    >>> numbers_in([SheetCell(2, 2, "12.400")], ";")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: line 2, column 2: 12.400 can be 12.4 or 12400: save the file with commas between its cells, ...
    """
    marks = [_possible_marks(cell.text) for cell in cells]
    decimal = _decimal_mark([each for each in zip(cells, marks, strict=True) if _MARK.search(each[0].text)], separator)
    return [_value(cell, decimal, possible) for cell, possible in zip(cells, marks, strict=True)]


def _decimal_mark(marked: Sequence[tuple[SheetCell, Marks]], separator: str) -> str:
    """Return the decimal mark of cells that have a comma or a point, each with its possible decimal marks."""
    usual = DECIMAL_MARKS.get(separator)
    certain = {mark: cell for cell, marks in marked if len(marks) == 1 for mark in marks}
    if len(certain) > 1:
        comma, point = certain[","], certain["."]
        message = f"{comma.where}: {comma.text} has a decimal comma, but {point.where}: {point.text} has a decimal point"
        raise HybridLabError(f"{message}: {ADVICE}", "ambiguous")
    decimal = next(iter(certain), usual)
    # Another cell can show that thousands are marked; or the separator of cells says so, if it agrees with the decimal mark.
    grouped = any(len(_MARK.findall(cell.text)) > 1 for cell, _ in marked) or (decimal == usual and decimal in certain)
    for cell, marks in marked:
        if len(marks) > 1 and (decimal is None or (decimal not in cell.text and not grouped)):
            small, large = sorted(_value(cell, mark, marks) for mark in marks)
            raise HybridLabError(f"{cell.where}: {cell.text} can be {small:g} or {large:.0f}: {ADVICE}", "ambiguous")
    return decimal or "."


def _possible_marks(text: str) -> Marks:
    """Return which marks can be the decimal mark of a number. Both are possible for 1,234. There is none if it is not a number."""
    plain, spaced = _plain(text)
    parts = _NUMBER.fullmatch(plain)
    if not parts:
        return ()
    patterns = _WITHOUT_GROUPS if spaced or parts.group(2) else _WITH_GROUPS  # 1 234,567 and 1,234e3 have no further thousands
    return tuple(mark for mark, pattern in patterns.items() if pattern.fullmatch(parts.group(1)))


def _plain(text: str) -> tuple[str, bool]:
    """Return a number with an ASCII minus and without spaces and apostrophes between thousands, and whether it had these."""
    text = text.replace("\u2212", "-")
    spaced = bool(_SPACED.fullmatch(text))
    return (re.sub(_SPACES, "", text) if spaced else text), spaced


def _value(cell: SheetCell, decimal: str, marks: Marks) -> float:
    plain = _plain(cell.text)[0]
    if decimal in marks:
        return float(plain.replace(OTHER_MARK[decimal], "").replace(decimal, "."))
    if _NOT_FINITE.fullmatch(plain):
        return float(plain)  # the caller says which numbers are allowed
    raise HybridLabError(f"{cell.where}: {short_repr(cell.text)} is not a number, such as 12.5", "not-a-number")
