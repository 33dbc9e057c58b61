"""The coding task ('build') of lab 7 in which a student writes an executor of a pipeline.

This file has the pipelines on which the executor is tried, the checks of each run, the known mistakes and the changes of the task
('twists').
"""

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import counted, short_repr
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.maps import REVERSED, FunctionMap, exchanged, one_way, scaled
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.errors import HybridLabError
from hybridlab.schedules import build
from hybridlab.training import Activations, Network, loss_and_gradient, stage_functions

SIZES = (3, 5, 4, 4, 2)  # features before and after each layer of the network on which an executor is tried; 4 layers, so up to 4 stages
Sums = tuple[float, list[Floats]]  # a loss, and a gradient for each stage
Faults = list[tuple[str, str]]  # for each fault, the error code and the sentence for the student
Place = tuple[int, int]  # stage and microbatch
LAST_SHOWN = 4  # the number of operations that the feedback names when an executor raises an error
MOST_NUMBERS = 100  # the most numbers of an input of a stage; these networks need at most 15, and the judge keeps what a forward computes
LINGERING = 1  # the number of activations that may stay in memory after their backward, because a local variable still names them


class Kept:
    """The activations that a forward saves for its backward. The judge can see whether the student's function still holds this object."""

    __slots__ = ("__weakref__", "content", "place")

    def __init__(self, place: Place, content: Activations) -> None:
        self.place, self.content = place, content


class Watch:
    """The functions ``forward`` and ``backward`` that a student's executor calls.

    Both functions note what the executor does wrong in ``faults``, as pairs of an error code and a sentence.

    Parameters
    ----------
    orders : sequence of str
        One line of text for each device, with the operations of the device. Stage d is on device d.
    network : Network
        The layers.
    weights : sequence of arrays, each of shape (parameters,)
        The parameters of each stage.
    inputs : sequence of arrays, each of shape (samples, features)
        The samples of each microbatch.
    labels : array, shape (microbatches, samples)
        The classes of the samples.
    """

    def __init__(self, orders: Sequence[str], network: Network, weights: Sequence[Floats], inputs: Sequence[Floats], labels: Ints) -> None:
        self.faults: Faults = []
        self._left = [line.split() for line in orders]
        self._forward, self._backward = stage_functions(network, weights, labels)
        self._microbatches, self._last = len(inputs), len(orders) - 1
        self._sent: dict[str, Any] = {
            f"0F{microbatch}": value.copy() for microbatch, value in enumerate(inputs)
        }  # the key is the receiving operation
        self._kept: list[list[weakref.ref[Kept]]] = [[] for _ in orders]
        self._waiting = [0] * len(orders)  # for each device, the number of forwards whose backward has not run
        self.ran: list[str] = []  # names of operations, in the order in which the executor called them

    def forward(self, stage: int, microbatch: int, value: Any) -> tuple[Any, Kept]:
        """Run a forward, and note the faults of this call."""
        place = self._checked("forward(stage, microbatch, value)", stage, microbatch)
        name = f"{stage}F{microbatch}"
        if np.size(value) > MOST_NUMBERS:
            raise HybridLabError(f"{name} gets {np.size(value):,} numbers: an input of a stage has at most {MOST_NUMBERS}", "too-large")
        self._follows(stage, name)
        self._arrives(name, value, f"the output of {stage - 1}F{microbatch}" if stage else f"inputs[{microbatch}]")
        held = sum(reference() is not None for reference in self._kept[stage])
        if held > self._waiting[stage] + LINGERING:
            few = {0: "none of them waits", 1: "only 1 of them waits"}
            needed = few.get(self._waiting[stage], f"only {self._waiting[stage]} of them wait") + " for a backward"
            keeps = f"when {name} starts, device {stage} keeps {counted(held, 'activation')}, and {needed}"
            self._fault("not-released", f"{keeps}: when a backward has run, remove what its forward has returned for it")
        output, content = self._forward(stage, microbatch, value)
        kept = Kept(place, content)
        self._kept[stage].append(weakref.ref(kept))
        self._waiting[stage] += 1
        self._sent[f"{stage + 1}F{microbatch}" if stage < self._last else f"{stage}B{microbatch}"] = output if stage < self._last else 1.0
        return output, kept

    def backward(self, stage: int, microbatch: int, gradient: Any, kept: Any) -> tuple[Any, Floats]:
        """Run a backward, and note the faults of this call."""
        place = self._checked("backward(stage, microbatch, gradient, kept)", stage, microbatch)
        if not isinstance(kept, Kept):
            raise HybridLabError(f"the fourth argument of backward is what a forward has kept, not {short_repr(kept)}", "wrong-type")
        name = f"{stage}B{microbatch}"
        self._follows(stage, name)
        wanted = f"the gradient that {stage + 1}B{microbatch} sends" if stage < self._last else "1, the gradient of the loss itself"
        self._arrives(name, gradient, wanted)
        if kept.place != place:
            self._fault("wrong-kept", f"{name} gets what {kept.place[0]}F{kept.place[1]} has kept, not what {stage}F{microbatch} has kept")
        self._waiting[stage] -= 1
        of_input, of_weights = self._backward(stage, microbatch, gradient, kept.content)
        if stage:
            self._sent[f"{stage - 1}B{microbatch}"] = of_input
        return of_input, of_weights

    def finish(self) -> None:
        """Note a fault for each device that has not run its whole line."""
        for device, line in enumerate(self._left):
            if line:
                self._fault("missing-operation", f"device {device} never runs {line[0]}: go on until every line is done")

    def unfinished(self) -> list[str]:
        """Return the next operation of each device that has not run its whole line."""
        return [line[0] for line in self._left if line]

    def able_to_run(self) -> list[str]:
        """Return the operations of :meth:`unfinished` whose input has been sent."""
        return [name for name in self.unfinished() if name in self._sent]

    def last_operations(self) -> str:
        """Return a sentence with the last operations that ran. If the next operation of this device must wait, the sentence says so."""
        stage = int(re.split("[FB]", self.ran[-1])[0])
        waits = next((f"; {name} must wait: go on with another device" for name in self._left[stage][:1] if name not in self._sent), "")
        return f"before that, {', '.join(self.ran[-LAST_SHOWN:])} ran{waits}"

    def _fault(self, code: str, sentence: str) -> None:
        self.faults.append((code, sentence))

    def _checked(self, signature: str, *place: Any) -> Place:
        """Return the stage and the microbatch, or raise an error if this pipeline has no such stage or microbatch."""
        for name, number, count in zip(("stage", "microbatch"), place, (self._last + 1, self._microbatches), strict=True):
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number not in range(count):
                raise HybridLabError(
                    f"{signature} takes a {name} from 0 to {count - 1} as a whole number, not {short_repr(number)}", "wrong-argument"
                )
        return int(place[0]), int(place[1])

    def _follows(self, device: int, name: str) -> None:
        """Note a fault if an operation is not the next operation in the line of its device."""
        line = self._left[device]
        self.ran.append(name)
        if line and name != line[0] and line[0].startswith(name):
            self._fault("one-digit", f"device {device} runs {name} where its line has {line[0]}: read all digits of the number")
        elif name not in line:
            self._fault("another-order", f"device {device} runs {name}, but {name} is not among the operations that are left in its line")
        elif line[0] != name:
            self._fault("another-order", f"device {device} runs {name} where its line has {line[0]}")
        if name in line:
            line.remove(name)

    def _arrives(self, name: str, value: Any, wanted: str) -> None:
        """Note a fault if the input of an operation is not the message that was sent to this operation."""
        if name not in self._sent:
            self._fault("too-early", f"{name} runs before its input exists: {wanted} has not been sent")
        elif not np.array_equal(value, self._sent[name]):
            other = next((to for to, sent in self._sent.items() if to != name and np.ndim(sent) and np.array_equal(value, sent)), None)
            got = f"what was sent to {other}" if other else short_repr(value)
            self._fault("wrong-message", f"{name} gets {got}, not {wanted}")


def order_by_chance(rng: np.random.Generator, devices: int, microbatches: int) -> list[str]:
    """Return a random order that can run, as one line of operations for each device."""
    lines: list[list[str]] = [[] for _ in range(devices)]
    ready = {(0, "F", microbatch) for microbatch in range(microbatches)}
    while ready:
        stage, kind, microbatch = sorted(ready)[int(rng.integers(len(ready)))]
        ready.remove((stage, kind, microbatch))
        lines[stage].append(f"{stage}{kind}{microbatch}")
        if kind == "F":
            ready.add((stage + 1, "F", microbatch) if stage + 1 < devices else (stage, "B", microbatch))
        elif stage:
            ready.add((stage - 1, "B", microbatch))
    return [" ".join(line) for line in lines]


def pipelines(rng: np.random.Generator) -> Iterator[Case]:
    """Yield pipelines of 1 to 4 stages with 1 to 8 microbatches, and pipelines of 2 stages with 12 microbatches.

    Each size has the orders of 1F1B and GPipe and a random order. Weights, inputs and labels are random.
    """
    sizes = [*product(range(1, 5), (1, 2, 3, 5, 8)), (2, 12)]  # with 12 microbatches some numbers have two digits
    for devices, microbatches in sorted(sizes, key=lambda size: (size[0] * size[1], size)):
        network, samples = Network(SIZES), int(rng.integers(1, 4))
        cuts = np.cumsum([network.count(layers) for layers in network.stages(devices)])[:-1]
        weights = np.split(rng.normal(size=network.parameters), cuts)
        inputs = list(rng.normal(size=(microbatches, samples, SIZES[0])))
        labels = rng.integers(0, SIZES[-1], (microbatches, samples))
        names = {"1F1B": "1f1b", "GPipe": "gpipe"} if microbatches > 1 else {"1F1B": "1f1b"}
        orders = {name: lines_of_schedule(known, devices, microbatches) for name, known in names.items()}
        if microbatches > 1:
            orders["a random order"] = order_by_chance(rng, devices, microbatches)
        for name, lines in orders.items():
            size = f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')}"
            yield Case((lines, weights, inputs, labels), f"{name} with {size}", run=watched)


def lines_of_schedule(name: str, devices: int, microbatches: int) -> list[str]:
    """Return one line of text for each device of a schedule, with the operations of the device."""
    return [" ".join(map(str, order)) for order in build(name, devices, microbatches).orders]


def watched(call: Callable[..., Any], orders: list[str], weights: Sequence[Floats], inputs: list[Floats], labels: Ints) -> Any:
    """Return the result of an executor, and the faults of its calls of ``forward`` and ``backward``."""
    watch = Watch(orders, Network(SIZES), weights, inputs, labels)
    try:
        returned = call(orders, watch.forward, watch.backward, inputs)
    except HybridLabError as why:
        if why.code == "raises" and watch.faults:  # the fault has caused the error
            code, sentence = watch.faults[0]
            raise HybridLabError(f"{sentence}; then {why}", code) from None
        if why.code == "raises" and watch.ran:
            raise HybridLabError(f"{why}; {watch.last_operations()}", "raises") from None
        raise
    watch.finish()
    return returned, watch.faults


def read_run(result: Any) -> tuple[float, list[Floats], Faults]:
    """Return the loss, the gradients and the faults of a run, or raise an error if the executor has returned something else."""
    returned, faults = result
    if returned is None:
        raise HybridLabError("the function returns None: does it end in return?", "returns-nothing")
    wanted = "the function returns two things: the loss, and a list with one gradient for each stage"
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise HybridLabError(f"{wanted}, not {short_repr(returned)}", "wrong-shape")
    loss, gradients = returned
    if isinstance(loss, (tuple, list)):
        raise HybridLabError("the function returns the loss first, and then the list of gradients", "exchanged")
    if not isinstance(gradients, (tuple, list)):
        raise HybridLabError(f"the gradients are a list with one array for each stage, not {short_repr(gradients)}", "not-a-list")
    if isinstance(loss, np.ndarray) and loss.ndim == 0:
        loss = loss[()]
    if not isinstance(loss, (int, float, np.number)):
        raise HybridLabError(f"{wanted}, but the loss is {short_repr(loss)}", "not-a-number")
    for stage, gradient in enumerate(gradients):
        if not isinstance(gradient, np.ndarray) or gradient.dtype != np.float64:
            if faults:  # a fault, such as a backward that never ran, explains why the gradient is no array
                raise HybridLabError(faults[0][1], faults[0][0])
            kind = f"an array of {gradient.dtype}" if isinstance(gradient, np.ndarray) else short_repr(gradient)
            raise HybridLabError(f"the gradient of stage {stage} is an array of float64, not {kind}", "wrong-dtype")
    try:
        return float(loss), list(gradients), faults
    except OverflowError:  # the loss is a whole number that is too large for a float
        raise HybridLabError(f"{wanted}, but the loss is {short_repr(loss)}", "not-a-number") from None


def parts_of_a_run(weights: Sequence[Floats], inputs: list[Floats], labels: Ints) -> list[Sums]:
    """Return the loss and the gradients of each microbatch, divided by the number of microbatches.

    One device computes them with the whole network. Their sums are the mean loss over all samples and its gradients.
    """
    network, flat = Network(SIZES), np.concatenate(weights)
    found = [loss_and_gradient(network, flat, value, classes) for value, classes in zip(inputs, labels, strict=True)]
    cuts = np.cumsum([len(each) for each in weights])[:-1]
    return [(loss / len(inputs), [part / len(inputs) for part in np.split(gradient, cuts)]) for loss, gradient in found]


def sums(parts: Sequence[Sums]) -> Sums:
    """Return the sum of the losses, and for each stage the sum of the gradients."""
    return sum(loss for loss, _ in parts), [np.add.reduce(each) for each in zip(*(gradients for _, gradients in parts), strict=True)]


def wrong_run(change: Callable[[list[Sums], dict[str, list[int]]], Sums]) -> Callable[..., Any]:
    """Return a function that computes the wrong result of a known mistake.

    ``change`` makes this result from two things: the losses and gradients of each microbatch, and for ``"F"`` and ``"B"`` the microbatch
    of the last forward or backward in each stage's line.
    """

    def result(orders: list[str], weights: Sequence[Floats], inputs: list[Floats], labels: Ints) -> Any:
        last = {kind: [int(re.findall(rf"{kind}(\d+)", line)[-1]) for line in orders] for kind in "FB"}
        return change(parts_of_a_run(weights, inputs, labels), last), []

    return result


MISTAKES = [
    KnownMistake(
        "last-microbatch",
        "these are the gradients of the last microbatch alone: add up those of all microbatches",
        wrong_run(lambda parts, last: (sums(parts)[0], [parts[each][1][stage].copy() for stage, each in enumerate(last["B"])])),
    ),
    KnownMistake(
        "mean-of-microbatches",
        "the loss and the gradients are divided by the number of microbatches: those of each are already parts of the mean, so add them up",
        wrong_run(lambda parts, last: (sums(parts)[0] / len(parts), [each / len(parts) for each in sums(parts)[1]])),
    ),
    KnownMistake(
        "mean-of-gradients",
        "the gradients are divided by the number of microbatches: each gradient is already a part of the mean, so add them up",
        wrong_run(lambda parts, last: (sums(parts)[0], [each / len(parts) for each in sums(parts)[1]])),
    ),
    KnownMistake(
        "mean-of-losses",
        "the loss is divided by the number of microbatches: each loss is already a part of the mean, so add the losses up",
        wrong_run(lambda parts, last: (sums(parts)[0] / len(parts), sums(parts)[1])),
    ),
    KnownMistake(
        "last-loss",
        "this is the loss of the last microbatch alone: add up the losses",
        wrong_run(lambda parts, last: (parts[last["F"][-1]][0], sums(parts)[1])),
    ),
    KnownMistake(
        "no-loss",
        "your loss is 0: each forward of the last stage returns the loss of a microbatch, so add these losses up",
        wrong_run(lambda parts, last: (0.0, sums(parts)[1])),
    ),
    KnownMistake(
        "reversed",
        "your list of gradients goes from the last stage to the first",
        wrong_run(lambda parts, last: (sums(parts)[0], sums(parts)[1][::-1])),
    ),
]


def toy_forward(stage: int, microbatch: int, value: float) -> tuple[float, float]:
    """Return the output of an example stage, and the input that its backward needs. Stage s multiplies its input by s + 2."""
    return (stage + 2) * value, value


def toy_backward(stage: int, microbatch: int, gradient: float, kept: float) -> tuple[float, float]:
    """Return two gradients of the stage of :func:`toy_forward`: with respect to its input, and with respect to its only weight."""
    return (stage + 2) * gradient, kept * gradient


EXAMPLES = (
    Example((["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"], toy_forward, toy_backward, [1.0, 10.0]), (66.0, [33.0, 22.0])),
    Example((1, 0, 2.0), (6.0, 2.0), of=1, name="toy_forward"),
    Example((1, 0, 1.0, 2.0), (3.0, 2.0), of=2, name="toy_backward"),
)
LOSS_SCALE = 1024.0  # multiplying a float by a power of two causes no rounding error
TWISTS = (
    Twist(
        "last-stage-first",
        "the lines of `orders` go from the last stage to stage 0: the first line belongs to the last stage",
        given={0: REVERSED},
        about="lines",
    ),
    Twist(
        "loss-scale",
        f"the gradient of the loss is multiplied by a loss scale: `backward` of the last stage gets {LOSS_SCALE} in place of 1.0, and the "
        f"returned gradients are divided by {LOSS_SCALE:g} again",
        given={2: FunctionMap(given={2: scaled(LOSS_SCALE)}, result=scaled(LOSS_SCALE))},
    ),
    Twist(
        "microbatch-before-stage",
        "the arguments are `forward(microbatch, stage, value)` and `backward(microbatch, stage, gradient, kept)`",
        given={1: FunctionMap(order=(1, 0, 2)), 2: FunctionMap(order=(1, 0, 2, 3))},
    ),
    Twist(
        "names-without-stage",
        "the names in the lines have no stage: the line of stage 1 is such as `F0 B0 F1 B1`",
        given={0: one_way(lambda lines: [re.sub(r"\d+(?=[FB])", "", line) for line in lines])},
        about="lines",
    ),
    Twist(
        "kept-first",
        "`forward` returns `(kept, output)`",
        given={1: FunctionMap(result=exchanged((1, 0)))},
        about="results of forward and backward",
    ),
    Twist("loss-last", "the function returns `(gradients, loss)`", result=exchanged((1, 0))),
    Twist(
        "weight-gradient-first",
        "`backward` returns first the gradient with respect to the weights, then the one with respect to the input",
        given={2: FunctionMap(result=exchanged((1, 0)))},
        about="results of forward and backward",
    ),
)
