"""The executor. It runs the operations of a schedule one by one on real arrays. A function of the caller can replace it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from hybridlab.arrays import Floats, Ints, readonly
from hybridlab.checks import counted, each_of, numbers, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.training.network import Network, checked_network
from hybridlab.training.stages import Activations, Backward, Forward, Halfway, stage_functions, stages_of

StageAndMicrobatch = tuple[int, int]
Content = TypeVar("Content")
RunPipeline = Callable[[list[str], Forward, Backward, list[Floats]], tuple[float, Sequence[Floats]]]


class Executor:
    """One training step of a pipeline on real arrays. The first axis of every array is for the replicas, which run together.

    Stages exchange only messages. A stage puts its output into a mailbox of the next stage. It puts the gradient with respect to its input
    into a mailbox of the stage before. The operation that needs a message takes it out of the mailbox.

    Parameters
    ----------
    network : Network
        The layers. They are spread evenly over the stages.
    weights : sequence of arrays, each of shape (replicas x copies, parameters)
        The parameters of each stage. Copy c of replica r is row r x copies + c.
    device_of : sequence of int
        The device of each stage. With several copies of the weights, all stages of the first copy come first, then all stages of the next.
    inputs : array, shape (replicas, microbatches, samples, features)
        The samples of the step.
    labels : array, shape (replicas, microbatches, samples)
        The class of each sample, a whole number from 0.
    copy_of : iterable of int
        The copy of the weights that each microbatch uses. It is empty if there is only one copy.

    Attributes
    ----------
    gradients : tuple of arrays, each of shape (replicas x copies, parameters)
        For each stage, the gradient of the mean loss of a replica. With several copies, a row has only the gradients of the microbatches
        that use its copy. These are multiplied by the number of copies, so that the mean over all rows is the gradient of the whole batch.
    losses : array, shape (replicas,)
        The mean loss of each replica.

    Raises
    ------
    HybridLabError
        The shapes do not fit together, or a device holds more stages than another device.
    """

    def __init__(
        self,
        network: Network,
        weights: Sequence[Floats],
        device_of: Sequence[int],
        inputs: Floats,
        labels: Ints,
        copy_of: Iterable[int] = (),
    ) -> None:
        self.network = checked_network(network)
        inputs, labels = network.samples(inputs, labels)
        if labels.ndim != 3:
            raise HybridLabError(f"inputs must have shape (replicas, microbatches, samples, features), not {inputs.shape}", "wrong-shape")
        self.copy_of = _copies_of_microbatches(copy_of, labels.shape[1])
        self.copies = 1 + max(self.copy_of, default=0)
        self.device_of = tuple(whole_number(each, "a device", at_least=0) for each in each_of(device_of, "device_of names devices"))
        cut = network.stages(len(self.device_of) // self.copies)
        self._depth = len(cut)  # number of stages of one copy
        if len(self.device_of) % self.copies:
            wanted = f"device_of must have the same number of stages for each of the {self.copies} copies of the weights"
            raise HybridLabError(f"{wanted}, not {short_repr(self.device_of)}", "not-divisible")
        for first in range(0, len(self.device_of), self._depth):  # check the devices of each copy
            counts = np.bincount(self.device_of[first : first + self._depth], minlength=1 + max(self.device_of))
            if (counts != counts[0]).any():
                wanted = "all devices must hold the same number of stages"
                raise HybridLabError(f"{wanted}, but they hold {short_repr(counts.tolist())}", "uneven-stages")
        shapes = [(len(labels) * self.copies, network.count(layers)) for layers in cut]
        if [np.shape(flat) for flat in each_of(weights, "weights are arrays")] != shapes:
            given = f"inputs (replicas, microbatches, samples, features) have shape {inputs.shape}"
            wanted = f"the weights of the {counted(len(cut), 'stage')} must then have shapes {shapes}"
            raise HybridLabError(f"{given}: {wanted}", "wrong-shape")
        self.samples = labels.shape[1] * labels.shape[2]  # number of samples of one replica
        self.labels = labels
        self.losses = np.zeros(len(labels))
        self.gradients = tuple(np.zeros_like(flat) for flat in weights)
        # Both lists have one entry for each entry of device_of. The sums of the gradients have the same shapes as the weights.
        self._stages, self._sums = (
            [stage for copy in range(self.copies) for stage in stages_of(network, [rows[copy :: self.copies] for rows in arrays])]
            for arrays in (weights, self.gradients)
        )
        # The mailboxes: forwards read _arrived, backwards read _returned. At first the samples are in the mailboxes of stage 0.
        self._arrived: dict[StageAndMicrobatch, Floats] = {(0, microbatch): inputs[:, microbatch] for microbatch in range(labels.shape[1])}
        self._returned: dict[StageAndMicrobatch, Floats] = {}
        # Arrays that a stage stores for a microbatch: _activations from F until B or I, _halfway from I until W.
        self._activations: dict[StageAndMicrobatch, Activations] = {}
        self._halfway: dict[StageAndMicrobatch, Halfway] = {}
        self._alive = [0] * counts.size  # number of activations that each device holds now
        self._peak = list(self._alive)

    @property
    def peak_activations(self) -> Floats:
        """The largest number of activations that each device held at the same time, shape (devices,).

        The unit is the activation of one microbatch on a whole device, as in :class:`Timeline`.
        """
        return np.array(self._peak) / (self._depth // len(self._alive))

    def run(self, ops: Iterable[Op]) -> None:
        """Run operations one by one. The order must be such that the input of each operation exists when the operation runs.

        Parameters
        ----------
        ops : iterable of Op
            All operations of the step, for example in the order of :func:`in_running_order`.

        Raises
        ------
        HybridLabError
            The input of an operation does not exist yet, or a microbatch is unfinished after the last operation.
        """
        steps = {Kind.F: self._forward, Kind.B: self._backward, Kind.I: self._input_gradient, Kind.W: self._weight_gradient}
        for op in each_of(ops, "run takes the operations of a pipeline, one after the other"):
            if not isinstance(op, Op) or op.stage not in range(self._depth) or not isinstance(op.kind, Kind):
                pipeline = f"this pipeline of {counted(self._depth, 'stage')}"
                raise HybridLabError(f"{short_repr(op)} is not an operation of {pipeline}", "unknown-operation")
            steps[op.kind](op)
        unfinished = {**self._halfway, **self._activations, **self._returned, **self._arrived}
        if unfinished:
            stage, microbatch = next(iter(unfinished))
            raise HybridLabError(f"the order ends too early: microbatch {microbatch} is not finished on stage {stage}", "unfinished")

    def _forward(self, op: Op) -> None:
        """Run a forward and store its activations. Send the output to the next stage. On the last stage, add the loss to the sum."""
        stage, stage_input = self._stages[self._place(op)], _take_out(self._arrived, op, "no input has arrived there")
        if self._is_last(op.stage):
            # Fewer samples mean a larger gradient. A row has only the microbatches of its copy, but the mean over the rows of all copies
            # must be the gradient of the whole batch.
            losses, activations = stage.loss(stage_input, self.labels[:, op.microbatch], self.samples / self.copies)
            self.losses += losses / self.samples
        else:
            output, activations = stage.forward(stage_input)
            self._arrived[op.stage + 1, op.microbatch] = readonly(output)  # read-only, because sender and receiver share this array
        self._activations[op.stage, op.microbatch] = activations
        device = self.device_of[self._place(op)]
        self._alive[device] += 1
        self._peak[device] = max(self._peak[device], self._alive[device])

    def _backward(self, op: Op) -> None:
        self._add_gradients(op, self._send_input_gradient(op))

    def _input_gradient(self, op: Op) -> None:
        self._halfway[op.stage, op.microbatch] = self._send_input_gradient(op)

    def _weight_gradient(self, op: Op) -> None:
        self._add_gradients(op, _take_out(self._halfway, op, "its input gradient has not run"))

    def _send_input_gradient(self, op: Op) -> Halfway:
        """Send the gradient with respect to the stage's input to the stage before. Return the arrays that the weight gradient needs."""
        place = op.stage, op.microbatch
        if place not in self._activations:
            raise _no_input(op, "its forward has not run")
        # the output of the last stage is the loss, and the gradient of the loss with respect to itself is 1.0
        gradient = 1.0 if self._is_last(op.stage) else _take_out(self._returned, op, f"stage {op.stage + 1} has sent no gradient")
        stage = self._stages[self._place(op)]
        halfway = stage.backward(self._activations.pop(place), gradient)
        if op.stage:  # the gradient with respect to the samples is not needed
            self._returned[op.stage - 1, op.microbatch] = readonly(stage.input_gradient(halfway))
        return halfway

    def _add_gradients(self, op: Op, halfway: Halfway) -> None:
        """Add the weight gradients of a microbatch to the gradients of its stage, and release its activations."""
        halfway.add_weight_gradients(self._sums[self._place(op)].layers)
        self._alive[self.device_of[self._place(op)]] -= 1

    def _place(self, op: Op) -> int:
        """Return the index in ``device_of`` for the stage of the operation and the copy of the weights that its microbatch uses."""
        return self.copy_of[op.microbatch] * self._depth + op.stage

    def _is_last(self, stage: int) -> bool:
        return stage == self._depth - 1


def _copies_of_microbatches(copy_of: Iterable[int], microbatches: int) -> tuple[int, ...]:
    """Return the copy of the weights that each microbatch uses. If ``copy_of`` is empty, all microbatches use copy 0."""
    copies = tuple(whole_number(each, "a copy", at_least=0) for each in each_of(copy_of, "copy_of names copies of the weights"))
    if len(copies) not in (0, microbatches):
        wanted = f"copy_of must name a copy for each of the {counted(microbatches, 'microbatch')}"
        raise HybridLabError(f"{wanted}, not {len(copies)}", "wrong-length")
    return copies or (0,) * microbatches


def _take_out(mailbox: dict[StageAndMicrobatch, Content], op: Op, reason: str) -> Content:
    """Remove the message for an operation from the mailbox and return it. If there is no message, raise an error with ``reason``."""
    try:
        return mailbox.pop((op.stage, op.microbatch))
    except KeyError:
        raise _no_input(op, reason) from None


def _no_input(op: Op, reason: str) -> HybridLabError:
    return HybridLabError(f"{op} runs before its input exists: {op.words} cannot start, {reason}", "too-early")


def order_lines(schedule: Schedule) -> list[str]:
    """Return one line of text for each device: its operations in running order, such as ``"0F0 0F1 0B0 0B1"``.

    Raises :class:`HybridLabError` if a device holds several stages, or if the schedule splits the backward.
    """
    if schedule.copies > 1 or schedule.device_of != tuple(range(schedule.devices)) or any(op.kind in "IW" for op in schedule.ops):
        raise HybridLabError(
            f"run_pipeline needs full backwards and stage d on device d, but {schedule.name} is different; take gpipe, 1f1b or eager-1f1b",
            "does-not-fit",
        )
    return [" ".join(map(str, order)) for order in schedule.orders]


def gradients_by(
    run_pipeline: RunPipeline, lines: list[str], network: Network, weights: Sequence[Floats], inputs: Floats, labels: Ints
) -> tuple[Floats, tuple[Floats, ...]]:
    """Return the losses, shape (replicas,), and the gradients of each stage, shape (replicas, parameters), that ``run_pipeline`` computes.

    ``weights`` has an array of shape (replicas, parameters) for each stage. ``inputs`` and ``labels`` are as for :class:`Executor`.
    """
    losses, gradients = np.zeros(len(labels)), tuple(np.zeros_like(flat) for flat in weights)
    for replica, (samples, classes) in enumerate(zip(inputs, labels, strict=True)):
        functions = stage_functions(network, [flat[replica] for flat in weights], classes)
        result = run_pipeline(list(lines), *functions, list(samples))  # new lists, because the function may change them
        if not _is_result(result, len(weights)):
            wanted = f"run_pipeline must return a loss and a list of gradients for {counted(len(weights), 'stage')}"
            raise HybridLabError(f"{wanted}, not {short_repr(result)}", "wrong-shape")
        losses[replica] = result[0]
        for stage, gradient in enumerate(result[1]):
            if np.shape(gradient) != gradients[stage][replica].shape:
                wanted = f"run_pipeline must return a gradient of shape {gradients[stage][replica].shape} for stage {stage}"
                raise HybridLabError(f"{wanted}, not {np.shape(gradient)}", "wrong-shape")
            gradients[stage][replica] = numbers(gradient, "a gradient of run_pipeline")
    return losses, gradients


def _is_result(result: Any, stages: int) -> bool:
    """Return whether ``result`` is a loss and a list with one entry for each stage."""
    pair = isinstance(result, (tuple, list)) and len(result) == 2
    return pair and isinstance(result[0], (int, float)) and isinstance(result[1], (tuple, list)) and len(result[1]) == stages
