"""Mark submissions in tests: a runtime made once, sessions with small limits, and the cells of a lab's own notebook."""

import struct
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from shutil import which

import pytest

from hybridlab.course.grading import syscalls
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.marking import mark
from hybridlab.course.grading.marks import TaskMark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.sandbox import Limits, Runtime, Start, bubblewrapped, packages_of, runtime
from hybridlab.course.grading.session import Budget, Session
from hybridlab.course.grading.specs import LabSpec, spec_of

NO_BUBBLEWRAP = "bubblewrap is not installed"
QUICK = Limits(seconds_a_cell=1.5, seconds_a_notebook=9.0)  # loops end soon
_FOLDERS: list["tempfile.TemporaryDirectory[str]"] = []  # they live as long as the tests


@dataclass
class World:
    """A place where submissions are marked, and the processes that it has started.

    Parameters
    ----------
    made : Runtime
        What workers need.
    start : callable
        Starts a worker of a kind.
    limits : Limits
        What a worker may use.
    """

    made: Runtime
    start: Start
    limits: Limits = QUICK
    processes: list[int] = field(default_factory=list)

    def open(self, kind: str, budget: Budget | None = None) -> Session:
        """Start a worker."""

        def started() -> object:
            process = self.start(kind)
            self.processes.append(process.pid)
            return process

        packages = packages_of(self.made, kind, sandboxed=True)
        left = budget or Budget(self.limits.seconds_a_notebook)
        return Session(started, self.limits, inside=self.limits.inside(), packages=packages, budget=left)

    def marked(self, cells: Sequence[CodeCell], lab: str, seed_of: Callable[[str], int | None] = lambda key: 2026) -> list[TaskMark]:
        """Return the marks of a submission."""
        return list(mark(cells, lab_spec(lab), None, self.open, self.limits.seconds_a_notebook, seed_of))

    def earned(self, cells: Sequence[CodeCell], lab: str) -> dict[str, float]:
        """Return the points that a submission earns, by the keys of the tasks that earn any."""
        return {mark.key: mark.points for mark in self.marked(cells, lab) if mark.points}


@cache
def made_runtime() -> Runtime:
    """Return what workers need, made once for all tests."""
    folder = tempfile.TemporaryDirectory(prefix="hybridlab-tests-")
    _FOLDERS.append(folder)
    return runtime(Path(folder.name))


def new_world(limits: Limits = QUICK) -> World:
    """Return a place where submissions are marked; skip the test where bubblewrap is missing."""
    if which("bwrap") is None:
        pytest.skip(NO_BUBBLEWRAP)
    made = made_runtime()
    return World(made, bubblewrapped(made), limits)


@cache
def lab_spec(lab: str) -> LabSpec:
    """Return what a lab asks for."""
    return spec_of(reference(lab))


def honest_cells(lab: str, solved: Iterable[str] | None = None) -> list[CodeCell]:
    """Return the answer cells of a copy in which some tasks, by default the cheapest number, are solved by the reference solution."""
    spec = lab_spec(lab)
    solved = {cheapest(spec)} if solved is None else set(solved)
    return [CodeCell(spec.solutions[key] if key in solved else stub, key, "") for key, stub in spec.stubs.items()]


def cheapest(spec: LabSpec) -> str:
    """Return the key of the number task, or else of the written task, with the fewest points."""
    return min((task for task in spec.tasks if task.kind != "build"), key=lambda task: (task.points, task.kind)).key


def cell(source: str, task: str = "") -> CodeCell:
    """Return a code cell."""
    return CodeCell(source, task, "")


def verdict(program: bytes, machine: int, call: int, argument: int = 0) -> int:
    """Return what a filter says about a call with this first argument, by running it as the kernel does."""
    lines = list(struct.iter_unpack("HBBI", program))
    place, held = 0, 0
    while True:
        code, holds, fails, value = lines[place]
        place += 1
        if code == syscalls.LOAD:
            held = {0: call, 4: machine, 16: argument}[value]
        elif code == syscalls.RETURN:
            return int(value)
        else:
            true = {syscalls.EQUAL: held == value, syscalls.AT_LEAST: held >= value, syscalls.HAS: bool(held & value)}[code]
            place += holds if true else fails
