"""Read an answer as plain values, check the form of these values, and compare them with right values."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError
from hybridlab.mesh import Place
from hybridlab.planner import Plan
from hybridlab.schedule import Op, Schedule
from hybridlab.schedule.text import turns_in

LONGEST_TEXT = 20_000  # the most characters in a text
MOST_VALUES = 1_000  # the most values in one list or dict
DEEPEST = 4  # the most levels of lists within lists
EXAMPLE_ORDER = "device 0: 0F0 0F1 0B0 0B1"
_EMPTY_TEXT = re.compile(r"(device\s+\d{1,9}\s*:|\.\.\.|…|\s)*", re.IGNORECASE)
# This module compares exact types (`type(answer) in ...`). An object of a subclass could redefine == so that every comparison is true.
_COLLECTIONS = frozenset((list, tuple, Place, dict, np.ndarray, range, set, frozenset))
_PLAIN = frozenset((str, int, float, bool))
_NUMPY = frozenset(scalar for scalar in np.sctypeDict.values() if issubclass(scalar, (np.number, np.bool_)))

Orders = tuple[tuple[Op, ...], ...]  # one tuple for each device: the operations in the order in which the device runs them
Numbers = float | Sequence[float]


class Unordered(list[Any]):
    """The values of a set, as a sorted list. A task in which the order matters refuses an answer of this type."""


def plain_values(answer: Any, depth: int = 0) -> Any:
    """Return ``answer`` as plain values: None, str, bool, int, float, list, dict.

    Judges get values of these types only. An object of any other class raises an error.

    Parameters
    ----------
    answer : Any
        The answer of the student. Tuples, arrays and ranges become lists. Sets become sorted lists (:class:`Unordered`). Numbers of
        numpy, fractions and decimals become an int or a float. A text of numpy becomes a str. A :class:`Schedule`
        and an :class:`Op` become their text. A :class:`Plan` becomes a dict of its fields. ``...`` becomes None.
    depth : int
        The number of lists and dicts around this value; 0 for the whole answer.

    Raises
    ------
    HybridLabError
        The answer is too long, has too many lists within lists, or has a type that is not listed above.

    Examples
    --------
    >>> plain_values((np.int64(3), [1.5, "2F0"], range(2), Fraction(3, 4), ...))
    [3, [1.5, '2F0'], [0, 1], 0.75, None]
    >>> plain_values(np.str_("gpipe"))
    'gpipe'
    >>> plain_values({7, 3})
    [3, 7]
    """
    if answer is None or answer is ...:
        return None
    if type(answer) in (Schedule, Op, np.str_):
        answer = str(answer)
    if type(answer) is str and len(answer) > LONGEST_TEXT:
        raise HybridLabError(f"your answer has {len(answer):,} characters, and an answer may have at most {LONGEST_TEXT:,}", "too-long")
    if type(answer) in _PLAIN:
        return answer
    if type(answer) in _NUMPY:
        plain = answer.item()
        return float(plain) if isinstance(plain, np.generic) else plain  # item() of a long double returns a numpy number again
    if type(answer) in (Fraction, Decimal):
        return int(answer) if isinstance(answer, Fraction) and answer.denominator == 1 else _as_float(answer)
    if type(answer) is Plan:
        return asdict(answer)
    if type(answer) in _COLLECTIONS:
        size = answer.size if type(answer) is np.ndarray else len(answer)
        if depth == DEEPEST or size > MOST_VALUES:
            raise HybridLabError(
                f"a list may have at most {MOST_VALUES:,} values, and an answer at most {DEEPEST} levels of lists: {short_repr(answer)}",
                "too-large",
            )
        if type(answer) is dict:
            # DEEPEST: with this depth a list or another collection raises an error, because it cannot be a key
            return {plain_values(name, DEEPEST): plain_values(value, depth + 1) for name, value in answer.items()}
        values = answer.tolist() if type(answer) is np.ndarray else answer
        if type(answer) is np.ndarray and answer.ndim == 0:  # tolist() of an array without dimensions is a number
            return plain_values(values, depth + 1)
        plain = [plain_values(value, depth + 1) for value in values]
        return Unordered(_in_order(plain)) if type(answer) in (set, frozenset) else plain
    other = type(answer).__name__[:40]
    raise HybridLabError(f"an answer is text, a number, a schedule, or a list or dict of them, not a value of type {other}", "wrong-type")


def _as_float(number: Fraction | Decimal) -> float:
    """Return a number as a float. Return infinity, which no task accepts, if the number is too large for a float."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _in_order(values: list[Any]) -> list[Any]:
    """Return the values of a set in an order that is the same in every run of Python: numbers by size, then other values by their text."""
    return sorted(values, key=lambda value: (value, "") if isinstance(value, (int, float)) else (math.inf, repr(value)))


def is_empty(value: Any) -> bool:
    """Return whether an answer is empty: None, blank text, labels without operations, or a list or dict of empty values.

    >>> [is_empty(value) for value in (None, " ", "device 0: ...", [None, ""], {"gpipe": None}, 0, False)]
    [True, True, True, True, True, False, False]
    """
    if isinstance(value, str):
        return _EMPTY_TEXT.fullmatch(value) is not None
    if isinstance(value, (list, dict)):
        return all(is_empty(each) for each in (value.values() if isinstance(value, dict) else value))
    return value is None


def require_text(value: Any, what: str, example: str) -> str:
    """Return ``value`` if it is text. Else raise an error that names the value with the words ``what`` and shows the ``example``."""
    if not isinstance(value, str):
        raise HybridLabError(f"{what} is text such as {example!r}, not {short_repr(value)}", "not-text")
    return value


def require_number(value: Any, what: str, example: str = "12.5") -> float:
    """Return ``value`` as a float if it is a finite number. Else raise an error that names it with the words ``what``.

    >>> require_number("57", "a makespan")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: a makespan is a number such as 12.5, not '57'
    """
    if value is None:
        raise HybridLabError(f"{what} is a number such as {example}, but it is missing", "not-a-number")
    known = isinstance(value, (int, float)) and not isinstance(value, bool)  # in Python, True is also an int
    # a float holds every whole number up to 1e15 exactly, so float(value) below does not round
    if not known or (isinstance(value, float) and not math.isfinite(value)) or abs(value) > 1e15:
        raise HybridLabError(f"{what} is a number such as {example}, not {short_repr(value)}", "not-a-number")
    return float(value)


def require_count(value: Any, what: str, example: str = "12", least: int = 1, most: int | None = None) -> int:
    """Return ``value`` as an int if it is a whole number from ``least`` to ``most``. Else raise an error that names it with ``what``.

    >>> require_count(8.0, "a number of chunks")
    8
    >>> require_count(2.5, "a number of chunks", most=16)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: a number of chunks is a whole number from 1 to 16, not 2.5
    """
    number = require_number(value, what, example)
    digits = repr(number).removesuffix(".0")  # repr does not round: "a whole number, not 12" would be a strange sentence about 12.0000001
    wanted = f"{what} is a whole number " + (f"of at least {least}" if most is None else f"from {least} to {most:,}")
    if number != int(number):
        raise HybridLabError(f"{wanted}, not {digits}", "not-a-whole-number")
    if number < least or (most is not None and number > most):
        raise HybridLabError(f"{wanted}, not {digits}", "out-of-range")
    return int(number)


def require_numbers(value: Any, count: int, what: str, example: str = "12.5", names: Sequence[str] = ()) -> list[float]:
    """Return ``value``, a list of ``count`` numbers, as floats. Else raise an error that names each number with ``what``.

    An example of ``what`` is "warm-up of a device". If ``names`` are given, an error about one number uses the name of that number.

    >>> require_numbers([1, 2], 3, "warm-up of a device")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the answer is a list of 3 numbers, each the warm-up of a device, but there are 2
    """
    wanted = f"the answer is a list of {count} numbers, each the {what}"
    if not isinstance(value, list):
        raise HybridLabError(f"{wanted}, not {short_repr(value)}", "not-a-list")
    if isinstance(value, Unordered):
        raise HybridLabError(f"{wanted}, and their order matters: a set has no order, so hand in a list", "no-order")
    if len(value) != count:
        raise HybridLabError(f"{wanted}, but there are {len(value)}", "wrong-length")
    return [require_number(each, f"the {name}", example) for each, name in zip(value, names or [what] * count, strict=True)]


def require_list(value: Any, what: str, example: str = "12.5") -> list[float]:
    """Return ``value``, a list or a set of at least one number, as floats. Else raise an error that names each number with ``what``.

    An example of ``what`` is "rank of a group".

    >>> require_list(7, "rank of a group", "7")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the answer is a list of numbers, each a rank of a group, not 7
    """
    wanted = f"the answer is a list of numbers, each a {what}"
    if value is None:
        raise HybridLabError(f"{wanted}, but it is missing", "not-a-list")
    if not isinstance(value, list) or not value:
        raise HybridLabError(f"{wanted}, not {short_repr(value)}", "not-a-list")
    return [require_number(each, f"a {what}", example) for each in value]


def require_parts(value: Any, count: int, what: str) -> list[Any]:
    """Return ``value`` if it is a list of ``count`` items. Else raise an error that describes the wanted answer with ``what``.

    >>> require_parts("1f1b", 2, "a name and a number, such as ('gpipe', 1000)")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the answer is a name and a number, such as ('gpipe', 1000), not '1f1b'
    """
    if not isinstance(value, list) or len(value) != count:
        raise HybridLabError(f"the answer is {what}, not {short_repr(value)}", "wrong-shape")
    return value


def require_entries(value: Any, names: Iterable[str], what: str) -> dict[str, Any]:
    """Return ``value`` if it is a dict whose keys are exactly ``names``. Else raise an error that describes the answer with ``what``."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise HybridLabError(f"the answer is {what}, not {short_repr(value)}", "wrong-shape")
    return value


def require_orders(value: Any) -> Orders:
    r"""Return the order of operations on each device. This function does not check whether the orders can run.

    Parameters
    ----------
    value : Any
        Plain values (see :func:`plain_values`): a text with one line for each device, a text in CSV format, a list of lines, a list of
        lists of operations, or a dict of lines or lists. A line may begin with a label such as ``device 0:``, in upper or lower case.

    Raises
    ------
    InvalidSchedule
        A word is not an operation. The message names the line or the device.
    HybridLabError
        The value is neither a text, nor a list, nor a dict.

    Examples
    --------
    >>> require_orders(["0F0 0B0", ["1F0", "1B0"]]) == require_orders("DEVICE 0: 0F0 0B0\n1F0 1B0")
    True
    """
    if isinstance(value, Unordered) or not isinstance(value, (str, list, dict)):
        raise HybridLabError(
            f"the answer has one line of operations for each device, such as {EXAMPLE_ORDER!r}, and is not {short_repr(value)}",
            "not-a-list",
        )
    return tuple(tuple(op for turn in order for op in turn) for order in turns_in(value))


def near(value: Numbers, truth: Numbers, within: float = 0.0, relative: float = 0.0) -> bool:
    """Return whether each number differs from the right one by at most ``within``, or by at most ``relative`` times the right one.

    The result is False if ``value`` and ``truth`` have different numbers of items.

    >>> near(49.6, 50, 0.5), near([49.6, 8], [50, 8.04], relative=0.01), near([50], [50, 8])
    (True, True, False)
    """
    if isinstance(value, (int, float)) and isinstance(truth, (int, float)):
        return bool(abs(value - truth) <= max(within, relative * abs(truth)))  # quicker than numpy
    if np.shape(value) != np.shape(truth):
        return False
    off = np.abs(np.subtract(value, truth))
    return bool((off <= np.maximum(within, relative * np.abs(truth))).all())


def same(first: Any, second: Any, within: float = 0.0) -> bool:
    """Return whether two results are equal: the shapes and types of their arrays, and their numbers up to rounding errors.

    Arrays of floats may differ by more: by ``within`` times the largest absolute value in ``second``.

    >>> same([1, (2.0, "1F0")], [1, (2.0 + 1e-15, "1F0")]), same(np.zeros(2), np.zeros(3)), same([1], {1})
    (True, False, False)
    >>> same(np.array([100.0, 1.0]), np.array([100.0, 1.1])), same(np.array([100.0, 1.0]), np.array([100.0, 1.1]), within=0.01)
    (False, True)
    """
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        alike = isinstance(first, np.ndarray) and isinstance(second, np.ndarray)
        alike = alike and first.shape == second.shape and first.dtype == second.dtype
        return alike and (_close(first, second, within) if first.dtype.kind in "fc" else bool((first == second).all()))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[name], second[name], within) for name in first)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(same(one, other, within) for one, other in zip(first, second, strict=True))
    if isinstance(first, float) and isinstance(second, (int, float)):
        return first == second or _close(first, second)
    return bool(first == second)


def _close(first: Any, second: Any, within: float = 0.0) -> bool:
    """Return whether numbers differ by no more than rounding errors and ``within`` times the largest absolute value in ``second``."""
    # Each addition has a relative rounding error of about 1e-16, so sums of the same numbers in another order differ a little. The
    # absolute tolerance of 1e-12 is for results that would be 0 without rounding.
    # This is np.allclose, which takes ten times as long for the small arrays and the single numbers of most results.
    if bool(np.all(first == second)):
        return True
    more = within * float(np.max(np.abs(second), initial=0.0)) if within else 0.0
    with np.errstate(invalid="ignore", over="ignore"):  # infinity minus infinity
        near = (np.abs(np.subtract(first, second)) <= 1e-12 + more + 1e-9 * np.abs(second)) & np.isfinite(second)
    return bool(np.all(near | (first == second) | (np.isnan(first) & np.isnan(second))))
