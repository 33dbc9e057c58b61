"""The real arithmetic of one training step of a small network, operation by operation."""

from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import short_repr
from hybridlab.engines.work import StepWork
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.step.replicas import holders
from hybridlab.training.network import Network
from hybridlab.training.stages import Activations, Halfway, stages_of


class RealStep(StepWork):
    """The arithmetic of one training step of a small network, for the engine "threads". All ranks share one object.

    Ranks do not read each other's activations or gradients. They exchange only messages. After the run, ``loss`` is the mean loss over all
    samples, and ``gradients(rank, stage)`` returns the gradient of this mean loss for every rank that holds the stage. A second run would
    add to the gradients of the first run, so create a new ``RealStep`` for each step.

    Parameters
    ----------
    network : Network
        The layers, spread evenly over the stages.
    schedule : Schedule
        The schedule of one pipeline.
    weights : array, shape (parameters,)
        The parameters of the whole network, the same on all replicas.
    inputs : array, shape (replicas, microbatches, samples, features)
        The samples of the step.
    labels : array, shape (replicas, microbatches, samples)
        The class of each sample, a whole number from 0.
    rank : int, optional
        With a rank, the object computes for this rank alone (each rank has its own object). With None, the object computes for all ranks.

    Raises
    ------
    HybridLabError
        The shapes do not fit the network and the schedule.

    Examples
    --------
    >>> from hybridlab import build
    >>> from hybridlab.engines import run
    >>> network, rng = Network((4, 3, 2)), np.random.default_rng(0)
    >>> inputs, labels = rng.normal(size=(2, 4, 5, 4)), rng.integers(2, size=(2, 4, 5))
    >>> step = RealStep(network, build("1f1b", 2, 4), network.initial(rng), inputs, labels)
    >>> ran = run(step.schedule, step, replicas=2)
    >>> [step.gradients(rank, stage=0).shape for rank in (0, 2)], round(step.loss, 2)
    ([(15,), (15,)], 0.84)
    """

    def __init__(
        self, network: Network, schedule: Schedule, weights: Floats, inputs: Floats, labels: Ints, rank: int | None = None
    ) -> None:
        if not isinstance(network, Network) or not isinstance(schedule, Schedule):
            raise HybridLabError(
                f"RealStep takes a Network and a Schedule, not {short_repr(network)} and {short_repr(schedule)}", "wrong-type"
            )
        self.network, self.schedule = network, schedule
        self._inputs, self._labels = network.samples(inputs, labels)
        if self._labels.ndim != 3 or not self._labels.size or self._labels.shape[1] != schedule.microbatches:
            wanted = f"shape (replicas, {schedule.microbatches}, samples, {network.sizes[0]}) with as many microbatches as the schedule"
            raise HybridLabError(f"inputs must have {wanted}, not {self._inputs.shape}", "wrong-shape")
        network.unpacked(weights)  # raises if the number of parameters is wrong
        if weights.ndim != 1:
            wanted = f"weights must be one vector for all devices, shape ({network.parameters},)"
            raise HybridLabError(f"{wanted}, not {weights.shape}", "wrong-shape")
        by_stage, cut = network.split(weights, schedule.stages), network.stages(schedule.stages)
        self._stages = stages_of(network, by_stage)
        places = [(int(holder), stage) for stage, ranks in enumerate(holders(schedule, len(self._labels))) for holder in ranks]
        self._gradients = {place: np.zeros(by_stage[place[1]].shape) for place in places if rank in (None, place[0])}
        self._sums = {place: network.unpacked(own, cut[place[1]]) for place, own in self._gradients.items()}  # views of the gradients
        self._losses = np.zeros(self._labels.shape[:2])
        # All threads share these two dicts, but each thread uses only the keys that begin with its own rank.
        self._activations: dict[tuple[int, int, int], Activations] = {}
        self._halfway: dict[tuple[int, int, int], Halfway] = {}

    @property
    def loss(self) -> float:
        """Mean cross-entropy over all samples."""
        return float(self._losses.sum() / self._labels.size)

    def gradients(self, rank: int, stage: int) -> Floats:
        """Return the gradients of a stage on a rank, shape (parameters,). The ring writes the average into this array.

        Raises :class:`HybridLabError` if the rank does not hold the stage.
        """
        try:
            return self._gradients[rank, stage]
        except (KeyError, TypeError):
            raise HybridLabError(f"rank {short_repr(rank)} holds no gradients of stage {short_repr(stage)}", "not-held") from None

    def work(self, rank: int, op: Op, message: Any) -> Floats | None:
        """Compute ``op`` and return the array for another stage, or None if no other stage needs an array.

        A forward returns the output of its stage. A backward or an input gradient returns the gradient with respect to the stage's input.

        Parameters
        ----------
        rank : int
            The device that runs the operation.
        op : Op
            The operation.
        message : array, optional
            The output of another stage that the operation needs.
        """
        place, stage, last = (rank, op.stage, op.microbatch), self._stages[op.stage], op.stage == self.schedule.stages - 1
        if op.kind is Kind.F:
            return self._forward(place, message, last)
        if op.kind is Kind.W:
            self._halfway.pop(place).add_weight_gradients(self._sums[rank, op.stage])
            return None
        halfway = stage.backward(self._activations.pop(place), 1.0 if last else message)
        if op.kind is Kind.I:
            self._halfway[place] = halfway
        else:
            halfway.add_weight_gradients(self._sums[rank, op.stage])
        return stage.input_gradient(halfway) if op.stage else None

    def _forward(self, place: tuple[int, int, int], message: Any, last: bool) -> Floats | None:
        """Compute a forward and return its output. On the last stage, store the loss and return None."""
        rank, stage, microbatch = place
        replica = rank // self.schedule.devices
        stage_input = message if stage else self._inputs[replica, microbatch]
        if not last:
            output, self._activations[place] = self._stages[stage].forward(stage_input)
            return output
        samples = self._labels[0].size / self.schedule.copies  # samples of one replica for each copy of the weights
        losses, self._activations[place] = self._stages[stage].loss(stage_input, self._labels[replica, microbatch], samples)
        self._losses[replica, microbatch] = losses
        return None
