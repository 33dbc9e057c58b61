"""Measure the bytes of memory for each operation, at sizes that double.

If memory grows linearly, this number is the same at every size.
"""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import Costs, build, simulate
from hybridlab.schedules import forget

SECTION = "memory of build and simulate, bytes an operation"


@pytest.mark.parametrize("microbatches", [256, 512, 1024])
@pytest.mark.parametrize(("name", "chunks"), [("1f1b", 1), ("interleaved", 4), ("hanayo", 2)], ids=["1f1b", "interleaved", "hanayo"])
def test_memory(benchmark: BenchmarkFixture, tell: Callable[[str, str], None], name: str, chunks: int, microbatches: int) -> None:
    devices, microbatches = (4, 8) if benchmark.disabled else (64, microbatches)
    costs = Costs(forward=1, backward=2, p2p=0.1)

    def measure() -> tuple[int, int, int]:
        forget()
        tracemalloc.start()
        timeline = simulate(build(name, devices, microbatches, chunks), costs)
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return timeline.start.size, held, peak

    operations, held, peak = benchmark.pedantic(measure, rounds=1)  # type: ignore[no-untyped-call]
    size = f"{name}, {devices} devices, {microbatches} microbatches"
    benchmark.extra_info["peak_bytes_per_operation"] = peak / operations
    tell(SECTION, f"{size:<42} {operations:>11,} ops   peak {peak / operations:6.0f}   kept {held / operations:6.0f}")


def test_memory_of_a_batch(benchmark: BenchmarkFixture, tell: Callable[[str, str], None]) -> None:
    schedule = build("1f1b", *((4, 8) if benchmark.disabled else (64, 512)))
    costs = Costs(forward=np.linspace(1, 2, 64)[:, None], backward=2, p2p=0.1)

    def measure() -> int:
        tracemalloc.start()
        simulate(schedule, costs)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    cells = 64 * schedule.kind.size
    peak = benchmark.pedantic(measure, rounds=1) / cells  # type: ignore[no-untyped-call]
    tell(SECTION, f"{'1f1b, 64 settings at once':<42} {cells:>11,} ops x settings   peak {peak:6.1f}")
