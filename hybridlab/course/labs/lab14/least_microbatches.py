"""The coding task ("build") ``least_microbatches`` of lab 14: cases, judge, known mistakes, examples and changed tasks ("twists").

The student's function returns the least number of microbatches with which GPipe with recomputation is as fast as 1F1B.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import plain_values, require_count
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.maps import each_number, scaled, shifted
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.schedules import build
from hybridlab.simulation import simulate

WITHIN = 1e-6  # ms; smaller differences come from rounding
LARGEST = 10_000  # the largest number of microbatches that an answer may have
# A function of devices, microbatches, forward, backward and latency. It returns the steps of GPipe and of 1F1B in ms.
Compared = Callable[[int, int, float, float, float], tuple[float, float]]


@cache
def step_of(name: str, devices: int, microbatches: int, forward: float, backward: float, latency: float) -> float:
    """Return the makespan of the named schedule in ms."""
    return float(simulate(build(name, devices, microbatches), Costs(forward=forward, backward=backward, p2p=latency)).makespan)


def both_steps(devices: int, microbatches: int, forward: float, backward: float, latency: float) -> tuple[float, float]:
    """Return the steps of GPipe with recomputation and of 1F1B without recomputation, in ms.

    With recomputation, each backward takes the time of a forward longer.

    >>> both_steps(2, 3, 1, 2, 0)
    (16.0, 12.0)
    """
    recomputing = step_of("gpipe", devices, microbatches, forward, forward + backward, latency)
    return recomputing, step_of("1f1b", devices, microbatches, forward, backward, latency)


def _reached(steps: tuple[float, float]) -> bool:
    return steps[0] <= steps[1] + WITHIN


def _least_reached(
    devices: int, forward: float, backward: float, latency: float, counts: Iterable[int], compared: Compared = both_steps
) -> int:
    """Return the first number in ``counts`` with which GPipe is as fast as 1F1B. Return 0 if GPipe is slower with each number."""
    return next((count for count in counts if _reached(compared(devices, count, forward, backward, latency))), 0)


def sizes_and_times(rng: np.random.Generator) -> Iterator[Case]:
    """Yield cases of sizes and times, small sizes first.

    Some cases have a number as their answer, and in others the answer is 0. Some have equal steps, one device or no latency.
    """
    fixed: list[tuple[int, float, float, float, int]] = [(1, 1, 2, 3, 4), (2, 1, 2, 0, 6), (2, 1, 2, 3, 8), (2, 2, 3, 2, 8)]
    fixed += [(2, 2, 2, 4, 2), (3, 1, 1, 2, 8), (3, 4, 6, 4, 20), (4, 10, 20, 10, 9), (5, 1, 2, 10, 40)]
    drawn: list[tuple[int, float, float, float, int]] = []
    for _ in range(16):
        devices = int(rng.integers(2, 7))
        forward, backward = (float(each) / 2 for each in rng.integers(2, 9, 2))
        pays_from = (
            devices * forward / (2 * (devices - 1))
        )  # ms; if the latency is longer, GPipe reaches 1F1B at some number of microbatches
        latency = float(np.ceil(2 * pays_from * rng.uniform(0.8, 3)) / 2)
        drawn.append((devices, forward, backward, latency, int(rng.integers(12, 36))))
    for devices, forward, backward, latency, most in fixed + sorted(drawn, key=lambda each: each[0] * each[-1]):
        times = f"forward {forward:g}, backward {backward:g} and latency {latency:g} ms"
        words = f"{counted(devices, 'device')}, {times}, at most {counted(most, 'microbatch')}"
        yield Case((devices, float(forward), float(backward), float(latency), most), words)


def read_count(result: Any) -> int:
    """Return the number of microbatches that the student's function returned. The student returns 0 if no number is enough."""
    return require_count(plain_values(result), "a number of microbatches", "7", least=0, most=LARGEST)


def judge_least(count: int, devices: int, forward: float, backward: float, latency: float, most: int) -> Feedback:
    """Judge the least number of microbatches with which GPipe with recomputation is as fast as 1F1B.

    A ``count`` of 0 means that no number up to ``most`` is enough.
    """
    least = _least_up_to(devices, forward, backward, latency, most)
    if count == least:
        return right()
    if count == 0:
        return wrong("none-found", f"you return 0, but there is such a number up to {most}: compare the two steps for each number")
    gpipe, other = both_steps(devices, count, forward, backward, latency)
    takes = f"with {counted(count, 'microbatch')} GPipe takes {gpipe:g} ms and 1F1B takes {other:g} ms"
    if not _reached((gpipe, other)):
        return wrong("gpipe-is-slower", takes)
    if count > most:
        return wrong("beyond-the-most", f"{takes}, but {count} is more than {most}: return 0 if no number up to {most} is enough")
    return wrong("not-the-least", f"{takes}, but a smaller number of microbatches is enough, too")


def _program(
    compared: Compared = both_steps, counts: Callable[[int, int], Iterable[int]] = lambda devices, most: range(1, most + 1)
) -> Callable[..., int]:
    """Return a program with a known mistake: it compares the wrong steps (``compared``) or tries the wrong numbers (``counts``)."""

    def result(devices: int, forward: float, backward: float, latency: float, most: int) -> int:
        return _least_reached(devices, forward, backward, latency, counts(devices, most), compared)

    return result


def _by_rate_alone(devices: int, microbatches: int, forward: float, backward: float, latency: float) -> tuple[float, float]:
    trip = devices * (forward + backward) + 2 * (devices - 1) * latency
    return both_steps(devices, microbatches, forward, backward, latency)[0], microbatches / devices * trip


def _least_up_to(devices: int, forward: float, backward: float, latency: float, most: int) -> int:
    return _least_reached(devices, forward, backward, latency, range(1, most + 1))


def _last_before(devices: int, forward: float, backward: float, latency: float, most: int) -> int:
    return max(_least_up_to(devices, forward, backward, latency, most) - 1, 0)


def _for_good(devices: int, forward: float, backward: float, latency: float, most: int) -> int:
    """Return the number from which GPipe is always as fast as 1F1B, up to ``most``. Return 0 if GPipe is slower with ``most``."""
    reached = [_reached(both_steps(devices, count, forward, backward, latency)) for count in range(1, most + 1)]
    slower = most - next((place for place, each in enumerate(reversed(reached)) if not each), most)
    return slower + 1 if slower < most else 0


def _strictly(devices: int, forward: float, backward: float, latency: float, most: int) -> int:
    shorter = (count for count in range(1, most + 1) if np.subtract(*both_steps(devices, count, forward, backward, latency)) < -WITHIN)
    return next(shorter, 0)


MISTAKES = (
    KnownMistake(
        "most-left-out",
        "you do not try `most` itself: range(1, most) ends with most - 1",
        _program(counts=lambda devices, most: range(1, most)),
    ),
    KnownMistake(
        "strictly-faster",
        "your function finds where GPipe is faster than 1F1B: a step that is just as long is enough",
        _strictly,
        under={"last-slower": "your function finds where GPipe is not faster than 1F1B: a step that is just as long is not slower"},
    ),
    KnownMistake(
        "multiples-of-k",
        "you try only multiples of K: try all numbers of microbatches",
        _program(counts=lambda devices, most: range(devices, most + 1, devices)),
    ),
    KnownMistake(
        "gpipe-never-waits",
        "in your function GPipe waits for no message: count the 2(K-1) messages for which it waits in fill and drain",
        _program(
            lambda devices, count, forward, backward, latency: (
                both_steps(devices, count, forward, backward, 0.0)[0],
                both_steps(devices, count, forward, backward, latency)[1],
            )
        ),
    ),
    KnownMistake(
        "same-recomputation",
        "you give GPipe and 1F1B the same backward, so their steps are equal with 1 microbatch: only GPipe runs its forwards again",
        _program(
            lambda devices, count, forward, backward, latency: (
                step_of("gpipe", devices, count, forward, backward, latency),
                both_steps(devices, count, forward, backward, latency)[1],
            )
        ),
    ),
    KnownMistake(
        "rate-alone",
        "your step of 1F1B is M times L/A: add fill and drain",
        _program(_by_rate_alone),
    ),
    KnownMistake("from-k", "you begin at K microbatches: begin at 1", _program(counts=lambda devices, most: range(devices, most + 1))),
    KnownMistake(
        "most-for-none",
        "you return `most` where there is no such number: return 0",
        lambda *given: _least_up_to(*given) or given[-1],
        under={
            "last-slower": "you return `most` - 1 where GPipe is slower with each number up to `most`: return `most`",
            "more-than-most": "you return `most` where there is no such number: return `most` + 1",
        },
    ),
    KnownMistake(
        "last-before",
        "your answer is the last number with which 1F1B is faster: return the next number",
        _last_before,
        under={"last-slower": "your answer is one less than the last number with which GPipe is still slower: return that last number"},
    ),
    KnownMistake(
        "for-good",
        "from your number on GPipe is always as fast: return the first number, even if 1F1B is faster again with the next one",
        _for_good,
        under={"last-slower": "your number is the last one with which GPipe is slower: GPipe must be slower with each smaller number, too"},
    ),
)


EXAMPLES = (Example((4, 10, 20, 10, 40), 9), Example((4, 10, 20, 5, 40), 0))

OF_ALL_DEVICES = each_number(lambda time, case: time * case[0], lambda time, case: time / case[0])


def _none_is_more(count: float, case: tuple[Any, ...]) -> float:
    """Return most + 1 for 0, 0 for most + 1, and every other number unchanged."""
    more: float = case[-1] + 1
    return {0: more, more: 0}.get(count, count)


# The first twist scales the forward, because the difference of the two steps does not depend on the backward. Twists about the times are
# not combined with each other: half of the recomputation, with a latency for two messages, has the same answer as the lab's task.
TWISTS = (
    Twist(
        "half-recomputed",
        "in GPipe only half of each forward runs again: its backward takes F/2 + B",
        given={1: scaled(2)},
        about="times",
    ),
    Twist(
        "four-links", "a message passes four links, one after the other, and each takes `latency`", given={3: scaled(0.25)}, about="times"
    ),
    Twist("there-and-back", "`latency` is the time of two messages, one there and one back", given={3: scaled(2)}, about="times"),
    Twist(
        "whole-model",
        "`forward` and `backward` are the times of the whole model, which the devices share equally",
        given={1: OF_ALL_DEVICES, 2: OF_ALL_DEVICES},
        about="devices",
    ),
    Twist(
        "links",
        "the argument `devices` is the number of links between neighbours: the pipeline has one device more",
        given={0: shifted(-1)},
        about="devices",
    ),
    Twist(
        "last-slower",
        "the function returns the largest M up to `most` such that GPipe is slower than 1F1B with 1, 2 and so on up to M microbatches",
        result=each_number(
            lambda count, case: count - 1 if count else case[-1],
            lambda count, case: 0 if count == case[-1] else count + 1,
        ),
        about="result",
    ),
    Twist(
        "more-than-most",
        "the function returns `most` + 1, and not 0, if there is no such number",
        result=each_number(_none_is_more, _none_is_more),
        about="result",
    ),
)
