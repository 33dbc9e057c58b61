"""The ring all-reduce on one rank: which chunk the rank sends in each step, and what it does with the chunk that arrives."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.collectives.ring_sum import packet_of
from hybridlab.errors import HybridLabError
from hybridlab.wire import Packet, WireFormat

Content = Packet | Floats


class RingStep(NamedTuple):
    """One step of the ring on one rank: what the rank sends.

    Parameters
    ----------
    number : int
        The number of the step in the whole ring, from 0 to 2(D-1) - 1.
    gathers : bool
        False in the reduce-scatter, True in the all-gather.
    turn : int
        The number of the step in its phase, from 0 to D - 2.
    chunk : int
        The number of the chunk that the rank sends. In the same step, chunk ``chunk`` - 1 arrives.
    content : Packet or array
        The message that carries the chunk.
    """

    number: int
    gathers: bool
    turn: int
    chunk: int
    content: Content


def average_in_place(
    numbers: Floats, place: int, ranks: Sequence[int], wire: WireFormat | None, swap: Callable[[RingStep], Content]
) -> None:
    """Replace the numbers of one rank by the mean over all ranks of a ring. The bits are those that :func:`ring_all_reduce` gives.

    Parameters
    ----------
    numbers : array of float64, shape (n,)
        The numbers of this rank. The mean is written into the array.
    place : int
        The place of this rank in the ring, from 0.
    ranks : sequence of int
        The ranks of the ring in their order. A single rank keeps its numbers.
    wire : WireFormat, optional
        The format of every message. None sends the numbers in float64 as they are.
    swap : callable
        ``swap(step)`` sends ``step.content`` to the next rank of the ring. It returns the content that the rank before has sent in the same
        step.

    Raises
    ------
    HybridLabError
        An arriving chunk and the same chunk on this rank differ in length, or the wire format cannot carry a number.

    Examples
    --------
    Two ranks average [2, 4] and [6, 8]. Rank 0 receives 8, the second number of rank 1, and then 4, the mean of the first numbers.

    >>> arriving, mine = iter([np.array([8.0]), np.array([4.0])]), np.array([2.0, 4.0])
    >>> average_in_place(mine, place=0, ranks=[0, 1], wire=None, swap=lambda step: next(arriving))
    >>> mine
    array([4., 6.])
    """
    count, rank, left = len(ranks), ranks[place], ranks[place - 1]
    if count == 1:
        return
    chunks = np.array_split(numbers, count)  # chunks are views, so writing into a chunk changes ``numbers``
    message: Content = _content_of(chunks[place], wire, rank, f"chunk {place}")
    for number in range(2 * (count - 1)):
        phase, turn = divmod(number, count - 1)  # phase 0 is the reduce-scatter, phase 1 the all-gather
        chunk = (place + phase - turn) % count
        arrived = swap(RingStep(number, bool(phase), turn, chunk, message))
        arriving = (chunk - 1) % count
        own, values = chunks[arriving], _values(arrived, wire)
        if values.size != own.size:
            found = f"chunk {arriving} has {values.size} numbers on rank {left}, but {own.size} on rank {rank}"
            raise HybridLabError(f"all ranks of a ring must hold arrays of one length: {found}", "wrong-length")
        if phase:
            own[:], message = values, arrived  # the finished chunk goes on unchanged
            continue
        own[:] = values + own
        if turn < count - 2:
            message = _content_of(own, wire, rank, f"its partial sum of chunk {arriving}")
        else:  # the sum of this chunk is now complete, and this rank is the first to send the finished chunk
            message = _content_of(own / count, wire, rank, f"the finished chunk {arriving}")
            own[:] = _values(message, wire)  # the decoded numbers, so that all ranks have the same bits


def _content_of(numbers: Floats, wire: WireFormat | None, rank: int, content: str) -> Content:
    """Return the message that carries ``numbers``. It is a copy, because ``numbers`` change while the message travels."""
    return numbers.copy() if wire is None else packet_of(numbers, wire, None, rank, content, 0)


def _values(message: Content, wire: WireFormat | None) -> Floats:
    """Return the numbers that a message carries, in float64."""
    values = message if wire is None else wire.decode(message)  # type: ignore[arg-type]
    return np.asarray(values, dtype=np.float64)
