"""Where the time of a step went: work and waits of each device, and the critical path."""

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
        Its device.
    start, end : float
        Its times in the unit of the timeline.
    wait : float
        The time from the end of the operation that it waited for to its own start. It is the latency of a message, or in a measured
        timeline also the time that the engine needs between two operations.
    """

    op: Op
    device: int
    start: float
    end: float
    wait: float


@dataclass(frozen=True, eq=False, repr=False)
class Breakdown(Frozen):
    """Where the time of a step went. :meth:`~hybridlab.Timeline.breakdown` returns this object.

    Each column has one time for each device, in the unit of the timeline. The columns of a device add up to the makespan.

    Parameters
    ----------
    forward, backward, weight : array of float, shape (devices,)
        Work: forwards; full backwards and input gradients; weight gradients.
    paired : array of float, shape (devices,)
        Overlapped pairs, in which a forward and a backward run together.
    optimiser : array of float, shape (devices,)
        The optimiser, if the timeline has its spans.
    warm_up : array of float, shape (devices,)
        Idle before the first backward of the device starts.
    steady : array of float, shape (devices,)
        Idle between warm-up and cool-down.
    cool_down : array of float, shape (devices,)
        Idle after the last forward of the device has ended, and before its last operation.
    after : array of float, shape (devices,)
        Idle after the last operation, until the step ends on all devices. Rings of an all-reduce count here.
    critical_path : tuple of CriticalStep
        The operations that determine the makespan, from the first to the last: each waited for the one before it.
    rest : float
        The time from the last operation of all devices to the end of the step, for rings and optimisers.
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
        """The sum of the critical path: all its operations, its waits and the rest."""
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
    """Return where the time of a timeline went.

    Parameters
    ----------
    timeline : Timeline
        A timeline with one setting.
    latest_input : array of int, shape (operations,)
        The row whose output is each operation's input; for both operations of a pair, the row of the later input.
    optimiser : array of float, shape (devices,)
        The time of each device's optimiser.
    first, last : float
        When the step starts and ends, spans included.

    Returns
    -------
    Breakdown
    """
    schedule, start, end = timeline.schedule, timeline.start, timeline.end
    columns = dict(zip(WAITS, _waits(schedule, start, end, first), strict=False))
    lasts = np.maximum.reduceat(end, schedule.first)  # the last end on each device: its rows stand together
    columns |= {**_work(schedule, end - start), "optimiser": optimiser, "after": last - lasts - optimiser}
    path = _critical_path(timeline, latest_input, first)
    return Breakdown(
        **{name: readonly(column) for name, column in columns.items()}, critical_path=path, rest=float(last - end.max()), unit=timeline.unit
    )


def _work(schedule: Operations, takes: Floats) -> dict[str, Floats]:
    """Return the time that each device runs operations of each kind; an overlapped pair counts once, in a column of its own."""
    one_of_pair, second = schedule.pairs, schedule.pairs + 1
    column = np.array([0, 1, 1, 2])[schedule.kind]  # F, B, I, W
    column[one_of_pair] = 3
    takes[second] = 0.0  # both rows of a pair have the time of the pair
    sums = np.zeros((4, schedule.devices))
    np.add.at(sums, (column, schedule.device), takes)
    return dict(zip(WORK, sums, strict=False))


def _waits(schedule: Operations, start: Floats, end: Floats, first: float) -> Floats:
    """Return the idle time before the operations of each device in warm-up, steady state and cool-down, shape (3, devices)."""
    before, device = schedule.before, schedule.device
    free = np.where(before >= 0, end[before], first)
    gap = start - free
    gap[schedule.pairs + 1] = 0.0  # both rows of a pair have the same wait
    backward = (schedule.kind == B) | (schedule.kind == I)
    first_backward = np.minimum.reduceat(np.where(backward, start, np.inf), schedule.first)[device]
    last_forward = np.maximum.reduceat(np.where(schedule.kind == F, end, -np.inf), schedule.first)[device]
    # 0 is warm-up, 1 steady, 2 cool-down. In GPipe the wait before the first backward is both 0 and 2; it counts as warm-up.
    phase = np.where(start <= first_backward, 0, np.where(free >= last_forward, 2, 1))
    waits = np.zeros((3, schedule.devices))
    np.add.at(waits, (phase, device), gap)
    return waits


def _critical_path(timeline: Timed, latest_input: Ints, first: float) -> tuple[CriticalStep, ...]:
    """Return the path from the operation that ends last back to the first.

    An operation waited for the one before it on its device, unless the device was idle and the input came later. When the input came
    follows from the latency of its link, because a measured timeline has short gaps between all operations.
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
