"""The memory that a plan needs on its fullest GPU, and advice for plans that do not fit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from hybridlab.errors import UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.model import RECOMPUTE, Transformer
from hybridlab.planner.plan import Plan, refuse_misfit

# Bytes per parameter in mixed precision with Adam: weight and gradient in 16 bits; a copy of the weight, the mean and the variance in
# 32 bits (Rajbhandari et al., arXiv 1910.02054)
STATE_BYTES = 2 + 2 + 4 + 4 + 4
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
        Activations that one layer recomputes. On the last stage, also the logits of one microbatch.
    """

    states: float
    activations: float
    working: float

    @property
    def total(self) -> float:
        """The sum of the three parts."""
        return self.states + self.activations + self.working


def stage_parameters(model: Transformer, plan: Plan) -> float:
    """Return the number of parameters on one GPU of the first stage.

    The GPU holds its part of the layers, its part of the token embedding, and the whole position embedding.
    """
    layers = model.layers / plan.pipeline * model.layer_parameters / plan.tensor
    return layers + (model.vocabulary / plan.tensor + model.sequence) * model.hidden


def memory(model: Transformer, plan: Plan) -> GPUMemory:
    """Return the bytes that the fullest GPU of a plan needs.

    The fullest GPU is in the first stage, or in the last stage if its logits need more memory. A parameter takes 16 bytes. The activations
    of the first stage are :meth:`Transformer.activation_bytes`. With K stages and v chunks, the last stage holds the activations of K -
    (K-1)/v microbatches: before its first backward, the last stage runs the forwards of K microbatches on v - 1 chunks, and the forward of
    one microbatch on its last chunk.

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


def stage_memories(model: Transformer, plan: Plan) -> tuple[GPUMemory, GPUMemory]:
    """Return the memory on a GPU of the first stage and on a GPU of the last stage. This function does not check its arguments."""
    size, tensor, recompute, split = plan.microbatch, plan.tensor, plan.recompute, plan.sequence_parallel
    states = STATE_BYTES * stage_parameters(model, plan)
    on_first = model.activation_bytes(size, tensor, plan.pipeline, plan.chunks, recompute, split, plan.microbatches)
    of_one_microbatch = model.activation_bytes(size, tensor, plan.pipeline, 1, recompute, split, 1)
    on_last = of_one_microbatch * (plan.pipeline - (plan.pipeline - 1) / plan.chunks)
    whole, stored = (model.layer_activation_bytes(size, tensor, each, split) for each in ("none", recompute))
    logits = LOGIT_BYTES * size * model.sequence * model.vocabulary / tensor
    # a backward recomputes one layer at a time
    return GPUMemory(states, on_first, whole - stored), GPUMemory(states, on_last, whole - stored + logits)


def _fullest(model: Transformer, plan: Plan) -> GPUMemory:
    """Return the memory on the fullest GPU of a plan. The plan must divide the layers and the heads of the model."""
    first, last = stage_memories(model, plan)
    return first if first.total >= last.total else last


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
