"""What a plan keeps in the memory of its fullest GPU."""

from typing import NamedTuple

from hybridlab.model import Transformer
from hybridlab.planner.plan import Plan, refuse_misfit

# Mixed precision with Adam: weights and gradients in 16 bits, weights, mean and variance in 32 (Rajbhandari et al., arXiv 1910.02054)
STATE_BYTES = 2 + 2 + 4 + 4 + 4
LOGIT_BYTES = 2 + 4  # a logit as it is computed and in FP32, where the loss turns it into its gradient


class Memory(NamedTuple):
    """Bytes on the fullest GPU: ``states`` (weights, gradients, optimiser), ``activations`` kept, and ``working`` memory.

    Working memory holds one layer that is computed again, and on the last stage the logits of one microbatch.
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

    A parameter takes 16 bytes (Rajbhandari et al., arXiv 1910.02054); activations as in :meth:`Transformer.activation_bytes`.

    >>> from hybridlab.model import Transformer
    >>> used = memory(Transformer(layers=96, hidden=12288, heads=96), Plan(8, 8, 4, microbatch=1, global_batch=256))
    >>> [round(part / 1e9, 1) for part in used], round(used.total / 1e9, 1)
    ([45.2, 4.8, 0.6], 50.6)
    """
    refuse_misfit(model, plan)
    size, tensor, split = plan.microbatch, plan.tensor, plan.sequence_parallel
    states = STATE_BYTES * stage_parameters(model, plan)
    held = model.activation_bytes(size, tensor, plan.pipeline, plan.chunks, plan.recompute, split, plan.microbatches)
    once = model.activation_bytes(size, tensor, plan.pipeline, 1, plan.recompute, split, 1)
    again = 0.0 if plan.recompute == "none" else model.layer_activation_bytes(size, tensor, "none", split)
    logits = LOGIT_BYTES * size * model.sequence * model.vocabulary / tensor
    first, last = Memory(states, held, again), Memory(states, once, again + logits)
    if plan.pipeline == 1:
        return Memory(states, held, again + logits)
    return first if first.total >= last.total else last
