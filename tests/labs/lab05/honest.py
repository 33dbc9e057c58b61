"""Lab 5's builds with each twist, as a student writes them from the clause."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def blocks_of(size: int, block: int, short_first: bool = False) -> list[slice]:
    """The places of each block."""
    rest = size % block if short_first else 0
    starts = ([0] if rest else []) + list(range(rest, size, block))
    return [slice(start, end) for start, end in pairwise([*starts, size])]


def encoded(values: Array, block: int, short_first: bool = False) -> tuple[Array, Array]:
    """The codes as float64, and the largest magnitudes."""
    if not np.isfinite(values).all():
        raise ValueError("not finite")
    places = blocks_of(len(values), block, short_first)
    peaks = np.array([np.abs(values[place]).max() for place in places])
    codes = np.zeros(len(values))
    for place, peak in zip(places, peaks, strict=True):
        scale = np.float32(peak / 127)
        if scale > 0:
            codes[place] = np.rint(values[place] / scale)
    return codes, peaks


def signed(codes: Array) -> Array:
    return codes.astype(np.int8)


def unsigned(codes: Array) -> Array:
    return (codes + 128).astype(np.uint8)


def scales_of(peaks: Array) -> Array:
    return (peaks / 127).astype(np.float32)


def encode_unsigned(values: Array, block: int) -> Any:
    codes, peaks = encoded(values, block)
    return unsigned(codes), scales_of(peaks)


def encode_short_first_scales_first(values: Array, block: int) -> Any:
    codes, peaks = encoded(values, block, short_first=True)
    return scales_of(peaks), signed(codes)


def encode_peaks(values: Array, block: int) -> Any:
    codes, peaks = encoded(values, block)
    return signed(codes), peaks.astype(np.float32)


def encode_last_scale_first_unsigned(values: Array, block: int) -> Any:
    codes, peaks = encoded(values, block)
    return unsigned(codes), np.flip(scales_of(peaks))


def encode_short_first(values: Array, block: int) -> Any:
    codes, peaks = encoded(values, block, short_first=True)
    return signed(codes), scales_of(peaks)


def factors_of(peaks: Array) -> Array:
    return np.array([127 / peak if peak else 0 for peak in peaks], dtype=np.float32)


def encode_factors(values: Array, block: int) -> Any:
    if not np.isfinite(values).all():
        raise ValueError("not finite")
    factors = factors_of(np.array([np.abs(values[place]).max() for place in blocks_of(len(values), block)]))
    each = np.array([factors[place // block] for place in range(len(values))], dtype=np.float64)
    return np.rint(values * each).astype(np.int8), factors


def encode_peaks_last_first(values: Array, block: int) -> Any:
    codes, peaks = encoded(values, block)
    return signed(codes), peaks[::-1].astype(np.float32)


def encode_short_first_unsigned(values: Array, block: int) -> Any:
    codes, peaks = encoded(values, block, short_first=True)
    return unsigned(codes), scales_of(peaks)


def encode_last_scale_first(values: Array, block: int) -> Any:
    codes, peaks = encoded(values, block)
    return signed(codes), scales_of(peaks)[::-1]


def encode_factors_scales_first(values: Array, block: int) -> Any:
    codes, factors = encode_factors(values, block)
    return factors, codes


def decoded(codes: Array, scales: Array, block: int, short_first: bool = False) -> Array:
    numbers = np.zeros(len(codes))
    for place, scale in zip(blocks_of(len(codes), block, short_first), scales, strict=True):
        numbers[place] = codes[place] * float(scale)
    return numbers


def from_unsigned(codes: Array) -> Array:
    return codes.astype(np.int16) - 128


def decode_short_first(codes: Array, scales: Array, block: int) -> Any:
    return decoded(codes.astype(float), scales, block, short_first=True)


def decode_peaks_scales_first(scales: Array, codes: Array, block: int) -> Any:
    return decoded(codes.astype(float), scales.astype(float) / 127, block)


def decode_unsigned(codes: Array, scales: Array, block: int) -> Any:
    return decoded(from_unsigned(codes), scales, block)


def decode_last_first_peaks(codes: Array, scales: Array, block: int) -> Any:
    return decoded(codes.astype(float), scales[::-1] / np.float32(127), block)


def decode_short_first_unsigned(codes: Array, scales: Array, block: int) -> Any:
    return decoded(from_unsigned(codes), scales, block, short_first=True)


def decode_factors(codes: Array, scales: Array, block: int) -> Any:
    return decoded(codes.astype(float), np.array([1 / float(each) if each else 0 for each in scales]), block)


def decode_last_scale_first(codes: Array, scales: Array, block: int) -> Any:
    return decoded(codes.astype(float), scales[::-1], block)


def decode_unsigned_scales_first(scales: Array, codes: Array, block: int) -> Any:
    return decoded(from_unsigned(codes), scales, block)


def decode_peaks(codes: Array, scales: Array, block: int) -> Any:
    return decoded(codes.astype(float), scales.astype(float) / 127, block)


def decode_short_first_factors(codes: Array, scales: Array, block: int) -> Any:
    return decoded(codes.astype(float), np.array([1 / float(each) if each else 0 for each in scales]), block, short_first=True)


def through(values: Array, block: int, short_first: bool = False) -> Array:
    """What a message decodes to; the encode and decode of the page."""
    codes, peaks = encoded(values, block, short_first)
    return decoded(codes, scales_of(peaks), block, short_first)


def feedback_too_much(gradient: Array, residual: Array, block: int) -> Any:
    sent = through(gradient - residual, block)
    return sent, sent - (gradient - residual)


def feedback_half_residual_first(gradient: Array, residual: Array, block: int) -> Any:
    wanted = gradient + residual / 2
    sent = through(wanted, block)
    return wanted - sent, sent


def feedback_short_first(gradient: Array, residual: Array, block: int) -> Any:
    wanted = gradient + residual
    sent = through(wanted, block, short_first=True)
    return sent, wanted - sent


def feedback_doubled(gradient: Array, residual: Array, block: int) -> Any:
    wanted = gradient + residual / 2
    sent = through(wanted, block)
    return sent, 2 * (wanted - sent)


def feedback_too_much_residual_first(gradient: Array, residual: Array, block: int) -> Any:
    sent, left = feedback_too_much(gradient, residual, block)
    return left, sent


def feedback_half(gradient: Array, residual: Array, block: int) -> Any:
    wanted = gradient + 0.5 * residual
    sent = through(wanted, block)
    return sent, wanted - sent


def feedback_short_first_too_much(gradient: Array, residual: Array, block: int) -> Any:
    wanted = gradient - residual
    sent = through(wanted, block, short_first=True)
    return sent, sent - wanted


def feedback_doubled_residual_first(gradient: Array, residual: Array, block: int) -> Any:
    sent, left = feedback_doubled(gradient, residual, block)
    return left, sent


SOLUTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("lab05.t1", "unsigned"): encode_unsigned,
    ("lab05.t1", "short-block-first-and-scales-first"): encode_short_first_scales_first,
    ("lab05.t1", "peaks"): encode_peaks,
    ("lab05.t1", "last-scale-first-and-unsigned"): encode_last_scale_first_unsigned,
    ("lab05.t1", "short-block-first"): encode_short_first,
    ("lab05.t1", "factors"): encode_factors,
    ("lab05.t1", "peaks-and-last-scale-first"): encode_peaks_last_first,
    ("lab05.t1", "short-block-first-and-unsigned"): encode_short_first_unsigned,
    ("lab05.t1", "last-scale-first"): encode_last_scale_first,
    ("lab05.t1", "factors-and-scales-first"): encode_factors_scales_first,
    ("lab05.t3", "short-block-first"): decode_short_first,
    ("lab05.t3", "peaks-and-scales-first"): decode_peaks_scales_first,
    ("lab05.t3", "unsigned"): decode_unsigned,
    ("lab05.t3", "last-scale-first-and-peaks"): decode_last_first_peaks,
    ("lab05.t3", "short-block-first-and-unsigned"): decode_short_first_unsigned,
    ("lab05.t3", "factors"): decode_factors,
    ("lab05.t3", "last-scale-first"): decode_last_scale_first,
    ("lab05.t3", "unsigned-and-scales-first"): decode_unsigned_scales_first,
    ("lab05.t3", "peaks"): decode_peaks,
    ("lab05.t3", "short-block-first-and-factors"): decode_short_first_factors,
    ("lab05.t6", "sent-too-much"): feedback_too_much,
    ("lab05.t6", "half-of-the-residual-and-residual-first"): feedback_half_residual_first,
    ("lab05.t6", "short-block-first"): feedback_short_first,
    ("lab05.t6", "doubled-residual"): feedback_doubled,
    ("lab05.t6", "sent-too-much-and-residual-first"): feedback_too_much_residual_first,
    ("lab05.t6", "half-of-the-residual"): feedback_half,
    ("lab05.t6", "short-block-first-and-sent-too-much"): feedback_short_first_too_much,
    ("lab05.t6", "doubled-residual-and-residual-first"): feedback_doubled_residual_first,
}
