"""Starts workers of one kind of sandbox, with the limits and packages that belong to it."""

import contextlib
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hybridlab.checks import known_name
from hybridlab.course.grading import landlock, sandbox
from hybridlab.course.grading.sandbox import MOST_THREADS, Limits, Runtime
from hybridlab.course.grading.session import Budget, Ended, Session
from hybridlab.course.grading.syscalls import threads_filter
from hybridlab.errors import HybridLabError

SANDBOXES = ("bubblewrap", "landlock", "none")  # "none" is for a student's own code on the student's own machine


@dataclass(frozen=True)
class Launcher:
    """A value that starts workers.

    Parameters
    ----------
    sandbox : str
        What protects this machine from the workers, one of ``SANDBOXES``.
    runtime : Runtime
        What the workers need.
    limits : Limits
        What the workers may use.
    """

    sandbox: str
    runtime: Runtime
    limits: Limits

    def open(self, kind: str, budget: Budget) -> Session:
        """Start a worker of a kind, ``"library"``, ``"bare"`` or ``"threads"``, and return the session with it.

        ``"threads"`` is as ``"bare"``, but may start threads. It starts no processes, because a filter refuses them. On a machine whose
        system calls are not known there is no filter, and so no thread.

        Raises
        ------
        Ended
            ``no-worker``: it did not start. This is no fault of the work that it was to run.
        HybridLabError
            ``no-sandbox``: there is no bubblewrap or no Landlock.
        """
        protected = self.sandbox != "none"
        calls = threads_filter(platform.machine()) if protected and kind == "threads" else b""
        kind = "bare" if kind == "threads" else kind
        starts = {"bubblewrap": sandbox.bubblewrap_starter, "landlock": landlock.landlock_starter, "none": sandbox.unprotected_starter}
        start = starts[self.sandbox](self.runtime)
        try:
            return Session(
                lambda: start(kind),
                self.limits,
                inside=self._inside(MOST_THREADS if calls else 0),
                calls=calls,
                packages=self._packages(kind),
                budget=budget,
                echo=not protected,
            )
        except Ended as why:
            raise Ended(f"no worker could be started: {why}", "no-worker") from None
        except OSError as why:  # such as too many processes or files
            raise Ended(f"no worker could be started: {why.strerror or why}", "no-worker") from why

    def _inside(self, threads: int) -> dict[str, int]:
        """Return the limits that a worker with so many threads sets on itself."""
        if self.sandbox == "none":
            return {}
        # the kernel counts the processes of a user: bubblewrap has a user namespace, Landlock shares the user with other programs
        processes = self.limits.processes if self.sandbox == "bubblewrap" else landlock.processes_of_its_user() if threads else 0
        if self.sandbox == "landlock":
            processes += landlock.PROCESSES + (landlock.OTHERS if threads else 0)
        return {**self.limits.inside(), "NPROC": processes + threads}

    def _packages(self, kind: str) -> list[str]:
        if self.sandbox == "landlock":
            return landlock.landlock_packages(self.runtime, kind)
        return sandbox.packages_of(self.runtime, kind, sandboxed=self.sandbox != "none")


@contextlib.contextmanager
def launcher(name: str = "bubblewrap", limits: Limits | None = None) -> Iterator[Launcher]:
    """Put what workers need into a temporary folder, and yield a launcher for them.

    Raises
    ------
    HybridLabError
        This system has no such sandbox. Work is never graded with less protection than asked for.
    """
    known_name(name, SANDBOXES, "sandbox")
    if name != "none" and sys.platform != "linux":
        why = "work is graded on Linux, because only there are bubblewrap and Landlock"
        raise HybridLabError(f"{why}; here, hybridlab check tries a notebook without a sandbox", "no-sandbox")
    if name == "landlock":
        landlock.require_landlock()
    with tempfile.TemporaryDirectory(prefix="hybridlab-", dir=sandbox.folder_for_copies() if name != "none" else None) as folder:
        runtime = sandbox.make_runtime(Path(folder), sandboxed=name != "none")
        if name == "landlock":
            landlock.gather_packages(runtime)
        yield Launcher(name, runtime, limits or Limits())
