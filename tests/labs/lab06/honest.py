"""Lab 6's build with each twist, as a student writes it from the clause."""

from collections.abc import Callable
from typing import Any

Rows = list[dict[str, Any]]
Rings = dict[int, tuple[float, float]]


def rings_with(rows: Rows, length: float, pause: float = 0.0) -> Rings:
    """The start and the end of rings of this length, each followed by a pause of its link."""
    ready: dict[int, float] = {}
    for row in rows:
        if row["kind"] == "B" or row["kind"] == "W":
            ready[row["stage"]] = max(row["end"], ready.get(row["stage"], 0.0))
    ranks = {stage: {row["device"] for row in rows if row["stage"] == stage} for stage in ready}
    free: dict[int, float] = {}
    rings = {}
    for stage in sorted(ready, key=lambda each: ready[each]):
        start = max([ready[stage], *(free.get(rank, 0.0) for rank in ranks[stage])])
        rings[stage] = start, start + length
        for rank in ranks[stage]:
            free[rank] = start + length + pause
    return rings


def with_lengths(rings: Rings) -> Rings:
    return {stage: (start, end - start) for stage, (start, end) in rings.items()}


def after_the_last(rings: Rings, rows: Rows) -> Rings:
    last = max(row["end"] for row in rows)
    return {stage: (start - last, end - last) for stage, (start, end) in rings.items()}


def from_one_step(rows: Rows, ring_time: float) -> float:
    replicas = len({row["device"] for row in rows if row["stage"] == 0})
    return 2 * (replicas - 1) * ring_time


def one_half(rows: Rows, ring_time: float) -> Any:
    return rings_with(rows, 2 * ring_time)


def rests_start_and_length(rows: Rows, ring_time: float) -> Any:
    return with_lengths(rings_with(rows, ring_time, pause=ring_time))


def after_the_pipelines(rows: Rows, ring_time: float) -> Any:
    return after_the_last(rings_with(rows, ring_time), rows)


def one_step_start_and_length(rows: Rows, ring_time: float) -> Any:
    return with_lengths(rings_with(rows, from_one_step(rows, ring_time)))


def rests(rows: Rows, ring_time: float) -> Any:
    return rings_with(rows, ring_time, pause=ring_time)


def one_half_after_the_pipelines(rows: Rows, ring_time: float) -> Any:
    return after_the_last(rings_with(rows, 2 * ring_time), rows)


def one_step(rows: Rows, ring_time: float) -> Any:
    return rings_with(rows, from_one_step(rows, ring_time))


def start_and_length(rows: Rows, ring_time: float) -> Any:
    return {stage: [start, ring_time] for stage, (start, _) in rings_with(rows, ring_time).items()}


def one_step_after_the_pipelines(rows: Rows, ring_time: float) -> Any:
    return after_the_last(rings_with(rows, from_one_step(rows, ring_time)), rows)


SOLUTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("lab06.t5", "one-half"): one_half,
    ("lab06.t5", "link-rests-and-start-and-length"): rests_start_and_length,
    ("lab06.t5", "after-the-pipelines"): after_the_pipelines,
    ("lab06.t5", "one-step-and-start-and-length"): one_step_start_and_length,
    ("lab06.t5", "link-rests"): rests,
    ("lab06.t5", "one-half-and-after-the-pipelines"): one_half_after_the_pipelines,
    ("lab06.t5", "one-step"): one_step,
    ("lab06.t5", "start-and-length"): start_and_length,
    ("lab06.t5", "one-step-and-after-the-pipelines"): one_step_after_the_pipelines,
}
