"""Iteration times on A100s that Korthikanti et al. published in 2022, with and without full recomputation.

Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, arXiv 2205.05198, Tables 3 and 5: GPUs
A100-SXM4-80GB, 2,048 tokens, vocabulary 51,200, one replica.
"""

from dataclasses import dataclass, replace

from hybridlab.model import Transformer
from hybridlab.planner import Plan


@dataclass(frozen=True)
class Run:
    """One published run: model and plan, ``seconds`` of an iteration as printed.

    >>> RUNS[0].plan.recompute, RUNS[0].seconds
    ('full', 1.42)
    """

    model: Transformer
    plan: Plan
    seconds: float


# heads, hidden, layers; pipeline, microbatch, global batch, chunks; seconds with full recomputation, and with sequence
# parallelism and selective recomputation; the share of peak, without what is recomputed, that the table prints for the latter
TABLE_5 = (
    (64, 6144, 48, 1, 4, 4, 1, 1.42, 1.10, 0.415),
    (96, 12288, 96, 8, 1, 64, 3, 18.13, 13.75, 0.514),
    (128, 20480, 105, 35, 1, 280, 3, 49.05, 37.83, 0.560),
    (160, 25600, 128, 64, 1, 512, 1, 94.42, 71.49, 0.563),
)
_FULL = [
    Run(Transformer(layers, hidden, heads), Plan(8, pipeline, 1, size, batch, chunks), seconds)
    for heads, hidden, layers, pipeline, size, batch, chunks, seconds, *_ in TABLE_5
]
_SELECTIVE = [
    Run(run.model, replace(run.plan, recompute="selective", sequence_parallel=True), row[8])
    for run, row in zip(_FULL, TABLE_5, strict=True)
]
RUNS: tuple[Run, ...] = (*_FULL, *_SELECTIVE)
