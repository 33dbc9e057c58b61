"""Lab 1's tasks: every way to write the right answer passes, and every typical wrong answer gets a sentence of its own."""

from itertools import product
from typing import Any

import numpy as np

from hybridlab import Mesh
from hybridlab.course.tasks import check

# Task, wrong answer, what its sentence must say.
WRONG: list[tuple[str, Any, str]] = [
    ("lab01.t1", (4, 3), "wrong way round"),
    ("lab01.t1", (5, 3), "divided by the 6 replicas"),
    ("lab01.t1", (3, 5), "divided by the 6 replicas"),
    ("lab01.t1", (2, 4), "counts the ranks from 1"),
    ("lab01.t1", (4, 5), "from 1: the first stage and the first replica are 0"),
    ("lab01.t1", (2, 2), "stage 2 of replica 2 is rank 12"),
    ("lab01.t1", (5, 2), "there is no stage 5 in this mesh: they are 0 to 4"),
    ("lab01.t1", (1, -1), "there is no replica -1"),
    ("lab01.t1", (3, 4.5), "there is no replica 4.5"),
    ("lab01.t1", 23, "list of 2 numbers"),
    ("lab01.t1", ("3", "4"), "a number such as"),
    ("lab01.t2", ([4, 5, 6, 7], [2, 6, 10]), "the stage group comes first"),
    ("lab01.t2", ([2, 5, 8], [4, 5, 6, 7]), "rank 5 is not in the stage group of stage 2: it is stage 1 of replica 1"),
    ("lab01.t2", ([2, 6, 10], [3, 4, 5]), "rank 3 is not in the pipeline of replica 1: it is stage 3 of replica 0"),
    ("lab01.t2", ([2, 6], [4, 5, 6, 7]), "the stage group of stage 2 has more ranks"),
    ("lab01.t2", ([2, 6, 10], [4, 5, 6, 6, 7]), "the pipeline of replica 1 has each of its ranks once"),
    ("lab01.t2", ([2, 6, 10, 14], [4, 5, 6, 7]), "there is no rank 14 in this mesh: they are 0 to 11"),
    ("lab01.t2", [2, 6, 10], "two lists of ranks"),
    ("lab01.t2", (2, 4), "a group is a list of ranks"),
    ("lab01.t2", ([2, 6, 10], ["4"]), "a rank is a number such as 7"),
    ("lab01.t3", (14, 2), "swap them"),
    ("lab01.t3", (26, 14), "the mesh ends at rank 23"),
    ("lab01.t3", (21, 19), "next stage of the same replica"),
    ("lab01.t3", (2, 19), "the stage before in the same replica"),
    ("lab01.t3", (24, 16), "4 ranks away"),
    ("lab01.t3", (0, 14), "a ring joins the copies of one stage"),
    ("lab01.t3", (8, 14), "does not have 8 and 14 as its neighbours"),
    ("lab01.t3", [2], "list of 2 numbers"),
    ("lab01.t4", (96, 448_000), "one pipeline: there are 8"),
    ("lab01.t4", (384, 448_000), "counts one way"),
    ("lab01.t4", (1024, 448_000), "4 stages in a row have 3"),
    ("lab01.t4", (48, 448_000), "each of the 16 sends"),
    ("lab01.t4", (448, 448_000), "number of ring messages"),
    ("lab01.t4", (700, 448_000), "not 700 messages"),
    ("lab01.t4", (768, 3_584_000), "an eighth of the gradients"),
    ("lab01.t4", (768, 224_000), "FP16 takes 2 bytes"),
    ("lab01.t4", (768, 896_000), "2000 bytes a message"),
    ("lab01.t4", (768, 112_000), "one ring: there are 4"),
    ("lab01.t4", (768, 56_000), "all 8 send"),
    ("lab01.t4", (768, 14_000), "one rank sends: there are 32"),
    ("lab01.t4", (768, 448), "how many bytes has each"),
    ("lab01.t4", (768, 5), "the messages are right, the bytes are not"),
    ("lab01.t5", (184, 112), "replica by replica comes first"),
    ("lab01.t5", (8, 12), "these are links"),
    ("lab01.t5", (128, 192), "a pipeline's link carries 2M messages"),
    ("lab01.t5", (0, 184), "some of its links cross"),
    ("lab01.t5", (112, 128), "some of its links cross"),
    ("lab01.t5", (112, 120), "messages both ways"),
    ("lab01.t5", (224, 184), "one way only"),
    ("lab01.t5", (111, 184), "replica by replica it is not 111"),
    ("lab01.t5", (112, 183), "stage by stage it is not 183"),
    ("lab01.t5", "112, 184", "list of 2 numbers"),
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


# Task, another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab01.t1", [3, 4]),
    ("lab01.t1", np.array([3.0, 4.0])),
    ("lab01.t1", Mesh(stages=5, replicas=6).coordinates(23)),
    ("lab01.t2", ((10, 6, 2), [7, 6, 5, 4])),
    ("lab01.t3", (2.0, np.int64(14))),
    ("lab01.t4", [768, 448e3]),
    ("lab01.t5", np.array([112, 184])),
]
