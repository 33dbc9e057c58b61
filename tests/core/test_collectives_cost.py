"""Compare the costs of collectives with lower bounds, and with messages sent one by one over links."""

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import outcome, usual_or_junk
from profiles import examples
from ring_checks import gradients

from hybridlab import FP32, UnsupportedSize
from hybridlab.collectives import ALGORITHMS, Link, all_reduce_factors, all_reduce_time, least_factors, ring_all_reduce, two_level_time

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


def simulated_ring(ranks: int, nbytes: float) -> float:
    net, now = Network(), [0.0] * ranks
    for _ in range(2 * (ranks - 1)):
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


@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 16])
def test_the_time_of_a_ring_is_that_of_its_hops(ranks: int) -> None:
    """The time is a sum over the steps: the longest message of each step, and in the reduce-scatter also the additions."""
    hops = ring_all_reduce(gradients(ranks, 24 * ranks)).hops
    adding = sum(int(hop.nbytes.max()) * 1e-10 for hop in hops if hop.phase == "reduce-scatter")
    steps = sum(LINK.latency + int(hop.nbytes.max()) / LINK.bandwidth for hop in hops)
    assert all_reduce_time("ring", ranks, FP32.nbytes(24 * ranks), LINK, 1e-10) == pytest.approx(steps + adding, rel=1e-12)


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
    (lambda: least_factors(0), "too-small", ["ranks", 0]),
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
    ):
        assert seconds is None or (np.isfinite(seconds).all() and (np.asarray(seconds) >= 0).all())
