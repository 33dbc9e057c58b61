"""Zero-bubble schedules: backwards are split into input gradient and weight gradient, so that weight gradients fill idle time."""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedules.looped import numbers_on_device
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

    Forwards and input gradients have the order of 1F1B. On device d the weight gradient of microbatch i comes right after the slot
    of the input gradient of microbatch i + d. The last d microbatches have no such input gradient; their weight gradients come at
    the end.

    Examples
    --------
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

    Device d holds 2(K-d)-1 microbatches before its first input gradient, and 2d more before its first weight gradient. That makes
    2K-1 on every device.

    Examples
    --------
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

    Operations are numbered as in interleaved 1F1B. The warm-up has the forwards of the first v-1 chunks and K-1-d forwards more,
    half as many as in interleaved 1F1B, because the backward of a microbatch starts right after its forward on the last stage. With
    one chunk it would be ZB-H1.

    Examples
    --------
    >>> interleaved_zb(1, 1, 2).tolist()
    [[[0], [4]], [[10], [6]], [[11], [7]]]
    """
    device, forward, backward = numbers_on_device(devices, microbatches, chunks)
    slots = np.stack([device + 2 * forward, 2 * chunks * devices - 1 - device + 2 * backward])
    return _split(slots, late=device).reshape(3, chunks * devices, microbatches)


@register(
    "zb-v",
    title="ZB-V",
    summary="two chunks a device folded into a V, the backward split: if F = I = W and M >= 2K-1, no device waits once it has begun",
    source="Qi et al., ICLR 2024, arXiv 2401.10241, sec. 6; the order of torch.distributed.pipelining",
    placement="folded",
    fewest_chunks=2,
)
def zb_v(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of ZB-V, shape (3, 2 * devices, microbatches): zero bubble with the memory of 1F1B.

    The order of a device is written with the letters F, I, W for its first chunk and f, i, w for its second. The operations of one
    letter take the microbatches in turn. Device d starts in slot d and from then on has an operation in every slot, so that no device
    waits if all operations take equally long. Fewer than 2K-1 microbatches run in the order of 2K-1 microbatches without the missing
    ones.

    Examples
    --------
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
        # Sorting by letter, F I W f i w, brings the positions of each letter together.
        positions = np.argsort(np.frombuffer(order.encode(), dtype=np.uint8), kind="stable").reshape(2, 3, most)
        slots[:, 0, device], slots[:, 1, devices - 1 - device] = device + positions[:, :, :microbatches]
    return slots.reshape(3, 2 * devices, microbatches)


def _split(slots: Ints, late: Ints) -> Ints:
    """Return slots in which backwards are split: the weight gradient comes right after the input gradient ``late`` places later.

    Backwards are two slots apart on a device. All slots are doubled to make place for the weight gradients.
    """
    forward, input_gradient = 2 * slots
    return np.stack([forward, input_gradient, input_gradient + 4 * late + 1])
