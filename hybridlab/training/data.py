"""The data of training. Some handwritten digits are held out to measure the accuracy. The other digits form global batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, Frozen, Ints, readonly
from hybridlab.checks import numbers, random_source, short_repr, whole_number
from hybridlab.errors import HybridLabError

HELD_OUT = 397  # number of held-out digits, of 1,797 digits in total
WORDS = 128  # different words of a text
TEXT, TEXT_HELD_OUT = 8000, 1500  # words of a text to train on, and held out
FOLLOWS = 0.7  # how often the usual next word comes next


@dataclass(frozen=True, eq=False, repr=False)
class DataSet(Frozen):
    """Samples for training and held-out samples, with their labels.

    Parameters
    ----------
    inputs, held_out_inputs : array, shape (samples, features)
        Finite numbers. Both arrays have the same number of features.
    labels, held_out_labels : array, shape (samples,)
        The class of each sample: 0, 1, 2 and so on.

    Raises
    ------
    HybridLabError
        An array has a wrong shape or wrong values.
    """

    inputs: Floats
    labels: Ints
    held_out_inputs: Floats
    held_out_labels: Ints

    def __post_init__(self) -> None:
        for name in ("inputs", "held_out_inputs"):
            array = numbers(getattr(self, name), name)
            if array.ndim != 2:
                raise HybridLabError(f"{name} must be finite numbers of shape (samples, features), not shape {array.shape}", "wrong-shape")
            if not np.isfinite(array).all():
                raise HybridLabError(f"{name} must be finite numbers: leave out samples with NaN or infinity", "not-finite")
            object.__setattr__(self, name, readonly(array))
        if self.inputs.shape[1] != self.held_out_inputs.shape[1]:
            found = f"{self.inputs.shape[1]} and {self.held_out_inputs.shape[1]}"
            raise HybridLabError(f"samples to train on and held out must have the same number of features, not {found}", "does-not-fit")
        for name, samples in (("labels", self.inputs), ("held_out_labels", self.held_out_inputs)):
            object.__setattr__(self, name, readonly(_checked_labels(getattr(self, name), name, len(samples))))

    @property
    def classes(self) -> int:
        """Number of classes: one more than the largest label."""
        return 1 + int(max(self.labels.max(), self.held_out_labels.max()))

    def __repr__(self) -> str:
        sizes = f"{len(self.labels):,} to train on, {len(self.held_out_labels):,} held out"
        return f"<DataSet: {sizes}, {self.inputs.shape[1]} features, {self.classes} classes>"


def digits(seed: int = 0) -> DataSet:
    """Return 1,797 handwritten digits of 8 x 8 pixels: 1,400 to train on and 397 held out.

    The features are the 64 grey values, from 0 to 1. The data come with scikit-learn.

    Parameters
    ----------
    seed : int
        Sets which digits are held out.

    Raises
    ------
    HybridLabError
        scikit-learn is not installed.

    References
    ----------
    Alpaydin and Kaynak, Optical Recognition of Handwritten Digits (its test set), UCI Machine Learning Repository, 1998.

    Examples
    --------
    >>> digits()
    <DataSet: 1,400 to train on, 397 held out, 64 features, 10 classes>
    """
    images, labels = _images()
    order = np.random.default_rng(whole_number(seed, "seed", at_least=0)).permutation(len(labels))
    train, held_out = order[:-HELD_OUT], order[-HELD_OUT:]  # no digit is in both arrays
    return DataSet(images[train], labels[train], images[held_out], labels[held_out])


def random_text(seed: int = 0) -> DataSet:
    """Return a random text in which a network can learn to predict the next word: 8,000 words to train on and 1,500 held out.

    There are 128 different words. As in real texts, their frequencies follow Zipf's law: the n-th most frequent word comes with a
    probability proportional to 1/n. The words are numbered in a random order. Each word has a usual next word, which follows it with a
    probability of 70 %. Otherwise any word follows, with its own frequency. A sample has 128 features: 1 at the number of its word, and 0
    elsewhere. Its label is the number of the next word.

    Parameters
    ----------
    seed : int
        Sets the frequencies, the usual next words and the text.

    Raises
    ------
    HybridLabError
        ``seed`` is not a whole number of at least 0.

    References
    ----------
    Zipf, Human Behavior and the Principle of Least Effort, 1949.

    Examples
    --------
    >>> random_text()
    <DataSet: 8,000 to train on, 1,500 held out, 128 features, 128 classes>
    """
    rng = np.random.default_rng(whole_number(seed, "seed", at_least=0))
    frequency = 1 / (1 + rng.permutation(WORDS))
    frequency /= frequency.sum()
    usual, size = rng.permutation(WORDS), TEXT + TEXT_HELD_OUT
    word = rng.choice(WORDS, size, p=frequency)
    following = np.where(rng.random(size) < FOLLOWS, usual[word], rng.choice(WORDS, size, p=frequency))
    features = np.eye(WORDS)[word]
    return DataSet(features[:TEXT], following[:TEXT], features[TEXT:], following[TEXT:])


def batches(samples: int, batch: int, steps: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield ``steps`` global batches. A batch is an array with the indices of ``batch`` samples.

    Every pass over the data takes the samples in a new random order. The last samples of a pass are not used if they are fewer than a
    batch.

    Parameters
    ----------
    samples : int
        The number of samples.
    batch : int
        The number of samples in a global batch, at most ``samples``.
    steps : int
        The number of batches.
    rng : numpy.random.Generator
        The source of the random orders.

    Raises
    ------
    HybridLabError
        A batch is larger than the data, or an argument has a wrong type.

    Examples
    --------
    >>> [batch.size for batch in batches(samples=10, batch=4, steps=3, rng=np.random.default_rng(0))]
    [4, 4, 4]
    """
    samples, batch = whole_number(samples, "samples"), whole_number(batch, "batch")
    steps, rng = whole_number(steps, "steps", at_least=0), random_source(rng, "a global batch")
    if batch > samples:
        raise HybridLabError(f"a global batch of {batch:,} is more than the {samples:,} samples to train on", "too-large")
    taken = 0
    while True:
        order = rng.permutation(samples)
        for start in range(0, samples - batch + 1, batch):
            if taken == steps:  # this test comes before the yield, because ``steps`` may be 0
                return
            yield order[start : start + batch]
            taken += 1


@cache  # all seeds share the images, so the file is read only once
def _images() -> tuple[Floats, Ints]:
    """Return the digits of scikit-learn, shape (1797, 64), and their labels."""
    try:
        from sklearn.datasets import load_digits  # type: ignore[import-untyped]
    except ImportError as why:
        raise HybridLabError(
            f"scikit-learn has the digits, but cannot be loaded ({why}): pip install scikit-learn", "not-installed"
        ) from why
    images, labels = load_digits(return_X_y=True)
    return readonly(images / 16), readonly(labels.astype(np.intp))  # grey values in the file are 0 to 16


def _checked_labels(value: npt.ArrayLike, name: str, samples: int) -> npt.NDArray[Any]:
    """Return ``value`` as whole numbers from 0, shape (samples,). Errors call the argument ``name``."""
    wanted = f"{name} must be {samples:,} whole numbers from 0, one for each sample, not {short_repr(value)}"
    try:
        array = np.array(value)
    except (ValueError, TypeError):
        raise HybridLabError(wanted, "ragged") from None
    if array.dtype.kind not in "iu":
        raise HybridLabError(wanted, "not-a-whole-number")
    if array.shape != (samples,):
        raise HybridLabError(wanted, "wrong-shape")
    if array.min() < 0 or array.max() >= 2**31:  # as signed integers, large unsigned 64-bit labels would become negative
        raise HybridLabError(wanted, "out-of-range")
    return array.astype(np.intp)
