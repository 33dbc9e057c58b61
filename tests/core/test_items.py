"""Test that a schedule, a search and a timeline have a length, items and an iterator; numpy takes each as one object.

The items of a schedule are its orders, those of a search are its plans, and those of a timeline are its rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import in_turn, refusal
from hypothesis import given
from strategies import Size, sizes

from hybridlab import A100_80GB, Costs, Op, Plan, Schedule, Timeline, Transformer, search, simulate
from hybridlab.planner import Found, Search
from hybridlab.step.replicas import replicate

TWO = Schedule("two", [["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]])
TIMELINE = Timeline(Schedule("one", [["0F0", "0B0"]]), start=[0, 2], end=[1, 4])
SEARCH = search(Transformer(layers=24, hidden=2304, heads=24), 32, A100_80GB)


def texts(order: Any) -> str:
    return " ".join(map(str, order))


def test_an_item_of_a_schedule_is_the_order_of_a_device() -> None:
    assert len(TWO) == 2
    assert texts(TWO[1]) == "1F0 1B0 1F1 1B1"
    assert texts(TWO[-2]) == texts(TWO[np.int64(0)]) == "0F0 0F1 0B0 0B1"  # type: ignore[call-overload]
    assert [texts(order) for order in TWO] == [texts(order) for order in TWO[:]] == ["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"]
    assert [texts(order) for order in reversed(TWO)] == ["1F0 1B0 1F1 1B1", "0F0 0F1 0B0 0B1"]  # type: ignore[call-overload]
    assert TWO[2:] == ()
    assert isinstance(TWO[0], tuple)
    assert isinstance(TWO[0][0], Op)


@given(size=sizes())
def test_items_are_the_lines_of_the_text(size: Size) -> None:
    schedule = size.build()
    lines = [line.partition(": ")[2] for line in str(schedule).splitlines()]
    plain = [line.replace("(", "").replace(";", " ").replace(")", "") for line in lines]
    assert list(map(texts, schedule)) == plain
    assert [texts(schedule[device]) for device in range(-len(schedule), len(schedule))] == plain + plain
    assert schedule[::-1] == tuple(schedule)[::-1]


def test_a_whole_mesh_has_an_order_for_every_rank() -> None:
    mesh = replicate(TWO, 3)
    assert len(mesh) == 6
    assert list(mesh) == 3 * list(TWO)
    assert mesh[-1] == TWO[1]


def test_items_of_a_search_are_its_plans_the_fastest_first() -> None:
    assert len(SEARCH) == len(SEARCH.found) > 1000
    assert SEARCH[0] == min(SEARCH.found, key=lambda each: each.seconds)
    assert SEARCH[-1] == SEARCH.found[-1]
    assert tuple(SEARCH) == SEARCH[:] == SEARCH.found
    assert SEARCH[3:1:-1] == (SEARCH.found[3], SEARCH.found[2])


@in_turn("place", [2, -3, 10**30, True, "0", 0.0, None, (0, 1), slice("a"), slice(0, 1, 0), np.array([0, 1])])
def test_what_is_no_place_is_refused_with_the_places_there_are(place: Any) -> None:
    code = "out-of-range" if type(place) is int else "wrong-type"
    with refusal(code, "schedule 'two' has 2 devices", "-2 to 1"):
        TWO[place]
    two = Search(SEARCH.model, SEARCH.profile, SEARCH.found[:2], 2)
    with refusal(code, "the search has 2 plans", "-2 to 1"):
        two[place]
    with refusal(code, "the timeline has 2 rows", "-2 to 1"):
        TIMELINE[place]


@in_turn("read", [len, list, bool, lambda batch: batch[0], lambda batch: batch[:1]])
def test_a_timeline_with_several_settings_says_how_to_take_one(read: Callable[[Any], Any]) -> None:
    with refusal("several-settings", "holds (2,)", "at()"):
        read(simulate(TWO, Costs(forward=[[1], [2]], backward=2)))


def test_a_search_without_plans_says_so() -> None:
    with refusal("empty", "the search has no plan"):
        Search(SEARCH.model, SEARCH.profile, (), 1)[0]


@in_turn("value", [TWO, SEARCH, replicate(TWO, 2), TIMELINE, simulate(TWO, Costs(forward=[[1], [2]], backward=2))])
def test_numpy_takes_it_as_one_object(value: Any) -> None:
    assert np.asarray(value).shape == ()
    assert np.asarray(value).item() is value
    assert np.array([value, value]).shape == (2,)
    assert (np.array([value, None]) == value).tolist() == [True, False]


def test_a_plan_found_is_unpacked_in_a_loop() -> None:
    for plan, seconds, _, nbytes in SEARCH[:5]:
        assert isinstance(plan, Plan)
        assert 0 < seconds < SEARCH[5].seconds
        assert nbytes <= A100_80GB.memory
    assert all(isinstance(each, Found) for each in SEARCH)
