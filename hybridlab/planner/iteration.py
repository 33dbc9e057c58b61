"""The time of one training iteration on a cluster, predicted part by part from a model, a plan and a GPU profile."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from hybridlab.checks import one_time, short_repr, true_or_false
from hybridlab.errors import HybridLabError
from hybridlab.hardware import Profile
from hybridlab.model import Transformer
from hybridlab.model.operations import layer_sums
from hybridlab.planner.layer import MEMORY_SHARE, Pass, activation_bytes, head_pass, layer_passes, total_of
from hybridlab.planner.memory import refuse_overflow
from hybridlab.planner.messages import message_seconds, ring_seconds
from hybridlab.planner.plan import Plan, checked_profile, refuse_misfit
from hybridlab.planner.stages import PlanStage, layers_of, plan_stages
from hybridlab.wire import FP16, WireFormat

EFFICIENCY = 0.7514  # share of the peak FLOP/s in matrix products, without their memory traffic: calibrate(large_runs.TABLE_1, A100_80GB)
LEAST_EFFICIENCY = 1e-6  # every real program reaches more; the limit keeps predicted times finite
# Bytes that Adam reads and writes per parameter, the sum of: gradient to FP32 6, check and unscale 8, norm 4, clip 8,
# update 28, weight to 16 bits 6, setting the gradient to zero 2
OPTIMISER_BYTES = 62
FUSED_OPTIMISER_BYTES = 30  # one kernel: gradient 4, weight 8, mean 8, variance 8, 16-bit weight 2
AT_TIMES = ("experts", "gathers", "host")  # parts that many plans do not have
NOTHING = (Pass(), Pass())
PARTS = (
    "matmul", "memory_traffic", "tensor_parallel", "experts", "gathers", "host", "point_to_point", "bubble", "data_parallel", "optimiser",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class IterationTime:
    """The predicted time of one iteration as a sum of parts, the result of :func:`predict`.

    Attributes
    ----------
    matmul : float
        Seconds for the arithmetic of the matrix products, on the slowest stage.
    memory_traffic : float
        Seconds for reading and writing memory, on the slowest stage. Matrix products and all element-wise operations cause this memory
        traffic.
    tensor_parallel : float
        Seconds of the all-reduces inside the layers, on the slowest stage.
    experts : float
        Seconds in which tokens go to their experts and back, beyond computation that runs meanwhile.
    gathers : float
        Seconds for gathers of weights (``zero=3``) and of keys and values (``context``), beyond computation that runs meanwhile.
    host : float
        Seconds in which the GPU waits for the program that starts its kernels.
    point_to_point : float
        Seconds of the messages between stages, on the slowest stage.
    bubble : float
        Seconds in which the pipeline fills and drains.
    data_parallel : float
        Seconds of two all-reduces: (1) of all gradients, over the replicas; (2) of the embedding's gradients, over the first and the last
        stage.
    optimiser : float
        Seconds of the optimiser.
    flops : float
        Floating-point operations of all matrix products in one step, on all GPUs together. Recomputed matrix products count too, and the
        scores of attention count whole, as in published tables.
    gpus : int
        Number of GPUs.
    """

    matmul: float
    memory_traffic: float
    tensor_parallel: float
    experts: float
    gathers: float
    host: float
    point_to_point: float
    bubble: float
    data_parallel: float
    optimiser: float
    flops: float
    gpus: int

    @property
    def parts(self) -> dict[str, float]:
        """The seconds of each part by its name. ``experts``, ``gathers`` and ``host`` are in it only if they take time."""
        return {name: part for name in PARTS if (part := getattr(self, name)) or name not in AT_TIMES}

    @property
    def seconds(self) -> float:
        """Seconds of the whole iteration, the sum of the parts."""
        return sum(self.parts.values())

    @property
    def tflops_per_gpu(self) -> float:
        """TFLOP/s of one GPU: floating-point operations of matrix products per second, in units of 1e12. Recomputed products count."""
        return self.flops / self.gpus / self.seconds / 1e12

    def __repr__(self) -> str:
        shares = ", ".join(f"{name} {100 * part / self.seconds:.1f} %" for name, part in self.parts.items() if part)
        return f"IterationTime({self.seconds:.3f} s, {self.tflops_per_gpu:.1f} TFLOP/s a GPU: {shares})"


def predict(
    model: Transformer,
    plan: Plan,
    profile: Profile,
    *,
    wire: WireFormat = FP16,
    efficiency: float | None = None,
    must_fit: bool = True,
) -> IterationTime:
    """Return the predicted time of one training iteration.

    The schedule is 1F1B, or interleaved 1F1B if the plan has more than one chunk. With M microbatches, K stages and v chunks each, the
    iteration takes M times the time of one microbatch on the slowest stage, plus the bubble, in which the pipeline fills and drains: 1/v of
    the times of one microbatch on all other stages, plus K-1 times the time of its messages. The last stage also computes the logits. What
    runs at the same time as computation is the plan's ``overlap``; the attention counts whole without ``attention="fused"``, and half with
    it, because a token does not look at later ones.

    Parameters
    ----------
    model : Transformer
        The model.
    plan : Plan
        How the GPUs share the model and the samples.
    profile : Profile
        The GPUs, their nodes and their network.
    wire : WireFormat
        The format in which replicas send gradients, FP16 by default, if the plan's gradients are 16-bit numbers. The prediction counts no
        time for encoding.
    efficiency : float, optional
        The share of the peak FLOP/s that matrix products reach, without their memory traffic. This is the only calibrated constant of a
        GPU; see :func:`calibrate`. By default it is that of the profile, or that of the A100 for a GPU without measured runs.
    must_fit : bool
        Whether to raise an error if the plan does not fit in the memory of a GPU.

    Returns
    -------
    IterationTime

    Raises
    ------
    UnsupportedSize
        The plan does not divide the layers or heads of the model (``not-divisible``), or does not fit in memory (``too-large``).
    HybridLabError
        An argument has the wrong type, the efficiency is not above 0 and at most 1, or the GPU has no FP8 products that the plan asks for.

    Examples
    --------
    >>> from hybridlab.hardware import A100_80GB
    >>> gpt = Transformer(layers=80, hidden=12288, heads=96)
    >>> time = predict(gpt, Plan(8, 8, 24, microbatch=2, global_batch=2304, chunks=2), A100_80GB)
    >>> round(time.tflops_per_gpu)  # published: 148
    150
    """
    refuse_misfit(model, plan)
    share = _checked_efficiency(checked_profile(profile), efficiency, plan)
    if not isinstance(wire, WireFormat):
        raise HybridLabError(f"wire must be a WireFormat, such as FP16 or INT8, not {short_repr(wire)}", "wrong-type")
    if true_or_false(must_fit, "must_fit"):
        refuse_overflow(model, plan, profile)
    parts = part_seconds(amounts_of(model, plan, profile, wire, share))
    return IterationTime(**parts, flops=model.flops(plan.global_batch, plan.recompute), gpus=plan.gpus)


def _checked_efficiency(profile: Profile, efficiency: float | None, plan: Plan) -> float:
    """Return the efficiency, by default that of the profile, or raise an error."""
    share = one_time(efficiency, "efficiency") if efficiency is not None else profile.efficiency or EFFICIENCY
    if not LEAST_EFFICIENCY <= share <= 1:
        message = f"efficiency is the share of peak, from {LEAST_EFFICIENCY:g} to 1, not {short_repr(efficiency)}"
        raise HybridLabError(message, "out-of-range")
    if plan.precision == "fp8" and profile.fp8_flops is None:
        raise HybridLabError(
            f"{profile.name} has no FP8 products: take precision='bf16', or a GPU with FP8 such as H100", "unsupported-size"
        )
    return share


def layer_seconds(model: Transformer, plan: Plan, profile: Profile, *, efficiency: float | None = None) -> tuple[float, float]:
    """Return the seconds of one layer for one microbatch, with its exchanges: (forward, backward). The backward includes recomputation.

    Of a model with experts, it is a layer with experts.

    Parameters
    ----------
    model, plan, profile, efficiency
        As in :func:`predict`.

    Raises
    ------
    HybridLabError
        As in :func:`predict`.

    Examples
    --------
    >>> from hybridlab.hardware import A100_80GB
    >>> gpt, plan = Transformer(layers=48, hidden=6144, heads=64), Plan(8, 1, 1, 4, 4, recompute="none", overlap="backward")
    >>> [round(1e3 * each, 1) for each in layer_seconds(gpt, plan, A100_80GB)]  # published: 7.7 and 11.9 ms
    [7.9, 11.9]
    """
    refuse_misfit(model, plan)
    share = _checked_efficiency(checked_profile(profile), efficiency, plan)
    forward, backward = layer_passes(model, layer_sums(model, not model.experts, plan.share), plan, profile, share)
    return forward.seconds, backward.seconds


class Amounts(NamedTuple):
    """The numbers that determine the seconds of an iteration: those of one microbatch on the slowest stage, and those of the whole step.

    A field is a number, or another object with +, * and /. The cluster explorer passes names of tables, and gets formulas.
    """

    microbatches: Any
    chunks: Any
    gaps: Any  # number of neighbouring pairs of stages, K - 1
    matmul: Any  # seconds of the slowest stage for one microbatch, as in Pass
    memory_traffic: Any
    tensor_parallel: Any
    experts: Any
    gathers: Any
    host: Any
    others: Any  # seconds of all other stages together for one microbatch
    exchange: Any  # seconds of the messages of one microbatch between two stages
    steady_exchange: Any  # the same where they do not run beside computation
    data_parallel: Any
    optimiser: Any


def part_seconds(given: Amounts) -> dict[str, Any]:
    """Return the seconds of each part of an iteration by its name in ``PARTS``."""
    return {
        **{name: given.microbatches * getattr(given, name) for name in Pass._fields},
        "point_to_point": given.microbatches * given.chunks * given.steady_exchange,
        "bubble": given.others / given.chunks + given.gaps * given.exchange,
        "data_parallel": given.data_parallel,
        "optimiser": given.optimiser,
    }


def amounts_of(model: Transformer, plan: Plan, profile: Profile, wire: WireFormat, efficiency: float) -> Amounts:
    """Return the amounts of a plan. The arguments are as in :func:`predict`, but this function does not check them."""
    layers = layers_of(model, plan)
    stages = plan_stages(model, plan, layers)
    passes = [layer_passes(model, layer, plan, profile, efficiency) if layer else NOTHING for layer in layers]
    dense, sparse = (total_of(*each) for each in passes)
    head = head_pass(model, plan, profile, efficiency)
    of_dense, of_sparse, of_head = dense.seconds, sparse.seconds, head.seconds
    seconds = [stage.dense * of_dense + stage.sparse * of_sparse + stage.last * of_head for stage in stages]
    longest = max(seconds)
    slow = stages[seconds.index(longest)]
    slowest = total_of(dense.times(slow.dense), sparse.times(slow.sparse), head if slow.last else Pass())
    exchange = _stage_exchange_seconds(model, plan, profile)
    hidden = plan.overlap == "all" and plan.chunks > 1  # while one chunk sends, another one computes
    return Amounts(
        plan.microbatches,
        plan.chunks,
        plan.pipeline - 1,
        *slowest,
        others=sum(stage.times * each for stage, each in zip(stages, seconds, strict=True)) - longest,
        exchange=exchange,
        steady_exchange=0.0 if hidden else exchange,
        data_parallel=_gradient_seconds(model, plan, profile, wire, stages[0], passes[not model.dense_layers]),
        optimiser=_optimiser_seconds(plan, profile, stages[0]),
    )


def _optimiser_seconds(plan: Plan, profile: Profile, stage: PlanStage) -> float:
    """Return the seconds of the optimiser on a GPU of a stage."""
    dense, experts = stage.weights, stage.expert_weights
    if plan.zero:
        dense, experts = dense / plan.copies, experts / (plan.copies // plan.expert)
    nbytes = OPTIMISER_BYTES if plan.kernels == "eager" else FUSED_OPTIMISER_BYTES
    return nbytes * (dense + experts) / (MEMORY_SHARE * profile.memory_bandwidth)


def _stage_exchange_seconds(model: Transformer, plan: Plan, profile: Profile) -> float:
    """Return the seconds of two messages of one microbatch: the activations to the next stage, and their gradients back."""
    if plan.pipeline == 1:
        return 0.0
    near = plan.gpus <= profile.gpus_per_node
    # 2 messages of equal size, because a gradient has the shape of its activation
    return 2 * message_seconds(profile, plan.tensor, activation_bytes(model, plan), near, not plan.sequence_parallel)


def _gradient_seconds(
    model: Transformer, plan: Plan, profile: Profile, wire: WireFormat, stage: PlanStage, layer: tuple[Pass, Pass]
) -> float:
    """Return the seconds that the all-reduces of gradients take, where they do not run beside computation.

    All gradients are summed over the replicas. Those of a tied embedding are also summed over the first and the last stage. The number
    of a GPU grows first with the tensor rank, then with the part of the sample, then with the replica, then with the stage. So a node
    contains as many replicas of a stage as possible.

    An all-reduce is a reduce-scatter of the gradients and an all-gather. Replicas that divide the optimiser gather weights in 16 bits.
    ``stage`` is the first one, and ``layer`` are the seconds of the forward and the backward of one of its layers.
    """
    seconds, layers = 0.0, max(stage.dense + stage.sparse, 1)
    for weights, ranks in ((stage.weights, plan.copies), (stage.expert_weights, plan.copies // plan.expert)):
        if not weights or ranks == 1 or plan.zero == 3:
            continue
        together = min(ranks, max(1, profile.gpus_per_node // plan.tensor))
        if plan.gradients == "bf16":
            sizes = [_encoded_bytes(weights, ranks, wire)] * 2
        else:
            sizes = [4.0 * weights, 2.0 * weights if plan.zero else 4.0 * weights]
        if plan.overlap == "all":
            # gradients run beside the last backward, gathers beside the first forward, except for the first layer or the last one
            for nbytes, computing in zip(sizes, (layer[1].computing, layer[0].computing), strict=True):
                half = ring_seconds(profile, ranks, together, nbytes) / 2
                seconds += max(half - layers * computing, half / layers)
        else:
            seconds += ring_seconds(profile, ranks, together, sum(sizes) / 2)
    if plan.zero == 3:  # the first gather and the last gradients of the step
        seconds += layer[0].gathers
    if plan.pipeline == 1 or not model.tied:
        return seconds
    tied = _encoded_bytes(model.vocabulary * model.hidden / plan.tensor, 2, wire)
    # 2 ranks, because the first stage and the last stage each hold the embedding
    return seconds + ring_seconds(profile, 2, 2 if plan.gpus <= profile.gpus_per_node else 1, tied)


def _encoded_bytes(numbers: float, ranks: int, wire: WireFormat) -> float:
    """Return the encoded size of an array in bytes. A ring cuts the array into one chunk for each rank; each chunk has its own scales.

    Every chunk counts as long as the longest one, so the size of an array with few numbers is up to ``ranks`` times too large.
    """
    return float(ranks * wire.nbytes(math.ceil(numbers / ranks)))
