"""Test lab 14's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from fractions import Fraction
from itertools import accumulate, combinations, pairwise
from typing import Any

import numpy as np
import pytest
from oracle import Node, nodes, partners, times, uniform

from hybridlab import REGISTRY, Costs, build, check, simulate
from hybridlab.course.tasks import TASKS
from hybridlab.course.tasks.lab14 import loads, slow_link

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab14.t1", 18.75, "one-way-or-no-bubble"),
    ("lab14.t1", 12.5, "folded"),
    ("lab14.t1", 75 / 14, "eager-never-waits"),
    ("lab14.t1", 75 / 22, "1f1b"),
    ("lab14.t1", 25, "end-of-hiding"),
    ("lab14.t1", 10, "end-of-closed-form"),
    ("lab14.t1", 0, "no-latency"),
    ("lab14.t1", 75, "head-start"),
    ("lab14.t1", 9, "wrong-value", "9 ms"),
    ("lab14.t1", 9.4, "too-few-decimals", "2 decimals"),
    ("lab14.t1", "9.375", "not-a-number"),
    ("lab14.t1", [9.375], "not-a-number"),
    ("lab14.t2", ("zb-h2", 1), "does-not-fit", "zb-h2", "15 microbatches", "12"),
    ("lab14.t2", ("looped-bfs", 3), "does-not-fit", "looped-bfs", "32 microbatches"),
    ("lab14.t2", ("eager-1f1b", 1), "does-not-fit", "eager-1f1b"),
    ("lab14.t2", ("dualpipe", 1), "second-copy", "dualpipe", "5 more"),
    ("lab14.t2", ("zb-h1", 1), "hides-5-ms"),
    ("lab14.t2", ("1f1b", 1), "too-few-in-flight"),
    ("lab14.t2", ("v-half", 2), "few-in-flight"),
    ("lab14.t2", ("v-min", 2), "fewest-in-flight"),
    ("lab14.t2", ("interleaved", 2), "many-chunks"),
    ("lab14.t2", ("interleaved-zb", 4), "many-chunks"),
    ("lab14.t2", ("hanayo", 2), "many-chunks"),
    ("lab14.t2", ("chimera", 1), "second-copy", "chimera", "8 microbatches", "5 more"),
    ("lab14.t2", ("dualpipe-v", 2), "folded-without-overlap"),
    ("lab14.t2", ("zb-v", 1), "unsupported-size", "zb-v", "2 chunks"),
    ("lab14.t2", ("hanayo", 3), "unsupported-size", "hanayo", "2, 4, 6"),
    ("lab14.t2", ("zbv", 2), "unknown-name", "'zb-v'"),
    ("lab14.t2", ("zb-v", 2.5), "not-a-whole-number"),
    ("lab14.t2", ("interleaved", 10**6), "out-of-range", "1 to 16"),
    ("lab14.t2", "zb-v", "wrong-shape"),
    ("lab14.t3", (360, 384), "swapped"),
    ("lab14.t3", (96, 90), "one-device"),
    ("lab14.t3", (96, 360), "schedule-of-one-device"),
    ("lab14.t3", (744, 0), "no-imbalance"),
    ("lab14.t3", (480, 264), "equal-stages"),
    ("lab14.t3", (0.16, 0.15), "shares"),
    ("lab14.t3", (16, 15), "per-cent"),
    ("lab14.t3", (400, 344), "wrong-division"),
    ("lab14.t3", (100, 100), "wrong-sum", "744 ms", "200"),
    ("lab14.t3", [384.2, 359.8], "wrong-division"),
    ("lab14.t3", [384], "wrong-length"),
    ("lab14.t4", [4, 4, 4, 4], "too-heavy", "device 3", "24 ms"),
    ("lab14.t4", [4, 4, 4, 4], "too-heavy", "714 ms"),
    ("lab14.t4", [4, 4, 5, 3], "heavy-devices-late"),
    ("lab14.t4", [5, 5, 5, 1], "heavy-devices-late"),
    ("lab14.t4", [6, 4, 4, 2], "too-heavy", "device 0", "22 ms"),
    ("lab14.t4", [2, 4, 5, 5], "too-heavy", "device 3"),
    ("lab14.t4", [18, 20, 16, 16], "ms-not-layers"),
    ("lab14.t4", [5, 10, 14, 16], "layers-up-to-cuts"),
    ("lab14.t4", [5, 10, 14], "places-of-cuts"),
    ("lab14.t4", [4, 4, 4, 3], "another-number-of-layers", "15 layers", "16"),
    ("lab14.t4", [6, 6, 4, 0], "out-of-range"),
    ("lab14.t4", [5.5, 4.5, 4, 2], "not-a-whole-number"),
    ("lab14.t4", 16, "not-a-list"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab14.t1", 9.37),
    ("lab14.t1", 9.38),
    ("lab14.t1", np.float64(9.375)),
    ("lab14.t1", Fraction(75, 8)),
    ("lab14.t2", [" ZB-V ", 2.0]),
    ("lab14.t2", ("zb-v", np.int64(2))),
    ("lab14.t3", np.array([384, 360])),
    ("lab14.t3", (Fraction(384), 360.0)),
    ("lab14.t4", (5, 5, 4, 2)),
    ("lab14.t4", np.array([5, 5, 4, 2])),
]


def numbers_of(key: str, seed: int | None) -> list[int]:
    """The whole numbers in the prompt of a task."""
    return [int(number) for number in re.findall(r"\b\d+\b", TASKS[key].instance(seed).prompt)]


@pytest.mark.parametrize("seed", [None, *range(5)])
def test_the_lines_of_task_1_cross_once_at_the_latency_that_passes(seed: int | None) -> None:
    _, chunks, devices, microbatches, forward, backward = numbers_of("lab14.t1", seed)
    assert chunks == 2

    def ahead(latency: float) -> float:
        costs = Costs(forward=forward, backward=backward, p2p=latency)
        eager, interleaved = (simulate(build(name, devices, microbatches), costs) for name in ("eager-1f1b", "interleaved"))
        return float(eager.makespan - interleaved.makespan)

    crossing = (devices - 1) * (forward + backward) / (4 * devices)
    assert seed is not None or crossing == 9.375
    assert ahead(crossing) == pytest.approx(0)
    assert check("lab14.t1", crossing, seed=seed).passed
    assert all(ahead(latency) > 0 for latency in np.linspace(0, crossing - 0.01, 8))
    assert all(ahead(latency) < 0 for latency in np.linspace(crossing + 0.01, 40, 16))


@pytest.mark.parametrize("most", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_no_schedule_that_fits_is_faster_than_the_one_that_passes(most: int) -> None:
    """The oracle computes the steps. The peaks of faster schedules are from their papers, the other peaks are counted here."""
    setting = uniform(8, 10, 20, p2p=10)
    activations = {"zb-h2": 15, "looped-bfs": 32, "eager-1f1b": 15, "gpipe": 32, "chimera": 8}  # 2K-1, M, 2K-1, M, K
    fast = set()
    for name, family in REGISTRY.items():
        for chunks in range(1, most + 1):
            if family.refusal(8, 32, chunks) is None and (name, chunks) != ("zb-v", 2):
                schedule = build(name, 8, 32, chunks)
                spans = times(nodes(schedule), setting, chunks, together=partners(schedule))
                if max(end for _, end in spans.values()) <= 1375:
                    fast.add(name)
                    held = activations[name] if name in activations else max(map(most_held, nodes(schedule))) / chunks
                    assert held + 5 * (family.copies - 1) > 12, f"{name} fits: it takes the place of the right answer"
    assert slow_link("zb-v").makespan == 1375
    assert fast >= set(activations)


def most_held(order: list[Node]) -> int:
    """The most stages of microbatches that a device holds at once: from the forward to the full backward or the weight gradient."""
    return max(accumulate((kind == "F") - (kind in "BW") for kind, _, _ in order))


def step_by_hand(forward: list[float], microbatches: int) -> float:
    """1F1B with backwards twice the forwards: sweeps over the devices until no operation moves any more."""
    devices = len(forward)
    orders = []
    for device in range(devices):
        warm = min(devices - 1 - device, microbatches)
        turns = [op for m in range(microbatches - warm) for op in (("F", warm + m), ("B", m))]
        orders.append([("F", m) for m in range(warm)] + turns + [("B", m) for m in range(microbatches - warm, microbatches)])
    end: dict[tuple[str, int, int], float] = {}
    while True:
        before = dict(end)
        for device, order in enumerate(orders):
            free = 0.0
            for kind, m in order:
                source = (kind, m, device - 1 if kind == "F" else device + 1)
                free = max(free, end.get(source, 0.0)) + forward[device] * (1 if kind == "F" else 2)
                end[kind, m, device] = free
        if end == before:
            return max(end.values())


def test_one_cut_is_the_shortest_and_it_passes() -> None:
    layers = [2] + 14 * [4] + [12]
    steps = {}
    for places in combinations(range(1, 16), 3):
        edges = [0, *places, 16]
        stages = [float(sum(layers[low:high])) for low, high in pairwise(edges)]
        counts = tuple(high - low for low, high in pairwise(edges))
        assert loads(counts).tolist() == stages
        steps[counts] = step_by_hand(stages, 8)
    shortest = [counts for counts, step in steps.items() if step == min(steps.values())]
    assert shortest == [(5, 5, 4, 2)]
    assert steps[shortest[0]] == 606
    assert [counts for counts in steps if check("lab14.t4", counts).passed] == shortest


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_the_idle_time_of_task_3_has_these_two_parts(seed: int | None) -> None:
    *forward, microbatches = numbers_of("lab14.t3", seed)
    step = step_by_hand(list(map(float, forward)), microbatches)
    work = [3 * each * microbatches for each in forward]
    parts = 4 * (step - max(work)), 4 * max(work) - sum(work)
    assert check("lab14.t3", parts, seed=seed).passed
    assert seed is not None or parts == (384, 360)
