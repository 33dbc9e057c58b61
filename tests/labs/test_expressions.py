"""Test the expressions in rules and sentences about an answer: what they compute, and which ones are refused."""

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

from hybridlab.course.checking.expressions import Table, evaluated, filled, mistake_behind, parsed
from hybridlab.course.checking.questions import Number, Question
from hybridlab.course.labs.lab10.eager import makespans, warmed_up

NAMES = {"value": 3.0, "several": [3.0, 1.0, 3.0], "texts": ["one", "two"]}


@in_turn(
    "text, wanted",
    [
        ("value * 2 - 1 / 4", 5.75), ("-value", -3.0), ("value > 2 and value < 3", False), ("value == 3 or value > 9", True),
        ("value in several", True), ("value not in several", False), ("several[1]", 1.0), ("texts[0 if value > 2 else 1]", "one"),
        ("min(several)", 1.0), ("max(value, 7)", 7), ("sum(several)", 7.0), ("len(distinct(several))", 2), ("count(several, 3)", 2),
        ("index([1 > 2, 2 > 1], True)", 1), ("without(several, [3])", [1.0]), ("several + [4]", [3.0, 1.0, 3.0, 4]),
        ("abs(2 - value)", 1.0), ("+value // -2", -2.0), ("-value % 2", 1.0),
        ("near(several, [3, 1, 3.5], 0.5)", True), ("near(several, [3, 1, 3.6], 0.5)", False),
        ("counted(value, 'microbatch')", "3 microbatches"),
        ("value > 2 or missing", True), ("value < 2 and missing", False),
    ],
)  # fmt: skip
def test_an_expression_is_a_part_of_python(text: str, wanted: Any) -> None:
    assert evaluated(parsed(text), NAMES) == wanted


@in_turn(
    "text, code",
    [
        ("value <", "no-expression"), ("", "no-expression"), ("value.real", "unknown-operation"), ("lambda: 3", "unknown-operation"),
        ("[x for x in value]", "unknown-operation"), ("value[1:]", "unknown-operation"), ("1 < value < 3", "unknown-operation"),
        ("round(value, ndigits=2)", "unknown-operation"), ("__import__('os').system('x')", "unknown-operation"),
        ("name(value)", "unknown-operation"),
    ],
)  # fmt: skip
def test_the_rest_of_python_is_refused(text: str, code: str) -> None:
    with refusal(code):
        parsed(text)


@in_turn("sentence", ["a { alone", "a } alone", "{value:x}", "{value:>9}", "{}", "{{value}}"])
def test_a_field_that_a_page_cannot_write_is_refused(sentence: str) -> None:
    with refusal("no-field"):
        filled(sentence, NAMES)


@in_turn(
    "fields, code",
    [
        ({"hint": "not {valu}"}, "unknown-name"), ({"hint": lambda value: "no"}, "not-text"), ({"hint": "{open(value)}"}, "unknown-name"),
        ({"mistakes": [(lambda value: True, "a", "b")]}, "not-text"), ({"mistakes": [("value < most", "a", "b")]}, "unknown-name"),
        ({"mistakes": [(3, "a", lambda value: "b")]}, "not-text"), ({"mistakes": [(3, 4, "b")]}, "not-text"),
        ({"mistakes": 3}, "not-a-list"), ({"mistakes": [(3, "a")]}, "wrong-type"), ({"mistakes": [3]}, "wrong-type"),
        ({"mistakes": [(3, "a", "{least}")], "given": {"most": 3}}, "unknown-name"),
    ],
)  # fmt: skip
def test_a_number_refuses_what_a_page_cannot_know(fields: dict[str, Any], code: str) -> None:
    with refusal(code):
        Number(**{"what": "a number", "truth": 3, "hint": "no", **fields})


def test_a_question_refuses_a_name_that_it_does_not_give() -> None:
    with refusal("unknown-name", "truth"):
        Question("give it", [Number("a number", 3, "no")], "right", [("value == truth", "a", "b")])


def test_a_rule_gets_the_place_of_the_first_wrong_number() -> None:
    number = Number(
        "time of a device", [1, 2, 3], "device {place} does not take {value[place]:g} ms but {truth[place] + extra}", given={"extra": 1}
    )
    for values, sentence in (
        ([1, 2, 4], "device 2 does not take 4 ms but 4"),
        ([0, 2, 4], "device 0 does not take 0 ms but 2"),
        ([1 + 1e-12, 5, 3], "device 1 does not take 5 ms but 3"),
    ):
        feedback = number.check(number.read(values))
        assert feedback is not None
        assert feedback.messages == (sentence,)


def test_a_wrong_value_comes_before_a_rule_and_the_nearest_before_others() -> None:
    mistakes: list[Any] = [("value > 0", "rule", "a"), (3.4, "far", "b"), (3.1, "near", "c")]
    assert mistake_behind(3, mistakes, lambda value, wanted: abs(np.subtract(value, wanted)) < 0.5) == ("near", "c")
    assert mistake_behind(9, mistakes) == ("rule", "a")
    assert mistake_behind(-9, mistakes) is None


def test_a_table_gives_a_page_all_its_values() -> None:
    table = Table(lambda rows: [10 * one + other for one, other in rows], [(0, 1), (0, 3), (1, 1), (1, 3)])
    assert table.values() == [{"1": 1, "3": 3}, {"1": 11, "3": 13}]
    assert evaluated(parsed("both(1, value)"), {"both": table, "value": 3.0}) == 13


@examples(80)
@given(st.data())
def test_rows_of_warm_ups_are_timed_as_the_simulator_times_them(data: st.DataObject) -> None:
    devices, microbatches = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9))
    times = [data.draw(st.integers(0, 40)) / 2 for _ in range(3)]
    falling = [row[::-1] for row in combinations_with_replacement(range(microbatches + 1), devices)]
    rows = data.draw(st.lists(st.sampled_from(falling), min_size=1, max_size=4))
    wanted = [float(warmed_up(tuple(row), microbatches, *times).makespan) for row in rows]
    assert makespans(rows, microbatches, *times).tolist() == pytest.approx(wanted)
