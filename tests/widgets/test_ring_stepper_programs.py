"""Test that the ring stepper shows rings that are programs: what it finds in their messages, and what it refuses."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal

from hybridlab.collectives import ring_all_reduce
from hybridlab.course.parts import Part
from hybridlab.widgets import RingStepper
from hybridlab.widgets.ring_stepper import ring_data

Program = Callable[[Any], Any]


def program(divides: str = "end", to: int = 1, first: int = 0, gather: int | None = None, missing: int = 0, **faults: Any) -> Program:
    """Return a ring as a student writes it. It divides at the "end", in the "middle" or at the "start".

    Rank r sends to rank r + to, and begins the reduce-scatter with chunk r + first, the all-gather with chunk r + gather.

    Parameters
    ----------
    missing : int
        How many steps the reduce-scatter is too short.
    faults : dict
        ``adds``: the receivers add in the all-gather. ``twice``: the first step is done twice. ``silent``: a rank that sends nothing.
    """

    def ring(values: Any) -> Any:
        ranks = len(values)
        held = [np.array_split(row / (ranks if divides == "start" else 1), ranks) for row in values]
        scatter = [(first - to * step, True) for step in range(ranks - 1 - missing)]
        later = [((first + to if gather is None else gather) - to * step, False) for step in range(ranks - 1)]
        messages = []
        for step, (start, adds) in enumerate([*scatter[: bool(faults.get("twice"))], *scatter, *later]):
            if divides == "middle" and step == len(scatter):
                held = [[chunk / ranks for chunk in row] for row in held]
            sent = [[] if rank == faults.get("silent") else held[rank][(rank + start) % ranks].copy() for rank in range(ranks)]
            for rank, message in enumerate(sent):
                there, chunk = held[(rank + to) % ranks], (rank + start) % ranks
                if len(message):
                    there[chunk] = there[chunk] + message if adds or faults.get("adds") else message
            messages.append(sent)
        return np.array([np.concatenate(row) for row in held]) / (ranks if divides == "end" else 1), messages

    return ring


def changed(change: Callable[[Any, Any], Any]) -> Program:
    """Return a right ring whose averages and messages are changed afterwards."""
    return lambda values: change(*program()(values))


def states(ring: Any, ranks: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ring_data({"mine": ring}, [ranks])["runs"][str(ranks)]["rings"][0]
    return found


@in_turn("divides, ranks", product(("end", "middle", "start"), (2, 3, 4)))
def test_a_right_program_is_whole_everywhere_and_says_nothing_odd(divides: str, ranks: int) -> None:
    for to, first in product((1, -1), (-1, 0, 2)):
        found = states(program(divides, to, first), ranks)
        assert (found[-1]["whole"], found[-1]["error"]) == (ranks**2, 0)
        assert found[1]["messages"] == [[rank, (rank + to) % ranks, (rank + first) % ranks] for rank in range(ranks)]
        assert found[1]["told"].startswith("The receiver adds.")
        assert not [state["told"] for state in found if "no whole sums" in state["told"] or " not " in state["told"]]
    hops = states(lambda values: ring_all_reduce(values, average=False, record=True).hops, ranks)
    assert states(Part("ring_all_reduce", program(divides), None), ranks) == hops


@in_turn(
    "ring, told",
    [
        (program(gather=0), "4 of the 4 chunks sent are no whole sums: chunk 0 of rank 0 holds rank 0 alone"),
        (program("middle", gather=0), "4 of the 4 chunks sent are no whole sums: chunk 0 of rank 0 holds rank 0 alone"),
        (program(to=-1, gather=0), "4 of the 4 chunks sent are no whole sums: chunk 0 of rank 0 holds rank 0 alone"),
        (program(missing=1), "4 of the 4 chunks sent are no whole sums: chunk 1 of rank 0 holds rank 0 alone"),
        (program(adds=True), "The receiver adds."),
        (program("start", adds=True), "The receiver adds."),
        (program(twice=True), "4 of the 4 chunks sent are no whole sums: chunk 1 of rank 0 holds ranks 0, 1 twice, 2 and 3"),
        (program(silent=1), "3 of the 3 chunks sent are no whole sums: chunk 1 of rank 0 holds ranks 0, 2 and 3"),
        (changed(lambda averages, messages: (averages * len(averages), messages)), "The results are sums, not divided by 4."),
    ],
)
def test_a_wrong_program_shows_its_fault(ring: Program, told: str) -> None:
    found = states(ring, 4)
    averages, messages = ring(2.0 ** np.arange(4)[:, None].repeat(4, axis=1))
    assert len(found) == len(messages) + 1
    assert found[-1]["whole"] < 16
    assert found[-1]["error"] == pytest.approx(np.abs(averages - 15 / 4).max(), abs=1e-6)
    assert found[-1]["error"] > 0
    assert np.array(found[-1]["values"]) / 4 == pytest.approx(averages)
    gathered = " ".join(state["told"] for state in found if state["phase"] == "all-gather")
    assert told in gathered
    assert "is not what arrived" not in gathered


def test_a_receiver_that_adds_in_the_all_gather_is_seen_in_the_step_in_which_it_adds() -> None:
    found = states(program(adds=True), 3)
    assert [state["parts"][1][1] for state in found] == [[0, 1, 0], [0, 1, 0], [0, 1, 0], [1, 2, 1], [1, 2, 1]]
    assert [state["phase"] for state in found] == ["start", *["reduce-scatter"] * 2, *["all-gather"] * 2]


def test_a_result_that_does_not_follow_from_the_messages_is_shown_and_told() -> None:
    def ring(values: Any) -> Any:
        averages, messages = program(gather=0)(values)
        averages[2] = values.mean(axis=0)
        return averages, messages

    last = states(ring, 3)[-1]
    assert last["parts"][2] == [[1, 1, 1]] * 3
    assert last["whole"] == 3
    assert last["told"].endswith("The result on rank 2 is not what arrived there.")


def test_a_message_that_does_not_follow_from_those_before_is_shown_and_told() -> None:
    def ring(values: Any) -> Any:
        averages, messages = program()(values)
        messages[1][1] = np.array_split(values[1], 3)[0]  # rank 1 should send the sum of ranks 0 and 1
        messages[1][2] = 2 * messages[1][2]
        messages[2][0] = 0 * messages[2][0]
        return averages, messages

    found = states(ring, 3)
    assert "What arrives at rank 1 is not used." in found[1]["told"]
    assert (found[1]["parts"][1][0], found[1]["parts"][2][1]) == ([0, 1, 0], [0, 2, 2]), "a rank holds what it sends next"
    assert "What rank 2 sends is not what arrived there." in found[2]["told"]
    assert "Only zeros come from rank 0." in found[3]["told"]
    assert [sender for sender, _, _ in found[3]["messages"]] == [1, 2]
    assert found[-1]["whole"] == 9


def other_step(step: int, change: Callable[[Any, Any], Any]) -> Program:
    """Return a right ring in which the message of rank 1 in a step is changed: ``change`` takes it and the message of rank 0."""

    def with_other(averages: Any, messages: Any) -> Any:
        messages[step][1] = change(messages[step][1], messages[step][0])
        return averages, messages

    return changed(with_other)


@in_turn(
    "ring, code, words",
    [
        (lambda values: None, "not-a-list", "'mine' must return hops or (averages, messages), not None"),
        (lambda values: values, "not-a-hop", "or return (averages, messages)"),
        (lambda values: (values, None), "not-a-list", "the messages of the ring 'mine' with 3 ranks must be a list of steps, not None"),
        (lambda values: ("mean", []), "not-a-number", "the averages of the ring 'mine' with 3 ranks"),
        (lambda values: (values * np.nan, []), "not-finite", "the averages of"),
        (changed(lambda averages, messages: (averages[0], messages)), "wrong-shape", "the shape (27,), not (3, 27)"),
        (changed(lambda averages, messages: (averages, messages[:1])), "wrong-length", "must send in 2 to 59 steps, not 1"),
        (changed(lambda averages, messages: (averages, messages * 20)), "wrong-length", "not 80"),
        (changed(lambda averages, messages: (averages, [*messages[:2], 7, *messages[3:]])), "not-a-list", "step 2 of the ring"),
        (changed(lambda averages, messages: (averages, list(zip(*messages, strict=True)))), "wrong-length", "step 0 of the ring 'mine'"),
        (other_step(2, lambda own, other: [[1], [2, 3]]), "ragged", "in step 2 of the ring 'mine' with 3 ranks, the message of rank 1"),
        (other_step(2, lambda own, other: own[:4]), "wrong-shape", "rank 1 sends 4 numbers, not one chunk of 9 numbers"),
        (other_step(2, lambda own, other: own[None]), "wrong-shape", "rank 1 sends numbers of shape (1, 9)"),
        (
            other_step(1, lambda own, other: own + other),
            "mixed-chunks",
            "in step 1 of the ring 'mine' with 3 ranks, rank 1 sends numbers of",
        ),
        (other_step(3, lambda own, other: own / 2), "not-a-sum", "sends 0.5 times the number of rank 0: divide sums by 3, and only once"),
        (changed(lambda averages, messages: (averages / 3, messages)), "not-a-sum", "chunk 0 of rank 0 has 0.111 times"),
        (
            changed(lambda averages, messages: (np.roll(averages, 9, 1), messages)),
            "mixed-chunks",
            "rank 0 has numbers of chunk 2 in chunk 0",
        ),
        (
            lambda values: program()(values) if values.size > 30 else (values, [[[]] * 3] * 4),
            "not-a-ring",
            "sends other messages with other numbers",
        ),
        (lambda values: program()(values) if values.size > 30 else None, "not-a-ring", "and None with others"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_the_step_and_the_rank(ring: Program, code: str, words: str) -> None:
    with refusal(code, words):
        RingStepper({"mine": ring}, 3)


def test_an_error_inside_a_function_is_told_with_the_name_of_the_function() -> None:
    def ring_all_reduce(values: Any) -> Any:
        return values[len(values)]

    for ring in (ring_all_reduce, Part("ring_all_reduce", ring_all_reduce, None)):
        with refusal("raises", "'mine' stops: ring_all_reduce raises IndexError for 3 ranks: index 3 is out of bounds"):
            RingStepper({"mine": ring}, 3)
