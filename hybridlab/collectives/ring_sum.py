"""A ring at work: a chunk goes around and is summed, each message encoded and decoded on its way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hybridlab.collectives.result import carried
from hybridlab.errors import HybridLabError
from hybridlab.wire import FP32, Real, Single, WireFormat

AT_ONCE = 2**12  # numbers a chunk: beyond it the sums of all chunks leave the cache, and one chunk after the other is faster


@dataclass(frozen=True, eq=False)
class Ring:
    """Ranks in a circle, worked at chunk by chunk, so that a running sum stays in the cache.

    ``numbers``, shape (ranks, n), is what they start with; the finished chunk is divided by ``divisor``. ``left``, the
    residuals, and ``held``, the record, are written to. ``names`` are the ranks, and ``first`` the place of the first
    number, as a refusal tells them.
    """

    numbers: Real
    wire: WireFormat
    divisor: int
    rng: np.random.Generator | None
    names: Sequence[int]
    first: int = 0
    left: Real | None = None
    held: Real | None = None

    def reduced(self, chunk: int, low: int, high: int) -> Real:
        """Return what all ranks hold of a chunk in the end."""
        if self.wire == FP32 and self.left is None and self.held is None:
            quick = self._quick(chunk, low, high)
            if np.isfinite(quick).all():
                return quick  # else the hops one by one tell which of them fails
        ranks = len(self.numbers)
        total = self.summed(chunk, low, high)
        owner = (chunk - 1) % ranks
        done = self._sent(total, owner, self.divisor, f"the finished chunk {chunk}", low, high)
        for step in range(ranks):  # the owner holds it first, then each that receives it
            self._hold(done, ranks - 1 + max(step - 1, 0), (owner + step) % ranks, low, high)
        return done

    def summed(self, chunk: int, low: int, high: int) -> Real:
        """Return the sum of a chunk as the last rank of its way has it, before the mean is taken."""
        ranks = len(self.numbers)
        total: Real = self.numbers[chunk, low:high].copy()
        for step in range(ranks - 1):
            sender, receiver = (chunk + step) % ranks, (chunk + step + 1) % ranks
            arrived = self._sent(total, sender, 1, f"its partial sum of chunk {chunk}", low, high)
            total = arrived + self.numbers[receiver, low:high]
            self._hold(total, step, receiver, low, high)
        return total

    def _quick(self, chunk: int, low: int, high: int) -> Real:
        """Return the same as messages of FP32 do, bit for bit, without making them."""
        ranks = len(self.numbers)
        total = self.numbers[chunk, low:high].copy()
        double = total.dtype == np.float64
        for step in range(1, ranks):
            if double:
                total[:] = total.astype(np.float32)
            total += self.numbers[(chunk + step) % ranks, low:high]
        if self.divisor > 1:
            total /= self.divisor
        return total.astype(np.float32) if double else total

    def _sent(self, total: Real, sender: int, divisor: int, what: str, low: int, high: int) -> Real:
        """Return what a message decodes to; keep what it lost, counted before the mean is taken."""
        if self.left is not None:
            total = total + self.left[sender, low:high]
        message = total / divisor if divisor > 1 else total
        arrived = carried(message, self.wire, self.rng, self.names[sender], what, self.first + low)
        if self.left is not None:
            whole = np.multiply(arrived, divisor, dtype=total.dtype)  # in the precision of the sums, not of the wire
            np.subtract(total, whole, out=self.left[sender, low:high])
        return arrived

    def _hold(self, numbers: Real, place: int, rank: int, low: int, high: int) -> None:
        """Write what ``rank`` holds from the hop at ``place`` on."""
        if self.held is not None:
            self.held[place:, rank, low:high] = numbers


def ring_sum_at_once(numbers: Real, wire: WireFormat, divisor: int, bounds: Sequence[tuple[int, int]]) -> Single | None:
    """Return what :meth:`Ring.reduced` returns for every chunk, bit for bit, with all messages of a step encoded together.

    ``numbers``, shape (ranks, n), is cut at ``bounds``; the result has shape (n,). The result is None if the messages must go
    one by one: see :func:`may_be_at_once`. It is None too if a message cannot be sent; sent one by one, it is refused by name.
    """
    if not may_be_at_once(numbers, wire):
        return None
    parts, inside = cut(numbers, bounds)
    chunk = np.arange(parts.shape[1])
    try:
        total: Real = parts[chunk, chunk]
        for step in range(1, len(numbers)):
            total = delivered(total, wire) + parts[(chunk + step) % len(numbers), chunk]
        done = delivered(total / divisor if divisor > 1 else total, wire)[inside]
    except HybridLabError:
        return None
    return done if np.isfinite(done).all() else None


def may_be_at_once(numbers: Real, wire: WireFormat) -> bool:
    """Return whether the messages of all chunks can be encoded together.

    Long messages are faster one by one. Stochastic rounding draws its random numbers message by message, in a fixed order.
    """
    ranks, size = numbers.shape
    return not wire.stochastic and 0 < size <= AT_ONCE * ranks


def cut(numbers: Real, bounds: Sequence[tuple[int, int]]) -> tuple[Real, npt.NDArray[np.bool_]]:
    """Return the chunks of every rank that have numbers, shape (ranks, chunks, longest), and which of their places have one.

    The rest is filled up with zeros.

    >>> cut(np.array([[1.0, 2.0, 3.0]]), [(0, 2), (2, 3)])[0]
    array([[[1., 2.],
            [3., 0.]]])
    """
    low, high = np.array([each for each in bounds if each[0] < each[1]]).T
    place = low[:, None] + np.arange((high - low).max())
    inside = place < high[:, None]
    if inside.all() and inside.size == numbers.shape[1]:
        return numbers.reshape(len(numbers), *inside.shape), inside
    return np.where(inside, numbers[:, np.minimum(place, numbers.shape[1] - 1)], 0), inside


def delivered(messages: Real, wire: WireFormat) -> Single:
    """Return what each row of ``messages`` decodes to, a message of its own, though all are encoded as one.

    Zeros at the end of a row change no scale. What FP32 cannot carry becomes infinite; other formats refuse theirs.

    >>> delivered(np.array([[127.0, 0.6], [254.0, 3.1]]), WireFormat("INT8"))
    array([[127.,   1.],
           [254.,   4.]], dtype=float32)
    """
    if wire == FP32:
        return messages.astype(np.float32)
    rows, length = messages.shape
    if wire.name == "INT8":
        block = min(wire.block or length, length)
        wire = replace(wire, block=block)
        padded: Real = np.zeros((rows, length - length % -block), dtype=messages.dtype)
        padded[:, :length] = messages
        messages = padded
    return wire.decode(wire.encode(messages.reshape(-1))).reshape(rows, -1)[:, :length]
