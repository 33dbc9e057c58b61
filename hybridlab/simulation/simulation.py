"""The functions that compute timelines from schedules and costs. They check their arguments and choose the fastest loop."""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from hybridlab.checks import MOST_CELLS, each_of
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Operations
from hybridlab.simulation.loops import all_settings, one_by_one, row_by_row
from hybridlab.simulation.times import require_schedule_and_costs
from hybridlab.timeline import Timeline, computed_timeline


def simulate(schedule: Operations, costs: Costs, *, messages: str | Sequence[Sequence[str]] = "free") -> Timeline:
    r"""Return the timeline of a schedule: each operation starts as soon as its device is free and its input has arrived.

    An operation starts at the later of two times. The first is the end of the operation before it on its device. The second is the arrival
    of its input: the end of the operation that computes the input, plus the latency of the message if that operation is on another device.
    The two operations of an overlapped pair start together and end together.

    These are the rules for ``messages="free"``: no message waits for another. In real programs, messages keep their order, or block. Then
    each device has a list of actions: it runs operations, sends outputs, and receives inputs.

    With ``messages="ordered"``, messages keep the order of the list, as in the runtime of torch.distributed.pipelining over NCCL:

    - The list is that of :func:`hybridlab.simulation.ordered_actions`. ``_add_send_recv`` of torch.distributed.pipelining gives the same
      order.
    - A message starts when its sender and its receiver have ended all operations and all messages before it in their lists. So a receive
      whose message is late blocks all messages behind it, also those to other devices. The message takes the latency of its link.
    - An operation does not wait for the messages before it in its list. It waits only for its own input.
    - A link, from one device to another, carries one message at a time, first in, first out. NCCL pairs messages in this way: it has no
      tags, so the messages between two ranks are received in the order in which they were sent.

    With lists of actions of your own, messages block, as in :func:`hybridlab.engines.run_actions`, which runs such lists in real processes:
    an operation also waits until all messages before it in its list have ended. In contrast to NCCL, ``run_actions`` pairs messages by tag.

    With both, no operation starts earlier than with free messages.

    Parameters
    ----------
    schedule : Schedule or Replicated
        The order of the operations on each device.
    costs : Costs
        The times of the operations and the latency of the messages. If the costs have several settings, all are simulated in one pass.
    messages : str or list of lists of str
        "free", "ordered", or a list of actions for each device, such as ``["run 0F0", "send 0F0 to 1"]``. In its list, each device runs its
        operations in the order of the schedule. Messages that are joined by "and" in one text start together.

    Returns
    -------
    Timeline
        Start and end of each operation, in the unit of the costs; both arrays have shape (settings..., operations).

    Raises
    ------
    Deadlock
        With the given lists of actions, devices wait for each other for ever. The error names the message at which each device waits.
    HybridLabError
        The costs are for another number of devices or microbatches, the arrays do not fit in memory, or a list of actions has a fault.

    Examples
    --------
    >>> from hybridlab.schedule import Schedule
    >>> pipeline = Schedule.parse("0F0 0B0\n1F0 1B0")
    >>> simulate(pipeline, Costs(forward=1, backward=2, p2p=0.5)).makespan
    7.0
    >>> from hybridlab.schedules import build
    >>> [simulate(build("interleaved", 4, 8), Costs(forward=1, backward=2), messages=each).makespan for each in ("free", "ordered")]
    [28.5, 33.5]
    >>> own = [["run 0F0", "receive 1B0 from 1", "send 0F0 to 1", "run 0B0"], ["receive 0F0 from 0", "run 1F0", "run 1B0", "send 1B0 to 0"]]
    >>> simulate(pipeline, Costs(forward=1, backward=2), messages=own)
    Traceback (most recent call last):
    hybridlab.errors.Deadlock: devices wait for each other for ever: device 0 waits at 'receive 1B0 from 1' until device 1 sends it;
        device 1 waits at 'receive 0F0 from 0' until device 0 sends it
    """
    _require_runs([(schedule, costs)])
    if not (isinstance(messages, str) and messages == "free"):
        from hybridlab.simulation.ordered import run_in_order  # imported here, because it is rarely needed

        return computed_timeline(schedule, *run_in_order(schedule, costs, messages), costs.unit)
    return (_simulate_all_settings([(schedule, costs)]) if costs.batch else [_simulate_one_setting(schedule, costs)])[0]


def simulate_many(runs: Sequence[tuple[Operations, Costs]]) -> list[Timeline]:
    """Return the timelines of several schedules, each with its own costs.

    If the costs have several settings, all schedules are simulated in one pass. For many small schedules this is faster than one call of
    :func:`simulate` for each.

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
    return _simulate_all_settings(runs) if runs and runs[0][1].batch else [_simulate_one_setting(*run) for run in runs]


def _simulate_all_settings(runs: Sequence[tuple[Operations, Costs]]) -> list[Timeline]:
    """Return the timelines for costs with several settings."""
    bounds = [0, *accumulate(schedule.kind.size for schedule, _ in runs)]
    starts, ends = (np.moveaxis(each, 0, -1) for each in all_settings(runs, bounds))
    return [
        computed_timeline(schedule, starts[..., low:high], ends[..., low:high], costs.unit)
        for (schedule, costs), (low, high) in zip(runs, pairwise(bounds), strict=True)
    ]


def _simulate_one_setting(schedule: Operations, costs: Costs) -> Timeline:
    """Return the timeline for one setting of costs."""
    if schedule.pairs.size:  # the other two loops cannot simulate overlapped pairs
        start, end = all_settings([(schedule, costs)], [0])
    else:
        start, end = row_by_row(schedule, costs) if _is_wide(schedule) else one_by_one(schedule, costs)
    return computed_timeline(schedule, start, end, costs.unit)


def _is_wide(schedule: Operations) -> bool:
    """Return whether :func:`row_by_row` is faster than :func:`one_by_one`: slots must have enough operations on average.

    For one slot, the numpy calls of ``row_by_row`` take as long as ``one_by_one`` takes for 14 operations. At least a quarter of the
    devices must have an operation in a slot, because the numpy calls also take time for devices without an operation.
    """
    fewest = max(14, schedule.devices / 4)
    return schedule.devices >= fewest and bool(schedule.kind.size >= fewest * (1 + schedule.steps.max()))


def _require_runs(runs: list[Any]) -> None:
    """Raise if an entry is not a pair of a schedule and costs, if shapes of settings differ, or if the arrays do not fit in memory."""
    for run in runs:
        require_schedule_and_costs(*run if isinstance(run, tuple) else (run,))
    shapes = {costs.batch for _, costs in runs}
    if len(shapes) > 1:
        raise HybridLabError(f"schedules in one pass need costs whose settings have the same shape, not {sorted(shapes)}", "does-not-fit")
    settings = math.prod(next(iter(shapes), ()))
    operations = sum(schedule.kind.size for schedule, _ in runs)
    # Refuse with a clear sentence. Otherwise numpy raises MemoryError, or the machine swaps.
    if operations * settings > MOST_CELLS:
        message = f"{operations:,} operations x {settings:,} settings is more than {MOST_CELLS:,}"
        raise HybridLabError(f"{message} and does not fit in memory; simulate fewer settings at a time", "too-large")
