"""Test a latency for each link: in every part of the library, messages take the times of p2p_between."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, outcome
from oracle import Setting, nodes, partners, times
from profiles import examples
from strategies import quarters, sizes

from hybridlab import REGISTRY, Costs, Schedule, build, hybrid_step, simulate
from hybridlab.bound import lower_bound, optimum
from hybridlab.engines import run

NEIGHBOURS = [
    name for name in REGISTRY if name not in ("interleaved", "looped-bfs", "interleaved-zb")
]  # in these schedules, no message goes from the last device to the first


def test_by_hand() -> None:
    """One microbatch on three devices takes 3 x (1 + 2).

    Its messages take 2 x (1 + 5), because each link is used twice.
    """
    costs = Costs(forward=1, backward=2, p2p_between=[1, 5])
    timeline = simulate(build("1f1b", 3, 1), costs)
    assert timeline.makespan == 9 + 2 * (1 + 5)
    assert timeline.start.tolist() == [0, 19, 2, 16, 8, 9]


def test_a_matrix_has_the_sender_in_its_rows() -> None:
    """The forward messages take 1 and 5, and the backward messages take 2 and 7."""
    costs = Costs(forward=1, backward=2, p2p_between=[[0, 1, 9], [2, 0, 5], [9, 7, 0]])
    timeline = simulate(build("1f1b", 3, 1), costs)
    assert timeline.start.tolist() == [0, 22, 2, 18, 8, 9]
    assert timeline.makespan == 9 + 1 + 5 + 7 + 2


@given(size=sizes().filter(lambda size: size.name in NEIGHBOURS and size.devices > 1), data=st.data())
def test_one_value_for_each_pair_of_neighbours_is_a_matrix_that_is_the_same_both_ways(size: Any, data: st.DataObject) -> None:
    late = data.draw(st.lists(quarters, min_size=size.devices - 1, max_size=size.devices - 1))
    matrix = np.diag(late, 1) + np.diag(late, -1)
    one, other = (simulate(size.build(), Costs(forward=1, backward=2, p2p_between=each)) for each in (late, matrix))
    assert one == other
    setting = Setting((1.0,) * size.devices, (2.0,) * size.devices, (0.5,) * size.devices, 0.0, 0.0, tuple(map(tuple, matrix.tolist())))
    orders = nodes(size.build())
    expected = times(orders, setting, size.chunks, together=partners(size.build()))
    flat = [expected[node] for order in orders for node in order]
    assert one.start.tolist() == pytest.approx([float(start) for start, _ in flat])


@given(size=sizes(), p2p=quarters)
def test_links_that_are_all_alike_are_one_latency(size: Any, p2p: float) -> None:
    matrix = p2p * (1 - np.eye(size.devices))
    one, other = Costs(forward=1, backward=2, p2p=p2p), Costs(forward=1, backward=2, p2p_between=matrix)
    assert simulate(size.build(), one) == simulate(size.build(), other)
    assert lower_bound(size.build(), one) == pytest.approx(lower_bound(size.build(), other), rel=1e-12)
    steps = [hybrid_step(size.build(), each, 2, ring_step=1, overlap=True, optimiser=2) for each in (one, other)]
    assert steps[0] == steps[1]


@examples(60)
@given(name=st.sampled_from(["gpipe", "1f1b", "zb-h1"]), microbatches=st.integers(1, 3), links=st.lists(st.integers(0, 12), min_size=4))
def test_the_shortest_order_is_between_the_bound_and_the_schedule(name: str, microbatches: int, links: list[int]) -> None:
    schedule = build(name, 3, microbatches)
    there, back = (each / 4 for each in links[:2]), (each / 4 for each in links[2:4])
    matrix = np.diag(list(there), 1) + np.diag(list(back), -1)
    costs = Costs(forward=1, backward=2, p2p_between=matrix)
    best = optimum(schedule, costs, seconds=0.2)
    assert lower_bound(schedule, costs) <= best.makespan * (1 + 1e-12)
    assert best.makespan <= simulate(schedule, costs).makespan
    assert best.makespan == simulate(best.schedule, costs).makespan


@in_turn("between", [[3, 0.5], [[0, 3, 0], [1, 0, 0.5], [0, 0.25, 0]]])
def test_every_replica_has_the_links_of_its_pipeline(between: Any) -> None:
    """All replicas have the same times, and a message takes the latency of its own link, in the step and in threads."""
    costs, schedule = Costs(forward=[1, 2, 1], backward=2, p2p_between=between), build("1f1b", 3, 4)
    alone, step = simulate(schedule, costs), hybrid_step(schedule, costs, 3, ring_step=1)
    assert step.timeline.start.reshape(3, -1).tolist() == [alone.start.tolist()] * 3
    matrix = np.array(between) if np.ndim(between) == 2 else np.diag(between, 1) + np.diag(between, -1)
    for timeline in (step.timeline, run(schedule, costs=costs.longer(2), replicas=2).timeline):
        assert timeline.spans is not None
        sent = timeline.spans.of("send")
        factor = 1 if timeline is step.timeline else 2
        assert sent.end - sent.start == pytest.approx(factor * matrix[sent.device % 3, sent.peer % 3])


def test_threads_wait_for_the_latency_of_the_link() -> None:
    """Threads that waited for the other link would start before it, however slow the machine is."""
    for between, least in (([40, 0], {"1F0": 40, "0B0": 80}), ([0, 40], {"2F0": 40, "1B0": 80})):
        ran = run(build("gpipe", 3, 1), costs=Costs(forward=0, backward=0, p2p_between=between)).timeline
        starts = {str(op): start for op, start in zip(ran.ops, ran.start, strict=True)}
        assert all(starts[op] >= start for op, start in least.items())


def test_links_of_all_ranks_can_be_given() -> None:
    """The second replica has a slower network; there are 2 x 2 ranks, so the matrix is 4 x 4."""
    between = np.zeros((4, 4))
    between[0, 1] = between[1, 0] = 1
    between[2, 3] = between[3, 2] = 4
    step = hybrid_step(build("1f1b", 2, 1), Costs(forward=1, backward=2, p2p_between=between), 2)
    ends = step.timeline.end.reshape(2, -1).max(axis=1)
    assert ends.tolist() == [6 + 2 * 1, 6 + 2 * 4]


@in_turn("name", ["interleaved", "looped-bfs", "interleaved-zb"])
def test_a_message_between_others_than_neighbours_asks_for_a_matrix(name: str) -> None:
    schedule, row = build(name, 4, 4), Costs(forward=1, backward=2, p2p_between=[1, 5, 1])
    for ask in (simulate, lower_bound, lambda schedule, costs: hybrid_step(schedule, costs, 2, ring_step=1)):
        with refusal("no-link", "from device", "to device", "p2p_between", "[from, to]"):
            ask(schedule, row)
    matrix = 1 - np.eye(4)
    assert simulate(schedule, Costs(forward=1, backward=2, p2p_between=matrix)).makespan > 0


@in_turn(
    "between, code, words",
    [
        (3, "wrong-shape", ("p2p_between", "[1, 5, 1]", "4 devices", "()")),
        ([[1, 2, 3]], "wrong-shape", ("p2p_between", "(1, 3)")),
        (np.zeros((2, 2, 2)), "wrong-shape", ("p2p_between", "(2, 2, 2)")),
        ([[1, 0], [0, 0]], "not-zero", ("p2p_between", "0")),
        ([1, -1], "negative", ("p2p_between", "value 1", "-1")),
        ([1, float("nan")], "not-finite", ("p2p_between", "value 1", "nan")),
        ([float("inf")], "not-finite", ("p2p_between", "value 0", "inf")),
        ([[0, 1], [2]], "ragged", ("p2p_between",)),
        ([], "empty", ("p2p_between",)),
        ("near", "not-a-number", ("p2p_between", "'near'")),
    ],
)
def test_what_is_no_latency_of_links_is_refused(between: Any, code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words):
        Costs(forward=1, backward=2, p2p_between=between)


def test_links_and_devices_must_agree() -> None:
    with refusal("conflicting-arguments", "p2p or p2p_between"):
        Costs(forward=1, backward=2, p2p=1, p2p_between=[1, 2])
    with refusal("does-not-fit", "forward 2", "p2p_between 3"):
        Costs(forward=[1, 2], backward=2, p2p_between=[1, 2])
    with refusal("does-not-fit", "for 3 devices", "has 4", "3 values of p2p_between", "4 x 4"):
        simulate(build("1f1b", 4, 4), Costs(forward=1, backward=2, p2p_between=[1, 2]))


def test_settings_share_the_links() -> None:
    costs = Costs(forward=[[1], [2]], backward=2, p2p_between=[1, 5])
    schedule = build("1f1b", 3, 4)
    both = simulate(schedule, costs)
    assert both.makespan.tolist() == [simulate(schedule, Costs(forward=each, backward=2, p2p_between=[1, 5])).makespan for each in (1, 2)]
    assert lower_bound(schedule, costs).shape == (2,)


@given(sender=junk, receiver=junk)
def test_junk_is_no_device(sender: Any, receiver: Any) -> None:
    for costs in (Costs(forward=1, backward=2, p2p=1), Costs(forward=1, backward=2, p2p_between=[1, 2])):
        late = outcome(costs.latency, sender, receiver)
        assert late is None or (late >= 0).all()


def test_latencies_of_devices_that_are_not_there() -> None:
    costs = Costs(forward=1, backward=2, p2p_between=[1, 2])
    with refusal("out-of-range", "p2p_between", "0 to 2", 3):
        costs.latency(np.array([3]), np.array([2]))
    with refusal("wrong-length", "sender", "receiver", "1 and 2"):
        costs.latency(np.array([1]), np.array([2, 1]))


def test_a_chain_of_messages_is_a_bound() -> None:
    """One microbatch has only one order, so the bound is the length of its chain with the latency of each link."""
    schedule = Schedule.parse("0F0 0B0\n1F0 1B0\n2F0 2B0")
    costs = Costs(forward=1, backward=2, p2p_between=[[0, 1, 0], [2, 0, 4], [0, 8, 0]])
    assert lower_bound(schedule, costs) == simulate(schedule, costs).makespan == float(Fraction(9 + 15))
