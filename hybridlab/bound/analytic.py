"""How long a step takes at least, in any order of its operations: no solver, all settings of costs at once."""

import math
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.bound.chains import Way, room_of, ways_of
from hybridlab.checks import MOST_CELLS, short_repr
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import B, F, Schedule

NEEDED = ("device", "kind", "head", "tail", "duration")  # of a way, to compare its operations
SAME = 1e-12  # relative difference of two times that only rounding keeps apart


def lower_bound(schedule: Schedule, costs: Costs, memory: Any = None) -> Any:
    """Return a time that no order of the schedule's operations can beat: a float, or an array over the settings.

    An order may be any in which every operation stays on its device, runs after its inputs (and the latency of a message) and in
    which no device holds more activations than in ``schedule``, or than ``memory``: a number or one a device, in microbatches of the
    whole device, as :attr:`Timeline.peak_activations` counts them. True but for rounding in the last digits. The largest of:

    - a chain: one microbatch needs each of its operations after the other;
    - a device: the operations of any set run one after the other, not before the least head among them, and the least tail among
      them is still to come. A head is the least time from the beginning of the step to an operation, a tail that from the operation to
      the end (Jackson 1955; Carlier, European Journal of Operational Research 11, 1982);
    - a full device: with room for P activations, the activation that comes P later waits for one to leave, so that of i chunks of
      n microbatches all but kP start later than k lifetimes, and the microbatches they belong to still need their devices;
    - the area: activations held, summed over time, are the sum of all lifetimes, and at most P at once. The room fills and empties
      by one activation an operation.

    Raises :class:`HybridLabError` for costs of other devices, or for a memory in which no microbatch fits.

    >>> from hybridlab import build, simulate
    >>> costs, schedule = Costs(forward=1, backward=2), build("1f1b", devices=4, microbatches=8)
    >>> lower_bound(schedule, costs), simulate(schedule, costs).makespan
    (33.0, 33.0)
    """
    if not isinstance(schedule, Schedule) or not isinstance(costs, Costs):
        raise HybridLabError(
            f"a bound and an optimum are those of a Schedule and Costs, not {short_repr(schedule)} and {short_repr(costs)}"
        )
    room = room_of(schedule, memory)
    ways = ways_of(schedule, costs)
    saved = _saved_by_pairs(schedule, costs)
    every = _sets(ways, [way.microbatches for way in ways], saved)
    bounds = [_chain(ways), (every.least + every.work).max(axis=0), _area(schedule, ways, room)]
    for way in ways:
        sets = _sets([way], [1], saved)
        bounds += [_full(way, stage, sets, room) for stage in range(schedule.stages) if _generations(way, stage, room)[0]]
    highest = np.max(bounds, axis=0)
    return highest if costs.batch else float(highest)


def reached(makespan: float, bound: float) -> bool:
    """Return whether a makespan is at its lower bound, but for rounding.

    >>> reached(0.1 + 0.2, 0.3)
    True
    """
    return makespan <= bound * (1 + SAME)


class _Sets(NamedTuple):
    """Sets of operations, each of one device, shape (sets, settings...)."""

    least: Floats  # least head plus least tail; minus infinity for the empty set
    work: Floats
    first: Ints  # the first place on a way


def _sets(ways: list[Way], times: list[int], saved: Floats) -> _Sets:
    """Return for every two operations of a device all those with the head of one or later and the tail of the other or longer.

    No other set is needed: of all with one least head and one least tail, the largest gives the highest bound. The work
    is that of so many ``times`` each way.
    """
    device, kind, head, tail, duration = (np.concatenate([getattr(way, name) for way in ways]) for name in NEEDED)
    place = np.concatenate([np.arange(way.device.size) for way in ways])
    many = np.repeat(times, [way.device.size for way in ways])
    if int((np.bincount(device) ** 2).sum()) * math.prod(head.shape[1:]) > MOST_CELLS:
        raise HybridLabError("the sets of operations to compare do not fit in memory; take fewer settings at a time, or fewer chunks")
    full = (kind == B)[:, *(None for _ in head.shape[1:])]
    work = np.moveaxis(np.moveaxis(duration - np.where(full, saved[device], 0.0), 0, -1) * many, -1, 0)
    parts = []
    for here in (np.flatnonzero(device == one) for one in range(device.max() + 1)):
        heads, tails = head[here][:, None], tail[here][None]
        least = heads + tails
        total, first = np.zeros_like(least), np.full(least.shape, -1)
        for row in here[np.argsort(-place[here], kind="stable")]:
            inside = (heads <= head[row]) & (tails <= tail[row])
            total += np.where(inside, work[row], 0.0)
            first[inside] = place[row]
        parts.append([array.reshape(-1, *head.shape[1:]) for array in (np.where(first < 0, -np.inf, least), total, first)])
    return _Sets(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _chain(ways: list[Way]) -> Floats:
    """Return the time of the longest chain of one microbatch."""
    longest: Floats = np.max([(way.head + way.duration + way.tail).max(axis=0) for way in ways], axis=0)
    return longest


def _generations(way: Way, stage: int, room: Ints) -> tuple[int, int, Ints]:
    """Return how often the device's room must be refilled for the chunks up to ``stage``, who comes after that, and these chunks.

    The activations of i chunks of n microbatches, sorted by their start: number kP + 1 waits for number (k-1)P + 1 to leave.
    After k generations i * n - kP activations are left, which belong to at least 1/i as many microbatches.
    """
    chunks = np.flatnonzero(way.device[: stage + 1] == way.device[stage])
    activations = chunks.size * way.microbatches
    generations = (activations - 1) // int(room[way.device[stage]])
    left = activations - generations * int(room[way.device[stage]])
    return generations, -(-left // chunks.size), chunks


def _full(way: Way, stage: int, sets: _Sets, room: Ints) -> Floats:
    """Return when the step can end if the last microbatches enter ``stage`` only after the device's room was full before."""
    generations, microbatches, chunks = _generations(way, stage, room)
    entry = way.head[chunks[0]] + generations * way.lifetime[chunks].min(axis=0)
    remaining = np.where(sets.first >= stage, sets.least + microbatches * sets.work, -np.inf).max(axis=0)
    full: Floats = entry - way.head[stage] + remaining
    return full


def _area(schedule: Schedule, ways: list[Way], room: Ints) -> Floats:
    """Return the highest bound that the sum of all lifetimes on a device gives."""
    stages, settings = schedule.stages, ways[0].head.shape[1:]
    shape = (schedule.devices, *settings)
    area, count = np.zeros(shape), np.zeros(schedule.devices)
    entry, leave, forward, release = (np.full(shape, np.inf) for _ in range(4))
    for way in ways:
        device = way.device[:stages]
        np.add.at(area, device, way.lifetime * way.microbatches)
        np.add.at(count, device, way.microbatches)
        for least, value in ((entry, way.head[:stages]), (leave, way.after), (forward, way.duration[:stages]), (release, way.release)):
            np.minimum.at(least, device, value)
    most = np.minimum(room, count).reshape(-1, *(1 for _ in settings))
    bound: Floats = (entry + area / most + (most - 1) / 2 * (forward + release) + leave).max(axis=0)
    return bound


def _saved_by_pairs(schedule: Schedule, costs: Costs) -> Floats:
    """Return the most that running beside a forward can save of each full backward, shape (devices, settings...)."""
    table = costs.table(schedule.devices, schedule.chunks)
    overlap = costs.overlap[..., 0] if schedule.pairs.size else np.zeros(())
    saved: Floats = overlap * np.minimum(table[F], table[B])
    return saved
