"""Cases of a build that must be refused, cases that call the function several times, and casts of NaN."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from cases import in_turn

from hybridlab.course.checking.builds import Build, Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong


def judge(result: Any, value: float) -> Feedback:
    return right() if result == 2 * value else wrong("another-value", f"{result} is not {2 * value}")


def build(*cases: Case) -> Build:
    return Build(
        "double(value)",
        lambda rng: cases,
        judge,
        lambda result: result,
        [KnownMistake("same", "not doubled", lambda value: value)],
        "",
        False,
    )


NAN = Case((float("nan"),), "NaN", refused=True)


def double(value: float) -> float:
    if value != value:
        raise ValueError("not a number")
    return 2 * value


def test_a_bad_argument_must_be_refused_with_any_error() -> None:
    assert build(Case((1.0,), "1"), NAN).check(double).passed
    feedback = build(Case((1.0,), "1"), NAN).check(lambda value: 2 * value)
    assert (feedback.code, feedback.messages[0].partition(":")[0]) == ("not-refused", "for NaN")


def test_a_function_that_cannot_be_called_has_refused_nothing() -> None:
    assert build(NAN).check(lambda: 2).code == "signature"


def interrupted(value: float) -> float:
    raise KeyboardInterrupt


def test_an_interrupt_is_no_refusal() -> None:
    assert build(NAN).check(interrupted).code == "interrupted"


def test_a_known_mistake_is_not_named_for_a_bad_argument_and_not_told_apart_by_one() -> None:
    assert build(NAN).check(lambda value: value).code == "not-refused"
    assert build(Case((1.0,), "1"), NAN, Case((2.0,), "2")).check(lambda value: value).code == "same"


def twice(function: Callable[[float], float], value: float) -> float:
    return function(function(value)) / 2


def test_a_case_can_call_the_function_several_times() -> None:
    calls: list[float] = []

    def double_at_first(value: float) -> float:
        calls.append(value)
        return 2 * value if len(calls) < 3 else value

    case = Case((1.0,), "two calls", run=twice)
    assert build(case).check(double).passed
    assert build(Case((1.0,), "1"), case).check(double_at_first).code == "keeps-its-state", "a single call would have passed"
    assert build(case).check(double_at_first).code == "another-value"
    assert build(case).check(lambda: 2).code == "signature"


def test_a_nan_that_is_cast_to_a_whole_number_is_an_error_with_its_line() -> None:
    def cast(value: float) -> Any:
        return np.array([value - np.inf * 0]).astype(np.int8)[0]

    with np.errstate(all="ignore"):
        assert build(Case((1.0,), "1")).check(cast).code == "another-value"
    feedback = build(Case((1.0,), "1")).check(cast)
    assert feedback.code == "raises"
    assert "astype(np.int8)" in feedback.messages[0]


@in_turn("dividing", [lambda value: np.float64(2 * value) / np.float64(1), lambda value: np.array(2 * value)])
def test_other_functions_run_as_before(dividing: Callable[[float], Any]) -> None:
    assert build(Case((1.0,), "1")).check(dividing).passed


def test_a_known_mistake_is_recognised_up_to_the_rounding_that_a_build_allows() -> None:
    mistake = KnownMistake("halved", "this is half of it", lambda value: np.array([value / 2]))
    cases = [Case((3.0,), "3")]

    def code(within: float) -> str:
        exact = Build(
            "double(value)", lambda rng: cases, lambda *given: wrong("another-value", "no"), lambda result: result, [mistake], "", False
        )
        return replace(exact, within=within).check(lambda value: np.array([np.float32(value / 2.0000001)], float)).code

    assert (code(0.0), code(1e-6)) == ("another-value", "halved")
