"""A timeline: when each operation ran, and what follows from it. And the clock that makes one from a schedule and costs."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.inputs import Floats, shown
from hybridlab.ops import Op
from hybridlab.schedule import F, I, Ints, Schedule


@dataclass(frozen=True, eq=False, repr=False)
class Timeline:
    """When each operation of ``schedule`` started and ended, simulated or measured.

    ``start`` and ``end`` have shape (settings..., operations), the operations in the order of the schedule's rows: device by
    device, as they ran. Times are in the caller's unit.
    """

    schedule: Schedule
    start: Floats
    end: Floats

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            array = numbers(getattr(self, name), name)
            if array.shape[-1:] != self.schedule.kind.shape:
                wanted = f"{self.schedule.kind.size} values on the last axis, one an operation"
                raise HybridLabError(f"{name} must have {wanted}, not shape {array.shape}")
            object.__setattr__(self, name, array)
        if self.start.shape != self.end.shape:
            raise HybridLabError(f"start and end must have one shape, not {self.start.shape} and {self.end.shape}")
        if not (np.isfinite(self.end).all() and (self.end >= self.start).all()):
            raise HybridLabError("every operation must end at a finite time, not before it starts")

    @property
    def ops(self) -> tuple[Op, ...]:
        """Every operation, in the order of ``start`` and ``end``."""
        return self.schedule.ops

    @property
    def device(self) -> Ints:
        """The device of every operation."""
        return self.schedule.device

    @property
    def makespan(self) -> Any:
        """First start to last end over all devices: a float, or an array over the settings."""
        return self._plain(self.end.max(axis=-1) - self.start.min(axis=-1))

    @property
    def device_span(self) -> Any:
        """The longest first-start-to-last-end of one device (the definition of Qi et al., arXiv 2401.10241)."""
        first = np.searchsorted(self.device, np.arange(self.schedule.devices))
        starts = np.minimum.reduceat(self.start, first, axis=-1)
        ends = np.maximum.reduceat(self.end, first, axis=-1)
        return self._plain((ends - starts).max(axis=-1))

    @property
    def busy(self) -> Floats:
        """Time each device computes, shape (settings..., devices)."""
        first = np.searchsorted(self.device, np.arange(self.schedule.devices))
        return np.add.reduceat(self.end - self.start, first, axis=-1)

    @property
    def bubble_ratio(self) -> Any:
        """Idle share of all device time, 1 - sum(busy) / (devices * makespan); 0 where nothing takes any time."""
        total = np.asarray(self.makespan) * self.schedule.devices
        idle = total - self.busy.sum(axis=-1)
        return self._plain(np.divide(idle, total, out=np.zeros_like(total), where=total > 0))

    @property
    def peak_activations(self) -> Floats:
        """Most activations each device holds at once, in microbatches of the whole device, shape (settings..., devices).

        An activation is held from the start of its forward to the end of its full backward or of its weight gradient;
        that of one of v chunks counts 1/v. The order alone decides it.
        """
        peak = np.maximum.reduceat(self._held, np.searchsorted(self.device, np.arange(self.schedule.devices)))
        return np.broadcast_to(peak / self.schedule.chunks, (*self.start.shape[:-1], self.schedule.devices))

    @cached_property
    def _held(self) -> Ints:
        """Activations that each operation's device holds while it runs, in chunks."""
        kind, device = self.schedule.kind, self.schedule.device
        taken = np.cumsum(kind == F)
        freed = np.cumsum((kind != F) & (kind != I)) - ((kind != F) & (kind != I))
        first = np.searchsorted(device, np.arange(self.schedule.devices))
        before = (taken - (kind == F) - freed)[first]
        return taken - freed - before[device]

    def waited_for(self) -> Ints:
        """Return for every operation the row of the one whose end let it start, -1 for those that waited for none.

        It is the operation's input where the device stood idle for it, else the operation before it on the device. One setting only.
        """
        if self.start.ndim > 1:
            raise HybridLabError(f"waited_for() reads one setting, but this timeline holds {self.start.shape[:-1]}: pick one with at()")
        before = np.arange(self.start.size) - 1
        before[np.searchsorted(self.device, np.arange(self.schedule.devices))] = -1
        free = np.where(before >= 0, self.end[before], self.start.min())
        return np.where(self.start > free, self.schedule.source, before)

    def at(self, *setting: int) -> "Timeline":
        """Return the timeline of one setting of a batch."""
        try:
            start, end = self.start[setting], self.end[setting]
        except (IndexError, TypeError):
            raise HybridLabError(f"there is no setting {shown(setting)}: the settings have shape {self.start.shape[:-1]}") from None
        return Timeline(self.schedule, start, end)

    def _plain(self, value: Floats) -> Any:
        return float(value) if self.start.ndim == 1 else value

    def __repr__(self) -> str:
        settings = f", settings {self.start.shape[:-1]}" if self.start.ndim > 1 else f", makespan {self.makespan:g}"
        return f"<Timeline of {self.schedule!r}{settings}>"


def simulate(schedule: Schedule, costs: Costs) -> Timeline:
    """Return when every operation runs: as soon as its device is free and its input has arrived.

    An operation starts at max(end of the operation before it on its device, end of its source + latency if that ran on
    another device). Leading axes of ``costs`` are settings, all timed in one pass; n operations take O(n) numpy work.

    >>> pipeline = Schedule.parse("0F0 0B0\\n1F0 1B0")
    >>> simulate(pipeline, Costs.per_device(forward=1, backward=2, p2p=0.5)).makespan
    7.0
    """
    if not isinstance(schedule, Schedule) or not isinstance(costs, Costs):
        raise HybridLabError(f"simulate takes a Schedule and Costs, not {shown(schedule)} and {shown(costs)}")
    table = costs.table(schedule.devices, schedule.chunks).reshape(4 * schedule.devices, *costs.batch)
    rows, bounds, source, before = _in_slots(schedule)
    crossing = source < rows.size
    crossing[crossing] = schedule.device[rows[source[crossing]]] != schedule.device[rows[crossing]]
    duration = table[schedule.kind[rows] * schedule.devices + schedule.device[rows]]
    latency = np.multiply.outer(crossing, np.broadcast_to(costs.p2p, costs.batch))
    start = np.empty_like(duration)
    end = np.zeros((rows.size + 1, *costs.batch))  # the last entry is where the absent sources and predecessors point
    for low, high in zip(bounds[:-1], bounds[1:], strict=True):
        now = slice(low, high)
        arrival = end.take(source[now], axis=0)
        arrival += latency[now]
        np.maximum(arrival, end.take(before[now], axis=0), out=start[now])
        np.add(start[now], duration[now], out=end[now])
    back = np.empty_like(rows)
    back[rows] = np.arange(rows.size)
    return Timeline(schedule, *(np.moveaxis(times.take(back, axis=0), 0, -1) for times in (start, end)))


def _in_slots(schedule: Schedule) -> tuple[Ints, list[int], Ints, Ints]:
    """Return the rows slot by slot, where each slot begins, and the places of each row's source and predecessor in that list."""
    rows = np.argsort(schedule.slot, kind="stable")
    slot = schedule.slot[rows]
    bounds = [0, *(np.flatnonzero(np.diff(slot)) + 1).tolist(), rows.size]
    place = np.empty(rows.size + 1, dtype=np.intp)
    place[rows] = np.arange(rows.size)
    place[-1] = rows.size
    first = np.diff(schedule.device, prepend=-1)[rows] > 0
    before = np.where(first, rows.size, place[rows - 1])
    return rows, bounds, place[schedule.source[rows]], before
