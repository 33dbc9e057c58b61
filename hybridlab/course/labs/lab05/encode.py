"""The coding task ("build") ``encode`` of lab 5: the messages to try, known mistakes, and changes of the task ("twists")."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import counted
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.maps import REVERSED, at, scaled
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.labs.lab05.messages import (
    BOTH_REVERSED,
    INVERSE,
    LOSS_SCALE,
    NOT_BLOCKS,
    OTHER_FIRST,
    UNSIGNED,
    Encoded,
    array,
    in_blocks,
    nearly_equal_lengths,
    pair,
    peak,
    sizes_of_messages,
    without_the_library,
)
from hybridlab.course.values import strict
from hybridlab.errors import HybridLabError


def messages(rng: np.random.Generator) -> Iterator[Case]:
    """Yield messages of many sizes, with zeros, short last blocks, a block of zeros, very large and very small numbers, and NaN."""
    yield Case((np.array([2.54, 0.033]), 2), "the numbers 2.54 and 0.033 in one block")
    yield Case((np.array([-2.54, 0.033]), 4), "the numbers -2.54 and 0.033 in blocks of 4")
    for size, block in sizes_of_messages(rng):
        message = rng.standard_normal(size) * 10.0 ** rng.integers(-3, 4)
        yield Case((message, block), in_blocks(size, block), run=without_the_library)
    yield Case((np.zeros(3), 2), "3 zeros in blocks of 2", run=_with_zeros)
    uneven = rng.standard_normal(20) * np.repeat([1e-20, 1.0, 0.0, 1e20, 100.0], 4)
    yield Case((uneven, 4), "20 numbers in blocks of 4, one of them with zeros alone", run=_with_zeros)
    yield Case((-np.abs(rng.standard_normal(9)), 3), "9 negative numbers in blocks of 3")
    yield Case((np.zeros(0), 4), "a message without numbers")
    for broken in (np.nan, np.inf, -np.inf):
        message = rng.standard_normal(int(rng.integers(1, 9)))
        message[rng.integers(len(message))] = broken
        yield Case((message, 4), f"{counted(len(message), 'number')} with {broken} among them", refused=True)


def _with_zeros(call: Callable[..., Any], values: Floats, block: int) -> Any:
    """Return the result of a student's function for a message with a block of zeros. A division by zero raises an error.

    Without the error, numpy would turn 0 / 0 into NaN, and the conversion to int8 would turn NaN into the right code, 0.
    """
    try:
        return call(strict(values), block)
    except HybridLabError as why:
        error = why.__context__
        not_a_number = isinstance(error, ValueError) and "nan" in str(error).lower()  # Python refuses to round NaN
        if why.code == "raises" and (not_a_number or isinstance(error, (ArithmeticError, RuntimeWarning))):
            raise HybridLabError(f"{why}; the scale of a block of zeros is 0: do not divide by this scale", "zero-divided") from None
        raise


def codes_and_scales(result: Any) -> Encoded:
    """Return the codes and the scales that a student's function returned, or raise an error if their types are wrong."""
    codes, scales = pair(result, "the codes and the scales")
    if getattr(scales, "dtype", None) == np.int8 and getattr(codes, "dtype", None) != np.int8:
        raise HybridLabError("the two results are swapped: return the codes first, then the scales", "swapped")
    return array(codes, "the codes", np.int8), array(scales, "the scales", np.float32)


def _blockwise(rule: Callable[[Floats], tuple[Any, float]]) -> Callable[[Floats, int], Encoded]:
    """Return a program that encodes each block with ``rule``. The rule takes the numbers of a block and returns codes and scale."""

    def encode(values: Floats, block: int) -> Encoded:
        pairs = [rule(values[start : start + block]) for start in range(0, len(values), block)]
        codes = np.concatenate([np.zeros(0), *(codes for codes, _ in pairs)])
        return codes.astype(np.int64).astype(np.int8), np.array([scale for _, scale in pairs], np.float32)

    return encode


def _steps(part: Floats, scale: float) -> Floats:
    """Return the numbers in units of the scale, not rounded."""
    return part / (np.float32(scale) or 1.0)


def _rounded_by(rounding: Callable[[Floats], Floats]) -> Callable[[Floats, int], Encoded]:
    """Return a program that rounds the codes to whole numbers with ``rounding``."""
    return _blockwise(lambda part: (rounding(_steps(part, peak(part) / 127)), peak(part) / 127))


def _scaled_by(scale_of: Callable[[Floats], float]) -> Callable[[Floats, int], Encoded]:
    """Return a program that computes the scale of each block with ``scale_of``."""
    return _blockwise(lambda part: (np.rint(_steps(part, scale_of(part))), scale_of(part)))


def _in_equal_parts(values: Floats, block: int) -> Encoded:
    """Return the codes and the scales of blocks whose lengths differ by at most 1."""
    parts = np.split(values, np.cumsum(nearly_equal_lengths(len(values), block))[:-1])
    pairs = [_rounded_by(np.rint)(part, max(len(part), 1)) for part in parts]
    codes, scales = zip(*pairs, strict=True)
    return np.concatenate(codes), np.concatenate(scales)


MISTAKES = (
    KnownMistake("rounded-down", "your codes are rounded down: round them to the nearest whole number", _rounded_by(np.floor)),
    KnownMistake(
        "cut-off",
        "your conversion to int8 cuts off the fraction: round to the nearest whole number first",
        _rounded_by(np.trunc),
        under={"unsigned": "your conversion to a whole number cuts off the fraction: round to the nearest whole number first"},
    ),
    KnownMistake(
        "128-codes",
        "your codes go up to 128: there are 127 codes on either side of zero, and in int8 the code 128 becomes -128",
        _scaled_by(lambda part: peak(part) / 128),
        under={"unsigned": "your codes go up to 128 before 128 is added: there are 127 codes on either side of zero"},
    ),
    KnownMistake(
        "255-codes",
        "your codes go up to 255: codes have a sign, and there are 127 on either side of zero",
        _scaled_by(lambda part: peak(part) / 255),
        under={"unsigned": "your scales are for 255 codes: zero has the code 128, and there are 127 codes on either side of 128"},
    ),
    KnownMistake(
        "scale-of-the-mean",
        "your scales come from the mean of the magnitudes: take the largest magnitude of the block",
        _scaled_by(lambda part: float(np.abs(part).mean()) / 127),
    ),
    KnownMistake(
        "largest-with-sign",
        "you take the largest number: the largest magnitude can belong to a negative number, so take the absolute values first",
        _scaled_by(lambda part: float(part.max()) / 127),
    ),
    KnownMistake(
        "one-scale",
        "your function has one scale for the whole message: each block has a scale of its own",
        lambda values, block: _rounded_by(np.rint)(values, max(len(values), 1)),
    ),
    KnownMistake(
        "short-block-lost",
        "your message lacks its short last block: a block with fewer numbers than the others is sent, too",
        lambda values, block: _rounded_by(np.rint)(values[: len(values) // block * block], block),
        under={"short-block-first": "your message lacks its short first block: a block with fewer numbers than the others is sent, too"},
    ),
    KnownMistake(
        "without-signs",
        "your codes have lost the signs: a negative number has a negative code, so take magnitudes for the scale alone",
        _blockwise(lambda part: (np.rint(_steps(np.abs(part), peak(part) / 127)), peak(part) / 127)),
        under={
            "unsigned": "your codes have lost the signs: a negative number has a code below 128, so take magnitudes for the scale alone"
        },
    ),
    KnownMistake(
        "half-added",
        "you add 0.5 and cut off the fraction: this rounds to the nearest only for positive x, and -1.2 + 0.5 becomes 0, not -1",
        _rounded_by(lambda steps: np.trunc(steps + 0.5)),
    ),
    KnownMistake(
        "equal-parts",
        NOT_BLOCKS.format(short="last"),
        _in_equal_parts,
        under={"short-block-first": NOT_BLOCKS.format(short="first")},
    ),
)

EXAMPLES = (
    Example(
        (np.array([2.54, -1.0, 0.013, 1.27, 0.64]), 3),
        (np.array([127, -50, 1, 127, 64], np.int8), np.array([0.02, 0.01], np.float32)),
    ),
)
TWISTS = (
    Twist("unsigned", "the codes are a uint8 array, and 128 is added to each code", result=at(0, UNSIGNED), about="codes"),
    Twist(
        "peaks",
        "the second result has the largest magnitude of each block itself, not divided by 127",
        result=at(1, scaled(127)),
        about="scales",
    ),
    Twist(
        "factors",
        "the second result has for each block the factor 127 / (largest magnitude), and 0 for a block of zeros",
        result=at(1, INVERSE),
        about="scales",
    ),
    Twist(
        "loss-scale",
        f"`values` has been multiplied by a loss scale of {LOSS_SCALE}; the scales belong to the numbers before that",
        given={0: scaled(LOSS_SCALE)},
        about="scales",
    ),
    Twist("last-scale-first", "the scales go from the last block to the first", result=at(1, REVERSED)),
    Twist(
        "short-block-first",
        "the first block is the shorter one, not the last, if n is no multiple of block",
        given={0: REVERSED},
        result=BOTH_REVERSED,
    ),
    Twist("scales-first", "the function returns the scales first, then the codes", result=OTHER_FIRST),
)
