"""Zero-bubble schedules. They split a backward into input gradient and weight gradient, so that weight gradients fill idle time."""

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

    Forwards and input gradients have the order of 1F1B. On device d, the weight gradient of microbatch i comes right after the input
    gradient of microbatch i + d. For the last d microbatches there is no microbatch i + d, and their weight gradients come at the end.

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

    With K devices, device d runs the forwards of 2(K-d)-1 microbatches before its first input gradient, and 2d more forwards before its
    first weight gradient. Therefore every device holds the activations of up to 2K-1 microbatches.

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

    Take K devices and v chunks on each device. A device runs its forwards in the order of interleaved 1F1B, and its input gradients in the
    order of the backwards there. Device d warms up with (v-1)K + K-1-d forwards, because on the last stage the backward of a microbatch
    starts right after its forward. In interleaved 1F1B the warm-up is (v-1)K + 2(K-1-d). With one chunk, the same rule would give ZB-H1.

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

    The order of a device is a text. The letters F, I and W are operations on its first chunk, and f, i and w are operations on its second
    chunk. The first F is for microbatch 0, the second F for microbatch 1, and so on; the same holds for the other letters. With K devices
    and at least 2K-1 microbatches, device d starts in slot d and then has an operation in every slot. So no device waits if all operations
    take equally long. With fewer microbatches, the order is that for 2K-1 microbatches without the operations of the missing microbatches.

    Examples
    --------
    >>> zb_v(1, 1, 2).tolist()
    [[[0], [1]], [[4], [2]], [[5], [3]]]
    """
    most = max(2 * devices - 1, microbatches)  # with fewer microbatches, a count of letters below would be negative
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
        # Positions sorted by letter, in the order F, I, W, f, i, w. Positions with the same letter stay in their order.
        positions = np.argsort(np.frombuffer(order.encode(), dtype=np.uint8), kind="stable").reshape(2, 3, most)
        slots[:, 0, device], slots[:, 1, devices - 1 - device] = device + positions[:, :, :microbatches]
    return slots.reshape(3, 2 * devices, microbatches)


def _split(slots: Ints, late: Ints) -> Ints:
    """Return slots with split backwards. A weight gradient runs right after the input gradient that comes ``late`` input gradients later.

    Backwards are two slots apart on a device. All slots are multiplied by two, so that there is a free slot for each weight gradient.
    """
    forward, input_gradient = 2 * slots
    # input gradients are now four slots apart
    return np.array([forward, input_gradient, input_gradient + 4 * late + 1])
