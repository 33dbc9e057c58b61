"""One run of a schedule ('job'): its checked arguments, the same for all engines, and the timelines from its measured times."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import counted, each_of, in_a_second, one_time, short_repr, true_or_false, whole_number
from hybridlab.collectives.result import checked_wire
from hybridlab.costs import Costs
from hybridlab.engines.work import FunctionWork, StepWork
from hybridlab.errors import Deadlock, HybridLabError, RunFailed
from hybridlab.schedule import Op, Schedule
from hybridlab.schedule.validation import Problem
from hybridlab.simulation import latencies, running_times
from hybridlab.step.replicas import Replicated, costs_of_all, holders, replicate
from hybridlab.step.step import message_spans, ring_order
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import Spans, join_spans
from hybridlab.wire import WireFormat

LONGEST_SLEEP = 600.0  # seconds
MOST_STEPS = 10_000
MOST_DEVICES_NAMED = 8  # at most this many devices are named in the error of a deadlock
FREE = Costs(forward=0, backward=0)
START, END, OPTIMISER_PLACE = -1, -2, -3  # places that are neither an operation nor a ring
SpanRow = tuple[int, int, float, float, int, int, int, int]  # (kind, device, start, end, stage, chunk, step, peer)


@dataclass(frozen=True, eq=False)
class Job:
    """The values that all ranks of a run share. All times are in seconds, but the times in ``costs`` have the unit of the costs.

    A place says what a rank is doing. It is a whole number: (1) the row of an operation; (2) the number of operations plus s, for the ring
    of stage s; (3) ``START``, ``END`` or ``OPTIMISER_PLACE``. The name of a message is a whole number, too: the row that needs the message,
    or for a ring the number from :meth:`ring_message`. ``START`` and ``END`` are also the names of the two meetings, where each rank waits
    for all other ranks.

    Parameters
    ----------
    schedule : Replicated
        The operations of all ranks. Each row is one operation of one rank.
    costs : Costs
        The times of operations and messages, with a unit.
    holders : array, shape (stages, holders)
        The ranks that average the gradients of each stage.
    ring_order : tuple of int
        The stages in the order in which their rings run. All devices use the same order, because different orders can cause a deadlock.
    readers : dict
        For each row, the rows that need its output.
    durations : list
        The duration of each row.
    delays : list
        For each row, the latency of the message that the row needs; 0 if the row needs no message.
    ring_step : float
        The duration of one step of a ring.
    optimiser : float
        The duration of a device's optimiser.
    work : StepWork
        The arithmetic of the operations.
    wire : WireFormat, optional
        The format of the messages of the rings; None for float64.
    steps : int
        The number of steps.
    wait, lost
        As for :func:`~hybridlab.engines.run`.
    """

    schedule: Replicated
    costs: Costs
    holders: Ints
    ring_order: tuple[int, ...]
    readers: dict[int, list[int]]
    durations: list[float]
    delays: list[float]
    ring_step: float
    optimiser: float
    work: StepWork
    wire: WireFormat | None
    steps: int
    wait: bool
    lost: frozenset[Op]

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.schedule.devices

    def op_at(self, place: int) -> Op | None:
        """Return the operation at a place, or None if the place is not that of an operation."""
        return self.schedule.ops[place] if 0 <= place < self.schedule.kind.size else None

    def words(self, place: int) -> str:
        """Return a description of a place for errors, such as ``2F0, the forward of ...``, ``the ring of stage 1`` or ``the start``."""
        op = self.op_at(place)
        if op is not None:
            return f"{op}, {op.words}"
        if place >= 0:
            return f"the ring of stage {place - self.schedule.kind.size}"
        return {START: "the start", END: "the end of its pipeline", OPTIMISER_PLACE: "its optimiser"}[place]

    def ring_message(self, stage: int, step: int) -> int:
        """Return the name of the message that a rank of the ring of a stage receives in a step of this ring."""
        # numbers after the rows of operations; a ring of D ranks has 2(D-1) steps, so 2D numbers for each stage are enough
        return int(self.schedule.kind.size + 2 * stage * self.holders.shape[1] + step)

    def failed(self, rank: int, place: int, why: BaseException) -> RunFailed:
        """Return the error for a run that ended because the device ``rank`` failed at a place. The cause is the error ``why``."""
        try:
            text = f"{type(why).__name__}: {why}"
        except Exception:  # a broken __str__ can raise any error, but the caller must see the error ``why``
            text = type(why).__name__
        fault = RunFailed(f"device {rank} failed at {self.words(place)}: {text}", "device-failed", rank, self.op_at(place))
        fault.__cause__ = why
        return fault

    def deadlock(self, waits: Mapping[int, int]) -> Deadlock:
        """Return the error for a deadlock. ``waits`` has for each device the name of the message or meeting for which the device waits."""
        stuck = [self._stuck(rank, name) for rank, name in sorted(waits.items())]
        first = "; ".join(problem.sentence for problem in stuck[:MOST_DEVICES_NAMED])
        unnamed = len(stuck) - MOST_DEVICES_NAMED
        more = f"; so do {counted(unnamed, 'device')} more" if unnamed > 0 else ""
        return Deadlock(f"every device waits and no message is on its way: {first}{more}", "deadlock", tuple(stuck))

    def _stuck(self, rank: int, name: int) -> Problem:
        """Return a description of what one device waits for: a message or a meeting."""
        op, size = self.op_at(name), self.schedule.kind.size
        if op is not None:
            source = int(self.schedule.source[name])
            sentence = f"stands at {op} and waits for the output of {self.schedule.ops[source]} from device {self.schedule.device[source]}"
        elif name >= 0:
            stage, step = divmod(name - size, 2 * self.holders.shape[1])
            ranks = self.holders[stage].tolist()
            sentence = f"waits for step {step} of the ring of stage {stage} from device {ranks[ranks.index(rank) - 1]}"
        else:
            sentence = f"waits for {'the others to start' if name == START else 'the end of all other pipelines'}"
        return Problem(f"device {rank} {sentence}", "deadlock", rank, op=op)


def checked_job(
    schedule: Any,
    costs: Any,
    replicas: Any,
    *,
    ring_step: Any = None,
    optimiser: Any = 0.0,
    work: Any = None,
    wire: Any = None,
    steps: Any = 1,
    wait: Any = True,
    lost: Any = (),
) -> Job:
    """Return the job of a run, or raise an error if its arguments are invalid."""
    require_schedule(schedule, costs)
    costs = FREE if costs is None else costs
    mesh_schedule = replicate(schedule, replicas)
    wait = true_or_false(wait, "wait")
    if not wait and work is not None:
        raise HybridLabError("work computes from messages: without wait there are none, so leave work out", "conflicting-arguments")
    work = work if isinstance(work, StepWork) else FunctionWork(work)
    if costs.batch:
        several = f"an engine runs one setting, but these costs hold settings of shape {costs.batch}"
        raise HybridLabError(f"{several}: give the costs of one setting", "several-settings")
    if wire is not None and checked_wire(wire).stochastic:
        raise HybridLabError(
            f"ranks that run side by side cannot share one source of random numbers: take {wire.name} with stochastic=False",
            "conflicting-arguments",
        )
    unit, all_costs = 1 / in_a_second(costs.unit, "a run"), costs_of_all(costs, mesh_schedule.mesh)
    readers = defaultdict(list)
    for row, source in enumerate(mesh_schedule.source.tolist()):
        if source >= 0:
            readers[source].append(row)
    sleeps, delays = unit * running_times(mesh_schedule, all_costs), unit * latencies(mesh_schedule, all_costs)
    hop = unit * (0.0 if ring_step is None else one_time(ring_step, "ring_step")) / schedule.chunks
    update = unit * schedule.copies * one_time(optimiser, "optimiser")
    if max(sleeps.max(), hop, delays.max(), update) > LONGEST_SLEEP:
        raise HybridLabError(f"a rank would sleep for more than {LONGEST_SLEEP:g} seconds without a break: give shorter times", "too-large")
    return Job(
        schedule=mesh_schedule,
        costs=all_costs,
        holders=holders(schedule, replicas),
        ring_order=tuple(ring_order(mesh_schedule).tolist()),
        readers=dict(readers),
        durations=sleeps.tolist(),
        delays=delays.tolist(),
        ring_step=hop,
        optimiser=update,
        work=work,
        wire=wire,
        steps=whole_number(steps, "steps", at_most=MOST_STEPS),
        wait=wait,
        lost=_checked_lost(schedule, lost),
    )


def require_schedule(schedule: Any, costs: Any) -> None:
    """Raise an error if ``schedule`` is not the schedule of one pipeline, or ``costs`` is neither Costs nor None."""
    if not isinstance(schedule, Schedule):
        raise HybridLabError(f"an engine runs the Schedule of one pipeline, not {short_repr(schedule)}", "not-a-schedule")
    if not isinstance(costs, Costs | None):
        raise HybridLabError(f"an engine takes Costs, or None for no time at all, not {short_repr(costs)}", "not-costs")


def report_steps(job: Job, times: Floats, report: Callable[[int], None]) -> Callable[[], None]:
    """Return a function that looks at rank 0: if it has finished further steps, the function calls ``report`` with their number."""
    last, reported = int(np.flatnonzero(job.schedule.device == 0)[-1]), 0

    def look() -> None:
        nonlocal reported
        if (done := int(np.isfinite(times[:, 1, last]).sum())) > reported:
            reported = done
            report(done)

    return look


def no_times(job: Job) -> Floats:
    """Return the array for the measured times, filled with NaN: shape (steps, 2, operations), start and end in seconds."""
    return np.full((job.steps, 2, job.schedule.kind.size), np.nan)


class Measured(NamedTuple):
    """The measurements of an engine in a run.

    Parameters
    ----------
    times : array, shape (steps, 2, operations)
        Start and end of each operation, in seconds. All ranks use the same clock.
    spans : list of lists
        For each step, the steps of rings and the optimisers of all ranks.
    results : tuple
        What :meth:`StepWork.result` returned for each rank.
    output : str
        The text that the ranks have printed. Empty for threads.
    """

    times: Floats
    spans: list[list[SpanRow]]
    results: tuple[Any, ...]
    output: str


def timelines(job: Job, measured: Measured) -> tuple[Timeline, ...]:
    """Return the timeline of each step."""
    return tuple(_timeline(job, start, end, rows) for (start, end), rows in zip(measured.times, measured.spans, strict=True))


def _timeline(job: Job, start: Floats, end: Floats, rows: list[SpanRow]) -> Timeline:
    """Return the timeline of one step, in the unit of the costs. The first operation starts at 0."""
    zero, second = start.min(), in_a_second(job.costs.unit, "a run")
    ran = Timeline(job.schedule, (start - zero) * second, (end - zero) * second, unit=job.costs.unit)
    by_kind = sorted(rows, key=lambda row: row[0])
    kind, device, begin, finish, stage, chunk, step, peer = map(np.array, zip(*by_kind, strict=True))
    spans = Spans(kind, device, (begin - zero) * second, (finish - zero) * second, stage=stage, chunk=chunk, step=step, peer=peer)
    if job.wait:  # messages are not measured: each message starts at the end of its operation and lasts for the latency in the costs
        spans = join_spans(*message_spans(ran, job.costs), spans)
    return Timeline(ran.schedule, ran.start, ran.end, spans, ran.unit)


def _checked_lost(schedule: Schedule, lost: Any) -> frozenset[Op]:
    """Return the operations named in ``lost``, or raise an error if one of them is not in the schedule."""
    wanted = "lost names operations of the schedule, such as ['0F1']"
    if isinstance(lost, str):
        raise HybridLabError(f"{wanted}, not {short_repr(lost)}", "not-a-list")
    named = [Op.parse(each) if isinstance(each, str) else each for each in each_of(lost, wanted)]
    for op in named:
        schedule.needs(op)  # raises if the operation is not in the schedule
    return frozenset(named)
