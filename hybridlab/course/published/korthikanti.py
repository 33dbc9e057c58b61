"""Two runs on 2,240 A100s that Korthikanti et al. published in 2022, with and without full recomputation.

Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, arXiv 2205.05198, abstract: a model of 530
billion parameters reaches 54.2 % of the GPUs' peak with sequence parallelism and selective recomputation, 42.1 % with full
recomputation, what is computed again not counted. The abstract names no batch: here it is one sample for each GPU, and the layout that
of the run of that size in ``megatron.TABLE_1``.
"""

from dataclasses import dataclass

from hybridlab.hardware import A100_80GB
from hybridlab.model import Transformer
from hybridlab.planner import Plan


@dataclass(frozen=True)
class Run:
    """One published run: model and plan, and the share of peak that it reaches without counting what is recomputed.

    >>> [round(run.seconds, 1) for run in RUNS]
    [50.4, 39.1]
    """

    model: Transformer
    plan: Plan
    utilisation: float

    @property
    def seconds(self) -> float:
        """Time of one iteration: its operations, by the GPUs and the operations each does in a second."""
        return self.model.flops(self.plan.global_batch) / self.plan.gpus / (self.utilisation * A100_80GB.matmul_flops)


_MODEL = Transformer(layers=105, hidden=20480, heads=128)
RUNS: tuple[Run, ...] = (
    Run(_MODEL, Plan(8, 35, 8, microbatch=1, global_batch=2240, chunks=3), 0.421),
    Run(_MODEL, Plan(8, 35, 8, microbatch=1, global_batch=2240, chunks=3, recompute="selective", sequence_parallel=True), 0.542),
)
