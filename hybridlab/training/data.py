"""Real data: handwritten digits, split into those to train on and those held out."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, Frozen, Ints, readonly
from hybridlab.checks import numbers, random_source, short_repr, whole_number
from hybridlab.errors import HybridLabError

HELD_OUT = 397  # of the 1,797 digits


@dataclass(frozen=True, eq=False, repr=False)
class DataSet(Frozen):
    """Samples to train on and samples held out: inputs of shape (samples, features), labels 0, 1, 2, ... (samples,)."""

    inputs: Floats
    labels: Ints
    held_out_inputs: Floats
    held_out_labels: Ints

    def __post_init__(self) -> None:
        for name in ("inputs", "held_out_inputs"):
            array = numbers(getattr(self, name), name)
            if array.ndim != 2 or not np.isfinite(array).all():
                raise HybridLabError(f"{name} must be finite numbers of shape (samples, features), not shape {array.shape}")
            object.__setattr__(self, name, readonly(array))
        if self.inputs.shape[1] != self.held_out_inputs.shape[1]:
            message = f"{self.inputs.shape[1]} and {self.held_out_inputs.shape[1]}"
            raise HybridLabError(f"samples to train on and held out must have the same number of features, not {message}")
        for name, samples in (("labels", self.inputs), ("held_out_labels", self.held_out_inputs)):
            object.__setattr__(self, name, readonly(_labels(getattr(self, name), name, len(samples))))

    @property
    def classes(self) -> int:
        """Number of different labels: one more than the largest."""
        return 1 + int(max(self.labels.max(), self.held_out_labels.max()))

    def __repr__(self) -> str:
        sizes = f"{len(self.labels):,} to train on, {len(self.held_out_labels):,} held out"
        return f"<DataSet: {sizes}, {self.inputs.shape[1]} features, {self.classes} classes>"


def digits(seed: int = 0) -> DataSet:
    """Return 1,797 handwritten digits of 8 x 8 pixels: 1,400 to train on and 397 held out, dealt at random by ``seed``.

    Features are the 64 grey values, from 0 to 1. The data set comes with scikit-learn; it is the test set of
    Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998. Raises
    :class:`HybridLabError` where scikit-learn is not installed.

    >>> digits()
    <DataSet: 1,400 to train on, 397 held out, 64 features, 10 classes>
    """
    images, labels = _images()
    order = np.random.default_rng(whole_number(seed, "seed", at_least=0)).permutation(len(labels))
    train, held_out = order[:-HELD_OUT], order[-HELD_OUT:]
    return DataSet(images[train], labels[train], images[held_out], labels[held_out])


def batches(samples: int, batch: int, steps: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield ``steps`` global batches, each the places of ``batch`` samples out of ``samples``.

    Every pass over the data takes them in a new random order; what is left over at its end, less than a batch, waits
    for another pass.

    >>> [batch.size for batch in batches(samples=10, batch=4, steps=3, rng=np.random.default_rng(0))]
    [4, 4, 4]
    """
    samples, batch = whole_number(samples, "samples"), whole_number(batch, "batch")
    steps, rng = whole_number(steps, "steps", at_least=0), random_source(rng, "a global batch")
    if batch > samples:
        raise HybridLabError(f"a global batch of {batch:,} is more than the {samples:,} samples to train on")
    taken = 0
    while True:
        order = rng.permutation(samples)
        for start in range(0, samples - batch + 1, batch):
            if taken == steps:
                return
            yield order[start : start + batch]
            taken += 1


@cache
def _images() -> tuple[Floats, Ints]:
    try:
        from sklearn.datasets import load_digits  # type: ignore[import-untyped]
    except ImportError as why:
        raise HybridLabError(f"the digits come with scikit-learn, which cannot be loaded ({why}): pip install scikit-learn") from why
    images, labels = load_digits(return_X_y=True)
    return readonly(images / 16), readonly(labels.astype(np.intp))


def _labels(value: npt.ArrayLike, name: str, samples: int) -> npt.NDArray[Any]:
    try:
        array = np.array(value)
    except (ValueError, TypeError):  # ragged
        array = np.empty(0)
    if array.dtype.kind not in "iu" or array.shape != (samples,) or array.min() < 0 or array.max() >= 2**31:
        raise HybridLabError(f"{name} must be {samples:,} whole numbers from 0, one for each sample, not {short_repr(value)}")
    return array.astype(np.intp)
