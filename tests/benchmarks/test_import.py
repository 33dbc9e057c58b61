"""Measure how much longer `import hybridlab` takes than numpy's own import."""

import subprocess
import sys
import time
from collections.abc import Callable

from pytest_benchmark.fixture import BenchmarkFixture


def seconds(statement: str, rounds: int) -> float:
    """Return the time of ``statement`` in the quickest of several new interpreters."""
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        taken.append(time.perf_counter() - begin)
    return min(taken)


def test_import_time(benchmark: BenchmarkFixture, tell: Callable[[str, str], None]) -> None:
    rounds = 1 if benchmark.disabled else 7
    numpy = seconds("import numpy", rounds)
    whole = benchmark.pedantic(seconds, args=("import numpy, hybridlab", rounds), rounds=1)  # type: ignore[no-untyped-call]
    beyond = whole - numpy
    benchmark.extra_info["seconds_beyond_numpy"] = beyond
    tell(
        "import",
        f"import hybridlab: {beyond:.3f} s beyond numpy's {numpy:.3f} s (interpreter included); under 0.12 wanted",
    )
