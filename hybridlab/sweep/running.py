"""The runner of a sweep's jobs, in this process or on an executor. The outcome of a job is its results, or why the job did not run."""

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError
from hybridlab.progress import Progress, with_progress
from hybridlab.sweep.jobs import Job, Results, run_job

NOT_RUN = "not run: "  # beginning of the text for a job that did not run
INTERRUPTED = f"{NOT_RUN}the sweep was interrupted"
RAISED = "a job of the sweep raised this error"
CHECK_INTERVAL = 0.1  # seconds between two checks for an interrupt, because on some systems an interrupt does not end a wait
MPI_COMMAND = "mpiexec -n 3 python -m mpi4py.futures script.py"

Outcome = list[Results] | str  # the results of a job, or the reason why the job did not run
Steps = Generator[tuple[int, Outcome], None, None]  # yields (index of a job, outcome of the job)


class Workers(Protocol):
    """An executor: a ``concurrent.futures.Executor``, or another object whose ``submit`` starts a function and returns a future."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Start ``function(*arguments)`` and return its future."""


def checked_executor(executor: Any) -> Workers | None:
    """Return the executor. Raise an error if it is not an executor, or if it is an MPI executor without workers."""
    if executor is None:
        return None
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        wanted = "executor must be a concurrent.futures.Executor, such as ProcessPoolExecutor() or MPIPoolExecutor(), or a client of Dask"
        raise HybridLabError(f"{wanted}, not {short_repr(executor)}", "wrong-type")
    if _has_no_workers(executor):
        message = f"MPIPoolExecutor has no workers in a program that MPICH has not started: start it with {MPI_COMMAND}"
        raise HybridLabError(message, "no-workers")
    return executor  # type: ignore[no-any-return]


def run_jobs(
    work: Sequence[Job], rows: Sequence[int], executor: Workers | None, progress: Progress, store: Callable[[int, list[Results]], None]
) -> list[Outcome]:
    """Return the outcome of every job, in the order of the jobs.

    Parameters
    ----------
    work : sequence of jobs
    rows : sequence of int
        The number of rows of each job, for the progress bar.
    executor : Workers or None
        The executor that runs the jobs. None runs them in this process, one after the other.
    progress : bool, callable or None
        As for :func:`with_progress`.
    store : callable
        Called with the index and the results of each job that has finished, at once.

    Raises
    ------
    HybridLabError
        The executor ran no job.
    KeyboardInterrupt
        An interrupt (Ctrl-C) came before the first job had finished. After a later interrupt, the function returns, and the remaining jobs
        have the outcome "not run".
    Exception
        The error that a job raised.
    """
    outcomes: list[Outcome] = [INTERRUPTED] * len(work)

    def store_outcomes() -> Iterator[tuple[int, None]]:
        """Store each outcome, and yield its number of rows with results."""
        for place, outcome in steps:
            outcomes[place] = outcome
            if not isinstance(outcome, str):
                store(place, outcome)
            yield 0 if isinstance(outcome, str) else rows[place], None

    # closing cancels the waiting jobs after an interrupt
    with closing(_run_here(work) if executor is None else _run_elsewhere(work, executor)) as steps:
        try:
            for _ in with_progress(store_outcomes(), sum(rows), progress, unit="rows"):
                pass
        except KeyboardInterrupt:
            if all(isinstance(outcome, str) for outcome in outcomes):
                raise
    if work and all(isinstance(outcome, str) for outcome in outcomes):
        raise HybridLabError(f"the executor ran no job of the sweep: {str(outcomes[0]).removeprefix(NOT_RUN)}", "not-run")
    return outcomes


def attempt(job: Job) -> list[Results]:
    """Return the results of a job. A note on an error of the job distinguishes the error from errors of the executor."""
    try:
        return run_job(job)
    except Exception as why:
        why.add_note(RAISED)
        raise


def _run_here(work: Sequence[Job]) -> Steps:
    """Yield the index and the results of each job."""
    for place, job in enumerate(work):
        yield place, attempt(job)


def _run_elsewhere(work: Sequence[Job], executor: Workers) -> Steps:
    """Yield the index and the outcome of each job as soon as the job has finished. At the end, cancel the waiting jobs."""
    done: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    waiting: dict[int, Any] = {}
    refusal = ""
    try:
        for place, job in enumerate(work):
            try:
                future = executor.submit(attempt, job)
            except Exception as why:  # the executor is closed or broken
                refusal = _reason(why)
                break
            waiting[place] = future
            if not callable(getattr(future, "add_done_callback", None)):
                message = f"the futures of {type(executor).__name__} have no add_done_callback, so a sweep cannot wait for them"
                raise HybridLabError(f"{message}: on Slurm, take executorlib's SlurmClusterExecutor or MPIPoolExecutor", "wrong-type")
            # the default value binds ``place`` of this iteration of the loop
            future.add_done_callback(lambda future, place=place: done.put((place, future)))
        submitted = len(waiting)
        while waiting:
            place, future = _wait_for_next(done)
            del waiting[place]
            yield place, _outcome(future)
        for place in range(submitted, len(work)):
            yield place, refusal
    finally:
        for future in waiting.values():
            if hasattr(future, "cancel"):  # the futures of some executors have no such method, and the sweep is refused then
                future.cancel()


def _wait_for_next(done: "SimpleQueue[tuple[int, Any]]") -> tuple[int, Any]:
    """Wait for the next finished job."""
    while True:
        try:
            return done.get(timeout=CHECK_INTERVAL)
        except Empty:  # an interrupt takes effect between two waits
            continue


def _outcome(future: Any) -> Outcome:
    """Return the results of a finished job, or the reason why the executor did not run it. Raise an error of the job itself."""
    try:
        why = future.exception()
        if why is None:
            results: list[Results] = future.result()
            return results
    except Exception as lost:  # the job was cancelled, or its results were lost with a dead worker
        why = lost
    if RAISED not in getattr(why, "__notes__", ()):
        return _reason(why)
    if isinstance(why, HybridLabError) and why.code == "unknown-name":  # this process knows the name, but the worker does not
        unknown = str(why).split(". Known:")[0].split(": did")[0]
        message = f"a worker does not know a schedule of this sweep ({unknown}): register it in a module that the workers import"
        raise HybridLabError(message, why.code) from why
    raise why


def _reason(why: BaseException) -> str:
    """Return the reason why a job did not run, as one line of text."""
    kind = type(why).__name__
    text = f"{kind}: {why}".splitlines()[0]
    described = text if len(text) <= 160 else f"{text[:157]}..."  # short, because the text is a cell of the table
    if isinstance(why, BrokenExecutor) or kind == "KilledWorker":  # compared by name, because Dask is perhaps not installed
        return f"{NOT_RUN}a worker of the executor died ({described})"
    return f"{NOT_RUN}the executor did not run the job ({described.removesuffix(': ')})"


def _has_no_workers(executor: Any) -> bool:
    """Return whether this is an executor of mpi4py that cannot start workers, so that its jobs would wait for ever.

    If ``python -m mpi4py.futures`` has not started workers, the executor starts workers itself. With MPICH this works only in a program
    that mpiexec or Slurm has started. Such a program has environment variables PMI_... or PMIX_....
    """
    if type(executor).__name__ != "MPIPoolExecutor" or getattr(executor, "_pool", None) is not None:
        return False
    mpi: Any = sys.modules.get("mpi4py.MPI")
    return mpi is not None and mpi.get_vendor()[0] == "MPICH" and not any(name.startswith("PMI") for name in os.environ)
