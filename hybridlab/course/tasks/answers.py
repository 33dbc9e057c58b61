"""What a student hands in: read as plain values, and compared with what is right and with known mistakes."""

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError
from hybridlab.mesh import Place

LONGEST_TEXT = 20_000  # characters of an answer
MOST_VALUES = 1_000  # in one list or dict of an answer
DEEPEST = 4  # lists within lists
_EMPTY_TEXT = re.compile(r"(device\s+\d{1,9}\s*:|\.\.\.|…|\s)*", re.IGNORECASE)
_PLAIN = frozenset((str, int, float, bool))
_NUMPY = frozenset(scalar for scalar in np.sctypeDict.values() if issubclass(scalar, (np.number, np.bool_)))

Mistakes = Iterable[tuple[float, str]]  # a number that a known mistake leads to, and the sentence about it


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
    if type(answer) in (list, tuple, Place, dict, np.ndarray):
        size = answer.size if type(answer) is np.ndarray else len(answer)
        if depth == DEEPEST or size > MOST_VALUES:
            raise HybridLabError(f"an answer holds at most {MOST_VALUES:,} values, in lists {DEEPEST} deep: {short_repr(answer)}")
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
        raise HybridLabError(f"{what} is text such as {example!r}, not {short_repr(value)}")
    return value


def require_number(value: Any, what: str, example: str = "12.5") -> float:
    """Return ``value`` as a float if it is a finite number, or refuse it as ``what``, written like ``example``.

    >>> require_number("57", "a makespan")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: a makespan is a number such as 12.5, not '57'
    """
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not known or (isinstance(value, float) and not math.isfinite(value)) or abs(value) > 1e15:
        raise HybridLabError(f"{what} is a number such as {example}, not {short_repr(value)}")
    return float(value)


def some_numbers(value: Any, count: int, what: str) -> list[float]:
    """Return ``value`` as a list of ``count`` floats, or refuse it as ``what`` ("warm-up of a device").

    >>> some_numbers([1, 2], 3, "warm-up of a device")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the answer is a list of 3 numbers, each the warm-up of a device, but there are 2
    """
    wanted = f"the answer is a list of {count} numbers, each the {what}"
    if not isinstance(value, list):
        raise HybridLabError(f"{wanted}, not {short_repr(value)}")
    if len(value) != count:
        raise HybridLabError(f"{wanted}, but there are {len(value)}")
    return [require_number(each, f"the {what}") for each in value]


def near(value: float, truth: float, within: float) -> bool:
    """Whether a number handed in is the true one, up to ``within``."""
    return abs(value - truth) <= within


def mistake_behind(value: float, mistakes: Mistakes, within: float) -> str | None:
    """Return the sentence about the nearest mistake that leads to ``value``, None if none does.

    >>> mistake_behind(50.01, [(50, "that is the fill alone"), (80, "that is the drain alone")], within=0.1)
    'that is the fill alone'
    """
    hits = sorted((abs(value - known), sentence) for known, sentence in mistakes if near(value, known, within))
    return hits[0][1] if hits else None
