"""Peak activations with recomputation: the backward runs the forward again, so the device stores less between forward and backward."""

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr, times
from hybridlab.errors import HybridLabError
from hybridlab.schedule import B, F, I, Schedule, W


def recomputed_peak(schedule: Schedule, kept: float) -> Floats:
    """Return the largest number of activations that each device holds at the same time, with recomputation.

    The unit is the activation of one microbatch on a whole device. After a forward, only the share ``kept`` of its activation stays in
    memory, for example the input of the stage. The full backward or the input gradient computes the rest again. From then on, the
    device holds the whole activation until the full backward or the weight gradient has ended. The peak depends on the order of the
    operations, but not on their times.

    Parameters
    ----------
    schedule : Schedule
        The schedule of one pipeline.
    kept : float
        The share of an activation that stays in memory after the forward, from 0 to 1. With 1, nothing is recomputed, and the result
        equals ``Timeline.peak_activations``.

    Returns
    -------
    array of float, shape (devices,)

    Raises
    ------
    HybridLabError
        ``schedule`` is not a Schedule, or ``kept`` is not a number from 0 to 1.

    References
    ----------
    Huang et al., arXiv 1811.06965, sec. 2.3.

    Examples
    --------
    >>> from hybridlab import build
    >>> recomputed_peak(build("gpipe", devices=2, microbatches=11), kept=0.1).round(3).tolist()
    [2.0, 2.0]
    """
    if not isinstance(schedule, Schedule):
        raise HybridLabError(f"schedule must be a Schedule, such as build('1f1b', 2, 4), not {short_repr(schedule)}", "not-a-schedule")
    share = times(kept, "kept")
    if share.ndim or share > 1:
        raise HybridLabError(f"kept must be a share of the activation, from 0 to 1, not {short_repr(kept)}", "out-of-range")
    kind = schedule.kind
    ends = (kind == B) | (kind == W)
    # The running sums go through the rows of all devices. Each device frees all its activations, so a sum is 0 again where the rows of the
    # next device begin.
    freed = np.cumsum(ends) - ends
    alive, whole = np.cumsum(kind == F) - freed, np.cumsum((kind == B) | (kind == I)) - freed
    # ``share`` of an activation is in memory from the forward on, the rest from the backward on
    activations = share * alive + (1 - share) * whole
    peak: Floats = np.maximum.reduceat(activations, schedule.first) / schedule.chunks
    return peak
