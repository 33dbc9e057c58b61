"""Chimera: two pipelines over the same devices, one from either end, each in the gaps of the other."""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedules.registry import register


@register(
    "chimera",
    title="Chimera",
    summary="two copies of the weights: of every K microbatches half enter at each end, and each half runs in the other's gaps",
    source="Li and Hoefler, SC 2021, arXiv 2107.06925, fig. 3 and Table 2; groups K slots apart, where sec. 3.5 joins them 2K apart",
    whole_groups=True,
    bidirectional=True,
)
def chimera(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of Chimera, shape (2, 2 * devices, microbatches), the stages of one copy after those of the other.

    Of each group of K microbatches the first half runs down the devices and the second half up. On device d of K a downward
    forward takes every second slot from d on and an upward one from K-1-d on: for even K one is even and the other
    odd. A microbatch comes straight back from its last device. A group begins K slots after the one before, and where two
    operations meet in a slot the backward, which is of the older group, comes first. In the paper's sec. 3.5 groups begin 2K slots
    apart, where none meet; joined like that, they would wait for each other wherever backwards and forwards take unequal times.

    >>> chimera(2, 2, 1)[0].tolist(), chimera(2, 2, 1)[1].tolist()
    ([[1, -1], [3, -1], [-1, 1], [-1, 3]], [[6, -1], [4, -1], [-1, 6], [-1, 4]])
    """
    stage, microbatch = np.ogrid[:devices, :microbatches]
    group, place = np.divmod(microbatch, devices)
    enters = devices * group + 2 * (place % (devices // 2))
    forward, backward = 2 * (enters + stage) + 1, 2 * (enters + 2 * devices - 1 - stage)
    copy = place // (devices // 2)
    return np.stack([[np.where(copy == mine, slots, -1) for mine in range(2)] for slots in (forward, backward)]).reshape(
        2, 2 * devices, microbatches
    )
