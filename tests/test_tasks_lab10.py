"""Test lab 10's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from collections.abc import Sequence
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from hybridlab import Costs, build, check, simulate
from hybridlab.course.tasks import TASKS
from hybridlab.course.tasks.lab10 import warmed_up, whole_model

SPEEDUP = 38400 / 4933  # 32 microbatches of 1200 ms; (32 + 15) 75 + [2 * 15 * 32/16 + 2 * 14] 16 = 4933

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab10.t1", (2400 / 4933, 0.49), "efficiency-first"),
    ("lab10.t1", (3064 / 4933, 0.49), "against-first-point"),
    ("lab10.t1", (20312 / 4933, 0.49), "against-two-devices"),
    ("lab10.t1", (4933 / 38400, 0.49), "inverted"),
    ("lab10.t1", (3525 / 4933, 0.49), "against-no-latency"),
    ("lab10.t1", (38400 / 3525, 0.49), "no-latency"),
    ("lab10.t1", (16, 1), "nobody-waits"),
    ("lab10.t1", (5, 0.49), "wrong-speedup"),
    ("lab10.t1", (SPEEDUP, 1 - SPEEDUP / 16), "bubble-ratio"),
    ("lab10.t1", (SPEEDUP, 100 * SPEEDUP / 16), "per-cent"),
    ("lab10.t1", (SPEEDUP, SPEEDUP / 2), "divided-by-2"),
    ("lab10.t1", (SPEEDUP, SPEEDUP / 32), "divided-by-microbatches"),
    ("lab10.t1", (SPEEDUP, 32 / 47), "efficiency-without-latency"),
    ("lab10.t1", (SPEEDUP, 0.9), "wrong-efficiency"),
    ("lab10.t1", (7.8, 0.49), "too-few-decimals"),
    ("lab10.t1", (7.78, 0.5), "too-few-decimals", "the speedup is right"),
    ("lab10.t1", SPEEDUP, "not-a-list"),
    ("lab10.t1", (SPEEDUP,), "wrong-length", "1"),
    ("lab10.t2", [3, 2, 1, 0], "too-slow", "1 forward", "device 1"),
    ("lab10.t2", [4, 3, 2, 1], "too-slow", "1128.5 ms", "14 activations"),
    ("lab10.t2", [6, 4, 3, 0], "too-slow", "device 1", "1 forward"),
    ("lab10.t2", [6, 4, 2, 1], "too-slow", "device 2", "1 forward"),
    ("lab10.t2", [16, 16, 16, 16], "too-much-memory", "64 activations"),
    ("lab10.t2", [7, 4, 2, 0], "too-much-memory", "17 activations"),
    ("lab10.t2", [0, 2, 4, 6], "deadlock", "device 1", "device 0"),
    ("lab10.t2", [6, 4, 2, 3], "deadlock", "device 3"),
    ("lab10.t2", [9, 4, 4, 0], "too-slow", "device 1", "0 forwards"),
    ("lab10.t2", [17, 4, 2, 0], "not-a-count", "0 to 16", "17"),
    ("lab10.t2", [6.5, 4, 2, 0], "not-a-count", "0 to 16", "6.5"),
    ("lab10.t2", [-1, 4, 2, 0], "not-a-count", "0 to 16", "-1"),
    ("lab10.t2", [6, 4, 2], "wrong-length"),
    ("lab10.t3", 32, "best-of-the-sweep"),
    ("lab10.t3", 16, "as-many-as-microbatches"),
    ("lab10.t3", 43, "m-for-m-1-rounded-down", "42"),
    ("lab10.t3", 44, "m-for-m-1"),
    ("lab10.t3", 60, "one-message"),
    ("lab10.t3", 1, "too-few"),
    ("lab10.t3", 128, "too-many"),
    ("lab10.t3", 41, "too-few", "2038.57"),
    ("lab10.t3", 42.4, "not-a-whole-number"),
    ("lab10.t3", 0, "out-of-range"),
]
# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab10.t1", (7.78, 0.49)),
    ("lab10.t1", [np.float64(SPEEDUP), 0.4865]),
    ("lab10.t2", np.array([6, 4, 2, 0])),
    ("lab10.t2", (6.0, 4, 2, 0)),
    ("lab10.t2", range(6, -1, -2)),
    ("lab10.t3", 42.0),
    ("lab10.t3", np.int64(42)),
]


def ends(warmups: Sequence[int], microbatches: int = 16, latency: float = 16) -> float | None:
    """Return the makespan of task 2, found by asking every device in turn what it can run.

    It is None if all devices wait for ever.
    """
    lanes = []
    for device, warmup in enumerate(warmups):
        lane = [("F", device, number) for number in range(warmup)]
        for number in range(microbatches):
            lane += [("F", device, number + warmup)] * (number + warmup < microbatches) + [("B", device, number)]
        lanes.append(lane)
    done: dict[tuple[str, int, int], float] = {}
    free = [0.0] * len(lanes)
    while any(lanes):
        before = len(done)
        for device, lane in enumerate(lanes):
            while lane:
                kind, _, number = lane[0]
                last = device == len(lanes) - 1
                sent = (kind, device - 1 if kind == "F" else device + 1, number)
                if (kind == "F" and device == 0) or (kind == "B" and last):
                    arrived = 0.0
                elif sent in done:
                    arrived = done[sent] + latency
                else:
                    break
                free[device] = done[lane.pop(0)] = max(free[device], arrived) + (12.5 if kind == "F" else 25)
        if len(done) == before:
            return None
    return max(done.values())


def numbers_of(key: str, seed: int) -> list[float]:
    """The numbers in the prompt of a task."""
    return [float(number) for number in re.findall(r"\b\d+(?:\.\d+)?", TASKS[key].instance(seed).prompt.replace("1F1B", ""))]


def test_no_warmups_are_as_fast_with_fewer_activations() -> None:
    fast = {warmups for warmups in product(range(9), range(7), range(5), range(3)) if ends(warmups) == 19 * 37.5 + 6 * 16}
    held = {warmups: sum(warmup + 1 for warmup in warmups) for warmups in fast}
    assert min(held.values()) == 16
    assert [warmups for warmups in fast if held[warmups] == 16] == [(6, 4, 2, 0)]


@pytest.mark.parametrize("seed", range(4))
def test_no_other_warmups_are_right_for_other_sizes(seed: int) -> None:
    """Warm-ups that grow from one device to the next deadlock, so the test tries those that do not."""
    devices, _, microbatches, latency, time, held = numbers_of("lab10.t2", seed)
    assert time == (microbatches + devices - 1) * 37.5 + 2 * (devices - 1) * latency
    most = int(held - devices)
    falling = combinations_with_replacement(range(most, -1, -1), int(devices))
    fast = [warmups for warmups in falling if sum(warmups) <= most and ends(warmups, int(microbatches), latency) == time]
    assert len(fast) == 1
    assert check("lab10.t2", fast[0], seed=seed).passed


@pytest.mark.parametrize("seed", range(5))
def test_the_speedup_at_other_latencies(seed: int) -> None:
    (_, *sizes) = numbers_of("lab10.t1", seed)
    latency = sizes[-1]
    timeline = simulate(build("1f1b", 16, 32), Costs(forward=25, backward=50, p2p=latency))
    speedup = 32 * 1200 / timeline.makespan
    assert check("lab10.t1", (speedup, speedup / 16), seed=seed).passed
    assert 0.46 < speedup / 16 < 0.54, "half of the time is lost"
    assert timeline.makespan - 47 * 75 > 15 * 75, "more to messages than to fill and drain"


@pytest.mark.parametrize("seed", range(9))
def test_the_best_number_for_other_batches(seed: int) -> None:
    microbatches, latency = numbers_of("lab10.t3", seed)
    times = {devices: 1200 * (microbatches - 1) / devices + 2 * (devices - 1) * latency for devices in range(1, 1000)}
    best = min(times, key=times.__getitem__)
    assert check("lab10.t3", best, seed=seed).passed
    assert times[best] < times[33] < times[32] < times[16], "as the sentences about mistakes say"


@pytest.mark.parametrize("warmups", [(3, 2, 1, 0), (6, 4, 2, 0), (16, 16, 16, 16), (8, 5, 2, 0), (9, 4, 3, 2)])
def test_the_judge_runs_the_warmups_that_were_handed_in(warmups: tuple[int, ...]) -> None:
    run = warmed_up(list(warmups))
    assert run.makespan == ends(warmups)
    assert run.peak_activations.tolist() == [min(warmup + 1, 16) for warmup in warmups]


@pytest.mark.parametrize(("warmups", "name"), [([3, 2, 1, 0], "1f1b"), ([6, 4, 2, 0], "eager-1f1b"), ([16] * 4, "gpipe")])
def test_three_warmups_are_known_schedules(warmups: list[int], name: str) -> None:
    assert warmed_up(warmups).schedule.orders == build(name, 4, 16).orders


def test_devices_wait_for_ever_where_one_warms_up_less_than_the_next() -> None:
    for warmups in product((0, 2, 14, 15, 16), repeat=4):
        assert (check("lab10.t2", list(warmups)).code == "deadlock") == (ends(warmups) is None)


@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_task_3_has_one_best_number(step: int) -> None:
    """GPipe's makespan has three parts: one microbatch alone, the other microbatches divided by the devices, and one round trip."""
    times = {devices: 1200 + 1200 * 15 / devices + 2 * (devices - 1) * 5 for devices in range(1, 10_001)}
    assert min(times, key=lambda devices: times[devices]) == 42
    tried = [*range(1, 200), *range(200, 10_001, step)]
    assert [devices for devices in tried if check("lab10.t3", devices).passed] == [42]
    assert whole_model(42) == pytest.approx(times[42])
