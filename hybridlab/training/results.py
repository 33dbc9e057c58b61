"""What a run of training leaves: the weights, the losses, and the accuracy on held-out samples."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hybridlab.arrays import Floats, Frozen, Ints, readonly
from hybridlab.checks import numbers, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.training.data import DataSet, digits
from hybridlab.training.network import Network

Progress = Callable[[int, int], object]  # called with the number of steps done and of all


@dataclass(frozen=True, eq=False, repr=False)
class TrainedAlone(Frozen):
    """A network after training on one device.

    ``weights`` are its parameters, shape (parameters,), as :class:`Network` lays them out; ``losses`` the mean loss
    of each global batch before its step, shape (steps,); ``accuracies`` the share of the held-out samples
    that was right after ``checked`` steps, both of shape (checks,), the last one at the end.
    """

    network: Network
    weights: Floats
    losses: Floats
    checked: Ints
    accuracies: Floats

    @property
    def accuracy(self) -> float:
        """Share of the held-out samples that is right after the last step."""
        return float(self.accuracies[-1])

    def __repr__(self) -> str:
        steps = f"{self.losses.size} steps, last loss {self.losses[-1]:.4f}"
        return f"<{type(self).__name__}: {steps}, held-out accuracy {self.accuracy:.2%}>"


@dataclass(frozen=True, eq=False, repr=False)
class Trained(TrainedAlone):
    """A network after training on K stages x D replicas; ``weights`` are those of replica 0.

    ``replicas`` are the weights of every replica, shape (replicas, parameters), and ``spread`` the largest difference of any weight
    between two replicas after each step, shape (steps,): 0 where the all-reduce leaves all replicas with the same bits. Of a
    schedule with two copies of the weights each copy has a row of its own, copy c of replica r row r x copies + c.
    ``peak_activations`` are the most that each device held, in microbatches of the whole device, as in :class:`Timeline`;
    ``bytes_sent`` is what all devices together send in the all-reduce of one step, scales included (None if unknown).
    """

    replicas: Floats
    spread: Floats
    peak_activations: Floats
    bytes_sent: int | None


class Log:
    """Losses and accuracies, collected while a network trains."""

    def __init__(self, network: Network, data: DataSet, steps: int, every: int | None, progress: Progress | None) -> None:
        if progress is not None and not callable(progress):
            raise HybridLabError(f"progress is a function of the steps done and of all, or None, not {short_repr(progress)}")
        self.network, self.data, self.steps, self.progress = network, data, steps, progress
        self.every = steps if every is None else whole_number(every, "every")
        self.losses: list[float] = []
        self.accuracies: dict[int, float] = {}

    def add(self, loss: float, weights: Floats) -> None:
        """Note the loss of a step and, every so often, the accuracy after it.

        Raises :class:`HybridLabError` where training has diverged.
        """
        self.must_be_finite(loss, weights)
        self.losses.append(loss)
        done = len(self.losses)
        if done % self.every == 0 or done == self.steps:
            with np.errstate(all="ignore"):  # weights far too large are wrong on most samples, and no more need be said
                self.accuracies[done] = self.network.accuracy(weights, self.data.held_out_inputs, self.data.held_out_labels)
        if self.progress is not None:
            self.progress(done, self.steps)

    def must_be_finite(self, *arrays: float | Floats) -> None:
        """Raise :class:`HybridLabError` where training has diverged."""
        if not all(np.isfinite(array).all() for array in arrays):
            message = f"training diverges: in step {len(self.losses) + 1} numbers are no longer finite"
            raise HybridLabError(f"{message}; try a smaller learning_rate")

    def columns(self) -> tuple[Floats, Ints, Floats]:
        """Return what was noted, as ``losses``, ``checked`` and ``accuracies`` of :class:`TrainedAlone`."""
        checked, accuracies = np.array(list(self.accuracies)), np.array(list(self.accuracies.values()))
        return readonly(np.array(self.losses)), readonly(checked), readonly(accuracies)


def data_for(network: Network, data: DataSet | None) -> DataSet:
    """Return the data, the digits if None, or refuse data that do not fit the network."""
    data = digits() if data is None else data
    if not isinstance(network, Network) or not isinstance(data, DataSet):
        raise HybridLabError(f"training takes a Network and a DataSet, not {short_repr(network)} and {short_repr(data)}")
    features = data.inputs.shape[1]
    if network.sizes[0] != features or network.sizes[-1] < data.classes:
        message = f"the data have {features} features and {data.classes} classes"
        raise HybridLabError(f"{message}: a network for them has sizes ({features}, ..., {data.classes}), not {network.sizes}")
    return data


def rate_of(value: object) -> float:
    """Return a learning rate as a float, or refuse what is no finite number above 0."""
    rate = numbers(value, "learning_rate")
    if rate.ndim or not 0 < rate < np.inf:
        raise HybridLabError(f"learning_rate must be a number above 0, not {short_repr(value)}")
    return float(rate)


def generators(seed: int) -> list[np.random.Generator]:
    """Return the generators of a run: for the first weights, for the batches, for stochastic rounding on the wire."""
    sequence = np.random.SeedSequence(whole_number(seed, "seed", at_least=0, at_most=2**63))
    return [np.random.default_rng(child) for child in sequence.spawn(3)]
