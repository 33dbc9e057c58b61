"""Runs on which a student's runner is tried, the judge of its gradients, and programs with a wrong sum."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import counted, short_repr
from hybridlab.course.tasks.answers import near
from hybridlab.course.tasks.builds import Case, Slip
from hybridlab.course.tasks.checking import Feedback, right, wrong
from hybridlab.course.tasks.executors import SIZES, Faults, lines_of_schedule, order_by_chance, parts_of_a_run
from hybridlab.course.tasks.runners import NO_TROUBLE, RAISED, Trouble, watched_threads
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op
from hybridlab.training import Network, loss_and_gradient

LONG_BEFORE_JOIN, LONG_BEFORE_END, LONG_OPERATION = 0.1, 0.3, 1.2  # seconds that a long operation takes


def read_threads(result: tuple[Any, Faults]) -> tuple[list[Floats], Faults]:
    """Return the gradients and the faults of a run, or raise an error if it has returned something else."""
    returned, faults = result
    if faults or returned is RAISED:
        return [], faults
    if returned is None:
        raise HybridLabError("the function returns None: does it end in return?", "returns-nothing")
    if not isinstance(returned, (tuple, list)):
        raise HybridLabError(f"the function returns a list with one gradient for each device, not {short_repr(returned)}", "not-a-list")
    for device, gradient in enumerate(returned):
        if not isinstance(gradient, np.ndarray) or gradient.dtype != np.float64:
            kind = f"an array of {gradient.dtype}" if isinstance(gradient, np.ndarray) else short_repr(gradient)
            raise HybridLabError(f"the gradient of device {device} is an array of float64, not {kind}", "wrong-dtype")
    return list(returned), faults


def judge_threads(
    result: tuple[list[Floats], Faults], orders: list[str], weights: Sequence[Floats], inputs: list[Floats], labels: Ints, trouble: Trouble
) -> Feedback:
    """Judge one run: its threads and messages, and then its gradients by those of one device."""
    gradients, faults = result
    if faults:
        return wrong(*faults[0])
    if trouble.raises:
        return right()
    if len(gradients) != len(weights):
        return wrong(
            "another-size", f"there are {counted(len(gradients), 'gradient')}, not one for each of {counted(len(weights), 'device')}"
        )
    for device, (found, wanted) in enumerate(zip(gradients, _on_one_device(weights, inputs, labels), strict=True)):
        if found.shape != wanted.shape:
            return wrong("another-shape", f"the gradient of device {device} has shape {found.shape}, and its weights have {wanted.shape}")
        if not near(found.tolist(), wanted.tolist(), 1e-9):
            place = int(np.argmax(~(np.abs(found - wanted) <= 1e-9)))
            told = f"number {place} of device {device}'s gradient is {found[place]:.6g}"
            return wrong("wrong-gradient", f"{told}; one device that runs the whole network finds {wanted[place]:.6g}")
    return right()


def _on_one_device(weights: Sequence[Floats], inputs: Sequence[Floats], labels: Ints) -> list[Floats]:
    """Return the gradient of each stage, found without stages."""
    _, gradient = loss_and_gradient(Network(SIZES), np.concatenate(weights), np.concatenate(inputs), labels.ravel())
    return np.split(gradient, np.cumsum([len(each) for each in weights])[:-1])


RUNNING = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3), (3, 5), (4, 3), (4, 6)]  # devices and microbatches


def runs_in_threads(rng: np.random.Generator) -> Iterator[Case]:
    """Yield orders that can run, from the smallest up, and then runs that must end in an error."""
    for devices, microbatches in RUNNING:
        size = f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')}"
        alone = devices * microbatches == 1
        lines = lines_of_schedule("1f1b", devices, microbatches)
        yield _run_case(rng, f"1F1B with {size}", lines, Trouble(long=LONG_BEFORE_JOIN * alone))
        if (devices, microbatches) == (2, 1):
            yield _run_case(rng, f"{size}, where 0F0 takes {LONG_OPERATION:g} s", lines, Trouble(long=LONG_OPERATION))
        if microbatches > 1:
            yield _run_case(rng, f"GPipe with {size}", lines_of_schedule("gpipe", devices, microbatches))
            yield _run_case(rng, f"a random order with {size}", order_by_chance(rng, devices, microbatches))
    yield _run_case(rng, "2 devices and 12 microbatches", order_by_chance(rng, 2, 12))
    yield _run_case(rng, "the lines ['0B0 0F0']", ["0B0 0F0"], Trouble(raises="order"))
    yield _run_case(rng, "the lines ['0F0 0B0', '1B0 1F0']", ["0F0 0B0", "1B0 1F0"], Trouble(raises="order"))
    yield _run_case(rng, "the lines ['', '1F0 1B0']", ["", "1F0 1B0"], Trouble(raises="order"))
    yield _run_case(rng, "2 lines that wait for each other", ["0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"], Trouble(raises="order"))
    for devices, microbatches in ((2, 1), (2, 3), (3, 4), (4, 4)):
        lines = order_by_chance(rng, devices, microbatches)
        for kind, senders in (("F", range(devices - 1)), ("B", range(1, devices))):
            lost = f"{rng.choice(senders)}{kind}{rng.integers(microbatches)}"
            yield _run_case(rng, f"{counted(devices, 'device')}, where the message of {lost} is lost", lines, Trouble((lost,), "lost"))
    pair = ["0F0 0B0", "1F0 1B0"]  # device 0 sleeps when device 1 ends
    late = Trouble(("1B0",), "lost", long=LONG_BEFORE_END, slow="1B0")
    yield _run_case(rng, f"2 devices, where 1B0 takes {LONG_BEFORE_END:g} s and its message is lost", pair, late)
    for name in ("1F0", "1B0"):
        late = Trouble((), "work", name, LONG_BEFORE_END, name)
        yield _run_case(rng, f"2 devices, where work raises an error in {name} after {LONG_BEFORE_END:g} s", pair, late)
    for devices, microbatches in ((1, 1), (2, 2), (3, 4)):
        lines = order_by_chance(rng, devices, microbatches)
        failing = str(rng.choice(" ".join(lines).split()))
        words = f"{counted(devices, 'device')}, where work raises an error in {failing}"
        yield _run_case(rng, words, lines, Trouble((), "work", failing))


def _run_case(rng: np.random.Generator, words: str, lines: list[str], trouble: Trouble = NO_TROUBLE) -> Case:
    """Return a case on random numbers."""
    network, samples = Network(SIZES), int(rng.integers(1, 4))
    microbatches = 1 + max(Op.parse(name).microbatch for line in lines for name in line.split())
    cuts = np.cumsum([network.count(layers) for layers in network.stages(len(lines))])[:-1]
    weights = np.split(rng.normal(size=network.parameters), cuts)
    inputs = list(rng.normal(size=(microbatches, samples, SIZES[0])))
    labels = rng.integers(0, SIZES[-1], (microbatches, samples))
    return Case((lines, weights, inputs, labels, trouble), words, run=watched_threads)


def wrong_gradients(change: Callable[[list[list[Floats]], list[int]], list[Floats]]) -> Callable[..., Any]:
    """Return a known mistake: ``change`` takes the gradients of each microbatch, and the last microbatch in the line of each device."""

    def result(orders: list[str], weights: Sequence[Floats], inputs: list[Floats], labels: Ints, trouble: Trouble) -> Any:
        if trouble.raises:
            raise HybridLabError("there are no gradients", "no-result")
        last = [Op.parse(line.split()[-1]).microbatch for line in orders]
        return change([gradients for _, gradients in parts_of_a_run(weights, inputs, labels)], last), []

    return result


def _sums(parts: list[list[Floats]]) -> list[Floats]:
    return [np.add.reduce(each) for each in zip(*parts, strict=True)]


RUNNERS = [
    Slip(
        "last-microbatch",
        "these are the gradients of the last microbatch alone: add up those of all microbatches",
        wrong_gradients(lambda parts, last: [parts[each][device].copy() for device, each in enumerate(last)]),
    ),
    Slip(
        "mean-of-microbatches",
        "this is divided by the number of microbatches: each gradient is a part of the mean already, so add them up",
        wrong_gradients(lambda parts, last: [each / len(parts) for each in _sums(parts)]),
    ),
    Slip(
        "added-twice",
        "each gradient is added twice: only the thread of a device may add to the sum of this device",
        wrong_gradients(lambda parts, last: [2 * each for each in _sums(parts)]),
    ),
    Slip(
        "reversed",
        "your list of gradients goes from the last device to the first",
        wrong_gradients(lambda parts, last: _sums(parts)[::-1]),
    ),
    Slip(
        "without-the-last",
        "the gradient of the last microbatch in each line is missing: add the gradient of every operation",
        wrong_gradients(
            lambda parts, last: [total - parts[each][d] for d, (total, each) in enumerate(zip(_sums(parts), last, strict=True))]
        ),
    ),
]
