"""Measure the time of a step of real training on images of digits.

There are K = 4 stages x D = 4 replicas, with M = 8 microbatches.
"""

from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import FP32, INT8, WireFormat, build
from hybridlab.training import Trained, digits, train, train_alone

SECTION = "a training step on digits, global batch 128 (K=4, D=4, M=8: under 50 ms wanted)"


def told(benchmark: BenchmarkFixture, tell: Callable[[str, str], None], name: str, steps: int) -> None:
    if benchmark.disabled or benchmark.stats is None:
        return
    stats = benchmark.stats.stats
    benchmark.extra_info["seconds_a_step"] = stats.min / steps
    tell(SECTION, f"{name:<34} {stats.min / steps * 1e3:>7.2f} ms a step   median {stats.median / steps * 1e3:.2f}")


@pytest.mark.parametrize("wire", [FP32, INT8], ids=str)
@pytest.mark.parametrize("name", ["1f1b", "zb-h1"])
def test_step(benchmark: BenchmarkFixture, tell: Callable[[str, str], None], name: str, wire: WireFormat) -> None:
    steps = 1 if benchmark.disabled else 20
    schedule, data = build(name, 4, 8), digits()

    def run() -> Trained:
        return train(schedule, 4, wire=wire, data=data, steps=steps)

    trained = benchmark.pedantic(run, rounds=1 if benchmark.disabled else 7)  # type: ignore[no-untyped-call]
    assert trained.losses.size == steps
    told(benchmark, tell, f"{name}, {wire}", steps)


def test_single_device(benchmark: BenchmarkFixture, tell: Callable[[str, str], None]) -> None:
    steps = 1 if benchmark.disabled else 20
    data = digits()
    benchmark.pedantic(lambda: train_alone(data=data, steps=steps), rounds=1 if benchmark.disabled else 7)  # type: ignore[no-untyped-call]
    told(benchmark, tell, "one device", steps)
