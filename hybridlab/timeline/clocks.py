"""The clocks of ranks in trace files. Clocks that disagree are shifted, so that no message arrives before it is sent."""

from collections.abc import Sequence

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Operations


def shifts_of(schedule: Operations, start: Floats, end: Floats, labels: Sequence[str], rounding: float, shift: bool) -> Floats:
    r"""Return the time to add to all times of each rank, in microseconds, shape (devices,). Zeros if the clocks agree.

    Clocks disagree if an operation starts before the operation whose output it needs has ended. Two neighbours send messages in both
    directions. If the clock of one rank is too early, the messages to this rank seem too fast, and the messages from it seem too slow. So
    the clock is shifted until the fastest messages in both directions take the same time.

    Parameters
    ----------
    schedule : Operations
        The operations of all ranks.
    start, end : Floats
        The times of the operations in microseconds, each on the clock of its rank.
    labels : sequence of str
        The names of the ranks, for the error.
    rounding : float
        An operation may start this many microseconds before its input has ended, because times in files are rounded.
    shift : bool
        Whether clocks may be shifted.

    Raises
    ------
    HybridLabError
        ``clocks-disagree``: the clocks disagree and ``shift`` is false, or after every shift some message still arrives before it is sent.

    Examples
    --------
    >>> from hybridlab.schedule import Schedule
    >>> pipeline = Schedule.parse("0F0 0B0\n1F0 1B0")
    >>> start, end = np.array([0.0, 50, 5, 15]), np.array([10.0, 70, 15, 35])  # device 1 is 10 too early
    >>> shifts_of(pipeline, start, end, ["rank 0", "rank 1"], 1.0, shift=True)
    array([ 0., 10.])
    """
    none = np.zeros(schedule.devices)
    rows = np.flatnonzero(schedule.crosses)
    # Clocks that agree are not shifted, even if the messages in the two directions take different times.
    if not rows.size or _slack(schedule, start, end, none)[rows].min() >= -rounding:
        return none
    by = _shifts(schedule, start, end) if shift else none
    slack = _slack(schedule, start, end, by)[rows]
    if slack.min() >= -rounding:
        return by
    row = rows[slack.argmin()]
    source = schedule.source[row]
    op, needed = schedule.ops[row], schedule.ops[source]
    where, there = labels[schedule.device[row]], labels[schedule.device[source]]
    message = f"{op} on {where} starts {-slack.min() / 1000:.3f} ms before its input {needed} on {there} ends"
    advice = "the clocks disagree, and no shift helps" if shift else "the clocks disagree: shift_clocks=True shifts them"
    raise HybridLabError(f"{message}: {advice}", "clocks-disagree")


def _slack(schedule: Operations, start: Floats, end: Floats, by: Floats) -> Floats:
    """Return the time from the end of each operation's source to the start of the operation, shape (operations,)."""
    slack: Floats = (start + by[schedule.device]) - (end + by[schedule.device])[schedule.source]
    return slack


def _shifts(schedule: Operations, start: Floats, end: Floats) -> Floats:
    """Return the shift of each device, shape (devices,).

    The shift of device 0 is 0. The shift of any other device is computed from that of a device with which it exchanges messages both ways.
    """
    devices = schedule.devices
    fastest = np.full((devices, devices), np.inf)  # time of the fastest message, [sender, receiver]
    rows = np.flatnonzero(schedule.crosses)
    slack = _slack(schedule, start, end, np.zeros(devices))[rows]
    np.minimum.at(fastest, (schedule.device[schedule.source[rows]], schedule.device[rows]), slack)
    by, reached = np.zeros(devices), [0]
    for here in reached:  # the list grows while the loop runs
        for other in np.flatnonzero(np.isfinite(fastest[here] + fastest[:, here])).tolist():
            if other not in reached:
                # shift of ``here`` + s, where s solves fastest[here, other] + s = fastest[other, here] - s
                by[other] = by[here] + (fastest[other, here] - fastest[here, other]) / 2
                reached.append(other)
    return by
