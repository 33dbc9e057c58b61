"""Answers that the tests of each lab list: the right ones pass however they are written, each wrong one gets its own sentence."""

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hybridlab.tasks import TASKS, check

MODULES = [import_module(path.stem) for path in sorted(Path(__file__).parent.glob("test_tasks_lab*.py"))]
RIGHT: list[tuple[str, Any]] = [pair for module in MODULES for pair in module.RIGHT]
WRONG: list[tuple[str, Any, str]] = [row for module in MODULES for row in module.WRONG]  # task, answer, what its sentence must say


def test_every_task_has_wrong_answers_to_be_told_apart() -> None:
    assert {key for key, _, _ in WRONG} == set(TASKS)


@pytest.mark.parametrize(("key", "answer"), RIGHT)
def test_another_way_to_write_the_right_answer_passes(key: str, answer: Any) -> None:
    feedback = check(key, answer)
    assert feedback.passed, feedback


@pytest.mark.parametrize(("key", "answer", "says"), WRONG)
def test_a_wrong_answer_gets_its_own_sentence(key: str, answer: Any, says: str) -> None:
    feedback = check(key, answer)
    assert not feedback.passed
    assert any(says in message for message in feedback.messages), feedback.messages


@pytest.mark.parametrize("key", TASKS)
def test_sentences_about_wrong_answers_differ(key: str) -> None:
    told = Counter(check(task, answer).messages for task, answer, _ in WRONG if task == key)
    assert len(told) >= told.total() - 2, told  # two answers with one mistake may share one, and junk of two types
