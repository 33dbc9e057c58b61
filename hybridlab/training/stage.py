"""What one stage computes for one microbatch: forward, loss, input gradient, weight gradient. It knows no devices and no messages."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.training.network import Layer, activated, slope


class Activations(NamedTuple):
    """What a forward leaves on its device, and the backward (B or I) of the same stage and microbatch needs.

    ``inputs`` has the input of each layer of the stage, ``output`` what the last one put out; all have shape (replicas, samples,
    features). An input gradient (I) needs the outputs of the layers, for the slope of their activation: that
    of a layer is the input of the next. On the last stage ``output`` is the gradient of the loss at the scores.
    """

    inputs: tuple[Floats, ...]
    output: Floats


class Halfway(NamedTuple):
    """What an input gradient (I) leaves for the weight gradient (W): the input of each layer, and the gradient at its sums."""

    inputs: tuple[Floats, ...]
    deltas: tuple[Floats, ...]


def sums_of(layers: Sequence[Layer], given: Floats, activation: str) -> tuple[tuple[Floats, ...], Floats]:
    """Return the input of each of the layers, and the sums of the last one before its activation."""
    inputs = [given]
    *hidden, last = layers
    for layer in hidden:
        inputs.append(activated(inputs[-1] @ layer.matrix + layer.bias, activation))
    return tuple(inputs), inputs[-1] @ last.matrix + last.bias


def cross_entropy(scores: Floats, labels: Ints) -> tuple[Floats, Floats]:
    """Return the cross-entropy of softmax, summed over the samples, and its gradient at the scores: softmax less one at the label.

    ``scores`` have shape (..., samples, classes), ``labels`` (..., samples).
    """
    scores = scores - scores.max(axis=-1, keepdims=True)
    logarithms = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    at_label = np.arange(scores.shape[-1]) == labels[..., None]
    return -logarithms.sum(axis=(-2, -1), where=at_label), np.exp(logarithms) - at_label


def halfway_through(layers: Sequence[Layer], inputs: tuple[Floats, ...], delta: Floats, activation: str) -> Halfway:
    """Return the gradient at the sums of each of the layers, ``delta`` being that of the last one, with their inputs."""
    deltas = [delta]
    for layer, given in zip(layers[:0:-1], inputs[:0:-1], strict=True):  # from the last layer to the second
        deltas.append(deltas[-1] @ layer.matrix.swapaxes(-1, -2) * slope(given, activation))
    return Halfway(inputs, tuple(deltas[::-1]))


def add_gradients(slots: Sequence[Layer], halfway: Halfway) -> None:
    """Add a microbatch's weight gradients to those in ``slots``, in place."""
    for slot, inputs, delta in zip(slots, *halfway, strict=True):
        slot.matrix[...] += inputs.swapaxes(-1, -2) @ delta
        slot.bias[...] += delta.sum(axis=-2, keepdims=True)
