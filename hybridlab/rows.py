"""From a grid of slots to one row an operation: the arrays that every other part of the library reads."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from hybridlab.errors import HybridLabError
from hybridlab.inputs import each_of, whole_number
from hybridlab.ops import CODE, Kind

Ints = npt.NDArray[np.intp]
LAST_SLOT = 2**35  # times the number of devices it stays within 64 bits
F, B, I, W = (CODE[kind] for kind in Kind)  # noqa: E741 - the field's letters


def grid_of(slots: npt.ArrayLike) -> Ints:
    """Return ``slots`` as an integer array of shape (2 or 3, stages, microbatches), or refuse it.

    >>> grid_of([[[0.5]], [[1]]])
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: slots must be whole numbers up to 34,359,738,368 (-1: no such operation)
    """
    try:
        grid = np.asarray(slots)
    except (ValueError, TypeError):
        raise HybridLabError("slots is ragged: give rows of equal length") from None
    if grid.ndim != 3 or grid.shape[0] not in (2, 3) or not grid.size:
        raise HybridLabError(f"slots must have shape (2 or 3, stages, microbatches), not {grid.shape}")
    if grid.dtype.kind not in "iu" or grid.max() > LAST_SLOT:
        raise HybridLabError(f"slots must be whole numbers up to {LAST_SLOT:,} (-1: no such operation)")
    return grid.astype(np.intp, copy=False)


def devices_of(device_of: Iterable[int], lines: int) -> tuple[int, ...]:
    """Return the device of every stage of every copy of the weights as ints, or refuse what is not one device each."""
    each = each_of(device_of, "device_of must be one device a stage")
    devices = tuple(whole_number(device, "a stage's device", at_least=0, at_most=lines - 1) for device in each)
    if len(devices) != lines:
        raise HybridLabError(f"device_of must be one device a stage: {lines} stages, but {len(devices)} devices")
    return devices


def rows_of(slots: Ints, device_of: tuple[int, ...], copies: int = 1) -> dict[str, Ints]:
    """Return the columns kind, stage, microbatch, device, source and slot, device by device in the order of the slots.

    ``slots`` has shape (2 or 3, copies x stages, microbatches): forwards, backwards, weight gradients; -1 for an operation
    that is not there. A backward that has a weight gradient is an input gradient. ``source`` is the row whose
    output an operation needs: the forward of the stage before, the backward of the stage after, or its own stage's
    forward or input gradient; -1 for the first stage's forwards.

    >>> rows_of(np.array([[[0, 1]], [[2, 3]]]), (0,))["source"].tolist()
    [-1, -1, 0, 1]
    """
    planes, lines, microbatches = slots.shape
    stages = lines // copies
    line_device = np.tile(np.array(device_of, dtype=np.intp), planes)  # a line of the grid is one kind on one stage
    place = np.flatnonzero(slots >= 0)
    slot = slots.ravel()[place]
    # The operations come as a few sorted runs, which a stable sort merges in linear time.
    rows = np.argsort(line_device[place // microbatches] * (slot.max(initial=0) + 1) + slot, kind="stable")
    place = place[rows]
    line = place // microbatches
    row_of = np.full(slots.size, -1, dtype=np.intp)
    row_of[place] = np.arange(rows.size)
    above, below, across = -microbatches, microbatches, -lines * microbatches
    step = np.repeat([above, below, across], lines)[: planes * lines]
    step[0:lines:stages], step[lines + stages - 1 : 2 * lines : stages] = 0, across  # the first stages, the last ones
    source = row_of[place + step[line]]
    source[step[line] == 0] = -1
    kind = np.repeat([F, B, W], lines)[line]
    if planes == 3:
        halves = source[kind == W]
        kind[halves[halves >= 0]] = I
    return {
        "kind": kind,
        "stage": line % stages,
        "microbatch": place - line * microbatches,
        "device": line_device[line],
        "source": source,
        "slot": slot[rows],
    }
