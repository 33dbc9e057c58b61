"""Chains. A chain is the operations of one microbatch in the order of their dependencies, with the shortest times before and after each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, Ints
from hybridlab.costs import Costs
from hybridlab.memory import SAME, Memory, activations_in
from hybridlab.schedule import B, F, I, Schedule, W
from hybridlab.simulation import latencies, times_by_place
from hybridlab.timeline import Timeline


@dataclass(frozen=True)
class Chain:
    """The operations of all microbatches that visit the same devices in the same order. The times are those of one microbatch.

    With S stages, positions 0 to S-1 are the forwards. The next S positions are the backwards, from the last stage to the first. If there
    are weight gradients, they follow in the order of their backwards. Times are in the unit of the costs.

    Parameters
    ----------
    rows : Ints
        Shape (positions, microbatches): the row of each operation in the arrays of the schedule.
    device, kind : Ints
        Shape (positions,): the device and the kind of each operation.
    duration : Floats
        Shape (positions, settings...): the time of each operation.
    head : Floats
        Shape (positions, settings...): the shortest possible time from the beginning of the step to the start of the operation.
    tail : Floats
        Shape (positions, settings...): the shortest possible time from the end of the operation to the end of the step.
    lifetime : Floats
        Shape (S, settings...): the shortest possible time from the start of a stage's forward to the end of the operation that releases
        its activation (the full backward or the weight gradient).
    after, release : Floats
        Shape (S, settings...): the tail (``after``) and the duration (``release``) of the operation that releases the stage's activation.
    """

    rows: Ints
    device: Ints
    kind: Ints
    duration: Floats
    head: Floats
    tail: Floats
    lifetime: Floats
    after: Floats
    release: Floats

    @property
    def microbatches(self) -> int:
        """Number of microbatches that have this chain."""
        return int(self.rows.shape[1])


def chains_of(schedule: Schedule, costs: Costs) -> list[Chain]:
    """Return the chains of a schedule. Microbatches share a chain if they have the same kinds of operations, times and devices.

    A schedule with one copy of the weights has one chain. It has more if it splits the backwards of only some microbatches, or if the times
    differ from microbatch to microbatch.
    """
    times, latency = times_by_place(schedule, costs), np.moveaxis(latencies(schedule, costs), -1, 0)
    rows = _rows_by_position(schedule)
    visits = np.where(rows >= 0, schedule.device[rows] * 4 + schedule.kind[rows], -1)
    if costs.microbatches is not None:
        alike = np.unique(times[0][schedule.kind, times[1]], axis=0, return_inverse=True)[1].reshape(-1)  # one number for each time
        visits = np.concatenate([visits, np.where(rows >= 0, alike[rows], -1)])
    remaining, chains = np.arange(schedule.microbatches), []
    while remaining.size:
        same = (visits[:, remaining] == visits[:, remaining[:1]]).all(axis=0)
        chains.append(_chain(schedule, times, latency, rows[:, remaining[same]]))
        remaining = remaining[~same]
    return chains


def capacity_of(schedule: Schedule, memory: Any = None) -> Ints:
    """Return the number of activations of one chunk that each device may hold.

    Parameters
    ----------
    schedule : Schedule
        The schedule whose operations are to be ordered.
    memory : number, sequence of numbers, or Memory, optional
        The limit: one number for all devices, or one for each device. The unit is the activation of one microbatch on a whole device.
        A :class:`~hybridlab.Memory` has less room for a schedule with two copies of the weights. None means the peak of the schedule.

    Returns
    -------
    Ints
        Shape (devices,).

    Raises
    ------
    HybridLabError
        As in :func:`~hybridlab.memory.activations_in`.

    Examples
    --------
    >>> capacity_of(Schedule.parse("0F0 0F1 0B0 0B1"), memory=1.5)
    array([1])
    """
    if memory is None:
        no_time = np.zeros(schedule.kind.size)  # the peak depends only on the order
        return np.rint(Timeline(schedule, no_time, no_time).peak_activations * schedule.chunks).astype(np.intp)
    limit = activations_in(memory, schedule)
    most = schedule.microbatches * schedule.stages
    # the factor 1 + 1e-12 makes 4/3 x 3 chunks give 4 in spite of rounding
    activations: Ints = np.floor(np.minimum(limit, most) * schedule.chunks * (1 + 1e-12)).astype(np.intp)
    return activations


def held_by(schedule: Schedule, held_after: float = 1.0) -> Floats:
    """Return the largest number of activations that each device holds, in microbatches on a whole device, shape (devices,).

    ``held_after`` is the part of an activation that a device still holds between the input gradient and the weight gradient.

    >>> split = Schedule.parse("0F0 0I0 0F1 0I1 0W0 0W1")
    >>> held_by(split).tolist(), held_by(split, held_after=0.25).tolist()
    ([2.0], [1.25])
    """
    change = np.zeros(4)
    change[[F, B, I, W]] = 1.0, -1.0, held_after - 1.0, -held_after  # memory is taken at the start, and freed at the end
    # each device frees all that it takes, so the running sum is 0 again where the rows of the next device begin
    peaks: Floats = np.maximum.reduceat(np.cumsum(change[schedule.kind]), schedule.first) / schedule.chunks
    return peaks


def beyond(schedule: Schedule, memory: Any, held_after: float = 1.0) -> str:
    """Return a sentence about the first device on which ``schedule`` holds more than ``memory``. An empty text if it fits.

    >>> beyond(Schedule.parse("0F0 0F1 0B0 0B1"), memory=1)
    'it holds 2 activations on device 0, more than 1'
    """
    limit, held = activations_in(memory, schedule), held_by(schedule, held_after)
    over = np.flatnonzero(held > limit * (1 + SAME) + SAME)
    if not over.size:
        return ""
    most, room = (float(each[over[0]]) for each in (held, limit))
    beside = f" beside {schedule.copies} copies of the weights" if schedule.copies > 1 and isinstance(memory, Memory) else ""
    return f"it holds {most:.6g} activations on device {over[0]}, more than {room:.6g}{beside}"


def _rows_by_position(schedule: Schedule) -> Ints:
    """Return the row of the operation at each position of each microbatch, shape (3 * stages, microbatches). -1 means no operation."""
    stages, kind, stage = schedule.stages, schedule.kind, schedule.stage
    position = np.where(kind == F, stage, np.where(kind == W, 3 * stages, 2 * stages) - 1 - stage)
    rows = np.full((3 * stages, schedule.microbatches), -1, dtype=np.intp)
    rows[position, schedule.microbatch] = np.arange(kind.size)
    return rows


def _chain(schedule: Schedule, times: tuple[Floats, Ints], latency: Floats, rows: Ints) -> Chain:
    """Return the chain with these ``rows``. For each row of the schedule, ``latency`` has the latency of the message that it needs."""
    stages, (table, place_of) = schedule.stages, times
    one = rows[:, 0]
    split: npt.NDArray[np.bool_] = one[2 * stages :] >= 0  # True for backwards with a weight gradient
    device = schedule.device[one]
    kind, place = schedule.kind[one], place_of[one]
    without_weights = slice(2 * stages)
    duration = table[kind[without_weights], place[without_weights]]
    end = np.cumsum(duration + latency[one[without_weights]], axis=0)
    weight = table[W, place[stages : 2 * stages]][split]
    finished = end[stages:].copy()  # the end of the backward, or of its weight gradient if there is one
    finished[split] += weight
    # for each operation, the latest end of this and all later operations
    last = np.maximum.accumulate(np.concatenate([end[:stages], finished])[::-1])[::-1]
    tail = last - end
    after = tail[stages:].copy()
    after[split] = 0.0  # nothing follows a weight gradient
    release = duration[stages:].copy()
    release[split] = weight
    present = one >= 0
    head = end - duration
    return Chain(
        rows[present],
        device[present],
        kind[present],
        duration=np.concatenate([duration, weight]),
        head=np.concatenate([head, end[stages:][split]]),
        tail=np.concatenate([tail, np.zeros_like(weight)]),
        lifetime=finished[::-1] - head[:stages],
        after=after[::-1],
        release=release[::-1],
    )
