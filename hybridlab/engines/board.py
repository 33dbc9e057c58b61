"""The board where each process of a run notes its current place, and the watch that finds hanging ranks and deadlocks."""

from pathlib import Path
from typing import Any

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.engines.job import START, Job
from hybridlab.errors import HybridLabError, RunFailed

RUNS, WAITS, DONE = range(3)  # states of a rank
CHECK = 0.02  # seconds between two looks at the board
STILL = 1.0  # seconds without a change, while all ranks wait; after this time no message is on its way
LOADS = 60.0  # seconds; the longest time that a rank may need to load the job before its first note
STATE, PLACE, NAME, CHANGES = range(4)  # columns of the board


class Board:
    """A small file that all processes of a run map into their memory. Noting a place takes less than a microsecond.

    The board has one row for each rank, and only this rank writes its row. The columns are the state of the rank, its place, the message
    for which the rank waits, and the number of changes.

    Parameters
    ----------
    ranks : int
        The number of ranks.
    path : Path, optional
        The file. None if no other process reads the board.
    new : bool
        Whether to create the file.
    """

    def __init__(self, ranks: int, path: Path | None = None, new: bool = False) -> None:
        self.rows: Ints = np.zeros((ranks, 4), dtype=np.int64) if path is None else _map_file(path, np.int64, (ranks, 4), new)

    def note(self, rank: int, state: int, place: int | None = None, name: int = 0) -> None:
        """Note the state of a rank, its new place (None: unchanged), and the name of the message for which the rank waits."""
        row = self.rows[rank]
        row[STATE], row[NAME] = state, name
        if place is not None:
            row[PLACE] = place
        row[CHANGES] += 1  # written last: a reader that sees a new number of changes also sees the complete row


class FaultWatch:
    """A watch that reads the board regularly and finds two faults: a rank that hangs, and a deadlock of all ranks.

    The watch counts only time in which its own process could run. If the machine sleeps for a minute, no rank seems to hang.

    Parameters
    ----------
    board : Board
        The board of the run.
    job : Job
        The job that runs.
    patience : float
        Seconds. A rank counts as hanging if it stays at one place for this many seconds longer than the costs of the job allow.
    """

    def __init__(self, board: Board, job: Job, patience: float) -> None:
        self._rows, self._job = board.rows[: job.ranks], job
        # the longest time at one place: the longest sleep in the costs, plus patience
        self._limit = patience + max(*job.durations, *job.delays, job.ring_step, job.optimiser)
        self._patience = patience
        self._seen = self._first = np.array(self._rows)
        self._still = np.zeros(job.ranks)  # seconds since each rank has last written

    def find_fault(self, passed: float) -> HybridLabError | None:
        """Read the board, ``passed`` seconds after the last reading. Return the error of a fault, or None."""
        rows, job = np.array(self._rows), self._job  # a copy, because the ranks go on writing
        # count at most three intervals: after a longer pause, this process could not run for the rest of the time
        self._still = np.where(rows[:, CHANGES] == self._seen[:, CHANGES], self._still + min(passed, 3 * CHECK), 0.0)
        self._seen = rows
        runs, waits = (np.flatnonzero(rows[:, STATE] == state).tolist() for state in (RUNS, WAITS))
        if waits and not runs and self._still[waits].min() > STILL:
            return job.deadlock({rank: int(rows[rank, NAME]) for rank in waits})
        loading = rows[:, CHANGES] == self._first[:, CHANGES]  # ranks without a note since the job began
        for rank in runs:
            if self._still[rank] > (max(LOADS, self._limit) if loading[rank] else self._limit):
                place = int(rows[rank, PLACE])
                stands = f"device {rank} has stood at {job.words(place)} for {self._patience:g} seconds longer than its costs allow"
                advice = "the device hangs, or the argument patience is too short"
                return RunFailed(f"{stands}: {advice}", "device-hangs", rank, job.op_at(place))
        return None

    def gone(self, rank: int, how: str) -> RunFailed:
        """Return the error for a rank whose process has ended during the run. ``how`` describes how the process ended."""
        if rank >= self._job.ranks:
            return RunFailed(f"process {rank}, which this run does not use, has ended: {how}", "device-gone", rank)
        place = int(self._rows[rank, PLACE])
        return RunFailed(
            f"the process of device {rank} ended at {self._job.words(place)}: {how}", "device-gone", rank, self._job.op_at(place)
        )


def reset(board: Board, ranks: int) -> None:
    """Reset the board for a job with ``ranks`` ranks: these ranks run, and all other processes are done."""
    board.rows[:, STATE] = DONE
    board.rows[:ranks, STATE] = RUNS
    board.rows[:, PLACE] = START


def times_file(path: Path, job: Job, new: bool = False) -> Any:
    """Return the array of measured times, shape (steps, 2, operations). All processes of a run share this array through a file."""
    times = _map_file(path, np.float64, (job.steps, 2, job.schedule.kind.size), new)
    if new:
        times[:] = np.nan  # no time yet
    return times


def _map_file(path: Path, kind: type, shape: tuple[int, ...], new: bool) -> Any:
    """Return an array that all processes share: each process maps the same file into its memory."""
    return np.memmap(path, dtype=kind, mode="w+" if new else "r+", shape=shape)
