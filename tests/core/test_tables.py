"""Test the forms of tables: CSV and pandas against the rows, and the HTML table against the needs of a screen reader."""

import csv
import io
import json
import sys
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pytest
from cases import in_turn, refusal

from hybridlab import A100_80GB, Costs, Sweep, Transformer, build, hybrid_step, rank, search, simulate, sweep
from hybridlab.tables import Tabular, html_table

MADE: dict[str, Callable[[], Any]] = {
    "sweep": lambda: sweep(
        ["interleaved", "1f1b"], {"devices": 2, "microbatches": [2, 3], "forward": [[0.1, 2]], "backward": 1 / 3}, unit="us"
    ),
    "long": lambda: sweep("gpipe", {"devices": 2, "microbatches": range(1, 9), "forward": range(1, 127), "backward": 2}, unit=None),
    "ranking": lambda: rank(Costs(forward=1, backward=2, unit="s"), 4, devices=2, seconds=0),
    "search": lambda: search(Transformer(layers=24, hidden=2304, heads=24), 32, A100_80GB),
    "timeline": lambda: simulate(build("dualpipe", 2, 4), Costs(forward=1 / 3, backward=2, weight_share=0.5, unit="us")),
}
table_of = cache(lambda name: MADE[name]())  # made by the first test that needs it, not while tests are collected


class Page(HTMLParser):
    """The parts of an HTML table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.opened[-1][0], data))

    def of(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


@in_turn("name", MADE)
def test_every_form_has_the_rows(name: str) -> None:
    table: Any = table_of(name)
    rows = table.to_rows()
    assert len(table) == len(rows) == len(list(table)) > 3
    assert table[-1] == list(table)[-1]
    assert table[1:3] == tuple(list(table)[1:3])
    names, *lines = csv.reader(io.StringIO(table.to_csv()))
    assert names == [*rows[0], "unit"] if hasattr(table, "unit") else list(rows[0])
    assert table.to_csv().count("\n") == len(rows) + 1
    for row, line in zip(rows, lines, strict=True):
        cells = dict(zip(names, line, strict=True))
        assert cells.pop("unit", table.unit or "" if hasattr(table, "unit") else "") == (getattr(table, "unit", "") or "")
        for column, value in row.items():
            cell = cells[column]
            if isinstance(value, tuple):
                assert tuple(json.loads(cell)) == value
            elif isinstance(value, float):
                assert float(cell) == value
            else:
                assert cell == ("" if value is None else str(value))
    frame = table.to_pandas()
    assert list(frame.columns) == list(rows[0])
    assert frame.astype(object).where(frame.notna(), None).to_dict("records") == rows


def test_pandas_takes_a_search_itself_and_gives_values_for_a_query() -> None:
    import pandas  # imported here, because it takes a second

    assert pandas.DataFrame(table_of("search"))["seconds"].tolist() == [each.seconds for each in table_of("search")]
    assert set(table_of("long").where(microbatches=pandas.Series([4, 8])).column("microbatches")) == {4, 8}


@in_turn("name", MADE)
def test_a_notebook_shows_a_table_that_a_screen_reader_can_read(name: str) -> None:
    table: Any = table_of(name)
    page = Page(table._repr_html_())
    rows = table.to_rows()
    assert page.of("caption") == [table._caption()]
    heads = [attributes for tag, attributes in page.opened if tag == "th"]
    assert page.of("th") == list(rows[0])
    assert all(each["scope"] == "col" for each in heads)
    shown = min(len(rows), 20)
    assert [tag for tag, _ in page.opened].count("tr") == shown + 1
    right = ["style" in each for each in heads]
    assert right == [all(isinstance(row[each], (int, float, type(None))) and row[each] is not True for row in rows) for each in rows[0]]
    cells = ["style" in attributes for tag, attributes in page.opened if tag == "td"]
    assert cells == right * shown
    all_rows = f"The first 20 of {len(rows):,} rows. to_rows(), to_csv() and to_pandas() give all rows."
    assert page.of("p") == ([all_rows] if len(rows) > 20 else [])


def test_a_timeline_is_a_table_of_its_operations_and_spans() -> None:
    step = hybrid_step(build("1f1b", 2, 4), Costs(forward=1, backward=2, unit="s"), 2, ring_step=1).timeline
    rows = step.to_rows()
    lines = list(csv.DictReader(io.StringIO(step.to_csv())))
    assert [(line["op"], float(line["end"]), line["unit"]) for line in lines] == [(row["op"] or "", row["end"], "s") for row in rows]
    assert len(step.to_pandas()) == len(rows) == len(step) > step.start.size
    assert [step[place] for place in range(-len(step), len(step))] == rows + rows == [*step, *step[:]]
    page = Page(str(step._repr_html_()))
    assert page.of("caption") == [f"{step.schedule.name}, 4 devices, makespan 17 s"]  # (4 + 1)(1 + 2), and two steps of the ring
    assert simulate(build("1f1b", 2, 4), Costs(forward=[[1], [2]], backward=2))._repr_html_() is None


def test_cells_are_text_and_numbers_are_short() -> None:
    row = {"<b>": "a & <i>", "list": (1, 2.5), "none": None, "number": 1234567, "share": 1 / 3, "yes": True}
    page = Page(html_table("2 < 3", list(row), [row]))
    assert page.of("caption") == ["2 < 3"]
    assert page.of("th")[0] == "<b>"
    assert page.of("td") == ["a & <i>", "1, 2.5", "1,234,567", "0.333333", "True"]


def test_an_empty_table_keeps_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Sweep(("x", "y"), ())
    assert empty.to_csv() == "x,y,unit\n"
    assert list(empty.to_pandas().columns) == Page(empty._repr_html_()).of("th") == ["x", "y"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with refusal("not-installed", "pip install pandas"):
        empty.to_pandas()


def test_columns_are_those_of_any_row() -> None:
    class Uneven(Tabular):
        def to_rows(self) -> list[dict[str, Any]]:
            return [{"a": 1}, {"b": 2}]

    assert Uneven().to_csv() == "a,b\n1,\n,2\n"
    assert Page(Uneven()._repr_html_()).of("caption") == ["Uneven: 2 rows"]
