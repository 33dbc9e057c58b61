"""Test that the ring stepper agrees with simple reasoning about a ring.

It must also refuse bad values, and print the same text in every run.
"""

import contextlib
import json
import re
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, refused_and_unchanged
from profiles import examples

from hybridlab import HybridLabError
from hybridlab.collectives import Hop, ring_all_reduce
from hybridlab.course import published
from hybridlab.widgets import RingStepper
from hybridlab.widgets.ring_stepper import MOST_RANKS, ranks_in_sum

sizes = st.integers(2, MOST_RANKS)


def correct(values: Any) -> Any:
    return ring_all_reduce(values, average=False, record=True).hops


def as_published(values: Any) -> Any:
    return published.published_ring(values, "FP32").hops


def in_int8(values: Any) -> Any:
    return published.published_ring(values, "INT8").hops


RINGS = {"correct": correct, "published": as_published}


def states(ring: Any, ranks: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = RingStepper({"one": ring}, ranks).data["runs"][str(ranks)]["rings"][0]
    return found


def summed(ranks: int, rank: int, chunk: int, hops: int) -> set[int]:
    """Return the ranks whose numbers are in a chunk on a rank after some hops of a reduce-scatter.

    They are all ranks that the chunk passed on its way to this rank.
    """
    way = (rank - chunk) % ranks
    return {(chunk + place) % ranks for place in range(way + 1)} if way <= hops else {rank}


def gathered(ranks: int, rank: int, chunk: int, hops: int, begins: int, brings: set[int]) -> set[int]:
    """Return the ranks in the chunk after some hops of an all-gather.

    In this all-gather, rank ``begins`` sends a sum over the ranks ``brings``.
    """
    reached = hops > 0 and 0 < (rank - begins) % ranks <= hops
    return brings if reached else summed(ranks, rank, chunk, ranks - 1)


@given(sizes, st.data())
def test_the_correct_ring_holds_what_a_chunk_has_passed_on_its_way(ranks: int, data: Any) -> None:
    step = data.draw(st.integers(0, 2 * (ranks - 1)))
    held = states(correct, ranks)[step]
    for rank in range(ranks):
        for chunk in range(ranks):
            owner = (chunk - 1) % ranks
            late = gathered(ranks, rank, chunk, step - ranks + 1, owner, set(range(ranks)))
            who = summed(ranks, rank, chunk, step) if step < ranks else late
            assert held["parts"][rank][chunk] == [int(each in who) for each in range(ranks)]
            assert held["values"][rank][chunk] == sum(2.0**each for each in who)


@in_turn("ring, ranks", product((as_published, in_int8), range(2, MOST_RANKS + 1)))
def test_the_published_ring_writes_each_rank_s_own_numbers_over_the_sums(ring: Any, ranks: int) -> None:
    found = states(ring, ranks)
    for step in range(ranks, 2 * ranks - 1):
        for rank in range(ranks):
            for chunk in range(ranks):
                who = gathered(ranks, rank, chunk, step - ranks + 1, chunk, {chunk})
                assert found[step]["parts"][rank][chunk] == [int(each in who) for each in range(ranks)]
    assert [state["whole"] for state in found] == [0] * (ranks - 1) + [ranks] * (ranks - 1) + [0]
    lost = np.argwhere(np.array(found[-1]["marks"]) == "lost").tolist()
    assert lost == [[rank, (rank + 1) % ranks] for rank in range(ranks)], "the last hop overwrites every sum on the rank that made it"


@given(sizes)
def test_differences_are_those_to_the_mean_by_numpy(ranks: int) -> None:
    powers = 2.0 ** np.arange(ranks)
    right, wrong = states(correct, ranks), states(as_published, ranks)
    assert right[-1]["error"] == 0
    assert right[-1]["whole"] == ranks**2
    assert wrong[-1]["error"] == pytest.approx(np.abs(powers / ranks - powers.mean()).max(), abs=1e-6)
    for state in (*right, *wrong):
        off = np.abs(np.array(state["values"]) / ranks - powers.mean()).max()
        assert state["error"] == pytest.approx(off, abs=1e-6)


def test_the_sentences_name_sender_chunk_and_receiver() -> None:
    right, wrong = states(correct, 4), states(as_published, 4)
    assert right[4]["sent"].startswith("Rank 0 sends chunk 1 to rank 1, rank 1 sends chunk 2 to rank 2")
    assert wrong[4]["sent"].startswith("Rank 0 sends chunk 0 to rank 1")
    assert right[1]["told"] == "The receiver adds."
    assert "Whole from now on: chunk 1 on rank 0" in right[3]["told"]
    assert "But 4 of the 4 chunks sent are no whole sums: chunk 0 of rank 0 holds rank 0 alone." in wrong[4]["told"]
    assert "no whole sums" not in " ".join(state["told"] for state in right)
    assert "Whole sums that are overwritten: chunk 1 on rank 0" in wrong[-1]["told"]
    assert ranks_in_sum(np.array([1, 3, 0])) == "ranks 0 and 1 3 times"


def test_a_ring_that_was_mended_reads_like_the_correct_one() -> None:
    def mended(values: Any) -> Any:
        return published.published_ring(values, "FP32", gather_from=1).hops

    for ranks in range(2, MOST_RANKS + 1):
        assert states(mended, ranks) == states(correct, ranks)


def test_a_number_that_is_summed_twice_is_told() -> None:
    def twice(values: Any) -> Any:
        hops = correct(values)
        return [*hops, replace(hops[-1], held=hops[-1].held * 2)]

    last = states(twice, 3)[-1]
    assert last["parts"][0][0] == [2, 2, 2]
    assert last["marks"][0][0] == "lost"


def test_a_part_of_a_sum_that_is_sent_beside_a_whole_one_is_told_as_it_was_sent() -> None:
    def swapping(values: Any) -> Any:
        """Rank 1 adds chunk 0 of rank 0, so the sum on rank 1 is complete. Then the two ranks exchange their chunks 0."""
        values = np.array(values)
        half = values.shape[1] // 2
        added = values.copy()
        added[1, :half] += values[0, :half]
        swapped = added.copy()
        swapped[:, :half] = added[::-1, :half]
        one, both = np.array([0]), np.array([0, 1])
        return [
            Hop("reduce-scatter", 0, one, one + 1, one, one + 4, added),
            Hop("all-gather", 0, both, both[::-1], both * 0, both * 0 + 4, swapped),
        ]

    told = states(swapping, 2)[2]["told"]
    assert "But 1 of the 2 chunks sent are no whole sums: chunk 0 of rank 0 holds rank 0 alone." in told


def test_a_ring_that_ends_early_stays_as_it_is() -> None:
    stepper = RingStepper({"whole": correct, "short": lambda values: correct(values)[:-1]}, 4, show={"step": 6})
    assert stepper.last == 6
    assert stepper.states["short"]["sent"] == "This ring has ended."
    assert (stepper.states["whole"]["whole"], stepper.states["short"]["whole"]) == (16, 12)


def test_the_data_are_small_json_and_fractions_would_be_seen() -> None:
    text = json.dumps(RingStepper(RINGS, range(2, MOST_RANKS + 1)).data, allow_nan=False)
    assert len(text) < 400_000
    with refusal("not-a-sum", "means"):
        RingStepper({"means": lambda values: ring_all_reduce(values, record=True).hops}, MOST_RANKS)


# ---- the setting ----


def small(**changes: Any) -> RingStepper:
    arguments: dict[str, Any] = {"rings": RINGS, "ranks": (2, 4)} | changes
    return RingStepper(**arguments)


def test_a_view_begins_where_it_is_told_and_fewer_ranks_have_fewer_steps() -> None:
    view = small(show={"ranks": 4, "step": 5})
    assert (view.ranks, view.step, view.last) == (4, 5, 6)
    view.ranks = 2
    assert (view.step, view.last) == (2, 2)


def test_observers_follow_the_page() -> None:
    view = small()
    seen: list[tuple[str, int]] = []
    view.observe(lambda change: seen.append((change["name"], change["new"])), list(RingStepper.SETTING))
    view.set_state({"step": 6, "ranks": 4})  # as a message from the page does, in any order
    assert sorted(seen) == [("ranks", 4), ("step", 6)]


@in_turn(
    "trait, value, code, word",
    [
        ("ranks", 3, "out-of-range", "3 ranks: choose from 2, 4"),
        ("ranks", "four", "not-a-whole-number", "'four'"),
        ("step", 3, "out-of-range", "no step 3: the last one of 2 ranks is 2"),
        ("step", -1, "too-small", "step"),
        ("step", True, "not-a-whole-number", "step"),
    ],
)
def test_what_the_data_do_not_have_is_refused_and_changes_nothing(trait: str, value: Any, code: str, word: str) -> None:
    refused_and_unchanged(small, trait, value, code, word)


def hop(**changes: Any) -> SimpleNamespace:
    parts = {"phase": "p", "sender": [0, 1], "receiver": [1, 0], "chunk": [0, 1], "held": np.zeros((2, 2))} | changes
    return SimpleNamespace(**parts)


@in_turn(
    "arguments, code, word",
    [
        ({"rings": {}}, "wrong-type", "1 to 4 functions by name"),
        ({"rings": correct}, "wrong-type", "1 to 4 functions by name"),
        ({"rings": {"": correct}}, "malformed-name", "not ''"),
        ({"rings": {3: correct}}, "malformed-name", "not 3"),
        ({"rings": {"a": 3}}, "wrong-type", "ring 'a' must be a function"),
        ({"rings": {"a": lambda values: 3}}, "not-a-list", "ring 'a' must return hops or (averages, messages), not 3"),
        ({"rings": {"a": lambda values: []}}, "wrong-length", "1 to 59 hops for 2 ranks, not 0"),
        ({"rings": {"a": lambda values: [hop(held=values)] * (1 + (values.shape[1] > 2))}}, "not-a-ring", "2 hops with some numbers and 1"),
        ({"rings": {"a": lambda values: [3]}}, "not-a-hop", "no phase"),
        ({"rings": {"a": lambda values: ring_all_reduce(values).hops}}, "not-a-hop", "no held: pass the hops of a run with record=True"),
        ({"rings": {"a": lambda values: [hop()]}}, "wrong-shape", "shape (2, 4)"),
        ({"rings": {"a": lambda values: [hop(held=values * np.nan)]}}, "not-finite", "ring 'a'"),
        ({"rings": {"a": lambda values: [hop(held=values, chunk=[0, 2])]}}, "out-of-range", "from 0 to 1"),
        ({"rings": {"a": lambda values: [hop(held=values, chunk=[0])]}}, "wrong-length", "a sender, a receiver and a chunk"),
        ({"ranks": 1}, "too-small", "at least 2, not 1"),
        ({"ranks": 9}, "too-large", "at most 8, not 9"),
        ({"ranks": ()}, "empty", "ranks"),
        ({"show": 3}, "wrong-type", "show"),
        ({"show": {"steps": 2}}, "unknown-name", "'step'"),
        ({"show": {"step": 7}}, "out-of-range", "no step 7"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], code: str, word: str) -> None:
    with refusal(code, word):
        small(**arguments)


@examples(60)
@given(st.dictionaries(st.sampled_from(["rings", "ranks", "show"]), junk, max_size=3))
def test_junk_is_refused_or_drawn(arguments: dict[str, Any]) -> None:
    with contextlib.suppress(HybridLabError):
        json.dumps(small(**arguments).data, allow_nan=False)


# ---- text and script ----


def test_the_text_changes_with_the_rings_and_with_the_step() -> None:
    text = repr(small(rings=None, show={"step": 1}))
    assert re.fullmatch(r"<RingStepper: correct; 2 or 4 ranks, data [0-9a-f]{8}; 2 ranks, step 1 of 2>", text)
    assert repr(small()) != repr(small(rings={"correct": correct, "published": correct}))


def test_the_script_has_no_rule_of_the_ring() -> None:
    remainders = re.findall(r"\S*[\w)\]] ?% ?\S*", str(RingStepper._esm).replace("100%", ""))
    assert remainders == ["(part % each"], "the column of a slot in its box, no rank of the ring"


def test_every_rank_has_a_colour_and_marks_differ_without_it() -> None:
    style = str(RingStepper._css)
    assert len(set(re.findall(r"\.in\.of(\d) ", style))) == MOST_RANKS
    assert len(set(re.findall(r"\.in\.of\d \{\s*fill: (#\w+)", style))) == MOST_RANKS
    assert "stroke-dasharray" in style.split(":is(.box, .row).lost")[1].split("}")[0]
