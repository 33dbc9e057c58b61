"""The time of one training iteration on a cluster, predicted part by part from a model, a plan and a GPU profile."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from hybridlab.checks import one_time, short_repr, true_or_false
from hybridlab.collectives import A100_LINKS, Link, all_reduce_time, measured_time
from hybridlab.errors import HybridLabError
from hybridlab.hardware import A100_80GB, Profile
from hybridlab.model import Transformer
from hybridlab.planner.memory import refuse_overflow, stage_parameters
from hybridlab.planner.plan import Plan, checked_profile, refuse_misfit
from hybridlab.wire import FP16, WireFormat

EFFICIENCY = 0.7514  # share of the peak FLOP/s in matrix products, without their memory traffic: calibrate(large_runs.TABLE_1, A100_80GB)
LEAST_EFFICIENCY = 1e-6  # every real program reaches more; the limit keeps predicted times finite
MEMORY_SHARE = 0.9  # share of the peak memory bandwidth that a read or write of a large array reaches
# Bytes that Adam reads and writes per parameter, the sum of: gradient to FP32 6, check and unscale 8, norm 4, clip 8,
# update 28, weight to 16 bits 6, setting the gradient to zero 2
OPTIMISER_BYTES = 62
NETWORK_SHARE = 0.9  # share of the nominal bandwidth of the network ports; nccl-tests with four HDR ports reach 84.8 to 96 of 100 GB/s
NETWORK_LATENCY = 14e-6  # seconds per message between nodes, from tuning.cc in the NCCL library (net_ring, protocol Simple)
MOST_MEASURED_RANKS = max(A100_LINKS)  # the largest measured number of ranks in an all-reduce over NVLink
PARTS = ("matmul", "memory_traffic", "tensor_parallel", "point_to_point", "bubble", "data_parallel", "optimiser")


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
        Floating-point operations of all matrix products in one step, on all GPUs together. Recomputed matrix products count too, as in
        published tables.
    gpus : int
        Number of GPUs.
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
        """The seconds of each part by its name."""
        return {name: getattr(self, name) for name in PARTS}

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
    efficiency: float = EFFICIENCY,
    must_fit: bool = True,
) -> IterationTime:
    """Return the predicted time of one training iteration.

    The schedule is 1F1B, or interleaved 1F1B if the plan has more than one chunk. Messages, all-reduces and computation do not overlap.
    There are K stages with v chunks each. The slowest stage is the last stage, because it also computes the logits. With M microbatches,
    the iteration takes M times the time of one microbatch on the last stage, plus the bubble. The bubble, in which the pipeline fills and
    drains, takes (K-1)/v times the time of one microbatch on any other stage, plus K-1 times the time of its messages.

    Parameters
    ----------
    model : Transformer
        The model.
    plan : Plan
        How the GPUs share the model and the samples.
    profile : Profile
        The GPUs, their nodes and their network.
    wire : WireFormat
        The format in which replicas send gradients, FP16 by default. The prediction counts no time for encoding.
    efficiency : float
        The share of the peak FLOP/s that matrix products reach, without their memory traffic. This is the only calibrated constant; see
        :func:`calibrate`.
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
        An argument has the wrong type, or the efficiency is not above 0 and at most 1.

    Examples
    --------
    >>> from hybridlab.hardware import A100_80GB
    >>> gpt = Transformer(layers=80, hidden=12288, heads=96)
    >>> time = predict(gpt, Plan(8, 8, 24, microbatch=2, global_batch=2304, chunks=2), A100_80GB)
    >>> round(time.tflops_per_gpu)  # published: 148
    150
    """
    refuse_misfit(model, plan)
    checked_profile(profile)
    if not isinstance(wire, WireFormat):
        raise HybridLabError(f"wire must be a WireFormat, such as FP16 or INT8, not {short_repr(wire)}", "wrong-type")
    share = one_time(efficiency, "efficiency")
    if not LEAST_EFFICIENCY <= share <= 1:
        message = f"efficiency is the share of peak, from {LEAST_EFFICIENCY:g} to 1, not {short_repr(efficiency)}"
        raise HybridLabError(message, "out-of-range")
    if true_or_false(must_fit, "must_fit"):
        refuse_overflow(model, plan, profile)
    parts = part_seconds(amounts_of(model, plan, profile, wire, share))
    return IterationTime(**parts, flops=model.flops(plan.global_batch, plan.recompute), gpus=plan.gpus)


class Amounts(NamedTuple):
    """The numbers that determine the seconds of an iteration: the work of one GPU, its speed, and the seconds of its messages.

    A field is a number, or another object with +, * and /. The cluster explorer passes names of tables, and gets formulas.
    """

    microbatches: Any
    chunks: Any
    gaps: Any  # number of neighbouring pairs of stages, K - 1
    layers: Any  # number of layers in one stage
    layer_flops: Any  # layer_...: for one microbatch in one layer
    layer_bytes: Any
    layer_rings: Any
    head_flops: Any
    head_bytes: Any
    head_rings: Any
    flops_per_second: Any
    bytes_per_second: Any  # memory bandwidth
    ring: Any  # seconds of one all-reduce inside a layer
    exchange: Any  # seconds of the messages of one microbatch between two stages
    gradients: Any  # seconds of the all-reduces of gradients
    parameters: Any  # number of parameters on a GPU of the first stage


def amounts_of(model: Transformer, plan: Plan, profile: Profile, wire: WireFormat = FP16, efficiency: float = EFFICIENCY) -> Amounts:
    """Return the amounts of a plan. The arguments are as in :func:`predict`, but this function does not check them."""
    layer = model.layer_work(plan.microbatch, plan.tensor, plan.recompute, plan.sequence_parallel)
    head = model.head_work(plan.microbatch, plan.tensor)
    nbytes = 2.0 * plan.microbatch * model.sequence * model.hidden  # bytes of one microbatch's activations between two layers
    return Amounts(
        microbatches=plan.microbatches,
        chunks=plan.chunks,
        gaps=plan.pipeline - 1,
        layers=model.layers / plan.pipeline,
        layer_flops=layer.flops,
        layer_bytes=layer.nbytes,
        layer_rings=layer.all_reduces,
        head_flops=head.flops,
        head_bytes=head.nbytes,
        head_rings=head.all_reduces,
        flops_per_second=efficiency * profile.matmul_flops,
        bytes_per_second=MEMORY_SHARE * profile.memory_bandwidth,
        ring=ring_seconds(profile, plan.tensor, min(plan.tensor, profile.gpus_per_node), nbytes),
        exchange=_stage_exchange_seconds(plan, profile, nbytes),
        gradients=_gradient_seconds(model, plan, profile, wire),
        parameters=stage_parameters(model, plan),
    )


def part_seconds(given: Amounts) -> dict[str, Any]:
    """Return the seconds of each part of an iteration by its name in ``PARTS``."""
    computing = given.layer_flops / given.flops_per_second + given.layer_bytes / given.bytes_per_second
    stage = given.layers * (computing + given.layer_rings * given.ring)
    return {
        "matmul": given.microbatches * (given.layers * given.layer_flops + given.head_flops) / given.flops_per_second,
        "memory_traffic": given.microbatches * (given.layers * given.layer_bytes + given.head_bytes) / given.bytes_per_second,
        "tensor_parallel": given.microbatches * (given.layers * given.layer_rings + given.head_rings) * given.ring,
        "point_to_point": given.microbatches * given.chunks * given.exchange,
        "bubble": given.gaps * (stage / given.chunks + given.exchange),
        "data_parallel": given.gradients,
        "optimiser": OPTIMISER_BYTES * given.parameters / given.bytes_per_second,
    }


@lru_cache(maxsize=2**14)  # the many plans of a search share few different rings
def ring_seconds(profile: Profile, ranks: int, together: int, nbytes: float) -> float:
    """Return the seconds of a ring all-reduce of ``nbytes`` among ``ranks``, at most ``together`` of them in one node.

    Within a node, the time comes from measurements on A100 GPUs. For a faster NVLink, the message size is divided by the speedup. With more
    ranks than in any measurement, the time is the time of the largest measured number of ranks. Across nodes, the slowest link determines
    the time. The slowest link is either all network ports of the ranks of one node together, or NVLink.
    """
    if ranks == 1:
        return 0.0
    speedup = profile.nvlink / A100_80GB.nvlink
    nvlink = A100_LINKS[min(max(together, 2), MOST_MEASURED_RANKS)]  # measurements exist for 2 to 8 ranks
    if ranks <= together:
        return float(measured_time(min(ranks, MOST_MEASURED_RANKS), nbytes / speedup))
    ports = network_link(profile, together)
    slowest = Link(ports.latency, min(ports.bandwidth, nvlink.bandwidth * speedup if together > 1 else ports.bandwidth))
    return float(all_reduce_time("ring", ranks, nbytes, slowest))


def network_link(profile: Profile, ports: int = 1) -> Link:
    """Return one link with the latency of one network port and the bandwidth of all ``ports`` of a node together."""
    return Link(NETWORK_LATENCY, NETWORK_SHARE * ports * profile.network)


@lru_cache(maxsize=2**14)
def message_seconds(profile: Profile, tensor: int, nbytes: float, near: bool, whole: bool) -> float:
    """Return the seconds of one message of ``nbytes`` from the ``tensor`` GPUs of a stage to the GPUs of the next stage.

    Each GPU sends one part of the message. Then the receivers all-gather the parts over NVLink (Narayanan et al., arXiv 2104.04473, sec.
    4.1). An all-gather takes half the time of an all-reduce. If ``whole`` is False (sequence parallelism), each GPU needs only its own
    part, and there is no all-gather. If ``near`` is True, the next stage is in the same node.
    """
    link = Link(A100_LINKS[2].latency, profile.nvlink) if near else network_link(profile)
    gather = ring_seconds(profile, tensor, min(tensor, profile.gpus_per_node), nbytes) / 2 if whole else 0.0
    return link.latency + nbytes / tensor / link.bandwidth + gather


def _stage_exchange_seconds(plan: Plan, profile: Profile, nbytes: float) -> float:
    """Return the seconds of two messages of one microbatch: the activations to the next stage, and their gradients back."""
    if plan.pipeline == 1:
        return 0.0
    near = plan.gpus <= profile.gpus_per_node
    # 2 messages of equal size, because a gradient has the shape of its activation
    return 2 * message_seconds(profile, plan.tensor, nbytes, near, not plan.sequence_parallel)


def _gradient_seconds(model: Transformer, plan: Plan, profile: Profile, wire: WireFormat) -> float:
    """Return the seconds that the all-reduces of gradients take.

    All gradients are summed over the replicas. The gradients of the embedding are also summed over the first and the last stage. The number
    of a GPU grows first with the tensor rank, then with the replica, then with the stage. So a node contains as many replicas of a stage as
    possible.
    """
    together = min(plan.data, max(1, profile.gpus_per_node // plan.tensor))
    replicas = ring_seconds(profile, plan.data, together, _encoded_bytes(stage_parameters(model, plan), plan.data, wire))
    if plan.pipeline == 1:
        return replicas
    tied = _encoded_bytes(model.vocabulary * model.hidden / plan.tensor, 2, wire)
    # 2 ranks, because the first stage and the last stage each hold the embedding
    return replicas + ring_seconds(profile, 2, 2 if plan.gpus <= profile.gpus_per_node else 1, tied)


def _encoded_bytes(numbers: float, ranks: int, wire: WireFormat) -> float:
    """Return the encoded size of an array in bytes. A ring cuts the array into one chunk for each rank; each chunk has its own scales.

    Every chunk counts as long as the longest one, so the size of an array with few numbers is up to ``ranks`` times too large.
    """
    return float(ranks * wire.nbytes(math.ceil(numbers / ranks)))
