"""Lab 5's tasks: every way to write the right answer passes, and every typical wrong answer gets a sentence of its own."""

from typing import Any

import numpy as np

from hybridlab import formulas
from hybridlab.collectives import one_shot_all_reduce, ring_all_reduce
from hybridlab.course.tasks import check
from hybridlab.wire import INT8, WireFormat

CREST = formulas.gaussian_crest(2048)
TWELVE, FOUR = formulas.int8_ring_nmse(12, CREST), formulas.int8_ring_nmse(4, CREST)
ONE = CREST**2 / (12 * 127**2)

# Task, wrong answer, what its sentence must say.
WRONG: list[tuple[str, Any, str]] = [
    ("lab05.t1", 0.04, "this is the scale"),
    ("lab05.t1", 5.08 / 256, "not 128"),
    ("lab05.t1", 5.08 / 128, "half a step"),
    ("lab05.t1", 5.08 / 2048, "bound of FP16"),
    ("lab05.t1", 0.5, "units of the scale"),
    ("lab05.t1", 5.08, "is not 5.08"),
    ("lab05.t1", -0.02, "is not -0.02"),
    ("lab05.t1", "0.02", "a number such as"),
    ("lab05.t2", 40_000, "the scales are missing"),
    ("lab05.t2", 10_240, "ring of one stage"),
    ("lab05.t2", 20_480, "one half of the ring"),
    ("lab05.t2", 1706.67, "this is one device"),
    ("lab05.t2", 49_152, "2(D-1) steps"),
    ("lab05.t2", 41_040, "four of 167 and two of 166"),
    ("lab05.t2", 240_960, "a sixth of the 1,000 numbers"),
    ("lab05.t2", 80_000, "this is FP16"),
    ("lab05.t2", 160_000, "this is FP32"),
    ("lab05.t2", 2448, "do not send 2,448 bytes"),
    ("lab05.t3", 13, "more are possible"),
    ("lab05.t3", 15, "70,000, and FP16 ends at 65,504"),
    ("lab05.t3", 10**12, "too small"),
    ("lab05.t3", 1, "more are possible"),
    ("lab05.t3", 0, "at least 1"),
    ("lab05.t3", 13.1, "whole number"),
    ("lab05.t4", FOUR, "error on 4 ranks"),
    ("lab05.t4", 3 * FOUR, "the 1 does not grow"),
    ("lab05.t4", 1.62e-4, "error on 4 ranks"),  # as the lab prints it
    ("lab05.t4", 3 * 1.62e-4, "the 1 does not grow"),
    ("lab05.t4", 5.5 * ONE, "lacks the 1"),
    ("lab05.t4", 12 * ONE, "k/D of the final one"),
    ("lab05.t4", 2 * ONE, "one-shot"),
    ("lab05.t4", 2 * TWELVE, "stochastic"),
    ("lab05.t4", TWELVE**0.5, "mean square"),
    ("lab05.t4", 9 * FOUR, "not with its square"),
    ("lab05.t4", 0, "the law is"),
    ("lab05.t5", ("ring", "INT8", 64), "rounds its sums again and again"),
    ("lab05.t5", ("one-shot", "INT8", None), "fewer numbers to a scale"),
    ("lab05.t5", ("one-shot", "INT8", 32), "larger blocks need fewer scales"),
    ("lab05.t5", ("one-shot", "FP16", None), "122,880 bytes too many: INT8 needs one byte a number"),
    ("lab05.t5", ("ring", "BF16", None), "122,880 bytes too many"),
    ("lab05.t5", ("ring", "INT8", 16), "larger blocks need fewer scales"),
    ("lab05.t5", ("one-shot", "FP16", 64), "block, stochastic and scale are for INT8"),
    ("lab05.t5", ("rings", "INT8", 64), "did you mean 'ring'"),
    ("lab05.t5", ("ring", "INT4", 64), "did you mean 'INT8'"),
    ("lab05.t5", ("one-shot", "INT8", 0), "block must be a whole number of at least 1, not 0"),
    ("lab05.t5", ("one-shot", "INT8", 64.5), "a block is a whole number"),
    ("lab05.t5", ("one-shot", "INT8", "64"), "a block is a number such as"),
    ("lab05.t5", ("one-shot", "INT8"), "three parts"),
    ("lab05.t5", "one-shot INT8 64", "three parts"),
]


# Task, another way to write its right answer.
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
    """Both ends of the range of blocks that pass, by another count and another seed."""
    values = np.random.default_rng(2).standard_normal((32, 65_536))
    mean = np.add.reduce(values) / 32
    for block, fits, exact in [(62, False, True), (63, True, True), (1024, True, False)]:
        wire = WireFormat("INT8", block=block, scale="FP16")
        found = one_shot_all_reduce(values, wire).values[5]
        assert (2 * 31 * (2048 + 2 * -(-2048 // block)) <= 128 * 1024) == fits
        assert (np.square(found - mean).sum() / np.square(mean).sum() <= 1e-4) == exact
        assert check("lab05.t5", ("one-shot", "INT8", block)).passed == (fits and exact)
