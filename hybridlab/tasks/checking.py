"""Tasks, what a check answers, and the registry: a lab's file adds its tasks, a notebook or a grader calls ``check``."""

import math
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.errors import HybridLabError
from hybridlab.inputs import known_name, shown, whole_number

WIDTH = 72  # columns of the printed feedback, as wide as a page of the book
LONGEST_TEXT = 20_000  # characters of an answer
MOST_VALUES = 1_000  # in one list or dict of an answer
DEEPEST = 4  # lists within lists
_EMPTY_TEXT = re.compile(r"(device\s+\d{1,9}\s*:|\.\.\.|…|\s)*", re.IGNORECASE)
_PLAIN = frozenset((str, int, float, bool))
_NUMPY = frozenset(scalar for scalar in np.sctypeDict.values() if issubclass(scalar, (np.number, np.bool_)))


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


def plain(answer: Any, depth: int = 0) -> Any:
    """Return ``answer`` as plain values: None, str, bool, int, float, list, dict. Nothing else reaches a judge.

    An object of a class of its own could answer any comparison with yes; it is refused.

    >>> plain((np.int64(3), [1.5, "2F0"], ...))
    [3, [1.5, '2F0'], None]
    """
    if answer is None or answer is ...:
        return None
    if type(answer) is str and len(answer) > LONGEST_TEXT:
        raise HybridLabError(f"an answer of {len(answer):,} characters is too long: {LONGEST_TEXT:,} are plenty")
    if type(answer) in _PLAIN:
        return answer
    if type(answer) in _NUMPY:
        return answer.item()
    if type(answer) in (list, tuple, dict, np.ndarray):
        size = answer.size if type(answer) is np.ndarray else len(answer)
        if depth == DEEPEST or size > MOST_VALUES:
            raise HybridLabError(f"an answer holds at most {MOST_VALUES:,} values, in lists {DEEPEST} deep: {shown(answer)}")
        if type(answer) is dict:
            return {plain(name, DEEPEST): plain(value, depth + 1) for name, value in answer.items()}
        values = answer.tolist() if type(answer) is np.ndarray else answer
        return [plain(value, depth + 1) for value in values] if isinstance(values, (list, tuple)) else plain(values, depth + 1)
    raise HybridLabError(f"an answer is text, a number, or a list or dict of them, not of type {type(answer).__name__[:40]}")


def is_empty(value: Any) -> bool:
    """Whether nothing is handed in: None, blank text or bare labels, or a list or dict of nothing else.

    >>> [is_empty(value) for value in (None, " ", "device 0: ...", [None, ""], {"gpipe": None}, 0, False)]
    [True, True, True, True, True, False, False]
    """
    if isinstance(value, str):
        return _EMPTY_TEXT.fullmatch(value) is not None
    if isinstance(value, (list, dict)):
        return all(is_empty(each) for each in (value.values() if isinstance(value, dict) else value))
    return value is None


def a_text(value: Any, what: str, example: str) -> str:
    """Return ``value`` if it is text, or refuse it as ``what``, written like ``example``."""
    if not isinstance(value, str):
        raise HybridLabError(f"{what} is text such as {example!r}, not {shown(value)}")
    return value


def a_number(value: Any, what: str) -> float:
    """Return ``value`` as a float if it is a finite number, or refuse it as ``what``.

    >>> a_number("57", "a makespan")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: a makespan is a number such as 12.5, not '57'
    """
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not known or (isinstance(value, float) and not math.isfinite(value)) or abs(value) > 1e15:
        raise HybridLabError(f"{what} is a number such as 12.5, not {shown(value)}")
    return float(value)


def some_numbers(value: Any, count: int, what: str) -> list[float]:
    """Return ``value`` as a list of ``count`` floats, or refuse it as ``what`` ("warm-up of a device").

    >>> some_numbers([1, 2], 3, "warm-up of a device")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the answer is a list of 3 numbers, each the warm-up of a device, but there are 2
    """
    wanted = f"the answer is a list of {count} numbers, each the {what}"
    if not isinstance(value, list):
        raise HybridLabError(f"{wanted}, not {shown(value)}")
    if len(value) != count:
        raise HybridLabError(f"{wanted}, but there are {len(value)}")
    return [a_number(each, f"the {what}") for each in value]


def close(value: float, truth: float) -> bool:
    """Whether a number handed in is the true one, up to the rounding of a calculator (one part in a thousand)."""
    return math.isclose(value, truth, rel_tol=1e-3, abs_tol=1e-9)


def _wrapped(line: str) -> list[str]:
    """Return a line of a message, indented; broken at spaces if it is a long sentence, and whole if it is a grid."""
    if re.match(r"device \d+: (\.\.\.|\[?\d+[FBIW])", line):
        return [f"  {line}"]
    inner = " " * (2 + len(line) - len(line.lstrip()))
    return textwrap.wrap(line.strip(), WIDTH, initial_indent=inner, subsequent_indent=inner + "  ") or [""]
