"""The forms that all tables of the library have: CSV text, a pandas ``DataFrame``, and an HTML table in a notebook."""

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from html import escape
from numbers import Real
from typing import Any

from hybridlab.checks import counted
from hybridlab.errors import HybridLabError

Row = dict[str, Any]
SHOWN = 20  # rows of the HTML form; a reader of a notebook wants to see the next cell, too


class Tabular(ABC):
    """The base class of all tables: sweeps, searches, rankings and timelines. A table gives its rows, and inherits its other forms.

    A notebook shows a table with its first 20 rows.

    Examples
    --------
    >>> class Squares(Tabular):
    ...     def to_rows(self):
    ...         return [{"number": number, "square": number**2} for number in (1, 2)]
    >>> print(Squares().to_csv())
    number,square
    1,1
    2,4
    <BLANKLINE>
    """

    @abstractmethod
    def to_rows(self) -> list[Row]:
        """Return one dict for each row, from the name of a column to its value."""

    def to_csv(self) -> str:
        """Return the table as CSV text, with a line for each row. A list of values is a JSON list in its cell, and None is an empty cell.

        If the table has times in a unit, the last column is ``unit``.

        Raises
        ------
        HybridLabError
            The table is a timeline with several settings (``several-settings``).
        """
        names, rows = self._columns(), self.to_rows()
        if hasattr(self, "unit"):
            names, rows = [*names, "unit"], [row | {"unit": self.unit} for row in rows]
        return csv_text([names, *([row.get(name) for name in names] for row in rows)])

    def to_pandas(self) -> Any:
        """Return the table as a pandas ``DataFrame``.

        Raises
        ------
        HybridLabError
            pandas is not installed (``not-installed``), or the table is a timeline with several settings (``several-settings``).
        """
        try:
            import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError as why:
            message = f"a DataFrame comes from pandas, which cannot be loaded ({why}): pip install pandas"
            raise HybridLabError(message, "not-installed") from why
        return pandas.DataFrame(self.to_rows(), columns=self._columns())

    def _columns(self) -> list[str]:
        """Return the names of the columns, in order. A subclass overrides this where an empty table has columns, too."""
        return list(dict.fromkeys(name for row in self.to_rows() for name in row))

    def _caption(self) -> str:
        """Return the sentence above the HTML table. A subclass overrides this."""
        return f"{type(self).__name__}: {counted(len(self.to_rows()), 'row')}"

    def _repr_html_(self) -> str | None:
        """Return the table for a notebook: its first 20 rows, and a sentence that says how many rows there are."""
        return html_table(self._caption(), self._columns(), self.to_rows())


def csv_text(lines: Iterable[Iterable[Any]]) -> str:
    r"""Return lines of values as CSV text. A list of values is a JSON list in its cell, and None is an empty cell.

    >>> csv_text([("forward", "note"), ((1, 2.5), None)])
    'forward,note\n"[1, 2.5]",\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")  # it writes numbers and None as csv_cell does, and faster
    writer.writerows([csv_cell(value) if isinstance(value, (list, tuple)) else value for value in line] for line in lines)
    return text.getvalue()


def csv_cell(value: Any) -> str:
    """Return a value as the text of a cell, from which Python reads the same number.

    >>> csv_cell(0.1), csv_cell((1, 2)), csv_cell(None), csv_cell("gpipe")
    ('0.1', '[1, 2]', '', 'gpipe')
    """
    if isinstance(value, (list, tuple)):
        return json.dumps(value, default=str)
    return "" if value is None else str(value)


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of cells as lines of text with columns. The first column is aligned left, and the others right.

    >>> aligned([["schedule", "peak"], ["gpipe", "8"]])
    ['schedule  peak', 'gpipe        8']
    """
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in enumerate(zip(line, wide, strict=True)))
        for line in lines
    ]


def html_table(caption: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Return an HTML table with a caption, heads of columns, and numbers at the right of their cells. Long tables are cut.

    Parameters
    ----------
    caption : str
        What the table shows.
    columns : sequence of str
        Names of columns.
    rows : sequence of dict
        The rows, from the name of a column to its value. A missing value is an empty cell.

    Examples
    --------
    >>> html_table("Times", ["schedule"], [{"schedule": "gpipe"}])
    '<table><caption>Times</caption><thead><tr><th scope="col">schedule</th></tr></thead><tbody><tr><td>gpipe</td></tr></tbody></table>'
    """
    right = {name for name in columns if all(row.get(name) is None or _is_number(row[name]) for row in rows)}
    heads = "".join(f'<th scope="col"{_aligned(name in right)}>{escape(name)}</th>' for name in columns)
    lines = ("".join(f"<td{_aligned(name in right)}>{escape(_shown(row.get(name)))}</td>" for name in columns) for row in rows[:SHOWN])
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    table = f"<table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    cut = f"<p>The first {SHOWN} of {len(rows):,} rows. to_rows(), to_csv() and to_pandas() give all rows.</p>"
    return table if len(rows) <= SHOWN else table + cut


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _aligned(right: bool) -> str:
    return ' style="text-align: right"' if right else ""


def _shown(value: Any) -> str:
    """Return a value as the text of an HTML cell: a number with up to 6 digits."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value))
    if value is None:
        return ""
    if _is_number(value):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    return str(value)
