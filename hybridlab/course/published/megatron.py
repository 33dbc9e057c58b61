"""The ten runs of GPT models on A100s that Narayanan et al. published, with 1.7 to 1,008 billion parameters.

Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC 2021, arXiv
2104.04473, Table 1: GPUs A100-SXM4-80GB, eight in a node with eight HDR ports, full recomputation, 2,048 tokens,
vocabulary 51,200. The table lacks microbatch size and chunks; they are those of the scripts that the authors published with it.
"""

from dataclasses import dataclass

from hybridlab.model import Transformer
from hybridlab.planner import Plan


@dataclass(frozen=True)
class Run:
    """One published run: ``billions`` of parameters as printed, model and plan, ``tflops_per_gpu`` as printed.

    >>> TABLE_1[-1].plan.gpus, round(TABLE_1[-1].seconds, 1)
    (3072, 102.6)
    """

    billions: float
    model: Transformer
    plan: Plan
    tflops_per_gpu: float

    @property
    def seconds(self) -> float:
        """Time of one iteration, from the paper's eq. (3) and the operations a second it prints."""
        return self.model.flops(self.plan.global_batch, self.plan.recompute) / self.plan.gpus / self.tflops_per_gpu / 1e12


# billions of parameters; heads, hidden, layers; tensor, pipeline, data; microbatch, global batch, chunks; TFLOP/s a GPU
_ROWS = (
    (1.7, 24, 2304, 24, 1, 1, 32, 16, 512, 1, 137),
    (3.6, 32, 3072, 30, 2, 1, 32, 16, 512, 1, 138),
    (7.5, 32, 4096, 36, 4, 1, 32, 16, 512, 1, 142),
    (18.4, 48, 6144, 40, 8, 1, 32, 8, 1024, 1, 135),
    (39.1, 64, 8192, 48, 8, 2, 32, 4, 1536, 1, 138),
    (76.1, 80, 10240, 60, 8, 4, 32, 2, 1792, 3, 140),
    (145.6, 96, 12288, 80, 8, 8, 24, 2, 2304, 2, 148),
    (310.1, 128, 16384, 96, 8, 16, 15, 1, 2160, 2, 155),
    (529.6, 128, 20480, 105, 8, 35, 9, 1, 2520, 3, 163),
    (1008.0, 160, 25600, 128, 8, 64, 6, 1, 3072, 1, 163),
)
TABLE_1: tuple[Run, ...] = tuple(
    Run(billions, Transformer(layers, hidden, heads), Plan(tensor, pipeline, data, size, batch, chunks), float(tflops))
    for billions, heads, hidden, layers, tensor, pipeline, data, size, batch, chunks, tflops in _ROWS
)
