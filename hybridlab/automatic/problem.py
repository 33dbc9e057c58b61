"""The problem of a search: the operations to order, with their times, as plain lists. It also computes the times of given orders."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.costs import Costs
from hybridlab.schedule import B, F, I, Schedule, W
from hybridlab.schedule.grid import NONE, slots_in_order
from hybridlab.simulation import durations, latencies

Order = list[int]  # the operations of one device in running order
Times = list[float]
SAME = 1e-9  # two makespans count as equal if their relative difference is at most this, since rounding causes small differences


@dataclass(frozen=True)
class OrderProblem:
    """The operations of one step, the devices that run them, their times, and the memory of each device.

    Operations are numbered like the places in a grid of slots: line * microbatches + microbatch. The lines are the forwards of all
    stages, then the backwards (or input gradients), then the weight gradients if backwards are split. The number after the last operation
    stands for "no operation".

    The fields are lists, because a search looks at one operation after the other.

    Parameters
    ----------
    template : Schedule
        A schedule with these operations on these devices, in any order.
    device : list of int
        The device of each operation.
    source : list of int
        The operation whose output each operation needs.
    delay : list of float
        The latency of the message that brings this output; 0 if there is no message.
    duration : list of float
        The time of each operation.
    taken : list of float
        The memory that each operation takes when it starts (above 0), or frees when it ends (below 0), in activations of one microbatch
        on all stages of a device.
    capacity : list of float
        The memory of each device.
    """

    template: Schedule
    device: list[int]
    source: list[int]
    delay: Times
    duration: Times
    taken: Times
    capacity: Times

    @property
    def size(self) -> int:
        """Number of operations."""
        return len(self.device)

    @property
    def splits(self) -> bool:
        """Whether backwards are split."""
        return self.size == 3 * self.template.stages * self.template.microbatches

    def numbers_of(self, schedule: Schedule) -> list[Order]:
        """Return the orders of ``schedule``, which has the same stages on the same devices.

        If this problem splits backwards, a full backward becomes an input gradient and then its weight gradient. An overlapped pair
        becomes two operations, one after the other.
        """
        number = _numbers(schedule)
        orders: list[Order] = [[] for _ in range(schedule.devices)]
        plane = schedule.stages * schedule.microbatches
        for device, kind, operation in zip(schedule.device.tolist(), schedule.kind.tolist(), number.tolist(), strict=True):
            orders[device].append(operation)
            if self.splits and kind == B:
                orders[device].append(operation + plane)
        return orders

    def run(self, orders: Sequence[Order]) -> tuple[Times, Times] | None:
        """Return the start and the end of each operation, or None if devices would wait for each other for ever.

        The clock is that of :func:`~hybridlab.simulate`: an operation starts as soon as its device is free and its input has arrived.
        """
        source, delay, duration = self.source, self.delay, self.duration
        start, end = [0.0] * self.size, [-1.0] * self.size + [0.0]  # -1 if it has not run; the last entry is for "no operation"
        turn, free = [0] * len(orders), [0.0] * len(orders)
        waiting: dict[int, int] = {}  # from an operation that has not run to the device that waits for it
        ready = list(range(len(orders)))
        while ready:
            device = ready.pop()
            order, now = orders[device], free[device]
            for place in range(turn[device], len(order)):
                operation = order[place]
                arrival = end[source[operation]]
                if arrival < 0:
                    waiting[source[operation]] = device
                    turn[device] = place
                    break
                arrival += delay[operation]
                if arrival > now:
                    now = arrival
                start[operation] = now
                now += duration[operation]
                end[operation] = now
                if operation in waiting:
                    ready.append(waiting.pop(operation))
            free[device] = now
        return None if waiting else (start, end)

    def fits(self, order: Order) -> bool:
        """Return whether ``order`` fits into the memory of its device."""
        return self.peak(order) <= self.capacity[self.device[order[0]]] + SAME

    def peak(self, order: Order) -> float:
        """Return the most memory that the device of ``order`` holds at once."""
        # memory is taken at a start and freed at an end, so between two operations the running sum is what the device holds
        return max(accumulate(map(self.taken.__getitem__, order)))

    def schedule(self, orders: Sequence[Order], name: str) -> Schedule:
        """Return the orders as a schedule, proven to run."""
        template = self.template
        places = [[(operation, NONE) for operation in order] for order in orders]
        grid = slots_in_order(places, (2 + self.splits, template.stages, template.microbatches))
        return Schedule.from_slots(name, grid, template.device_of)


def problem_of(template: Schedule, costs: Costs, capacity: Floats, held_after: float = 1.0) -> OrderProblem:
    """Return the problem of ordering the operations of ``template``.

    Parameters
    ----------
    template : Schedule
        A schedule with one copy of the weights; all its backwards are full, or all are split.
    costs : Costs
        The times, one setting.
    capacity : Floats, shape (devices,)
        The activations that each device may hold.
    held_after : float
        The part of an activation that stays in memory between the input gradient and the weight gradient, from 0 to 1.
    """
    number = _numbers(template)
    size = number.size
    source, device = np.empty(size, dtype=np.intp), np.empty(size, dtype=np.intp)
    delay, duration, taken = np.empty(size), np.empty(size), np.empty(size)
    source[number] = np.append(number, size)[template.source]  # the source -1 of a row becomes the last entry
    device[number], delay[number], duration[number] = template.device, latencies(template, costs), durations(template, costs)
    change = np.zeros(4)
    change[[F, B, I, W]] = 1.0, -1.0, held_after - 1.0, -held_after  # a backward frees as much as its forward has taken
    taken[number] = change[template.kind] / template.chunks
    columns = (device, source, delay, duration, taken, capacity)
    return OrderProblem(template, *(column.tolist() for column in columns))  # type: ignore[arg-type]  # two of ints, four of floats


def _numbers(schedule: Schedule) -> Ints:
    """Return the number of the operation in each row of ``schedule``."""
    plane = np.array([0, 1, 1, 2])[schedule.kind]
    numbers: Ints = (plane * schedule.stages + schedule.stage) * schedule.microbatches + schedule.microbatch
    return numbers
