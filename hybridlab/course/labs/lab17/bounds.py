"""The build of lab 17, a lower bound of the makespan: its cases, what it is compared with, its known mistakes and its twists."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from hybridlab.automatic import schedule_for
from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import plain_values, require_number
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.maps import REVERSED, RUNNING_SUMS, Map, each_number, one_way, scaled
from hybridlab.course.checking.twists import Example, Twist

Times = Sequence[float]  # of each device, in ms

WITHIN = 1e-6  # ms
GB_EACH = 0.5  # of an activation, under a twist
SIZES = ((1, 3, 1), (2, 1, 1), (2, 3, 3), (3, 2, 1), (2, 4, 1), (3, 4, 2), (3, 7, 3), (4, 6, 2), (4, 8, 8), (5, 9, 3), (6, 12, 4))
RANDOM_CASES = 12


def steps_to_bound(rng: np.random.Generator) -> Iterator[Case]:
    """Yield sizes with equal devices from the smallest up, then unequal devices with a latency."""
    yield _step_case(1, 1, [3], [5], 0)
    yield _step_case(3, 2, [10, 10], [20, 20], 0)
    yield _step_case(4, 2, [10, 10, 10], [20, 20, 20], 0)
    yield _step_case(3, 3, [12, 8, 10], [20, 28, 18], 2)  # with equal devices the results of several mistakes are equal
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
    """Return the bound that the function has returned, in ms."""
    return require_number(plain_values(result), "a bound in ms", "210")


def judge_bound(answer: float, microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> Feedback:
    """Judge a bound: no known order is shorter, and the bound is at least as high as the highest of those in the text."""
    reached = _known_makespan(microbatches, cap, tuple(forward), tuple(backward), latency)
    if answer > reached + WITHIN:
        return wrong("above-an-order", f"your bound is {answer:g} ms, but an order within this memory takes {reached:g} ms")
    highest, device, full = max(_terms(microbatches, cap, forward, backward, latency))
    if answer < highest - WITHIN:
        low = f"your bound is {answer:g} ms, but no order is shorter than {highest:g} ms"
        if full:
            times = "once" if full == 1 else f"{full} times"
            return wrong("too-low-in-this-memory", f"{low}: device 0 is full {times} before the last microbatches can enter")
        return wrong("too-low", f"{low}: look at device {device}, from the start of the step to its end")
    return right()


def _terms(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> Iterator[tuple[float, int, int]]:
    """Yield each bound of the text, with its device and with the number of times that device 0 must have been full."""
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
    """Return the makespan of an order within the memory that a quick search finds, in ms."""
    costs = Costs(forward=forward, backward=backward, p2p=latency)
    return schedule_for(costs, microbatches, memory=cap, devices=len(forward), split=False, seconds=0).makespan


def _without_memory(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    return max(term for term, _, full in _terms(microbatches, cap, forward, backward, latency) if not full)


def _memory_alone(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    """Return the time in which device 0 is full again and again, and nothing else."""
    return -(-microbatches // cap) * _chain_of_one(forward, backward, latency)


def _chain_of_one(forward: Times, backward: Times, latency: float) -> float:
    return sum(forward) + sum(backward) + 2 * (len(forward) - 1) * latency


def _slowest_everywhere(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    return (microbatches + len(forward) - 1) * (max(forward) + max(backward)) + 2 * (len(forward) - 1) * latency


def _part_of_work(head: bool, tail: bool) -> Callable[..., float]:
    """Return the bound of a program that leaves out the time before a device starts, or the time after it ends."""

    def bound(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
        return max(
            head * (sum(forward[:device]) + latency * device)
            + microbatches * (forward[device] + backward[device])
            + tail * (sum(backward[:device]) + latency * device)
            for device in range(len(forward))
        )

    return bound


def _without_latency(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    return max(term for term, _, _ in _terms(microbatches, cap, forward, backward, 0))


def _busiest_device_alone(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    busiest = max(range(len(forward)), key=lambda device: forward[device] + backward[device])
    return max(term for term, device, _ in _terms(microbatches, cap, forward, backward, latency) if device == busiest)


def _longest_rest(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    """Return the bound of a program that never asks how many microbatches are left: all of them, after the last time it was full."""
    full = (microbatches - 1) // cap
    return full * _chain_of_one(forward, backward, latency) + _without_memory(microbatches, cap, forward, backward, latency)


def _once_too_often(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    """Return the bound of a program in which device 0 can be full before no microbatch at all."""
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
        "your bound is the work of the busiest device: when does it start at the earliest, and what is left to do after its last backward?",
        _part_of_work(head=False, tail=False),
    ),
    KnownMistake(
        "no-tail", "a device that is not device 0 has ended, but the step has not: other backwards follow", _part_of_work(True, False)
    ),
    KnownMistake("no-head", "a device that is not device 0 cannot start at once: other forwards come first", _part_of_work(False, True)),
    KnownMistake(
        "one-microbatch",
        "your bound is the chain of one microbatch: each device has the work of all microbatches",
        lambda microbatches, cap, *times: _chain_of_one(*times),
    ),
    KnownMistake(
        "no-memory",
        "this does not use `cap`: when device 0 is full, a microbatch can only enter when another one has left",
        _without_memory,
    ),
    KnownMistake(
        "memory-alone",
        "your bound is the time in which device 0 is full again and again: the work of each device gives a bound, too",
        _memory_alone,
    ),
    KnownMistake("no-latency", "this does not use `C`: messages take time before a device starts and after it ends", _without_latency),
    KnownMistake(
        "as-full-as-possible",
        "this lets device 0 be full as often as it can: a smaller k leaves more microbatches, and can give a higher bound",
        _as_full_as_possible,
    ),
    KnownMistake(
        "busiest-device",
        "this looks at the busiest device alone: another one can have a later start and more to follow",
        _busiest_device_alone,
    ),
    KnownMistake(
        "all-slow",
        "your bound is the time of 1F1B if all devices are as slow as the slowest: faster devices fill and drain sooner",
        _slowest_everywhere,
    ),
    KnownMistake(
        "counted-twice",
        "when device 0 has been full k times, k x cap microbatches have entered: only the others are left",
        _longest_rest,
        {"memory-in-gb": f"when device 0 has been full k times, k x cap / {GB_EACH:g} microbatches have entered: only the others are left"},
    ),
    KnownMistake(
        "once-too-often",
        "device 0 must have been full only before microbatches that are left: k x cap is less than M",
        _once_too_often,
        {"memory-in-gb": f"device 0 must have been full only before microbatches that are left: k x cap / {GB_EACH:g} is less than M"},
    ),
)


def _work(case: tuple[Any, ...]) -> list[float]:
    """Return the work of each device in ms."""
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
