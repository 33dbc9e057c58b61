"""Measure how long a run of the published simulator takes, including its timelines and its accuracy."""

from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab.course.published import simulator

BOUND = 5.0  # ms for the published configuration


@pytest.mark.parametrize("mode", ["INT8", "FP16"])
def test_the_published_simulator(benchmark: BenchmarkFixture, tell: Callable[[str, str], None], mode: str) -> None:
    """The setting is K = 3, D = 4, M = 6, and 120 weights per stage."""
    benchmark.pedantic(lambda: simulator(comm_mode=mode), rounds=50, warmup_rounds=3)  # type: ignore[no-untyped-call]
    if not benchmark.disabled and benchmark.stats is not None:
        best, median = (1e3 * value for value in (benchmark.stats.stats.min, benchmark.stats.stats.median))
        told = f"{best:>8.2f} ms, median {median:.2f}; bound {BOUND:g} ms, ratio {best / BOUND:.2f}"
        tell("the published simulator, K = 3, D = 4, M = 6", f"{mode:<6}{told}")
