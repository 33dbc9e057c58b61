"""The memory that a plan needs on its fullest GPU, and advice for plans that do not fit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from hybridlab.errors import UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.model import RECOMPUTE, Transformer
from hybridlab.planner.plan import Plan, refuse_misfit
from hybridlab.planner.stages import layers_of, plan_stages

# Bytes per parameter in mixed precision with Adam: weight and gradient in 16 bits; a copy of the weight, the mean and the variance in
# 32 bits (Rajbhandari et al., arXiv 1910.02054)
WEIGHT_BYTES, GRADIENT_BYTES, OPTIMISER_STATE = 2, {"bf16": 2, "fp32": 4}, 4 + 4 + 4
MORE_STAGES, MORE_MEMORY = "more tensor or pipeline stages", "GPUs of more memory, or a smaller model"
LOGIT_BYTES = 2 + 4  # a 16-bit logit, and an FP32 copy for the loss; the gradient of the logit overwrites the copy


class GPUMemory(NamedTuple):
    """Bytes on the fullest GPU of a plan, as :func:`memory` returns them.

    Attributes
    ----------
    states : float
        Weights, gradients and the state of the optimiser.
    activations : float
        Activations that forwards store for backwards.
    working : float
        Activations that one layer recomputes, and with FP32 gradients also the 16-bit gradients of the weights of one layer. On the last
        stage, also the logits of one microbatch.
    """

    states: float
    activations: float
    working: float

    @property
    def total(self) -> float:
        """The sum of the three parts."""
        return self.states + self.activations + self.working


def memory(model: Transformer, plan: Plan) -> GPUMemory:
    """Return the bytes that the fullest GPU of a plan needs.

    With equal stages, the fullest GPU is in the first stage, or in the last stage if its logits need more memory. A parameter takes 16
    bytes, or 18 with FP32 gradients; ``zero`` divides a part of them among the replicas. The activations of the first stage of GPT are
    :meth:`Transformer.activation_bytes`. With K stages and v chunks, the last stage holds the activations of K - (K-1)/v microbatches:
    before its first backward, the last stage runs the forwards of K microbatches on v - 1 chunks, and the forward of one microbatch on its
    last chunk.

    Parameters
    ----------
    model : Transformer
        The model.
    plan : Plan
        How the GPUs share the model and the samples.

    Raises
    ------
    UnsupportedSize
        The plan does not divide the layers or heads of the model.

    References
    ----------
    The 16 bytes of a parameter are from Rajbhandari et al., arXiv 1910.02054.

    Examples
    --------
    >>> from hybridlab.model import Transformer
    >>> used = memory(Transformer(layers=96, hidden=12288, heads=96), Plan(8, 8, 4, microbatch=1, global_batch=256))
    >>> [round(part / 1e9, 1) for part in used], round(used.total / 1e9, 1)
    ([45.2, 4.8, 0.5], 50.5)
    """
    refuse_misfit(model, plan)
    return _fullest(model, plan)


def stage_memories(model: Transformer, plan: Plan) -> list[GPUMemory]:
    """Return the memory on a GPU of each stage, of equal stages only of the first. This function does not check its arguments."""
    layers = layers_of(model, plan)
    # a backward recomputes one layer at a time
    working = max(layer.recomputed for layer in layers if layer)
    if plan.gradients == "fp32":
        # before they are added to FP32 sums, the weight gradients of one layer are 16-bit numbers; those of experts are added at once
        working += max(2 * layer.weights for layer in layers if layer)
    dense, sparse = (layer.kept if layer else 0.0 for layer in layers)
    return [
        GPUMemory(
            _states(plan, stage.weights, plan.copies) + _states(plan, stage.expert_weights, plan.copies // plan.expert),
            held_microbatches(plan, stage.place) * (stage.dense * dense + stage.sparse * sparse),
            working + logit_bytes(model, plan) if stage.last else working,
        )
        for stage in plan_stages(model, plan, layers)
    ]


def logit_bytes(model: Transformer, plan: Plan) -> float:
    """Return the bytes of the logits of one microbatch on one GPU."""
    return LOGIT_BYTES * plan.microbatch * model.sequence / plan.context * model.vocabulary / plan.tensor


def held_microbatches(plan: Plan, stage: int) -> float:
    """Return how many microbatches a stage holds at its peak, under 1F1B or interleaved 1F1B (Narayanan et al., arXiv 2104.04473)."""
    after = plan.pipeline - 1 - stage
    if plan.chunks == 1:
        return float(min(1 + after, plan.microbatches))
    return min((2 * after + (plan.chunks - 1) * plan.pipeline + 1) / plan.chunks, float(plan.microbatches))


def _states(plan: Plan, weights: float, ranks: int) -> float:
    """Return the bytes of weights, gradients and the state of the optimiser that ``ranks`` GPUs hold, or divide among themselves.

    ZeRO 1, 2 and 3 divide the state of the optimiser, then the gradients, then the weights (Rajbhandari et al., Fig. 1).
    """
    parts = OPTIMISER_STATE, GRADIENT_BYTES[plan.gradients], WEIGHT_BYTES
    return weights * (sum(parts[: plan.zero]) / ranks + sum(parts[plan.zero :]))


def _fullest(model: Transformer, plan: Plan) -> GPUMemory:
    """Return the memory on the fullest GPU of a plan. The plan must divide the layers and the heads of the model."""
    return max(stage_memories(model, plan), key=lambda each: each.total)


def refuse_overflow(model: Transformer, plan: Plan, profile: Profile) -> None:
    """Raise :class:`UnsupportedSize` with advice if a plan does not fit in the memory of a GPU.

    >>> from hybridlab.hardware import A100_40GB
    >>> refuse_overflow(Transformer(layers=24, hidden=2304, heads=24), Plan(1, 1, 32, microbatch=16, global_batch=512), A100_40GB)
    Traceback (most recent call last):
    hybridlab.errors.UnsupportedSize: the plan needs 50.6 GB a GPU (states 26.4, activations 3.6, working memory 20.5), 10.6 GB more
        than the 40 GB of A100-SXM4-40GB; try a microbatch of 8
    """
    used = memory(model, plan)
    over = used.total - profile.memory
    if over > 0:
        parts = f"states {used.states / 1e9:.1f}, activations {used.activations / 1e9:.1f}, working memory {used.working / 1e9:.1f}"
        message = f"the plan needs {used.total / 1e9:.1f} GB a GPU ({parts}), {over / 1e9:.1f} GB more than the {profile.memory / 1e9:g} GB"
        raise UnsupportedSize(f"{message} of {profile.name}; try {_advice(model, plan, profile)}", "too-large")


def can_fit(model: Transformer, plan: Plan, profile: Profile) -> bool:
    """Return whether a plan fits in memory, either unchanged or with smaller microbatches or more recomputation.

    A plan needs the least memory with microbatches of one sample and full recomputation.
    """
    refuse_misfit(model, plan)
    return _fullest(model, replace(plan, microbatch=1, recompute=RECOMPUTE[-1])).total <= profile.memory


def _advice(model: Transformer, plan: Plan, profile: Profile) -> str:
    """Return advice for a plan that does not fit: a change of the plan, or else larger hardware."""
    if can_fit(model, plan, profile):
        return next(words for words, changed in _savings(plan) if _fullest(model, changed).total <= profile.memory)
    finest = replace(plan, tensor=model.heads, pipeline=model.layers, chunks=1)  # the smallest part of the model on each GPU
    return MORE_STAGES if can_fit(model, finest, profile) else MORE_MEMORY


def _savings(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield each change that can save memory on the same GPUs: its description and the changed plan. Cheaper changes come first."""
    kinds = RECOMPUTE[RECOMPUTE.index(plan.recompute) :]  # the plan's kind, and all kinds that recompute more
    sizes = [size for size in range(plan.microbatch, 0, -1) if plan.microbatch % size == 0]
    for recompute in kinds:
        for size in sizes:
            words = [f"a microbatch of {size}"] if size < plan.microbatch else []
            words += [f"recompute={recompute!r}"] if recompute != plan.recompute else []
            if words:
                yield " and ".join(words), replace(plan, microbatch=size, recompute=recompute)
