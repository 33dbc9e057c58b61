"""Test the ranking of schedules for given times: its order, its refusals, its table and its figure."""

import csv
import io
import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from misuse import outcome, usual_or_junk
from profiles import examples

from hybridlab import REGISTRY, Costs, HybridLabError, Memory, Schedule, build, formulas, rank, simulate
from hybridlab.automatic import Ranking, search
from hybridlab.automatic import ranking as ranking_module
from hybridlab.bound import lower_bound

COSTS = Costs(forward=[10, 12, 10, 11], backward=[20, 24, 21, 22], p2p=1)


@pytest.fixture(autouse=True)
def few_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ranking without effort then takes less time. Tests of the search itself are in another file."""
    monkeypatch.setattr(search, "FIRST_POLICIES", 60_000)


@examples(40)
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=4),
    st.integers(1, 6),
    st.none() | st.integers(2, 12).map(lambda each: each / 2),
    st.sampled_from(["free", "ordered"]),
)
def test_every_schedule_is_ranked_or_refused_and_the_best_comes_first(
    forward: list[int], microbatches: int, memory: float | None, messages: str
) -> None:
    costs = Costs(forward=forward, backward=[2 * each for each in forward], p2p=0.5)
    ranking = rank(costs, microbatches, memory=memory, messages=messages, seconds=0.01)
    assert {each.name for each in (*ranking, *ranking.refused)} >= set(REGISTRY)
    assert all(each.refusal for each in ranking.refused)
    makespans = [each.makespan for each in ranking]
    assert makespans == pytest.approx(sorted(makespans))
    assert ranking.best.makespan == pytest.approx(min(makespans))
    for each in ranking:
        timeline = simulate(each.schedule, costs, messages=messages)  # type: ignore[arg-type]
        assert (each.makespan, each.peak) == (timeline.makespan, timeline.peak_activations.max())
        assert each.bound <= each.makespan * (1 + 1e-9)
        assert memory is None or each.peak <= memory
        below = [bound for limit, bound in ranking.bounds if limit <= each.peak]
        above = [bound for limit, bound in ranking.bounds if limit >= each.peak]
        assert above[0] <= each.makespan * (1 + 1e-9)
        assert below == sorted(below, reverse=True)
    for each in ranking.refused:
        sizes = (len(forward), microbatches, each.chunks)
        assert each.schedule is None or simulate(each.schedule, costs).peak_activations.max() > (memory or 0)
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
    assert three.bound == pytest.approx(lower_bound(build("interleaved", 2, 2, 3), costs, 2))


def test_the_table_prints_and_exports() -> None:
    ranking = rank(COSTS, 8, memory=4, seconds=0)
    printed = repr(ranking).splitlines()
    assert printed[0].split() == ["schedule", "makespan,", "ms", "over", "bound", "copies", "peak", "idle", "messages"]
    assert len({len(line) for line in printed[: 1 + len(ranking)]}) == 1
    rows = list(csv.DictReader(io.StringIO(ranking.to_csv())))
    assert [float(row["makespan"]) for row in rows] == [each.makespan for each in ranking]
    assert [row["schedule"] for row in ranking.to_rows()] == [each.name for each in ranking]
    assert "ms" not in repr(rank(Costs(forward=[1, 2], backward=2, unit=None), 2, seconds=0)).splitlines()[0]


def test_the_figure_has_every_name_and_the_bound_and_marks_two_copies() -> None:
    ranking = rank(COSTS, 8, memory=6, seconds=0)
    figure = ranking.plot(title="for my times")
    assert all(each.name in figure.alt_text for each in ranking)
    assert {each.name for each in ranking if each.copies == 2} == {"chimera", "dualpipe"}
    assert "chimera, 2 copies: " in figure.alt_text
    assert "made for these times: " in figure.alt_text
    assert sum(word in figure.alt_text for word in ("interleaved-zb, 2 chunks: ", "interleaved-zb, 3 chunks: ")) == 1, "the shortest one"
    assert "The lower bound is" in figure.alt_text
    assert any(line.get_gid() == "bound" for axes in figure.axes for line in axes.lines)


def test_all_numbers_of_chunks_are_timed_and_agree_with_the_closed_form() -> None:
    ranking = rank(Costs(forward=10, backward=20), 8, devices=4, most_chunks=6, seconds=0)
    makespans = {each.chunks: each.makespan for each in ranking if each.name == "interleaved"}
    assert makespans == {chunks: pytest.approx(formulas.interleaved_makespan(4, 8, chunks, 10, 20)) for chunks in range(2, 7)}
    assert {each.chunks for each in ranking if each.name == "hanayo"} == {2, 4, 6}
    assert {each.chunks for each in ranking if each.name == "1f1b"} == {1}
    plain = rank(Costs(forward=10, backward=20), 8, devices=4, most_chunks=1, seconds=0)
    assert {each.chunks for each in plain} == {1}, "a device with one layer has no second chunk"
    assert {each.refusal for each in plain.refused} == {"the ranking is for at most 1 chunk on a device"}
    assert "zb-v, v-half, v-min and dualpipe-v with 2 chunks are left out: the ranking is for at most 1 chunk" in repr(plain), "one line"
    tight = repr(rank(COSTS, 8, 4, ["zb-h2", "eager-1f1b", *(("interleaved", chunks) for chunks in (2, 3))], seconds=0))
    assert "zb-h2 and eager-1f1b are left out: each holds 7 activations on device 0, more than 4" in tight
    assert "interleaved with 2 and 3 chunks is left out: with 2 chunks it holds 5.5 activations on device 0, more than 4" in tight
    of_stages = rank(Costs(forward=[1] * 12, backward=2, per="stage"), 8, devices=4, seconds=0)
    assert {each.title for each in of_stages} == {"interleaved, 3 chunks", "looped-bfs, 3 chunks", "interleaved-zb, 3 chunks"}


def test_without_effort_further_numbers_of_chunks_are_left_out_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking_module, "FIRST_ENTRIES", 0)
    ranking = rank(COSTS, 8, seconds=0)
    assert "hanayo with 4, 6 and 8 chunks is left out: the effort did not suffice: give more seconds" in repr(ranking)
    assert {each.name for each in ranking} >= {"gpipe", "hanayo"}
    monkeypatch.setattr(ranking_module, "START", 0)
    ranking = rank(COSTS, 8, seconds=0)
    assert all(each.summary for each in ranking), "only those of the searches are left"
    assert "gpipe, 1f1b, eager-1f1b, zb-h1, zb-h2, chimera and dualpipe are left out: the effort did not suffice: give more" in repr(
        ranking
    )


def test_the_curve_of_bounds_is_computed_when_it_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    ranking = rank(COSTS, 8, seconds=0)
    monkeypatch.setattr(ranking_module, "bounds_at", None)
    assert repr(ranking)
    assert ranking.to_csv()
    with pytest.raises(TypeError):
        _ = ranking.bounds


def test_bytes_leave_less_room_for_two_copies_of_the_weights() -> None:
    memory = Memory("80GB", activation="10GB", weights="20GB")  # room for 6 microbatches, and for 4 beside two copies
    ranking = rank(COSTS, 16, memory, seconds=0)
    peaks = {copies: max(each.peak for each in ranking if each.copies == copies) for copies in (1, 2)}
    assert peaks == {1: 6, 2: 4}
    why = {each.name: each.refusal for each in ranking.refused}
    assert why["dualpipe"] == "it holds 5 activations on device 0, more than 4 beside 2 copies of the weights"
    plain = rank(COSTS, 16, 6, seconds=0)
    assert {each.title: each.makespan for each in plain if each.copies == 1} == {
        each.title: each.makespan for each in ranking if each.copies == 1
    }
    full = rank(COSTS, 16, Memory(80, activation=10, weights=40), ["chimera", "1f1b"], seconds=0)
    assert [(each.name, each.refusal) for each in full.refused] == [
        ("chimera", "memory must hold at least 1 microbatch on every device, and with 2 copies of the weights it holds 0")
    ]


def test_a_memory_that_is_no_limit_is_said() -> None:
    said = "the memory is no limit: each device has room for 80 microbatches, and a step has 8"
    assert rank(COSTS, 8, 80, "1f1b", seconds=0).notes[0] == said
    assert repr(rank(COSTS, 8, [80, 90, 100, 80], "1f1b", seconds=0)).count(said) == 1
    assert said not in repr(rank(COSTS, 8, [80, 7, 80, 80], "1f1b", seconds=0))


@in_turn(
    "costs, words",
    [
        (Costs(forward=10, backward=20, p2p=1), ""),
        (Costs(forward=[10, 10], backward=20, p2p_between=[1]), ""),
        (Costs(forward=[10, 10], backward=20, p2p=0), "messages take no time here, so many chunks look free: give a p2p time"),
        (Costs(forward=10, backward=20, weight_share=[0.4, 0.5], p2p=1), "the times are of devices. If your stages differ, "),
        (Costs(forward=[1, 2], backward=3, p2p=1, per="microbatch"), "the microbatches take unlike times, but in peak and in memory "),
        (Costs(forward=[[1, 2], [1, 2]], backward=3, p2p=1, per=("device", "microbatch")), "the microbatches take unlike times"),
        (Costs(forward=[[1], [2]], backward=3, p2p=1, per=("device", "microbatch")), "the times are of devices"),
        (Costs(forward=[1, 2], backward=3, per="stage"), ""),
    ],
)
def test_what_the_times_do_not_say_is_said(costs: Costs, words: str) -> None:
    notes = rank(costs, 2, devices=2, seconds=0).notes
    assert len(notes) == bool(words)
    assert "".join(notes).startswith(words)


def test_without_split_backwards_nothing_is_split() -> None:
    ranking = rank(COSTS, 8, memory=6, split=False, seconds=0.1)
    assert not any(op.kind == "W" for each in ranking for op in each.schedule.ops)
    splits = {each.name for each in ranking.refused if "it splits backwards" in each.refusal}
    assert splits == {"zb-h1", "zb-h2", "interleaved-zb", "zb-v", "v-half", "v-min", "dualpipe-v", "dualpipe"}
    assert [each.chunks for each in ranking if each.summary] == [2, 1]
    assert min(bound for _, bound in ranking.bounds) <= ranking.best.makespan
    assert ranking.best.makespan > rank(COSTS, 8, memory=6, seconds=0.1).best.makespan


def test_no_schedule_is_below_its_bound_because_of_rounding() -> None:
    ranking = rank(Costs(forward=10, backward=20), 4, devices=2, most_chunks=3, seconds=0)
    assert "-0.0%" not in repr(ranking)
    assert min(row["over_bound"] for row in ranking.to_rows()) == 0


def test_weights_belong_to_stages_so_a_v_and_two_copies_hold_others() -> None:
    """The first and the last stage of a V meet on device 0 (sail-sg/zero-bubble-pipeline-parallelism, issue 36)."""
    weights = ["6.8GB", "4.7GB", "4.7GB", "7.1GB"]
    ranking = rank(Costs(forward=[10] * 4, backward=20, p2p=1), 8, Memory("10GB", activation="0.5GB", weights=weights), seconds=0)
    assert {(each.chunks, each.copies) for each in ranking} == {(1, 1)}
    why = {each.name: each.refusal for each in ranking.refused}
    assert why["zb-v"] == "it has 8 stages, but the memory lists weights for 4 stages: list 8, or give one amount"
    assert why["dualpipe"].endswith("with 2 copies of the weights it holds 0")
    halves = [3.4, 3.4, 2.3, 2.4, 2.3, 2.4, 3.5, 3.6]  # the same weights in 8 stages
    for total, fits in ((9, True), (7, False)):
        memory = Memory(total, activation=0.5, weights=halves)
        ranking = rank(Costs(forward=[10] * 4, backward=20, p2p=1), 8, memory, ["zb-v"], seconds=0)
        assert ("zb-v" in {each.name for each in ranking}) == fits
    two = rank(Costs(forward=[10, 10], backward=20), 8, Memory("16GB", activation="1GB", weights=["10GB", "2GB"]), "chimera", seconds=0)
    assert "chimera" in {each.name for each in two}


def test_a_part_that_is_freed_early_is_named_where_it_matters_and_counted() -> None:
    costs = Costs(forward=[10] * 4, backward=20, weight_share=0.6, p2p=5)
    (note,) = rank(costs, 12, 3, "1f1b", seconds=0).notes
    assert note.startswith(
        "if your engine frees a part of an activation early, say so: with held_after=0.5 a schedule with 2 chunks takes "
    )
    freed = rank(costs, 12, 3, held_after=0.5, seconds=0)
    made = {each.chunks: each.makespan for each in freed if each.summary}
    assert f" takes {made[2]:.6g} instead of " in note
    assert freed.notes == ()
    assert all(each.bound <= each.makespan * (1 + 1e-9) and each.peak <= 3 + 1e-9 for each in freed)
    own = Schedule.parse("0F0 0I0 0F1 0I1 0W0 0W1", name="mine")
    peaks = [
        [
            each.peak
            for each in rank(Costs(forward=1, backward=2), 2, 1.5, own, devices=1, held_after=held, seconds=0)
            if each.name == "mine"
        ]
        for held in (1, 0.25)
    ]
    assert peaks == [[], [1.25]], "it fits only if weight gradients hold a part of an activation"
    below = dict(freed.bounds)
    assert below[1.0] <= dict(rank(costs, 12, 3, "1f1b", seconds=0).bounds)[1.0]


def test_where_the_published_rates_need_it_a_part_that_is_freed_early_is_named() -> None:
    """ZB-2p with the times of 6.2B (arXiv 2401.10241, Tables 5 and 9): 0.29 % of the device's time, and 6 % with whole activations."""
    costs = Costs(forward=[29.718] * 8, backward=49.371, weight_share=19.927 / 49.371, p2p=0.527)
    (note,) = rank(costs, 24, 16, "zb-h2", seconds=0).notes
    spans = [float(number) for number in re.findall(r"a device with 1 chunk needs at most ([\d.]+) instead of ([\d.]+)", note)[0]]
    work = 24 * (29.718 + 49.371)
    assert [round(1 - work / span, 3) for span in spans] == [0.003, 0.061]


def interrupted_once(of: Callable[..., Any], after: int) -> Callable[..., Any]:
    """Return a function that raises one KeyboardInterrupt at call number ``after``, and otherwise calls ``of``."""
    calls = count()

    def stopped(*arguments: Any, **named: Any) -> Any:
        if next(calls) == after:
            raise KeyboardInterrupt
        return of(*arguments, **named)

    return stopped


@in_turn("module, name, after", [(search, "greedy", 0), (search, "candidate_of", 30), (ranking_module, "simulate", 3)])
def test_one_interrupt_ends_the_ranking_and_it_is_said(module: Any, name: str, after: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, interrupted_once(getattr(module, name), after))
        ranking = rank(COSTS, 8, memory=4, seconds=1)
    assert ranking.interrupted
    assert "an interrupt ended the ranking: this is what was known" in repr(ranking)
    searched = [each.chunks for each in ranking if each.summary]
    if module is search:
        assert searched == [1]
        assert "made for these times with 2 chunks is left out: an interrupt ended the ranking before this search" in repr(ranking)
    else:
        assert searched == [2, 1]
        assert len(ranking) == 5, "three of the registry, and two of the searches"


def test_a_second_interrupt_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((search, "greedy"), (ranking_module, "simulate")):
        monkeypatch.setattr(module, name, interrupted_once(getattr(module, name), 0))
    with pytest.raises(KeyboardInterrupt):
        rank(COSTS, 8, memory=4, seconds=1)


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
        ({"most_chunks": 0}, "too-small", "most_chunks"),
        ({"held_after": 2}, "out-of-range", "from 0 to 1, not 2"),
        ({"memory": "80GB"}, "not-a-number", "Memory('80GB', activation='1.9GB')"),
        ({"memory": Memory("80GB", activation="1GB", weights="80GB")}, "too-small", "beside the weights it holds 0"),
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
