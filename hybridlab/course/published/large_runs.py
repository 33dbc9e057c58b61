"""Published iteration times of large runs on A100s: ten runs from 2021 and two from 2022.

References
----------
Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC 2021, arXiv 2104.04473, Table 1:
GPT models with 1.7 to 1,008 billion parameters on A100-SXM4-80GB GPUs. A node has eight GPUs and eight HDR ports. All runs use full
recomputation, sequences of 2,048 tokens and a vocabulary of 51,200. The table does not print the microbatch size and the number of chunks.
Both numbers are taken from the scripts that the authors published with the paper.

Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, arXiv 2205.05198, abstract: a model with 530 billion
parameters on 2,240 A100s reaches 54.2 % of the GPUs' peak with sequence parallelism and selective recomputation, and 42.1 % with full
recomputation. Recomputed operations are not counted. The abstract does not print the batch and the layout. Here the batch is one sample
for each GPU, with the layout of the run with 529.6 billion parameters in Table 1 above.

Le Scao et al., BLOOM: A 176B-Parameter Open-Access Multilingual Language Model, arXiv 2211.05100: hours, GPUs and batch of one run. The
layout (12 stages, tensor parallelism of 4) and the microbatch size are those of the scripts that the authors published.
"""

from dataclasses import dataclass

from hybridlab import formulas
from hybridlab.hardware import A100_80GB
from hybridlab.model import Transformer
from hybridlab.planner import Plan


@dataclass(frozen=True)
class MegatronRun:
    """One run of Narayanan et al., Table 1.

    Parameters
    ----------
    billions : float
        The printed number of parameters, in billions.
    model : Transformer
    plan : Plan
    tflops_per_gpu : float
        The printed TFLOP/s of each GPU, recomputed operations included.

    Examples
    --------
    >>> TABLE_1[-1].plan.gpus, round(TABLE_1[-1].seconds, 1)
    (3072, 102.6)
    """

    billions: float
    model: Transformer
    plan: Plan
    tflops_per_gpu: float

    @property
    def seconds(self) -> float:
        """The time of one iteration in seconds: its FLOPs by eq. (3) of the paper, divided by the printed FLOP/s of all GPUs together."""
        # A TFLOP is 1e12 operations.
        return self.model.flops(self.plan.global_batch, self.plan.recompute) / self.plan.gpus / self.tflops_per_gpu / 1e12


@dataclass(frozen=True)
class KorthikantiRun:
    """One run of Korthikanti et al.

    Parameters
    ----------
    model : Transformer
    plan : Plan
    utilisation : float
        The share of the GPUs' peak FLOP/s that the run reaches. Recomputed operations are not counted.

    Examples
    --------
    >>> [round(run.seconds, 1) for run in RUNS_2022]
    [50.4, 39.1]
    """

    model: Transformer
    plan: Plan
    utilisation: float

    @property
    def seconds(self) -> float:
        """The time of one iteration in seconds: its FLOPs without recomputation, divided by the FLOP/s that all GPUs reach together."""
        # The published utilisation does not count recomputed operations, so this sum does not count them either.
        return self.model.flops(self.plan.global_batch) / self.plan.gpus / (self.utilisation * A100_80GB.matmul_flops)


@dataclass(frozen=True)
class CountedRun:
    """A whole training run with published GPU hours.

    Parameters
    ----------
    gpu_hours : int
        Hours of all GPUs together.
    gpus, stages, replicas : int
        Numbers of GPUs, of stages in a pipeline, and of pipelines.
    global_batch, microbatch : int
        Numbers of samples in a step and in a microbatch.

    Examples
    --------
    >>> BLOOM.microbatches, round(BLOOM.bubble_ratio, 3), round(BLOOM.idle_hours)
    (128, 0.079, 85704)
    """

    gpu_hours: int
    gpus: int
    stages: int
    replicas: int
    global_batch: int
    microbatch: int

    @property
    def microbatches(self) -> int:
        """The number of microbatches that each pipeline runs in a step."""
        return self.global_batch // (self.replicas * self.microbatch)

    @property
    def bubble_ratio(self) -> float:
        """The bubble ratio of GPipe and of 1F1B with these sizes, if all stages are equal and messages take no time."""
        return formulas.bubble_ratio(self.stages, self.microbatches)

    @property
    def idle_hours(self) -> float:
        """The GPU hours that are lost in the bubble."""
        return self.gpu_hours * self.bubble_ratio


# Groups of 4 GPUs share each layer (tensor parallelism), so the run has 12 stages x 8 replicas x 4 = 384 GPUs.
BLOOM = CountedRun(1_082_990, gpus=384, stages=12, replicas=8, global_batch=2048, microbatch=2)

# Columns: billions of parameters; heads, hidden size, layers; tensor-, pipeline- and data-parallel sizes; microbatch size, global batch,
# chunks; TFLOP/s of a GPU
_TABLE_1_ROWS = (
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
TABLE_1: tuple[MegatronRun, ...] = tuple(
    MegatronRun(billions, Transformer(layers, hidden, heads), Plan(tensor, pipeline, data, size, batch, chunks), float(tflops))
    for billions, heads, hidden, layers, tensor, pipeline, data, size, batch, chunks, tflops in _TABLE_1_ROWS
)

# The model of the row with 529.6 billion parameters above
_GPT_530B = Transformer(layers=105, hidden=20480, heads=128)
RUNS_2022: tuple[KorthikantiRun, ...] = (
    # The first run has full recomputation, the default of a Plan.
    KorthikantiRun(_GPT_530B, Plan(8, 35, 8, microbatch=1, global_batch=2240, chunks=3), 0.421),
    KorthikantiRun(
        _GPT_530B,
        Plan(8, 35, 8, microbatch=1, global_batch=2240, chunks=3, recompute="selective", sequence_parallel=True),
        0.542,
    ),
)
