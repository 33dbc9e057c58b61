"""Test every task of every lab: only its solution passes, and empty answers, junk, cheats and other tasks' answers do not."""

import re
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from folds import ANSWERS
from hypothesis import given
from misuse import CIRCLE, BrokenRepr, junk
from notebooks import Cell, with_folds
from solutions import NAMES_OF_LABS, each_lab, lab_cells, solutions, solutions_of, task_cells, tasks_of

from hybridlab import HybridLabError
from hybridlab.course import tasks
from hybridlab.course.checking import checking
from hybridlab.course.checking.checking import Instance, right
from hybridlab.course.tasks import TASKS, Feedback, Task, check, task


class AlwaysEqual:
    """An object that equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


class Text(str):
    """A text that equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class Number(float):
    """A number that equals everything, and whose difference from any number is 0."""

    def __eq__(self, other: object) -> bool:
        return True

    def __sub__(self, other: object) -> "Number":
        return Number(0)

    __hash__ = float.__hash__


class Broken:
    """A function whose comparison raises an error, so that even its parameters cannot be read."""

    def __call__(self, *given: object) -> object:
        raise ZeroDivisionError

    __eq__ = __call__
    __hash__ = object.__hash__


NAN = float("nan")
LONG = ("lab05", "lab06", "lab07", "lab12", "lab14")
CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
NOTHING = [None, ..., "", " \n ", "...", "device 0: ...\ndevice 1:", [], (), {}, [...], [None, ""], {"gpipe": ...}, np.array([])]
CHEATS = [
    AlwaysEqual(), [AlwaysEqual()] * 6, {None: AlwaysEqual()}, Text(), {"answer": Text()}, Number(1), [Number(1)] * 6,
    ("1f1b", [Number(1)] * 8), check, Feedback(True, ("passed",)), True, [True] * 6, ("1f1b", [True] * 8),
]  # fmt: skip
JUNK = [
    NAN, [NAN] * 6, ("1f1b", [NAN] * 8), ("1f1b", [100.0] * 8), ("gpipe", "1f1b"), ["1f1b", "zb-h1", "gpipe"],
    {"schedule": "1f1b"}, [4, 4, 4, 3, 2, "1"], float("inf"), 10**400, 1e308, -1e-300, 0.0, -1, 1j, b"", {1, 2},
    "x" * 10**6, [0] * 10**6, list(range(1000)), range(3), CIRCLE, BrokenRepr(), object, Broken(),
]  # fmt: skip


def named(value: object) -> str:
    """Return a short name for an answer, the same in every run."""
    return type(value).__name__


def test_every_task_has_a_solution_in_its_lab() -> None:
    assert list(solutions()) == list(TASKS)


@each_lab
def test_the_solutions_pass(lab: str) -> None:
    assert not [verdict for key, answer in solutions_of(lab).items() if not (verdict := check(key, answer)).passed]


@in_turn("key, nothing", product(("lab02.t2", "lab02.t1", "lab02.t5"), NOTHING))  # a number, a written task and a build
def test_nothing_handed_in_is_no_answer(key: str, nothing: Any) -> None:
    assert check(key, nothing) == Feedback(False, (f"nothing handed in yet: {TASKS[key].prompt}",), key, "nothing-handed-in")


@each_lab
def test_cheating_and_junk_get_a_sentence(lab: str) -> None:
    feedback = {f"{key}: {place}: {named(each)}": check(key, each) for key in tasks_of(lab) for place, each in enumerate(CHEATS + JUNK)}
    assert not {name: verdict for name, verdict in feedback.items() if verdict.passed}
    assert not {name: verdict for name, verdict in feedback.items() if any(len(message) <= 20 for message in verdict.messages)}
    assert not {name: verdict.code for name, verdict in feedback.items() if not CODE.fullmatch(verdict.code) or verdict.code == "passed"}


@given(answer=junk)
def test_any_answer_gets_feedback(answer: Any) -> None:
    feedback = {key: check(key, answer) for key in TASKS}
    assert not {
        key: verdict for key, verdict in feedback.items() if verdict.task != key or not verdict.messages or len(repr(verdict)) >= 10_000
    }
    assert not {
        key: verdict.code
        for key, verdict in feedback.items()
        if not CODE.fullmatch(verdict.code) or verdict.passed != (verdict.code == "passed")
    }


@pytest.mark.slow
@each_lab
def test_an_answer_to_another_task_does_not_pass(lab: str) -> None:
    same = {("lab02.t4", "lab02.t1")}  # the whole of 1F1B has the line that task 4 asks for
    pairs = [(key, other) for key in tasks_of(lab) for other in solutions() if other != key]
    assert {(key, other) for key, other in pairs if check(key, solutions()[other]).passed} <= same


# builds of some labs try each value that is a function for a long time
@pytest.mark.parametrize("lab", [pytest.param(lab, marks=[pytest.mark.slow] * (lab in LONG)) for lab in NAMES_OF_LABS])
def test_no_solution_can_be_imported(lab: str) -> None:
    own = import_module(f"hybridlab.course.labs.{lab}.tasks")
    values = {f"{module.__name__}.{name}": value for module in (own, tasks) for name, value in vars(module).items()}
    assert not [(key, name) for key in tasks_of(lab) for name, value in values.items() if check(key, value).passed]


@in_turn("key", TASKS)
def test_a_task_says_what_is_wanted(key: str) -> None:
    known = TASKS[key]
    assert known.key == key
    assert known.points > 0
    assert 5 < len(known.title) < 50
    assert known.prompt[0].islower(), "it is printed after 'nothing handed in yet:'"


@in_turn("key", ["lab02.t11", "LAB02.T1", "lab2.t1", "", None, 3, AlwaysEqual()])
def test_an_unknown_task_names_the_known_ones(key: Any) -> None:
    with refusal("unknown-name", "lab01.t1, lab01.t2"):
        check(key, "answer")


def test_an_unknown_task_names_the_nearest() -> None:
    with refusal("unknown-name", "'lab02.t1'"):
        check("lab02t1", "answer")


def test_a_task_is_registered_once() -> None:
    with refusal("exists-already", "lab02.t1"):
        task("lab02.t1", title="again", prompt="do it again")(lambda answer: right("done"))


@pytest.mark.parametrize(("error", "code"), [(HybridLabError("no", "no-drain"), "no-drain"), (HybridLabError("no"), "refused")])
def test_an_error_of_a_judge_brings_its_code(error: HybridLabError, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(answer: Any) -> Feedback:
        raise error

    never = Task("lab99.t1", "never", 1, "written", lambda seed: Instance("do nothing", judge))
    monkeypatch.setitem(checking._TASKS, "lab99.t1", never)
    assert check("lab99.t1", 1) == Feedback(False, ("no",), "lab99.t1", code)


def test_feedback_reads_as_text() -> None:
    grid = "device 0: " + " ".join(f"0F{microbatch}" for microbatch in range(40))
    lines = repr(Feedback(False, (f"{'a word and ' * 20}the end\n{grid}",), "lab02.t1")).splitlines()
    assert lines[0] == "lab02.t1: not yet"
    assert lines[-1] == f"  {grid}", "the grid stays whole"
    assert all(len(line) <= 72 for line in lines[:-1])


@each_lab
def test_a_solution_stands_folded_behind_the_cell_where_a_student_answers(lab: str) -> None:
    in_fold = [cell for cell, folds in with_folds(lab_cells(lab)) if any(map(ANSWERS.match, folds))]
    for key, (answer, solution) in zip(tasks_of(lab), task_cells(lab), strict=True):
        assert solution in in_fold or {"hide-cell", "hide-input"} & set(solution.tags), solution.source
        assert stored(answer).startswith(f"{key}: not yet\n  nothing handed in yet")
        assert stored(solution).startswith(f"{key}: passed\n")


def stored(cell: Cell) -> str:
    return cell.results()[-1]
