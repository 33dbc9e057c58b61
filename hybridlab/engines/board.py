"""The board on which the processes of a run note their places, and the watch that finds ranks that hang or wait for ever."""

from pathlib import Path
from typing import Any

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.engines.job import START, Job
from hybridlab.errors import HybridLabError, RunFailed

RUNS, WAITS, DONE = range(3)  # states of a rank
CHECK = 0.02  # seconds between two looks at the board
STILL = 1.0  # seconds: if all ranks wait and the board does not change for so long, no message is on its way
LOADS = 60.0  # seconds that a rank may take to load the job before its first note
STATE, PLACE, NAME, CHANGES = range(4)  # columns


class Board:
    """A small file that all processes of a run map into their memory, so that noting a place takes less than a microsecond.

    It has a row for each rank, which only this rank writes: its state, its place, the message that it waits for, and how often it has
    written.

    Parameters
    ----------
    ranks : int
        The number of ranks.
    path : Path, optional
        The file. None if nobody looks at the board.
    new : bool
        Whether to create the file.
    """

    def __init__(self, ranks: int, path: Path | None = None, new: bool = False) -> None:
        self.rows: Ints = np.zeros((ranks, 4), dtype=np.int64) if path is None else _map_file(path, np.int64, (ranks, 4), new)

    def note(self, rank: int, state: int, place: int | None = None, name: int = 0) -> None:
        """Note the state of a rank, its place if this has changed, and the message that it waits for."""
        row = self.rows[rank]
        row[STATE], row[NAME] = state, name
        if place is not None:
            row[PLACE] = place
        row[CHANGES] += 1  # last, so that a change that is seen is complete


class FaultWatch:
    """A watch that looks at the board again and again, and finds ranks that hang and ranks that all wait.

    Time counts only while this process itself can run. So if the machine sleeps for a minute, no rank seems to hang.

    Parameters
    ----------
    board : Board
        The board of the run.
    job : Job
        What runs.
    patience : float
        The seconds that a rank may stand at one place beyond the longest time that the job's costs allow there.
    """

    def __init__(self, board: Board, job: Job, patience: float) -> None:
        self._rows, self._job = board.rows[: job.ranks], job
        # the longest sleep that the costs allow at one place
        self._limit = patience + max(*job.durations, *job.delays, job.ring_step, job.optimiser)
        self._patience = patience
        self._seen = self._first = np.array(self._rows)
        self._still = np.zeros(job.ranks)  # seconds since each rank has last written

    def find_fault(self, passed: float) -> HybridLabError | None:
        """Look at the board, ``passed`` seconds after the last look, and return the error if there is one."""
        rows, job = np.array(self._rows), self._job  # a copy, because the ranks go on writing
        # at most three looks at once, because a longer pause means that this process could not run
        self._still = np.where(rows[:, CHANGES] == self._seen[:, CHANGES], self._still + min(passed, 3 * CHECK), 0.0)
        self._seen = rows
        runs, waits = (np.flatnonzero(rows[:, STATE] == state).tolist() for state in (RUNS, WAITS))
        if waits and not runs and self._still[waits].min() > STILL:
            return job.deadlock({rank: int(rows[rank, NAME]) for rank in waits})
        loading = rows[:, CHANGES] == self._first[:, CHANGES]  # no note since the job began
        for rank in runs:
            if self._still[rank] > (max(LOADS, self._limit) if loading[rank] else self._limit):
                place = int(rows[rank, PLACE])
                stands = f"device {rank} has stood at {job.words(place)} for {self._patience:g} seconds longer than its costs allow"
                advice = "it hangs, or patience is too short"
                return RunFailed(f"{stands}: {advice}", "device-hangs", rank, job.op_at(place))
        return None

    def gone(self, rank: int, how: str) -> RunFailed:
        """Return the error for a rank whose process has ended during the run; ``how`` says in which way."""
        if rank >= self._job.ranks:
            return RunFailed(f"process {rank}, which this run does not use, has ended: {how}", "device-gone", rank)
        place = int(self._rows[rank, PLACE])
        return RunFailed(
            f"the process of device {rank} ended at {self._job.words(place)}: {how}", "device-gone", rank, self._job.op_at(place)
        )


def reset(board: Board, ranks: int) -> None:
    """Write the first state of the board for a job with ``ranks`` ranks: they run, and the others are done."""
    board.rows[:, STATE] = DONE
    board.rows[:ranks, STATE] = RUNS
    board.rows[:, PLACE] = START


def times_file(path: Path, job: Job, new: bool = False) -> Any:
    """Return the array of measured times, shape (steps, 2, operations), that all processes of a run share as a file."""
    times = _map_file(path, np.float64, (job.steps, 2, job.schedule.kind.size), new)
    if new:
        times[:] = np.nan  # no time yet
    return times


def _map_file(path: Path, kind: type, shape: tuple[int, ...], new: bool) -> Any:
    """Return an array that all processes share, because each of them maps the same file into its memory."""
    return np.memmap(path, dtype=kind, mode="w+" if new else "r+", shape=shape)
