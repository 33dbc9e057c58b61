"""Checks of arguments for all public functions. The same mistake gives the same sentence and the same code everywhere."""

import difflib
import inspect
import operator
from collections.abc import Iterable, Iterator, Sequence
from functools import wraps
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.errors import HybridLabError

Item = TypeVar("Item")

LARGEST = 10**7  # largest number of devices, microbatches and so on; a product of two such numbers fits in 64 bits
LONGEST = 1e200  # the largest single time, in any unit
LATEST = 1e250  # the largest start or end in a timeline; no simulated schedule reaches it
MOST_AXES = 24  # largest number of axes of a batch of settings; some numpy functions allow 32, and the library adds a few axes
IN_A_SECOND = MappingProxyType({"s": 1, "ms": 1_000, "us": 1_000_000})  # unit -> number of units in a second
MOST_CELLS = 2**26  # largest operations x settings in one simulation: up to 150 bytes each, so at most 10 GB


def whole_number(value: object, name: str, at_least: int = 1, at_most: int = LARGEST) -> int:
    """Return ``value`` as an int. Raise an error if ``value`` is not a whole number within the limits.

    Parameters
    ----------
    value : object
        The caller's value. Integers of numpy count as whole numbers. Booleans and floats do not.
    name : str
        The name of the argument, for the error.
    at_least, at_most : int
        The limits, both included.

    Raises
    ------
    HybridLabError
        ``not-a-whole-number``, ``too-small`` or ``too-large``.

    Examples
    --------
    >>> whole_number(4, "devices")
    4
    >>> whole_number(2.5, "devices")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: devices must be a whole number of at least 1, not 2.5
    """
    if type(value) is int and at_least <= value <= at_most:
        return value  # a fast path for the usual case, five times as fast as the checks below
    wanted = f"{name} must be a whole number of at least {at_least}"
    # masked arrays here, because operator.index would return the number behind the mask
    if isinstance(value, (bool, np.bool_, np.ma.MaskedArray)):
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
    """Return ``value`` if it is one of the ``known`` names. Otherwise raise an error that suggests the most similar name.

    Parameters
    ----------
    value : object
        What the caller passed.
    known : Iterable[str]
        The allowed names.
    what : str
        A noun for the names, for the error, such as "schedule" or "GPU".
    any_case : bool
        Whether to ignore upper and lower case. The result has the spelling of ``known``.

    Raises
    ------
    HybridLabError
        ``unknown-name``.

    Examples
    --------
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
    text = (value if isinstance(value, str) else short_repr(value)).lower()[:80]  # cut, because comparing a very long text would take long
    words = text.replace("_", " ").replace("-", " ").split()  # among similar names, prefer the name with most of these words (h200, 40gb)
    close = sorted(difflib.get_close_matches(text, list(lower), n=99, cutoff=0.4), key=lambda name: -sum(word in name for word in words))
    hint = f": did you mean {lower[close[0]]!r}?" if close else "."
    raise HybridLabError(f"unknown {what} {short_repr(value)}{hint} Known: {', '.join(names)}", "unknown-name")


def checked_text(value: object, name: str) -> str:
    """Return ``value`` if it is a string. Otherwise raise an error that names the argument.

    >>> checked_text(3, "title")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: title must be a string, not 3
    """
    if not isinstance(value, str):
        raise HybridLabError(f"{name} must be a string, not {short_repr(value)}", "not-text")
    return value


def true_or_false(value: object, name: str) -> bool:
    """Return ``value`` as a bool if it is True or False. Otherwise raise an error that names the argument.

    >>> true_or_false("no", "must_fit")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: must_fit must be True or False, not 'no'
    """
    if not isinstance(value, (bool, np.bool_)):
        raise HybridLabError(f"{name} must be True or False, not {short_repr(value)}", "not-true-or-false")
    return bool(value)


def unit_of_time(value: object) -> str | None:
    """Return ``value`` if it is a unit of time ("s", "ms", "us") or None (times without a unit). Otherwise raise an error.

    >>> unit_of_time("ms")
    'ms'
    >>> unit_of_time("seconds")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: unit is the unit of time: 's', 'ms', 'us', or None for times without a unit, not 'seconds'
    """
    if value is None or (isinstance(value, str) and value in IN_A_SECOND):
        return None if value is None else str(value)
    units = ", ".join(map(repr, IN_A_SECOND))
    raise HybridLabError(f"unit is the unit of time: {units}, or None for times without a unit, not {short_repr(value)}", "unknown-name")


def in_a_second(unit: str | None, user: str) -> int:
    """Return the number of units in a second, such as 1000 for "ms". Raise an error if ``unit`` is None.

    ``user`` is the name of the object that needs times in seconds. The error starts with this name.

    >>> in_a_second("ms", "a link")
    1000
    >>> in_a_second(None, "a link")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: a link needs times in seconds, but these times have no unit: give it, as in Costs(..., unit='ms')
    """
    if unit is None:
        raise HybridLabError(
            f"{user} needs times in seconds, but these times have no unit: give it, as in Costs(..., unit='ms')", "no-unit"
        )
    return IN_A_SECOND[unit]


def times(value: Any, name: str) -> Floats:
    """Return a copy of ``value`` as a float64 array of times. Raise an error if a time is not finite or is negative.

    Parameters
    ----------
    value : array_like
        One number or an array of numbers, in any unit of time.
    name : str
        The name of the argument, for the error.

    Raises
    ------
    HybridLabError
        The code is ``negative``, ``not-finite``, ``too-large`` (above 1e200), or a code of :func:`numbers`.

    Examples
    --------
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
        number = array.reshape(-1)[place]
        code = "negative" if np.isfinite(number) else "not-finite"
        raise HybridLabError(f"{name} must be finite numbers of zero or more, but {where} {number}", code)
    if (array > LONGEST).any():
        raise HybridLabError(f"{name} must be at most {LONGEST:g}, not {array.max():g}: choose a larger unit of time", "too-large")
    return array


def one_time(value: Any, name: str) -> float:
    """Return ``value`` as a float. Raise an error that names the argument if ``value`` is not one finite number of zero or more.

    >>> one_time([1, 2], "ring_step")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: ring_step must be one number, not [1, 2]
    """
    if type(value) in (int, float) and 0 <= value <= LONGEST:  # a fast path for the usual case
        return float(value)
    number = times(value, name)
    if number.ndim:
        raise HybridLabError(f"{name} must be one number, not {short_repr(value)}", "wrong-shape")
    return float(number)


def numbers(value: Any, name: str) -> Floats:
    """Return a copy of ``value`` as a float64 array. Raise an error if ``value`` does not consist of numbers.

    Parameters
    ----------
    value : array_like
        One number or an array of numbers.
    name : str
        The name of the argument, for the error.

    Raises
    ------
    HybridLabError
        ``masked``, ``ragged``, ``not-a-number``, ``empty``, or ``wrong-shape`` for more than 24 axes.
    """
    refuse_masked(value, name)
    try:
        array = np.array(value)
    except (ValueError, TypeError, np.ma.MaskError):
        raise HybridLabError(f"{name} is ragged: give one number, or rows of equal length without masked ones", "ragged") from None
    if array.dtype.kind not in "iuf":
        raise HybridLabError(f"{name} must be a number or an array of numbers, not {short_repr(value)}", "not-a-number")
    if array.ndim > MOST_AXES:
        raise HybridLabError(f"{name} must have at most {MOST_AXES} axes, not {array.ndim}", "wrong-shape")
    if array.size == 0:
        raise HybridLabError(f"{name} is empty: give one number, or one for each device", "empty")
    with np.errstate(over="ignore"):  # a longdouble above the range of float64 becomes inf, and all callers refuse inf
        return array.astype(np.float64)


def refuse_masked(value: object, name: str) -> None:
    """Raise an error if ``value`` has masked numbers, because ``np.array`` would use the numbers behind the mask."""
    if np.ma.is_masked(value):
        raise HybridLabError(f"{name} must not be masked: fill in the masked numbers, or leave them out", "masked")


def random_source(rng: Any, user: str = "") -> Any:
    """Return ``rng`` if it is a ``numpy.random.Generator``. Otherwise raise an error.

    Parameters
    ----------
    rng : object
        What the caller passed.
    user : str
        A name of what needs the random numbers, for the error. An empty ``user`` means that ``rng`` may be None.

    Raises
    ------
    HybridLabError
        ``wrong-type``.

    Examples
    --------
    >>> random_source(None, user="stochastic rounding")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: stochastic rounding draws random numbers: pass rng=numpy.random.default_rng(seed), not None
    """
    if isinstance(rng, np.random.Generator) or (rng is None and not user):
        return rng
    wanted = f"{user} draws random numbers: pass" if user else "rng must be None, or a generator of random numbers such as"
    raise HybridLabError(f"{wanted} rng=numpy.random.default_rng(seed), not {short_repr(rng)}", "wrong-type")


def each_of(value: Any, wanted: str) -> Iterator[Any]:
    """Return an iterator over ``value``. If ``value`` is not iterable, raise an error that starts with the text ``wanted``.

    >>> each_of(3, "devices must be a list")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: devices must be a list, not 3
    """
    try:
        return iter(value)
    except TypeError:  # no test for __iter__, because an array without axes has __iter__, but its call fails
        raise HybridLabError(f"{wanted}, not {short_repr(value)}", "not-a-list") from None


def item_of(items: Sequence[Item], place: object, owner: str, noun: str) -> Item | tuple[Item, ...]:
    """Return one item of a sequence, or a tuple of items for a slice. Raise an error for any other index.

    Parameters
    ----------
    items : Sequence
        The items.
    place : object
        A whole number or a slice. A negative number counts from the end.
    owner, noun : str
        The name of the sequence and the name of one item, for the error, such as "the search" and "plan".

    Raises
    ------
    HybridLabError
        ``out-of-range`` if the sequence has no item with this number, ``wrong-type`` for another type, ``empty`` for an empty sequence.

    Examples
    --------
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
        if not count:
            raise HybridLabError(f"{owner} has no {noun}", "empty")
        code = "out-of-range" if isinstance(place, (int, np.integer)) and not isinstance(place, bool) else "wrong-type"
        raise HybridLabError(f"{owner} has {counted(count, noun)}: {asked}", code)
    return items[chosen] if isinstance(chosen, int) else tuple(items[each] for each in chosen)


def with_known_arguments(made: type[Item]) -> type[Item]:
    """Return the class. A call with an argument that it does not have, or without one that it needs, then raises an error that names it.

    Python's own error names no other argument, and is no HybridLabError.

    Parameters
    ----------
    made : type
        The class. It is changed.

    Examples
    --------
    >>> from hybridlab import Plan
    >>> Plan(tensor=8, pipeline=4)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: Plan also needs data, microbatch, global_batch
    """
    changed: Any = made  # mypy lets nobody change a method
    init, parameters = changed.__init__, inspect.signature(made).parameters
    known, needed = list(parameters), [name for name, each in parameters.items() if each.default is each.empty]

    @wraps(init)
    def checked(self: Any, *places: Any, **named: Any) -> None:
        for name in named:
            if name not in known:
                raise HybridLabError(f"{made.__name__} has no argument {name!r}. Known: {', '.join(known)}", "unknown-name")
        missing = [name for name in needed[len(places) :] if name not in named]
        if missing:
            raise HybridLabError(f"{made.__name__} also needs {', '.join(missing)}", "empty")
        init(self, *places, **named)

    changed.__init__ = checked
    return made


def short_repr(value: object) -> str:
    """Return the ``repr`` of a value, cut to 60 characters, for an error message.

    >>> short_repr([0] * 10**6)
    '[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,...'
    """
    try:
        # 60 items are enough to fill 60 characters
        text = repr(value[:60] if type(value) in (list, tuple) else value)  # type: ignore[index]
    except Exception:  # a broken __repr__, or an int too long to print, must not hide the first error
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def distinct_texts(*numbers: float) -> list[str]:
    """Return texts of numbers with 6 digits, or with as many more as it takes until different numbers have different texts.

    >>> distinct_texts(2.5, 1 / 3), distinct_texts(0.25, 0.2500000004)
    (['2.5', '0.333333'], ['0.25', '0.2500000004'])
    """
    for digits in (6, 8, 10, 12, 14, 17):  # 17 digits tell any two floats apart
        texts = [f"{number:.{digits}g}" for number in numbers]
        if len(set(texts)) == len(set(numbers)):
            break
    return texts


def counted(count: int, thing: str) -> str:
    """Return a count and its noun, in the singular or the plural.

    >>> counted(1, "device"), counted(8, "microbatch")
    ('1 device', '8 microbatches')
    """
    return f"{count:,} {thing}{'' if count == 1 else 'es' if thing.endswith('ch') else 's'}"
