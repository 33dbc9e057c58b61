"""A ring at work: a chunk goes around and is summed, each message encoded and decoded on its way."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybridlab.collectives.result import carried
from hybridlab.int8 import Real
from hybridlab.wire import FP32, WireFormat


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
