"""Measure what an operation and a message cost in each engine, how soon a fault ends a run, and how far predictions are from real steps.

The errors on the page on trust are stored: `tests/engines/record_trials.py` measures and stores them.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import Costs, Deadlock, Op, RunFailed, build
from hybridlab.engines import Group, PaddedWork, StepWork, predict_and_measure, run

DEVICES, MICROBATCHES = 4, 8
ENGINES = ["threads", "mpi", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.mark.parametrize("engine", ENGINES)
def test_overhead_and_errors_of_predictions(benchmark: BenchmarkFixture, tell: Callable[[str, str], None], engine: str) -> None:
    """Where nothing is measured, threads stand for all engines: tests/engines/test_prediction.py starts the processes of the others."""
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


class FailsOnce(StepWork):
    """Rank 1 fails in its first backward, in a ``way``, and writes down when."""

    def __init__(self, way: str, file: Path) -> None:
        self.way, self.file = way, file

    def work(self, rank: int, op: Op, message: Any) -> None:
        if (rank, str(op)) != (1, "1B0"):
            return
        self.file.write_text(repr(time.perf_counter()), encoding="utf-8")
        if self.way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.way == "hang":
            time.sleep(3600)
        if self.way == "error":
            raise ZeroDivisionError("planted")


PATIENCE = 0.5  # seconds


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_time_from_a_fault_until_the_run_has_ended_and_no_process_is_left(
    benchmark: BenchmarkFixture, tell: Callable[[str, str], None], engine: str, tmp_path: Path
) -> None:
    def ended_after(way: str) -> float:
        with Group(engine, 4, patience=PATIENCE) as group:
            try:
                run(build("1f1b", 2, 4), FailsOnce(way, tmp_path / way), engine=group, replicas=2, lost=["1B0"] if way == "lost" else ())
            except (RunFailed, Deadlock):
                return time.perf_counter() - float((tmp_path / way).read_text(encoding="utf-8"))
        raise AssertionError(way)

    ways = ("kill",) if benchmark.disabled else ("kill", "error", "hang", "lost")
    times = benchmark.pedantic(lambda: [ended_after(way) for way in ways], rounds=1)  # type: ignore[no-untyped-call]
    told = " ".join(f"{way} {seconds:.2f} s" for way, seconds in zip(ways, times, strict=True))
    tell("engines: from a fault to the end of the run", f"{engine:<8}{told} (patience {PATIENCE} s)")
