"""The accuracy check: how many held-out digits are right, after training on one device and over each form of the wire."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Frozen, readonly
from hybridlab.checks import counted, each_of, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.training.alone import DEFAULT, train_alone
from hybridlab.training.data import digits
from hybridlab.training.network import Network
from hybridlab.training.results import Progress
from hybridlab.training.training import equal_batch, train
from hybridlab.wire import BF16, FP16, FP32, INT8, WireFormat


class AccuracyRow(NamedTuple):
    """Held-out accuracy of one way to train, a share from 0 to 1: mean, lowest and highest over the seeds.

    ``name`` is the form of the wire, or "one device"; ``distance`` how far the weights end from those of one device, the norm of the
    difference over the norm of the weights (mean over the seeds); ``bytes_sent`` what all devices send in one step's all-reduce.
    """

    name: str
    mean: float
    lowest: float
    highest: float
    distance: float
    bytes_sent: int


@dataclass(frozen=True, eq=False, repr=False)
class AccuracyTable(Frozen):
    """Rows of an accuracy check, the single device first; ``str`` lays them out as a table.

    ``accuracies`` has one row a way to train and one column a seed. ``setting`` says what was trained, in words.
    """

    setting: str
    rows: tuple[AccuracyRow, ...]
    accuracies: Floats

    def __str__(self) -> str:
        alone, *others = self.rows
        lines = [f"{'':20} {'mean':>8} {'lowest':>8} {'highest':>8} {'points':>7} {'weights':>8} {'bytes':>8}", _start(alone)]
        for row in others:
            beside = f"{100 * (row.mean - alone.mean):+7.2f} {row.distance:8.0e} {row.bytes_sent:8,}"
            lines.append(f"{_start(row)} {beside}")
        message = "points, weights: difference from one device; bytes: sent in one step"
        return "\n".join([f"held-out accuracy, {self.setting}", *lines, message])

    def __repr__(self) -> str:
        return f"<AccuracyTable: {self.setting}>"


# Each form of the wire, and whether what it rounds away is kept for the next step.
FORMATS: tuple[tuple[WireFormat, bool], ...] = ((FP32, False), (FP16, False), (BF16, False), (INT8, False), (INT8, True))


def accuracy_check(
    schedule: Schedule,
    replicas: int,
    *,
    formats: Sequence[tuple[WireFormat, bool]] = FORMATS,
    seeds: Sequence[int] = (0, 1, 2),
    network: Network = DEFAULT,
    batch: int | None = None,
    steps: int = 200,
    learning_rate: float = 0.3,
    progress: Progress | None = None,
) -> AccuracyTable:
    """Return the accuracy on held-out digits, of one device and of ``schedule`` on ``replicas``, over the ``seeds``.

    ``formats`` are pairs of a wire format and whether error feedback is on. A seed deals the digits anew (:func:`digits`), draws the
    first weights and orders the batches, the same for every row. ``network``, ``batch``, ``steps`` and
    ``learning_rate`` are those of :func:`train_alone` and :func:`train`; ``batch`` None is the largest up to 128 that can be
    cut into equal microbatches, or the least there is. ``progress`` is called after each of the runs with the runs
    done and their number.

    >>> from hybridlab.schedules import build
    >>> print(accuracy_check(build("1f1b", 2, 2), 2, formats=[(FP32, False)], seeds=[0], steps=60))
    held-out accuracy, 1f1b, 2 devices x 2 replicas, 1 seed
                             mean   lowest  highest  points  weights    bytes
    one device             95.21%   95.21%   95.21%
    FP32                   95.21%   95.21%   95.21%   +0.00    4e-09   53,776
    points, weights: difference from one device; bytes: sent in one step
    """
    pairs = [_format(pair) for pair in each_of(formats, "formats are pairs such as (INT8, True)")]
    numbers = [whole_number(seed, "seed", at_least=0) for seed in each_of(seeds, "seeds are whole numbers such as (0, 1, 2)")]
    if not pairs or not numbers:
        raise HybridLabError("an accuracy check needs at least one format and one seed")
    if progress is not None and not callable(progress):
        raise HybridLabError(f"progress is a function of the runs done and of all, or None, not {short_repr(progress)}")
    batch = equal_batch(schedule, replicas) if batch is None else batch
    shared: Any = {"network": network, "batch": batch, "steps": steps, "learning_rate": learning_rate}
    accuracies, sent = np.empty((1 + len(pairs), len(numbers))), [0] * (1 + len(pairs))
    distances = np.zeros_like(accuracies)
    for column, seed in enumerate(numbers):
        data = digits(seed)
        alone = train_alone(data=data, seed=seed, **shared)
        accuracies[0, column] = alone.accuracy
        for row, (wire, feedback) in enumerate(pairs, start=1):
            trained = train(schedule, replicas, wire=wire, error_feedback=feedback, data=data, seed=seed, **shared)
            accuracies[row, column], sent[row] = trained.accuracy, trained.bytes_sent or 0
            distances[row, column] = np.linalg.norm(trained.weights - alone.weights) / np.linalg.norm(alone.weights)
            if progress is not None:
                progress(column * len(pairs) + row, accuracies[1:].size)
    names = ["one device", *(f"{wire}, error feedback" if feedback else str(wire) for wire, feedback in pairs)]
    columns = (accuracies.mean(axis=1), accuracies.min(axis=1), accuracies.max(axis=1), distances.mean(axis=1))
    rows = tuple(map(AccuracyRow, names, *(column.tolist() for column in columns), sent))
    message = f"{schedule.name}, {counted(schedule.devices, 'device')} x {counted(replicas, 'replica')}, {counted(len(numbers), 'seed')}"
    return AccuracyTable(message, rows, readonly(accuracies))


def _start(row: AccuracyRow) -> str:
    return f"{row.name:20} {row.mean:8.2%} {row.lowest:8.2%} {row.highest:8.2%}"


def _format(pair: Any) -> tuple[WireFormat, bool]:
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], WireFormat) and isinstance(pair[1], bool):
        return pair
    raise HybridLabError(
        f"a format is a pair such as (INT8, True): a wire format, and whether error feedback is on, not {short_repr(pair)}"
    )
