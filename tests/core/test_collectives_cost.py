"""Compare the costs of collectives with lower bounds, and with messages sent one by one over links."""

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal

from hybridlab import FP16, FP32, INT8, UnsupportedSize, WireFormat
from hybridlab.collectives import (
    ALGORITHMS,
    COLLECTIVES,
    Link,
    algorithm_bandwidth,
    all_gather_time,
    all_reduce_factors,
    all_reduce_time,
    bus_bandwidth,
    encoded_bytes,
    encoded_time,
    encoded_two_level_time,
    flat_ring_time,
    least_factors,
    reduce_scatter_time,
    ring_all_reduce,
    two_level_all_reduce,
    two_level_time,
)

LATENCY, SPEED = 5e-6, 25e9
LINK = Link(LATENCY, SPEED)
MANY = [1, 2, 3, 4, 5, 7, 8, 12, 16, 33, 64]
POWERS = [2, 4, 8, 16, 64]


class Network:
    """Devices whose ports send one message at a time and receive one message at a time.

    A message occupies the sender's and the receiver's port for latency + bytes / speed.
    """

    def __init__(self) -> None:
        self.sending: dict[int, float] = defaultdict(float)
        self.receiving: dict[int, float] = defaultdict(float)

    def send(self, source: int, target: int, nbytes: float, after: float, latency: float = LATENCY, speed: float = SPEED) -> float:
        start = max(after, self.sending[source], self.receiving[target])
        end = start + latency + nbytes / speed
        self.sending[source] = self.receiving[target] = end
        return end


def simulated_ring(ranks: int, nbytes: float, passes: int = 2) -> float:
    net, now = Network(), [0.0] * ranks
    for _ in range(passes * (ranks - 1)):
        now = [net.send(rank - 1, rank, nbytes / ranks, max(now[rank - 1], now[rank])) for rank in range(ranks)]
    return max(now)


def simulated_one_shot(ranks: int, nbytes: float) -> float:
    net, now = Network(), 0.0
    for _ in range(2):
        now = max([now, *(net.send(r, (r + k) % ranks, nbytes / ranks, now) for k in range(1, ranks) for r in range(ranks))])
    return now


def simulated_pairs(ranks: int, sizes: list[float], distances: list[int]) -> float:
    """Return the time of rounds in which each rank exchanges messages with the rank whose number differs in one bit."""
    net, now = Network(), [0.0] * ranks
    for size, distance in zip(sizes, distances, strict=True):
        now = [net.send(rank ^ distance, rank, size, max(now[rank], now[rank ^ distance])) for rank in range(ranks)]
    return max(now)


def simulated_tree(ranks: int, nbytes: float) -> float:
    """Return the time of a binomial tree.

    In each round, the upper half of the remaining ranks sends to the lower half. Then the same messages go back in reverse order.
    """
    net, now = Network(), [0.0] * ranks
    left, sent = ranks, []
    while left > 1:
        half = -(-left // 2)
        sent.append([(rank + half, rank) for rank in range(left - half)])
        left = half
    for pairs in sent + [[(low, high) for high, low in pairs] for pairs in reversed(sent)]:
        for source, target in pairs:
            now[target] = now[source] = net.send(source, target, nbytes, max(now[source], now[target]))
    return max(now)


def simulated_server(ranks: int, nbytes: float) -> float:
    """Return the time of full messages through the one port of a server; a latency does not occupy the port."""
    arrived = LATENCY + sum(nbytes / SPEED for _ in range(ranks))
    return arrived + LATENCY + sum(nbytes / SPEED for _ in range(ranks))


@in_turn("nbytes", [0, 1e3, 1e8])
@in_turn("ranks", MANY)
def test_times_are_those_of_messages_sent_one_by_one(ranks: int, nbytes: float) -> None:
    simulated = {"ring": simulated_ring, "one-shot": simulated_one_shot, "tree": simulated_tree}
    for name, run in simulated.items():
        assert all_reduce_time(name, ranks, nbytes, LINK) == pytest.approx(run(ranks, nbytes), rel=1e-12), name
    assert all_reduce_time("parameter-server", ranks, nbytes, LINK) == pytest.approx(simulated_server(ranks, nbytes))
    for half in (reduce_scatter_time(ranks, nbytes, LINK), all_gather_time(ranks, nbytes, LINK)):
        assert half == pytest.approx(simulated_ring(ranks, nbytes, passes=1), rel=1e-12)


@pytest.mark.parametrize("ranks", POWERS)
def test_times_of_swaps_between_pairs(ranks: int) -> None:
    distances = [2**bit for bit in range(ranks.bit_length() - 1)]
    doubling = simulated_pairs(ranks, [1e6] * len(distances), distances)
    halves = [1e6 / 2 ** (place + 1) for place in range(len(distances))]
    halving = simulated_pairs(ranks, halves + halves[::-1], distances[::-1] + distances)
    assert all_reduce_time("recursive-doubling", ranks, 1e6, LINK) == pytest.approx(doubling, rel=1e-12)
    assert all_reduce_time("rabenseifner", ranks, 1e6, LINK) == pytest.approx(halving, rel=1e-12)


@in_turn("ranks", range(1, 65))
def test_no_algorithm_beats_the_least(ranks: int) -> None:
    """The bounds are from Chan et al. 2007 and Patarasuk and Yuan 2009.

    A server is one more device, and a message through it takes two latencies.
    """
    least = least_factors(ranks)
    assert least == (math.ceil(math.log2(ranks)), 2 * (ranks - 1) / ranks, (ranks - 1) / ranks)
    for name in ALGORITHMS:
        if name in ("recursive-doubling", "rabenseifner") and ranks not in (1, *POWERS, 32):
            continue
        factors = all_reduce_factors(name, ranks)
        assert factors.bandwidth >= least.bandwidth, name
        assert factors.reduce >= least.reduce, name
        assert factors.latency >= (least.latency if name != "parameter-server" else 2), name
    assert all_reduce_factors("ring", ranks)[1:] == least[1:]  # the ring reaches two of the three bounds


def test_adding_is_in_the_reduce_scatter() -> None:
    assert reduce_scatter_time(4, 1e6, LINK, 1e-10) - all_gather_time(4, 1e6, LINK) == pytest.approx(0.75 * 1e6 * 1e-10)
    both = reduce_scatter_time(8, 1e6, LINK, 1e-10) + all_gather_time(8, 1e6, LINK)
    assert both == pytest.approx(all_reduce_time("ring", 8, 1e6, LINK, 1e-10), rel=1e-12)


def test_one_ring_over_several_nodes_has_the_pace_of_its_slowest_link() -> None:
    """In each step, every rank sends to the next one, and the step ends with its last message.

    The ports of a node count as one fast port.
    """
    fast, slow = Link(3e-6, 300e9), Link(10e-6, 25e9)
    for group, groups, adapters in ((8, 4, None), (8, 4, 1), (4, 2, 2), (2, 8, 1), (8, 1, None), (1, 8, None), (1, 1, 1)):
        ranks, total = group * groups, 0.0
        for _ in range(2 * (ranks - 1)):
            crossing = [(rank + 1) % ranks // group != rank // group for rank in range(ranks)]
            outside = slow.bandwidth * (group if adapters is None else adapters)
            latencies = [slow.latency if out else fast.latency for out in crossing]
            paces = [1e9 / ranks / (outside if out else fast.bandwidth) for out in crossing]
            total += max(latencies) + max(paces)
        assert flat_ring_time(group, groups, 1e9, fast, slow, adapters=adapters) == pytest.approx(total, rel=1e-12), (group, groups)
        added = flat_ring_time(group, groups, 1e9, fast, slow, 1e-10, adapters) - total  # each rank adds up all chunks but one
        assert added == pytest.approx((ranks - 1) / ranks * 1e9 * 1e-10, rel=1e-9)


@pytest.mark.parametrize("wire", [FP32, FP16, INT8, WireFormat("INT8", block=32), WireFormat("INT8", block=256, scale="FP16")])
def test_bytes_with_the_scales_of_every_message(wire: WireFormat) -> None:
    """Messages are counted one by one, each with its own scales."""

    def message(count: int) -> int:
        scales = 0 if wire.name != "INT8" else math.ceil(count / (wire.block or max(count, 1))) * (2 if wire.scale == "FP16" else 4)
        return count * {"FP32": 4, "FP16": 2, "INT8": 1}[wire.name] + (scales if count else 0)

    for size in (0, 1, 30, 1000, 4097):
        for ranks in (1, 2, 3, 8, 64):
            share = max(len(range(start, size, ranks)) for start in range(ranks))
            for name in ("ring", "one-shot"):
                assert encoded_bytes(name, ranks, size, wire) == sum(message(share) for _ in range(2 * (ranks - 1)))
            assert encoded_bytes("parameter-server", ranks, size, wire) == 2 * ranks * message(size)
            assert encoded_bytes("tree", ranks, size, wire) == 2 * math.ceil(math.log2(ranks)) * message(size)
    assert encoded_bytes("recursive-doubling", 8, 1000, wire) == 3 * message(1000)
    assert encoded_bytes("rabenseifner", 8, 1000, wire) == 2 * (message(500) + message(250) + message(125))
    assert encoded_bytes("rabenseifner", 8, 1001, wire) == 2 * (message(501) + message(251) + message(126)), "the larger half counts"


def test_published_bytes_of_the_ring() -> None:
    """The ring has four ranks and 120 numbers, and a rank sends six messages of one chunk.

    A rank sends 180 bytes as INT8 without scales, 204 with scales, and 360 as FP16.
    """
    assert (12 * encoded_bytes("ring", 4, 120, INT8), 12 * encoded_bytes("ring", 4, 120, FP16)) == (2448, 4320)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_formats_without_scales_cost_what_their_bytes_cost(name: str) -> None:
    for ranks in (1, 2, 8, 64):
        for wire in (FP32, FP16):
            expected = all_reduce_time(name, ranks, wire.nbytes(6400), LINK)
            assert encoded_time(name, ranks, 6400, wire, LINK) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("wire", [FP32, FP16, INT8, WireFormat("INT8", block=7), WireFormat("INT8", block=7, scale="FP16")])
@pytest.mark.parametrize(("group", "groups"), [(1, 1), (4, 1), (1, 3), (2, 2), (3, 4)])
def test_two_levels_send_the_bytes_of_the_real_ones(group: int, groups: int, wire: WireFormat) -> None:
    """The time is computed from a number of bytes.

    If chunks are equal, every rank of an all-reduce of real numbers must send exactly these bytes.
    """
    inside, between = Link(0, 1e9), Link(0, 1e6)
    for size in (0, 60 * group * groups):
        values = np.ones((group * groups, size))
        sent = two_level_all_reduce(values, group, wire).bytes_sent
        assert set(sent.tolist()) == {sent[0]}
        out = ring_all_reduce(values[::group, : size // group], wire).bytes_sent[0]  # one rank of each group, and the chunk that it owns
        by_hand = (sent[0] - out) / 1e9 + out / 1e6
        assert encoded_two_level_time(group, groups, size, wire, inside, between) == pytest.approx(by_hand, rel=1e-12)
        slower = (sent[0] - out) / 1e9 + out / 1e6 * group
        assert encoded_two_level_time(group, groups, size, wire, inside, between, adapters=1) == pytest.approx(slower, rel=1e-12)
    slow = Link(1e-3, 1e6)
    if wire in (FP32, FP16):
        known = two_level_time(group, groups, wire.nbytes(1200), LINK, slow)
        assert encoded_two_level_time(group, groups, 1200, wire, LINK, slow) == pytest.approx(known, rel=1e-12)
    latencies = 2 * (group - 1) * LATENCY + 2 * (groups - 1) * 1e-3
    assert encoded_two_level_time(group, groups, 0, wire, LINK, slow) == pytest.approx(latencies, rel=1e-12)


@pytest.mark.parametrize("wire", [FP16, INT8, WireFormat("INT8", block=2)])
def test_two_levels_wait_for_the_longest_of_uneven_messages(wire: WireFormat) -> None:
    """There are 13 numbers per rank.

    A group of 3 has chunks of 5, 4 and 4 numbers. Between 2 groups, the chunk of 5 has parts of 3 and 2. A case of 8 ranks is tested, too.
    """
    inside, between = Link(0, 1), Link(0, 1e6)
    for group, groups, chunk, parts in ((3, 2, 5, (3, 2)), (2, 4, 7, (2, 2, 2, 1))):
        by_hand = (group - 1) * (wire.nbytes(chunk) + sum(map(wire.nbytes, parts))) + 2 * (groups - 1) * wire.nbytes(parts[0]) / 1e6
        assert encoded_two_level_time(group, groups, 13, wire, inside, between) == pytest.approx(by_hand, rel=1e-12)


def test_a_flat_ring_pays_the_longer_latency_of_both_links() -> None:
    for inside, between in ((5e-6, 1e-6), (1e-6, 5e-6)):
        assert flat_ring_time(2, 2, 0, Link(inside, 1e9), Link(between, 1e9)) == pytest.approx(6 * 5e-6, rel=1e-12)


def test_bandwidths_of_nccl_tests() -> None:
    """On links of 200 GB/s, the bus bandwidth must be 200 GB/s for any number of ranks and any collective."""
    fast = Link(0, 200e9)
    for ranks in (2, 3, 8, 64):
        taken = {
            "all-reduce": all_reduce_time("ring", ranks, 1e9, fast),
            "reduce-scatter": reduce_scatter_time(ranks, 1e9, fast),
            "all-gather": all_gather_time(ranks, 1e9, fast),
            "all-to-all": sum(1e9 / ranks / 200e9 for _ in range(ranks - 1)),
            "broadcast": 1e9 / 200e9,
            "reduce": 1e9 / 200e9,
        }
        assert set(taken) == set(COLLECTIVES)
        for name, seconds in taken.items():
            assert bus_bandwidth(name, ranks, 1e9, seconds) == pytest.approx(200e9), name
    assert algorithm_bandwidth([1e9, 2e9], 0.5).tolist() == [2e9, 4e9]


@pytest.mark.parametrize(("call", "code", "words"), [
    (lambda: least_factors(0), "too-small", ["ranks", 0]),
    (lambda: reduce_scatter_time(2.5, 1, LINK), "not-a-whole-number", ["ranks", 2.5]),
    (lambda: all_gather_time(2, -1, LINK), "out-of-range", ["nbytes", "1e+18", -1]),
    (lambda: all_gather_time(2, 1, None), "wrong-type", ["link", "Link("]),
    (lambda: flat_ring_time(2, 2, 1, LINK, 25e9), "wrong-type", ["between", "Link("]),
    (lambda: flat_ring_time(2, 2, 1, LINK, LINK, adapters=3), "too-large", ["adapters", 2, 3]),
    (lambda: encoded_bytes("ring", 2, -1, FP16), "too-small", ["size", -1]),
    (lambda: encoded_bytes("ring", 2, 1, "FP16"), "wrong-type", ["wire", "WireFormat"]),
    (lambda: encoded_bytes("rings", 2, 1, FP16), "unknown-name", ["'rings'", "'ring'"]),
    (lambda: encoded_time("ring", 2, 1, FP16, 25e9), "wrong-type", ["link", "Link("]),
    (lambda: encoded_two_level_time(2, 2, 1, FP16, LINK, None), "wrong-type", ["between", "Link("]),
    (lambda: encoded_two_level_time(2, 2, 1, "FP16", LINK, LINK), "wrong-type", ["wire", "WireFormat"]),
    (lambda: encoded_two_level_time(2, 2, 0.5, FP16, LINK, LINK), "not-a-whole-number", ["size", 0.5]),
    (lambda: encoded_two_level_time(2, 2, 1, FP16, LINK, LINK, adapters=3), "too-large", ["adapters", 2, 3]),
    (lambda: algorithm_bandwidth(1, 0), "out-of-range", ["seconds", 0]),
    (lambda: algorithm_bandwidth([1, 2], [1, 2, 3]), "does-not-fit", ["nbytes", "seconds", "(2,)", "(3,)"]),
    (lambda: bus_bandwidth("all-reduce", 1, 1, 1), "too-small", ["ranks", 2, 1]),
    (lambda: bus_bandwidth("allreduce", 2, 1, 1), "unknown-name", ["'allreduce'", "'all-reduce'"]),
])  # fmt: skip
def test_what_has_no_cost(call: Callable[[], Any], code: str, words: list[Any]) -> None:
    with refusal(code, *words):
        call()


def test_pieces_of_any_length_have_no_scales() -> None:
    with refusal("conflicting-arguments", "double-tree", "INT8", "'tree'", "'ring'", kind=UnsupportedSize):
        encoded_bytes("double-tree", 4, 10, INT8)
