"""The published ring: its bytes, its hops and its result, in which all replicas are equal and wrong."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st

from hybridlab import INT8, published
from hybridlab.collectives import Hop, ring_all_reduce
from hybridlab.course.published import simulator

MODES = ("INT8", "FP16", "FP32")
Gradients = npt.NDArray[np.float32]


sizes = st.tuples(st.integers(1, 7), st.integers(1, 9), st.integers(0, 99))  # ranks, numbers a chunk, seed


def gradients(ranks: int = 4, size: int = 120, seed: int = 1) -> Gradients:
    """Sums of six random gradients, as in the program."""
    draw = np.random.default_rng(seed)
    return draw.standard_normal((6, ranks, size)).sum(axis=0).astype(np.float32)


def of_the_senders(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Chunk c of row c, for every c: what rank c holds itself, divided by the ranks."""
    ranks, size = values.shape
    width = size // ranks
    return np.concatenate([values[c, c * width : (c + 1) * width] for c in range(ranks)]) / ranks


@given(st.sampled_from(MODES), sizes)
def test_bytes_are_those_of_the_closed_form(mode: str, size: tuple[int, int, int]) -> None:
    """Every rank sends 2(D-1) chunks of n/D numbers."""
    ranks, width, seed = size
    ring = published.published_ring(gradients(ranks, ranks * width, seed), mode)
    messages = 2 * (ranks - 1)
    assert ring.payload_bytes.tolist() == [messages * width * {"INT8": 1, "FP16": 2, "FP32": 4}[mode]] * ranks
    assert ring.scale_bytes.tolist() == [messages * 4 * (mode == "INT8")] * ranks
    assert (ring.bytes_sent == ring.payload_bytes + ring.scale_bytes).all()
    assert (sum(hop.nbytes for hop in ring.hops) == ring.payload_bytes).all()


# The ring: equal and wrong


@given(sizes)
def test_each_chunk_ends_as_its_senders_own_gradient_divided(size: tuple[int, int, int]) -> None:
    ranks, width, seed = size
    own = gradients(ranks, ranks * width, seed)
    values = published.published_ring(own, "FP32").values
    assert (values == of_the_senders(own).astype(np.float32)).all()


def test_replicas_are_equal_and_wrong_by_about_three_standard_deviations() -> None:
    """In standard deviations of the mean gradient: the largest error of 360 numbers is 3, the root mean square is sqrt((D-1)/D)."""
    largest, usual = [], []
    for seed in range(20):
        own = gradients(size=360, seed=seed)
        mean = own.astype(np.float64).mean(axis=0)
        values = published.published_ring(own, "FP32").values
        assert (values == values[0]).all()
        error = values[0] - mean
        largest.append(np.abs(error).max() / mean.std())
        usual.append(np.sqrt(np.mean(error**2)) / mean.std())
    assert 2 < min(largest) < max(largest) < 4
    assert np.mean(largest) == pytest.approx(3, abs=0.5)
    assert np.mean(usual) == pytest.approx(np.sqrt(3 / 4), rel=0.05)


@given(sizes)
def test_one_chunk_later_the_all_gather_gives_the_mean(size: tuple[int, int, int]) -> None:
    ranks, width, seed = size
    own = gradients(ranks, ranks * width, seed)
    values = published.published_ring(own, "FP32", gather_from=1).values
    mean = own.astype(np.float64).mean(axis=0)
    assert np.abs(values - mean).max() <= 1e-6 * max(1.0, np.abs(own).max())
    assert (values == values[0]).all()
    assert values == pytest.approx(ring_all_reduce(own).values, rel=1e-5, abs=1e-6)


def test_one_chunk_later_the_error_is_that_of_float32() -> None:
    own = gradients()
    mean = own.astype(np.float64).mean(axis=0)
    assert np.abs(published.published_ring(own, "FP32", gather_from=1).values - mean).max() < 3e-7
    wrong = [np.abs(published.published_ring(own, "FP32", gather_from=first).values - mean).max() for first in (0, 2, 3)]
    assert min(wrong) > 1
    with np.errstate(all="raise"):
        rounded = published.published_ring(own, "INT8", gather_from=1).values
    assert 1e-3 < np.abs(rounded - mean).max() < 0.1


@given(sizes, st.sampled_from(["INT8", "FP16"]), st.integers(0, 6))
def test_only_the_rank_that_sends_first_differs(size: tuple[int, int, int], mode: str, first: int) -> None:
    """Encoding a second time changes only last bits. The replicas differ because one rank keeps values that the others get rounded."""
    ranks, width, seed = size
    own = gradients(ranks, ranks * width, seed)
    chunks = published.published_ring(own, mode, gather_from=first).values.reshape(ranks, ranks, width)
    for chunk in range(ranks):
        others = np.delete(chunks[:, chunk], (chunk - first) % ranks, axis=0)
        if len(others):
            assert np.ptp(others, axis=0).max() <= 1e-6 * np.abs(others).max()


def test_the_right_ring_leaves_no_difference() -> None:
    own = gradients()
    theirs, right = published.published_ring(own, "INT8").values, ring_all_reduce(own, INT8).values
    assert np.abs(theirs - theirs[0]).max() > 1e-3
    assert (right == right[0]).all()


# The hops


def test_hops_of_two_ranks_by_hand() -> None:
    first, second = published.published_ring([[1, 2], [30, 40]], "FP32").hops
    assert isinstance(first, Hop)
    assert (first.phase, first.step, second.phase, second.step) == ("reduce-scatter", 0, "all-gather", 0)
    assert first.sender.tolist() == [0, 1]
    assert first.receiver.tolist() == [1, 0]
    assert first.chunk.tolist() == second.chunk.tolist() == [0, 1]
    assert first.nbytes.tolist() == [4, 4]
    assert first.held is not None
    assert second.held is not None
    assert first.held.tolist() == [[1, 42], [31, 40]]
    assert second.held.tolist() == [[1, 40], [1, 40]]


@given(sizes, st.sampled_from(MODES), st.integers(0, 3))
def test_hops_tell_how_the_result_came_about(size: tuple[int, int, int], mode: str, first: int) -> None:
    ranks, width, seed = size
    own = gradients(ranks, ranks * width, seed)
    ring = published.published_ring(own, mode, gather_from=first)
    assert len(ring.hops) == 2 * (ranks - 1)
    before = own
    for hop in ring.hops:
        assert hop.held is not None
        assert (hop.receiver == (hop.sender + 1) % ranks).all()
        assert sorted(hop.chunk) == list(range(ranks))
        changed = (hop.held != before).reshape(ranks, ranks, width).any(axis=2)
        may = np.zeros_like(changed)
        may[hop.receiver, hop.chunk] = True
        assert not (changed & ~may).any()
        before = hop.held
    assert (ring.values == before / np.float32(ranks)).all()


@given(st.integers(2, 8))
def test_the_reduce_scatter_is_right_and_the_all_gather_one_chunk_behind(ranks: int) -> None:
    own = gradients(ranks, 3 * ranks)
    ours, right = published.published_ring(own, "FP32").hops, ring_all_reduce(own, record=True).hops
    for mine, theirs in zip(ours, right, strict=True):
        late = int(mine.phase == "all-gather")
        assert (mine.phase, mine.step) == (theirs.phase, theirs.step)
        assert ((mine.chunk + late) % ranks == theirs.chunk).all()
        assert (mine.sender == theirs.sender).all()
        assert (mine.receiver == theirs.receiver).all()
        assert (mine.nbytes == theirs.nbytes).all()
        assert mine.held is not None
        assert theirs.held is not None
        assert mine.held.shape == theirs.held.shape
        if not late:
            assert mine.held == pytest.approx(theirs.held, rel=1e-6, abs=1e-5)


def test_one_rank_keeps_what_it_has() -> None:
    ring = published.published_ring([[1.5, 2.5, 3.5]], "INT8")
    assert ring.values.tolist() == [[1.5, 2.5, 3.5]]
    assert ring.hops == ()
    assert ring.payload_bytes.tolist() == [0]
    assert simulator(replicas=1).weight_difference == (0.0, 0.0, 0.0)


def test_a_ring_changes_nothing_it_is_given_and_cannot_be_changed() -> None:
    own = gradients()
    kept = own.copy()
    ring = published.published_ring(own, "INT8")
    assert (own == kept).all()
    assert ring.hops[0].held is not None
    for array in (ring.values, ring.payload_bytes, ring.scale_bytes, ring.hops[0].held, ring.hops[0].chunk, ring.hops[0].nbytes):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    assert (published.published_ring(own.astype(np.float64), "INT8").values == ring.values).all()


def test_zeros_stay_zeros() -> None:
    for mode in MODES:
        ring = published.published_ring(np.zeros((4, 8)), mode)
        assert not ring.values.any()
    half = np.concatenate([np.zeros((4, 4)), np.ones((4, 4))], axis=1)
    assert published.published_ring(half, "INT8").values[0] == pytest.approx(half[0] / 4)


@in_turn(
    "values, mode, code, words",
    [
        ([[1, float("nan")], [1, 2]], "INT8", "not-finite", ("value 1 of rank 0", "nan")),
        ([[1, 2], [float("inf"), 2]], "FP16", "not-finite", ("value 0 of rank 1", "inf")),
        ([[1, 2, 3], [1, 2, 3]], "FP16", "not-divisible", ("3", "multiple of 2", "2 or 4")),
        (np.zeros((3, 0)), "FP16", "empty", ("0 numbers", "3 or 6")),
        (np.zeros((0, 3)), "FP16", "empty", ("gradients",)),
        ([1, 2], "INT8", "wrong-shape", ("gradients", "(2,)")),
        ([[1, 2], [3]], "INT8", "ragged", ("gradients",)),
        ("12", "INT8", "not-a-number", ("gradients", "'12'")),
        ([[1, 2], [3, 4]], "int", "unknown-name", ("'INT8'",)),
        ([[1e300, 2], [3, 4]], "FP32", "too-large", ("computes in float32", "3.4e38")),
        ([[3e38, 3e38], [3e38, 3e38]], "FP32", "too-large", ("partial sum", "float32", "3.4e38")),
        ([[60000, 1], [1, 70000]], "FP16", "too-large", ("partial sum", "FP16", "65504")),
        ([[3e38, 3e38], [3e38, 3e38]], "INT8", "too-large", ("partial sum",)),
        ([[1e-40, 1], [1, 1]], "INT8", "too-small", ("INT8", "1.5e-36")),
    ],
)
def test_a_ring_that_cannot_be_is_refused(values: Any, mode: str, code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words):
        published.published_ring(values, mode)


def test_an_all_gather_that_starts_nowhere_is_refused() -> None:
    for first, code in ((-1, "too-small"), (0.5, "not-a-whole-number"), (None, "not-a-whole-number"), ("1", "not-a-whole-number")):
        with refusal(code, "gather_from", "at least 0"):
            published.published_ring([[1, 2], [3, 4]], "FP32", gather_from=first)  # type: ignore[arg-type]


def test_the_published_rounding_of_a_tie_is_numpys() -> None:
    """127 and 0.5 have the scale 1, and 0.5 lies halfway: numpy.rint takes the even 0."""
    assert published.published_ring([[127, 0.5, 0, 0], [0] * 4], gather_from=1).values[0, :2].tolist() == [63.5, 0]
