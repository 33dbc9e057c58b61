"""Chimera: two pipelines over the same devices, one from either end, each in the gaps of the other."""

import numpy as np

from hybridlab.rows import Ints
from hybridlab.schedules.registry import register


@register(
    "chimera",
    title="Chimera",
    summary="two copies of the weights: of every K microbatches half enter at each end, and each half runs in the other's gaps",
    source="Li and Hoefler, SC 2021, arXiv 2107.06925, fig. 3 and sec. 3.5 (direct concatenation)",
    whole_groups=True,
    mirrored=True,
)
def chimera(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of Chimera, shape (2, 2 * devices, microbatches), the stages of one copy after those of the other.

    Of each group of K microbatches the first half runs down the devices and the second half up. On device d of K a downward
    forward takes every second slot from d on and an upward one from K-1-d on: for even K one is even and the other
    odd. A microbatch comes straight back from its last device. A group begins 2K slots after the one before,
    in the gaps that it leaves.

    >>> chimera(2, 2, 1)[0].tolist(), chimera(2, 2, 1)[1].tolist()
    ([[0, -1], [1, -1], [-1, 0], [-1, 1]], [[3, -1], [2, -1], [-1, 3], [-1, 2]])
    """
    stage, microbatch = np.ogrid[:devices, :microbatches]
    group, place = np.divmod(microbatch, devices)
    enters = 2 * devices * group + 2 * (place % (devices // 2))
    forward, backward = enters + stage, enters + 2 * devices - 1 - stage
    copy = place // (devices // 2)
    return np.stack([[np.where(copy == mine, slots, -1) for mine in range(2)] for slots in (forward, backward)]).reshape(
        2, 2 * devices, microbatches
    )
