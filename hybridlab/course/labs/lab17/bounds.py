"""The coding task ("build") of lab 17, a lower bound of the makespan: cases, judge, known mistakes and changed tasks ("twists")."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from hybridlab.automatic import schedule_for
from hybridlab.checks import counted, distinct_texts
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import plain_values, require_number
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.maps import REVERSED, RUNNING_SUMS, Map, each_number, one_way, scaled
from hybridlab.course.checking.twists import Example, Twist

Times = Sequence[float]  # one time for each device, in ms

WITHIN = 1e-6  # ms; smaller differences come from rounding
GB_EACH = 0.5  # the memory of one activation in GB, under the twist "memory-in-gb"
# Devices, microbatches and cap, the number of activations that fit on a device
SIZES = ((1, 3, 1), (2, 1, 1), (2, 3, 3), (3, 2, 1), (2, 4, 1), (3, 4, 2), (3, 7, 3), (4, 6, 2), (4, 8, 8), (5, 9, 3), (6, 12, 4))
RANDOM_CASES = 12


def steps_to_bound(rng: np.random.Generator) -> Iterator[Case]:
    """Yield cases for the bound: first equal devices, from small to large, then unequal devices with a latency."""
    yield _step_case(1, 1, [3], [5], 0)
    yield _step_case(3, 2, [10, 10], [20, 20], 0)
    yield _step_case(4, 2, [10, 10, 10], [20, 20, 20], 0)
    yield _step_case(3, 3, [12, 8, 10], [20, 28, 18], 2)  # with equal devices, several known mistakes give equal results
    for devices, microbatches, cap in SIZES:
        forward, backward, latency = (int(rng.integers(low, high)) for low, high in ((5, 15), (10, 30), (0, 4)))
        yield _step_case(microbatches, cap, [forward] * devices, [backward] * devices, latency)
    for _ in range(RANDOM_CASES):
        devices, microbatches = int(rng.integers(2, 7)), int(rng.integers(2, 14))
        forward, backward = rng.integers(4, 21, devices).tolist(), rng.integers(8, 41, devices).tolist()
        yield _step_case(microbatches, int(rng.integers(1, microbatches + 1)), forward, backward, int(rng.integers(0, 8)))


def _step_case(microbatches: int, cap: int, forward: list[float], backward: list[float], latency: float) -> Case:
    sizes = f"{counted(len(forward), 'device')} and {counted(microbatches, 'microbatch')}"
    even = all(len(set(times)) == 1 for times in (forward, backward))
    times = f"forwards of {forward[0]} and backwards of {backward[0]} ms" if even else "unequal devices"
    words = f"{sizes} with room for {cap}, {times}, a latency of {latency:g} ms"
    return Case((microbatches, cap, forward, backward, latency), words)


def read_time(result: Any) -> float:
    """Return the bound that the student's function returned, in ms."""
    return require_number(plain_values(result), "a bound in ms", "210")


def judge_bound(answer: float, microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> Feedback:
    """Judge a bound in ms. A bound is right if two conditions hold.

    1. The bound is not above the makespan of an order that a quick search finds.
    2. The bound is not below the highest of the bounds that the lab's page derives.
    """
    reached = _known_makespan(microbatches, cap, tuple(forward), tuple(backward), latency)
    if answer > reached + WITHIN:
        found, takes = distinct_texts(answer, reached)
        return wrong("above-an-order", f"your bound is {found} ms, but an order within this memory takes {takes} ms")
    highest, device, full = max(_terms(microbatches, cap, forward, backward, latency))
    if answer < highest - WITHIN:
        found, least = distinct_texts(answer, highest)
        low = f"your bound is {found} ms, but no order is shorter than {least} ms"
        if full:
            times = "once" if full == 1 else f"{full} times"
            return wrong("too-low-in-this-memory", f"{low}: device 0 is full {times} before the last microbatches can enter")
        return wrong("too-low", f"{low}: add what comes before the work of device {device}, this work, and what comes after it")
    return right()


def _terms(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> Iterator[tuple[float, int, int]]:
    """Yield each bound that the lab's page derives: the bound in ms, its device, and how many times device 0 must be full.

    Device 0 is full if there is no room for another activation in its memory.
    """
    heads, tails = (
        [sum_before + latency * device for device, sum_before in enumerate(accumulate([0.0, *times[:-1]]))] for times in (forward, backward)
    )
    chain = heads[-1] + forward[-1] + backward[-1] + tails[-1]
    for full in range(-(-microbatches // cap)):
        for device, (head, tail) in enumerate(zip(heads, tails, strict=True)):
            left = (microbatches - full * cap) * (forward[device] + backward[device])
            yield full * chain + head + left + tail, device, full


@lru_cache(maxsize=4096)
def _known_makespan(microbatches: int, cap: int, forward: tuple[float, ...], backward: tuple[float, ...], latency: float) -> float:
    """Return the makespan of the order that a quick search finds, in ms. The order needs at most ``cap`` activations on a device."""
    costs = Costs(forward=forward, backward=backward, p2p=latency)
    return schedule_for(costs, microbatches, memory=cap, devices=len(forward), split=False, seconds=0).makespan


# The programs with known mistakes. Each returns a wrong bound in ms.
def _without_memory(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    return max(term for term, _, full in _terms(microbatches, cap, forward, backward, latency) if not full)


def _memory_alone(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    """Return the bound of a program that counts only how often device 0 is full: one chain of one microbatch for each time."""
    return -(-microbatches // cap) * _chain_of_one(forward, backward, latency)


def _chain_of_one(forward: Times, backward: Times, latency: float) -> float:
    return sum(forward) + sum(backward) + 2 * (len(forward) - 1) * latency


def _slowest_everywhere(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    return (microbatches + len(forward) - 1) * (max(forward) + max(backward)) + 2 * (len(forward) - 1) * latency


def _part_of_work(head: bool, tail: bool, memory: bool = False) -> Callable[..., float]:
    """Return a program that takes the highest bound from the work of one device.

    The time before the device starts is added if ``head`` is true. The time after the device ends is added if ``tail`` is true. If
    ``memory`` is true, the program also counts how often device 0 must be full.
    """

    def bound(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
        return max(
            full * _chain_of_one(forward, backward, latency)
            + head * (sum(forward[:device]) + latency * device)
            + (microbatches - full * cap) * (forward[device] + backward[device])
            + tail * (sum(backward[:device]) + latency * device)
            for device in range(len(forward))
            for full in range(-(-microbatches // cap) if memory else 1)
        )

    return bound


def _without_latency(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    return max(term for term, _, _ in _terms(microbatches, cap, forward, backward, 0))


def _busiest_device_alone(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    busiest = max(range(len(forward)), key=lambda device: forward[device] + backward[device])
    return max(term for term, device, _ in _terms(microbatches, cap, forward, backward, latency) if device == busiest)


def _longest_rest(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    """Return the bound of a program that counts the work of all microbatches again after the last time that device 0 was full."""
    full = (microbatches - 1) // cap
    return full * _chain_of_one(forward, backward, latency) + _without_memory(microbatches, cap, forward, backward, latency)


def _once_too_often(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    """Return the bound of a program in which device 0 can be full once more after the last microbatch has entered."""
    full = microbatches // cap
    least = _part_of_work(True, True)(microbatches - full * cap, cap, forward, backward, latency)
    return max(
        full * _chain_of_one(forward, backward, latency) + least,
        *(term for term, _, _ in _terms(microbatches, cap, forward, backward, latency)),
    )


def _as_full_as_possible(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    most = (microbatches - 1) // cap
    return max(term for term, _, full in _terms(microbatches, cap, forward, backward, latency) if full == most)


MISTAKES = (
    KnownMistake(
        "work-alone",
        "your bound is the work of the busiest device: add the time before its first forward and the time after its last backward",
        _part_of_work(head=False, tail=False),
    ),
    KnownMistake(
        "no-tail",
        "your bound ends with the work of one device: after this device, the devices before it still run a backward",
        _part_of_work(head=True, tail=False, memory=True),
    ),
    KnownMistake(
        "no-head",
        "your bound starts with the work of one device: before this device starts, the devices before it run a forward",
        _part_of_work(head=False, tail=True, memory=True),
    ),
    KnownMistake(
        "one-microbatch",
        "your bound is the chain of one microbatch: each device also runs all other microbatches, so count its whole work",
        lambda microbatches, cap, *times: _chain_of_one(*times),
    ),
    KnownMistake(
        "no-memory",
        "your bound does not use `cap`: when device 0 is full, a microbatch can enter only after another microbatch has left",
        _without_memory,
    ),
    KnownMistake(
        "memory-alone",
        "your bound counts only how often device 0 is full: the work of each device gives a bound, too",
        _memory_alone,
    ),
    KnownMistake(
        "no-latency", "your bound does not use `C`: messages take time before a device starts and after it ends", _without_latency
    ),
    KnownMistake(
        "as-full-as-possible",
        "your bound has device 0 full as often as possible: a smaller k leaves more microbatches, and can give a higher bound",
        _as_full_as_possible,
    ),
    KnownMistake(
        "busiest-device",
        "your bound is that of the busiest device: another device can give a higher bound, because it starts later or more work follows",
        _busiest_device_alone,
    ),
    KnownMistake(
        "all-slow",
        "your bound is the time of 1F1B if all devices are as slow as the slowest: the other devices fill and drain faster",
        _slowest_everywhere,
    ),
    KnownMistake(
        "counted-twice",
        "your bound counts microbatches twice: when device 0 has been full k times, only M - k x cap microbatches are left",
        _longest_rest,
        {"memory-in-gb": f"if device 0 has been full k times, M - k x cap / {GB_EACH:g} microbatches are left: count no others"},
    ),
    KnownMistake(
        "once-too-often",
        "in your bound device 0 is full once too often: some microbatches must be left, so k x cap is less than M",
        _once_too_often,
        {"memory-in-gb": f"in your bound device 0 is full once too often: k x cap / {GB_EACH:g} must be less than M"},
    ),
)


def _work(case: tuple[Any, ...]) -> list[float]:
    """Return the work of each device in ms: the time of all its forwards and backwards."""
    microbatches, _, forward, backward, _ = case
    return [microbatches * (one + other) for one, other in zip(forward, backward, strict=True)]


def _forward_and_backward(backward: Times, case: tuple[Any, ...]) -> list[float]:
    return [one + other for one, other in zip(case[2], backward, strict=True)]


def _backward_alone(both: Times, case: tuple[Any, ...]) -> list[float]:
    return [each - one for each, one in zip(both, case[2], strict=True)]


PAIRS = one_way(lambda backward: [(time - time // 3, time // 3) for time in backward])
IDLE_TIME = each_number(
    lambda bound, case: len(case[2]) * bound - sum(_work(case)),
    lambda idle, case: (idle + sum(_work(case))) / len(case[2]),
)
BEYOND_WORK = each_number(lambda bound, case: bound - max(_work(case)), lambda beyond, case: beyond + max(_work(case)))

EXAMPLES = (Example((3, 2, [12, 8], [20, 28], 1), 142),)
TWISTS = (
    Twist(
        "memory-in-gb",
        f"an activation takes {GB_EACH:g} GB, and `cap` is the memory of each device in GB",
        given={1: scaled(GB_EACH)},
    ),
    Twist(
        "running-sums",
        "`F[d]` is the time of the forwards of the devices 0 to d together, and `B[d]` that of their backwards",
        given={2: RUNNING_SUMS, 3: RUNNING_SUMS},
        about="work",
    ),
    Twist(
        "idle-time",
        "the function returns the least idle time of all devices together, if the step is as short as the bound",
        result=IDLE_TIME,
        about="work",
    ),
    Twist(
        "lists-from-the-last",
        "the lists `F` and `B` begin with the last device",
        given={2: REVERSED, 3: REVERSED},
        about="work",
    ),
    Twist(
        "round-trip",
        "`C` is the latency of two messages together, one to the next device and one back",
        given={4: scaled(2)},
    ),
    Twist(
        "pairs",
        "`B[d]` is a pair of times, an input gradient and a weight gradient, and a full backward of device d takes both",
        given={3: PAIRS},
        about="work",
    ),
    Twist(
        "beyond-the-work",
        "the function returns by how much the bound is longer than the work of the busiest device",
        result=BEYOND_WORK,
        about="work",
    ),
    Twist(
        "both-together",
        "`B[d]` is the time of a forward and a full backward of device d together",
        given={3: Map(_forward_and_backward, _backward_alone)},
        about="work",
    ),
)
