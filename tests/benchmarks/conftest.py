"""Print what was measured as operations per second; without --benchmark-enable, every benchmark runs once at a small size."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

Run = Callable[[], Any]
LINES = pytest.StashKey[dict[str, list[str]]]()  # printed lines, section by section


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LINES] = {}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the benchmark of the pages when nothing is measured.

    It needs a built site, and the tests in tests/site already test the pages.
    """
    return True if collection_path.name == "test_pages.py" and not config.getoption("benchmark_enable") else None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for section, lines in config.stash[LINES].items():
        terminalreporter.section(section, sep="-")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture
def tell(request: pytest.FixtureRequest, benchmark: BenchmarkFixture) -> Callable[[str, str], None]:
    """Add a line to the summary if benchmarks are measured."""

    def add(section: str, line: str) -> None:
        if not benchmark.disabled:
            request.config.stash[LINES].setdefault(section, []).append(line)

    return add


@pytest.fixture
def rate(benchmark: BenchmarkFixture, tell: Callable[[str, str], None]) -> Callable[..., float]:
    """Time ``run``, which does ``count`` operations; print and return the operations per second of the quickest round."""

    def measure(section: str, name: str, count: int, run: Run, rounds: int = 15, target: float | None = None) -> float:
        benchmark.pedantic(run, rounds=rounds, warmup_rounds=min(rounds - 1, 2))  # type: ignore[no-untyped-call]
        if benchmark.disabled or benchmark.stats is None:
            return 0.0
        best, median = benchmark.stats.stats.min, benchmark.stats.stats.median
        benchmark.extra_info["operations"] = count
        benchmark.extra_info["operations_per_second"] = count / best
        wanted = f"   at least {target / 1e6:g} wanted" if target else ""
        line = f"{name:<34} {count:>11,} ops {best * 1e3:>9.2f} ms {count / best / 1e6:>8.2f} M ops/s"
        tell(section, f"{line}   median {count / median / 1e6:.2f}{wanted}")
        return float(count / best)

    return measure
