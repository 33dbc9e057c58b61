"""Interleaved 1F1B and looped BFS. A device holds several model chunks, so a microbatch passes through all devices several times."""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedules.registry import register


@register(
    "interleaved",
    title="Interleaved 1F1B",
    summary="1F1B over v chunks a device: groups of K microbatches go through chunk after chunk",
    source="Narayanan et al., SC 2021, arXiv 2104.04473, fig. 4 (bottom) and sec. 2.2",
    fewest_chunks=2,
    chunk_step=1,
    whole_groups=True,
)
def interleaved(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of interleaved 1F1B, shape (2, chunks * devices, microbatches).

    K is the number of devices and v the number of chunks on a device. A group has K microbatches. A device runs its forwards group by
    group, and chunk by chunk within a group. It runs its backwards group by group too, but from the last chunk to the first. On each device
    the forwards are two slots apart, and a backward takes the slot between two forwards. Device d warms up with 2(K-1-d) + (v-1)K forwards
    before its first backward, or with all its forwards if it has fewer.

    Examples
    --------
    >>> interleaved(1, 2, 2)[0].tolist(), interleaved(1, 2, 2)[1].tolist()
    ([[0, 4], [2, 6]], [[5, 9], [3, 7]])
    """
    device, forward, backward = numbers_on_device(devices, microbatches, chunks)
    # Device 0 runs 2(K-1) + (v-1)K + 1 forwards, two slots apart. Its first backward comes one slot after the last of these forwards.
    gap = 4 * (devices - 1) + 2 * (chunks - 1) * devices + 1
    slots = np.stack([2 * (device + forward), gap - 2 * device + 2 * backward])
    return slots.reshape(2, chunks * devices, microbatches)


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

    With K devices and M microbatches, a chunk starts max(M, K) slots after the chunk before it. By then the device has run all forwards of
    the chunk before, and the first microbatch has passed through all devices. The backwards run in the reverse order of the forwards: they
    begin with the last microbatch on the last chunk.

    Examples
    --------
    >>> looped_bfs(1, 2, 2)[0].tolist(), looped_bfs(1, 2, 2)[1].tolist()
    ([[0, 1], [2, 3]], [[7, 6], [5, 4]])
    """
    chunk, device, microbatch = np.ogrid[:chunks, :devices, :microbatches]
    forward = device + chunk * max(microbatches, devices) + microbatch
    # The backwards run in the reverse order of the forwards. The first backward takes the slot after the last forward.
    slots = np.stack([forward, 2 * forward.max() + 1 - forward])
    return slots.reshape(2, chunks * devices, microbatches)


def numbers_on_device(devices: int, microbatches: int, chunks: int) -> tuple[Ints, Ints, Ints]:
    """Return the order of the operations of each device in interleaved 1F1B, as numbers from 0.

    Returns
    -------
    device : Ints
        Shape (1, devices, 1).
    forward, backward : Ints
        The position of each forward among the forwards of its device, and of each backward among the backwards. Shape
        (chunks, 1, microbatches), the same for all devices.

    Examples
    --------
    >>> [numbers.tolist() for numbers in numbers_on_device(1, 2, 2)]
    [[[[0]]], [[[0, 2]], [[1, 3]]], [[[1, 3]], [[0, 2]]]]
    """
    chunk, device, microbatch = np.arange(chunks)[:, None, None], np.arange(devices)[None, :, None], np.arange(microbatches)
    group, place = np.divmod(microbatch, devices)
    forward = (group * chunks + chunk) * devices + place
    backward = (group * chunks + chunks - 1 - chunk) * devices + place
    return device, forward, backward
