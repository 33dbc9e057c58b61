"""Closed forms for makespans, for peak activations, and for the bytes and the rounding error of a ring.

The formulas share no source code with the simulation, so each can be tested against the other.
"""

from hybridlab.formulas.bidirectional import chimera_makespan, dualpipe_bubble
from hybridlab.formulas.peaks import peak_activations
from hybridlab.formulas.pipeline import (
    bubble_ratio,
    eager_one_f_one_b_makespan,
    gpipe_makespan,
    hanayo_makespan,
    interleaved_makespan,
    looped_bfs_makespan,
    one_f_one_b_makespan,
)
from hybridlab.formulas.ring import cast_nmse, gaussian_crest, int8_one_shot_nmse, int8_ring_nmse, ring_bytes
from hybridlab.formulas.zero_bubble import interleaved_zb_makespan, zb_h1_makespan, zb_h2_makespan, zb_h2_span, zb_v_makespan

__all__ = [
    "bubble_ratio",
    "cast_nmse",
    "chimera_makespan",
    "dualpipe_bubble",
    "eager_one_f_one_b_makespan",
    "gaussian_crest",
    "gpipe_makespan",
    "hanayo_makespan",
    "int8_one_shot_nmse",
    "int8_ring_nmse",
    "interleaved_makespan",
    "interleaved_zb_makespan",
    "looped_bfs_makespan",
    "one_f_one_b_makespan",
    "peak_activations",
    "ring_bytes",
    "zb_h1_makespan",
    "zb_h2_makespan",
    "zb_h2_span",
    "zb_v_makespan",
]
