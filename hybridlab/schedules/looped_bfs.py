"""Looped breadth-first: every microbatch goes through a chunk before any goes through the next."""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedules.registry import register


@register(
    "looped-bfs",
    title="Looped BFS",
    summary="breadth-first over v chunks a device: all forwards of a chunk, then those of the next; the backwards in the reverse order",
    source="Lamy-Poirier, MLSys 2023, arXiv 2211.05953",
    fewest_chunks=2,
    chunk_step=1,
)
def looped_bfs(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of looped BFS, shape (2, chunks * devices, microbatches).

    A chunk starts as soon as the first microbatch has come round through all devices and the device has run the chunk
    before: max(M, K) slots after it. Backwards run in the opposite order, the last microbatch first.

    >>> looped_bfs(1, 2, 2)[0].tolist(), looped_bfs(1, 2, 2)[1].tolist()
    ([[0, 1], [2, 3]], [[7, 6], [5, 4]])
    """
    chunk, device, microbatch = np.ogrid[:chunks, :devices, :microbatches]
    forward = device + chunk * max(microbatches, devices) + microbatch
    slots = np.stack([forward, 2 * forward.max() + 1 - forward])
    return slots.reshape(2, chunks * devices, microbatches)
