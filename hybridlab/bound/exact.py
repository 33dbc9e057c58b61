"""The shortest order of a small schedule, found and proven by a constraint solver."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.bound.analytic import SAME, lower_bound, reached
from hybridlab.bound.chains import room_of, ways_of
from hybridlab.bound.solver import Problem, shortest_starts
from hybridlab.checks import one_time, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.schedule import Schedule
from hybridlab.simulation import latencies, simulate

MOST_OPERATIONS = 1000  # far above what is proven in minutes
MOST_TICKS = 10**9  # of a step: sums of them stay far within the solver's 64 bits
FINEST = 10**4  # the largest denominator of a time
ROUND = "round the costs, such as to two decimals"


@dataclass(frozen=True)
class Optimum:
    """The shortest order found, and whether it is known that none is shorter.

    ``makespan`` is that of ``schedule`` by the clock; no order is shorter than ``bound``, which equals it where ``proven``.
    """

    schedule: Schedule
    makespan: float
    bound: float
    proven: bool


def optimum(schedule: Schedule, costs: Costs, *, seconds: float = 10.0, workers: int = 1, memory: Any = None) -> Optimum:
    """Return the shortest order of the schedule's operations that holds no more activations than it, or than ``memory``.

    Orders and memory are those of :func:`lower_bound`. The answer is never longer than ``schedule`` where that keeps to the memory,
    and is ``schedule`` itself where nothing shorter is found. CP-SAT of OR-tools, the extra ``solver``, searches; it is not asked
    where the lower bound is reached already. ``seconds`` are counted in work done, about a second of one core each, so that the same call
    gives the same answer on every machine; ``workers`` are its threads.

    Raises :class:`UnsupportedSize` beyond 1,000 operations, :class:`HybridLabError` for times that are zero or no fractions of small
    denominators (the solver counts in whole numbers), for overlapped pairs that save time, and without OR-tools. Where the costs
    have no overlap, a pair is an operation after the other, and what is found has none.

    >>> from hybridlab import build
    >>> schedule, costs = build("1f1b", devices=3, microbatches=6), Costs(forward=1, backward=2)
    >>> optimum(schedule, costs).schedule == schedule
    True
    """
    seconds, workers = one_time(seconds, "seconds"), whole_number(workers, "workers", at_most=1000)
    bound = lower_bound(schedule, costs, memory)
    _refuse(schedule, costs)
    own, room = simulate(schedule, costs).makespan, room_of(schedule, memory)
    fits = bool((room_of(schedule) <= room).all())
    if fits and reached(own, bound):
        return Optimum(schedule, own, own, proven=True)
    ticks = _ticks_in_one(schedule, costs)
    start, least = shortest_starts(_problem(schedule, costs, ticks, bound, room, fits), seconds, workers)
    if start is None:
        if not fits:
            raise HybridLabError(f"no order that keeps to this memory was found in {seconds:g} seconds: give it more")
        return Optimum(schedule, own, max(bound, least / ticks), proven=False)
    rows = np.lexsort((start, schedule.device))
    orders = [[schedule.ops[row] for row in rows[schedule.device[rows] == device]] for device in range(schedule.devices)]
    found = Schedule(f"{schedule.name}, shortest order", orders)
    makespan = simulate(found, costs).makespan
    if fits and reached(own, makespan):
        found, makespan = schedule, own
    proven = reached(makespan, least / ticks)
    return Optimum(found, makespan, makespan if proven else max(bound, least / ticks), proven)


def _problem(schedule: Schedule, costs: Costs, ticks: int, bound: float, room: Ints, fits: bool) -> Problem:
    """Return what the solver is asked, in whole ticks; its search starts from the schedule where that ``fits`` the room."""
    table = costs.table(schedule.devices, schedule.chunks)
    latency = latencies(schedule, costs)

    def whole(time: Any) -> Ints:
        rounded: Ints = np.rint(np.asarray(time) * ticks).astype(np.intp)
        return rounded

    duration, ways = table[schedule.kind, schedule.device], ways_of(schedule, costs)
    head, tail = np.empty(schedule.kind.size), np.empty(schedule.kind.size)
    for way in ways:
        head[way.rows], tail[way.rows] = way.head[:, None], way.tail[:, None]
    timeline = simulate(schedule, costs)
    # Whatever the memory, one operation after the other is an order that keeps to it: all of a microbatch, then the next.
    horizon = timeline.makespan if fits else duration.sum() + latency.sum()
    if horizon * ticks > MOST_TICKS:
        raise HybridLabError(f"the solver counts in whole numbers, and a step of these costs has more than {MOST_TICKS:,}: {ROUND}")
    return Problem(
        schedule,
        whole(duration),
        whole(latency),
        whole(head),
        whole(tail),
        room,
        [rows for way in ways for rows in way.rows],
        whole(timeline.start) if fits else None,
        math.ceil(bound * ticks * (1 - SAME)),
        int(whole(horizon)),
    )


def _ticks_in_one(schedule: Schedule, costs: Costs) -> int:
    """Return into how many ticks a unit of time is divided so that every time is a whole number of them."""
    durations = costs.table(schedule.devices, schedule.chunks)[schedule.kind, schedule.device]
    if not durations.all():
        op = schedule.ops[int(np.flatnonzero(durations == 0)[0])]
        raise HybridLabError(f"the shortest order needs operations that take time, but {op.words} takes 0: give it some, such as 0.001")
    ticks = 1
    for time in np.unique(np.append(durations, latencies(schedule, costs))).tolist():
        fraction = Fraction(time).limit_denominator(FINEST)
        if abs(float(fraction) - time) > SAME * time:
            message = f"a time of {time!r} is no fraction with a denominator up to {FINEST:,}"
            raise HybridLabError(f"the solver counts in whole numbers, and {message}: {ROUND}")
        ticks = math.lcm(ticks, fraction.denominator)
    return ticks


def _refuse(schedule: Schedule, costs: Costs) -> None:
    """Refuse what the solver cannot do."""
    if costs.batch:
        raise HybridLabError(f"the shortest order is that of one setting of costs, but these have settings {costs.batch}")
    if schedule.kind.size > MOST_OPERATIONS:
        message = f"{schedule.kind.size:,} operations are more than the {MOST_OPERATIONS:,} whose shortest order can be searched for"
        raise UnsupportedSize(f"{message}; take fewer microbatches or devices, or lower_bound")
    if schedule.pairs.size and costs.overlap.any():
        raise HybridLabError("the shortest order is not known for overlapped pairs; take lower_bound, or costs with overlap 0")
