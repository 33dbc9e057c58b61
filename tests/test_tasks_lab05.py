"""Test lab 5's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

from typing import Any

import numpy as np

from hybridlab import formulas
from hybridlab.collectives import one_shot_all_reduce, ring_all_reduce
from hybridlab.course.tasks import check
from hybridlab.wire import INT8, WireFormat

CREST = formulas.gaussian_crest(2048)
TWELVE, FOUR = formulas.int8_ring_nmse(12, CREST), formulas.int8_ring_nmse(4, CREST)
ONE = CREST**2 / (12 * 127**2)

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab05.t1", 0.04, "whole-scale"),
    ("lab05.t1", 5.08 / 256, "128-codes"),
    ("lab05.t1", 5.08 / 128, "whole-scale-of-128-codes"),
    ("lab05.t1", 5.08 / 2048, "fp16"),
    ("lab05.t1", 0.5, "in-scales"),
    ("lab05.t1", 5.08, "wrong-value", "5.08"),
    ("lab05.t1", -0.02, "wrong-value", "-0.02"),
    ("lab05.t1", "0.02", "not-a-number"),
    ("lab05.t2", 40_000, "no-scales"),
    ("lab05.t2", 10_240, "one-ring-alone"),
    ("lab05.t2", 20_480, "one-half"),
    ("lab05.t2", 1706.67, "one-device-alone"),
    ("lab05.t2", 49_152, "d-steps"),
    ("lab05.t2", 41_040, "equal-chunks", "167", "166"),
    ("lab05.t2", 240_960, "not-cut"),
    ("lab05.t2", 80_000, "fp16"),
    ("lab05.t2", 160_000, "fp32"),
    ("lab05.t2", 2448, "wrong-value", "2,448 bytes"),
    ("lab05.t3", 13, "too-few"),
    ("lab05.t3", 15, "too-many", "70,000"),
    ("lab05.t3", 10**12, "too-many"),
    ("lab05.t3", 1, "too-few"),
    ("lab05.t3", 0, "out-of-range"),
    ("lab05.t3", 13.1, "not-a-whole-number"),
    ("lab05.t4", FOUR, "four-ranks"),
    ("lab05.t4", 3 * FOUR, "proportional"),
    ("lab05.t4", 1.62e-4, "four-ranks"),  # as the lab prints it
    ("lab05.t4", 3 * 1.62e-4, "proportional"),
    ("lab05.t4", 5.5 * ONE, "no-last-rounding"),
    ("lab05.t4", 12 * ONE, "full-roundings"),
    ("lab05.t4", 2 * ONE, "one-shot"),
    ("lab05.t4", 2 * TWELVE, "stochastic"),
    ("lab05.t4", TWELVE**0.5, "root"),
    ("lab05.t4", 9 * FOUR, "squared"),
    ("lab05.t4", 0, "wrong-value"),
    ("lab05.t5", ("ring", "INT8", 64), "ring-rounds-too-often"),
    ("lab05.t5", ("one-shot", "INT8", None), "blocks-too-large"),
    ("lab05.t5", ("one-shot", "INT8", 32), "too-many-scales"),
    ("lab05.t5", ("one-shot", "FP16", None), "not-int8", "122,880 bytes"),
    ("lab05.t5", ("ring", "BF16", None), "not-int8", "122,880 bytes"),
    ("lab05.t5", ("ring", "INT8", 16), "too-many-scales"),
    ("lab05.t5", ("one-shot", "FP16", 64), "conflicting-arguments", "block", "INT8"),
    ("lab05.t5", ("rings", "INT8", 64), "unknown-name", "'ring'"),
    ("lab05.t5", ("ring", "INT4", 64), "unknown-name", "'INT8'"),
    ("lab05.t5", ("one-shot", "INT8", 0), "too-small", "block", "0"),
    ("lab05.t5", ("one-shot", "INT8", 64.5), "not-a-whole-number"),
    ("lab05.t5", ("one-shot", "INT8", "64"), "not-a-number"),
    ("lab05.t5", ("one-shot", "INT8"), "wrong-shape"),
    ("lab05.t5", "one-shot INT8 64", "wrong-shape"),
]


# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab05.t1", 0.02),
    ("lab05.t1", np.float32(0.02)),
    ("lab05.t2", 40_960),
    ("lab05.t2", np.int64(40_960)),
    ("lab05.t3", 14.0),
    ("lab05.t4", 0.95 * TWELVE),
    ("lab05.t4", 2.6 * FOUR),
    ("lab05.t5", ["One-shot", "int8", 128.0]),
    ("lab05.t5", ("one-shot", "INT8", 256)),
    ("lab05.t5", ("one-shot", "INT8", 63)),
]


def test_the_bytes_are_those_of_a_count_message_by_message() -> None:
    chunks = [len(chunk) for chunk in np.array_split(np.arange(1000), 6)]
    sent = sum(chunks[(rank - step) % 6] + 4 for rank in range(6) for step in range(10))
    assert check("lab05.t2", 4 * sent).passed


def test_what_the_fourth_task_predicts_is_what_a_ring_gives() -> None:
    values = np.random.default_rng(1).standard_normal((12, 12 * 2048))
    mean = np.add.reduce(values) / 12
    error = np.square(ring_all_reduce(values, INT8).values[3] - mean).sum() / np.square(mean).sum()
    assert check("lab05.t4", error).passed


def test_the_limits_of_the_fifth_task_part_the_formats() -> None:
    """The smallest and the largest block that pass, checked with bytes counted here and with another seed."""
    values = np.random.default_rng(2).standard_normal((32, 65_536))
    mean = np.add.reduce(values) / 32
    for block, fits, exact in [(62, False, True), (63, True, True), (1024, True, False)]:
        wire = WireFormat("INT8", block=block, scale="FP16")
        found = one_shot_all_reduce(values, wire).values[5]
        assert (2 * 31 * (2048 + 2 * -(-2048 // block)) <= 128 * 1024) == fits
        assert (np.square(found - mean).sum() / np.square(mean).sum() <= 1e-4) == exact
        assert check("lab05.t5", ("one-shot", "INT8", block)).passed == (fits and exact)
