"""The cases of the build ``eager(devices, microbatches, forward, backward, latency)`` of lab 10, its known mistakes and its twists."""

import math
from collections.abc import Callable, Iterator
from functools import cache, wraps
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, readonly
from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import plain_values, require_numbers
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import in_words_of_the_page, together
from hybridlab.formulas import gpipe_makespan
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

Warmups = list[float]

# Devices, microbatches, and the times of a forward, a backward and a message in ms.
SIZES = [
    (1, 1, 5, 10, 20),
    (2, 1, 5, 10, 20),
    (1, 6, 5, 10, 3),
    (2, 12, 5, 10, 0),
    (3, 12, 5, 10, 0),
    (3, 12, 5, 10, 4),
    (4, 16, 10, 20, 15),
    (4, 16, 10, 20, 16),
    (3, 2, 5, 10, 4),
    (4, 5, 5, 10, 30),
    (6, 4, 10, 20, 7),
    (3, 20, 4, 2, 12),
]
DRAWN = 24  # further sizes


def latencies_to_hide(rng: np.random.Generator) -> Iterator[Case]:
    """Yield fixed sizes, with latencies of 0 and at the edge of what a warm-up hides, then drawn ones. Times are whole ms."""
    for size in SIZES:
        yield _sized(*size)
    for _ in range(DRAWN):
        yield _sized(*(int(rng.integers(*limits)) for limits in ((2, 8), (1, 25), (2, 13), (2, 20), (0, 40))))


def _sized(devices: int, microbatches: int, forward: int, backward: int, latency: int) -> Case:
    times = f"a forward of {forward}, a backward of {backward} and a message of {latency} ms"
    words = f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')} with {times}"
    return Case((devices, microbatches, forward, backward, latency), words)


def warmed_up(warmups: list[int], microbatches: int, forward: float, backward: float, latency: float) -> Timeline:
    """Return the timeline of 1F1B with one warm-up for each device.

    >>> warmed_up([3, 2, 1, 0], 16, 12.5, 25, 16).makespan
    1160.5
    """
    orders = [_order_with_warmup(device, warmup, microbatches) for device, warmup in enumerate(warmups)]
    return simulate(Schedule("yours", orders), Costs(forward=forward, backward=backward, p2p=latency))


def makespans(warmups: npt.ArrayLike, microbatches: int, forward: float, backward: float, latency: float) -> Floats:
    """Return the makespan of 1F1B for each row of warm-ups, in which no device warms up with fewer forwards than the next one.

    Row by row it is the makespan of :func:`warmed_up`. All rows are timed together, turn by turn: the input of an operation is made in no
    later turn of the device next to it.

    >>> makespans([[3, 2, 1, 0], [6, 4, 2, 0]], 16, 12.5, 25, 16).tolist()
    [1160.5, 808.5]
    """
    first = np.minimum(np.asarray(warmups), microbatches - 1)
    rows, devices = np.arange(len(first)), first.shape[1]
    free = np.zeros(first.shape)
    ends = np.zeros((2, *first.shape, microbatches))  # of forwards and of backwards
    for turn in range(2 * microbatches):
        later = turn - first  # an even number of turns after the warm-up a forward runs, until there are no more
        runs_forward = (later <= 0) | ((later % 2 == 0) & (turn + first <= 2 * microbatches - 2))
        number = np.where(runs_forward, np.minimum(turn, (turn + first) // 2), np.maximum((later - 1) // 2, turn - microbatches))
        for kind, order, before, duration in ((0, range(devices), -1, forward), (1, range(devices)[::-1], 1, backward)):
            for device in order:
                run, source = rows[runs_forward[:, device] == (kind == 0)], device + before
                microbatch = number[run, device]
                start = free[run, device]
                if source in range(devices):
                    start = np.maximum(start, ends[kind, run, source, microbatch] + latency)
                free[run, device] = ends[kind, run, device, microbatch] = start + duration
    return readonly(free.max(axis=1))


def _order_with_warmup(device: int, warmup: int, microbatches: int) -> list[Op]:
    forwards, backwards = ([Op(kind, device, microbatch) for microbatch in range(microbatches)] for kind in (Kind.F, Kind.B))
    first, rest = forwards[:warmup], forwards[warmup:]
    pairs = [op for pair in zip(rest, backwards, strict=False) for op in pair]
    return [*first, *pairs, *backwards[len(rest) :]]


@cache
def least_step(devices: int, microbatches: int, forward: float, backward: float, latency: float) -> int:
    """Return by how many forwards the warm-ups must fall from device to device until the clock shows GPipe's time."""
    fastest = gpipe_makespan(devices, microbatches, forward, backward, latency)
    for step in count(1):
        warmups = [min(step * (devices - 1 - device), microbatches) for device in range(devices)]
        if warmed_up(warmups, microbatches, forward, backward, latency).makespan < fastest + 1e-9 * fastest:
            break
    return step


def _stepped(step: Callable[[int, int, int], int]) -> Callable[..., list[int]]:
    """Return a function that lets each device warm up with ``step`` forwards more than the next one, by F, B and C."""

    def warmups(devices: int, microbatches: int, forward: int, backward: int, latency: int) -> list[int]:
        drop = max(step(forward, backward, latency), 0)
        return [min(drop * (devices - 1 - device), microbatches) for device in range(devices)]

    return warmups


MISTAKES = [
    KnownMistake(
        "1f1b",
        "these are the warm-ups of 1F1B, one forward more than the next device: they hide no latency",
        _stepped(lambda forward, backward, latency: 1),
    ),
    KnownMistake(
        "always-two",
        "this is two forwards more than the next device for every latency: a longer latency needs more, and without latency one is enough",
        _stepped(lambda forward, backward, latency: 2),
    ),
    KnownMistake(
        "gpipe", "these are the warm-ups of GPipe: it is fast enough, but it holds all microbatches", lambda *size: [size[1]] * size[0]
    ),
    KnownMistake(
        "one-way",
        "this hides one message: between two devices a message goes there and another one comes back, 2C",
        _stepped(lambda forward, backward, latency: 1 + math.ceil(latency / (forward + backward))),
    ),
    KnownMistake(
        "rounded-down",
        "this rounds down: a part of the round trip of the two messages is then not hidden; round up",
        _stepped(lambda forward, backward, latency: 1 + 2 * latency // (forward + backward)),
    ),
    KnownMistake(
        "one-more-at-the-edge",
        "this is one forward too many where 2C is a multiple of F + B, such as 0: then nothing has to be rounded up",
        _stepped(lambda forward, backward, latency: 2 + 2 * latency // (forward + backward)),
    ),
    KnownMistake(
        "forwards-alone",
        "this divides the two messages by F: while they travel, a device runs pairs of a forward and a backward, F + B",
        _stepped(lambda forward, backward, latency: 1 + math.ceil(2 * latency / forward)),
    ),
    KnownMistake(
        "backwards-alone",
        "this divides the two messages by B: while they travel, a device runs pairs of a forward and a backward, F + B",
        _stepped(lambda forward, backward, latency: 1 + math.ceil(2 * latency / backward)),
    ),
    KnownMistake(
        "to-the-nearest",
        "this rounds to the nearest whole number: where it rounds down, a part of the two messages is not hidden; round up",
        _stepped(lambda forward, backward, latency: 1 + round(2 * latency / (forward + backward))),
    ),
    KnownMistake(
        "whole-pipeline",
        "this takes all messages of the pipeline, 2(K-1)C, between every two devices: there only two messages travel, 2C",
        lambda devices, *others: _stepped(
            lambda forward, backward, latency: 1 + math.ceil(2 * (devices - 1) * latency / (forward + backward))
        )(devices, *others),
    ),
    KnownMistake(
        "added-once",
        "this adds the further forwards once: each device needs them in addition to those of the next device",
        lambda devices, microbatches, *times: [
            min(least_step(devices, microbatches, *times) + behind - 1, microbatches) if behind else 0
            for behind in range(devices - 1, -1, -1)
        ],
    ),
    KnownMistake(
        "own-pair-forgotten",
        "this lacks the one forward that 1F1B has, too: the next device itself needs F + B between the two messages",
        _stepped(lambda forward, backward, latency: math.ceil(2 * latency / (forward + backward))),
    ),
    KnownMistake(
        "last-device-warms-up",
        "your last device warms up, too: it has no next device to wait for, so its warm-up is 0",
        lambda *size: [min(least_step(*size) * behind + 1, size[1]) for behind in range(size[0] - 1, -1, -1)],
    ),
    KnownMistake(
        "reversed",
        "device 0 comes first in the list, and it has the longest warm-up",
        lambda *size: [min(least_step(*size) * device, size[1]) for device in range(size[0])],
    ),
]

Rename = Callable[[Warmups, int], Warmups]  # the numbers that the function returned, and the number of microbatches


def _with_latency(
    latency_of: Callable[[float], float] = lambda latency: latency,
    backward_of: Callable[[float, float], float] = lambda forward, backward: backward,
    warmups_of: Rename = lambda numbers, microbatches: numbers,
) -> Callable[[Function], Function]:
    """Return a ``standard`` with functions for the latency and the backward that the function gets, and for the list that it returns."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def eager(devices: int, microbatches: int, forward: float, backward: float, latency: float) -> Any:
            def read(result: Any) -> Warmups:
                return require_numbers(plain_values(result), devices, "warm-up of a device", "3")

            returned = function(devices, microbatches, forward, backward_of(forward, backward), latency_of(latency))
            return in_words_of_the_page(returned, read, lambda numbers: warmups_of(numbers, microbatches))

        return eager

    return standard


HALF = Twist("half", "latency is half the time of a message", _with_latency(latency_of=lambda latency: latency / 2))
PAIR = Twist(
    "pair",
    "the argument backward is the time of a forward and a backward together",
    _with_latency(backward_of=lambda forward, backward: forward + backward),
)
LAST_FIRST = Twist(
    "last-device-first", "the list begins with the last device", _with_latency(warmups_of=lambda numbers, microbatches: numbers[::-1])
)
PEAKS = Twist(
    "peaks",
    "the function returns the peak activations of each device, which are min(warm-up + 1, M), in place of its warm-up",
    _with_latency(warmups_of=lambda numbers, microbatches: [number - 1 for number in numbers]),
)
LEFT = Twist(
    "pairs-left",
    "the function returns how many forwards each device has left after its warm-up, in place of its warm-up",
    _with_latency(warmups_of=lambda numbers, microbatches: [microbatches - number for number in numbers]),
)

EAGER_TWISTS = (
    HALF,
    PAIR,
    PEAKS,
    LEFT,
    together(HALF, LAST_FIRST),
    together(PAIR, LAST_FIRST),
    together(HALF, PEAKS),
    together(PAIR, LEFT),
    together(PEAKS, LAST_FIRST),
)
