"""The published ring all-reduce, for any number of replicas. The published ring has a fault: all replicas end with the same wrong numbers.

Each of D ranks holds a gradient of n numbers, cut into D chunks of n / D numbers. In step t of the reduce-scatter, rank i sends chunk
i - t to rank i + 1, and rank i + 1 adds this chunk to its own chunk i - t. At the end rank i holds the complete sum of chunk i + 1, but
its chunk i has received nothing. So the all-gather should start from chunk i + 1 of rank i. But the published all-gather starts from
chunk i, and so it overwrites the sums with the gradients of single ranks.

If messages are rounded, the replicas differ slightly. In the all-gather, the rank that sends a chunk first holds its own unrounded
numbers. All other ranks hold the same rounded numbers, because encoding a rounded number again does not change it.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Frozen, readonly
from hybridlab.checks import MOST_CELLS, known_name, whole_number
from hybridlab.collectives import Hop
from hybridlab.collectives.result import Counts, rows_of_ranks
from hybridlab.errors import HybridLabError
from hybridlab.wire import LEVELS, Single

MODES = {"INT8": (1, 4), "FP16": (2, 0), "FP32": (4, 0)}  # bytes of a number, and of the scale of a message; the program has no FP32
SMALLEST_PEAK = LEVELS * np.finfo(np.float32).tiny  # if the largest number of a chunk is smaller, its scale is subnormal or zero


@dataclass(frozen=True, eq=False)
class PublishedRing(Frozen):
    """The result of the published ring.

    Parameters
    ----------
    values : array of float32, shape (ranks, n)
        The numbers that each rank holds at the end.
    payload_bytes : array of int, shape (ranks,)
        Bytes that the program counts for each rank: those of the encoded numbers (codes), without the scales.
    scale_bytes : array of int, shape (ranks,)
        Bytes of the scales that each rank sends: 4 bytes for each INT8 message. The program does not count these bytes.
    hops : tuple of Hop
        The 2 (ranks - 1) steps. ``nbytes`` has the bytes that the program counts. ``held`` has the sums before they are divided by the
        number of ranks.
    """

    values: Single
    payload_bytes: Counts
    scale_bytes: Counts
    hops: tuple[Hop, ...] = field(repr=False)

    @property
    def bytes_sent(self) -> Counts:
        """Bytes that each rank sent, codes and scales together."""
        return self.payload_bytes + self.scale_bytes


def published_ring(gradients: npt.ArrayLike, comm_mode: str = "INT8", *, gather_from: int = 0) -> PublishedRing:
    """Return the numbers that each rank holds after the published ring, with its hops.

    Parameters
    ----------
    gradients : array, shape (ranks, n)
        One row for each rank. The program computes in float32.
    comm_mode : {"INT8", "FP16", "FP32"}
        Format of the messages. The program has no "FP32". This function adds it, because "FP32" shows the fault without rounding.
    gather_from : int
        The all-gather starts from chunk i + ``gather_from`` of rank i. The published program uses 0; with 1 the result is the mean.

    Raises
    ------
    HybridLabError
        The mode is unknown, n is not a multiple of the number of ranks, or a number is NaN, infinite, or outside the range of the mode.

    Examples
    --------
    >>> published_ring([[1, 2], [30, 40]], "FP32").values  # chunk c is that of rank c alone, divided by 2
    array([[ 0.5, 20. ],
           [ 0.5, 20. ]], dtype=float32)
    >>> published_ring([[1, 2], [30, 40]], "FP32", gather_from=1).values
    array([[15.5, 21. ],
           [15.5, 21. ]], dtype=float32)
    """
    mode = known_name(comm_mode, MODES, "comm_mode")
    shift = whole_number(gather_from, "gather_from", at_least=0)
    held = _rows_in_chunks(gradients)
    ranks, _, width = held.shape
    number, scale = MODES[mode]
    sender = readonly(np.arange(ranks))
    receiver, nbytes = readonly((sender + 1) % ranks), readonly(np.full(ranks, number * width))
    hops = []
    for place in range(2 * (ranks - 1)):
        gathering, step = divmod(place, ranks - 1)
        # Rank i sends chunk i - step. A correct all-gather begins with chunk i + 1, because rank i holds the complete sum of this chunk.
        chunk = readonly((sender + gathering * shift - step) % ranks)
        received = _encode_and_decode(held[sender, chunk], mode)
        # Each hop stores the numbers of all ranks, so the next hop must not write into the same array.
        held = held.copy()
        held[receiver, chunk] = received if gathering else _sum(held[receiver, chunk], received)
        phase = "all-gather" if gathering else "reduce-scatter"
        hops.append(Hop(phase, step, sender, receiver, chunk, nbytes, readonly(held.reshape(ranks, -1))))
    payload, scales = (readonly(np.full(ranks, len(hops) * each)) for each in (number * width, scale))
    return PublishedRing(readonly(held.reshape(ranks, -1) / ranks), payload, scales, tuple(hops))


def check_chunks(size: int, ranks: int) -> None:
    """Raise an error if ``size`` numbers cannot be cut into ``ranks`` equal chunks, or if the hops do not fit in memory.

    >>> check_chunks(10, 4)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the published ring cuts a gradient into equal chunks: 10 is not a multiple of 4; try 8 or 12
    """
    if size % ranks or not size:
        near = max(size // ranks, 1) * ranks
        fault = f"{size} is not a multiple of {ranks}" if size else "a gradient of 0 numbers has none"
        raise HybridLabError(
            f"the published ring cuts a gradient into equal chunks: {fault}; try {near} or {near + ranks}",
            "not-divisible" if size else "empty",
        )
    # There are 2(D - 1) hops, and each hop stores a copy of all D gradients.
    if 2 * ranks * ranks * size > MOST_CELLS:
        raise HybridLabError(
            f"the hops of {ranks:,} ranks with {size:,} numbers each do not fit in memory: try fewer of either", "too-large"
        )


def _rows_in_chunks(gradients: npt.ArrayLike) -> Single:
    """Return a copy of the gradients, shape (ranks, chunks, numbers of a chunk)."""
    rows = rows_of_ranks(gradients, "gradients")
    ranks, size = rows.shape
    check_chunks(size, ranks)
    # NumPy would only warn of an overflow. The check of isfinite below raises an error instead.
    with np.errstate(over="ignore"):
        single = rows.astype(np.float32)
    if not np.isfinite(single).all():
        raise HybridLabError("the published ring computes in float32, whose maximum is 3.4e38: scale the gradients down", "too-large")
    return single.reshape(ranks, ranks, -1)  # as many chunks as ranks


def _encode_and_decode(messages: Single, mode: str) -> Single:
    """Return the messages as their receivers decode them. Row i is the message of rank i."""
    if mode == "FP32":
        return messages
    if mode == "FP16":
        with np.errstate(over="ignore"):
            decoded: Single = messages.astype(np.float16).astype(np.float32)
        return _finite(decoded, "FP16, whose maximum is 65504")
    # Each message has one scale, with which its largest number gets the largest code, 127.
    peak = np.abs(messages).max(axis=1, keepdims=True)
    if ((peak > 0) & (peak < SMALLEST_PEAK)).any():
        raise HybridLabError(
            "the published INT8 format has no scale for such small numbers: the largest number of a chunk must be zero "
            f"or at least {SMALLEST_PEAK:.1e}; scale the gradients up",
            "too-small",
        )
    scale = np.where(peak > 0, peak / LEVELS, np.float32(1))  # if all numbers are zero, any scale is right, and 1 avoids 0 / 0
    codes = np.rint(messages / scale).astype(np.int8)
    with np.errstate(over="ignore"):
        return _finite(codes.astype(np.float32) * scale, "float32, whose maximum is 3.4e38")


def _sum(own: Single, received: Single) -> Single:
    """Return the sums of own and received numbers in float32. Raise an error if a sum is infinite."""
    with np.errstate(over="ignore"):
        return _finite(own + received, "float32, whose maximum is 3.4e38")


def _finite(sums: Single, limit: str) -> Single:
    """Return the sums unchanged. Raise an error if a sum is infinite."""
    if not np.isfinite(sums).all():
        raise HybridLabError(f"a partial sum is too large for {limit}: scale the gradients down", "too-large")
    return sums
