"""Measure how long sweeps take: the eight published ones, with all points of all figures."""

from collections.abc import Callable

from benchmarks.test_speed import BYTES_A_SETTING, bound
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import Kind, Sweep, build, sweep
from hybridlab.course.published import SWEEPS
from hybridlab.schedules import forget

WANTED = 0.6  # seconds for all eight on one core


def timed_operations(table: Sweep) -> int:
    """Return operations x settings behind a table.

    A chunk and a microbatch have two operations, or three where the backward is split.
    """
    split = {name: Kind.W.value in str(build(name, 1, 1)) for name in set(table.column("schedule"))}
    return sum((3 if split[row["schedule"]] else 2) * row["devices"] * row["microbatches"] * row["chunks"] for row in table)


def test_the_eight_published_sweeps(benchmark: BenchmarkFixture, rate: Callable[..., float], tell: Callable[[str, str], None]) -> None:
    names = ["weak_scaling"] if benchmark.disabled else list(SWEEPS)
    tables = [SWEEPS[name].run(progress=False) for name in names]
    count, points = sum(map(timed_operations, tables)), sum(map(len, tables))
    section = "the eight published sweeps, operations x points"

    def run() -> None:
        forget()  # else the schedules would be built only once
        for name in names:
            SWEEPS[name].run(progress=False)

    reached = rate(section, f"{points:,} points", count, run, rounds=5, target=9.4e6)
    if not benchmark.disabled:
        tell(section, bound(BYTES_A_SETTING, reached))
        tell(section, f"{'':<34} {count / reached:.2f} s of {WANTED:g} s wanted; {points / (count / reached):,.0f} points/s")


def test_rows_alone(benchmark: BenchmarkFixture, rate: Callable[..., float]) -> None:
    """Measure the time of a row, with a grid that has so few operations that they take almost no time."""
    rows = 100 if benchmark.disabled else 20_000
    grid = {"devices": 1, "microbatches": 1, "load": range(rows), "forward": lambda load: 1 + load, "backward": lambda forward: 2 * forward}
    rate("rows of a sweep on one device, one microbatch", f"{rows:,} rows", 2 * rows, lambda: sweep("1f1b", grid, progress=False), rounds=5)
