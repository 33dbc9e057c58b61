"""The computing time that a notebook may use, and the time that it has used.

A student has seconds of computing time, which a processor has really worked for the student's code. Seconds on the clock would depend on
what else the machine does. They have a limit, too, but a generous one: it ends code that sleeps or waits for ever.
"""

from contextlib import suppress

import psutil

from hybridlab.course.checking.calls import busy_threads
from hybridlab.course.grading.sandbox import Limits

NAMED = 0.5  # seconds; a part of a notebook that has used less is not named in a sentence
NEAR = 0.8  # the share of a limit from which another run could come to the other result


class Budget:
    """The computing time that the workers of one notebook may still use. All workers of a notebook share one budget.

    Parameters
    ----------
    limits : Limits
        The seconds for one task, and for all cells and tasks together.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.used: dict[str, float] = {}  # seconds of computing time, by the task or the cell that has used them
        self._owner, self._own = "", 0.0  # what runs now, and the seconds that it has used since it began
        self._longest: dict[str, float] = {}  # the most seconds that each has used in one go
        self._waited = 0.0  # seconds on the clock

    def begin(self, owner: str) -> None:
        """Begin to run a cell, or to judge a task. ``owner`` is its name in sentences, such as ``"lab02.t5"``."""
        self._owner, self._own = owner, 0.0

    def charge(self, seconds: float, waited: float) -> None:
        """Add seconds of computing time, and seconds on the clock, to what the present owner has used."""
        self._own += seconds
        self._waited += waited
        self.used[self._owner] = self.used.get(self._owner, 0.0) + seconds
        self._longest[self._owner] = max(self._longest.get(self._owner, 0.0), self._own)

    def exceeded(self, seconds: float = 0.0, waited: float = 0.0) -> str:
        """Return a sentence that says which limit is exceeded; an empty text if none is.

        Parameters
        ----------
        seconds, waited : float
            The seconds of computing time, and the seconds on the clock, that a request has taken and that are not charged yet.
        """
        most = self.limits
        if over := self.all_used(seconds, waited):
            return over
        if self._own + seconds > most.seconds_a_task:
            return f"it took longer than {most.seconds_a_task:g} s of computing time: does each of its loops come to an end?"
        return _sleeps(most.clock_a_request) if waited > most.clock_a_request else ""

    def all_used(self, seconds: float = 0.0, waited: float = 0.0) -> str:
        """Return a sentence that says that the whole notebook has used its time; an empty text if it has not. See :meth:`exceeded`."""
        most, used = self.limits, {**self.used, self._owner: self.used.get(self._owner, 0.0) + seconds}
        if sum(used.values()) > most.seconds_a_notebook:
            parts = [f"{owner} took {each:.0f} s" for owner, each in used.items() if each >= NAMED]
            return f"your notebook has used its {most.seconds_a_notebook:g} s of computing time: {', '.join(parts)}"
        return _sleeps(most.clock_a_notebook) if self._waited + waited > most.clock_a_notebook else ""

    @property
    def near(self) -> str:
        """Return a sentence on what came near its limit, so that another run could come to another result; an empty text if nothing did."""
        most, total = self.limits, sum(self.used.values())
        parts = [(owner, used, most.seconds_a_task) for owner, used in self._longest.items()] + [
            ("the notebook", total, most.seconds_a_notebook)
        ]
        near = [f"{owner} used {used:.1f} of its {limit:g} s" for owner, used, limit in parts if NEAR * limit < used <= limit]
        return f"near the limit of computing time: {', '.join(near)}" if near else ""


def _sleeps(clock: float) -> str:
    return f"it did not end within {clock:g} s on the clock: does it sleep, or wait for what never comes?"


class Meter:
    """The computing time of a worker, measured from outside, where no code of a student can change it.

    Parameters
    ----------
    process : int
        The number of the process that was started. The worker can be a process below it, as in a sandbox.
    """

    def __init__(self, process: int) -> None:
        self._seconds: dict[psutil.Process, float] = {}
        with suppress(psutil.Error):  # it has ended
            first = psutil.Process(process)
            self._seconds = dict.fromkeys((first, *first.children(recursive=True)), 0.0)

    def seconds(self) -> float:
        """Return the seconds of computing time of the worker since it started. The time of a process that has ended stays the same."""
        for process in self._seconds:
            with suppress(psutil.Error):
                times = process.cpu_times()
                self._seconds[process] = times.user + times.system
        return sum(self._seconds.values())

    def asleep(self) -> bool:
        """Return whether no thread of the worker works or could work at once. True where the system does not tell (it is not Linux)."""
        return not any(busy_threads(process.pid) for process in self._seconds)

    def threads(self) -> int:
        """Return the number of threads of the worker; 0 if it has ended."""
        most = 0
        for process in self._seconds:  # a process of the sandbox has one thread
            with suppress(psutil.Error):
                most = max(most, process.num_threads())
        return most
