"""Test the puzzles: each goal is what its words say, the last one is proven, and no text is taken for more than it is."""

import json
from itertools import pairwise

import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from oracle import nodes, peaks
from profiles import examples

from hybridlab import REGISTRY, Deadlock, HybridLabError, Schedule, build, simulate
from hybridlab.bound import lower_bound, optimum
from hybridlab.course.puzzles import PUZZLES, Puzzle, Standing

every_puzzle = in_turn("puzzle", PUZZLES.values())
LARGER = ("one-more-activation", "unequal-devices")


def template(puzzle: Puzzle) -> Schedule:
    """Return a schedule with the operations of a puzzle."""
    return build("zb-h1" if puzzle.split else "1f1b", puzzle.devices, puzzle.microbatches)


def fitting(puzzle: Puzzle) -> dict[str, float]:
    """Return the makespans of all schedules of the registry that a reader could hand in."""
    found = {}
    for name in REGISTRY:
        try:
            schedule = build(name, puzzle.devices, puzzle.microbatches)
        except HybridLabError:
            continue
        judged = puzzle.judge(str(schedule))
        if "memory" in judged.reached:
            found[name] = float(simulate(schedule, puzzle.costs).makespan)
    return found


@every_puzzle
def test_the_last_goal_is_the_makespan_that_the_solver_proves(puzzle: Puzzle) -> None:
    best = optimum(template(puzzle), puzzle.costs, seconds=60, memory=puzzle.memory)
    assert best.proven
    assert best.makespan == best.bound == puzzle.optimum
    judged = puzzle.judge(str(best.schedule))
    assert (judged.reached, judged.code) == (tuple(goal.name for goal in puzzle.goals), "solved")


@pytest.mark.slow
@every_puzzle
def test_the_solver_says_the_same_with_another_template(puzzle: Puzzle) -> None:
    """The search begins with all forwards first in place of 1F1B or ZB-H1, or with one that does not fit into the memory at all."""
    other = Schedule.parse(puzzle.start) if len(puzzle.judge(puzzle.start).reached) > 1 else build("gpipe", 2, 3)
    assert optimum(other, puzzle.costs, seconds=60, memory=puzzle.memory).bound == puzzle.optimum


@every_puzzle
def test_no_schedule_of_the_registry_is_shorter_than_the_optimum(puzzle: Puzzle) -> None:
    assert all(makespan >= puzzle.optimum for makespan in fitting(puzzle).values())


def test_in_three_puzzles_every_schedule_of_the_registry_is_longer_than_the_optimum() -> None:
    assert fitting(PUZZLES["two-devices"])["1f1b"] == PUZZLES["two-devices"].optimum
    assert not fitting(PUZZLES["little-memory"])
    for name in LARGER:
        assert fitting(PUZZLES[name]).keys() >= {"1f1b", "zb-h1"}
        assert min(fitting(PUZZLES[name]).values()) > PUZZLES[name].optimum
        assert lower_bound(template(PUZZLES[name]), PUZZLES[name].costs, PUZZLES[name].memory) <= PUZZLES[name].optimum


@every_puzzle
def test_goals_become_harder(puzzle: Puzzle) -> None:
    assert [goal.name for goal in puzzle.goals[:3]] == ["complete", "runs", "memory"]
    assert [(goal.makespan, goal.memory) for goal in puzzle.goals[:3]] == [(None, None), (None, None), (None, puzzle.memory)]
    faster = puzzle.goals[3:]
    assert all(goal.memory == puzzle.memory for goal in faster)
    assert all(higher.makespan < lower.makespan for lower, higher in pairwise(faster))
    assert faster[-1].name == "optimum"
    assert len({goal.name for goal in puzzle.goals}) == len({goal.words for goal in puzzle.goals}) == len(puzzle.goals)


@every_puzzle
def test_a_faster_order_is_faster_by_a_whole_unit(puzzle: Puzzle) -> None:
    """The goals "shorter than" are 1 ms below the other makespan, and the times are whole numbers of ms."""
    costs = puzzle.data()["costs"]
    shares = zip(costs["backward"], costs["weight_share"], strict=True)
    times = [costs["p2p"], *costs["forward"], *costs["backward"], *(backward * share for backward, share in shares)]
    assert all(time == int(time) for time in times), times


@every_puzzle
def test_nothing_is_solved_by_handing_in_the_start(puzzle: Puzzle) -> None:
    judged = puzzle.judge(puzzle.start)
    assert "optimum" not in judged.reached
    assert len(judged.reached) <= 3


@every_puzzle
def test_the_data_are_plain_and_have_all_that_a_page_needs(puzzle: Puzzle) -> None:
    data = puzzle.data()
    assert json.loads(json.dumps(data)) == data
    assert set(data) == {
        *("name", "title", "sentence", "devices", "microbatches", "chunks", "costs", "unit", "memory", "split", "start", "goals")
    }
    assert set(data["costs"]) == {"forward", "backward", "weight_share", "p2p", "overlap"}
    assert all(len(data["costs"][name]) == puzzle.devices for name in ("forward", "backward", "weight_share"))
    assert [set(goal) for goal in data["goals"]] == [{"name", "words", "makespan", "memory"}] * len(puzzle.goals)
    assert data["goals"][-1]["makespan"] == puzzle.optimum


def reached_by_hand(puzzle: Puzzle, schedule: Schedule) -> list[str]:
    """Return the goals that a schedule of this size reaches, from the data of the page and from peaks that an oracle counts."""
    most = max(peaks(nodes(schedule), schedule.chunks))
    makespan = simulate(schedule, puzzle.costs).makespan
    names = []
    for goal in puzzle.data()["goals"]:
        if (goal["memory"] is not None and most > goal["memory"]) or (goal["makespan"] is not None and makespan > goal["makespan"]):
            break
        names.append(goal["name"])
    return names


@examples(40)
@given(st.sampled_from(sorted(PUZZLES)), st.randoms(use_true_random=False))
def test_an_order_that_can_run_reaches_the_goals_of_its_data(name: str, chance: object) -> None:
    """The orders are random: they come from 1F1B by exchanges of neighbours, as far as they can run."""
    puzzle = PUZZLES[name]
    orders = [list(order) for order in build("1f1b", puzzle.devices, puzzle.microbatches).orders]
    for _ in range(chance.randrange(12)):  # type: ignore[attr-defined]
        order = chance.choice(orders)  # type: ignore[attr-defined]
        place = chance.randrange(len(order) - 1)  # type: ignore[attr-defined]
        order[place : place + 2] = order[place : place + 2][::-1]
    text = "\n".join(" ".join(map(str, order)) for order in orders)
    judged = puzzle.judge(text)
    if judged.code in ("deadlock", "too-early"):
        with refusal(judged.code, kind=Deadlock):
            Schedule.parse(text)
        assert (judged.reached, judged.timeline) == (("complete",), None)
    else:
        assert list(judged.reached) == reached_by_hand(puzzle, Schedule.parse(text))
        assert judged.timeline is not None
        assert (judged.code == "solved") == (len(judged.reached) == len(puzzle.goals))


FAULTS = {  # of the puzzle with two devices: a text, the goals that it reaches, its code, and words of the sentence
    "": ((), "empty", "line"),
    "0F0 0G0": ((), "unknown-operation", "0G0"),
    "0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1F1 1F2 1B0 1B1": ((), "missing-backward", "stage 1"),
    "0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1": ((), "another-size", "2 microbatches"),
    "0F0 0B0 0F1 0B1 0F2 0B2": ((), "another-size", "1 device"),
    "0F0 0B0 0F1 0B1 0F2 0B2\n1F0 1B0 1F1 1B1 1F2 1B2\n2F0 2B0 2F1 2B1 2F2 2B2": ((), "another-size", "3 devices"),
    "0F0 0B0 0F1 0B1 0F2 0B2\n1F0 1B0 1F1 1B1 1F2 1B2\n2B0 2F0 2F1 2B1 2F2 2B2": ((), "too-early", "2B0"),
    "0F0 0B0 0F3 0B3\n1F0 1B0 1F3 1B3": ((), "another-size", "microbatch 3"),
    "1F0 1B0 1F1 1B1 1F2 1B2\n0F0 0B0 0F1 0B1 0F2 0B2": ((), "another-placement", "1F0"),
    "0F0 0I0 0W0\n1F0 1I0 1W0": ((), "split-backward", "0I0"),
    "0F0 (0F1;0B0) 0B1\n1F0 1B0 1F1 1B1": ((), "overlapped-pair", "0F1 and 0B0"),
    "0F0 0B0 0F1 0B1 0F2 0B2\n1F1 1B1 1F0 1B0 1F2 1B2": (("complete",), "deadlock", "device 0 stops"),
    "0B0 0F0 0F1 0B1 0F2 0B2\n1F0 1B0 1F1 1B1 1F2 1B2": (("complete",), "too-early", "0B0"),
    "0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1B0 1F1 1B1 1F2 1B2": (("complete", "runs"), "misses-memory", "device 0 holds 3", "0F2"),
    "0F0 0B0 0F1 0B1 0F2 0B2\n1F0 1B0 1F1 1B1 1F2 1B2": (("complete", "runs", "memory"), "misses-side-by-side", "180 ms", "0B1 to 0F2"),
    "0F0 0F1 0B0 0B1 0F2 0B2\n1F0 1B0 1F1 1B1 1F2 1B2": (("complete", "runs", "memory", "side-by-side"), "misses-optimum", "150 ms"),
    "device 0: 0F0 0F1 0B0 0F2 0B1 0B2\ndevice 1: 1F0 1B0 1F1 1B1 1F2 1B2": (
        ("complete", "runs", "memory", "side-by-side", "optimum"),
        "solved",
        "120 ms",
    ),
}


@in_turn("text", FAULTS)
def test_a_text_reaches_the_goals_that_it_should(text: str) -> None:
    reached, code, *words = FAULTS[text]
    judged = PUZZLES["two-devices"].judge(text)
    assert (judged.reached, judged.code) == (reached, code)
    assert all(word in judged.sentence for word in words), judged.sentence


def test_full_backwards_are_allowed_where_backwards_may_be_split() -> None:
    puzzle = PUZZLES["unequal-devices"]
    assert puzzle.judge(str(build("1f1b", 4, 8))).code == "misses-beats-zb-h1"
    mixed = str(build("zb-h1", 4, 8)).replace("3I7 ", "").replace("3W7", "3B7")
    assert puzzle.judge(mixed).reached[:3] == ("complete", "runs", "memory")


def test_every_device_without_room_is_named() -> None:
    judged = PUZZLES["unequal-devices"].judge(PUZZLES["unequal-devices"].start)
    assert [str(op) for op in judged.too_many] == ["0F4", "1F4", "2F4", "3F4"]


def test_only_text_is_judged() -> None:
    with refusal("not-text", "text"):
        PUZZLES["two-devices"].judge(120)  # type: ignore[arg-type]


def test_a_puzzle_does_not_change() -> None:
    with pytest.raises(AttributeError):
        PUZZLES["two-devices"].memory = 9  # type: ignore[misc]
    with pytest.raises(TypeError):
        PUZZLES["easy"] = PUZZLES["two-devices"]  # type: ignore[index]
    assert Standing((), "empty", "nothing") == Standing((), "empty", "nothing")
