"""A trial of an engine: measured steps of several schedules, compared with predictions."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import each_of, short_repr, whole_number
from hybridlab.costs import Costs
from hybridlab.engines.group import Group
from hybridlab.engines.prediction import cross_prediction, formula_prediction, replay
from hybridlab.engines.run import run
from hybridlab.engines.work import StepWork
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op, Schedule
from hybridlab.schedules import build
from hybridlab.timeline import Timeline

FEWEST_STEPS = 3
CHAIN = 8  # chunks for each of two devices that send one microbatch back and forth
OVERHEAD_STEPS = 9
PROC_STAT = Path("/proc/stat")
STOLEN = 7  # index of stolen time in the first line: user, nice, system, idle, iowait, irq, softirq, steal


class PaddedWork(StepWork):
    """Real arithmetic for operations that then sleep until their cost has passed.

    Each operation multiplies its input, a square matrix, by another matrix several times. Give :func:`run` this work together with costs
    that are longer than the arithmetic. Every operation then computes, and sleeps for the rest of its cost. So the duration of an operation
    does not depend on how many ranks share a core.

    Parameters
    ----------
    size : int
        The number of rows. A message has 8 x size x size bytes. Under MPI, a large message moves only while its sender calls MPI.
    products : int
        The number of products in an operation.

    Raises
    ------
    HybridLabError
        A number is not a whole number of at least 1, or ``size`` is above 4,096.

    Examples
    --------
    >>> work = PaddedWork(size=4)
    >>> work.work(0, Op.parse("1F0"), work.work(0, Op.parse("0F0"), None)).shape
    (4, 4)
    """

    def __init__(self, size: int = 16, products: int = 100) -> None:
        self.size, self.products = whole_number(size, "size", at_most=4096), whole_number(products, "products")
        self._turn = np.eye(self.size)[np.roll(np.arange(self.size), 1)]  # a permutation, so that the size of the numbers does not change
        self._sums: dict[int, float] = {}

    def begin(self, rank: int, step: int) -> None:
        """Set the sum of the rank to 0."""
        self._sums[rank] = 0.0

    def work(self, rank: int, op: Op, message: Any) -> Any:
        """Return the input times a permutation matrix, several times. The first input of microbatch m has the number 1 + m in column 0."""
        if message is None:
            message = np.zeros((self.size, self.size))
            message[:, 0] = 1 + op.microbatch
        output: Floats = message
        for _ in range(self.products):
            output = output @ self._turn
        self._sums[rank] = self._sums.get(rank, 0.0) + float(output.sum())
        return output

    def result(self, rank: int) -> float:
        """Return the sum of all numbers that the rank computed in the last step."""
        return self._sums[rank]


@dataclass(frozen=True)
class PredictionErrors:
    """The measured steps of one schedule and the errors of three predictions. An error is predicted / measured - 1.

    Parameters
    ----------
    schedule : str
        The name.
    median, fastest : float
        The median and the shortest duration of the measured steps. A step lasts from its first start to its last end of an operation.
    replay : float
        The median error of :func:`replay`, where each step is predicted from its own times.
    cross : float
        The error of :func:`cross_prediction` for the fastest step, with times from steps of another schedule.
    source : str
        The name of the schedule that gave the times for ``cross``.
    formula : float or None
        The error of :func:`formula_prediction` for the fastest step, with the schedule's own times and their mean over the devices. None
        without a closed form.
    formula_of_slowest : float or None
        The same error with the times of the slowest device instead of the mean.
    """

    schedule: str
    median: float
    fastest: float
    replay: float
    cross: float
    source: str
    formula: float | None
    formula_of_slowest: float | None


@dataclass(frozen=True)
class Overhead:
    """The time that an engine adds to each operation and message, measured in runs with costs of 0.

    Parameters
    ----------
    operation : float
        Milliseconds from the start of an operation to the start of the next one, on one device.
    message : float
        Milliseconds that a message adds, from the end of the sending operation to the start of the receiving operation.
    """

    operation: float
    message: float


@dataclass(frozen=True)
class Trial:
    """The result of :func:`predict_and_measure`.

    Parameters
    ----------
    engine : str
        "threads", "mpi" or "torch".
    steps : int
        The number of measured steps of each schedule.
    unit : str
        The unit of the steps.
    load : float or None
        The mean number of processes that ran or waited for a core in the minute before the trial, ``os.getloadavg()[0]``. None if the
        system does not report this number.
    steal : float or None
        The share of processor time that other virtual machines on the same hardware took during the trial, from 0 to 1. None if the system
        does not report this share.
    cores : int
        The number of cores.
    overhead : Overhead
        The two constants of the engine, measured after the steps.
    rows : tuple of PredictionErrors
        One for each schedule.
    """

    engine: str
    steps: int
    unit: str
    load: float | None
    steal: float | None
    cores: int
    overhead: Overhead
    rows: tuple[PredictionErrors, ...]

    def __str__(self) -> str:
        """Return the table as text."""
        load, steal = ("?" if each is None else f"{each:{form}}" for each, form in ((self.load, ".2f"), (self.steal, ".1%")))
        lines = [f"{self.engine}: {self.steps} steps each, {self.cores} cores, load {load}, steal {steal}"]
        lines += [f"  overhead: {self.overhead.operation:.3f} ms an operation, {self.overhead.message:.3f} ms a message"]
        for row in self.rows:
            forms = row.formula, row.formula_of_slowest
            formula = "" if forms[0] is None or forms[1] is None else f", formula {forms[0]:+.1%} (of the slowest {forms[1]:+.1%})"
            took = f"median {row.median:.1f}, fastest {row.fastest:.1f} {self.unit}"
            lines.append(f"  {row.schedule:<14} {took}: replay {row.replay:+.1%}, cross {row.cross:+.1%}{formula}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return all values as plain Python values that JSON can store."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Trial":
        """Return the trial from the values that :meth:`to_dict` returned."""
        rows = tuple(PredictionErrors(**row) for row in values["rows"])
        return cls(**{**values, "overhead": Overhead(**values["overhead"]), "rows": rows})


def predict_and_measure(
    schedules: Sequence[Schedule],
    costs: Costs,
    *,
    engine: str | Group = "threads",
    work: StepWork | None = None,
    steps: int = 8,
) -> Trial:
    """Measure several schedules on an engine and return the errors of their predictions.

    All steps run in one group of processes. The schedules alternate step by step, so a machine that is busy for some seconds disturbs all
    schedules alike. The first step of each schedule does not count. For each schedule, :func:`cross_prediction` takes the times of the
    previous schedule in the list. For the first schedule, it takes the times of the last schedule.

    Parameters
    ----------
    schedules : sequence of Schedule
        At least two, all for the same number of devices.
    costs : Costs
        The least time of operations, and the latency of messages.
    engine : str or Group
        As for :func:`run`.
    work : StepWork, optional
        The arithmetic of the operations, such as :class:`PaddedWork`. With None, operations only sleep.
    steps : int
        The number of steps of each schedule that count, at least 3.

    Raises
    ------
    HybridLabError
        There are fewer than two schedules, they are for different numbers of devices, or messages have different latencies.

    Examples
    --------
    >>> trial = predict_and_measure([build("gpipe", 2, 4), build("1f1b", 2, 4)], Costs(forward=1, backward=2), steps=3)
    >>> [row.schedule for row in trial.rows], all(row.fastest >= 15 for row in trial.rows)
    (['gpipe', '1f1b'], True)
    """
    runs = _checked_schedules(schedules)
    steps = whole_number(steps, "steps", at_least=FEWEST_STEPS)
    if not isinstance(costs, Costs) or costs.p2p_between is not None:
        raise HybridLabError(f"a trial takes Costs with one latency for all messages, not {short_repr(costs)}", "not-costs")
    started: AbstractContextManager[str | Group] = nullcontext(engine)
    if isinstance(engine, str) and engine != "threads":
        started = Group(engine, max(2, runs[0].devices))
    with started as used:
        load, before = os.getloadavg()[0] if hasattr(os, "getloadavg") else None, _processor_times()
        measured: list[list[Timeline]] = [[] for _ in runs]
        for turn in range(steps + 1):
            for schedule, timelines in zip(runs, measured, strict=True):
                timeline = run(schedule, work, costs, engine=used).timeline
                timelines += [timeline] if turn else []  # the first step of each schedule only fills caches
        after = _processor_times()
        overhead = measure_overhead(used)
    p2p = float(costs.p2p[..., 0])
    rows = [_errors(schedule, own, source, p2p) for schedule, own, source in zip(runs, measured, [measured[-1], *measured], strict=False)]
    name = used.engine if isinstance(used, Group) else used
    steal = None if before is None or after is None else _stolen_share(before, after)
    return Trial(name, steps, str(costs.unit), load, steal, os.cpu_count() or 1, overhead, tuple(rows))


def measure_overhead(engine: str | Group = "threads") -> Overhead:
    """Return the time that an engine adds to each operation and to each message, from two runs with costs of 0.

    In the first run, one device runs operations one after the other and sends no message. In the second run, one microbatch goes back and
    forth between two devices, so operations and messages never overlap. Both times are medians of several steps.

    Parameters
    ----------
    engine : str or Group
        As for :func:`run`. A group has at least two processes.

    Raises
    ------
    HybridLabError
        The engine is unknown, is not installed or does not start, or the group has only one process.

    Examples
    --------
    >>> overhead = measure_overhead()
    >>> 0 < overhead.operation < 50
    True
    """
    if isinstance(engine, str) and engine != "threads":
        with Group(engine, 2) as group:
            return measure_overhead(group)
    alone, chain = build("gpipe", 1, 2 * CHAIN), build("looped-bfs", 2, 1, CHAIN)
    took = [
        np.median([_span(step) for step in run(schedule, engine=engine, steps=OVERHEAD_STEPS).timelines]) for schedule in (alone, chain)
    ]
    operation = took[0] / alone.kind.size
    message = (took[1] - operation * chain.kind.size) / np.count_nonzero(chain.crosses)  # the rest of the chain's time
    return Overhead(float(operation), max(0.0, float(message)))  # max, because on a busy machine the difference can be negative


def _checked_schedules(schedules: Any) -> list[Schedule]:
    """Return the schedules of a trial as a list, or raise an error if they cannot be compared."""
    wanted = "a trial takes a list of at least two schedules for the same number of devices"
    runs = list(each_of(schedules, wanted))
    for each in runs:
        if not isinstance(each, Schedule):
            raise HybridLabError(f"{wanted}, not {short_repr(each)}", "not-a-schedule")
    if len(runs) < 2:
        raise HybridLabError(f"{wanted}: the times of one schedule predict another schedule", "too-few")
    if len({each.devices for each in runs}) > 1:
        raise HybridLabError(f"{wanted}, not for {', '.join(str(each.devices) for each in runs)}", "does-not-fit")
    return runs


def _errors(schedule: Schedule, own: Sequence[Timeline], source: Sequence[Timeline], p2p: float) -> PredictionErrors:
    """Return the prediction errors of a schedule. ``own`` has its steps, and ``source`` has the steps that give the times for ``cross``."""
    took = np.array([_span(step) for step in own])
    fastest = float(took.min())
    replayed = np.array([replay(step, p2p).makespan for step in own])
    formulas = [formula_prediction(schedule, own, p2p, slowest=slowest) for slowest in (False, True)]
    mean, slowest = (None if each is None else each / fastest - 1 for each in formulas)
    return PredictionErrors(
        schedule=schedule.name,
        median=float(np.median(took)),
        fastest=fastest,
        replay=float(np.median(replayed / took - 1)),
        cross=float(cross_prediction(schedule, source, p2p).makespan) / fastest - 1,
        source=source[0].schedule.name,
        formula=mean,
        formula_of_slowest=slowest,
    )


def _span(step: Timeline) -> float:
    """Return the time from the first start to the last end of the operations of a step."""
    return float(step.end.max() - step.start.min())


def _processor_times() -> Floats | None:
    """Return the processor time of each kind since the machine started, in ticks over all cores. None if the system does not report it."""
    if not PROC_STAT.exists():
        return None
    ticks = np.array(PROC_STAT.read_text().split("\n", 1)[0].split()[1:], dtype=np.float64)
    # without the last two kinds, guest and guest_nice: user and nice include them
    return ticks[: STOLEN + 1] if ticks.size > STOLEN else None


def _stolen_share(before: Floats, after: Floats) -> float:
    """Return the share of stolen time between two readings, from 0 to 1."""
    passed = after - before
    return float(passed[STOLEN] / max(1.0, passed.sum()))
