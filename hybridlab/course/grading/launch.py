"""Start workers in one kind of sandbox, with the limits and packages for this kind."""

import contextlib
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from hybridlab.checks import known_name
from hybridlab.course.grading import landlock, sandbox
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.sandbox import MOST_THREADS, Limits, Runtime
from hybridlab.course.grading.session import Ended, Session
from hybridlab.course.grading.syscalls import threads_filter
from hybridlab.engines.folders import temporary_folder
from hybridlab.errors import HybridLabError

SANDBOXES = ("bubblewrap", "landlock", "none")  # "none" is for a student's own code on the student's own machine


@dataclass(frozen=True)
class Launcher:
    """A sandbox with its limits, which can start workers.

    Parameters
    ----------
    sandbox : str
        The kind of sandbox that protects this machine from the workers, one of ``SANDBOXES``.
    runtime : Runtime
        The files that the workers need.
    limits : Limits
        The time, memory and disk space that the workers may use.
    """

    sandbox: str
    runtime: Runtime
    limits: Limits

    def open(self, kind: str, budget: Budget) -> Session:
        """Start a worker and return the session with it.

        ``kind`` is ``"library"`` (with hybridlab), ``"bare"`` (with numpy only) or ``"threads"``. A worker of the kind ``"threads"`` is
        like ``"bare"``, but may also start threads. A filter prevents it from starting processes. If the system calls of this machine
        are not known, there is no filter, and the worker may not start threads.

        Raises
        ------
        Ended
            ``no-worker``: the worker did not start. The student's notebook did not cause this.
        HybridLabError
            ``no-sandbox``: this machine has no bubblewrap, or no Landlock.
        """
        protected = self.sandbox != "none"
        calls = threads_filter(platform.machine()) if protected and kind == "threads" else b""
        kind = "bare" if kind == "threads" else kind
        starts = {"bubblewrap": sandbox.bubblewrap_starter, "landlock": landlock.landlock_starter, "none": sandbox.unprotected_starter}
        start = starts[self.sandbox](self.runtime)
        try:
            return Session(
                lambda: start(kind),
                inside=self._inside(MOST_THREADS if calls else 0),
                calls=calls,
                packages=self._packages(kind),
                budget=budget,
                echo=not protected,
            )
        except Ended as why:
            raise Ended(f"no worker could be started: {why}", "no-worker") from None
        except OSError as why:  # for example, there are too many processes or open files
            raise Ended(f"no worker could be started: {why.strerror or why}", "no-worker") from why

    def _inside(self, threads: int) -> dict[str, int]:
        """Return the limits that a worker sets on itself. ``threads`` is the number of threads that it may start."""
        if self.sandbox == "none":
            return {}
        # the kernel counts processes by user; bubblewrap has its own user namespace, but under Landlock other programs have the same user
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
    """Put the files that workers need into a temporary folder, and yield a launcher.

    Raises
    ------
    HybridLabError
        ``no-sandbox``: this system does not have this sandbox. Another sandbox is never used instead.
    """
    known_name(name, SANDBOXES, "sandbox")
    if name != "none" and sys.platform != "linux":
        why = "work is graded on Linux, because only there are bubblewrap and Landlock"
        raise HybridLabError(f"{why}; here, hybridlab check tries a notebook without a sandbox", "no-sandbox")
    if name == "landlock":
        landlock.require_landlock()
    with temporary_folder(sandbox.folder_for_copies() if name != "none" else None) as folder:
        try:
            runtime = sandbox.make_runtime(folder, sandboxed=name != "none")
        except OSError as why:
            reason = why.strerror or "not all files could be copied"  # an error of several files has no text of its own
            where = f"cannot put what workers need into {folder}: {reason}"
            raise HybridLabError(f"{where}; set TMPDIR to a folder on a disk with 100 MB of room", "not-writable") from None
        if name == "landlock":
            landlock.gather_packages(runtime)
        yield Launcher(name, runtime, limits or Limits())
