"""Zero-bubble schedules: the backward split into input gradient and weight gradient."""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedules.interleaved import counts
from hybridlab.schedules.one_f_one_b import eager_one_f_one_b, one_f_one_b
from hybridlab.schedules.registry import register


@register(
    "zb-h1",
    title="ZB-H1",
    summary="1F1B with the backward split: device d runs each weight gradient d microbatches late, the rest at the end",
    source="Qi et al., ICLR 2024, arXiv 2401.10241, fig. 3",
)
def zb_h1(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of ZB-H1, shape (3, devices, microbatches).

    Forwards and input gradients stand as in 1F1B. On device d the weight gradient of microbatch i comes right
    after the input gradient of microbatch i + d, the slot where that one would stand if there were one: so the
    last d come at the end.

    >>> zb_h1(2, 2, 1)[1].tolist(), zb_h1(2, 2, 1)[2].tolist()
    ([[6, 10], [4, 8]], [[7, 11], [9, 13]])
    """
    return _split(one_f_one_b(devices, microbatches, 1), late=np.arange(devices)[:, None])


@register(
    "zb-h2",
    title="ZB-H2",
    summary="eager 1F1B with the backward split: device d runs each weight gradient 2d microbatches late, the rest at the end",
    source="Qi et al., ICLR 2024, arXiv 2401.10241, fig. 3",
)
def zb_h2(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of ZB-H2, shape (3, devices, microbatches).

    Device d holds 2(K-d)-1 microbatches before its first input gradient, and 2d more before its first weight gradient:
    2K-1 on every device.

    >>> zb_h2(2, 2, 1)[1].tolist(), zb_h2(2, 2, 1)[2].tolist()
    ([[10, 14], [6, 10]], [[11, 15], [15, 19]])
    """
    return _split(eager_one_f_one_b(devices, microbatches, 1), late=2 * np.arange(devices)[:, None])


@register(
    "interleaved-zb",
    title="Interleaved zero bubble",
    summary="ZB-H1 over v chunks a device: groups of K microbatches go through chunk after chunk, weight gradients run d operations late",
    source="Qi et al., ICLR 2024, arXiv 2401.10241, applied to interleaved 1F1B; the order of torch.distributed.pipelining",
    fewest_chunks=2,
    chunk_step=1,
    whole_groups=True,
)
def interleaved_zb(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of interleaved zero bubble, shape (3, chunks * devices, microbatches).

    Operations are counted as in interleaved 1F1B, but half its 2(K-1-d) forwards are enough besides those of the first
    v-1 chunks: each microbatch comes straight back from the last device. With one chunk it would be ZB-H1.

    >>> interleaved_zb(1, 1, 2).tolist()
    [[[0], [4]], [[10], [6]], [[11], [7]]]
    """
    device, forward, backward = counts(devices, microbatches, chunks)
    slots = np.stack([device + 2 * forward, 2 * chunks * devices - 1 - device + 2 * backward])
    return _split(slots, late=device).reshape(3, chunks * devices, microbatches)


def _split(slots: Ints, late: Ints) -> Ints:
    """Return the slots with a weight gradient for each backward, right after the input gradient ``late`` places later.

    Backwards are two slots apart on a device. All slots are doubled to make room.
    """
    forward, input_gradient = 2 * slots
    return np.stack([forward, input_gradient, input_gradient + 4 * late + 1])
