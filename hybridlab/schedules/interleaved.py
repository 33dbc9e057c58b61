"""Interleaved 1F1B: several model chunks a device, microbatches in groups of K."""

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

    A device counts its forwards 0, 1, 2, ... group by group, chunk by chunk within a group, and its backwards
    likewise from the last chunk. Forwards take even slots and backwards odd ones, each two slots after the one
    before. The gap between them gives device d a warm-up of 2(K-1-d) + (v-1)K forwards, or all of them if there
    are fewer.

    >>> interleaved(1, 2, 2)[0].tolist(), interleaved(1, 2, 2)[1].tolist()
    ([[0, 4], [2, 6]], [[5, 9], [3, 7]])
    """
    device, forward, backward = counts(devices, microbatches, chunks)
    gap = 4 * (devices - 1) + 2 * (chunks - 1) * devices + 1
    slots = np.stack([2 * (device + forward), gap - 2 * device + 2 * backward])
    return slots.reshape(2, chunks * devices, microbatches)


def counts(devices: int, microbatches: int, chunks: int) -> tuple[Ints, Ints, Ints]:
    """Return every device, and which of its forwards and of its backwards each operation is, by chunk and microbatch.

    >>> [count.tolist() for count in counts(1, 2, 2)]
    [[[[0]]], [[[0, 2]], [[1, 3]]], [[[1, 3]], [[0, 2]]]]
    """
    chunk, device, microbatch = np.ogrid[:chunks, :devices, :microbatches]
    group, place = np.divmod(microbatch, devices)
    forward = (group * chunks + chunk) * devices + place
    backward = (group * chunks + chunks - 1 - chunk) * devices + place
    return device, forward, backward
