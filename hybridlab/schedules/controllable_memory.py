"""V-Half and V-Min, which need about a half and a third of 1F1B's activations by repeating a building block every six slots.

A pass is a forward, input gradient or weight gradient of a microbatch on a chunk. The paper puts the passes of one microbatch into slots,
and repeats this building block for every microbatch. The memory depends on the time for which the block holds its activations. Some
slots stay empty and can be filled. The rule that fills them is not from the paper but from this library.
"""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedule.grid import needed_lines
from hybridlab.schedules.registry import register

PERIOD = 6  # the slots that a microbatch takes on a device: forward, input gradient and weight gradient of two chunks
F0, F1, I1, I0, W1, W0 = range(6)  # a pass for each kind and chunk; a microbatch runs through the first four in this order
LINE_OF_PASS = [0, 1, 3, 2, 5, 4]  # the index of F0, F1, I1, I0, W1, W0 in the list F0, F1, I0, I1, W0, W1
SOURCE = "Qi et al., NeurIPS 2024, arXiv 2405.15362, sec. 2 and 3; theirs is the repeated block, the filling of slots is ours"


@register(
    "v-half",
    title="V-Half",
    summary="microbatches go down and up the devices: about half of 1F1B's activations; if F = I = W and M >= K, at most half its bubble",
    source=SOURCE,
    placement="folded",
    fewest_chunks=2,
)
def v_half(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of V-Half, shape (3, 2 * devices, microbatches): see :func:`limited_memory_slots` with part 2.

    Take K devices and M microbatches. Microbatches enter as early as the memory allows. For M >= K the peak is the same as in the paper:
    the activations of ceil((K+2)/2) microbatches on a whole device. If F, I and W take equally long, the bubble is at most half of the
    bubble of 1F1B.

    Examples
    --------
    >>> v_half(1, 1, 2).tolist()
    [[[0], [1]], [[3], [2]], [[5], [4]]]
    """
    return limited_memory_slots(devices, microbatches, part=2, ahead=True)


@register(
    "v-min",
    title="V-Min",
    summary="V-Half with a tighter block: about a third of 1F1B's activations; if F = I = W, at most two thirds of its bubble",
    source=SOURCE,
    placement="folded",
    fewest_chunks=2,
)
def v_min(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of V-Min, shape (3, 2 * devices, microbatches): see :func:`limited_memory_slots` with part 3.

    Take K devices and M microbatches. A microbatch enters every six slots. If it entered earlier, it would take memory that the
    microbatches before it need. For M >= K the peak is the same as in the paper: the activations of floor((K+4)/3) microbatches on a
    whole device. If F, I and W take equally long, the bubble is below two thirds of the bubble of 1F1B. For K > 1 it is 4K-5 slots, in
    which the last microbatch goes down and up the devices twice.

    Examples
    --------
    >>> v_min(1, 1, 2).tolist()
    [[[0], [1]], [[3], [2]], [[5], [4]]]
    """
    return limited_memory_slots(devices, microbatches, part=3, ahead=False)


def limited_memory_slots(devices: int, microbatches: int, part: int, ahead: bool) -> Ints:
    """Return slots that need about 1/part of the activations of 1F1B.

    In each slot a device runs one operation whose inputs exist. It takes the operation that comes first in the repeated
    :func:`building_block`. It runs a weight gradient only if nothing else can run. A forward needs free memory. A device holds at most
    2 + 2 * floor((K+1) / part) activations, where an activation belongs to one chunk. On device d, 1 + floor(d / part) of them are
    reserved for chunk 1, so that the oldest microbatch can always go on.

    If every pass has advanced by exactly one microbatch in six slots, this pattern repeats as long as microbatches enter. Such
    microbatches are therefore copied, each one six slots after the one before. So the time for planning hardly depends on M.

    Parameters
    ----------
    devices, microbatches : int
        The numbers of devices (K) and of microbatches (M).
    part : int
        2 or 3.
    ahead : bool
        Whether a microbatch may enter as soon as there is memory for its first forward. If not, microbatch i enters in slot 6i at the
        earliest.

    Returns
    -------
    Ints
        Shape (3, 2 * devices, microbatches).
    """
    priority = building_block(devices, part)
    horizon = int(priority.max()) + PERIOD * microbatches  # a slot that is later than every slot of the repeated blocks
    # Weight gradients come after everything else, in the order of their input gradients.
    priority = np.concatenate([priority, horizon + priority[[I1, I0]]])
    capacity = 2 + 2 * ((devices + 1) // part)
    capacity_0 = capacity - 1 - np.arange(devices) // part
    needs = _needed_passes(devices)
    done = np.zeros((6, devices), dtype=np.intp)  # microbatches that each pass has already processed
    slots = np.zeros((6, devices, microbatches), dtype=np.intp)
    planned, now, last_entry, done_at_entry = microbatches, 0, 0, done.copy()
    while done.min() < planned:
        may_enter = planned if ahead else min(planned, now // PERIOD + 1)
        # A pass can run if it has processed fewer microbatches than the pass that it needs. The last entry stands for no pass.
        ready = done < np.append(done, may_enter)[needs]
        held_0, held_1 = done[F0] - done[W0], done[F1] - done[W1]  # a weight gradient is the last reader of an activation
        ready[F0] &= held_0 < capacity_0
        ready[:2] &= held_0 + held_1 < capacity
        rank = np.where(ready, priority + PERIOD * done, 3 * horizon)  # larger than every priority
        device = np.flatnonzero(ready.any(axis=0))
        chosen = rank.argmin(axis=0)[device]
        slots[chosen, device, done[chosen, device]] = now
        done[chosen, device] += 1
        now += 1
        if planned == microbatches and done[F0, 0] > done_at_entry[F0, 0]:
            if now - last_entry == PERIOD and (done - done_at_entry == 1).all():
                planned = int(done[F0, 0])  # every pass advanced by one microbatch in six slots, so copy the rest
            last_entry, done_at_entry = now, done.copy()
    # The copies come after the microbatches that ``done_at_entry`` counts. The later ones of the plan start one period later for each copy.
    copies = np.clip(np.arange(microbatches) - done_at_entry[..., None] + 1, 0, microbatches - planned)
    slots = np.take_along_axis(slots, np.arange(microbatches) - copies, axis=2) + PERIOD * copies
    return np.stack([np.concatenate([slots[down], slots[up, ::-1]]) for down, up in ((F0, F1), (I0, I1), (W0, W1))])


def building_block(devices: int, part: int) -> Ints:
    """Return the slots of one microbatch's passes in the building block, shape (4, devices): F0, F1, I1, I0.

    From each device to the next, F0 and I1 start 6/part - 1 slots later. F1 and I0 run in the other direction, and from device to device
    they start 1 slot later. These distances are from the paper. I1 begins one slot late. From one device to the next, chunk 0 holds its
    activation for 6/part slots less and chunk 1 for 6/part slots more, so that all devices need the same memory. If two passes fall on one
    slot, the pass that the microbatch reaches first goes first.

    Examples
    --------
    >>> building_block(3, part=2).tolist()
    [[0, 2, 4], [7, 6, 5], [9, 11, 13], [16, 15, 14]]
    """
    device = np.arange(devices)
    down, up = (PERIOD // part - 1) * device, devices - 1 - device
    forward_up = down[-1] + 1 + up
    gradient_down = forward_up[0] + 2 + down
    return np.stack([down, forward_up, gradient_down, gradient_down[-1] + 1 + up])


def _needed_passes(devices: int) -> Ints:
    """Return, for each pass on each device, the pass that it needs, shape (6, devices).

    A pass is given as an index into the flattened array of 6 x devices passes. The number 6 x devices means that it needs none.
    """
    device = np.arange(devices)
    line = np.concatenate([plane * 2 * devices + np.stack([device, 2 * devices - 1 - device]) for plane in range(3)])
    line = line[LINE_OF_PASS]
    pass_of = np.full(6 * devices + 1, 6 * devices)
    pass_of[line.ravel()] = np.arange(6 * devices)
    needs: Ints = pass_of[needed_lines(3, 2 * devices, 2 * devices)[line]]
    return needs
