"""Test what the all-reduces refuse, and unusual input that has a result; inputs must stay as they are."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, outcome, usual_or_junk
from profiles import examples
from ring_checks import FORMATS, gradients, rng

from hybridlab import BF16, FP16, FP32, INT8, WireFormat
from hybridlab.collectives import AllReduceResult, one_shot_all_reduce, ring_all_reduce

EVERY = [ring_all_reduce, one_shot_all_reduce]
each_all_reduce = pytest.mark.parametrize("all_reduce", EVERY, ids=lambda function: function.__name__)
each_format = in_turn("wire", FORMATS)


@each_all_reduce
@each_format
@in_turn("fault", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_by_rank_and_place(all_reduce: Any, wire: WireFormat, fault: float) -> None:
    for kind in (np.float16, np.float32, np.float64):
        values = gradients(4, 10, 0, kind)
        values[2, 7] = fault
        with refusal("not-finite", "values", "value 7 of rank 2", fault):
            all_reduce(values, wire, rng=rng())


def test_one_rank_is_no_exception() -> None:
    with refusal("not-finite", "value 1 of rank 0", "nan"):
        ring_all_reduce([[1.0, np.nan]])


NO_ROWS = [
    ([1.0, 2.0], "wrong-shape", "(2,)"),
    (3.0, "wrong-shape", "()"),
    (np.zeros((2, 2, 2)), "wrong-shape", "(2, 2, 2)"),
    ([[1, 2], [3]], "ragged", "[[1, 2], [3]]"),
    (np.empty((0, 5)), "empty", "at least one rank"),
    ([["a", "b"]], "not-a-number", "[['a', 'b']]"),
    ([[1j]], "not-a-number", "[[1j]]"),
    ([[True]], "not-a-number", "[[True]]"),
    (None, "not-a-number", "None"),
]


@each_all_reduce
@in_turn("values, code, found", NO_ROWS)
def test_what_has_no_row_for_each_rank_is_refused(all_reduce: Any, values: Any, code: str, found: str) -> None:
    with refusal(code, "values", found):
        all_reduce(values)


@each_all_reduce
def test_arguments_of_a_wrong_type_are_refused(all_reduce: Any) -> None:
    values = gradients(2, 4)
    with refusal("wrong-type", "wire", "WireFormat", "'INT8'"):
        all_reduce(values, "INT8")
    with refusal("not-true-or-false", "average", "'yes'"):
        all_reduce(values, FP32, "yes")
    with refusal("wrong-type", "rng", "None"):
        all_reduce(values, WireFormat("INT8", stochastic=True))
    with refusal("wrong-type", "rng", "'abc'"):
        all_reduce(values, FP32, rng="abc")
    with refusal("masked", "values"):
        all_reduce(np.ma.masked_greater(values, 0))


def test_arguments_of_the_ring_alone() -> None:
    values = gradients(2, 4)
    with refusal("not-true-or-false", "record", 1):
        ring_all_reduce(values, record=1)  # type: ignore[arg-type]
    with refusal("wrong-shape", "residual", "(2, 4)", "(2, 3)"):
        ring_all_reduce(values, residual=np.zeros((2, 3)))
    with refusal("wrong-shape", "residual", "()"):
        ring_all_reduce(values, residual=0.0)
    with refusal("not-finite", "residual", "value 0 of rank 0", "nan"):
        ring_all_reduce(values, residual=np.full((2, 4), np.nan))
    with refusal("not-finite", "residual", "value 0 of rank 0", "inf"):
        ring_all_reduce(values, residual=np.full((2, 4), 1e300))  # beyond float32
    with refusal("too-large", "198 hops", "100 ranks", "10,000", "record"):
        ring_all_reduce(np.zeros((100, 10_000)), record=True)


def test_fp16_overflow_of_a_partial_sum() -> None:
    """Every value and the mean fit into FP16, but the sum of three ranks does not."""
    values = np.zeros((4, 8), dtype=np.float32)
    values[:, 5] = 3e4
    with refusal("too-large", "rank 0 cannot send element 5, value 1 of its partial sum of chunk 2", "FP16", 65504, 90000, "BF16"):
        ring_all_reduce(values, FP16)
    assert ring_all_reduce(values, BF16).values[3, 5] == pytest.approx(3e4, rel=0.01)
    assert ring_all_reduce(values / 4, FP16).values[3, 5] == pytest.approx(7500, rel=0.01)
    assert one_shot_all_reduce(values, FP16).values[3, 5] == pytest.approx(3e4, rel=0.01)  # one-shot sends no partial sums


@each_all_reduce
@each_format
def test_a_sum_beyond_float32_is_refused(all_reduce: Any, wire: WireFormat) -> None:
    values = np.full((4, 4), 3e38, dtype=np.float32)
    with refusal("too-large", "cannot send element", "scale the numbers down"):
        all_reduce(values, wire, rng=rng())


def test_the_rank_and_the_element_that_cannot_be_sent_are_named() -> None:
    values = np.full((4, 4), 2e38, dtype=np.float32)
    with refusal("too-large", "rank 1 cannot send element 0, value 0 of its partial sum of chunk 0", "float32"):
        ring_all_reduce(values)
    with refusal("too-large", "FP32", "3.4028235e+38", "1e+39"):
        ring_all_reduce(np.full((2, 2), 1e39))
    middle = np.zeros((4, 8), dtype=np.float32)
    middle[:, 7] = [1e38, 3e38, 2e38, 2e38]  # this is the sum of chunk 3, which starts at rank 3
    with refusal("too-large", "rank 1 cannot send element 7, value 1 of its partial sum of chunk 3", "float32"):
        ring_all_reduce(middle)


@each_all_reduce
@each_format
def test_zeros_stay_zeros(all_reduce: Any, wire: WireFormat) -> None:
    result = all_reduce(np.zeros((4, 10)), wire, rng=rng())
    assert (result.values == 0).all()
    values = np.zeros((4, 8))
    values[:, 6:] = [1.0, 2.0]
    assert (all_reduce(values, wire, rng=rng()).values[:, :6] == 0).all()  # some chunks are all zeros


@each_all_reduce
@each_format
def test_subnormal_numbers(all_reduce: Any, wire: WireFormat) -> None:
    """Scales can be below the smallest normal number.

    The result must still be finite, equal on all ranks, and have a small error.
    """
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
    all_reduce = data.draw(st.sampled_from(EVERY))
    values = data.draw(usual_or_junk(USUAL))
    wire, average = data.draw(usual_or_junk(list(FORMATS))), data.draw(usual_or_junk([True, False]))
    named = {"rng": data.draw(st.one_of(st.just(rng()), junk))}
    if all_reduce is ring_all_reduce:
        named |= {"residual": data.draw(usual_or_junk([None, *USUAL])), "record": data.draw(usual_or_junk([True, False]))}
    result = outcome(all_reduce, values, wire, average, **named)
    assert result is None or (isinstance(result, AllReduceResult) and np.isfinite(result.values).all())
