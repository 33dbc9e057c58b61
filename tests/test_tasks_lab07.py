"""Test lab 7's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

from typing import Any

import numpy as np

from hybridlab import INT8, build, published
from hybridlab.course.tasks import check
from hybridlab.training import train

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab07.t1", 24, "all-replicas"),
    ("lab07.t1", 128, "samples"),
    ("lab07.t1", 72, "a-batch-each"),
    ("lab07.t1", 6, "stages-for-replicas"),
    ("lab07.t1", 2, "stages-share"),
    ("lab07.t1", 0.125, "inverted"),
    ("lab07.t1", 5, "wrong-value"),
    ("lab07.t1", "8", "not-a-number"),
    ("lab07.t1", [8], "not-a-number"),
    ("lab07.t2", [4, 3, 2, 1], "microbatches-not-samples"),
    ("lab07.t2", [4, 8, 12, 16], "reversed"),
    ("lab07.t2", [32] * 4, "all-samples"),
    ("lab07.t2", [4] * 4, "one-microbatch"),
    ("lab07.t2", [16] * 4, "device-0-everywhere"),
    ("lab07.t2", [64, 48, 32, 16], "not-cut-by-replicas"),
    ("lab07.t2", [12, 8, 4, 0], "warm-up-alone"),
    ("lab07.t2", [16, 12, 9, 4], "too-many", "device 2", "9"),
    ("lab07.t2", [16, 12, 8, 3], "too-few", "device 3", "3"),
    ("lab07.t2", [16, 12, 8], "wrong-length"),
    ("lab07.t2", 16, "not-a-list"),
    ("lab07.t3", ("FP16", 95_004), "larger-format", "FP16", "2 bytes"),
    ("lab07.t3", ("BF16", 95_004), "larger-format", "BF16", "2 bytes"),
    ("lab07.t3", ("FP32", 95_004), "larger-format", "FP32", "4 bytes"),
    ("lab07.t3", ("INT7", 95_004), "unknown-name", "'INT8'"),
    ("lab07.t3", ("INT8", 94_108), "no-scales"),
    ("lab07.t3", ("INT8", 94_556), "scales-of-one-ring"),
    ("lab07.t3", ("INT8", 94_220), "scales-of-one-rank"),
    ("lab07.t3", ("INT8", 94_332), "one-byte-scales"),
    ("lab07.t3", ("INT8", 40_524), "four-replicas"),
    ("lab07.t3", ("INT8", 81_048), "proportional"),
    ("lab07.t3", ("INT8", 47_502), "one-half"),
    ("lab07.t3", ("INT8", 95_004 / 16), "one-device-alone"),
    ("lab07.t3", ("INT8", 95_004 / 8), "one-replica-alone"),
    ("lab07.t3", ("INT8", 376_432), "fp32"),
    ("lab07.t3", ("INT8", 188_216), "fp16"),
    ("lab07.t3", ("INT8", 6722), "parameters"),
    ("lab07.t3", ("INT8", 1), "wrong-value"),
    ("lab07.t3", "INT8", "wrong-shape"),
    ("lab07.t3", ("INT8",), "wrong-shape"),
    ("lab07.t3", (8, 95_004), "not-text"),
    ("lab07.t4", [0.51, 0.49], "shares"),
    ("lab07.t4", [49, 51], "swapped"),
    ("lab07.t4", [49, 49], "no-turn"),
    ("lab07.t4", [51, 51], "both-turn"),
    ("lab07.t4", [51, 98], "proportional"),
    ("lab07.t4", [-49, 98], "proportional"),
    ("lab07.t4", [50, 50], "expected-value"),
    ("lab07.t4", [51, 48.6], "wrong-value", "weights of 2"),
    ("lab07.t4", [51.4, 49], "wrong-value", "weights of -1"),
    ("lab07.t4", 51, "not-a-list"),
    ("lab07.t5", 1, "same-rate"),
    ("lab07.t5", 1 / 6, "inverted"),
    ("lab07.t5", 5, "d-minus-1"),
    ("lab07.t5", 10, "hops"),
    ("lab07.t5", 36, "divided-twice"),
    ("lab07.t5", 1.8, "rate-not-factor"),
    ("lab07.t5", 2, "two-replicas"),
    ("lab07.t5", 4, "four-replicas"),
    ("lab07.t5", 12, "devices"),
    ("lab07.t5", 7, "wrong-value"),
]


# Each row has a task and another way to write its right answer.
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
