"""Test overlapped pairs and several copies of the weights: how they are written, read and refused.

Chimera, DualPipe and DualPipeV are compared with their papers.
"""

import json
import re
from pathlib import Path

import checks
import numpy as np
import pytest
from cases import in_turn, refusal
from texts import NO_PAIRS, TWO_WAYS, WAITING

from hybridlab import Costs, Deadlock, InvalidSchedule, Op, Schedule, UnsupportedSize, build, simulate

ORDERS: dict[str, list[str]] = json.loads((Path(__file__).parents[1] / "data" / "orders.json").read_text())["orders"]
PAIR = Schedule.parse("0F0 0F1 0B0 0B1\n1F0 (1F1;1B0) 1B1")
BOTH_WAYS = Schedule.parse("0F0 1F1 1B1 0B0\n0F1 1F0 1B0 0B1")


# Overlapped pairs


def test_a_pair_is_one_turn_of_two_operations() -> None:
    assert PAIR.pairs.tolist() == [5]
    assert [len(turn) for turn in PAIR.turns[1]] == [1, 2, 1]
    assert PAIR.turns[1][1] == (Op.parse("1F1"), Op.parse("1B0"))
    assert [str(op) for op in PAIR.orders[1]] == ["1F0", "1F1", "1B0", "1B1"]
    assert str(PAIR).splitlines()[1] == "device 1: 1F0 (1F1;1B0) 1B1"
    assert PAIR.to_csv().splitlines()[1] == "1F0,(1F1;1B0)OVERLAP_F_B,1B1"
    assert Schedule(PAIR.name, PAIR.orders) != PAIR
    assert hash(PAIR) != hash(Schedule(PAIR.name, PAIR.orders))


@in_turn("written", ["(1F1;1B0)", "(1B0;1F1)", "( 1F1 ; 1B0 )", "(1F1;1B0)OVERLAP_F_B"])
def test_a_pair_is_read_in_every_form_it_is_written_in(written: str) -> None:
    assert Schedule.parse(f"0F0 0F1 0B0 0B1\n1F0 {written} 1B1") == PAIR
    assert Schedule.parse(f"0F0,0F1,0B0,0B1\n1F0,{written},1B1\n", name="parsed") == PAIR


def test_a_pair_can_be_given_as_a_tuple() -> None:
    orders = [["0F0", "0F1", "0B0", "0B1"], ["1F0", ("1F1", Op.parse("1B0")), "1B1"]]
    assert Schedule("parsed", orders) == PAIR


@in_turn("overlap, makespan, busy", [(0, 9, 6), (0.5, 8.5, 5.5), (1, 8, 5)])
def test_a_pair_takes_its_two_times_less_what_overlaps(overlap: float, makespan: float, busy: float) -> None:
    """Worked out by hand, with a forward of 1 and a backward of 2: 1F0 runs from 1 to 2, and the pair starts at 2.

    0B0 starts when the pair ends.
    """
    timeline = simulate(PAIR, Costs(forward=1, backward=2, overlap=overlap))
    assert (timeline.makespan, timeline.busy.tolist()) == (makespan, [6, busy])
    assert timeline.start[5:7].tolist() == [2, 2]
    assert timeline.end[5] == timeline.end[6] == 2 + 3 - overlap


def test_a_pair_waits_for_the_later_of_its_inputs() -> None:
    slow = simulate(PAIR, Costs(forward=[10, 1], backward=[1, 1]))  # the forward of microbatch 1 arrives late
    assert slow.start[5] == slow.start[6] == 20
    assert slow.blocking_operation()[5:7].tolist() == [1, 1]  # both operations of the pair wait for 0F1
    late = simulate(PAIR, Costs(forward=[1, 1], backward=[1, 1]))
    assert late.blocking_operation()[5:7].tolist() == [4, 4]  # the pair waits for its own device
    other = Schedule.parse("0F0 (0F1;0B0) 0B1\n1F0 1B0 1F1 1B1")  # here the backward's input comes later, from device 1
    checks.slots_prove_that_it_can_run(other)
    assert simulate(other, Costs(forward=1, backward=2)).start[1:3].tolist() == [4, 4]


def test_overlap_is_a_setting_of_a_batch() -> None:
    batch = simulate(PAIR, Costs(forward=1, backward=2, overlap=[[0], [0.5], [1]]))
    assert batch.makespan.tolist() == [9, 8.5, 8]
    both = simulate(PAIR, Costs(forward=1, backward=2, p2p=[[[0]], [[1]]], overlap=[[0], [1]]))
    assert both.makespan.tolist() == [[9, 8], [11, 10]]


@in_turn("text, code, words", NO_PAIRS)
def test_what_is_no_pair_is_refused(text: str, code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words, kind=InvalidSchedule):
        Schedule.parse(text)


def test_pairs_that_wait_for_each_other_are_a_deadlock() -> None:
    with refusal("deadlock", "device 0", "0B0", "1B0", kind=Deadlock):
        Schedule.parse(WAITING["pairs"])


@in_turn("turn", [("0F1",), ("0F1", "0B0", "0B1"), ()])
def test_a_tuple_of_one_or_three_is_no_pair(turn: tuple[str, ...]) -> None:
    orders = [["0F0", turn, "0B0", "0B1"]]
    if len(turn) == 1:
        assert Schedule("one", orders) == Schedule("one", [["0F0", "0F1", "0B0", "0B1"]])
    else:
        with pytest.raises(InvalidSchedule) as caught:
            Schedule("some", orders)
        assert caught.value.problems[-1].code == "not-a-pair"


@in_turn("overlap, code", [(1.5, "out-of-range"), (-0.1, "negative"), ("much", "not-a-number")])
def test_overlap_is_a_share(overlap: object, code: str) -> None:
    with refusal(code, "overlap", overlap):
        Costs(forward=1, backward=2, overlap=overlap)


# Copies of the weights


def test_microbatches_that_take_two_ways_have_two_copies_of_the_weights() -> None:
    assert (BOTH_WAYS.copies, BOTH_WAYS.paths, BOTH_WAYS.copy_of.tolist()) == (2, ((0, 1), (1, 0)), [0, 1])
    assert (BOTH_WAYS.stages, BOTH_WAYS.chunks, BOTH_WAYS.devices) == (2, 1, 2)
    assert BOTH_WAYS.messages.tolist() == [2, 2]
    timeline = simulate(BOTH_WAYS, Costs(forward=1, backward=2, p2p=0.5))
    assert timeline.makespan == 7  # worked out by hand: forward 1, message, forward 1, backward 2, message, backward 2
    assert timeline.peak_activations.tolist() == [2, 2]


@in_turn("text, code, words", TWO_WAYS)
def test_two_copies_are_checked_as_one_is(text: str, code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words, kind=InvalidSchedule):
        Schedule.parse(text)


def test_three_ways_are_three_copies() -> None:
    ways = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    orders: list[list[str]] = [[], [], []]
    for stage, kind in [*((stage, "F") for stage in range(3)), *((stage, "B") for stage in (2, 1, 0))]:
        for microbatch, way in enumerate(ways):
            orders[way[stage]].append(f"{stage}{kind}{microbatch}")
    schedule = Schedule("three", orders)
    assert (schedule.copies, schedule.paths) == (3, tuple(ways))
    assert simulate(schedule, Costs(forward=1, backward=2)).bubble_ratio == 0


@in_turn(
    "slots, devices, copies, code, words",
    [
        ([[[0], [1], [2]], [[5], [4], [3]]], [0, 1, 0], 2, "wrong-shape", ("2 copies", "3 stages")),
        ([[[0], [1]], [[3], [2]]], [0, 1], 0, "too-small", ("copies", "0")),
        ([[[0], [1]], [[3], [2]]], [0, 0], 2, "doubled-operation", ("stage 0", "the forward of microbatch 0", "twice")),
    ],
)
def test_slots_of_copies_that_make_no_schedule(slots: object, devices: list[int], copies: int, code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words):
        Schedule.from_slots("mine", slots, devices, copies)  # type: ignore[arg-type]


# The schedules with pairs or copies


def test_chimera_is_two_pipelines_in_each_others_gaps() -> None:
    """The setting is that of Li and Hoefler, arXiv 2107.06925, fig. 3.

    There are 4 devices, 2 microbatches from either end, and forwards as long as backwards.
    """
    assert [line.partition(": ")[2] for line in str(build("chimera", 4, 4)).splitlines()] == [
        "0F0 0F1 3F2 3B2 3F3 3B3 0B0 0B1",
        "1F0 2F2 1F1 2F3 2B2 1B0 2B3 1B1",
        "1F2 2F0 1F3 2F1 2B0 1B2 2B1 1B3",
        "0F2 0F3 3F0 3B0 3F1 3B1 0B2 0B3",
    ]
    timeline = simulate(build("chimera", 4, 4), Costs(forward=1, backward=1))
    assert timeline.makespan == 10  # 2M + K - 2


@in_turn("devices, microbatches", [(2, 2), (4, 8), (6, 12), (8, 8)])
def test_both_directions_of_chimera_and_dualpipe_are_alike(devices: int, microbatches: int) -> None:
    """If the devices are numbered from the other end and the directions exchange their microbatches, the schedule stays the same."""
    for name in ("chimera", "dualpipe"):
        microbatches = max(microbatches, 2 * devices) if name == "dualpipe" else microbatches
        schedule = build(name, devices, microbatches)
        direction = schedule.copy_of.tolist()
        place = {each: [mb for mb in range(microbatches) if direction[mb] == each] for each in (0, 1)}
        other = {mb: place[1 - way][place[way].index(mb)] for way in (0, 1) for mb in place[way]}
        seen = [[[f"{op.stage}{op.kind}{other[op.microbatch]}" for op in turn] for turn in order] for order in schedule.turns[::-1]]
        assert seen == [[[str(op) for op in turn] for turn in order] for order in schedule.turns]


@in_turn("key", ["dualpipe-v|2|4|2", "dualpipe-v|4|8|2"])
def test_dualpipe_is_dualpipe_v_with_its_chunks_as_directions(key: str) -> None:
    """The orders of DualPipeV equal the orders of torch's planner; cut in half, they are DualPipe's (arXiv 2412.19437)."""
    half, fewer = int(key.split("|")[1]), int(key.split("|")[2])

    def of_the_other_end(match: re.Match[str]) -> str:
        stage, kind, microbatch = int(match[1]), match[2], int(match[3])
        return f"{stage}{kind}{microbatch + fewer * (stage >= half)}"

    lines = [re.sub(r"(\d+)([FBIW])(\d+)", of_the_other_end, line) for line in ORDERS[key]]
    assert [line.partition(": ")[2] for line in str(build("dualpipe", 2 * half, 2 * fewer)).splitlines()[:half]] == lines


def test_pairs_are_where_the_paper_has_them() -> None:
    """Each pair has a forward of one direction and a backward of the other; 8 devices and 20 microbatches give fig. 5."""
    schedule = build("dualpipe", 8, 20)
    forwards, backwards = schedule.microbatch[schedule.pairs], schedule.microbatch[schedule.pairs + 1]
    assert (schedule.copy_of[forwards] != schedule.copy_of[backwards]).all()
    assert np.bincount(schedule.device[schedule.pairs]).tolist() == [9, 10, 11, 11, 11, 11, 10, 9]


@in_turn(
    "name, size, what, tries",
    [
        ("chimera", (3, 6), "devices", (2, 4)),
        ("chimera", (1, 4), "devices", (2,)),
        ("chimera", (4, 6), "microbatches", (4, 8)),
        ("chimera", (4, 2), "microbatches", (4,)),
        ("dualpipe", (5, 20), "devices", (4, 6)),
        ("dualpipe", (4, 9), "microbatches", (8, 10)),
        ("dualpipe", (4, 7), "microbatches", (8,)),
        ("dualpipe", (4, 6), "microbatches", (8,)),
        ("dualpipe-v", (3, 5), "microbatches", (6,)),
        ("dualpipe-v", (1, 1), "microbatches", (2,)),
    ],
)
def test_sizes_that_are_not_there_are_refused_with_one_that_is(name: str, size: tuple[int, int], what: str, tries: tuple[int, ...]) -> None:
    with refusal("unsupported-size", name, what, f"try {' or '.join(map(str, tries))}", kind=UnsupportedSize):
        build(name, *size)
    for number in tries:
        fixed = (number, size[1]) if what == "devices" else (size[0], number)
        if what == "devices" and fixed[1] % fixed[0]:
            fixed = (fixed[0], 2 * fixed[0])
        assert build(name, *fixed).devices == fixed[0]


def test_a_size_that_does_not_fit_in_memory_is_refused() -> None:
    with refusal("unsupported-size", "memory", "try fewer devices", kind=UnsupportedSize):
        build("dualpipe", 10**6, 4)
