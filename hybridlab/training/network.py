"""A small network: layers of a weight matrix and a bias, and how they are spread over the stages of a pipeline."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import counted, each_of, known_name, random_source, short_repr, whole_number
from hybridlab.errors import HybridLabError

ACTIVATIONS = ("tanh", "relu")


class Layer(NamedTuple):
    """The parameters of a layer, or their gradients: a matrix (..., inputs, outputs) and a bias (..., 1, outputs)."""

    matrix: Floats
    bias: Floats


@dataclass(frozen=True)
class Network:
    """A network of ``len(sizes) - 1`` layers: layer i turns sizes[i] numbers into sizes[i + 1].

    A layer multiplies by its matrix, adds its bias and applies the ``activation``, tanh or relu; the last one ends in softmax instead.
    All parameters are one flat vector, layer by layer, each matrix before its bias. Raises :class:`HybridLabError` for
    sizes that make no layer.

    >>> network = Network((64, 32, 10))
    >>> network.layers, network.parameters
    (2, 2410)
    """

    sizes: tuple[int, ...] = (64, 48, 40, 32, 10)
    activation: str = "tanh"

    def __post_init__(self) -> None:
        wanted = "the sizes of a network are two or more whole numbers, such as (64, 32, 10)"
        sizes = tuple(whole_number(size, "a size of a network", at_most=10**5) for size in each_of(self.sizes, wanted))
        if len(sizes) < 2:
            raise HybridLabError(f"{wanted}, not {sizes}")
        object.__setattr__(self, "sizes", sizes)
        known_name(self.activation, ACTIVATIONS, "activation")
        whole_number(self.parameters, "the number of parameters")

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.sizes) - 1

    @property
    def parameters(self) -> int:
        """Number of parameters, of all layers together."""
        return self.count(range(self.layers))

    def count(self, layers: Sequence[int]) -> int:
        """Return the number of parameters of some of the ``layers``, counted from 0."""
        if any(layer not in range(self.layers) for layer in layers):
            raise HybridLabError(f"the layers of this network are 0 to {self.layers - 1}, not {short_repr(layers)}")
        return sum((self.sizes[layer] + 1) * self.sizes[layer + 1] for layer in layers)

    def stages(self, count: int) -> tuple[range, ...]:
        """Return the layers of each of ``count`` stages, spread as evenly as possible: the first ones hold one more.

        Raises :class:`HybridLabError` for more stages than layers.

        >>> Network((64, 32, 32, 32, 10)).stages(3)
        (range(0, 2), range(2, 3), range(3, 4))
        """
        if whole_number(count, "stages") > self.layers:
            message = f"{counted(count, 'stage')} need at least {counted(count, 'layer')}, but the network has {self.layers}"
            raise HybridLabError(f"{message}: take fewer stages, or a deeper network")
        least, more = divmod(self.layers, count)
        ends = [stage * least + min(stage, more) for stage in range(count + 1)]
        return tuple(range(start, end) for start, end in pairwise(ends))

    def initial(self, rng: np.random.Generator) -> Floats:
        """Return random parameters to begin with, shape (parameters,): layer by layer, whatever the stages.

        Matrices are normal with variance 2 / (inputs + outputs) for tanh (Glorot and Bengio, AISTATS 2010) and 2 / inputs for
        relu (He et al., ICCV 2015); biases are zero.
        """
        flat, rng = np.zeros(self.parameters), random_source(rng, "a network")
        for matrix, _ in self.unpacked(flat):
            inputs, outputs = matrix.shape
            spread = 2 / (inputs + outputs) if self.activation == "tanh" else 2 / inputs
            matrix[:] = rng.normal(0, np.sqrt(spread), matrix.shape)
        return flat

    def unpacked(self, flat: Floats, layers: Sequence[int] | None = None) -> tuple[Layer, ...]:
        """Return the matrices and biases in ``flat``, shape (..., parameters of ``layers``), as views of it.

        >>> flat = np.zeros((2, 15))
        >>> Network((4, 3)).unpacked(flat)[0].bias[:] = 1
        >>> float(flat.sum())
        6.0
        """
        chosen = range(self.layers) if layers is None else layers
        wanted = self.count(chosen)
        if _shape(flat)[-1:] != (wanted,):
            what = f"the parameters of {counted(len(chosen), 'layer')}"
            raise HybridLabError(f"{what} must be an array of shape (..., {wanted}), not {_told(flat)}")
        before, found = flat.shape[:-1], []
        start = 0
        for layer in chosen:
            inputs, outputs = self.sizes[layer : layer + 2]
            middle, end = start + inputs * outputs, start + (inputs + 1) * outputs
            matrix = flat[..., start:middle].reshape(*before, inputs, outputs)
            found.append(Layer(matrix, flat[..., middle:end].reshape(*before, 1, outputs)))
            start = end
        return tuple(found)

    def scores(self, flat: Floats, inputs: Floats) -> Floats:
        """Return the scores of every class before softmax, shape (samples, classes), for inputs (samples, features)."""
        *hidden, last = self.unpacked(flat)
        inputs = self.readable(inputs)
        for matrix, bias in hidden:
            inputs = activated(inputs @ matrix + bias, self.activation)
        return inputs @ last.matrix + last.bias

    def accuracy(self, flat: Floats, inputs: Floats, labels: Ints) -> float:
        """Return the share of the inputs, shape (samples, features), whose highest score is that of their label."""
        inputs, labels = self.samples(inputs, labels)
        return float((self.scores(flat, inputs).argmax(axis=-1) == labels).mean())

    def readable(self, inputs: Any) -> Floats:
        """Return inputs of shape (..., samples, features) that this network can read, or refuse them."""
        if len(_shape(inputs)) < 2 or inputs.shape[-1] != self.sizes[0] or inputs.dtype.kind not in "iuf":
            raise HybridLabError(f"inputs must be an array of numbers, shape (..., samples, {self.sizes[0]}), not {_told(inputs)}")
        found: Floats = inputs
        return found

    def samples(self, inputs: Any, labels: Any) -> tuple[Floats, Ints]:
        """Return inputs (..., samples, features) and their labels (..., samples), or refuse what is none of this network."""
        inputs = self.readable(inputs)
        known = _shape(labels) == inputs.shape[:-1] and labels.dtype.kind in "iu"
        if not known or ((labels < 0) | (labels >= self.sizes[-1])).any():
            wanted = f"labels must be an array of whole numbers from 0 to {self.sizes[-1] - 1}, shape {inputs.shape[:-1]}"
            raise HybridLabError(f"{wanted}, one for each sample, not {_told(labels)}")
        return inputs, labels


def _shape(value: Any) -> tuple[int, ...]:
    return value.shape if isinstance(value, np.ndarray) else ()


def _told(value: Any) -> str:
    return f"shape {value.shape} of {value.dtype}" if isinstance(value, np.ndarray) else short_repr(value)


def activated(sums: Floats, activation: str) -> Floats:
    """Return tanh or relu of every number."""
    return np.tanh(sums) if activation == "tanh" else np.maximum(sums, 0.0)


def slope(outputs: Floats, activation: str) -> Floats:
    """Return the derivative of the activation where it gave ``outputs``; that of relu at 0 is 0."""
    return 1 - outputs * outputs if activation == "tanh" else (outputs > 0).astype(np.float64)
