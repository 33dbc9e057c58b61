"""Lab 2's tasks: every way to write the right order passes, and every wrong answer gets a sentence of its own."""

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from solutions import is_solution, lab_cells, solutions_of
from strategies import legal_orders

from hybridlab import InvalidSchedule, Schedule, build, published
from hybridlab.course.tasks import check
from hybridlab.course.tasks.lab02 import BROKEN, not_1f1b

LINE = "device 1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3"


def test_the_solution_of_task_1_is_1f1b_as_built() -> None:
    assert Schedule.parse(solutions_of("lab02")["lab02.t1"]).orders == build("1f1b", 3, 4).orders


# Task, another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab02.t1", str(build("1f1b", 3, 4)).replace("device 0: ", "").replace("device", "  Device")),
    ("lab02.t2", 120.0),
    ("lab02.t2", np.int64(120)),
    ("lab02.t3", (3, 3, 3, 2, 1, 0)),
    ("lab02.t3", np.array([3.0, 3, 3, 2, 1, 0])),
    ("lab02.t4", str(build("1f1b", 3, 4))),
    ("lab02.t4", LINE.replace(" ", "   ").upper()),
]


def moved(text: str, op: str, behind: str) -> str:
    """The schedule with one operation taken out and put behind another."""
    return text.replace(f"{op} ", "").replace(behind, f"{behind} {op}")


ONE_F_ONE_B = str(build("1f1b", 3, 4))
TURNED = re.sub(r"(?<=[FB])[23]", lambda match: str(5 - int(match[0])), ONE_F_ONE_B)  # microbatch 3 before 2
WRONG = [
    ("lab02.t1", build("1f1b", 3, 4), "not of type Schedule"),
    ("lab02.t1", [ONE_F_ONE_B], "a schedule is text such as"),
    ("lab02.t1", 7, "a schedule is text such as"),
    ("lab02.t1", "F0 F1 B0 B1", "line 1, column 1: 'F0' is not an operation"),
    ("lab02.t1", ONE_F_ONE_B.replace("2B3", "2b3"), "line 3, column 39: '2b3' is not an operation"),
    ("lab02.t1", ONE_F_ONE_B.replace(" 2B3", ""), "stage 2 never runs the backward of microbatch 3"),
    ("lab02.t1", ONE_F_ONE_B.replace(" 2B3", " 2B3 2B3"), "stage 2 runs the backward of microbatch 3 twice"),
    ("lab02.t1", ONE_F_ONE_B.replace("2F0 2B0", "2B0 2F0"), "device 2 runs 2B0 before 2F0"),
    ("lab02.t1", ONE_F_ONE_B.replace("1F1 1B0 1F2 1B1 1F3", "1F1 1F2 1F3 1B0 1B1"), "device 0 stops at 0B0: it waits for 1B0"),
    ("lab02.t1", ONE_F_ONE_B.replace("1B3", "1B3 2F0"), "stage 2 stands on device 1 (2F0) and on device 2"),
    ("lab02.t1", published.step_grid(3, 1, 4).orders(), "stage 1 never runs the forward of microbatches 0, 1, 2, 3"),
    ("lab02.t1", published.event_log(3, 1, 4).orders(), "stage 2 never runs the forward of microbatches 2, 3"),
    ("lab02.t1", str(build("1f1b", 3, 5)), "3 devices and 5 microbatches; the task is"),
    ("lab02.t1", str(build("1f1b", 4, 4)), "4 devices and 4 microbatches; the task is"),
    ("lab02.t1", str(build("gpipe", 3, 4)), "device 1 starts its first backward after all its 4 forwards, as GPipe does"),
    ("lab02.t1", moved(ONE_F_ONE_B, "0F2", "0B0"), "device 0 starts its first backward after 2 forwards; 1F1B's warm-up there is 2"),
    ("lab02.t1", moved(ONE_F_ONE_B, "1F2", "1F1"), "device 1 starts its first backward after 3 forwards; 1F1B's warm-up there is 1"),
    ("lab02.t1", moved(ONE_F_ONE_B, "1F3", "1F2"), "device 1 runs 1F2 and 1F3 one after the other"),
    ("lab02.t1", moved(ONE_F_ONE_B, "0F3", "0B1"), "device 0 runs 0B0 and 0B1 one after the other"),
    ("lab02.t1", TURNED, "microbatch 3 before that of microbatch 2"),
    ("lab02.t1", str(build("zb-h1", 3, 4)), "device 0 runs the input gradient of microbatch 0 on stage 0"),
    ("lab02.t1", str(build("hanayo", 3, 3)), "3 devices and 3 microbatches; the task is"),
    ("lab02.t2", 80, "the work of one device"),
    ("lab02.t2", 95, "but not the backwards after it ends"),
    ("lab02.t2", 105, "but not the wait before it starts"),
    ("lab02.t2", 128, "one pair too many"),
    ("lab02.t2", 480, "one device working after the other"),
    ("lab02.t2", 45, "the forwards alone"),
    ("lab02.t2", 75, "the backwards alone"),
    ("lab02.t2", 30, "unit slots"),
    ("lab02.t2", 15, "not yet ms"),
    ("lab02.t2", 50, "less than the work of one device"),
    ("lab02.t2", 121, "follow the last device"),
    ("lab02.t2", "120 ms", "a makespan is a number such as"),
    ("lab02.t2", [120], "a makespan is a number such as"),
    ("lab02.t3", [5, 4, 3, 2, 1, 0], "device 0 cannot warm up with 5 forwards: there are only 3 microbatches"),
    ("lab02.t3", [3, 3, 3, 3, 2, 1], "the forward of the first pair"),
    ("lab02.t3", [0, 1, 2, 3, 3, 3], "the other way round"),
    ("lab02.t3", [3, 3, 3, 2, 1, 1], "device 5 is the last"),
    ("lab02.t3", [2, 2, 2, 2, 1, 0], "device 0: 2 is not right"),
    ("lab02.t3", [3, 3, 3, 2, 0, 0], "a microbatch passes 1 device more"),
    ("lab02.t3", [3, 3, 2.5, 2, 1, 0], "not 2.5"),
    ("lab02.t3", [3, 3, 3, 2, 1, -1], "not -1"),
    ("lab02.t3", [3, 3, 3, 2, 1], "but there are 5"),
    ("lab02.t3", 3, "a list of 6 numbers"),
    ("lab02.t3", [3, 3, 3, 2, 1, None], "such as 12.5, not None"),
    ("lab02.t4", "device 1: 1F0 1F1 1F3 1B0 1F2 1B1 1B2 1B3", "it still deadlocks"),
    ("lab02.t4", "device 1: 1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3", "device 1 stops at 1F3: it waits for 0F3"),
    ("lab02.t4", "device 0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3", "device 0 holds 4 microbatches at once; in 1F1B it holds 3"),
    ("lab02.t4", "device 1: 1F0 1F1 1B0 1F2 1F3 1B1 1B2 1B3", "device 1 holds 3 microbatches at once; in 1F1B it holds 2"),
    ("lab02.t4", "device 1: 1F0 1F1 1B0 1F2 1B1 1B2 1F3 1B3", "it ends at 21; 1F1B ends at 18"),
    ("lab02.t4", "device 1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2", "stage 1 never runs the backward of microbatch 3"),
    ("lab02.t4", "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3", "one line with its device in front"),
    ("lab02.t4", "device 3: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3", "one line with its device in front"),
    ("lab02.t4", "1F3", "one line with its device in front"),
    ("lab02.t4", str(build("gpipe", 3, 4)), "changed devices 0, 1, 2; the order of one device is enough"),
    ("lab02.t4", 1, "the new line is text such as"),
]


def near_1f1b(devices: int, microbatches: int) -> Iterator[Schedule]:
    """1F1B with one operation moved within its device, where that can run."""
    wanted = build("1f1b", devices, microbatches).orders
    for device, order in enumerate(wanted):
        for place, target in product(range(len(order)), repeat=2):
            rest = [*order[:place], *order[place + 1 :]]
            changed = (*rest[:target], order[place], *rest[target:])
            try:
                yield Schedule("near", (*wanted[:device], changed, *wanted[device + 1 :]))
            except InvalidSchedule:
                continue


def test_task_1_passes_1f1b_and_none_of_its_neighbours() -> None:
    wanted = build("1f1b", 3, 4).orders
    near = list(near_1f1b(3, 4))
    assert len({schedule.orders for schedule in near}) > 20
    for schedule in near:
        assert check("lab02.t1", str(schedule)).passed == (schedule.orders == wanted), schedule


@given(schedule=legal_orders())
def test_an_order_without_a_fault_is_1f1b_as_built(schedule: Schedule) -> None:
    built = build("1f1b", schedule.devices, schedule.microbatches).orders
    assert (not list(not_1f1b(schedule))) == (schedule.orders == built)


@given(devices=st.integers(1, 6), microbatches=st.integers(1, 8))
def test_1f1b_as_built_has_no_fault(devices: int, microbatches: int) -> None:
    assert not list(not_1f1b(build("1f1b", devices, microbatches)))


def test_the_lab_shows_the_order_that_task_4_judges() -> None:
    text = "\n".join(cell.source for cell in lab_cells("lab02") if cell.kind == "code" and not is_solution(cell))
    assert all(line in text for line in BROKEN)
