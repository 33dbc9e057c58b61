"""The shortest order of a schedule. A constraint solver finds the order, and proves that no order is shorter."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.bound.analytic import SAME, lower_bound, reached
from hybridlab.bound.chains import Chain, capacity_of, chains_of
from hybridlab.bound.precedence import precedences_of
from hybridlab.bound.solver import new_model, solution_of
from hybridlab.checks import one_time, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.schedule import B, F, I, Schedule, W
from hybridlab.simulation import durations, latencies, simulate

MOST_OPERATIONS = 13_000  # largest number of operations that the solver takes: its model then takes some hundred megabytes
MOST_TICKS = 10**9  # largest number of ticks in one step, so that sums of several steps fit into the solver's 64-bit numbers
LARGEST_DENOMINATOR = 10**4  # the largest denominator of a time that is written as a fraction
WORK_PER_SECOND = 0.3  # the solver counts its work in a unit of its own; in one second on one core it does 0.1 to 0.6 of it


@dataclass(frozen=True)
class Optimum:
    """The shortest order that :func:`optimum` has found.

    Parameters
    ----------
    schedule : Schedule
        The schedule with this order.
    makespan : float
        The makespan that :func:`~hybridlab.simulate` computes for this schedule, in the unit of the costs.
    bound : float
        A lower bound: no order has a shorter makespan. The bound equals ``makespan`` if ``proven`` is True.
    proven : bool
        Whether it is proven that no order has a shorter makespan than ``schedule``.
    """

    schedule: Schedule
    makespan: float
    bound: float
    proven: bool


def optimum(schedule: Schedule, costs: Costs, memory: Any = None, *, seconds: float = 10.0, workers: int = 1) -> Optimum:
    """Return the shortest order of the schedule's operations within the memory of the schedule, or within the given ``memory``.

    The rules for orders and for memory are the same as in :func:`lower_bound`. The solver is CP-SAT of OR-tools. Install it with
    ``pip install 'hybridlab[solver]'``. The solver is not needed if the makespan of the schedule equals the lower bound. If the schedule
    fits into the memory and no shorter order is found, the result is the schedule itself. Orders from the solver have no overlapped pairs.

    Parameters
    ----------
    schedule : Schedule
        At most 13,000 operations. Overlapped pairs are allowed only for costs without overlap.
    costs : Costs
        Costs with one setting. The time of every operation must be above zero. All times must be fractions with denominators up to 10,000,
        because the solver calculates with whole numbers.
    memory : number, sequence of numbers, or Memory, optional
        The largest number of activations that a device may hold, as in :func:`lower_bound`.
    seconds : float
        Limit of the search, about the seconds on one core. The search measures the solver's work, not real time, so that the same call
        gives the same result on every machine. An interrupt (Ctrl-C) ends the search at once.
    workers : int
        Number of threads of the solver.

    Raises
    ------
    UnsupportedSize
        The schedule has more than 13,000 operations.
    HybridLabError
        The costs or the overlapped pairs are not as described above (``several-settings``, ``overlapped-pairs``, ``too-small``,
        ``not-a-fraction``, ``too-large``), OR-tools is missing (``not-installed``), no order within the memory was found
        (``no-order-found``), ``seconds`` or ``workers`` is no such number, or an error of :func:`lower_bound`.

    Examples
    --------
    >>> from hybridlab import build
    >>> schedule, costs = build("1f1b", devices=3, microbatches=6), Costs(forward=1, backward=2)
    >>> optimum(schedule, costs).schedule == schedule
    True
    """
    seconds, workers = one_time(seconds, "seconds"), whole_number(workers, "workers", at_most=1000)
    bound = lower_bound(schedule, costs, memory)
    _refuse_unsolvable(schedule, costs)
    own, capacity = simulate(schedule, costs).makespan, capacity_of(schedule, memory)
    fits = bool((capacity_of(schedule) <= capacity).all())
    if fits and reached(own, bound):
        return Optimum(schedule, own, own, proven=True)
    tick = _tick(schedule, costs)
    start, least_ticks = _shortest_starts(_job_shop(schedule, costs, float(tick), bound, capacity, fits), seconds, workers)
    least = float(Fraction(least_ticks) * tick)
    if start is None:
        if not fits:
            message = f"no order within this memory was found in {seconds:g} seconds: give more seconds or more memory"
            raise HybridLabError(message, "no-order-found")
        return Optimum(schedule, own, max(bound, least), proven=False)
    rows = np.lexsort((start, schedule.device))
    orders = [[schedule.ops[row] for row in rows[schedule.device[rows] == device]] for device in range(schedule.devices)]
    found = Schedule(f"{schedule.name}, shortest order", orders)
    makespan = simulate(found, costs).makespan
    if fits and reached(own, makespan):  # if the found order is not shorter, return the caller's own schedule
        found, makespan = schedule, own
    proven = reached(makespan, least)
    return Optimum(found, makespan, makespan if proven else max(bound, least), proven)


@dataclass(frozen=True)
class _JobShop:
    """The input of the solver: the operations of ``schedule``. All times are whole numbers of ticks (see :func:`_tick`)."""

    schedule: Schedule
    duration: Ints  # of each operation, shape (rows,)
    head: Ints  # shortest time from the beginning of the step to the start of each operation, shape (rows,)
    tail: Ints  # shortest time from the end of each operation to the end of the step, shape (rows,)
    arcs: list[tuple[Ints, Ints, int]]  # rows, rows that start after them, and the ticks from their end to this start at least
    capacity: Ints  # number of activations that each device may hold, shape (devices,)
    alike: list[Ints]  # each entry has the rows of operations that differ only in their microbatch
    known: tuple[Chain, Ints] | None  # the chain of all microbatches, and the shifts between its positions; None if there are several
    hint: Ints | None  # starts of an order that obeys every rule, shape (rows,); the search begins with this order
    least: int  # lower bound of the makespan
    most: int  # upper bound of the makespan


def _refuse_unsolvable(schedule: Schedule, costs: Costs) -> None:
    """Raise an error for settings, sizes and overlapped pairs that the solver cannot handle."""
    if costs.batch:
        message = f"the shortest order is searched for one setting of costs, but these have settings {costs.batch}"
        raise HybridLabError(message, "several-settings")
    if schedule.kind.size > MOST_OPERATIONS:
        message = f"{schedule.kind.size:,} operations are too many: the search for the shortest order takes at most {MOST_OPERATIONS:,}"
        raise UnsupportedSize(f"{message}; take fewer microbatches or devices, or lower_bound", "too-large")
    if schedule.pairs.size and costs.overlap.any():
        message = "the solver cannot handle overlapped pairs: take lower_bound, or costs with overlap 0"
        raise HybridLabError(message, "overlapped-pairs")


def _tick(schedule: Schedule, costs: Costs) -> Fraction:
    """Return the longest time of which every time is a multiple. The fewer ticks a step has, the quicker is the solver."""
    alone = durations(schedule, costs)
    if not alone.all():
        op = schedule.ops[int(np.flatnonzero(alone == 0)[0])]
        message = f"{op.words} takes the time 0, but the solver needs times above 0: give a short time, such as 0.001"
        raise HybridLabError(message, "too-small")
    tick = Fraction(0)
    for time in np.unique(np.append(alone, latencies(schedule, costs))).tolist():
        fraction = Fraction(time).limit_denominator(LARGEST_DENOMINATOR)
        if abs(float(fraction) - time) > SAME * time:
            message = f"a time of {time!r} is not a fraction with a denominator up to {LARGEST_DENOMINATOR:,}"
            raise _uncountable(message, "not-a-fraction")
        # the greatest common divisor of both, counted in parts of their common denominator
        common = math.lcm(tick.denominator, fraction.denominator)
        tick = Fraction(math.gcd(int(tick * common), int(fraction * common)), common)
    return tick


def _uncountable(message: str, code: str) -> HybridLabError:
    """Return the error for times that cannot be counted in whole ticks."""
    return HybridLabError(f"{message}, but the solver calculates with whole numbers: round the costs, for example to two decimals", code)


def _job_shop(schedule: Schedule, costs: Costs, tick: float, bound: float, capacity: Ints, fits: bool) -> _JobShop:
    """Return the input of the solver. ``fits`` says whether the schedule fits into the capacity. If it fits, the search begins with it."""
    latency = latencies(schedule, costs)

    def in_ticks(time: Any) -> Ints:
        rounded: Ints = np.rint(np.asarray(time) / tick).astype(np.intp)
        return rounded

    duration, chains = durations(schedule, costs), chains_of(schedule, costs)
    head, tail = np.empty(schedule.kind.size), np.empty(schedule.kind.size)
    known, arcs = None, []
    if len(chains) == 1:
        (chain,) = chains
        found = precedences_of(chain, capacity)
        head[chain.rows], tail[chain.rows], known = found.head, found.tail, (chain, found.shifts)
        for arc in found.arcs:
            rows = chain.rows[arc.before, : max(0, chain.microbatches - arc.shift)], chain.rows[arc.after, arc.shift :]
            arcs.append((*rows, int(in_ticks(arc.delay))))
    else:
        needing = np.flatnonzero(schedule.source >= 0)
        for gap in np.unique(latency[needing]):
            after = needing[latency[needing] == gap]
            arcs.append((schedule.source[after], after, int(in_ticks(gap))))
        for chain in chains:
            head[chain.rows], tail[chain.rows] = chain.head[:, None], chain.tail[:, None]
            arcs.append((chain.rows[:, :-1].ravel(), chain.rows[:, 1:].ravel(), 0))
    timeline = simulate(schedule, costs)
    # Without a schedule that fits, an upper bound is the order that runs one operation at a time, microbatch after microbatch. This order
    # fits into any memory.
    horizon = timeline.makespan if fits else duration.sum() + latency.sum()
    if horizon / tick > MOST_TICKS:
        raise _uncountable(f"with these costs a step has more than {MOST_TICKS:,} ticks", "too-large")
    return _JobShop(
        schedule,
        in_ticks(duration),
        in_ticks(head),
        in_ticks(tail),
        arcs,
        capacity,
        alike=[rows for chain in chains for rows in chain.rows],
        known=known,
        hint=in_ticks(timeline.start) if fits else None,
        least=math.ceil(bound / tick * (1 - SAME)),
        most=int(in_ticks(horizon)),
    )


def _shortest_starts(shop: _JobShop, seconds: float, workers: int) -> tuple[Ints | None, float]:
    """Return the starts of the shortest order that was found (or None) and a lower bound of the makespan, both in ticks.

    The solver searches only orders in which the microbatches of a chain come in increasing order at every position of the chain. The
    shortest makespan is among them, because any order can be changed into such an order. At every position, sort the starts, and give them
    to the microbatches in increasing order. Every operation still comes after its input. Every device is busy in the same intervals and
    holds as many activations as before.
    """
    schedule, duration = shop.schedule, shop.duration.tolist()
    model = new_model()
    latest = (shop.most - shop.tail - shop.duration).tolist()
    start = [model.new_int_var(*domain, "") for domain in zip(shop.head.tolist(), latest, strict=True)]
    end = [begin + time for begin, time in zip(start, duration, strict=True)]
    makespan = model.new_int_var(shop.least, shop.most, "makespan")
    for row, tail in enumerate(shop.tail.tolist()):
        model.add(makespan >= end[row] + tail)
    for before, after, ticks in shop.arcs:
        for first, second in zip(before.tolist(), after.tolist(), strict=True):
            model.add(start[second] >= end[first] + ticks)
    if shop.hint is not None:
        for rows in shop.alike:
            for row, hint in zip(rows.tolist(), np.sort(shop.hint[rows]).tolist(), strict=True):
                model.add_hint(start[row], hint)
    for device in range(schedule.devices):
        on_device = np.flatnonzero(schedule.device == device).tolist()
        model.add_no_overlap([model.new_fixed_size_interval_var(start[row], duration[row], "") for row in on_device])
    _limit_memory(model, shop, start, end)
    model.minimize(makespan)
    found, least = None, float(shop.least)
    for from_below in (True, False):  # half of the time goes to a proof from the lower bound upwards, the rest to shorter orders
        solution = solution_of(model, [*start, makespan], seconds * WORK_PER_SECOND / 2, workers=workers, from_below=from_below)
        if solution is None:
            continue
        *starts, shortest = solution.values
        found, least = np.array(starts, dtype=np.intp), max(least, solution.bound)
        if solution.proven:
            break
        model.clear_hints()
        for begin, hint in zip(start, starts, strict=True):
            model.add_hint(begin, hint)
        model.add_linear_constraint(makespan, math.ceil(least - SAME), shortest)
    return found, least


def _limit_memory(model: Any, shop: _JobShop, start: list[Any], end: list[Any]) -> None:
    """Add the limit of memory on each device, unless the precedences of the operations hold it already."""
    schedule, (taken, freed) = shop.schedule, _activation_rows(shop.schedule)
    for device, capacity in enumerate(shop.capacity.tolist()):
        here = np.flatnonzero(schedule.device[taken] == device)
        chunks = np.unique(schedule.stage[taken[here]])
        if here.size <= capacity:
            continue  # the limit is never reached
        if shop.known is None:
            first_and_last = zip(taken[here].tolist(), freed[here].tolist(), strict=True)
            lifetimes = [model.new_interval_var(start[f], model.new_int_var(0, shop.most, ""), end[b], "") for f, b in first_and_last]
            model.add_cumulative(lifetimes, [1] * here.size, capacity)
        elif chunks.size > 1:  # with one chunk, the precedences hold the limit
            _count_by_order(model, shop.known, chunks.tolist(), capacity, start, end)


def _count_by_order(model: Any, known: tuple[Chain, Ints], chunks: list[int], capacity: int, start: list[Any], end: list[Any]) -> None:
    """Limit the activations of several chunks on a device: at each forward, count the forwards and the releases before it.

    The microbatches of a position come in order. So only operations of different positions need a variable for their order, and only where
    no precedence decides it.
    """
    chain, shifts = known
    stages, microbatches, split = int((chain.kind == F).sum()), chain.microbatches, np.flatnonzero(chain.kind == I).tolist()
    releases = [2 * stages - 1 - stage for stage in chunks]
    releases = [2 * stages + split.index(each) if each in split else each for each in releases]
    rows = chain.rows.tolist()
    sooner: dict[tuple[int, int], Any] = {}  # (one forward, another forward) -> whether the one starts first

    def before(position: int, stage: int, microbatch: int) -> tuple[int, list[int]]:
        """Return how many microbatches of ``position`` always precede a forward, and those that may precede it."""
        always = max(0, microbatch - int(shifts[position, stage]) + 1)
        return always, list(range(always, min(microbatches, microbatch + int(shifts[stage, position]))))

    for stage in chunks:
        for microbatch in range(microbatches):
            forward, room, held = rows[stage][microbatch], capacity - microbatch - 1, []
            for other in chunks:
                if other == stage:
                    continue
                always, maybe = before(other, stage, microbatch)
                room -= always
                for each in (rows[other][number] for number in maybe):
                    if (forward, each) in sooner:
                        held.append(~sooner[forward, each])
                        continue
                    sooner[each, forward] = first = model.new_bool_var("")
                    model.add(start[forward] >= end[each]).only_enforce_if(first)
                    model.add(start[each] >= end[forward]).only_enforce_if(~first)
                    held.append(first)
            freed: list[Any] = []
            for release in releases:
                always, maybe = before(release, stage, microbatch)
                room += always
                left: list[Any] = []
                for each in (rows[release][number] for number in maybe):
                    left.append(model.new_bool_var(""))
                    model.add(start[forward] >= end[each]).only_enforce_if(left[-1])
                for earlier, later in pairwise(left):
                    model.add_implication(later, earlier)
                freed += left
            model.add(sum(held) - sum(freed) <= room)


def _activation_rows(schedule: Schedule) -> tuple[Ints, Ints]:
    """Return, for each activation, the row of the operation that stores it and the row of the operation that releases it."""
    activation = schedule.stage * schedule.microbatches + schedule.microbatch
    taken, freed = np.flatnonzero(schedule.kind == F), np.flatnonzero((schedule.kind == B) | (schedule.kind == W))
    return taken[np.argsort(activation[taken])], freed[np.argsort(activation[freed])]
