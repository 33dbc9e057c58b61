"""Comparisons with runs on the machine at hand: the rounding error of real arrays, a step of real threads."""

import numpy as np

from hybridlab import formulas
from hybridlab.checks import whole_number
from hybridlab.collectives import ring_all_reduce
from hybridlab.costs import Costs
from hybridlab.course.comparisons.comparison import Comparison, compared
from hybridlab.engines import run_threads
from hybridlab.schedules import build
from hybridlab.step import hybrid_step
from hybridlab.wire import INT8

SIZE = 131_072  # numbers a rank
RANKS = (2, 4, 8, 16, 32, 64)
SLOWER = 4 / 3


def int8_law() -> Comparison:
    """Return how far the law of the INT8 ring's error is from rings that ran, on normal numbers of one fixed seed."""
    law, measured = [], []
    for ranks in RANKS:
        values = np.random.default_rng(3).normal(size=(ranks, SIZE))
        mean = values.mean(axis=0)
        measured.append(float(np.square(ring_all_reduce(values, INT8).values[0] - mean).mean() / np.square(mean).mean()))
        law.append(formulas.int8_ring_nmse(ranks, formulas.gaussian_crest(SIZE // ranks)))
    what = f"NMSE of an INT8 ring of {RANKS[0]} to {RANKS[-1]} ranks, by its law"
    return compared(what, "rings run here", law, measured, worst_bound=0.15)


def threads(tries: int = 10) -> Comparison:
    """Return how far the predicted step is from steps that threads ran just now: another result in every run.

    The report's costs: two stages of 50 and 80 ms, 8 microbatches, two replicas, hops of 20 ms; run four times as fast. A
    measured step is the median of three. Where other programs hold it up beyond the bound it is tried again, a third slower each
    time up to four times as slow as the report's, at most ``tries`` times in all, and the best one counts: threads that wait for a
    processor measure the machine's load, and a long sleep is held up no longer than a short one.
    """
    tries = whole_number(tries, "tries")
    schedule, costs = build("1f1b", 2, 8), Costs(forward=50, backward=80)
    predicted = hybrid_step(schedule, costs, 2, ring_step=20).makespan
    best, count = np.inf, 0
    while count < tries and best > 1.03 * predicted:
        longer = min(0.25 * SLOWER**count, 4.0)
        steps = [run_threads(schedule, costs.longer(longer), 2, ring_step=20 * longer).makespan / longer for _ in range(3)]
        best, count = min(best, float(np.median(steps))), count + 1
    note = f"in this run, at try {count} of {tries}"
    return compared("a step of 2 x 2 threads", "threads run here", [predicted], [best], worst_bound=0.03, note=note)
