"""Lab 12's tasks: every way to write the right answer passes, and every typical wrong answer gets a sentence of its own."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from oracle import nodes, times, uniform
from solutions import solutions_of

from hybridlab import build
from hybridlab.course.tasks.lab12 import makespan

FOLDED = [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0]

# Task, wrong answer, what its sentence must say.
WRONG: list[tuple[str, Any, str]] = [
    ("lab12.t1", [0, 1, 2] * 4, "the looped placement"),
    ("lab12.t1", [1, 2, 3, 3, 2, 1] * 2, "counted from 0"),
    ("lab12.t1", [2, 1, 0, 0, 1, 2] * 2, "begins on the last device"),
    ("lab12.t1", [0] * 4 + [1] * 4 + [2] * 4, "one chunk, four times as long"),
    ("lab12.t1", [0, 1, 2, 1] * 3, "a turn takes two stages"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 3], "no device 3"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0.5], "no device 0.5"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 1], "hold 3, 5 and 4"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 2, 1, 0, 0, 1, 2], "stage 6 does not stand on device 2: chunk 2 runs up"),
    ("lab12.t1", [0, 1, 2, 0, 1, 2, 2, 1, 0, 0, 1, 2], "stage 3 does not stand on device 0: chunk 1 runs down"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0], "a list of 12 numbers"),
    ("lab12.t1", "012210012210", "a list of 12 numbers"),
    ("lab12.t2", [480, 552], "the wrong order"),
    ("lab12.t2", [480, 480], "pass messages on to each other"),
    ("lab12.t2", [552, 552], "a turn needs no message"),
    ("lab12.t2", [46, 40], "one microbatch: there are 12"),
    ("lab12.t2", [276, 240], "this is one way"),
    ("lab12.t2", [552, 20], "one microbatch on its way there"),
    ("lab12.t2", [120, 480], "without chunks"),
    ("lab12.t2", [576, 480], "one for each operation"),
    ("lab12.t2", [552, 456], "count how often one microbatch changes the device"),
    ("lab12.t2", 552, "a list of 2 numbers"),
    ("lab12.t3", 468, "lacks the messages"),
    ("lab12.t3", 476, "lacks fill and drain"),
    ("lab12.t3", 584, "with chunks they are divided by v"),
    ("lab12.t3", 490, "on the way there"),
    ("lab12.t3", 516, "one message too many"),
    ("lab12.t3", 480, "where there are no chunks"),
    ("lab12.t3", 504, "a folded placement"),
    ("lab12.t3", 996, "all 12 microbatches"),
    ("lab12.t3", 224, "the work of a device is not divided"),
    ("lab12.t3", 432, "the work of a device alone"),
    ("lab12.t3", 0.512, "give ms"),
    ("lab12.t3", 500, "add up M(F+B)"),
    ("lab12.t3", "512", "a number such as"),
    ("lab12.t4", [3, 12], "Interleaved 1F1B takes 2778.0 ms with 3 chunks, and less with more: 336.0 ms"),
    ("lab12.t4", [6, 12], "Interleaved 1F1B takes 2754.0 ms with 6 chunks, and less with fewer: 282.0 ms"),
    ("lab12.t4", [4, 4], "Looped BFS takes 2598.0 ms with 4 chunks, and less with more: 252.0 ms"),
    ("lab12.t4", [4, 24], "Looped BFS takes 2572.0 ms with 24 chunks, and less with fewer: 226.0 ms"),
    ("lab12.t4", [12, 4], "Interleaved 1F1B takes"),
    ("lab12.t4", [5, 12], "2, 3, 4, 6, 8, 12 or 24 of them, not 5"),
    ("lab12.t4", [4.5, 12], "of them, not 4.5"),
    ("lab12.t4", [1, 12], "of them, not 1"),
    ("lab12.t4", 4, "a list of 2 numbers"),
]

# Task, another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab12.t1", np.array(FOLDED)),
    ("lab12.t1", tuple(float(device) for device in FOLDED)),
    ("lab12.t2", (552, np.int64(480))),
    ("lab12.t2", np.array([552, 480])),
    ("lab12.t3", 512.0),
    ("lab12.t3", np.int64(512)),
    ("lab12.t4", (4, 12)),
    ("lab12.t4", [4.0, np.int64(12)]),
]


def test_a_fold_puts_neighbouring_stages_on_neighbouring_devices_and_turns_where_it_is() -> None:
    """Walk: a step down or up the three devices, or, at either end, none."""
    walk, step = [0], 1
    while len(walk) < 12:
        turns = len(walk) % 3 == 0
        step = -step if turns else step
        walk.append(walk[-1] if turns else walk[-1] + step)
    assert walk == FOLDED == solutions_of("lab12")["lab12.t1"]


def test_messages_are_the_changes_of_device() -> None:
    loop = [stage % 6 for stage in range(24)]
    fold = [stage % 6 if stage // 6 % 2 == 0 else 5 - stage % 6 for stage in range(24)]
    counted = [2 * 12 * sum(here != there for here, there in pairwise(path)) for path in (loop, fold)]
    assert counted == list(solutions_of("lab12")["lab12.t2"])


def test_the_step_by_formula_is_the_oracles() -> None:
    schedule = build("interleaved", 4, 12, 3)
    ends = times(nodes(schedule), uniform(4, 12, 24, p2p=2), chunks=3)
    assert max(end for _, end in ends.values()) == Fraction(512) == solutions_of("lab12")["lab12.t3"]


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
