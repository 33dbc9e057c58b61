"""GPipe: all forwards, then all backwards."""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedules.registry import register


@register(
    "gpipe",
    title="GPipe",
    summary="every device runs all its forwards, then all its backwards",
    source="Huang et al., NeurIPS 2019, arXiv 1811.06965, fig. 2",
)
def gpipe(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of GPipe, shape (2, devices, microbatches).

    The forward of a microbatch starts one slot later on each device than on the device before. The backwards run in the same way from the
    last device to the first.

    Examples
    --------
    >>> gpipe(2, 3, 1)[0].tolist(), gpipe(2, 3, 1)[1].tolist()
    ([[0, 1, 2], [1, 2, 3]], [[5, 6, 7], [4, 5, 6]])
    """
    device, microbatch = np.ogrid[:devices, :microbatches]
    wave = devices - 1 + microbatches  # slots from the first forward to the last
    return np.stack([device + microbatch, wave + devices - 1 - device + microbatch])
