"""Maps: changes of a value that can be undone, such as "add 1" or "reverse the list".

A twist is a small change of the lab's task for one student, and consists of maps of the arguments and of the result. "The task without a
twist" is the task as the lab's notebook states it. ``apply`` takes a value of the task without a twist and returns the value of the
twisted task. ``undo`` does the opposite.

A map keeps the type of a value: text stays text, a tuple stays a tuple, an array keeps its type. For a value that a map cannot change, it
raises an error.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cache, wraps
from itertools import accumulate, pairwise
from typing import Any, NoReturn

import numpy as np

from hybridlab.checks import short_repr
from hybridlab.course.checking.answers import same
from hybridlab.course.checking.calls import Relayed
from hybridlab.course.results import listed

Function = Callable[..., Any]
Change = Callable[[Any], Any]  # takes a value and returns the changed value
# Takes a value and the case: the arguments of the call in the task without a twist. Returns the changed value.
ChangeInCase = Callable[[Any, tuple[Any, ...]], Any]
ChangeOfPlace = Callable[[int, int, tuple[Any, ...]], tuple[int, int]]  # takes stage, microbatch and case; returns stage and microbatch

# the errors that a map can raise if a value does not have the form that the map expects
NOT_OF_THIS_FORM = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
_OPERATION = re.compile(r"(0|[1-9]\d{0,8})([FBIW])(0|[1-9]\d{0,8})", re.IGNORECASE)
_LABEL = re.compile(r"\s*(?:device\s+\d+\s*:)?", re.IGNORECASE)  # the start of a line, before its operations


@dataclass(frozen=True)
class Map:
    """A change of a value, and the opposite change.

    Parameters
    ----------
    apply : callable
        Takes a value of the task without a twist, and the case: a tuple of the call's arguments in the task without a twist. Returns the
        value of the twisted task.
    undo : callable
        Takes a value of the twisted task, and the same case. Returns the value of the task without a twist.
    """

    apply: ChangeInCase
    undo: ChangeInCase

    def then(self, other: "Map") -> "Map":
        """Return the map that applies this map, then the ``other`` map.

        >>> scaled(2).then(shifted(1)).apply([3, 5], ())
        [7, 11]
        """
        return Map(
            lambda value, case: other.apply(self.apply(value, case), case),
            lambda value, case: self.undo(other.undo(value, case), case),
        )


def of_value(apply: Change, undo: Change) -> Map:
    """Return a map from two functions that take only the value, without the case."""
    return Map(lambda value, case: apply(value), lambda value, case: undo(value))


def one_way(apply: Change) -> Map:
    """Return a map that can only be applied. This is enough for an argument of the student's function, which is never mapped back."""
    return of_value(apply, _cannot_be_undone)


def _cannot_be_undone(value: Any) -> NoReturn:
    raise NotImplementedError("this map is for arguments of a build, and cannot be undone")


def refuse(value: Any, wanted: str) -> NoReturn:
    """Raise the error for a result of the student's function whose map cannot be undone."""
    raise Relayed(f"the function returns {short_repr(value)}, but your task asks for {wanted}", "another-form")


def like(value: Any, items: Sequence[Any]) -> Any:
    """Return items as a tuple if ``value`` is a tuple, else as a list."""
    return tuple(items) if isinstance(value, tuple) else list(items)


# --- sequences and lines ---------------------------------------------------------------------------------------------------------


def arranged(order_of: Callable[[int], Sequence[int]]) -> Map:
    r"""Return the map that puts the items of a list, a tuple or an array, or the lines of a text, into another order.

    Parameters
    ----------
    order_of : callable
        Takes the number of items. Returns an order: item i of the twisted value is item ``order[i]`` of the value without a twist.

    Examples
    --------
    >>> one_further = arranged(lambda count: [(place + 1) % count for place in range(count)])
    >>> one_further.apply("device 0: 0F0\ndevice 1: 1F0\ndevice 2: 2F0", ())
    'device 0: 1F0\ndevice 1: 2F0\ndevice 2: 0F0'
    >>> one_further.undo(("1F0", "2F0", "0F0"), ())
    ('0F0', '1F0', '2F0')
    """
    return of_value(
        lambda value: _rearranged(value, order_of),
        lambda value: _rearranged(value, lambda count: np.argsort(order_of(count)).tolist()),
    )


def _rearranged(value: Any, order_of: Callable[[int], Sequence[int]]) -> Any:
    if isinstance(value, np.ndarray) and value.ndim:
        return value[list(order_of(len(value)))] if len(value) else value
    if isinstance(value, (list, tuple, range)):
        return like(value, [value[place] for place in order_of(len(value))])
    if isinstance(value, str):  # operations move to another line, but a label such as "device 0:" stays
        lines = [line for line in value.splitlines() if line.strip()]
        labels = [_LABEL.match(line)[0] for line in lines]  # type: ignore[index]
        bodies = [line[len(label) :] for line, label in zip(lines, labels, strict=True)]
        return "\n".join(labels[to] + bodies[place] for to, place in enumerate(order_of(len(lines))))
    return refuse(value, "a list")


REVERSED = arranged(lambda count: range(count - 1, -1, -1))


def words(apply: Callable[[str, tuple[Any, ...]], str], undo: Callable[[str, tuple[Any, ...]], str]) -> Map:
    r"""Return the map that changes each word of a text, or each word of all texts in a list.

    A word ends at a blank or a comma.

    >>> upper = words(lambda word, case: word.upper(), lambda word, case: word.lower())
    >>> upper.apply(["0f0  0b0", ["1f0"]], ())
    ['0F0  0B0', ['1F0']]
    """

    def each_once(change: Callable[[str, tuple[Any, ...]], str]) -> ChangeInCase:
        # a change of a word can read the whole case, and a wrong program can return a word a thousand times
        return lambda value, case: _with_words(value, cache(lambda word: change(word, case)))

    return Map(each_once(apply), each_once(undo))


def _with_words(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return re.sub(r"[^\s,]+", lambda found: change(found[0]), value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "UO":
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return like(value, [_with_words(each, change) for each in value])
    return refuse(value, "operations as text")


def operations(apply: ChangeOfPlace, undo: ChangeOfPlace) -> Map:
    """Return the map that changes the stage and the microbatch of operations such as ``"0F0"``, in a text or in lists of texts.

    Both functions take a stage, a microbatch and the case. They return the new stage and microbatch.

    >>> def down(stage, microbatch, case):
    ...     return 2 - stage, microbatch
    >>> from_stage_2 = operations(down, down)
    >>> from_stage_2.apply(["0F0 0B0", "1F10"], ()), from_stage_2.undo("2F0 2B0", ())
    (['2F0 2B0', '1F10'], '0F0 0B0')
    """

    def in_word(change: ChangeOfPlace) -> Callable[[str, tuple[Any, ...]], str]:
        def changed(word: str, case: tuple[Any, ...]) -> str:
            if not (found := _OPERATION.fullmatch(word)):
                return word
            stage, microbatch = change(int(found[1]), int(found[3]), case)
            return f"{stage}{found[2]}{microbatch}"

        return changed

    return words(in_word(apply), in_word(undo))


SPLIT_WORDS = of_value(str.split, " ".join)


# --- numbers ---------------------------------------------------------------------------------------------------------------------


def each_number(apply: ChangeInCase, undo: ChangeInCase) -> Map:
    """Return the map that changes a number, or each number in an array, a list, a tuple or a dict. An array of floats keeps its dtype.

    >>> each_number(lambda value, case: case[0] - value, lambda value, case: case[0] - value).apply((1, [2.5]), (4,))
    (3, [1.5])
    """
    return Map(lambda value, case: _with_numbers(value, apply, case), lambda value, case: _with_numbers(value, undo, case))


def _with_numbers(value: Any, change: ChangeInCase, case: tuple[Any, ...]) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        changed = np.asanyarray(change(value, case))  # keeps a subclass, such as the grader's arrays that raise an error for NaN
        return changed.astype(value.dtype) if value.dtype.kind == "f" else changed
    if isinstance(value, (int, float, Fraction, Decimal, np.number)) and not isinstance(value, bool):
        return change(float(value) if isinstance(value, Decimal) else value, case)
    if isinstance(value, (list, tuple, range)):
        return like(value, [_with_numbers(each, change, case) for each in value])
    if isinstance(value, dict):
        return {name: _with_numbers(each, change, case) for name, each in value.items()}
    return refuse(value, "numbers")


def scaled(factor: float) -> Map:
    """Return the map that multiplies numbers by ``factor``.

    >>> scaled(0.5).apply([4, 2.0], ()), scaled(0.5).undo([2.0, 1.0], ())
    ([2.0, 1.0], [4.0, 2.0])
    """
    return each_number(lambda value, case: value * factor, lambda value, case: value / factor)


def shifted(by: float) -> Map:
    """Return the map that adds ``by`` to numbers.

    >>> shifted(1).apply({"start": 0}, ())
    {'start': 1}
    """
    return each_number(lambda value, case: value + by, lambda value, case: value - by)


def taken_from(total: Callable[[tuple[Any, ...]], float]) -> Map:
    """Return the map that replaces a number by ``total - number``. The function ``total`` computes the total from the case.

    An example is "microbatches that are missing" in place of "microbatches that have arrived".

    >>> taken_from(lambda case: case[1]).apply([3, 0], (2, 8))
    [5, 8]
    """
    return each_number(lambda value, case: total(case) - value, lambda value, case: total(case) - value)


def _sums(value: Any) -> Any:
    return np.cumsum(value) if isinstance(value, np.ndarray) else like(value, list(accumulate(value)))


def _differences(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return np.diff(value, prepend=value.dtype.type(0))
    if not isinstance(value, (list, tuple)):
        refuse(value, "a list of numbers")
    try:
        return like(value, [after - before for before, after in pairwise([0, *value])])
    except TypeError:
        return refuse(value, "a list of numbers")


RUNNING_SUMS = of_value(_sums, _differences)


# --- results of several parts, dicts, functions ----------------------------------------------------------------------------------


def exchanged(order: Sequence[int]) -> Map:
    """Return the map that puts the results of a function into another order.

    Result i in the twisted task is result ``order[i]`` in the task without a twist.

    >>> exchanged((1, 0)).apply(("codes", "scales"), ())
    ('scales', 'codes')
    >>> exchanged((2, 0, 1)).undo(("c", "a", "b"), ())
    ('a', 'b', 'c')
    """

    def change(value: Any, places: Sequence[int]) -> Any:
        if not isinstance(value, (list, tuple, np.ndarray)) or getattr(value, "ndim", 1) == 0 or len(value) != len(order):
            refuse(value, f"{len(order)} results")
        return value[list(places)] if isinstance(value, np.ndarray) else like(value, [value[place] for place in places])

    return of_value(lambda value: change(value, order), lambda value: change(value, np.argsort(order).tolist()))


def at(key: Any, inner: Map) -> Map:
    """Return the map that applies ``inner`` to one item of a tuple, a list or an array, or to one value of a dict.

    >>> at(1, scaled(2)).apply(("a", 3), ()), at("end", shifted(-1)).apply({"start": 0, "end": 2}, ())
    (('a', 6), {'start': 0, 'end': 1})
    """

    def change(value: Any, of_item: ChangeInCase, case: tuple[Any, ...]) -> Any:
        if isinstance(value, dict) and key in value:
            return {**value, key: of_item(value[key], case)}
        if isinstance(value, (list, tuple, np.ndarray)) and isinstance(key, int) and -len(value) <= key < len(value):
            place = key % len(value)
            if isinstance(value, np.ndarray):
                return np.concatenate([value[:place], [of_item(value[place], case)], value[place + 1 :]])
            return like(value, [*value[:place], of_item(value[place], case), *value[place + 1 :]])
        return refuse(value, f"a dict with {key!r}" if isinstance(key, str) else "several results")

    return Map(lambda value, case: change(value, inner.apply, case), lambda value, case: change(value, inner.undo, case))


def each(inner: Map) -> Map:
    """Return the map that applies ``inner`` to each item of a list or a tuple, or to each value of a dict.

    >>> each(SPLIT_WORDS).apply(["0F0 0B0", "1F0"], ())
    [['0F0', '0B0'], ['1F0']]
    """

    def change(value: Any, of_item: ChangeInCase, case: tuple[Any, ...]) -> Any:
        if isinstance(value, dict):
            return {name: of_item(item, case) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return like(value, [of_item(item, case) for item in value])
        return refuse(value, "a list")

    return Map(lambda value, case: change(value, inner.apply, case), lambda value, case: change(value, inner.undo, case))


def keys(inner: Map) -> Map:
    """Return the map that applies ``inner`` to each key of a dict.

    >>> keys(shifted(1)).apply({0: "F", 1: "B"}, ())
    {1: 'F', 2: 'B'}
    """

    def change(value: Any, of_key: ChangeInCase, case: tuple[Any, ...]) -> Any:
        if not isinstance(value, dict):
            refuse(value, "a dict")
        return {of_key(key, case): item for key, item in value.items()}

    return Map(lambda value, case: change(value, inner.apply, case), lambda value, case: change(value, inner.undo, case))


def renamed(names: Mapping[str, str]) -> Map:
    """Return the map that renames keys of a dict. ``names`` has the new name for each key to rename.

    >>> renamed({"end": "until"}).apply({"op": "0F0", "end": 3}, ())
    {'op': '0F0', 'until': 3}
    """

    def change(value: Any, other: Mapping[str, str]) -> Any:
        if not isinstance(value, dict):
            refuse(value, "a dict")
        return {other.get(name, name): each for name, each in value.items()}

    return of_value(lambda value: change(value, names), lambda value: change(value, {new: old for old, new in names.items()}))


@dataclass(frozen=True)
class FunctionMap(Map):
    """The map of a function: it changes the arguments, the result, and the order of the arguments.

    Parameters
    ----------
    given : mapping of int to Map
        The maps of arguments, by the index of the argument in the signature without a twist.
    result : Map, optional
        The map of the result.
    order : sequence of int
        For each argument of the twisted function, the index of this argument in the signature without a twist. Empty if the order is the
        same.

    Examples
    --------
    >>> last_first = FunctionMap(given={0: REVERSED}, result=scaled(2), order=(1, 0))
    >>> last_first.apply(lambda values, by: values[0] + by, ())(10, [1, 2, 3])
    26
    >>> last_first.undo(lambda by, values: 2 * (values[-1] + by), ())([3, 2, 1], 10)
    13.0
    """

    apply: ChangeInCase = field(init=False)
    undo: ChangeInCase = field(init=False)
    given: Mapping[int, Map] = field(default_factory=dict)
    result: Map | None = None
    order: Sequence[int] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "apply", lambda function, case: self._twist(function))
        object.__setattr__(self, "undo", lambda function, case: self._untwist(function))

    def then(self, other: Map) -> "FunctionMap":
        """Return the map that applies this map, then the ``other`` map of a function.

        >>> swapped = FunctionMap(order=(1, 0)).then(FunctionMap(result=scaled(2)))
        >>> swapped.arguments([3, 5]), swapped.apply(lambda first, second: first - second, ())(5, 3)
        ([5, 3], -4)
        """
        if not isinstance(other, FunctionMap):
            raise TypeError("a map of a function can only be combined with another one")
        given = dict(self.given)
        for place, inner in other.given.items():
            given[place] = given[place].then(inner) if place in given else inner
        results = [each.result for each in (self, other) if each.result]
        result = results[0].then(results[1]) if len(results) > 1 else next(iter(results), None)
        return FunctionMap(given, result, self.order or other.order)

    def arguments(self, case: Sequence[Any]) -> list[Any]:
        """Return the arguments of a call of the twisted function, from the arguments of the call without a twist."""
        own = [self.given[place].apply(value, tuple(case)) if place in self.given else value for place, value in enumerate(case)]
        return [own[place] for place in self.order or range(len(own))]

    def _untwist(self, function: Function) -> Function:
        """Return a function for the task without a twist, from a function for the twisted task."""

        @wraps(function)
        def without_twist(*case: Any) -> Any:
            own = self.arguments(case)
            # The function can change its arguments, but the map of the result needs the arguments from before the call.
            known = tuple(deepcopy(each) if isinstance(each, (list, dict)) else each for each in case)
            mapped = [value for place, value in zip(self.order or range(len(own)), own, strict=True) if place in self.given]
            before = deepcopy(mapped)  # the judge checks that the other arguments do not change
            returned = function(*own)
            for now, then in zip(mapped, before, strict=True):
                refuse_change(now, then)
            if self.result is None or returned is None:
                return returned
            returned = listed(returned)
            try:
                return self.result.undo(returned, known)
            except NOT_OF_THIS_FORM:
                return refuse(returned, "another form of result: compare it with the example")

        return without_twist

    def _twist(self, function: Function) -> Function:
        """Return a function for the twisted task, from a function for the task without a twist."""

        @wraps(function)
        def with_twist(*own: Any) -> Any:
            case = list(own)
            for to, place in enumerate(self.order):
                case[place] = own[to]
            mapped = {place: case[place] for place in self.given}
            for place, value in mapped.items():
                case[place] = self.given[place].undo(value, tuple(case))
            before = deepcopy([case[place] for place in mapped])
            returned = function(*case)
            for (place, value), then in zip(mapped.items(), before, strict=True):
                if not same(case[place], then):
                    value[:] = self.given[place].apply(case[place], tuple(case))  # a change of an argument must reach the caller's value
            return returned if self.result is None else self.result.apply(returned, tuple(case))

        return with_twist


def refuse_change(now: Any, before: Any) -> None:
    """Raise an error if the student's function has changed an argument. ``now`` is the argument after the call."""
    if not same(now, before):
        old, new = short_repr(before), short_repr(now)
        changed = f": {old} has become {new}" if old != new else ""  # short_repr can hide the change in a long list
        raise Relayed(f"the function changes its argument{changed}; work on a copy", "changes-its-argument")
