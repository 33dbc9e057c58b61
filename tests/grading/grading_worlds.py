"""Mark submissions in tests: one runtime for all tests, workers with all the time they need, and the cells of a lab's own notebook.

No test depends on the speed of the machine: the limits are those of a real class, in seconds of computing time, and right answers need far
less of it. What never ends is tried under limits of computing time, too: attacks under two fifths of those of a class.
"""

import struct
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from hybridlab.course.grading import syscalls
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.launch import Launcher
from hybridlab.course.grading.marking import mark
from hybridlab.course.grading.marks import TaskMark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.sandbox import Limits, Runtime, Start, bubblewrap_starter, make_runtime, packages_of
from hybridlab.course.grading.session import Session
from hybridlab.course.grading.specs import LabSpec, spec_of

DEADLINE = 1000.0  # seconds for work that could wait for ever, far more than any needs on a busy machine
_FOLDERS: list["tempfile.TemporaryDirectory[str]"] = []  # they live as long as the tests


@dataclass
class World:
    """A place where submissions are marked, and the processes that it has started.

    Parameters
    ----------
    runtime : Runtime
        What workers need.
    start : callable
        Starts a worker of a kind.
    limits : Limits
        What a worker may use.
    """

    runtime: Runtime
    start: Start
    limits: Limits

    def open(self, kind: str, budget: Budget | None = None) -> Session:
        """Start a worker."""
        if kind == "threads":
            return Launcher("bubblewrap", self.runtime, self.limits).open(kind, budget or Budget(self.limits))
        packages = packages_of(self.runtime, kind, sandboxed=True)
        return Session(lambda: self.start(kind), inside=self.limits.inside(), packages=packages, budget=budget or Budget(self.limits))

    def mark(self, cells: Sequence[CodeCell], lab: str, keys: Collection[str] = ()) -> list[TaskMark]:
        """Return the marks of a submission for all tasks of a lab, or for some of them."""
        spec = lab_spec(lab)
        asked = replace(spec, tasks=tuple(task for task in spec.tasks if task.key in keys or not keys))
        return list(mark(cells, asked, None, self.open, Budget(self.limits), lambda key: 2026))

    def earned(self, cells: Sequence[CodeCell], lab: str, keys: Collection[str] = ()) -> dict[str, float]:
        """Return the points that a submission earns, by the keys of the tasks that earn any."""
        return {mark.key: mark.points for mark in self.mark(cells, lab, keys) if mark.points}


@cache
def shared_runtime() -> Runtime:
    """Return what workers need. It is built once for all tests."""
    folder = tempfile.TemporaryDirectory(prefix="hybridlab-tests-")
    _FOLDERS.append(folder)
    return make_runtime(Path(folder.name))


def new_world(limits: Limits | None = None) -> World:
    """Return a place where submissions are marked, in a sandbox of bubblewrap."""
    runtime = shared_runtime()
    return World(runtime, bubblewrap_starter(runtime), limits or Limits())


@cache
def lab_spec(lab: str) -> LabSpec:
    """Return what a lab asks for."""
    return spec_of(reference(lab))


def honest_cells(lab: str, solved: Iterable[str] | None = None) -> list[CodeCell]:
    """Return the answer cells of a copy in which some tasks, by default the number task with the fewest points, are solved."""
    spec = lab_spec(lab)
    solved = {cheapest(spec)} if solved is None else set(solved)
    return [CodeCell(spec.solutions[key] if key in solved else stub, key, "") for key, stub in spec.stubs.items()]


def cheapest(spec: LabSpec) -> str:
    """Return the key of the number task, or else of the written task, with the fewest points."""
    return min((task for task in spec.tasks if task.kind != "build"), key=lambda task: (task.points, task.kind)).key


def cell(source: str, task: str = "") -> CodeCell:
    """Return a code cell."""
    return CodeCell(source, task, "")


def verdict(program: bytes, machine: int, call: int, *arguments: int) -> int:
    """Run a filter as the kernel does, and return its verdict on a call. Arguments that are not given are 0."""
    lines = list(struct.iter_unpack("HBBI", program))
    place, held = 0, 0
    while True:
        code, holds, fails, value = lines[place]
        place += 1
        if code == syscalls.LOAD:
            held = {0: call, 4: machine, **{16 + 8 * number: each for number, each in enumerate((*arguments, *[0] * 6)[:6])}}[value]
        elif code == syscalls.RETURN:
            return int(value)
        else:
            true = {syscalls.EQUAL: held == value, syscalls.AT_LEAST: held >= value, syscalls.HAS: bool(held & value)}[code]
            place += holds if true else fails


def in_time(work: Callable[[], Any]) -> Any:
    """Run ``work``, and return its result or raise its error; fail if it takes longer than ``DEADLINE``."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as why:
            found.append(why)

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    worker.join(DEADLINE)
    assert found, f"it has not ended after {DEADLINE:g} s"
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]
