"""The arithmetic of one stage: forward, loss, backward, input gradient and weight gradient. Its callers store the results and send them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Ints, readonly
from hybridlab.checks import each_of
from hybridlab.training.network import Layer, Network, activated, slope


class Activations(NamedTuple):
    """The arrays that a forward leaves on its device for the backward (B or I) of the same stage and microbatch.

    Parameters
    ----------
    inputs : tuple of arrays, each of shape (replicas, samples, features)
        The input of each layer of the stage. It is also the output of the layer before. The backward computes the slope of the
        activation from it.
    slope : array, shape (replicas, samples, features)
        The derivative of the stage's output with respect to the sums of its last layer. The output of the last stage is the loss.
    """

    inputs: tuple[Floats, ...]
    slope: Floats


class Halfway(NamedTuple):
    """The arrays that an input gradient (I) leaves on its device for the weight gradient (W) of the same stage and microbatch.

    Parameters
    ----------
    inputs : tuple of arrays
        The input of each layer of the stage.
    deltas : tuple of arrays
        For each layer, the gradient of the loss with respect to its sums, which are the numbers before its activation.
    """

    inputs: tuple[Floats, ...]
    deltas: tuple[Floats, ...]

    def add_weight_gradients(self, sums: Sequence[Layer]) -> None:
        """Add the weight gradients of the microbatch to ``sums``, in place."""
        for layer, inputs, delta in zip(sums, *self, strict=True):
            layer.matrix[...] += inputs.swapaxes(-1, -2) @ delta  # shape (replicas, inputs, outputs)
            layer.bias[...] += delta.sum(axis=-2, keepdims=True)


class Stage(NamedTuple):
    """The layers of one stage, and what its operations compute for one microbatch.

    A backward (B) is :meth:`backward`, :meth:`input_gradient` and :meth:`Halfway.add_weight_gradients`. Where it is split, I is the first
    two of them and W the third.

    Parameters
    ----------
    layers : tuple of Layer
        The weights of the stage.
    activation : str
        The activation of the network.
    """

    layers: tuple[Layer, ...]
    activation: str

    def forward(self, stage_input: Floats) -> tuple[Floats, Activations]:
        """Return the output of a stage before the last, and its activations."""
        inputs, sums = self._inputs_and_sums(stage_input)
        output = activated(sums, self.activation)
        return output, Activations(inputs, slope(output, self.activation))

    def loss(self, stage_input: Floats, labels: Ints, samples: float) -> tuple[Floats, Activations]:
        """Return the cross-entropy of the last stage, summed over the microbatch, and its activations.

        ``labels`` have shape (..., samples). The activations are those of the sum divided by ``samples``, the number of samples
        over which the caller takes the mean.
        """
        inputs, scores = self._inputs_and_sums(stage_input)
        scores -= scores.max(axis=-1, keepdims=True)  # softmax stays the same, and exp cannot overflow
        logarithms = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
        at_label = np.arange(scores.shape[-1]) == labels[..., None]  # shape (..., samples, classes)
        gradient = np.exp(logarithms) - at_label  # softmax, minus 1 at the label
        return -logarithms.sum(axis=(-2, -1), where=at_label), Activations(inputs, gradient / samples)

    def backward(self, activations: Activations, gradient: float | Floats) -> Halfway:
        """Return the gradients with respect to the sums of each layer; ``gradient`` is that of the stage's output, 1 on the last stage."""
        inputs, deltas = activations.inputs, [gradient * activations.slope]
        for layer, layer_input in zip(self.layers[:0:-1], inputs[:0:-1], strict=True):  # from the last layer to the second
            deltas.append(deltas[-1] @ layer.matrix.swapaxes(-1, -2) * slope(layer_input, self.activation))
        return Halfway(inputs, tuple(deltas[::-1]))

    def input_gradient(self, halfway: Halfway) -> Floats:
        """Return the gradient with respect to the stage's input, for the stage before."""
        return halfway.deltas[0] @ self.layers[0].matrix.swapaxes(-1, -2)

    def _inputs_and_sums(self, stage_input: Floats) -> tuple[tuple[Floats, ...], Floats]:
        """Return the input of each layer, and the sums of the last layer, to which no activation is applied yet."""
        inputs = [stage_input]
        *hidden, last = self.layers
        for layer in hidden:
            inputs.append(activated(inputs[-1] @ layer.matrix + layer.bias, self.activation))
        return tuple(inputs), inputs[-1] @ last.matrix + last.bias


def stages_of(network: Network, weights: Sequence[Floats]) -> list[Stage]:
    """Return the stages that have these ``weights``, one array of shape (..., parameters) for each."""
    cut = network.stages(len(weights))
    return [Stage(network.unpacked(own, layers), network.activation) for own, layers in zip(weights, cut, strict=True)]


Forward = Callable[[int, int, Floats], tuple[Any, Activations]]
Backward = Callable[[int, int, Any, Activations], tuple[Floats, Floats]]


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
        ``forward(stage, microbatch, value)`` returns the output of the stage and the activations that its backward needs. ``value`` is
        the output of the stage before, and for stage 0 the samples of the microbatch, shape (samples, features). The output of the last
        stage is the loss of the microbatch.
    backward : callable
        ``backward(stage, microbatch, gradient, kept)`` returns the gradient with respect to the stage's input and the gradient with
        respect to its weights, shape (parameters,). ``gradient`` is the gradient with respect to the stage's output, and ``kept`` has
        the activations from the forward. On the last stage ``gradient`` is 1: the gradient of the loss with respect to itself.

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
    stages, cut = stages_of(network, weights), network.stages(len(weights))

    def forward(stage: int, microbatch: int, value: Floats) -> tuple[Any, Activations]:
        if stage < len(stages) - 1:
            output, activations = stages[stage].forward(value)
            return readonly(output), activations  # the next stage gets the same array
        loss, activations = stages[stage].loss(value, labels[microbatch], labels.size)
        return float(loss / labels.size), activations

    def backward(stage: int, microbatch: int, gradient: Any, kept: Activations) -> tuple[Floats, Floats]:
        halfway = stages[stage].backward(kept, gradient)
        of_weights = np.zeros(network.count(cut[stage]))
        # the unpacked layers are views, so the flat array fills
        halfway.add_weight_gradients(network.unpacked(of_weights, cut[stage]))
        return stages[stage].input_gradient(halfway), of_weights

    return forward, backward
