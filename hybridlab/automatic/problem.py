"""The problem of a search: operations to order, with their times and memory, as plain lists. It computes the times of given orders."""

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
SAME = 1e-9  # tolerance for rounding errors in sums of memory


@dataclass(frozen=True)
class OrderProblem:
    """The operations of one step, the devices that run them, their times, and the memory of each device.

    The number of an operation is line * microbatches + microbatch, its position in a grid of slots. A line is one kind of operation of one
    stage: first the forwards of all stages, then the backwards (or input gradients), then the weight gradients if backwards are split. The
    number after the last operation means "no operation".

    The fields are lists, because a search reads one operation at a time, and lists are then faster than arrays.

    Parameters
    ----------
    template : Schedule
        A schedule with these operations on these devices, in any order.
    device : list of int
        The device of each operation.
    source : list of int
        For each operation, the operation whose output it needs.
    delay : list of float
        For each operation, the latency of the message with this output; 0 without a message.
    duration : list of float
        The time of each operation.
    taken : list of float
        The memory that each operation takes at its start (positive) or frees at its end (negative). One unit is the activations of one
        microbatch on all stages of a device.
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
        """Return the orders of ``schedule`` as numbers of operations. The schedule must have the same stages on the same devices.

        If this problem splits backwards, a full backward becomes an input gradient followed by its weight gradient. An overlapped pair
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

        The rule is the rule of :func:`~hybridlab.simulate`: an operation starts as soon as its device is free and its input has arrived.
        """
        source, delay, duration = self.source, self.delay, self.duration
        start, end = [0.0] * self.size, [-1.0] * self.size + [0.0]  # -1: has not run yet; the last entry means "no operation"
        turn, free = [0] * len(orders), [0.0] * len(orders)
        waiting: dict[int, int] = {}  # operation that has not run -> device that waits for its output
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
        """Return the peak of the memory that the device of ``order`` holds."""
        # operations take memory at their start and free memory at their end, so running sums include the peak
        return max(accumulate(map(self.taken.__getitem__, order)))

    def schedule(self, orders: Sequence[Order], name: str) -> Schedule:
        """Return the orders as a validated schedule."""
        template = self.template
        places = [[(operation, NONE) for operation in order] for order in orders]
        grid = slots_in_order(places, (2 + self.splits, template.stages, template.microbatches))
        return Schedule.from_slots(name, grid, template.device_of)


def problem_of(template: Schedule, costs: Costs, capacity: Floats, held_after: float = 1.0) -> OrderProblem:
    """Return the problem of ordering the operations of ``template``.

    Parameters
    ----------
    template : Schedule
        A schedule with one copy of the weights. Either all backwards are full, or all are split.
    costs : Costs
        The times, one setting.
    capacity : Floats, shape (devices,)
        The largest number of activations that each device may hold.
    held_after : float
        The part of an activation that stays in memory between the input gradient and the weight gradient, from 0 to 1.
    """
    number = _numbers(template)
    size = number.size
    source, device = np.empty(size, dtype=np.intp), np.empty(size, dtype=np.intp)
    delay, duration, taken = np.empty(size), np.empty(size), np.empty(size)
    source[number] = np.append(number, size)[template.source]  # the source -1 (none) reads the appended entry, "no operation"
    device[number], delay[number], duration[number] = template.device, latencies(template, costs), durations(template, costs)
    change = np.zeros(4)
    # memory changes of the kinds of operations; a backward frees the memory of its forward
    change[[F, B, I, W]] = 1.0, -1.0, held_after - 1.0, -held_after
    taken[number] = change[template.kind] / template.chunks
    columns = (device, source, delay, duration, taken, capacity)
    return OrderProblem(template, *(column.tolist() for column in columns))  # type: ignore[arg-type]  # two lists of int, four of float


def _numbers(schedule: Schedule) -> Ints:
    """Return for each row of ``schedule`` the number of its operation."""
    plane = np.array([0, 1, 1, 2])[schedule.kind]
    numbers: Ints = (plane * schedule.stages + schedule.stage) * schedule.microbatches + schedule.microbatch
    return numbers
