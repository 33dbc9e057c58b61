"""Compare the ring all-reduce with the memory that it must move, and INT8 with FP32; ratios use the quickest rounds."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import BF16, FP16, FP32, INT8, WireFormat
from hybridlab.collectives import one_shot_all_reduce, ring_all_reduce

Tell = Callable[[str, str], None]
BLOCKS = WireFormat("INT8", block=256)
SECTION = "ring all-reduce of 64 ranks x 1,000,000 float32"


def quickest(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the seconds of the quickest round for each function.

    Every round runs each function once, so a slow moment of the machine affects all of them.
    """
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.perf_counter()
            result = run()
            best[name] = min(best[name], time.perf_counter() - begin)
            del result  # freed before the next run, so that at most one result is in memory
    return best


def mean_and_copies(values: Any) -> Any:
    """Do the least work of any all-reduce: read all values once, add them up, and write the mean for every rank."""
    return np.repeat(values.mean(axis=0)[None], len(values), axis=0)


def test_the_ring_against_numpys_mean(benchmark: BenchmarkFixture, tell: Tell) -> None:
    ranks, size = (4, 1000) if benchmark.disabled else (64, 1_000_000)
    values = np.random.default_rng(0).standard_normal((ranks, size), dtype=np.float32)
    runs = {
        "numpy": lambda: mean_and_copies(values),
        "FP32": lambda: ring_all_reduce(values),
        **{str(wire): (lambda wire=wire: ring_all_reduce(values, wire)) for wire in (INT8, BLOCKS, FP16, BF16)},
    }
    benchmark.pedantic(runs["FP32"], rounds=1)  # type: ignore[no-untyped-call]
    best = quickest(runs, 1 if benchmark.disabled else 5)
    moved = 2 * values.nbytes  # every value is read once, and a mean is written for each rank
    tell(SECTION, f"bound: {moved / 1e6:.0f} MB must be moved, {values.nbytes / 1e6:.0f} read and as many written")
    tell(SECTION, f"{'mean(axis=0), repeated to all':<34} {best['numpy'] * 1e3:>9.1f} ms {moved / best['numpy'] / 1e9:>7.1f} GB/s")
    ratio = best["FP32"] / best["numpy"]
    rate = f"{best['FP32'] * 1e3:>9.1f} ms {moved / best['FP32'] / 1e9:>7.1f} GB/s"
    tell(SECTION, f"{'ring, FP32':<34} {rate}   {ratio:.2f} x numpy's, at most 4 wanted")
    for wire in (INT8, BLOCKS, FP16, BF16):
        wanted = ", at most 4 wanted" if wire == INT8 else ""
        tell(SECTION, f"{f'ring, {wire}':<34} {best[str(wire)] * 1e3:>9.1f} ms {best[str(wire)] / best['FP32']:>12.2f} x FP32's{wanted}")


@pytest.mark.parametrize("wire", [FP32, INT8], ids=str)
def test_one_shot_beside_the_ring(benchmark: BenchmarkFixture, tell: Tell, wire: WireFormat) -> None:
    ranks, size = (4, 1000) if benchmark.disabled else (16, 1_000_000)
    values = np.random.default_rng(0).standard_normal((ranks, size), dtype=np.float32)
    runs = {
        "ring": lambda: ring_all_reduce(values, wire),
        "one-shot": lambda: one_shot_all_reduce(values, wire),
    }
    benchmark.pedantic(runs["ring"], rounds=1)  # type: ignore[no-untyped-call]
    for name, seconds in quickest(runs, 1 if benchmark.disabled else 5).items():
        tell(f"all-reduces of 16 ranks x 1,000,000 float32, {wire}", f"{name:<34} {seconds * 1e3:>9.1f} ms")


def test_small_gradients(benchmark: BenchmarkFixture, rate: Callable[..., float]) -> None:
    """The gradients are those of a small network on four replicas, where calls take the time and not arithmetic."""
    values = np.random.default_rng(0).standard_normal((4, 120))
    rate(
        "ring all-reduce of 4 ranks x 120 numbers",
        "INT8, three rings, as published",
        3,
        lambda: [ring_all_reduce(values, INT8) for _ in range(3)],
    )
