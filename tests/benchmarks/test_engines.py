"""Measure what an operation and a message cost in each engine, and how far predicted steps are from steps that run.

The errors on the page on trust are stored: `tests/record_trials.py` measures and stores them.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import Costs, build
from hybridlab.engines import PaddedWork, predict_and_measure

DEVICES, MICROBATCHES = 4, 8
ENGINES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed"))
    for name, module in (("threads", "threading"), ("mpi", "mpi4py"), ("torch", "torch"))
]


@pytest.mark.parametrize("engine", ENGINES)
def test_overhead_and_errors_of_predictions(benchmark: BenchmarkFixture, tell: Callable[[str, str], None], engine: str) -> None:
    """Where nothing is measured, threads stand for all engines, because tests/test_prediction.py starts the processes of the others."""
    schedules = [build(name, DEVICES, MICROBATCHES) for name in ("gpipe", "1f1b", "interleaved")]
    how: dict[str, Any] = {"work": PaddedWork(), "engine": engine, "steps": 8}
    costs = Costs(forward=20, backward=40)
    if benchmark.disabled:
        how |= {"engine": "threads", "steps": 3}
        costs = costs.longer(0.01)
    trial = benchmark.pedantic(lambda: predict_and_measure(schedules, costs, **how), rounds=1)  # type: ignore[no-untyped-call]
    told = f"{trial.overhead.operation:>8.3f} ms an operation {trial.overhead.message:>8.3f} ms a message"
    tell("engines: overhead", f"{trial.engine:<8}{told}")
    for line in str(trial).splitlines():
        tell("engines: predicted and measured steps", line)
