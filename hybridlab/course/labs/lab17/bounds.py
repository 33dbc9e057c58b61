"""The build of lab 17, a lower bound of the makespan: its cases, what it is compared with, its known mistakes and its twists."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, wraps
from itertools import accumulate
from typing import Any

import numpy as np

from hybridlab.automatic import schedule_for
from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import plain_values, require_number
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import in_words_of_the_page, show_changes, together

Times = Sequence[float]  # of each device, in ms

WITHIN = 1e-6  # ms
GB_EACH = 0.5  # of one activation, under a twist
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
    made = _known_makespan(microbatches, cap, tuple(forward), tuple(backward), latency)
    if answer > made + WITHIN:
        return wrong("above-an-order", f"your bound is {answer:g} ms, but an order within this memory takes {made:g} ms")
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


BOUND_MISTAKES = (
    KnownMistake(
        "work-alone",
        "this is the work of the busiest device: when does it start at the earliest, and what is left to do after its last backward?",
        _part_of_work(head=False, tail=False),
    ),
    KnownMistake(
        "no-tail", "a device that is not device 0 has ended, but the step has not: other backwards follow", _part_of_work(True, False)
    ),
    KnownMistake("no-head", "a device that is not device 0 cannot start at once: other forwards come first", _part_of_work(False, True)),
    KnownMistake(
        "one-microbatch",
        "this is the chain of one microbatch: each device has the work of all microbatches",
        lambda microbatches, cap, *times: _chain_of_one(*times),
    ),
    KnownMistake(
        "no-memory",
        "this does not use cap: when device 0 is full, a microbatch can only enter when another one has left",
        _without_memory,
    ),
    KnownMistake(
        "memory-alone",
        "this is the time in which device 0 is full again and again: the work of each device gives a bound, too",
        _memory_alone,
    ),
    KnownMistake("no-latency", "this does not use C: messages take time before a device starts and after it ends", _without_latency),
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
        "this is the time of 1F1B if all devices are as slow as the slowest: faster devices fill and drain sooner",
        _slowest_everywhere,
    ),
    KnownMistake(
        "counted-twice",
        "when device 0 has been full k times, k x cap microbatches have entered: only the others are left",
        _longest_rest,
    ),
    KnownMistake(
        "once-too-often",
        "device 0 must have been full only before microbatches that are left: k x cap is less than M",
        _once_too_often,
    ),
)


def _other_arguments(
    room: Callable[[int], float] = lambda cap: cap,
    forwards: tuple[Callable[[Any], Any], Callable[[Any], Any]] = (list, list),
    backwards: Callable[[Times, Times], tuple[Any, Callable[[Any], Any]]] = lambda forward, backward: (list(backward), list),
    result: Callable[[float, int, Times, Times], float] = lambda bound, *case: bound,
) -> Callable[[Function], Function]:
    """Return a ``standard`` that passes on cap, F and B in another form, and changes the result back.

    Each form of F and B comes with the function that makes the lists of the page from it.
    """

    def standard(function: Function) -> Function:
        @wraps(function)
        def least_time(microbatches: int, cap: int, forward: list[float], backward: list[float], latency: float) -> Any:
            given_forward, forward_back = forwards[0](forward), forwards[1]
            given_backward, backward_back = backwards(forward, backward)
            before = [given_forward[:], given_backward[:]]
            returned = function(microbatches, room(cap), given_forward, given_backward, latency)
            show_changes(forward, given_forward, before[0], forward_back)
            show_changes(backward, given_backward, before[1], backward_back)
            return in_words_of_the_page(returned, read_time, lambda value: result(value, microbatches, forward, backward))

        return least_time

    return standard


def _backward_list(given: Callable[[Times], Any], back: Callable[[Any], Any]) -> Callable[[Times, Times], tuple[Any, Any]]:
    return lambda forward, backward: (given(backward), back)


def _reversed(times: Times) -> list[float]:
    return list(times[::-1])


def _running_sums(times: Times) -> list[float]:
    return list(accumulate(times))


def _differences(sums: Times) -> list[float]:
    return [after - before for before, after in zip([0, *sums], sums, strict=False)]


def _as_pairs(times: Times) -> list[tuple[float, float]]:
    return [(time - time // 3, time // 3) for time in times]


def _from_pairs(pairs: Sequence[tuple[float, float]]) -> list[float]:
    return [input_gradient + weight_gradient for input_gradient, weight_gradient in pairs]


def _both(forward: Times, backward: Times) -> tuple[list[float], Callable[[Any], list[float]]]:
    """Return the times of a forward and a backward together, and what makes the backwards from them."""
    sums = [one + other for one, other in zip(forward, backward, strict=True)]
    return sums, lambda changed: [both - one for both, one in zip(changed, forward, strict=False)]


def _from_idle(idle: float, microbatches: int, forward: Times, backward: Times) -> float:
    return (idle + microbatches * (sum(forward) + sum(backward))) / len(forward)


def _from_fill(beyond: float, microbatches: int, forward: Times, backward: Times) -> float:
    return beyond + microbatches * max(one + other for one, other in zip(forward, backward, strict=True))


IN_GB = Twist(
    "memory-in-gb",
    f"an activation takes {GB_EACH:g} GB, and `cap` is the memory of each device in GB",
    _other_arguments(room=lambda cap: GB_EACH * cap),
)
LAST_FIRST = Twist(
    "lists-from-the-last",
    "the lists `F` and `B` begin with the last device",
    _other_arguments(forwards=(_reversed, _reversed), backwards=_backward_list(_reversed, _reversed)),
)
RUNNING_SUMS = Twist(
    "running-sums",
    "`F[d]` is the time of the forwards of the devices 0 to d together, and `B[d]` that of their backwards",
    _other_arguments(forwards=(_running_sums, _differences), backwards=_backward_list(_running_sums, _differences)),
)
PAIRS = Twist(
    "pairs",
    "`B[d]` is a pair of times, an input gradient and a weight gradient, and a full backward of device d takes both",
    _other_arguments(backwards=_backward_list(_as_pairs, _from_pairs)),
)
BOTH_TOGETHER = Twist(
    "both-together", "`B[d]` is the time of a forward and a full backward of device d together", _other_arguments(backwards=_both)
)
IDLE_TIME = Twist(
    "idle-time",
    "the function returns the least idle time of all devices together, if the step is as short as the bound",
    _other_arguments(result=_from_idle),
)
BEYOND_WORK = Twist(
    "beyond-the-work",
    "the function returns by how much the bound is longer than the work of the busiest device",
    _other_arguments(result=_from_fill),
)

BOUND_TWISTS = (
    IN_GB,
    RUNNING_SUMS,
    IDLE_TIME,
    LAST_FIRST,
    PAIRS,
    BEYOND_WORK,
    BOTH_TOGETHER,
    together(IN_GB, IDLE_TIME),
    together(LAST_FIRST, BEYOND_WORK),
    together(IN_GB, RUNNING_SUMS),
)
