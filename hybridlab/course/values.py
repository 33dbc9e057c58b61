"""Values on their way between the grader and a student's process, as JSON: plain values and arrays of numbers, and nothing else."""

import base64
import binascii
import functools
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

DEEPEST = 20  # lists within lists
MOST_BITS = 4096  # of a whole number
MOST_VALUES = 1_000_000  # of a range, or along one axis of an array: more than a line of the worker has room for
MOST_KEYS = 1000  # of a set, or of a dict whose keys are not text: numbers can be chosen so that finding one needs a look at all others
DTYPE = re.compile(r"[<>|=]?[biuf]\d{1,2}")  # numpy reads more than this, and some of it with an error of Python's own
PLAIN_KINDS = "biuf"  # of numpy's types: truth values, whole numbers and floats

Json = Any


def strict(array: Any) -> Any:
    """Return an array whose invalid operations, such as 0 / 0, raise an error even in a program that silences numpy's warnings."""
    return array.view(_strict_arrays())


@functools.cache
def _strict_arrays() -> Any:
    import numpy

    def plain(value: Any) -> Any:
        return value.view(numpy.ndarray) if isinstance(value, Strict) else value

    class Strict(numpy.ndarray):
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: tuple[Any, ...] = (), **settings: Any) -> Any:
            if out:
                settings["out"] = tuple(plain(each) for each in out)
            with numpy.errstate(invalid="raise"):
                result = getattr(ufunc, method)(*(plain(each) for each in inputs), **settings)
            if out:
                return out[0]
            return strict(result) if isinstance(result, numpy.ndarray) else result

    return Strict


class Opaque:
    """A value of which the other side knows only the name of its type."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __repr__(self) -> str:
        return f"<{self.type_name}>"


def encoded(value: Any, keep: Callable[[Any], Json] | None = None, depth: int = 0) -> Json:
    """Return a value as JSON. Text, numbers and lists are themselves; a dict with one name tells of another type.

    Parameters
    ----------
    value : Any
        Plain values, arrays of numbers, and lists, tuples, sets and dicts of them. Of any other value the name of its type is left.
    keep : callable, optional
        Returns the JSON for a value that is no plain one, such as a function, or None.
    depth : int
        How many lists contain this value.

    Examples
    --------
    >>> encoded([1, 2.5, ("1F0", None)])
    [1, 2.5, {'tuple': ['1F0', None]}]
    >>> encoded(object())
    {'opaque': 'object'}
    """
    kind = type(value)
    if value is None or kind is bool or kind is float or kind is str:
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
    if kind is Fraction or (kind is Decimal and value.is_finite()):
        return {"fraction": [encoded(number) for number in value.as_integer_ratio()]}
    numpy = sys.modules.get("numpy")
    if kind.__name__ == "Strict" and kind is _strict_arrays():
        return {"strict": encoded(value.view(numpy.ndarray))}  # type: ignore[union-attr]
    if numpy is not None and (kind is numpy.ndarray or isinstance(value, numpy.generic)) and value.dtype.kind in PLAIN_KINDS:
        content = base64.b64encode(numpy.ascontiguousarray(value).tobytes()).decode("ascii")
        return {"array" if kind is numpy.ndarray else "number": [value.dtype.str, list(value.shape), content]}
    kept = keep(value) if keep is not None else None
    return {"opaque": kind.__name__[:40]} if kept is None else kept


def decoded(content: Json, find: Callable[[str, Json], Any] | None = None) -> Any:
    """Return the value that :func:`encoded` has written.

    Parameters
    ----------
    content : JSON
        The value as JSON.
    find : callable, optional
        Takes the name and the content of what ``keep`` has written, and returns the value.

    Raises
    ------
    ValueError
        The content is not of this form.

    Examples
    --------
    >>> decoded(encoded([1, (2.5, {"gpipe": {3}})]))
    [1, (2.5, {'gpipe': {3}})]
    """
    if isinstance(content, list):
        return [decoded(each, find) for each in content]
    if not isinstance(content, dict):
        return content
    if len(content) != 1:
        raise ValueError("a value has one name for its type")
    ((name, inner),) = content.items()
    try:
        if name in ("set", "frozenset", "dict") and len(inner) > MOST_KEYS and not _by_text(name, inner):
            return Opaque(name)
        if name in ("tuple", "set", "frozenset"):
            return {"tuple": tuple, "set": set, "frozenset": frozenset}[name](decoded(each, find) for each in inner)
        if name == "dict":
            return {decoded(key, find): decoded(each, find) for key, each in inner}
        if name == "range" and all(type(number) is int and abs(number) < 2**62 for number in inner):
            numbers = range(*inner)
            return numbers if len(numbers) <= MOST_VALUES else Opaque("range")
        if name == "dots":
            return ...
        if name == "fraction" and all(type(number) is int for number in inner):
            return Fraction(*inner)
        if name == "strict":
            return strict(decoded(inner))
        if name in ("array", "number"):
            return _array(name, *inner)
        if name == "opaque":
            return Opaque(str(inner)[:40])
    except (TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError, MemoryError, binascii.Error) as why:
        raise ValueError(f"this is no {name}") from why
    if find is None:
        raise ValueError("a value of an unknown type")
    return find(name, inner)


def _by_text(name: str, inner: list[Any]) -> bool:
    return name == "dict" and all(type(key) is str for key, _ in inner)


def _array(name: str, dtype: str, shape: list[int], content: str) -> Any:
    import numpy

    if not DTYPE.fullmatch(dtype):
        raise ValueError("an array of other values than numbers")
    if max(shape, default=0) > MOST_VALUES:
        raise ValueError("an array of no numbers can have any length along another axis")
    kind = numpy.dtype(dtype)
    array = numpy.frombuffer(base64.b64decode(content, validate=True), kind).reshape(shape).copy()
    if kind.kind == "b":
        array = array.view(numpy.uint8) != 0  # a truth value is 0 or 1, whatever the byte is
    return array if name == "array" else array[()]
