"""Data for training that take no time to load: the digits come with a library whose import takes a second in every process."""

import numpy as np

from hybridlab.training import DataSet

FEATURES, CLASSES = 12, 4


def small_data() -> DataSet:
    """Return 256 samples of random numbers, which are always the same."""
    rng = np.random.default_rng(11)
    labels = rng.integers(CLASSES, size=256)
    labels[:CLASSES] = range(CLASSES)
    return DataSet(rng.normal(size=(256, FEATURES)), labels, rng.normal(size=(8, FEATURES)), labels[:8])
