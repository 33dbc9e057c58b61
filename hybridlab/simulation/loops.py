"""Three loops that compute when operations start and end.

They do the same sums in the same order, so their results are equal bit by bit. Each is the fastest for some sizes.

Every loop goes through the slots of a schedule. When it comes to an operation, it knows the end of the operation before it on the device
and the end of its source, because both have smaller slots.
"""

import math
from collections.abc import Sequence
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, Ints, readonly, sorted_places
from hybridlab.costs import Costs
from hybridlab.schedule import Operations
from hybridlab.simulation.times import durations, latencies, latencies_by_link, times_by_use

Edges = tuple[Floats, Floats]  # the start and the end of each operation, shape (operations, settings...), read-only


class Lookup(NamedTuple):
    """The times of a schedule's operations and messages, as tables and the place in them for each operation.

    Parameters
    ----------
    schedule : Schedule or Replicated
        The operations.
    table : array, shape (times, settings...)
        Times of operations; both operations of an overlapped pair have the time of the pair.
    use : array of int, shape (operations,)
        The place of each operation's time in ``table``.
    late : array, shape (latencies, settings...)
        Latencies of messages.
    link : array of int, shape (operations,)
        The place of the latency of each operation's input in ``late``.
    """

    schedule: Operations
    table: Floats
    use: Ints
    late: Floats
    link: Ints


# Operations in a piece of a walk, and cells of a matrix whose times are looked up together. Both then stay in the cache.
BLOCK = 2**14


def one_by_one(schedule: Operations, costs: Costs) -> Edges:
    """Return the times for one setting without overlapped pairs, computed operation by operation with plain numbers."""
    size = schedule.kind.size
    numbers = costs.numbers(schedule.chunks)
    if numbers is None:
        takes, late = durations(schedule, costs).tolist(), latencies(schedule, costs).tolist()
    else:
        *kinds, latency = numbers
        takes, late = 2 * kinds, [0.0] * 4 + [latency] * 4  # at the codes of schedule.walk
    start, end = [0.0] * size, [0.0] * (size + 1)  # the last end stays 0: the index -1 means that an operation waits for none
    # a long walk is not stored with the schedule, because its numbers take much more memory than the arrays
    parts = [schedule.walk] if size <= BLOCK else schedule.walk_in_parts(BLOCK)
    for rows, sources, befores, codes in parts:
        for row, source, before, code in zip(rows, sources, befores, rows if numbers is None else codes, strict=True):
            begin = end[source] + late[code]
            free = end[before]
            if free > begin:  # faster than a call of max
                begin = free
            start[row] = begin
            end[row] = begin + takes[code]
    end.pop()
    return readonly(np.array(start)), readonly(np.array(end))


def row_by_row(schedule: Operations, costs: Costs) -> Edges:
    """Return the times for one setting without overlapped pairs, computed slot by slot.

    The times are in matrices with a row for each slot and a column for each device. In a slot in which a device has no operation, it keeps
    the time at which it became free.
    """
    slots, devices = 1 + int(schedule.steps.max()), schedule.devices
    place = schedule.steps * devices + schedule.device
    nothing = slots * devices  # the place of an end that stays 0
    sources = np.full((slots, devices), nothing)
    sources.ravel()[place] = np.append(place, nothing)[schedule.source]  # the source -1 finds the last entry
    table, use = times_by_use(schedule, costs)
    uses = _small_matrix(use, place, (slots, devices), empty=table.size, largest=table.size)
    table = np.append(table, 0.0)  # the time of no operation
    late, link = latencies_by_link(schedule, costs)
    links = _small_matrix(link, place, (slots, devices), empty=0, largest=late.size)
    ends, starts = np.zeros(nothing + 1), np.empty((slots, devices))
    arrival, free = np.empty(devices), np.zeros(devices)
    rows = zip(sources, starts, ends[:-1].reshape(slots, devices), strict=True)
    block = -(-BLOCK // devices)  # rounded up: at least one slot
    for low in range(0, slots, block):
        now = slice(low, low + block)
        for takes, delay, (source, start, end) in zip(table.take(uses[now]), late.take(links[now]), rows, strict=False):
            ends.take(source, None, arrival, "clip")
            np.add(arrival, delay, arrival)
            np.maximum(arrival, free, out=start)
            np.add(start, takes, end)
            free = end
    return readonly(starts.take(place)), readonly(ends.take(place))


def all_settings(runs: Sequence[tuple[Operations, Costs]], bounds: Sequence[int]) -> Edges:
    """Return the times of several schedules for all settings, computed slot by slot, with overlapped pairs and any costs.

    The operations of run k have the rows from ``bounds[k]`` on.
    """
    return all_lookups([Lookup(run[0], *_times_with_pairs(*run), *latencies_by_link(*run)) for run in runs], bounds)


def all_lookups(runs: Sequence[Lookup], bounds: Sequence[int]) -> Edges:
    """Return the same as :func:`all_settings`, from the times themselves in place of costs."""
    rows, slots, source, before, pairs = _by_slot([run.schedule for run in runs], bounds)
    table, use = _join_tables([(run.table, run.use) for run in runs], rows)
    late, link = _join_tables([(run.late, run.link) for run in runs], rows)
    settings, cells = table.shape[1:], max(1, math.prod(table.shape[1:]))  # one cell even if the table has no settings' axis
    table = np.concatenate([late, table]).reshape(-1, cells)
    both_edges = np.empty((2, rows.size + 1, cells))  # one array, because the system gives large arrays large pages of memory
    starts, ends = both_edges
    ends[-1] = 0.0  # for the row -1, which means that an operation needs none
    counts = {high - low for low, high in pairwise(slots)}  # many slots have equally many operations and share their views
    known, added = np.empty((2, 2 * max(counts), cells))  # used again for each slot, so that they stay in the cache
    # numpy copies an element of 8 x cells bytes several times as fast as it copies a row of cells
    whole_row = np.dtype((np.void, 8 * cells))
    start_rows, end_rows, known_rows = (each.view(whole_row)[:, 0] for each in (starts, ends, known))
    views = {count: [each[part] for each in (known, added) for part in _halves(count)] + [known_rows[:count]] for count in counts}
    # For each slot, one look-up finds the ends of sources and of operations before, and one finds latencies and times.
    needed, gained = _half_and_half(source, before, slots), _half_and_half(link, use + len(late), slots)
    pairs_of_slot = np.split(pairs, np.searchsorted(pairs, slots[1:-1])) if pairs.size else repeat(pairs)
    for (low, high), first in zip(pairwise(slots), pairs_of_slot, strict=False):
        both, edge, free, gains, delay, takes, edge_rows = views[high - low]
        now, twice = rows[low:high], slice(2 * low, 2 * high)
        ends.take(needed[twice], 0, both, "wrap")
        table.take(gained[twice], 0, gains, "clip")
        np.add(edge, delay, edge)
        np.maximum(edge, free, out=edge)
        if first.size:  # the operations of a pair start together, when the later of them can
            one = first - low
            edge[one] = edge[one + 1] = np.maximum(edge[one], edge[one + 1])
        start_rows[now] = edge_rows
        np.add(edge, takes, edge)
        end_rows[now] = edge_rows
    starts, ends = readonly(both_edges)[:, :-1].reshape(2, rows.size, *settings)
    return starts, ends


def _halves(count: int) -> tuple[slice, slice, slice]:
    """Return the slices of ``2 x count`` entries, of their first half and of their second half."""
    return slice(2 * count), slice(count), slice(count, 2 * count)


def _half_and_half(one: Ints, other: Ints, slots: Sequence[int]) -> Ints:
    """Return the entries of ``one`` and of ``other`` in one array; in each slot, those of ``one`` come first."""
    counts = np.diff(slots)
    place = np.arange(one.size) + np.repeat(slots[:-1], counts)
    both = np.empty(2 * one.size, dtype=np.intp)
    both[place], both[place + np.repeat(counts, counts)] = one, other
    return both


def _small_matrix(values: Ints, place: Ints, shape: tuple[int, int], empty: int, largest: int) -> npt.NDArray[Any]:
    """Return a matrix with ``values`` at each ``place`` and ``empty`` elsewhere; it takes two bytes an entry if ``largest`` allows it."""
    matrix = np.full(shape, empty, dtype=np.uint16 if largest < 2**16 else np.intp)
    matrix.ravel()[place] = values
    return matrix


def _join_tables(tables: Sequence[tuple[Floats, Ints]], rows: Ints) -> tuple[Floats, Ints]:
    """Return one table of all tables, and the index of each of the ``rows`` in it."""
    sizes = np.cumsum([0, *(len(table) for table, _ in tables)])
    index = np.concatenate([place + size for (_, place), size in zip(tables, sizes, strict=False)])
    return np.concatenate([table for table, _ in tables]), index[rows]


def _times_with_pairs(schedule: Operations, costs: Costs) -> tuple[Floats, Ints]:
    """Return the result of :func:`times_by_use`, in which both operations of an overlapped pair take the time of the pair."""
    table, use = times_by_use(schedule, costs)
    first = schedule.pairs
    if not first.size:
        return table, use
    # few pairs have different times: each combination of two times gets one entry
    kinds, number = np.unique(use[first] * len(table) + use[first + 1], return_inverse=True)
    forward, backward = np.divmod(kinds, len(table))
    use = use.copy()
    use[first] = use[first + 1] = len(table) + number
    return np.concatenate([table, costs.together(table[forward], table[backward])]), use


def _by_slot(schedules: Sequence[Operations], bounds: Sequence[int]) -> tuple[Ints, list[int], Ints, Ints, Ints]:
    """Return the rows of all schedules sorted by slot, and the rows that each must wait for.

    Row i of schedule k gets the number ``bounds[k]`` + i. The result has five parts:

    - the row numbers in sorted order
    - the places in this order where a new slot begins
    - for each place, the row whose output its operation needs, or -1
    - for each place, the row before it on its device, or -1
    - the place of the first operation of each overlapped pair
    """
    slot = np.concatenate([schedule.slot for schedule in schedules])
    rows = sorted_places(slot)
    begins = [0, *(np.flatnonzero(np.diff(slot[rows])) + 1).tolist(), rows.size]
    source = np.concatenate([_shifted(each.source, low) for each, low in zip(schedules, bounds, strict=False)])
    before = np.concatenate([_shifted(each.before, low) for each, low in zip(schedules, bounds, strict=False)])
    pairs = np.concatenate([each.pairs + low for each, low in zip(schedules, bounds, strict=False)])
    return rows, begins, source[rows], before[rows], np.flatnonzero(np.isin(rows, pairs)) if pairs.size else pairs


def _shifted(rows: Ints, low: int) -> Ints:
    """Return ``rows`` with ``low`` added to each row number. The entry -1, which means that there is no row, stays -1."""
    return np.where(rows < 0, -1, rows + low) if low else rows
