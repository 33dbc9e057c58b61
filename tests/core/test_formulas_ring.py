"""Compare the closed forms of an all-reduce with random numbers, counted chunks and printed figures; test what they refuse."""

import math
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st

from hybridlab import formulas


def test_the_crest_of_few_normal_numbers_is_known() -> None:
    """The crest is the mean of the largest magnitude: the root of 2/pi for one number, and 2 over the root of pi for two."""
    assert formulas.gaussian_crest(1) == pytest.approx(math.sqrt(2 / math.pi), rel=1e-9)
    assert formulas.gaussian_crest(2) == pytest.approx(2 / math.sqrt(math.pi), rel=1e-9)


@in_turn("count, times", [(3, 100_000), (256, 20_000), (4096, 2000)])
def test_the_crest_of_numbers_drawn(count: int, times: int) -> None:
    largest = np.abs(np.random.default_rng(1).standard_normal((times, count), dtype=np.float32)).max(axis=1)
    assert formulas.gaussian_crest(count) == pytest.approx(float(largest.mean()), abs=5 * float(largest.std()) / math.sqrt(times))


def test_the_crest_grows_to_the_root_of_2_ln_n() -> None:
    crests = [formulas.gaussian_crest(2**power) for power in range(0, 63, 3)]
    assert crests == sorted(crests)
    assert crests[-1] / math.sqrt(2 * math.log(2**60)) == pytest.approx(1, abs=0.03)


def test_the_laws_of_the_reference() -> None:
    """The laws are in reference/collectives.md, section theory.

    With 131,072 numbers, they give 4.00e-4 for 8 ranks and 2.19e-3 for 64.
    """
    for ranks, printed in ((8, 4.00e-4), (64, 2.19e-3)):
        crest = formulas.gaussian_crest(131_072 // ranks)
        assert formulas.int8_ring_nmse(ranks, crest) == pytest.approx(printed, rel=0.02)
    assert formulas.int8_ring_nmse(8, 3.0) == 9 / (12 * 127**2) * 4.5


@in_turn("ranks, roundings", [(1, 0), (2, 3 / 2), (3, 5 / 3), (4, 7 / 4), (64, 2 - 1 / 64), (10**6, 2 - 1e-6)])
def test_one_shot_rounds_all_but_the_owners_numbers_and_then_the_result(ranks: int, roundings: float) -> None:
    one_rounding = 9 / (12 * 127**2)
    assert formulas.int8_one_shot_nmse(ranks, 3.0) == pytest.approx(roundings * one_rounding, rel=1e-12)


def test_a_ring_of_2_ranks_is_as_good_as_one_shot_and_larger_rings_are_worse() -> None:
    assert formulas.int8_ring_nmse(2, 4.0) == formulas.int8_one_shot_nmse(2, 4.0)
    assert all(formulas.int8_ring_nmse(ranks, 4.0) > formulas.int8_one_shot_nmse(ranks, 4.0) for ranks in range(3, 100))
    assert formulas.int8_ring_nmse(1, 4.0) == formulas.int8_one_shot_nmse(1, 4.0) == 0


def test_stochastic_rounding_doubles() -> None:
    assert formulas.int8_ring_nmse(8, 4.0, stochastic=True) == 2 * formulas.int8_ring_nmse(8, 4.0)
    assert formulas.int8_one_shot_nmse(8, 4.0, stochastic=True) == 2 * formulas.int8_one_shot_nmse(8, 4.0)


@in_turn("kind, roundoff", [(np.float16, 2.0**-11), (np.float32, 2.0**-24)])
def test_the_error_of_one_cast_of_numbers_drawn(kind: Any, roundoff: float) -> None:
    values = np.exp(np.random.default_rng(1).uniform(-2, 2 + 8 * math.log(2), 10**6)) / 100
    relative = ((values.astype(kind).astype(np.float64) - values) / values) ** 2
    assert formulas.cast_nmse(roundoff) == pytest.approx(relative.mean(), rel=0.01)


@given(
    ranks=st.integers(1, 20),
    size=st.integers(0, 300),
    item=st.integers(1, 4),
    scale=st.integers(0, 4),
    block=st.none() | st.integers(1, 40),
)
def test_bytes_are_those_of_counted_chunks(ranks: int, size: int, item: int, scale: int, block: int | None) -> None:
    chunks = [part.size for part in np.array_split(np.empty(size), ranks)]
    scales = [math.ceil(chunk / (block or max(chunk, 1))) for chunk in chunks]
    one_way = sum(chunk * item + count * scale for chunk, count in zip(chunks, scales, strict=True)) * (ranks - 1)
    assert formulas.ring_bytes(ranks, size, item, scale, block) == 2 * one_way


@in_turn("formula, arguments, code, words", [
    (formulas.gaussian_crest, (0,), "too-small", ("count", "not 0")),
    (formulas.gaussian_crest, (2.5,), "not-a-whole-number", ("count", "not 2.5")),
    (formulas.int8_ring_nmse, (0, 4.0), "too-small", ("ranks", "not 0")),
    (formulas.int8_ring_nmse, (2, -1.0), "negative", ("crest", "-1.0")),
    (formulas.int8_ring_nmse, (2, 1e10), "too-large", ("crest", "1e+09", "10000000000.0")),
    (formulas.int8_ring_nmse, (2, 4.0, "yes"), "not-true-or-false", ("stochastic", "'yes'")),
    (formulas.int8_one_shot_nmse, (2, [1.0, 2.0]), "wrong-shape", ("crest", "1e+09", "[1.0, 2.0]")),
    (formulas.int8_one_shot_nmse, (0, 4.0), "too-small", ("ranks", "not 0")),
    (formulas.int8_one_shot_nmse, (4.13, True), "not-a-whole-number", ("ranks", "4.13")),
    (formulas.int8_one_shot_nmse, (2, 4.0, "yes"), "not-true-or-false", ("stochastic", "'yes'")),
    (formulas.cast_nmse, (2.0,), "too-large", ("roundoff", "0 to 1", "2.0")),
    (formulas.ring_bytes, (4, -1, 1), "too-small", ("size", "not -1")),
    (formulas.ring_bytes, (4, 8, 1, 4, 0), "too-small", ("block", "not 0")),
])  # fmt: skip
def test_what_a_closed_form_refuses(formula: Any, arguments: tuple[Any, ...], code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words):
        formula(*arguments)
