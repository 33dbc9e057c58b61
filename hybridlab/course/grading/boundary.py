"""Run a function in a process of its own. Whatever happens in it, the caller goes on: an error, a crash, no end, or too much memory.

The processes are copies of one process that has imported the grader, so each starts in a few milliseconds.
"""

import multiprocessing
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import psutil

PRELOADED = ["hybridlab.course.grading.grade"]  # the modules that the copied process has imported


@dataclass(frozen=True)
class Broken:
    """Stands for the result of a function that has not returned one.

    Parameters
    ----------
    why : str
        What has happened, as a part of a sentence.
    """

    why: str


@dataclass
class _Running:
    """A process that runs a function for the item ``name``."""

    name: str
    process: Any
    result: Connection
    deadline: float


def each_apart(
    work: Callable[..., Any], items: Iterable[tuple[str, tuple[Any, ...]]], *, jobs: int, seconds: float, memory: int
) -> Iterator[tuple[str, Any]]:
    """Call a function for each item, each in a process of its own. Yield pairs of a name and a result, as soon as they are there.

    When the caller stops to iterate, for example after Ctrl-C, all processes that still run are killed.

    Parameters
    ----------
    work : callable
        The function. It must be importable, and its arguments and result must be values that can be pickled.
    items : iterable of (str, tuple)
        For each item its name, and the arguments of the function.
    jobs : int
        The number of processes that run at the same time.
    seconds : float
        The most seconds on the clock for one item. After them its process is killed.
    memory : int
        The bytes of address space that a process may take beside what it has at its start.

    Yields
    ------
    (str, Any)
        The name and the result; :class:`Broken` in place of a result that does not come.
    """
    context = multiprocessing.get_context("forkserver")  # not "fork": a forked process could inherit locks of threads of this process
    context.set_forkserver_preload(PRELOADED)
    left = deque(items)
    running: list[_Running] = []
    try:
        while left or running:
            while left and len(running) < jobs:
                name, arguments = left.popleft()
                running.append(_start(context, name, (work, arguments, memory), seconds))
            nearest = min(each.deadline for each in running)
            wait([each.result for each in running], max(0.0, nearest - time.monotonic()))
            for each in list(running):
                if each.result.poll():
                    result = _received(each)
                elif time.monotonic() >= each.deadline:
                    result = Broken(f"it was not graded within {seconds:g} s")
                else:
                    continue
                running.remove(each)
                _end(each)
                yield each.name, result
    finally:
        for each in running:
            _end(each)


def _start(context: Any, name: str, arguments: tuple[Any, ...], seconds: float) -> _Running:
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sending, *arguments), daemon=True)
    process.start()
    sending.close()  # the process has its own copy; with this one open, its end would not be seen
    return _Running(name, process, receiving, time.monotonic() + seconds)


def _received(running: _Running) -> Any:
    """Return what the process has sent, or why it has sent nothing."""
    try:
        return running.result.recv()
    except (EOFError, OSError):  # it ended before or while it sent its result
        running.process.join(1.0)
        return Broken(f"its process was ended from outside (exit code {running.process.exitcode}): is there enough memory for --jobs?")


def _end(running: _Running) -> None:
    """End a process, and the workers that it has started."""
    below = []
    with suppress(psutil.Error):  # it has ended
        below = psutil.Process(running.process.pid).children(recursive=True)
    running.process.kill()
    for each in below:
        with suppress(psutil.Error):
            each.kill()
    running.process.join()
    running.result.close()


def _run(sending: Connection, work: Callable[..., Any], arguments: tuple[Any, ...], memory: int) -> None:
    """Call the function in its process, and send its result, or the name and the place of its error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C, and kills this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        _limit_memory(memory)
        result = work(*arguments)
    except BaseException as why:
        place = traceback.extract_tb(why.__traceback__)[-1]
        result = Broken(f"the grader has failed with {type(why).__name__} in {Path(place.filename).name}, line {place.lineno}")
    with suppress(BrokenPipeError):  # the parent process has ended
        sending.send(result)


def _limit_memory(memory: int) -> None:
    """Limit the address space of this process to what it has now and ``memory`` more bytes."""
    import resource  # Windows does not have this module, and nothing is graded there

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, most))
