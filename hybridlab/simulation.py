"""Simulation: it computes a timeline from a schedule and its costs."""

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
    r"""Return the timeline of a schedule: each operation starts as soon as its device is free and its input has arrived.

    An operation starts at the later of two times. The first is the end of the operation before it on its device. The second is the
    end of the operation that makes its input; if the input comes from another device, the latency of the message is added. The two
    operations of an overlapped pair start together and end together.

    Parameters
    ----------
    schedule : Schedule or Replicated
        The order of the operations on each device.
    costs : Costs
        The times of the operations and the latency of the messages. If the costs have several settings, all are simulated in one pass.

    Returns
    -------
    Timeline
        Start and end of each operation, in the unit of the costs; both arrays have shape (settings..., operations).

    Raises
    ------
    HybridLabError
        The costs are for another number of devices, or the arrays do not fit in memory.

    Examples
    --------
    >>> from hybridlab.schedule import Schedule
    >>> pipeline = Schedule.parse("0F0 0B0\n1F0 1B0")
    >>> simulate(pipeline, Costs(forward=1, backward=2, p2p=0.5)).makespan
    7.0
    """
    return simulate_many([(schedule, costs)])[0]


def simulate_many(runs: Sequence[tuple[Operations, Costs]]) -> list[Timeline]:
    """Return the timelines of several schedules, each with its own costs, simulated in one pass.

    For many small schedules this is faster than one call of :func:`simulate` for each.

    Parameters
    ----------
    runs : sequence of (Schedule or Replicated, Costs)
        The settings of all costs must have the same shape.

    Returns
    -------
    list of Timeline
        In the order of ``runs``.

    Raises
    ------
    HybridLabError
        An entry of ``runs`` is not a pair of a schedule and costs, the shapes of the settings differ, costs are for another number of
        devices, or the arrays do not fit in memory.

    Examples
    --------
    >>> from hybridlab.schedules import build
    >>> costs = Costs(forward=1, backward=2)
    >>> [timeline.makespan for timeline in simulate_many([(build("gpipe", 2, 4), costs), (build("1f1b", 4, 4), costs)])]
    [15.0, 21.0]
    """
    runs = list(each_of(runs, "simulate_many takes pairs of a Schedule and Costs"))
    _require_runs(runs)
    if not runs:
        return []
    bounds = np.cumsum([0, *(schedule.kind.size for schedule, _ in runs)])
    rows, slots, source, before, pairs = _by_slot([schedule for schedule, _ in runs], bounds)
    duration, latency = _operation_times(runs, rows), _arrival_delays(runs, rows, bounds)
    pairs_of_slot = np.split(pairs, np.searchsorted(pairs, slots[1:-1])) if pairs.size else repeat(pairs)
    start = np.empty_like(duration)
    end = np.zeros((rows.size + 1, *duration.shape[1:]))  # the last entry stays 0, for operations without a source or a predecessor
    for (low, high), first in zip(pairwise(slots), pairs_of_slot, strict=False):
        now = slice(low, high)
        arrival = end.take(source[now], axis=0)
        arrival += latency[now]
        np.maximum(arrival, end.take(before[now], axis=0), out=start[now])
        if first.size:
            start[first] = start[first + 1] = np.maximum(start[first], start[first + 1])
        np.add(start[now], duration[now], out=end[now])
    starts, ends = np.empty_like(duration), np.empty_like(duration)
    starts[rows], ends[rows] = start, end[:-1]
    for by_row in (starts, ends):
        by_row.setflags(write=False)
    starts, ends = np.moveaxis(starts, 0, -1), np.moveaxis(ends, 0, -1)
    parts = zip(runs, pairwise(bounds.tolist()), strict=True)
    return [Timeline(schedule, starts[..., low:high], ends[..., low:high], unit=costs.unit) for (schedule, costs), (low, high) in parts]


def durations(schedule: Operations, costs: Costs) -> Floats:
    r"""Return the time of each operation alone, shape (settings..., operations); an overlapped pair can take less than both together.

    >>> from hybridlab.schedule import Schedule
    >>> durations(Schedule.parse("0F0 0B0\n1F0 1B0"), Costs(forward=[1, 3], backward=[2, 6]))
    array([1., 2., 3., 6.])
    """
    table, place = times_by_place(schedule, costs)
    return np.moveaxis(table[schedule.kind, place], 0, -1)


def times_by_place(schedule: Operations, costs: Costs) -> tuple[Floats, Ints]:
    """Return the times of F, B, I and W at each place, shape (4, places, settings...), and the place of each operation.

    The places are the devices; if the costs have times per stage, they are the stages.

    Raises
    ------
    HybridLabError
        The costs are for another number of devices or stages.
    """
    if costs.per == "device":
        return costs.table(schedule.devices, schedule.chunks), schedule.device
    if costs.devices not in (None, schedule.devices):
        message = f"p2p_between is for {costs.devices} devices but the schedule has {schedule.devices}"
        raise HybridLabError(f"{message}: give one latency for each pair of neighbours, or a matrix", "does-not-fit")
    return costs.table(schedule.stages), schedule.stage


def latencies(schedule: Operations, costs: Costs) -> Floats:
    r"""Return the latency of the message that each operation needs, shape (settings..., operations); 0 if it needs none.

    >>> from hybridlab.schedule import Schedule
    >>> latencies(Schedule.parse("0F0 0B0\n1F0 1B0"), Costs(forward=1, backward=2, p2p=0.5))
    array([0. , 0.5, 0.5, 0. ])
    """
    late = np.zeros((schedule.kind.size, *costs.batch))
    late[schedule.crosses] = _message_times(schedule, costs)
    return np.moveaxis(late, 0, -1)


def _require_runs(runs: list[Any]) -> None:
    """Raise if an entry is not a pair of a schedule and costs, if shapes of settings differ, or if the arrays do not fit in memory."""
    for run in runs:
        if not isinstance(run, tuple) or len(run) != 2 or not isinstance(run[0], Operations) or not isinstance(run[1], Costs):
            message = " and ".join(map(short_repr, run)) if isinstance(run, tuple) else short_repr(run)
            raise HybridLabError(f"simulate takes a Schedule and Costs, not {message}", "wrong-type")
    shapes = {costs.batch for _, costs in runs}
    if len(shapes) > 1:
        raise HybridLabError(f"schedules in one pass need costs whose settings have the same shape, not {sorted(shapes)}", "does-not-fit")
    settings = math.prod(next(iter(shapes), ()))
    operations = sum(schedule.kind.size for schedule, _ in runs)
    if operations * settings > MOST_CELLS:
        message = f"{operations:,} operations x {settings:,} settings is more than {MOST_CELLS:,}"
        raise HybridLabError(f"{message} and does not fit in memory; simulate fewer settings at a time", "too-large")


def _operation_times(runs: list[tuple[Operations, Costs]], rows: Ints) -> Floats:
    """Return the duration of the operation in each row, shape (operations, settings...)."""
    tables, places, size = [], [], 0
    for schedule, costs in runs:
        table, at = times_by_place(schedule, costs)
        first, each = schedule.pairs, schedule.kind * table.shape[1] + at
        tables.append(table.reshape(-1, *costs.batch))
        place = size + each
        size += table.shape[0] * table.shape[1]
        if first.size:
            tables.append(costs.together(*(tables[-1][each[rows]] for rows in (first, first + 1))))
            place[first] = place[first + 1] = size + np.arange(first.size)
            size += first.size
        places.append(place)
    return np.concatenate(tables).take(np.concatenate(places)[rows], axis=0)


def _arrival_delays(runs: list[tuple[Operations, Costs]], rows: Ints, bounds: Ints) -> Floats:
    """Return the latency of the message that each row needs, shape (operations, settings...); 0 if it needs none."""
    place = np.empty_like(rows)
    place[rows] = np.arange(rows.size)
    late = np.zeros((rows.size, *runs[0][1].batch))
    for (schedule, costs), low in zip(runs, bounds, strict=False):
        late[place[low + np.flatnonzero(schedule.crosses)]] = _message_times(schedule, costs)
    return late


def _message_times(schedule: Operations, costs: Costs) -> Floats:
    """Return the latency of each message of the schedule, shape (messages, settings...)."""
    return costs.latency(schedule.device[schedule.source[schedule.crosses]], schedule.device[schedule.crosses])


def _by_slot(schedules: Sequence[Operations], bounds: Ints) -> tuple[Ints, list[int], Ints, Ints, Ints]:
    """Return the rows of all schedules sorted by slot, and the places of the operations that each row must wait for.

    Row i of schedule k gets the number ``bounds[k]`` + i. A place is a position in the sorted order. The result has five parts:

    - the row numbers in sorted order
    - the places where a new slot begins
    - for each row, the place of the operation that makes its input, or the number of rows if there is none
    - for each row, the place of the operation before it on its device, or the number of rows if there is none
    - the place of the first operation of each overlapped pair
    """
    slot = np.concatenate([schedule.slot for schedule in schedules])
    rows = np.argsort(slot, kind="stable")
    begins = [0, *(np.flatnonzero(np.diff(slot[rows])) + 1).tolist(), rows.size]
    place = np.empty(rows.size + 1, dtype=np.intp)
    place[rows] = np.arange(rows.size)
    place[-1] = rows.size
    source = np.concatenate([_shifted(each.source, low) for each, low in zip(schedules, bounds, strict=False)])
    before = np.concatenate([_shifted(each.before, low) for each, low in zip(schedules, bounds, strict=False)])
    pairs = np.concatenate([each.pairs + low for each, low in zip(schedules, bounds, strict=False)])
    return rows, begins, place[source[rows]], place[before[rows]], np.sort(place[pairs])


def _shifted(rows: Ints, low: int) -> Ints:
    """Return ``rows`` with ``low`` added to each row number. The entry -1, which means that there is no row, stays -1."""
    return np.where(rows < 0, -1, rows + low)
