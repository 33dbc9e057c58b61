"""Compare the time of two pipelined trees with pieces that are sent one by one, and with its limits."""

import math
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import outcome, usual_or_junk
from profiles import examples

from hybridlab.collectives import Link, all_reduce_time, double_tree_time

LINK = Link(latency=5e-6, bandwidth=25e9)
Edge = tuple[int, int, int]  # parent, child, tree


def parents(ranks: int) -> list[dict[int, int]]:
    """Return the parent of each rank in both trees. Rank 0 is above both roots; in the first tree only even ranks have children."""
    first: dict[int, int] = {}

    def grow(low: int, high: int, parent: int) -> None:
        if low <= high:
            root = low - 1 + 2 ** ((high - low + 1).bit_length() - 1)
            first[root] = parent
            grow(low, root - 1, root)
            grow(root + 1, high, root)

    others = ranks - 1
    grow(1, others, 0)
    place = {0: 0} | {rank: rank % others + 1 if others % 2 else others + 1 - rank for rank in range(1, ranks)}
    return [first, {place[child]: place[parent] for child, parent in first.items()}]


def halves(ranks: int) -> dict[Edge, int]:
    """Return whether an edge works in even or in odd steps, so that no rank sends or receives twice in a step."""
    edges = [(parent, child, tree) for tree, above in enumerate(parents(ranks)) for child, parent in above.items()]
    half: dict[Edge, int] = {}
    for start in edges:
        todo = [] if start in half else [(start, 0)]
        while todo:
            edge, parity = todo.pop()
            if edge not in half:
                half[edge] = parity
                todo += [(other, 1 - parity) for other in edges if other != edge and (other[0] == edge[0] or other[1] == edge[1])]
    return half


def broadcast_steps(ranks: int, pieces: int) -> int:
    """Send the pieces of both trees down from rank 0, and return the number of steps. A reduction is the same in reverse."""
    half, steps = halves(ranks), 0
    arrived = {(rank, tree): 0 if rank else pieces for rank in range(ranks) for tree in (0, 1)}
    sent = dict.fromkeys(half, 0)
    while min(arrived.values()) < pieces:
        moving = [edge for edge, parity in half.items() if parity == steps % 2 and sent[edge] < arrived[edge[0], edge[2]]]
        for column in (0, 1):
            assert len({edge[column] for edge in moving}) == len(moving), "one piece at a time"
        for edge in moving:
            sent[edge] += 1
            arrived[edge[1], edge[2]] += 1
        steps += 1
    return steps


@in_turn("ranks", [*range(2, 20), 31, 32, 33, 64])
@in_turn("pieces", [1, 2, 5, 20])
def test_the_steps_are_those_of_pieces_sent_one_by_one(ranks: int, pieces: int) -> None:
    """Between two powers of two, the simulated trees can be one step faster, because no rank is as deep in both of them."""
    counted = 2 * broadcast_steps(ranks, pieces)
    steps = double_tree_time(ranks, 0, Link(1, 1), pieces)
    assert counted == steps if (ranks & (ranks - 1)) == 0 else steps - 2 <= counted <= steps
    piece = 1e6 / (2 * pieces)
    assert double_tree_time(ranks, 1e6, LINK, pieces) == pytest.approx(steps * (LINK.latency + piece / LINK.bandwidth), rel=1e-12)


@examples(100)
@given(ranks=st.integers(2, 200), size=st.just(0.0) | st.floats(1e-6, 1e10), latency=st.sampled_from([0, 1e-9, 5e-6, 1e-3]))
def test_the_best_number_of_pieces_is_found(ranks: int, size: float, latency: float) -> None:
    link = Link(latency, 25e9)
    tried = [double_tree_time(ranks, size, link, pieces) for pieces in [*range(1, 40), *(2**power for power in range(6, 40))]]
    best = double_tree_time(ranks, size, link)
    assert best <= min(tried) * (1 + 1e-12)
    hops = math.ceil(math.log2(ranks)) - 1
    continuous = 2 * size / link.bandwidth + 4 * hops * latency + math.sqrt(32 * hops * latency * size / link.bandwidth)
    assert best >= continuous * (1 - 1e-9)


def test_the_limits() -> None:
    """Long messages take the time of their bytes, twice; no all-reduce is faster than the limit in the table of factors."""
    assert double_tree_time(1, 1e9, LINK) == double_tree_time(1, 1e9, LINK, 7) == 0
    assert double_tree_time(64, 1e14, LINK) == pytest.approx(2 * 1e14 / 25e9, rel=1e-3)
    assert double_tree_time(64, 1e9, Link(0, 25e9)) == pytest.approx(2 * 1e9 / 25e9, rel=1e-6)
    sizes = 10.0 ** np.arange(0, 12)
    times = double_tree_time(64, sizes, LINK)
    assert (times > all_reduce_time("double-tree", 64, sizes, LINK)).all()
    assert times.tolist() == [double_tree_time(64, size, LINK) for size in sizes]
    assert times[0] < all_reduce_time("ring", 64, 1, LINK) / 5
    assert times[-1] == pytest.approx(all_reduce_time("ring", 64, 1e11, LINK), rel=0.05)


@pytest.mark.parametrize(("arguments", "code", "words"), [
    ((0, 1, LINK), "too-small", ["ranks", 0]),
    ((2.5, 1, LINK), "not-a-whole-number", ["ranks", 2.5]),
    ((4, -1, LINK), "out-of-range", ["nbytes", -1]),
    ((4, 1, 25e9), "wrong-type", ["link", "Link("]),
    ((4, 1, LINK, 0), "too-small", ["pieces", 0]),
    ((4, 1, LINK, 1.5), "not-a-whole-number", ["pieces", 1.5]),
])  # fmt: skip
def test_what_is_refused(arguments: tuple[Any, ...], code: str, words: list[Any]) -> None:
    with refusal(code, *words):
        double_tree_time(*arguments)


@examples(60)
@given(st.data())
def test_junk_is_refused_with_a_sentence(data: st.DataObject) -> None:
    usual = ([1, 2, 5], [0, 1e6, [1.0, 2.0]], [LINK, Link(0, 1)], [None, 1, 9])
    seconds = outcome(double_tree_time, *(data.draw(usual_or_junk(each)) for each in usual))
    assert seconds is None or (np.isfinite(seconds).all() and (np.asarray(seconds) >= 0).all())
