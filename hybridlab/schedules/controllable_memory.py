"""V-Half and V-Min: a half and a third of 1F1B's activations, by one block of passes repeated every six slots.

The paper's idea: lay the passes of one microbatch into slots and repeat that block for every microbatch; how long the
block holds its activations decides the memory; then fill the slots left empty. The rule that fills them is this library's.
"""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedule.grid import needed_lines
from hybridlab.schedules.registry import register

PERIOD = 6  # slots of a microbatch on a device: forward, input gradient and weight gradient of two chunks
F0, F1, I1, I0, W1, W0 = range(6)  # the passes, by kind and chunk; the first four in the order of a microbatch's path
LINE_OF_PASS = [0, 1, 3, 2, 5, 4]  # where F0, F1, I1, I0, W1, W0 stand among F0, F1, I0, I1, W0, W1
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
    """Return the slots of V-Half, shape (3, 2 * devices, microbatches): see :func:`plan` with a part of 2.

    Microbatches come in as early as memory allows. From M = K on the peak is the paper's, ceil((K+2)/2) microbatches of a
    whole device, and with F = I = W the bubble is at most half of 1F1B's.

    >>> v_half(1, 1, 2).tolist()
    [[[0], [1]], [[3], [2]], [[5], [4]]]
    """
    return plan(devices, microbatches, part=2, ahead=True)


@register(
    "v-min",
    title="V-Min",
    summary="V-Half with a tighter block: about a third of 1F1B's activations; if F = I = W, at most two thirds of its bubble",
    source=SOURCE,
    placement="folded",
    fewest_chunks=2,
)
def v_min(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of V-Min, shape (3, 2 * devices, microbatches): see :func:`plan` with a part of 3.

    Microbatches come in every six slots: an early one would take the room of those before it. From M = K on the peak is
    the paper's, floor((K+4)/3) microbatches of a whole device, and with F = I = W the bubble is below two thirds of
    1F1B's: 4K-5 slots for K > 1, in which the last microbatch goes down and up twice.

    >>> v_min(1, 1, 2).tolist()
    [[[0], [1]], [[3], [2]], [[5], [4]]]
    """
    return plan(devices, microbatches, part=3, ahead=False)


def plan(devices: int, microbatches: int, part: int, ahead: bool) -> Ints:
    """Return slots that need about 1/part of 1F1B's activations, shape (3, 2 * devices, microbatches).

    Every operation takes one slot. In each slot a device runs, of the operations whose input is there, the one that the
    repeated block (:func:`block`) has first; a weight gradient only if there is nothing else to run. A forward needs
    room in memory: a device holds at most 2 + 2 * floor((K+1) / part) activations of a chunk, and on device d the last
    1 + floor(d / part) of these places are kept for chunk 1, so that the oldest microbatch can always go on. The first
    forward of microbatch i runs as soon as there is room (``ahead``), or else in slot 6i at the earliest.

    Once every pass has moved on by one microbatch in six slots, it does so for as long as microbatches come in: those in
    between are copies, each six slots after the one before. So the time this takes hardly depends on M.
    """
    first = block(devices, part)
    late = int(first.max()) + PERIOD * microbatches  # after the whole of the repeated block
    first = np.concatenate([first, late + first[[I1, I0]]])
    capacity = 2 + 2 * ((devices + 1) // part)
    capacity_0 = capacity - 1 - np.arange(devices) // part
    needs = _needs(devices)
    done = np.zeros((6, devices), dtype=np.intp)  # microbatches that each pass has behind it
    slots = np.zeros((6, devices, microbatches), dtype=np.intp)
    laid, now, then, before = microbatches, 0, 0, done.copy()
    while done.min() < laid:
        let_in = laid if ahead else min(laid, now // PERIOD + 1)
        ready = done < np.append(done, let_in)[needs]
        held_0, held_1 = done[F0] - done[W0], done[F1] - done[W1]
        ready[F0] &= held_0 < capacity_0
        ready[:2] &= held_0 + held_1 < capacity
        rank = np.where(ready, first + PERIOD * done, 3 * late)
        device = np.flatnonzero(ready.any(axis=0))
        chosen = rank.argmin(axis=0)[device]
        slots[chosen, device, done[chosen, device]] = now
        done[chosen, device] += 1
        now += 1
        if laid == microbatches and done[F0, 0] > before[F0, 0]:
            if now - then == PERIOD and (done - before == 1).all():
                laid = int(done[F0, 0])
            then, before = now, done.copy()
    # ``before`` is what each pass had done when the copies begin: they come next, and what was laid after them is later.
    copies = np.clip(np.arange(microbatches) - before[..., None] + 1, 0, microbatches - laid)
    slots = np.take_along_axis(slots, np.arange(microbatches) - copies, axis=2) + PERIOD * copies
    return np.stack([np.concatenate([slots[down], slots[up, ::-1]]) for down, up in ((F0, F1), (I0, I1), (W0, W1))])


def block(devices: int, part: int) -> Ints:
    """Return the slots of one microbatch's passes in the repeated block, shape (4, devices): F0, F1, I1, I0.

    Down the devices a pass moves by 6/part - 1 slots, back up by 1: these distances are the paper's. I1 begins one slot
    late. So from one device to the next chunk 0 holds its activation 6/part slots shorter, chunk 1 as much longer,
    and all devices need the same memory. Where two passes fall on one slot, the one that is earlier on a microbatch's way goes first.

    >>> block(3, part=2).tolist()
    [[0, 2, 4], [7, 6, 5], [9, 11, 13], [16, 15, 14]]
    """
    device = np.arange(devices)
    down, up = (PERIOD // part - 1) * device, devices - 1 - device
    forward_up = down[-1] + 1 + up
    gradient_down = forward_up[0] + 2 + down
    return np.stack([down, forward_up, gradient_down, gradient_down[-1] + 1 + up])


def _needs(devices: int) -> Ints:
    """Return which pass of which device each pass needs, shape (6, devices), as an index into 6 x devices; the last index for none."""
    device = np.arange(devices)
    line = np.concatenate([plane * 2 * devices + np.stack([device, 2 * devices - 1 - device]) for plane in range(3)])
    line = line[LINE_OF_PASS]
    pass_of = np.full(6 * devices + 1, 6 * devices)
    pass_of[line.ravel()] = np.arange(6 * devices)
    needs: Ints = pass_of[needed_lines(3, 2 * devices, 2 * devices)[line]]
    return needs
