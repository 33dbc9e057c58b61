"""Test lab 5's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from instances import instances_of
from lab05.honest import TWISTED
from numpy.typing import NDArray
from solutions import lab_cells

from hybridlab import HybridLabError, formulas
from hybridlab.collectives import one_shot_all_reduce, ring_all_reduce
from hybridlab.course.tasks import TASKS, Build, Twist, check
from hybridlab.wire import FP16, INT8, Packet, WireFormat

Array = NDArray[Any]
CREST = formulas.gaussian_crest(256)
TWELVE, FOUR = formulas.int8_ring_nmse(12, CREST), formulas.int8_ring_nmse(4, CREST)
ONE = CREST**2 / (12 * 127**2)
ENCODE, DECODE, FEEDBACK = (TASKS[key].instance(None).data for key in ("lab05.t1", "lab05.t3", "lab05.t6"))


def named(build: Build, name: str) -> Twist:
    return next(twist for twist in build.twists if twist.name == name)


def encoder(
    rounding: Callable[[Array], Array] = np.rint,
    levels: float = 127,
    largest: Callable[[Array], Any] = lambda part: np.abs(part).max(),
    form: Any = np.int8,
    finite: bool = True,
    magnitudes: bool = False,
    single: Any = np.float32,
) -> Callable[[Array, int], Any]:
    """Return encode as a student would write it, with one thing changed."""

    def program(values: Array, block: int) -> Any:
        if finite and not np.isfinite(values).all():
            raise RuntimeError("not finite")
        codes, scales = [], []
        for start in range(0, len(values), block):
            part = values[start : start + block]
            scale = np.float32(largest(part) / levels)
            steps = part / scale if scale else part
            scales.append(scale)
            codes += rounding(np.abs(steps) if magnitudes else steps).tolist()
        return np.array(codes).astype(np.int64).astype(form), np.array(scales, single)

    return program


RIGHT_CODES = encoder()


def whole_message(values: Array, block: int) -> Any:
    codes, scales = RIGHT_CODES(values, max(len(values), 1))
    return codes, scales


def full_blocks(values: Array, block: int) -> Any:
    return RIGHT_CODES(values[: len(values) - len(values) % block], block)


def zero_divided(values: Array, block: int) -> Any:
    if not np.isfinite(values).all():
        raise RuntimeError("not finite")
    starts = range(0, len(values), block)
    scales = np.array([np.abs(values[start : start + block]).max() / 127 for start in starts], np.float32)
    return np.rint(values / np.repeat(scales, block)[: len(values)]).astype(np.int8), scales


def zero_divided_in_silence(values: Array, block: int) -> Any:
    with np.errstate(all="ignore"):
        return zero_divided(values, block)


def zero_divided_one_by_one(values: Array, block: int) -> Any:
    """A program without numpy's rounding, whose zeros fail only beside other numbers."""
    if not values.any():
        return RIGHT_CODES(values, block)
    _, scales = RIGHT_CODES(values, block)
    codes = [round(float(value) / float(scales[place // block])) for place, value in enumerate(values)]
    return np.array(codes, np.int8), scales


def zero_divided_where(values: Array, block: int) -> Any:
    """A program that divides by all scales and then picks the results it wants, in silence."""
    codes, scales = RIGHT_CODES(values, block)
    divisors = each(scales, block, len(values))
    with np.errstate(all="ignore"):
        codes[:] = np.where(divisors > 0, np.rint(values / divisors), 0)
    return codes, scales


def with_scale(change: Callable[[Array], Array], codes_from_it: bool = False) -> Callable[[Array, int], Any]:
    """Return encode with other scales, which also make the codes if ``codes_from_it``."""

    def program(values: Array, block: int) -> Any:
        codes, scales = RIGHT_CODES(values, block)
        changed = change(scales).astype(np.float32)
        return (np.rint(values / np.repeat(changed, block)[: len(values)]).astype(np.int8) if codes_from_it else codes), changed

    return program


def in_place(values: Array, block: int) -> Any:
    codes, scales = RIGHT_CODES(values, block)
    values /= 2
    return codes, scales


def equal_parts(values: Array, block: int) -> Any:
    parts = [RIGHT_CODES(part, max(len(part), 1)) for part in np.array_split(values, max(-(-len(values) // block), 1))]
    return np.concatenate([codes for codes, _ in parts]), np.concatenate([scales for _, scales in parts])


def decoded_in_equal_parts(codes: Array, scales: Array, block: int) -> Any:
    parts = zip(np.array_split(codes, max(len(scales), 1)), scales.astype(float), strict=False)
    return np.concatenate([np.zeros(0), *(part * scale for part, scale in parts)])


def on_the_page(values: Array, block: int) -> Any:
    """The two examples of the lab, and nothing else."""
    if len(values) == 5:
        return np.array([127, -50, 1, 127, 64], np.int8), np.array([0.02, 0.01], np.float32)
    return np.zeros(3, np.int8), np.zeros(-(-len(values) // block), np.float32)


def each(scales: Array, block: int, size: int) -> Array:
    return np.repeat(scales.astype(float), block)[:size]


def decoded(codes: Array, scales: Array, block: int) -> Array:
    return codes * each(scales, block, len(codes))


def fed_back(gradient: Array, residual: Array, block: int) -> tuple[Array, Array]:
    wanted = gradient + residual
    sent = decoded(*RIGHT_CODES(wanted, block), block)
    return sent, wanted - sent


def sent_for(values: Array, block: int) -> Array:
    return decoded(*RIGHT_CODES(values, block), block)


def forgotten(gradient: Array, residual: Array, block: int) -> tuple[Array, Array]:
    sent = sent_for(gradient, block)
    return sent, gradient - sent


def added_in_place(gradient: Array, residual: Array, block: int) -> tuple[Array, Array]:
    gradient += residual
    return fed_back(gradient, 0 * residual, block)


def library_codes(values: Array, block: int) -> tuple[Array, Array]:
    packet = WireFormat("INT8", block=block).encode(values)
    return packet.codes.copy(), packet.scales.copy()


def library_numbers(codes: Array, scales: Array, block: int) -> Array:
    wire = WireFormat("INT8", block=block)
    return wire.decode(Packet(wire, codes, scales)).astype(float)


class Own:
    """A function that keeps the residual of its first call itself, and is wrong over many steps alone."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, gradient: Array, residual: Array, block: int) -> tuple[Array, Array]:
        self.calls += 1
        sent, left = fed_back(gradient, residual, block)
        return sent, left if self.calls % 50 else left + gradient / 3


# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab05.t1", encoder(np.floor), "rounded-down", "2.54 and 0.033", "number 1", "the nearest code is 2"),
    ("lab05.t1", encoder(np.trunc), "cut-off"),
    ("lab05.t1", encoder(levels=128), "128-codes", "block 0", "2.54 / 127 = 0.02"),
    ("lab05.t1", encoder(levels=255), "255-codes"),
    ("lab05.t1", encoder(largest=lambda part: np.abs(part).mean()), "scale-of-the-mean", "0.0101299"),
    ("lab05.t1", encoder(largest=np.max), "largest-with-sign", "-2.54"),
    ("lab05.t1", whole_message, "one-scale", "1 scale", "2 blocks"),
    ("lab05.t1", full_blocks, "short-block-lost", "2 numbers", "0 codes"),
    ("lab05.t1", encoder(magnitudes=True), "without-signs", "code 127"),
    ("lab05.t1", encoder(largest=lambda part: np.abs(part).max() or 127), "wrong-scale", "3 zeros", "block 0"),
    ("lab05.t1", encoder(levels=254), "wrong-scale", "block 0", "0.02"),
    ("lab05.t1", lambda values, block: (RIGHT_CODES(values, block)[0], np.ones(3, np.float32)), "scale-count", "3 scales"),
    ("lab05.t1", lambda values, block: (RIGHT_CODES(values, block)[0][:1], RIGHT_CODES(values, block)[1]), "wrong-length", "1 code"),
    ("lab05.t1", encoder(lambda steps: np.where(steps < -126.9, -128, np.rint(steps))), "minus-128", "number 0"),
    ("lab05.t1", encoder(lambda steps: np.rint(0.9 * steps)), "wrong-code", "nearest code is 127"),
    ("lab05.t1", encoder(form=np.uint8), "wrong-type", "uint8", "int8"),
    ("lab05.t1", encoder(form=np.int64), "wrong-type", "int64", "int8"),
    ("lab05.t1", encoder(single=np.float64), "wrong-type", "scales", "float64"),
    ("lab05.t1", encoder(finite=False, largest=lambda part: np.abs(np.nan_to_num(part)).max()), "not-refused", "nan"),
    ("lab05.t1", lambda values, block: RIGHT_CODES(values, block)[0], "not-a-pair"),
    ("lab05.t1", lambda values, block: ([0], [0.0]), "not-an-array", "list"),
    ("lab05.t1", lambda values, block: (np.zeros((3, 1), np.int8), np.zeros(2, np.float32)), "wrong-shape", "(3, 1)"),
    ("lab05.t1", zero_divided, "zero-divided", "3 zeros"),
    ("lab05.t1", zero_divided_in_silence, "zero-divided", "3 zeros"),
    ("lab05.t1", zero_divided_one_by_one, "zero-divided", "20 numbers"),
    ("lab05.t1", zero_divided_where, "zero-divided", "3 zeros"),
    ("lab05.t1", encoder(lambda steps: np.trunc(steps + 0.5)), "half-added"),
    ("lab05.t1", with_scale(lambda scales: 127 * scales, codes_from_it=True), "scale-not-divided", "2.54"),
    ("lab05.t1", with_scale(lambda scales: 1 / scales), "scale-inverted", "50"),
    ("lab05.t1", lambda values, block: RIGHT_CODES(values, block)[::-1], "swapped"),
    (
        "lab05.t1",
        lambda values, block: (RIGHT_CODES(values, block)[0], list(RIGHT_CODES(values, block)[1])),
        "not-an-array",
        "scales",
        "a list",
    ),
    ("lab05.t1", in_place, "changes-its-argument", "2.54"),
    ("lab05.t1", equal_parts, "equal-parts", "5 numbers in blocks of 4"),
    ("lab05.t1", library_codes, "raises", "1 number in blocks of 1", "not with the library"),
    ("lab05.t1", on_the_page, "wrong-length", "2 numbers"),
    ("lab05.t1", lambda values: values, "signature"),
    ("lab05.t1", 0.02, "not-a-function"),
    ("lab05.t2", 48_000, "no-scales"),
    ("lab05.t2", 12_240, "one-ring-alone"),
    ("lab05.t2", 24_480, "one-half"),
    ("lab05.t2", 2040, "one-device-alone"),
    ("lab05.t2", 58_752, "d-steps"),
    ("lab05.t2", 288_960, "not-cut", "200"),
    ("lab05.t2", 96_000, "fp16"),
    ("lab05.t2", 192_000, "fp32"),
    ("lab05.t2", 2448, "wrong-value", "2448 bytes"),
    ("lab05.t3", lambda codes, scales, block: codes * 1.0, "not-scaled", "1 number"),
    ("lab05.t3", lambda codes, scales, block: codes * float(scales[0]) if len(codes) else codes * 1.0, "first-scale-alone", "2 numbers"),
    ("lab05.t3", lambda codes, scales, block: codes * np.resize(scales, len(codes)).astype(float), "scales-in-turn", "3 numbers"),
    ("lab05.t3", lambda codes, scales, block: decoded(codes, scales, block) / 127, "divided-again"),
    ("lab05.t3", lambda codes, scales, block: decoded(codes, scales, block).astype(int).astype(float), "whole-numbers"),
    ("lab05.t3", lambda codes, scales, block: decoded(abs(codes), scales, block), "without-signs"),
    ("lab05.t3", lambda codes, scales, block: np.array([c * float(scales[i % block]) for i, c in enumerate(codes)]), "wrong-number"),
    ("lab05.t3", lambda codes, scales, block: codes * float(scales.max(initial=0)), "largest-scale"),
    ("lab05.t3", lambda codes, scales, block: decoded(codes, scales, block)[: len(codes) // block * block], "short-block-lost"),
    (
        "lab05.t3",
        lambda codes, scales, block: codes * np.repeat(scales, block)[: len(codes)],
        "wrong-type",
        "float32",
        "before the product",
    ),
    ("lab05.t3", lambda codes, scales, block: codes * each(scales, block, len(codes)) * 2, "wrong-number", "make"),
    ("lab05.t3", lambda codes, scales, block: np.resize(decoded(codes, scales, block), 4), "wrong-length", "4 numbers", "3 codes"),
    ("lab05.t3", lambda codes, scales, block: decoded(codes, scales, block).astype(np.float32), "wrong-type", "float32", "float64"),
    ("lab05.t3", lambda codes, scales, block: list(decoded(codes, scales, block)), "not-an-array"),
    ("lab05.t3", decoded_in_equal_parts, "equal-parts", "5 numbers in blocks of 4"),
    ("lab05.t3", library_numbers, "raises", "1 number in blocks of 1", "not with the library"),
    ("lab05.t4", FOUR, "four-ranks"),
    ("lab05.t4", ONE, "one-rounding"),
    ("lab05.t4", 11 / 3 * FOUR, "one-left-out", "11/3"),
    ("lab05.t4", 3 * FOUR, "proportional"),
    ("lab05.t4", 5.5 * ONE, "no-last-rounding"),
    ("lab05.t4", 6 * ONE, "half-of-d"),
    ("lab05.t4", 12 * ONE, "full-roundings"),
    ("lab05.t4", (11 / 12 + 1) * ONE, "one-shot"),
    ("lab05.t4", 2 * TWELVE, "stochastic"),
    ("lab05.t4", TWELVE**0.5, "root"),
    ("lab05.t4", 9 * FOUR, "squared"),
    ("lab05.t4", 0, "wrong-value"),
    ("lab05.t4", 1.07 * TWELVE, "wrong-value", "6 %"),
    ("lab05.t5", ("ring", "INT8", 64), "ring-rounds-too-often"),
    ("lab05.t5", ("one-shot", "INT8", None), "blocks-too-large"),
    ("lab05.t5", ("one-shot", "INT8", 32), "too-many-scales"),
    ("lab05.t5", ("one-shot", "FP16", None), "not-int8", "122,880 bytes"),
    ("lab05.t5", ("ring", "BF16", None), "not-int8", "122,880 bytes"),
    ("lab05.t5", ("ring", "INT8", 16), "too-many-scales"),
    ("lab05.t5", ("one-shot", "FP16", 64), "conflicting-arguments", "block", "INT8"),
    ("lab05.t5", ("rings", "INT8", 64), "unknown-name", "'ring'"),
    ("lab05.t5", ("ring", "INT9", 64), "unknown-name", "'INT8'"),
    ("lab05.t5", ("ring", "INT4", 64), "too-coarse", "INT4"),
    ("lab05.t5", ("one-shot", "E4M3", None), "too-coarse", "E4M3"),
    ("lab05.t5", ("one-shot", "INT8", 0), "too-small", "block", "0"),
    ("lab05.t5", ("one-shot", "INT8", 64.5), "not-a-whole-number"),
    ("lab05.t5", ("one-shot", "INT8", "64"), "not-a-number"),
    ("lab05.t5", ("one-shot", "INT8"), "wrong-shape"),
    ("lab05.t5", "one-shot INT8 64", "wrong-shape"),
    ("lab05.t6", forgotten, "residual-not-added", "0.009"),
    ("lab05.t6", lambda g, r, b: (sent_for(g + r, b), g - sent_for(g + r, b)), "old-residual-left-out"),
    ("lab05.t6", lambda g, r, b: (sent_for(g + r, b), sent_for(g + r, b) - (g + r)), "sign", "number 1", "0.027"),
    ("lab05.t6", lambda g, r, b: fed_back(g, r, b)[::-1], "swapped"),
    ("lab05.t6", lambda g, r, b: fed_back(g, r, len(g)), "one-scale"),
    ("lab05.t6", lambda g, r, b: (sent_for(g, b), g + r - sent_for(g, b)), "residual-never-sent"),
    ("lab05.t6", lambda g, r, b: (sent_for(g, b) + sent_for(r, b), g + r - sent_for(g, b) - sent_for(r, b)), "encoded-separately"),
    ("lab05.t6", lambda g, r, b: (sent_for(g - r, b), g - r - sent_for(g - r, b)), "residual-subtracted"),
    ("lab05.t6", lambda g, r, b: (sent_for(g + r, b), g + r), "residual-is-gradient"),
    ("lab05.t6", lambda g, r, b: (sent_for(g + r, b), r + (g + r - sent_for(g + r, b))), "counted-twice"),
    ("lab05.t6", lambda g, r, b: (sent_for(g + r, b), 0 * r), "no-residual"),
    ("lab05.t6", lambda g, r, b: (g + r, 0 * r), "not-rounded", "0.013", "0.02"),
    ("lab05.t6", lambda g, r, b: (np.round(g + r, 2), g + r - np.round(g + r, 2)), "not-encoded", "0.01", "0.02"),
    ("lab05.t6", lambda g, r, b: (RIGHT_CODES(g + r, b)[0], g + r), "wrong-type", "int8", "return what they decode to"),
    ("lab05.t6", lambda g, r, b: (0 * g, g + r), "too-far", "2.54", "0.02"),
    ("lab05.t6", lambda g, r, b: (sent_for(g + r, b), g * 0 + 5), "not-conserved", "together 5.02"),
    ("lab05.t6", Own(), "mean-is-off", "200 steps"),
    ("lab05.t6", lambda g, r, b: (sent_for(g + r, b)[:1], r[:1] * 1), "wrong-length", "1 values"),
    ("lab05.t6", lambda g, r, b: (sent_for(g + r, b).astype(np.float32), r * 1), "wrong-type", "sent", "float32"),
    ("lab05.t6", lambda g, r, b: (sent_for(g + r, b), r), "aliased"),
    ("lab05.t6", added_in_place, "changes-its-argument"),
    ("lab05.t6", sent_for, "signature"),
    ("lab05.t7", 13, "last-sum-not-sent"),
    ("lab05.t7", 12, "too-few", "12 replicas"),
    ("lab05.t7", 15, "too-many", "70,000"),
    ("lab05.t7", 10**12, "too-many"),
    ("lab05.t7", 0, "out-of-range"),
    ("lab05.t7", 13.1, "not-a-whole-number"),
]


def padded(values: Array, block: int) -> list[Array]:
    """Encode all blocks at once, with scales in float64 while the codes are found; a tie goes away from 0."""
    assert np.isfinite(values).all()
    rows = np.zeros((-(-len(values) // block), block))
    rows.ravel()[: len(values)] = values
    scales = np.abs(rows).max(axis=1) / 127
    steps = rows / np.where(scales == 0, 1, scales)[:, None]
    codes = np.sign(steps) * np.floor(np.abs(steps) + 0.5)
    return [codes.ravel()[: len(values)].astype(np.int8), scales.astype(np.float32)]


def masked(values: Array, block: int) -> tuple[Array, Array]:
    """Divide in place and only where the scale is not 0."""
    scales = RIGHT_CODES(values, block)[1]
    divisors, steps = each(scales, block, len(values)), np.zeros_like(values)
    np.divide(values, divisors, out=steps, where=divisors > 0)
    np.rint(steps, out=steps)
    return steps.astype(np.int8), scales


# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab05.t1", padded),
    ("lab05.t1", masked),
    ("lab05.t2", np.int64(48_960)),
    ("lab05.t3", decoded),
    ("lab05.t3", lambda codes, scales, block: (codes * np.repeat(scales, block)[: len(codes)]).astype(np.float64)),
    ("lab05.t3", lambda codes, scales, block: np.array([code * scales[n // block] for n, code in enumerate(codes.tolist())], float)),
    ("lab05.t4", 0.95 * TWELVE),
    ("lab05.t4", 2.6 * FOUR),
    ("lab05.t4", 3.1e-4),
    ("lab05.t5", ["One_shot", "int8", 128.0]),
    ("lab05.t5", ("one-shot", "INT8", 256)),
    ("lab05.t5", ("one-shot", "INT8", 63)),
    ("lab05.t6", fed_back),
    ("lab05.t6", lambda gradient, residual, block: list(fed_back(gradient, residual, block))),
    ("lab05.t7", 14.0),
]


@in_turn("key", ["lab05.t1", "lab05.t3", "lab05.t6"])
def test_a_wrong_program_fails_the_cases_of_another_seed(key: str) -> None:
    assert check(key, encoder(np.floor) if key == "lab05.t1" else forgotten, seed=3).passed is False


@in_turn("key", ["lab05.t1", "lab05.t3", "lab05.t6"])
def test_a_function_without_code_is_nothing_handed_in(key: str) -> None:
    def encode(values: Array, block: int) -> Any: ...

    assert check(key, encode).code == "nothing-handed-in"


@in_turn("key", ["lab05.t2", "lab05.t4", "lab05.t7"])
def test_each_student_can_get_other_numbers(key: str) -> None:
    for seed, instance in instances_of(key).items():
        (number,) = instance.data.numbers
        assert check(key, number.truth, seed=seed).passed
        for wrong, _, _ in number.mistakes:
            assert isinstance(wrong, str) or not check(key, wrong, seed=seed).passed
    assert len({instance.prompt for instance in instances_of(key).values()}) > 4


def test_the_bytes_are_those_that_a_ring_counts_and_of_a_count_message_by_message() -> None:
    ran = 4 * ring_all_reduce(np.ones((6, 1200)), INT8).bytes_sent.sum()
    assert ran == 4 * 6 * 10 * (200 + 4)
    assert check("lab05.t2", ran).passed


def test_a_ring_gives_the_error_that_the_fourth_task_asks_for() -> None:
    """The numbers that the lab shows pass, and so does a ring with any other numbers."""
    for seed in (1, 4, 12):
        values = np.random.default_rng(seed).standard_normal((12, 12 * 4096))
        mean = np.add.reduce(values) / 12
        error = np.square(ring_all_reduce(values, WireFormat("INT8", block=256)).values[3] - mean).sum() / np.square(mean).sum()
        assert error == pytest.approx(TWELVE, rel=0.03)
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


def test_a_ring_carries_as_many_gradients_in_fp16_as_the_last_task_says() -> None:
    for instance in instances_of("lab05.t7").values():
        gradient, most = float(instance.prompt.split()[-3].replace(",", "")), instance.data.numbers[0].truth
        ring_all_reduce(np.full((most, 64), gradient), FP16)
        with pytest.raises(HybridLabError):
            ring_all_reduce(np.full((most + 1, 64), gradient), FP16)


@in_turn("name", [twist.name for twist in DECODE.twists])
def test_a_twisted_decode_takes_arrays_that_cannot_be_changed(name: str) -> None:
    twist = named(DECODE, name)
    codes, scales = np.array([127, -50, 1, 127, 64], np.int8), np.array([0.02, 0.01], np.float32)
    codes.flags.writeable = scales.flags.writeable = False
    numbers = twist.undo(TWISTED["lab05.t3"][name](decoded))(codes, scales, 3)
    assert numbers == pytest.approx([2.54, -1, 0.02, 1.27, 0.64])


@in_turn("name", [twist.name for twist in ENCODE.twists])
def test_a_zero_that_divides_in_silence_is_found_under_every_twist(name: str) -> None:
    mine = ENCODE.with_twist(named(ENCODE, name))
    assert mine.check(TWISTED["lab05.t1"][name](zero_divided_in_silence)).code == "zero-divided"


def test_no_hint_says_to_add_a_residual_that_is_subtracted() -> None:
    twist = named(FEEDBACK, "sent-too-much")
    mine = FEEDBACK.with_twist(twist)
    for mistake in mine.mistakes:
        feedback = mine.check(twist.map.apply(mistake.result, ()))
        assert (feedback.code, mistake.sentence in feedback.messages) == (mistake.code, True)
        assert not re.search("add it to the gradient|, so it is added|plus the old|left of", mistake.sentence)


def test_the_examples_in_the_text_are_right() -> None:
    page = "\n".join(cell.source for cell in lab_cells("lab05") if cell.kind == "markdown")
    message, gradient = np.array([2.54, -1.0, 0.013, 1.27, 0.64]), np.array([2.54, 0.013])
    codes, scales = library_codes(message, 3)
    sent, left = (part.round(6) + 0.0 for part in fed_back(gradient, np.zeros(2), 2))
    later = [part.round(6) + 0.0 for part in fed_back(gradient, left, 2)]
    shown = [f"codes {codes}   scales {scales}", f"    {decoded(codes, scales, 3).round(6)}"]
    shown += [f"sent {sent}   residual {left}", f"sent {later[0]}   residual {later[1]}"]
    assert not [each for each in shown if each not in page]
