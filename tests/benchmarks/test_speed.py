"""Measure how many operations are built and simulated per second, compared with the limit that memory sets."""

import time
import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import REGISTRY, Costs, Timeline, build, simulate
from hybridlab.schedules import forget

COSTS = Costs(forward=1, backward=2, p2p=0.1)
CHUNKS = {"interleaved": 4}  # all other schedules have their smallest number of chunks
EVERY = [(name, CHUNKS.get(name, family.fewest_chunks)) for name, family in REGISTRY.items()]
FIVE = {"gpipe", "1f1b", "interleaved", "hanayo", "zb-h1"}
TARGETS = {name: 3e6 if name in FIVE else 1e6 for name in REGISTRY} | {"1f1b": 4e6}

# Every implementation with these arrays must move at least so many bytes. A column has 8 bytes for each operation. Building writes the
# slots, reads them, and writes kind, stage, microbatch, device, source and slot. Simulating reads kind, device, source and slot. It also
# reads the end of the source and of the previous operation, and writes start and end.
BYTES_BUILT, BYTES_TIMED = 8 * (1 + 1 + 6), 8 * (4 + 2 + 2)
BYTES_A_SETTING = 8 * (2 + 2)  # two ends are read, and start and end are written; the rest is read once for all settings


def run(name: str, devices: int, microbatches: int, chunks: int = 1) -> Timeline:
    forget()  # else the schedule would be built only once
    return simulate(build(name, devices, microbatches, chunks), COSTS)


def size_of(benchmark: BenchmarkFixture, devices: int, microbatches: int) -> tuple[int, int]:
    """Return the size to measure at, or a small size if nothing is measured."""
    return (4, 8) if benchmark.disabled else (devices, microbatches)


@cache
def copied_per_second() -> float:
    """Return the bytes read and written per second in the best of a few copies of 256 MiB."""
    source = np.ones(2**25)
    target = np.empty_like(source)
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - begin)
    return 2 * source.nbytes / best


def bound(nbytes: int, reached: float) -> str:
    """Return the line that compares a rate with the limit set by memory, if each operation moves ``nbytes``."""
    most = copied_per_second() / nbytes
    moved = f"{nbytes} bytes an operation at {copied_per_second() / 1e9:.1f} GB/s copied"
    return f"{'':<34} bound: {moved} = {most / 1e6:.0f} M ops/s; reached {reached / most:.0%} of it"


@pytest.mark.parametrize(("name", "chunks"), EVERY, ids=str)
def test_build_and_simulate(
    benchmark: BenchmarkFixture, rate: Callable[..., float], tell: Callable[[str, str], None], name: str, chunks: int
) -> None:
    devices, microbatches = size_of(benchmark, 64, 512)
    section = f"build and simulate, {devices} devices, {microbatches} microbatches"
    schedule = build(name, devices, microbatches, chunks)
    label = f"{name}, {chunks} chunks" if chunks > 1 else name
    operations = schedule.kind.size
    reached = rate(section, label, operations, lambda: run(name, devices, microbatches, chunks), target=TARGETS[name])
    if not benchmark.disabled and name in ("1f1b", "interleaved"):
        tell(section, bound(BYTES_BUILT + BYTES_TIMED, reached))
        slots = len(np.unique(schedule.slot))
        tell(section, f"{'':<34} {slots} slots, each a few numpy calls on {operations / slots:.0f} operations")


@pytest.mark.parametrize("microbatches", [64, 128, 256, 512, 1024])
@pytest.mark.parametrize(("name", "chunks"), [("1f1b", 1), ("interleaved", 4)], ids=["1f1b", "interleaved"])
def test_scaling(benchmark: BenchmarkFixture, rate: Callable[..., float], name: str, chunks: int, microbatches: int) -> None:
    """The time grows at most linearly: the rate must not fall if the microbatches double."""
    devices, microbatches = size_of(benchmark, 64, microbatches)
    count = 2 * devices * microbatches * chunks
    rate(
        f"{name}: doubling the microbatches",
        f"64 devices, {microbatches} microbatches",
        count,
        lambda: run(name, devices, microbatches, chunks),
    )


@pytest.mark.parametrize("part", ["build", "simulate"])
@pytest.mark.parametrize(("name", "chunks"), EVERY, ids=str)
def test_parts(benchmark: BenchmarkFixture, rate: Callable[..., float], name: str, chunks: int, part: str) -> None:
    devices, microbatches = size_of(benchmark, 64, 512)
    schedule = build(name, devices, microbatches, chunks)
    parts: dict[str, Callable[[], Any]] = {
        "build": lambda: (forget(), build(name, devices, microbatches, chunks)),
        "simulate": lambda: simulate(schedule, COSTS),
    }
    rate(f"{part} alone, {devices} devices, {microbatches} microbatches", name, schedule.kind.size, parts[part])


@pytest.mark.parametrize("varied", ["forward", "p2p", "all"])
@pytest.mark.parametrize(
    ("name", "devices", "microbatches", "chunks"), [("1f1b", 16, 128, 1), ("1f1b", 64, 512, 1), ("interleaved", 64, 512, 4)]
)
def test_64_settings_at_once(
    benchmark: BenchmarkFixture,
    rate: Callable[..., float],
    tell: Callable[[str, str], None],
    name: str,
    devices: int,
    microbatches: int,
    chunks: int,
    varied: str,
) -> None:
    devices, microbatches = size_of(benchmark, devices, microbatches)
    schedule = build(name, devices, microbatches, chunks)
    values = {"forward": np.linspace(1, 2, 64)[:, None], "backward": np.linspace(2, 4, 64)[:, None], "p2p": np.linspace(0, 1, 64)[:, None]}
    costs = Costs(**{key: value if varied in (key, "all") else value[0] for key, value in values.items()})
    section = "64 settings of costs in one call, operations x settings; at least 20 % of the bound wanted"
    label = f"{name}, {devices} x {microbatches}, varied: {varied}"
    reached = rate(section, label, 64 * schedule.kind.size, lambda: simulate(schedule, costs), rounds=5)
    if not benchmark.disabled:
        tell(section, bound(BYTES_A_SETTING, reached))


def test_1024_devices_4096_microbatches(benchmark: BenchmarkFixture, rate: Callable[..., float], tell: Callable[[str, str], None]) -> None:
    devices, microbatches = size_of(benchmark, 1024, 4096)
    section = "1f1b at 1024 devices, 4096 microbatches; at least 4 % of the bound and at most 1 GB wanted"
    reached = rate(section, "build and simulate", 2 * devices * microbatches, lambda: run("1f1b", devices, microbatches), rounds=5)
    if not benchmark.disabled:
        tell(section, bound(BYTES_BUILT + BYTES_TIMED, reached))
        tracemalloc.start()
        run("1f1b", devices, microbatches)
        tell(section, f"{'':<34} {tracemalloc.get_traced_memory()[1] / 1e9:.2f} GB of arrays at most")
        tracemalloc.stop()


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_few_devices(benchmark: BenchmarkFixture, rate: Callable[..., float], devices: int) -> None:
    """With few devices, each slot contains only one or two operations, and the simulator makes a step for every slot."""
    devices, microbatches = size_of(benchmark, devices, 2048)
    section = "1f1b on few devices"
    rate(
        section,
        f"{devices} devices, {microbatches} microbatches",
        2 * devices * microbatches,
        lambda: run("1f1b", devices, microbatches),
    )


def test_reading_text(benchmark: BenchmarkFixture, rate: Callable[..., float]) -> None:
    """A schedule written as text is checked operation by operation, in Python."""
    devices, microbatches = size_of(benchmark, 16, 128)
    schedule = build("1f1b", devices, microbatches)
    text = str(schedule)
    rate(
        "read and check a schedule's text",
        f"{devices} devices, {microbatches} microbatches",
        schedule.kind.size,
        lambda: type(schedule).parse(text),
        rounds=5,
    )
