"""The accuracy check. It compares training on one device with training on many devices in several wire formats."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Frozen, readonly
from hybridlab.checks import counted, each_of, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.progress import Progress, reporting
from hybridlab.schedule import Schedule
from hybridlab.training.alone import DEFAULT, train_alone
from hybridlab.training.data import DataSet, digits
from hybridlab.training.network import Network
from hybridlab.training.training import equal_batch, train
from hybridlab.wire import BF16, FP16, FP32, INT8, WireFormat

# pairs: a wire format, and whether error feedback is on
FORMATS: tuple[tuple[WireFormat, bool], ...] = ((FP32, False), (FP16, False), (BF16, False), (INT8, False), (INT8, True))


class AccuracyRow(NamedTuple):
    """The held-out accuracy of one way to train, for all seeds together.

    Parameters
    ----------
    name : str
        The wire format, or "one device".
    mean, lowest, highest : float
        Mean, smallest and largest accuracy over the seeds. An accuracy is the share of held-out samples that are classified correctly.
    distance : float
        The relative difference from the weights of training on one device: the norm of w - v divided by the norm of v, where w are the
        final weights and v the final weights on one device. Mean over the seeds.
    bytes_sent : int
        The bytes that all devices together send in the all-reduces of one step.
    """

    name: str
    mean: float
    lowest: float
    highest: float
    distance: float
    bytes_sent: int


@dataclass(frozen=True, eq=False, repr=False)
class AccuracyTable(Frozen):
    """The result of an accuracy check. ``str`` returns the rows as a table.

    Parameters
    ----------
    setting : str
        The schedule and the numbers of devices, replicas and seeds, in words.
    rows : tuple of AccuracyRow
        First the row for training on one device, then one row for each wire format.
    accuracies : array, shape (rows, seeds)
        The held-out accuracy of each training.
    """

    setting: str
    rows: tuple[AccuracyRow, ...]
    accuracies: Floats

    def __str__(self) -> str:
        alone, *others = self.rows
        heading = f"{'':20} {'mean':>8} {'lowest':>8} {'highest':>8} {'points':>7} {'weights':>8} {'bytes':>8}"
        lines = [f"held-out accuracy, {self.setting}", heading, _name_and_accuracies(alone)]
        for row in others:
            differences = f"{100 * (row.mean - alone.mean):+7.2f} {row.distance:8.0e} {row.bytes_sent:8,}"
            lines.append(f"{_name_and_accuracies(row)} {differences}")
        return "\n".join([*lines, "points, weights: difference from one device; bytes: sent in one step"])

    def __repr__(self) -> str:
        return f"<AccuracyTable: {self.setting}>"


def accuracy_check(
    schedule: Schedule,
    replicas: int,
    *,
    formats: Sequence[tuple[WireFormat, bool]] = FORMATS,
    seeds: Sequence[int] = (0, 1, 2),
    network: Network = DEFAULT,
    data: Callable[[int], DataSet] = digits,
    batch: int | None = None,
    steps: int = 200,
    learning_rate: float = 0.3,
    progress: Progress = None,
) -> AccuracyTable:
    """Return the accuracy on held-out samples after training on one device, and after training on many devices with each wire format.

    A seed sets three things: the data, such as which digits are held out (:func:`digits`), the initial weights, and the order of the
    batches. With the same seed, these three are equal in all rows of the table.

    Parameters
    ----------
    schedule : Schedule
        The schedule of one pipeline.
    replicas : int
        The number of pipelines.
    formats : sequence of (WireFormat, bool)
        Each wire format, and whether error feedback is on.
    seeds : sequence of int
        Each row is trained once for each seed.
    network, steps, learning_rate
        As for :func:`train_alone` and :func:`train`.
    data : callable
        ``data(seed)`` returns the data of a seed: :func:`digits` or :func:`random_text`.
    batch : int, optional
        Number of samples in a global batch. It must be a multiple of (replicas x microbatches). None means the largest multiple up to 128,
        or the smallest multiple if all are above 128.
    progress : bool or callable, optional
        As for :func:`train_alone`, but it counts the trainings on many devices.

    Returns
    -------
    AccuracyTable
        A row for training on one device, then a row for each format.

    Raises
    ------
    HybridLabError
        There is no format or no seed, or :func:`train` raises an error for an argument.

    Examples
    --------
    >>> from hybridlab.schedules import build
    >>> print(accuracy_check(build("1f1b", 2, 2), 2, formats=[(FP32, False)], seeds=[0], steps=60))
    held-out accuracy, 1f1b, 2 devices x 2 replicas, 1 seed
                             mean   lowest  highest  points  weights    bytes
    one device             95.21%   95.21%   95.21%
    FP32                   95.21%   95.21%   95.21%   +0.00    4e-09   53,776
    points, weights: difference from one device; bytes: sent in one step
    """
    pairs = [_checked_format(pair) for pair in each_of(formats, "formats are pairs such as (INT8, True)")]
    checked_seeds = [whole_number(seed, "seed", at_least=0) for seed in each_of(seeds, "seeds are whole numbers such as (0, 1, 2)")]
    if not pairs or not checked_seeds:
        raise HybridLabError("an accuracy check needs at least one format and one seed", "empty")
    if not callable(data):
        raise HybridLabError(f"data must be a function of the seed, such as digits or random_text, not {short_repr(data)}", "wrong-type")
    batch = equal_batch(schedule, replicas) if batch is None else batch
    shared: Any = {"network": network, "batch": batch, "steps": steps, "learning_rate": learning_rate, "progress": False}
    accuracies, sent = np.empty((1 + len(pairs), len(checked_seeds))), [0] * (1 + len(pairs))
    distances = np.zeros_like(accuracies)
    with reporting(progress, accuracies[1:].size, "trainings") as report:  # training on one device is fast and does not count
        for column, seed in enumerate(checked_seeds):
            samples = data(seed)  # all rows have the same data, so that they differ only in the way to train
            alone = train_alone(data=samples, seed=seed, **shared)
            accuracies[0, column] = alone.accuracy
            for row, (wire, feedback) in enumerate(pairs, start=1):
                trained = train(schedule, replicas, wire=wire, error_feedback=feedback, data=samples, seed=seed, **shared)
                accuracies[row, column], sent[row] = trained.accuracy, trained.bytes_sent or 0  # None only without the library's ring
                distances[row, column] = np.linalg.norm(trained.weights - alone.weights) / np.linalg.norm(alone.weights)
                report(column * len(pairs) + row)
    names = ["one device", *(f"{wire}, error feedback" if feedback else str(wire) for wire, feedback in pairs)]
    columns = (accuracies.mean(axis=1), accuracies.min(axis=1), accuracies.max(axis=1), distances.mean(axis=1))
    rows = tuple(map(AccuracyRow, names, *(column.tolist() for column in columns), sent))
    mesh = f"{counted(schedule.devices, 'device')} x {counted(replicas, 'replica')}"
    return AccuracyTable(f"{schedule.name}, {mesh}, {counted(len(checked_seeds), 'seed')}", rows, readonly(accuracies))


def _name_and_accuracies(row: AccuracyRow) -> str:
    """Return the first columns of a row as text: the name, and the mean, smallest and largest accuracy."""
    return f"{row.name:20} {row.mean:8.2%} {row.lowest:8.2%} {row.highest:8.2%}"


def _checked_format(pair: Any) -> tuple[WireFormat, bool]:
    """Return ``pair`` if it is a pair of a wire format and a bool. Raise an error if it is not."""
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], WireFormat) and isinstance(pair[1], bool):
        return pair
    wanted = "a format is a pair such as (INT8, True): a wire format, and whether error feedback is on"
    raise HybridLabError(f"{wanted}, not {short_repr(pair)}", "wrong-type")
