"""Test lab 12's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from oracle import nodes, times, uniform
from solutions import solutions_of

from hybridlab import build, check
from hybridlab.course.tasks import TASKS
from hybridlab.course.tasks.lab12 import makespan

FOLDED = [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0]

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab12.t1", [0, 1, 2] * 4, "looped"),
    ("lab12.t1", [1, 2, 3, 3, 2, 1] * 2, "devices-from-1"),
    ("lab12.t1", [2, 1, 0, 0, 1, 2] * 2, "reversed"),
    ("lab12.t1", [0] * 4 + [1] * 4 + [2] * 4, "one-long-chunk"),
    ("lab12.t1", [0, 1, 2, 1] * 3, "one-stage-a-turn"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 3], "no-such-device", "device 3"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0.5], "no-such-device", "device 0.5"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 1], "uneven", "3, 5 and 4"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 2, 1, 0, 0, 1, 2], "wrong-value", "stage 6", "device 2", "chunk 2", "up"),
    ("lab12.t1", [0, 1, 2, 0, 1, 2, 2, 1, 0, 0, 1, 2], "wrong-value", "stage 3", "device 0", "chunk 1", "down"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0], "wrong-length"),
    ("lab12.t1", "012210012210", "not-a-list"),
    ("lab12.t2", [480, 552], "swapped"),
    ("lab12.t2", [480, 480], "no-message-between-chunks"),
    ("lab12.t2", [552, 552], "messages-at-turns"),
    ("lab12.t2", [46, 40], "one-microbatch-alone"),
    ("lab12.t2", [276, 240], "one-way"),
    ("lab12.t2", [552, 20], "one-microbatch-one-way"),
    ("lab12.t2", [120, 480], "no-chunks"),
    ("lab12.t2", [576, 480], "one-an-operation"),
    ("lab12.t2", [552, 456], "wrong-value"),
    ("lab12.t2", 552, "not-a-list"),
    ("lab12.t3", 468, "no-messages"),
    ("lab12.t3", 476, "no-fill-and-drain"),
    ("lab12.t3", 584, "1f1b"),
    ("lab12.t3", 490, "one-way"),
    ("lab12.t3", 516, "vk-messages"),
    ("lab12.t3", 480, "messages-of-one-chunk"),
    ("lab12.t3", 504, "folded"),
    ("lab12.t3", 996, "all-microbatches"),
    ("lab12.t3", 224, "work-divided"),
    ("lab12.t3", 432, "work-alone"),
    ("lab12.t3", 0.512, "seconds"),
    ("lab12.t3", 500, "wrong-value"),
    ("lab12.t3", "512", "not-a-number"),
    ("lab12.t4", [3, 12], "too-few", "Interleaved 1F1B", "2778.0 ms", "3 chunks", "336.0 ms"),
    ("lab12.t4", [6, 12], "too-many", "Interleaved 1F1B", "2754.0 ms", "6 chunks", "282.0 ms"),
    ("lab12.t4", [4, 4], "too-few", "Looped BFS", "2598.0 ms", "4 chunks", "252.0 ms"),
    ("lab12.t4", [4, 24], "too-many", "Looped BFS", "2572.0 ms", "24 chunks", "226.0 ms"),
    ("lab12.t4", [12, 4], "too-many", "Interleaved 1F1B"),
    ("lab12.t4", [5, 12], "not-divisible", "2, 3, 4, 6, 8, 12 or 24", "5"),
    ("lab12.t4", [4.5, 12], "not-divisible", "4.5"),
    ("lab12.t4", [1, 12], "not-divisible", "not 1"),
    ("lab12.t4", [4, 7], "not-divisible", "not 7"),
    ("lab12.t4", [2, 5], "too-few", "2 chunks"),
    ("lab12.t4", 4, "not-a-list"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab12.t1", np.array(FOLDED)),
    ("lab12.t1", tuple(float(device) for device in FOLDED)),
    ("lab12.t2", (552, np.int64(480))),
    ("lab12.t2", np.array([552, 480])),
    ("lab12.t3", 512.0),
    ("lab12.t3", np.int64(512)),
    ("lab12.t3", Fraction(512)),
    ("lab12.t4", (4, 12)),
    ("lab12.t4", [4.0, np.int64(12)]),
]


def test_a_fold_puts_neighbouring_stages_on_neighbouring_devices_and_turns_where_it_is() -> None:
    """From one stage to the next, the device is one up or one down, but at a turn it stays the same."""
    walk, step = [0], 1
    while len(walk) < 12:
        turns = len(walk) % 3 == 0
        step = -step if turns else step
        walk.append(walk[-1] if turns else walk[-1] + step)
    assert walk == FOLDED == solutions_of("lab12")["lab12.t1"]


def numbers_of(key: str, seed: int | None) -> list[int]:
    """The whole numbers in the prompt of a task."""
    return [int(number) for number in re.findall(r"\b\d+\b", TASKS[key].instance(seed).prompt)]


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_messages_are_the_changes_of_device(seed: int | None) -> None:
    devices, microbatches, chunks = numbers_of("lab12.t2", seed)
    loop = [stage % devices for stage in range(chunks * devices)]
    fold = [(chunk % 2) * (devices - 1) + (1 - 2 * (chunk % 2)) * place for chunk in range(chunks) for place in range(devices)]
    counted = [2 * microbatches * sum(here != there for here, there in pairwise(path)) for path in (loop, fold)]
    assert check("lab12.t2", counted, seed=seed).passed


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_the_placement_of_other_sizes_goes_up_and_down(seed: int | None) -> None:
    stages, devices, chunks, _ = numbers_of("lab12.t1", seed)
    up = list(range(devices))
    assert check("lab12.t1", (up + up[::-1]) * (chunks // 2), seed=seed).passed
    assert stages == chunks * devices


@pytest.mark.parametrize("seed", [None, *range(4)])
def test_the_step_by_formula_is_the_oracles(seed: int | None) -> None:
    chunks, devices, microbatches, forward, backward, latency = numbers_of("lab12.t3", seed)
    schedule = build("interleaved", devices, microbatches, chunks)
    ends = times(nodes(schedule), uniform(devices, forward, backward, p2p=latency), chunks=chunks)
    assert check("lab12.t3", max(end for _, end in ends.values()), seed=seed).passed


@pytest.mark.parametrize(("place", "name"), [(0, "interleaved"), (1, "looped-bfs")])
def test_no_cut_of_24_layers_is_faster(place: int, name: str) -> None:
    """Looped BFS by its rule: a chunk begins when the one before it has run and its first microbatch has come round."""
    found = {}
    for chunks in (2, 3, 4, 6, 8, 12, 24):
        ways = [time / chunks for time in (48, 96)]
        rounds = sum(max(16 * time, 8 * (time + 3)) for time in ways)
        looped = (chunks - 1) * rounds + sum(7 * (time + 3) + 16 * time for time in ways)
        formula = (16 + 7 / chunks) * 144 + 2 * (8 * chunks - 1) * 3  # too short where a message outlasts a chunk's forward
        found[chunks] = looped if name == "looped-bfs" else formula
        exact = name == "looped-bfs" or 48 / chunks > 3
        assert makespan(name, 8, 16, chunks, 48, 3) >= found[chunks] - 1e-9
        assert not exact or makespan(name, 8, 16, chunks, 48, 3) == pytest.approx(found[chunks])
    assert min(found, key=found.__getitem__) == solutions_of("lab12")["lab12.t4"][place]
