"""Measure what an executor costs a sweep: the time to start, the time of a job that has almost nothing to do, and a large sweep."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from test_sweep_executors import KINDS, PATIENCE, ROOT, command

PROGRAM = Path(__file__).parent / "sweep_program.py"


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_executor_costs(kind: str, benchmark: BenchmarkFixture, tell: Callable[[str, str], None]) -> None:
    """The program is new for each executor, and what it starts ends with it."""
    rounds = 1 if benchmark.disabled else 3
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests/engines")])

    def run() -> list[float]:
        program = [*command(kind, program=PROGRAM), str(time.time()), str(rounds)]
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=True)
        numbers: list[float] = json.loads(done.stdout)
        return numbers

    begun, small, large = benchmark.pedantic(run, rounds=1)  # type: ignore[no-untyped-call]
    assert begun > 0
    assert small > 0
    tell(
        "a sweep by an executor with two workers",
        f"{kind:<10} starts in {begun:.1f} s, {small * 1e3:.2f} ms a small job, {large:.1f} s a large sweep",
    )
