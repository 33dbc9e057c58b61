"""Test how twists rename: nothing wrong is hidden, parts of a twist can be joined, and a ring is judged in the words of its own way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from lab04 import honest as lab04
from lab05 import honest as lab05
from lab07 import honest as lab07
from lab08 import honest as lab08
from lab15 import honest as lab15
from lab16 import honest as lab16
from lab17 import honest as lab17
from solutions import solutions

from hybridlab.course.checking.twists import IN_WORDS_OF_THE_PAGE, together
from hybridlab.course.labs.lab04.rings import Way
from hybridlab.course.tasks import TASKS, Feedback, Twist

HONEST = {
    **lab04.SOLUTIONS,
    **lab05.SOLUTIONS,
    **lab07.SOLUTIONS,
    **lab08.SOLUTIONS,
    **lab15.SOLUTIONS,
    **lab16.SOLUTIONS,
    **lab17.SOLUTIONS,
}


def twist_of(key: str, name: str) -> tuple[Twist, Callable[[Any], Feedback]]:
    """The twist of this name, and the judge of the task that has it."""
    twists = [twist.name for twist in TASKS[key].instance(None).data.twists]
    instance = TASKS[key].personal(twists.index(name))
    return instance.data.twist, instance.judge


def spoiling(key: str, name: str, place: int) -> Callable[..., Any]:
    """The honest solution, which also changes one of its arguments."""

    def function(*arguments: Any) -> Any:
        given = list(arguments)
        given[place] = given[place].copy()
        result = HONEST[key, name](*given)
        if isinstance(arguments[place], list):
            arguments[place].clear()
        else:
            arguments[place][:] = 1
        return result

    return function


@in_turn(
    "key, name, place",
    [
        ("lab04.t7", "backwards", 0),
        ("lab05.t1", "short-block-first", 0),
        ("lab05.t3", "unsigned", 0),
        ("lab05.t3", "peaks", 1),
        ("lab05.t3", "factors", 1),
        ("lab05.t3", "last-scale-first", 1),
        ("lab05.t6", "sent-too-much", 1),
        ("lab05.t6", "doubled-residual", 1),
        ("lab05.t6", "short-block-first", 1),
        ("lab07.t1", "last-stage-first", 0),
        ("lab07.t1", "last-microbatch-first", 3),
        ("lab08.t5", "last-device-first", 0),
        ("lab08.t5", "lists-of-names", 0),
        ("lab15.t3", "loads-data", 0),
        ("lab15.t3", "sums-and-last-device-first", 0),
        ("lab16.t4", "last-rank-first", 0),
        ("lab16.t4", "lists-of-operations", 0),
        ("lab17.t5", "lists-from-the-last", 2),
        ("lab17.t5", "running-sums", 3),
        ("lab17.t5", "pairs", 3),
        ("lab17.t5", "both-together", 3),
    ],
)
def test_a_function_that_changes_a_renamed_argument_is_found_out(key: str, name: str, place: int) -> None:
    _, judge = twist_of(key, name)
    assert judge(spoiling(key, name, place)).code == "changes-its-argument"


@in_turn("name", [name for key, name in HONEST if key == "lab05.t3"])
def test_a_renamed_decode_takes_arrays_that_cannot_be_changed(name: str) -> None:
    twist, _ = twist_of("lab05.t3", name)
    codes, scales = np.array([127, -50, 1, 127, 64], np.int8), np.array([0.02, 0.01], np.float32)
    codes.flags.writeable = scales.flags.writeable = False
    numbers = twist.standard(HONEST["lab05.t3", name])(codes, scales, 3)
    assert numbers == pytest.approx([2.54, -1, 0.02, 1.27, 0.64])


def test_results_of_the_page_in_an_iterator_are_still_wrong() -> None:
    _, judge = twist_of("lab07.t1", "last-stage-first-and-loss-last")
    assert judge(lambda orders, *others: iter(solutions()["lab07.t1"](orders[::-1], *others))).code == "exchanged"


def test_joined_twists_rename_the_last_one_first() -> None:
    def renaming(letter: str) -> Twist:
        return Twist(letter, f"there is {letter}", lambda function: lambda: f"{letter}({function()})", {letter: 1})

    both = together(renaming("a"), renaming("b"))
    assert both.standard(lambda: "x")() == "a(b(x))"
    assert (both.name, both.sentence, both.changes) == ("a-and-b", "there is a; there is b", {"a": 1, "b": 1})


@in_turn("name, way", [("backwards-two-ahead", Way(-1, 2)), ("one-behind", Way(1, -1))])
def test_a_ring_is_judged_in_the_words_of_its_own_way(name: str, way: Way) -> None:
    twist, judge = twist_of("lab04.t7", name)
    ring = HONEST["lab04.t7", name]
    other_way = judge(lab04.ring(-way.to, way.first))
    assert other_way.code == "wrong-direction"
    assert f"rank r sends to {way.receiver}" in other_way.messages[1]
    assert other_way.messages[-1] == f"in your task, {twist.sentence}"
    assert f"begins with {way.start}" in judge(lab04.ring(way.to, way.first + 1)).messages[1]
    assert judge(lambda values: (ring(values)[0] * len(values), ring(values)[1])).code == "no-division"
    assert judge(lambda values: (values.mean(axis=0) + 0 * values, ring(values)[1])).code == "invented-averages"


def test_the_judge_of_the_page_does_not_speak_for_a_twist_without_saying_so() -> None:
    _, judge = twist_of("lab05.t1", "unsigned")
    wrong = judge(lambda values, block: HONEST["lab05.t1", "unsigned"](2 * values, block))
    assert wrong.messages[-1].startswith(f"{IN_WORDS_OF_THE_PAGE}; in your task, the codes are")
