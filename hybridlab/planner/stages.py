"""The stages of a plan: their layers and their weights."""

from typing import NamedTuple

from hybridlab.model import Transformer
from hybridlab.model.operations import LayerSums, layer_sums
from hybridlab.planner.plan import Plan


class PlanStage(NamedTuple):
    """One stage, or several equal ones.

    Attributes
    ----------
    place : int
        The stage, from 0; of equal ones the first.
    times : int
        How many equal stages there are.
    dense, sparse : float
        Layers with one MLP, and layers with experts.
    weights, expert_weights : float
        Parameters on one GPU: those that every replica has, and those that GPUs of several replicas divide among themselves.
    last : bool
        Whether this stage computes the logits.
    """

    place: int
    times: int
    dense: float
    sparse: float
    weights: float
    expert_weights: float
    last: bool


Layers = tuple[LayerSums | None, LayerSums | None]  # sums over a layer with one MLP, and over one with experts; None without such layers


def layers_of(model: Transformer, plan: Plan) -> Layers:
    """Return what one GPU does of the layers of a model, and keeps for them."""
    share, dense = plan.share, model.dense_layers
    return layer_sums(model, True, share) if dense else None, layer_sums(model, False, share) if dense < model.layers else None


def plan_stages(model: Transformer, plan: Plan, layers: Layers) -> list[PlanStage]:
    """Return the stages of a plan in order. Equal stages between the first and the last are one entry.

    A GPU holds its part of the layers. The first stage also has its part of the token embedding and the whole position embedding, and the
    last stage its part of the weights of the logits.
    """
    last, cut = plan.pipeline - 1, _cut(model, plan)
    embedding = model.vocabulary / plan.tensor * model.hidden
    if len(cut) == 1:  # all stages are equal but for the embedding and the logits
        places = [(0, 1), (1, last - 1), (last, 1)] if last > 1 else [(place, 1) for place in range(last + 1)]
        cut = cut * len(places)
    else:
        places = [(place, 1) for place in range(last + 1)]
    found = []
    for (place, times), counts in zip(places, cut, strict=True):
        weights = expert_weights = 0.0
        for number, layer in zip(counts, layers, strict=True):
            if layer:
                weights += number * layer.weights
                expert_weights += number * layer.expert_weights
        if not place:
            weights += embedding + model.embedded_positions * model.hidden
        if place == last and (last or not model.tied):
            weights += embedding
        found.append(PlanStage(place, times, *counts, weights, expert_weights, place == last))
    return found


def _cut(model: Transformer, plan: Plan) -> list[tuple[float, float]]:
    """Return the numbers of layers with one MLP and with experts on each stage, or one entry if all stages have equally many.

    Layers with one MLP come first.
    """
    dense = model.dense_layers
    if plan.stage_layers is None and dense in (0, model.layers):
        each = model.layers / plan.pipeline
        return [(each, 0.0) if dense else (0.0, each)]
    parts = plan.stage_layers or (model.layers // (plan.pipeline * plan.chunks),) * (plan.pipeline * plan.chunks)
    left, counts = dense, [[0.0, 0.0] for _ in range(plan.pipeline)]
    for place, part in enumerate(parts):
        first = min(left, part)
        counts[place % plan.pipeline][0] += first
        counts[place % plan.pipeline][1] += part - first
        left -= first
    return [(one, other) for one, other in counts]


def stage_parameters(model: Transformer, plan: Plan) -> float:
    """Return the number of parameters on one GPU of the first stage."""
    first = plan_stages(model, plan, layers_of(model, plan))[0]
    return first.weights + first.expert_weights
