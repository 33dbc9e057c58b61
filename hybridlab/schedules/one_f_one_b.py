"""1F1B and eager 1F1B. Each device first runs some forwards as a warm-up, and then alternates between one forward and one backward."""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedules.registry import register


@register(
    "1f1b",
    title="1F1B",
    summary="device d of K warms up with K-1-d forwards, then runs one forward and one backward in turn",
    source="Narayanan et al., ICML 2021, arXiv 2006.09503 (PipeDream-Flush); SC 2021, arXiv 2104.04473, fig. 4 (top)",
)
def one_f_one_b(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of 1F1B, shape (2, devices, microbatches).

    A microbatch enters every second slot. On the last device, its backward starts right after its forward. With K devices, device d warms
    up with K-1-d forwards. With fewer microbatches, all forwards of the device are its warm-up; the formula of the slots is the same.

    Examples
    --------
    >>> one_f_one_b(2, 3, 1)[0].tolist(), one_f_one_b(2, 3, 1)[1].tolist()
    ([[0, 2, 4], [1, 3, 5]], [[3, 5, 7], [2, 4, 6]])
    """
    device, microbatch = np.arange(devices)[:, None], np.arange(microbatches)
    return np.array([device + 2 * microbatch, 2 * devices - 1 - device + 2 * microbatch])


@register(
    "eager-1f1b",
    title="Eager 1F1B",
    summary="1F1B with twice the warm-up, 2(K-1-d) forwards on device d, so that messages travel while devices compute",
    source="Zhuang et al., MLSys 2023, arXiv 2211.05322 (eager-1F1B)",
)
def eager_one_f_one_b(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of eager 1F1B, shape (2, devices, microbatches). They are the slots of 1F1B if each message takes one slot.

    With K devices, device d warms up with 2(K-1-d) forwards, or with all its forwards if it has fewer. The formula for interleaved 1F1B
    gives the same warm-up for one chunk.

    Examples
    --------
    >>> eager_one_f_one_b(2, 3, 1)[0].tolist(), eager_one_f_one_b(2, 3, 1)[1].tolist()
    ([[0, 2, 4], [2, 4, 6]], [[5, 7, 9], [3, 5, 7]])
    """
    device, microbatch = np.arange(devices)[:, None], np.arange(microbatches)
    return np.array([2 * (device + microbatch), 4 * devices - 3 - 2 * device + 2 * microbatch])
