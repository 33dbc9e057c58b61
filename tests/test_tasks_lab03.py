"""Lab 3's tasks: every way to write the right answer passes, and every typical wrong answer gets a sentence of its own."""

from typing import Any

import numpy as np

from hybridlab import build, simulate
from hybridlab.course.published.zero_bubble import RUNS

ONE_F_ONE_B_GIB = [1.5 * (8 - device) for device in range(8)]

STEP = [simulate(build("1f1b", 16, 64), RUNS[-1].costs(latency)).makespan for latency in (True, False)]

# Task, wrong answer, what its sentence must say.
WRONG: list[tuple[str, Any, str]] = [
    ("lab03.t1", 71.4, "write 71.4 % as 0.714"),
    ("lab03.t1", 0.417, "divides by all device time"),
    ("lab03.t1", 0.583, "busy share"),
    ("lab03.t1", 1.4, "other way round"),
    ("lab03.t1", 0.5, "(K-1)/M"),
    ("lab03.t1", 1, "device 0 alone"),
    ("lab03.t1", 1 / 3, "device 2 alone"),
    ("lab03.t1", 0.1, "sum of the lengths"),
    ("lab03.t1", -0.4, "is not -0.4"),
    ("lab03.t1", "0.71", "a number such as"),
    ("lab03.t1", [0.71], "a number such as"),
    ("lab03.t2", 70, "(K-1)/M"),
    ("lab03.t2", 72, "K/(M+K)"),
    ("lab03.t2", 80, "K/M"),
    ("lab03.t2", 27, "4 devices"),
    ("lab03.t2", 62, "above 0.10"),
    ("lab03.t2", 64, "fewer are enough"),
    ("lab03.t2", 1, "with 1 microbatch the"),
    ("lab03.t2", 62.5, "whole number"),
    ("lab03.t2", 0, "at least 1"),
    ("lab03.t3", [6, 5, 4, 3, 2, 1], "only 4 microbatches"),
    ("lab03.t3", [4] * 6, "GPipe"),
    ("lab03.t3", [1, 2, 3, 4, 4, 4], "from its end"),
    ("lab03.t3", [4, 4, 3, 2, 1, 0], "warm-up alone"),
    ("lab03.t3", [4, 4, 4, 4, 2, 1], "device 3 holds less than 4"),
    ("lab03.t3", [4, 4, 4, 3, 1, 1], "device 4 holds more than 1"),
    ("lab03.t3", [4, 4, 4, 3, 2], "list of 6 numbers"),
    ("lab03.t4", 30, "printed figure"),
    ("lab03.t4", 50, "the drain comes on top"),
    ("lab03.t4", 80, "the fill comes on top"),
    ("lab03.t4", 260, "both devices"),
    ("lab03.t4", 65, "halves the times"),
    ("lab03.t4", 1170, "the makespan"),
    ("lab03.t4", 1040, "the busy time"),
    ("lab03.t4", 170, "all-reduce"),
    ("lab03.t4", 0.13, "give ms"),
    ("lab03.t4", 100, "when does device 1 start"),
    ("lab03.t5", ("gpipe", [48] * 8), "gpipe does not fit: device 0 would need 48 GiB, but it has 16"),
    ("lab03.t5", ("zb-h1", [12] * 8), "lowest: device 7 would need 12 GiB, but it has 8"),
    ("lab03.t5", ("1f1b", list(range(8, 0, -1))), "these are microbatches"),
    ("lab03.t5", ("1f1b", ONE_F_ONE_B_GIB[::-1]), "device 0 comes first"),
    ("lab03.t5", ("1f1b", [12] * 8), "device 1 holds less than 12 GiB"),
    ("lab03.t5", ("1f1b", []), "list of 8 numbers"),
    ("lab03.t5", ("1F1B!", ONE_F_ONE_B_GIB), "did you mean '1f1b'"),
    ("lab03.t5", "1f1b", "a name and a list"),
    ("lab03.t6", 66.3, "on 8 devices"),
    ("lab03.t6", 30 * 0.535, "GPipe"),
    ("lab03.t6", 120 * 0.535, "fill and drain"),
    ("lab03.t6", 0.535, "one message"),
    ("lab03.t6", 0.0792, "give ms"),
    ("lab03.t6", STEP[0], "the whole step with messages"),
    ("lab03.t6", STEP[1], "the whole step without messages"),
    ("lab03.t6", 148 * 0.762, "with 1.5B and 64 microbatches"),
    ("lab03.t6", 10, "compare the makespans"),
]


# Task, another way to write its right answer.
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
