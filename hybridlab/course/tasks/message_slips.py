"""Known mistakes of the builds of lab 5: small wrong programs, each with its code and its sentence."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.course.tasks.builds import Slip
from hybridlab.course.tasks.messages import Encoded, of_each, peak, through_int8


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
    Slip("rounded-down", "a code is rounded to the nearest whole number, not down", _rounded_by(np.floor)),
    Slip("cut-off", "the conversion to int8 cuts off the fraction: round to the nearest whole number first", _rounded_by(np.trunc)),
    Slip(
        "128-codes",
        "there are 127 codes on either side of zero, not 128: in int8 the code 128 becomes -128",
        _scaled_by(lambda part: peak(part) / 128),
    ),
    Slip("255-codes", "the codes have a sign: there are 127 on either side of zero, not 255", _scaled_by(lambda part: peak(part) / 255)),
    Slip(
        "scale-of-the-mean",
        "the scale comes from the largest magnitude of the block, not from the mean",
        _scaled_by(lambda part: float(np.abs(part).mean()) / 127),
    ),
    Slip(
        "largest-with-sign",
        "the largest magnitude can belong to a negative number: take the absolute values first",
        _scaled_by(lambda part: float(part.max()) / 127),
    ),
    Slip(
        "one-scale",
        "this is one scale for the whole message: each block has a scale of its own",
        lambda values, block: _rounded_by(np.rint)(values, max(len(values), 1)),
    ),
    Slip(
        "short-block-lost",
        "the last block can have fewer numbers than the others, and it is sent, too",
        lambda values, block: _rounded_by(np.rint)(values[: len(values) // block * block], block),
    ),
    Slip(
        "without-signs",
        "a negative number has a negative code: take magnitudes for the scale alone",
        _blockwise(lambda part: (np.rint(_steps(np.abs(part), peak(part) / 127)), peak(part) / 127)),
    ),
    Slip(
        "half-added",
        "x + 0.5, cut off, is the nearest whole number for positive x alone: -1.2 + 0.5 becomes 0, not -1",
        _rounded_by(lambda steps: np.trunc(steps + 0.5)),
    ),
    Slip("equal-parts", NOT_BLOCKS, _in_equal_parts),
]

DECODE = [
    Slip("not-scaled", "these are the codes: each is multiplied by the scale of its block", lambda codes, scales, block: codes * 1.0),
    Slip(
        "first-scale-alone",
        "all numbers have the scale of the first block: each block has its own",
        lambda codes, scales, block: codes * of_each(scales[:1], max(len(codes), 1), len(codes)),
    ),
    Slip(
        "scales-in-turn",
        "the scales alternate from number to number: the first `block` numbers share the first scale",
        lambda codes, scales, block: codes * np.resize(scales.astype(float), len(codes)),
    ),
    Slip(
        "divided-again",
        "the scale is the largest magnitude / 127 already: do not divide by 127 again",
        lambda codes, scales, block: codes * of_each(scales, block, len(codes)) / 127,
    ),
    Slip(
        "whole-numbers",
        "the products are cut to whole numbers: make them float64",
        lambda codes, scales, block: np.trunc(codes * of_each(scales, block, len(codes))),
    ),
    Slip(
        "without-signs",
        "a negative code gives a negative number",
        lambda codes, scales, block: np.abs(codes * of_each(scales, block, len(codes))),
    ),
    Slip(
        "scales-modulo",
        "the number at place i is in block i // block; i % block is its place inside the block",
        lambda codes, scales, block: codes * scales.astype(float)[np.arange(len(codes)) % min(block, max(len(scales), 1))],
    ),
    Slip(
        "largest-scale",
        "all numbers have the largest of the scales: each block has its own",
        lambda codes, scales, block: codes * float(scales.max(initial=0)),
    ),
    Slip(
        "short-block-lost",
        "the last block can have fewer numbers than the others, and they are decoded, too",
        lambda codes, scales, block: (codes * of_each(scales, block, len(codes)))[: len(codes) // block * block],
    ),
    Slip(
        "equal-parts",
        NOT_BLOCKS,
        lambda codes, scales, block: codes * np.repeat(scales.astype(float), _nearly_equal_lengths(len(codes), block)),
    ),
]

FEEDBACK = [
    Slip(
        "residual-not-added",
        "the old residual is lost: add it to the gradient before you encode",
        lambda gradient, residual, block: (sent := through_int8(gradient, block), gradient - sent),
    ),
    Slip(
        "old-residual-left-out",
        "the new residual is what is left of the gradient and the old residual together, not of the gradient alone",
        lambda gradient, residual, block: (sent := through_int8(gradient + residual, block), gradient - sent),
    ),
    Slip(
        "sign",
        "the new residual has the wrong sign: it is what should have been sent minus what was sent",
        lambda gradient, residual, block: (sent := through_int8(gradient + residual, block), sent - gradient - residual),
    ),
    Slip(
        "residual-subtracted",
        "the old residual was not sent yet, so it is added to the gradient, not subtracted",
        lambda gradient, residual, block: (sent := through_int8(gradient - residual, block), gradient - residual - sent),
    ),
    Slip(
        "residual-is-gradient",
        "the new residual is only what rounding has left: subtract what was sent",
        lambda gradient, residual, block: (through_int8(gradient + residual, block), gradient + residual),
    ),
    Slip(
        "counted-twice",
        "the old residual is in the sum already: do not add it to the new one again",
        lambda gradient, residual, block: (sent := through_int8(gradient + residual, block), gradient + 2 * residual - sent),
    ),
    Slip(
        "no-residual",
        "a residual of zeros forgets what rounding has left",
        lambda gradient, residual, block: (through_int8(gradient + residual, block), np.zeros(len(gradient))),
    ),
    Slip(
        "swapped",
        "the two results are swapped: return first what is sent, then the new residual",
        lambda gradient, residual, block: (gradient + residual - (sent := through_int8(gradient + residual, block)), sent),
    ),
    Slip(
        "one-scale",
        "this is one scale for the whole message: give `block` to encode and decode",
        lambda gradient, residual, block: _sent_and_rest(gradient + residual, through_int8(gradient + residual, max(len(gradient), 1))),
    ),
    Slip(
        "residual-never-sent",
        "only the gradient is encoded, so the residual grows and is never sent: encode the sum of both",
        lambda gradient, residual, block: _sent_and_rest(gradient + residual, through_int8(gradient, block)),
    ),
    Slip(
        "encoded-separately",
        "the gradient and the residual are encoded separately, with two roundings: encode their sum once",
        lambda gradient, residual, block: _sent_and_rest(
            gradient + residual, through_int8(gradient, block) + through_int8(residual, block)
        ),
    ),
    Slip(
        "not-rounded",
        "nothing has been rounded here: send what the codes of the sum decode to",
        lambda gradient, residual, block: _sent_and_rest(gradient + residual, gradient + residual),
    ),
]
