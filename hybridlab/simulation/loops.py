"""Three loops that compute when operations start and end.

The three loops add the same numbers in the same order, so their results are equal bit by bit. Each loop is the fastest for some sizes.

Every loop goes through the slots of a schedule in order. When a loop reaches an operation, it has already computed two times: the end of
the operation before it on its device, and the end of its source. Both operations have smaller slots.
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
    """The times of a schedule's operations and messages: two tables of times, and for each operation its index in each table.

    Parameters
    ----------
    schedule : Schedule or Replicated
        The operations.
    table : array, shape (times, settings...)
        Times of operations. Both operations of an overlapped pair have the time of the pair.
    use : array of int, shape (operations,)
        The index of each operation's time in ``table``.
    late : array, shape (latencies, settings...)
        Latencies of messages.
    link : array of int, shape (operations,)
        The index of the latency of each operation's input in ``late``.
    """

    schedule: Operations
    table: Floats
    use: Ints
    late: Floats
    link: Ints


# one_by_one handles this many operations at a time, and row_by_row looks up the times of this many cells at a time, so that the numbers
# fit in the cache of the processor.
BLOCK = 2**14


def one_by_one(schedule: Operations, costs: Costs) -> Edges:
    """Return the times for one setting of a schedule without overlapped pairs. The loop computes one operation at a time."""
    size = schedule.kind.size
    numbers = costs.numbers(schedule.chunks)
    if numbers is None:
        takes, late = durations(schedule, costs).tolist(), latencies(schedule, costs).tolist()
    else:
        *kinds, latency = numbers
        takes, late = 2 * kinds, [0.0] * 4 + [latency] * 4  # indexed by the kinds of schedule.walk, 0 to 7
    start, end = [0.0] * size, [0.0] * (size + 1)  # the last end stays 0: it is read at index -1 if an operation waits for no other
    # A long schedule is walked in parts, because the tuples of schedule.walk take much more memory than the arrays.
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
    """Return the times for one setting of a schedule without overlapped pairs. The loop computes one slot at a time.

    The times are in matrices with a row for each slot and a column for each device. If a device has no operation in a slot, the matrix of
    ends repeats the end of its operation before.
    """
    slots, devices = 1 + int(schedule.steps.max()), schedule.devices
    place = schedule.steps * devices + schedule.device
    nothing = slots * devices  # index of an end that stays 0, for operations without a source
    sources = np.full((slots, devices), nothing)
    sources.ravel()[place] = np.append(place, nothing)[schedule.source]  # the source -1 reads the last entry, ``nothing``
    table, use = times_by_use(schedule, costs)
    uses = _small_matrix(use, place, (slots, devices), empty=table.size, largest=table.size)
    table = np.append(table, 0.0)  # the time of a cell without an operation
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
    """Return the times of several schedules for all settings. The loop computes one slot at a time. Overlapped pairs are allowed.

    In the result, the operations of run k begin at row ``bounds[k]``.
    """
    return all_lookups([Lookup(run[0], *_times_with_pairs(*run), *latencies_by_link(*run)) for run in runs], bounds)


def all_lookups(runs: Sequence[Lookup], bounds: Sequence[int]) -> Edges:
    """Return the same as :func:`all_settings`, but from times of operations and messages instead of costs."""
    rows, slots, source, before, pairs = _by_slot([run.schedule for run in runs], bounds)
    table, use = _join_tables([(run.table, run.use) for run in runs], rows)
    late, link = _join_tables([(run.late, run.link) for run in runs], rows)
    settings, cells = table.shape[1:], max(1, math.prod(table.shape[1:]))  # 1 if the table has no axis for settings
    table = np.concatenate([late, table]).reshape(-1, cells)
    both_edges = np.empty((2, rows.size + 1, cells))  # one array for both, because the system gives a large array large pages of memory
    starts, ends = both_edges
    ends[-1] = 0.0  # read at row -1 if an operation waits for no other
    counts = {high - low for low, high in pairwise(slots)}  # slots with the same number of operations share their views
    known, added = np.empty((2, 2 * max(counts), cells))  # every slot uses the same two arrays, so that they stay in the cache
    # Numpy copies one element of 8 x cells bytes several times as fast as a row of ``cells`` elements.
    whole_row = np.dtype((np.void, 8 * cells))
    start_rows, end_rows, known_rows = (each.view(whole_row)[:, 0] for each in (starts, ends, known))
    views = {count: [each[part] for each in (known, added) for part in _halves(count)] + [known_rows[:count]] for count in counts}
    # Each slot needs only two look-ups: one for the ends of the operations that it waits for, one for latencies and times.
    needed, gained = _half_and_half(source, before, slots), _half_and_half(link, use + len(late), slots)
    pairs_of_slot = np.split(pairs, np.searchsorted(pairs, slots[1:-1])) if pairs.size else repeat(pairs)
    for (low, high), first in zip(pairwise(slots), pairs_of_slot, strict=False):
        both, edge, free, gains, delay, takes, edge_rows = views[high - low]
        now, twice = rows[low:high], slice(2 * low, 2 * high)
        ends.take(needed[twice], 0, both, "wrap")
        table.take(gained[twice], 0, gains, "clip")
        np.add(edge, delay, edge)
        np.maximum(edge, free, out=edge)
        if first.size:  # both operations of a pair start when both can start
            one = first - low
            edge[one] = edge[one + 1] = np.maximum(edge[one], edge[one + 1])
        start_rows[now] = edge_rows
        np.add(edge, takes, edge)
        end_rows[now] = edge_rows
    starts, ends = readonly(both_edges)[:, :-1].reshape(2, rows.size, *settings)
    return starts, ends


def _halves(count: int) -> tuple[slice, slice, slice]:
    """Return three slices of an array: the first ``2 x count`` entries, the first half of them, and the second half."""
    return slice(2 * count), slice(count), slice(count, 2 * count)


def _half_and_half(one: Ints, other: Ints, slots: Sequence[int]) -> Ints:
    """Return the entries of ``one`` and ``other`` in one array, slot by slot. In each slot the entries of ``one`` come first."""
    counts = np.diff(slots)
    place = np.arange(one.size) + np.repeat(slots[:-1], counts)
    both = np.empty(2 * one.size, dtype=np.intp)
    both[place], both[place + np.repeat(counts, counts)] = one, other
    return both


def _small_matrix(values: Ints, place: Ints, shape: tuple[int, int], empty: int, largest: int) -> npt.NDArray[Any]:
    """Return a matrix with ``values`` at each ``place`` and ``empty`` elsewhere. An entry takes two bytes if ``largest`` is below 2**16."""
    matrix = np.full(shape, empty, dtype=np.uint16 if largest < 2**16 else np.intp)
    matrix.ravel()[place] = values
    return matrix


def _join_tables(tables: Sequence[tuple[Floats, Ints]], rows: Ints) -> tuple[Floats, Ints]:
    """Return all tables joined into one table, and the index in it for each of the ``rows``."""
    sizes = np.cumsum([0, *(len(table) for table, _ in tables)])
    index = np.concatenate([place + size for (_, place), size in zip(tables, sizes, strict=False)])
    return np.concatenate([table for table, _ in tables]), index[rows]


def _times_with_pairs(schedule: Operations, costs: Costs) -> tuple[Floats, Ints]:
    """Return the same as :func:`times_by_use`, but both operations of an overlapped pair take the time of the pair."""
    table, use = times_by_use(schedule, costs)
    first = schedule.pairs
    if not first.size:
        return table, use
    # Most pairs have the same times, so each combination of a forward's time and a backward's time gets only one entry.
    kinds, number = np.unique(use[first] * len(table) + use[first + 1], return_inverse=True)
    forward, backward = np.divmod(kinds, len(table))
    use = use.copy()
    use[first] = use[first + 1] = len(table) + number
    return np.concatenate([table, costs.together(table[forward], table[backward])]), use


def _by_slot(schedules: Sequence[Operations], bounds: Sequence[int]) -> tuple[Ints, list[int], Ints, Ints, Ints]:
    """Return the rows of all schedules sorted by slot, and for each row the rows that it must wait for.

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
    """Return ``rows`` with ``low`` added to each row number. The entry -1 means that there is no row, and stays -1."""
    return np.where(rows < 0, -1, rows + low) if low else rows
