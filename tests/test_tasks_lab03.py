"""Test lab 3's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

from typing import Any

import numpy as np

from hybridlab import build, simulate
from hybridlab.course.published.zero_bubble import RUNS

ONE_F_ONE_B_GIB = [1.5 * (8 - device) for device in range(8)]

STEP = [simulate(build("1f1b", 16, 64), RUNS[-1].costs(latency)).makespan for latency in (True, False)]

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab03.t1", 71.4, "per-cent", "71.4", "0.714"),
    ("lab03.t1", 0.417, "bubble-ratio"),
    ("lab03.t1", 0.583, "busy-share"),
    ("lab03.t1", 1.4, "inverted"),
    ("lab03.t1", 0.5, "equal-stages"),
    ("lab03.t1", 1, "device-0-alone"),
    ("lab03.t1", 1 / 3, "device-2-alone"),
    ("lab03.t1", 0.1, "wrong-value"),
    ("lab03.t1", -0.4, "wrong-value", "-0.4"),
    ("lab03.t1", "0.71", "not-a-number"),
    ("lab03.t1", [0.71], "not-a-number"),
    ("lab03.t2", 70, "idle-over-ideal"),
    ("lab03.t2", 72, "k-for-k-1"),
    ("lab03.t2", 80, "k-over-m"),
    ("lab03.t2", 27, "another-pipeline"),
    ("lab03.t2", 62, "too-few", "0.10"),
    ("lab03.t2", 64, "more-than-enough"),
    ("lab03.t2", 1, "too-few", "1 microbatch"),
    ("lab03.t2", 62.5, "not-a-whole-number"),
    ("lab03.t2", 0, "out-of-range"),
    ("lab03.t3", [6, 5, 4, 3, 2, 1], "more-than-microbatches"),
    ("lab03.t3", [4] * 6, "gpipe"),
    ("lab03.t3", [1, 2, 3, 4, 4, 4], "reversed"),
    ("lab03.t3", [4, 4, 3, 2, 1, 0], "warm-up-alone"),
    ("lab03.t3", [4, 4, 4, 4, 2, 1], "too-much", "device 3", "4 activations"),
    ("lab03.t3", [4, 4, 4, 3, 1, 1], "too-little", "device 4", "1 activations"),
    ("lab03.t3", [4, 4, 4, 3, 2], "wrong-length"),
    ("lab03.t4", 30, "printed-figure"),
    ("lab03.t4", 50, "fill-alone"),
    ("lab03.t4", 80, "drain-alone"),
    ("lab03.t4", 260, "both-devices-added"),
    ("lab03.t4", 65, "halved-times"),
    ("lab03.t4", 1170, "makespan"),
    ("lab03.t4", 1040, "busy-time"),
    ("lab03.t4", 170, "all-reduce-included"),
    ("lab03.t4", 0.13, "seconds"),
    ("lab03.t4", 100, "wrong-value"),
    ("lab03.t5", ("gpipe", [48] * 8), "does-not-fit", "gpipe", "device 0", "48 GiB", "16"),
    ("lab03.t5", ("zb-h1", [12] * 8), "does-not-fit", "zb-h1", "device 7", "12 GiB", "8"),
    ("lab03.t5", ("1f1b", list(range(8, 0, -1))), "microbatches-not-gib"),
    ("lab03.t5", ("1f1b", ONE_F_ONE_B_GIB[::-1]), "reversed"),
    ("lab03.t5", ("1f1b", [12] * 8), "too-much", "device 1", "12 GiB"),
    ("lab03.t5", ("1f1b", []), "wrong-length"),
    ("lab03.t5", ("1F1B!", ONE_F_ONE_B_GIB), "unknown-name", "'1f1b'"),
    ("lab03.t5", "1f1b", "wrong-shape"),
    ("lab03.t6", 66.3, "another-pipeline"),
    ("lab03.t6", 30 * 0.535, "gpipe"),
    ("lab03.t6", 120 * 0.535, "no-fill-and-drain"),
    ("lab03.t6", 0.535, "one-message"),
    ("lab03.t6", 0.0792, "seconds"),
    ("lab03.t6", STEP[0], "step-with-messages"),
    ("lab03.t6", STEP[1], "step-without-messages"),
    ("lab03.t6", 148 * 0.762, "another-run", "1.5B", "64 microbatches"),
    ("lab03.t6", 10, "wrong-value"),
]


# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab03.t1", 0.71),
    ("lab03.t1", 0.72),  # from the rounded bubble ratio of the picture
    ("lab03.t1", np.float32(0.7143)),
    ("lab03.t2", 63.0),
    ("lab03.t2", np.int64(63)),
    ("lab03.t3", (4, 4, 4, 3, 2, 1)),
    ("lab03.t3", np.array([4.0, 4, 4, 3, 2, 1])),
    ("lab03.t4", 130.0),
    ("lab03.t5", ["1F1B", ONE_F_ONE_B_GIB]),
    ("lab03.t5", ("1f1b", np.array(ONE_F_ONE_B_GIB))),
    ("lab03.t6", 79.2),
    ("lab03.t6", 79.18),
]
