"""Simulation: a schedule and costs make a timeline."""

import math
from collections.abc import Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import MOST_CELLS, each_of, short_repr
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Operations
from hybridlab.timeline import Timeline


def simulate(schedule: Operations, costs: Costs) -> Timeline:
    r"""Return when every operation runs: as soon as its device is free and its input has arrived.

    An operation starts at max(end of the operation before it on its device, end of its source + latency if that ran on
    another device); the two of an overlapped pair start and end together. Leading axes of ``costs`` are settings, all
    timed in one pass; n operations take O(n) numpy work. The timeline has the unit of the costs.

    >>> from hybridlab.schedule import Schedule
    >>> pipeline = Schedule.parse("0F0 0B0\n1F0 1B0")
    >>> simulate(pipeline, Costs(forward=1, backward=2, p2p=0.5)).makespan
    7.0
    """
    return simulate_many([(schedule, costs)])[0]


def simulate_many(runs: Sequence[tuple[Operations, Costs]]) -> list[Timeline]:
    """Return the timelines of several schedules, each with its costs, timed together in one pass.

    That is faster than one after the other where schedules are small. Their costs must have the same number of settings, in
    batches of one shape. Raises :class:`HybridLabError` for other costs, and for more than fits in memory.

    >>> from hybridlab.schedules import build
    >>> costs = Costs(forward=1, backward=2)
    >>> [timeline.makespan for timeline in simulate_many([(build("gpipe", 2, 4), costs), (build("1f1b", 4, 4), costs)])]
    [15.0, 21.0]
    """
    runs = list(each_of(runs, "simulate_many takes pairs of a Schedule and Costs"))
    _check(runs)
    if not runs:
        return []
    bounds = np.cumsum([0, *(schedule.kind.size for schedule, _ in runs)])
    rows, slots, source, before, pairs = _in_slots([schedule for schedule, _ in runs], bounds)
    duration, latency = _durations(runs, rows), _latencies(runs, rows, bounds)
    in_slot = np.split(pairs, np.searchsorted(pairs, slots[1:-1])) if pairs.size else repeat(pairs)
    start = np.empty_like(duration)
    end = np.zeros((rows.size + 1, *duration.shape[1:]))  # the last entry is where the absent sources and predecessors point
    for (low, high), both in zip(pairwise(slots), in_slot, strict=False):
        now = slice(low, high)
        arrival = end.take(source[now], axis=0)
        arrival += latency[now]
        np.maximum(arrival, end.take(before[now], axis=0), out=start[now])
        if both.size:
            start[both] = start[both + 1] = np.maximum(start[both], start[both + 1])
        np.add(start[now], duration[now], out=end[now])
    starts, ends = np.empty_like(duration), np.empty_like(duration)
    starts[rows], ends[rows] = start, end[:-1]
    for by_row in (starts, ends):
        by_row.setflags(write=False)
    starts, ends = np.moveaxis(starts, 0, -1), np.moveaxis(ends, 0, -1)
    parts = zip(runs, pairwise(bounds.tolist()), strict=True)
    return [Timeline(schedule, starts[..., low:high], ends[..., low:high], unit=costs.unit) for (schedule, costs), (low, high) in parts]


def latencies(schedule: Operations, costs: Costs) -> Floats:
    r"""Return how long the message to each operation takes, 0 where it needs none, shape (settings..., operations).

    >>> from hybridlab.schedule import Schedule
    >>> latencies(Schedule.parse("0F0 0B0\n1F0 1B0"), Costs(forward=1, backward=2, p2p=0.5))
    array([0. , 0.5, 0.5, 0. ])
    """
    late = np.zeros((schedule.kind.size, *costs.batch))
    late[schedule.crosses] = _of_messages(schedule, costs)
    return np.moveaxis(late, 0, -1)


def _check(runs: list[Any]) -> None:
    for run in runs:
        if not isinstance(run, tuple) or len(run) != 2 or not isinstance(run[0], Operations) or not isinstance(run[1], Costs):
            message = " and ".join(map(short_repr, run)) if isinstance(run, tuple) else short_repr(run)
            raise HybridLabError(f"simulate takes a Schedule and Costs, not {message}")
    shapes = {costs.batch for _, costs in runs}
    if len(shapes) > 1:
        raise HybridLabError(f"schedules side by side need costs with settings of one shape, not {sorted(shapes)}")
    settings = math.prod(next(iter(shapes), ()))
    operations = sum(schedule.kind.size for schedule, _ in runs)
    if operations * settings > MOST_CELLS:
        message = f"{operations:,} operations x {settings:,} settings is more than {MOST_CELLS:,}"
        raise HybridLabError(f"{message} and does not fit in memory; simulate fewer settings at a time")


def _durations(runs: list[tuple[Operations, Costs]], rows: Ints) -> Floats:
    """Return how long each of the rows takes, shape (operations, settings...)."""
    tables, places, size = [], [], 0
    for schedule, costs in runs:
        devices, first = schedule.devices, schedule.pairs
        place = size + schedule.kind * devices + schedule.device
        tables.append(costs.table(devices, schedule.chunks).reshape(4 * devices, *costs.batch))
        size += 4 * devices
        if first.size:
            place[first] = place[first + 1] = size + schedule.device[first]
            tables.append(costs.pairs(devices, schedule.chunks))
            size += devices
        places.append(place)
    return np.concatenate(tables).take(np.concatenate(places)[rows], axis=0)


def _latencies(runs: list[tuple[Operations, Costs]], rows: Ints, bounds: Ints) -> Floats:
    """Return how long the message to each of the rows takes, 0 where it needs none, shape (operations, settings...)."""
    place = np.empty_like(rows)
    place[rows] = np.arange(rows.size)
    late = np.zeros((rows.size, *runs[0][1].batch))
    for (schedule, costs), low in zip(runs, bounds, strict=False):
        late[place[low + np.flatnonzero(schedule.crosses)]] = _of_messages(schedule, costs)
    return late


def _of_messages(schedule: Operations, costs: Costs) -> Floats:
    """Return how long each message takes, shape (messages, settings...)."""
    return costs.latency(schedule.device[schedule.source[schedule.crosses]], schedule.device[schedule.crosses])


def _in_slots(schedules: Sequence[Operations], bounds: Ints) -> tuple[Ints, list[int], Ints, Ints, Ints]:
    """Return all rows slot by slot, where slots begin, and the places of each row's source, of its predecessor, of pairs.

    The rows of one schedule follow those of the one before, from ``bounds`` on.
    """
    slot = np.concatenate([schedule.slot for schedule in schedules])
    rows = np.argsort(slot, kind="stable")
    begins = [0, *(np.flatnonzero(np.diff(slot[rows])) + 1).tolist(), rows.size]
    place = np.empty(rows.size + 1, dtype=np.intp)
    place[rows] = np.arange(rows.size)
    place[-1] = rows.size
    source = np.concatenate([_moved(each.source, low) for each, low in zip(schedules, bounds, strict=False)])
    before = np.concatenate([_moved(each.before, low) for each, low in zip(schedules, bounds, strict=False)])
    pairs = np.concatenate([each.pairs + low for each, low in zip(schedules, bounds, strict=False)])
    return rows, begins, place[source[rows]], place[before[rows]], np.sort(place[pairs])


def _moved(rows: Ints, low: int) -> Ints:
    """Return row numbers of one schedule as row numbers of all, where its rows begin at ``low``; -1 stays."""
    return np.where(rows < 0, -1, rows + low)
