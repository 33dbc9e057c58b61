"""INT8 with scales: the arrays of codes and scales behind the wire format of that name."""

from typing import Any

import numpy as np
import numpy.typing as npt

Real = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]

LEVELS = 127  # codes run from -127 to 127, so that zero is exact and both signs are alike


def scales_of(numbers: Real, block: int | None, form: Any) -> npt.NDArray[Any]:
    """Return the scale of every block: the smallest number of ``form`` of which 127 reach the block's largest.

    A block of zeros has scale 0. One with NaN or infinity, or beyond what ``form`` or float32 reaches, has scale inf.

    >>> scales_of(np.array([254.0, -1.0, 0.0, 0.0]), block=2, form=np.float16)
    array([2., 0.], dtype=float16)
    """
    if not numbers.size:
        return np.empty(0, dtype=form)
    if block is None:
        peak = np.array([max(numbers.max(), -numbers.min())], dtype=np.float64)
    else:
        starts = np.arange(0, numbers.size, block)
        peak = np.maximum(np.maximum.reduceat(numbers, starts), -np.minimum.reduceat(numbers, starts)).astype(np.float64)
    with np.errstate(over="ignore"):
        scales: npt.NDArray[Any] = np.abs(peak / LEVELS).astype(form)
        short = scales.astype(np.float64) * LEVELS < peak
        if short.any():
            scales[short] = np.nextafter(scales[short], form(np.inf))
        reach = scales.astype(np.float32) * np.float32(LEVELS)
    if not np.isfinite(reach).all():
        scales[~np.isfinite(reach)] = np.inf
    return scales


def codes_of(numbers: Real, scales: npt.NDArray[Any], block: int | None, rng: np.random.Generator | None) -> npt.NDArray[np.int8]:
    """Return the code of every number: rounded to the nearest, or with ``rng`` up as often as its fraction says.

    >>> codes_of(np.array([254.0, -3.2, 0.0, 0.0]), np.array([2.0, 0.0]), block=2, rng=None)
    array([127,  -2,   0,   0], dtype=int8)
    """
    divisor = np.where(scales > 0, scales, 1).astype(numbers.dtype)  # the numbers of a block of zeros stay zeros
    steps = numbers / _spread(divisor, block, numbers.size)
    if rng is None:
        np.rint(steps, out=steps)
    else:
        steps += rng.random(steps.size, dtype=steps.dtype.type)
        np.floor(steps, out=steps)
        np.clip(steps, -LEVELS, LEVELS, out=steps)  # 127 and nearly 1 more may be rounded to 128
    codes: npt.NDArray[np.int8] = steps.astype(np.int8)
    return codes


def numbers_of(codes: npt.NDArray[np.int8], scales: npt.NDArray[Any], block: int | None) -> Single:
    """Return code x scale for every number, as float32.

    >>> numbers_of(np.array([127, -2], dtype=np.int8), np.array([0.5]), block=None)
    array([63.5, -1. ], dtype=float32)
    """
    numbers: Single = codes.astype(np.float32)
    numbers *= _spread(scales.astype(np.float32), block, codes.size)
    return numbers


def _spread(scales: npt.NDArray[Any], block: int | None, size: int) -> npt.NDArray[Any]:
    """Return the scale of every number: one for all, or block by block."""
    return scales if block is None else np.repeat(scales, block)[:size]
