"""The rings of lab 4: plans of a ring all-reduce, right and faulty ones, and sentences about their faults."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, readonly
from hybridlab.checks import known_name, numbers, short_repr
from hybridlab.errors import HybridLabError

Rule = Callable[[int, int, int], int]  # rank, step, ranks -> the chunk that the rank sends
HALVES = ("reduce-scatter", "all-gather")
MOST_RANKS = 64


@dataclass(frozen=True)
class RingPlan:
    """The plan of a ring all-reduce. The default is a right ring, in which rank r sends to rank r + 1, and the last rank to rank 0.

    Parameters
    ----------
    scatter, gather : callable
        The chunk that a rank sends in a step of the reduce-scatter and of the all-gather.
    scatter_short, gather_short : int
        The number of steps that are left out at the end of the reduce-scatter and of the all-gather.
    gather_adds : bool
        Whether a receiver adds the received chunk in the all-gather. It should replace its own chunk.
    divides : bool
        Whether the sums are divided by the number of ranks at the end.
    to : int
        Rank r sends to rank r + ``to``.
    """

    scatter: Rule = lambda rank, step, ranks: (rank - step) % ranks
    gather: Rule = lambda rank, step, ranks: (rank + 1 - step) % ranks
    scatter_short: int = 0
    gather_short: int = 0
    gather_adds: bool = False
    divides: bool = True
    to: int = 1


@dataclass(frozen=True)
class Way:
    """The direction and the first chunks of a ring: rank r sends to rank r + ``to`` (1 or -1) and starts with chunk r + ``first``.

    >>> [Way(to=-1, first=1).chunk(2, step, 4) for step in range(3)], Way(to=-1, first=1).receiver, Way(to=-1, first=1).start
    ([3, 0, 1], 'rank r - 1', 'chunk r + 1')
    """

    to: int = 1
    first: int = 0

    def chunk(self, rank: int, step: int, ranks: int) -> int:
        """Return the chunk that a rank sends in a step. The first step of the all-gather is step ``ranks - 1``."""
        return (rank + self.first - self.to * step) % ranks

    def sender(self, rank: int, ranks: int) -> int:
        """Return the rank from which a rank receives."""
        return (rank - self.to) % ranks

    @property
    def receiver(self) -> str:
        """The rank to which rank r sends, as a formula."""
        return f"rank {plus('r', self.to)}"

    @property
    def start(self) -> str:
        """The chunk that rank r sends first, as a formula."""
        return f"chunk {plus('r', self.first)}"


def plus(name: str, number: int) -> str:
    """Return a formula that adds a number to a name.

    >>> plus("r", 1), plus("r", -2), plus("r", 0)
    ('r + 1', 'r - 2', 'r')
    """
    return f"{name} {'+' if number > 0 else '-'} {abs(number)}" if number else name


FAULTS: Mapping[str, RingPlan] = MappingProxyType(
    {
        "all-gather adds": RingPlan(gather_adds=True),
        "all-gather one step short": RingPlan(gather_short=1),
        "all-gather starts at chunk r": RingPlan(gather=lambda rank, step, ranks: (rank - step) % ranks),
        "no division": RingPlan(divides=False),
        "reduce-scatter counts up": RingPlan(scatter=lambda rank, step, ranks: (rank + step) % ranks),
        "reduce-scatter one step short": RingPlan(scatter_short=1),
    }
)
_ORDER = (1, 2, 5, 4, 0)  # the position in FAULTS for each of the rings A to E
LETTERS = "ABCDE"


def one_below(way: Way) -> str:
    """Return the question to a student whose reduce-scatter counts the chunks in the wrong direction."""
    sent = f"rank {plus('r', -way.to)} sends chunk {plus('r', way.first - way.to)}"
    return f"in step 0 {sent}: which chunk has rank r just received when step 1 begins?"


ONE_BELOW = one_below(Way())


class RingOutcome(NamedTuple):
    """The result of a ring all-reduce: ``values``, shape (ranks, n), and ``messages``, the number of messages that each rank has sent."""

    values: Floats
    messages: int


def faulty_ring(letter: str, values: npt.ArrayLike) -> RingOutcome:
    """Return the outcome of a faulty ring. A right ring would average ``values`` over the ranks.

    Parameters
    ----------
    letter : str
        The ring: A, B, C, D or E.
    values : array_like, shape (ranks, n)
        The numbers of each rank. n must be a multiple of the number of ranks.

    Raises
    ------
    HybridLabError
        The values have another shape, or the letter is unknown.

    Examples
    --------
    >>> faulty_ring("B", [[1, 2], [30, 40]]).values.tolist()
    [[0.5, 20.0], [0.5, 20.0]]
    """
    plan = fault_of(known_name(letter, LETTERS, "ring"))
    rows = numbers(values, "values")
    if rows.ndim != 2 or not 2 <= len(rows) <= MOST_RANKS or rows.shape[1] % len(rows):
        wanted = f"values must have shape (ranks, n), with 2 to {MOST_RANKS} ranks and n a multiple of them"
        raise HybridLabError(f"{wanted}, not {rows.shape}", "wrong-shape")
    history = steps_of(plan, rows.reshape(len(rows), len(rows), -1))
    return RingOutcome(readonly(history[-1].reshape(rows.shape) / (len(rows) if plan.divides else 1)), len(history) - 1)


def fault_of(letter: str) -> RingPlan:
    """Return the plan of the faulty ring with this letter."""
    return list(FAULTS.values())[_ORDER[LETTERS.index(letter)]]


def steps_of(plan: RingPlan, chunks: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return the sums that every rank holds before the first step and after each step.

    The sums are not yet divided by the number of ranks.

    Parameters
    ----------
    plan : RingPlan
        The plan of the ring.
    chunks : array, shape (ranks, chunks, ...)
        The chunks of each rank at the start. There are as many chunks as ranks.

    Examples
    --------
    >>> [held[0].tolist() for held in steps_of(RingPlan(), np.array([[1, 2], [30, 40]]))]
    [[1, 2], [1, 42], [31, 42]]
    """
    ranks = len(chunks)
    history = [chunks]
    phases = ((plan.scatter, plan.scatter_short, True), (plan.gather, plan.gather_short, plan.gather_adds))
    for rule, short, adds in phases:
        for step in range(ranks - 1 - short):
            sent = [rule(rank, step, ranks) for rank in range(ranks)]
            after = history[-1].copy()
            for rank, chunk in enumerate(sent):  # all ranks send at the same time, so they send values from before the step
                receiver = (rank + plan.to) % ranks
                own = after[receiver, chunk] if adds else 0
                after[receiver, chunk] = own + history[-1][rank, chunk]
            history.append(after)
    return history


def contributions(plan: RingPlan, ranks: int) -> list[npt.NDArray[np.int64]]:
    """Return an array for the start and one for each step, shape (ranks, chunks, ranks).

    The value at [r, c, q] is how often the numbers of rank q are in the sum that rank r holds for chunk c.
    """
    own = np.eye(ranks, dtype=np.int64)[:, None, :].repeat(ranks, axis=1)
    return steps_of(plan, own)


def contributors(counts: npt.NDArray[np.int64]) -> str:
    """Return words for the ranks whose numbers are in a chunk.

    >>> contributors(np.array([1, 0, 2, 1])), contributors(np.array([0, 1]))
    ('the numbers of ranks 0, 2 (2 times) and 3', 'the numbers of rank 1 alone')
    """
    names = [f"{rank}{f' ({count} times)' if count > 1 else ''}" for rank, count in enumerate(counts.tolist()) if count]
    several = f"ranks {', '.join(names[:-1])} and {names[-1]}"
    return f"the numbers of {several if len(names) > 1 else f'rank {names[0]} alone'}"


def contradiction(name: str, named: RingPlan, plan: RingPlan) -> str:
    """Return a sentence about a difference between the results of a ring and the results that the named fault would give."""
    expected, found = contributions(named, 4)[-1], contributions(plan, 4)[-1]
    if (expected == 1).all():
        rank, chunk = np.argwhere((found != 1).any(axis=2))[0]
        return f"with {name!r} all sums would be whole, but chunk {chunk} of rank {rank} has {contributors(found[rank, chunk])}"
    rank, chunk = np.argwhere((expected != found).any(axis=2))[0]
    where = f"chunk {chunk} of rank {rank}"
    return f"{name!r} would leave in {where} {contributors(expected[rank, chunk])}, but there are {contributors(found[rank, chunk])}"


def first_fault(plan: RingPlan, ranks: int) -> tuple[str, str] | None:
    """Return the code of the first fault in a ring and a sentence about this fault, or None for a right ring."""
    for half, rule in zip(HALVES, (plan.scatter, plan.gather), strict=True):
        for step, rank in product(range(ranks - 1), range(ranks)):
            chunk = rule(rank, step, ranks)
            if chunk not in range(ranks):
                there = f"but there are chunks 0 to {ranks - 1}"
                return "no-such-chunk", f"in step {step} of the {half} rank {rank} sends chunk {short_repr(chunk)}, {there}"
    history = contributions(plan, ranks)
    for step, after in enumerate(history[1:ranks]):
        for rank, chunk in np.argwhere((after > 1).any(axis=2)).tolist():
            there = contributors(after[rank, chunk])
            return "added-twice", f"after step {step} of the reduce-scatter chunk {chunk} of rank {rank} holds {there}"
    for step, before in enumerate(history[ranks - 1 : -1]):
        for rank in range(ranks):
            chunk = plan.gather(rank, step, ranks)
            if (before[rank, chunk] != 1).any():
                there = contributors(before[rank, chunk])
                return "partial-sum-sent", f"in step {step} of the all-gather rank {rank} sends chunk {chunk} with {there}, no whole sum"
    for rank, chunk in np.argwhere((history[-1] != 1).any(axis=2)).tolist():
        return "partial-sum-left", f"in the end chunk {chunk} of rank {rank} holds {contributors(history[-1][rank, chunk])}"
    return None


def is_right(plan: RingPlan, ranks: int) -> bool:
    """Whether every rank of a ring ends with every sum. The function does not run the ring, but checks three rules.

    1. In the first step all ranks send different chunks. Which rank sends which chunk does not matter.
    2. In every later step of the reduce-scatter a rank sends the chunk that it has just received. A sum needs the numbers of D ranks,
       and there are only D - 1 steps, so no chunk may miss a step.
    3. In every step of the all-gather, too, a rank sends the chunk that it has just received. Every rank lacks D - 1 sums, and receives
       only D - 1 messages.

    >>> is_right(RingPlan(), 100), is_right(RingPlan(gather=lambda rank, step, ranks: (rank - step) % ranks), 100)
    (True, False)
    """
    start = [plan.scatter(rank, 0, ranks) for rank in range(ranks)]
    if sorted(start) != list(range(ranks)):
        return False
    rules = ((plan.scatter, 0), (plan.gather, 1))
    places = list(product(range(ranks), range(ranks - 1)))
    return all(rule(rank, step, ranks) == start[(rank + ahead - step) % ranks] for rule, ahead in rules for rank, step in places)


def is_published(plan: RingPlan, ranks: int) -> bool:
    """Whether each rank sends the same chunks as in the published ring."""
    published = FAULTS["all-gather starts at chunk r"]
    return _same_rule(plan.scatter, published.scatter, ranks) and _same_rule(plan.gather, published.gather, ranks)


def counts_up(plan: RingPlan, ranks: int) -> bool:
    """Whether each rank sends chunk r + s in the reduce-scatter, in place of chunk r - s."""
    return ranks > 2 and _same_rule(plan.scatter, FAULTS["reduce-scatter counts up"].scatter, ranks)


def _same_rule(rule: Rule, other: Rule, ranks: int) -> bool:
    return all(rule(rank, step, ranks) == other(rank, step, ranks) for rank, step in product(range(ranks), range(ranks - 1)))
