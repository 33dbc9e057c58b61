"""The rule behind two published timelines, a step grid and an event log, for any size. It is called 1F1B and is not.

K stages, D replicas, M microbatches; rank = replica x K + stage. The rule knows a step and a stage and nothing else: in
each of M + K-1 steps, stage s runs the forward of microbatch step - s if s <= step < M, then the backward of microbatch
step - (K-1-s) if there is such a microbatch. No operation waits for another. So the last stage starts with a backward,
and the bound step < M, where step < M + s is meant, drops the last forwards of every stage but the first. The grid has
one cell for a rank in a step: a backward overwrites the forward of its step.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybridlab.checks import whole_number
from hybridlab.errors import HybridLabError

Microbatches = npt.NDArray[np.int64]  # (steps, stages): the microbatch that runs, -1 for none

MOST_CELLS = 10**6  # steps x ranks: the tables are for reading


class LostForwards(NamedTuple):
    """Forwards of one replica that never show, as pairs (stage, microbatch): why they are lost is the field's name."""

    by_bound: tuple[tuple[int, int], ...]
    by_overwriting: tuple[tuple[int, int], ...]


def lost_forwards(stages: int = 3, microbatches: int = 6) -> LostForwards:
    """Return the forwards of one replica that never show, as pairs (stage, microbatch).

    ``by_bound``: dropped by step < M, missing from the log and from the grid. ``by_overwriting``: in the log, but
    overwritten in the grid by the backward of their step. Raises :class:`HybridLabError` as :func:`step_grid` does.

    >>> lost_forwards().by_bound
    ((1, 5), (2, 4), (2, 5))
    >>> len(lost_forwards().by_overwriting)
    13
    """
    stages, _, microbatches = sizes_of(stages, 1, microbatches)
    forward, backward = running(stages, microbatches)
    logged = _pairs(forward)
    left = _pairs(np.where(backward < 0, forward, -1))
    every = product(range(stages), range(microbatches))
    return LostForwards(tuple(pair for pair in every if pair not in logged), tuple(sorted(logged - left)))


def sizes_of(stages: int, replicas: int, microbatches: int) -> tuple[int, int, int]:
    """Return the sizes as ints, or refuse what is no size or makes a table too large to read."""
    stages, replicas = whole_number(stages, "stages"), whole_number(replicas, "replicas")
    microbatches = whole_number(microbatches, "microbatches")
    cells = (microbatches + stages - 1) * stages * replicas
    if cells > MOST_CELLS:
        size = f"{microbatches + stages - 1:,} steps of {stages * replicas:,} ranks"
        raise HybridLabError(f"{size} make a table of more than {MOST_CELLS:,} cells: try fewer of either")
    return stages, replicas, microbatches


def running(stages: int, microbatches: int) -> tuple[Microbatches, Microbatches]:
    """Return the microbatch of the forward and of the backward, (steps, stages), -1 for none."""
    step = np.arange(microbatches + stages - 1)[:, None]
    stage = np.arange(stages)
    reached = step - (stages - 1 - stage)
    forward = np.where((stage <= step) & (step < microbatches), step - stage, -1)
    return forward, np.where((reached >= 0) & (reached < microbatches), reached, -1)


def _pairs(running: Microbatches) -> set[tuple[int, int]]:
    """Return (stage, microbatch) of every operation in ``running``."""
    steps, stages = np.nonzero(running >= 0)
    return set(zip(stages.tolist(), running[steps, stages].tolist(), strict=True))
