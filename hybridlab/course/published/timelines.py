"""Two published timelines for any size: a step grid and an event log. The program calls both 1F1B, but neither follows the 1F1B schedule.

There are K stages, D replicas and M microbatches, and rank = replica x K + stage. Both timelines follow one rule. In each of M + K-1
steps, stage s runs

- the forward of microbatch step - s, if s <= step < M;
- then the backward of microbatch step - (K-1-s), if there is such a microbatch.

No operation waits for another. This has three consequences:

- The last stage starts with a backward.
- The rule for the forward should be s <= step < M + s. With step < M, the last forwards are missing on every stage except the first.
- The grid has one cell for each rank and step. If a rank runs a forward and a backward in one step, the backward overwrites the forward.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybridlab.checks import whole_number
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op
from hybridlab.schedule.text import join_text

Microbatches = npt.NDArray[np.int64]  # shape (steps, stages): the number of the microbatch that runs; -1 if none runs

IDLE = "-"
# The report and the document of the simulator print the same grid. In the second one, the scan of the page spoilt the rows: they have these
# numbers of cells for 12 ranks.
SCANNED_CELLS = (14, 15, 15, 15, 15, 15, 15, 15)
MOST_TABLE_CELLS = 10**6  # the largest number of steps x ranks in a table


class Event(NamedTuple):
    """One row of the event log.

    Parameters
    ----------
    time : int
        Number of the row, counted from 0.
    rank, stage : int
    event : str
        The action of the rank: "F0", "B3" or, for the optimiser, "OPT".
    """

    time: int
    rank: int
    stage: int
    event: str

    @property
    def op(self) -> Op | None:
        """The forward or backward as an operation; None for the optimiser.

        >>> str(Event(1, 2, 2, "B0").op)
        '2B0'
        """
        return None if self.event == "OPT" else Op.parse(f"{self.stage}{self.event}")


@dataclass(frozen=True)
class StepGrid:
    """The step grid that the program prints. ``str()`` returns the printed table.

    Parameters
    ----------
    stages, replicas, microbatches : int
    cells : tuple of tuple of str
        ``cells[step][rank]`` is "F0", "B3" or "-".
    """

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
        """Return the operations that the grid shows for ``rank``, step by step.

        >>> " ".join(map(str, step_grid().order(0)))
        '0F0 0F1 0B0 0B1 0B2 0B3 0B4 0B5'
        """
        rank = whole_number(rank, "rank", at_least=0, at_most=self.replicas * self.stages - 1)
        column = (row[rank] for row in self.cells)
        # A cell has no number of a stage, so the stage is computed from the rank.
        return tuple(Op.parse(f"{rank % self.stages}{cell}") for cell in column if cell != IDLE)

    def orders(self) -> str:
        """Return the orders of replica 0 as text, one line for each device. ``Schedule.parse`` reads the text and refuses the orders.

        >>> print(step_grid(stages=2, microbatches=2).orders())
        device 0: 0F0 0B0 0B1
        device 1: 1B0 1B1
        """
        return join_text([[(op,) for op in self.order(stage)] for stage in range(self.stages)])


@dataclass(frozen=True)
class EventLog:
    """The event log that the program prints. ``str()`` returns the printed table.

    Parameters
    ----------
    stages, replicas, microbatches : int
    rows : tuple of Event
        All events, including those of the optimiser.
    """

    stages: int
    replicas: int
    microbatches: int
    rows: tuple[Event, ...] = field(repr=False)

    def __str__(self) -> str:
        header = f"{'Time':<6} | {'Rank':<6} | {'Stage':<6} | Event"
        rows = (f"{time:<6} | {rank:<6} | {stage:<6} | {event}" for time, rank, stage, event in self.rows)
        return "\n".join((header, "-" * len(header), *rows))

    def order(self, rank: int) -> tuple[Op, ...]:
        """Return the forwards and backwards of ``rank`` in the order of the log.

        >>> " ".join(map(str, event_log().order(2)))
        '2B0 2B1 2F0 2B2 2F1 2B3 2F2 2B4 2F3 2B5'
        """
        rank = whole_number(rank, "rank", at_least=0, at_most=self.replicas * self.stages - 1)
        return tuple(row.op for row in self.rows if row.rank == rank and row.op is not None)

    def orders(self) -> str:
        """Return the orders of replica 0 as text, one line for each device. ``Schedule.parse`` reads the text and refuses the orders.

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


class LostForwards(NamedTuple):
    """The forwards of one replica that are missing in a printed table, as pairs (stage, microbatch).

    Parameters
    ----------
    by_bound : tuple of (int, int)
        Forwards that never run because of the bound step < M. They are missing in the log and in the grid.
    by_overwriting : tuple of (int, int)
        Forwards that are in the log, but not in the grid, because in the grid a backward of the same step overwrites them.
    """

    by_bound: tuple[tuple[int, int], ...]
    by_overwriting: tuple[tuple[int, int], ...]


def step_grid(stages: int = 3, replicas: int = 4, microbatches: int = 6) -> StepGrid:
    """Return the published step grid: M + K-1 rows, and one column for each rank.

    Parameters
    ----------
    stages, replicas, microbatches : int
        The published grid has 3 stages, 4 replicas and 6 microbatches.

    Raises
    ------
    HybridLabError
        For sizes that are not whole numbers of at least 1, and for a table of more than a million cells.

    Examples
    --------
    >>> step_grid().cells[0]
    ('F0', '-', 'B0', 'F0', '-', 'B0', 'F0', '-', 'B0', 'F0', '-', 'B0')
    """
    stages, replicas, microbatches = checked_table_sizes(stages, replicas, microbatches)
    forward, backward = microbatches_by_step(stages, microbatches)
    one_replica = (
        tuple(_text_of_cell(f, b) for f, b in zip(*row, strict=True)) for row in zip(forward.tolist(), backward.tolist(), strict=True)
    )
    # All replicas have the same K cells in a row, so the row repeats the cells of one replica.
    return StepGrid(stages, replicas, microbatches, tuple(row * replicas for row in one_replica))


def event_log(stages: int = 3, replicas: int = 4, microbatches: int = 6) -> EventLog:
    """Return the published event log.

    In each step the log lists the ranks in order, and for each rank F before B. After the last step the log lists OPT for every rank, stage
    by stage.

    Parameters
    ----------
    stages, replicas, microbatches : int
        The published log has 3 stages, 4 replicas and 6 microbatches: 144 rows.

    Raises
    ------
    HybridLabError
        For sizes that are not whole numbers of at least 1, and for a table of more than a million cells.

    Examples
    --------
    >>> log = event_log()
    >>> len(log.rows), log.rows[1]
    (144, Event(time=1, rank=2, stage=2, event='B0'))
    """
    stages, replicas, microbatches = checked_table_sizes(stages, replicas, microbatches)
    rows = tuple(Event(time, *row) for time, row in enumerate(_events(stages, replicas, microbatches)))
    return EventLog(stages, replicas, microbatches, rows)


def lost_forwards(stages: int = 3, microbatches: int = 6) -> LostForwards:
    """Return the forwards of one replica that are missing in the log or in the grid.

    Parameters
    ----------
    stages, microbatches : int
        The published tables have 3 stages and 6 microbatches.

    Raises
    ------
    HybridLabError
        In the same cases as :func:`step_grid`.

    Examples
    --------
    >>> lost_forwards().by_bound
    ((1, 5), (2, 4), (2, 5))
    >>> len(lost_forwards().by_overwriting)
    13
    """
    stages, _, microbatches = checked_table_sizes(stages, 1, microbatches)
    forward, backward = microbatches_by_step(stages, microbatches)
    in_log = _pairs(forward)
    # The grid shows a forward only if the stage runs no backward in the same step.
    in_grid = _pairs(np.where(backward < 0, forward, -1))
    every = product(range(stages), range(microbatches))
    return LostForwards(tuple(pair for pair in every if pair not in in_log), tuple(sorted(in_log - in_grid)))


def checked_table_sizes(stages: int, replicas: int, microbatches: int) -> tuple[int, int, int]:
    """Return the sizes as ints. Raise an error for sizes below 1 and for tables that are too large to read."""
    stages, replicas = whole_number(stages, "stages"), whole_number(replicas, "replicas")
    microbatches = whole_number(microbatches, "microbatches")
    steps, ranks = microbatches + stages - 1, stages * replicas
    if steps * ranks > MOST_TABLE_CELLS:
        raise HybridLabError(
            f"{steps:,} steps of {ranks:,} ranks make a table of more than {MOST_TABLE_CELLS:,} cells: try fewer of either", "too-large"
        )
    return stages, replicas, microbatches


def microbatches_by_step(stages: int, microbatches: int) -> tuple[Microbatches, Microbatches]:
    """Return two tables of shape (steps, stages): the microbatch of each forward, and the microbatch of each backward. -1 means none."""
    step = np.arange(microbatches + stages - 1)[:, None]
    stage = np.arange(stages)
    # This line has the fault of the program: the bound should be step < microbatches + stage.
    forward = np.where((stage <= step) & (step < microbatches), step - stage, -1)
    backward = step - (stages - 1 - stage)
    return forward, np.where((backward >= 0) & (backward < microbatches), backward, -1)


def _pairs(microbatches: Microbatches) -> set[tuple[int, int]]:
    """Return (stage, microbatch) of every operation in a table of shape (steps, stages)."""
    steps, stages = np.nonzero(microbatches >= 0)
    return set(zip(stages.tolist(), microbatches[steps, stages].tolist(), strict=True))


def _text_of_cell(forward: int, backward: int) -> str:
    """Return the text of a cell in the grid, for one rank and one step. A backward overwrites a forward."""
    if backward >= 0:
        return f"{Kind.B}{backward}"
    return f"{Kind.F}{forward}" if forward >= 0 else IDLE


def _events(stages: int, replicas: int, microbatches: int) -> Iterator[tuple[int, int, str]]:
    """Yield rank, stage and event in the order of the log."""
    for rows in zip(*(table.tolist() for table in microbatches_by_step(stages, microbatches)), strict=True):
        # Within a step, the log has the ranks in order, and a rank's forward before its backward.
        for replica, stage in product(range(replicas), range(stages)):
            for kind, row in zip((Kind.F, Kind.B), rows, strict=True):
                if row[stage] >= 0:
                    yield replica * stages + stage, stage, f"{kind}{row[stage]}"
    # The program runs the rings and the optimiser stage by stage.
    for stage, replica in product(range(stages), range(replicas)):
        yield replica * stages + stage, stage, "OPT"
