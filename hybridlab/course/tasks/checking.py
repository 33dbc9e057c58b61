"""Tasks, the feedback on an answer, and the list of all tasks. The file of a lab adds its tasks; a notebook calls ``check``."""

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from hybridlab.checks import known_name, whole_number
from hybridlab.course.tasks.answers import Mistake, Numbers, is_empty, mistake_behind, near, plain_values
from hybridlab.errors import HybridLabError

WIDTH = 72  # characters in a line of the printed feedback, as many as fit on a page of the book


@dataclass(frozen=True, repr=False)
class Feedback:
    """The verdict on an answer, the sentences that explain it, and a code for programs.

    Parameters
    ----------
    passed : bool
        Whether the answer is right.
    messages : tuple of str
        The sentences for the student. They may be reworded from version to version.
    task : str
        The key of the task, such as ``"lab02.t1"``.
    code : str
        The name of the mistake, such as ``"one-device-alone"``; ``"passed"`` for a right answer and ``"nothing-handed-in"``
        for an empty one. Within a task each sentence has its own code. The code stays the same if the sentence is reworded.

    Examples
    --------
    >>> Feedback(False, ("stage 2 never runs the backward of microbatch 7",), "lab02.t1")
    lab02.t1: not yet
      stage 2 never runs the backward of microbatch 7
    """

    passed: bool
    messages: tuple[str, ...]
    task: str = ""
    code: str = ""

    def __repr__(self) -> str:
        lines = [f"{self.task}: {'passed' if self.passed else 'not yet'}"]
        for message in self.messages:
            lines += [part for line in message.splitlines() for part in _wrapped(line)]
        return "\n".join(lines)


Judge = Callable[[Any], Feedback]


@dataclass(frozen=True)
class Task:
    """One task of a lab.

    Parameters
    ----------
    key : str
        The lab and the number of the task, such as ``"lab02.t1"``.
    title : str
        A few words.
    prompt : str
        What to hand in, in one sentence.
    points : int
        The number of points for a right answer, at least 1.
    judge : callable
        Takes the answer as plain values (text, numbers, lists and dicts of them; never empty) and returns :class:`Feedback`.
        If it raises a :class:`HybridLabError`, the sentence and the code of this error become the feedback.
    """

    key: str
    title: str
    prompt: str
    points: int
    judge: Judge


_TASKS: dict[str, Task] = {}
TASKS: Mapping[str, Task] = MappingProxyType(_TASKS)


def task(key: str, *, title: str, prompt: str, points: int = 1) -> Callable[[Judge], Judge]:
    """Return a decorator that adds a task to ``TASKS``. The decorated function judges the answers.

    Parameters
    ----------
    key, title, prompt, points
        The fields of :class:`Task`.

    Raises
    ------
    HybridLabError
        If there is a task with this key already, or if the points are not a whole number of at least 1.
    """
    if key in _TASKS:
        raise HybridLabError(f"a task {key!r} exists already: choose another key", "exists-already")
    whole_number(points, "points")

    def add(judge: Judge) -> Judge:
        _TASKS[key] = Task(key, title, prompt, points, judge)
        return judge

    return add


def check(key: str, answer: Any = None) -> Feedback:
    """Return feedback on an answer to a task.

    Parameters
    ----------
    key : str
        The task, such as ``"lab02.t1"``.
    answer : Any
        Text, a number, or a list or dict of these. Arrays and numbers of numpy are allowed. If the answer has any other type, the
        feedback says so.

    Returns
    -------
    Feedback
        Whether the answer is right, the sentences that explain why, and the code of the mistake.

    Raises
    ------
    HybridLabError
        If there is no task with this key. No answer raises an error.

    Examples
    --------
    >>> check("lab02.t1", "")  # doctest: +ELLIPSIS
    lab02.t1: not yet
      nothing handed in yet: write 1F1B for 3 devices ...
    >>> check("lab02.t2", 80).code
    'one-device-alone'
    """
    known = TASKS[known_name(key, TASKS, "task")]
    try:
        value = plain_values(answer)
        feedback = wrong("nothing-handed-in", f"nothing handed in yet: {known.prompt}") if is_empty(value) else known.judge(value)
    except HybridLabError as why:
        feedback = wrong(why.code or "refused", str(why))
    return replace(feedback, task=known.key)


def right(*messages: str) -> Feedback:
    """Return the feedback on a right answer. The messages say what can be learned from it."""
    return Feedback(True, messages, code="passed")


def wrong(code: str, *messages: str) -> Feedback:
    """Return the feedback on a wrong answer: the code of the mistake, and messages that say what is wrong and where to look."""
    return Feedback(False, messages, code=code)


def wrong_value(
    value: Numbers,
    mistakes: Iterable[Mistake],
    hint: str,
    within: float = 0.0,
    *,
    relative: float = 0.0,
    about: str = "",
    code: str = "wrong-value",
) -> Feedback:
    """Return the feedback on a wrong number. If a known mistake gives this number, it is the sentence about the mistake, else a hint.

    Parameters
    ----------
    value : float or sequence of floats
        The answer.
    mistakes : iterable of (value, code, sentence)
        For each known mistake its wrong value, its code and its sentence. The nearest value counts.
    hint : str
        The sentence if no known mistake gives the answer.
    within, relative : float
        The largest distance between the answer and the wrong value of a mistake, as an absolute difference or as a share of this value.
    about : str
        Words in front of the sentence, such as ``"model b: "``.
    code : str
        The code that goes with the hint.

    Examples
    --------
    >>> wrong_value(80, [(80, "fill-missing", "this lacks the fill")], "add up fill and drain").code
    'fill-missing'
    """
    found = mistake_behind(value, mistakes, within, relative)
    return wrong(found[1], about + found[2]) if found else wrong(code, about + hint)


def judge_value(
    value: Numbers,
    truth: Numbers,
    within: float = 0.0,
    *,
    lesson: str,
    mistakes: Iterable[Mistake],
    hint: str,
    relative: float = 0.0,
) -> Feedback:
    """Return the feedback on a number, or on a list of numbers, that has one right value.

    Parameters
    ----------
    value, truth : float or sequence of floats
        The answer, and the right one.
    within, relative : float
        The largest distance between the answer and the right value, as an absolute difference or as a share. The same limits hold for
        the wrong values of mistakes.
    lesson : str
        The sentence for a right answer.
    mistakes : iterable of (value, code, sentence)
        For each known mistake its wrong value, its code and its sentence.
    hint : str
        The sentence for any other answer.

    Examples
    --------
    >>> judge_value(130, 130, lesson="fill and drain", mistakes=[], hint="add up fill and drain").passed
    True
    """
    if near(value, truth, within, relative):
        return right(lesson)
    return wrong_value(value, mistakes, hint, within, relative=relative)


def _wrapped(line: str) -> list[str]:
    """Return the indented lines for one line of a message. A long sentence is broken at spaces; a line of a schedule is not broken."""
    if re.match(r"device \d+: (\.\.\.|\[?\d+[FBIW])", line):
        return [f"  {line}"]
    inner = " " * (2 + len(line) - len(line.lstrip()))
    return textwrap.wrap(line.strip(), WIDTH, initial_indent=inner, subsequent_indent=inner + "  ") or [""]
