"""From orders to slots: every device takes its next turn as soon as the inputs are there, all devices in lockstep."""

import numpy as np

from hybridlab.rows import Ints

NONE = -1


def lockstep(turns: Ints, shape: tuple[int, int, int], copies: int = 1) -> Ints:
    """Return the slots, shape ``shape``, in which devices run their ``turns``, one turn a slot.

    ``shape`` is (2 or 3, copies x stages, microbatches), as :meth:`Schedule.from_slots` takes it. ``turns`` has shape (devices,
    turns, 2) and holds places in that grid, flattened: a turn is one operation and ``NONE``, or an overlapped pair; a device that
    has fewer turns ends with ``NONE`` alone. Turns that would wait for ever keep the slot -1.

    >>> lockstep(np.array([[[0, NONE], [2, NONE]], [[1, NONE], [3, NONE]]]), shape=(2, 2, 1)).ravel().tolist()
    [0, 1, 3, 2]
    """
    planes, lines, microbatches = shape
    size = planes * lines * microbatches
    nowhere, there, never = size, size + 1, size + 2  # where what is no operation is put, what needs nothing looks, and the end
    source = np.append(_sources(planes, lines, lines // copies, microbatches), [there, there, never])
    slots = np.full(size + 3, -1)
    slots[there] = 0
    ends = np.full((len(turns), 1, 2), never)
    place = np.concatenate([np.where(turns == NONE, nowhere, turns), ends], axis=1).reshape(-1, 2)
    needs = source[place]
    at = np.arange(len(turns)) * (turns.shape[1] + 1)
    for now in range(size + 1):
        ready = (slots[needs[at]] >= 0).all(axis=1)
        done = at[ready]
        if not done.size:
            break
        slots[place[done]] = now
        at += ready
    return slots[:size].reshape(shape)


def _sources(planes: int, lines: int, stages: int, microbatches: int) -> Ints:
    """Return the place of what each place of the grid needs: one line above, below, or a plane back; ``there`` for nothing."""
    line = np.arange(planes * lines)
    step = np.repeat([-1, 1, -lines], lines)[: line.size] * microbatches
    step[lines + stages - 1 : 2 * lines : stages] = -lines * microbatches  # a last stage's backward needs its own forward
    source = np.add.outer(step, np.arange(microbatches)) + line[:, None] * microbatches
    source[0:lines:stages] = line.size * microbatches + 1
    flat: Ints = source.ravel()
    return flat
