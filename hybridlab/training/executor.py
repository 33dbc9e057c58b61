"""The executor: operations of a schedule, run one by one on real arrays, with explicit messages between stages."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from hybridlab.arrays import Floats, Ints, readonly
from hybridlab.checks import counted, each_of, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op
from hybridlab.training.network import Network, activated, slope
from hybridlab.training.stage import Activations, Halfway, add_gradients, cross_entropy, halfway_through, sums_of

Place = tuple[int, int]  # stage, microbatch
Message = TypeVar("Message")


class Executor:
    """One training step of a pipeline, all its replicas side by side on the first axis of every array.

    ``weights`` has one array (replicas, parameters) a stage; ``inputs`` has shape (replicas, microbatches, samples, features) and
    ``labels`` (replicas, microbatches, samples). :meth:`run` takes operations in any order in which
    each finds its input. Stages share nothing: outputs and their gradients pass from one to the next through mailboxes, where
    the operation that needs them takes them out. ``gradients`` are those of the mean loss of a replica's samples, one array
    (replicas, parameters) a stage; ``losses`` is that mean, shape (replicas,).

    With several copies of the weights ``device_of`` has the stages of one copy after the other, ``copy_of`` the copy that each
    microbatch runs through, and weights and gradients have a row a copy: copy c of replica r is row r x copies + c. A
    row has the gradients of its own microbatches alone, times the number of copies, so that the mean over the rows is that of all.
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
        self.network, (inputs, labels) = network, network.samples(inputs, labels)
        if labels.ndim != 3:
            raise HybridLabError(f"inputs must have shape (replicas, microbatches, samples, features), not {inputs.shape}")
        self.copy_of = _copies(copy_of, labels.shape[1])
        self.copies = 1 + max(self.copy_of, default=0)
        self.device_of = tuple(whole_number(each, "a device", at_least=0) for each in each_of(device_of, "device_of names devices"))
        cut = network.stages(len(self.device_of) // self.copies)
        self._stages = len(cut)
        if len(self.device_of) % self.copies:
            raise HybridLabError(
                f"device_of must name equally many devices for each of {self.copies} copies, not {short_repr(self.device_of)}"
            )
        for first in range(0, len(self.device_of), self._stages):
            held = np.bincount(self.device_of[first : first + self._stages], minlength=1 + max(self.device_of))
            if (held != held[0]).any():
                raise HybridLabError(f"every device from 0 on must hold equally many stages, but they hold {short_repr(held.tolist())}")
        wanted = [(len(labels) * self.copies, network.count(layers)) for layers in cut]
        if [np.shape(flat) for flat in each_of(weights, "weights are arrays")] != wanted:
            message = f"inputs (replicas, microbatches, samples, features) have shape {inputs.shape}"
            raise HybridLabError(f"{message}: the weights of the {counted(len(cut), 'stage')} must then have shapes {wanted}")
        self.samples = labels.shape[1] * labels.shape[2]  # of a replica
        self.labels = labels
        self.losses = np.zeros(len(labels))
        self.gradients = tuple(np.zeros_like(flat) for flat in weights)
        lines = [(copy, stage) for copy in range(self.copies) for stage in range(self._stages)]
        self._layers, self._slots = (
            [network.unpacked(rows[stage][copy :: self.copies], cut[stage]) for copy, stage in lines] for rows in (weights, self.gradients)
        )
        self._arrived: dict[Place, Floats] = {(0, microbatch): inputs[:, microbatch] for microbatch in range(labels.shape[1])}
        self._returned: dict[Place, Floats] = {}
        self._kept: dict[Place, Activations] = {}
        self._halfway: dict[Place, Halfway] = {}
        self._held = [0] * held.size
        self._most = list(self._held)

    @property
    def peak_activations(self) -> Floats:
        """Most activations each device held at once, in microbatches of a whole device: as in :class:`Timeline`."""
        return np.array(self._most) / (self._stages // len(self._held))

    def run(self, ops: Iterable[Op]) -> None:
        """Run the operations one by one.

        Raises :class:`HybridLabError` for one whose input does not exist, and at the end for a microbatch left halfway.
        """
        steps = {Kind.F: self._forward, Kind.B: self._backward, Kind.I: self._input_gradient, Kind.W: self._weight_gradient}
        for op in each_of(ops, "run takes the operations of a pipeline, one after the other"):
            if not isinstance(op, Op) or op.stage not in range(self._stages) or not isinstance(op.kind, Kind):
                raise HybridLabError(f"{short_repr(op)} is not an operation of this pipeline of {counted(self._stages, 'stage')}")
            steps[op.kind](op)
        unfinished = len(self._arrived) + len(self._returned) + len(self._kept) + len(self._halfway)
        if unfinished:
            place = next(iter({**self._halfway, **self._kept, **self._returned, **self._arrived}))
            raise HybridLabError(f"the order ends too early: microbatch {place[1]} is not finished on stage {place[0]}")

    def _forward(self, op: Op) -> None:
        given = _taken(self._arrived, op, "no input has arrived there")
        inputs, output = sums_of(self._layers[self._line(op)], given, self.network.activation)
        if self._is_last(op.stage):
            output = self._judged(output, self.labels[:, op.microbatch])
        else:
            output = readonly(activated(output, self.network.activation))
            self._arrived[op.stage + 1, op.microbatch] = output
        self._kept[op.stage, op.microbatch] = Activations(inputs, output)
        device = self.device_of[self._line(op)]
        self._held[device] += 1
        self._most[device] = max(self._most[device], self._held[device])

    def _judged(self, scores: Floats, labels: Ints) -> Floats:
        """Add the cross-entropy of softmax to the losses, and return copies x its gradient at the scores: softmax less one at the label."""
        losses, gradient = cross_entropy(scores, labels)
        self.losses += losses / self.samples
        gradient *= self.copies
        gradient /= self.samples
        return gradient

    def _backward(self, op: Op) -> None:
        self._add(op, self._halfway_through(op))

    def _input_gradient(self, op: Op) -> None:
        self._halfway[op.stage, op.microbatch] = self._halfway_through(op)

    def _weight_gradient(self, op: Op) -> None:
        self._add(op, _taken(self._halfway, op, "its input gradient has not run"))

    def _halfway_through(self, op: Op) -> Halfway:
        """Send the gradient at the stage's input to the stage before; return what the weight gradient needs."""
        place = op.stage, op.microbatch
        if place not in self._kept:
            raise _missing(op, "its forward has not run")
        if self._is_last(op.stage):
            inputs, delta = self._kept.pop(place)
        else:
            gradient = _taken(self._returned, op, f"stage {op.stage + 1} has sent no gradient")
            inputs, output = self._kept.pop(place)
            delta = gradient * slope(output, self.network.activation)
        layers = self._layers[self._line(op)]
        halfway = halfway_through(layers, inputs, delta, self.network.activation)
        if op.stage:
            self._returned[op.stage - 1, op.microbatch] = readonly(halfway.deltas[0] @ layers[0].matrix.swapaxes(-1, -2))
        return halfway

    def _add(self, op: Op, halfway: Halfway) -> None:
        """Add a microbatch's weight gradients to those of its stage, and free what was held for them."""
        add_gradients(self._slots[self._line(op)], halfway)
        self._held[self.device_of[self._line(op)]] -= 1

    def _line(self, op: Op) -> int:
        """Return the place of the operation's stage, that of its microbatch's copy, in ``device_of``."""
        return self.copy_of[op.microbatch] * self._stages + op.stage

    def _is_last(self, stage: int) -> bool:
        return stage == self._stages - 1


def _copies(copy_of: Iterable[int], microbatches: int) -> tuple[int, ...]:
    """Return the copy of the weights that each microbatch runs through: the first one where none is named."""
    copies = tuple(whole_number(each, "a copy", at_least=0) for each in each_of(copy_of, "copy_of names copies of the weights"))
    if len(copies) not in (0, microbatches):
        raise HybridLabError(f"copy_of must name a copy for each of the {counted(microbatches, 'microbatch')}, not {len(copies)}")
    return copies or (0,) * microbatches


def _taken(mailbox: dict[Place, Message], op: Op, why: str) -> Message:
    try:
        return mailbox.pop((op.stage, op.microbatch))
    except KeyError:
        raise _missing(op, why) from None


def _missing(op: Op, why: str) -> HybridLabError:
    return HybridLabError(f"{op} runs before its input exists: {op.words} cannot start, {why}")
