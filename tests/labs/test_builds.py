"""Functions of students: called on many cases with copies of the arguments, and told what is wrong with the smallest case that fails."""

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from solutions import solutions

from hybridlab import HybridLabError
from hybridlab.course.checking.answers import plain_values, same
from hybridlab.course.checking.builds import PUBLIC_SEED, Build, Case, KnownMistake, order_of_calls
from hybridlab.course.checking.checking import right, wrong
from hybridlab.course.tasks import TASKS, Feedback, check

BUILDS = {key: known.instance(None).data for key, known in TASKS.items() if known.kind == "build"}
each_build = pytest.mark.parametrize("key", BUILDS)
all_builds = in_turn("key", BUILDS)


class AlwaysEqual:
    """An object that equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


def doubled(values: Any) -> Any:
    return [2 * value for value in values]


def lists(rng: np.random.Generator) -> Iterator[Case]:
    for size in range(5):
        yield Case((rng.integers(2, 9, size).tolist(),), f"a list of {size}")


def twice(judge: Callable[..., Feedback] | None = None, **fields: Any) -> Build:
    """A build that asks for a function which doubles every number of a list."""

    def each_twice(result: Any, values: list[int]) -> Feedback:
        if len(result) != len(values):
            return wrong("another-length", f"there are {len(result)} numbers")
        return right() if result == doubled(values) else wrong("not-doubled", "a number is not doubled")

    mistakes = [
        KnownMistake("squared", "these are squares", lambda values: [value**2 for value in values]),
        KnownMistake("plus-two", "these are two larger", lambda values: [value + 2 for value in values]),
        KnownMistake("unchanged", "nothing has changed", list),
        KnownMistake("nowhere", "never", lambda values: [][1:] or _refuse()),
    ]
    return Build(
        **{"signature": "twice(values)", "cases": lists, "judge": judge or each_twice, "reads": plain_values, "mistakes": mistakes}
        | {"lesson": "twice as large", "fresh": False}
        | fields
    )


def _refuse() -> Any:
    raise HybridLabError("no result", "none")


def code_of(function: Any, **fields: Any) -> str:
    return refused(function, **fields).code


def refused(function: Any, **fields: Any) -> Feedback:
    try:
        return twice(**fields).check(function)
    except HybridLabError as why:
        return wrong(why.code, str(why))


def test_a_right_function_passes_and_the_cases_are_counted() -> None:
    verdict = twice().check(doubled)
    assert (verdict.passed, verdict.messages) == (True, ("twice as large", "right in all 5 cases, from a list of 0 to a list of 4"))


def asked(seed: int) -> list[list[int]]:
    """Return the arguments with which a right function is called."""
    given: list[list[int]] = []
    assert twice().check(lambda values: given.append(values) or doubled(values), seed).passed
    return given


def test_the_public_cases_come_in_their_order() -> None:
    assert asked(PUBLIC_SEED) == [case.arguments[0] for case in lists(np.random.default_rng(PUBLIC_SEED))]


def test_hidden_cases_come_in_an_order_of_their_own_for_each_seed_and_again_in_another_order() -> None:
    orders = [tuple(len(values) for values in asked(seed)) for seed in range(1, 40)]
    assert all(sorted(order) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4] for order in orders), "fewer than eight cases are all asked again"
    assert len(set(orders)) > 30
    assert {order[0] for order in orders} == {0, 1, 2, 3, 4}
    in_the_same_order = [order for order in orders if [*dict.fromkeys(order)] == [*dict.fromkeys(order[::-1])][::-1]]
    assert len(in_the_same_order) < 10
    assert sorted(asked(7), key=len)[::2] == [case.arguments[0] for case in lists(np.random.default_rng(7))]


def test_a_quarter_of_many_hidden_cases_is_asked_again() -> None:
    for cases, calls in ((3, 6), (8, 16), (20, 28), (100, 125)):
        order = order_of_calls(cases, seed=5)
        assert (len(order), set(order)) == (calls, set(range(cases)))


def replaying(seed: int) -> Callable[[Any], Any]:
    """Return a function that counts its calls, and returns the results of the public cases in their order."""
    results = [doubled(case.arguments[0]) for case in lists(np.random.default_rng(PUBLIC_SEED))]
    calls: list[Any] = []
    return lambda values: calls.append(1) or results[(len(calls) - 1) % len(results)]


def test_a_function_that_counts_its_calls_passes_the_public_cases_alone() -> None:
    assert twice().check(replaying(PUBLIC_SEED)).passed
    assert not [seed for seed in range(1, 20) if twice().check(replaying(seed), seed).passed]


def test_a_function_that_remembers_what_it_was_asked_fails_the_hidden_cases_only_when_they_come_again() -> None:
    def remembering(values: Any) -> Any:
        before = tuple(values) in seen
        seen.add(tuple(values))
        return [] if before and len(values) == 3 else doubled(values)

    seen: set[tuple[int, ...]] = set()
    assert twice().check(remembering).passed
    seen.clear()
    verdict = twice().check(remembering, 4)
    assert (verdict.code, verdict.failed) == ("keeps-its-state", ("keeps-its-state",))
    assert verdict.messages[0].startswith("when it is called again for a list of 3, after the call for a list of ")


def test_the_smallest_hidden_case_that_fails_is_told_in_whatever_order_they_come() -> None:
    for seed in range(1, 20):
        verdict = twice().check(lambda values: doubled(values)[:1], seed)
        assert verdict.messages == ("for a list of 2: there are 1 numbers",)


def test_the_first_case_that_fails_is_told_with_its_inputs() -> None:
    verdict = twice().check(lambda values: doubled(values)[:2])
    assert (verdict.code, verdict.messages) == ("another-length", ("for a list of 3: there are 2 numbers",))


@in_turn(
    "code, function",
    [
        ("squared", lambda values: [value * value for value in values]),
        ("plus-two", lambda values: [value + 2 for value in values]),
        ("unchanged", lambda values: list(values)),
        ("not-doubled", lambda values: [0 for _ in values]),
        ("returns-nothing", lambda values: print(end="")),
        ("wrong-type", lambda values: AlwaysEqual()),
        ("wrong-type", lambda values: [AlwaysEqual()] * len(values)),
        ("raises", lambda values: [values[9]]),
        ("raises", lambda values: sys.exit()),
        ("raises", lambda values: (_ for _ in [1]).throw(RecursionError)),
        ("signature", lambda: [1]),
        ("signature", lambda values, more: [1]),
        ("changes-its-argument", lambda values: values.append(1)),
        ("not-a-function", 7),
        ("not-a-function", "twice"),
        ("not-a-function", [0, 4]),
    ],
)
def test_a_wrong_function_gets_the_code_of_its_mistake(code: str, function: Any) -> None:
    assert code_of(function) == code


TRIPLED = KnownMistake("tripled", "three times", lambda values: [3 * value for value in values])
FOUR_MORE = KnownMistake("plus-four", "four larger", lambda values: [value + 4 for value in values])


def in_cases(*numbers: int) -> Callable[[Any], list[Case]]:
    return lambda rng: [Case(([number],), f"a {number}", refused=number < 0) for number in numbers]


@in_turn(
    "code, numbers, function",
    [
        ("tripled", (2, 3, 4), lambda values: [3 * value for value in values]),  # where both agree in the first case
        ("plus-four", (2, 3, 4), lambda values: [value + 4 for value in values]),
        ("not-doubled", (2, 3, 1), lambda values: [3 * values[0] if values[0] > 1 else 7]),  # one of three failed cases is another one
        ("not-doubled", (2, 3, 1), lambda values: [3 * values[0] if values[0] > 1 else 2]),  # a case in which the mistake fails passes
        ("not-doubled", (2, 3, 1), lambda values: [3 * values[0] if values[0] > 1 else 1 // 0]),  # one has no result
        ("tripled", (2, -1, 3), lambda values: [3 * value for value in values]),  # no program of a mistake refuses arguments
        ("not-refused", (-1, 2), lambda values: [3 * value for value in values]),
    ],
)
def test_a_mistake_is_named_only_if_it_explains_every_failed_case(code: str, numbers: tuple[int, ...], function: Any) -> None:
    verdict = refused(function, cases=in_cases(*numbers), mistakes=[TRIPLED, FOUR_MORE])
    assert verdict.code == code
    assert verdict.messages[0].startswith(f"for a {numbers[0]}: ")


@in_turn(
    "function",
    [
        doubled, functools.partial(doubled), functools.partial(map, lambda value: 2 * value), lambda values: tuple(doubled(values)),
        lambda values: (2 * value for value in values),
    ],
)  # fmt: skip
def test_a_right_function_passes_in_every_form(function: Any) -> None:
    assert twice().check(function).passed


def test_an_object_that_can_be_called_passes() -> None:
    class Twice:
        def __call__(self, values: Any) -> Any:
            return doubled(values)

    assert twice().check(Twice()).passed


def test_the_line_that_raises_is_shown() -> None:
    def late(values: Any) -> Any:
        ends = list(values)
        return ends[2] if len(values) == 2 else doubled(values)

    (message,) = refused(late).messages
    assert message.startswith("for a list of 2: line ")
    assert "return ends[2]" in message
    assert "IndexError: list index out of range" in message


def test_the_line_of_a_helper_in_the_same_file_is_shown() -> None:
    message = refused(lambda values: _refuse()).messages[0]
    assert 'of your cell, `raise HybridLabError("no result", "none")`, raises' in message, "the innermost line, and not the lambda"


def test_a_function_that_keeps_what_earlier_calls_did_is_told_so() -> None:
    kept: list[int] = []

    def adding(values: Any) -> Any:
        kept.extend(doubled(values))
        return list(kept)

    verdict = refused(adding)
    assert verdict.code == "keeps-its-state"
    (message,) = verdict.messages
    assert message.startswith("when it is called again for a list of 0, after the call for a list of 2, your function returns something")


def test_a_loop_can_be_interrupted_and_the_case_is_named() -> None:
    def endless(values: Any) -> Any:
        if len(values) == 3:
            raise KeyboardInterrupt  # what the stop button of a notebook raises in the running line
        return doubled(values)

    verdict = refused(endless)
    assert verdict.code == "interrupted"
    assert "for a list of 3: " in verdict.messages[0]


def test_a_wrong_function_that_never_ends_in_a_later_case_is_stopped() -> None:
    def endless(values: Any) -> Any:
        while len(values) > 2:
            pass
        return values

    verdict = refused(endless)
    assert (verdict.code, verdict.failed) == ("not-doubled", ("not-doubled", "not-doubled", "too-slow"))
    assert verdict.messages[0].startswith("for a list of 1: ")


def rows(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((rng.normal(size=(2, 3)),), "2 ranks")


def arrays(function: Callable[[Any], Any]) -> str:
    return code_of(function, cases=rows, judge=lambda result, values: right(), reads=lambda result: result, mistakes=(), fresh=True)


@in_turn(
    "code, function",
    [
        ("passed", lambda values: [row.copy() for row in values]),
        ("aliased", lambda values: values),
        ("aliased", lambda values: list(values)),
        ("aliased", lambda values: {"rows": (values[0, :1],)}),
        ("aliased-ranks", lambda values: [np.zeros(3)] * 2),
        ("aliased-ranks", lambda values: [(rank := np.zeros(9)), np.zeros(3), rank[:1].copy(), rank[6:]]),
        ("passed", lambda values: [*np.zeros((4, 2)).T, np.zeros(0)]),
        ("changes-its-argument", lambda values: np.negative(values, out=values)),
    ],
)
def test_arrays_have_memory_of_their_own(code: str, function: Any) -> None:
    assert arrays(function) == code


def test_changed_nan_is_a_change_and_kept_nan_is_none() -> None:
    nan = [Case((np.array([np.nan, 1.0]),), "a nan")]
    common: dict[str, Any] = {
        "cases": lambda rng: nan,
        "judge": lambda result, values: right(),
        "mistakes": (),
        "reads": lambda result: result,
    }
    assert code_of(lambda values: values.copy(), **common) == "passed"
    assert code_of(lambda values: np.nan_to_num(values, copy=False), **common) == "changes-its-argument"


def test_what_a_function_prints_is_shown_once_for_each_case(capsys: pytest.CaptureFixture[str]) -> None:
    def talks(values: Any) -> Any:
        print(f"I got {len(values)}")
        return [value**2 for value in values]

    assert refused(talks).code == "squared"
    assert capsys.readouterr().out == "I got 0\nI got 1\n", "up to the first case that fails"


def test_the_judge_gets_the_arguments_as_they_were_made() -> None:
    def spoils(result: Any, values: list[int]) -> Feedback:
        values.clear()
        return right()

    assert twice(spoils).check(doubled).passed


def test_the_drawing_of_a_judge_is_kept() -> None:
    assert twice(lambda result, values: Feedback(True, ("drawn",))).check(doubled).messages[0] == "twice as large"


@in_turn(
    "first, second, equal",
    [
        (np.zeros(2), np.zeros(2), True), (np.zeros(2), np.zeros(3), False), (np.zeros(2), np.zeros(2, np.float32), False),
        (np.zeros(2), [0.0, 0.0], False), (np.array([1, 2]), np.array([1, 3]), False), (np.array([np.nan]), np.array([np.nan]), True),
        ({"a": 1.0}, {"a": 1.0 + 1e-14}, True), ({"a": 1}, {"b": 1}, False), ([1, 2], (1, 2), True), ("1F0", "1F0", True), (1.0, 2, False),
        (1.0, "1", False), (None, None, True),
        ({"a": 1}, {"a": 1, "b": 1}, False),
    ],
)  # fmt: skip
def test_results_are_compared_by_value(first: Any, second: Any, equal: bool) -> None:
    assert same(first, second) == equal == same(second, first)


def test_a_case_can_call_a_function_that_takes_functions() -> None:
    def with_a_function(call: Callable[..., Any], values: list[int]) -> Any:
        return call(values, lambda value: 2 * value)

    cases = [Case(case.arguments, case.words, run=with_a_function) for case in lists(np.random.default_rng(0))]
    common: dict[str, Any] = {"cases": lambda rng: cases, "signature": "mapped(values, each)"}
    assert code_of(lambda values, each: [each(value) for value in values], **common) == "passed"
    assert code_of(lambda values, each: [value * value for value in values], **common) == "squared"
    assert code_of(lambda values, each: values.append(1), **common) == "changes-its-argument"
    assert code_of(lambda values: values, **common) == "signature"


@all_builds
def test_cases_come_from_the_seed(key: str) -> None:
    first, again = BUILDS[key].public_cases, list(BUILDS[key].cases(np.random.default_rng(0)))
    assert len(first) >= 10
    assert same([case.arguments for case in first], [case.arguments for case in again])
    assert all(case.words for case in first)


@all_builds
def test_a_build_knows_five_mistakes_and_can_be_read_by_a_grader(key: str) -> None:
    build, known = BUILDS[key], TASKS[key]
    assert len({mistake.code for mistake in build.mistakes}) >= 5
    assert known.points > 1
    assert f"{build.name}(" in known.prompt or build.name in known.prompt


@pytest.mark.slow
@each_build
def test_the_worked_solution_passes_the_cases_of_many_seeds(key: str) -> None:
    assert [seed for seed in range(1, 5) if not BUILDS[key].check(solutions()[key], seed).passed] == []


@pytest.mark.slow
@each_build
def test_every_known_mistake_is_refused_as_a_program(key: str) -> None:
    """The first failed case of each is enough: what is said about all its cases is tested with the listed wrong answers."""
    build = BUILDS[key]
    assert [mistake.code for mistake in build.mistakes if not any(build.codes(_with_signature(mistake.result)))] == []


def _with_signature(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: function(*arguments)


@all_builds
def test_a_function_without_a_body_is_nothing_handed_in(key: str) -> None:
    def dots(*arguments: Any) -> Any: ...

    def described(*arguments: Any) -> Any:
        """Do it later."""

    def passing(*arguments: Any) -> Any:
        pass

    assert {check(key, function).code for function in (dots, described, passing)} == {"nothing-handed-in"}
    assert "nothing-handed-in" not in {check(key, function).code for function in (lambda *arguments: True, lambda *arguments: 7)}


@all_builds
def test_functions_that_cheat_do_not_pass(key: str) -> None:
    cheats = [
        lambda *arguments: AlwaysEqual(),
        lambda *arguments: arguments,
        lambda *arguments: check(key, "x"),
        max,
        print,
        check,
        object,
        dict,
    ]
    feedback = {place: check(key, cheat) for place, cheat in enumerate(cheats)}
    assert not {place: verdict for place, verdict in feedback.items() if verdict.passed or not verdict.messages}
