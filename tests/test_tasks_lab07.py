"""Lab 7's tasks: every way to write the right answer passes, and every typical wrong answer gets a sentence of its own."""

from typing import Any

import numpy as np

from hybridlab import INT8, build, published
from hybridlab.course.tasks import check
from hybridlab.training import train

# Task, wrong answer, what its sentence must say.
WRONG: list[tuple[str, Any, str]] = [
    ("lab07.t1", 24, "all 3 replicas together"),
    ("lab07.t1", 128, "microbatches of 16"),
    ("lab07.t1", 72, "they share one"),
    ("lab07.t1", 6, "3 replicas that share"),
    ("lab07.t1", 2, "the 4 stages share no samples"),
    ("lab07.t1", 0.125, "other way round"),
    ("lab07.t1", 5, "is the global batch"),
    ("lab07.t1", "8", "a number such as"),
    ("lab07.t1", [8], "a number such as"),
    ("lab07.t2", [4, 3, 2, 1], "these are microbatches"),
    ("lab07.t2", [4, 8, 12, 16], "from the last device"),
    ("lab07.t2", [32] * 4, "all samples of a replica"),
    ("lab07.t2", [4] * 4, "one microbatch"),
    ("lab07.t2", [16] * 4, "wait less"),
    ("lab07.t2", [64, 48, 32, 16], "M x D"),
    ("lab07.t2", [12, 8, 4, 0], "warm-up alone"),
    ("lab07.t2", [16, 12, 9, 4], "device 2 holds fewer samples than 9"),
    ("lab07.t2", [16, 12, 8, 3], "device 3 holds more samples than 3"),
    ("lab07.t2", [16, 12, 8], "list of 4 numbers"),
    ("lab07.t2", 16, "list of 4 numbers"),
    ("lab07.t3", ("FP16", 95_004), "2 bytes a number"),
    ("lab07.t3", ("BF16", 95_004), "2 bytes a number"),
    ("lab07.t3", ("FP32", 95_004), "4 bytes a number"),
    ("lab07.t3", ("INT7", 95_004), "did you mean 'INT8'"),
    ("lab07.t3", ("INT8", 94_108), "codes alone"),
    ("lab07.t3", ("INT8", 94_556), "two rings"),
    ("lab07.t3", ("INT8", 94_220), "one rank's messages"),
    ("lab07.t3", ("INT8", 94_332), "not one"),
    ("lab07.t3", ("INT8", 40_524), "for 4 replicas"),
    ("lab07.t3", ("INT8", 81_048), "twice the bytes"),
    ("lab07.t3", ("INT8", 47_502), "reduce-scatter alone"),
    ("lab07.t3", ("INT8", 95_004 / 16), "one device"),
    ("lab07.t3", ("INT8", 95_004 / 8), "one replica"),
    ("lab07.t3", ("INT8", 376_432), "FP32"),
    ("lab07.t3", ("INT8", 188_216), "FP16"),
    ("lab07.t3", ("INT8", 6722), "number of parameters"),
    ("lab07.t3", ("INT8", 1), "every stage has a ring"),
    ("lab07.t3", "INT8", "a name and a number"),
    ("lab07.t3", ("INT8",), "a name and a number"),
    ("lab07.t3", (8, 95_004), "the name of a format is text"),
    ("lab07.t4", [0.51, 0.49], "shares of one"),
    ("lab07.t4", [49, 51], "other way round"),
    ("lab07.t4", [49, 49], "weights of -1"),
    ("lab07.t4", [51, 51], "weights of 2"),
    ("lab07.t4", [51, 98], "not proportional"),
    ("lab07.t4", [-49, 98], "not proportional"),
    ("lab07.t4", [50, 50], "to be expected"),
    ("lab07.t4", [51, 48.6], "weights of 2: the prediction"),
    ("lab07.t4", [51.4, 49], "weights of -1: the prediction"),
    ("lab07.t4", 51, "list of 2 numbers"),
    ("lab07.t5", 1, "smaller steps"),
    ("lab07.t5", 1 / 6, "makes up for it"),
    ("lab07.t5", 5, "division is by D"),
    ("lab07.t5", 10, "number of hops"),
    ("lab07.t5", 36, "one division"),
    ("lab07.t5", 1.8, "the rate itself"),
    ("lab07.t5", 2, "two replicas"),
    ("lab07.t5", 4, "four replicas"),
    ("lab07.t5", 12, "rings of their own"),
    ("lab07.t5", 7, "six equal rows"),
]


# Task, another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab07.t1", 8.0),
    ("lab07.t1", np.int64(8)),
    ("lab07.t2", (16, 12, 8, 4)),
    ("lab07.t2", np.array([16.0, 12, 8, 4])),
    ("lab07.t3", ["int8", 95_004.0]),
    ("lab07.t3", ("INT8, error feedback", 95_004)),
    ("lab07.t4", (51.0, 49.0)),
    ("lab07.t4", np.array([51, 49])),
    ("lab07.t5", 6.0),
]


def test_the_bytes_of_the_third_task_are_those_that_a_ring_sends() -> None:
    sent = train(build("1f1b", 2, 2), 8, wire=INT8, steps=1).bytes_sent
    assert check("lab07.t3", ("INT8", sent)).passed


def test_the_factor_of_the_fifth_task_is_that_of_the_published_ring() -> None:
    rows = np.tile(np.random.default_rng(0).normal(size=120), (6, 1))
    left = published.published_ring(rows, "FP32").values
    np.testing.assert_allclose(rows, 6 * left, rtol=1e-6)
    assert check("lab07.t5", 6).passed
