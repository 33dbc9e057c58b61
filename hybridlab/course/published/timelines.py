"""Two published timelines, a step grid and an event log, for any size, as their common rule makes them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from hybridlab.checks import whole_number
from hybridlab.course.published.rule import running, sizes_of
from hybridlab.schedule import Kind, Op
from hybridlab.schedule.text import join_text

IDLE = "-"


class Event(NamedTuple):
    """One row of the log: at ``time`` (a running number), ``rank`` of ``stage`` does ``event``: F0, B3 or OPT."""

    time: int
    rank: int
    stage: int
    event: str

    @property
    def op(self) -> Op | None:
        """The operation of a forward or a backward, None for the optimiser's OPT.

        >>> str(Event(1, 2, 2, "B0").op)
        '2B0'
        """
        return None if self.event == "OPT" else Op.parse(f"{self.stage}{self.event}")


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
        return join_text([[(op,) for op in self.order(stage)] for stage in range(self.stages)])


@dataclass(frozen=True)
class EventLog:
    """The printed event log: ``rows`` of :class:`Event`, optimiser included. ``str()`` is the table as printed."""

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
          device 1 runs 1B0 before 1F0, the forward that it needs
        device 0: 0F0 0F1 0B0 0B1
        device 1: [1B0] 1F0 1B1
        """
        return join_text([[(op,) for op in self.order(stage)] for stage in range(self.stages)])


def step_grid(stages: int = 3, replicas: int = 4, microbatches: int = 6) -> StepGrid:
    """Return the published step grid of ``stages`` x ``replicas`` ranks: M + K-1 rows, one column a rank.

    Raises :class:`HybridLabError` for sizes that are not whole numbers of at least 1, or too large to read.
    The published one has 12 ranks and 6 microbatches.

    >>> step_grid().cells[0]
    ('F0', '-', 'B0', 'F0', '-', 'B0', 'F0', '-', 'B0', 'F0', '-', 'B0')
    """
    stages, replicas, microbatches = sizes_of(stages, replicas, microbatches)
    forward, backward = running(stages, microbatches)
    one_replica = (tuple(_cell(f, b) for f, b in zip(*row, strict=True)) for row in zip(forward.tolist(), backward.tolist(), strict=True))
    return StepGrid(stages, replicas, microbatches, tuple(row * replicas for row in one_replica))


def event_log(stages: int = 3, replicas: int = 4, microbatches: int = 6) -> EventLog:
    """Return the published event log: rank by rank in every step, F before B; then OPT on every rank, stage by stage.

    Raises :class:`HybridLabError` for sizes that are not whole numbers of at least 1, or too large to read.
    The published one has 144 rows.

    >>> log = event_log()
    >>> len(log.rows), log.rows[1]
    (144, Event(time=1, rank=2, stage=2, event='B0'))
    """
    stages, replicas, microbatches = sizes_of(stages, replicas, microbatches)
    rows = tuple(Event(time, *row) for time, row in enumerate(_events(stages, replicas, microbatches)))
    return EventLog(stages, replicas, microbatches, rows)


def _cell(forward: int, backward: int) -> str:
    """The later one wins."""
    if backward >= 0:
        return f"{Kind.B}{backward}"
    return f"{Kind.F}{forward}" if forward >= 0 else IDLE


def _events(stages: int, replicas: int, microbatches: int) -> Iterator[tuple[int, int, str]]:
    """Yield rank, stage and event, in the order of the log."""
    for rows in zip(*(table.tolist() for table in running(stages, microbatches)), strict=True):
        for replica, stage in product(range(replicas), range(stages)):
            for kind, row in zip((Kind.F, Kind.B), rows, strict=True):
                if row[stage] >= 0:
                    yield replica * stages + stage, stage, f"{kind}{row[stage]}"
    for stage, replica in product(range(stages), range(replicas)):
        yield replica * stages + stage, stage, "OPT"
