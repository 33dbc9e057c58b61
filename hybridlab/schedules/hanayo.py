"""Hanayo: chunks folded into waves, so that a microbatch turns round on the device where it is."""

from functools import lru_cache

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedules.registry import register

FORWARD, BACKWARD = 1, 2  # slots an operation takes while the order is planned, whatever its real cost
FREE, TAKEN = b"\0", b"\1"


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

    Microbatches are laid one at a time along their path, each operation in the first free slot after the one
    before it, a backward in the first two. In a group of K the first microbatch is laid first and the slots it
    leaves idle before it turns are closed. A group starts when the first microbatch of the group before has ended.
    Once a group lies like the one before it, with the same slots taken ahead of it, all later ones do, and are
    copied.

    >>> hanayo(1, 1, 2)[0].tolist(), hanayo(1, 1, 2)[1].tolist()
    ([[0], [1]], [[4], [2]])
    """
    shapes, begins = _first_groups(devices, chunks)
    groups = np.arange(microbatches // devices)
    later = np.maximum(groups - len(shapes) + 1, 0)  # groups after the last that was laid, which they repeat
    place = groups - later
    begin = np.array(begins)[place] + later * (begins[-1] - begins[-2])
    slots: Ints = shapes[place] + begin[:, None, None, None]
    return np.moveaxis(slots, 0, 2).reshape(2, chunks * devices, microbatches)


@lru_cache(maxsize=32)
def _first_groups(devices: int, chunks: int) -> tuple[Ints, list[int]]:
    """Return the first groups until one repeats the one before, each from its start on, and where they and the next start."""
    rows = [bytearray() for _ in range(devices)]
    shapes: list[Ints] = []
    begins = [0]
    taken: list[bytes] = []
    while True:
        ahead = [bytes(row[begins[-1] :]).rstrip(FREE) for row in rows]
        if ahead == taken:
            return np.array(shapes), begins[: len(shapes) + 1]
        taken = ahead
        shape = _lay_group(rows, devices, chunks, begins[-1])
        shapes.append(shape - begins[-1])
        begins.append(int(shape[1, 0, 0]) + BACKWARD)


def _lay_group(rows: list[bytearray], devices: int, chunks: int, begin: int) -> Ints:
    """Lay one group of microbatches from slot ``begin`` on; mark the slots in ``rows`` and return them."""
    down = list(range(devices))
    path = (down + down[::-1]) * (chunks // 2)
    slots = [_lay_microbatch(rows, path, begin)]
    first_forward, first_backward = slots[0]
    for device, row in enumerate(rows):
        turn = first_forward[2 * devices - 1 - device]
        _close(row, turn - (devices - 1 - device), turn)
        turn = first_backward[chunks * devices - 1 - device]
        _close(row, turn - device, turn)
    slots += [_lay_microbatch(rows, path, begin) for _ in range(1, devices)]
    return np.moveaxis(np.array(slots, dtype=np.intp), 0, -1)


def _lay_microbatch(rows: list[bytearray], path: list[int], begin: int) -> tuple[list[int], list[int]]:
    """Lay one microbatch along ``path`` and back; return the slots of its forwards and of its backwards by stage."""
    forwards, backwards = [], []
    now = begin
    for device in path:
        place = _lay(rows[device], now, FORWARD)
        forwards.append(place)
        now = place + FORWARD
    for device in reversed(path):
        place = _lay(rows[device], now, BACKWARD)
        backwards.append(place)
        now = place + BACKWARD
    return forwards, backwards[::-1]


def _lay(row: bytearray, earliest: int, width: int) -> int:
    """Take the first ``width`` free slots in a row from ``earliest`` on; return the first of them."""
    place = row.find(FREE * width, earliest)
    if place < 0:
        row.extend(FREE * (earliest + 64))
        place = row.find(FREE * width, earliest)
    row[place : place + width] = TAKEN * width
    return place


def _close(row: bytearray, start: int, stop: int) -> None:
    row.extend(FREE * (stop - len(row)))
    row[start:stop] = TAKEN * (stop - start)
