"""Test lab 8's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hybridlab import Costs, Deadlock, Mesh, build
from hybridlab.course.tasks import TASKS, check
from hybridlab.course.tasks.lab08 import LOST, without_waiting
from hybridlab.engines import run_threads
from hybridlab.schedule import Op

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab08.t1", 18, "pipelines-alone"),
    ("lab08.t1", 12, "rings-alone"),
    ("lab08.t1", 21, "one-way"),
    ("lab08.t1", 42, "ring-both-ways"),
    ("lab08.t1", 26, "ring-not-closed"),
    ("lab08.t1", 36, "pipeline-closed"),
    ("lab08.t1", 9, "one-of-each"),
    ("lab08.t1", 132, "all-pairs"),
    ("lab08.t1", 31, "wrong-value", "31 queues"),
    ("lab08.t1", 30.4, "wrong-value", "30.4 queues"),
    ("lab08.t1", "30", "not-a-number"),
    ("lab08.t2", "1F0", "more-are-early", "stage 0"),
    ("lab08.t2", "1F0 0B0", "more-are-early", "stage 0"),
    ("lab08.t2", "0B0 0B1", "more-are-early", "stage 1"),
    ("lab08.t2", "0B0", "more-are-early", "stage 0", "stage 1"),
    ("lab08.t2", "1F0 1F1", "in-time", "1F1", "130 ms", "0F1", "100 ms"),
    ("lab08.t2", "1F0 0B0 0B1 1F1", "in-time", "1F1", "130 ms", "0F1", "100 ms"),
    ("lab08.t2", "1F0 0B0 0B1 1B1", "in-time", "1B1", "180 ms", "1F1"),
    ("lab08.t2", "0F0 1F0 0B0 0B1", "needs-nothing", "0F0"),
    ("lab08.t2", "2F0", "not-in-the-schedule", "2F0", "2 stages"),
    ("lab08.t2", "F0", "unknown-operation", "'F0'"),
    ("lab08.t2", 3, "not-text"),
    ("lab08.t2", "1F0 1F0 0B0 0B1", "twice", "1F0"),
    ("lab08.t2", ["1F0", "0B0", "0B1", "0B0"], "twice", "0B0"),
    ("lab08.t2", ["1F0", 3], "unknown-operation", "3"),
    ("lab08.t3", 4160, "forwards-included"),
    ("lab08.t3", 1600, "forwards-alone"),
    ("lab08.t3", 640, "one-device-alone"),
    ("lab08.t3", 1280, "one-replica-alone"),
    ("lab08.t3", 1210, "step-of-sleeping-threads"),
    ("lab08.t3", 1170, "pipeline-of-sleeping-threads"),
    ("lab08.t3", 80, "one-backward"),
    ("lab08.t3", 320, "one-microbatch"),
    ("lab08.t3", 1040, "one-device-with-forwards"),
    ("lab08.t3", 2.56, "seconds"),
    ("lab08.t3", 2600, "ring-included"),
    ("lab08.t3", 2000, "wrong-value", "2000 ms"),
    ("lab08.t3", [2560], "not-a-number"),
    ("lab08.t4", ["0F0", "1B1", "2F1"], "gets-past", "device 0", "0F0"),
    ("lab08.t4", ["0B0", "1B1", "2F1"], "gets-past", "device 0", "0B0", "1B0"),
    ("lab08.t4", ["0B3", "1B1", "2F1"], "never-gets-there", "device 0", "0B3"),
    ("lab08.t4", ["0B1", "1F1", "2F1"], "gets-past", "device 1", "1F1"),
    ("lab08.t4", ["0B1", "1B3", "2F1"], "never-gets-there", "device 1", "1B3"),
    ("lab08.t4", ["0B1", "1B1", "2F2"], "never-gets-there", "device 2", "2F2"),
    ("lab08.t4", ["0B1", "1B1", "1F1"], "not-in-the-order", "1F1", "device 2", "2F0", "2B0"),
    ("lab08.t4", ["0B1", "1B1", "2F1", "2B1"], "wrong-shape"),
    ("lab08.t4", ["0B1", "1B1", 1], "unknown-operation"),
    ("lab08.t4", "0B1 1B1", "wrong-shape"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab08.t1", 30.0),
    ("lab08.t1", np.int64(30)),
    ("lab08.t2", "0B0 0B1 1F0"),
    ("lab08.t2", "1F0, 0B0,0B1"),
    ("lab08.t2", ["1F0", "0B0", "0B1"]),
    ("lab08.t2", {Op.parse("1F0"), Op.parse("0B0"), Op.parse("0B1")}),
    ("lab08.t2", [["0B0", "0B1"], ["1F0"]]),
    ("lab08.t2", "device 0: 0B0 0B1\ndevice 1: 1F0"),
    ("lab08.t2", ["device 0: 0B0 0B1", "device 1: 1F0"]),
    ("lab08.t3", 2560.0),
    ("lab08.t3", np.float64(2560)),
    ("lab08.t3", Fraction(2560)),
    ("lab08.t4", ("0B1", "1B1", "2F1")),
    ("lab08.t4", "0B1 1B1 2F1"),
    ("lab08.t4", "0B1,1B1,2F1"),
    ("lab08.t4", "Device 0: 0B1\nDevice 1: 1B1\nDevice 2: 2F1"),
    ("lab08.t4", {0: "0B1", 1: "1B1", 2: "2F1"}),
    ("lab08.t4", {"0B1", "1B1", "2F1"}),
    ("lab08.t4", [Op.parse("0B1"), Op.parse("1B1"), Op.parse("2F1")]),
]


@pytest.mark.parametrize("seed", [None, *range(20)])
def test_the_number_of_queues_is_that_of_neighbours_and_rings(seed: int | None) -> None:
    prompt = TASKS["lab08.t1"].instance(seed).prompt
    stages, replicas = map(int, re.findall(r"\d+", prompt))
    mesh = Mesh(stages, replicas)
    along = [pair for replica in range(replicas) for pair in pairwise(mesh.pipeline(replica))]
    around = [pair for stage in range(stages) for pair in mesh.ring(stage)]
    assert check("lab08.t1", len({*along, *((b, a) for a, b in along), *around}), seed=seed).passed


def test_the_operations_that_are_too_early_are_those_of_threads_that_do_not_wait() -> None:
    """The starts are measured. A busy machine shifts them by some ms, so the test tries again, also with longer operations."""
    schedule = build("1f1b", 2, 2)
    expected = {op: start for op, (start, _) in without_waiting(schedule, 50, 80).items()}
    for longer in np.repeat([1, 4, 16], 15):
        run = run_threads(schedule, Costs(forward=50 * longer, backward=80 * longer), wait=False)
        start, end = (dict(zip(run.ops, times / longer, strict=True)) for times in (run.start, run.end))
        if max(abs(start[op] - expected[op]) for op in run.ops) < 14:  # the two nearest starts are 30 ms apart
            early = [str(op) for op in run.ops if any(start[op] < end[need] - 1 for need in schedule.needs(op))]
            assert check("lab08.t2", " ".join(early)).passed
            return
    pytest.fail("no try was quick enough")


def test_the_devices_stand_where_the_threads_stand() -> None:
    with pytest.raises(Deadlock) as caught:
        run_threads(build("1f1b", 3, 4), lost=[LOST])
    problems: Any = caught.value.problems
    assert check("lab08.t4", [str(each.op) for each in problems]).passed
    assert Op.parse("1F1") == LOST


def test_the_lock_is_held_for_every_backward_of_every_device() -> None:
    schedule = build("1f1b", 2, 8)
    backwards = sum(str(op.kind) == "B" for op in schedule.ops)
    assert check("lab08.t3", 2 * backwards * 80).passed
