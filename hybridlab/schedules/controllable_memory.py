"""V-Half and V-Min. V-Half needs about half of the activations of 1F1B, and V-Min about a third.

A pass is a forward, an input gradient or a weight gradient of a microbatch on a chunk. The slots of all passes of one microbatch are a
building block. The paper repeats the block for every microbatch, every six slots. The peak memory depends on how long a block holds its
activations. Some slots stay empty. The building block is from the paper; the rule that fills the empty slots is from this library.
"""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedule.grid import needed_lines
from hybridlab.schedules.registry import register

PERIOD = 6  # the slots that a microbatch takes on a device: forward, input gradient and weight gradient of two chunks
F0, F1, I1, I0, W1, W0 = range(6)  # kind and chunk of each pass on a device; a microbatch runs the first four passes in this order
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

    Take K devices and M microbatches. Microbatches enter as early as the memory allows. For M >= K the peak is that of ceil((K+2)/2)
    microbatches on a whole device. On their page the authors print floor((K+2)/2), which is equal for even K. For odd K the peak here is
    one microbatch more, and this makes the bubble shorter. If F, I and W take equally long, the bubble is at most half of 1F1B's.

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

    Take K devices and M microbatches. A microbatch enters every six slots. If a microbatch entered earlier, it would take memory that the
    microbatches before it need. For M >= K the peak is the same as in the paper: the activations of floor((K+4)/3) microbatches on a
    whole device. If F, I and W take equally long, the bubble is below two thirds of the bubble of 1F1B. For K > 1 the bubble is 4K-5 slots.
    In this time the last microbatch goes down and up the devices twice.

    Examples
    --------
    >>> v_min(1, 1, 2).tolist()
    [[[0], [1]], [[3], [2]], [[5], [4]]]
    """
    return limited_memory_slots(devices, microbatches, part=3, ahead=False)


def limited_memory_slots(devices: int, microbatches: int, part: int, ahead: bool) -> Ints:
    """Return slots with about 1/part of the peak activations of 1F1B.

    In each slot a device runs one pass whose inputs exist. If several passes can run, the device runs the pass that comes first in the
    repeated :func:`building_block`. It runs a weight gradient only if no other pass can run. A forward needs free memory. A device holds at
    most 2 + 2 * floor((K+1) / part) activations of one chunk each. On device d, chunk 1 has 1 + floor(d / part) of these reserved, so that
    the oldest microbatch can always go on.

    Once every pass has advanced by exactly one microbatch in six slots, this pattern repeats as long as microbatches enter. From then on,
    the slots of each microbatch are the slots of the microbatch before it plus six, and need no planning. So the time for planning hardly
    depends on M.

    Parameters
    ----------
    devices, microbatches : int
        The numbers of devices (K) and of microbatches (M).
    part : int
        2 for V-Half, 3 for V-Min.
    ahead : bool
        True if a microbatch may enter as soon as there is memory for its first forward. False if microbatch i may enter only from slot 6i
        on.

    Returns
    -------
    Ints
        Shape (3, 2 * devices, microbatches).
    """
    priority = building_block(devices, part)
    horizon = int(priority.max()) + PERIOD * microbatches  # a slot after all slots of the repeated blocks
    # Weight gradients have lower priority than all other passes, and run in the order of their input gradients.
    priority = np.concatenate([priority, horizon + priority[[I1, I0]]])
    capacity = 2 + 2 * ((devices + 1) // part)
    capacity_0 = capacity - 1 - np.arange(devices) // part
    needs = _needed_passes(devices)
    done = np.zeros((6, devices), dtype=np.intp)  # for each pass on each device, the number of microbatches already processed
    slots = np.zeros((6, devices, microbatches), dtype=np.intp)
    planned, now, last_entry, done_at_entry = microbatches, 0, 0, done.copy()
    while done.min() < planned:
        may_enter = planned if ahead else min(planned, now // PERIOD + 1)
        # A pass can run if it has processed fewer microbatches than the pass that it needs. The appended entry is for passes without one.
        ready = done < np.append(done, may_enter)[needs]
        held_0, held_1 = done[F0] - done[W0], done[F1] - done[W1]  # a weight gradient is the last pass that needs the activation
        ready[F0] &= held_0 < capacity_0
        ready[:2] &= held_0 + held_1 < capacity
        rank = np.where(ready, priority + PERIOD * done, 3 * horizon)  # 3 * horizon is later than all passes that can run
        device = np.flatnonzero(ready.any(axis=0))
        chosen = rank.argmin(axis=0)[device]
        slots[chosen, device, done[chosen, device]] = now
        done[chosen, device] += 1
        now += 1
        if planned == microbatches and done[F0, 0] > done_at_entry[F0, 0]:
            if now - last_entry == PERIOD and (done - done_at_entry == 1).all():
                planned = int(done[F0, 0])  # every pass advanced by one microbatch in six slots, so copy the rest
            last_entry, done_at_entry = now, done.copy()
    # The copied microbatches come right after the first ``done_at_entry`` microbatches of a pass. Planned microbatches after them start one
    # period later for each copy.
    copies = np.clip(np.arange(microbatches) - done_at_entry[..., None] + 1, 0, microbatches - planned)
    slots = np.take_along_axis(slots, np.arange(microbatches) - copies, axis=2) + PERIOD * copies
    return np.stack([np.concatenate([slots[down], slots[up, ::-1]]) for down, up in ((F0, F1), (I0, I1), (W0, W1))])


def building_block(devices: int, part: int) -> Ints:
    """Return the slots of one microbatch's passes in the building block, shape (4, devices): F0, F1, I1, I0.

    F0 and I1 run down the devices: on each device they start 6/part - 1 slots later than on the device before. F1 and I0 run up the
    devices: on each device they start 1 slot later than on the device before. These distances are from the paper. On device 0, one slot
    stays empty between F1 and I1. Compared with the device before, a device holds the activation of chunk 0 for 6/part slots less, and that
    of chunk 1 for 6/part slots more. So all devices need the same memory. If two passes get the same slot, the pass that the microbatch
    reaches first runs first.

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

    Each entry is an index into the flattened array of 6 x devices passes. The entry 6 x devices means that the pass needs no other pass.
    """
    device = np.arange(devices)
    line = np.concatenate([plane * 2 * devices + np.stack([device, 2 * devices - 1 - device]) for plane in range(3)])
    line = line[LINE_OF_PASS]
    pass_of = np.full(6 * devices + 1, 6 * devices)
    pass_of[line.ravel()] = np.arange(6 * devices)
    needs: Ints = pass_of[needed_lines(3, 2 * devices, 2 * devices)[line]]
    return needs
