"""Starts workers of one kind of sandbox, with the limits and packages that belong to it."""

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hybridlab.course.grading import sandbox
from hybridlab.course.grading.sandbox import Limits, Runtime
from hybridlab.course.grading.session import Budget, Ended, Session
from hybridlab.errors import HybridLabError

SANDBOXES = ("bubblewrap", "none")  # "none" is for a student's own code on the student's own machine


@dataclass(frozen=True)
class Launcher:
    """Starts workers.

    Parameters
    ----------
    sandbox : str
        What protects this machine from them, one of ``SANDBOXES``.
    made : Runtime
        What they need.
    limits : Limits
        What they may use.
    """

    sandbox: str
    made: Runtime
    limits: Limits

    def open(self, kind: str, budget: Budget) -> Session:
        """Start a worker of a kind, ``"library"`` or ``"bare"``, and return the conversation with it.

        Raises
        ------
        Ended
            ``no-worker``: it did not start. This is no fault of the work that it was to run.
        HybridLabError
            ``no-sandbox``: there is no bubblewrap.
        """
        protected = self.sandbox != "none"
        start = sandbox.bubblewrapped(self.made) if protected else sandbox.unprotected(self.made)
        try:
            return Session(
                lambda: start(kind),
                self.limits,
                inside=self.limits.inside() if protected else {},
                packages=sandbox.packages_of(self.made, kind, sandboxed=protected),
                budget=budget,
                echo=not protected,
            )
        except Ended as why:
            raise Ended(f"no worker could be started: {why}", "no-worker") from None
        except OSError as why:
            raise Ended(f"no worker could be started: {why.strerror or why}", "no-worker") from why


@contextlib.contextmanager
def launcher(name: str = "bubblewrap", limits: Limits | None = None) -> Iterator[Launcher]:
    """Make what workers need in a temporary folder, and yield what starts them.

    Raises
    ------
    HybridLabError
        This system has no such sandbox. Work is never graded with less protection than asked for.
    """
    if name != "none" and sys.platform != "linux":
        why = "work is graded on Linux, because only there is bubblewrap"
        raise HybridLabError(f"{why}; here, hybridlab check tries a notebook without a sandbox", "no-sandbox")
    with tempfile.TemporaryDirectory(prefix="hybridlab-", dir=sandbox.folder_for_copies() if name != "none" else None) as folder:
        made = sandbox.runtime(Path(folder), sandboxed=name != "none")
        yield Launcher(name, made, limits or Limits())
