"""Answers that the tests of each lab list: the right ones pass however they are written, each wrong one gets its own sentence."""

from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hybridlab.course.tasks import TASKS, check

each_task = pytest.mark.parametrize("key", TASKS)


@cache
def listed(name: str) -> list[tuple[Any, ...]]:
    """The rows that the tests of the labs list under a name: RIGHT (task, answer) or WRONG (task, answer, what its sentence must say)."""
    paths = sorted(Path(__file__).parent.glob("test_tasks_lab*.py"))
    return [row for path in paths for row in getattr(import_module(path.stem), name)]


def test_every_task_has_wrong_answers_to_be_told_apart() -> None:
    assert {key for key, _, _ in listed("WRONG")} == set(TASKS)


@each_task
def test_another_way_to_write_the_right_answer_passes(key: str) -> None:
    feedback = [(answer, check(key, answer)) for task, answer in listed("RIGHT") if task == key]
    assert not [(answer, told) for answer, told in feedback if not told.passed]


@each_task
def test_each_wrong_answer_gets_its_own_sentence(key: str) -> None:
    feedback = [(answer, says, check(key, answer)) for task, answer, says in listed("WRONG") if task == key]
    assert not [(answer, told) for answer, _, told in feedback if told.passed]
    assert not [row for row in feedback if not any(row[1] in message for message in row[2].messages)]
    told = Counter(each.messages for _, _, each in feedback)
    assert len(told) >= told.total() - 2, told  # two answers with one mistake may share one, and junk of two types
