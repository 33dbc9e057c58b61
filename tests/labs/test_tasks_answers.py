"""Answers that the tests of each lab list: right ones pass however they are written, each wrong one gets the code of its mistake."""

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from inspect import getsource, isfunction
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn, refusal
from solutions import NAMES_OF_LABS

from hybridlab.course.checking.answers import require_count
from hybridlab.course.checking.builds import Build
from hybridlab.course.checking.questions import Question
from hybridlab.course.tasks import TASKS, check

CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# the programs of builds in these labs take most of the time
LONG = ("lab02", "lab04", "lab05", "lab06", "lab07", "lab08", "lab12", "lab13", "lab14", "lab16", "lab18")
OF_NO_MISTAKE = {"passed", "nothing-handed-in", "refused"}


@cache
def listed(name: str) -> list[tuple[Any, ...]]:
    """The rows that the tests of the labs list under a name.

    RIGHT has (task, answer), WRONG has (task, answer, code, words that the sentence fills in ...).
    """
    files = sorted(f"{path.parent.name}.{path.stem}" for path in Path(__file__).parent.glob("lab*/test_*.py"))
    return [row for file in files for row in getattr(import_module(file), name)]


def source_of(function: Callable[..., Any], seen: frozenset[str] = frozenset()) -> Iterator[ast.AST]:
    """The syntax tree of a judge and of the functions of labs that it calls; those that read a result have their own tests."""
    tree = ast.parse(getsource(function))
    yield tree
    module = sys.modules[function.__module__]
    for name in sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - seen - {function.__name__}):
        helper = vars(module).get(name)
        if isfunction(helper) and helper.__module__.startswith("hybridlab.course.labs.") and not name.startswith("read_"):
            yield from source_of(helper, seen | {function.__name__})


def codes_given(judge: Callable[..., Any]) -> set[tuple[str, str]]:
    """Each code that a judge and its helpers give, with the source of its sentence: in a call, a triple of a mistake, or a pair."""
    found = set()
    for node in (node for tree in source_of(judge) for node in ast.walk(tree)):
        match node:
            case ast.Call(ast.Name("wrong"), [ast.Constant(str(code)), *sentences]):
                found.add((code, " ".join(map(ast.unparse, sentences))))
            case ast.Call(ast.Name("HybridLabError"), [sentence, ast.Constant(str(code))]):
                found.add((code, ast.unparse(sentence)))
            case ast.Call(ast.Name("Number"), _, keywords):
                given = {keyword.arg: ast.unparse(keyword.value).strip("'") for keyword in keywords}
                found.add((given.get("code", "wrong-value"), given["hint"]))
            case ast.Tuple([_, ast.Constant(str(code)), sentence]) if " " in ast.unparse(sentence) or isinstance(sentence, ast.Name):
                found.add((code, ast.unparse(sentence)))
            case ast.Return(ast.Tuple([ast.Constant(str(code)), sentence])) | ast.Yield(ast.Tuple([ast.Constant(str(code)), sentence])):
                found.add((code, ast.unparse(sentence)))
    return found


def codes_of(key: str) -> set[tuple[str, str]]:
    """Each code that a task gives, with its sentence: from the data of the task, and from the source of its judge if it has one."""
    instance = TASKS[key].instance(None)
    data = instance.data
    if isinstance(data, Question):
        mistakes = [*data.mistakes, *(mistake for number in data.numbers for mistake in number.mistakes)]
        hints = [(number.code, number.hint) for number in data.numbers]
        return {(code, str(sentence)) for code, sentence in [(code, sentence) for _, code, sentence in mistakes] + hints}
    if isinstance(data, Build):
        return {(mistake.code, mistake.sentence) for mistake in data.mistakes} | codes_given(data.judge)
    return codes_given(instance.judge)


def test_every_task_has_wrong_answers() -> None:
    assert {key for key, *_ in listed("WRONG")} == set(TASKS)


def tasks_to_try(long: bool) -> list[str]:
    """The builds of the labs whose programs take long, or all other tasks."""
    return [key for key, task in TASKS.items() if (task.kind == "build" and key[:5] in LONG) is long]


each_size = pytest.mark.parametrize(
    ("lab", "long"),
    [pytest.param(lab, long, marks=[pytest.mark.slow] * long) for long in (False, True) for lab in (LONG if long else NAMES_OF_LABS)],
)


@each_size
def test_another_way_to_write_the_right_answer_passes(lab: str, long: bool) -> None:
    tried = tasks_to_try(long)
    feedback = [(answer, check(key, answer)) for key, answer in listed("RIGHT") if key.startswith(lab) and key in tried]
    assert feedback
    assert not [(answer, verdict) for answer, verdict in feedback if not verdict.passed or verdict.code != "passed"]


@each_size
def test_each_wrong_answer_gets_the_code_of_its_mistake(lab: str, long: bool) -> None:
    tried = [key for key in tasks_to_try(long) if key.startswith(lab)]
    feedback = [(key, answer, code, words, check(key, answer)) for key, answer, code, *words in listed("WRONG") if key in tried]
    assert feedback
    assert not [(answer, verdict) for _, answer, _, _, verdict in feedback if verdict.passed]
    assert not [(key, answer, code, verdict.code) for key, answer, code, _, verdict in feedback if verdict.code != code]
    assert not [(words, verdict) for *_, words, verdict in feedback if not all(word in " ".join(verdict.messages) for word in words)]
    for key in tried:
        messages = Counter(verdict.messages for task, *_, verdict in feedback if task == key)
        assert len(messages) >= messages.total() - 2, messages  # two answers may share one: the same mistake, or two types of junk


@in_turn("key", TASKS)
def test_a_sentence_of_a_task_has_a_code_of_its_own(key: str) -> None:
    """The listed wrong answers produce every code of the task."""
    given = codes_of(key)
    assert not {code for code, _ in given if not CODE.fullmatch(code) or code in OF_NO_MISTAKE}
    assert not {code: several for code, _ in given if len(several := {each for name, each in given if name == code}) > 1}
    listed_codes = {code for task, _, code, *_ in listed("WRONG") if task == key}
    assert {code for code, _ in given} <= listed_codes, "a mistake that no listed answer makes"


@in_turn("answer, shown", [(12.0000001, "12.0000001"), (0.1, "0.1"), (0, "0"), (4000000.0, "4000000"), (1234567.5, "1234567.5")])
def test_a_refused_count_is_shown_with_all_its_digits(answer: float, shown: str) -> None:
    with refusal("not-a-whole-number" if answer % 1 else "out-of-range", f"from 1 to 1,000, not {shown}"):
        require_count(answer, "a number of devices", most=1000)
