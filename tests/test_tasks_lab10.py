"""Lab 10's tasks: every way to write the right answer passes, and every typical wrong answer gets a sentence of its own."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from hybridlab import build, check
from hybridlab.course.tasks.lab10 import warmed_up, whole_model

SPEEDUP = 38400 / 4933  # 32 microbatches of 1200 ms; (32 + 15) 75 + [2 * 15 * 32/16 + 2 * 14] 16 = 4933

# Task, wrong answer, what its sentence must say.
WRONG: list[tuple[str, Any, str]] = [
    ("lab10.t1", (2400 / 4933, 0.49), "this is the efficiency, or one device with 2"),
    ("lab10.t1", (3064 / 4933, 0.49), "2 devices and 4 microbatches"),
    ("lab10.t1", (20312 / 4933, 0.49), "a speedup is against one"),
    ("lab10.t1", (4933 / 38400, 0.49), "the other way round"),
    ("lab10.t1", (3525 / 4933, 0.49), "the same pipeline without latency"),
    ("lab10.t1", (38400 / 3525, 0.49), "the speedup without latency"),
    ("lab10.t1", (16, 1), "never wait"),
    ("lab10.t1", (5, 0.49), "32 microbatches of 1200 ms each"),
    ("lab10.t1", (SPEEDUP, 1 - SPEEDUP / 16), "the bubble ratio"),
    ("lab10.t1", (SPEEDUP, 100 * SPEEDUP / 16), "a share from 0 to 1"),
    ("lab10.t1", (SPEEDUP, SPEEDUP / 2), "by all 16 devices"),
    ("lab10.t1", (SPEEDUP, SPEEDUP / 32), "not by the microbatches"),
    ("lab10.t1", (SPEEDUP, 32 / 47), "the efficiency without latency"),
    ("lab10.t1", (SPEEDUP, 0.9), "one device among the 16"),
    ("lab10.t1", SPEEDUP, "a list of 2 numbers"),
    ("lab10.t1", (SPEEDUP,), "there are 1"),
    ("lab10.t2", [3, 2, 1, 0], "1 forward more than device 1"),
    ("lab10.t2", [4, 3, 2, 1], "makespan 1128.5 ms, 14 activations"),
    ("lab10.t2", [6, 4, 3, 0], "device 1 warms up with 1 forward more"),
    ("lab10.t2", [6, 4, 2, 1], "device 2 warms up with 1 forward more"),
    ("lab10.t2", [16, 16, 16, 16], "64 activations in all: fast enough, but 16"),
    ("lab10.t2", [7, 4, 2, 0], "17 activations in all: fast enough, but 16 are enough"),
    ("lab10.t2", [0, 2, 4, 6], "wait for ever: device 1 waits for a forward that device 0"),
    ("lab10.t2", [6, 4, 2, 3], "wait for ever: device 3"),
    ("lab10.t2", [9, 4, 4, 0], "device 1 warms up with 0 forwards more"),
    ("lab10.t2", [17, 4, 2, 0], "from 0 to 16, not 17"),
    ("lab10.t2", [6.5, 4, 2, 0], "from 0 to 16, not 6.5"),
    ("lab10.t2", [-1, 4, 2, 0], "from 0 to 16, not -1"),
    ("lab10.t2", [6, 4, 2], "a list of 4 numbers"),
    ("lab10.t3", 32, "the best of the sweep's five"),
    ("lab10.t3", 16, "more devices than microbatches are no fault"),
    ("lab10.t3", 43, "42 a little less"),
    ("lab10.t3", 44, "(M-1) microbatches"),
    ("lab10.t3", 60, "adds a message there and one back"),
    ("lab10.t3", 1, "one more takes"),
    ("lab10.t3", 128, "one fewer takes"),
    ("lab10.t3", 41, "one more takes 2038.57"),
    ("lab10.t3", 42.4, "a whole number from 1"),
    ("lab10.t3", 0, "a whole number from 1"),
]
# Task, another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab10.t1", (7.78, 0.49)),
    ("lab10.t1", [np.float64(SPEEDUP), 0.4865]),
    ("lab10.t2", np.array([6, 4, 2, 0])),
    ("lab10.t2", (6.0, 4, 2, 0)),
    ("lab10.t3", 42.0),
    ("lab10.t3", np.int64(42)),
]


def ends(warmups: Sequence[int], microbatches: int = 16) -> float | None:
    """The makespan of task 2 by asking every device in turn what it can run, None where all wait for ever."""
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
                    arrived = done[sent] + 16
                else:
                    break
                free[device] = done[lane.pop(0)] = max(free[device], arrived) + (12.5 if kind == "F" else 25)
        if len(done) == before:
            return None
    return max(done.values())


def test_no_warmups_are_as_fast_with_fewer_activations() -> None:
    fast = {warmups for warmups in product(range(9), range(7), range(5), range(3)) if ends(warmups) == 19 * 37.5 + 6 * 16}
    held = {warmups: sum(warmup + 1 for warmup in warmups) for warmups in fast}
    assert min(held.values()) == 16
    assert [warmups for warmups in fast if held[warmups] == 16] == [(6, 4, 2, 0)]


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
        told = " ".join(check("lab10.t2", list(warmups)).messages)
        assert ("wait for ever" in told) == (ends(warmups) is None)


def test_task_3_has_one_best_number() -> None:
    """By GPipe's three parts: one microbatch alone, the others shared, one round trip."""
    times = {devices: 1200 + 1200 * 15 / devices + 2 * (devices - 1) * 5 for devices in range(1, 10_001)}
    assert min(times, key=lambda devices: times[devices]) == 42
    assert [devices for devices in times if check("lab10.t3", devices).passed] == [42]
    assert whole_model(42) == pytest.approx(times[42])
