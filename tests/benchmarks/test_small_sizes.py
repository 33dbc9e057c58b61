"""Compare the whole path, from sizes and costs to the makespan, with a naive loop over dicts, at the sizes that people use.

The two run in turn in one process. A ratio compares their CPU times in the quickest of many rounds, so it hardly depends on the machine.
"""

import gc
import time
from collections.abc import Callable
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import Costs, build, simulate
from hybridlab.schedules import forget

SECTION = "the whole path against a naive loop (rate of hybridlab / rate of the loop)"
Orders = list[list[tuple[str, int, int]]]
SIZES = [
    ("1f1b", 4, 8, 1, 0.5),
    ("zb-h1", 4, 8, 1, 0.5),
    ("interleaved", 4, 8, 4, 0.9),
    ("1f1b", 8, 16, 1, 1.2),
    ("1f1b", 8, 64, 1, 1.8),
    ("1f1b", 2, 2048, 1, 2.5),
    ("1f1b", 16, 128, 1, 2.8),
    ("1f1b", 64, 512, 1, 8.0),
]


def orders_of(name: str, devices: int, microbatches: int, chunks: int) -> Orders:
    """Return the orders of 1F1B, ZB-H1 or interleaved 1F1B, written operation by operation."""
    orders: Orders = []
    for device in range(devices):
        count = microbatches * chunks
        warm = devices - 1 - device if chunks == 1 else 2 * (devices - 1 - device) + (chunks - 1) * devices
        order, forward, backward, weight = [], 0, 0, 0
        while backward < count:
            if forward < min(count, warm + backward + 1):
                group, rest = divmod(forward, devices * chunks)
                stage = device + devices * (rest // devices)
                order.append(("F", stage, group * devices + rest % devices) if chunks > 1 else ("F", device, forward))
                forward += 1
            else:
                group, rest = divmod(backward, devices * chunks)
                stage = device + devices * (chunks - 1 - rest // devices)
                kind = "I" if name == "zb-h1" else "B"
                order.append((kind, stage, group * devices + rest % devices) if chunks > 1 else (kind, device, backward))
                backward += 1
                if name == "zb-h1" and backward > device:
                    order.append(("W", device, weight))
                    weight += 1
        order += [("W", device, each) for each in range(weight, microbatches if name == "zb-h1" else 0)]
        orders.append(order)
    return orders


def naive(name: str, devices: int, microbatches: int, chunks: int) -> float:
    """Return the makespan by a loop over dicts: a device runs its next operation as soon as its input has an end."""
    orders, last = orders_of(name, devices, microbatches, chunks), devices * chunks - 1
    takes = {"F": 1.0 / chunks, "B": 2.0 / chunks, "I": 1.0 / chunks, "W": 1.0 / chunks}
    ends: dict[tuple[str, int, int], float] = {}
    turn, free = [0] * devices, [0.0] * devices
    moved = True
    while moved:
        moved = False
        for device, order in enumerate(orders):
            while turn[device] < len(order):
                kind, stage, microbatch = op = order[turn[device]]
                if kind == "F":
                    needed = ("F", stage - 1, microbatch) if stage else None
                elif kind == "W":
                    needed = ("I", stage, microbatch)
                else:
                    needed = (kind, stage + 1, microbatch) if stage < last else ("F", stage, microbatch)
                ready = 0.0
                if needed is not None:
                    if needed not in ends:
                        break
                    ready = ends[needed] + (0.1 if needed[1] % devices != device else 0.0)
                ends[op] = free[device] = max(free[device], ready) + takes[kind]
                turn[device] += 1
                moved = True
    return max(ends.values())


def whole(name: str, devices: int, microbatches: int, chunks: int) -> float:
    costs = Costs(forward=1, backward=2, p2p=0.1)
    return float(simulate(build(name, devices, microbatches, chunks), costs).makespan)


def quickest_cpu(runs: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Return the CPU seconds of the quickest round of each function; the functions run in turn."""
    best = dict.fromkeys(runs, float("inf"))
    end = time.perf_counter() + seconds
    gc.disable()
    try:
        while time.perf_counter() < end:
            for name, run in runs.items():
                begin = time.process_time()
                run()
                best[name] = min(best[name], time.process_time() - begin)
    finally:
        gc.enable()
    return best


@pytest.mark.parametrize(("name", "devices", "microbatches", "chunks", "goal"), SIZES, ids=str)
def test_against_a_naive_loop(
    benchmark: BenchmarkFixture, tell: Callable[[str, str], None], name: str, devices: int, microbatches: int, chunks: int, goal: float
) -> None:
    size = (name, devices, microbatches, chunks)
    if benchmark.disabled:
        size = (name, min(devices, 4), 8, chunks)

    def first() -> float:
        forget()
        return whole(*size)

    assert first() == pytest.approx(naive(*size))
    benchmark.pedantic(first, rounds=1)  # type: ignore[no-untyped-call]
    best = quickest_cpu({"naive": lambda: naive(*size), "first": first, "again": lambda: whole(*size)}, 0.01 if benchmark.disabled else 2.0)
    label = f"{devices} x {microbatches}, {name}" + (f", {chunks} chunks" if chunks > 1 else "")
    ratios = f"{best['naive'] / best['first']:6.2f} (wanted {goal:g})   built before {best['naive'] / best['again']:6.2f}"
    tell(SECTION, f"{label:<34} {best['first'] * 1e6:>11,.0f} us   {ratios}")
