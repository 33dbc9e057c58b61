"""Training by an engine: each rank holds its own stages of a small network and updates their weights after each step."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import each_of, short_repr, whole_number
from hybridlab.engines.job import MOST_STEPS
from hybridlab.engines.real_step import RealStep
from hybridlab.engines.work import StepWork
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op, Schedule
from hybridlab.step.replicas import holders
from hybridlab.training.alone import DEFAULT, checked_rate, data_for, generators
from hybridlab.training.data import DataSet, batches
from hybridlab.training.network import Network
from hybridlab.training.training import must_be_one_pipeline, shape_of_labels


class RankTrained(NamedTuple):
    """The result of training on one rank.

    Parameters
    ----------
    weights : mapping of int to array, shape (parameters,)
        The weights of each stage that the rank holds.
    losses : tuple of float
        For each step, the rank's share of the mean loss: the summed losses of its microbatches, divided by the number of all samples. A
        rank without the last stage has 0. The sum over all ranks is the mean loss.
    """

    weights: Mapping[int, Floats]
    losses: tuple[float, ...]


@dataclass
class _RankState:
    """The weights of one rank, and its remaining batches."""

    weights: Floats  # of the whole network; the rank updates only the weights of its own stages
    chosen: Iterator[Ints]
    losses: list[float] = field(default_factory=list)
    step: RealStep = field(init=False)


def held_stages(ranks: Ints, rank: int) -> list[int]:
    """Return the stages that a rank holds. ``ranks`` has the ranks that hold each stage, shape (stages, replicas x copies)."""
    stages: list[int] = np.flatnonzero((ranks == rank).any(axis=1)).tolist()
    return stages


class TrainingWork(StepWork):
    """The work that makes an engine train as :func:`~hybridlab.training.train` does.

    With the same arguments and the same wire format, all weights after each step are bitwise equal to the weights of ``train``.

    Parameters
    ----------
    schedule : Schedule
        The schedule of one pipeline. Give the same schedule to the run.
    replicas : int
        The number of pipelines. Give the same number to the run.
    network, data, batch, learning_rate, seed
        As for :func:`~hybridlab.training.train`.

    Raises
    ------
    HybridLabError
        The batch cannot be cut into equal microbatches, there are more stages than layers, the data do not fit the network, or an argument
        has a wrong type.

    Examples
    --------
    >>> from hybridlab import FP32, build
    >>> from hybridlab.engines import run
    >>> from hybridlab.training import train
    >>> schedule = build("1f1b", devices=2, microbatches=4)
    >>> ran = run(schedule, TrainingWork(schedule, replicas=2), replicas=2, wire=FP32, steps=3)
    >>> bool((trained_weights(schedule, ran.results) == train(schedule, replicas=2, steps=3).replicas).all())
    True
    """

    def __init__(
        self,
        schedule: Schedule,
        replicas: int = 1,
        *,
        network: Network = DEFAULT,
        data: DataSet | None = None,
        batch: int = 128,
        learning_rate: float = 0.3,
        seed: int = 0,
    ) -> None:
        must_be_one_pipeline(schedule)
        self._schedule, self._network, self._data = schedule, network, data_for(network, data)
        self._shape = shape_of_labels(whole_number(batch, "batch"), whole_number(replicas, "replicas"), schedule.microbatches)
        self._batch, self._rate, self._seed = batch, checked_rate(learning_rate), whole_number(seed, "seed", at_least=0)
        self._holders = holders(schedule, self._shape[0])
        self._ranks: dict[int, _RankState] = {}  # key: the rank; a process that works for one rank has only this rank

    def begin(self, rank: int, step: int) -> None:
        """Take the next batch of samples for this rank. Before the first step, create the rank's weights."""
        if step == 0:
            for_weights, for_batches, _ = generators(self._seed)
            chosen = batches(len(self._data.labels), self._batch, MOST_STEPS, for_batches)  # all ranks draw the same batches
            self._ranks[rank] = _RankState(self._network.initial(for_weights), chosen)
        state = self._ranks[rank]
        samples = next(state.chosen)
        inputs, labels = self._data.inputs[samples].reshape(*self._shape, -1), self._data.labels[samples].reshape(self._shape)
        state.step = RealStep(self._network, self._schedule, state.weights, inputs, labels, rank)

    def work(self, rank: int, op: Op, message: Any) -> Any:
        """Compute an operation as :meth:`RealStep.work` does."""
        return self._step(rank).work(rank, op, message)

    def gradients(self, rank: int, stage: int) -> Floats:
        """Return the gradients of a stage. The ring averages this array in place."""
        return self._step(rank).gradients(rank, stage)

    def update(self, rank: int) -> None:
        """Take one step of SGD with the averaged gradients."""
        state = self._ranks[rank]
        by_stage = self._network.split(state.weights, self._schedule.stages)  # views: updating them changes ``state.weights``
        for stage in held_stages(self._holders, rank):
            by_stage[stage] -= self._rate * self.gradients(rank, stage)
        state.losses.append(self._step(rank).loss)

    def result(self, rank: int) -> RankTrained:
        """Return the weights and the losses of the rank."""
        state = self._ranks.pop(rank)
        by_stage = self._network.split(state.weights, self._schedule.stages)
        return RankTrained({stage: by_stage[stage].copy() for stage in held_stages(self._holders, rank)}, tuple(state.losses))

    def _step(self, rank: int) -> RealStep:
        return self._ranks[rank].step


def trained_weights(schedule: Schedule, results: Sequence[RankTrained]) -> Floats:
    """Return the weights of every copy of the network from the results of all ranks, shape (replicas x copies, parameters).

    The order of the rows is the order of ``Trained.replicas``: copy c of replica r is row r x copies + c.

    Raises
    ------
    HybridLabError
        ``schedule`` is not the schedule of one pipeline (``not-a-schedule``), or ``results`` are not those of a run of it with a
        :class:`TrainingWork` (``wrong-type``).
    """
    must_be_one_pipeline(schedule)
    wanted = f"results are those of a run with a TrainingWork, one for each of the {schedule.devices} devices of every pipeline"
    results = list(each_of(results, wanted))
    if not results or len(results) % schedule.devices or not all(isinstance(each, RankTrained) for each in results):
        raise HybridLabError(f"{wanted}, not {short_repr(results)}", "wrong-type")
    ranks = holders(schedule, len(results) // schedule.devices)
    return np.stack([np.concatenate([results[rank].weights[stage] for stage, rank in enumerate(row)]) for row in ranks.T.tolist()])
