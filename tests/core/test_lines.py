"""Test how the rows of a sweep become lines: which lines there are, their names, and which choices are left."""

from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from sweep_tables import DEVICES, LATENCIES, NAMES, bubble_ratio, is_refused, some_table, table

from hybridlab import REGISTRY
from hybridlab.palette import MOST_LINES, line_style
from hybridlab.sweep.lines import lines_of


def test_every_row_stands_in_its_line() -> None:
    found = lines_of(some_table(), "devices", ["bubble_ratio"])
    assert (found.places, list(found.names), dict(found.choices)) == (DEVICES, NAMES, {"p2p": LATENCIES})
    for choice, p2p in enumerate(LATENCIES):
        for line in range(len(NAMES)):
            for place, devices in enumerate(DEVICES):
                value = found.at[(choice,), line, place]["bubble_ratio"]
                assert value == (None if is_refused(line, devices) else pytest.approx(bubble_ratio(line, devices, p2p), rel=1e-8))


def grid(**columns: list[Any]) -> Any:
    return table((*columns, "makespan"), [(*row, place) for place, row in enumerate(zip(*columns.values(), strict=True))])


@in_turn(
    "columns, x, choices",
    [
        ({"devices": [1, 2, 4], "microbatches": [2, 4, 8]}, "devices", []),
        ({"devices": [1, 1, 2, 2], "p2p": [0, 4, 0, 4]}, "devices", ["p2p"]),
        ({"a": [1, 1, 2, 2], "b": [5, 5, 7, 7], "c": [0, 1, 0, 1]}, "c", ["a"]),  # a determines b and vice versa; only a stays
        ({"fine": [1, 2, 3, 4], "x": [1, 2, 1, 2], "coarse": [0, 0, 1, 1]}, "x", ["coarse"]),  # fewer values make the better control
        ({"x": [1, 2, 1, 2], "c": [0, 0, 1, 1], "d": [3, 3, 3, 3]}, "x", ["c"]),
        ({"x": [1, 2], "times": [[1, 2], [2, 3]]}, "x", []),
        ({"x": [0.1 + 0.2, 0.6], "same": [0.3, 0.6]}, "x", []),
        ({"x": [1, 2, 1, 2], "on": [True, True, False, False]}, "x", ["on"]),
    ],
)
def test_a_choice_is_what_varies_and_nothing_else_fixes(columns: dict[str, list[Any]], x: str, choices: list[str]) -> None:
    found = lines_of(grid(**columns), x, ["makespan"])
    assert list(found.choices) == choices
    assert len(found.at) == len(next(iter(columns.values())))


def test_a_column_that_is_asked_for_takes_the_place_of_one_that_it_fixes() -> None:
    made = grid(x=[1, 2, 1, 2], devices=[2, 2, 4, 4], microbatches=[4, 4, 8, 8])
    assert dict(lines_of(made, "x", ["makespan"]).choices) == {"devices": (2, 4)}
    assert dict(lines_of(made, "x", ["makespan"], keep="microbatches").choices) == {"microbatches": (4, 8)}


def test_numbers_stand_in_order_and_numpy_values_are_values() -> None:
    found = lines_of(grid(x=[np.int64(8), np.float64(2.0), 4]), "x", ["makespan"])
    assert found.places == (2, 4, 8)
    assert [type(place) for place in found.places] == [int] * 3
    assert found.names == ("all rows",)


@in_turn("name", REGISTRY)
def test_a_line_has_the_title_of_its_schedule_and_its_chunks_where_it_has_several(name: str) -> None:
    family = REGISTRY[name]
    found = lines_of(grid(schedule=[name], chunks=[family.fewest_chunks], x=[1]), "x", ["makespan"])
    assert found.names == (f"{family.title}, {family.fewest_chunks} chunks" if family.chunk_step else family.title,)


@in_turn(
    "columns, lines, names",
    [
        ({"devices": [2, 1]}, "devices", ("1 device", "2 devices")),
        ({"schedule": ["gpipe", "gpipe"], "chunks": [1, 2]}, None, ("GPipe", "GPipe, 2 chunks")),
        ({"schedule": ["mine", "gpipe"]}, None, ("mine", "GPipe")),
        ({"schedule": ["1f1b"] * 2, "p2p": [0.5, 4]}, ("schedule", "p2p"), ("1F1B, T_C 0.5", "1F1B, T_C 4")),
        ({"on": [True, False]}, "on", ("On no", "On yes")),
        ({"schedule": ["hanayo", "hanayo"], "chunks": [2, 4]}, "chunks", ("2 chunks", "4 chunks")),
    ],
)
def test_lines_are_called_by_what_tells_them_apart(columns: dict[str, list[Any]], lines: Any, names: tuple[str, ...]) -> None:
    labels = {"p2p": "T_C"} if "p2p" in columns else None
    assert lines_of(grid(x=[1] * len(next(iter(columns.values()))), **columns), "x", ["makespan"], lines, labels).names == names


@in_turn(
    "x, quantities, lines, code, words",
    [
        ("devises", ["makespan"], None, "unknown-name", ("'devises'", "'devices'")),
        ("schedule", ["makespan"], None, "not-a-number", ("'schedule'", "'gpipe'")),
        ("forward", ["makespan"], None, "not-a-number", ("'forward'", "one value a device")),
        ("gap", ["makespan"], None, "not-a-number", ("'gap'", "None")),
        ("devices", ["gap"], None, "empty", ("'gap'",)),
        ("devices", ["schedule"], None, "not-a-number", ("'schedule'",)),
        ("devices", ["makespan"], "forward", "not-a-number", ("lines", "'forward'", "one value a device")),
        ("devices", ["makespan"], "refused", "unknown-name", ("'refused'",)),
        ("devices", ["makespan"], 3, "not-a-list", ("lines", "not 3")),
        ("devices", [], None, "empty", ("y",)),
        ("microbatches", ["makespan"], None, "ambiguous", ("microbatches 4", "schedule 'gpipe'")),
    ],
)
def test_what_cannot_be_a_line_is_refused(x: str, quantities: list[str], lines: Any, code: str, words: tuple[str, ...]) -> None:
    made = table(
        ("schedule", "devices", "microbatches", "forward", "gap", "makespan", "refused"),
        [("gpipe", 2, 4, [1, 2], None, 1, None), ("gpipe", 2, 4, [2, 1], None, 2, None)],
    )
    with refusal(code, *words):
        lines_of(made, x, quantities, lines)


def test_the_value_that_is_no_number_is_the_first_of_its_column() -> None:
    """The first in the order of the rows is named, so the sentence is the same in every run."""
    names = ["zb-h1", *sorted(set(REGISTRY) - {"zb-h1"})]
    with refusal("not-a-number", "it holds 'zb-h1'"):
        lines_of(grid(schedule=names), "schedule", ["makespan"])


@in_turn(
    "value, code",
    [
        (float("nan"), "not-finite"),
        (float("inf"), "not-finite"),
        (1e200, "too-large"),
        ({}, "not-a-number"),
        (b"x", "not-a-number"),
        (1j, "not-a-number"),
    ],
)
def test_cells_that_cannot_be_drawn_are_refused(value: Any, code: str) -> None:
    with refusal(code, "'p2p'", value):
        lines_of(grid(x=[1, 2], p2p=[0, value]), "x", ["makespan"])


@in_turn("sweep", [None, 3, [], {"rows": []}])
def test_what_is_no_table_is_refused(sweep: Any) -> None:
    with refusal("wrong-type", "sweep", sweep):
        lines_of(sweep, "x", ["makespan"])


def test_a_table_without_rows_is_refused() -> None:
    with refusal("empty", "at least one row", "<Sweep of 0 rows"):
        lines_of(table(("x", "makespan"), []), "x", ["makespan"])


def test_more_lines_than_can_be_told_apart_are_refused() -> None:
    many = MOST_LINES + 1
    with refusal("too-large", f"{many} lines", MOST_LINES):
        lines_of(grid(x=[1] * many, p2p=list(range(many))), "x", ["makespan"], "p2p")


def test_every_two_lines_differ_without_colour_or_in_colour_and_mark() -> None:
    styles = [line_style(place) for place in range(MOST_LINES)]
    looks = {(style.colour, style.dash, style.marker) for style in styles}
    assert len(looks) == MOST_LINES
    for one in styles:
        alike = [each for each in styles if each.colour == one.colour and each.marker == one.marker]
        assert len(alike) == 1
