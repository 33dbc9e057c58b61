"""A schedule run for real: a thread a device, queues between them, every operation measured."""

import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import each_of, in_a_second, one_time, removed_arguments, short_repr, true_or_false
from hybridlab.costs import Costs
from hybridlab.engines.device import Device, Gradients, Shared, Span, Work
from hybridlab.engines.exchange import Exchange
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op, Operations, Schedule
from hybridlab.simulation import latencies
from hybridlab.step.replicas import costs_of_all, holders, replicate
from hybridlab.step.step import message_spans, ring_order
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import Spans, join_spans

MOST_THREADS = 256
LONGEST_SLEEP = 600.0  # seconds
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
    work: Work | None = None,
    gradients: Gradients | None = None,
    wait: bool = True,
    lost: Iterable[Op | str] = (),
) -> Timeline:
    """Return the measured timeline of one step of ``replicas`` pipelines, in which each device is a thread of its own.

    Each thread runs its device's operations in their order. What an operation needs from another device comes as a message
    through a queue, and is usable the latency ``p2p`` of the costs after it was sent; the sender does not wait. An operation sleeps
    for its duration in ``costs`` (None: none), one step of a ring for ``ring_step``, a device's optimiser for ``optimiser``, all in
    the unit of the costs, as in :func:`~hybridlab.hybrid_step`: when all pipelines have ended, each rank exchanges 2(D-1) messages in
    the ring of each of its stages. The timeline has the unit of the costs, ms where there are none. A measured time is never below
    its cost.

    ``work(rank, op, message)`` computes an operation for real; ``message`` is what it returned for the operation that this one is
    computed from (None for the first stage's forwards). ``gradients(rank, stage)`` returns the array, shape (parameters,),
    that the ring of that stage averages in place. An operation lasts as long as its work, but at least its cost.

    Two faults to plant: without ``wait`` no operation waits for a message; messages with the output of the operations ``lost``
    never arrive. When all threads wait, the run ends at once with a :class:`Deadlock` that says where each device
    stands. What ``work`` raises ends the run with a :class:`HybridLabError` from it that names device and operation, as soon
    as every call of ``work`` that had begun has returned. No thread is left. Raises :class:`HybridLabError` for costs of several
    settings or without a unit, sleeps of more than 10 minutes, and where threads cannot be started.

    >>> from hybridlab import Costs, build
    >>> ran = run_threads(build("1f1b", 2, 4), Costs(forward=1, backward=2), replicas=2, ring_step=1)
    >>> bool(ran.makespan >= (4 + 2 - 1) * (1 + 2) + 2 * 1), ran.spans
    (True, <Spans: 16 send, 16 receive, 4 reduce-scatter, 4 all-gather, 4 optimiser>)
    """
    if not isinstance(schedule, Schedule) or not isinstance(costs, Costs | None):
        raise HybridLabError(f"run_threads takes a Schedule and Costs, not {short_repr(schedule)} and {short_repr(costs)}")
    costs = FREE if costs is None else costs
    shared = _shared(schedule, costs, replicas, ring_step, optimiser, work, gradients, wait, lost)
    start, end = np.zeros((2, shared.schedule.kind.size))
    exchange = Exchange(shared.schedule.devices)
    devices = [Device(rank, shared, exchange, start, end) for rank in range(shared.schedule.devices)]
    _run(devices, exchange)
    zero, second = start.min(), in_a_second(costs.unit, "a run")
    ran = Timeline(shared.schedule, (start - zero) * second, (end - zero) * second, unit=costs.unit)
    beside = _beside([span for device in devices for span in device.spans], zero, second)
    if wait:
        beside = join_spans(*message_spans(ran, costs_of_all(costs, shared.schedule.mesh)), beside)
    return Timeline(ran.schedule, ran.start, ran.end, beside, ran.unit)


def _beside(spans: list[Span], zero: float, second: int) -> Spans:
    """Return the hops and optimisers of all devices as spans, kind by kind, each device by device; a ``second`` has so many units."""
    rows = sorted(spans, key=lambda span: span[0])
    kind, device, start, end, stage, chunk, step, peer = map(np.array, zip(*rows, strict=True))
    return Spans(kind, device, (start - zero) * second, (end - zero) * second, stage=stage, chunk=chunk, step=step, peer=peer)


def _shared(
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
    everyone = replicate(schedule, replicas)
    if everyone.devices > MOST_THREADS:
        raise HybridLabError(f"{everyone.devices:,} devices are more than {MOST_THREADS} threads: take fewer devices or replicas")
    for name, value in (("work", work), ("gradients", gradients)):
        if value is not None and not callable(value):
            raise HybridLabError(f"{name} is a function, or None, not {short_repr(value)}")
    if not true_or_false(wait, "wait") and work is not None:
        raise HybridLabError("work computes from messages: without wait there are none, so leave work out")
    if costs.batch:
        raise HybridLabError(f"threads run one setting, but these costs hold settings of shape {costs.batch}: give the costs of one")
    unit, each = 1 / in_a_second(costs.unit, "a run"), costs_of_all(costs, everyone.mesh)
    readers = defaultdict(list)
    for row, source in enumerate(everyone.source.tolist()):
        if source >= 0:
            readers[source].append(row)
    lasts, late = unit * _durations(everyone, each), unit * latencies(everyone, each)
    hop = unit * (0.0 if ring_step is None else one_time(ring_step, "ring_step")) / schedule.chunks
    update = unit * schedule.copies * one_time(optimiser, "optimiser")
    if max(lasts.max(), hop, late.max(), update) > LONGEST_SLEEP:
        raise HybridLabError(f"a thread would sleep for more than {LONGEST_SLEEP:g} seconds at a time: give shorter times")
    held, order = holders(schedule, replicas), tuple(ring_order(everyone).tolist())
    gone = _known(schedule, lost)
    return Shared(everyone, held, order, dict(readers), lasts.tolist(), late.tolist(), hop, update, work, gradients, wait, gone)


def _durations(schedule: Operations, costs: Costs) -> Floats:
    """Return how long each row lasts, in the unit of the costs."""
    lasts: Floats = costs.table(schedule.devices, schedule.chunks)[schedule.kind, schedule.device]
    lasts[schedule.pairs] = lasts[schedule.pairs + 1] = costs.pairs(schedule.devices, schedule.chunks)[schedule.device[schedule.pairs]]
    return lasts


def _known(schedule: Schedule, lost: Any) -> frozenset[Op]:
    """Return the operations that ``lost`` names, or refuse one that is not of the schedule."""
    wanted = "lost names operations of the schedule, such as ['0F1']"
    if isinstance(lost, str):
        raise HybridLabError(f"{wanted}, not {short_repr(lost)}")
    named = [Op.parse(each) if isinstance(each, str) else each for each in each_of(lost, wanted)]
    for op in named:
        schedule.needs(op)  # refuses what is not an operation of it
    return frozenset(named)


def _run(devices: list[Device], exchange: Exchange) -> None:
    """Run every device's thread to its end; raise the first fault of any."""
    threads = [threading.Thread(target=each.run, name=f"device {each.rank}", daemon=True) for each in devices]
    try:
        for thread in threads:
            _start(thread)
        exchange.wait_for_all()
    except BaseException as why:  # interrupted, or a thread that cannot be started: the others must not stay
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


def _start(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError as why:
        message = f"the thread of {thread.name} cannot be started ({why})"
        raise HybridLabError(f"{message}: take fewer devices or replicas; a notebook that runs in a browser has no threads at all") from why
