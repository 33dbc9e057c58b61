"""The twists of lab 6's build: the time of a ring, and the times in the result, are given in another way."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from hybridlab.course.labs.lab06.overlap import Rows, read_rings
from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import in_words_of_the_page, together

Rename = Callable[[float, float], tuple[float, float]]  # the two numbers of a ring -> its start and end


def _renaming(
    time_of: Callable[[Rows, float], float] = lambda rows, ring_time: ring_time,
    times_of: Callable[[Rows, float], Rename] = lambda rows, ring_time: lambda start, end: (start, end),
) -> Callable[[Function], Function]:
    """Return a ``standard`` with functions for the ring time that the function gets, and for the times that it returns."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def overlapped_rings(rows: Rows, ring_time: float) -> Any:
            rename = times_of(rows, ring_time)
            result = function(rows, time_of(rows, ring_time))
            return in_words_of_the_page(result, read_rings, lambda rings: {stage: rename(*times) for stage, times in rings.items()})

        return overlapped_rings

    return standard


def _one_step(rows: Rows, ring_time: float) -> float:
    replicas = sum(row["op"] == "0F0" for row in rows)
    return ring_time / (2 * (replicas - 1)) if replicas > 1 else 0.0


def _after_the_pipelines(rows: Rows, ring_time: float) -> Rename:
    last = max(row["end"] for row in rows)
    return lambda start, end: (start + last, end + last)


START_AND_LENGTH = Twist(
    "start-and-length",
    "the function returns (start, length) for each stage: the start of its ring, and its length",
    _renaming(times_of=lambda rows, ring_time: lambda start, length: (start, start + length)),
)
ONE_HALF = Twist(
    "one-half",
    "ring_time is the time of the reduce-scatter alone; the all-gather takes as long again",
    _renaming(lambda rows, ring_time: ring_time / 2),
)
ONE_STEP = Twist(
    "one-step",
    "ring_time is the time of one step of the ring, which has 2(D-1) steps for D replicas",
    _renaming(_one_step),
)
LINK_RESTS = Twist(
    "link-rests",
    "after each ring its ranks pause for as long as it took, before their next ring; the end is without the pause",
    _renaming(lambda rows, ring_time: ring_time / 2, lambda rows, ring_time: lambda start, end: (start, end + ring_time / 2)),
)
AFTER_THE_PIPELINES = Twist(
    "after-the-pipelines",
    "start and end are counted from the end of the last operation of all ranks, and can be negative",
    _renaming(times_of=_after_the_pipelines),
)

OVERLAP_TWISTS = (
    ONE_HALF,
    together(LINK_RESTS, START_AND_LENGTH),
    AFTER_THE_PIPELINES,
    together(ONE_STEP, START_AND_LENGTH),
    LINK_RESTS,
    together(ONE_HALF, AFTER_THE_PIPELINES),
    ONE_STEP,
    START_AND_LENGTH,
    together(ONE_STEP, AFTER_THE_PIPELINES),
)
