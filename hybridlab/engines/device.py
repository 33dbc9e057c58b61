"""The thread of one device: its operations in their order, its rings, its optimiser, each at the time it was measured."""

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

Work = Callable[[int, Op, Any], Any]  # rank, operation, what the operation it needs returned -> what those that need it get
Gradients = Callable[[int, int], Floats]  # rank, stage -> the gradients that the ring averages, in place
Span = tuple[int, int, float, float, int, int, int, int]  # kind, device, start, end, stage, chunk, step, peer


@dataclass(frozen=True)
class Shared:
    """What all threads of a run share. Times are in seconds; ``lasts`` has one an operation, ``readers`` who needs its output.

    ``late`` has the latency of the message to each operation, 0 where it needs none.
    """

    schedule: Replicated
    holders: Ints
    ring_order: tuple[int, ...]
    readers: dict[int, list[int]]
    lasts: list[float]
    late: list[float]
    hop: float
    update: float
    work: Work | None
    gradients: Gradients | None
    wait: bool
    lost: frozenset[Op]


@dataclass
class Device:
    """One device's thread; ``start`` and ``end`` are shared, each row written by the one thread that runs it."""

    rank: int
    shared: Shared
    exchange: Exchange
    start: Floats
    end: Floats
    spans: list[Span] = field(default_factory=list)
    _own: dict[int, Any] = field(default_factory=dict)  # outputs that stay on this device, by row
    _at: str = "the start"

    def run(self) -> None:
        """Run to the end; whatever goes wrong stops all threads and is kept for the caller."""
        try:
            self._whole_step()
        except StoppedError:
            pass  # the fault that stopped this thread is kept already
        except BaseException as why:  # whatever work raises must reach the caller: nobody looks into a thread
            fault = HybridLabError(f"device {self.rank} failed at {self._at}: {_told(why)}")
            fault.__cause__ = why
            self.exchange.stop(fault)
        finally:
            self.exchange.leave()

    def _whole_step(self) -> None:
        self.exchange.meet(self.rank, "the others to start")
        schedule, first = self.shared.schedule, self.shared.schedule.first.tolist()
        rows = range(first[self.rank], [*first, schedule.kind.size][self.rank + 1])
        second = set((schedule.pairs + 1).tolist())
        for row in rows:
            if row not in second:
                self._turn([row, row + 1] if row + 1 in second else [row])
        self.exchange.meet(self.rank, "the end of all other pipelines")
        for stage in self.shared.ring_order:
            held = self.shared.holders[stage].tolist()
            if self.rank in held:
                self._at = f"the ring of stage {stage}"
                self._ring(stage, held)
        start = end = time.perf_counter()
        if self.shared.update:
            self.exchange.sleep(start + self.shared.update)
            end = time.perf_counter()
        self.spans.append((OPTIMISER, self.rank, start, end, -1, -1, -1, -1))

    def _turn(self, rows: list[int]) -> None:
        """Run one operation, or the two of an overlapped pair: wait for what they need, compute, pass it on."""
        schedule, shared = self.shared.schedule, self.shared
        given = [self._input(row) for row in rows]
        start = time.perf_counter()
        outputs = []
        for row, message in zip(rows, given, strict=True):
            op = schedule.ops[row]
            self._at = f"{op}, {op.words}"
            outputs.append(None if shared.work is None else shared.work(self.rank, op, message))
        self.exchange.sleep(start + shared.lasts[rows[0]])
        end = time.perf_counter()
        for row, output in zip(rows, outputs, strict=True):
            self.start[row], self.end[row] = start, end
            for reader in shared.readers.get(row, ()):
                receiver = int(schedule.device[reader])
                if receiver == self.rank:
                    self._own[reader] = output
                elif schedule.ops[row] not in shared.lost:
                    self.exchange.put(self.rank, receiver, reader, Message(output, end + shared.late[reader]))

    def _input(self, row: int) -> Any:
        source, op = int(self.shared.schedule.source[row]), self.shared.schedule.ops[row]
        if source < 0 or not self.shared.schedule.crosses[row]:
            return self._own.pop(row, None)
        if not self.shared.wait:
            return None
        return self.exchange.take(
            int(self.shared.schedule.device[source]), self.rank, row, f"the output of {self.shared.schedule.ops[source]}", op
        )

    def _ring(self, stage: int, held: list[int]) -> None:
        """Average the gradients of a stage: 2(D-1) steps, each sends one of D pieces on and takes one in."""
        ranks, place = len(held), held.index(self.rank)
        right, left = held[(place + 1) % ranks], held[place - 1]
        pieces = _pieces(self.shared.gradients, self.rank, stage, ranks)
        for step in range(2 * (ranks - 1)):
            phase, turn = divmod(step, ranks - 1)
            sent = (place + phase - turn) % ranks
            start = time.perf_counter()
            self.exchange.put(self.rank, right, (stage, step), Message(pieces[sent].copy(), start + self.shared.hop))
            message = f"step {step} of the ring of stage {stage}"
            came = self.exchange.take(left, self.rank, (stage, step), message)
            self.exchange.sleep(start + self.shared.hop)
            taken = pieces[(sent - 1) % ranks]
            if came.size != taken.size:
                message = f"gradients of stage {stage} must have one length on all its ranks"
                raise HybridLabError(f"{message}, but rank {left} sent {came.size} numbers for a piece of {taken.size}")
            taken[:] = came if phase else taken + came
            kind = ALL_GATHER if phase else REDUCE_SCATTER
            self.spans.append((kind, self.rank, start, time.perf_counter(), stage, sent, turn, right))
        for piece in pieces:
            piece /= ranks


def _told(why: BaseException) -> str:
    try:
        return f"{type(why).__name__}: {why}"
    except Exception:  # whatever a broken __str__ raises: the fault to tell of is another
        return type(why).__name__


def _pieces(gradients: Gradients | None, rank: int, stage: int, ranks: int) -> list[Floats]:
    whole = np.zeros(0) if gradients is None else gradients(rank, stage)
    if not (isinstance(whole, np.ndarray) and whole.ndim == 1 and whole.dtype == np.float64 and whole.flags.writeable):
        raise HybridLabError(f"gradients must return an array of float64 with one axis that the ring can write to, not {short_repr(whole)}")
    return np.array_split(whole, ranks)
