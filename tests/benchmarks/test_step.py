"""Measure how long ``hybrid_step`` takes for the published configuration and for a large mesh."""

from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import Costs, HybridStep, build, hybrid_step
from hybridlab.schedules import forget

COSTS = Costs(forward=50, backward=80, p2p=1)
BOUND = 5.0  # ms for the published configuration, including the time to build its schedule


def step_of(stages: int, replicas: int, microbatches: int, overlap: bool) -> HybridStep:
    forget()  # else the schedule would be built only once
    schedule = build("1f1b", stages, microbatches)
    return hybrid_step(schedule, COSTS, replicas, ring_step=20, overlap=overlap, optimiser=10)


@pytest.mark.parametrize("overlap", [False, True], ids=["serial", "overlapped"])
def test_the_published_configuration(benchmark: BenchmarkFixture, tell: Callable[[str, str], None], overlap: bool) -> None:
    """With K = 3, D = 4 and M = 6, a step takes at most 5 ms; it has the operations, messages, hops and optimisers of 12 ranks."""
    benchmark.pedantic(lambda: step_of(3, 4, 6, overlap), rounds=50, warmup_rounds=3)  # type: ignore[no-untyped-call]
    if not benchmark.disabled and benchmark.stats is not None:
        best, median = (1e3 * value for value in (benchmark.stats.stats.min, benchmark.stats.stats.median))
        told = f"{best:>8.2f} ms, median {median:.2f}; bound {BOUND:g} ms, ratio {best / BOUND:.2f}"
        tell("a whole hybrid step, K = 3, D = 4, M = 6", f"{'overlapped' if overlap else 'serial':<12}{told}")


def test_a_large_mesh(benchmark: BenchmarkFixture, tell: Callable[[str, str], None]) -> None:
    """Measure how many rows are made per second with 16 stages x 64 replicas and 128 microbatches.

    A row is an operation or another span of time.
    """
    size = (2, 2, 4) if benchmark.disabled else (16, 64, 128)
    step = benchmark.pedantic(lambda: step_of(*size, True), rounds=5, warmup_rounds=1)  # type: ignore[no-untyped-call]
    assert step.timeline.spans is not None
    rows = step.timeline.start.size + step.timeline.spans.size
    if not benchmark.disabled and benchmark.stats is not None:
        best = benchmark.stats.stats.min
        section = "a whole hybrid step, K = 16, D = 64, M = 128"
        tell(section, f"{rows:>11,} rows {1e3 * best:>8.0f} ms {rows / best / 1e6:>8.2f} M rows/s")


def test_rows_of_the_published_configuration(benchmark: BenchmarkFixture, tell: Callable[[str, str], None]) -> None:
    """Read what a table or a widget of the step needs."""
    step = step_of(3, 4, 6, True)
    benchmark.pedantic(step.timeline.to_rows, rounds=50, warmup_rounds=3)  # type: ignore[no-untyped-call]
    if not benchmark.disabled and benchmark.stats is not None:
        tell("a whole hybrid step, K = 3, D = 4, M = 6", f"{'its rows':<12}{1e3 * benchmark.stats.stats.min:>8.2f} ms")
