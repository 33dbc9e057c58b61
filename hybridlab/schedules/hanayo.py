"""Hanayo. A microbatch runs down and up the devices in waves. Where it changes direction, it stays on its device and needs no message."""

from functools import lru_cache

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedules.registry import register

FORWARD, BACKWARD = 1, 2  # the number of slots that a forward and a backward take in the plan; their real times do not matter here
FREE, TAKEN = b"\0", b"\1"  # a slot is one byte, because bytearray.find is a fast search for free slots


@register(
    "hanayo",
    title="Hanayo",
    summary="microbatches run down and up the devices in waves; groups of K repeat one pattern, one after the other",
    source="Liu et al., SC 2023, arXiv 2308.15762; the order of a public program, which repeats the paper's group of K microbatches",
    placement="folded",
    fewest_chunks=2,
    chunk_step=2,
    whole_groups=True,
)
def hanayo(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of Hanayo with chunks / 2 waves, shape (2, chunks * devices, microbatches).

    Microbatches are planned one after the other. A forward takes the first free slot after the operation before it in the microbatch. A
    backward takes the first two adjacent free slots after the operation before it. With K devices, a group has K microbatches. The first
    microbatch of a group reserves slots on each device. The other microbatches of the group cannot use them. On device d these are the
    K-1-d slots before its forward of the second chunk, and the d slots before its first backward. A group starts when the first microbatch
    of the group before it has ended.

    If two groups in a row find the same slots taken when they begin, all later groups have the same plan as the first of the two.

    Examples
    --------
    >>> hanayo(1, 1, 2)[0].tolist(), hanayo(1, 1, 2)[1].tolist()
    ([[0], [1]], [[4], [2]])
    """
    plans, begins = _first_groups(devices, chunks)
    groups = np.arange(microbatches // devices)  # whole_groups=True above: M is a multiple of K
    repeats = np.maximum(groups - len(plans) + 1, 0)  # for each group, how often the last plan has been repeated up to this group
    plan = groups - repeats
    begin = np.array(begins)[plan] + repeats * (begins[-1] - begins[-2])
    slots: Ints = plans[plan] + begin[:, None, None, None]
    return np.moveaxis(slots, 0, 2).reshape(2, chunks * devices, microbatches)


@lru_cache(maxsize=32)
def _first_groups(devices: int, chunks: int) -> tuple[Ints, list[int]]:
    """Return the plans of the first groups, and the slots in which these groups and the group after them begin.

    The plans have shape (groups, 2, stages, devices). The slots of a plan are counted from the beginning of its group. All later groups
    repeat the last plan.
    """
    rows = [bytearray() for _ in range(devices)]
    plans: list[Ints] = []
    begins = [0]
    taken: list[bytes] = []
    while True:
        # the slots that earlier groups have taken from the beginning of this group on, without the free slots at the end of a row
        ahead = [bytes(row[begins[-1] :]).rstrip(FREE) for row in rows]
        if ahead == taken:
            return np.array(plans), begins[: len(plans) + 1]
        taken = ahead
        slots = _plan_group(rows, devices, chunks, begins[-1])
        plans.append(slots - begins[-1])
        begins.append(int(slots[1, 0, 0]) + BACKWARD)


def _plan_group(rows: list[bytearray], devices: int, chunks: int, begin: int) -> Ints:
    """Plan one group of microbatches from slot ``begin`` on. Mark its slots as taken in ``rows``, and return the slots."""
    down = list(range(devices))
    path = (down + down[::-1]) * (chunks // 2)
    slots = [_plan_microbatch(rows, path, begin)]
    first_forward, first_backward = slots[0]
    for device, row in enumerate(rows):
        turn = first_forward[2 * devices - 1 - device]
        _mark_taken(row, turn - (devices - 1 - device), turn)
        turn = first_backward[chunks * devices - 1 - device]
        _mark_taken(row, turn - device, turn)
    slots += [_plan_microbatch(rows, path, begin) for _ in range(1, devices)]
    return np.moveaxis(np.array(slots, dtype=np.intp), 0, -1)  # shape (2, stages, devices): one microbatch for each device


def _plan_microbatch(rows: list[bytearray], path: list[int], begin: int) -> tuple[list[int], list[int]]:
    """Plan one microbatch along ``path`` and back. Return the slots of its forwards and of its backwards, one for each stage."""
    forwards, backwards = [], []
    now = begin
    for device in path:
        place = _take_first_free(rows[device], now, FORWARD)
        forwards.append(place)
        now = place + FORWARD
    for device in reversed(path):
        place = _take_first_free(rows[device], now, BACKWARD)
        backwards.append(place)
        now = place + BACKWARD
    return forwards, backwards[::-1]


def _take_first_free(row: bytearray, earliest: int, width: int) -> int:
    """Find the first ``width`` adjacent free slots from ``earliest`` on, mark them as taken, and return the first slot."""
    place = row.find(FREE * width, earliest)
    if place < 0:
        row.extend(FREE * (earliest + 64))  # longer than needed, so that this extension is rare
        place = row.find(FREE * width, earliest)
    row[place : place + width] = TAKEN * width
    return place


def _mark_taken(row: bytearray, start: int, stop: int) -> None:
    """Mark the slots from ``start`` to ``stop`` (excluded) as taken."""
    row.extend(FREE * (stop - len(row)))
    row[start:stop] = TAKEN * (stop - start)
