"""How the time of a step divides into work and waits of each device, and the critical path of the step."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Frozen, Ints, readonly
from hybridlab.costs.observed import Timed, link_latencies
from hybridlab.schedule import B, F, I, Op, Operations

WORK = ("forward", "backward", "weight", "paired", "optimiser")
WAITS = ("warm_up", "steady", "cool_down", "after")
COLUMNS = (*WORK, *WAITS)


class CriticalStep(NamedTuple):
    """One operation on the critical path.

    Parameters
    ----------
    op : Op
        The operation.
    device : int
        The device that runs the operation.
    start, end : float
        Start and end of the operation, in the unit of the timeline.
    wait : float
        The time between the operation before it on the path and this operation. In a simulation this is the latency of a message, or 0. In
        a measured timeline it also contains the time that the engine needs between two operations.
    """

    op: Op
    device: int
    start: float
    end: float
    wait: float


@dataclass(frozen=True, eq=False, repr=False)
class Breakdown(Frozen):
    """The time of a step, divided into work and waits of each device. :meth:`~hybridlab.Timeline.breakdown` returns this object.

    Each array has one time for each device, in the unit of the timeline. For each device, all these times add up to the makespan.

    Parameters
    ----------
    forward, backward, weight : array of float, shape (devices,)
        Work outside overlapped pairs. ``forward`` has the forwards, ``backward`` the full backwards and the input gradients, ``weight`` the
        weight gradients.
    paired : array of float, shape (devices,)
        Overlapped pairs, in which a forward and a backward run at the same time.
    optimiser : array of float, shape (devices,)
        The optimiser. 0 if the timeline has no spans of optimisers.
    warm_up : array of float, shape (devices,)
        Idle before the first backward of the device starts.
    steady : array of float, shape (devices,)
        Idle between warm-up and cool-down.
    cool_down : array of float, shape (devices,)
        Idle after the last forward of the device has ended, and before its last operation.
    after : array of float, shape (devices,)
        Idle after the last operation of the device, until the step ends on all devices. The hops of an all-reduce count as idle time here.
    critical_path : tuple of CriticalStep
        The operations that determine the makespan, from the first to the last. Each of them waited for the operation before it on the path.
    rest : float
        The time from the end of the last operation on any device to the end of the step. Rings and optimisers run in this time.
    unit : str or None
        The unit of all times.
    """

    forward: Floats
    backward: Floats
    weight: Floats
    paired: Floats
    optimiser: Floats
    warm_up: Floats
    steady: Floats
    cool_down: Floats
    after: Floats
    critical_path: tuple[CriticalStep, ...]
    rest: float
    unit: str | None

    @property
    def makespan(self) -> float:
        """The sum of all times on the critical path: operations, waits and ``rest``."""
        return float(sum(step.wait + (step.end - step.start) for step in self.critical_path) + self.rest)

    def __repr__(self) -> str:
        unit = f", in {self.unit}" if self.unit else ""
        used = [name for name in COLUMNS if getattr(self, name).any()]
        names = ["device", *(name.replace("_", "-") for name in used)]
        rows = [[str(device), *(f"{getattr(self, name)[device]:.6g}" for name in used)] for device in range(self.forward.size)]
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [names, *rows]]
        work = sum(step.end - step.start for step in self.critical_path)
        waits = sum(step.wait for step in self.critical_path)
        path = f"critical path: {work:.6g} of work + {waits:.6g} between operations"
        path += f" + {self.rest:.6g} after them" if self.rest else ""
        return "\n".join([f"<Breakdown of {self.makespan:.6g}{unit}>", *lines, path])


def breakdown_of(timeline: Timed, latest_input: Ints, optimiser: Floats, first: float, last: float) -> Breakdown:
    """Return the time of a timeline, divided into work and waits of each device.

    Parameters
    ----------
    timeline : Timeline
        A timeline with one setting.
    latest_input : array of int, shape (operations,)
        For each operation, the row of the operation whose output it needs. Both operations of a pair have the row whose output came later.
    optimiser : array of float, shape (devices,)
        The time of each device's optimiser.
    first, last : float
        The start of the first and the end of the last operation or span.

    Returns
    -------
    Breakdown
    """
    schedule, start, end = timeline.schedule, timeline.start, timeline.end
    columns = dict(zip(WAITS, _waits(schedule, start, end, first), strict=False))
    lasts = np.maximum.reduceat(end, schedule.first)  # for each device, the end of its last operation
    columns |= {**_work(schedule, end - start), "optimiser": optimiser, "after": last - lasts - optimiser}
    path = _critical_path(timeline, latest_input, first)
    return Breakdown(
        **{name: readonly(column) for name, column in columns.items()}, critical_path=path, rest=float(last - end.max()), unit=timeline.unit
    )


def _work(schedule: Operations, takes: Floats) -> dict[str, Floats]:
    """Return the time that each device runs operations of each kind. Overlapped pairs have their own column, and count once."""
    one_of_pair, second = schedule.pairs, schedule.pairs + 1
    column = np.array([0, 1, 1, 2])[schedule.kind]  # the columns of F, B, I, W
    column[one_of_pair] = 3
    takes[second] = 0.0  # count a pair once: both its rows have the time of the pair
    sums = np.zeros((4, schedule.devices))
    np.add.at(sums, (column, schedule.device), takes)
    return dict(zip(WORK, sums, strict=False))


def _waits(schedule: Operations, start: Floats, end: Floats, first: float) -> Floats:
    """Return the idle time before the operations of each device in warm-up, steady state and cool-down, shape (3, devices)."""
    before, device = schedule.before, schedule.device
    free = np.where(before >= 0, end[before], first)
    gap = start - free
    gap[schedule.pairs + 1] = 0.0  # count a pair once: both its rows have the same wait
    backward = (schedule.kind == B) | (schedule.kind == I)
    first_backward = np.minimum.reduceat(np.where(backward, start, np.inf), schedule.first)[device]
    last_forward = np.maximum.reduceat(np.where(schedule.kind == F, end, -np.inf), schedule.first)[device]
    # 0 is warm-up, 1 steady state, 2 cool-down. In GPipe, the wait before the first backward also comes after the last forward. It counts
    # as warm-up.
    phase = np.where(start <= first_backward, 0, np.where(free >= last_forward, 2, 1))
    waits = np.zeros((3, schedule.devices))
    np.add.at(waits, (phase, device), gap)
    return waits


def _critical_path(timeline: Timed, latest_input: Ints, first: float) -> tuple[CriticalStep, ...]:
    """Return the critical path. It is found backwards, from the operation that ends last.

    An operation waited for its input if its device was idle just before and the input arrived after the operation before had ended.
    Otherwise it waited for the operation before it on its device. The arrival of the input is computed from the latency of the link. (The
    start of the operation is not the arrival, because a measured timeline has short gaps between all operations.)
    """
    schedule, start, end = timeline.schedule, timeline.start, timeline.end
    before, latency = schedule.before, link_latencies(schedule, start, end)
    row, path = int(end.argmax()), []
    while row >= 0:
        earlier, source = int(before[row]), int(latest_input[row])
        free = end[earlier] if earlier >= 0 else -np.inf  # the first operation of a device can only wait for its input
        if source >= 0 and start[row] > free:
            there, here = schedule.device[source], schedule.device[row]
            arrives = end[source] + (latency[there, here] if there != here else 0.0)
            earlier = source if arrives >= free else earlier
        wait = start[row] - (end[earlier] if earlier >= 0 else first)
        path.append(CriticalStep(schedule.ops[row], int(schedule.device[row]), float(start[row]), float(end[row]), float(wait)))
        row = earlier
    return tuple(reversed(path))
