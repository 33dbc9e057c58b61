"""Interleaved 1F1B and looped BFS: several model chunks on each device, so that a microbatch goes round the devices in a loop."""

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

    A device numbers its forwards 0, 1, 2, ... group by group, and chunk by chunk within a group. It numbers its backwards in the
    same way from the last chunk to the first. Forwards take even slots and backwards odd slots, two slots apart. The first backward
    comes late enough that device d warms up with 2(K-1-d) + (v-1)K forwards, or with all of them if there are fewer.

    Examples
    --------
    >>> interleaved(1, 2, 2)[0].tolist(), interleaved(1, 2, 2)[1].tolist()
    ([[0, 4], [2, 6]], [[5, 9], [3, 7]])
    """
    device, forward, backward = numbers_on_device(devices, microbatches, chunks)
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

    A chunk starts max(M, K) slots after the chunk before it: the device has then run all of that chunk, and the first microbatch has
    passed through all devices. The backwards mirror the forwards: the last chunk and the last microbatch come first.

    Examples
    --------
    >>> looped_bfs(1, 2, 2)[0].tolist(), looped_bfs(1, 2, 2)[1].tolist()
    ([[0, 1], [2, 3]], [[7, 6], [5, 4]])
    """
    chunk, device, microbatch = np.ogrid[:chunks, :devices, :microbatches]
    forward = device + chunk * max(microbatches, devices) + microbatch
    slots = np.stack([forward, 2 * forward.max() + 1 - forward])
    return slots.reshape(2, chunks * devices, microbatches)


def numbers_on_device(devices: int, microbatches: int, chunks: int) -> tuple[Ints, Ints, Ints]:
    """Return the numbers that interleaved 1F1B gives the operations of each device.

    Returns
    -------
    device : Ints
        Shape (1, devices, 1).
    forward, backward : Ints
        Shape (chunks, 1, microbatches): the number of each forward among the forwards of its device, and of each backward among the
        backwards.

    Examples
    --------
    >>> [numbers.tolist() for numbers in numbers_on_device(1, 2, 2)]
    [[[[0]]], [[[0, 2]], [[1, 3]]], [[[1, 3]], [[0, 2]]]]
    """
    chunk, device, microbatch = np.ogrid[:chunks, :devices, :microbatches]
    group, place = np.divmod(microbatch, devices)
    forward = (group * chunks + chunk) * devices + place
    backward = (group * chunks + chunks - 1 - chunk) * devices + place
    return device, forward, backward
