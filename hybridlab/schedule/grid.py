"""The grid of slots of a schedule.

This file has the dependency rule of all schedules, computes slots from orders, and computes the rows of a schedule from slots.

- Slot: a whole number that says when an operation runs. Of two operations on a device, the operation with the smaller slot runs earlier.
- Grid: an array of slots, shape (2 or 3, lines, microbatches). -1 means that the operation does not exist.
- Plane: an index on the first axis of the grid: 0 for forwards, 1 for backwards, 2 for weight gradients if backwards are split.
- Line: an index on the second axis, one for each stage. With several copies of the weights, the stages of the first copy come first.
- Place: an index into the flattened grid.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Ints, readonly
from hybridlab.checks import each_of, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.schedule.ops import B, F, I, W

LAST_SLOT = 2**35  # the largest slot; slot x number of devices stays below 2**63
KIND_OF_PLANE = readonly(np.array([F, B, W]))  # rows_of changes B to I where the backward is split
NONE = -1  # the second place of a turn that has only one operation


@lru_cache(maxsize=16)
def needed_lines(planes: int, lines: int, stages: int) -> Ints:
    """Return, for each line of a grid, the line whose operations it needs. This is the dependency rule of all schedules.

    A forward needs the forward of the stage before. A backward needs the backward of the stage after. A backward on the last stage needs
    the forward of its own stage. A weight gradient needs the input gradient of its own stage.

    Parameters
    ----------
    planes : int
        2 (forwards, backwards) or 3 (forwards, backwards, weight gradients).
    lines : int
        Number of lines of a plane: copies of the weights x stages of one copy.
    stages : int
        Stages of one copy of the weights.

    Returns
    -------
    Ints
        Shape (planes x lines,), read-only. For each line, plane by plane, the line that it needs; -1 for the forwards of first stages.

    Examples
    --------
    >>> needed_lines(planes=3, lines=2, stages=2).reshape(3, 2)
    array([[-1,  0],
           [ 3,  1],
           [ 2,  3]])
    """
    line = np.arange(planes * lines)
    # a forward needs the line before, a backward the line after, a weight gradient the same line in the plane of backwards
    needed: Ints = line + np.repeat([-1, 1, -lines], lines)[: line.size]
    needed[0:lines:stages] = -1  # the input of a first stage is data
    last = slice(lines + stages - 1, 2 * lines, stages)
    needed[last] = line[last] - lines
    return readonly(needed)


def slots_in_order(orders: Sequence[Sequence[tuple[int, int]]], shape: tuple[int, int, int], copies: int = 1) -> Ints:
    """Return the slots of all operations if each turn starts as soon as its device is free and its inputs exist.

    Parameters
    ----------
    orders : sequence of sequences of pairs of int
        The turns of each device. A turn is a pair of places in the grid: the places of an overlapped pair, or the place of one operation
        and ``NONE``. Turns of two ``NONE`` may follow at the end.
    shape : tuple of int
        Shape of the grid, (2 or 3, copies x stages, microbatches).
    copies : int
        Copies of the weights.

    Returns
    -------
    Ints
        The grid of slots. -1 marks operations that are in no order, and operations that would wait for ever.

    Examples
    --------
    >>> slots_in_order([[(0, NONE), (2, NONE)], [(1, NONE), (3, NONE)]], shape=(2, 2, 1)).ravel().tolist()
    [0, 1, 3, 2]
    """
    planes, lines, microbatches = shape
    needed = needed_lines(planes, lines, lines // copies)
    first = np.where(needed < 0, NONE, needed * microbatches)[:, None]
    source = np.where(first < 0, NONE, first + np.arange(microbatches)).ravel().tolist()
    source.append(NONE)  # the index NONE (-1) finds this entry: an empty place of a turn has no source
    unknown = -2  # the slot is not yet computed; -1 already means that no operation is needed
    slots = [unknown] * (planes * lines * microbatches) + [-1]  # the index NONE (-1) finds the last entry, a slot before all other slots
    done, clock = [0] * len(orders), [-1] * len(orders)  # for each device: how many turns it has run, and the slot of its last turn
    waiting: dict[int, int] = {}  # key: a place whose slot is unknown; value: the device that waits for the operation at this place
    ready = list(range(len(orders)))
    while ready:
        device = ready.pop()
        order, now, turn = orders[device], clock[device], done[device]
        while turn < len(order):
            one, other = order[turn]
            input_of_one, input_of_other = slots[source[one]], slots[source[other]]
            if input_of_one == unknown or input_of_other == unknown:
                waiting[source[one] if input_of_one == unknown else source[other]] = device
                break
            now = 1 + max(now, input_of_one, input_of_other)
            turn += 1
            for place in (one, other):
                if place != NONE:
                    slots[place] = now
                    if place in waiting:
                        ready.append(waiting.pop(place))
        clock[device], done[device] = now, turn
    grid = np.array(slots[:-1], dtype=np.intp).reshape(shape)
    return np.maximum(grid, -1)  # unknown (-2) becomes -1: the operation is in no order, or would wait for ever


def checked_slots(slots: npt.ArrayLike) -> Ints:
    """Return ``slots`` as an integer array of shape (2 or 3, lines, microbatches), or raise an error.

    A negative number means that the operation does not exist. Every negative number becomes -1.

    >>> checked_slots([[[0.5]], [[1]]])
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: slots must be whole numbers up to 34,359,738,368 (-1: no such operation)
    """
    try:
        grid = np.asarray(slots)
    except (ValueError, TypeError):
        raise HybridLabError("slots is ragged: give rows of equal length", "ragged") from None
    if grid.ndim != 3 or grid.shape[0] not in (2, 3) or not grid.size:
        raise HybridLabError(f"slots must have shape (2 or 3, stages, microbatches), not {grid.shape}", "wrong-shape")
    if grid.dtype.kind not in "iu" or grid.max() > LAST_SLOT:
        code = "too-large" if grid.dtype.kind in "iu" else "not-a-whole-number"
        raise HybridLabError(f"slots must be whole numbers up to {LAST_SLOT:,} (-1: no such operation)", code)
    grid = grid.astype(np.intp, copy=False)
    return grid if grid.min() >= -1 else np.maximum(grid, -1)


def devices_of(device_of: Iterable[int], lines: int) -> tuple[int, ...]:
    """Return the device of every line as an int. Raise an error if there is not one device for each line."""
    each = each_of(device_of, "device_of must have one device for each stage")
    devices = tuple(whole_number(device, "a stage's device", at_least=0, at_most=lines - 1) for device in each)
    if len(devices) != lines:
        raise HybridLabError(f"device_of must have one device for each stage: {lines} stages, but {len(devices)} devices", "wrong-length")
    return devices


def rows_of(slots: Ints, device_of: tuple[int, ...], copies: int = 1) -> dict[str, Ints]:
    """Return one row for each operation, sorted by device and then by slot.

    Parameters
    ----------
    slots : Ints
        A grid of slots.
    device_of : tuple of int
        The device of each line.
    copies : int
        Copies of the weights.

    Returns
    -------
    dict of str to Ints
        The columns kind (an index into ``KINDS``), stage, microbatch, device, source and slot, each of shape (operations,). If the grid
        has a weight gradient for a backward, the kind of the backward is I. The source of an operation is the row of the operation that
        it needs (see :func:`needed_lines`), or -1 if it needs none. "pairs" lists the first row of each pair of rows that have the same
        device and the same slot.

    Examples
    --------
    >>> rows_of(np.array([[[0, 1]], [[2, 3]]]), (0,))["source"].tolist()
    [-1, -1, 0, 1]
    """
    planes, lines, microbatches = slots.shape
    line_device = np.array(device_of * planes)
    place, shared = _places_by_device_and_slot(slots.reshape(-1, microbatches), line_device, 1 + max(device_of))
    stages = lines // copies
    needed = needed_lines(planes, lines, stages)
    row_of = np.full((planes * lines, microbatches), -1)
    row_of.ravel()[place] = np.arange(place.size)
    source_of = row_of[needed]
    source_of[0:lines:stages] = -1  # first stages have no source, but their index -1 has read the last line
    # All columns share one array, because one large array is faster to allocate than many small arrays.
    table = np.empty((6, place.size), dtype=np.intp)
    kind, stage, microbatch, device, source, slot = table
    line = place // microbatches
    # With mode="raise", numpy would write the result to a buffer first and copy it. mode="clip" avoids the copy.
    KIND_OF_PLANE.repeat(lines).take(line, out=kind, mode="clip")
    (np.arange(planes * lines) % stages).take(line, out=stage, mode="clip")
    line_device.take(line, out=device, mode="clip")
    source_of.take(place, out=source, mode="clip")
    slots.take(place, out=slot, mode="clip")
    line *= microbatches
    np.subtract(place, line, out=microbatch)
    if planes == 3:
        # the source of a weight gradient is its input gradient
        halves = source[kind == W]
        kind[halves[halves >= 0]] = I
    shares = np.flatnonzero((slot[1:] == slot[:-1]) & (device[1:] == device[:-1])) if shared else np.zeros(0, dtype=np.intp)
    columns = {"kind": kind, "stage": stage, "microbatch": microbatch, "device": device, "source": source, "slot": slot}
    table.setflags(write=False)  # a column that is set to read-only then stays so
    return {**columns, "pairs": shares}


def sources_come_first(slots: Ints, copies: int = 1) -> bool:
    """Return whether every operation in a grid of slots has a larger slot than the operation that it needs.

    >>> sources_come_first(np.array([[[0, 1]], [[2, 3]]])), sources_come_first(np.array([[[0, 1]], [[2, 1]]]))
    (True, False)
    """
    planes, lines, microbatches = slots.shape
    by_line, stages = slots.reshape(-1, microbatches), lines // copies
    source = by_line[needed_lines(planes, lines, stages)]
    source[0:lines:stages] = -1  # first stages have no source, but their index -1 has read the last line
    later = source < by_line
    # A cell without an operation holds -1, and is no fault. Most grids have no such cell, so the faster test comes first.
    return bool(later.all() or (later | (by_line < 0)).all())


def _places_by_device_and_slot(by_line: Ints, line_device: Ints, devices: int) -> tuple[Ints, bool]:
    """Return the places of all operations, sorted by device and then by slot, and whether a device has two operations in one slot.

    Of an overlapped pair, the forward comes first.
    """
    length = 2 + int(by_line.max())  # the slots from -1 to the largest
    key = (by_line + (1 + length * line_device)[:, None]).ravel()
    # With many empty cells, this table would take longer than sorting.
    if devices * length <= 4 * key.size:
        # Sort in linear time: write each place into the cell of its device and slot. Column 0 stands for slot -1 and is removed below.
        cells = np.full((devices, length), -1)
        cells.ravel()[key] = np.arange(key.size)
        cells = cells[:, 1:]
        place = cells[cells >= 0]
        # If two operations of a device have the same slot, they share a cell and one place is lost. Then sort below.
        if place.size == key.size or place.size == np.count_nonzero(by_line >= 0):
            return place, False
    number = np.flatnonzero(by_line >= 0)
    key = key[number]
    order = np.argsort(key, kind="stable")  # the forward of an overlapped pair stays before the backward
    key = key[order]
    return number[order], bool((key[1:] == key[:-1]).any())
