"""The rule behind two published timelines, a step grid and an event log, for any size. It is called 1F1B and is not.

K stages, D replicas, M microbatches; rank = replica x K + stage. The rule knows a step and a stage and nothing else: in
each of M + K-1 steps, stage s runs the forward of microbatch step - s if s <= step < M, then the backward of microbatch
step - (K-1-s) if there is such a microbatch. No operation waits for another. So the last stage starts with a backward,
and the bound step < M, where step < M + s is meant, drops the last forwards of every stage but the first. The grid has
one cell for a rank in a step: a backward overwrites the forward of its step.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybridlab.errors import HybridLabError
from hybridlab.inputs import whole_number
from hybridlab.ops import Kind, Op
from hybridlab.schedule_text import join_text

Microbatches = npt.NDArray[np.int64]  # (steps, stages): the microbatch that runs, -1 for none

IDLE = "-"
MOST_CELLS = 10**6  # steps x ranks: the tables are for reading


class Event(NamedTuple):
    """One row of the log: at ``time`` (a running number), ``rank`` of ``stage`` does ``event``: F0, B3 or OPT."""

    time: int
    rank: int
    stage: int
    event: str

    @property
    def op(self) -> Op | None:
        """The operation of a forward or a backward, None for the optimizer's OPT.

        >>> str(Event(1, 2, 2, "B0").op)
        '2B0'
        """
        return None if self.event == "OPT" else Op.parse(f"{self.stage}{self.event}")


class LostForwards(NamedTuple):
    """Forwards of one replica that never show, as pairs (stage, microbatch): why they are lost is the field's name."""

    by_bound: tuple[tuple[int, int], ...]
    by_overwriting: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class StepGrid:
    """The printed step grid: ``cells[step][rank]`` is "F0", "B3" or "-". ``str()`` is the table as printed."""

    stages: int
    replicas: int
    microbatches: int
    cells: tuple[tuple[str, ...], ...] = field(repr=False)

    def __str__(self) -> str:
        ranks = range(self.replicas * self.stages)
        header = "Step | " + " | ".join(f"R{rank}(S{rank % self.stages})" for rank in ranks)
        rows = (f"{step:<4} | " + "".join(f"{cell:^10} | " for cell in row) for step, row in enumerate(self.cells))
        return "\n".join((header, "-" * len(header), *rows))

    def order(self, rank: int) -> tuple[Op, ...]:
        """Return what ``rank`` is left with, in the order of the steps.

        >>> " ".join(map(str, step_grid().order(0)))
        '0F0 0F1 0B0 0B1 0B2 0B3 0B4 0B5'
        """
        rank = whole_number(rank, "rank", at_least=0, at_most=self.replicas * self.stages - 1)
        shown = (row[rank] for row in self.cells)
        return tuple(Op.parse(f"{rank % self.stages}{cell}") for cell in shown if cell != IDLE)

    def orders(self) -> str:
        """Return the orders of replica 0, a line a device, as ``Schedule.parse`` reads them (and refuses them).

        >>> print(step_grid(stages=2, microbatches=2).orders())
        device 0: 0F0 0B0 0B1
        device 1: 1B0 1B1
        """
        return join_text([self.order(stage) for stage in range(self.stages)])


@dataclass(frozen=True)
class EventLog:
    """The printed event log: ``rows`` of :class:`Event`, optimizer included. ``str()`` is the table as printed."""

    stages: int
    replicas: int
    microbatches: int
    rows: tuple[Event, ...] = field(repr=False)

    def __str__(self) -> str:
        header = f"{'Time':<6} | {'Rank':<6} | {'Stage':<6} | Event"
        rows = (f"{time:<6} | {rank:<6} | {stage:<6} | {event}" for time, rank, stage, event in self.rows)
        return "\n".join((header, "-" * len(header), *rows))

    def order(self, rank: int) -> tuple[Op, ...]:
        """Return the forwards and backwards of ``rank`` as logged.

        >>> " ".join(map(str, event_log().order(2)))
        '2B0 2B1 2F0 2B2 2F1 2B3 2F2 2B4 2F3 2B5'
        """
        rank = whole_number(rank, "rank", at_least=0, at_most=self.replicas * self.stages - 1)
        return tuple(row.op for row in self.rows if row.rank == rank and row.op is not None)

    def orders(self) -> str:
        """Return the orders of replica 0, a line a device, as ``Schedule.parse`` reads them (and refuses them).

        >>> from hybridlab import Schedule
        >>> Schedule.parse(event_log(stages=2, microbatches=2).orders(), name="event log")
        Traceback (most recent call last):
        hybridlab.errors.InvalidSchedule: schedule 'event log' cannot run:
          stage 1 never runs the forward of microbatch 1
          device 1 runs 1B0 before 1F0: the backward of microbatch 0 needs the forward first
        device 0: 0F0 0F1 0B0 0B1
        device 1: [1B0] 1F0 1B1
        """
        return join_text([self.order(stage) for stage in range(self.stages)])


def step_grid(stages: int = 3, replicas: int = 4, microbatches: int = 6) -> StepGrid:
    """Return the published step grid of ``stages`` x ``replicas`` ranks: M + K-1 rows, one column a rank.

    Raises :class:`HybridLabError` for sizes that are not whole numbers of at least 1, or too large to read.
    The published one has 12 ranks and 6 microbatches.

    >>> step_grid().cells[0]
    ('F0', '-', 'B0', 'F0', '-', 'B0', 'F0', '-', 'B0', 'F0', '-', 'B0')
    """
    stages, replicas, microbatches = _sizes(stages, replicas, microbatches)
    forward, backward = _rule(stages, microbatches)
    one_replica = (
        tuple(_cell(f, b) for f, b in zip(*row, strict=True))
        for row in zip(forward.tolist(), backward.tolist(), strict=True)
    )
    return StepGrid(stages, replicas, microbatches, tuple(row * replicas for row in one_replica))


def event_log(stages: int = 3, replicas: int = 4, microbatches: int = 6) -> EventLog:
    """Return the published event log: rank by rank in every step, F before B; then OPT on every rank, stage by stage.

    Raises :class:`HybridLabError` for sizes that are not whole numbers of at least 1, or too large to read.
    The published one has 144 rows.

    >>> log = event_log()
    >>> len(log.rows), log.rows[1]
    (144, Event(time=1, rank=2, stage=2, event='B0'))
    """
    stages, replicas, microbatches = _sizes(stages, replicas, microbatches)
    rows = tuple(Event(time, *row) for time, row in enumerate(_events(stages, replicas, microbatches)))
    return EventLog(stages, replicas, microbatches, rows)


def lost_forwards(stages: int = 3, microbatches: int = 6) -> LostForwards:
    """Return the forwards of one replica that never show, as pairs (stage, microbatch).

    ``by_bound``: dropped by step < M, missing from the log and from the grid. ``by_overwriting``: in the log, but
    overwritten in the grid by the backward of their step. Raises :class:`HybridLabError` as :func:`step_grid` does.

    >>> lost_forwards().by_bound
    ((1, 5), (2, 4), (2, 5))
    >>> len(lost_forwards().by_overwriting)
    13
    """
    stages, _, microbatches = _sizes(stages, 1, microbatches)
    forward, backward = _rule(stages, microbatches)
    logged = _pairs(forward)
    left = _pairs(np.where(backward < 0, forward, -1))
    every = product(range(stages), range(microbatches))
    return LostForwards(tuple(pair for pair in every if pair not in logged), tuple(sorted(logged - left)))


def _sizes(stages: int, replicas: int, microbatches: int) -> tuple[int, int, int]:
    stages, replicas = whole_number(stages, "stages"), whole_number(replicas, "replicas")
    microbatches = whole_number(microbatches, "microbatches")
    cells = (microbatches + stages - 1) * stages * replicas
    if cells > MOST_CELLS:
        size = f"{microbatches + stages - 1:,} steps of {stages * replicas:,} ranks"
        raise HybridLabError(f"{size} make a table of more than {MOST_CELLS:,} cells: try fewer of either")
    return stages, replicas, microbatches


def _rule(stages: int, microbatches: int) -> tuple[Microbatches, Microbatches]:
    """Return the microbatch of the forward and of the backward, (steps, stages), -1 for none."""
    step = np.arange(microbatches + stages - 1)[:, None]
    stage = np.arange(stages)
    reached = step - (stages - 1 - stage)
    forward = np.where((stage <= step) & (step < microbatches), step - stage, -1)
    return forward, np.where((reached >= 0) & (reached < microbatches), reached, -1)


def _cell(forward: int, backward: int) -> str:
    """The later one wins."""
    if backward >= 0:
        return f"{Kind.B}{backward}"
    return f"{Kind.F}{forward}" if forward >= 0 else IDLE


def _events(stages: int, replicas: int, microbatches: int) -> Iterator[tuple[int, int, str]]:
    """Yield rank, stage and event, in the order of the log."""
    for rows in zip(*(table.tolist() for table in _rule(stages, microbatches)), strict=True):
        for replica, stage in product(range(replicas), range(stages)):
            for kind, row in zip((Kind.F, Kind.B), rows, strict=True):
                if row[stage] >= 0:
                    yield replica * stages + stage, stage, f"{kind}{row[stage]}"
    for stage, replica in product(range(stages), range(replicas)):
        yield replica * stages + stage, stage, "OPT"


def _pairs(running: Microbatches) -> set[tuple[int, int]]:
    """Return (stage, microbatch) of every operation in ``running``."""
    steps, stages = np.nonzero(running >= 0)
    return set(zip(stages.tolist(), running[steps, stages].tolist(), strict=True))
