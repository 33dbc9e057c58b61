"""Convert values to JSON and back, for messages between the grader and the process that runs a student's program (the worker).

Only plain values and arrays of numbers are sent. For any other value, the other process learns only the name of its type.
"""

import base64
import binascii
import functools
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

DEEPEST = 20  # the most levels of lists within lists
MOST_BITS = 4096  # the most bits of a whole number. They are 1,233 digits; Python converts a text of at most 4,300 digits to an int
# The most values of a range, or along one axis of an array. A message from a worker has no room for the numbers of a longer axis.
MOST_VALUES = 1_000_000
# The most keys of a set or a dict, unless all are texts or whole numbers that are not large. A program can choose other keys with equal
# hashes; each search for a key then compares all keys.
MOST_KEYS = 100
LARGE = 2**60  # whole numbers between -LARGE and LARGE have different hashes, except -1 and -2
MOST_EMPTY = 1000  # the most values along one axis of an array without numbers, which needs no bytes
DTYPE = re.compile(r"[<>|=]?[biuf]\d{1,2}")  # numpy accepts more texts, but some of them raise errors of unexpected types
PLAIN_KINDS = "biuf"  # the kinds of numpy types that are sent: truth values (b), whole numbers (i, u) and floats (f)

Json = Any


def strict(array: Any) -> Any:
    """Return an array that raises an error for an invalid operation such as 0 / 0, even if the program switches numpy's warnings off."""
    return array.view(_strict_arrays())


@functools.cache
def _strict_arrays() -> Any:
    """Return the class of arrays that raise an error for invalid operations."""
    import numpy  # imported here, so that a worker starts faster if its program does not use numpy

    def plain(value: Any) -> Any:
        return value.view(numpy.ndarray) if isinstance(value, Strict) else value

    class Strict(numpy.ndarray):
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: tuple[Any, ...] = (), **settings: Any) -> Any:
            if out:
                settings["out"] = tuple(plain(each) for each in out)  # numpy would call this method again for a Strict array
            with numpy.errstate(invalid="raise"):
                result = getattr(ufunc, method)(*(plain(each) for each in inputs), **settings)
            if out:
                return out[0]
            return strict(result) if isinstance(result, numpy.ndarray) else result

    return Strict


class Opaque:
    """A value of the other process that cannot be sent. This process knows only the name of its type."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __repr__(self) -> str:
        return f"<{self.type_name}>"


def encoded(value: Any, keep: Callable[[Any], Json] | None = None, depth: int = 0) -> Json:
    """Return a value as JSON. Texts, numbers and lists do not change. A value of another type becomes a dict with one entry, its type.

    Parameters
    ----------
    value : Any
        Plain values, arrays of numbers, and lists, tuples, sets and dicts of them. For any other value, the JSON has only the name of its
        type.
    keep : callable, optional
        Takes a value of any other type, such as a function, and returns JSON for this value. If it returns None, the JSON has only the
        name of the type.
    depth : int
        The number of lists and other collections around this value; 0 for the whole value.

    Examples
    --------
    >>> encoded([1, 2.5, ("1F0", None)])
    [1, 2.5, {'tuple': ['1F0', None]}]
    >>> encoded(object())
    {'opaque': 'object'}
    """
    kind = type(value)
    if value is None or kind is bool or kind is float or kind is str:  # an object of a subclass, such as an IntEnum, is not plain
        return value
    if kind is int:
        return value if value.bit_length() <= MOST_BITS else {"opaque": "whole number of too many digits"}
    if depth == DEEPEST:
        return {"opaque": "list within too many lists"}
    if kind is list:
        return [encoded(each, keep, depth + 1) for each in value]
    if kind in (tuple, set, frozenset):
        return {kind.__name__: [encoded(each, keep, depth + 1) for each in value]}
    if kind is dict:
        return {"dict": [[encoded(name, keep, depth + 1), encoded(each, keep, depth + 1)] for name, each in value.items()]}
    if kind is range:
        return {"range": [value.start, value.stop, value.step]}
    if value is ...:
        return {"dots": 0}
    # A Decimal becomes a Fraction, too, which is exact. NaN and infinity have no integer ratio, so they are not sent.
    if kind is Fraction or (kind is Decimal and value.is_finite()):
        return {"fraction": [encoded(number) for number in value.as_integer_ratio()]}
    numpy = sys.modules.get("numpy")
    if numpy is not None and (kind is numpy.str_ or (kind is numpy.ndarray and value.dtype.kind == "U")):
        return encoded(value.tolist(), keep, depth)  # texts have no dtype that can be sent
    # The name of the class is compared first, because the call of _strict_arrays imports numpy, which takes time.
    if kind.__name__ == "Strict" and kind is _strict_arrays():
        return {"strict": encoded(value.view(numpy.ndarray))}  # type: ignore[union-attr]
    if numpy is not None and kind is numpy.str_:
        return str(value)
    if numpy is not None and (kind is numpy.ndarray or isinstance(value, numpy.generic)) and value.dtype.kind in PLAIN_KINDS:
        content = base64.b64encode(numpy.ascontiguousarray(value).tobytes()).decode("ascii")
        return {"array" if kind is numpy.ndarray else "number": [value.dtype.str, list(value.shape), content]}
    other = keep(value) if keep is not None else None
    return {"opaque": kind.__name__[:40]} if other is None else other


def decoded(content: Json, find: Callable[[str, Json], Any] | None = None, depth: int = 0) -> Any:
    """Return the value from the JSON that :func:`encoded` has returned.

    Parameters
    ----------
    content : JSON
        The value as JSON.
    find : callable, optional
        Takes JSON that ``keep`` has returned, as two arguments: the name of its only entry, and the content of this entry. Returns the
        value.
    depth : int
        The number of lists and other collections around this value; 0 for the whole value.

    Raises
    ------
    ValueError
        The content is not JSON from :func:`encoded`.

    Examples
    --------
    >>> decoded(encoded([1, (2.5, {"gpipe": {3}})]))
    [1, (2.5, {'gpipe': {3}})]
    """
    if not isinstance(content, (list, dict)):
        return content
    if depth > DEEPEST:  # no value of `encoded` has so many levels, and a program that judges the value could fail at them
        raise ValueError("a value has too many lists within lists")
    if isinstance(content, list):
        return [decoded(each, find, depth + 1) for each in content]
    if len(content) != 1:
        raise ValueError("a value must have one name for its type")
    ((name, inner),) = content.items()
    try:
        # The content comes from a student's program, which could choose the keys of a set so that building it takes very long.
        if name in ("set", "frozenset", "dict") and len(inner) > MOST_KEYS and not _hashed_apart(name, inner):
            return Opaque(name)
        if name in ("tuple", "set", "frozenset"):
            return {"tuple": tuple, "set": set, "frozenset": frozenset}[name](decoded(each, find, depth + 1) for each in inner)
        if name == "dict":
            return {decoded(key, find, depth + 1): decoded(each, find, depth + 1) for key, each in inner}
        if name == "range" and all(type(number) is int and abs(number) < 2**62 for number in inner):
            numbers = range(*inner)
            return numbers if len(numbers) <= MOST_VALUES else Opaque("range")
        if name == "dots":
            return ...
        if name == "fraction" and all(type(number) is int for number in inner):
            return Fraction(*inner)
        if name == "strict":
            return strict(decoded(inner, depth=depth + 1))
        if name in ("array", "number"):
            return _array(name, *inner)
        if name == "opaque":
            return Opaque(str(inner)[:40])
    except (TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError, MemoryError, binascii.Error) as why:
        raise ValueError(f"this is not a {name}") from why
    if find is None:
        raise ValueError("the value has an unknown type")
    try:
        return find(name, inner)
    except (TypeError, AttributeError) as why:  # the reference has another form
        raise ValueError(f"this is not a {name}") from why


def _hashed_apart(name: str, inner: list[Any]) -> bool:
    """Return whether no program can choose these keys so that many have one hash. Python hashes texts with a random seed."""
    keys = (key for key, _ in inner) if name == "dict" else iter(inner)
    return all(type(key) is str or (type(key) is int and -LARGE < key < LARGE) for key in keys)


def _array(name: str, dtype: str, shape: list[int], content: str) -> Any:
    """Return the array or numpy number that JSON describes. Raise a ValueError if it describes neither."""
    import numpy

    if not DTYPE.fullmatch(dtype):
        raise ValueError("an array must have numbers")
    # An array of shape (10**12, 0) has no numbers and so needs no bytes, but a loop over its long axis would never end. One message can
    # have thousands of such arrays, so their axes must be short.
    if max(shape, default=0) > (MOST_EMPTY if 0 in shape else MOST_VALUES):
        raise ValueError("an axis of an array is too long")
    kind = numpy.dtype(dtype)
    array = numpy.frombuffer(base64.b64decode(content, validate=True), kind).reshape(shape).copy()
    if kind.kind == "b":
        array = array.view(numpy.uint8) != 0  # a truth value must be stored as 0 or 1, but this byte can be any
    return array if name == "array" else array[()]
