"""Hanayo, in which a microbatch runs down and up the devices in waves, and needs no message where it changes direction."""

from functools import lru_cache

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedules.registry import register

FORWARD, BACKWARD = 1, 2  # the number of slots that an operation takes in the plan, whatever its cost
FREE, TAKEN = b"\0", b"\1"  # single bytes, because bytearray.find is a fast search for free slots


@register(
    "hanayo",
    title="Hanayo",
    summary="microbatches run down and up the devices in waves; groups of K repeat one pattern, one after the other",
    source="Liu et al., SC 2023, arXiv 2308.15762; one group of K microbatches is theirs, more are that group repeated",
    placement="folded",
    fewest_chunks=2,
    chunk_step=2,
    whole_groups=True,
)
def hanayo(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of Hanayo with chunks / 2 waves, shape (2, chunks * devices, microbatches).

    Microbatches are planned one at a time along their path. A forward takes the first free slot after the operation before it. A backward
    takes the first two adjacent free slots. With K devices, a group has K microbatches, and the first one reserves slots. On device d, the
    other microbatches cannot use the K-1-d slots before its forward of the second chunk, and the d slots before its first backward. A
    group starts when the first microbatch of the group before it has ended.

    If the slots that earlier groups have taken are the same at the beginning of two groups in a row, all later groups repeat the plan.

    Examples
    --------
    >>> hanayo(1, 1, 2)[0].tolist(), hanayo(1, 1, 2)[1].tolist()
    ([[0], [1]], [[4], [2]])
    """
    plans, begins = _first_groups(devices, chunks)
    groups = np.arange(microbatches // devices)  # whole groups only, as the registration demands
    repeats = np.maximum(groups - len(plans) + 1, 0)  # repetitions of the last plan up to this group; 0 if it has its own plan
    plan = groups - repeats
    begin = np.array(begins)[plan] + repeats * (begins[-1] - begins[-2])
    slots: Ints = plans[plan] + begin[:, None, None, None]
    return np.moveaxis(slots, 0, 2).reshape(2, chunks * devices, microbatches)


@lru_cache(maxsize=32)
def _first_groups(devices: int, chunks: int) -> tuple[Ints, list[int]]:
    """Return the plans of the first groups and the slots where these groups and the next one begin.

    The plans have shape (groups, 2, stages, devices). Their slots are counted from the beginning of the group. The last plan repeats.
    """
    rows = [bytearray() for _ in range(devices)]
    plans: list[Ints] = []
    begins = [0]
    taken: list[bytes] = []
    while True:
        # what earlier groups have taken from here on; free slots at the end say only how long the row is
        ahead = [bytes(row[begins[-1] :]).rstrip(FREE) for row in rows]
        if ahead == taken:
            return np.array(plans), begins[: len(plans) + 1]
        taken = ahead
        slots = _plan_group(rows, devices, chunks, begins[-1])
        plans.append(slots - begins[-1])
        begins.append(int(slots[1, 0, 0]) + BACKWARD)


def _plan_group(rows: list[bytearray], devices: int, chunks: int, begin: int) -> Ints:
    """Plan one group of microbatches from slot ``begin`` on, mark its slots in ``rows``, and return them."""
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
    """Plan one microbatch along ``path`` and back, and return, for each stage, the slots of its forward and its backward."""
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
    """Mark the first ``width`` adjacent free slots from ``earliest`` on as taken, and return the first of them."""
    place = row.find(FREE * width, earliest)
    if place < 0:
        row.extend(FREE * (earliest + 64))  # more than needed, so that rows seldom grow
        place = row.find(FREE * width, earliest)
    row[place : place + width] = TAKEN * width
    return place


def _mark_taken(row: bytearray, start: int, stop: int) -> None:
    """Mark the slots from ``start`` to ``stop`` (excluded) as taken."""
    row.extend(FREE * (stop - len(row)))
    row[start:stop] = TAKEN * (stop - start)
