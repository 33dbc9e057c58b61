"""The time of one training iteration, predicted part by part from a model's shape, a plan and a GPU's profile."""

import math
from dataclasses import dataclass

from hybridlab.checks import one_time, short_repr, true_or_false
from hybridlab.errors import HybridLabError
from hybridlab.hardware import Profile
from hybridlab.model import Transformer
from hybridlab.planner.memory import refuse_overflow, stage_parameters
from hybridlab.planner.network import message_seconds, ring_seconds
from hybridlab.planner.plan import Plan, checked_profile, refuse_misfit
from hybridlab.wire import FP16, WireFormat

EFFICIENCY = 0.7514  # of the peak that matrix products reach beside their traffic: calibrate(megatron.TABLE_1, A100_80GB)
LEAST_EFFICIENCY = 1e-6  # below any program, and far from where a time would be infinite
MEMORY_SHARE = 0.9  # of the peak bandwidth that streaming through memory reaches
# Bytes a parameter that Adam moves: gradient to FP32 6, check and unscale 8, norm 4, clip 8, update 28, weight to 16 bits 6, zero 2
OPTIMISER_BYTES = 62
PARTS = ("matmul", "memory_traffic", "tensor_parallel", "point_to_point", "bubble", "data_parallel", "optimiser")


@dataclass(frozen=True, repr=False)
class IterationTime:
    """The predicted time of one iteration, part by part in seconds; the parts add up to ``seconds``.

    On the slowest stage: ``matmul`` (arithmetic of the matrix products), ``memory_traffic`` (their operands and all
    element-wise operations, through HBM), ``tensor_parallel`` (all-reduces inside the layers), ``point_to_point`` (messages
    between stages). Then ``bubble`` (fill and drain), ``data_parallel`` (all-reduce of the gradients, and of the embedding's
    between first and last stage), ``optimiser``. ``flops`` are those of the whole step on all ``gpus``, recomputed ones
    included, as in published tables.
    """

    matmul: float
    memory_traffic: float
    tensor_parallel: float
    point_to_point: float
    bubble: float
    data_parallel: float
    optimiser: float
    flops: float
    gpus: int

    @property
    def parts(self) -> dict[str, float]:
        """Seconds of each part by name, in the order above."""
        return {name: getattr(self, name) for name in PARTS}

    @property
    def seconds(self) -> float:
        """Time of the iteration."""
        return sum(self.parts.values())

    @property
    def tflops_per_gpu(self) -> float:
        """Matrix-product operations each GPU does in a second, in units of 1e12, recomputed ones included."""
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
    efficiency: float = EFFICIENCY,
    must_fit: bool = True,
) -> IterationTime:
    """Return the time of one iteration of ``model`` under ``plan`` on GPUs of ``profile``.

    The schedule is 1F1B, interleaved with chunks above 1; messages between stages, all-reduces and computation do not overlap. So M
    microbatches take M times the slowest stage, the last, which has the logits, and (K-1)/v times one of the others to fill
    and drain. ``wire`` is the format in which the replicas' gradients travel; encoding them is taken to cost nothing.
    ``efficiency`` is the share of peak that matrix products reach beside the traffic of their operands, the one calibrated
    constant. Raises :class:`UnsupportedSize` where the plan cannot share out the model, or, unless ``must_fit`` is False,
    does not fit in memory.

    >>> from hybridlab.hardware import A100_80GB
    >>> gpt = Transformer(layers=80, hidden=12288, heads=96)
    >>> time = predict(gpt, Plan(8, 8, 24, microbatch=2, global_batch=2304, chunks=2), A100_80GB)
    >>> round(time.tflops_per_gpu)  # published: 148
    150
    """
    refuse_misfit(model, plan)
    checked_profile(profile)
    if not isinstance(wire, WireFormat):
        raise HybridLabError(f"wire must be a WireFormat, such as FP16 or INT8, not {short_repr(wire)}")
    share = one_time(efficiency, "efficiency")
    if not LEAST_EFFICIENCY <= share <= 1:
        raise HybridLabError(f"efficiency is the share of peak, from {LEAST_EFFICIENCY:g} to 1, not {short_repr(efficiency)}")
    if true_or_false(must_fit, "must_fit"):
        refuse_overflow(model, plan, profile)
    layers, count = model.layers / plan.pipeline, plan.microbatches
    layer = model.layer_work(plan.microbatch, plan.tensor, plan.recompute, plan.sequence_parallel)
    head = model.head_work(plan.microbatch, plan.tensor)
    arithmetic, streaming = share * profile.matmul_flops, MEMORY_SHARE * profile.memory_bandwidth
    message = 2.0 * plan.microbatch * model.sequence * model.hidden  # bytes of a microbatch between two layers
    ring = ring_seconds(profile, plan.tensor, min(plan.tensor, profile.gpus_per_node), message)
    exchange = _exchange(plan, profile, message)
    stage = layers * (layer.flops / arithmetic + layer.nbytes / streaming + layer.all_reduces * ring)
    return IterationTime(
        matmul=count * (layers * layer.flops + head.flops) / arithmetic,
        memory_traffic=count * (layers * layer.nbytes + head.nbytes) / streaming,
        tensor_parallel=count * (layers * layer.all_reduces + head.all_reduces) * ring,
        point_to_point=count * plan.chunks * exchange,
        bubble=(plan.pipeline - 1) * (stage / plan.chunks + exchange),
        data_parallel=_gradients(model, plan, profile, wire),
        optimiser=OPTIMISER_BYTES * stage_parameters(model, plan) / streaming,
        flops=model.flops(plan.global_batch, plan.recompute),
        gpus=plan.gpus,
    )


def _exchange(plan: Plan, profile: Profile, nbytes: float) -> float:
    """Return the seconds in which a stage hands a microbatch on and its gradient back."""
    if plan.pipeline == 1:
        return 0.0
    near = plan.gpus <= profile.gpus_per_node
    return 2 * message_seconds(profile, plan.tensor, nbytes, near, not plan.sequence_parallel)


def _gradients(model: Transformer, plan: Plan, profile: Profile, wire: WireFormat) -> float:
    """Return the seconds of adding up the gradients: over the replicas, and the embedding's over first and last stage.

    GPUs are numbered tensor first, then data, then pipeline, so that as many replicas as there is room for share a node.
    """
    together = min(plan.data, max(1, profile.gpus_per_node // plan.tensor))
    replicas = ring_seconds(profile, plan.data, together, _in_chunks(stage_parameters(model, plan), plan.data, wire))
    if plan.pipeline == 1:
        return replicas
    tied = _in_chunks(model.vocabulary * model.hidden / plan.tensor, 2, wire)
    return replicas + ring_seconds(profile, 2, 2 if plan.gpus <= profile.gpus_per_node else 1, tied)


def _in_chunks(numbers: float, ranks: int, wire: WireFormat) -> float:
    """Return the bytes of so many numbers, encoded in the chunks of a ring, each with its scales."""
    return float(ranks * wire.nbytes(math.ceil(numbers / ranks)))
