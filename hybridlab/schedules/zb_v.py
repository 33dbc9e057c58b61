"""ZB-V: zero bubble over two chunks folded into a V, with the memory of 1F1B."""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedules.registry import register


@register(
    "zb-v",
    title="ZB-V",
    summary="two chunks a device folded into a V, the backward split: if F = I = W and M >= 2K-1, no device waits once it has begun",
    source="Qi et al., ICLR 2024, arXiv 2401.10241, sec. 6; the order of torch.distributed.pipelining",
    placement="folded",
    fewest_chunks=2,
)
def zb_v(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of ZB-V, shape (3, 2 * devices, microbatches).

    In the order of a device F, I, W are operations of its first chunk and f, i, w of its second; those of one kind take the
    microbatches in turn. Device d starts in slot d and from then on takes every slot: so no device ever waits if all
    operations take equally long. Fewer than 2K-1 microbatches run in the order of 2K-1, the others left out.

    >>> zb_v(1, 1, 2).tolist()
    [[[0], [1]], [[4], [2]], [[5], [3]]]
    """
    most = max(2 * devices - 1, microbatches)
    slots = np.empty((3, 2, devices, microbatches), dtype=np.intp)
    for device in range(devices):
        after = devices - 1 - device
        order = (
            "F" * (2 * after + 1)
            + "fF" * device
            + "fiw" * (after + 1)
            + "FIWfiw" * (most - devices - after)
            + "IWfiw" * after
            + "Ii" * device
            + "IW" * (after + 1)
            + "w" * device
            + "W" * device
        )
        # Sorted by letter, F I W f i w, the places of each kind stand together.
        places = np.argsort(np.frombuffer(order.encode(), dtype=np.uint8), kind="stable").reshape(2, 3, most)
        slots[:, 0, device], slots[:, 1, devices - 1 - device] = device + places[:, :, :microbatches]
    return slots.reshape(3, 2 * devices, microbatches)
