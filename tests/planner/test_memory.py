"""Test memory in bytes, and that all functions with a ``memory`` take the same values in the same place."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from misuse import outcome, usual_or_junk
from profiles import examples

from hybridlab import Costs, Memory, build, rank, schedule_for, simulate
from hybridlab.automatic import Ranking, search
from hybridlab.bound import lower_bound, optimality_gap, optimum

SCHEDULE, COSTS = build("1f1b", 2, 4), Costs(forward=[1, 2], backward=[2, 3], p2p=1)
ASK: dict[str, Callable[[Any], Any]] = {
    "rank": lambda memory: [(each.title, each.makespan, each.bound) for each in rank(COSTS, 4, memory, ["1f1b", "gpipe"], seconds=0)],
    "schedule_for": lambda memory: schedule_for(COSTS, 4, memory, seconds=0),
    "lower_bound": lambda memory: lower_bound(SCHEDULE, COSTS, memory),
    "optimum": lambda memory: optimum(SCHEDULE, COSTS, memory),
    "optimality_gap": lambda memory: optimality_gap(SCHEDULE, COSTS, memory),
}


@pytest.fixture(autouse=True)
def few_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search without effort then takes less time."""
    monkeypatch.setattr(search, "FIRST_POLICIES", 60_000)


@in_turn("ask", [rank, schedule_for, lower_bound, optimum, optimality_gap])
def test_memory_is_the_third_argument_and_has_a_name_everywhere(ask: Callable[..., Any]) -> None:
    third = list(inspect.signature(ask).parameters.values())[2]
    assert (third.name, third.kind, third.default) == ("memory", inspect.Parameter.POSITIONAL_OR_KEYWORD, None)


@in_turn("name", ASK)
def test_equal_memories_give_equal_results(name: str) -> None:
    ask = ASK[name]
    for equal in (
        [3, [3, 3], np.array([3.0, 3.0]), 3.4, Memory("8GB", activation="2GB", weights="2GB")],
        [[2, 3], Memory(["4 GB", "6.1GB"], activation="2gb"), Memory([6e9, 8e9], activation="2000 MB", weights=["2GB", "2GB"])],
    ):
        first, *others = map(ask, equal)
        assert all(each == first for each in others)


@in_turn("name", ASK)
def test_what_no_memory_can_be_is_refused_with_the_same_code(name: str) -> None:
    for memory, code in (
        (float("nan"), "not-finite"),
        ([2, float("nan")], "not-finite"),
        (0.5, "too-small"),
        ([1, 2, 3], "wrong-shape"),
        ("80GB", "not-a-number"),
        (Memory(["8GB"] * 3, activation="2GB"), "wrong-shape"),
        (Memory("8GB", activation="2GB", weights="7GB"), "too-small"),
    ):
        with refusal(code, "memory"):
            ASK[name](memory)


@in_turn(
    "text, nbytes",
    [("80GB", 80e9), ("1.5 GiB", 1.5 * 2**30), ("512MiB", 2**29), ("3kb", 3000), (" 7 B ", 7), (".5TB", 5e11), ("2tib", 2**41), (12, 12)],
)
def test_amounts(text: Any, nbytes: float) -> None:
    assert Memory(text, activation=1) == Memory(nbytes, activation=1)
    assert Memory([text, 5], activation=1).total == (nbytes, 5)


@in_turn(
    "arguments, code, words",
    [
        ({"total": "80"}, "not-a-number", "a text such as '80GB', not '80'"),
        ({"total": "-1GB"}, "not-a-number", "'-1GB'"),
        ({"total": "80 Gb/s"}, "not-a-number", "'80 Gb/s'"),
        ({"total": "80 QB"}, "unknown-name", "unknown unit 'QB' in '80 QB': give B, kB, MB, GB"),
        ({"activation": 0}, "too-small", "activation must be above 0 bytes"),
        ({"activation": -1}, "negative", "activation"),
        ({"weights": float("inf")}, "not-finite", "weights"),
        ({"weights": "9" * 400 + "GB"}, "not-finite", "weights"),
        ({"total": [8, 9], "weights": [1, 2, 3]}, "wrong-shape", "the lengths are 2, 1 and 3"),
        ({"activation": [1, 2], "weights": [1, 2, 3]}, "wrong-shape", "for the same stages"),
        ({"total": [[8, 9]]}, "wrong-shape", "one amount, or a list of amounts"),
        ({"total": []}, "empty", "total"),
        ({"total": None}, "not-a-number", "total"),
    ],
)
def test_amounts_that_cannot_be_are_refused(arguments: dict[str, Any], code: str, words: str) -> None:
    with refusal(code, words):
        Memory(**{"total": 10, "activation": 1, **arguments})


def test_a_fraction_of_an_activation_counts_only_where_a_part_can_use_it() -> None:
    memory = Memory("9GB", activation="2GB", weights="4GB")  # 2.5 microbatches
    assert lower_bound(SCHEDULE, COSTS, memory) == lower_bound(SCHEDULE, COSTS, 2)
    folded = build("hanayo", 2, 4, 2)
    assert lower_bound(folded, COSTS, memory) == lower_bound(folded, COSTS, 2.5)
    assert Memory(0.3, activation=0.1).microbatches(SCHEDULE).max() < 3, "rounding takes nothing away: three activations of 0.1 fit in 0.3"
    assert lower_bound(SCHEDULE, COSTS, Memory(0.3, activation=0.1)) == lower_bound(SCHEDULE, COSTS, 3)
    assert schedule_for(COSTS, 4, Memory(0.3, activation=0.1), seconds=0) == schedule_for(COSTS, 4, 3, seconds=0)


def test_two_copies_of_the_weights_leave_less_room() -> None:
    memory, chimera, costs = Memory(100, activation=10, weights=30), build("chimera", 4, 8), Costs(forward=1, backward=2)
    assert lower_bound(chimera, costs, memory) == lower_bound(chimera, costs, 4)
    assert lower_bound(build("1f1b", 4, 8), costs, memory) == lower_bound(build("1f1b", 4, 8), costs, 7)
    with refusal("does-not-fit", "a gap is for a schedule that fits", "it holds 4 activations on device 0", "more than 1 beside 2 copies"):
        optimality_gap(chimera, costs, Memory(70, activation=10, weights=30))


@in_turn(
    "name, stages",
    [("1f1b", 4), ("chimera", 4), ("dualpipe", 4), ("zb-v", 8), ("dualpipe-v", 8), ("interleaved", 8), ("hanayo", 8)],
)
def test_a_device_holds_the_weights_of_the_stages_that_it_runs(name: str, stages: int) -> None:
    schedule = build(name, 4, 8)
    weights, activations = [2.0**stage for stage in range(stages)], [1.0 + stage for stage in range(stages)]
    runs = [sorted({op.stage for op in order}) for order in schedule.orders]  # stage d and stage 3 - d, in two copies of 4 stages
    held, kept = Memory(1, activation=activations, weights=weights).of_devices(schedule)
    assert held.tolist() == [sum(weights[stage] for stage in each) for each in runs]
    assert kept.tolist() == [schedule.chunks * max(activations[stage] for stage in each) for each in runs]
    alike = Memory(1, activation=[3] * 4, weights=[5] * 4).of_devices(schedule)
    assert [each.tolist() for each in alike] == [[5 * schedule.copies] * 4, [3] * 4], "alike amounts count as one"
    with refusal("does-not-fit", f"it has {stages} stages, but the memory lists weights for 12 stages"):
        Memory(1, activation=1, weights=range(12)).of_devices(schedule)


def test_the_search_takes_the_placement_that_has_room() -> None:
    memory = Memory(16, activation=1, weights=[10, 3, 2, 11])  # device 0 of a V holds 21, and the other way round each holds 12 or 14
    made = schedule_for(Costs(forward=[1, 1], backward=2), 4, memory, chunks=2, seconds=0)
    assert made.device_of == (0, 1, 0, 1)
    assert (simulate(made, Costs(forward=1, backward=2)).peak_activations <= [4, 2]).all()


def test_a_gap_is_to_the_shortest_order_within_the_memory() -> None:
    costs = Costs(forward=1, backward=2)
    alone, more = (optimality_gap(build("hanayo", 2, 4), costs, memory, seconds=10) for memory in (None, 4))
    assert alone.optimum == optimum(build("hanayo", 2, 4), costs).makespan
    assert more.optimum == optimum(build("hanayo", 2, 4), costs, 4).makespan
    assert more.bound <= alone.bound


def test_a_schedule_within_bytes_holds_no_more_bytes() -> None:
    memory = Memory(["6GB", "5GB", "4GB"], activation=["1GB", "0.5GB", "1.5GB"], weights="1GB")
    made = schedule_for(Costs(forward=[3, 4, 5], backward=9, p2p=1), 12, memory, seconds=0.1)
    held = simulate(made, Costs(forward=1, backward=2)).peak_activations * memory.activation + memory.weights
    assert (held <= memory.total).all()


@examples(60)
@given(total=usual_or_junk([8, "8GB", [8, 8]]), activation=usual_or_junk([1, "1GB"]), weights=usual_or_junk([0, 1, "2GB"]))
def test_junk(total: Any, activation: Any, weights: Any) -> None:
    memory = outcome(Memory, total, activation=activation, weights=weights)
    if memory is not None:
        assert isinstance(memory, Memory)
        assert hash(memory) == hash(Memory(memory.total, activation=memory.activation, weights=memory.weights))
        ranking = outcome(rank, COSTS, 2, memory, "1f1b", seconds=0)
        assert ranking is None or isinstance(ranking, Ranking)


def test_one_default_of_the_effort() -> None:
    defaults = {inspect.signature(ask).parameters["seconds"].default for ask in (rank, schedule_for, optimum)}
    assert defaults == {10.0}
