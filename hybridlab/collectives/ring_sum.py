"""The sums of a ring all-reduce. Each chunk goes around the ring. Every message is encoded and decoded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Rng
from hybridlab.errors import HybridLabError
from hybridlab.wire import FP32, Packet, Real, Single, WireFormat

SMALL_CHUNK = 2**12  # numbers in a chunk; chunks up to this length are faster summed together, longer chunks one by one (cache)


@dataclass(frozen=True, eq=False)
class RingSum:
    """The sum over the ranks of a ring, computed one chunk at a time. The partial sum of one chunk fits in the processor's cache.

    Parameters
    ----------
    numbers : array, shape (ranks, n)
        The numbers that each rank holds at the start.
    wire : WireFormat
        The format of every message.
    divisor : int
        The number by which a finished chunk is divided: the number of values averaged, or 1 for the sum.
    rng : numpy.random.Generator, optional
        The source of stochastic rounding.
    residual : array, shape (ranks, n), optional
        The residuals of error feedback. They are updated in place.
    record : array, shape (steps, ranks, n), optional
        The numbers that each rank holds after each step. The array is written in place.
    """

    numbers: Real
    wire: WireFormat
    divisor: int
    rng: Rng
    residual: Real | None = None
    record: Real | None = None

    def finish_chunk(self, chunk: int, low: int, high: int) -> Real:
        """Return the finished chunk (columns ``low`` to ``high``). All ranks hold it after the all-gather."""
        if self.wire == FP32 and self.residual is None and self.record is None:
            finished = self._finish_in_fp32(chunk, low, high)
            if np.isfinite(finished).all():
                return finished  # if not finite, the loop below computes one message at a time and names the one that fails
        ranks = len(self.numbers)
        total = self.partial_sum(chunk, low, high)
        owner = (chunk - 1) % ranks
        finished = self._send(total, owner, self.divisor, f"the finished chunk {chunk}", low, high)
        for step in range(ranks):  # first the owner holds the finished chunk, then each rank that receives it
            self._write_record(finished, ranks - 1 + max(step - 1, 0), (owner + step) % ranks, low, high)
        return finished

    def partial_sum(self, chunk: int, low: int, high: int) -> Real:
        """Return the sum of a chunk over all ranks. The owner holds it after the reduce-scatter, before the division."""
        ranks = len(self.numbers)
        total: Real = self.numbers[chunk, low:high].copy()
        for step in range(ranks - 1):
            sender, receiver = (chunk + step) % ranks, (chunk + step + 1) % ranks
            arrived = self._send(total, sender, 1, f"its partial sum of chunk {chunk}", low, high)
            total = arrived + self.numbers[receiver, low:high]
            self._write_record(total, step, receiver, low, high)
        return total

    def _finish_in_fp32(self, chunk: int, low: int, high: int) -> Real:
        """Return the finished chunk for FP32. No message is encoded, but the bits are the same as with messages."""
        ranks = len(self.numbers)
        total = self.numbers[chunk, low:high].copy()
        double = total.dtype == np.float64
        for step in range(1, ranks):
            if double:  # a message in FP32 rounds a float64 sum, but not a float32 sum
                total[:] = total.astype(np.float32)
            total += self.numbers[(chunk + step) % ranks, low:high]
        if self.divisor > 1:
            total /= self.divisor
        return total.astype(np.float32) if double else total

    def _send(self, total: Real, sender: int, divisor: int, content: str, low: int, high: int) -> Real:
        """Return a sum after it was encoded, sent and decoded. With error feedback, store the rounding error as the sender's residual."""
        if self.residual is not None:
            total = total + self.residual[sender, low:high]
        message = total / divisor if divisor > 1 else total
        arrived = transmit(message, self.wire, self.rng, sender, content, low)
        if self.residual is not None:
            whole = np.multiply(arrived, divisor, dtype=total.dtype)  # computed in the precision of the sums
            np.subtract(total, whole, out=self.residual[sender, low:high])
        return arrived

    def _write_record(self, numbers: Real, step: int, rank: int, low: int, high: int) -> None:
        """Write into the record the numbers that ``rank`` holds from ``step`` on."""
        if self.record is not None:
            self.record[step:, rank, low:high] = numbers  # a later call overwrites the numbers that change


def transmit(numbers: Real, wire: WireFormat, rng: Rng, rank: int, content: str, first: int) -> Single:
    """Return one message after it was encoded and decoded. An error names the sender and the element that cannot be sent.

    Parameters
    ----------
    numbers : array, shape (n,)
        The message before it is encoded.
    wire : WireFormat
        The format of the message.
    rng : numpy.random.Generator, optional
        The source of stochastic rounding.
    rank : int
        The sender.
    content : str
        The content of the message in words, for the error.
    first : int
        The index of the first number in the row of the sender, for the error.

    Examples
    --------
    >>> FP16 = WireFormat("FP16")
    >>> transmit(np.array([1.0, 7e4]), FP16, None, rank=1, content="chunk 2", first=6)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: rank 1 cannot send element 7, value 1 of chunk 2: FP16 carries
    numbers up to 65504, but value 1 is 70000: scale the numbers down, or send BF16, which has the range of FP32
    """
    return wire.decode(packet_of(numbers, wire, rng, rank, content, first))


def packet_of(numbers: Real, wire: WireFormat, rng: Rng, rank: int, content: str, first: int) -> Packet:
    """Return one encoded message. The arguments and errors are those of :func:`transmit`."""
    try:
        return wire.encode(numbers, rng)
    except HybridLabError as why:
        infinite = np.flatnonzero(~np.isfinite(numbers))
        place = int(infinite[0]) if infinite.size else int(np.argmax(np.abs(numbers)))
        reason = f"the sum is beyond {numbers.dtype}: scale the numbers down" if infinite.size else why
        element = f"element {first + place}, value {place} of {content}"
        raise HybridLabError(f"rank {rank} cannot send {element}: {reason}", "too-large") from None


def ring_sum_together(numbers: Real, wire: WireFormat, divisor: int, bounds: Sequence[tuple[int, int]]) -> Single | None:
    """Return all finished chunks, with the same bits as :meth:`RingSum.finish_chunk`. One call encodes all messages of a step.

    Parameters
    ----------
    numbers : array, shape (ranks, n)
        The numbers that each rank holds at the start.
    wire : WireFormat
        The format of every message.
    divisor : int
        The number by which the finished chunks are divided.
    bounds : sequence of (int, int)
        The first column of each chunk, and the column after its last.

    Returns
    -------
    array, shape (n,), or None
        None if the messages must be encoded one by one (see :func:`can_go_together`), or if a message cannot be sent. The caller then
        sends the messages one by one, so that the error names the message that cannot be sent.
    """
    if not can_go_together(numbers, wire):
        return None
    chunks, inside = padded_chunks(numbers, bounds)
    chunk = np.arange(chunks.shape[1])
    try:
        total: Real = chunks[chunk, chunk]
        for step in range(1, len(numbers)):
            total = transmit_rows(total, wire) + chunks[(chunk + step) % len(numbers), chunk]
        finished = transmit_rows(total / divisor if divisor > 1 else total, wire)[inside]
    except HybridLabError:
        return None
    return finished if np.isfinite(finished).all() else None


def can_go_together(numbers: Real, wire: WireFormat) -> bool:
    """Return whether the messages of all chunks can be encoded together.

    Long messages are faster one by one. With stochastic rounding, messages must be encoded one by one, so that the random numbers are drawn
    in a fixed order.
    """
    ranks, size = numbers.shape
    return not wire.stochastic and 0 < size <= SMALL_CHUNK * ranks


def padded_chunks(numbers: Real, bounds: Sequence[tuple[int, int]]) -> tuple[Real, npt.NDArray[np.bool_]]:
    """Return the chunks of every rank, padded with zeros to equal length, and a mask. The mask is False for padding.

    Empty chunks are left out. The shapes are (ranks, chunks, longest) and (chunks, longest).

    >>> padded_chunks(np.array([[1.0, 2.0, 3.0]]), [(0, 2), (2, 3)])[0]
    array([[[1., 2.],
            [3., 0.]]])
    """
    low, high = np.array([each for each in bounds if each[0] < each[1]]).T
    place = low[:, None] + np.arange((high - low).max())
    inside = place < high[:, None]
    if inside.all() and inside.size == numbers.shape[1]:  # equal chunks need no padding and no copy
        return numbers.reshape(len(numbers), *inside.shape), inside
    return np.where(inside, numbers[:, np.minimum(place, numbers.shape[1] - 1)], 0), inside


def transmit_rows(messages: Real, wire: WireFormat) -> Single:
    """Return the rows of ``messages``, shape (messages, n), after encoding and decoding. Each row is one message.

    Zeros at the end of a row do not change its scales. Numbers that are too large for FP32 become infinite. The other formats raise an
    error for numbers that are too large.

    >>> transmit_rows(np.array([[127.0, 0.6], [254.0, 3.1]]), WireFormat("INT8"))
    array([[127.,   1.],
           [254.,   4.]], dtype=float32)
    """
    if wire == FP32:
        return messages.astype(np.float32)
    rows, length = messages.shape
    if wire.coding.scaled:
        # pad each row to whole blocks, because all numbers of a block share a scale and two messages must not
        block = min(wire.block or length, length)
        wire = replace(wire, block=block)
        padded: Real = np.zeros((rows, length - length % -block), dtype=messages.dtype)  # the length rounded up to blocks
        padded[:, :length] = messages
        messages = padded
    return wire.decode(wire.encode(messages.reshape(-1))).reshape(rows, -1)[:, :length]
