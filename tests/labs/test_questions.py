"""Tasks with numbers as data: decimals, known mistakes, hints, and the same task with numbers drawn from a seed."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from instances import instances_of

from hybridlab.course.checking.answers import Numbers, plain_values
from hybridlab.course.checking.checking import wrong
from hybridlab.course.checking.expressions import Mistake
from hybridlab.course.checking.questions import Number, Question
from hybridlab.course.tasks import TASKS, check

NUMBER_TASKS = [key for key, known in TASKS.items() if known.kind == "number"]
each_number_task = in_turn("key", NUMBER_TASKS)


def question_of(key: str, seed: int | None) -> Question:
    data = TASKS[key].instance(seed).data
    assert isinstance(data, Question)
    return data


def truth_of(question: Question) -> Any:
    """The right answer to a question."""
    truths = [number.truth for number in question.numbers]
    return truths[0] if len(truths) == 1 else truths


def number(**fields: Any) -> Question:
    """A question for one number, with these fields in place of plain ones."""
    return Question("give it", [Number("a ratio", **{"truth": 5 / 7, "hint": "not {value}", "decimals": 3, **fields})], "right")


def test_there_are_number_tasks() -> None:
    assert len(NUMBER_TASKS) >= 1


@each_number_task
def test_a_right_answer_rounded_as_the_task_asks_passes(key: str) -> None:
    for seed in [None, *instances_of(key)]:
        question = question_of(key, seed)
        values = [n.truth if n.relative else np.round(n.truth, n.decimals).tolist() for n in question.numbers]
        assert check(key, values[0] if len(values) == 1 else values, seed=seed).passed, seed


@each_number_task
def test_a_task_whose_answer_needs_rounding_says_how_many_decimals(key: str) -> None:
    for seed in [None, *instances_of(key)]:
        question = question_of(key, seed)
        rounded = [n for n in question.numbers if not n.relative and n.tolerance(n.truth) > 1e-3 * 10.0**-n.decimals]
        assert not rounded or "decimal" in question.prompt or "whole" in question.prompt, (seed, question.prompt)


@pytest.mark.slow
@each_number_task
def test_a_known_mistake_of_every_seed_gets_the_code_of_a_mistake(key: str) -> None:
    for seed in [None, *instances_of(key)]:
        question = question_of(key, seed)
        if len(question.numbers) > 1:
            continue
        codes = {code for _, code, _ in question.numbers[0].mistakes}
        for value, code, _ in question.numbers[0].mistakes:
            if isinstance(value, str) or question.numbers[0].meets(value, question.numbers[0].truth):
                continue  # with these sizes the mistake gives the right number
            verdict = check(key, value, seed=seed)
            assert verdict.code in codes or verdict.code not in {"passed", question.numbers[0].code}, (seed, code, verdict)


@each_number_task
def test_the_page_has_the_instance_without_a_seed(key: str) -> None:
    assert TASKS[key].prompt == question_of(key, None).prompt
    assert question_of(key, 5).prompt == question_of(key, 5).prompt


def test_most_number_tasks_give_students_other_numbers() -> None:
    other = [key for key in NUMBER_TASKS if len({instance.prompt for instance in instances_of(key).values()}) > 3]
    assert 2 * len(other) >= len(NUMBER_TASKS), set(NUMBER_TASKS) - set(other)


@in_turn(
    "value, code",
    [
        (0.714, "passed"), (5 / 7, "passed"), (0.71429, "passed"), (np.float32(0.714), "passed"), (Fraction(5, 7), "passed"),
        (0.72, "wrong-value"), (0.715, "wrong-value"), (0.7137, "wrong-value"), (0.71, "too-few-decimals"), (0.7, "too-few-decimals"),
        (1, "wrong-value"), (0.7146, "wrong-decimal"), (0.7145, "passed"), (0.7143, "passed"), (0.7138, "passed"),
    ],
)  # fmt: skip
def test_three_decimals_are_three_decimals(value: Any, code: str) -> None:
    assert number().judge(plain_values(value)).code == code


@in_turn("value, passed", [(0.062, True), (0.063, True), (0.0625, True), (0.0623, True), (0.0627, True), (0.0619, False), (0.0631, False)])
def test_a_right_value_in_the_middle_may_be_rounded_up_or_down(value: float, passed: bool) -> None:
    assert number(truth=1 / 16).judge(value).passed == passed


def test_a_list_is_right_only_if_each_number_is_right_in_the_last_decimal() -> None:
    both = number(truth=[5 / 7, 1 / 2])
    assert both.judge([0.7143, 0.5]).passed
    assert both.judge([0.7146, 0.5]) == wrong(
        "wrong-decimal", "0.7146, 0.5 is close, but rounded to 3 decimals it is not right: compute with all digits, and round at the end"
    )


@in_turn("value, passed", [(120, True), (120.0, True), (120.4, False), (119.999, False), (120 + 1e-8, True)])
def test_a_value_that_needs_no_rounding_is_met_exactly(value: float, passed: bool) -> None:
    assert number(truth=120, decimals=0).judge(value).passed == passed


def test_an_estimate_may_differ_by_a_share() -> None:
    question = number(truth=4e-4, relative=0.06)
    assert question.judge(4.2e-4).passed
    assert not question.judge(4.25e-4).passed  # 6 % of the right value, not of the answer


@in_turn(
    "value, code, words",
    [
        (2.0, "two", "2 is two"),
        (2.4, "large", "2.4 is large"),
        (0.5, "wrong-value", "not 0.5"),
    ],
)
def test_a_mistake_is_a_value_or_a_rule(value: float, code: str, words: str) -> None:
    mistakes: list[Mistake] = [("value > 1", "large", "{value} is large"), (2, "two", "{value:g} is two")]
    verdict = number(mistakes=mistakes).judge(value)
    assert (verdict.code, words in verdict.messages[0]) == (code, True)


def test_of_several_numbers_the_first_wrong_one_is_named() -> None:
    first, second = Number("a stage", 3, "not stage {value}", code="stage"), Number("a replica", 4, "not replica {value}", code="replica")
    question = Question("give both", [first, second], "right", [((4, 3), "swapped", "swap them")])
    verdicts: dict[str, list[Numbers]] = {"passed": [3, 4], "stage": [1, 4], "replica": [3, 1], "swapped": [4, 3]}
    assert {code: question.judge(values).code for code, values in verdicts.items()} == {code: code for code in verdicts}
    with refusal("wrong-length", "2 numbers"):
        question.judge([3, 4, 5])


@in_turn(
    "answer, code",
    [
        ([[7, 2], [4]], "passed"), (({2, 7}, {4}), "passed"), ((np.array([2, 7]), range(4, 5)), "passed"), ([[4], [2, 7]], "swapped"),
        ([[2], [4]], "first"), ([[2, 7, 7], [4]], "first"), ([[2, 7], [4, 5]], "second"), ([[4, 5], [4]], "first"),
        ([2, 7, 4], "wrong-shape"),
    ],
)  # fmt: skip
def test_lists_whose_order_does_not_matter_are_judged_one_by_one(answer: Any, code: str) -> None:
    first, second = (Number("rank", ranks, "not {value}", code=c, ordered=False) for ranks, c in (([2, 7], "first"), ([4], "second")))
    question = Question("give both", [first, second], "right", [("value == [[4], [2, 7]]", "swapped", "swap them")])
    if code == "wrong-shape":
        with refusal(code, "2 lists"):
            question.judge(answer)
    else:
        assert question.judge(plain_values(answer)).code == code


@in_turn("answer, code", [(2, "not-a-list"), ([], "not-a-list"), (["2"], "not-a-number")])
def test_a_list_of_any_length_has_numbers(answer: Any, code: str) -> None:
    with refusal(code, "rank"):
        Number("rank", [2, 7], "no", ordered=False).read(answer)


def test_a_label_stands_in_front_of_each_sentence_about_its_number() -> None:
    mistakes: list[Mistake] = [(3, "inverted", "divide the other way round")]
    one, two = (Number("ratio", truth, "not {value}", mistakes, f"model {name}: ", 3) for name, truth in (("a", 1 / 3), ("b", 2 / 3)))
    question = Question("give both", [one, two], "right")
    for answer, code, sentence in [
        ([3, 0.667], "inverted", "model a: divide the other way round"),
        ([0.333, 3], "inverted", "model b: divide the other way round"),
        ([0.333, 0.5], "wrong-value", "model b: not 0.5"),
        ([0.333, 0.67], "too-few-decimals", "model b: 0.67 is right to 2 decimals, but the task asks for 3 decimals"),
    ]:
        assert question.judge(answer) == wrong(code, sentence)
    with refusal("wrong-length", "each the ratio, but"):
        question.judge([0.333])


def test_a_set_is_refused_where_the_order_matters() -> None:
    verdict = check("lab01.t1", {4, 3})
    assert (verdict.passed, verdict.code) == (False, "no-order")


@in_turn("decimals, example", [(0, "such as 17,"), (3, "such as 12.5,")])
def test_the_example_of_a_number_has_decimals_only_if_the_task_asks_for_them(decimals: int, example: str) -> None:
    with refusal("not-a-number", example):
        number(decimals=decimals).judge("text")


@in_turn("key", ["lab11.t2", "lab13.t2"])
def test_the_example_of_a_share_is_a_share(key: str) -> None:
    assert "a number such as 0.25, not 'x'" in check(key, ["x", "x"]).messages[0]


@in_turn("seed", [-1, 1.5, "7", True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with refusal("too-small" if seed == -1 else "not-a-whole-number", "seed"):
        check("lab02.t2", 120, seed=seed)
