"""Test wire formats: rounding compared with other programs, error bounds, exact bytes, and what is refused."""

import warnings
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some
from misuse import junk, outcome, usual_or_junk
from profiles import examples

from hybridlab import BF16, FP16, FP32, INT8, HybridLabError, WireFormat

BLOCKS = WireFormat("INT8", block=4)
SMALL_SCALES = WireFormat("INT8", block=4, scale="FP16")
STOCHASTIC = WireFormat("INT8", stochastic=True)
CASTS = (FP32, FP16, BF16)
QUANTISED = (INT8, BLOCKS, SMALL_SCALES, STOCHASTIC)
each_format = in_turn("wire", [*CASTS, *QUANTISED])
each_quantised = in_turn("wire", QUANTISED)

single = some.arrays(np.float32, st.integers(0, 40), elements=st.floats(width=32, allow_nan=False, allow_infinity=False))
moderate = some.arrays(np.float64, st.integers(0, 40), elements=st.floats(-1e4, 1e4))
subnormal = some.arrays(np.float32, st.integers(1, 9), elements=st.floats(-(2.0**-130), 2.0**-130, width=32))


def seeded() -> np.random.Generator:
    return np.random.default_rng(7)


def carried(wire: WireFormat, values: Any) -> Any:
    return wire.decode(wire.encode(values, seeded()))


def bits(values: Any) -> list[int]:
    return np.asarray(values, dtype=np.float32).view(np.uint32).tolist()


@given(values=single)
def test_bf16_is_that_of_ml_dtypes_bit_for_bit(values: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # their function warns about numbers that become infinite
        theirs = values.astype(ml_dtypes.bfloat16)
    if not np.isfinite(theirs).all():
        with refusal("too-large", "BF16", "3.3895314e+38"):
            BF16.encode(values)
        return
    assert BF16.encode(values).codes.tobytes() == theirs.tobytes()
    assert bits(carried(BF16, values)) == bits(theirs.astype(np.float32))


def test_every_bf16_number_arrives_as_it_is() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)
    finite = every[np.isfinite(every)]
    assert bits(carried(BF16, finite)) == bits(finite)


def test_a_tie_between_two_bf16_numbers_is_rounded_to_even_as_ml_dtypes_does() -> None:
    halfway = (np.arange(2**16, dtype=np.uint32) << 16 | 0x8000).view(np.float32)
    theirs = halfway[np.isfinite(halfway)].astype(ml_dtypes.bfloat16)
    fitting = np.isfinite(theirs)  # numbers above the largest one become infinite
    assert fitting.sum() > 65_000
    codes = BF16.encode(halfway[np.isfinite(halfway)][fitting]).codes
    assert (codes == theirs[fitting].view(np.uint16)).all()


def test_every_fp16_number_arrives_as_it_is() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)].astype(np.float32)
    assert bits(carried(FP16, finite)) == bits(finite)


@given(values=single)
def test_fp32_changes_nothing(values: Any) -> None:
    assert bits(carried(FP32, values)) == bits(values)


@in_turn("wire", CASTS)
@given(values=some.arrays(np.float64, 20, elements=st.floats(1e-4, 6e4) | st.floats(-6e4, -1e-4)))
def test_a_cast_is_within_its_roundoff(wire: WireFormat, values: Any) -> None:
    assert wire.roundoff is not None
    assert (np.abs(carried(wire, values) - values) <= np.abs(values) * wire.roundoff).all()


@each_quantised
@given(values=moderate | subnormal)
def test_int8_is_within_half_a_scale_and_its_codes_reach_127(wire: WireFormat, values: Any) -> None:
    packet = wire.encode(values, seeded())
    assert packet.codes.dtype == np.int8
    assert (packet.codes >= -127).all()
    width = wire.block or max(values.size, 1)
    for place, scale in enumerate(packet.scales):
        block = values[place * width : (place + 1) * width].astype(np.float64)
        codes = packet.codes[place * width : (place + 1) * width].astype(np.float64)
        assert Fraction(float(scale)) * 127 >= Fraction(float(np.abs(block).max()))
        room = 1.0 if wire.stochastic else 0.5
        assert (np.abs(codes * float(scale) - block) <= room * float(scale) * (1 + 1e-6)).all()
        if not np.abs(block).max():
            assert scale == 0


@given(values=some.arrays(np.float32, st.integers(1, 40), elements=st.floats(-1e4, 1e4, width=32)))
def test_int8_rounds_as_exact_arithmetic_does(values: Any) -> None:
    """The codes are compared with round(x / scale) in exact fractions; they may differ only within 1e-5 of half a step."""
    packet = INT8.encode(values)
    scale = Fraction(float(packet.scales[0]))
    for code, value in zip(packet.codes.tolist(), values.tolist(), strict=True):
        exact = Fraction(value) / scale if scale else Fraction(0)
        assert abs(exact - code) <= Fraction(1, 2) + Fraction(1, 10**5)


def test_stochastic_rounding_is_right_in_the_mean_and_nearest_is_not() -> None:
    values = np.append(np.full(200_000, 0.3), 127.0)  # scale 1
    assert abs(STOCHASTIC.decode(STOCHASTIC.encode(values, seeded()))[:-1].mean() - 0.3) < 5 * np.sqrt(0.21 / 200_000)
    assert INT8.decode(INT8.encode(values))[:-1].mean() == 0


def test_the_largest_number_stays_so_when_it_is_rounded_up_at_random() -> None:
    class Nearly(np.random.Generator):
        """A random generator that always draws the largest number below 1."""

        def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
            return np.full(size, np.nextafter(dtype(1), dtype(0)), dtype)

    for form in (np.float32, np.float64):
        packet = STOCHASTIC.encode(np.array([127, 1, -127], dtype=form), Nearly(np.random.PCG64(0)))
        assert packet.codes.tolist()[0] == 127, "128 would arrive as -128"


def test_stochastic_rounding_is_drawn_from_rng_alone() -> None:
    assert WireFormat("INT8", stochastic=np.True_) == STOCHASTIC  # type: ignore[arg-type]
    values = np.linspace(-1, 1, 99)
    once, again, other = (STOCHASTIC.encode(values, np.random.default_rng(seed)).codes for seed in (1, 1, 2))
    assert (once == again).all()
    assert (once != other).any()


@each_format
@given(values=moderate)
def test_bytes_are_those_of_the_arrays_sent(wire: WireFormat, values: Any) -> None:
    packet = wire.encode(values, seeded())
    assert packet.payload_bytes == len(packet.codes.tobytes()) == wire.payload_bytes(values.size)
    assert packet.scale_bytes == len(packet.scales.tobytes()) == wire.scale_bytes(values.size)
    assert packet.nbytes == wire.nbytes(values.size) == packet.payload_bytes + packet.scale_bytes


def test_bytes_of_the_published_configuration_and_of_others() -> None:
    """reference/collectives.md: 12 devices x 6 sends x 30 numbers; bytes a number with blocks."""
    assert 12 * 6 * INT8.payload_bytes(30) == 2160
    assert 12 * 6 * INT8.nbytes(30) == 2448
    assert 12 * 6 * FP16.nbytes(30) == 4320
    assert 12 * 6 * FP32.nbytes(30) == 8640
    assert WireFormat("INT8", block=256, scale="FP16").nbytes(2560) / 2560 == pytest.approx(1.0078, abs=5e-5)
    assert WireFormat("INT8", block=64, scale="FP16").nbytes(640) / 640 == pytest.approx(1.031, abs=5e-4)
    assert WireFormat("INT8", block=32).nbytes(320) / 320 == 1.125


@each_format
def test_an_empty_message_costs_nothing(wire: WireFormat) -> None:
    assert wire.nbytes(0) == 0
    assert wire.encode([], seeded()).nbytes == 0
    assert carried(wire, []).shape == (0,)


@each_format
def test_zeros_arrive_as_zeros(wire: WireFormat) -> None:
    assert (carried(wire, np.zeros(9)) == 0).all()
    mixed = np.array([0, 0, 0, 0, 1.0, 2, 3, 4])
    assert (carried(wire, mixed)[:4] == 0).all()


@each_format
@in_turn("fault", [np.nan, np.inf, -np.inf])
@in_turn("kind", [np.float32, np.float64])
def test_nan_and_infinity_are_refused_alike(wire: WireFormat, fault: float, kind: type) -> None:
    values = np.array([1.0, fault, 2.0], dtype=kind)
    with refusal("not-finite", f"value 1 is {fault}"):
        wire.encode(values, seeded())


TOO_LARGE = [
    (FP16, 65520.0, "65504 65520"),
    (FP32, 1e39, "3.4028235e+38 1e+39"),
    (BF16, -3.4e38, "3.3895314e+38 -3.4e+38"),
    (INT8, 1e39, "3.4028232e+38 1e+39"),
    (SMALL_SCALES, 1e8, "8319008 1e+08"),
]


@in_turn("wire, value, words", TOO_LARGE)
def test_what_a_format_cannot_carry_is_refused(wire: WireFormat, value: float, words: str) -> None:
    with pytest.raises(HybridLabError) as why:
        wire.encode([0.0, value, 1.0])
    assert why.value.code == "too-large"
    assert all(word in str(why.value) for word in (str(wire), "value 1", *words.split()))
    assert ("BF16, which has the range of FP32" in str(why.value)) == (wire in (FP16, SMALL_SCALES)), "only where BF16 reaches further"


@each_format
@in_turn("value", [65504.0, 3.3e38, 5e-324, 1e-45, 2.0**-130, 1e-8])
def test_what_arrives_is_finite(wire: WireFormat, value: float) -> None:
    if wire in (FP16, SMALL_SCALES) and value > 1e6:
        return
    arrived = carried(wire, [value, -value, 0.0])
    assert np.isfinite(arrived).all()
    assert (np.abs(arrived) <= max(value * 1.01, 1e-5)).all()


@each_format
def test_inputs_stay_as_they_are_and_packets_cannot_be_changed(wire: WireFormat) -> None:
    for kind in (np.float32, np.float64):
        values = np.linspace(-3, 3, 11).astype(kind)
        values.setflags(write=False)
        before = values.tobytes()
        packet = wire.encode(values, seeded())
        wire.decode(packet)[:] = 5
        assert values.tobytes() == before
        with pytest.raises(ValueError, match="read-only"):
            packet.codes[0] = 1
        writable = values.copy()
        kept = wire.encode(writable, seeded()).codes.tobytes()
        sent = wire.encode(writable, seeded())
        writable[:] = 0
        assert sent.codes.tobytes() == kept, "a message on its way does not change with the sender's array"


REFUSED = [
    (lambda: WireFormat("int8"), "unknown-name", "'int8' 'INT8' FP32, FP16, BF16, INT8"),
    (lambda: WireFormat("FP16", block=64), "conflicting-arguments", "FP16 block stochastic scale"),
    (lambda: WireFormat("INT8", block=0), "too-small", "block 1 0"),
    (lambda: WireFormat("INT8", scale="FP8"), "unknown-name", "'FP8' 'FP32' FP32, FP16"),
    (lambda: WireFormat("INT8", stochastic=1), "not-true-or-false", "stochastic True False 1"),  # type: ignore[arg-type]
    (lambda: INT8.nbytes(-1), "too-small", "size 0 -1"),
    (lambda: STOCHASTIC.encode([1.0]), "wrong-type", "rng=numpy.random.default_rng(seed), None"),
    (lambda: FP16.encode([1.0], 3), "wrong-type", "rng rng=numpy.random.default_rng(seed), 3"),  # type: ignore[arg-type]
    (lambda: FP32.encode(np.ma.masked_less([1.0, 2.0], 2)), "masked", "masked"),
    (
        lambda: INT8.encode([1.0, np.finfo(np.float32).max]),
        "too-large", "INT8 3.4028232e+38 1 3.4028235e+38",
    ),
    (lambda: FP32.encode([[1.0]]), "not-a-list", "[[1.0]]"),
    (lambda: FP32.encode("ab"), "not-a-list", "'ab'"),
    (lambda: FP32.decode(b"ab"), "wrong-type", "b'ab'"),  # type: ignore[arg-type]
    (
        lambda: WireFormat("INT8", block=2).decode(BLOCKS.encode([1.0] * 8)),
        "does-not-fit", "INT8 4; 2",
    ),
    (lambda: FP16.decode(BLOCKS.encode([1.0])), "does-not-fit", "INT8 4; FP16"),
]  # fmt: skip


@in_turn("ask, code, words", REFUSED)
def test_refusals_have_a_code_and_name_what_was_wrong(ask: Any, code: str, words: str) -> None:
    with refusal(code, *words.split()):
        ask()


@examples(300)
@given(
    name=usual_or_junk(["FP32", "INT8", "BF16"]),
    block=usual_or_junk([None, 2]),
    stochastic=usual_or_junk([False, True]),
    scale=usual_or_junk(["FP32", "FP16"]),
    values=usual_or_junk([[1.0, 2.0], np.ones(3, dtype=np.float32)]),
    rng=usual_or_junk([None, np.random.default_rng(1)]),
    size=junk,
)
def test_junk(name: Any, block: Any, stochastic: Any, scale: Any, values: Any, rng: Any, size: Any) -> None:
    wire = outcome(WireFormat, name, block, stochastic, scale)
    if wire is not None:
        outcome(wire.nbytes, size)
        packet = outcome(wire.encode, values, rng)
        if packet is not None:
            assert np.isfinite(outcome(wire.decode, packet)).all()
    outcome(INT8.decode, values)
