"""Closed forms: what a timeline, the bytes of a ring and its error must equal. They share no code with what they judge."""

from hybridlab.formulas.pipeline import (
    bubble_ratio,
    gpipe_makespan,
    hanayo_makespan,
    interleaved_makespan,
    one_f_one_b_makespan,
    peak_activations,
    zb_h1_makespan,
)
from hybridlab.formulas.ring import cast_nmse, gaussian_crest, int8_one_shot_nmse, int8_ring_nmse, ring_bytes

__all__ = [
    "bubble_ratio",
    "cast_nmse",
    "gaussian_crest",
    "gpipe_makespan",
    "hanayo_makespan",
    "int8_one_shot_nmse",
    "int8_ring_nmse",
    "interleaved_makespan",
    "one_f_one_b_makespan",
    "peak_activations",
    "ring_bytes",
    "zb_h1_makespan",
]
