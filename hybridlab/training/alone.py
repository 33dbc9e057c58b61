"""Training on a single device: the whole network, the whole global batch. No stages, no messages, no ring."""

import numpy as np

from hybridlab.arrays import Floats, Ints, readonly
from hybridlab.checks import whole_number
from hybridlab.training.data import DataSet, batches
from hybridlab.training.network import Network
from hybridlab.training.results import Log, Progress, TrainedAlone, data_for, generators, rate_of

DEFAULT = Network()


def train_alone(
    *,
    network: Network = DEFAULT,
    data: DataSet | None = None,
    batch: int = 128,
    steps: int = 200,
    learning_rate: float = 0.3,
    seed: int = 0,
    every: int | None = None,
    progress: Progress | None = None,
) -> TrainedAlone:
    """Return the network after ``steps`` of SGD on one device: what every other way to train it is held against.

    ``batch`` samples a step, in the order that ``seed`` gives; the first weights are of ``seed``, too. ``data`` None takes
    :func:`digits`. The accuracy on the held-out samples is taken after the last step, and after ``every`` so many.
    ``progress`` is called after each step with the steps done and their number. All computing is in float64. Raises
    :class:`HybridLabError` for wrong sizes and where training diverges.

    >>> train_alone(steps=20).losses[[0, -1]].round(2)
    array([2.32, 0.9 ])
    """
    data = data_for(network, data)
    batch, steps, rate = whole_number(batch, "batch"), whole_number(steps, "steps"), rate_of(learning_rate)
    for_weights, for_batches, _ = generators(seed)
    weights = network.initial(for_weights)
    log = Log(network, data, steps, every, progress)
    for chosen in batches(len(data.labels), batch, steps, for_batches):
        with np.errstate(all="ignore"):  # what is no longer finite is refused in a sentence
            loss, gradient = loss_and_gradient(network, weights, data.inputs[chosen], data.labels[chosen])
            weights = weights - rate * gradient
        log.add(loss, weights)
    return TrainedAlone(network, readonly(weights), *log.columns())


def loss_and_gradient(network: Network, weights: Floats, inputs: Floats, labels: Ints) -> tuple[float, Floats]:
    """Return the mean cross-entropy over the samples, and its gradient at the weights, shape (parameters,).

    ``inputs`` have shape (samples, features) and ``labels`` (samples,). Raises :class:`HybridLabError` for other shapes.

    >>> loss_and_gradient(Network((1, 2)), np.zeros(4), np.array([[2.0]]), np.array([0]))
    (0.6931471805599453, array([-1. ,  1. , -0.5,  0.5]))
    """
    layers = network.unpacked(weights)
    inputs, labels = network.samples(inputs, labels)
    outputs = [inputs]
    for matrix, bias in layers[:-1]:
        sums = outputs[-1] @ matrix + bias
        outputs.append(np.tanh(sums) if network.activation == "tanh" else np.where(sums > 0, sums, 0))
    scores = outputs[-1] @ layers[-1].matrix + layers[-1].bias
    scores -= scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    whole = shares.sum(axis=1, keepdims=True)
    chosen = np.arange(len(labels)), labels
    loss = (np.log(whole[:, 0]) - scores[chosen]).mean()
    shares /= whole
    shares[chosen] -= 1
    delta = shares / len(labels)
    parts: list[Floats] = []
    for (matrix, _), given in zip(reversed(layers), reversed(outputs), strict=True):
        parts[:0] = [(given.T @ delta).ravel(), delta.sum(axis=0)]
        delta = (delta @ matrix.T) * (1 - given**2 if network.activation == "tanh" else given > 0)
    return float(loss), np.concatenate(parts)
