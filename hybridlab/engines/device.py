"""One device of a run, the same for every engine. A device runs and measures its operations, then its rings, then its optimiser."""

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr
from hybridlab.collectives.one_rank import Content, RingStep, average_in_place
from hybridlab.engines.job import END, OPTIMISER_PLACE, START, Job, SpanRow
from hybridlab.errors import HybridLabError
from hybridlab.timeline.spans import ALL_GATHER, OPTIMISER, REDUCE_SCATTER


class StoppedError(Exception):
    """Another device has failed, so this device must end too."""


class Message(NamedTuple):
    """A message between two devices.

    Parameters
    ----------
    content : object
        The object that the sender sends.
    usable : float
        The earliest time at which the receiver can use the message, in seconds of ``time.perf_counter``.
    """

    content: Any
    usable: float


class Exchange(Protocol):
    """The methods of an engine that a device calls. :class:`Job` explains places and the names of messages and meetings."""

    def put(self, sender: int, receiver: int, name: int, message: Message) -> None:
        """Send a message under a name, without waiting."""

    def take(self, sender: int, receiver: int, name: int) -> Any:
        """Wait until a message has arrived and can be used. Return its content."""

    def meet(self, device: int, name: int) -> None:
        """Wait until all devices have called this method."""

    def sleep(self, until: float) -> None:
        """Sleep until ``time.perf_counter`` reaches a time."""

    def stand(self, device: int, place: int) -> None:
        """Note the current place of a device. Raise :class:`StoppedError` if the run has been stopped."""

    def stop(self, fault: BaseException) -> None:
        """Stop all devices because of an error."""

    def leave(self) -> None:
        """Note that a device has finished."""


@dataclass
class Device:
    """One device of a run.

    ``times`` has the measured start and end of each operation in seconds, shape (steps, 2, operations). All devices of a process share
    ``times``, and each device writes only the rows of its own operations. ``spans`` has a list for each step, with the device's steps of
    rings and its optimiser.
    """

    rank: int
    job: Job
    exchange: Exchange
    times: Floats
    spans: list[list[SpanRow]] = field(default_factory=list)
    result: Any = None
    _own_outputs: dict[int, Any] = field(default_factory=dict)  # outputs that stay on this device; key: the row that needs the output
    _place: int = START

    def run(self) -> None:
        """Run all steps. After an error, stop all devices and store the error for the caller."""
        try:
            for step in range(self.job.steps):
                self._run_step(step)
            self.result = self.job.work.result(self.rank)
        except StoppedError:
            pass  # another device has failed, and its error is already stored
        except BaseException as why:  # an error in a thread does not reach the caller by itself
            self.exchange.stop(self.job.failed(self.rank, self._place, why))
        finally:
            self.exchange.leave()

    def _run_step(self, step: int) -> None:
        """Run the operations of this device, then the rings of its stages, then its optimiser."""
        job, schedule = self.job, self.job.schedule
        self.spans.append([])
        self._stand(START)
        job.work.begin(self.rank, step)
        self.exchange.meet(self.rank, START)
        first = schedule.first.tolist()
        rows = range(first[self.rank], [*first, schedule.kind.size][self.rank + 1])
        second_of_pair = set((schedule.pairs + 1).tolist())
        for row in rows:
            if row not in second_of_pair:
                self._run_turn(step, [row, row + 1] if row + 1 in second_of_pair else [row])
        self._stand(END)
        self.exchange.meet(self.rank, END)  # the rings begin when all pipelines have ended, as in hybrid_step without overlap
        for stage in job.ring_order:
            ranks = job.holders[stage].tolist()
            if self.rank in ranks:
                self._stand(schedule.kind.size + stage)
                numbers = checked_gradients(job.work.gradients(self.rank, stage))
                average_in_place(numbers, ranks.index(self.rank), ranks, job.wire, partial(self._swap, stage, ranks))
        self._stand(OPTIMISER_PLACE)
        start = time.perf_counter()
        job.work.update(self.rank)
        self.exchange.sleep(start + job.optimiser)
        self.spans[-1].append((OPTIMISER, self.rank, start, time.perf_counter(), -1, -1, -1, -1))

    def _stand(self, place: int) -> None:
        """Note the current place of the device. The error of a failure names this place."""
        self._place = place
        self.exchange.stand(self.rank, place)

    def _run_turn(self, step: int, rows: list[int]) -> None:
        """Run one operation or an overlapped pair: wait for the inputs, compute, and send the outputs."""
        schedule, job = self.job.schedule, self.job
        inputs = [self._input(row) for row in rows]
        start = time.perf_counter()
        outputs = []
        for row, message in zip(rows, inputs, strict=True):
            self._stand(row)
            outputs.append(job.work.work(self.rank, schedule.ops[row], message))
        self.exchange.sleep(start + job.durations[rows[0]])  # sleep for the rest of the cost; both rows of a pair have the same cost
        end = time.perf_counter()
        for row, output in zip(rows, outputs, strict=True):
            self.times[step, :, row] = start, end
            for reader in job.readers.get(row, ()):
                receiver = int(schedule.device[reader])
                if receiver == self.rank:
                    self._own_outputs[reader] = output
                elif job.wait and schedule.ops[row] not in job.lost:  # with wait=False, no receiver takes messages
                    self.exchange.put(self.rank, receiver, reader, Message(output, end + job.delays[reader]))

    def _input(self, row: int) -> Any:
        """Return the output that a row needs, after waiting for its message. Return None if the row needs no output."""
        schedule = self.job.schedule
        source = int(schedule.source[row])
        if source < 0 or not schedule.crosses[row]:
            return self._own_outputs.pop(row, None)
        if not self.job.wait:
            return None
        return self.exchange.take(int(schedule.device[source]), self.rank, row)

    def _swap(self, stage: int, ranks: list[int], step: RingStep) -> Content:
        """Send one chunk to the next rank of a ring and return the chunk from the previous rank. Both are one span."""
        place = ranks.index(self.rank)
        right, left = ranks[(place + 1) % len(ranks)], ranks[place - 1]
        name = self.job.ring_message(stage, step.number)
        start = time.perf_counter()
        # put before take: if every rank first waited for a chunk, no rank would send one
        self.exchange.put(self.rank, right, name, Message(step.content, start + self.job.ring_step))
        arrived: Content = self.exchange.take(left, self.rank, name)
        self.exchange.sleep(start + self.job.ring_step)
        kind = ALL_GATHER if step.gathers else REDUCE_SCATTER
        self.spans[-1].append((kind, self.rank, start, time.perf_counter(), stage, step.chunk, step.turn, right))
        return arrived


def checked_gradients(whole: Any) -> Floats:
    """Return the gradients of a stage, or raise an error if a ring cannot average them in place."""
    if not (isinstance(whole, np.ndarray) and whole.ndim == 1 and whole.dtype == np.float64 and whole.flags.writeable):
        wanted = "gradients must return an array of float64 with one axis that the ring can write to"
        raise HybridLabError(f"{wanted}, not {short_repr(whole)}", "wrong-type")
    return whole
