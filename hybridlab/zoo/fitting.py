"""Whether an order fits to an instance of the zoo: sizes, placement, kinds of operations and memory."""

import numpy as np

from hybridlab.bound.chains import beyond
from hybridlab.checks import counted
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule, W
from hybridlab.simulation import simulate
from hybridlab.zoo.zoo_instance import ZooInstance


def order_of(schedule: Schedule) -> tuple[str, ...]:
    """Return a line of operations for each device. The operations of an overlapped pair stand one after the other.

    >>> order_of(Schedule.parse("0F0 0F1 0B0 0B1"))
    ('0F0 0F1 0B0 0B1',)
    """
    return tuple(" ".join(str(op) for turn in order for op in turn) for order in schedule.turns)


def checked_makespan(schedule: Schedule, instance: ZooInstance) -> int:
    """Return the makespan of a schedule that has the sizes and the placement of an instance, and fits into its memory.

    Raises
    ------
    HybridLabError
        ``does-not-fit``: the sentence says what is wrong.
    """
    fault = _fault(schedule, instance)
    if fault:
        raise HybridLabError(fault, "does-not-fit")
    return round(float(simulate(schedule, instance.costs).makespan))


def _fault(schedule: Schedule, instance: ZooInstance) -> str:
    """Return a sentence about the first thing in which a schedule does not fit to an instance. An empty text if it fits."""
    for name in ("devices", "microbatches", "stages"):
        has, wanted = getattr(schedule, name), getattr(instance, name)
        if has != wanted:
            return f"the order has {counted(has, name[:-1])}, but {instance.name} has {wanted}"
    if schedule.copies > 1:
        return f"the order has {schedule.copies} copies of the weights, but an order of the zoo has one"
    places = [each.device_of for each in instance.templates]
    if schedule.device_of not in places:
        own = schedule.device_of  # compared with the placement that has the most stages in common from the first one on
        stage, nearest = max((next(stage for stage in range(len(own)) if own[stage] != each[stage]), each) for each in places)
        return f"stage {stage} is on device {own[stage]}, but with this placement it is on device {nearest[stage]}"
    if schedule.pairs.size:
        return "the order has overlapped pairs, but in the zoo a device runs one operation at a time"
    if not instance.split and (schedule.kind == W).any():
        row = int(np.flatnonzero(schedule.kind == W)[0])
        return f"{schedule.ops[row]} is a part of a backward, but {instance.name} has full backwards only"
    return "" if instance.memory is None else beyond(schedule, instance.memory)
