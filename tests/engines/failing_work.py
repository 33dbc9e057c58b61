"""Work of tests, in a module that processes load quickly: most goes wrong at one place of one rank, in one of several ways."""

import os
import signal
import subprocess
import time
from typing import Any

import numpy as np

from hybridlab.engines import StepWork
from hybridlab.schedule import Op

HOURS = 3600.0


class Planted(Exception):
    """An error that no pickle can carry, because it needs two arguments."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


class FailingWork(StepWork):
    """A rank fails in a ``way`` when it comes to a ``place``: an operation such as "1B0", "ring", "update", "begin" or "result"."""

    def __init__(self, rank: int, place: str, way: str) -> None:
        self.rank, self.place, self.way = rank, place, way

    def begin(self, rank: int, step: int) -> None:
        self._come_to(rank, "begin")

    def work(self, rank: int, op: Op, message: Any) -> Any:
        self._come_to(rank, str(op))
        return np.zeros(3)

    def gradients(self, rank: int, stage: int) -> Any:
        self._come_to(rank, "ring")
        return np.zeros(5)

    def update(self, rank: int) -> None:
        self._come_to(rank, "update")

    def result(self, rank: int) -> Any:
        self._come_to(rank, "result")
        return (lambda: rank) if self.way == "unpicklable" else rank

    def _come_to(self, rank: int, place: str) -> None:
        if (rank, place) != (self.rank, self.place):
            return
        if self.way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.way == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.way == "exit":
            os._exit(3)
        if self.way == "error, mpiexec slow":
            stop_for_half_a_second(os.getppid())
        if self.way.startswith("error"):
            raise ZeroDivisionError("planted")
        if self.way == "odd error":
            raise Planted("planted", "twice")
        if self.way == "sleep":
            time.sleep(HOURS)
        if self.way == "spin":
            while True:
                pass


def stop_for_half_a_second(process: int) -> None:
    """Stop a process. Another one, which outlives this one, lets it go on."""
    os.kill(process, signal.SIGSTOP)
    nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -CONT {process}"], start_new_session=True, **nothing)  # noqa: S607


class CannotBeLoaded(StepWork):
    """Work that raises an error when another process loads it."""

    def __reduce__(self) -> Any:
        return os.strerror, ("no number",)


class Echo(StepWork):
    """It returns what it gets, so that the last operations hold the whole way of a microbatch."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def work(self, rank: int, op: Op, message: Any) -> Any:
        way = (f"{rank}:{op}", message)
        self.seen.append(way)
        return way

    def result(self, rank: int) -> Any:
        return [way for way in self.seen if way[0].startswith(f"{rank}:")]
