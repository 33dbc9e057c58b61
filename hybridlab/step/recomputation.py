"""What devices hold where forwards are run again within the backwards instead of being kept."""

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr, times
from hybridlab.errors import HybridLabError
from hybridlab.schedule import B, F, I, Schedule, W


def recomputed_peak(schedule: Schedule, kept: float) -> Floats:
    """Return the most activations that each device holds at once with recomputation, in microbatches of the whole device.

    After its forward a microbatch leaves ``kept`` of its activation, from 0 to 1: the input of the stage (Huang et al.,
    arXiv 1811.06965, sec. 2.3). The backward, or the input gradient, computes the rest again, and the whole is held until
    the full backward or the weight gradient has ended. With ``kept`` 1 nothing is thrown away: these are the peak activations of
    a timeline. The order alone decides; shape (devices,). Raises :class:`HybridLabError` for a ``kept`` outside 0 to 1.

    >>> from hybridlab import build
    >>> recomputed_peak(build("gpipe", devices=2, microbatches=11), kept=0.1).round(3).tolist()
    [2.0, 2.0]
    """
    if not isinstance(schedule, Schedule):
        raise HybridLabError(f"a schedule is what build() returns, not {short_repr(schedule)}")
    share = times(kept, "kept")
    if share.ndim or share > 1:
        raise HybridLabError(f"kept is the part of an activation that stays, from 0 to 1, not {short_repr(kept)}")
    kind = schedule.kind
    ends = (kind == B) | (kind == W)
    freed = np.cumsum(ends) - ends  # before each operation; every device frees all it held, so one count serves them all
    alive, whole = np.cumsum(kind == F) - freed, np.cumsum((kind == B) | (kind == I)) - freed
    held = share * alive + (1 - share) * whole
    peak: Floats = np.maximum.reduceat(held, schedule.first) / schedule.chunks
    return peak
