"""The lower bound: no order of a step has a shorter makespan. The bound needs no solver, and costs can have several settings."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.bound.chains import Chain, capacity_of, chains_of
from hybridlab.bound.precedence import precedence_bound
from hybridlab.checks import MOST_CELLS, short_repr
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import B, F, Schedule
from hybridlab.simulation import times_by_place

MOST_ORDERED = 13_000  # largest number of operations, over all settings, for the bound by precedences: about a second
SAME = 1e-12  # because of rounding, two times count as equal up to this relative difference


def lower_bound(schedule: Schedule, costs: Costs, memory: Any = None) -> Any:
    """Return a lower bound: no order of the schedule's operations has a shorter makespan.

    The bound holds for orders that obey three rules. (1) Every operation stays on its device. (2) An operation starts after the operations
    that it needs have ended and their messages have arrived. (3) No device holds more activations than the memory allows.

    The result is the largest of five bounds. They use two times of each operation. The head of an operation is the shortest possible time
    from the beginning of the step to the start of the operation. The tail is the shortest possible time from the end of the operation to
    the end of the step.

    - Chain: the operations of one microbatch run one after another.
    - Device: the operations of one device run one after another. Take any set of operations of a device. The first operation of the set
      starts no earlier than the smallest head in the set. After the last operation of the set, at least the smallest tail in the set
      remains.
    - Full device: the lifetime of an activation is the time for which a device holds it. If the device can hold P activations, activation
      kP + 1 cannot start before k lifetimes have passed. After that time, the remaining microbatches still have to run.
    - Area: plot the number of activations on a device against time. The area below the curve is the sum of all lifetimes. The curve is
      never higher than P, and each operation raises or lowers it by at most one.
    - Precedence: in one of the shortest orders, the microbatches of every stage and kind come in increasing order. There, a device with
      room for P activations of one stage starts forward j after it has freed activation j - P. With these precedences, the
      head and the tail of an operation are the longest paths before and after it, and they include all work of its device that must come
      before or after it. The bound is the largest sum, over all sets of operations of a device, of smallest head, work and smallest
      tail. It takes up to 0.1 milliseconds for each operation. It is left out for more than 13,000 operations (times the settings), for
      schedules with two copies of the weights, for times that differ from microbatch to microbatch, and for overlapped pairs.

    Rounding can change the last digits of the bound.

    Parameters
    ----------
    schedule : Schedule
        The schedule with the operations and their devices. Its order is not used.
    costs : Costs
        The times of the operations and messages.
    memory : number, sequence of numbers, or Memory, optional
        The largest number of activations that a device may hold: one number for all devices, or one for each device. The unit is the
        activation of one microbatch on a whole device, as in :attr:`Timeline.peak_activations`. :class:`~hybridlab.Memory` counts in
        bytes. None means the peak of ``schedule`` on each device. A number above the microbatches of a step is no limit.

    Returns
    -------
    float or Floats
        The bound in the unit of the costs. For costs with several settings, an array of shape (settings...).

    Raises
    ------
    HybridLabError
        The arguments are no schedule and costs (``wrong-type``), the costs are for another number of devices (``does-not-fit``), there are
        too many settings (``too-large``), or the memory does not hold one microbatch (``too-small``), is NaN (``not-finite``), is not one
        number or one for each device (``wrong-shape``), or is no number (``not-a-number``, ``empty``, ``masked``, ``ragged``).

    References
    ----------
    Heads and tails: J. R. Jackson, Scheduling a Production Line to Minimize Maximum Tardiness, 1955; J. Carlier, The one-machine
    sequencing problem, European Journal of Operational Research 11, 1982.

    Examples
    --------
    >>> from hybridlab import build, simulate
    >>> costs, schedule = Costs(forward=10, backward=20, weight_share=0.6, p2p=5), build("zb-h1", devices=8, microbatches=24)
    >>> lower_bound(schedule, costs), simulate(schedule, costs).makespan
    (902.0, 902.0)
    """
    if not isinstance(schedule, Schedule) or not isinstance(costs, Costs):
        raise HybridLabError(
            f"a bound or an optimum is computed from a Schedule and Costs, not from {short_repr(schedule)} and {short_repr(costs)}",
            "wrong-type",
        )
    capacity = capacity_of(schedule, memory)
    (highest,) = bounds_at(schedule, costs, [capacity])
    if schedule.kind.size * max(1, math.prod(costs.batch)) <= MOST_ORDERED and not _saved_by_pairs(schedule, costs).any():
        chains = chains_of(schedule, costs)
        if len(chains) == 1:
            highest = np.maximum(highest, precedence_bound(chains[0], capacity))
    return highest if costs.batch else float(highest)


def bounds_at(schedule: Schedule, costs: Costs, capacities: Sequence[Ints]) -> list[Floats]:
    """Return the lower bound without precedences for each of several capacities. Most of the work is done once for all of them.

    Each capacity is an array of shape (devices,) as :func:`capacity_of` gives it. Each bound has the shape (settings...).
    """
    chains = chains_of(schedule, costs)
    saved = _saved_by_pairs(schedule, costs)
    sets_of_one = [_joined(_operation_sets([chain], [1], saved)) for chain in chains]
    if len(chains) == 1:
        of_devices = [(sets_of_one[0].least + chains[0].microbatches * sets_of_one[0].work).max(axis=0)]
    else:  # one device at a time, because with many chains the sets of all devices do not fit in memory together
        counts = [chain.microbatches for chain in chains]
        of_devices = [(sets.least + sets.work).max(axis=0) for sets in _operation_sets(chains, counts, saved)]
    of_all = [_chain_bound(chains), *of_devices]
    highest = []
    for capacity in capacities:
        bounds = [*of_all, _area_bound(schedule, chains, capacity)]
        for chain, of_one in zip(chains, sets_of_one, strict=True):
            full_stages = (stage for stage in range(schedule.stages) if _generations(chain, stage, capacity)[0])
            bounds += [_full_device_bound(chain, stage, of_one, capacity) for stage in full_stages]
        highest.append(np.max(bounds, axis=0))
    return highest


def reached(makespan: float, bound: float) -> bool:
    """Return whether a makespan equals its lower bound, up to rounding.

    >>> reached(0.1 + 0.2, 0.3)
    True
    """
    return makespan <= bound * (1 + SAME)


class _OperationSets(NamedTuple):
    """Sets of operations. All operations of a set run on the same device."""

    least: Floats  # smallest head plus smallest tail, shape (sets, settings...); minus infinity for an empty set
    work: Floats  # sum of the durations, shape (sets, settings...)
    first: Ints  # smallest position of an operation of the set in its chain, shape (sets, settings...)


def _operation_sets(chains: list[Chain], counts: list[int], saved: Floats) -> Iterator[_OperationSets]:
    """Yield the sets of each device. For every two operations x, y, one set has all operations with head >= head(x) and tail >= tail(y).

    No other sets are needed: of all sets with the same smallest head and the same smallest tail, the largest set gives the highest bound.
    ``counts`` has one number for each chain. The work of the chain is multiplied by this number of microbatches.
    """
    device, kind, head, tail, duration = (
        np.concatenate([getattr(chain, name) for chain in chains]) for name in ("device", "kind", "head", "tail", "duration")
    )
    position = np.concatenate([np.arange(chain.device.size) for chain in chains])
    count = np.repeat(counts, [chain.device.size for chain in chains])
    cells = np.bincount(device) ** 2
    # the sets of one chain are stored together; those of several chains are needed for one device at a time
    if int(cells.sum() if len(chains) == 1 else 4 * cells.max()) * math.prod(head.shape[1:]) > MOST_CELLS:
        message = "the sets of operations to compare do not fit in memory; take fewer settings at a time, or fewer chunks"
        raise HybridLabError(message, "too-large")
    full_backward = (kind == B)[:, *(None for _ in head.shape[1:])]  # shape (positions, 1, ...) broadcasts over the settings
    work = np.moveaxis(np.moveaxis(duration - np.where(full_backward, saved[device], 0.0), 0, -1) * count, -1, 0)
    for on_device in (np.flatnonzero(device == each) for each in range(device.max() + 1)):
        if not on_device.size:
            continue
        heads, tails, works = (each[on_device].reshape(on_device.size, -1) for each in (head, tail, work))
        (heads, row), (tails, column) = _ranked(heads), _ranked(tails)
        cell = (row, column, np.arange(heads.shape[1]))
        total = np.zeros((len(heads), *tails.shape))
        first = np.full(total.shape, position.size)
        np.add.at(total, cell, works)
        np.minimum.at(first, cell, position[on_device, None])
        # A set has the operations of all cells with at least its head and its tail, so sums run from the last cell to the first.
        total = total[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
        first = np.minimum.accumulate(np.minimum.accumulate(first[::-1, ::-1], axis=0), axis=1)[::-1, ::-1]
        least = np.where(first == position.size, -np.inf, heads[:, None] + tails[None])
        yield _OperationSets(*(array.reshape(-1, *head.shape[1:]) for array in (least, total, first)))


def _joined(sets: Iterator[_OperationSets]) -> _OperationSets:
    """Return the sets of all devices together."""
    return _OperationSets(*(np.concatenate(arrays) for arrays in zip(*sets, strict=True)))


def _ranked(times: Floats) -> tuple[Floats, Ints]:
    """Return each column of ``times`` sorted, and for each time its place in its sorted column. Equal times have the same place."""
    order = np.argsort(times, axis=0, kind="stable")
    ordered = np.take_along_axis(times, order, axis=0)
    new = np.ones(times.shape, dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    places = np.maximum.accumulate(np.where(new, np.arange(len(times))[:, None], 0), axis=0)
    rank = np.empty(times.shape, dtype=np.intp)
    np.put_along_axis(rank, order, places, axis=0)
    return ordered, rank


def _chain_bound(chains: list[Chain]) -> Floats:
    """Return the time of the longest chain of one microbatch, shape (settings...)."""
    longest: Floats = np.max([(chain.head + chain.duration + chain.tail).max(axis=0) for chain in chains], axis=0)
    return longest


def _generations(chain: Chain, stage: int, capacity: Ints) -> tuple[int, int, Ints]:
    """Return three values: how many times the device of ``stage`` becomes full, the microbatches that then remain, and its chunks.

    Only the chunks up to ``stage`` count. Let i be their number. Sort the activations of n microbatches in these chunks by their start. If
    the device can hold P activations, activation kP + 1 waits until k generations of P activations have left. After k generations,
    i * n - kP activations remain. Each microbatch has i activations, so at least (i * n - kP) / i microbatches remain.
    """
    chunks = np.flatnonzero(chain.device[: stage + 1] == chain.device[stage])
    device_capacity = int(capacity[chain.device[stage]])
    activations = chunks.size * chain.microbatches
    generations = (activations - 1) // device_capacity
    remaining = activations - generations * device_capacity
    return generations, -(-remaining // chunks.size), chunks


def _full_device_bound(chain: Chain, stage: int, sets: _OperationSets, capacity: Ints) -> Floats:
    """Return the full-device bound of a stage, shape (settings...). The last microbatches must wait until the device is no longer full."""
    generations, microbatches, chunks = _generations(chain, stage, capacity)
    entry = chain.head[chunks[0]] + generations * chain.lifetime[chunks].min(axis=0)
    remaining = np.where(sets.first >= stage, sets.least + microbatches * sets.work, -np.inf).max(axis=0)
    bound: Floats = entry - chain.head[stage] + remaining
    return bound


def _area_bound(schedule: Schedule, chains: list[Chain], capacity: Ints) -> Floats:
    """Return the largest area bound of all devices, shape (settings...). The sum of the lifetimes on a device gives its area bound."""
    stages, settings = schedule.stages, chains[0].head.shape[1:]
    shape = (schedule.devices, *settings)
    area, count = np.zeros(shape), np.zeros(schedule.devices)
    entry, leave, forward, release = (np.full(shape, np.inf) for _ in range(4))
    for chain in chains:
        device = chain.device[:stages]
        np.add.at(area, device, chain.lifetime * chain.microbatches)
        np.add.at(count, device, chain.microbatches)
        smallest_of = ((entry, chain.head[:stages]), (leave, chain.after), (forward, chain.duration[:stages]), (release, chain.release))
        for smallest, values in smallest_of:
            np.minimum.at(smallest, device, values)
    most = np.minimum(capacity, count).reshape(-1, *(1 for _ in settings))
    bound: Floats = (entry + area / most + (most - 1) / 2 * (forward + release) + leave).max(axis=0)
    return bound


def _saved_by_pairs(schedule: Schedule, costs: Costs) -> Floats:
    """Return the longest time that a full backward on each device can save in an overlapped pair, shape (devices, settings...)."""
    table, place = times_by_place(schedule, costs)
    longest = np.zeros((2, schedule.devices, *costs.batch))  # the longest forward and the longest full backward of each device
    device, place = np.unique(np.stack([schedule.device, place]), axis=1)
    for most, kind in zip(longest, (F, B), strict=True):
        np.maximum.at(most, device, table[kind][place])
    overlap = costs.overlap[..., 0] if schedule.pairs.size else np.zeros(())
    saved: Floats = overlap * longest.min(axis=0)
    return saved
