"""Test lab 3's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from hypothesis import given
from lab03.student_peaks import (
    a_mean,
    all_forwards,
    any_backward_frees,
    asks_the_simulator,
    before_the_first_backward,
    both_parts_free,
    by_formula,
    compares_too_early,
    eats_its_argument,
    examples_of_the_text,
    first_line_alone,
    from_the_last,
    full_backwards_alone,
    half_each,
    highest_of_all,
    largest_first,
    largest_step,
    last_character_but_one,
    last_count,
    last_digit,
    longest_run,
    never_begins_again,
    one_everywhere,
    one_number,
    one_too_many,
    prints_alone,
    right_peaks,
    second_letter,
    sets_to_one,
    stage_of_one_digit,
    two_at_most,
)
from oracle import Node, Setting, can_run, nodes, times, uniform
from oracle import peaks as oracle_peaks
from solutions import handed_in, is_solution, lab_cells, solutions_of
from strategies import legal_orders

from hybridlab import InvalidSchedule, Op, Schedule, build, simulate
from hybridlab.bound import optimum
from hybridlab.course.labs.lab03.peaks import orders_to_count
from hybridlab.course.labs.lab03.tasks import OPEN_1F1B, OPEN_CAP, OPEN_COSTS, OPEN_DEVICES, OPEN_MICROBATCHES, OPEN_OPTIMUM, OPEN_WITHIN
from hybridlab.course.published.zero_bubble import RUNS
from hybridlab.course.tasks import TASKS, check

ONE_F_ONE_B_GIB = [1.5 * (8 - device) for device in range(8)]

STEP = [simulate(build("1f1b", 16, 64), RUNS[-1].costs(latency)).makespan for latency in (True, False)]
OPEN: Setting = uniform(4, 10, 20, p2p=5)


# Orders for task 7


def with_warm_ups(warm_ups: Sequence[int], microbatches: int = OPEN_MICROBATCHES) -> list[str]:
    """1F1B with these warm-ups, device by device."""
    lines = []
    for device, ahead in enumerate(warm_ups):
        line = [f"{device}F{microbatch}" for microbatch in range(ahead)]
        for microbatch in range(microbatches):
            line += [f"{device}F{microbatch + ahead}"] * (microbatch + ahead < microbatches) + [f"{device}B{microbatch}"]
        lines.append(" ".join(line))
    return lines


SHORTEST = with_warm_ups((4, 3, 2, 0))
ONE_F_ONE_B = str(build("1f1b", 4, 8))
SLOW = with_warm_ups((4, 3, 1, 0))  # 390 ms

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab03.t1", 71.4, "per-cent", "71.4", "0.714"),
    ("lab03.t1", 0.417, "bubble-ratio"),
    ("lab03.t1", 0.583, "busy-share"),
    ("lab03.t1", 1.4, "inverted"),
    ("lab03.t1", 1.714, "all-over-ideal"),
    ("lab03.t1", 0.5, "equal-stages"),
    ("lab03.t1", 1, "device-0-alone"),
    ("lab03.t1", 1 / 3, "device-2-alone"),
    ("lab03.t1", 0.72, "rounded-too-early", "0.417"),
    ("lab03.t1", 0.7, "too-few-decimals", "2 decimals"),
    ("lab03.t1", 0.375, "another-pipeline", "4 devices"),
    ("lab03.t1", 0.1, "wrong-value"),
    ("lab03.t1", -0.4, "wrong-value", "-0.4"),
    ("lab03.t1", "0.71", "not-a-number"),
    ("lab03.t1", [0.71], "not-a-number"),
    ("lab03.t2", 70, "idle-over-ideal", "70"),
    ("lab03.t2", 72, "k-for-k-1", "72"),
    ("lab03.t2", 80, "k-over-m", "80"),
    ("lab03.t2", 27, "another-pipeline", "27", "has 8"),
    ("lab03.t2", 62, "too-few", "0.10"),
    ("lab03.t2", 64, "more-than-enough"),
    ("lab03.t2", 1, "too-few", "1 microbatch"),
    ("lab03.t2", "63", "not-a-number", "such as 12,"),
    ("lab03.t2", 62.5, "not-a-whole-number"),
    ("lab03.t2", 0, "out-of-range"),
    (
        "lab03.t3",
        all_forwards,
        "never-frees",
        "an order of 1 device and 3 microbatches",
        "device 0 runs 0F0 0B0 0F1 0F2",
        "its peak is 2 (after 0F2); you returned 3",
    ),
    ("lab03.t3", any_backward_frees, "frees-at-input-gradient", "split backwards"),
    ("lab03.t3", both_parts_free, "frees-twice"),
    ("lab03.t3", full_backwards_alone, "ignores-split-backwards"),
    ("lab03.t3", last_count, "held-at-the-end"),
    ("lab03.t3", before_the_first_backward, "warm-up-alone"),
    ("lab03.t3", by_formula, "formula"),
    ("lab03.t3", highest_of_all, "one-peak-for-all"),
    ("lab03.t3", never_begins_again, "peaks-so-far"),
    ("lab03.t3", from_the_last, "reversed"),
    ("lab03.t3", largest_first, "sorted", "an order with split backwards of 2 devices and 3 microbatches", "its peak is 1"),
    ("lab03.t3", compares_too_early, "one-too-low", "GPipe of 1 device and 1 microbatch"),
    ("lab03.t3", asks_the_simulator, "raises", "the line of device 2 of 1F1B"),
    ("lab03.t3", second_letter, "one-digit", "11 devices and 12 microbatches", "device 10 runs 10F0"),
    ("lab03.t3", examples_of_the_text, "too-much", "GPipe of 1 device and 1 microbatch"),
    ("lab03.t3", one_too_many, "too-much", "(after 0F0)", "you returned 2"),
    ("lab03.t3", two_at_most, "too-little", "GPipe of 2 devices and 3 microbatches", "(after 0F2)", "you returned 2"),
    ("lab03.t3", one_everywhere, "one-everywhere", "2 devices"),
    ("lab03.t3", longest_run, "longest-run", "run of forwards"),
    ("lab03.t3", half_each, "half-a-unit", "W frees one"),
    ("lab03.t3", stage_of_one_digit, "one-digit", "10F0", "not 1"),
    ("lab03.t3", last_character_but_one, "one-digit-microbatch", "0F10"),
    ("lab03.t3", one_number, "another-size", "not 1"),
    ("lab03.t3", first_line_alone, "another-size", "2 in all", "1 number"),
    ("lab03.t3", a_mean, "not-a-number"),
    ("lab03.t3", eats_its_argument, "changes-its-argument"),
    ("lab03.t3", prints_alone, "returns-nothing"),
    ("lab03.t3", [4, 4, 4, 3, 2, 1], "not-a-function", "peaks(orders)"),
    ("lab03.t4", 30, "printed-figure"),
    ("lab03.t4", 50, "fill-alone"),
    ("lab03.t4", 80, "drain-alone"),
    ("lab03.t4", 260, "both-devices-added"),
    ("lab03.t4", 65, "halved-times"),
    ("lab03.t4", 1170, "makespan"),
    ("lab03.t4", 1040, "busy-time"),
    ("lab03.t4", 170, "all-reduce-included"),
    ("lab03.t4", 0.13, "seconds"),
    ("lab03.t4", 0.111, "bubble-ratio"),
    ("lab03.t4", 11.1, "bubble-ratio"),
    ("lab03.t4", 0.4, "wrong-value"),
    ("lab03.t4", 130.4, "wrong-value", "130.4"),
    ("lab03.t5", ("gpipe", [48] * 8), "does-not-fit", "gpipe", "device 0", "48 GiB", "16"),
    ("lab03.t5", ("zb-h1", [12] * 8), "does-not-fit", "zb-h1", "device 7", "12 GiB", "8"),
    ("lab03.t5", ("1f1b", list(range(8, 0, -1))), "microbatches-not-gib"),
    ("lab03.t5", ("1f1b", ONE_F_ONE_B_GIB[::-1]), "reversed"),
    ("lab03.t5", ("1f1b", [48] * 8), "all-microbatches", "GPipe"),
    ("lab03.t5", ("1f1b", [each + 1.5 for each in ONE_F_ONE_B_GIB]), "one-too-many", "device 7"),
    ("lab03.t5", ("1f1b", [each - 1.5 for each in ONE_F_ONE_B_GIB]), "warm-up-alone", "one forward more"),
    ("lab03.t5", ("1f1b", [12] * 8), "too-much", "device 1", "12 GiB"),
    ("lab03.t5", ("1f1b", [12, 10, *ONE_F_ONE_B_GIB[2:]]), "too-little", "device 1", "10 GiB"),
    ("lab03.t5", ("1f1b", [16] * 7 + [8]), "capacity"),
    ("lab03.t5", ("1f1b", [round(each) for each in ONE_F_ONE_B_GIB]), "rounded"),
    ("lab03.t5", ("1f1b", []), "wrong-length"),
    ("lab03.t5", ("1F1B!", ONE_F_ONE_B_GIB), "unknown-name", "'1f1b'"),
    ("lab03.t5", "1f1b", "wrong-shape"),
    ("lab03.t6", 66.3, "another-pipeline"),
    ("lab03.t6", 30 * 0.535, "gpipe"),
    ("lab03.t6", 120 * 0.535, "no-fixed-part"),
    ("lab03.t6", 79, "too-few-decimals", "79", "1 decimal"),
    ("lab03.t6", 0.535, "one-message"),
    ("lab03.t6", 0.0792, "seconds"),
    ("lab03.t6", STEP[0], "step-with-messages"),
    ("lab03.t6", STEP[1], "step-without-messages"),
    ("lab03.t6", 148 * 0.762, "another-run", "6.2B", "64 microbatches"),
    ("lab03.t6", 10, "wrong-value"),
    ("lab03.t7", ONE_F_ONE_B, "too-slow", "410 ms", "10.8 %", "at most 5 %", "no faster than 1F1B"),
    ("lab03.t7", with_warm_ups((4, 4, 1, 0)), "too-slow", "440 ms", "30 ms slower than 1F1B"),
    ("lab03.t7", SLOW, "too-slow", "390 ms", "5.4 %"),
    ("lab03.t7", with_warm_ups((4, 3, 2, 1)), "too-slow", "400 ms", "does device 3 wait"),
    ("lab03.t7", with_warm_ups((4, 2, 1, 0)), "too-slow", "400 ms"),
    ("lab03.t7", str(build("gpipe", 4, 8)), "over-the-cap", "360 ms", "device 0 holds 8", "room for 5", "0F5 is one too many"),
    ("lab03.t7", with_warm_ups((5, 3, 2, 0)), "over-the-cap", "360 ms", "device 0 holds 6", "0F5"),
    ("lab03.t7", str(build("zb-h1", 4, 8)), "split-backward", "0I0"),
    ("lab03.t7", str(build("1f1b", 4, 4)), "another-size", "4 devices", "4 microbatches"),
    ("lab03.t7", str(build("looped-bfs", 4, 8)), "another-placement"),
    ("lab03.t7", [line.replace("1F3 ", "") for line in SHORTEST], "missing-forward", "stage 1", "microbatch 3"),
    ("lab03.t7", with_warm_ups((0, 3, 2, 0)), "deadlock", "device 0"),
    ("lab03.t7", 370, "not-a-list"),
    ("lab03.t7", "F0 F1 B0 B1", "unknown-operation", "'F0'"),
]


# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab03.t1", 0.71),
    ("lab03.t1", np.float32(0.7143)),
    ("lab03.t1", Fraction(5, 7)),
    ("lab03.t2", 63.0),
    ("lab03.t2", np.int64(63)),
    ("lab03.t3", lambda orders: tuple(right_peaks(orders))),
    ("lab03.t3", lambda orders: np.array(right_peaks(orders), dtype=float)),
    ("lab03.t3", lambda orders: (peak for peak in right_peaks(orders))),
    ("lab03.t4", 130.0),
    ("lab03.t5", ["1F1B", ONE_F_ONE_B_GIB]),
    ("lab03.t5", ("1f1b", np.array(ONE_F_ONE_B_GIB))),
    ("lab03.t6", 79.2),
    ("lab03.t6", 79.18),
    ("lab03.t7", "\n".join(SHORTEST)),
    ("lab03.t7", "\n".join(f"DEVICE {device}: {line}" for device, line in enumerate(SHORTEST))),
    ("lab03.t7", Schedule("mine", [line.split() for line in SHORTEST])),
    ("lab03.t7", [[Op.parse(op) for op in line.split()] for line in SHORTEST]),
    ("lab03.t7", "\n".join(line.replace(" ", ",") for line in SHORTEST)),
    ("lab03.t7", "\n".join(f"device {device}: {line.replace(' ', ', ')}" for device, line in enumerate(SHORTEST))),
    ("lab03.t7", [*SHORTEST[:3], SHORTEST[3].replace("3B4 3F5", "3F5 3B4")]),  # 380 ms, 2.7 % above the shortest
]


def test_the_open_task_has_the_shortest_order_that_a_solver_proves() -> None:
    best = optimum(build("1f1b", OPEN_DEVICES, OPEN_MICROBATCHES), OPEN_COSTS, memory=OPEN_CAP)
    assert best.proven
    assert best.makespan == best.bound == OPEN_OPTIMUM
    assert check("lab03.t7", str(best.schedule)).passed


@in_turn(
    "answer, marked, goal",
    [
        (ONE_F_ONE_B, [], False),
        (SLOW, [], False),
        (SHORTEST, [], True),
        (str(build("gpipe", 4, 8)), ["0F5", "1F5", "2F5", "3F5"], False),
        (with_warm_ups((5, 3, 2, 0)), ["0F5"], False),
        ([line.replace("2F3", "2F4", 1) for line in SHORTEST], ["2F4"], False),
        (str(build("1f1b", 4, 4)), [], False),
    ],
)
def test_the_open_task_draws_the_goal_below_an_answer_that_passes(answer: Any, marked: list[str], goal: bool) -> None:
    drawing = check("lab03.t7", answer).drawing
    assert drawing is not None
    assert [str(op) for op in drawing.marked] == marked
    assert (drawing.goal.makespan if drawing.goal else None) == (OPEN_OPTIMUM if goal else None)
    assert not goal or drawing.figure() is not None


def nodes_of(lines: Sequence[str]) -> list[list[Node]]:
    return [[(op.kind.value, op.stage, op.microbatch) for op in map(Op.parse, line.split())] for line in lines]


def open_makespan(lines: Sequence[str]) -> Fraction | None:
    """The makespan of an order within the cap, by the tests' second clock; None if it cannot run or holds too much."""
    orders = nodes_of(lines)
    if not can_run(orders) or max(oracle_peaks(orders, 1)) > OPEN_CAP:
        return None
    return max(end for _, end in times(orders, OPEN, 1).values())


def test_the_open_task_accepts_what_the_second_clock_finds_short_enough() -> None:
    found = set()
    for warm_ups in product(range(6), range(5), range(4), range(2)):
        lines = with_warm_ups(warm_ups)
        makespan = open_makespan(lines)
        assert check("lab03.t7", lines).passed == (makespan is not None and makespan <= OPEN_OPTIMUM * (1 + OPEN_WITHIN)), warm_ups
        found.add(makespan)
    lengths = sorted(makespan for makespan in found if makespan is not None)
    assert lengths[0] == OPEN_OPTIMUM
    assert {390, 400, 410} < set(lengths), "there are orders between 1F1B and the shortest one"


def test_1f1b_is_not_the_shortest_order_in_this_memory_and_gpipe_does_not_fit() -> None:
    assert open_makespan(solutions_of("lab03")["lab03.t7"]) == OPEN_OPTIMUM
    lines = [line.partition(": ")[2] for line in ONE_F_ONE_B.splitlines()]
    assert open_makespan(lines) == OPEN_1F1B == 410 > OPEN_OPTIMUM * (1 + OPEN_WITHIN)
    assert open_makespan([" ".join(map(str, order)) for order in build("gpipe", 4, 8)]) is None


@given(schedule=legal_orders())
def test_the_program_of_these_tests_counts_as_the_oracle_does(schedule: Schedule) -> None:
    lines = [" ".join(map(str, order)) for order in schedule]
    assert right_peaks(lines) == [int(peak * schedule.chunks) for peak in oracle_peaks(nodes(schedule), schedule.chunks)]


@in_turn("seed", range(3))
def test_the_cases_can_run_and_have_every_edge(seed: int) -> None:
    sizes, kinds, alone = set(), set(), 0
    for case in orders_to_count(np.random.default_rng(seed)):
        (lines,) = case.arguments
        if case.words.startswith("the line"):
            alone += 1
            with pytest.raises(InvalidSchedule):
                Schedule.parse("\n".join(lines))
            continue
        schedule = Schedule.parse("\n".join(lines))
        sizes.add((schedule.devices, schedule.microbatches))
        kinds |= {op.kind for op in schedule.ops}
        assert ("W" in lines[0]) == ("split" in case.words)
        assert schedule.paths == (tuple(range(schedule.devices)),), "stage d on device d"
    assert {(1, 1), (1, 3), (2, 1), (3, 2)} < sizes, "one device, one microbatch, fewer microbatches than devices"
    assert any(devices > 10 < microbatches for devices, microbatches in sizes), "numbers of two digits"
    assert set(kinds) == set("FBIW")
    assert alone == 2


def test_wrong_programs_do_not_pass_with_other_cases() -> None:
    wrong = [program for key, program, *_ in WRONG if key == "lab03.t3" and callable(program)]
    assert len(wrong) > 10
    assert [program.__name__ for program in wrong if check("lab03.t3", program, seed=1).passed] == []


@in_turn(
    "program, code",
    [
        (sets_to_one, "one-everywhere"),
        (largest_step, "one-everywhere"),
        (last_digit, "one-digit-microbatch"),
    ],
)
def test_another_program_with_a_known_mistake_gets_its_code(program: Any, code: str) -> None:
    assert check("lab03.t3", program).code == code


def test_a_stub_is_nothing_handed_in() -> None:
    (stub,) = (cell for cell in lab_cells("lab03") if "task" in cell.tags and "lab03.t3" in cell.source)
    key, function = handed_in(stub.source)
    assert check(key, function).code == "nothing-handed-in"


def test_the_lab_shows_the_setting_that_task_7_judges() -> None:
    text = "\n".join(cell.source for cell in lab_cells("lab03") if not is_solution(cell))
    task = text.partition("### Task 7")[2].partition("\n#")[0]
    assert all(f"**{each}**" in task for each in ("4 devices", "8 microbatches", "5 activations", "5 %"))
    assert (OPEN_DEVICES, OPEN_MICROBATCHES, OPEN_CAP, OPEN_WITHIN) == (4, 8, 5, 0.05)
    assert TASKS["lab03.t7"].points == 5
