"""The way of a microbatch: its operations in the order in which they need each other, with heads and tails."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import numbers, short_repr
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import F, Schedule, W
from hybridlab.simulation import latencies
from hybridlab.timeline import Timeline


@dataclass(frozen=True)
class Way:
    """The operations of the microbatches that visit the same devices in the same order, with times of one of them.

    ``rows`` are the schedule's, shape (places, microbatches). With S stages, places 0 to S-1 are the forwards, the next S the
    backwards from the last stage to the first, then come the weight gradients, where there are any. ``head`` is the least time from
    the beginning of the step to an operation's start, ``tail`` that from its end to the end of the step; ``lifetime``, of each stage,
    that from the start of its forward to the end of the operation that releases its activation, ``after`` the tail of that
    operation and ``release`` its duration. Settings are on the axes after the first.
    """

    rows: Ints
    device: Ints
    kind: Ints
    duration: Floats
    head: Floats
    tail: Floats
    lifetime: Floats
    after: Floats
    release: Floats

    @property
    def microbatches(self) -> int:
        """Number of microbatches that go this way."""
        return int(self.rows.shape[1])


def ways_of(schedule: Schedule, costs: Costs) -> list[Way]:
    """Return the ways through the devices that microbatches take: one, or two where there are two copies of the weights."""
    table, late = costs.table(schedule.devices, schedule.chunks), np.moveaxis(latencies(schedule, costs), -1, 0)
    rows = _rows_by_place(schedule)
    visits = np.where(rows >= 0, schedule.device[rows] * 4 + schedule.kind[rows], -1)
    left, ways = np.arange(schedule.microbatches), []
    while left.size:
        same = (visits[:, left] == visits[:, left[:1]]).all(axis=0)
        ways.append(_way(schedule, table, late, rows[:, left[same]]))
        left = left[~same]
    return ways


def room_of(schedule: Schedule, memory: Any = None) -> Ints:
    """Return how many activations of one chunk each device may hold; ``memory`` is in microbatches of a whole device.

    None is what the schedule itself holds at most. One microbatch must fit.

    >>> room_of(Schedule.parse("0F0 0F1 0B0 0B1"), memory=1.5)
    array([1])
    """
    if memory is None:
        nothing = np.zeros(schedule.kind.size)
        return np.rint(Timeline(schedule, nothing, nothing).peak_activations * schedule.chunks).astype(np.intp)
    limit = numbers(memory, "memory")
    if limit.shape not in ((), (1,), (schedule.devices,)):
        raise HybridLabError(f"memory must be one number, or one for each of the {schedule.devices} devices, not {short_repr(memory)}")
    if not (limit >= 1).all():  # false for NaN as well
        raise HybridLabError(f"memory must hold at least 1 microbatch on every device, not {short_repr(memory)}")
    most = schedule.microbatches * schedule.stages
    fits = np.floor(np.minimum(limit, most) * schedule.chunks * (1 + 1e-12))  # 4/3 of 3 chunks are 4, whatever the rounding
    return np.broadcast_to(fits.astype(np.intp), (schedule.devices,))


def _rows_by_place(schedule: Schedule) -> Ints:
    """Return the row of every operation by place on its way and microbatch, shape (3 * stages, microbatches); -1: none."""
    stages, kind, stage = schedule.stages, schedule.kind, schedule.stage
    place = np.where(kind == F, stage, np.where(kind == W, 3 * stages, 2 * stages) - 1 - stage)
    rows = np.full((3 * stages, schedule.microbatches), -1, dtype=np.intp)
    rows[place, schedule.microbatch] = np.arange(kind.size)
    return rows


def _way(schedule: Schedule, table: Floats, late: Floats, rows: Ints) -> Way:
    """Return the way of the microbatches that have ``rows``; the message to each row of the schedule takes ``late``."""
    stages = schedule.stages
    one = rows[:, 0]
    split: npt.NDArray[np.bool_] = one[2 * stages :] >= 0  # the backwards that have a weight gradient
    device = schedule.device[one]
    kind = schedule.kind[one]
    chain = slice(2 * stages)
    duration = table[kind[chain], device[chain]]
    end = np.cumsum(duration + late[one[chain]], axis=0)
    weight = table[W, device[stages : chain.stop]][split]
    finished = end[stages:].copy()  # the backward and its weight gradient
    finished[split] += weight
    last = np.maximum.accumulate(np.concatenate([end[:stages], finished])[::-1])[::-1]
    tail = last - end
    after = tail[stages:].copy()
    after[split] = 0.0
    release = duration[stages:].copy()
    release[split] = weight
    present = one >= 0
    head = end - duration
    return Way(
        rows[present],
        device[present],
        kind[present],
        duration=np.concatenate([duration, weight]),
        head=np.concatenate([head, end[stages:][split]]),
        tail=np.concatenate([tail, np.zeros_like(weight)]),
        lifetime=finished[::-1] - head[:stages],
        after=after[::-1],
        release=release[::-1],
    )
