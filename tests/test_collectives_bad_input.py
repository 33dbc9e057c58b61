"""What the all-reduces refuse, each with its sentence; odd inputs that have a result; inputs stay unchanged."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, outcome, usual_or_junk
from profiles import examples
from ring_checks import FORMATS, gradients, rng

from hybridlab import BF16, FP16, FP32, INT8, HybridLabError, WireFormat
from hybridlab.collectives import (
    AllReduceResult,
    one_shot_all_reduce,
    parameter_server_all_reduce,
    ring_all_reduce,
    tree_all_reduce,
    two_level_all_reduce,
)


def two_level(values: Any, *arguments: Any, **named: Any) -> AllReduceResult:
    return two_level_all_reduce(values, 1 if isinstance(values, list) else 2, *arguments, **named)


EVERY = [ring_all_reduce, one_shot_all_reduce, tree_all_reduce, parameter_server_all_reduce, two_level]
each_all_reduce = pytest.mark.parametrize("all_reduce", EVERY, ids=lambda function: function.__name__)
each_format = in_turn("wire", FORMATS)


def refusal_of(function: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(HybridLabError) as why:
        function(*arguments, **named)
    return str(why.value)


@each_all_reduce
@each_format
@in_turn("fault", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_by_rank_and_place(all_reduce: Any, wire: WireFormat, fault: float) -> None:
    for kind in (np.float16, np.float32, np.float64):
        values = gradients(4, 10, 0, kind)
        values[2, 7] = fault
        assert refusal_of(all_reduce, values, wire, rng=rng()) == f"values must be finite, but value 7 of rank 2 is {fault}"


def test_one_rank_is_no_exception() -> None:
    assert refusal_of(ring_all_reduce, [[1.0, np.nan]]) == "values must be finite, but value 1 of rank 0 is nan"


FORM = "values must have a row for each rank and a column for each number"
SHAPES = [
    ([1.0, 2.0], f"{FORM}: shape (ranks, n), not (2,)"),
    (3.0, f"{FORM}: shape (ranks, n), not ()"),
    (np.zeros((2, 2, 2)), f"{FORM}: shape (ranks, n), not (2, 2, 2)"),
    ([[1, 2], [3]], f"{FORM}, but its rows differ in length: [[1, 2], [3]]"),
    (np.empty((0, 5)), "values has no rows: an all-reduce needs at least one rank"),
    ([["a", "b"]], f"{FORM}, such as [[0.5, 1.0], [1.5, 2.0]], not [['a', 'b']]"),
    ([[1j]], f"{FORM}, such as [[0.5, 1.0], [1.5, 2.0]], not [[1j]]"),
    ([[True]], f"{FORM}, such as [[0.5, 1.0], [1.5, 2.0]], not [[True]]"),
    (None, f"{FORM}, such as [[0.5, 1.0], [1.5, 2.0]], not None"),
]


@each_all_reduce
@in_turn("values, told", SHAPES)
def test_what_is_no_row_a_rank_is_refused(all_reduce: Any, values: Any, told: str) -> None:
    assert refusal_of(all_reduce, values) == told


@each_all_reduce
def test_arguments_that_are_none(all_reduce: Any) -> None:
    values = gradients(2, 4)
    wanted = "wire must be a WireFormat, such as FP16 or WireFormat('INT8', block=256), not 'INT8'"
    assert refusal_of(all_reduce, values, "INT8") == wanted
    assert refusal_of(all_reduce, values, FP32, "yes") == "average must be True or False, not 'yes'"
    stochastic = WireFormat("INT8", stochastic=True)
    assert refusal_of(all_reduce, values, stochastic) == (
        "stochastic rounding draws random numbers: pass rng=numpy.random.default_rng(seed), not None"
    )
    wanted = "rng must be None, or a generator of random numbers such as rng=numpy.random.default_rng(seed), not 'abc'"
    assert refusal_of(all_reduce, values, FP32, rng="abc") == wanted
    masked = np.ma.masked_greater(values, 0)
    assert refusal_of(all_reduce, masked) == "values must not be masked: fill in the masked numbers, or leave them out"


def test_arguments_of_the_ring_alone() -> None:
    values = gradients(2, 4)
    assert refusal_of(ring_all_reduce, values, record=1) == "record must be True or False, not 1"
    assert refusal_of(ring_all_reduce, values, residual=np.zeros((2, 3))) == "residual must have the shape of values, (2, 4), not (2, 3)"
    assert refusal_of(ring_all_reduce, values, residual=0.0).startswith("residual must have a row for each rank")
    assert refusal_of(ring_all_reduce, values, residual=np.full((2, 4), np.nan)) == "residual must be finite, but value 0 of rank 0 is nan"
    beyond = np.full((2, 4), 1e300)
    assert refusal_of(ring_all_reduce, values, residual=beyond) == "residual must be finite, but value 0 of rank 0 is inf"
    assert refusal_of(ring_all_reduce, np.zeros((100, 10_000)), record=True) == (
        "a record of 198 hops of 100 ranks x 10,000 numbers does not fit in memory: leave record out, or take fewer numbers"
    )


def test_arguments_of_two_levels() -> None:
    told = "group must divide the ranks, but 4 ranks cannot be cut into groups of 3"
    assert refusal_of(two_level_all_reduce, gradients(4, 6), 3) == told
    assert refusal_of(two_level_all_reduce, gradients(4, 6), 0) == "group must be a whole number of at least 1, not 0"


def test_fp16_overflow_of_a_partial_sum() -> None:
    """Every value fits, and so does the mean; the sum of three ranks does not."""
    values = np.zeros((4, 8), dtype=np.float32)
    values[:, 5] = 3e4
    told = refusal_of(ring_all_reduce, values, FP16)
    assert told == (
        "rank 0 cannot send its partial sum of chunk 2, whose value 0 is value 4 of the rank: "
        "FP16 carries numbers up to 65504, but value 1 is 90000: scale the numbers down, or send BF16, which has the range of FP32"
    )
    assert ring_all_reduce(values, BF16).values[3, 5] == pytest.approx(3e4, rel=0.01)
    assert ring_all_reduce(values / 4, FP16).values[3, 5] == pytest.approx(7500, rel=0.01)
    assert one_shot_all_reduce(values, FP16).values[3, 5] == pytest.approx(3e4, rel=0.01)  # it sends no partial sums


@each_all_reduce
@each_format
def test_a_sum_beyond_float32_is_refused(all_reduce: Any, wire: WireFormat) -> None:
    values = np.full((4, 4), 3e38, dtype=np.float32)
    told = refusal_of(all_reduce, values, wire, rng=rng())
    assert "cannot send" in told
    assert told.endswith("scale the numbers down") or "scale the numbers down, or send BF16" in told


def test_who_could_not_send_what() -> None:
    values = np.full((4, 4), 2e38, dtype=np.float32)
    told = "rank 1 cannot send its partial sum of chunk 0, whose value 0 is value 0 of the rank: "
    assert refusal_of(ring_all_reduce, values) == told + "the sum at value 0 is beyond float32: scale the numbers down"
    two = refusal_of(two_level_all_reduce, np.concatenate([values * 0, values]), 2)
    assert two.startswith("rank 5 cannot send its partial sum")
    large = np.full((2, 2), 1e39)
    wanted = "FP32 carries numbers up to 3.4028235e+38, but value 0 is 1e+39: scale the numbers down"
    assert refusal_of(ring_all_reduce, large).endswith(wanted)


@each_all_reduce
@each_format
def test_zeros_stay_zeros(all_reduce: Any, wire: WireFormat) -> None:
    result = all_reduce(np.zeros((4, 10)), wire, rng=rng())
    assert (result.values == 0).all()
    values = np.zeros((4, 8))
    values[:, 6:] = [1.0, 2.0]
    assert (all_reduce(values, wire, rng=rng()).values[:, :6] == 0).all()  # whole chunks of zeros beside others


@each_all_reduce
@each_format
def test_subnormal_numbers(all_reduce: Any, wire: WireFormat) -> None:
    """Scales below the smallest normal number: still a finite result, equal on all ranks, off by little."""
    values = (gradients(4, 10) * 1e-41).astype(np.float32)
    result = all_reduce(values, wire, rng=rng()).values
    assert np.isfinite(result).all()
    assert (result == result[0]).all()
    assert np.abs(result).max() <= 1e-38 if wire.scale == "FP32" else np.abs(result).max() < 1e-4
    if wire in (FP32, INT8):
        assert np.abs(result - values.mean(axis=0)).max() <= 2e-42


@each_all_reduce
@each_format
def test_more_ranks_than_numbers(all_reduce: Any, wire: WireFormat) -> None:
    values = np.full((8, 3), 2.0)
    result = all_reduce(values, wire, rng=rng())
    assert result.values == pytest.approx(values, rel=0.05)
    assert all_reduce(np.empty((8, 0)), wire, rng=rng()).bytes_sent.sum() == 0


@each_all_reduce
@each_format
def test_inputs_stay_as_they_are(all_reduce: Any, wire: WireFormat) -> None:
    for kind in (np.float16, np.float32, np.float64):
        values = gradients(4, 11, 0, kind)
        before = values.tobytes()
        all_reduce(values, wire, rng=rng())
        assert values.tobytes() == before
        values.setflags(write=False)
        result = all_reduce(values, wire, rng=rng())
        assert not np.shares_memory(result.values, values)
        assert not result.values.flags.writeable


def test_the_residual_stays_as_it_is_and_may_be_read_only() -> None:
    values, residual = gradients(4, 11), np.zeros((4, 11), dtype=np.float32)
    first = ring_all_reduce(values, INT8, residual=residual)
    assert (residual == 0).all()
    assert first.residual is not None
    kept = first.residual.tobytes()
    second = ring_all_reduce(values, INT8, residual=first.residual)
    assert first.residual.tobytes() == kept
    assert second.residual is not None
    assert second.residual.tobytes() != kept


@each_all_reduce
def test_columns_of_any_layout(all_reduce: Any) -> None:
    values = gradients(4, 12)
    expected = all_reduce(values).values
    assert (all_reduce(np.asfortranarray(values)).values == expected).all()
    assert (all_reduce(np.repeat(values, 2, axis=1)[:, ::2]).values == expected).all()
    assert (all_reduce(values.astype(">f4")).values == expected).all()


def test_a_result_cannot_be_written_to_nor_its_copies() -> None:
    result = ring_all_reduce(gradients(3, 6), INT8, residual=np.zeros((3, 6)), record=True)
    for each in (result, copy.deepcopy(result), pickle.loads(pickle.dumps(result))):  # noqa: S301 - our own bytes
        hop = each.hops[0]
        for array in (each.values, each.payload_bytes, each.scale_bytes, each.residual, hop.held, hop.chunk, hop.nbytes, hop.sender):
            assert not array.flags.writeable
    with pytest.raises(AttributeError):
        result.values = result.values  # type: ignore[misc]


USUAL = [gradients(2, 5), gradients(4, 3, 0, np.float64), [[1, 2], [3, 4]], np.zeros((3, 0)), np.ones((1, 4), dtype=np.float16)]


@examples(150)
@given(st.data())
def test_junk_is_refused_with_a_sentence(data: st.DataObject) -> None:
    all_reduce = data.draw(st.sampled_from([*EVERY, two_level_all_reduce]))
    values = data.draw(usual_or_junk(USUAL))
    arguments = [data.draw(usual_or_junk([1, 2]))] if all_reduce is two_level_all_reduce else []
    wire, average = data.draw(usual_or_junk(list(FORMATS))), data.draw(usual_or_junk([True, False]))
    named = {"rng": data.draw(st.one_of(st.just(rng()), junk))}
    if all_reduce is ring_all_reduce:
        named |= {"residual": data.draw(usual_or_junk([None, *USUAL])), "record": data.draw(usual_or_junk([True, False]))}
    result = outcome(all_reduce, values, *arguments, wire, average, **named)
    assert result is None or (isinstance(result, AllReduceResult) and np.isfinite(result.values).all())
