"""A small network: its sizes, its parameters, its activation, and the division of its layers into stages."""

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
    """The parameters of a layer, or their gradients.

    Parameters
    ----------
    matrix : array, shape (..., inputs, outputs)
        The weights.
    bias : array, shape (..., 1, outputs)
        The numbers that are added to input @ matrix.
    """

    matrix: Floats
    bias: Floats


@dataclass(frozen=True)
class Network:
    """A network of fully connected layers with softmax at the end. Layer i takes sizes[i] numbers and returns sizes[i + 1] numbers.

    A layer multiplies its input by a matrix, adds a bias and applies the activation. The last layer applies softmax instead. All
    parameters are in one flat vector: first the matrix and then the bias of layer 0, then those of layer 1, and so on.

    Parameters
    ----------
    sizes : tuple of int
        The number of features, the widths of the hidden layers, and the number of classes.
    activation : str
        "tanh" or "relu".

    Raises
    ------
    HybridLabError
        There are fewer than two sizes, a size is not a whole number of at least 1, or the activation is unknown.

    Examples
    --------
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
            raise HybridLabError(f"{wanted}, not {sizes}", "wrong-length")
        object.__setattr__(self, "sizes", sizes)
        known_name(self.activation, ACTIVATIONS, "activation")
        whole_number(self.parameters, "the number of parameters")  # raises an error if there are too many

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.sizes) - 1

    @property
    def parameters(self) -> int:
        """Number of parameters of all layers."""
        return self.count(range(self.layers))

    def count(self, layers: Sequence[int]) -> int:
        """Return the number of parameters of these ``layers`` together. Layers are numbered from 0.

        Raises
        ------
        HybridLabError
            The network has no such layer.
        """
        wanted = f"the layers of this network are 0 to {self.layers - 1}"
        chosen = list(each_of(layers, wanted))
        if not all(isinstance(layer, (int, np.integer)) and layer in range(self.layers) for layer in chosen):
            raise HybridLabError(f"{wanted}, not {short_repr(layers)}", "out-of-range")
        return sum((self.sizes[layer] + 1) * self.sizes[layer + 1] for layer in chosen)

    def stages(self, count: int) -> tuple[range, ...]:
        """Return the layers of each of ``count`` stages. They are spread as evenly as possible, and stages with more layers come first.

        Parameters
        ----------
        count : int
            The number of stages.

        Raises
        ------
        HybridLabError
            There are more stages than layers.

        Examples
        --------
        >>> Network((64, 32, 32, 32, 10)).stages(3)
        (range(0, 2), range(2, 3), range(3, 4))
        """
        if whole_number(count, "stages") > self.layers:
            needed = f"{counted(count, 'stage')} need at least {counted(count, 'layer')}, but the network has {self.layers}"
            raise HybridLabError(f"{needed}: take fewer stages, or a deeper network", "too-large")
        least, more = divmod(self.layers, count)
        ends = [stage * least + min(stage, more) for stage in range(count + 1)]  # the first ``more`` stages have one layer more
        return tuple(range(start, end) for start, end in pairwise(ends))

    def split(self, flat: Floats, count: int) -> list[Floats]:
        """Return the parameters of each of ``count`` stages, as views of ``flat``. ``flat`` has shape (..., parameters).

        Raises
        ------
        HybridLabError
            There are more stages than layers, or ``flat`` has a wrong number of parameters.
        """
        ends = np.cumsum([self.count(layers) for layers in self.stages(count)])
        _refuse_other_shape(flat, self.parameters, self.layers)
        return np.split(flat, ends[:-1], axis=-1)

    def initial(self, rng: np.random.Generator) -> Floats:
        """Return random initial parameters, shape (parameters,). They do not depend on the number of stages.

        The entries of matrices are normally distributed, with variance 2 / (inputs + outputs) for tanh and 2 / inputs for relu. Biases are
        zero.

        Parameters
        ----------
        rng : numpy.random.Generator
            The source of the random numbers.

        Raises
        ------
        HybridLabError
            ``rng`` is not a generator of random numbers.

        References
        ----------
        tanh: Glorot and Bengio, AISTATS 2010. relu: He et al., ICCV 2015.
        """
        flat, rng = np.zeros(self.parameters), random_source(rng, "a network")
        for matrix, _ in self.unpacked(flat):  # matrices are views, so writing into a matrix changes ``flat``
            inputs, outputs = matrix.shape
            variance = 2 / (inputs + outputs) if self.activation == "tanh" else 2 / inputs
            matrix[:] = rng.normal(0, np.sqrt(variance), matrix.shape)
        return flat

    def unpacked(self, flat: Floats, layers: Sequence[int] | None = None) -> tuple[Layer, ...]:
        """Return the matrices and biases of the ``layers`` as views of the vector ``flat``.

        Parameters
        ----------
        flat : array, shape (..., parameters)
            The parameters of the layers.
        layers : sequence of int, optional
            The layers whose parameters are in ``flat``. None means all layers.

        Raises
        ------
        HybridLabError
            ``flat`` has a wrong number of parameters, or the network has no such layer.

        Examples
        --------
        >>> flat = np.zeros((2, 15))
        >>> Network((4, 3)).unpacked(flat)[0].bias[:] = 1
        >>> float(flat.sum())
        6.0
        """
        chosen = range(self.layers) if layers is None else list(each_of(layers, f"the layers of this network are 0 to {self.layers - 1}"))
        _refuse_other_shape(flat, self.count(chosen), len(chosen))
        before, found = flat.shape[:-1], []
        start = 0
        for layer in chosen:
            inputs, outputs = self.sizes[layer : layer + 2]
            middle, end = start + inputs * outputs, start + (inputs + 1) * outputs  # where the matrix ends, where the bias ends
            # numpy can split an axis without a copy, so matrix and bias are views
            matrix = flat[..., start:middle].reshape(*before, inputs, outputs)
            found.append(Layer(matrix, flat[..., middle:end].reshape(*before, 1, outputs)))
            start = end
        return tuple(found)

    def scores(self, flat: Floats, inputs: Floats) -> Floats:
        """Return the score of every class before softmax, shape (samples, classes).

        Parameters
        ----------
        flat : array, shape (parameters,)
            The parameters of all layers.
        inputs : array, shape (samples, features)
            The samples.

        Raises
        ------
        HybridLabError
            ``flat`` or ``inputs`` has a wrong shape.
        """
        *hidden, last = self.unpacked(flat)
        inputs = self.readable(inputs)
        for matrix, bias in hidden:
            inputs = activated(inputs @ matrix + bias, self.activation)
        return inputs @ last.matrix + last.bias

    def accuracy(self, flat: Floats, inputs: Floats, labels: Ints) -> float:
        """Return the share of samples that are classified correctly: their label has the highest score.

        Parameters
        ----------
        flat : array, shape (parameters,)
            The parameters of all layers.
        inputs : array, shape (samples, features)
            The samples.
        labels : array, shape (samples,)
            The class of each sample, a whole number from 0.

        Raises
        ------
        HybridLabError
            ``flat``, ``inputs`` or ``labels`` has a wrong shape, or a label is no class.
        """
        inputs, labels = self.samples(inputs, labels)
        # softmax is not needed, because it does not change which score is highest
        return float((self.scores(flat, inputs).argmax(axis=-1) == labels).mean())

    def readable(self, inputs: Any) -> Floats:
        """Return ``inputs`` if they are numbers of shape (..., samples, features) for this network. Otherwise raise an error.

        Raises
        ------
        HybridLabError
            ``inputs`` has another shape, or it is not an array of numbers.
        """
        if len(_shape(inputs)) < 2 or inputs.shape[-1] != self.sizes[0] or inputs.dtype.kind not in "iuf":
            wanted = f"inputs must be an array of numbers, shape (..., samples, {self.sizes[0]})"
            raise HybridLabError(f"{wanted}, not {_shape_and_type(inputs)}", "wrong-shape")
        found: Floats = inputs
        return found

    def samples(self, inputs: Any, labels: Any) -> tuple[Floats, Ints]:
        """Return inputs, shape (..., samples, features), and labels, shape (..., samples). Raise an error for wrong shapes or labels.

        Raises
        ------
        HybridLabError
            An array has a wrong shape, or a label is no class.
        """
        inputs = self.readable(inputs)
        return inputs, checked_classes(self, labels, inputs.shape[:-1])


def checked_network(network: object) -> Network:
    """Return the network, or raise an error for another value."""
    if not isinstance(network, Network):
        raise HybridLabError(f"network must be a Network, such as Network((64, 32, 10)), not {short_repr(network)}", "wrong-type")
    return network


def checked_classes(network: Network, labels: Any, shape: tuple[int, ...] | None = None) -> Ints:
    """Return ``labels`` if they are classes of the network, and of this ``shape`` or a table. Otherwise raise an error."""
    wanted = f"labels must be an array of whole numbers from 0 to {network.sizes[-1] - 1}"
    wanted += ", shape (microbatches, samples)" if shape is None else f", shape {shape}, one for each sample"
    right = len(_shape(labels)) == 2 if shape is None else _shape(labels) == shape
    if not right or labels.dtype.kind not in "iu":
        raise HybridLabError(f"{wanted}, not {_shape_and_type(labels)}", "wrong-shape")
    if ((labels < 0) | (labels >= network.sizes[-1])).any():
        raise HybridLabError(f"{wanted}, not numbers from {labels.min()} to {labels.max()}", "out-of-range")
    found: Ints = labels
    return found


def activated(sums: Floats, activation: str) -> Floats:
    """Return tanh or relu of every number."""
    return np.tanh(sums) if activation == "tanh" else np.maximum(sums, 0.0)


def slope(outputs: Floats, activation: str) -> Floats:
    """Return the derivative of the activation where the activation equals ``outputs``. For relu, it is 0 if the output is 0."""
    return 1 - outputs * outputs if activation == "tanh" else (outputs > 0).astype(np.float64)


def _refuse_other_shape(flat: Any, wanted: int, layers: int) -> None:
    """Raise an error if ``flat`` is not an array of numbers with ``wanted`` numbers on its last axis."""
    if _shape(flat)[-1:] != (wanted,):
        what = f"the parameters of {counted(layers, 'layer')}"
        raise HybridLabError(f"{what} must be an array of shape (..., {wanted}), not {_shape_and_type(flat)}", "wrong-shape")


def _shape(value: Any) -> tuple[int, ...]:
    """Return the shape of an array. For other objects return (), which is never a right shape here."""
    return value.shape if isinstance(value, np.ndarray) else ()


def _shape_and_type(value: Any) -> str:
    """Return words for an error: the shape and type of an array, or a short form of any other object."""
    return f"shape {value.shape} of {value.dtype}" if isinstance(value, np.ndarray) else short_repr(value)
