"""The published ring all-reduce, for any number of replicas: all of them end with the same numbers, and those are no mean.

D ranks, a gradient of n numbers each, in D chunks of n / D. At step t of the reduce-scatter rank i sends chunk i - t to
rank i + 1, which adds it to its own. So the sum of chunk i + 1 is complete on rank i; chunk i of rank i has
received nothing. The all-gather starts from chunk i of rank i all the same: it writes each rank's own gradient over the sums.

Replicas differ by a rounding: all that receive a chunk hold the same, since what was rounded once is not changed by encoding it
again, but the rank that sends it first keeps it unrounded.
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

MODES = {"INT8": (1, 4), "FP16": (2, 0), "FP32": (4, 0)}  # bytes a number, and a message's scale; FP32 is ours
SMALLEST = LEVELS * np.finfo(np.float32).tiny  # a smaller peak has a scale with too few bits, or none


@dataclass(frozen=True, eq=False)
class PublishedRing(Frozen):
    """What the published ring leaves on each rank: ``values``, shape (ranks, n), float32.

    ``payload_bytes``, shape (ranks,), are the bytes that the program counts for each rank: of the codes alone.
    ``scale_bytes`` are those of the scales, one of 4 bytes for each INT8 message, which it sends and does not count.
    ``hops`` are its 2 (ranks - 1) steps: ``nbytes`` as the program counts, ``held`` before the division by ranks.
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
    """Return what every rank holds after the published ring, and its hops.

    ``gradients``, shape (ranks, n), has a row for each rank; the program computes in float32. ``comm_mode`` is "INT8" or
    "FP16", or "FP32", which the program lacks: it shows the fault without any rounding. The all-gather starts from chunk i +
    ``gather_from`` of rank i: 0 as published, 1 gives the mean.

    Raises :class:`HybridLabError` for an unknown mode, for n that is not a multiple of the ranks, for NaN and infinity,
    and for numbers that the mode cannot carry.

    >>> published_ring([[1, 2], [30, 40]], "FP32").values  # chunk c: the number of rank c, halved
    array([[ 0.5, 20. ],
           [ 0.5, 20. ]], dtype=float32)
    >>> published_ring([[1, 2], [30, 40]], "FP32", gather_from=1).values
    array([[15.5, 21. ],
           [15.5, 21. ]], dtype=float32)
    """
    mode = known_name(comm_mode, MODES, "comm_mode")
    shift = whole_number(gather_from, "gather_from", at_least=0)
    held = _in_chunks(gradients)
    ranks, _, width = held.shape
    number, scale = MODES[mode]
    sender = readonly(np.arange(ranks))
    receiver, nbytes = readonly((sender + 1) % ranks), readonly(np.full(ranks, number * width))
    hops = []
    for place in range(2 * (ranks - 1)):
        gathering, step = divmod(place, ranks - 1)
        chunk = readonly((sender + gathering * shift - step) % ranks)
        arrived = _arrived(held[sender, chunk], mode)
        held = held.copy()
        held[receiver, chunk] = arrived if gathering else _sum(held[receiver, chunk], arrived)
        phase = "all-gather" if gathering else "reduce-scatter"
        hops.append(Hop(phase, step, sender, receiver, chunk, nbytes, readonly(held.reshape(ranks, -1))))
    payload, scales = (readonly(np.full(ranks, len(hops) * each)) for each in (number * width, scale))
    return PublishedRing(readonly(held.reshape(ranks, -1) / ranks), payload, scales, tuple(hops))


def checked_chunks(size: int, ranks: int) -> None:
    """Raise where ``size`` numbers cannot be cut into ``ranks`` equal chunks, or the hops do not fit in memory.

    >>> checked_chunks(10, 4)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the published ring cuts a gradient into equal chunks: 10 is not a multiple of 4; try 8 or 12
    """
    if size % ranks or not size:
        near = max(size // ranks, 1) * ranks
        message = f"{size} is not a multiple of {ranks}" if size else "0 numbers are nothing to cut"
        raise HybridLabError(f"the published ring cuts a gradient into equal chunks: {message}; try {near} or {near + ranks}")
    if 2 * ranks * ranks * size > MOST_CELLS:
        raise HybridLabError(f"the hops of {ranks:,} ranks with {size:,} numbers each are too many to keep: try fewer of either")


def _in_chunks(gradients: npt.ArrayLike) -> Single:
    """Return a copy of the gradients, shape (ranks, chunks, numbers a chunk)."""
    rows = rows_of_ranks(gradients, "gradients")
    ranks, size = rows.shape
    checked_chunks(size, ranks)
    with np.errstate(over="ignore"):
        single = rows.astype(np.float32)
    if not np.isfinite(single).all():
        raise HybridLabError("the published ring computes in float32, which ends at 3.4e38: scale the gradients down")
    return single.reshape(ranks, ranks, -1)


def _arrived(message: Single, mode: str) -> Single:
    """Return what each row, the message of one rank, is when it arrives."""
    if mode == "FP32":
        return message
    if mode == "FP16":
        with np.errstate(over="ignore"):
            arrived: Single = message.astype(np.float16).astype(np.float32)
        return _finite(arrived, "FP16 carries numbers up to 65504")
    peak = np.abs(message).max(axis=1, keepdims=True)
    if ((peak > 0) & (peak < SMALLEST)).any():
        wanted = f"a chunk that is not zero needs a number of at least {SMALLEST:.1e} in it"
        raise HybridLabError(f"INT8 as published has no scale for so small numbers: {wanted}; scale the gradients up")
    scale = np.where(peak > 0, peak / LEVELS, np.float32(1))
    codes = np.rint(message / scale).astype(np.int8)
    with np.errstate(over="ignore"):
        return _finite(codes.astype(np.float32) * scale, "float32 ends at 3.4e38")


def _sum(own: Single, arrived: Single) -> Single:
    with np.errstate(over="ignore"):
        return _finite(own + arrived, "float32 ends at 3.4e38")


def _finite(numbers: Single, limit: str) -> Single:
    if not np.isfinite(numbers).all():
        raise HybridLabError(f"a partial sum is too large to send, {limit}: scale the gradients down")
    return numbers
