"""Training on a single device, which computes the whole network and the whole global batch without stages, messages and rings.

This module also has the classes for the result of a run and for the log of its losses and accuracies. Training on many devices uses them,
too.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hybridlab.arrays import Floats, Frozen, Ints, readonly
from hybridlab.checks import numbers, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.training.data import DataSet, batches, digits
from hybridlab.training.network import Network

Progress = Callable[[int, int], object]  # called with the number of steps done and the number of all steps
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
        The mean loss of each global batch, before its step.
    checked : array, shape (checks,)
        The numbers of steps after which the accuracy was measured. The last entry is the number of all steps.
    accuracies : array, shape (checks,)
        The share of held-out samples classified correctly at each check, from 0 to 1.
    """

    network: Network
    weights: Floats
    losses: Floats
    checked: Ints
    accuracies: Floats

    @property
    def accuracy(self) -> float:
        """Share of held-out samples classified correctly after the last step."""
        return float(self.accuracies[-1])

    def __repr__(self) -> str:
        steps = f"{self.losses.size} steps, last loss {self.losses[-1]:.4f}"
        return f"<{type(self).__name__}: {steps}, held-out accuracy {self.accuracy:.2%}>"


@dataclass(frozen=True, eq=False, repr=False)
class Trained(TrainedAlone):
    """A network after training on K stages x D replicas; ``weights`` are the weights of replica 0.

    Parameters
    ----------
    replicas : array, shape (replicas, parameters)
        The weights of every replica, one replica in each row. If the schedule has two copies of the weights, each copy has its own row, and
        copy c of replica r is row r x copies + c.
    spread : array, shape (steps,)
        For each step, the largest difference that any weight has between two rows after the step. It is 0 if the all-reduce leaves the
        same bits on all replicas.
    peak_activations : array, shape (devices,), optional
        The largest number of activations that each device held at the same time. It is counted as in :class:`Timeline`: the activations
        of one microbatch on all stages of the device count as 1. None if the caller passed a function ``run_pipeline``.
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
    progress: Progress | None = None,
) -> TrainedAlone:
    """Return the network after ``steps`` of SGD on one device, which is the reference for training on many devices.

    All computing is in float64.

    Parameters
    ----------
    network : Network
        The layers.
    data : DataSet, optional
        The samples; None for :func:`digits`.
    batch : int
        The number of samples in each step.
    steps : int
        Number of steps.
    learning_rate : float
        The number by which the gradient is multiplied, above 0.
    seed : int
        Decides the first weights and the order of the samples.
    every : int, optional
        Number of steps between two measurements of the held-out accuracy. It is always measured after the last step.
    progress : callable, optional
        Called after each step with the number of steps done and the number of all steps.

    Returns
    -------
    TrainedAlone
        The weights, the losses and the accuracies.

    Raises
    ------
    HybridLabError
        An argument is of another type or out of range, or training diverges.

    Examples
    --------
    >>> train_alone(steps=20).losses[[0, -1]].round(2)
    array([2.32, 0.9 ])
    """
    data = data_for(network, data)
    batch, steps, rate = whole_number(batch, "batch"), whole_number(steps, "steps"), checked_rate(learning_rate)
    for_weights, for_batches, _ = generators(seed)
    weights = network.initial(for_weights)
    log = Log(network, data, steps, every, progress)
    for chosen in batches(len(data.labels), batch, steps, for_batches):
        with np.errstate(all="ignore"):  # numbers that are no longer finite are refused below
            loss, gradient = loss_and_gradient(network, weights, data.inputs[chosen], data.labels[chosen])
            weights = weights - rate * gradient
        log.add(loss, weights)
    return TrainedAlone(network, readonly(weights), *log.columns())


def loss_and_gradient(network: Network, weights: Floats, inputs: Floats, labels: Ints) -> tuple[float, Floats]:
    """Return the mean cross-entropy over the samples, and its gradient at the weights.

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
        An array has another shape.

    Examples
    --------
    >>> loss_and_gradient(Network((1, 2)), np.zeros(4), np.array([[2.0]]), np.array([0]))
    (0.6931471805599453, array([-1. ,  1. , -0.5,  0.5]))
    """
    # The arithmetic is written out here and shares no code with stages.py, because this is the reference for it.
    layers = network.unpacked(weights)
    inputs, labels = network.samples(inputs, labels)
    outputs = [inputs]
    for matrix, bias in layers[:-1]:
        sums = outputs[-1] @ matrix + bias
        outputs.append(np.tanh(sums) if network.activation == "tanh" else np.where(sums > 0, sums, 0))
    scores = outputs[-1] @ layers[-1].matrix + layers[-1].bias
    scores -= scores.max(axis=1, keepdims=True)  # softmax stays the same, and exp cannot overflow
    softmax = np.exp(scores)
    total = softmax.sum(axis=1, keepdims=True)
    at_label = np.arange(len(labels)), labels
    loss = (np.log(total[:, 0]) - scores[at_label]).mean()
    softmax /= total
    softmax[at_label] -= 1
    delta = softmax / len(labels)  # the gradient at the scores, (softmax - 1 at the label) / samples, shape (samples, classes)
    parts: list[Floats] = []
    for (matrix, _), layer_input in zip(reversed(layers), reversed(outputs), strict=True):
        parts[:0] = [(layer_input.T @ delta).ravel(), delta.sum(axis=0)]  # at the front, because the last layer comes first
        # the slope follows from the layer's input, the output y of the layer before: 1 - y^2 for tanh, 1 where y > 0 for relu
        delta = (delta @ matrix.T) * (1 - layer_input**2 if network.activation == "tanh" else layer_input > 0)
    return float(loss), np.concatenate(parts)


class Log:
    """The losses and accuracies of a run, collected step by step."""

    def __init__(self, network: Network, data: DataSet, steps: int, every: int | None, progress: Progress | None) -> None:
        if progress is not None and not callable(progress):
            raise HybridLabError(
                f"progress is a function of two numbers, the steps done and all steps, or None, not {short_repr(progress)}",
                "wrong-type",
            )
        self.network, self.data, self.steps, self.progress = network, data, steps, progress
        self.every = steps if every is None else whole_number(every, "every")
        self.losses: list[float] = []
        self.accuracies: dict[int, float] = {}

    def add(self, loss: float, weights: Floats) -> None:
        """Store the loss of a step, and the accuracy if it is measured after this step.

        Raises :class:`HybridLabError` if training has diverged.
        """
        self.must_be_finite(loss, weights)
        self.losses.append(loss)
        done = len(self.losses)
        if done % self.every == 0 or done == self.steps:
            with np.errstate(all="ignore"):  # weights that are far too large lower the accuracy, and numpy need not warn
                self.accuracies[done] = self.network.accuracy(weights, self.data.held_out_inputs, self.data.held_out_labels)
        if self.progress is not None:
            self.progress(done, self.steps)

    def must_be_finite(self, *arrays: float | Floats) -> None:
        """Raise :class:`HybridLabError` if a number is not finite, because then training has diverged."""
        if not all(np.isfinite(array).all() for array in arrays):
            diverges = f"training diverges: in step {len(self.losses) + 1} numbers are no longer finite"
            raise HybridLabError(f"{diverges}; try a smaller learning_rate", "diverged")

    def columns(self) -> tuple[Floats, Ints, Floats]:
        """Return the arrays ``losses``, ``checked`` and ``accuracies`` of :class:`TrainedAlone`."""
        checked, accuracies = np.array(list(self.accuracies)), np.array(list(self.accuracies.values()))
        return readonly(np.array(self.losses)), readonly(checked), readonly(accuracies)


def data_for(network: Network, data: DataSet | None) -> DataSet:
    """Return ``data``, or the digits if it is None; raise an error if the data do not fit the network."""
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
    """Return a learning rate as a float, or raise an error if it is not one finite number above 0."""
    rate = numbers(value, "learning_rate")
    if rate.ndim or not 0 < rate < np.inf:
        raise HybridLabError(f"learning_rate must be a number above 0, not {short_repr(value)}", "out-of-range")
    return float(rate)


def generators(seed: int) -> list[np.random.Generator]:
    """Return the three random generators of a run: for the initial weights, the batches and stochastic rounding."""
    # independent generators, so that stochastic rounding does not change the batches
    sequence = np.random.SeedSequence(whole_number(seed, "seed", at_least=0, at_most=2**63))
    return [np.random.default_rng(child) for child in sequence.spawn(3)]
