"""Windows: a solver frees the operations in a part of the step, and keeps the order of all others. This shortens steps of any size."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from hybridlab.automatic.problem import SAME, Order, OrderProblem, Times
from hybridlab.bound.solver import new_model, solution_of
from hybridlab.errors import HybridLabError

WIDTHS = (8, 16, 24, 32)  # operations of a window on the device that has the most
LONGEST = 1000  # the longest time of an operation in ticks of the solver, before all times are divided by their common divisor
PART = 840  # an activation of one chunk in the solver's whole numbers: it has many divisors, for activations of which a part is freed early
WORK_OF_WINDOW = 0.02  # limit of the solver for one window, in its own unit of work: about 0.1 seconds


def windows(problem: OrderProblem, orders: Sequence[Order], count: int) -> Iterator[list[Order]]:
    """Yield the orders after each of ``count`` windows. The step never becomes longer.

    Windows of one width pass over the step from its beginning to its end, each shifted by half of its width; then come wider ones. The
    solver orders the operations of a window so that the step becomes as short as possible. Operations before the window keep their times.
    Each operation after the window keeps its place, so the time from its start to the end of the step is known, too.

    Parameters
    ----------
    problem : OrderProblem
        The operations to order.
    orders : sequence of list of int
        Orders that can run and fit into the memory. The function does not change them.
    count : int
        Number of windows.
    """
    now = [list(order) for order in orders]
    ran = problem.run(now)
    if ran is None:
        raise HybridLabError("windows need orders that can run, and in these the devices wait for ever", "deadlock")
    done = 0
    for width in (each for _ in range(count) for each in WIDTHS):
        most = max(map(len, now))
        first = -(done % width)  # each pass begins elsewhere
        while first < most:
            start, end = ran
            longest = max(now, key=len)
            begin = start[longest[first]] if first > 0 else 0.0
            last = first + width
            until = start[longest[last]] if last < most else math.inf
            bounds = [(sum(start[each] < begin for each in order), sum(start[each] < until for each in order)) for order in now]
            tried = _window(problem, now, start, end, bounds, done)
            timed = problem.run(tried) if tried else None
            if tried and timed and max(timed[1]) <= max(end) and all(map(problem.fits, tried)):
                now, ran = tried, timed
            done += 1
            yield now
            if done == count:
                return
            first += max(1, width // 2)


def _window(
    problem: OrderProblem, orders: Sequence[Order], start: Times, end: Times, bounds: Sequence[tuple[int, int]], seed: int
) -> list[Order] | None:
    """Return the orders with the operations of a window in a new order, or None if the solver has found none.

    ``bounds`` has for each device the places of the first operation in the window and of the first one after it.
    """
    inside = {operation for order, (first, after) in zip(orders, bounds, strict=True) for operation in order[first:after]}
    tails = _tails_after(problem, orders, bounds, start)
    unit = LONGEST / max(problem.duration)
    # at least one tick: operations that start and end at the same tick could come out in any order
    count = {operation: max(1, round(problem.duration[operation] * unit)) for operation in inside}
    gaps = {operation: round(problem.delay[operation] * unit) for operation in inside if problem.source[operation] in inside}
    heads: dict[int, int] = {}
    for order, (first, after) in zip(orders, bounds, strict=True):
        earliest = end[order[first - 1]] if first else 0.0
        for operation in order[first:after]:
            given = problem.source[operation]
            arrival = end[given] + problem.delay[operation] if given < problem.size and given not in inside else 0.0
            heads[operation] = round(max(earliest, arrival) * unit)
    rests = {operation: round(tails[operation] * unit) for operation in inside}
    divisor = math.gcd(*count.values(), *gaps.values(), *heads.values(), *rests.values()) or 1
    for numbers in (count, gaps, heads, rests):
        for operation in numbers:
            numbers[operation] //= divisor
    most = round(max(end) * unit / divisor) + len(inside)  # rounding may lengthen a path by a tick for each operation

    model = new_model()
    begin = {operation: model.new_int_var(heads[operation], most, "") for operation in inside}
    makespan = model.new_int_var(0, most, "")
    for operation in inside:
        model.add(makespan >= begin[operation] + count[operation] + rests[operation])
        model.add_hint(begin[operation], round(start[operation] * unit / divisor))
    for operation, gap in gaps.items():
        model.add(begin[operation] >= begin[problem.source[operation]] + count[problem.source[operation]] + gap)
    microbatches = problem.template.microbatches
    for order, (first, after) in zip(orders, bounds, strict=True):
        free = order[first:after]
        model.add_no_overlap([model.new_fixed_size_interval_var(begin[each], count[each], "") for each in free])
        lines: dict[int, Order] = {}
        for each in free:
            lines.setdefault(each // microbatches, []).append(each)
        for line in lines.values():
            for one, next_one in pairwise(line):
                model.add(begin[next_one] >= begin[one] + count[one])
        _limit_memory(model, problem, order[:first], free, begin, count)
    model.minimize(makespan)
    solution = solution_of(model, list(begin.values()), WORK_OF_WINDOW, seed=seed)
    if solution is None:
        return None
    at = dict(zip(begin, solution.values, strict=True))
    return [
        order[:first] + sorted(order[first:after], key=at.__getitem__) + order[after:]
        for order, (first, after) in zip(orders, bounds, strict=True)
    ]


def _tails_after(problem: OrderProblem, orders: Sequence[Order], bounds: Sequence[tuple[int, int]], start: Times) -> Times:
    """Return for each operation the time from its end to the end of the step that the operations after the window take at least."""
    after = [order[last:] for order, (_, last) in zip(orders, bounds, strict=True)]
    tail = [0.0] * (problem.size + 1)  # the last entry is "no operation"
    waits: dict[int, int] = {}  # operation -> the one before it on its device
    for order in after:
        waits.update((later, earlier) for earlier, later in pairwise(order))
    for operation in sorted((each for order in after for each in order), key=start.__getitem__, reverse=True):
        rest = problem.duration[operation] + tail[operation]
        given = problem.source[operation]
        tail[given] = max(tail[given], problem.delay[operation] + rest)
        if operation in waits:
            tail[waits[operation]] = max(tail[waits[operation]], rest)
    for order, (first, last) in zip(orders, bounds, strict=True):
        if last < len(order):  # all operations of the window come before this one
            rest = problem.duration[order[last]] + tail[order[last]]
            for operation in order[first:last]:
                tail[operation] = max(tail[operation], rest)
    return tail


def _limit_memory(model: Any, problem: OrderProblem, before: Order, free: Order, begin: dict[int, Any], count: dict[int, int]) -> None:
    """Add the limit of memory on a device for the operations ``free`` of a window, after those of ``before``."""
    part = PART * problem.template.chunks
    changes = [round(problem.taken[each] * part) for each in free]
    held = sum(round(problem.taken[each] * part) for each in before)
    room = math.floor(problem.capacity[problem.device[free[0]]] * part * (1 + SAME)) - held if free else 0
    if sum(max(0, change) for change in changes) > room:
        # memory is taken at the start of an operation and freed at its end; what ends at a time is freed before what starts at this time
        times = [begin[each] + (count[each] if change < 0 else 0) for each, change in zip(free, changes, strict=True)]
        model.add_reservoir_constraint(times, changes, -part * len(free), room)
