"""The hops of a ring all-reduce that is given as a program: what each rank holds after each step, from the messages that it sends.

A program takes ``values``, shape (ranks, n), and returns ``(averages, messages)``. ``messages[s][r]`` has the numbers that rank r sends in
step s. It does not say which chunk these are, who receives them, what the receiver does, and what the ranks hold.

Observed: the numbers in each message, and the averages at the end. A first run of the program has values in which each pair of chunk and
rank has its own number. So a message of this run tells its chunk, and how often it has the number of each rank.

Inferred: the receivers, and what each receiver does with a chunk: it adds the chunk, keeps it instead of its own, or drops it. Rank r sends
to rank r + k, with one k for each half of the ring. The k and the actions are chosen for which most of the later messages and averages
have the numbers that the rank must hold then. If this leaves a choice, receivers add in the first D - 1 steps, and keep what they get
after them. A message or an average can be a sum, or a sum that is divided by the number of ranks; both count as the same sum.

If a rank sends numbers that it cannot hold, the numbers that it sends count, and the hop has a note. After the last step, the averages
count in the same way. A message of zeros counts as no message, because it does not tell its chunk.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import counted, short_repr
from hybridlab.errors import HybridLabError

MOST_HOPS = 60  # one more than the largest number of steps of a ring
NEAR = 0.05  # allowed distance of a count from a whole number: more than rounding errors of wire formats, less than for means
ADD, KEEP, DROP = "add", "keep", "drop"  # what a receiver does with a chunk: add it, keep it instead of its own, or neither


class ProgramHop(NamedTuple):
    """One step of a program, with the parts of a :class:`~hybridlab.collectives.Hop` that a view needs, and sentences about the step."""

    phase: str
    sender: list[int]
    receiver: list[int]
    chunk: list[int]
    held: Floats
    notes: list[str]


class Sent(NamedTuple):
    """A message of the first run: its chunk, and how often it has the number of each rank, shape (ranks,)."""

    chunk: int
    weights: Floats


Trial = list[list[Sent | None]]  # entry [step][rank]; None if a rank sends nothing or zeros
Result = tuple[Floats, list[list[Floats]]]  # averages, messages[step][rank]


@dataclass
class Cell:
    """What a rank holds in a chunk: counts, the factor from its numbers to sums, and what has arrived since the rank last sent it."""

    counts: Floats
    factor: int = 1
    arrived: list[tuple[int, int, Floats]] = field(default_factory=list)  # (step, sender, counts)


@dataclass
class Reading:
    """One way to understand a program, for the shifts ``by``: rank r sends to rank r + by[0] in the first half, r + by[1] in the second.

    Parameters
    ----------
    by : pair of int
        The shifts.
    factors : dict
        (step, sender) -> 1 if the message is a sum, or the number of ranks if it is a sum divided by this number.
    actions : dict
        (step, sender) -> what the receiver does: ``ADD``, ``KEEP`` or ``DROP``.
    strange : list of (step, rank)
        The ranks that send in this step what they cannot hold. The step after the last one stands for the averages.
    undivided : list of (rank, chunk)
        The averages that are sums and are not divided.
    """

    by: tuple[int, int]
    factors: dict[tuple[int, int], int] = field(default_factory=dict)
    actions: dict[tuple[int, int], str] = field(default_factory=dict)
    strange: list[tuple[int, int]] = field(default_factory=list)
    undivided: list[tuple[int, int]] = field(default_factory=list)


def with_hops(name: str, ring: Callable[[Floats], Any], ranks: int) -> Callable[[Floats], Any]:
    """Return a function of values that returns the hops of a ring, also if the ring is a program that returns averages and messages.

    Parameters
    ----------
    name : str
        The name of the ring, for errors.
    ring : callable
        A function of values, shape (ranks, n). It returns hops or ``(averages, messages)``.
    ranks : int
        The number of ranks, at least 2.

    Raises
    ------
    HybridLabError
        The function raises an error, or its averages and messages cannot be understood: see this module.

    Examples
    --------
    >>> def direct(values):  # two ranks exchange halves, then the sums of these halves
    ...     (a, b), (c, d) = (np.array_split(row, 2) for row in values)
    ...     return np.array([[*a + c, *b + d]] * 2) / 2, [[a, d], [b + d, a + c]]
    >>> [(hop.phase, hop.chunk, hop.held.tolist()) for hop in with_hops("direct", direct, 2)(np.array([[1.0, 2.0], [10.0, 20.0]]))]
    [('reduce-scatter', [0, 1], [[1.0, 22.0], [11.0, 20.0]]), ('all-gather', [1, 0], [[11.0, 22.0], [11.0, 22.0]])]
    """
    # The number of rank s in chunk c is 1 at place c * ranks + s of this chunk, and all other numbers are 0.
    trial = np.zeros((ranks, ranks, ranks, ranks))  # rank, chunk, place (two axes: chunk and rank)
    for chunk in range(ranks):
        trial[range(ranks), chunk, chunk, range(ranks)] = 1
    values = trial.reshape(ranks, -1)
    result = _called(name, ring, values)
    if not _is_program(result):
        return lambda values: _called(name, ring, values)
    first = _checked(name, result, values)
    sent = [[_sent(name, step, rank, each, ranks) for rank, each in enumerate(row)] for step, row in enumerate(first[1])]
    ends = _ends(name, first[0], ranks)
    best = _best(sent, ends)
    zeros = [[rank for rank, each in enumerate(row) if each.size and not each.any()] for row in first[1]]
    return lambda values: _hops(_checked(name, _called(name, ring, values), values, first), sent, zeros, best, values)


def _called(name: str, ring: Callable[[Floats], Any], values: Floats) -> Any:
    """Return what a ring returns for values. An error inside the function becomes a sentence with its name."""
    try:
        return ring(values.copy())
    except Exception as why:
        function = getattr(ring, "__name__", None) or getattr(ring, "name", None) or type(ring).__name__
        where = f"{function} raises {type(why).__name__} for {len(values)} ranks"
        raise HybridLabError(f"the ring {name!r} stops: {where}: {why}", "raises") from why


def _is_program(result: Any) -> bool:
    """Return whether a result is a pair of averages and messages. Two hops are also a pair, and a hop has a phase."""
    return isinstance(result, (tuple, list)) and len(result) == 2 and not any(hasattr(each, "phase") for each in result)


def _checked(name: str, result: Any, values: Floats, first: Result | None = None) -> Result:
    """Return the averages and messages of a program as arrays, or raise an error. Each run sends the same chunks as the ``first`` one."""
    ranks, size = values.shape
    subject = f"the ring {name!r} with {ranks} ranks"
    if not _is_program(result):
        raise HybridLabError(f"{subject} returns (averages, messages) with some numbers and {short_repr(result)} with others", "not-a-ring")
    averages = _numbers(result[0], f"the averages of {subject}")
    if averages.shape != values.shape:
        raise HybridLabError(f"the averages of {subject} have the shape {averages.shape}, not {values.shape} as the values", "wrong-shape")
    steps = _listed(result[1], f"the messages of {subject} must be a list of steps")
    if not ranks <= len(steps) + 1 <= MOST_HOPS:
        raise HybridLabError(f"{subject} must send in {ranks - 1} to {MOST_HOPS - 1} steps, not {len(steps)}", "wrong-length")
    messages = []
    for step, row in enumerate(steps):
        sent = _listed(row, f"step {step} of {subject} must be a list of messages")
        if len(sent) != ranks:
            wanted = "not one from each rank; an empty list stands for no message"
            raise HybridLabError(f"step {step} of {subject} has {counted(len(sent), 'message')}, {wanted}", "wrong-length")
        read = [
            _numbers([] if each is None else each, f"in step {step} of {subject}, the message of rank {r}") for r, each in enumerate(sent)
        ]
        for rank, message in enumerate(read):
            if message.shape not in ((0,), (size // ranks,)):
                what = counted(message.size, "number") if message.ndim == 1 else f"numbers of shape {message.shape}"
                wanted = f"not one chunk of {counted(size // ranks, 'number')}"
                raise HybridLabError(f"in step {step} of {subject}, rank {rank} sends {what}, {wanted}", "wrong-shape")
        messages.append(read)
    if first and [[bool(each.size) for each in row] for row in messages] != [[bool(each.size) for each in row] for row in first[1]]:
        raise HybridLabError(f"{subject} sends other messages with other numbers: a ring sends the same chunks in each run", "not-a-ring")
    return averages, messages


def _numbers(value: Any, what: str) -> Floats:
    """Return finite numbers as an array, or raise an error."""
    try:
        array = np.array(value)
    except ValueError:
        raise HybridLabError(f"{what} must be an array of numbers, not {short_repr(value)}", "ragged") from None
    if array.dtype.kind not in "iuf":
        raise HybridLabError(f"{what} must be an array of numbers, not {short_repr(value)}", "not-a-number")
    if not np.isfinite(array).all():
        raise HybridLabError(f"{what} must be finite, not {short_repr(value)}", "not-finite")
    return array.astype(np.float64)


def _listed(value: Any, wanted: str) -> list[Any]:
    """Return a list, tuple or array as a list, or raise an error that begins with the text ``wanted``."""
    if not isinstance(value, (list, tuple)) and not (isinstance(value, np.ndarray) and value.ndim):
        raise HybridLabError(f"{wanted}, not {short_repr(value)}", "not-a-list")
    return list(value)


def _sent(name: str, step: int, rank: int, message: Floats, ranks: int) -> Sent | None:
    """Return the chunk and the weights of a message of the first run, or None if there are no numbers in it."""
    if not message.any():
        return None
    weights = message.reshape(ranks, ranks)
    where = f"in step {step} of the ring {name!r} with {ranks} ranks, rank {rank} sends"
    chunks = np.flatnonzero(np.abs(weights).max(axis=1) > NEAR / ranks).tolist()
    if len(chunks) != 1:
        found = f"numbers of chunks {', '.join(map(str, chunks[:-1]))} and {chunks[-1]}" if chunks else "numbers of no chunk"
        raise HybridLabError(f"{where} {found} in one message, not of one chunk", "mixed-chunks")
    _refuse_fractions(weights[chunks[0]], ranks, where)
    return Sent(chunks[0], weights[chunks[0]])


def _ends(name: str, averages: Floats, ranks: int) -> Floats:
    """Return how often each average of the first run has the number of each rank, shape (ranks, chunks, ranks)."""
    weights = averages.reshape((ranks,) * 4)
    at_the_end = f"at the end of the ring {name!r} with {ranks} ranks"
    for rank, chunk, source in np.ndindex(ranks, ranks, ranks):
        if chunk != source and np.abs(weights[rank, chunk, source]).max() > NEAR / ranks:
            raise HybridLabError(f"{at_the_end}, rank {rank} has numbers of chunk {source} in chunk {chunk}", "mixed-chunks")
    ends: Floats = weights[:, range(ranks), range(ranks)]
    for rank, chunk in np.ndindex(ranks, ranks):
        _refuse_fractions(ends[rank, chunk], ranks, f"{at_the_end}, chunk {chunk} of rank {rank} has")
    return ends


def _refuse_fractions(weights: Floats, ranks: int, where: str) -> None:
    """Raise an error if numbers are neither sums nor sums divided by the number of ranks. ``where`` begins the error."""
    off = np.abs(weights * ranks - np.rint(weights * ranks))
    if off.max() > NEAR:
        worst = int(off.argmax())
        found = f"{weights[worst]:.3g} times the number of rank {worst}"
        raise HybridLabError(f"{where} {found}: divide sums by {ranks}, and only once", "not-a-sum")


def _best(trial: Trial, ends: Floats) -> Reading:
    """Return the reading with the fewest numbers that a rank cannot hold; the first one of equals."""
    best, *others = _shifts(len(ends))
    reading = _reading(trial, ends, best)
    for by in others:
        if not reading.strange:
            break
        reading = min(reading, _reading(trial, ends, by), key=lambda each: len(each.strange))
    return reading


def _shifts(ranks: int) -> list[tuple[int, int]]:
    """Return the pairs of shifts to try: first one direction for both halves, then two directions, then larger shifts."""
    ones = dict.fromkeys((1, ranks - 1))
    pairs = [(shift, shift) for shift in ones] + [(first, second) for first in ones for second in ones if first != second]
    return pairs + [(shift, shift) for shift in range(2, ranks - 1)]


def _reading(trial: Trial, ends: Floats, by: tuple[int, int]) -> Reading:
    """Return the best way to understand the first run if rank r sends to rank r + by[0], later r + by[1]."""
    ranks = len(ends)
    reading = Reading(by)
    cells = [[Cell(own) for _ in range(ranks)] for own in np.eye(ranks)]
    for step, row in enumerate(trial):
        for rank, sent in enumerate(row):
            if sent:
                cell = cells[rank][sent.chunk]
                if not _explain(cell, sent.weights, (cell.factor, 1, ranks), reading):
                    reading.strange.append((step, rank))
                reading.factors[step, rank] = cell.factor
        # All ranks send before anything arrives.
        for rank, sent in enumerate(row):
            if sent:
                cell, there = cells[rank][sent.chunk], cells[_receiver(rank, step, ranks, by)][sent.chunk]
                there.arrived.append((step, rank, cell.counts))
                there.factor = cell.factor  # numbers that are added or kept together are all divided, or all not
    for rank, chunk in np.ndindex(ranks, ranks):
        cell = cells[rank][chunk]
        if not _explain(cell, ends[rank, chunk], (ranks, 1), reading):
            reading.strange.append((len(trial), rank))
        elif cell.factor == 1:
            reading.undivided.append((rank, chunk))
    return reading


def _receiver(rank: int, step: int, ranks: int, by: tuple[int, int]) -> int:
    return (rank + by[step >= ranks - 1]) % ranks


def _explain(cell: Cell, weights: Floats, factors: Sequence[int], reading: Reading) -> bool:
    """Update a cell to the numbers that are observed in it, and return whether these are numbers that the rank can hold.

    The actions of the rank with what has arrived are chosen so that it holds these numbers, and are written into the reading.
    """
    ways = [(factor, actions) for factor in dict.fromkeys(factors) for actions in _choices(cell, len(weights))]
    fit = next((way for way in ways if _near(way[0] * weights, _after(cell, way[1]))), None)
    # If nothing fits, the numbers are a sum if they can be one, and the usual actions are taken.
    factor, actions = fit or next(way for way in ways if _near(way[0] * weights, np.rint(way[0] * weights)))
    for (step, sender, _), action in zip(cell.arrived, actions, strict=True):
        reading.actions[step, sender] = action
    cell.counts, cell.factor, cell.arrived = np.rint(factor * weights), factor, []
    return fit is not None


def _choices(cell: Cell, ranks: int) -> Iterator[list[str]]:
    """Yield lists of actions for what has arrived in a cell, the usual one first."""
    yield [ADD if step < ranks - 1 else KEEP for step, _, _ in cell.arrived]
    yield from ([action] * len(cell.arrived) for action in (ADD, KEEP, DROP))


def _after(cell: Cell, actions: list[str]) -> Floats:
    """Return the counts in a cell after these actions."""
    counts = cell.counts
    for (_, _, arrived), action in zip(cell.arrived, actions, strict=True):
        counts = {ADD: counts + arrived, KEEP: arrived, DROP: counts}[action]
    return counts


def _near(found: Floats, wanted: Floats) -> bool:
    return bool(np.abs(found - wanted).max() <= NEAR)


def _hops(result: Result, trial: Trial, zeros: list[list[int]], reading: Reading, values: Floats) -> list[ProgramHop]:
    """Return the hops of a run, as sums that the ranks hold after each step. After the last step, they hold the averages of the run."""
    averages, messages = result
    ranks = len(values)
    held = [np.array_split(row.copy(), ranks) for row in values]
    phases, notes = _phases(trial, reading, ranks), _notes(zeros, reading, ranks)
    hops = []
    sums = [
        {rank: (each.chunk, reading.factors[step, rank] * messages[step][rank]) for rank, each in enumerate(row) if each}
        for step, row in enumerate(trial)
    ]
    for step, (row, later) in enumerate(pairwise([*sums, {}])):
        receivers = [_receiver(rank, step, ranks, reading.by) for rank in row]
        for (rank, (chunk, numbers)), to in zip(row.items(), receivers, strict=True):
            action = reading.actions[step, rank]
            if action != DROP:
                held[to][chunk] = numbers + (held[to][chunk] if action == ADD else 0)
        # A rank holds what it sends in the next step.
        for rank, (chunk, numbers) in later.items():
            held[rank][chunk] = numbers
        now = np.array([np.concatenate(chunks) for chunks in held]) if step + 1 < len(sums) else averages * ranks
        hops.append(ProgramHop(phases[step], list(row), receivers, [chunk for chunk, _ in row.values()], now, notes[step]))
    return hops


def _phases(trial: Trial, reading: Reading, ranks: int) -> list[str]:
    """Return the phase of each step. If there are not 2(D-1) steps, the all-gather begins where most receivers keep what they get."""
    half = ranks - 1
    if len(trial) != 2 * half:
        actions = [[reading.actions[step, rank] for rank, each in enumerate(row) if each] for step, row in enumerate(trial)]
        half = next((step for step, row in enumerate(actions) if 2 * row.count(KEEP) > len(row)), len(trial))
    return ["reduce-scatter" if step < half else "all-gather" for step in range(len(trial))]


def _notes(zeros: list[list[int]], reading: Reading, ranks: int) -> list[list[str]]:
    """Return sentences for each step about messages and averages that do not follow from the messages before."""
    notes = [[f"Only zeros come from {_listed_text('rank', each)}."] if each else [] for each in zeros]
    for step, row in enumerate(notes):
        if odd := sorted({rank for when, rank in reading.strange if when == step}):
            row.append(f"What {_listed_text('rank', odd)} {'sends' if len(odd) == 1 else 'send'} is not what arrived there.")
        dropped = sorted(
            _receiver(rank, step, ranks, reading.by) for (when, rank), action in reading.actions.items() if (when, action) == (step, DROP)
        )
        if dropped:
            row.append(f"What arrives at {_listed_text('rank', dropped)} is not used.")
    if odd := sorted({rank for when, rank in reading.strange if when == len(notes)}):
        notes[-1].append(f"The result on {_listed_text('rank', odd)} is not what arrived there.")
    if len(reading.undivided) == ranks**2:
        notes[-1].append(f"The results are sums, not divided by {ranks}.")
    elif reading.undivided:
        places = ", ".join(f"chunk {chunk} on rank {rank}" for rank, chunk in reading.undivided)
        notes[-1].append(f"Results that are not divided by {ranks}: {places}.")
    return notes


def _listed_text(noun: str, numbers: list[int]) -> str:
    """Return a noun with its numbers, such as "ranks 0, 1 and 2"."""
    *before, last = map(str, numbers)
    return f"{noun}s {', '.join(before)} and {last}" if before else f"{noun} {last}"
