"""Lab 8's tasks: every way to write the right answer passes, and every typical wrong answer gets a sentence of its own."""

from typing import Any

import numpy as np
import pytest

from hybridlab import Costs, Deadlock, Mesh, build
from hybridlab.course.tasks import check
from hybridlab.course.tasks.lab08 import LOST, without_waiting
from hybridlab.engines import run_threads
from hybridlab.schedule import Op

# Task, wrong answer, what its sentence must say.
WRONG: list[tuple[str, Any, str]] = [
    ("lab08.t1", 18, "the queues of the pipelines"),
    ("lab08.t1", 12, "the queues of the rings, or the threads"),
    ("lab08.t1", 21, "gradients come back"),
    ("lab08.t1", 42, "one way only"),
    ("lab08.t1", 26, "a ring closes"),
    ("lab08.t1", 36, "a pipeline does not close"),
    ("lab08.t1", 9, "3 pipelines and 4 rings"),
    ("lab08.t1", 132, "never send each other anything"),
    ("lab08.t1", 31, "not 31 queues"),
    ("lab08.t1", 30.4, "not 30.4 queues"),
    ("lab08.t1", "30", "a number such as"),
    ("lab08.t2", "1F0", "more start too early, on stage 0:"),
    ("lab08.t2", "1F0 0B0", "more start too early, on stage 0:"),
    ("lab08.t2", "0B0 0B1", "more start too early, on stage 1:"),
    ("lab08.t2", "0B0", "more start too early, on stage 0 and on stage 1:"),
    ("lab08.t2", "1F0 1F1", "1F1 starts at 130 ms, and 0F1 ends at 100 ms: in time"),
    ("lab08.t2", "1F0 0B0 0B1 1F1", "1F1 starts at 130 ms, and 0F1 ends at 100 ms: in time"),
    ("lab08.t2", "1F0 0B0 0B1 1B1", "1B1 starts at 180 ms, and 1F1 ends at 180 ms: in time"),
    ("lab08.t2", "0F0 1F0 0B0 0B1", "0F0 needs nothing from another operation"),
    ("lab08.t2", "2F0", "2F0 is not an operation of 2 stages"),
    ("lab08.t2", "F0", "is not an operation"),
    ("lab08.t2", 3, "the list of operations"),
    ("lab08.t3", 4160, "releases the lock"),
    ("lab08.t3", 1600, "these are the forwards"),
    ("lab08.t3", 640, "one device"),
    ("lab08.t3", 1280, "one replica, or one stage"),
    ("lab08.t3", 1210, "threads that sleep"),
    ("lab08.t3", 1170, "the pipeline of threads that sleep"),
    ("lab08.t3", 80, "one backward"),
    ("lab08.t3", 320, "one microbatch of each replica"),
    ("lab08.t3", 1040, "all that one device does"),
    ("lab08.t3", 2.56, "not seconds"),
    ("lab08.t3", 2600, "next to nothing"),
    ("lab08.t3", 2000, "not held for 2000 ms"),
    ("lab08.t3", [2560], "a number such as"),
    ("lab08.t4", ["0F0", "1B1", "2F1"], "device 0 gets past 0F0: it needs no input"),
    ("lab08.t4", ["0B0", "1B1", "2F1"], "device 0 gets past 0B0: its input 1B0 comes"),
    ("lab08.t4", ["0B3", "1B1", "2F1"], "device 0 never gets to 0B3"),
    ("lab08.t4", ["0B1", "1F1", "2F1"], "device 1 gets past 1F1"),
    ("lab08.t4", ["0B1", "1B3", "2F1"], "device 1 never gets to 1B3"),
    ("lab08.t4", ["0B1", "1B1", "2F2"], "device 2 never gets to 2F2"),
    ("lab08.t4", ["0B1", "1B1", "1F1"], "1F1 is not an operation of device 2: it runs 2F0 2B0"),
    ("lab08.t4", ["0B1", "1B1"], "a list of 3 operations"),
    ("lab08.t4", ["0B1", "1B1", 1], "is not an operation"),
    ("lab08.t4", "0B1 1B1 2F1", "a list of 3 operations"),
]

# Task, another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab08.t1", 30.0),
    ("lab08.t1", np.int64(30)),
    ("lab08.t2", "0B0 0B1 1F0"),
    ("lab08.t2", "1F0, 0B0,0B1"),
    ("lab08.t3", 2560.0),
    ("lab08.t3", np.float64(2560)),
    ("lab08.t4", ("0B1", "1B1", "2F1")),
]


def test_the_number_of_queues_is_that_of_neighbours_and_rings() -> None:
    mesh = Mesh(stages=4, replicas=3)
    along = [pair for replica in range(3) for pair in zip(mesh.pipeline(replica), mesh.pipeline(replica)[1:], strict=False)]
    around = [pair for stage in range(4) for pair in mesh.ring(stage)]
    assert check("lab08.t1", len({*along, *((b, a) for a, b in along), *around})).passed


def test_the_operations_that_are_too_early_are_those_of_threads_that_do_not_wait() -> None:
    """Measured, in a try that was quick enough: a busy machine moves starts apart by some ms, so take longer ones there."""
    schedule = build("1f1b", 2, 2)
    expected = {op: start for op, (start, _) in without_waiting(schedule, 50, 80).items()}
    for longer in np.repeat([1, 4, 16], 15):
        run = run_threads(schedule, Costs(forward=50 * longer, backward=80 * longer), wait=False)
        start, end = (dict(zip(run.ops, times / longer, strict=True)) for times in (run.start, run.end))
        if max(abs(start[op] - expected[op]) for op in run.ops) < 14:  # the nearest two are 30 ms apart
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
