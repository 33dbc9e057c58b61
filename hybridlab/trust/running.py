"""Comparisons with runs on the machine at hand: the rounding error of real arrays, a step of real threads."""

import numpy as np

from hybridlab import formulas
from hybridlab.collectives import ring_all_reduce
from hybridlab.trust.comparison import Comparison, compared
from hybridlab.wire import INT8

SIZE = 131_072  # numbers a rank
RANKS = (2, 4, 8, 16, 32, 64)


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
