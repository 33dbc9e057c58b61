"""What a plan keeps in the memory of its fullest GPU."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from hybridlab.errors import UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.model import RECOMPUTE, Transformer
from hybridlab.planner.plan import Plan, refuse_misfit

# Mixed precision with Adam: weights and gradients in 16 bits, weights, mean and variance in 32 (Rajbhandari et al., arXiv 1910.02054)
STATE_BYTES = 2 + 2 + 4 + 4 + 4
MORE_STAGES, MORE_MEMORY = "more tensor or pipeline stages", "GPUs of more memory, or a smaller model"
LOGIT_BYTES = 2 + 4  # a logit as it is computed and in FP32, where the loss turns it into its gradient


class Memory(NamedTuple):
    """Bytes on the fullest GPU: ``states`` (weights, gradients, optimiser), ``activations`` kept, and ``working`` memory.

    Working memory holds what one layer computes again, and on the last stage the logits of one microbatch.
    """

    states: float
    activations: float
    working: float

    @property
    def total(self) -> float:
        """All together."""
        return self.states + self.activations + self.working


def stage_parameters(model: Transformer, plan: Plan) -> float:
    """Return the parameters on one GPU of the first stage: its part of the layers, of the vocabulary, and all positions."""
    layers = model.layers / plan.pipeline * model.layer_parameters / plan.tensor
    return layers + (model.vocabulary / plan.tensor + model.sequence) * model.hidden


def memory(model: Transformer, plan: Plan) -> Memory:
    """Return what the fullest GPU of a plan keeps: one of the first stage, or of the last if its logits take more.

    A parameter takes 16 bytes (Rajbhandari et al., arXiv 1910.02054); activations as in :meth:`Transformer.activation_bytes`. The last
    of K stages has v - 1 chunks of K microbatches and one of 1 forward before its first backward: it holds K - (K-1)/v microbatches.

    >>> from hybridlab.model import Transformer
    >>> used = memory(Transformer(layers=96, hidden=12288, heads=96), Plan(8, 8, 4, microbatch=1, global_batch=256))
    >>> [round(part / 1e9, 1) for part in used], round(used.total / 1e9, 1)
    ([45.2, 4.8, 0.5], 50.5)
    """
    refuse_misfit(model, plan)
    size, tensor, split = plan.microbatch, plan.tensor, plan.sequence_parallel
    states = STATE_BYTES * stage_parameters(model, plan)
    held = model.activation_bytes(size, tensor, plan.pipeline, plan.chunks, plan.recompute, split, plan.microbatches)
    once = model.activation_bytes(size, tensor, plan.pipeline, 1, plan.recompute, split, 1)
    late = once * (plan.pipeline - (plan.pipeline - 1) / plan.chunks)
    whole, kept = (model.layer_activation_bytes(size, tensor, recompute, split) for recompute in ("none", plan.recompute))
    logits = LOGIT_BYTES * size * model.sequence * model.vocabulary / tensor
    first, last = Memory(states, held, whole - kept), Memory(states, late, whole - kept + logits)
    return first if first.total >= last.total else last


def refuse_overflow(model: Transformer, plan: Plan, profile: Profile) -> None:
    """Raise :class:`UnsupportedSize` where a plan does not fit in the memory of a GPU; say by how much, and what would fit.

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
        fitting = (way for way, other in _smaller(plan) if memory(model, other).total <= profile.memory)
        finest = replace(plan, tensor=model.heads, pipeline=model.layers, chunks=1)
        other = next(fitting, None) or (MORE_STAGES if can_fit(model, finest, profile) else MORE_MEMORY)
        raise UnsupportedSize(f"{message} of {profile.name}; try {other}")


def can_fit(model: Transformer, plan: Plan, profile: Profile) -> bool:
    """Return whether a plan fits in memory, as it is or with smaller microbatches or more recomputation."""
    return any(memory(model, each).total <= profile.memory for each in (plan, *(other for _, other in _smaller(plan))))


def _smaller(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield ways to need less memory on the same GPUs, those that cost least time first, and the plan of each."""
    ways = RECOMPUTE[RECOMPUTE.index(plan.recompute) :]
    sizes = [size for size in range(plan.microbatch, 0, -1) if plan.microbatch % size == 0]
    for recompute in ways:
        for size in sizes:
            words = [f"a microbatch of {size}"] if size < plan.microbatch else []
            words += [f"recompute={recompute!r}"] if recompute != plan.recompute else []
            if words:
                yield " and ".join(words), replace(plan, microbatch=size, recompute=recompute)
