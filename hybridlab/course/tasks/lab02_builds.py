"""Lab 2, GPipe and 1F1B: the two functions that students build, an order for every size and a simulator."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.tasks.answers import Orders, is_empty, plain_values, require_orders
from hybridlab.course.tasks.builds import Case, Slip, build_task
from hybridlab.course.tasks.checking import Feedback, Rung, right, wrong
from hybridlab.course.tasks.clocks import SLIPS, Times, judge_times, orders_of_many_kinds, read_times
from hybridlab.course.tasks.lab02 import NOT_1F1B, REVERSED, judge_order, not_1f1b
from hybridlab.course.tasks.pipeline_twists import CLOCK_TWISTS, placements
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.schedules import build


def _sizes(rng: np.random.Generator) -> Iterator[Case]:
    """Yield all sizes from 1 device and 1 microbatch up to 8 devices and 12 microbatches."""
    for devices, microbatches in sorted(product(range(1, 9), range(1, 13)), key=lambda size: (size[0] * size[1], size)):
        yield Case((devices, microbatches), f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')}")


def _read_lines(result: Any) -> Orders:
    plain = plain_values(result)
    if is_empty(plain):
        raise HybridLabError("the function returns no operations; return one text for each device, such as ['0F0 0B0']", "empty")
    for line in plain if isinstance(plain, list) else [plain]:
        if isinstance(line, str) and (joined := re.search(r"(?<!\d)\d+[FBfb]\d+[FBfb]\d+", line)):
            raise HybridLabError(f"a space is missing between two operations: {joined[0]!r}", "no-space")
    return require_orders(plain)


def _text_of(name: str) -> Callable[[int, int], str]:
    return lambda devices, microbatches: str(build(name, devices, microbatches))


Part = Callable[[int, int], Sequence[str]]  # takes the warm-up and the number of microbatches; "F2" is a forward of microbatch 2


def _three_parts(warmup: Callable[[int, int, int], int], pairs: Part | None = None, end: Part | None = None) -> Callable[..., list[str]]:
    """Return a function that writes 1F1B with a wrong part: the warm-up of device d of K with M microbatches, the pairs or the end."""

    def right_pairs(ahead: int, microbatches: int) -> list[str]:
        return [op for first in range(microbatches - ahead) for op in (f"F{first + ahead}", f"B{first}")]

    def right_end(ahead: int, microbatches: int) -> list[str]:
        return [f"B{microbatch}" for microbatch in range(max(microbatches - ahead, 0), microbatches)]

    def orders(devices: int, microbatches: int) -> list[str]:
        lines = []
        for device in range(devices):
            ahead = max(warmup(device, devices, microbatches), 0)
            parts = [f"F{microbatch}" for microbatch in range(ahead)]
            parts += [*(pairs or right_pairs)(ahead, microbatches), *(end or right_end)(ahead, microbatches)]
            lines.append(" ".join(f"{device}{op}" for op in parts))
        return lines

    return orders


def _warmup(device: int, devices: int, microbatches: int) -> int:
    return min(devices - 1 - device, microbatches)


def _backward_first(ahead: int, microbatches: int) -> list[str]:
    return [op for first in range(microbatches - ahead) for op in (f"B{first}", f"F{first + ahead}")]


def _newest_first(ahead: int, microbatches: int) -> list[str]:
    return [op for microbatch in range(ahead, microbatches) for op in (f"F{microbatch}", f"B{microbatch}")]


@build_task(
    "lab02.t5",
    title="Build 1F1B",
    prompt="write a function one_f_one_b(devices, microbatches) that returns one line of operations for each device",
    points=6,
    signature="one_f_one_b(devices, microbatches)",
    cases=_sizes,
    reads=_read_lines,
    slips=[
        Slip("all-forwards-first", "this is GPipe: 1F1B runs its first backward as soon as it can", _text_of("gpipe")),
        Slip(
            "warm-up-too-long",
            "your warm-up is one forward too long: it has K-1-d forwards, and the first pair begins with another one",
            _three_parts(lambda device, devices, microbatches: min(devices - device, microbatches)),
        ),
        Slip(
            "eager",
            "your warm-up is twice as long; that is eager 1F1B, which needs more memory: it has K-1-d forwards",
            _three_parts(lambda device, devices, microbatches: min(2 * (devices - 1 - device), microbatches)),
        ),
        Slip(
            "same-warm-up",
            "all your devices have the warm-up of device 0; on device d it has K-1-d forwards",
            _three_parts(lambda device, devices, microbatches: min(devices - 1, microbatches)),
        ),
        Slip(
            "reversed",
            REVERSED,
            _three_parts(lambda device, devices, microbatches: min(device, microbatches)),
        ),
        Slip(
            "no-warm-up",
            "your devices have no warm-up; without it the devices behind have nothing to do",
            _three_parts(lambda device, devices, microbatches: 0),
        ),
        Slip(
            "warm-up-too-short",
            "your warm-up is one forward too short: it has K-1-d forwards, and the first pair begins with another one",
            _three_parts(lambda device, devices, microbatches: min(devices - 2 - device, microbatches)),
        ),
        Slip(
            "arguments-exchanged",
            "you take devices for microbatches, and microbatches for devices: the first argument is the number of devices",
            lambda devices, microbatches: str(build("1f1b", microbatches, devices)),
        ),
        Slip(
            "warm-up-beyond-the-last",
            "your warm-up runs microbatches that do not exist: it stops after all M if there are fewer than K-1-d",
            _three_parts(lambda device, devices, microbatches: devices - 1 - device),
        ),
        Slip(
            "backward-first",
            "your pairs run the backward before the forward; in a pair the forward comes first",
            _three_parts(_warmup, pairs=_backward_first),
        ),
        Slip(
            "newest-first",
            "your pairs run the backward of the microbatch whose forward has just ended; a pair takes the oldest one that the device holds",
            _three_parts(_warmup, pairs=_newest_first, end=lambda ahead, microbatches: [f"B{each}" for each in range(ahead)]),
        ),
        Slip(
            "no-cool-down",
            "your order ends after the last pair; the cool-down, the backwards that are left, is missing",
            _three_parts(_warmup, end=lambda ahead, microbatches: []),
        ),
    ],
    lesson="a warm-up of min(K-1-d, M) forwards, then pairs, then the backwards that are left",
    without=("build",),
    rungs=[Rung("complete and able to run for all sizes", 1 / 3, NOT_1F1B)],
    twists=placements(_read_lines),
)
def build_1f1b(orders: Orders, devices: int, microbatches: int) -> Feedback:
    """Judge the orders of one size: they can run, and every device runs 1F1B."""
    if len(orders) != devices:
        return wrong("another-size", f"the result has {counted(len(orders), 'line')}, not one for each of {counted(devices, 'device')}")

    def judged(schedule: Schedule) -> Feedback:
        if schedule.microbatches != microbatches:
            return wrong("another-number", f"the order has {counted(schedule.microbatches, 'microbatch')}, not {microbatches}")
        fault = next(not_1f1b(schedule), None)
        return wrong(*fault) if fault else right()

    return judge_order(orders, judged, devices, microbatches)


@build_task(
    "lab02.t6",
    title="Build a simulator",
    prompt="write a function simulate(orders, forward, backward, latency) that returns the start and the end of each operation that runs",
    points=10,
    signature="simulate(orders, forward, backward, latency)",
    cases=orders_of_many_kinds,
    reads=read_times,
    slips=SLIPS,
    twists=CLOCK_TWISTS,
    lesson="an operation starts when its device is free and its input has arrived; in a deadlock no device has such an operation",
)
def build_simulator(times: Times, orders: list[str], forward: list[float], backward: list[float], latency: float) -> Feedback:
    """Judge the times of the operations of one order, or of the operations that run until a deadlock."""
    return judge_times(times, orders, Costs(forward=forward, backward=backward, p2p=latency), latency)
