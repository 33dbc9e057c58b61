"""The twists of lab 5's builds: the same messages with other codes, other scales, or their parts in another order."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.course.checking.builds import KnownMistake
from hybridlab.course.labs.lab05.messages import DECODE, FEEDBACK
from hybridlab.course.labs.lab05.messages import Encoded, sent_and_left
from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import in_words_of_the_page, show_changes, together
from hybridlab.errors import HybridLabError

Array = np.ndarray[Any, Any]


def _two_arrays(result: Any) -> Encoded:
    """Return two arrays with one axis, of any type, or raise."""
    if isinstance(result, (tuple, list)) and len(result) == 2 and all(isinstance(each, np.ndarray) and each.ndim == 1 for each in result):
        return np.asarray(result[0]), np.asarray(result[1])
    raise HybridLabError("the function returns two arrays", "not-a-pair")


def _of_encode(rename: Callable[[Array, Array], tuple[Any, Any]]) -> Callable[[Function], Function]:
    """Return a ``standard`` that renames the two results of encode, the codes and the scales."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def encode(values: Floats, block: int) -> Any:
            return in_words_of_the_page(function(values, block), _two_arrays, lambda pair: rename(*pair))

        return encode

    return standard


def _signed_or_not(codes: Array) -> Array:
    """Return int8 codes for uint8 codes with 128 added, and the other way round, so that codes of the wrong type stay wrong."""
    if codes.dtype not in (np.int8, np.uint8):
        return codes
    return (codes.view(np.uint8) ^ np.uint8(128)).view(np.int8 if codes.dtype == np.uint8 else np.uint8)


def _scales_times(scales: Array, factor: float) -> Array:
    """Return float32 scales times a factor; scales of another type as they are."""
    return (scales * factor).astype(np.float32) if scales.dtype == np.float32 else scales


def _inverse(scales: Array) -> Array:
    """Return 1 / scale for float32 scales, and 0 for 0; scales of another type as they are."""
    if scales.dtype != np.float32:
        return scales
    with np.errstate(all="ignore"):
        return np.divide(1, scales, out=np.zeros_like(scales), where=scales != 0)


def _short_block_first(function: Function) -> Function:
    """Turn around the message and what comes out of it: then its short block is the last."""

    @wraps(function)
    def encode(values: Floats, block: int) -> Any:
        return in_words_of_the_page(function(values[::-1], block), _two_arrays, lambda pair: (pair[0][::-1], pair[1][::-1]))

    return encode


UNSIGNED = Twist("unsigned", "the codes are a uint8 array, and 128 is added to each code", _of_encode(lambda c, s: (_signed_or_not(c), s)))
LAST_SCALE_FIRST = Twist("last-scale-first", "the scales go from the last block to the first", _of_encode(lambda c, s: (c, s[::-1])))
PEAKS = Twist(
    "peaks",
    "the second result has the largest magnitude of each block itself, not divided by 127",
    _of_encode(lambda codes, scales: (codes, _scales_times(scales, 1 / 127))),
)
FACTORS = Twist(
    "factors",
    "the second result has for each block the factor 127 / (largest magnitude), and 0 for a block of zeros",
    _of_encode(lambda codes, scales: (codes, _inverse(scales))),
)
SCALES_FIRST = Twist("scales-first", "the function returns the scales first, then the codes", _of_encode(lambda s, c: (c, s)))
SHORT_FIRST = Twist(
    "short-block-first", "the first block is the shorter one, not the last, if n is no multiple of block", _short_block_first
)

ENCODE_TWISTS = (
    UNSIGNED,
    together(SHORT_FIRST, SCALES_FIRST),
    PEAKS,
    together(LAST_SCALE_FIRST, UNSIGNED),
    SHORT_FIRST,
    FACTORS,
    together(PEAKS, LAST_SCALE_FIRST),
    together(SHORT_FIRST, UNSIGNED),
    LAST_SCALE_FIRST,
    together(FACTORS, SCALES_FIRST),
)


def _without(mistakes: Sequence[KnownMistake], code: str) -> Mapping[str, Any]:
    """Return the changes of a twist under which one of the known mistakes is none."""
    return {"mistakes": [mistake for mistake in mistakes if mistake.code != code]}


def _of_codes(function: Function) -> Function:
    @wraps(function)
    def decode(codes: Array, scales: Array, block: int) -> Any:
        other = _signed_or_not(codes)
        before = other.copy()
        result = function(other, scales, block)
        show_changes(codes, other, before, _signed_or_not)
        return result

    return decode


def _of_scales(there: Callable[[Array], Array], back: Callable[[Array], Array]) -> Callable[[Function], Function]:
    """Return a ``standard`` that renames the scales that decode gets."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def decode(codes: Array, scales: Array, block: int) -> Any:
            other = there(scales)
            before = other.copy()
            result = function(codes, other, block)
            show_changes(scales, other, before, back)
            return result

        return decode

    return standard


def _turned(function: Function) -> Function:
    @wraps(function)
    def decode(codes: Array, scales: Array, block: int) -> Any:
        result = function(codes[::-1], scales[::-1], block)
        return result[::-1] if isinstance(result, np.ndarray) and result.ndim else result

    return decode


def _scales_before_codes(function: Function) -> Function:
    @wraps(function)
    def decode(codes: Array, scales: Array, block: int) -> Any:
        return function(scales, codes, block)

    return decode


FROM_UNSIGNED = Twist("unsigned", "codes is a uint8 array: 128 has been added to each code", _of_codes)
FROM_LAST_SCALE = Twist("last-scale-first", LAST_SCALE_FIRST.sentence, _of_scales(lambda scales: scales[::-1], lambda scales: scales[::-1]))
FROM_PEAKS = Twist(
    "peaks",
    "scales has the largest magnitude of each block, which is 127 times the scale",
    _of_scales(lambda scales: _scales_times(scales, 127), lambda scales: _scales_times(scales, 1 / 127)),
    _without(DECODE, "divided-again"),
)
FROM_FACTORS = Twist("factors", "scales has 1 / scale for each block, and 0 for a block whose scale is 0", _of_scales(_inverse, _inverse))
FROM_SHORT_FIRST = Twist("short-block-first", SHORT_FIRST.sentence.replace("if n is", "if the number of codes is"), _turned)
TAKES_SCALES_FIRST = Twist("scales-first", "the function takes the scales first: decode(scales, codes, block)", _scales_before_codes)

DECODE_TWISTS = (
    FROM_SHORT_FIRST,
    together(FROM_PEAKS, TAKES_SCALES_FIRST),
    FROM_UNSIGNED,
    together(FROM_LAST_SCALE, FROM_PEAKS),
    together(FROM_SHORT_FIRST, FROM_UNSIGNED),
    FROM_FACTORS,
    FROM_LAST_SCALE,
    together(FROM_UNSIGNED, TAKES_SCALES_FIRST),
    FROM_PEAKS,
    together(FROM_SHORT_FIRST, FROM_FACTORS),
)


def _of_residual(given: float, returned: float) -> Callable[[Function], Function]:
    """Return a ``standard`` that multiplies the residual that the function gets, and the one that it returns."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def with_feedback(gradient: Floats, residual: Floats, block: int) -> Any:
            other = given * residual
            before = other.copy()
            result = function(gradient, other, block)
            show_changes(residual, other, before, lambda changed: changed / given)
            return in_words_of_the_page(result, sent_and_left, lambda pair: (pair[0], returned * pair[1]))

        return with_feedback

    return standard


def _residual_first(function: Function) -> Function:
    @wraps(function)
    def with_feedback(gradient: Floats, residual: Floats, block: int) -> Any:
        return in_words_of_the_page(function(gradient, residual, block), sent_and_left, lambda pair: (pair[1], pair[0]))

    return with_feedback


def _from_the_end(function: Function) -> Function:
    @wraps(function)
    def with_feedback(gradient: Floats, residual: Floats, block: int) -> Any:
        result = function(gradient[::-1], residual[::-1], block)
        return in_words_of_the_page(result, sent_and_left, lambda pair: (pair[0][::-1], pair[1][::-1]))

    return with_feedback


TOO_MUCH = Twist(
    "sent-too-much",
    "a residual is what was sent too much: what is decoded minus the new residual equals the gradient minus the old one",
    _of_residual(-1, -1),
)
HALF = Twist(
    "half-of-the-residual",
    "half of the old residual is added: what is decoded plus the new residual equals the gradient plus residual / 2",
    _of_residual(2, 1),
)
DOUBLED = Twist(
    "doubled-residual",
    "a residual, given or returned, is twice the part that the rounding removed",
    _of_residual(2, 0.5),
)
RESIDUAL_FIRST = Twist(
    "residual-first",
    "the function returns the new residual first, then what the receiver decodes",
    _residual_first,
    _without(FEEDBACK, "swapped"),
)
SHORT_BLOCK_IN_FRONT = Twist("short-block-first", SHORT_FIRST.sentence, _from_the_end)

FEEDBACK_TWISTS = (
    TOO_MUCH,
    together(HALF, RESIDUAL_FIRST),
    SHORT_BLOCK_IN_FRONT,
    DOUBLED,
    together(TOO_MUCH, RESIDUAL_FIRST),
    HALF,
    together(SHORT_BLOCK_IN_FRONT, TOO_MUCH),
    together(DOUBLED, RESIDUAL_FIRST),
)
