"""Lab 17's build with each twist, as a student writes it from the clause."""

from collections.abc import Callable, Sequence
from typing import Any

Times = Sequence[float]


def bound(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> float:
    """The largest bound, found from the devices: the work that is left after device 0 was full k times, and the way to it and back."""
    way = [0.0]
    for one, other in zip(forward[:-1], backward[:-1], strict=True):
        way.append(way[-1] + one + other + 2 * latency)
    chain = way[-1] + forward[-1] + backward[-1]
    work = [one + other for one, other in zip(forward, backward, strict=True)]
    highest, left, waited = 0.0, microbatches, 0.0
    while left > 0:
        highest = max(highest, waited + max(there + left * each for there, each in zip(way, work, strict=True)))
        left, waited = left - cap, waited + chain
    return highest


def steps(sums: Times) -> list[float]:
    return [after - before for before, after in zip([0, *sums[:-1]], sums, strict=True)]


def in_gb(microbatches: int, cap: float, *times: Any) -> Any:
    return bound(microbatches, int(cap * 2), *times)


def running_sums(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> Any:
    return bound(microbatches, cap, steps(forward), steps(backward), latency)


def idle_time(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> Any:
    step = bound(microbatches, cap, forward, backward, latency)
    return sum(step - microbatches * (one + other) for one, other in zip(forward, backward, strict=True))


def from_the_last(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> Any:
    return bound(microbatches, cap, forward[::-1], backward[::-1], latency)


def pairs(microbatches: int, cap: int, forward: Times, backward: Sequence[Times], latency: float) -> Any:
    return bound(microbatches, cap, forward, [sum(pair) for pair in backward], latency)


def beyond_the_work(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> Any:
    busiest = microbatches * max(one + other for one, other in zip(forward, backward, strict=True))
    return bound(microbatches, cap, forward, backward, latency) - busiest


def both_together(microbatches: int, cap: int, forward: Times, both: Times, latency: float) -> Any:
    return bound(microbatches, cap, forward, [each - one for each, one in zip(both, forward, strict=True)], latency)


def in_gb_idle_time(microbatches: int, cap: float, *times: Any) -> Any:
    return idle_time(microbatches, int(cap * 2), *times)


def from_the_last_beyond(microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> Any:
    return beyond_the_work(microbatches, cap, forward[::-1], backward[::-1], latency)


def in_gb_running_sums(microbatches: int, cap: float, *times: Any) -> Any:
    return running_sums(microbatches, int(cap * 2), *times)


SOLUTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("lab17.t5", "memory-in-gb"): in_gb,
    ("lab17.t5", "running-sums"): running_sums,
    ("lab17.t5", "idle-time"): idle_time,
    ("lab17.t5", "lists-from-the-last"): from_the_last,
    ("lab17.t5", "pairs"): pairs,
    ("lab17.t5", "beyond-the-work"): beyond_the_work,
    ("lab17.t5", "both-together"): both_together,
    ("lab17.t5", "memory-in-gb-and-idle-time"): in_gb_idle_time,
    ("lab17.t5", "lists-from-the-last-and-beyond-the-work"): from_the_last_beyond,
    ("lab17.t5", "memory-in-gb-and-running-sums"): in_gb_running_sums,
}
