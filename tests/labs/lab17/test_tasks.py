"""Test lab 17's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from oracle import Setting
from profiles import examples
from shortest import shortest
from solutions import solutions_of

from hybridlab import Costs, Schedule, build
from hybridlab.bound import lower_bound, optimum
from hybridlab.course.labs.lab17.bounds import steps_to_bound
from hybridlab.course.puzzles import PUZZLES
from hybridlab.course.tasks import TASKS, check
from hybridlab.schedule import Op

PUZZLE_OF = {"lab17.t1": "two-devices", "lab17.t2": "little-memory"}
PUZZLE_OF |= {"lab19.t1": "one-more-activation", "lab19.t3": "unequal-devices"}  # their judge is the same
each_puzzle = in_turn("key", PUZZLE_OF)
# As in the folded cells of the lab, with the labels, and with another place for some operations.
SHORTEST_2 = "0F0 0F1 0B0 0F2 0B1 0B2\n1F0 1B0 1F1 1B1 1F2 1B2"
SHORTEST_3 = "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3\n1F0 1F1 1B0 1B1 1F2 1F3 1B2 1B3\n2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3"
ROUNDS = "0F0 0F1 0B0 0B1 0F2 0F3 0B2 0B3\n1F0 1F1 1B0 1B1 1F2 1F3 1B2 1B3\n2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3"


def one_by_one(devices: int, microbatches: int) -> str:
    return "\n".join(" ".join(f"{device}F{number} {device}B{number}" for number in range(microbatches)) for device in range(devices))


def printed(name: str, devices: int, microbatches: int) -> str:
    return str(build(name, devices, microbatches))


def program(
    head: bool = True,
    tail: bool = True,
    full: Callable[[int, int], Any] = lambda microbatches, cap: range(math.ceil(microbatches / cap)),
    left: Callable[[int, int, int], int] = lambda microbatches, k, cap: microbatches - k * cap,
    hop: float = 1.0,
    devices: Callable[[list[float], list[float]], Any] = lambda forward, backward: range(len(forward)),
) -> Callable[..., Any]:
    """A bound of a student, with the parts that it may forget."""

    def least_time(microbatches: int, cap: int, forward: list[float], backward: list[float], latency: float) -> Any:
        chain = sum(forward) + sum(backward) + 2 * (len(forward) - 1) * latency * hop
        found = []
        for k in full(microbatches, cap):
            for d in devices(forward, backward):
                before, after = sum(forward[:d]) + d * latency * hop, sum(backward[:d]) + d * latency * hop
                found.append(k * chain + head * before + left(microbatches, k, cap) * (forward[d] + backward[d]) + tail * after)
        return max(found)

    return least_time


def from_the_devices(microbatches: int, cap: int, forward: list[float], backward: list[float], latency: float) -> float:
    """The largest bound in another way: the work that is left after device 0 was full k times, and the way to each device and back."""
    way = [0.0]
    for one, other in zip(forward[:-1], backward[:-1], strict=True):
        way.append(way[-1] + one + other + 2 * latency)
    chain = way[-1] + forward[-1] + backward[-1]
    highest, left, waited = 0.0, microbatches, 0.0
    while left > 0:
        highest = max(highest, *(waited + there + left * (one + other) for there, one, other in zip(way, forward, backward, strict=True)))
        left, waited = left - cap, waited + chain
    return highest


def never_full(microbatches: int, cap: int) -> range:
    return range(1)


def full_at_most_once(microbatches: int, cap: int, *times: Any) -> Any:
    return program(full=lambda microbatches, cap: range(1 + (cap < microbatches)))(microbatches, cap, *times)


def as_slow_as_the_slowest(microbatches: int, cap: int, forward: list[float], backward: list[float], latency: float) -> float:
    return (microbatches + len(forward) - 1) * (max(forward) + max(backward)) + 2 * (len(forward) - 1) * latency


def the_longest_chain(microbatches: int, cap: int, forward: list[float], backward: list[float], latency: float) -> float:
    return sum(forward) + sum(backward) + 2 * latency * (len(forward) - 1)


def full_again_and_again(microbatches: int, cap: int, forward: list[float], backward: list[float], latency: float) -> float:
    return math.ceil(microbatches / cap) * the_longest_chain(microbatches, cap, forward, backward, latency)


def the_examples(microbatches: int, cap: int, forward: list[float], backward: list[float], latency: float) -> float:
    """The two examples of the lab, and nothing else."""
    return 120 if len(forward) == 2 else 210


def sorts(microbatches: int, cap: int, forward: list[float], backward: list[float], latency: float) -> float:
    time = program()(microbatches, cap, forward, backward, latency)
    forward.append(0)
    return time


# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab17.t1", PUZZLES["two-devices"].start, "unchanged", "1 microbatch"),
    ("lab17.t1", "0F0 0B0 0F1 0B1 0F2 0B2\n1F0 1B0 1F1 1B1 1F2 1B2", "misses-side-by-side", "180 ms", "1F0 to 1B0, 0B0 to 0F1"),
    ("lab17.t1", "0F0 0F1 0B0 0B1 0F2 0B2\n1F0 1B0 1F1 1B1 1F2 1B2", "misses-optimum", "150 ms", "120 ms"),
    ("lab17.t1", printed("gpipe", 2, 3), "misses-memory", "device 0 holds 3", "room for 2", "0F2"),
    ("lab17.t1", printed("zb-h1", 2, 3), "split-backward", "0I0"),
    ("lab17.t1", printed("1f1b", 2, 4), "another-size", "microbatch 3"),
    ("lab17.t1", printed("1f1b", 3, 3), "another-size", "3 devices"),
    ("lab17.t1", "1F0 1B0 1F1 1B1 1F2 1B2\n0F0 0B0 0F1 0B1 0F2 0B2", "another-placement", "1F0"),
    ("lab17.t1", "0F0 0F1 0B1 0F2 0B0 0B2\n1F0 1B0 1F2 1B2 1F1 1B1", "deadlock", "device 0 stops"),
    ("lab17.t1", SHORTEST_2.replace(" 1B2", ""), "missing-backward", "stage 1"),
    ("lab17.t1", 120, "not-a-list", "120"),
    ("lab17.t1", "F0 F1 B0 B1", "unknown-operation", "'F0'"),
    ("lab17.t2", PUZZLES["little-memory"].start, "unchanged", "360 ms"),
    ("lab17.t2", one_by_one(3, 4).replace("0B0 0F1", "0F1 0B0"), "misses-rounds", "330 ms", "240 ms"),
    ("lab17.t2", ROUNDS, "misses-optimum", "240 ms", "210 ms"),
    ("lab17.t2", printed("1f1b", 3, 4), "misses-memory", "device 0 holds 3", "0F2"),
    ("lab17.t2", SHORTEST_3.replace("2F0 2B0", "2B0 2F0"), "too-early", "2B0"),
    ("lab17.t2", [SHORTEST_3.splitlines()[0]], "another-size", "1 device"),
    ("lab17.t2", 210.0, "not-a-list"),
    ("lab17.t3", program(False, False, never_full), "work-alone", "2 devices and 3 microbatches with room for 2", "90 ms", "120 ms"),
    ("lab17.t3", program(tail=False), "no-tail", "device 0 is full once"),
    ("lab17.t3", program(head=False), "no-head", "110 ms"),
    ("lab17.t3", the_longest_chain, "one-microbatch", "60 ms"),
    ("lab17.t3", program(full=never_full), "no-memory", "3 devices and 4 microbatches with room for 2", "180 ms", "210 ms"),
    ("lab17.t3", full_again_and_again, "memory-alone"),
    ("lab17.t3", program(hop=0), "no-latency", "a latency of 2 ms"),
    ("lab17.t3", program(full=lambda microbatches, cap: [(microbatches - 1) // cap]), "as-full-as-possible"),
    (
        "lab17.t3",
        program(devices=lambda forward, backward: [max(range(len(forward)), key=lambda d: forward[d] + backward[d])]),
        "busiest-device",
    ),
    ("lab17.t3", as_slow_as_the_slowest, "all-slow"),
    ("lab17.t3", program(left=lambda microbatches, k, cap: microbatches), "counted-twice", "180 ms", "120 ms"),
    ("lab17.t3", program(full=lambda microbatches, cap: range(microbatches // cap + 1)), "once-too-often"),
    ("lab17.t3", lambda microbatches, cap, forward, backward, latency: 0, "too-low", "0 ms"),
    ("lab17.t3", full_at_most_once, "too-low-in-this-memory", "room for 1", "device 0 is full 3 times"),
    ("lab17.t3", lambda *given: 2 * program()(*given), "above-an-order", "16 ms", "8 ms"),
    ("lab17.t3", the_examples, "above-an-order", "1 device and 1 microbatch", "210 ms", "8 ms"),
    ("lab17.t3", sorts, "changes-its-argument"),
    ("lab17.t3", lambda *given: print(program()(*given), end=""), "returns-nothing"),
    (
        "lab17.t3",
        lambda microbatches, cap, forward, backward, latency: str(program()(microbatches, cap, forward, backward, latency)),
        "not-a-number",
        "'8.0'",
    ),
    ("lab17.t3", lambda microbatches, cap, forward, backward, latency: [8], "not-a-number", "[8]"),
    ("lab17.t3", lambda microbatches, cap, forward, backward, latency: float("inf"), "not-a-number", "inf"),
    ("lab17.t3", lambda microbatches, cap, forward, backward: 8, "signature", "least_time(M, cap, F, B, C)"),
    ("lab17.t3", lambda microbatches, cap, forward, backward, latency: forward[len(forward)], "raises", "IndexError"),
    ("lab17.t3", 210, "not-a-function", "210"),
]


def by_the_library(microbatches: int, cap: int, forward: list[float], backward: list[float], latency: float) -> float:
    """A stronger bound, which also sums the time for which activations are held."""
    return lower_bound(build("1f1b", len(forward), microbatches), Costs(forward=forward, backward=backward, p2p=latency), cap)  # type: ignore[no-any-return]


def half_a_ms_less(microbatches: int, cap: int, forward: list[float], backward: list[float], latency: float) -> float:
    return program()(microbatches, cap, forward, backward, latency) - 0.5  # type: ignore[no-any-return]


WRONG += [("lab17.t3", by_the_library, "not-your-own", "lower_bound"), ("lab17.t3", half_a_ms_less, "too-low", "7.5 ms", "8 ms")]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab17.t1", build("1f1b", 2, 3)),
    ("lab17.t1", SHORTEST_2),
    ("lab17.t1", SHORTEST_2.splitlines()),
    ("lab17.t1", SHORTEST_2.replace("\n", "\nDEVICE 1: ")),
    ("lab17.t1", [[Op.parse(op) for op in line.split()] for line in SHORTEST_2.splitlines()]),
    ("lab17.t1", SHORTEST_2.replace(" ", ", ")),
    ("lab17.t2", SHORTEST_3),
    ("lab17.t2", Schedule.parse(SHORTEST_3)),
    ("lab17.t2", {device: line.split() for device, line in enumerate(SHORTEST_3.splitlines())}),
    ("lab17.t3", program()),
    ("lab17.t3", from_the_devices),
    ("lab17.t3", lambda *given: np.float64(program()(*given))),
    ("lab17.t3", lambda *given: Fraction(program()(*given))),
]


@each_puzzle
def test_a_task_asks_for_what_its_puzzle_has(key: str) -> None:
    puzzle, asked = PUZZLES[PUZZLE_OF[key]], TASKS[key]
    for number in (puzzle.devices, puzzle.microbatches, puzzle.memory):
        assert str(number) in asked.prompt
    assert [code for credit in asked.partial_credit for code in credit.codes] == [f"misses-{goal.name}" for goal in puzzle.goals[2:]]
    shares = [credit.share for credit in asked.partial_credit]
    assert np.diff([0, *shares, 1]) == pytest.approx(1 / (len(shares) + 1))


@each_puzzle
def test_what_the_solver_finds_passes(key: str) -> None:
    puzzle = PUZZLES[PUZZLE_OF[key]]
    template = build("zb-h1" if puzzle.split else "1f1b", puzzle.devices, puzzle.microbatches)
    best = optimum(template, puzzle.costs, seconds=60, memory=puzzle.memory)
    assert best.proven
    assert check(key, str(best.schedule)).passed
    assert str(best.makespan).removesuffix(".0") in check(key, best.schedule).messages[0]


@in_turn("answer, marked", [(printed("gpipe", 2, 3), "0F2 1F2"), (SHORTEST_2.replace("1F0 1B0", "1B0 1F0"), "1B0"), (SHORTEST_2, "")])
def test_the_picture_marks_what_is_wrong(answer: str, marked: str) -> None:
    drawing = check("lab17.t1", answer).drawing
    assert drawing is not None
    assert " ".join(map(str, drawing.marked)) == marked
    assert drawing.figure() is not None


@examples(40)
@given(st.integers(1, 3), st.integers(1, 3), st.data())
def test_the_bound_of_the_text_is_never_above_the_shortest_of_all_orders(devices: int, microbatches: int, data: Any) -> None:
    """The shortest order comes from trying all orders, in exact fractions."""
    microbatches = min(microbatches, 2 if devices == 3 else 3)
    times = st.lists(st.integers(1, 5), min_size=devices, max_size=devices)
    forward, backward = data.draw(times), data.draw(times)
    latency, cap = data.draw(st.integers(0, 3)), data.draw(st.integers(1, microbatches))
    setting = Setting(tuple(forward), tuple(backward), (0.5,) * devices, latency)
    most = Fraction(microbatches * (sum(forward) + sum(backward) + 2 * devices * latency) + 1)
    least = shortest(build("1f1b", devices, microbatches), setting, [Fraction(cap)] * devices, most)
    assert from_the_devices(microbatches, cap, forward, backward, latency) <= least


@in_turn("seed", range(5))
def test_the_bound_is_never_above_that_of_the_library_by_more_than_a_proof_allows(seed: int) -> None:
    """Most cases are proven by the bound alone: an order exists that is as long."""
    proven = 0
    for case in steps_to_bound(np.random.default_rng(seed)):
        microbatches, cap, forward, backward, latency = case.arguments
        mine = from_the_devices(*case.arguments)
        template, costs = build("1f1b", len(forward), microbatches), Costs(forward=forward, backward=backward, p2p=latency)
        if template.kind.size <= 40:
            best = optimum(template, costs, memory=cap)
            assert mine <= best.makespan + 1e-9
            proven += mine == pytest.approx(best.makespan)
    assert proven >= 5


def test_the_examples_of_the_text_are_the_optima_of_two_puzzles() -> None:
    for name in ("two-devices", "little-memory"):
        puzzle, costs = PUZZLES[name], PUZZLES[name].data()["costs"]
        least = solutions_of("lab17")["lab17.t3"](puzzle.microbatches, puzzle.memory, costs["forward"], costs["backward"], costs["p2p"])
        assert least == puzzle.optimum
