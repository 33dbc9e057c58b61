"""Values that travel between the grader and a student's process as JSON: plain values and arrays of numbers, nothing else."""

import base64
import binascii
import functools
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

DEEPEST = 20  # levels of lists within lists
MOST_BITS = 4096  # bits of a whole number, or 1,233 digits; Python reads at most 4,300 digits of a text
MOST_VALUES = 1_000_000  # values of a range, or along one axis of an array; a line of the worker has no room for so many
MOST_KEYS = 1000  # keys of a set or dict that are not text: numbers can be chosen so that a search compares all of them
DTYPE = re.compile(r"[<>|=]?[biuf]\d{1,2}")  # numpy accepts more texts, and some of them raise errors of other types
PLAIN_KINDS = "biuf"  # kinds of numpy's types: truth values, whole numbers and floats

Json = Any


def strict(array: Any) -> Any:
    """Return an array that raises an error for invalid operations, such as 0 / 0, even if the program silences numpy's warnings."""
    return array.view(_strict_arrays())


@functools.cache
def _strict_arrays() -> Any:
    """Return the class of arrays that raise an error for invalid operations."""
    import numpy  # here, so that a worker whose program does not use it starts faster

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
    """A value of the other process, of which only the name of the type is known here."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __repr__(self) -> str:
        return f"<{self.type_name}>"


def encoded(value: Any, keep: Callable[[Any], Json] | None = None, depth: int = 0) -> Json:
    """Return a value as JSON. Texts, numbers and lists stay as they are. A value of another type becomes a dict with one name.

    Parameters
    ----------
    value : Any
        Plain values, arrays of numbers, and lists, tuples, sets and dicts of them. Any other value becomes the name of its type.
    keep : callable, optional
        A function that returns the JSON for another value, such as a function, or None.
    depth : int
        The number of lists that this value is in.

    Examples
    --------
    >>> encoded([1, 2.5, ("1F0", None)])
    [1, 2.5, {'tuple': ['1F0', None]}]
    >>> encoded(object())
    {'opaque': 'object'}
    """
    kind = type(value)
    if value is None or kind is bool or kind is float or kind is str:  # subclasses, such as an IntEnum, are not plain
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
    # Both become a Fraction, which is exact. NaN and infinity have no ratio.
    if kind is Fraction or (kind is Decimal and value.is_finite()):
        return {"fraction": [encoded(number) for number in value.as_integer_ratio()]}
    numpy = sys.modules.get("numpy")
    # The name is compared first, because the function imports numpy.
    if kind.__name__ == "Strict" and kind is _strict_arrays():
        return {"strict": encoded(value.view(numpy.ndarray))}  # type: ignore[union-attr]
    if numpy is not None and (kind is numpy.ndarray or isinstance(value, numpy.generic)) and value.dtype.kind in PLAIN_KINDS:
        content = base64.b64encode(numpy.ascontiguousarray(value).tobytes()).decode("ascii")
        return {"array" if kind is numpy.ndarray else "number": [value.dtype.str, list(value.shape), content]}
    other = keep(value) if keep is not None else None
    return {"opaque": kind.__name__[:40]} if other is None else other


def decoded(content: Json, find: Callable[[str, Json], Any] | None = None) -> Any:
    """Return the value that :func:`encoded` has turned into JSON.

    Parameters
    ----------
    content : JSON
        The value as JSON.
    find : callable, optional
        A function that takes the name and the content of the JSON from ``keep``, and returns the value.

    Raises
    ------
    ValueError
        The content does not have this form.

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
        raise ValueError("a value must have one name for its type")
    ((name, inner),) = content.items()
    try:
        # The content comes from a student's program, which must not be able to slow the grader down.
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
        raise ValueError(f"this is not a {name}") from why
    if find is None:
        raise ValueError("the value has an unknown type")
    return find(name, inner)


def _by_text(name: str, inner: list[Any]) -> bool:
    """Return whether this is a dict with texts as keys. Python chooses the hashes of texts at random, so nobody can choose them."""
    return name == "dict" and all(type(key) is str for key, _ in inner)


def _array(name: str, dtype: str, shape: list[int], content: str) -> Any:
    """Return the array or the number of numpy that JSON describes, or raise ValueError."""
    import numpy

    if not DTYPE.fullmatch(dtype):
        raise ValueError("an array must have numbers")
    # An array without numbers, shape (0, 10**12), needs no bytes, but programs that walk over it would never end.
    if max(shape, default=0) > MOST_VALUES:
        raise ValueError("an axis of an array is too long")
    kind = numpy.dtype(dtype)
    array = numpy.frombuffer(base64.b64decode(content, validate=True), kind).reshape(shape).copy()
    if kind.kind == "b":
        array = array.view(numpy.uint8) != 0  # the byte can be any, but a truth value is 0 or 1
    return array if name == "array" else array[()]
