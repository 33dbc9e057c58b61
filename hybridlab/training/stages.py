"""The computations of one stage: forward, loss, backward, input gradient and weight gradient. The callers store and send the results."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Ints, readonly
from hybridlab.checks import each_of
from hybridlab.training.network import Layer, Network, activated, checked_classes, checked_network, slope


class Activations(NamedTuple):
    """The arrays that a forward stores on its device. The backward (B or I) of the same stage and microbatch needs them.

    Parameters
    ----------
    inputs : tuple of arrays, each of shape (replicas, samples, features)
        The input of each layer of the stage. The input of a layer is the output y of the layer before. From y, the backward computes the
        derivative of the activation of the layer before.
    slope : array, shape (replicas, samples, features)
        The derivative of the stage's output with respect to the sums of its last layer. The sums of a layer are the numbers before its
        activation. The output of the last stage is the loss.
    """

    inputs: tuple[Floats, ...]
    slope: Floats


class Halfway(NamedTuple):
    """The arrays that an input gradient (I) stores on its device. The weight gradient (W) of the same stage and microbatch needs them.

    Parameters
    ----------
    inputs : tuple of arrays
        The input of each layer of the stage.
    deltas : tuple of arrays
        For each layer, the gradient of the loss with respect to the sums of the layer: the numbers before its activation.
    """

    inputs: tuple[Floats, ...]
    deltas: tuple[Floats, ...]

    def add_weight_gradients(self, sums: Sequence[Layer]) -> None:
        """Add the weight gradients of the microbatch to ``sums``, in place."""
        for layer, inputs, delta in zip(sums, *self, strict=True):
            layer.matrix[...] += inputs.swapaxes(-1, -2) @ delta  # shape (replicas, inputs, outputs)
            layer.bias[...] += delta.sum(axis=-2, keepdims=True)


class Stage(NamedTuple):
    """The layers of one stage, and the computations of its operations for one microbatch.

    A full backward (B) consists of three calls: :meth:`backward`, :meth:`input_gradient` and :meth:`Halfway.add_weight_gradients`. If the
    backward is split, I consists of the first two calls, and W of the third.

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
        """Return the output and the activations of a stage. The last stage uses :meth:`loss` instead."""
        inputs, sums = self._inputs_and_sums(stage_input)
        output = activated(sums, self.activation)
        return output, Activations(inputs, slope(output, self.activation))

    def loss(self, stage_input: Floats, labels: Ints, samples: float) -> tuple[Floats, Activations]:
        """Return the cross-entropy, summed over the samples of a microbatch, and the activations of the last stage.

        ``labels`` have shape (..., samples). ``samples`` is the number of samples over which the caller takes the mean. Gradients are those
        of the sum divided by ``samples``.
        """
        inputs, scores = self._inputs_and_sums(stage_input)
        scores -= scores.max(axis=-1, keepdims=True)  # this does not change softmax, and exp cannot overflow
        logarithms = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
        at_label = np.arange(scores.shape[-1]) == labels[..., None]  # shape (..., samples, classes)
        gradient = np.exp(logarithms) - at_label  # softmax - one-hot label
        return -logarithms.sum(axis=(-2, -1), where=at_label), Activations(inputs, gradient / samples)

    def backward(self, activations: Activations, gradient: float | Floats) -> Halfway:
        """Return the gradients with respect to the sums of each layer.

        ``gradient`` is the gradient with respect to the stage's output. It is 1 on the last stage.
        """
        inputs, deltas = activations.inputs, [gradient * activations.slope]
        for layer, layer_input in zip(self.layers[:0:-1], inputs[:0:-1], strict=True):  # from the last layer to the second
            deltas.append(deltas[-1] @ layer.matrix.swapaxes(-1, -2) * slope(layer_input, self.activation))
        return Halfway(inputs, tuple(deltas[::-1]))

    def input_gradient(self, halfway: Halfway) -> Floats:
        """Return the gradient with respect to the stage's input. It is the message for the stage before."""
        return halfway.deltas[0] @ self.layers[0].matrix.swapaxes(-1, -2)

    def _inputs_and_sums(self, stage_input: Floats) -> tuple[tuple[Floats, ...], Floats]:
        """Return the input of each layer, and the sums of the last layer before its activation."""
        inputs = [stage_input]
        *hidden, last = self.layers
        for layer in hidden:
            inputs.append(activated(inputs[-1] @ layer.matrix + layer.bias, self.activation))
        return tuple(inputs), inputs[-1] @ last.matrix + last.bias


def stages_of(network: Network, weights: Sequence[Floats]) -> list[Stage]:
    """Return the stages with these ``weights``. There is one array of shape (..., parameters) for each stage."""
    cut = network.stages(len(weights))
    return [Stage(network.unpacked(own, layers), network.activation) for own, layers in zip(weights, cut, strict=True)]


Forward = Callable[[int, int, Floats], tuple[Any, Activations]]
Backward = Callable[[int, int, Any, Activations], tuple[Floats, Floats]]


def stage_functions(network: Network, weights: Sequence[Floats], labels: Ints) -> tuple[Forward, Backward]:
    """Return two functions for your own executor: the forward and the backward of a stage. Call them in the order of a schedule.

    The last stage computes the loss. The loss of a microbatch is the sum of its samples' losses divided by the number of samples in all
    microbatches. So the losses and gradients of the microbatches add up to the loss and gradient of the whole batch.

    Parameters
    ----------
    network : Network
        The layers. They are spread evenly over the stages.
    weights : sequence of arrays, each of shape (parameters,)
        The parameters of each stage.
    labels : array, shape (microbatches, samples)
        The class of each sample, a whole number from 0.

    Returns
    -------
    forward : callable
        ``forward(stage, microbatch, value)`` returns (1) the output of the stage and (2) the activations for the backward. ``value`` is the
        output of the stage before. For stage 0, ``value`` is the samples of the microbatch, shape (samples, features). The output of the
        last stage is the loss of the microbatch.
    backward : callable
        ``backward(stage, microbatch, gradient, kept)`` returns (1) the gradient with respect to the stage's input and (2) the gradient with
        respect to its weights, shape (parameters,). ``gradient`` is the gradient with respect to the stage's output. On the last stage it
        is 1: the gradient of the loss with respect to itself. ``kept`` is the activations that ``forward`` has returned.

    Raises
    ------
    HybridLabError
        ``network`` is not a Network, the weights do not fit the network, or a label is no class.

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
    labels = checked_classes(checked_network(network), labels)
    stages, cut = stages_of(network, weights), network.stages(len(weights))

    def forward(stage: int, microbatch: int, value: Floats) -> tuple[Any, Activations]:
        if stage < len(stages) - 1:
            output, activations = stages[stage].forward(value)
            return readonly(output), activations  # read-only, because the next stage gets the same array
        loss, activations = stages[stage].loss(value, labels[microbatch], labels.size)
        return float(loss / labels.size), activations

    def backward(stage: int, microbatch: int, gradient: Any, kept: Activations) -> tuple[Floats, Floats]:
        halfway = stages[stage].backward(kept, gradient)
        of_weights = np.zeros(network.count(cut[stage]))
        # the unpacked layers are views of of_weights, so this adds into of_weights
        halfway.add_weight_gradients(network.unpacked(of_weights, cut[stage]))
        return stages[stage].input_gradient(halfway), of_weights

    return forward, backward
