"""The coding task ('build') of lab 10, ``eager(devices, microbatches, forward, backward, latency)``.

This file has its cases, the known mistakes and the changes of the task ('twists').
"""

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, readonly
from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.maps import REVERSED, Map, each_number, like, scaled, taken_from
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.formulas import gpipe_makespan
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

# Devices, microbatches, and the times of a forward, a backward and a message in ms.
SIZES = [
    (1, 1, 5, 10, 20),
    (2, 1, 5, 10, 20),
    (1, 6, 5, 10, 3),
    (2, 12, 5, 10, 0),
    (3, 12, 5, 10, 4),
    (3, 12, 5, 10, 0),
    (4, 16, 10, 20, 15),
    (4, 16, 10, 20, 16),
    (3, 2, 5, 10, 4),
    (4, 20, 4, 2, 12),
    (4, 5, 5, 10, 30),
    (6, 4, 10, 20, 7),
]
DRAWN = 24  # the number of further, random sizes


def latencies_to_hide(rng: np.random.Generator) -> Iterator[Case]:
    """Yield fixed sizes, then random ones, both from the smallest up. Times are whole ms.

    In some fixed sizes the latency is 0, or it is the longest latency that a warm-up hides.
    """
    drawn = [rng.integers((2, 1, 2, 2, 0), (8, 25, 13, 20, 40)).tolist() for _ in range(DRAWN)]
    for size in [*SIZES, *sorted(drawn, key=lambda size: size[0] * size[1])]:
        yield _sized(*size)


def _sized(devices: int, microbatches: int, forward: int, backward: int, latency: int) -> Case:
    times = f"a forward of {forward}, a backward of {backward} and a message of {latency} ms"
    words = f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')} with {times}"
    return Case((devices, microbatches, forward, backward, latency), words)


@cache
def warmed_up(warmups: tuple[int, ...], microbatches: int, forward: float, backward: float, latency: float) -> Timeline:
    """Return the timeline of 1F1B with the given warm-up of each device, in forwards.

    >>> warmed_up((3, 2, 1, 0), 16, 12.5, 25, 16).makespan
    1160.5
    """
    orders = [_order_with_warmup(device, warmup, microbatches) for device, warmup in enumerate(warmups)]
    return simulate(Schedule("yours", orders), Costs(forward=forward, backward=backward, p2p=latency))


def makespans(warmups: npt.ArrayLike, microbatches: int, forward: float, backward: float, latency: float) -> Floats:
    """Return the makespan of 1F1B for each row of warm-ups, shape (rows,). In a row, no warm-up is shorter than that of the next device.

    The makespan of a row is the same as from :func:`warmed_up`, but all rows are simulated together. In turn t each device runs its
    operation number t. The input of an operation comes from a neighbouring device, and never from a later turn.

    >>> makespans([[3, 2, 1, 0], [6, 4, 2, 0]], 16, 12.5, 25, 16).tolist()
    [1160.5, 808.5]
    """
    first = np.minimum(np.asarray(warmups), microbatches - 1)
    rows, devices = np.arange(len(first)), first.shape[1]
    free = np.zeros(first.shape)
    ends = np.zeros((2, *first.shape, microbatches))  # ms; ends of the forwards, ends of the backwards
    for turn in range(2 * microbatches):
        later = turn - first  # after its warm-up, a device runs forwards in even turns until all have run
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
    """Return the fewest forwards by which each warm-up must exceed that of the next device, so that the makespan is that of GPipe."""
    fastest = gpipe_makespan(devices, microbatches, forward, backward, latency)
    for step in count(1):
        warmups = tuple(min(step * (devices - 1 - device), microbatches) for device in range(devices))
        if warmed_up(warmups, microbatches, forward, backward, latency).makespan < fastest + 1e-9 * fastest:
            break
    return step


def _stepped(step: Callable[[int, int, int], int]) -> Callable[..., list[int]]:
    """Return a function that computes wrong warm-ups: each device warms up with ``step(F, B, C)`` forwards more than the next one."""

    def warmups(devices: int, microbatches: int, forward: int, backward: int, latency: int) -> list[int]:
        drop = max(step(forward, backward, latency), 0)
        return [min(drop * (devices - 1 - device), microbatches) for device in range(devices)]

    return warmups


def _needed(forward: float, backward: float, latency: float) -> int:
    """Return by how many forwards the right warm-up of a device exceeds that of the next device, also where fewer would be enough."""
    return 1 + math.ceil(2 * latency / (forward + backward))


MISTAKES = (
    KnownMistake(
        "1f1b",
        "your devices warm up as under 1F1B, with one forward more than the next device: these forwards hide no latency",
        _stepped(lambda forward, backward, latency: 1),
    ),
    KnownMistake(
        "always-two",
        "your devices warm up with two forwards more than the next one for every latency: a longer latency needs more, and without latency "
        "one is enough",
        _stepped(lambda forward, backward, latency: 2),
    ),
    KnownMistake(
        "gpipe",
        "your devices warm up as under GPipe: it is fast enough, but it holds all microbatches",
        lambda *size: [size[1]] * size[0],
    ),
    KnownMistake(
        "one-way",
        "this hides one message: between two devices a message goes there and another one comes back",
        _stepped(lambda forward, backward, latency: 1 + math.ceil(latency / (forward + backward))),
    ),
    KnownMistake(
        "rounded-down",
        "this rounds down: a part of the round trip of the two messages is then not hidden; round up",
        _stepped(lambda forward, backward, latency: 1 + 2 * latency // (forward + backward)),
    ),
    KnownMistake(
        "one-more-at-the-edge",
        "your devices warm up with one forward too many where the time of two messages is a multiple of F + B, such as 0: then nothing has "
        "to be rounded up",
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
        under={"pair": None},  # under this twist the program is right
    ),
    KnownMistake(
        "to-the-nearest",
        "this rounds to the nearest whole number: where it rounds down, a part of the two messages is not hidden; round up",
        _stepped(lambda forward, backward, latency: 1 + round(2 * latency / (forward + backward))),
    ),
    KnownMistake(
        "whole-pipeline",
        "this counts all 2(K-1) messages of the pipeline: between two neighbouring devices only two messages travel",
        lambda devices, *others: _stepped(
            lambda forward, backward, latency: 1 + math.ceil(2 * (devices - 1) * latency / (forward + backward))
        )(devices, *others),
    ),
    KnownMistake(
        "added-once",
        "this adds the extra forwards only once: each device needs them in addition to the whole warm-up of the next device",
        lambda devices, microbatches, *times: [
            min(_needed(*times) + behind - 1, microbatches) if behind else 0 for behind in range(devices - 1, -1, -1)
        ],
    ),
    KnownMistake(
        "own-pair-forgotten",
        "this counts the two messages alone: between them the next device needs F + B, so each device needs one more forward",
        _stepped(lambda forward, backward, latency: math.ceil(2 * latency / (forward + backward))),
    ),
    KnownMistake(
        "last-device-warms-up",
        "your last device warms up, too: it has no next device to wait for, so its warm-up is 0",
        lambda *size: [min(_needed(*size[2:]) * behind + 1, size[1]) for behind in range(size[0] - 1, -1, -1)],
        under={
            "peaks": None,  # these warm-ups are the right peaks
            "forwards-left": "your last device warms up, too: it has no next device to wait for, so all its forwards are left",
        },
    ),
    KnownMistake(
        "reversed",
        "your first warm-up is the shortest: device 0 comes first in the list, and it has the longest warm-up",
        lambda *size: [min(_needed(*size[2:]) * device, size[1]) for device in range(size[0])],
        under={"last-device-first": None},
    ),
)


def _beyond_1f1b(sign: int) -> Callable[[Any, tuple[Any, ...]], Any]:
    """Return a function that subtracts 1F1B's warm-ups from a list (sign -1) or adds them to it (sign 1)."""

    def change(values: Any, case: tuple[Any, ...]) -> Any:
        warmups = _stepped(lambda forward, backward, latency: 1)(*case)
        return like(values, [value + sign * warmup for value, warmup in zip(values, warmups, strict=True)])

    return change


EXAMPLES = (Example((4, 16, 10, 20, 16), [9, 6, 3, 0]), Example((3, 12, 5, 10, 0), [2, 1, 0]))
TWISTS = (
    Twist("half", "`latency` is half the time of a message", given={4: scaled(0.5)}),
    Twist(
        "pair",
        "`backward` is the time of a forward and a backward together",
        given={3: each_number(lambda time, case: case[2] + time, lambda time, case: time - case[2])},
        about="backward",
    ),
    Twist(
        "input-gradient",
        "`backward` is the time of the input gradient alone, and the weight gradient, which follows at once, takes as long again",
        given={3: scaled(0.5)},
        about="backward",
    ),
    Twist(
        "peaks",
        "the function returns the peak activations of each device, which are min(warm-up + 1, M), in place of its warm-up",
        # no warm-up has a peak above M: the map leaves such a peak as it is, and the judge refuses it as a warm-up above M
        result=each_number(lambda count, case: min(count + 1, case[1]), lambda peak, case: peak - (peak <= case[1])),
        about="result",
    ),
    Twist(
        "forwards-left",
        "the function returns how many forwards each device has left after its warm-up, in place of its warm-up",
        result=taken_from(lambda case: case[1]),
        about="result",
    ),
    Twist(
        "beyond-1f1b",
        "the function returns by how many forwards the warm-up of each device is longer than under 1F1B, where it is min(K-1-d, M)",
        result=Map(_beyond_1f1b(-1), _beyond_1f1b(1)),
        about="result",
    ),
    Twist("last-device-first", "the list that the function returns begins with the last device", result=REVERSED),
)
