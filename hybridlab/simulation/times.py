"""The time that each operation takes, and the latency of the message that it waits for."""

from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import short_repr
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Operations


def require_schedule_and_costs(*given: Any) -> None:
    """Raise an error if this is not a schedule and costs.

    >>> require_schedule_and_costs("1f1b", 2)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: a simulation takes a Schedule and Costs, not '1f1b' and 2
    """
    if len(given) != 2 or not isinstance(given[0], Operations) or not isinstance(given[1], Costs):
        raise HybridLabError(f"a simulation takes a Schedule and Costs, not {' and '.join(map(short_repr, given))}", "wrong-type")


def durations(schedule: Operations, costs: Costs) -> Floats:
    r"""Return how long each operation takes if it runs alone, not in an overlapped pair; shape (settings..., operations).

    Raises
    ------
    HybridLabError
        As in :func:`times_by_place`.

    Examples
    --------
    >>> from hybridlab.schedule import Schedule
    >>> durations(Schedule.parse("0F0 0B0\n1F0 1B0"), Costs(forward=[1, 3], backward=[2, 6]))
    array([1., 2., 3., 6.])
    """
    table, place = times_by_place(schedule, costs)
    return np.moveaxis(table[schedule.kind, place], 0, -1)  # settings come first in every public array


def running_times(schedule: Operations, costs: Costs) -> Floats:
    r"""Return how long each operation runs, shape (settings..., operations). Both operations of an overlapped pair have the pair's time.

    Raises
    ------
    HybridLabError
        As in :func:`times_by_place`.

    Examples
    --------
    >>> from hybridlab.schedule import Schedule
    >>> running_times(Schedule.parse("0F0 (0F1;0B0) 0B1"), Costs(forward=1, backward=2, overlap=0.5))
    array([1. , 2.5, 2.5, 2. ])
    """
    alone, first = durations(schedule, costs), schedule.pairs
    if not first.size:
        return alone
    by_row = np.moveaxis(alone, -1, 0).copy()
    by_row[first] = by_row[first + 1] = costs.together(by_row[first], by_row[first + 1])
    return np.moveaxis(by_row, 0, -1)


def times_by_place(schedule: Operations, costs: Costs) -> tuple[Floats, Ints]:
    """Return the times of F, B, I and W at each place, shape (4, places, settings...), and the place of each operation.

    A place is a device. If the costs have times per stage, a place is a stage. If the times differ from microbatch to microbatch, a place
    is one microbatch on one device or stage.

    Raises
    ------
    HybridLabError
        The arguments are not a schedule and costs, or the costs are for another number of devices, stages or microbatches.
    """
    require_schedule_and_costs(schedule, costs)
    if costs.per == "device":
        return costs.table(schedule.devices, schedule.chunks), schedule.device
    if costs.devices not in (None, schedule.devices) and costs.p2p_between is not None:
        message = f"p2p_between is for {costs.devices} devices but the schedule has {schedule.devices}"
        raise HybridLabError(f"{message}: give one latency for each pair of neighbours, or a matrix", "does-not-fit")
    if costs.microbatches not in (None, schedule.microbatches):
        message = f"the costs are for {costs.microbatches} microbatches but the schedule has {schedule.microbatches}"
        raise HybridLabError(f"{message}: give one time, or one for each of the {schedule.microbatches} microbatches", "does-not-fit")
    if costs.by_stage:
        table, place = costs.table(schedule.stages), schedule.stage
    else:
        table, place = costs.table(schedule.devices, schedule.chunks), schedule.device
    if costs.microbatches is None:
        return table, place
    return table.reshape(4, -1, *costs.batch), place * costs.microbatches + schedule.microbatch


def times_by_use(schedule: Operations, costs: Costs) -> tuple[Floats, Ints]:
    """Return a table of all times that occur, shape (times, settings...), and for each operation the index of its time in the table."""
    table, place = times_by_place(schedule, costs)
    if costs.same_everywhere:
        return table[:, 0], schedule.kind
    return table.reshape(-1, *costs.batch), schedule.kind * table.shape[1] + place


def latencies(schedule: Operations, costs: Costs) -> Floats:
    r"""Return the latency of the message that each operation needs, shape (settings..., operations). 0 if it needs no message.

    Raises
    ------
    HybridLabError
        The arguments are not a schedule and costs, or two devices that exchange messages have no link.

    Examples
    --------
    >>> from hybridlab.schedule import Schedule
    >>> latencies(Schedule.parse("0F0 0B0\n1F0 1B0"), Costs(forward=1, backward=2, p2p=0.5))
    array([0. , 0.5, 0.5, 0. ])
    """
    table, link = latencies_by_link(schedule, costs)
    return np.moveaxis(table[link], 0, -1)


def latencies_by_link(schedule: Operations, costs: Costs) -> tuple[Floats, Ints]:
    """Return the latency of each link that carries messages, shape (1 + links, settings...), and the link of each operation's message.

    Link 0 has latency 0. It stands for operations that need no message.
    """
    require_schedule_and_costs(schedule, costs)
    crosses = schedule.crosses
    if costs.p2p_between is None:
        table = np.zeros((2, *costs.batch))
        table[1] = costs.p2p[..., 0]
        return table, crosses.astype(np.intp)
    ends = schedule.device[schedule.source[crosses]] * schedule.devices + schedule.device[crosses]
    used = np.array(list(dict.fromkeys(ends.tolist())), dtype=np.intp)  # in the order of the rows: an error names the first
    link = np.zeros(schedule.kind.size, dtype=np.intp)
    sorter = np.argsort(used)  # searchsorted needs the sorted links
    link[crosses] = 1 + sorter[np.searchsorted(used, ends, sorter=sorter)]
    late = costs.latency(*np.divmod(used, schedule.devices))
    return np.concatenate([np.zeros((1, *costs.batch)), late]), link
