"""The clock: a schedule and costs make a timeline."""

import math
from itertools import pairwise, repeat

import numpy as np

from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.inputs import MOST_CELLS, shown
from hybridlab.rows import Ints
from hybridlab.schedule import Schedule
from hybridlab.timeline import Timeline


def simulate(schedule: Schedule, costs: Costs) -> Timeline:
    r"""Return when every operation runs: as soon as its device is free and its input has arrived.

    An operation starts at max(end of the operation before it on its device, end of its source + latency if that ran on
    another device); the two of an overlapped pair start and end together. Leading axes of ``costs`` are settings, all
    timed in one pass; n operations take O(n) numpy work.

    >>> pipeline = Schedule.parse("0F0 0B0\n1F0 1B0")
    >>> simulate(pipeline, Costs.per_device(forward=1, backward=2, p2p=0.5)).makespan
    7.0
    """
    if not isinstance(schedule, Schedule) or not isinstance(costs, Costs):
        raise HybridLabError(f"simulate takes a Schedule and Costs, not {shown(schedule)} and {shown(costs)}")
    settings = math.prod(costs.batch)
    if schedule.kind.size * settings > MOST_CELLS:
        told = f"{schedule.kind.size:,} operations x {settings:,} settings is more than {MOST_CELLS:,}"
        raise HybridLabError(f"{told} and does not fit in memory; simulate fewer settings at a time")
    table = costs.table(schedule.devices, schedule.chunks).reshape(4 * schedule.devices, *costs.batch)
    rows, bounds, source, before = _in_slots(schedule)
    duration = table[(schedule.kind * schedule.devices + schedule.device)[rows]]
    pairs = np.flatnonzero(np.isin(rows, schedule.pairs))  # places of their forwards; the backward is the next place
    duration[pairs] = duration[pairs + 1] = costs.pairs(schedule.devices, schedule.chunks)[schedule.device[rows[pairs]]]
    in_slot = np.split(pairs, np.searchsorted(pairs, bounds[1:-1])) if pairs.size else repeat(pairs)
    latency = np.multiply.outer(schedule.crosses[rows], np.broadcast_to(costs.p2p, costs.batch))
    start = np.empty_like(duration)
    end = np.zeros((rows.size + 1, *costs.batch))  # the last entry is where the absent sources and predecessors point
    for (low, high), both in zip(pairwise(bounds), in_slot, strict=False):
        now = slice(low, high)
        arrival = end.take(source[now], axis=0)
        arrival += latency[now]
        np.maximum(arrival, end.take(before[now], axis=0), out=start[now])
        if both.size:
            start[both] = start[both + 1] = np.maximum(start[both], start[both + 1])
        np.add(start[now], duration[now], out=end[now])
    times = (np.empty_like(duration), np.empty_like(duration))
    for by_slot, by_row in zip((start, end[:-1]), times, strict=True):
        by_row[rows] = by_slot
        by_row.setflags(write=False)
    return Timeline(schedule, *(np.moveaxis(by_row, 0, -1) for by_row in times))


def _in_slots(schedule: Schedule) -> tuple[Ints, list[int], Ints, Ints]:
    """Return the rows slot by slot, where slots begin, and the place of each row's source and of its predecessor."""
    rows = np.argsort(schedule.slot, kind="stable")
    bounds = [0, *(np.flatnonzero(np.diff(schedule.slot[rows])) + 1).tolist(), rows.size]
    place = np.empty(rows.size + 1, dtype=np.intp)
    place[rows] = np.arange(rows.size)
    place[-1] = rows.size
    before = np.empty_like(place)
    before[1:] = place[:-1]
    before[schedule.first] = rows.size
    before[schedule.pairs + 1] = before[schedule.pairs]
    return rows, bounds, place[schedule.source[rows]], before[rows]
