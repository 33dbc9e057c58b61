"""Schedules run by threads: each device has a thread, messages pass through queues, and every operation is measured.

This module also measures whether a function call lets other threads run at the same time.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import each_of, in_a_second, one_time, removed_arguments, short_repr, true_or_false
from hybridlab.costs import Costs
from hybridlab.engines.device import Device, GradientsFunction, Shared, SpanRow, WorkFunction
from hybridlab.engines.exchange import Exchange
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op, Operations, Schedule
from hybridlab.simulation import durations, latencies
from hybridlab.step.replicas import costs_of_all, holders, replicate
from hybridlab.step.step import message_spans, ring_order
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import Spans, join_spans

MOST_THREADS = 256
LONGEST_SLEEP = 600.0  # seconds
TICK = 0.0005  # seconds between two readings of the clock
FREE = Costs(forward=0, backward=0)


@removed_arguments(
    seconds="operations sleep the real length of their costs, whose unit is Costs(..., unit='ms'): give shorter or longer costs"
)
def run_threads(
    schedule: Schedule,
    costs: Costs | None = None,
    replicas: int = 1,
    *,
    ring_step: float | None = None,
    optimiser: float = 0.0,
    work: WorkFunction | None = None,
    gradients: GradientsFunction | None = None,
    wait: bool = True,
    lost: Iterable[Op | str] = (),
) -> Timeline:
    """Run one step of ``replicas`` pipelines with a thread for each device, and return the measured timeline.

    Each thread runs its device's operations in their order. An operation sleeps for its duration, or computes. Inputs from other devices
    come as messages through queues. The receiver can use a message when the latency ``p2p`` of the costs has passed since it was sent. The
    sender does not wait. When all pipelines have ended, each rank runs the rings of its stages and then its optimiser. In a ring of D
    ranks, each rank sends 2(D-1) messages. A measured time is never shorter than its cost.

    If all threads wait at the same time, no message can arrive any more, and the run ends at once with an error. After a run no thread
    is left, also if the run failed.

    Parameters
    ----------
    schedule : Schedule
        The schedule of one pipeline.
    costs : Costs, optional
        The times of operations and of messages, with a unit. None means that everything takes 0 ms.
    replicas : int
        The number of pipelines.
    ring_step : float, optional
        Time of one step of a ring, in the unit of the costs, as in :func:`~hybridlab.hybrid_step`.
    optimiser : float
        Time of a device's optimiser, in the unit of the costs.
    work : callable, optional
        ``work(rank, op, message)`` computes the operation ``op``. ``op`` needs the output of another operation, and ``message`` is what
        ``work`` returned for that operation. For forwards of the first stage it is None. An operation lasts as long as the call, but
        at least as long as its cost.
    gradients : callable, optional
        ``gradients(rank, stage)`` returns the float64 array, shape (parameters,), that the ring of the stage averages in place.
    wait : bool
        With False no operation waits for a message. This is a deliberate fault, for tests and lessons.
    lost : iterable of Op or str
        Operations whose outputs are never sent to another device. This is a deliberate fault as well.

    Returns
    -------
    Timeline
        The measured times in the unit of the costs, with spans for messages, rings and optimisers.

    Raises
    ------
    Deadlock
        All threads wait. The error names the operation at which each device waits.
    HybridLabError
        ``work`` or ``gradients`` has raised an error. The message names the device and the operation, and ``__cause__`` is the first error.
        The run ends as soon as all calls that have begun have returned. The same class is raised if the costs have several settings or
        no unit, if a sleep would take more than 10 minutes, or if threads cannot be started.

    Examples
    --------
    >>> from hybridlab import Costs, build
    >>> ran = run_threads(build("1f1b", 2, 4), Costs(forward=1, backward=2), replicas=2, ring_step=1)
    >>> bool(ran.makespan >= (4 + 2 - 1) * (1 + 2) + 2 * 1), ran.spans
    (True, <Spans: 16 send, 16 receive, 4 reduce-scatter, 4 all-gather, 4 optimiser>)
    """
    if not isinstance(schedule, Schedule):
        raise HybridLabError(f"run_threads takes the Schedule of one pipeline, not {short_repr(schedule)}", "not-a-schedule")
    if not isinstance(costs, Costs | None):
        raise HybridLabError(f"run_threads takes Costs, or None for no time at all, not {short_repr(costs)}", "not-costs")
    costs = FREE if costs is None else costs
    shared = _checked_run(schedule, costs, replicas, ring_step, optimiser, work, gradients, wait, lost)
    start, end = np.zeros((2, shared.schedule.kind.size))
    exchange = Exchange(shared.schedule.devices)
    devices = [Device(rank, shared, exchange, start, end) for rank in range(shared.schedule.devices)]
    _run_devices(devices, exchange)
    zero, second = start.min(), in_a_second(costs.unit, "a run")
    ran = Timeline(shared.schedule, (start - zero) * second, (end - zero) * second, unit=costs.unit)
    spans = _spans_of([span for device in devices for span in device.spans], zero, second)
    if wait:
        spans = join_spans(*message_spans(ran, costs_of_all(costs, shared.schedule.mesh)), spans)
    return Timeline(ran.schedule, ran.start, ran.end, spans, ran.unit)


def longest_pause(call: Callable[[], object]) -> float:
    """Return the longest time for which ``call`` kept other threads from running Python, divided by the duration of the call.

    A second thread reads the clock every half millisecond. A result near 0 means that the second thread could run during the call. This
    is the case for sleeping and for numpy's matrix products. A result near 1 means that the call did not release the interpreter.

    Parameters
    ----------
    call : callable
        A function without arguments. It should last some tenths of a second, since the system and the interpreter switch
        threads only every few milliseconds.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    HybridLabError
        ``call`` cannot be called, or a second thread cannot be started. Errors of ``call`` itself pass through.

    Examples
    --------
    >>> longest_pause(lambda: time.sleep(0.3)) < 0.5
    True
    """
    if not callable(call):
        raise HybridLabError(f"longest_pause takes a function without arguments, not {short_repr(call)}", "wrong-type")
    ticks, done = [time.perf_counter()], threading.Event()

    def tick() -> None:
        while not done.wait(TICK):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick, name="clock", daemon=True)
    try:
        thread.start()
    except RuntimeError as why:
        failed = f"longest_pause needs a second thread, which cannot be started ({why})"
        raise HybridLabError(f"{failed}: a notebook that runs in a browser has none", "no-threads") from why
    start = time.perf_counter()
    try:
        call()
    finally:
        end = time.perf_counter()
        done.set()
        thread.join()
    inside = [start, *(tick for tick in ticks if start < tick < end), end]
    return max(after - before for before, after in pairwise(inside)) / (end - start)


def _checked_run(
    schedule: Schedule,
    costs: Costs,
    replicas: int,
    ring_step: Any,
    optimiser: Any,
    work: Any,
    gradients: Any,
    wait: Any,
    lost: Any,
) -> Shared:
    """Return the values that all threads share, with times in seconds, or raise an error if the arguments cannot be run."""
    mesh_schedule = replicate(schedule, replicas)
    if mesh_schedule.devices > MOST_THREADS:
        raise HybridLabError(
            f"{mesh_schedule.devices:,} devices are more than {MOST_THREADS} threads: take fewer devices or replicas", "too-large"
        )
    for name, value in (("work", work), ("gradients", gradients)):
        if value is not None and not callable(value):
            raise HybridLabError(f"{name} is a function, or None, not {short_repr(value)}", "wrong-type")
    if not true_or_false(wait, "wait") and work is not None:
        raise HybridLabError("work computes from messages: without wait there are none, so leave work out", "conflicting-arguments")
    if costs.batch:
        several = f"threads run one setting, but these costs hold settings of shape {costs.batch}"
        raise HybridLabError(f"{several}: give the costs of one", "several-settings")
    unit, all_costs = 1 / in_a_second(costs.unit, "a run"), costs_of_all(costs, mesh_schedule.mesh)
    readers = defaultdict(list)
    for row, source in enumerate(mesh_schedule.source.tolist()):
        if source >= 0:
            readers[source].append(row)
    sleeps, delays = unit * _durations_of_rows(mesh_schedule, all_costs), unit * latencies(mesh_schedule, all_costs)
    hop = unit * (0.0 if ring_step is None else one_time(ring_step, "ring_step")) / schedule.chunks
    update = unit * schedule.copies * one_time(optimiser, "optimiser")
    if max(sleeps.max(), hop, delays.max(), update) > LONGEST_SLEEP:
        raise HybridLabError(f"a thread would sleep for more than {LONGEST_SLEEP:g} seconds at a time: give shorter times", "too-large")
    return Shared(
        schedule=mesh_schedule,
        holders=holders(schedule, replicas),
        ring_order=tuple(ring_order(mesh_schedule).tolist()),
        readers=dict(readers),
        durations=sleeps.tolist(),
        delays=delays.tolist(),
        ring_step=hop,
        optimiser=update,
        work=work,
        gradients=gradients,
        wait=wait,
        lost=_checked_lost(schedule, lost),
    )


def _durations_of_rows(schedule: Operations, costs: Costs) -> Floats:
    """Return the duration of each row in the unit of the costs; each row of an overlapped pair gets the duration of the whole pair."""
    alone, first = durations(schedule, costs), schedule.pairs
    alone[first] = alone[first + 1] = costs.together(alone[first], alone[first + 1])
    return alone


def _checked_lost(schedule: Schedule, lost: Any) -> frozenset[Op]:
    """Return the operations that ``lost`` names, or raise an error if the schedule does not have one of them."""
    wanted = "lost names operations of the schedule, such as ['0F1']"
    if isinstance(lost, str):
        raise HybridLabError(f"{wanted}, not {short_repr(lost)}", "not-a-list")
    named = [Op.parse(each) if isinstance(each, str) else each for each in each_of(lost, wanted)]
    for op in named:
        schedule.needs(op)  # raises for an operation that the schedule does not have
    return frozenset(named)


def _run_devices(devices: list[Device], exchange: Exchange) -> None:
    """Run the threads of all devices until they end, and then raise the first error, if there was one."""
    threads = [threading.Thread(target=each.run, name=f"device {each.rank}", daemon=True) for each in devices]
    try:
        for thread in threads:
            _start_thread(thread)
        exchange.wait_for_all()
    except BaseException as why:  # after an interrupt, or if a thread cannot be started, stop the other threads
        exchange.stop(why)
        for thread in threads:
            if thread.ident is None:  # never started
                exchange.leave()
        exchange.wait_for_all()
        raise
    finally:
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    if exchange.fault is not None:
        raise exchange.fault


def _start_thread(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError as why:
        failed = f"the thread of {thread.name} cannot be started ({why})"
        advice = "take fewer devices or replicas; a notebook that runs in a browser has no threads at all"
        raise HybridLabError(f"{failed}: {advice}", "no-threads") from why


def _spans_of(rows: list[SpanRow], zero: float, second: int) -> Spans:
    """Return the spans of all ring steps and optimisers, sorted by kind; ``second`` is one second in the unit of the timeline."""
    by_kind = sorted(rows, key=lambda row: row[0])
    kind, device, start, end, stage, chunk, step, peer = map(np.array, zip(*by_kind, strict=True))
    return Spans(kind, device, (start - zero) * second, (end - zero) * second, stage=stage, chunk=chunk, step=step, peer=peer)
