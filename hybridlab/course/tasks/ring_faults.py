"""What is wrong with a ring of lab 4, in a sentence: of a rule that was handed in, of a fault that was named."""

from itertools import product

import numpy as np

from hybridlab.checks import short_repr
from hybridlab.course.tasks.rings import FAULTS, HALVES, RingPlan, ranks_in, whose


def otherwise(name: str, named: RingPlan, plan: RingPlan) -> str:
    """Return what a ring with the named fault would leave where the ring has something else."""
    expected, found = whose(named, 4)[-1], whose(plan, 4)[-1]
    if (expected == 1).all():
        rank, chunk = np.argwhere((found != 1).any(axis=2))[0]
        return f"with {name!r} all sums would be whole, but chunk {chunk} of rank {rank} has {ranks_in(found[rank, chunk])}"
    rank, chunk = np.argwhere((expected != found).any(axis=2))[0]
    where = f"chunk {chunk} of rank {rank}"
    return f"{name!r} would leave in {where} {ranks_in(expected[rank, chunk])}, but there are {ranks_in(found[rank, chunk])}"


def fault_in(plan: RingPlan, ranks: int) -> str:
    """Return the first thing that goes wrong in a ring, "" if nothing does."""
    for half, rule in zip(HALVES, (plan.scatter, plan.gather), strict=True):
        for step, rank in product(range(ranks - 1), range(ranks)):
            chunk = rule(rank, step, ranks)
            if chunk not in range(ranks):
                return f"in step {step} of the {half} rank {rank} sends chunk {short_repr(chunk)}, but there are chunks 0 to {ranks - 1}"
    held = whose(plan, ranks)
    for step, after in enumerate(held[1:ranks]):
        for rank, chunk in np.argwhere((after > 1).any(axis=2)).tolist():
            return f"after step {step} of the reduce-scatter chunk {chunk} of rank {rank} holds {ranks_in(after[rank, chunk])}"
    for step, before in enumerate(held[ranks - 1 : -1]):
        for rank in range(ranks):
            chunk = plan.gather(rank, step, ranks)
            if (before[rank, chunk] != 1).any():
                return (
                    f"in step {step} of the all-gather rank {rank} sends chunk {chunk} with {ranks_in(before[rank, chunk])}, no whole sum"
                )
    for rank, chunk in np.argwhere((held[-1] != 1).any(axis=2)).tolist():
        return f"in the end chunk {chunk} of rank {rank} holds {ranks_in(held[-1][rank, chunk])}"
    return ""


def as_published(plan: RingPlan, ranks: int) -> list[str]:
    """Return a sentence more where the ring is the published one."""
    published = FAULTS["all-gather starts at chunk r"]
    rules = ((plan.scatter, published.scatter), (plan.gather, published.gather))
    places = list(product(range(ranks), range(ranks - 1)))
    same = all(mine(rank, step, ranks) == theirs(rank, step, ranks) for mine, theirs in rules for rank, step in places)
    return ["this is the published ring: which chunk is whole on rank r when the all-gather begins?"] if same else []
