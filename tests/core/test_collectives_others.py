"""Test one-shot, tree, parameter server and two levels.

Results are compared with numpy's mean and with counted messages, times with counted steps.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import outcome, usual_or_junk
from profiles import examples
from ring_checks import FORMATS, gradients, lost, rng

from hybridlab import FP16, FP32, INT8, HybridLabError, UnsupportedSize, WireFormat
from hybridlab.collectives import (
    ALGORITHMS,
    Link,
    all_reduce_factors,
    all_reduce_time,
    encoded_two_level_time,
    one_shot_all_reduce,
    parameter_server_all_reduce,
    ring_all_reduce,
    ring_sum,
    tree_all_reduce,
    two_level_all_reduce,
    two_level_time,
)

LINK = Link(latency=5e-6, bandwidth=25e9)
SIMPLE = {"one-shot": one_shot_all_reduce, "tree": tree_all_reduce, "parameter-server": parameter_server_all_reduce}
sizes = {"ranks": st.integers(1, 12), "size": st.integers(0, 40), "seed": st.integers(0, 2**32), "wire": st.sampled_from(FORMATS)}
each_simple = pytest.mark.parametrize("all_reduce", SIMPLE.values(), ids=list(SIMPLE))


def is_close(result: Any, values: Any, wire: WireFormat, average: bool) -> None:
    """Assert that all rows have the same bits, and that their error is small enough.

    The error may be one rounding for each rank and one for the result, each of a sum of magnitudes.
    """
    ranks = len(values)
    assert all(row.tobytes() == result.values[0].tobytes() for row in result.values)
    true = values.sum(axis=0, dtype=np.float64)
    # the largest magnitude in any message; a number gets at most one rounding error for each rank, and one in the result
    most = np.full(values.shape[1], 1.2 * np.abs(values).sum(axis=0, dtype=np.float64).max(initial=0))
    allowed = (ranks + 1) * (lost(most, wire) + most * 2.0**-22) * (1 if average else 1.5)
    assert (np.abs(result.values[0] * (ranks if average else 1) - true) <= allowed).all()


@each_simple
@examples(60)
@given(average=st.booleans(), **sizes)
def test_it_is_the_mean_or_the_sum(
    all_reduce: Callable[..., Any], ranks: int, size: int, seed: int, wire: WireFormat, average: bool
) -> None:
    values = gradients(ranks, size, seed)
    is_close(all_reduce(values, wire, average, rng=rng()), values, wire, average)


@pytest.mark.parametrize("all_reduce", [one_shot_all_reduce, ring_all_reduce])
@examples(60)
@given(average=st.booleans(), kind=st.sampled_from([np.float32, np.float64]), large=st.sampled_from([1, 1e4, 2e37]), **sizes)
def test_messages_encoded_together_are_those_one_by_one(
    all_reduce: Callable[..., Any], ranks: int, size: int, seed: int, wire: WireFormat, average: bool, kind: type, large: float
) -> None:
    """Both ways must give the same bits, or the same refusal."""
    values = gradients(ranks, size, seed, kind) * kind(large)

    def outcome_of_one() -> Any:
        try:
            return all_reduce(values, wire, average, rng=rng()).values.tobytes()
        except HybridLabError as why:
            return str(why)

    together = outcome_of_one()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ring_sum, "SMALL_CHUNK", 0)
        assert outcome_of_one() == together


@examples(100)
@given(group=st.integers(1, 5), average=st.booleans(), **{**sizes, "ranks": st.integers(1, 4)})
def test_two_levels_are_the_mean_or_the_sum(group: int, ranks: int, size: int, seed: int, wire: WireFormat, average: bool) -> None:
    values = gradients(group * ranks, size, seed)
    is_close(two_level_all_reduce(values, group, wire, average, rng=rng()), values, wire, average)


@pytest.mark.parametrize("ranks", [2, 3, 8, 13])
def test_fp32_is_numpys_mean(ranks: int) -> None:
    values = gradients(ranks, 4099, ranks)
    mean = values.mean(axis=0, dtype=np.float64)
    for all_reduce in SIMPLE.values():
        assert np.linalg.norm(all_reduce(values).values[0] - mean) <= 1e-6 * np.linalg.norm(mean)
    for group in (each for each in range(1, ranks + 1) if ranks % each == 0):
        assert np.linalg.norm(two_level_all_reduce(values, group).values[0] - mean) <= 1e-6 * np.linalg.norm(mean)


def naive_one_shot(values: Any, wire: WireFormat, average: bool) -> tuple[Any, list[int]]:
    """Return the result and the bytes that each rank sends, message by message; ``generator`` is drawn from once for each message."""
    ranks, generator = len(values), rng()
    width, longer = divmod(values.shape[1], ranks)
    sent, result = [0] * ranks, np.empty_like(values)
    start = 0
    for chunk in range(ranks):
        stop = start + width + (1 if chunk < longer else 0)
        if stop == start:
            continue
        owner = ranks - 1 if chunk == 0 else chunk - 1
        total = values[owner, start:stop].copy()
        for sender in [*range(owner + 1, ranks), *range(owner)]:
            packet = wire.encode(values[sender, start:stop], generator)
            sent[sender] += packet.nbytes
            total = total + wire.decode(packet)
        packet = wire.encode(total / ranks if average else total, generator)
        for receiver in range(ranks):
            if receiver != owner:
                sent[owner] += packet.nbytes
            result[receiver, start:stop] = wire.decode(packet)
        start = stop
    return result, sent


@examples(120)
@given(average=st.booleans(), kind=st.sampled_from([np.float32, np.float64]), **{**sizes, "ranks": st.integers(2, 12)})
def test_one_shot_is_the_one_written_message_by_message(
    ranks: int, size: int, seed: int, wire: WireFormat, average: bool, kind: type
) -> None:
    values = gradients(ranks, size, seed, kind)
    ours, (result, sent) = one_shot_all_reduce(values, wire, average, rng=rng()), naive_one_shot(values, wire, average)
    assert ours.values.tobytes() == result.tobytes()
    assert ours.bytes_sent.tolist() == sent


def test_the_owner_does_not_round_its_own_numbers() -> None:
    """Ranks 1 and 2 send zeros, and rank 0 owns chunk 1. So the sum of chunk 1 is exact; FP16 rounds it once, as the finished chunk."""
    values = np.zeros((3, 3))
    values[0, 1] = 1 + 2.0**-11 + 2.0**-20  # FP16 rounds it up; its third is not what FP16 makes of a third of the rounded number
    third = float(np.float16(values[0, 1] / 3))
    assert one_shot_all_reduce(values, FP16).values[2].tolist() == [0, third, 0]


@examples(60)
@given(size=st.integers(0, 40), seed=st.integers(0, 2**32), wire=st.sampled_from(FORMATS), average=st.booleans())
def test_with_2_ranks_one_shot_is_the_ring(size: int, seed: int, wire: WireFormat, average: bool) -> None:
    """Rank 0 sends chunk 0 and rank 1 sends chunk 1; each adds what it receives and sends it back. Messages and bits are equal."""
    values = gradients(2, size, seed) * np.float32(-1) ** (np.arange(size) % 2)
    shot, ring = (run(values, wire, average, rng=rng()) for run in (one_shot_all_reduce, ring_all_reduce))
    assert shot.values.tobytes() == ring.values.tobytes()
    assert shot.payload_bytes.tolist() == ring.payload_bytes.tolist()
    assert shot.scale_bytes.tolist() == ring.scale_bytes.tolist()


def test_a_server_rounds_as_quantising_by_hand_does() -> None:
    values = gradients(3, 20)
    total = sum(INT8.decode(INT8.encode(row)) for row in values)
    assert (parameter_server_all_reduce(values, INT8).values == INT8.decode(INT8.encode(total / np.float32(3)))).all()


def test_a_tree_rounds_as_quantising_by_hand_does() -> None:
    first, second, third = gradients(3, 20)
    pair = first + INT8.decode(INT8.encode(second))  # rank 1 sends to rank 0, then rank 2 sends to rank 0
    total = pair + INT8.decode(INT8.encode(third))
    assert (tree_all_reduce([first, second, third], INT8).values == INT8.decode(INT8.encode(total / np.float32(3)))).all()


@examples(60)
@given(ranks=st.integers(2, 12), size=st.integers(0, 40), wire=st.sampled_from(FORMATS))
def test_one_shot_sends_what_a_ring_sends(ranks: int, size: int, wire: WireFormat) -> None:
    values = gradients(ranks, size)
    ours, ring = one_shot_all_reduce(values, wire, rng=rng()), ring_all_reduce(values, wire, rng=rng())
    assert ours.payload_bytes.sum() == ring.payload_bytes.sum()
    assert ours.scale_bytes.sum() == ring.scale_bytes.sum()


def test_bytes_of_a_tree_and_of_a_server() -> None:
    values = gradients(8, 100)
    whole = INT8.nbytes(100)
    assert tree_all_reduce(values, INT8).bytes_sent.tolist() == [3 * whole, whole, 2 * whole, whole, 3 * whole, whole, 2 * whole, whole]
    assert tree_all_reduce(values[:6], INT8).bytes_sent.sum() == 2 * 5 * whole
    assert parameter_server_all_reduce(values, INT8).bytes_sent.tolist() == [whole] * 8 + [8 * whole]
    assert parameter_server_all_reduce(values[:1], INT8).bytes_sent.tolist() == [whole, whole]
    assert tree_all_reduce(values[:1], INT8).bytes_sent.tolist() == [0]
    assert one_shot_all_reduce(values[:1], INT8).bytes_sent.tolist() == [0]


@examples(60)
@given(ranks=st.integers(1, 9), size=st.integers(0, 60), wire=st.sampled_from(FORMATS))
def test_one_level_is_the_ring(ranks: int, size: int, wire: WireFormat) -> None:
    """One group of all ranks must send what the ring sends; groups of one rank must equal the ring, bit for bit."""
    values = gradients(ranks, size)
    ring, one, alone = (
        run(values, wire, rng=rng())
        for run in (
            ring_all_reduce,
            lambda *given, **named: two_level_all_reduce(given[0], ranks, *given[1:], **named),
            lambda *given, **named: two_level_all_reduce(given[0], 1, *given[1:], **named),
        )
    )
    assert one.values.tobytes() == alone.values.tobytes() == ring.values.tobytes()
    assert one.bytes_sent.tolist() == alone.bytes_sent.tolist() == ring.bytes_sent.tolist()


def test_bytes_of_two_levels_where_chunks_differ() -> None:
    """There are 9 numbers in FP32 and two groups of 2.

    The halves have 5 and 4 numbers, and each half is cut in two between the groups. Rank 0 of a group sends half 0 inside its group
    (20 bytes). It receives half 1 and owns it. Between the groups it sends 2 + 2 of its 4 numbers (16). It passes half 1 on inside (16).
    Together, this is 52. Its neighbour sends half 1 (16), then 3 and 2 of half 0's 5 numbers (20), and half 0 (20). Together, this is 56.
    """
    assert two_level_all_reduce(gradients(4, 9), 2).bytes_sent.tolist() == [52, 56, 52, 56]


def test_bytes_of_two_levels() -> None:
    """There are four groups of two ranks, and 80 numbers.

    Halves of 40 are sent inside a group and parts of 10 between groups. The four packets of a half are forwarded.
    """
    sent = two_level_all_reduce(gradients(8, 80), 2, INT8)
    assert sent.payload_bytes.tolist() == [40 + 6 * 10 + 40] * 8
    assert sent.scale_bytes.tolist() == [4 + 6 * 4 + 4 * 4] * 8
    assert ring_all_reduce(gradients(8, 80), FP16).payload_bytes.sum() == two_level_all_reduce(gradients(8, 80), 2, FP16).bytes_sent.sum()


def test_two_levels_round_less_often_than_one_ring() -> None:
    values = gradients(64, 8192, 2)
    mean = values.mean(axis=0)
    two, ring = (
        np.linalg.norm(result.values[0] - mean) for result in (two_level_all_reduce(values, 8, INT8), ring_all_reduce(values, INT8))
    )
    assert two < ring


# Times


@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 16])
def test_the_time_of_a_ring_is_that_of_its_hops(ranks: int) -> None:
    """The time is a sum over the steps: the longest message of each step, and in the reduce-scatter also the additions."""
    hops = ring_all_reduce(gradients(ranks, 24 * ranks)).hops
    adding = sum(int(hop.nbytes.max()) * 1e-10 for hop in hops if hop.phase == "reduce-scatter")
    steps = sum(LINK.latency + int(hop.nbytes.max()) / LINK.bandwidth for hop in hops)
    assert all_reduce_time("ring", ranks, FP32.nbytes(24 * ranks), LINK, 1e-10) == pytest.approx(steps + adding, rel=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize(("algorithm", "all_reduce"), SIMPLE.items(), ids=list(SIMPLE))
def test_bytes_in_a_row_are_those_that_the_busiest_sends(algorithm: str, all_reduce: Any, ranks: int) -> None:
    """The bandwidth factor is counted on arrays; a tree takes 2 log2(D) rounds of whole messages, half of them up."""
    values = gradients(ranks, 40)
    sent = all_reduce(values).bytes_sent / FP32.nbytes(40)
    counted = 2 * math.log2(ranks) if algorithm == "tree" else sent.max() * (2 if algorithm == "parameter-server" else 1)
    assert all_reduce_factors(algorithm, ranks).bandwidth == pytest.approx(counted)
    if algorithm == "tree":
        assert sent[0] == all_reduce_factors(algorithm, ranks).bandwidth / 2  # the root sends only on the way down


TABLE = [
    ("ring", 14, 1.75, 0.875),
    ("one-shot", 14, 1.75, 0.875),
    ("recursive-doubling", 3, 3, 3),
    ("rabenseifner", 6, 1.75, 0.875),
    ("tree", 6, 6, 3),
    ("double-tree", 6, 2, 1),
    ("parameter-server", 2, 16, 8),
]


@pytest.mark.parametrize(("algorithm", "latency", "bandwidth", "adding"), TABLE, ids=[row[0] for row in TABLE])
def test_the_table_of_the_reference_at_8_ranks(algorithm: str, latency: float, bandwidth: float, adding: float) -> None:
    assert all_reduce_factors(algorithm, 8) == (latency, bandwidth, adding)
    seconds = all_reduce_time(algorithm, 8, 1e6, LINK, 1e-10)
    assert seconds == pytest.approx(latency * 5e-6 + bandwidth * 1e6 / 25e9 + adding * 1e6 * 1e-10, rel=1e-12)


def test_the_table_is_whole() -> None:
    assert {row[0] for row in TABLE} == set(ALGORITHMS)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@in_turn("ranks", [1, 2, 4, 64, 1024])
def test_nothing_beats_the_lower_bounds(algorithm: str, ranks: int) -> None:
    """The bounds are from Chan et al. 2007; that of the latency does not hold for a parameter server, which is one more device."""
    factors = all_reduce_factors(algorithm, ranks)
    assert factors.bandwidth >= 2 * (ranks - 1) / ranks - 1e-12
    assert factors.reduce >= (ranks - 1) / ranks - 1e-12
    assert factors.latency >= math.log2(ranks) or algorithm == "parameter-server"


def test_bus_bandwidth_of_nccl_tests() -> None:
    """For t = S x 2(n-1) / (n B), the ring reaches the bandwidth of its links with any number of ranks."""
    for ranks in (2, 8, 64):
        seconds = all_reduce_time("ring", ranks, 1e9, Link(0, 200e9))
        assert 1e9 / seconds * 2 * (ranks - 1) / ranks == pytest.approx(200e9)


def test_the_ring_loses_on_latency_alone() -> None:
    small, large = np.array([1e3]), np.array([1e10])
    rabenseifner, ring = (lambda size, name=name: all_reduce_time(name, 64, size, LINK)[0] for name in ("rabenseifner", "ring"))
    assert ring(small) > 5 * rabenseifner(small)
    assert ring(small) - rabenseifner(small) == pytest.approx(2 * (63 - 6) * LINK.latency)
    assert ring(large) == pytest.approx(rabenseifner(large), rel=2e-3)


def test_times_of_many_sizes_at_once() -> None:
    many = all_reduce_time("tree", 5, [[0, 1e3], [1e6, 1e9]], LINK)
    assert many.tolist() == [[all_reduce_time("tree", 5, size, LINK) for size in row] for row in ([0, 1e3], [1e6, 1e9])]


def test_two_levels_of_time() -> None:
    fast, slow = Link(3e-6, 300e9), Link(10e-6, 25e9)
    by_hand = 14 * 3e-6 + 1.75 * 1e9 / 300e9 + 6 * 10e-6 + 1.5 * 1e9 / 8 / 25e9
    assert two_level_time(8, 4, 1e9, fast, slow) == pytest.approx(by_hand, rel=1e-12)
    shared = by_hand + 1.5 * 1e9 / 8 / 25e9 * (8 / 2 - 1)
    assert two_level_time(8, 4, 1e9, fast, slow, adapters=2) == pytest.approx(shared, rel=1e-12)
    adding = 7 / 8 * 1e9 * 1e-12 + 3 / 4 * 1e9 / 8 * 1e-12
    assert two_level_time(8, 4, 1e9, fast, slow, 1e-12) == pytest.approx(by_hand + adding, rel=1e-12)
    assert two_level_time(8, 1, 1e9, fast, slow) == all_reduce_time("ring", 8, 1e9, fast)
    assert two_level_time(1, 8, 1e9, fast, slow) == all_reduce_time("ring", 8, 1e9, slow)


@pytest.mark.parametrize(("call", "code", "words"), [
    (lambda: Link(-1, 1), "negative", ["latency", -1]),
    (lambda: Link(0, 0), "too-small", ["bandwidth", "bytes a second", "25e9", "not 0"]),
    (lambda: Link([1, 2], 1), "wrong-shape", ["latency", [1, 2]]),
    (lambda: all_reduce_time("rings", 2, 1, LINK), "unknown-name", ["'rings'", "'ring'"]),
    (lambda: all_reduce_time("ring", 0, 1, LINK), "too-small", ["ranks", 0]),
    (lambda: all_reduce_time("ring", 2, -1, LINK), "out-of-range", ["nbytes", "1e+18", -1]),
    (lambda: all_reduce_time("ring", 2, math.nan, LINK), "out-of-range", ["nbytes", "1e+18", "nan"]),
    (lambda: all_reduce_time("ring", 2, 1, 25e9), "wrong-type", ["link", "Link(", 25e9]),
    (lambda: two_level_time(2, 2, 1, None, LINK), "wrong-type", ["inside", "Link(", None]),
    (lambda: two_level_time(2, 2, 1, LINK, LINK, adapters=3), "too-large", ["adapters", 2, 3]),
])  # fmt: skip
def test_what_has_no_time(call: Callable[[], Any], code: str, words: list[Any]) -> None:
    with refusal(code, *words):
        call()


def test_algorithms_for_powers_of_two() -> None:
    for name in ("recursive-doubling", "rabenseifner"):
        with refusal("unsupported-size", name, 6, "try 8", kind=UnsupportedSize):
            all_reduce_time(name, 6, 1, LINK)


@examples(100)
@given(data=st.data())
def test_junk_is_refused_with_a_sentence(data: st.DataObject) -> None:
    draw = [data.draw(usual_or_junk(usual)) for usual in ([1, 2, 4], [1e6, 8, [1.0, 2.0]], [LINK], [0.0, 1e-12], list(ALGORITHMS), [LINK])]
    ranks, nbytes, link, adding, name, other = draw
    outcome(Link, nbytes, adding)
    for seconds in (
        outcome(all_reduce_time, name, ranks, nbytes, link, adding),
        outcome(two_level_time, ranks, 2, nbytes, link, other, adding, data.draw(usual_or_junk([None, 1]))),
        outcome(encoded_two_level_time, ranks, 2, data.draw(usual_or_junk([0, 7])), INT8, link, other, data.draw(usual_or_junk([None, 1]))),
    ):
        assert seconds is None or (np.isfinite(seconds).all() and (np.asarray(seconds) >= 0).all())
