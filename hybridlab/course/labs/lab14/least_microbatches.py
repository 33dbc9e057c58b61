"""The build ``least_microbatches`` of lab 14: cases, judge, known mistakes, examples and twists."""

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

WITHIN = 1e-6  # ms: smaller differences come from rounding
LARGEST = 10_000  # microbatches in an answer
Compared = Callable[[int, int, float, float, float], tuple[float, float]]  # devices, microbatches and times: both steps in ms


@cache
def step_of(name: str, devices: int, microbatches: int, forward: float, backward: float, latency: float) -> float:
    """Return the makespan of a schedule in ms."""
    return float(simulate(build(name, devices, microbatches), Costs(forward=forward, backward=backward, p2p=latency)).makespan)


def both_steps(devices: int, microbatches: int, forward: float, backward: float, latency: float) -> tuple[float, float]:
    """Return the steps of GPipe, which runs each forward again before its backward, and of 1F1B, which does not, in ms.

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
    """Return the first of these numbers of microbatches at which the first step is not the longer one; else 0."""
    return next((count for count in counts if _reached(compared(devices, count, forward, backward, latency))), 0)


def sizes_and_times(rng: np.random.Generator) -> Iterator[Case]:
    """Yield sizes and times, the smallest first: with an answer and without one, with equal steps, with one device, without latency."""
    fixed: list[tuple[int, float, float, float, int]] = [(1, 1, 2, 3, 4), (2, 1, 2, 0, 6), (2, 1, 2, 3, 8), (2, 2, 3, 2, 8)]
    fixed += [(2, 2, 2, 4, 2), (3, 1, 1, 2, 8), (3, 4, 6, 4, 20), (4, 10, 20, 10, 9), (5, 1, 2, 10, 40)]
    drawn: list[tuple[int, float, float, float, int]] = []
    for _ in range(16):
        devices = int(rng.integers(2, 7))
        forward, backward = (float(each) / 2 for each in rng.integers(2, 9, 2))
        pays_from = devices * forward / (2 * (devices - 1))  # ms; with a longer latency GPipe catches up
        latency = float(np.ceil(2 * pays_from * rng.uniform(0.8, 3)) / 2)
        drawn.append((devices, forward, backward, latency, int(rng.integers(12, 36))))
    for devices, forward, backward, latency, most in fixed + sorted(drawn, key=lambda each: each[0] * each[-1]):
        times = f"forward {forward:g}, backward {backward:g} and latency {latency:g} ms"
        words = f"{counted(devices, 'device')}, {times}, at most {counted(most, 'microbatch')}"
        yield Case((devices, float(forward), float(backward), float(latency), most), words)


def read_count(result: Any) -> int:
    """Return a number of microbatches, or 0 for none."""
    return require_count(plain_values(result), "a number of microbatches", "7", least=0, most=LARGEST)


def judge_least(count: int, devices: int, forward: float, backward: float, latency: float, most: int) -> Feedback:
    """Judge the least number of microbatches at which a GPipe that recomputes is as fast as 1F1B. 0 stands for none up to ``most``."""
    least = _least_up_to(devices, forward, backward, latency, most)
    if count == least:
        return right()
    if count == 0:
        return wrong("none-found", f"0 means that there is none, but there is one up to {most}: compare the two steps for each number")
    gpipe, other = both_steps(devices, count, forward, backward, latency)
    takes = f"with {counted(count, 'microbatch')} GPipe takes {gpipe:g} ms and 1F1B takes {other:g} ms"
    if not _reached((gpipe, other)):
        return wrong("gpipe-is-slower", takes)
    if count > most:
        return wrong("beyond-the-most", f"{takes}, but {count} is more than {most}: return 0 if there is none up to {most}")
    return wrong("not-the-least", f"{takes}, but fewer are enough, too")


def _program(
    compared: Compared = both_steps, counts: Callable[[int, int], Iterable[int]] = lambda devices, most: range(1, most + 1)
) -> Callable[..., int]:
    """Return a program that compares two other steps, or that tries other numbers of microbatches."""

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
    """Return the number from which on GPipe stays as fast up to ``most``."""
    reached = [_reached(both_steps(devices, count, forward, backward, latency)) for count in range(1, most + 1)]
    slower = most - next((place for place, each in enumerate(reversed(reached)) if not each), most)
    return slower + 1 if slower < most else 0


def _strictly(devices: int, forward: float, backward: float, latency: float, most: int) -> int:
    shorter = (count for count in range(1, most + 1) if np.subtract(*both_steps(devices, count, forward, backward, latency)) < -WITHIN)
    return next(shorter, 0)


MISTAKES = (
    KnownMistake(
        "most-left-out",
        "you leave out `most` itself: range(1, most) ends with most - 1",
        _program(counts=lambda devices, most: range(1, most)),
    ),
    KnownMistake(
        "strictly-faster",
        "you ask for a GPipe that is faster than 1F1B: a step that is just as long is enough",
        _strictly,
        under={"last-slower": "you ask for a GPipe that is not faster than 1F1B: a step that is just as long is not slower"},
    ),
    KnownMistake(
        "multiples-of-k",
        "you try multiples of K alone: other numbers of microbatches count, too",
        _program(counts=lambda devices, most: range(devices, most + 1, devices)),
    ),
    KnownMistake(
        "gpipe-never-waits",
        "your GPipe waits for no message: its fill and drain wait for 2(K-1) of them",
        _program(
            lambda devices, count, forward, backward, latency: (
                both_steps(devices, count, forward, backward, 0.0)[0],
                both_steps(devices, count, forward, backward, latency)[1],
            )
        ),
    ),
    KnownMistake(
        "same-recomputation",
        "your GPipe and your 1F1B recompute alike, so the steps are equal with 1 microbatch: only GPipe runs its forwards again",
        _program(
            lambda devices, count, forward, backward, latency: (
                step_of("gpipe", devices, count, forward, backward, latency),
                both_steps(devices, count, forward, backward, latency)[1],
            )
        ),
    ),
    KnownMistake(
        "rate-alone",
        "this takes M times L/A for the step of 1F1B: add fill and drain",
        _program(_by_rate_alone),
    ),
    KnownMistake(
        "from-k", "you begin at K microbatches: fewer count, too", _program(counts=lambda devices, most: range(devices, most + 1))
    ),
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
        "this is the last number at which 1F1B is faster: the answer is one more",
        _last_before,
        under={"last-slower": "this is one less than the last number with which GPipe is still slower"},
    ),
    KnownMistake(
        "for-good",
        "this is the number from which on GPipe stays as fast: the first number counts, even if 1F1B is faster again with one more",
        _for_good,
        under={
            "last-slower": "this is the last number of all with which GPipe is slower: GPipe must be slower with each number before it, too"
        },
    ),
)


EXAMPLES = (Example((4, 10, 20, 10, 40), 9), Example((4, 10, 20, 5, 40), 0))

OF_ALL_DEVICES = each_number(lambda time, case: time * case[0], lambda time, case: time / case[0])


def _none_is_more(count: float, case: tuple[Any, ...]) -> float:
    """Exchange 0 and most + 1."""
    more: float = case[-1] + 1
    return {0: more, more: 0}.get(count, count)


# The difference of the two steps does not depend on the backward, so half of the recomputation is half of the forward. Rows about the times
# are not combined: with half of the recomputation, and two messages in one latency, the answer is that of the text.
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
