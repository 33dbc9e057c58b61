"""Simulation with a time for each single operation. In costs, all operations of a kind on a device or a stage have one time."""

import math
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import MOST_CELLS, short_repr, times, unit_of_time
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Operations
from hybridlab.simulation.loops import Lookup, all_lookups
from hybridlab.timeline import Timeline, computed_timeline


def simulate_rows(schedule: Operations, durations: Any, latencies: Any = 0.0, unit: str | None = "ms") -> Timeline:
    r"""Return the timeline of a schedule from one duration for each operation and one latency for each message.

    The rules are those of :func:`~hybridlab.simulate`. Take some costs. If ``durations`` are the result of
    :func:`~hybridlab.simulation.running_times` and ``latencies`` the result of :func:`~hybridlab.simulation.latencies` for these costs, the
    timeline equals the timeline of ``simulate`` bit by bit.

    Parameters
    ----------
    schedule : Schedule or Replicated
        The order of the operations on each device.
    durations : array_like, shape (settings..., operations)
        How long each operation runs. Both operations of an overlapped pair have the same duration, that of the pair.
    latencies : array_like, shape (settings..., operations) or ()
        The latency of the message that each operation waits for, or 0 if the operation waits for no message. A single number is the
        latency of all messages.
    unit : str or None
        The unit of all times.

    Returns
    -------
    Timeline
        Start and end of each operation; both arrays have shape (settings..., operations).

    Raises
    ------
    HybridLabError
        A time is not a finite number of zero or more, the arrays have other shapes, the operations of a pair have different durations
        (``unequal-pair``), or an operation that waits for no message has a latency (``no-message``).

    Examples
    --------
    >>> from hybridlab.schedule import Schedule
    >>> pipeline = Schedule.parse("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")
    >>> simulate_rows(pipeline, durations=[1, 1, 2, 2, 1, 2, 5, 2], latencies=0.5).end
    array([ 1. ,  2. ,  7. , 14. ,  2.5,  4.5,  9.5, 11.5])
    """
    if not isinstance(schedule, Operations):
        raise HybridLabError(f"simulate_rows takes a Schedule, not {short_repr(schedule)}", "not-a-schedule")
    takes, late = times(durations, "durations"), times(latencies, "latencies")
    unit = unit_of_time(unit)
    if late.ndim == 0:  # one latency for all messages; an operation that waits for no message gets 0
        late = np.where(schedule.crosses, late, 0.0)
    for name, array in (("durations", takes), ("latencies", late)):
        if array.shape[-1:] != schedule.kind.shape:
            wanted = f"{schedule.kind.size} values on the last axis, one for each operation"
            raise HybridLabError(f"{name} must have {wanted}, not shape {array.shape}", "wrong-shape")
    try:
        shape = np.broadcast_shapes(takes.shape, late.shape)
    except ValueError:
        raise HybridLabError(
            f"durations and latencies must have the same settings, not {takes.shape} and {late.shape}", "does-not-fit"
        ) from None
    if math.prod(shape) > MOST_CELLS:
        raise HybridLabError(f"{math.prod(shape):,} times are more than {MOST_CELLS:,}: simulate fewer settings at a time", "too-large")
    _require_pairs_and_messages(schedule, takes, late)
    rows: Ints = np.arange(schedule.kind.size)
    # each operation has its own row in the tables, shape (operations, settings...)
    tables: list[Floats] = [np.moveaxis(np.broadcast_to(each, shape), -1, 0) for each in (takes, late)]
    starts, ends = (np.moveaxis(each, 0, -1) for each in all_lookups([Lookup(schedule, tables[0], rows, tables[1], rows)], [0]))
    return computed_timeline(schedule, starts, ends, unit)


def _require_pairs_and_messages(schedule: Operations, durations: Floats, latencies: Floats) -> None:
    """Raise if the two operations of a pair have different durations, or if an operation without a message has a latency."""
    for first in schedule.pairs.tolist():
        if (durations[..., first] != durations[..., first + 1]).any():
            pair = f"{schedule.ops[first]} and {schedule.ops[first + 1]}"
            raise HybridLabError(f"{pair} are an overlapped pair: give both the duration of the pair", "unequal-pair")
    without = np.flatnonzero(~schedule.crosses & (latencies > 0).reshape(-1, schedule.kind.size).any(axis=0))
    if without.size:
        op = schedule.ops[int(without[0])]
        raise HybridLabError(f"{op} waits for no message from another device, so its latency must be 0", "no-message")
