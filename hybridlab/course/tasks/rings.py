"""Rings that lab 4 judges: run by a rule of who sends what, on numbers or on counts of them; five have a fault."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, readonly
from hybridlab.checks import known_name, numbers
from hybridlab.errors import HybridLabError

Rule = Callable[[int, int, int], int]  # rank, step, ranks -> the chunk that the rank sends
HALVES = ("reduce-scatter", "all-gather")
MOST_RANKS = 64


@dataclass(frozen=True)
class RingPlan:
    """How a ring is run: which chunk each rank sends, steps that are left out, what a receiver does, and the division.

    Rank r sends to rank r + 1, and the last rank to the first.
    """

    scatter: Rule = lambda rank, step, ranks: (rank - step) % ranks
    gather: Rule = lambda rank, step, ranks: (rank + 1 - step) % ranks
    scatter_short: int = 0
    gather_short: int = 0
    gather_adds: bool = False
    divides: bool = True


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
_ORDER = (1, 2, 5, 4, 0)
LETTERS = "ABCDE"


class Returned(NamedTuple):
    """What a ring leaves: ``values``, shape (ranks, n), and how many ``messages`` each rank has sent."""

    values: Floats
    messages: int


def faulty_ring(letter: str, values: npt.ArrayLike) -> Returned:
    """Return what the faulty ring A, B, C, D or E makes of ``values``, shape (ranks, n), where it should take their mean.

    n is a multiple of the ranks. Raises :class:`HybridLabError` for other shapes and an unknown letter.

    >>> faulty_ring("B", [[1, 2], [30, 40]]).values.tolist()
    [[0.5, 20.0], [0.5, 20.0]]
    """
    plan = fault_of(known_name(letter, LETTERS, "ring"))
    rows = numbers(values, "values")
    if rows.ndim != 2 or not 2 <= len(rows) <= MOST_RANKS or rows.shape[1] % len(rows):
        wanted = f"values must have shape (ranks, n), with 2 to {MOST_RANKS} ranks and n a multiple of them"
        raise HybridLabError(f"{wanted}, not {rows.shape}")
    held = list(steps_of(plan, rows.reshape(len(rows), len(rows), -1)))
    return Returned(readonly(held[-1].reshape(rows.shape) / (len(rows) if plan.divides else 1)), len(held) - 1)


def fault_of(letter: str) -> RingPlan:
    """Return the plan of a faulty ring."""
    return list(FAULTS.values())[_ORDER[LETTERS.index(letter)]]


def steps_of(plan: RingPlan, chunks: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return what every rank holds before the first step and after each, shape (ranks, chunks, ...), sums and no means.

    >>> [held[0].tolist() for held in steps_of(RingPlan(), np.array([[1, 2], [30, 40]]))]
    [[1, 2], [1, 42], [31, 42]]
    """
    ranks = len(chunks)
    held = [chunks]
    phases = ((plan.scatter, plan.scatter_short, True), (plan.gather, plan.gather_short, plan.gather_adds))
    for rule, short, adds in phases:
        for step in range(ranks - 1 - short):
            sent = [rule(rank, step, ranks) for rank in range(ranks)]
            after = held[-1].copy()
            for rank, chunk in enumerate(sent):  # all at once: what is sent is what was held before the step
                kept = after[(rank + 1) % ranks, chunk] if adds else 0
                after[(rank + 1) % ranks, chunk] = kept + held[-1][rank, chunk]
            held.append(after)
    return held


def whose(plan: RingPlan, ranks: int) -> list[npt.NDArray[np.int64]]:
    """Return how often each rank's numbers are in each chunk on each rank, shape (ranks, chunks, ranks), step by step."""
    own = np.eye(ranks, dtype=np.int64)[:, None, :].repeat(ranks, axis=1)
    return steps_of(plan, own)


def ranks_in(counts: npt.NDArray[np.int64]) -> str:
    """Return in words whose numbers are in a chunk.

    >>> ranks_in(np.array([1, 0, 2, 1])), ranks_in(np.array([0, 1]))
    ('the numbers of ranks 0, 2 (2 times) and 3', 'the numbers of rank 1 alone')
    """
    who = [f"{rank}{f' ({count} times)' if count > 1 else ''}" for rank, count in enumerate(counts.tolist()) if count]
    several = f"ranks {', '.join(who[:-1])} and {who[-1]}"
    return f"the numbers of {several if len(who) > 1 else f'rank {who[0]} alone'}"


def with_rules(scatter: Rule, gather: Rule) -> RingPlan:
    """Return a whole ring that sends by these rules."""
    return replace(RingPlan(), scatter=scatter, gather=gather)
