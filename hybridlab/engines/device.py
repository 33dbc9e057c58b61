"""The thread of one device, which runs and measures its operations in their order, then its rings, and then its optimiser."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import short_repr
from hybridlab.engines.exchange import Exchange, Message, StoppedError
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op
from hybridlab.step.replicas import Replicated
from hybridlab.timeline.spans import ALL_GATHER, OPTIMISER, REDUCE_SCATTER

WorkFunction = Callable[[int, Op, Any], Any]  # takes the rank, the operation and the output that it needs; returns its own output
GradientsFunction = Callable[[int, int], Floats]  # takes the rank and the stage; returns gradients that the ring averages in place
SpanRow = tuple[int, int, float, float, int, int, int, int]  # kind, device, start, end, stage, chunk, step, peer


@dataclass(frozen=True)
class Shared:
    """The values that all threads of a run share; all times are in seconds.

    Parameters
    ----------
    schedule : Replicated
        The operations of all ranks; a row is one operation of one rank.
    holders : array, shape (stages, holders)
        The ranks that average the gradients of each stage.
    ring_order : tuple of int
        The stages in the order in which their rings run. All devices use the same order, which prevents deadlock.
    readers : dict
        For each row, the rows that need its output.
    durations : list
        The duration of each row.
    delays : list
        For each row, the latency of the message that it waits for; 0 if it waits for no message.
    ring_step : float
        The duration of one step of a ring.
    optimiser : float
        The duration of a device's optimiser.
    work, gradients, wait, lost
        As for :func:`run_threads`.
    """

    schedule: Replicated
    holders: Ints
    ring_order: tuple[int, ...]
    readers: dict[int, list[int]]
    durations: list[float]
    delays: list[float]
    ring_step: float
    optimiser: float
    work: WorkFunction | None
    gradients: GradientsFunction | None
    wait: bool
    lost: frozenset[Op]


@dataclass
class Device:
    """The thread of one device.

    ``start`` and ``end`` have the measured times of all rows in seconds, and all threads share them. Each row is written only by the
    thread that runs it.
    """

    rank: int
    shared: Shared
    exchange: Exchange
    start: Floats
    end: Floats
    spans: list[SpanRow] = field(default_factory=list)
    _own_outputs: dict[int, Any] = field(default_factory=dict)  # outputs that stay on this device; the key is the row that needs the output
    _current: str = "the start"  # the current operation or ring, for error messages

    def run(self) -> None:
        """Run the whole step; if there is an error, stop all threads and keep the error for the caller."""
        try:
            self._run_step()
        except StoppedError:
            pass  # another thread has failed, and its error is already stored
        except BaseException as why:  # the caller must get every error of ``work``, but errors in a thread do not reach it
            fault = HybridLabError(f"device {self.rank} failed at {self._current}: {_error_text(why)}", "device-failed")
            fault.__cause__ = why
            self.exchange.stop(fault)
        finally:
            self.exchange.leave()

    def _run_step(self) -> None:
        self.exchange.meet(self.rank, "the others to start")
        schedule, first = self.shared.schedule, self.shared.schedule.first.tolist()
        rows = range(first[self.rank], [*first, schedule.kind.size][self.rank + 1])
        second_of_pair = set((schedule.pairs + 1).tolist())
        for row in rows:
            if row not in second_of_pair:
                self._run_turn([row, row + 1] if row + 1 in second_of_pair else [row])
        self.exchange.meet(self.rank, "the end of all other pipelines")
        for stage in self.shared.ring_order:
            ranks = self.shared.holders[stage].tolist()
            if self.rank in ranks:
                self._current = f"the ring of stage {stage}"
                self._run_ring(stage, ranks)
        start = end = time.perf_counter()
        if self.shared.optimiser:
            self.exchange.sleep(start + self.shared.optimiser)
            end = time.perf_counter()
        self.spans.append((OPTIMISER, self.rank, start, end, -1, -1, -1, -1))

    def _run_turn(self, rows: list[int]) -> None:
        """Run one operation or an overlapped pair: wait for the inputs, compute, and send the outputs."""
        schedule, shared = self.shared.schedule, self.shared
        inputs = [self._input(row) for row in rows]
        start = time.perf_counter()
        outputs = []
        for row, message in zip(rows, inputs, strict=True):
            op = schedule.ops[row]
            self._current = f"{op}, {op.words}"
            outputs.append(None if shared.work is None else shared.work(self.rank, op, message))
        self.exchange.sleep(start + shared.durations[rows[0]])
        end = time.perf_counter()
        for row, output in zip(rows, outputs, strict=True):
            self.start[row], self.end[row] = start, end
            for reader in shared.readers.get(row, ()):
                receiver = int(schedule.device[reader])
                if receiver == self.rank:
                    self._own_outputs[reader] = output
                elif schedule.ops[row] not in shared.lost:
                    self.exchange.put(self.rank, receiver, reader, Message(output, end + shared.delays[reader]))

    def _input(self, row: int) -> Any:
        """Wait for the output that a row needs and return it; return None if the row needs none."""
        schedule = self.shared.schedule
        source = int(schedule.source[row])
        if source < 0 or not schedule.crosses[row]:
            return self._own_outputs.pop(row, None)
        if not self.shared.wait:
            return None
        sender, content = int(schedule.device[source]), f"the output of {schedule.ops[source]}"
        return self.exchange.take(sender, self.rank, row, content, schedule.ops[row])

    def _run_ring(self, stage: int, ranks: list[int]) -> None:
        """Average the gradients of a stage over D ranks in 2(D-1) steps; in each step every rank sends one of the D chunks."""
        count, place = len(ranks), ranks.index(self.rank)
        right, left = ranks[(place + 1) % count], ranks[place - 1]
        chunks = _chunks_of_gradients(self.shared.gradients, self.rank, stage, count)
        for step in range(2 * (count - 1)):
            phase, turn = divmod(step, count - 1)  # phase 0: reduce-scatter, 1: all-gather
            sent = (place + phase - turn) % count
            start = time.perf_counter()
            self.exchange.put(self.rank, right, (stage, step), Message(chunks[sent].copy(), start + self.shared.ring_step))
            arrived = self.exchange.take(left, self.rank, (stage, step), f"step {step} of the ring of stage {stage}")
            self.exchange.sleep(start + self.shared.ring_step)
            own = chunks[(sent - 1) % count]
            if arrived.size != own.size:
                wanted = f"gradients of stage {stage} must have one length on all its ranks"
                found = f"rank {left} sent a chunk of {arrived.size} numbers, but rank {self.rank} has {own.size}"
                raise HybridLabError(f"{wanted}: {found}", "wrong-length")
            own[:] = arrived if phase else own + arrived
            kind = ALL_GATHER if phase else REDUCE_SCATTER
            self.spans.append((kind, self.rank, start, time.perf_counter(), stage, sent, turn, right))
        for chunk in chunks:
            chunk /= count


def _error_text(why: BaseException) -> str:
    try:
        return f"{type(why).__name__}: {why}"
    except Exception:  # a broken __str__ can raise any error, which must not hide the first error
        return type(why).__name__


def _chunks_of_gradients(gradients: GradientsFunction | None, rank: int, stage: int, ranks: int) -> list[Floats]:
    """Return the gradients of a stage, cut into one chunk for each rank; chunks are views, and wrong gradients are refused."""
    whole = np.zeros(0) if gradients is None else gradients(rank, stage)
    if not (isinstance(whole, np.ndarray) and whole.ndim == 1 and whole.dtype == np.float64 and whole.flags.writeable):
        wanted = "gradients must return an array of float64 with one axis that the ring can write to"
        raise HybridLabError(f"{wanted}, not {short_repr(whole)}", "wrong-type")
    return np.array_split(whole, ranks)
