"""Tasks, what a check answers, and the registry: a lab's file adds its tasks, a notebook or a grader calls ``check``."""

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from hybridlab.checks import known_name, whole_number
from hybridlab.course.tasks.answers import is_empty, plain
from hybridlab.errors import HybridLabError

WIDTH = 72  # columns of the printed feedback, as wide as a page of the book


@dataclass(frozen=True, repr=False)
class Feedback:
    """What a check has to say: ``passed``, sentences in ``messages``, and the key of the ``task``.

    >>> Feedback(False, ("stage 2 never runs the backward of microbatch 7",), "lab02.t1")
    lab02.t1: not yet
      stage 2 never runs the backward of microbatch 7
    """

    passed: bool
    messages: tuple[str, ...]
    task: str = ""

    def __repr__(self) -> str:
        lines = [f"{self.task}: {'passed' if self.passed else 'not yet'}"]
        for message in self.messages:
            lines += [part for line in message.splitlines() for part in _wrapped(line)]
        return "\n".join(lines)


Judge = Callable[[Any], Feedback]


@dataclass(frozen=True)
class Task:
    """One task of a lab: its ``key`` ("lab02.t1"), a ``title``, the ``prompt`` in one sentence, and its ``points``.

    ``judge`` takes the answer as plain values (text, numbers, lists and dicts of them; never empty) and returns
    feedback. A :class:`HybridLabError` that it raises is feedback too: the answer is wrong for that reason.
    """

    key: str
    title: str
    prompt: str
    points: int
    judge: Judge


_TASKS: dict[str, Task] = {}
TASKS: Mapping[str, Task] = MappingProxyType(_TASKS)


def task(key: str, *, title: str, prompt: str, points: int = 1) -> Callable[[Judge], Judge]:
    """Return a decorator that adds a judge to ``TASKS`` under ``key``; the other arguments are :class:`Task`'s."""
    if key in _TASKS:
        raise HybridLabError(f"a task {key!r} exists already: choose another key")
    whole_number(points, "points")

    def add(judge: Judge) -> Judge:
        _TASKS[key] = Task(key, title, prompt, points, judge)
        return judge

    return add


def check(key: str, answer: Any = None) -> Feedback:
    """Return feedback on ``answer`` to the task ``key``, such as "lab02.t1".

    An answer is text, a number, or lists and dicts of them; arrays and numbers of numpy count as such. Whatever
    else it is, the feedback says so. Raises :class:`HybridLabError` for an unknown key alone.

    >>> check("lab02.t1", "")  # doctest: +ELLIPSIS
    lab02.t1: not yet
      nothing handed in yet: write 1F1B for 3 devices ...
    """
    known = TASKS[known_name(key, TASKS, "task")]
    try:
        value = plain(answer)
        feedback = wrong(f"nothing handed in yet: {known.prompt}") if is_empty(value) else known.judge(value)
    except HybridLabError as why:
        feedback = wrong(str(why))
    return replace(feedback, task=known.key)


def right(*messages: str) -> Feedback:
    """Return the feedback of an answer that passes, with what there is to learn from it."""
    return Feedback(True, messages)


def wrong(*messages: str) -> Feedback:
    """Return the feedback of an answer that does not pass, with what is wrong and where to look."""
    return Feedback(False, messages)


def _wrapped(line: str) -> list[str]:
    """Return a line of a message, indented; broken at spaces if it is a long sentence, and whole if it is a grid."""
    if re.match(r"device \d+: (\.\.\.|\[?\d+[FBIW])", line):
        return [f"  {line}"]
    inner = " " * (2 + len(line) - len(line.lstrip()))
    return textwrap.wrap(line.strip(), WIDTH, initial_indent=inner, subsequent_indent=inner + "  ") or [""]
