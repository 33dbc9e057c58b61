"""The coding task ("build") ``peaks`` of lab 3: the orders to try, known mistakes, changes ("twists"). Lab 11 uses them, too."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.maps import REVERSED, Map, like, scaled, shifted, taken_from
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.schedule import Op, Schedule
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

RISING = "device 0: 0F0 0I0 0W0 0F1 0I1 0W1 0F2 0I2 0W2\ndevice 1: 1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2"
LATE_PEAK = "device 0: 0F0 0B0 0F1 0F2 0B2 0B1"
TWO_RUNS = "device 0: 0F0 0B0 0F1 0F2 0B2 0F3 0F4 0B4 0B3 0B1"  # never more than two forwards in a row, but a peak of 3 activations


def orders_to_count(rng: np.random.Generator) -> Iterator[Case]:
    """Yield orders that can run: named schedules, random orders, one order with numbers of two digits, and single lines of orders."""
    yield _peaks_case(str(build("gpipe", 1, 1)), "GPipe", 1, 1)
    yield _peaks_case(str(build("gpipe", 2, 3)), "GPipe", 2, 3)
    yield _peaks_case(LATE_PEAK, "an order", 1, 3)
    yield _peaks_case(TWO_RUNS, "an order", 1, 5)
    for devices, microbatches in ((1, 3), (2, 1), (3, 2), (2, 4), _drawn_size(rng, 4), _drawn_size(rng, 6)):
        for name, title in (("gpipe", "GPipe"), ("1f1b", "1F1B"), ("zb-h1", "1F1B with split backwards")):
            yield _peaks_case(str(build(name, devices, microbatches)), title, devices, microbatches)
    for largest in range(3, 16):
        for backward in ("IW", "B"):
            devices, microbatches = int(rng.integers(1, min(largest, 5))), int(rng.integers(2, min(largest, 7)))
            title = "an order with split backwards" if backward == "IW" else "an order"
            yield _peaks_case(_random_order(rng, devices, microbatches, backward), title, devices, microbatches)
    yield _peaks_case(RISING, "an order with split backwards", 2, 3)
    yield _peaks_case(str(build("1f1b", 11, two_digits := int(rng.integers(12, 17)))), "1F1B", 11, two_digits)
    devices, microbatches = _drawn_size(rng, 4)
    yield _some_lines(str(build("1f1b", devices, microbatches)), (2,), f"the line of device 2 of 1F1B of {_size(devices, microbatches)}")
    title = f"the lines of devices 1 and 3 of 1F1B with split backwards of {_size(devices, microbatches)}"
    yield _some_lines(str(build("zb-h1", devices, microbatches)), (1, 3), title)


def _drawn_size(rng: np.random.Generator, least: int) -> tuple[int, int]:
    """Return random numbers of devices and microbatches, of which the smallest are ``least`` and ``least`` - 1."""
    return int(rng.integers(least, least + 4)), int(rng.integers(least - 1, least + 6))


def _size(devices: int, microbatches: int) -> str:
    return f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')}"


def _peaks_case(text: str, title: str, devices: int, microbatches: int) -> Case:
    lines = [line.partition(": ")[2] for line in text.splitlines()]
    return Case((lines,), f"{title} of {_size(devices, microbatches)}")


def _some_lines(text: str, devices: tuple[int, ...], words: str) -> Case:
    lines = [line.partition(": ")[2] for line in text.splitlines()]
    return Case(([lines[device] for device in devices],), words)


def _random_order(rng: np.random.Generator, devices: int, microbatches: int, backward: str) -> str:
    """Return a random order that can run, as text with a label before each line. Microbatches can overtake each other."""
    first = backward[0]
    left = [(kind, stage, microbatch) for kind in "F" + backward for stage in range(devices) for microbatch in range(microbatches)]
    lines = [f"device {device}:" for device in range(devices)]
    while left:
        waiting = set(left)

        def needs(kind: str, stage: int, microbatch: int) -> list[tuple[str, int, int]]:
            if kind == "F":
                return [("F", stage - 1, microbatch)]
            return [("F", stage, microbatch), (first, stage + 1, microbatch)] if kind == first else [(first, stage, microbatch)]

        ready = [op for op in left if waiting.isdisjoint(needs(*op))]
        kind, stage, microbatch = ready[int(rng.integers(len(ready)))]
        left.remove((kind, stage, microbatch))
        lines[stage] += f" {stage}{kind}{microbatch}"
    return "\n".join(lines)


def _most_held(change: Mapping[str, float]) -> Callable[[list[str]], list[float]]:
    """Return a program that adds a number for each operation of a line, by its letter, and returns the largest sum of each line."""

    def most(orders: list[str]) -> list[float]:
        steps = [[change.get(op.strip("0123456789"), 0) for op in line.split()] for line in orders]
        return [max(0, *np.cumsum(line).tolist()) for line in steps]

    return most


def _formula(orders: list[str]) -> list[int]:
    """Return the peaks of 1F1B, min(K - d, M)."""
    return [min(len(orders) - device, line.count("F")) for device, line in enumerate(orders)]


def _before_each_forward(orders: list[str]) -> list[float]:
    """Return for each line the most activations that its device holds directly before a forward."""
    steps = [[-1 if "B" in op or "W" in op else int("F" in op) for op in line.split()] for line in orders]
    return [max(held - 1 for held, step in zip(np.cumsum(line).tolist(), line, strict=True) if step == 1) for line in steps]


@cache
def timeline_of_line(line: str) -> Timeline:
    """Return the timeline of a device's line, run without other devices. The activations that a device holds depend on its line alone."""
    return simulate(Schedule.parse(re.sub(r"\d+([FBIW])", r"0\1", line)), Costs(forward=1, backward=2))


def _held(orders: list[str]) -> list[float]:
    return [float(timeline_of_line(line).peak_activations[0]) for line in orders]


MISTAKES = (
    KnownMistake(
        "never-frees", "your function counts all forwards: a backward frees the activations of its microbatch", _most_held({"F": 1})
    ),
    KnownMistake(
        "frees-at-input-gradient",
        "your function frees activations at the input gradient I: the weight gradient W still needs them, and W alone frees them",
        _most_held({"F": 1, "B": -1, "I": -1}),
    ),
    KnownMistake(
        "frees-twice",
        "your function frees activations at I and again at W: the input gradient I frees nothing, and the weight gradient W frees one",
        _most_held({"F": 1, "B": -1, "I": -1, "W": -1}),
    ),
    KnownMistake(
        "half-a-unit",
        "your function frees half at I and half at W: I frees nothing, because W still needs the activations, and W frees one",
        _most_held({"F": 1, "B": -1, "I": -0.5, "W": -0.5}),
    ),
    KnownMistake(
        "ignores-split-backwards",
        "your function ignores split backwards: where the backward is split, W frees the activations",
        _most_held({"F": 1, "B": -1}),
    ),
    KnownMistake(
        "one-too-low",
        "your peak is too low: a device holds the activations from the start of a forward to the end of its backward; add the forward "
        "first, then compare with the largest number so far",
        _before_each_forward,
        under={"places-left": "a forward takes a place until its backward ends: take the place first, then compare with the fewest so far"},
    ),
    KnownMistake(
        "held-at-the-end",
        "your result is the number at the end of the order: keep the largest number that the device reaches on the way",
        lambda orders: [0 for _ in orders],
        under={"places-left": "your result is the number of free places at the end of the order: keep the smallest number on the way"},
    ),
    KnownMistake(
        "one-everywhere",
        "your function counts one forward for every device: add each forward along the order, and keep the largest number",
        lambda orders: [1 for _ in orders],
        under={
            "places-left": "your function takes one place on every device: take a place for each forward along the order, and keep the "
            "smallest number of free places"
        },
    ),
    KnownMistake(
        "longest-run",
        "your function counts the longest run of forwards in a row: before this run the device can already hold other activations",
        lambda orders: [max(map(len, re.findall("F+", re.sub(r"[^FBIW]", "", line)))) for line in orders],
    ),
    KnownMistake(
        "warm-up-alone",
        "your function counts the forwards before the first backward: the peak can come later in the order",
        lambda orders: [next(place for place, op in enumerate(line.split()) if "F" not in op) for line in orders],
    ),
    KnownMistake(
        "formula",
        "your result comes from min(K-d, M), the formula for 1F1B: other orders have other peaks, so read the order",
        _formula,
    ),
    KnownMistake(
        "one-peak-for-all",
        "your function takes the largest peak for all devices: each device has a peak of its own, so begin again for each line",
        lambda orders: [max(_held(orders))] * len(orders),
    ),
    KnownMistake(
        "peaks-so-far",
        "your function compares each device with the peaks of the devices before it: each device has a peak of its own, so begin again for "
        "each line",
        lambda orders: np.maximum.accumulate(_held(orders)).tolist(),
    ),
    KnownMistake(
        "reversed",
        "your list begins with the last device: device 0 comes first",
        lambda orders: _held(orders)[::-1],
        under={"last-line-first": None},
    ),
    KnownMistake(
        "sorted",
        "these are the right peaks, but sorted: give them in the order of the lines",
        lambda orders: sorted(_held(orders), reverse=True),
        under={"last-line-first": "these are the right peaks, but sorted: give them from the last line to the first"},
    ),
    KnownMistake(
        "one-digit",
        "a stage can have two digits: in 10F0 the letter is the third character, and the stage is 10, not 1",
        lambda orders: [most if device < 10 else 0 for device, most in enumerate(_held(orders))],
    ),
    KnownMistake(
        "one-digit-microbatch",
        "a microbatch can have two digits: 0F10 is the forward of microbatch 10, and its letter is not the second character from the end",
        lambda orders: _most_held({"F": 1, "B": -1, "W": -1})([re.sub(r"\d+[FBIW]\d\d+", "", line) for line in orders]),
    ),
)

ROOM = 16  # activations on a device
GIGABYTES, WEIGHTS = 3, 10  # GB of one activation, and of the weights on a device


def _held_by_stage(sign: int) -> Callable[[Any, tuple[Any, ...]], Any]:
    """Return the change that adds the number of the device's stage to each peak (``sign`` is 1) or subtracts it (-1)."""

    def change(values: Any, case: tuple[Any, ...]) -> Any:
        stages = [Op.parse(line.split()[0]).stage for line in case[0]]
        return like(values, [value + sign * stage for value, stage in zip(values, stages, strict=True)])

    return change


EXAMPLES = (
    Example((["0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"],), [3, 1]),
    Example((["2F0 2I0 2F1 2I1 2F2 2I2 2W0 2W1 2W2"],), [3]),
)
TWISTS = (
    Twist(
        "one-held", "each device holds one more activation all the time, which no operation frees", result=shifted(1), about="always held"
    ),
    Twist(
        "two-held", "each device holds two more activations all the time, which no operation frees", result=shifted(2), about="always held"
    ),
    Twist(
        "as-many-held-as-the-stage",
        "the device of stage s holds s more activations all the time, which no operation frees",
        result=Map(_held_by_stage(1), _held_by_stage(-1)),
        about="always held",
    ),
    Twist(
        "places-left",
        f"each device has room for {ROOM} activations, and the function returns for each the fewest places that are free on the way",
        result=taken_from(lambda case: ROOM),
        about="unit",
    ),
    Twist(
        "gigabytes",
        f"an activation takes {GIGABYTES} GB, and the function returns the most GB that each device holds",
        result=scaled(GIGABYTES),
        about="unit",
    ),
    Twist(
        "gigabytes-with-weights",
        f"an activation takes {GIGABYTES} GB, the weights on a device take {WEIGHTS} GB, and the function returns the most GB that each "
        "device holds, weights included",
        result=scaled(GIGABYTES).then(shifted(WEIGHTS)),
        about="unit",
    ),
    Twist("last-line-first", "the list that the function returns begins with the last line", result=REVERSED),
)
