"""The stages of a network as two plain functions, forward and backward, and training steps by an executor that is built on them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Ints, readonly
from hybridlab.checks import counted, each_of, numbers, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.training.network import (
    Activations,
    Network,
    activated,
    add_weight_gradients,
    backward_through,
    cross_entropy,
    forward_through,
    slope,
)

Forward = Callable[[int, int, Floats], tuple[Any, Activations]]
Backward = Callable[[int, int, Any, Activations], tuple[Floats, Floats]]
RunPipeline = Callable[[list[str], Forward, Backward, list[Floats]], tuple[float, Sequence[Floats]]]


def stage_functions(network: Network, weights: Sequence[Floats], labels: Ints) -> tuple[Forward, Backward]:
    """Return the forward and the backward of a pipeline's stages, for an executor that runs them in the order of a schedule.

    The last stage computes the loss. A microbatch's loss is its part of the mean over all samples, so losses and gradients of the
    microbatches add up to those of the whole batch.

    Parameters
    ----------
    network : Network
        The layers, spread evenly over the stages.
    weights : sequence of arrays, each of shape (parameters,)
        The parameters of each stage.
    labels : array, shape (microbatches, samples)
        The class of each sample, a whole number from 0.

    Returns
    -------
    forward : callable
        ``forward(stage, microbatch, value)`` returns the output of the stage and what its backward needs. ``value`` is the output of
        the stage before, and for stage 0 the samples of the microbatch, shape (samples, features). The output of the last stage is the
        loss of the microbatch.
    backward : callable
        ``backward(stage, microbatch, gradient, kept)`` returns the gradient with respect to the stage's input and the gradient with
        respect to its weights, shape (parameters,). ``gradient`` is the gradient with respect to the stage's output, and ``kept`` is
        what the forward kept. On the last stage ``gradient`` is 1: the gradient of the loss with respect to itself.

    Raises
    ------
    HybridLabError
        The weights do not fit the network.

    Examples
    --------
    >>> forward, backward = stage_functions(Network((2, 3)), [np.zeros(9)], np.array([[0]]))
    >>> loss, kept = forward(0, 0, np.array([[1.0, 2.0]]))
    >>> round(loss, 4)  # log(3): three classes are equally likely
    1.0986
    >>> backward(0, 0, 1.0, kept)[1].round(2)
    array([-0.67,  0.33,  0.33, -1.33,  0.67,  0.67, -0.67,  0.33,  0.33])
    """
    weights = list(each_of(weights, "weights are arrays"))
    cut = network.stages(len(weights))
    layers = [network.unpacked(flat, stage) for flat, stage in zip(weights, cut, strict=True)]
    last, activation = len(cut) - 1, network.activation

    def forward(stage: int, microbatch: int, value: Floats) -> tuple[Any, Activations]:
        inputs, sums = forward_through(layers[stage], value, activation)
        if stage < last:
            output = readonly(activated(sums, activation))
            return output, Activations(inputs, output)
        loss, gradient = cross_entropy(sums, labels[microbatch])
        return float(loss / labels.size), Activations(inputs, gradient / labels.size)

    def backward(stage: int, microbatch: int, gradient: Any, kept: Activations) -> tuple[Floats, Floats]:
        inputs, output = kept
        delta = gradient * (output if stage == last else slope(output, activation))
        halfway = backward_through(layers[stage], inputs, delta, activation)
        of_weights = np.zeros(network.count(cut[stage]))
        add_weight_gradients(network.unpacked(of_weights, cut[stage]), halfway)
        return halfway.deltas[0] @ layers[stage][0].matrix.T, of_weights

    return forward, backward


def order_lines(schedule: Schedule) -> list[str]:
    """Return the operations of each device in running order, one line a device, such as ``"0F0 0F1 0B0 0B1"``.

    Raises :class:`HybridLabError` if a device holds several stages, or if the schedule splits the backward.
    """
    if schedule.copies > 1 or schedule.device_of != tuple(range(schedule.devices)) or any(op.kind in "IW" for op in schedule.ops):
        raise HybridLabError(
            f"run_pipeline runs whole backwards, with stage d on device d: {schedule.name} does not; take gpipe, 1f1b or eager-1f1b",
            "does-not-fit",
        )
    return [" ".join(map(str, order)) for order in schedule.orders]


def gradients_by(
    run_pipeline: RunPipeline, lines: list[str], network: Network, weights: Sequence[Floats], inputs: Floats, labels: Ints
) -> tuple[Floats, tuple[Floats, ...]]:
    """Return the losses (replicas,) and the gradients of each stage (replicas, parameters) that an executor finds for one step.

    ``weights`` have shape (replicas, parameters) for each stage; ``inputs`` and ``labels`` are those of :class:`Executor`.
    """
    losses, gradients = np.zeros(len(labels)), tuple(np.zeros_like(flat) for flat in weights)
    for replica, (samples, classes) in enumerate(zip(inputs, labels, strict=True)):
        functions = stage_functions(network, [flat[replica] for flat in weights], classes)
        result = run_pipeline(list(lines), *functions, list(samples))
        if not _is_result(result, len(weights)):
            wanted = f"run_pipeline must return a loss and a list of gradients for {counted(len(weights), 'stage')}"
            raise HybridLabError(f"{wanted}, not {short_repr(result)}", "wrong-shape")
        losses[replica] = result[0]
        for stage, gradient in enumerate(result[1]):
            if np.shape(gradient) != gradients[stage][replica].shape:
                wanted = f"run_pipeline must return a gradient of shape {gradients[stage][replica].shape} for stage {stage}"
                raise HybridLabError(f"{wanted}, not {np.shape(gradient)}", "wrong-shape")
            gradients[stage][replica] = numbers(gradient, "a gradient of run_pipeline")
    return losses, gradients


def _is_result(result: Any, stages: int) -> bool:
    """Whether ``result`` is a loss and a list with something for each stage."""
    pair = isinstance(result, (tuple, list)) and len(result) == 2
    return pair and isinstance(result[0], (int, float)) and isinstance(result[1], (tuple, list)) and len(result[1]) == stages
