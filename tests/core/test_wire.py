"""Test wire formats: rounding compared with other programs, error bounds, exact bytes, and what is refused."""

import pickle
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

from hybridlab import BF16, E4M3, E5M2, FP16, FP32, INT4, INT8, HybridLabError, WireFormat
from hybridlab.wire import NO_NUMBER, Packet

BLOCKS = WireFormat("INT8", block=4)
SMALL_SCALES = WireFormat("INT8", block=4, scale="FP16")
STOCHASTIC = WireFormat("INT8", stochastic=True)
CASTS = (FP32, FP16, BF16)
QUANTISED = (INT8, BLOCKS, SMALL_SCALES, STOCHASTIC, INT4, WireFormat("INT4", block=3), WireFormat("INT4", stochastic=True))
FP8 = {E4M3: ml_dtypes.float8_e4m3fn, E5M2: ml_dtypes.float8_e5m2}
each_format = in_turn("wire", [*CASTS, *QUANTISED, *FP8, WireFormat("E4M3", block=4, scale="FP16")])
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


def whole(packet: Packet) -> Any:
    """Return the codes of INT8 or INT4 as whole numbers. In INT4 the lower half of a byte comes first, as in ml_dtypes."""
    if packet.wire.name == "INT8":
        return packet.codes
    codes = np.stack([packet.codes & 15, packet.codes >> 4], axis=1).reshape(-1).view(ml_dtypes.int4).astype(np.int8)
    return codes[:-1] if codes.size and codes[-1] == NO_NUMBER else codes


@in_turn("wire", FP8)
def test_every_fp8_number_and_every_tie_between_two_is_that_of_ml_dtypes(wire: WireFormat) -> None:
    every = np.arange(256, dtype=np.uint8).view(FP8[wire]).astype(np.float32)
    finite = np.sort(every[np.isfinite(every)])
    ties = (finite[1:] + finite[:-1]) / 2
    beside = [np.nextafter(ties, np.float32(far)) for far in (-1e9, 1e9)]
    tiny = np.float32([0.0, -0.0, 1e-45, -1e-45, 1e-38])
    largest = np.float32([wire.coding.largest])  # its scale is 1, so each number is its own quotient
    for kind in (np.float32, np.float64):
        values = np.concatenate([finite, ties, *beside, tiny, largest]).astype(kind)
        packet = wire.encode(values)
        assert packet.scales == 1
        assert packet.codes.tobytes() == values.astype(FP8[wire]).tobytes()
        assert bits(wire.decode(packet)) == bits(values.astype(FP8[wire]).astype(np.float32))
    assert set(wire.encode(np.append(finite, largest)).codes) == set(np.flatnonzero(np.isfinite(every)).tolist())


@in_turn("wire", [*FP8, WireFormat("E4M3", block=3), WireFormat("E5M2", block=3, scale="FP16")])
@given(values=some.arrays(np.float32, st.integers(0, 40), elements=st.floats(-1e4, 1e4, width=32)) | subnormal)
def test_fp8_is_that_of_ml_dtypes_for_each_number_divided_by_its_scale(wire: WireFormat, values: Any) -> None:
    packet = wire.encode(values)
    scale = np.repeat(packet.scales.astype(np.float32), wire.block or max(values.size, 1))[: values.size]
    theirs = (values / np.where(scale > 0, scale, 1)).astype(FP8[WireFormat(wire.name)])
    assert packet.codes.tobytes() == theirs.tobytes()
    assert bits(wire.decode(packet)) == bits(theirs.astype(np.float32) * scale)


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
def test_whole_numbers_are_within_half_a_scale_and_reach_the_largest_code(wire: WireFormat, values: Any) -> None:
    packet, largest = wire.encode(values, seeded()), {"INT8": 127, "INT4": 7}[wire.name]
    codes = whole(packet)
    assert codes.dtype == np.int8
    assert (np.abs(codes.astype(int)) <= largest).all()
    width = wire.block or max(values.size, 1)
    assert bits(wire.decode(packet)) == bits(codes * np.repeat(packet.scales.astype(np.float32), width)[: values.size])
    for place, scale in enumerate(packet.scales):
        block = values[place * width : (place + 1) * width].astype(np.float64)
        mine = codes[place * width : (place + 1) * width].astype(np.float64)
        assert Fraction(float(scale)) * largest >= Fraction(float(np.abs(block).max()))
        room = 1.0 if wire.stochastic else 0.5
        assert (np.abs(mine * float(scale) - block) <= room * float(scale) * (1 + 1e-6)).all()
        if not np.abs(block).max():
            assert scale == 0


@in_turn("wire", [INT8, INT4])
@given(values=some.arrays(np.float32, st.integers(1, 40), elements=st.floats(-1e4, 1e4, width=32)))
def test_whole_numbers_are_rounded_as_exact_arithmetic_does(wire: WireFormat, values: Any) -> None:
    """The codes are compared with round(x / scale) in exact fractions; they may differ only within 1e-5 of half a step."""
    packet = wire.encode(values)
    scale = Fraction(float(packet.scales[0]))
    for code, value in zip(whole(packet).tolist(), values.tolist(), strict=True):
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
    assert [INT4.payload_bytes(size) for size in (1, 2, 3, 30)] == [1, 1, 2, 15]
    assert WireFormat("E4M3", block=128).nbytes(1280) == WireFormat("INT8", block=128).nbytes(1280) == 1320


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
    (INT8, 1e39, "3.4028233e+38 1e+39"),
    (SMALL_SCALES, 1e8, "8319008 1e+08"),
    (WireFormat("INT4", scale="FP16"), -5e5, "458528 -500000"),
    (WireFormat("E4M3", scale="FP16"), 1e8, "29345792 1e+08"),
]


@in_turn("wire, value, words", TOO_LARGE)
def test_what_a_format_cannot_carry_is_refused(wire: WireFormat, value: float, words: str) -> None:
    with pytest.raises(HybridLabError) as why:
        wire.encode([0.0, value, 1.0])
    assert why.value.code == "too-large"
    assert all(word in str(why.value) for word in (str(wire), "value 1", *words.split()))
    assert ("BF16, which has the range of FP32" in str(why.value)) == (wire == FP16 or wire.scale == "FP16"), (
        "only where BF16 reaches further"
    )


@each_format
@in_turn("value", [65504.0, 3.3e38, 5e-324, 1e-45, 2.0**-130, 1e-8])
def test_what_arrives_is_finite(wire: WireFormat, value: float) -> None:
    if (wire == FP16 or wire.scale == "FP16") and value > 1e6:
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
    (lambda: WireFormat("int8"), "unknown-name", "'int8' 'INT8' FP32, FP16, BF16, INT8, INT4, E4M3, E5M2"),
    (lambda: WireFormat("FP16", block=64), "conflicting-arguments", "FP16 block scale INT8, INT4, E4M3 and E5M2"),
    (lambda: WireFormat("E5M2", stochastic=True), "conflicting-arguments", "E5M2 stochastic INT8 and INT4"),
    (lambda: WireFormat("INT8", block=0), "too-small", "block 1 0"),
    (lambda: WireFormat("INT8", scale="FP8"), "unknown-name", "'FP8' 'FP32' FP32, FP16"),
    (lambda: WireFormat("INT8", stochastic=1), "not-true-or-false", "stochastic True False 1"),  # type: ignore[arg-type]
    (lambda: INT8.nbytes(-1), "too-small", "size 0 -1"),
    (lambda: STOCHASTIC.encode([1.0]), "wrong-type", "rng=numpy.random.default_rng(seed), None"),
    (lambda: FP16.encode([1.0], 3), "wrong-type", "rng rng=numpy.random.default_rng(seed), 3"),  # type: ignore[arg-type]
    (lambda: FP32.encode(np.ma.masked_less([1.0, 2.0], 2)), "masked", "masked"),
    (
        lambda: INT8.encode([1.0, np.finfo(np.float32).max]),
        "too-large", "INT8 3.4028233e+38 1 3.4028235e+38",
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
    name=usual_or_junk(["FP32", "INT8", "BF16", "INT4", "E4M3"]),
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


def test_packets_are_equal_if_their_bits_are() -> None:
    packet = INT8.encode([1.0, -2.0])
    assert pickle.loads(pickle.dumps(packet)) == packet  # noqa: S301 - of our own making
    assert hash(packet) == hash(INT8.encode([1.0, -2.0]))
    assert packet != INT8.encode([1.0, 2.0])
