"""Test lab 1's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

from itertools import product
from typing import Any

import numpy as np

from hybridlab import Mesh
from hybridlab.course.tasks import check

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab01.t1", (4, 3), "swapped"),
    ("lab01.t1", (5, 3), "divided-by-replicas"),
    ("lab01.t1", (3, 5), "divided-by-replicas"),
    ("lab01.t1", (2, 4), "ranks-from-1"),
    ("lab01.t1", (4, 5), "stages-from-1"),
    ("lab01.t1", (2, 2), "wrong-value", "stage 2", "replica 2", "rank 12"),
    ("lab01.t1", (5, 2), "no-such-stage", "stage 5", "0 to 4"),
    ("lab01.t1", (1, -1), "no-such-replica", "replica -1"),
    ("lab01.t1", (3, 4.5), "no-such-replica", "replica 4.5"),
    ("lab01.t1", 23, "not-a-list"),
    ("lab01.t1", ("3", "4"), "not-a-number"),
    ("lab01.t2", ([4, 5, 6, 7], [2, 6, 10]), "swapped"),
    ("lab01.t2", ([2, 5, 8], [4, 5, 6, 7]), "not-in-group", "rank 5", "stage group of stage 2", "stage 1 of replica 1"),
    ("lab01.t2", ([2, 6, 10], [3, 4, 5]), "not-in-group", "rank 3", "pipeline of replica 1", "stage 3 of replica 0"),
    ("lab01.t2", ([2, 6], [4, 5, 6, 7]), "ranks-missing", "stage group of stage 2"),
    ("lab01.t2", ([2, 6, 10], [4, 5, 6, 6, 7]), "rank-twice", "pipeline of replica 1"),
    ("lab01.t2", ([2, 6, 10, 14], [4, 5, 6, 7]), "no-such-rank", "rank 14", "0 to 11"),
    ("lab01.t2", [2, 6, 10], "wrong-shape"),
    ("lab01.t2", (2, 4), "not-a-list"),
    ("lab01.t2", ([2, 6, 10], ["4"]), "not-a-number"),
    ("lab01.t3", (14, 2), "swapped"),
    ("lab01.t3", (26, 14), "ring-not-closed"),
    ("lab01.t3", (21, 19), "next-stage"),
    ("lab01.t3", (2, 19), "stage-before"),
    ("lab01.t3", (24, 16), "replicas-apart"),
    ("lab01.t3", (0, 14), "another-stage"),
    ("lab01.t3", (8, 14), "wrong-value", "8", "14"),
    ("lab01.t3", [2], "wrong-length"),
    ("lab01.t4", (96, 448_000), "one-pipeline-alone"),
    ("lab01.t4", (384, 448_000), "one-way"),
    ("lab01.t4", (1024, 448_000), "boundaries-as-stages"),
    ("lab01.t4", (48, 448_000), "one-microbatch-alone"),
    ("lab01.t4", (448, 448_000), "ring-messages"),
    ("lab01.t4", (700, 448_000), "wrong-messages", "700 messages"),
    ("lab01.t4", (768, 3_584_000), "not-cut"),
    ("lab01.t4", (768, 224_000), "one-byte"),
    ("lab01.t4", (768, 896_000), "twice-the-bytes"),
    ("lab01.t4", (768, 112_000), "one-ring-alone"),
    ("lab01.t4", (768, 56_000), "one-rank-of-each-ring"),
    ("lab01.t4", (768, 14_000), "one-rank-alone"),
    ("lab01.t4", (768, 448), "messages-not-bytes"),
    ("lab01.t4", (768, 5), "wrong-bytes"),
    ("lab01.t5", (184, 112), "swapped"),
    ("lab01.t5", (8, 12), "links-not-messages"),
    ("lab01.t5", (128, 192), "one-weight-for-all-links"),
    ("lab01.t5", (0, 184), "rings-missing", "replica by replica"),
    ("lab01.t5", (112, 128), "rings-missing", "stage by stage"),
    ("lab01.t5", (112, 120), "one-way"),
    ("lab01.t5", (224, 184), "ring-both-ways"),
    ("lab01.t5", (111, 184), "wrong-value", "replica by replica", "111"),
    ("lab01.t5", (112, 183), "wrong-value", "stage by stage", "183"),
    ("lab01.t5", "112, 184", "not-a-list"),
]


def drawn(stages: int, replicas: int) -> np.ndarray[Any, np.dtype[np.int_]]:
    """The ranks as a picture of the mesh: a row a replica, a column a stage."""
    return np.arange(stages * replicas).reshape(replicas, stages)


def test_the_right_answers_are_those_read_off_a_picture() -> None:
    ((replica, stage),) = np.argwhere(drawn(5, 6) == 23)
    assert check("lab01.t1", (stage, replica)).passed
    assert check("lab01.t2", (drawn(4, 3)[:, 2], drawn(4, 3)[1])).passed
    ((replica, stage),) = np.argwhere(drawn(6, 4) == 20)
    column = drawn(6, 4)[:, stage]
    assert check("lab01.t3", (np.roll(column, -1)[replica], np.roll(column, 1)[replica])).passed


def test_the_right_counts_are_those_of_messages_sent_one_by_one() -> None:
    stages, replicas, microbatches = range(4), range(8), range(16)
    sent = [(to - stage) for _, _, stage, to in product(replicas, microbatches, stages, stages) if abs(to - stage) == 1]
    nbytes = sum(np.zeros(4000, dtype=np.float16).nbytes // 8 for _ in product(stages, replicas, range(7), "rg"))
    assert check("lab01.t4", (len(sent), nbytes)).passed


def test_the_right_crossings_are_those_of_every_message_of_a_step() -> None:
    ranks = drawn(2, 8)
    counts = []
    for nodes in (ranks // 4, (np.arange(2) * 8 + np.arange(8)[:, None]) // 4):
        pipelines = 2 * 8 * int((nodes[:, :-1] != nodes[:, 1:]).sum())
        counts.append(pipelines + 2 * 7 * int((nodes != np.roll(nodes, -1, axis=0)).sum()))
    assert check("lab01.t5", counts).passed


# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab01.t1", [3, 4]),
    ("lab01.t1", np.array([3.0, 4.0])),
    ("lab01.t1", Mesh(stages=5, replicas=6).coordinates(23)),
    ("lab01.t2", ((10, 6, 2), [7, 6, 5, 4])),
    ("lab01.t3", (2.0, np.int64(14))),
    ("lab01.t4", [768, 448e3]),
    ("lab01.t5", np.array([112, 184])),
]
