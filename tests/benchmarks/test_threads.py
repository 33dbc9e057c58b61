"""Measure the cost of running each device in a thread.

This is the time of an operation without work, and the difference between a real step and a simulated one.
"""

from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import Costs, build, hybrid_step
from hybridlab.engines import run


@pytest.mark.parametrize(("devices", "replicas"), [(1, 1), (2, 2), (4, 4)])
def test_overhead_of_an_operation(benchmark: BenchmarkFixture, tell: Callable[[str, str], None], devices: int, replicas: int) -> None:
    """All durations are zero, so all of the time is spent in threads, queues and clocks."""
    schedule = build("1f1b", devices, 8 if benchmark.disabled else 128)
    ran = benchmark.pedantic(lambda: run(schedule, replicas=replicas).timeline, rounds=5, warmup_rounds=1)  # type: ignore[no-untyped-call]
    if not benchmark.disabled and benchmark.stats is not None:
        best = benchmark.stats.stats.min
        told = f"{devices * replicas:>3} threads {1e6 * best / ran.start.size:>8.1f} us an operation"
        tell("a thread a device, nothing takes any time", told)


@pytest.mark.parametrize(("forward", "backward"), [(50, 80), (25, 40)])
def test_the_reports_step(benchmark: BenchmarkFixture, tell: Callable[[str, str], None], forward: int, backward: int) -> None:
    """Measure how much longer a step is than simulated, with K = D = 2, M = 8 and sleeps of some ms."""
    schedule, costs = build("1f1b", 2, 8), Costs(forward=forward, backward=backward, unit="us" if benchmark.disabled else "ms")
    found: list[float] = []

    def step() -> None:
        found.append(run(schedule, costs=costs, replicas=2, ring_step=20).timeline.makespan)

    benchmark.pedantic(step, rounds=5)  # type: ignore[no-untyped-call]
    if not benchmark.disabled:
        predicted, median = hybrid_step(schedule, costs, 2, ring_step=20).makespan, sorted(found)[2]
        tell("a thread a device, the report's step", f"simulated {predicted:g} ms, median {median:.1f} ms, {median / predicted - 1:+.2%}")
