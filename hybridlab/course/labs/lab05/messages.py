"""Messages in INT8 for the builds of lab 5: the cases, and how a result is read."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock
import numpy as np
from hybridlab.arrays import Floats
from hybridlab.checks import counted
from hybridlab.course.checking.builds import Case
from hybridlab.course.values import strict
from hybridlab.errors import HybridLabError
from hybridlab.wire import WireFormat
from collections.abc import Callable
from typing import Any
import numpy as np
from hybridlab.arrays import Floats, Ints
from hybridlab.course.checking.builds import KnownMistake

SIZES = ((1, 1), (2, 1), (3, 2), (4, 8), (5, 4), (12, 4), (100, 7), (256, 256), (1000, 256))  # numbers, and the block
STEPS = 200

Encoded = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def _in_blocks(size: int, block: int) -> str:
    """Return words for a message, with the length of its last block if that is short."""
    short = f", of which the last has {size % block}" if size > block and size % block else ""
    return f"{counted(size, 'number')} in blocks of {block}{short}"


def array(value: Any, what: str, kind: type, hint: str = "") -> np.ndarray[Any, Any]:
    """Return an array with one axis and numbers of one type, or raise an error that calls it ``what``; ``hint`` is for a wrong type."""
    if not isinstance(value, np.ndarray):
        kind_of = type(value).__name__[:40]
        raise HybridLabError(f"{what} must be a numpy array, but are {'an' if kind_of[0] in 'aeiou' else 'a'} {kind_of}", "not-an-array")
    if value.dtype != kind:
        raise HybridLabError(f"{what} must be {np.dtype(kind)}, but are {value.dtype}{hint}", "wrong-type")
    if value.ndim != 1:
        raise HybridLabError(f"{what} have the shape {value.shape}, not one axis", "wrong-shape")
    return np.asarray(value)


def _pair(result: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise HybridLabError(f"the function returns two arrays, {what}: end it with `return` and both names", "not-a-pair")
    return result[0], result[1]


def _without_the_library(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns that does not call the library's own INT8."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise HybridLabError("write INT8 with numpy in this task, not with the library", "library-called")

    with mock.patch.multiple(WireFormat, encode=refuse, decode=refuse):
        return call(*arguments)


def _with_zeros(call: Callable[..., Any], values: Floats, block: int) -> Any:
    """Return what a function returns for a message with a block of zeros. A NaN in silence would become the right code, 0."""
    try:
        return call(strict(values), block)
    except HybridLabError as why:
        error = why.__context__
        not_a_number = isinstance(error, ValueError) and "nan" in str(error).lower()  # Python refuses to round NaN
        if why.code == "raises" and (not_a_number or isinstance(error, (ArithmeticError, RuntimeWarning))):
            raise HybridLabError(f"{why}; the scale of a block of zeros is 0, and nothing may be divided by it", "zero-divided") from None
        raise


def codes_and_scales(result: Any) -> Encoded:
    """Return the codes and the scales that a student's function returned, or raise."""
    codes, scales = _pair(result, "the codes and the scales")
    if getattr(scales, "dtype", None) == np.int8 and getattr(codes, "dtype", None) != np.int8:
        raise HybridLabError("the two results are swapped: return the codes first, then the scales", "swapped")
    return array(codes, "the codes", np.int8), array(scales, "the scales", np.float32)


def messages(rng: np.random.Generator) -> Iterator[Case]:
    """Yield messages from one number up: zeros, short last blocks, a block of zeros, very large and very small numbers, and NaN."""
    yield Case((np.array([2.54, 0.033]), 2), "the numbers 2.54 and 0.033 in one block")
    yield Case((np.array([-2.54, 0.033]), 4), "the numbers -2.54 and 0.033 in blocks of 4")
    for size, block in SIZES:
        message = rng.standard_normal(size) * 10.0 ** rng.integers(-3, 4)
        yield Case((message, block), _in_blocks(size, block), run=_without_the_library)
    yield Case((np.zeros(3), 2), "3 zeros in blocks of 2", run=_with_zeros)
    uneven = rng.standard_normal(20) * np.repeat([1e-20, 1.0, 0.0, 1e20, 100.0], 4)
    yield Case((uneven, 4), "20 numbers in blocks of 4, one of them with zeros alone", run=_with_zeros)
    yield Case((-np.abs(rng.standard_normal(9)), 3), "9 negative numbers in blocks of 3")
    yield Case((np.zeros(0), 4), "a message without numbers")
    for broken in (np.nan, np.inf, -np.inf):
        message = rng.standard_normal(int(rng.integers(1, 9)))
        message[rng.integers(len(message))] = broken
        yield Case((message, 4), f"{counted(len(message), 'number')} with {broken} among them", refused=True)


def peak(part: Floats) -> float:
    """Return the largest magnitude."""
    return float(np.abs(part).max())


def of_each(scales: np.ndarray[Any, Any], block: int, size: int) -> Floats:
    """Return the scale for each number, as float64."""
    return np.repeat(scales.astype(np.float64), block)[:size]


def decoded_numbers(result: Any) -> np.ndarray[Any, Any]:
    """Return the numbers that a student's function decoded, or raise."""
    return array(result, "the numbers", np.float64, ": convert the codes to float64 before the product")


def there_are(count: int, thing: str) -> str:
    """Return words for how many there are.

    >>> there_are(1, "scale"), there_are(2, "block")
    ('there is 1 scale', 'there are 2 blocks')
    """
    return f"there {'is' if count == 1 else 'are'} {counted(count, thing)}"


def packets(rng: np.random.Generator) -> Iterator[Case]:
    """Yield codes and scales from one number up: a scale of 0, short last blocks, and no numbers."""
    yield Case((np.array([0, 0, 0], np.int8), np.zeros(2, np.float32), 2), "3 zeros in blocks of 2")
    for size, block in SIZES:
        scales = (10.0 ** rng.uniform(-4, 2, -(-size // block))).astype(np.float32)
        codes = rng.integers(-127, 128, size).astype(np.int8)
        yield Case((codes, scales, block), _in_blocks(size, block), run=_without_the_library)
    yield Case((np.zeros(0, np.int8), np.zeros(0, np.float32), 4), "a message without numbers")


class Average(NamedTuple):
    """What a student's function sent on average over many steps with the same gradient."""

    sent: Floats


def _many_steps(function: Callable[..., Any], gradient: Floats, residual: Floats, block: int) -> Average:
    total = np.zeros_like(gradient)
    for _ in range(STEPS):
        sent, residual = sent_and_left(function(gradient.copy(), residual.copy(), block))
        total += sent
    return Average(total / STEPS)


def sent_and_left(result: Any) -> Encoded:
    """Return what is sent and the new residual, or raise."""
    sent, left = _pair(result, "what is sent and the new residual")
    codes = ": these are codes; return what they decode to" if getattr(sent, "dtype", None) == np.int8 else ""
    return array(sent, "the values that are sent", np.float64, codes), array(left, "the residuals", np.float64)


def step_or_average(result: Any) -> Encoded | Average:
    """Return the result of one step or of many steps, or raise."""
    return result if isinstance(result, Average) else sent_and_left(result)


def gradients(rng: np.random.Generator) -> Iterator[Case]:
    """Yield gradients and residuals from one number up, then many steps with the same gradient."""
    yield Case((np.array([2.54, 0.013]), np.zeros(2), 2), "the gradient [2.54, 0.013] and no residual, in one block")
    yield Case((np.array([2.54, 0.013]), np.array([0.0, 0.009]), 2), "the gradient [2.54, 0.013] and the residual [0, 0.009], in one block")
    yield Case((np.zeros(3), np.zeros(3), 2), "3 zeros in blocks of 2, and no residual")
    for size, block in SIZES:
        gradient, residual = rng.standard_normal(size), rng.standard_normal(size) / 100
        yield Case((gradient, residual, block), f"{_in_blocks(size, block)}, and a residual")
    yield Case((np.zeros(5), rng.standard_normal(5), 4), "5 zeros in blocks of 4, and a residual")
    yield Case((rng.standard_normal(50), np.zeros(50), 16), f"{STEPS} steps with the same 50 numbers in blocks of 16", run=_many_steps)


def through_int8(values: Floats, block: int) -> Floats:
    """Return what a message in INT8 decodes to."""
    wire = WireFormat("INT8", block=block)
    return wire.decode(wire.encode(values)).astype(np.float64)


def _blockwise(rule: Callable[[Floats], tuple[Any, float]]) -> Callable[[Floats, int], Encoded]:
    """Return a program that encodes each block by a rule of its own, which returns the codes and the scale."""

    def encode(values: Floats, block: int) -> Encoded:
        pairs = [rule(values[start : start + block]) for start in range(0, len(values), block)]
        codes = np.concatenate([np.zeros(0), *(codes for codes, _ in pairs)])
        return codes.astype(np.int64).astype(np.int8), np.array([scale for _, scale in pairs], np.float32)

    return encode


def _steps(part: Floats, scale: float) -> Floats:
    """Return the numbers in units of the scale, not rounded."""
    return part / (np.float32(scale) or 1.0)


def _rounded_by(rounding: Callable[[Floats], Floats]) -> Callable[[Floats, int], Encoded]:
    """Return a program that makes whole numbers of the codes in another way."""
    return _blockwise(lambda part: (rounding(_steps(part, peak(part) / 127)), peak(part) / 127))


def _scaled_by(scale_of: Callable[[Floats], float]) -> Callable[[Floats, int], Encoded]:
    """Return a program that finds the scale of a block in another way."""
    return _blockwise(lambda part: (np.rint(_steps(part, scale_of(part))), scale_of(part)))


def _sent_and_rest(wanted: Floats, sent: Floats) -> Encoded:
    """Return what is sent, and what is left of what should have been sent."""
    return sent, wanted - sent


def _nearly_equal_lengths(size: int, block: int) -> Ints:
    """Return a length for each block, such that the lengths differ by at most 1."""
    blocks = -(-size // block)
    return np.array([len(part) for part in np.array_split(np.arange(size), max(blocks, 1))], np.int64)[:blocks]


def _in_equal_parts(values: Floats, block: int) -> Encoded:
    """Return the codes and the scales of blocks whose lengths differ by at most 1."""
    parts = np.split(values, np.cumsum(_nearly_equal_lengths(len(values), block))[:-1])
    pairs = [_rounded_by(np.rint)(part, max(len(part), 1)) for part in parts]
    codes, scales = zip(*pairs, strict=True)
    return np.concatenate(codes), np.concatenate(scales)


NOT_BLOCKS = "np.array_split makes blocks of nearly the same length: here every block but the last has `block` numbers"
ENCODE = [
    KnownMistake("rounded-down", "a code is rounded to the nearest whole number, not down", _rounded_by(np.floor)),
    KnownMistake("cut-off", "the conversion to int8 cuts off the fraction: round to the nearest whole number first", _rounded_by(np.trunc)),
    KnownMistake(
        "128-codes",
        "there are 127 codes on either side of zero, not 128: in int8 the code 128 becomes -128",
        _scaled_by(lambda part: peak(part) / 128),
    ),
    KnownMistake(
        "255-codes", "the codes have a sign: there are 127 on either side of zero, not 255", _scaled_by(lambda part: peak(part) / 255)
    ),
    KnownMistake(
        "scale-of-the-mean",
        "the scale comes from the largest magnitude of the block, not from the mean",
        _scaled_by(lambda part: float(np.abs(part).mean()) / 127),
    ),
    KnownMistake(
        "largest-with-sign",
        "the largest magnitude can belong to a negative number: take the absolute values first",
        _scaled_by(lambda part: float(part.max()) / 127),
    ),
    KnownMistake(
        "one-scale",
        "this is one scale for the whole message: each block has a scale of its own",
        lambda values, block: _rounded_by(np.rint)(values, max(len(values), 1)),
    ),
    KnownMistake(
        "short-block-lost",
        "the last block can have fewer numbers than the others, and it is sent, too",
        lambda values, block: _rounded_by(np.rint)(values[: len(values) // block * block], block),
    ),
    KnownMistake(
        "without-signs",
        "a negative number has a negative code: take magnitudes for the scale alone",
        _blockwise(lambda part: (np.rint(_steps(np.abs(part), peak(part) / 127)), peak(part) / 127)),
    ),
    KnownMistake(
        "half-added",
        "x + 0.5, cut off, is the nearest whole number for positive x alone: -1.2 + 0.5 becomes 0, not -1",
        _rounded_by(lambda steps: np.trunc(steps + 0.5)),
    ),
    KnownMistake("equal-parts", NOT_BLOCKS, _in_equal_parts),
]

DECODE = [
    KnownMistake(
        "not-scaled", "these are the codes: each is multiplied by the scale of its block", lambda codes, scales, block: codes * 1.0
    ),
    KnownMistake(
        "first-scale-alone",
        "all numbers have the scale of the first block: each block has its own",
        lambda codes, scales, block: codes * of_each(scales[:1], max(len(codes), 1), len(codes)),
    ),
    KnownMistake(
        "scales-in-turn",
        "the scales alternate from number to number: the first `block` numbers share the first scale",
        lambda codes, scales, block: codes * np.resize(scales.astype(float), len(codes)),
    ),
    KnownMistake(
        "divided-again",
        "the scale is the largest magnitude / 127 already: do not divide by 127 again",
        lambda codes, scales, block: codes * of_each(scales, block, len(codes)) / 127,
    ),
    KnownMistake(
        "whole-numbers",
        "the products are cut to whole numbers: make them float64",
        lambda codes, scales, block: np.trunc(codes * of_each(scales, block, len(codes))),
    ),
    KnownMistake(
        "without-signs",
        "a negative code gives a negative number",
        lambda codes, scales, block: np.abs(codes * of_each(scales, block, len(codes))),
    ),
    KnownMistake(
        "scales-modulo",
        "the number at place i is in block i // block; i % block is its place inside the block",
        lambda codes, scales, block: codes * scales.astype(float)[np.arange(len(codes)) % min(block, max(len(scales), 1))],
    ),
    KnownMistake(
        "largest-scale",
        "all numbers have the largest of the scales: each block has its own",
        lambda codes, scales, block: codes * float(scales.max(initial=0)),
    ),
    KnownMistake(
        "short-block-lost",
        "the last block can have fewer numbers than the others, and they are decoded, too",
        lambda codes, scales, block: (codes * of_each(scales, block, len(codes)))[: len(codes) // block * block],
    ),
    KnownMistake(
        "equal-parts",
        NOT_BLOCKS,
        lambda codes, scales, block: codes * np.repeat(scales.astype(float), _nearly_equal_lengths(len(codes), block)),
    ),
]

FEEDBACK = [
    KnownMistake(
        "residual-not-added",
        "the old residual is lost: add it to the gradient before you encode",
        lambda gradient, residual, block: (sent := through_int8(gradient, block), gradient - sent),
    ),
    KnownMistake(
        "old-residual-left-out",
        "the new residual is what is left of the gradient and the old residual together, not of the gradient alone",
        lambda gradient, residual, block: (sent := through_int8(gradient + residual, block), gradient - sent),
    ),
    KnownMistake(
        "sign",
        "the new residual has the wrong sign: it is what should have been sent minus what was sent",
        lambda gradient, residual, block: (sent := through_int8(gradient + residual, block), sent - gradient - residual),
    ),
    KnownMistake(
        "residual-subtracted",
        "the old residual was not sent yet, so it is added to the gradient, not subtracted",
        lambda gradient, residual, block: (sent := through_int8(gradient - residual, block), gradient - residual - sent),
    ),
    KnownMistake(
        "residual-is-gradient",
        "the new residual is only what rounding has left: subtract what was sent",
        lambda gradient, residual, block: (through_int8(gradient + residual, block), gradient + residual),
    ),
    KnownMistake(
        "counted-twice",
        "the old residual is in the sum already: do not add it to the new one again",
        lambda gradient, residual, block: (sent := through_int8(gradient + residual, block), gradient + 2 * residual - sent),
    ),
    KnownMistake(
        "no-residual",
        "a residual of zeros forgets what rounding has left",
        lambda gradient, residual, block: (through_int8(gradient + residual, block), np.zeros(len(gradient))),
    ),
    KnownMistake(
        "swapped",
        "the two results are swapped: return first what is sent, then the new residual",
        lambda gradient, residual, block: (gradient + residual - (sent := through_int8(gradient + residual, block)), sent),
    ),
    KnownMistake(
        "one-scale",
        "this is one scale for the whole message: give `block` to encode and decode",
        lambda gradient, residual, block: _sent_and_rest(gradient + residual, through_int8(gradient + residual, max(len(gradient), 1))),
    ),
    KnownMistake(
        "residual-never-sent",
        "only the gradient is encoded, so the residual grows and is never sent: encode the sum of both",
        lambda gradient, residual, block: _sent_and_rest(gradient + residual, through_int8(gradient, block)),
    ),
    KnownMistake(
        "encoded-separately",
        "the gradient and the residual are encoded separately, with two roundings: encode their sum once",
        lambda gradient, residual, block: _sent_and_rest(
            gradient + residual, through_int8(gradient, block) + through_int8(residual, block)
        ),
    ),
    KnownMistake(
        "not-rounded",
        "nothing has been rounded here: send what the codes of the sum decode to",
        lambda gradient, residual, block: _sent_and_rest(gradient + residual, gradient + residual),
    ),
]
