"""The codes and scales that a student's decode is tried with, programs with a known mistake, and twists."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.maps import REVERSED, scaled
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.labs.lab05.messages import (
    INVERSE,
    LOSS_SCALE,
    NOT_BLOCKS,
    SIZES,
    UNSIGNED,
    array,
    in_blocks,
    nearly_equal_lengths,
    of_each,
    without_the_library,
)


def packets(rng: np.random.Generator) -> Iterator[Case]:
    """Yield codes and scales from one number up: a scale of 0, short last blocks, and no numbers."""
    yield Case((np.array([0, 0, 0], np.int8), np.zeros(2, np.float32), 2), "3 zeros in blocks of 2")
    for size, block in SIZES:
        scales = (10.0 ** rng.uniform(-4, 2, -(-size // block))).astype(np.float32)
        codes = rng.integers(-127, 128, size).astype(np.int8)
        yield Case((codes, scales, block), in_blocks(size, block), run=without_the_library)
    yield Case((np.zeros(0, np.int8), np.zeros(0, np.float32), 4), "a message without numbers")


def decoded_numbers(result: Any) -> np.ndarray[Any, Any]:
    """Return the numbers that a student's function decoded, or raise."""
    return array(result, "the numbers", np.float64, ": convert the codes to float64 before the product")


MISTAKES = (
    KnownMistake(
        "not-scaled",
        "these are the codes: each is multiplied by the scale of its block",
        lambda codes, scales, block: codes * 1.0,
        under={
            "peaks": "these are the codes: each is multiplied by the largest magnitude of its block, and divided by 127",
            "factors": "these are the codes: each is multiplied by 1 / (the number in `scales`)",
        },
    ),
    KnownMistake(
        "first-scale-alone",
        "all numbers have the scale of the first block: each block has its own",
        lambda codes, scales, block: codes * of_each(scales[:1], max(len(codes), 1), len(codes)),
        under={"short-block-first": "all numbers have the scale of the last block: each block has its own"},
    ),
    KnownMistake(
        "scales-in-turn",
        "the scales alternate from number to number: the first `block` numbers share the first scale",
        lambda codes, scales, block: codes * np.resize(scales.astype(float), len(codes)),
        under=dict.fromkeys(
            ("last-scale-first", "short-block-first"), "the scales alternate from number to number: the numbers of a block share one scale"
        ),
    ),
    KnownMistake(
        "divided-again",
        "the scale is the largest magnitude / 127 already: do not divide by 127 again",
        lambda codes, scales, block: codes * of_each(scales, block, len(codes)) / 127,
        under={"peaks": None, "factors": "1 / scale has the 127 already: do not divide by 127 again"},
    ),
    KnownMistake(
        "whole-numbers",
        "the products are cut to whole numbers: make them float64",
        lambda codes, scales, block: np.trunc(codes * of_each(scales, block, len(codes))),
        under={"factors": "the results are cut to whole numbers: make them float64"},
    ),
    KnownMistake(
        "without-signs",
        "a negative code gives a negative number",
        lambda codes, scales, block: np.abs(codes * of_each(scales, block, len(codes))),
        under={"unsigned": "a code below 128 gives a negative number"},
    ),
    KnownMistake(
        "scales-modulo",
        "the number at place i is in block i // block; i % block is its place inside the block",
        lambda codes, scales, block: codes * scales.astype(float)[np.arange(len(codes)) % min(block, max(len(scales), 1))],
        under={
            "short-block-first": "counted from the end, from 0 on, number i is in block i // block; i % block is its place inside the block"
        },
    ),
    KnownMistake(
        "largest-scale",
        "all numbers have the largest of the scales: each block has its own",
        lambda codes, scales, block: codes * float(scales.max(initial=0)),
        under={"factors": "all numbers have the smallest of the numbers in `scales`: each block has its own"},
    ),
    KnownMistake(
        "short-block-lost",
        "the last block can have fewer numbers than the others, and they are decoded, too",
        lambda codes, scales, block: (codes * of_each(scales, block, len(codes)))[: len(codes) // block * block],
        under={"short-block-first": "the first block can have fewer numbers than the others, and they are decoded, too"},
    ),
    KnownMistake(
        "equal-parts",
        NOT_BLOCKS.format(short="last"),
        lambda codes, scales, block: codes * np.repeat(scales.astype(float), nearly_equal_lengths(len(codes), block)),
        under={"short-block-first": NOT_BLOCKS.format(short="first")},
    ),
)

EXAMPLES = (
    Example(
        (np.array([127, -50, 1, 127, 64], np.int8), np.array([0.5, 0.25], np.float32), 3),
        np.array([63.5, -25.0, 0.5, 31.75, 16.0]),
    ),
)
TWISTS = (
    Twist("unsigned", "codes is a uint8 array: 128 has been added to each code", given={0: UNSIGNED}, about="codes"),
    Twist(
        "peaks",
        "scales has the largest magnitude of each block, which is 127 times the scale",
        given={1: scaled(127)},
        about="scales",
    ),
    Twist(
        "factors",
        "scales has 1 / scale for each block, and 0 for a block whose scale is 0",
        given={1: INVERSE},
        about="scales",
    ),
    Twist(
        "loss-scale",
        f"the sender has multiplied the numbers by a loss scale of {LOSS_SCALE}; the function returns the numbers before that",
        result=scaled(1 / LOSS_SCALE),
    ),
    Twist("last-scale-first", "the scales go from the last block to the first", given={1: REVERSED}),
    Twist(
        "short-block-first",
        "the first block is the shorter one, not the last, if the number of codes is no multiple of block",
        given={0: REVERSED, 1: REVERSED},
        result=REVERSED,
    ),
    Twist("scales-first", "the function takes the scales first: decode(scales, codes, block)", order=(1, 0, 2)),
)
