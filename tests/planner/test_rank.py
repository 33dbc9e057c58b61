"""Test the ranking of schedules for given times: its order, its refusals, its table and its figure."""

import csv
import io
from typing import Any

import pytest
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from misuse import outcome, usual_or_junk
from profiles import examples

from hybridlab import REGISTRY, Costs, HybridLabError, Schedule, build, rank, simulate
from hybridlab.automatic import Ranking
from hybridlab.bound import lower_bound

COSTS = Costs(forward=[10, 12, 10, 11], backward=[20, 24, 21, 22], p2p=1)


@examples(40)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=4), st.integers(1, 6), st.none() | st.integers(2, 12).map(lambda each: each / 2))
def test_every_schedule_is_ranked_or_refused_and_the_best_comes_first(forward: list[int], microbatches: int, memory: float | None) -> None:
    costs = Costs(forward=forward, backward=[2 * each for each in forward], p2p=0.5)
    ranking = rank(costs, microbatches, memory=memory, seconds=0.01)
    assert {each.name for each in (*ranking, *ranking.refused)} >= set(REGISTRY)
    assert all(each.refusal for each in ranking.refused)
    makespans = [each.makespan for each in ranking]
    assert makespans == pytest.approx(sorted(makespans))
    assert ranking.best.makespan == pytest.approx(min(makespans))
    for each in ranking:
        timeline = simulate(each.schedule, costs)  # type: ignore[arg-type]
        assert (each.makespan, each.peak) == (timeline.makespan, timeline.peak_activations.max())
        assert each.bound <= each.makespan * (1 + 1e-9)
        assert memory is None or each.peak <= memory
        below = [bound for limit, bound in ranking.bounds if limit <= each.peak]
        above = [bound for limit, bound in ranking.bounds if limit >= each.peak]
        assert above[0] <= each.makespan * (1 + 1e-9)
        assert below == sorted(below, reverse=True)
    for each in ranking.refused:
        sizes = (len(forward), microbatches, each.chunks)
        assert REGISTRY[each.name].refusal(*sizes) or each.refusal.startswith("it holds ")


def test_the_made_ones_are_never_longer_than_those_with_as_many_chunks() -> None:
    ranking = rank(COSTS, 16, memory=6, seconds=0.1)
    for chunks in (1, 2):
        made = min(each.makespan for each in ranking if each.name.startswith("made for these times") and each.chunks == chunks)
        assert made <= min(each.makespan for each in ranking if each.chunks == chunks and each.copies == 1)


def test_refusals_say_why() -> None:
    why = {each.title: each.refusal for each in rank(COSTS, 6, memory=4, seconds=0).refused}
    assert why["gpipe"] == "it holds 6 activations on device 0, more than 4"
    assert why["interleaved, 2 chunks"] == "interleaved needs microbatches divisible by devices: 6 is not divisible by 4; try 4 or 8"
    links = Costs(forward=[1] * 4, backward=2, p2p_between=[1, 5, 1])
    why = {each.title: each.refusal for each in rank(links, 8, seconds=0).refused}
    assert set(why) == {"interleaved, 2 chunks", "looped-bfs, 2 chunks", "interleaved-zb, 2 chunks"}
    assert "device 3 to device 0, which are not neighbours" in why["interleaved, 2 chunks"]
    stages = Costs(forward=[1] * 4, backward=2, per="stage")
    why = {each.title: each.refusal for each in rank(stages, 8, seconds=0).refused}
    assert why["hanayo, 2 chunks"] == "it has 8 stages, but the times are for 4 stages"
    assert why["made for these times, 2 chunks"] == "2 chunks on each of 4 devices do not fit: the times are for 4 stages"


def test_own_schedules_and_chunks_are_ranked() -> None:
    own = Schedule.parse("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1", name="mine")
    costs = Costs(forward=[1, 2], backward=3)
    ranking = rank(costs, 2, schedules=["GPipe", ("interleaved", 3), own, build("1f1b", 3, 2)], seconds=0)
    assert {"gpipe", "interleaved, 3 chunks", "mine"} <= {each.title for each in ranking}
    assert [each.refusal for each in ranking.refused] == ["it has 3 devices and 2 microbatches, not 2 and 2"]
    mine = next(each for each in ranking if each.name == "mine")
    assert mine.makespan == simulate(own, costs).makespan
    assert rank(costs, 2, schedules="gpipe", seconds=0)[-1].name == "gpipe"
    three = next(each for each in ranking if each.chunks == 3)
    assert three.bound == lower_bound(build("interleaved", 2, 2, 3), costs, 2)


def test_the_table_prints_and_exports() -> None:
    ranking = rank(COSTS, 8, memory=4, seconds=0)
    printed = repr(ranking).splitlines()
    assert printed[0].split() == ["schedule", "makespan,", "ms", "over", "bound", "peak", "idle", "messages"]
    assert len({len(line) for line in printed[: 1 + len(ranking)]}) == 1
    rows = list(csv.DictReader(io.StringIO(ranking.to_csv())))
    assert [float(row["makespan"]) for row in rows] == [each.makespan for each in ranking]
    assert [row["schedule"] for row in ranking.to_rows()] == [each.name for each in ranking]
    assert "ms" not in repr(rank(Costs(forward=[1, 2], backward=2, unit=None), 2, seconds=0)).splitlines()[0]


def test_the_figure_has_every_schedule_and_the_bound() -> None:
    ranking = rank(COSTS, 8, memory=4, seconds=0)
    figure = ranking.plot(title="for my times")
    for each in ranking:
        assert each.title in figure.alt_text
    assert "The lower bound is" in figure.alt_text
    assert any(line.get_gid() == "bound" for axes in figure.axes for line in axes.lines)


@in_turn(
    "arguments, code, words",
    [
        ({"costs": Costs(forward=1, backward=2)}, "missing-argument", "devices=4"),
        ({"memory": 0.5}, "too-small", "at least 1 microbatch"),
        ({"schedules": ["1f1"]}, "unknown-name", "did you mean '1f1b'?"),
        ({"schedules": 3}, "not-a-list", "names, such as '1f1b'"),
        ({"schedules": [3]}, "wrong-type", "not 3"),
        ({"seconds": -1}, "negative", "seconds"),
        ({"microbatches": 0}, "too-small", "microbatches"),
    ],
)
def test_what_cannot_be_ranked_is_refused(arguments: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(HybridLabError) as refused:
        rank(**{"costs": COSTS, "microbatches": 4, "seconds": 0, **arguments})
    assert (refused.value.code, words in str(refused.value)) == (code, True), refused.value


@examples(60)
@given(
    costs=usual_or_junk([COSTS]),
    microbatches=usual_or_junk([1, 3]),
    memory=usual_or_junk([None, 1, 2.5]),
    schedules=usual_or_junk([None, ["1f1b"]]),
    devices=usual_or_junk([4]),
)
def test_junk(costs: Any, microbatches: Any, memory: Any, schedules: Any, devices: Any) -> None:
    ranking = outcome(rank, costs, microbatches, memory, schedules, devices=devices, seconds=0)
    assert ranking is None or isinstance(ranking, Ranking)
