"""Measure the speed of the lower bound, and the time in which the solver finds a proof.

The lower bound must be fast, because it is computed for every point of a sweep.
"""

from collections.abc import Callable

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import Costs, build
from hybridlab.bound import lower_bound, optimum


@pytest.mark.parametrize("settings", [1, 64])
@pytest.mark.parametrize(("name", "chunks"), [("1f1b", 1), ("interleaved", 4), ("hanayo", 4), ("zb-h1", 1)], ids=str)
def test_bound(benchmark: BenchmarkFixture, rate: Callable[..., float], name: str, chunks: int, settings: int) -> None:
    devices, microbatches = (4, 8) if benchmark.disabled else (64, 512)
    schedule = build(name, devices, microbatches, chunks)
    costs = Costs(forward=np.linspace(1, 2, settings)[:, None], backward=2, p2p=0.25)
    section = f"lower bound, {devices} devices, {microbatches} microbatches, {settings} settings"
    rate(section, name, schedule.kind.size * settings, lambda: lower_bound(schedule, costs), rounds=3)


@pytest.mark.parametrize(("name", "chunks"), [("1f1b", 1), ("interleaved", 2), ("hanayo", 2), ("zb-h1", 1)], ids=str)
def test_optimum(benchmark: BenchmarkFixture, rate: Callable[..., float], name: str, chunks: int) -> None:
    devices, microbatches = (2, 2) if benchmark.disabled else (4, 8)
    schedule, costs = build(name, devices, microbatches, chunks), Costs(forward=1, backward=2, p2p=0.25)
    section = f"proof of the optimum, {devices} devices, {microbatches} microbatches, one worker"
    rate(section, name, schedule.kind.size, lambda: optimum(schedule, costs), rounds=1)
