"""Test the lower bound: it is never above the makespan of any order, and as high as theory says."""

import re
from copy import copy
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import example, given
from hypothesis import strategies as st
from misuse import BATCH, COSTS, SCHEDULE, outcome, usual_or_junk
from oracle import Setting, critical_path, nodes, partners, peaks, times, works
from profiles import examples
from shortest import shortest
from strategies import batches, legal_orders, links, one_by_one, settings_of, sizes

from hybridlab import REGISTRY, Costs, Schedule, build, formulas
from hybridlab.automatic.for_times import templates_of
from hybridlab.bound import lower_bound, optimality_gap

ROUNDING = 1 + 1e-12
TINY = [("1f1b", 2, 3, 1), ("1f1b", 3, 3, 1), ("zb-h1", 2, 3, 1), ("zb-h1", 3, 2, 1), ("interleaved", 2, 2, 2), ("hanayo", 2, 2, 2)]


def makespan(schedule: Schedule, setting: Setting) -> Fraction:
    """Return the makespan of the schedule, computed by the tests' second, independent way to time it (oracle.py)."""
    return max(end for _, end in times(nodes(schedule), setting, schedule.chunks, together=partners(schedule)).values())


def in_two(schedule: Schedule) -> Schedule:
    """Return the schedule with each full backward as an input gradient and a weight gradient."""
    return Schedule.parse(re.sub(r"(\d)B(\d)", r"\1I\2 \1W\2", str(schedule)))


@st.composite
def tiny(draw: st.DrawFn) -> tuple[Schedule, Setting, list[float] | None]:
    """Draw a schedule small enough to try every order, costs that take time, and a limit of memory or None.

    Chunks can have unlike times and links unlike latencies, and one time can be a million times as long as another.
    """
    name, devices, microbatches, chunks = draw(st.sampled_from(TINY))
    schedule, per = build(name, devices, microbatches, chunks), draw(st.sampled_from(["device", "stage"]))

    def each(values: st.SearchStrategy[float], places: int) -> tuple[float, ...]:
        return tuple(draw(values) for _ in range(places))

    time = st.integers(1, 24) if draw(st.integers(0, 5)) else st.sampled_from([1, 3, 10**6])
    quarters, places = time.map(lambda number: number * chunks / 4), devices * (chunks if per == "stage" else 1)
    latency, between = draw(st.integers(0, 12)) / 4, draw(links(devices, st.sampled_from([0.0, 0.25, 3.0, 7.5])))
    share = each(st.sampled_from([0.25, 0.5, 0.75]), places)
    setting = Setting(each(quarters, places), each(quarters, places), share, latency, between=between, per=per)
    capacity = st.integers(chunks, chunks * microbatches).map(lambda number: number / chunks)
    memory = list(each(capacity, devices)) if draw(st.integers(0, 3)) else None
    return in_two(schedule) if chunks > 1 and draw(st.booleans()) else schedule, setting, memory


# The second chunk of a device can free its activations late: an order then takes 67, not 68 as it would if it freed them in turn.
LATE = (
    templates_of(2, 2, 2)[0],
    Setting((2.0, 4.0, 4.0, 2.0), (2.0, 2.0, 16.0, 4.0), (0.5, 0.5, 0.75, 0.75), 1.0, per="stage"),
    [1.0, 1.5],
)


@in_turn("name", sorted(REGISTRY))
@examples(40)
@given(data=st.data())
def test_no_schedule_of_the_registry_beats_its_bound(name: str, data: st.DataObject) -> None:
    schedule = data.draw(sizes(name)).build()
    setting = data.draw(settings_of(schedule.devices, exact=True))
    orders, chunks = nodes(schedule), schedule.chunks
    bound = lower_bound(schedule, setting.costs())
    assert bound <= float(makespan(schedule, setting)) * ROUNDING
    # If the schedule has overlapped pairs, the bound must allow that a forward runs together with any full backward.
    full = [sum(kind == "B" for kind, _, _ in order) if schedule.pairs.size else 0 for order in orders]
    work = works(orders, setting, chunks)
    busy = [each - full[device] * setting.saved(device, chunks) for device, each in enumerate(work)]
    parts = [critical_path(orders, setting, chunks), *busy]
    assert bound * ROUNDING >= float(max(parts)), "no less than the longest chain and the busiest device"


@examples(100)
@given(schedule=legal_orders(), data=st.data())
def test_no_shuffled_order_beats_its_bound(schedule: Schedule, data: st.DataObject) -> None:
    setting = data.draw(settings_of(schedule.devices, exact=True))
    assert lower_bound(schedule, setting.costs()) <= float(makespan(schedule, setting)) * ROUNDING


@examples(120)
@given(tiny())
@example(LATE)
def test_no_order_at_all_beats_the_bound(case: tuple[Schedule, Setting, list[float] | None]) -> None:
    schedule, setting, memory = case
    capacity = peaks(nodes(schedule), schedule.chunks) if memory is None else [Fraction(limit) for limit in memory]
    bound = Fraction(lower_bound(schedule, setting.costs(), memory) / ROUNDING)
    assert shortest(schedule, setting, capacity, bound) == bound


@in_turn("name, chunks", [("gpipe", 1), ("1f1b", 1), ("zb-h1", 1)])
def test_a_bound_that_is_too_high_would_be_caught(name: str, chunks: int) -> None:
    """Here the shortest order reaches the bound, so a bound that is a thousandth higher fails the test above."""
    schedule, setting = build(name, 2, 2, chunks), Setting((1.0, 1.0), (2.0, 2.0), (0.5, 0.5), 0.25)
    best = shortest(schedule, setting, peaks(nodes(schedule), chunks), makespan(schedule, setting) + 1)
    assert lower_bound(schedule, setting.costs()) * 1.001 > float(best)


@given(name=st.sampled_from(["gpipe", "1f1b"]), devices=st.integers(1, 8), microbatches=st.integers(1, 20), data=st.data())
def test_gpipe_and_1f1b_are_optimal_without_latency(name: str, devices: int, microbatches: int, data: st.DataObject) -> None:
    """The bound is (M + K-1)(F + B) for any F and B.

    The last device starts after (K-1)F, and the step ends (K-1)B after the last device has done its work.
    """
    forward, backward = (data.draw(st.integers(0, 40)) / 4 for _ in range(2))
    form = formulas.gpipe_makespan if name == "gpipe" else formulas.one_f_one_b_makespan
    costs = Costs(forward=forward, backward=backward)
    assert lower_bound(build(name, devices, microbatches), costs) == form(devices, microbatches, forward, backward)


@given(devices=st.integers(1, 8), microbatches=st.integers(1, 20), p2p=st.integers(0, 12))
def test_gpipe_is_optimal_with_latency_too(devices: int, microbatches: int, p2p: int) -> None:
    bound = lower_bound(build("gpipe", devices, microbatches), Costs(forward=1, backward=2, p2p=p2p / 4))
    assert bound == formulas.gpipe_makespan(devices, microbatches, 1, 2, p2p / 4)


@in_turn("devices, groups, chunks", [(2, 1, 2), (4, 2, 2), (4, 3, 4), (8, 2, 2)])
def test_interleaved_is_optimal_without_latency(devices: int, groups: int, chunks: int) -> None:
    bound = lower_bound(build("interleaved", devices, groups * devices, chunks), Costs(forward=4, backward=8))
    assert bound == formulas.interleaved_makespan(devices, groups * devices, chunks, 4, 8)


@in_turn("devices, groups", [(2, 1), (2, 3), (4, 2), (6, 3)])
def test_1f1b_waits_a_round_trip_for_every_group_of_microbatches(devices: int, groups: int) -> None:
    """Device 0 holds at most K microbatches at once.

    So M/K lifetimes of K(F + B) + 2(K-1)C must pass, and then (K-1)(F + B) of the last group.
    """
    bound = lower_bound(build("1f1b", devices, groups * devices), Costs(forward=1, backward=2, p2p=1.5))
    assert bound >= groups * (devices * 3 + 2 * (devices - 1) * 1.5) + (devices - 1) * 3


def test_with_memory_for_one_a_microbatch_waits_for_the_one_before() -> None:
    """There are three stages with F = 1, B = 2 and C = 0.5.

    Each microbatch takes 3 * 3 + 4 * 0.5 = 11, so five of them take 55.
    """
    schedule, costs = build("1f1b", 3, 5), Costs(forward=1, backward=2, p2p=0.5)
    assert lower_bound(schedule, costs, memory=1) == 55
    assert lower_bound(schedule, costs, memory=[1, 5, 5]) == 55
    assert lower_bound(schedule, costs, memory=[2, 5, 5]) < 55


def test_precedences_show_what_no_other_bound_shows() -> None:
    """All orders of both examples were tried outside of the tests: the shortest take 490 and 43."""
    costs = Costs(forward=10, backward=20, weight_share=0.6, p2p=5)
    assert lower_bound(build("zb-h1", 4, 8), costs, memory=2) == 488
    chunks = Costs(forward=[8, 2, 4, 4], backward=[4, 2, 2, 4], p2p=1, per="stage")
    assert lower_bound(templates_of(2, 2, 2)[0], chunks, memory=2) == 43, "42 without the precedences that follow from others"


def test_more_memory_never_makes_the_bound_higher() -> None:
    for name, chunks in (("1f1b", 1), ("zb-h1", 1), ("interleaved", 2), ("hanayo", 2)):
        schedule, costs = build(name, 4, 8, chunks), Costs(forward=1, backward=2, p2p=1)
        bounds = [lower_bound(schedule, costs, memory) for memory in (1, 1.5, 2, 3, 4, 6, 8, 100, np.inf)]
        assert bounds == sorted(bounds, reverse=True)
        assert bounds[-1] == bounds[-3], "eight microbatches need no more memory than eight"


def test_activations_of_several_chunks_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The area bound counts the chunks of a device together.

    There are two devices, four stages in a V, and eight microbatches; device 0 has stages 0 and 3 and room for two activations.

    Operations take 0.5 and 1, and the latency is 2. Stage 0 keeps an activation for 4 * 0.5 + 4 * 1 + 4 * 2 = 14, and stage 3 for 1.5.
    With two activations at a time, this takes 8 * 15.5 / 2 = 62. For 0.5 + 1, the device holds only one activation, so half of this time is
    added. If the backward is split into 0.25 and 0.75, its second part frees the activation, and the lifetimes are 11.75 and 1.5.
    """
    monkeypatch.setattr("hybridlab.bound.analytic.MOST_ORDERED", 0)  # the bound by precedences is higher: 73.5, the shortest order
    schedule = build("hanayo", 2, 8, 2)
    assert lower_bound(schedule, Costs(forward=1, backward=2, p2p=2), memory=[1, 8]) == 62.75
    assert (
        lower_bound(in_two(schedule), Costs(forward=1, backward=2, weight_share=0.75, p2p=2), memory=[1, 8])
        == 8 * 13.25 / 2 + (0.5 + 0.75) / 2
    )


def test_a_part_of_a_microbatch_that_does_not_fit_is_one_microbatch_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each device has room for three of its four activations, so half of the second microbatch waits for the first.

    Then all of it must run. That gives 14.5. The shortest order takes 15, and the precedences show it.
    """
    schedule, costs = build("hanayo", 2, 2), Costs(forward=1, backward=2, p2p=1)
    assert lower_bound(schedule, costs, memory=1.5) == 15
    monkeypatch.setattr("hybridlab.bound.analytic.MOST_ORDERED", 0)
    assert lower_bound(schedule, costs, memory=1.5) == 14.5


def test_a_set_of_operations_counts_where_the_whole_device_does_not() -> None:
    """Device 0 runs three forwards, which take 30, and all its work is only 33.

    After the last forward there must still be a message of 8, 1 + 1 on device 1, a message of 8, and a backward of 1.
    """
    schedule = build("gpipe", 2, 3)
    assert lower_bound(schedule, Costs(forward=[10, 1], backward=[1, 1], p2p=8)) == 30 + 8 + 1 + 1 + 8 + 1


@given(name=st.sampled_from(sorted(REGISTRY)), data=st.data())
def test_a_batch_has_the_bounds_of_its_settings(name: str, data: st.DataObject) -> None:
    schedule = data.draw(sizes(name)).build()
    shape, arguments = data.draw(batches(schedule.devices))
    bounds = lower_bound(schedule, Costs(**arguments))
    assert bounds.shape == shape
    for setting, costs in one_by_one(shape, schedule.devices, arguments):
        assert bounds[setting] == pytest.approx(lower_bound(schedule, costs), rel=1e-12)


def test_microbatches_whose_backwards_are_split_differently() -> None:
    mixed = Schedule.parse("0F0 0F1 0B0 0I1 0W1\n1F0 1B0 1F1 1I1 1W1")
    setting = Setting((1.0, 2.0), (3.0, 4.0), (0.25, 0.5), 0.5)
    best = shortest(mixed, setting, peaks(nodes(mixed), 1), makespan(mixed, setting) + 1)
    assert critical_path(nodes(mixed), setting, 1) < lower_bound(mixed, setting.costs()) <= best


def test_overlapped_pairs_shorten_the_work_of_a_device_by_what_its_backwards_can_save() -> None:
    """Four microbatches with F = 1 and B = 2 are 12 units of work, and each backward can save overlap * 1."""
    for overlap, least in ((0.0, 12), (0.5, 10), (1.0, 8)):
        schedule, costs = copy(build("1f1b", 1, 4)), Costs(forward=1, backward=2)
        object.__setattr__(costs, "overlap", np.array([overlap]))
        assert lower_bound(schedule, costs, memory=4) == 12, "a schedule without pairs saves nothing"
        object.__setattr__(schedule, "pairs", np.array([[1, 2]]))
        assert lower_bound(schedule, costs, memory=4) == least
        assert lower_bound(schedule, costs, memory=1) == 12, "one activation at a time leaves nothing to pair"


def test_huge_and_zero_times_have_bounds() -> None:
    assert lower_bound(build("1f1b", 2, 4), Costs(forward=0, backward=0)) == 0
    assert lower_bound(build("1f1b", 2, 4), Costs(forward=1e200, backward=1e200)) == pytest.approx(1e201)


def test_the_gap_to_the_optimum_is_at_most_the_gap_to_the_bound() -> None:
    costs = Costs(forward=1, backward=2)
    known = optimality_gap(build("1f1b", 4, 8), costs)
    assert (known.makespan, known.bound, known.optimum, known.ratio) == (33, 33, 33, 1)
    unknown = optimality_gap(build("hanayo", 4, 8, 2), costs)
    assert (unknown.bound, unknown.optimum) == (29, None)
    assert unknown.ratio == 32.5 / 29
    assert optimality_gap(build("1f1b", 4, 8), Costs(forward=0, backward=0)).ratio == 1
    with refusal("several-settings", "(2,)"):
        optimality_gap(SCHEDULE, Costs(forward=[[1], [2]], backward=2))


@in_turn(
    "memory, code, words",
    [
        (0.5, "too-small", ("at least 1 microbatch", "not 0.5")),
        (float("nan"), "not-finite", ("number of microbatches", "not nan")),
        ([1, 2, 3], "wrong-shape", ("2 devices", "[1, 2, 3]")),
        ("much", "not-a-number", ("memory", "'much'")),
    ],
)
def test_a_memory_that_cannot_be_is_refused(memory: Any, code: str, words: tuple[str, ...]) -> None:
    with refusal(code, "memory", *words):
        lower_bound(SCHEDULE, COSTS, memory)


def test_costs_of_other_devices_and_sets_too_large_are_refused() -> None:
    with refusal("does-not-fit", "3 devices", "the schedule has 2"):
        lower_bound(SCHEDULE, Costs(forward=[1, 2, 3], backward=1))
    with refusal("too-large", "fewer settings", "fewer chunks"):
        lower_bound(build("interleaved", 2, 4, 32), Costs(forward=np.ones((10_000, 1)), backward=1))


@examples(150)
@given(
    schedule=usual_or_junk([SCHEDULE, build("hanayo", 2, 2)]),
    costs=usual_or_junk([COSTS, Costs(forward=[[1], [2]], backward=2)]),
    memory=usual_or_junk([None, 1, [1, 2]]),
)
def test_junk(schedule: Any, costs: Any, memory: Any) -> None:
    bound = outcome(lower_bound, schedule, costs, memory)
    assert bound is None or (np.asarray(bound) >= 0).all()
    assert outcome(lower_bound, BATCH, costs, memory) is None
