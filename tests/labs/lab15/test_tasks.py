"""Test lab 15's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.launch import launcher
from hybridlab.course.grading.sandbox import Limits
from hybridlab.course.grading.session import Remote
from hybridlab.course.labs.lab15.cuts import loads_of
from hybridlab.course.labs.lab15.tasks import LAYERS, lighter_cut_exists
from hybridlab.course.tasks import TASKS, check

Times = Any  # an array of float, shape (layers,)


def recursion(times: Times, devices: int) -> list[int]:
    """The best cut by a recursion over the layers of the last device that remembers its results."""
    if len(times) < devices:
        raise ValueError("fewer layers than devices")

    @cache
    def best(layers: int, used: int) -> tuple[float, list[int]]:
        if used == 1:
            return sum(times[:layers]), [layers]
        options = []
        load = 0.0
        for first in range(layers - 1, used - 2, -1):
            load += times[first]
            before, cut = best(first, used - 1)
            options.append((max(before, load), [*cut, layers - first]))
        return min(options, key=lambda option: option[0])

    return best(len(times), devices)[1]


def all_cuts(layers: int, devices: int) -> list[list[int]]:
    return [[high - low for low, high in pairwise([0, *places, layers])] for places in combinations(range(1, layers), devices - 1)]


def equal_numbers(times: Times, devices: int) -> list[int]:
    more = len(times) % devices
    return [len(times) // devices + (device < more) for device in range(devices)]


def up_to_the_mean(times: Times, devices: int) -> list[int]:
    """Fill each device as long as it stays at or below the mean; keep a layer for each of the others."""
    cut: list[int] = []
    start, mean = 0, sum(times) / devices
    for after in range(devices - 1, 0, -1):
        end = start + 1
        while end < len(times) - after and sum(times[start : end + 1]) <= mean:
            end += 1
        cut.append(end - start)
        start = end
    return [*cut, len(times) - start]


def past_the_mean(times: Times, devices: int) -> list[int]:
    """Fill each device until it has the mean; keep a layer for each of the others."""
    cut: list[int] = []
    start, mean = 0, sum(times) / devices
    for after in range(devices - 1, 0, -1):
        end = start + 1
        while end < len(times) - after and sum(times[start:end]) < mean:
            end += 1
        cut.append(end - start)
        start = end
    return [*cut, len(times) - start]


def nearest_to_the_mean(times: Times, devices: int) -> list[int]:
    """Give each device the layers whose load is nearest to the mean; keep a layer for each of the others."""
    cut: list[int] = []
    start, mean = 0, sum(times) / devices
    for after in range(devices - 1, 0, -1):
        end = start + 1
        while end < len(times) - after and abs(sum(times[start : end + 1]) - mean) <= abs(sum(times[start:end]) - mean):
            end += 1
        cut.append(end - start)
        start = end
    return [*cut, len(times) - start]


def nearest_to_equal_shares(times: Times, devices: int) -> list[int]:
    until = [sum(times[:layer]) for layer in range(len(times) + 1)]
    places = [0]
    for device in range(1, devices):
        share = until[-1] * device / devices
        places.append(min(range(len(until)), key=lambda layer: abs(until[layer] - share)))
    return [high - low for low, high in pairwise([*places, len(times)])]


def mean_of_the_rest(times: Times, devices: int) -> list[int]:
    cut: list[int] = []
    start = 0
    for left in range(devices, 1, -1):
        mean = sum(times[start:]) / left
        ends = range(start + 1, len(times) - left + 2)
        end = min(ends, key=lambda end: abs(sum(times[start:end]) - mean))
        cut.append(end - start)
        start = end
    return [*cut, len(times) - start]


def heaviest_in_two(times: Times, devices: int) -> list[int]:
    edges = [0, len(times)]
    while len(edges) <= devices:
        low, high = max(((low, high) for low, high in pairwise(edges) if high > low + 1), key=lambda part: sum(times[slice(*part)]))
        edges = sorted([*edges, min(range(low + 1, high), key=lambda at: max(sum(times[low:at]), sum(times[at:high])))])
    return [high - low for low, high in pairwise(edges)]


def in_any_order(times: Times, devices: int) -> list[int]:
    held: list[list[float]] = [[] for _ in range(devices)]
    for time in sorted(times)[::-1]:
        min(held, key=sum).append(time)
    return [len(layers) for layers in held]


def least_squares(times: Times, devices: int) -> list[int]:
    until = np.cumsum([0, *times])
    best = {n: (until[n] ** 2, [n]) for n in range(1, len(times) + 1)}
    for d in range(2, devices + 1):
        best = {
            n: min((best[m][0] + (until[n] - until[m]) ** 2, [*best[m][1], n - m]) for m in range(d - 1, n))
            for n in range(d, len(times) + 1)
        }
    return best[len(times)][1]


def without_a_refusal(times: Times, devices: int) -> list[int]:
    return recursion(times, min(devices, len(times)))


def the_examples(times: Times, devices: int) -> list[int]:
    """The two examples of the lab, and nothing else."""
    return [4, 1] if devices == 2 else [1, 1, 2]


def changing(times: Times, devices: int) -> list[int]:
    cut = recursion(times.copy(), devices)
    times.sort()
    return cut


# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab15.t1", (360, 384), "swapped"),
    ("lab15.t1", (96, 90), "one-device"),
    ("lab15.t1", (96, 360), "schedule-of-one-device"),
    ("lab15.t1", (744, 0), "no-imbalance"),
    ("lab15.t1", (480, 264), "equal-stages"),
    ("lab15.t1", (0.16, 0.15), "shares"),
    ("lab15.t1", (16, 15), "per-cent"),
    ("lab15.t1", (400, 344), "wrong-division"),
    ("lab15.t1", (100, 100), "wrong-sum", "744 ms", "200"),
    ("lab15.t1", [384.2, 359.8], "wrong-division"),
    ("lab15.t1", (384.7, 360), "wrong-sum", "744.7"),
    ("lab15.t1", (384.4, 360), "wrong-sum", "744.4"),
    ("lab15.t1", (384, 360.01), "wrong-sum", "744.01"),
    ("lab15.t1", [384], "wrong-length"),
    ("lab15.t2", [4, 4, 4, 4], "too-heavy", "device 3", "24 ms"),
    ("lab15.t2", [4, 4, 4, 4], "too-heavy", "714 ms"),
    ("lab15.t2", [4, 4, 5, 3], "heavy-devices-late"),
    ("lab15.t2", [5, 5, 5, 1], "heavy-devices-late"),
    ("lab15.t2", [6, 4, 4, 2], "too-heavy", "device 0", "22 ms"),
    ("lab15.t2", [2, 4, 5, 5], "too-heavy", "device 3"),
    ("lab15.t2", [18, 20, 16, 16], "ms-not-layers"),
    ("lab15.t2", [5, 10, 14, 16], "layers-up-to-cuts"),
    ("lab15.t2", [5, 10, 14], "places-of-cuts"),
    ("lab15.t2", [4, 4, 4, 3], "another-number-of-layers", "15 layers", "16"),
    ("lab15.t2", [6, 6, 4, 0], "out-of-range"),
    ("lab15.t2", [5.5, 4.5, 4, 2], "not-a-whole-number"),
    ("lab15.t2", 16, "not-a-list"),
    ("lab15.t3", equal_numbers, "equal-numbers", "layers of 1, 4, 4, 4, 11 ms on 2 devices", "15 ms"),
    ("lab15.t3", up_to_the_mean, "up-to-the-mean", "1, 4, 4, 4, 11 ms", "device 1"),
    ("lab15.t3", past_the_mean, "past-the-mean", "device 0"),
    ("lab15.t3", nearest_to_the_mean, "nearest-to-the-mean", "device 0"),
    ("lab15.t3", nearest_to_equal_shares, "nearest-to-equal-shares", "device 1 has a load of 8 ms"),
    ("lab15.t3", mean_of_the_rest, "mean-of-the-rest"),
    ("lab15.t3", heaviest_in_two, "heaviest-in-two"),
    ("lab15.t3", in_any_order, "in-any-order"),
    ("lab15.t3", least_squares, "least-squares", "2, 8, 6, 3 ms on 3 devices"),
    ("lab15.t3", without_a_refusal, "not-refused", "3 devices"),
    ("lab15.t3", the_examples, "another-number-of-devices"),
    ("lab15.t3", lambda times, devices: [len(times)], "another-number-of-devices", "1 number"),
    ("lab15.t3", lambda times, devices: loads_of(times, recursion(times, devices)), "loads-not-layers", "5"),
    ("lab15.t3", lambda times, devices: np.cumsum(recursion(times, devices)), "layers-up-to-cuts", "3 layers", "2"),
    ("lab15.t3", lambda times, devices: [1] * devices, "another-number-of-layers", "2 layers", "5"),
    ("lab15.t3", lambda times, devices: [*[0] * (devices - 1), len(times)], "empty-device", "device 0"),
    ("lab15.t3", lambda times, devices: [*[1] * (devices - 1), len(times) - devices + 1], "not-the-least", "1, 4, 4, 4, 11 ms", "23 ms"),
    ("lab15.t3", lambda times, devices: recursion(times, devices)[::-1], "not-the-least"),
    ("lab15.t3", lambda times, devices: [len(times) / devices] * devices, "not-a-whole-number", "2.5"),
    ("lab15.t3", lambda times, devices: [-1, len(times) + 1] if devices == 2 else recursion(times, devices), "out-of-range", "-1"),
    ("lab15.t3", lambda times, devices: [float("nan")] * devices, "not-a-number", "nan"),
    ("lab15.t3", lambda times, devices: [str(count) for count in recursion(times, devices)], "not-a-number", "'1'"),
    ("lab15.t3", lambda times, devices: set(recursion(times, devices)), "not-a-list"),
    ("lab15.t3", lambda times, devices: len(times), "not-a-list", "[4, 1]"),
    ("lab15.t3", changing, "changes-its-argument"),
    ("lab15.t3", lambda times: [1], "signature", "partition(times, devices)"),
    ("lab15.t3", [4, 1], "not-a-function", "[4, 1]"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab15.t1", np.array([384, 360])),
    ("lab15.t1", (Fraction(384), 360.0)),
    ("lab15.t2", (5, 5, 4, 2)),
    ("lab15.t2", np.array([5, 5, 4, 2])),
    ("lab15.t3", recursion),
    ("lab15.t3", lambda times, devices: recursion(times[::-1], devices)[::-1]),
    ("lab15.t3", lambda times, devices: np.array(recursion(times, devices), float)),
    ("lab15.t3", lambda times, devices: tuple(map(np.int16, recursion([float(time) for time in times], devices)))),
]


def numbers_of(key: str, seed: int | None) -> list[int]:
    """The whole numbers in the prompt of a task."""
    return [int(number) for number in re.findall(r"\b\d+\b", TASKS[key].instance(seed).prompt)]


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


@in_turn("seed", [None, *range(8)])
def test_the_idle_time_of_task_1_has_these_two_parts(seed: int | None) -> None:
    *forward, microbatches = numbers_of("lab15.t1", seed)
    step = step_by_hand(list(map(float, forward)), microbatches)
    work = [3 * each * microbatches for each in forward]
    parts = 4 * (step - max(work)), 4 * max(work) - sum(work)
    assert check("lab15.t1", parts, seed=seed).passed
    assert seed is not None or parts == (384, 360)


@in_turn("seed", [None, *range(20)])
def test_whole_numbers_in_task_1_are_whole_numbers(seed: int | None) -> None:
    """A share of a ms too much is not taken for the right sum."""
    truth = TASKS["lab15.t1"].instance(seed).data.numbers[0].truth
    assert check("lab15.t1", truth, seed=seed).passed
    for off in (0.7, 0.4, 0.004, -0.3):
        assert check("lab15.t1", (truth[0] + off, truth[1]), seed=seed).code == "wrong-sum"
        assert check("lab15.t1", (truth[0], truth[1] + off), seed=seed).code == "wrong-sum"
        assert check("lab15.t1", (truth[0] + off, truth[1] - off), seed=seed).code == "wrong-division"


def test_one_cut_is_the_shortest_and_it_passes() -> None:
    steps = {}
    for counts in all_cuts(16, 4):
        edges = np.cumsum([0, *counts]).tolist()
        stages = [float(sum(([2] + 14 * [4] + [12])[low:high])) for low, high in pairwise(edges)]
        assert loads_of(LAYERS, counts).tolist() == stages
        steps[tuple(counts)] = step_by_hand(stages, 8)
    shortest = [counts for counts, step in steps.items() if step == min(steps.values())]
    assert shortest == [(5, 5, 4, 2)]
    assert steps[shortest[0]] == 606
    assert [counts for counts in steps if check("lab15.t2", counts).passed] == shortest


@examples(60)
@given(halves=st.lists(st.integers(0, 12), min_size=1, max_size=9), data=st.data())
def test_exactly_the_cuts_with_the_least_largest_load_pass(halves: list[int], data: st.DataObject) -> None:
    """Try all cuts of a small model."""
    devices = data.draw(st.integers(1, len(halves)))
    times = np.array(halves) / 2
    judge = TASKS["lab15.t3"].instance(None).data.judge
    largest = {
        tuple(cut): max(sum(halves[low:high]) for low, high in pairwise(np.cumsum([0, *cut]))) for cut in all_cuts(len(halves), devices)
    }
    least = min(largest.values())
    for cut, load in largest.items():
        feedback = judge(list(cut), times, devices)
        assert feedback.passed == (load == least), (cut, feedback)
        assert lighter_cut_exists(times, devices, load / 2) == (load > least)


def test_the_cases_have_every_edge() -> None:
    build = TASKS["lab15.t3"].instance(None).data
    cases = build.cases(np.random.default_rng(0))
    sizes = [(len(times), devices) for times, devices in (case.arguments for case in cases)]
    assert (1, 1) in sizes
    assert any(devices == 1 < layers for layers, devices in sizes), "one device"
    assert any(devices == layers > 1 for layers, devices in sizes), "a device for each layer"
    assert [size for size, case in zip(sizes, build.public_cases, strict=True) if case.refused] == [(2, 3)]
    assert max(sizes) == (200, 8)
    assert any(0 in case.arguments[0] for case in build.public_cases), "a layer that takes no time"
    for case in build.public_cases:
        assert all(float(2 * time).is_integer() for time in case.arguments[0]), "sums are exact"


EXHAUSTIVE = """
from itertools import combinations, pairwise

import numpy as np

def partition(times, devices):
    if devices > len(times):
        raise ValueError("fewer layers than devices")
    until = np.cumsum([0, *times])
    cuts = ([0, *places, len(times)] for places in combinations(range(1, len(times)), devices - 1))
    return np.diff(min(cuts, key=lambda cut: max(until[high] - until[low] for low, high in pairwise(cut)))).tolist()

check("lab15.t3", partition)
"""


def test_a_program_that_tries_all_cuts_is_right_for_small_models_and_never_ends_for_the_largest() -> None:
    build = TASKS["lab15.t3"].instance(None).data
    handed: dict[str, Any] = {"check": lambda key, function: None}
    exec(EXHAUSTIVE, handed)  # noqa: S102 - a program of our own
    small = [case for case in build.public_cases if len(case.arguments[0]) <= 12]
    assert len(small) > 15
    assert replace(build, cases=lambda rng: small).check(handed["partition"], seed=1).passed
    layers, devices = max((len(times), devices) for times, devices in (case.arguments for case in build.public_cases))
    assert comb(layers - 1, devices - 1) > 10**12


def test_a_worker_ends_a_program_that_tries_all_cuts() -> None:
    budget = Budget(replace(Limits(), seconds_a_task=0.5))  # the call would take years
    with launcher("none") as workers:
        session = workers.open("bare", budget)
        try:
            ((_, function), *_), error = session.run(EXHAUSTIVE, "cell 1")
            assert error is None
            build = TASKS["lab15.t3"].personal(0).data.untwisted
            feedback = build.check(Remote(session, function, fresh=build.fresh, cell="cell 1", provide=lambda missing: False))
        finally:
            session.close()
    assert feedback.code == "too-slow"
