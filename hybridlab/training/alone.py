"""Training on a single device. The device computes the whole network for the whole global batch, without stages, messages and rings.

This module also has two classes that training on many devices uses too: the result of a training, and the log of losses and accuracies.
"""

from dataclasses import dataclass

import numpy as np

from hybridlab.arrays import Floats, Frozen, Ints, readonly
from hybridlab.checks import numbers, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.progress import Progress, reporting
from hybridlab.training.data import DataSet, batches, digits
from hybridlab.training.network import Network, checked_network

DEFAULT = Network()


@dataclass(frozen=True, eq=False, repr=False)
class TrainedAlone(Frozen):
    """A network after training on one device.

    Parameters
    ----------
    network : Network
        The layers.
    weights : array, shape (parameters,)
        The parameters after the last step, in the order of :class:`Network`.
    losses : array, shape (steps,)
        The mean loss of each global batch, before the weights are updated.
    checked : array, shape (checks,)
        The numbers of steps after which the accuracy was measured. The last entry is the total number of steps.
    accuracies : array, shape (checks,)
        The share of held-out samples that are classified correctly at each check, from 0 to 1.
    """

    network: Network
    weights: Floats
    losses: Floats
    checked: Ints
    accuracies: Floats

    @property
    def accuracy(self) -> float:
        """Share of held-out samples that are classified correctly after the last step."""
        return float(self.accuracies[-1])

    def __repr__(self) -> str:
        steps = f"{self.losses.size} steps, last loss {self.losses[-1]:.4f}"
        return f"<{type(self).__name__}: {steps}, held-out accuracy {self.accuracy:.2%}>"


@dataclass(frozen=True, eq=False, repr=False)
class Trained(TrainedAlone):
    """A network after training on K stages x D replicas. ``weights`` are the weights of replica 0.

    Parameters
    ----------
    replicas : array, shape (replicas, parameters)
        The weights of every replica, one replica in each row. If the schedule has two copies of the weights, each copy has its own row:
        copy c of replica r is row r x copies + c.
    spread : array, shape (steps,)
        For each step, the largest difference between two rows in any weight after the step. 0 if the all-reduce gives all replicas the
        same bits.
    peak_activations : array, shape (devices,), optional
        The largest number of activations that each device held at the same time. The unit is the activation of one microbatch on a whole
        device. None if the caller passed a function ``run_pipeline``.
    bytes_sent : int, optional
        The bytes that all devices together send in the all-reduces of one step, scales included. None if the caller passed a function
        ``all_reduce``.
    """

    replicas: Floats
    spread: Floats
    peak_activations: Floats | None
    bytes_sent: int | None


def train_alone(
    *,
    network: Network = DEFAULT,
    data: DataSet | None = None,
    batch: int = 128,
    steps: int = 200,
    learning_rate: float = 0.3,
    seed: int = 0,
    every: int | None = None,
    progress: Progress = None,
) -> TrainedAlone:
    """Return the network after ``steps`` steps of SGD on one device. This is the reference for training on many devices.

    All numbers are float64.

    Parameters
    ----------
    network : Network
        The layers.
    data : DataSet, optional
        The samples. None means :func:`digits`.
    batch : int
        The number of samples in each step.
    steps : int
        Number of steps.
    learning_rate : float
        The learning rate of SGD, above 0.
    seed : int
        Sets the initial weights and the order of the samples.
    every : int, optional
        Number of steps between two measurements of the held-out accuracy. The accuracy is always measured after the last step.
    progress : bool or callable, optional
        True shows a progress bar immediately (needs tqdm), and False never shows a bar. None shows a bar after five seconds if tqdm is
        installed. A function is called after each step with the number of steps done and the total number of steps.

    Returns
    -------
    TrainedAlone
        The weights, the losses and the accuracies.

    Raises
    ------
    HybridLabError
        An argument has a wrong type or is out of range, or training diverges until a number is no longer finite (``diverged``).

    Examples
    --------
    >>> train_alone(steps=20).losses[[0, -1]].round(2)
    array([2.32, 0.9 ])
    """
    data = data_for(network, data)
    batch, steps, rate = whole_number(batch, "batch"), whole_number(steps, "steps"), checked_rate(learning_rate)
    for_weights, for_batches, _ = generators(seed)
    weights = network.initial(for_weights)
    log = Log(network, data, steps, every)
    with reporting(progress, steps, "steps") as report:
        for done, chosen in enumerate(batches(len(data.labels), batch, steps, for_batches), start=1):
            with np.errstate(all="ignore"):  # the check below raises an error for numbers that are not finite
                loss, gradient = loss_and_gradient(network, weights, data.inputs[chosen], data.labels[chosen])
                weights = weights - rate * gradient
            log.add(loss, weights)
            report(done)
    return TrainedAlone(network, readonly(weights), *log.columns())


def loss_and_gradient(network: Network, weights: Floats, inputs: Floats, labels: Ints) -> tuple[float, Floats]:
    """Return the mean cross-entropy over the samples, and its gradient with respect to the weights.

    Parameters
    ----------
    network : Network
        The layers.
    weights : array, shape (parameters,)
        The parameters of all layers.
    inputs : array, shape (samples, features)
        The samples.
    labels : array, shape (samples,)
        The class of each sample, a whole number from 0.

    Returns
    -------
    loss : float
        The mean cross-entropy over the samples.
    gradient : array, shape (parameters,)
        The derivative of the loss with respect to each parameter.

    Raises
    ------
    HybridLabError
        ``network`` is not a Network, or an array has a wrong shape.

    Examples
    --------
    >>> loss_and_gradient(Network((1, 2)), np.zeros(4), np.array([[2.0]]), np.array([0]))
    (0.6931471805599453, array([-1. ,  1. , -0.5,  0.5]))
    """
    # This function shares no source code with stages.py, because it is the reference for stages.py.
    layers = checked_network(network).unpacked(weights)
    inputs, labels = network.samples(inputs, labels)
    outputs = [inputs]
    for matrix, bias in layers[:-1]:
        sums = outputs[-1] @ matrix + bias
        outputs.append(np.tanh(sums) if network.activation == "tanh" else np.where(sums > 0, sums, 0))
    scores = outputs[-1] @ layers[-1].matrix + layers[-1].bias
    scores -= scores.max(axis=1, keepdims=True)  # this does not change softmax, and exp cannot overflow
    softmax = np.exp(scores)
    total = softmax.sum(axis=1, keepdims=True)
    at_label = np.arange(len(labels)), labels
    loss = (np.log(total[:, 0]) - scores[at_label]).mean()
    softmax /= total
    softmax[at_label] -= 1
    delta = softmax / len(labels)  # gradient with respect to the scores: (softmax - one-hot label) / samples
    parts: list[Floats] = []
    for (matrix, _), layer_input in zip(reversed(layers), reversed(outputs), strict=True):
        parts[:0] = [(layer_input.T @ delta).ravel(), delta.sum(axis=0)]  # insert at the front, because the loop starts with the last layer
        # layer_input is the output y of the layer before. The derivative of its activation is 1 - y^2 for tanh, and 1 for relu if y > 0.
        delta = (delta @ matrix.T) * (1 - layer_input**2 if network.activation == "tanh" else layer_input > 0)
    return float(loss), np.concatenate(parts)


class Log:
    """The losses and accuracies of a training, collected step by step."""

    def __init__(self, network: Network, data: DataSet, steps: int, every: int | None) -> None:
        self.network, self.data, self.steps = network, data, steps
        self.every = steps if every is None else whole_number(every, "every")
        self.losses: list[float] = []
        self.accuracies: dict[int, float] = {}

    def add(self, loss: float, weights: Floats) -> None:
        """Store the loss of a step. Measure and store the accuracy if this step is one after which it is measured.

        Raises :class:`HybridLabError` if training has diverged.
        """
        self.must_be_finite(loss, weights)
        self.losses.append(loss)
        done = len(self.losses)
        if done % self.every == 0 or done == self.steps:
            with np.errstate(all="ignore"):  # no numpy warning if weights are too large: the accuracy then shows it
                self.accuracies[done] = self.network.accuracy(weights, self.data.held_out_inputs, self.data.held_out_labels)

    def must_be_finite(self, *arrays: float | Floats) -> None:
        """Raise :class:`HybridLabError` if a number is not finite. Training has then diverged."""
        if not all(np.isfinite(array).all() for array in arrays):
            diverges = f"training diverges: in step {len(self.losses) + 1} a number is not finite"
            raise HybridLabError(f"{diverges}; try a smaller learning_rate", "diverged")

    def columns(self) -> tuple[Floats, Ints, Floats]:
        """Return the arrays ``losses``, ``checked`` and ``accuracies`` of :class:`TrainedAlone`."""
        checked, accuracies = np.array(list(self.accuracies)), np.array(list(self.accuracies.values()))
        return readonly(np.array(self.losses)), readonly(checked), readonly(accuracies)


def data_for(network: Network, data: DataSet | None) -> DataSet:
    """Return ``data``, or the digits if ``data`` is None. Raise an error if the data do not fit the network."""
    data = digits() if data is None else data
    if not isinstance(network, Network) or not isinstance(data, DataSet):
        raise HybridLabError(f"training takes a Network and a DataSet, not {short_repr(network)} and {short_repr(data)}", "wrong-type")
    features = data.inputs.shape[1]
    if network.sizes[0] != features or network.sizes[-1] < data.classes:
        found = f"the data have {features} features and {data.classes} classes"
        wanted = f"a network for them has sizes ({features}, ..., {data.classes})"
        raise HybridLabError(f"{found}: {wanted}, not {network.sizes}", "does-not-fit")
    return data


def checked_rate(value: object) -> float:
    """Return a learning rate as a float. Raise an error if it is not a single finite number above 0."""
    rate = numbers(value, "learning_rate")
    if rate.ndim or not 0 < rate < np.inf:
        raise HybridLabError(f"learning_rate must be a number above 0, not {short_repr(value)}", "out-of-range")
    return float(rate)


def generators(seed: int) -> list[np.random.Generator]:
    """Return the three random generators of a training: for the initial weights, the batches and stochastic rounding."""
    # The generators are independent, so that stochastic rounding does not change the batches.
    sequence = np.random.SeedSequence(whole_number(seed, "seed", at_least=0, at_most=2**63))
    return [np.random.default_rng(child) for child in sequence.spawn(3)]
