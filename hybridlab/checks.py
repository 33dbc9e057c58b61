"""Checks of what callers pass in, shared by every public function, so that one fault has one wording."""

import difflib
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.errors import HybridLabError

Item = TypeVar("Item")
P = ParamSpec("P")
R = TypeVar("R")

LARGEST = 10**7  # rows of a schedule are counted with 64-bit integers, in memory: far below their limit, far above any cluster
LONGEST = 1e200  # one time, in any unit
LATEST = 1e250  # a sum of times: beyond that of any schedule, so that a timeline's times stay finite
MOST_AXES = 24  # of a batch of settings: numpy has functions that stop at 32, and arrays get a few axes more
IN_A_SECOND = MappingProxyType({"s": 1, "ms": 1_000, "us": 1_000_000})  # how many of each unit of time a second has
MOST_CELLS = 2**26  # operations x settings that are timed at once: up to 8 GB of arrays, at about 120 bytes each


def whole_number(value: object, name: str, at_least: int = 1, at_most: int = LARGEST) -> int:
    """Return ``value`` as an int, or refuse it by ``name``.

    >>> whole_number(4, "devices")
    4
    >>> whole_number(2.5, "devices")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: devices must be a whole number of at least 1, not 2.5
    """
    if type(value) is int and at_least <= value <= at_most:
        return value  # nearly always so, and in a fifth of the time of what follows
    wanted = f"{name} must be a whole number of at least {at_least}"
    if isinstance(value, (bool, np.bool_, np.ma.MaskedArray)):  # of which the last would tell what is behind its mask
        raise HybridLabError(f"{wanted}, not {short_repr(value)}", "not-a-whole-number")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise HybridLabError(f"{wanted}, not {short_repr(value)}", "not-a-whole-number") from None
    if number < at_least:
        raise HybridLabError(f"{wanted}, not {short_repr(number)}", "too-small")
    if number > at_most:
        raise HybridLabError(f"{name} must be at most {at_most:,}, not {short_repr(number)}", "too-large")
    return number


def known_name(value: object, known: Iterable[str], what: str, *, any_case: bool = False) -> str:
    """Return the one of ``known`` that ``value`` is, in ``any_case`` of its letters if told so, or refuse it and name the nearest.

    >>> known_name("1F1B", ["gpipe", "1f1b"], "schedule", any_case=True)
    '1f1b'
    >>> known_name("1f1B", ["gpipe", "1f1b"], "schedule")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: unknown schedule '1f1B': did you mean '1f1b'? Known: gpipe, 1f1b
    """
    names = list(known)
    if isinstance(value, str) and value in names:
        return value
    lower = {name.lower(): name for name in names}
    if any_case and isinstance(value, str) and value.lower() in lower:
        return lower[value.lower()]
    text = (value if isinstance(value, str) else short_repr(value)).lower()[:80]
    words = text.replace("_", " ").replace("-", " ").split()  # the nearest holds most of them, such as h200 or 40gb of a GPU's name
    close = sorted(difflib.get_close_matches(text, list(lower), n=99, cutoff=0.4), key=lambda name: -sum(word in name for word in words))
    hint = f": did you mean {lower[close[0]]!r}?" if close else "."
    raise HybridLabError(f"unknown {what} {short_repr(value)}{hint} Known: {', '.join(names)}", "unknown-name")


def checked_text(value: object, name: str) -> str:
    """Return ``value`` if it is a string, or refuse it by ``name``.

    >>> checked_text(3, "title")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: title must be a string, not 3
    """
    if not isinstance(value, str):
        raise HybridLabError(f"{name} must be a string, not {short_repr(value)}", "not-text")
    return value


def true_or_false(value: object, name: str) -> bool:
    """Return ``value`` if it is True or False, or refuse it by ``name``.

    >>> true_or_false("no", "must_fit")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: must_fit must be True or False, not 'no'
    """
    if not isinstance(value, (bool, np.bool_)):
        raise HybridLabError(f"{name} must be True or False, not {short_repr(value)}", "not-true-or-false")
    return bool(value)


def unit_of_time(value: object) -> str | None:
    """Return ``value`` if it is a unit of time, "s", "ms" or "us", or None for plain slots; or refuse it.

    >>> unit_of_time("ms")
    'ms'
    >>> unit_of_time("seconds")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: unit is the unit of time: 's', 'ms', 'us', or None for plain slots, not 'seconds'
    """
    if value is None or (isinstance(value, str) and value in IN_A_SECOND):
        return None if value is None else str(value)
    units = ", ".join(map(repr, IN_A_SECOND))
    raise HybridLabError(f"unit is the unit of time: {units}, or None for plain slots, not {short_repr(value)}")


def in_a_second(unit: str | None, user: str) -> int:
    """Return how many of the unit of time a second has, or refuse plain slots, whose length the ``user`` cannot know.

    >>> in_a_second("ms", "a link")
    1000
    >>> in_a_second(None, "a link")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: a link needs times in seconds, but these are plain slots: say their unit, as in Costs(..., unit='ms')
    """
    if unit is None:
        raise HybridLabError(f"{user} needs times in seconds, but these are plain slots: say their unit, as in Costs(..., unit='ms')")
    return IN_A_SECOND[unit]


def times(value: Any, name: str) -> Floats:
    """Return ``value`` as a float array of finite times of zero or more (a copy), or refuse it by ``name``.

    >>> times([1, 2], "forward")
    array([1., 2.])
    >>> times([1, float("nan")], "forward")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: forward must be finite numbers of zero or more, but value 1 is nan
    """
    array = numbers(value, name)
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        where = f"value {place} is" if array.ndim else "it is"
        raise HybridLabError(f"{name} must be finite numbers of zero or more, but {where} {array.reshape(-1)[place]}")
    if (array > LONGEST).any():
        raise HybridLabError(f"{name} must be at most {LONGEST:g}, not {array.max():g}: choose a larger unit of time")
    return array


def one_time(value: Any, name: str) -> float:
    """Return ``value`` as a float if it is one finite number of zero or more, or refuse it by ``name``.

    >>> one_time([1, 2], "ring_step")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: ring_step must be one number, not [1, 2]
    """
    if type(value) in (int, float) and 0 <= value <= LONGEST:  # most are: no array is made for them
        return float(value)
    number = times(value, name)
    if number.ndim:
        raise HybridLabError(f"{name} must be one number, not {short_repr(value)}")
    return float(number)


def numbers(value: Any, name: str) -> Floats:
    """Return ``value`` as a float array (a copy), or refuse by ``name`` what is ragged, masked, empty or no number."""
    refuse_masked(value, name)
    try:
        array = np.array(value)
    except (ValueError, TypeError, np.ma.MaskError):
        raise HybridLabError(f"{name} is ragged: give one number, or rows of equal length without masked ones") from None
    if array.dtype.kind not in "iuf":
        raise HybridLabError(f"{name} must be a number or an array of numbers, not {short_repr(value)}")
    if array.ndim > MOST_AXES:
        raise HybridLabError(f"{name} must have at most {MOST_AXES} axes, not {array.ndim}")
    if array.size == 0:
        raise HybridLabError(f"{name} is empty: give one number, or one for each device")
    with np.errstate(over="ignore"):  # a longer float beyond float64 becomes inf, which no caller lets through
        return array.astype(np.float64)


def refuse_masked(value: object, name: str) -> None:
    """Raise where ``value`` has masked numbers: a plain array would bring back what is behind the mask."""
    if np.ma.is_masked(value):
        raise HybridLabError(f"{name} must not be masked: fill in the masked numbers, or leave them out")


def random_source(rng: Any, user: str = "") -> Any:
    """Return ``rng`` if it is a generator of random numbers, or None where there is no ``user`` of them; or refuse it.

    >>> random_source(None, user="stochastic rounding")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: stochastic rounding draws random numbers: pass rng=numpy.random.default_rng(seed), not None
    """
    if isinstance(rng, np.random.Generator) or (rng is None and not user):
        return rng
    wanted = f"{user} draws random numbers: pass" if user else "rng must be None, or a generator of random numbers such as"
    raise HybridLabError(f"{wanted} rng=numpy.random.default_rng(seed), not {short_repr(rng)}")


def each_of(value: Any, wanted: str) -> Iterator[Any]:
    """Return an iterator over ``value``, or refuse what has no elements with the sentence of what is ``wanted``.

    >>> each_of(3, "devices must be a list")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: devices must be a list, not 3
    """
    try:
        return iter(value)
    except TypeError:  # an array without axes has __iter__ too, and refuses only when it is called
        raise HybridLabError(f"{wanted}, not {short_repr(value)}") from None


def item_of(items: Sequence[Item], place: object, owner: str, noun: str) -> Item | tuple[Item, ...]:
    """Return the item at a place, counted from the end where it is negative, or those of a slice; refuse any other place.

    >>> item_of("abc", -1, "the word", "letter"), item_of("abc", slice(2), "the word", "letter")
    ('c', ('a', 'b'))
    >>> item_of("abc", 3, "the word", "letter")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the word has 3 letters: ask for one by a whole number from -3 to 2, or for several by a slice, not 3
    """
    count = len(items)
    try:
        chosen = None if isinstance(place, (bool, np.bool_)) else range(count)[place]  # type: ignore[call-overload]
    except (TypeError, ValueError, IndexError):
        chosen = None
    if chosen is None:
        asked = f"ask for one by a whole number from {-count} to {count - 1}, or for several by a slice, not {short_repr(place)}"
        raise HybridLabError(f"{owner} has {counted(count, noun)}: {asked}" if count else f"{owner} has no {noun}")
    return items[chosen] if isinstance(chosen, int) else tuple(items[each] for each in chosen)


def short_repr(value: object) -> str:
    """Return a short ``repr`` for an error message, whatever the value is."""
    try:
        text = repr(value)
    except Exception:  # whatever a broken __repr__ raises, or an int too long to print: the fault to tell of is another
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def counted(count: int, thing: str) -> str:
    """Return a count and its noun.

    >>> counted(1, "device"), counted(8, "microbatch")
    ('1 device', '8 microbatches')
    """
    return f"{count:,} {thing}{'' if count == 1 else 'es' if thing.endswith('ch') else 's'}"


def removed_arguments(positional: str = "", **arguments: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that refuses the ``arguments`` that a function had, each with the sentence of what works now.

    ``positional`` is the sentence for a call with more positional arguments than the function takes; without it, it is that
    of the first of ``arguments``.

    >>> @removed_arguments(microseconds="the unit is that of the costs")
    ... def trace(rows):
    ...     return rows
    >>> trace(3)
    3
    >>> trace(3, microseconds=1000)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: trace() no longer takes microseconds: the unit is that of the costs
    """

    def guarded(function: Callable[P, R]) -> Callable[P, R]:
        kinds = [parameter.kind for parameter in signature(function).parameters.values()]
        most = sum(kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)
        called = function.__qualname__.removesuffix(".__init__").rsplit(".", 1)[-1]

        @wraps(function)
        def checked(*given: P.args, **named: P.kwargs) -> R:
            for name, instead in arguments.items():
                if name in named:
                    raise HybridLabError(f"{called}() no longer takes {name}: {instead}")
            if len(given) > most:
                raise HybridLabError(f"{called}() no longer takes so many arguments without a name: {positional or message}")
            return function(*given, **named)

        return checked

    message = next(iter(arguments.values()), "")
    return guarded
