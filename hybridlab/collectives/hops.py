"""The route of a ring all-reduce: which rank sends which chunk at which step, whatever the numbers are."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Frozen, readonly
from hybridlab.checks import MOST_CELLS
from hybridlab.collectives.result import Counts
from hybridlab.errors import HybridLabError
from hybridlab.wire import Real

REDUCE_SCATTER, ALL_GATHER = "reduce-scatter", "all-gather"


@dataclass(frozen=True, eq=False)
class Hop(Frozen):
    """One step of the ring: every rank sends one chunk to the next rank, all at once.

    Place i of ``sender``, ``receiver``, ``chunk`` and ``nbytes``, each of shape (ranks,), is the message that rank i sends.
    ``held``, shape (ranks, n), is what every rank holds after the step, where it was asked for.
    """

    phase: str
    step: int
    sender: Counts
    receiver: Counts
    chunk: Counts
    nbytes: Counts
    held: Real | None = None


def chunk_bounds(size: int, ranks: int) -> list[tuple[int, int]]:
    """Return where each of the ``ranks`` chunks of ``size`` numbers begins and ends, cut as numpy.array_split cuts.

    >>> chunk_bounds(7, 3), chunk_bounds(1, 3)
    ([(0, 3), (3, 5), (5, 7)], [(0, 1), (1, 1), (1, 1)])
    """
    each, longer = divmod(size, ranks)
    starts = [chunk * each + min(chunk, longer) for chunk in range(ranks + 1)]
    return list(pairwise(starts))


def chunks_sent(ranks: int) -> npt.NDArray[np.int64]:
    """Return the chunk that each rank sends at each of the 2 (ranks - 1) steps, shape (steps, ranks).

    Chunk c starts at rank c and is finished at rank c - 1, which begins to hand it on.

    >>> chunks_sent(3).tolist()
    [[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 1, 2]]
    """
    rank, step = np.arange(ranks), np.arange(ranks - 1)[:, None]
    return np.concatenate([rank - step, rank + 1 - step]) % ranks


def scattered(each: Counts) -> Counts:
    """Return what each rank sends in the reduce-scatter, given the size of each chunk (last axis): all but the one it owns.

    >>> scattered(np.array([1, 10, 100])).tolist()
    [101, 11, 110]
    """
    sent: Counts = each.sum(axis=-1, keepdims=True) - np.roll(each, -1, axis=-1)
    return sent


def gathered(each: Counts) -> Counts:
    """Return what each rank sends in the all-gather: all chunks but the one after its own, which reaches it last.

    >>> gathered(np.array([1, 10, 100])).tolist()
    [11, 110, 101]
    """
    sent: Counts = each.sum(axis=-1, keepdims=True) - np.roll(each, -2, axis=-1)
    return sent


def hops_of(nbytes: Counts, held: Real | None) -> tuple[Hop, ...]:
    """Return the 2 (ranks - 1) hops, given the bytes of each chunk's message and, or not, what was held after each hop."""
    ranks = nbytes.size
    if 2 * ranks * ranks > MOST_CELLS:
        raise HybridLabError(f"{2 * (ranks - 1):,} hops of {ranks:,} messages do not fit in memory: look at fewer ranks")
    sender = readonly(np.arange(ranks))
    receiver = readonly((sender + 1) % ranks)
    sent = readonly(chunks_sent(ranks))
    hops = []
    for place, chunk in enumerate(sent):
        half, step = divmod(place, ranks - 1)
        now = None if held is None else held[place]
        hops.append(Hop((REDUCE_SCATTER, ALL_GATHER)[half], step, sender, receiver, chunk, readonly(nbytes[chunk]), now))
    return tuple(hops)


def filled(bounds: Sequence[tuple[int, int]]) -> list[tuple[int, tuple[int, int]]]:
    """Return the chunks that have numbers, each with its place: the others are not sent.

    >>> filled([(0, 1), (1, 2), (2, 2)])
    [(0, (0, 1)), (1, (1, 2))]
    """
    return [(chunk, (low, high)) for chunk, (low, high) in enumerate(bounds) if low < high]
