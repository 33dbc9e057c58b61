"""The coding task ("build") ``decode`` of lab 5: the codes and scales to try, known mistakes, and changes of the task ("twists")."""

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
    UNSIGNED,
    array,
    in_blocks,
    nearly_equal_lengths,
    of_each,
    sizes_of_messages,
    without_the_library,
)


def packets(rng: np.random.Generator) -> Iterator[Case]:
    """Yield codes and scales of many sizes, with scales of 0, with short last blocks, and without numbers."""
    yield Case((np.array([0, 0, 0], np.int8), np.zeros(2, np.float32), 2), "3 zeros in blocks of 2")
    for size, block in sizes_of_messages(rng):
        scales = (10.0 ** rng.uniform(-4, 2, -(-size // block))).astype(np.float32)
        codes = rng.integers(-127, 128, size).astype(np.int8)
        yield Case((codes, scales, block), in_blocks(size, block), run=without_the_library)
    yield Case((np.zeros(0, np.int8), np.zeros(0, np.float32), 4), "a message without numbers")


def decoded_numbers(result: Any) -> np.ndarray[Any, Any]:
    """Return the numbers that a student's function decoded, or raise an error if their type is wrong."""
    return array(result, "the numbers", np.float64, ": convert the codes to float64 before the product")


MISTAKES = (
    KnownMistake(
        "not-scaled",
        "your result is the codes: multiply each code by the scale of its block",
        lambda codes, scales, block: codes * 1.0,
        under={
            "peaks": "your result is the codes: multiply each code by the largest magnitude of its block, and divide by 127",
            "factors": "your result is the codes: multiply each code by 1 / (the number in `scales`)",
        },
    ),
    KnownMistake(
        "first-scale-alone",
        "all your numbers have the scale of the first block: each block has a scale of its own",
        lambda codes, scales, block: codes * of_each(scales[:1], max(len(codes), 1), len(codes)),
        under={"short-block-first": "all your numbers have the scale of the last block: each block has a scale of its own"},
    ),
    KnownMistake(
        "scales-in-turn",
        "your scales alternate from number to number: the first `block` numbers share the first scale",
        lambda codes, scales, block: codes * np.resize(scales.astype(float), len(codes)),
        under=dict.fromkeys(
            ("last-scale-first", "short-block-first"), "your scales alternate from number to number: the numbers of a block share one scale"
        ),
    ),
    KnownMistake(
        "divided-again",
        "you divide by 127: the scale is the largest magnitude / 127 already",
        lambda codes, scales, block: codes * of_each(scales, block, len(codes)) / 127,
        under={"peaks": None, "factors": "you divide by 127: 1 / scale is 127 / (largest magnitude) already"},
    ),
    KnownMistake(
        "whole-numbers",
        "your products are cut to whole numbers: make them float64",
        lambda codes, scales, block: np.trunc(codes * of_each(scales, block, len(codes))),
        under={"factors": "your results are cut to whole numbers: make them float64"},
    ),
    KnownMistake(
        "without-signs",
        "your numbers have lost the signs: a negative code gives a negative number",
        lambda codes, scales, block: np.abs(codes * of_each(scales, block, len(codes))),
        under={"unsigned": "your numbers have lost the signs: a code below 128 gives a negative number"},
    ),
    KnownMistake(
        "largest-scale",
        "all your numbers have the largest scale: each block has a scale of its own",
        lambda codes, scales, block: codes * float(scales.max(initial=0)),
        under={"factors": "all your numbers have the smallest number in `scales`: each block has a number of its own"},
    ),
    KnownMistake(
        "short-block-lost",
        "your result lacks the short last block: a block with fewer numbers than the others is decoded, too",
        lambda codes, scales, block: (codes * of_each(scales, block, len(codes)))[: len(codes) // block * block],
        under={"short-block-first": "your result lacks the short first block: a block with fewer numbers than the others is decoded, too"},
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
