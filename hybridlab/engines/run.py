"""The function ``run``: it runs a schedule on an engine and returns the measured timelines."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from hybridlab.checks import known_name
from hybridlab.costs import Costs
from hybridlab.engines.group import Group
from hybridlab.engines.job import Job, Measured, checked_job, timelines
from hybridlab.engines.joined import run_joined, was_started
from hybridlab.engines.start import ENGINES
from hybridlab.engines.threads import run_in_threads
from hybridlab.engines.work import StepWork, WorkFunction
from hybridlab.progress import Progress, reporting
from hybridlab.schedule import Op, Schedule
from hybridlab.timeline import Timeline
from hybridlab.wire import WireFormat


class RunResult(NamedTuple):
    """The measured times and the computed results of a run.

    Parameters
    ----------
    timelines : tuple of Timeline
        The measured timeline of each step, with spans for messages, rings and optimisers.
    results : tuple
        What :meth:`StepWork.result` returned for each rank.
    output : str
        The text that the processes of the ranks have printed. Threads print as usual.
    """

    timelines: tuple[Timeline, ...]
    results: tuple[Any, ...]
    output: str

    @property
    def timeline(self) -> Timeline:
        """The timeline of the step with the median makespan. With an even number of steps, the faster of the two middle steps."""
        # a step that really ran, so never the mean of two steps
        order = np.argsort([timeline.makespan for timeline in self.timelines], kind="stable")
        return self.timelines[int(order[(len(order) - 1) // 2])]


def run(
    schedule: Schedule,
    work: StepWork | WorkFunction | None = None,
    costs: Costs | None = None,
    *,
    engine: str | Group = "threads",
    replicas: int = 1,
    wire: WireFormat | None = None,
    steps: int = 1,
    ring_step: float | None = None,
    optimiser: float = 0.0,
    wait: bool = True,
    lost: Iterable[Op | str] = (),
    patience: float = 60.0,
    progress: Progress = None,
) -> RunResult:
    """Run one or several steps of ``replicas`` pipelines for real, and return the measured times and the results.

    Each rank is a thread or a process, and runs the operations of its device in the order of the schedule. An operation computes its work
    and then sleeps until at least its cost has passed. Inputs from other devices arrive as messages. A sender does not wait. A receiver can
    use a message when the latency ``p2p`` has passed since the message was sent. When all pipelines have ended, each rank runs the rings of
    its stages and then its optimiser. In a ring of D ranks, each rank sends 2(D-1) messages.

    If all ranks wait at the same time, no message can arrive any more, and the run ends with the error ``Deadlock``.

    Parameters
    ----------
    schedule : Schedule
        The schedule of one pipeline.
    work : StepWork or callable, optional
        The arithmetic of the operations. A function ``work(rank, op, message)`` returns the output of the operation ``op``, where
        ``message`` is the output of the operation that ``op`` needs. With None, operations only sleep.
    costs : Costs, optional
        The least time of each operation and the latency of messages, with a unit. None means 0 ms.
    engine : {"threads", "mpi", "torch"} or Group
        "threads" runs a thread for each rank in this process. "mpi" starts a process for each rank with mpiexec. "torch" starts a process
        for each rank, with torch.distributed over gloo. A :class:`Group` starts the processes once for several runs. If mpiexec, srun or
        torchrun has started the calling program, the processes of this program are the ranks: each process calls this function, and each
        process gets the whole result.
    replicas : int
        The number of pipelines.
    wire : WireFormat, optional
        The format of the rings' messages. None sends float64.
    steps : int
        The number of steps.
    ring_step : float, optional
        The least time of one step of a ring, in the unit of the costs, as in :func:`~hybridlab.hybrid_step`.
    optimiser : float
        The least time of a device's optimiser, in the unit of the costs.
    wait : bool
        With False, no operation waits for a message, and no stage sends messages. This is a deliberate fault, for tests and lessons.
    lost : iterable of Op or str
        Operations whose outputs are never sent to another device. This is a deliberate fault, too.
    patience : float
        Processes only: a rank counts as hanging if it stays in one operation for this many seconds longer than the cost of the operation.
    progress : bool or callable, optional
        True shows a progress bar immediately (needs tqdm), and False never shows a bar. None shows a bar after five seconds if tqdm is
        installed. A function is called regularly as ``progress(finished, steps)``, where ``finished`` is the number of steps that rank 0
        has finished. Ranks that mpiexec, srun or torchrun has started show nothing.

    Returns
    -------
    RunResult
        The measured timelines in the unit of the costs, and the results of the work.

    Raises
    ------
    Deadlock
        All ranks wait. The error names the operation at which each rank waits.
    RunFailed
        A rank raised an error, was killed, or hangs. The error names the rank and the operation, and ``__cause__`` is the error that the
        rank raised. No thread or process is left.
    HybridLabError
        The costs have several settings or no unit, a sleep would take more than 10 minutes, another argument is invalid, or the engine
        cannot be started.

    Examples
    --------
    >>> from hybridlab import Costs, build
    >>> ran = run(build("1f1b", 2, 4), costs=Costs(forward=1, backward=2), replicas=2, ring_step=1, steps=3)
    >>> bool(ran.timeline.makespan >= (4 + 2 - 1) * (1 + 2) + 2 * 1), len(ran.timelines)
    (True, 3)
    """
    arguments: dict[str, Any] = {"schedule": schedule, "costs": costs, "replicas": replicas, "work": work, "wire": wire, "steps": steps}
    arguments |= {"ring_step": ring_step, "optimiser": optimiser, "wait": wait}
    job = checked_job(**arguments, lost=lost)  # raises before a process is started
    if not isinstance(engine, Group):
        known_name(engine, ("threads", *ENGINES), "engine")
        if was_started(engine):  # mpiexec or another program has already started one process for each rank
            return _result(job, run_joined(engine, job))
    with reporting(progress, job.steps, "steps") as report:
        if engine == "threads":
            return _result(job, run_in_threads(job, report))
        if isinstance(engine, Group):
            return _result(job, engine.run(job, arguments | {"lost": job.lost}, report))
        with Group(engine, job.ranks, patience=patience) as group:
            return _result(job, group.run(job, arguments | {"lost": job.lost}, report))


def _result(job: Job, measured: Measured) -> RunResult:
    """Return the result of a run from the engine's measurements."""
    return RunResult(timelines(job, measured), measured.results, measured.output)
