"""Test the ring all-reduce against numpy's mean, a ring written message by message, the formats' error bounds, and counted bytes.

Bugs are also planted in the ring, and the tests must find them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import ring_checks
from cases import refusal
from hypothesis import given
from hypothesis import strategies as st
from naive_ring import FAULTS, naive_ring
from profiles import examples
from ring_checks import FORMATS, gradients, rng

from hybridlab import BF16, FP16, FP32, INT8, Mesh, WireFormat, formulas
from hybridlab.collectives import ring as ring_module
from hybridlab.collectives import ring_all_reduce, ring_sum

each_check = pytest.mark.parametrize("check", ring_checks.CHECKS, ids=lambda check: check.__name__)
each_format = pytest.mark.parametrize("wire", FORMATS, ids=str)
ranks_of = st.integers(1, 9)
size_of = st.integers(0, 40)
seeds = st.integers(0, 2**32)
kinds = st.sampled_from([np.float32, np.float64])


def every_check(ring: Callable[..., Any]) -> None:
    for check in ring_checks.CHECKS:
        check(ring)


@each_check
def test_the_ring_passes_every_check(check: Callable[..., None]) -> None:
    check(ring_all_reduce)


@each_format
@examples(40)
@given(ranks=ranks_of, size=size_of, seed=seeds, kind=kinds, average=st.booleans(), feedback=st.booleans())
def test_the_ring_is_the_one_written_the_long_way(
    wire: WireFormat, ranks: int, size: int, seed: int, kind: type, average: bool, feedback: bool
) -> None:
    """Four results must be equal bit for bit: values, bytes, residuals, and what every rank holds after every hop."""
    if wire.stochastic:
        return  # the two rings draw their random numbers in different orders
    values = gradients(ranks, size, seed, kind)
    residual = gradients(ranks, size, seed + 1, kind) / 100 if feedback else None
    ours = ring_all_reduce(values, wire, average, residual=residual, record=True)
    theirs = naive_ring(values, wire, average, residual=residual, record=True)
    assert ours.values.dtype == kind
    assert ours.values.tobytes() == theirs.values.tobytes()
    assert ours.payload_bytes.tolist() == theirs.payload_bytes.tolist()
    assert ours.scale_bytes.tolist() == theirs.scale_bytes.tolist()
    assert [hop.held.tobytes() for hop in ours.hops] == [held.tobytes() for held in theirs.held]
    assert [(hop.phase, hop.step, hop.chunk.tolist(), hop.nbytes.tolist()) for hop in ours.hops] == theirs.hops
    if ranks > 1 and feedback:
        assert ours.residual.tobytes() == theirs.residual.tobytes()
    assert ring_all_reduce(values, wire, average, residual=residual).values.tobytes() == ours.values.tobytes()


def test_the_ring_written_the_long_way_passes_every_check() -> None:
    every_check(naive_ring)


FOUND_BY = {
    "off-by-one": ring_checks.is_the_mean,
    "re-encoded": ring_checks.leaves_all_ranks_with_the_same_bits,
    "no mean": ring_checks.is_the_mean,
    "dropped": ring_checks.is_the_mean_of_uneven_chunks,
    "scales": ring_checks.sends_the_bytes_of_the_published_configuration,
    "order": ring_checks.is_the_mean,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_by_the_check_made_for_it(fault: str) -> None:
    with pytest.raises(AssertionError):
        FOUND_BY[fault](partial(naive_ring, fault=fault))


def test_checks_that_replicas_agree_do_not_find_a_wrong_sum() -> None:
    """All ranks may agree on a wrong sum, so the tests compare with numpy's mean and not one rank with another."""
    ring_checks.leaves_all_ranks_with_the_same_bits(partial(naive_ring, fault="no mean"))


def equal_chunks(size: int, ranks: int) -> list[tuple[int, int]]:
    return [(place * (size // ranks), (place + 1) * (size // ranks)) for place in range(ranks)]


class NoMean(ring_sum.RingSum):
    def _send(self, total: Any, sender: int, divisor: int, *rest: Any) -> Any:
        return super()._send(total, sender, 1, *rest)


def sum_together(numbers: Any, wire: WireFormat, divisor: int, bounds: Any) -> Any:
    return ring_sum.ring_sum_together(numbers, wire, 1, bounds)


def one_scale_for_all(messages: Any, wire: WireFormat) -> Any:
    return wire.decode(wire.encode(messages.reshape(-1))).reshape(messages.shape)


PLANTED = [
    ("chunks of equal length", ring_module, "chunk_bounds", equal_chunks),
    ("a chunk too many", ring_module, "sent_in_all_gather", lambda sizes: sizes.sum() + 0 * sizes),
    ("no mean", ring_module, "RingSum", NoMean),
    ("no mean, all chunks together", ring_module, "ring_sum_together", sum_together),
    ("one scale for the messages of all ranks", ring_sum, "transmit_rows", one_scale_for_all),
    ("no scales", WireFormat, "scale_bytes", lambda wire, size: 0),
]


@pytest.mark.parametrize(("where", "name", "bug"), [bug[1:] for bug in PLANTED], ids=[bug[0] for bug in PLANTED])
def test_a_bug_planted_in_the_library_is_found(where: Any, name: str, bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "empty_like", np.zeros_like)  # so values that a bug leaves unwritten are the same each time
    monkeypatch.setattr(where, name, bug)
    with pytest.raises((AssertionError, ValueError)):  # ValueError: missing values do not fit into the result
        every_check(ring_all_reduce)


@examples(60)
@given(ranks=ranks_of, size=size_of, seed=seeds, wire=st.sampled_from(FORMATS))
def test_within_the_bound_of_the_format_at_any_size(ranks: int, size: int, seed: int, wire: WireFormat) -> None:
    values = gradients(ranks, size, seed)
    result = ring_all_reduce(values, wire, rng=rng()).values
    assert (np.abs(result - values.mean(axis=0, dtype=np.float64)) <= ring_checks.worst(values, wire)).all()
    assert (result == result[:1]).all()


@examples(60)
@given(ranks=ranks_of, size=size_of, seed=seeds)
def test_whole_numbers_are_summed_exactly(ranks: int, size: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-1000, 1000, (ranks, size))
    result = ring_all_reduce(values, average=False).values
    assert result.dtype == np.float64
    assert (result == values.sum(axis=0)).all()


@examples(80)
@given(ranks=ranks_of, size=size_of, wire=st.sampled_from(FORMATS))
def test_bytes_are_those_of_the_closed_form(ranks: int, size: int, wire: WireFormat) -> None:
    result = ring_all_reduce(gradients(ranks, size), wire, rng=rng())
    itemsize = {"FP32": 4, "FP16": 2, "BF16": 2}.get(wire.name, 1)
    scale = {"FP32": 4, "FP16": 2}[wire.scale] if itemsize == 1 else 0
    saved = sum(each.size // 2 for each in np.array_split(np.arange(size), ranks)) if wire.name == "INT4" else 0  # two codes in a byte
    expected = formulas.ring_bytes(ranks, size, itemsize, scale, wire.block) - 2 * (ranks - 1) * saved
    assert result.bytes_sent.sum() == expected
    assert (result.bytes_sent == result.payload_bytes + result.scale_bytes).all()
    assert (sum(hop.nbytes for hop in result.hops) == result.bytes_sent).all()
    assert result.payload_bytes.shape == result.scale_bytes.shape == (ranks,)


def test_a_finished_chunk_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    packets: list[Any] = []
    encode = WireFormat.encode

    def counted(wire: WireFormat, *arguments: Any) -> Any:
        packets.append(encode(wire, *arguments))
        return packets[-1]

    monkeypatch.setattr(WireFormat, "encode", counted)
    result = ring_all_reduce(gradients(6, 66), INT8, record=True)  # to record, the ring must send messages one by one
    assert len(packets) == 6 * 5 + 6
    assert result.bytes_sent.sum() == sum(packet.nbytes for packet in packets[:30]) + 5 * 6 * packets[-1].nbytes


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 9])
def test_the_route_of_the_ring(ranks: int) -> None:
    """In every ring, ranks send only to their neighbours.

    Each rank forwards what has just arrived, and owns chunk (rank + 1) mod D.
    """
    result = ring_all_reduce(gradients(ranks, 20))
    assert len(result.hops) == 2 * (ranks - 1)
    mesh = Mesh(stages=1, replicas=ranks)
    for place, hop in enumerate(result.hops):
        pairs = zip(hop.sender.tolist(), hop.receiver.tolist(), strict=True)
        assert tuple(pairs) == mesh.ring(0)
        assert sorted(hop.chunk.tolist()) == list(range(ranks))
        assert (hop.phase, hop.step) == (("reduce-scatter", "all-gather")[place // (ranks - 1)], place % (ranks - 1))
        assert hop.held is None
        if place:
            arrived = np.roll(result.hops[place - 1].chunk, 1)
            assert (hop.chunk == arrived).all(), "a rank forwards the chunk that arrived in the step before"
    if ranks > 1:
        assert result.hops[0].chunk.tolist() == list(range(ranks))
        assert result.hops[ranks - 1].chunk.tolist() == [(rank + 1) % ranks for rank in range(ranks)]


def test_the_record_shows_sums_first_and_means_after() -> None:
    values = gradients(4, 8).astype(np.float64).round(1)
    hops_of_it = ring_all_reduce(values, record=True).hops
    sums = values.sum(axis=0)
    for rank in range(4):
        owned = slice(2 * ((rank + 1) % 4), 2 * ((rank + 1) % 4) + 2)
        assert hops_of_it[2].held is not None
        assert hops_of_it[2].held[rank, owned] == pytest.approx(sums[owned], rel=1e-6)
        assert hops_of_it[3].held[rank, owned] == pytest.approx(sums[owned] / 4, rel=1e-6)
    assert (hops_of_it[-1].held == ring_all_reduce(values).values).all()


@each_format
def test_one_rank_keeps_its_values_and_sends_nothing(wire: WireFormat) -> None:
    values = gradients(1, 9)
    result = ring_all_reduce(values, wire, rng=rng(), record=True)
    assert result.values.tobytes() == values.tobytes()
    assert result.bytes_sent.tolist() == [0]
    assert result.hops == ()


@each_format
def test_no_numbers_are_a_result_too(wire: WireFormat) -> None:
    result = ring_all_reduce(np.empty((3, 0)), wire, rng=rng())
    assert result.values.shape == (3, 0)
    assert result.bytes_sent.tolist() == [0, 0, 0]


def test_many_ranks_with_few_numbers() -> None:
    """Empty chunks cost nothing, and bytes are counted without a table of all messages."""
    result = ring_all_reduce(np.ones((6_000, 2)), INT8)
    assert result.values == pytest.approx(np.ones((6_000, 2)), rel=1e-2)
    assert result.bytes_sent.sum() == formulas.ring_bytes(6_000, 2, 1, 4)
    with refusal("too-large", "11,998 hops", "6,000"):
        _ = result.hops


@pytest.mark.parametrize(("given", "wanted"), [
    (np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64), (np.int8, np.float64), (np.uint64, np.float64)
])  # fmt: skip
def test_precision_of_the_result(given: Any, wanted: Any) -> None:
    values = np.array([[1, 2, 3], [3, 4, 6]], dtype=given)
    result = ring_all_reduce(values).values
    assert result.dtype == wanted
    assert result[1].tolist() == [2, 3, 4.5]


def test_random_numbers_come_from_rng_alone() -> None:
    stochastic, values = WireFormat("INT8", stochastic=True), gradients(4, 200)
    once, again, other = (ring_all_reduce(values, stochastic, rng=np.random.default_rng(seed)).values for seed in (1, 1, 2))
    assert (once == again).all()
    assert (once != other).any()


def test_the_mesh_of_the_published_configuration() -> None:
    """Each stage group averages the gradients of its own ranks only."""
    mesh, values = Mesh(stages=3, replicas=4), gradients(12, 120)
    for stage in range(3):
        group = list(mesh.stage_group(stage))
        result = ring_all_reduce(values[group], BF16).values
        assert np.abs(result - values[group].mean(axis=0)).max() < 0.01


def test_formats_keep_their_order() -> None:
    """On the same gradients, the errors of the formats must increase in the order in which they are listed here."""
    values = gradients(8, 4096)
    wires = (FP32, FP16, BF16, WireFormat("INT8", block=64), INT8)
    off = [np.linalg.norm(ring_all_reduce(values, wire).values[0] - values.mean(axis=0)) for wire in wires]
    assert off == sorted(off)


def test_a_ring_of_one_returns_a_copy() -> None:
    values = np.ones((1, 3))
    result = ring_all_reduce(values)
    assert not np.shares_memory(values, result.values)
    assert values.flags.writeable
