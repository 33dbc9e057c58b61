"""Lab 2's tasks: every way to write the right order passes, and every wrong answer gets the code of its mistake."""

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


# Each row has a task and another way to write its right answer.
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
    """The schedule with one operation moved behind another."""
    return text.replace(f"{op} ", "").replace(behind, f"{behind} {op}")


ONE_F_ONE_B = str(build("1f1b", 3, 4))
TURNED = re.sub(r"(?<=[FB])[23]", lambda match: str(5 - int(match[0])), ONE_F_ONE_B)  # microbatch 3 before 2
# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab02.t1", build("1f1b", 3, 4), "wrong-type"),
    ("lab02.t1", [ONE_F_ONE_B], "not-text"),
    ("lab02.t1", 7, "not-text"),
    ("lab02.t1", "F0 F1 B0 B1", "unknown-operation", "line 1", "column 1", "'F0'"),
    ("lab02.t1", ONE_F_ONE_B.replace("2B3", "2b3"), "unknown-operation", "line 3", "column 39", "'2b3'"),
    ("lab02.t1", ONE_F_ONE_B.replace(" 2B3", ""), "missing-backward", "stage 2", "microbatch 3"),
    ("lab02.t1", ONE_F_ONE_B.replace(" 2B3", " 2B3 2B3"), "doubled-operation", "stage 2", "microbatch 3"),
    ("lab02.t1", ONE_F_ONE_B.replace("2F0 2B0", "2B0 2F0"), "too-early", "device 2", "2B0", "2F0"),
    ("lab02.t1", ONE_F_ONE_B.replace("1F1 1B0 1F2 1B1 1F3", "1F1 1F2 1F3 1B0 1B1"), "deadlock", "device 0", "0B0", "1B0"),
    ("lab02.t1", ONE_F_ONE_B.replace("1B3", "1B3 2F0"), "stage-on-two-devices", "stage 2", "device 1", "(2F0)", "device 2"),
    ("lab02.t1", published.step_grid(3, 1, 4).orders(), "missing-forward", "stage 1", "0, 1, 2, 3"),
    ("lab02.t1", published.event_log(3, 1, 4).orders(), "missing-forward", "stage 2", "2, 3"),
    ("lab02.t1", str(build("1f1b", 3, 5)), "another-size", "3 devices", "5 microbatches"),
    ("lab02.t1", str(build("1f1b", 4, 4)), "another-size", "4 devices", "4 microbatches"),
    ("lab02.t1", str(build("gpipe", 3, 4)), "gpipe", "device 1", "4 forwards"),
    ("lab02.t1", moved(ONE_F_ONE_B, "0F2", "0B0"), "wrong-warmup", "device 0", "2 forwards", "warm-up there is 2"),
    ("lab02.t1", moved(ONE_F_ONE_B, "1F2", "1F1"), "wrong-warmup", "device 1", "3 forwards", "warm-up there is 1"),
    ("lab02.t1", moved(ONE_F_ONE_B, "1F3", "1F2"), "not-alternating", "device 1", "1F2", "1F3"),
    ("lab02.t1", moved(ONE_F_ONE_B, "0F3", "0B1"), "not-alternating", "device 0", "0B0", "0B1"),
    ("lab02.t1", str(build("looped-bfs", 3, 4)), "another-placement"),
    ("lab02.t1", TURNED, "microbatches-out-of-order", "microbatch 3", "microbatch 2"),
    ("lab02.t1", str(build("zb-h1", 3, 4)), "split-backward", "device 0", "microbatch 0", "stage 0"),
    ("lab02.t1", str(build("hanayo", 3, 3)), "another-size", "3 devices", "3 microbatches"),
    ("lab02.t2", 80, "one-device-alone"),
    ("lab02.t2", 95, "no-drain"),
    ("lab02.t2", 105, "no-fill"),
    ("lab02.t2", 128, "one-pair-too-many"),
    ("lab02.t2", 480, "one-after-the-other"),
    ("lab02.t2", 45, "forwards-alone"),
    ("lab02.t2", 75, "backwards-alone"),
    ("lab02.t2", 30, "slots-not-ms"),
    ("lab02.t2", 15, "pairs-not-ms"),
    ("lab02.t2", 50, "less-than-the-work"),
    ("lab02.t2", 121, "wrong-value"),
    ("lab02.t2", "120 ms", "not-a-number"),
    ("lab02.t2", [120], "not-a-number"),
    ("lab02.t3", [5, 4, 3, 2, 1, 0], "more-than-microbatches", "device 0", "5 forwards"),
    ("lab02.t3", [3, 3, 3, 3, 2, 1], "first-pair-counted"),
    ("lab02.t3", [0, 1, 2, 3, 3, 3], "reversed"),
    ("lab02.t3", [3, 3, 3, 2, 1, 1], "last-device-warms-up", "device 5"),
    ("lab02.t3", [2, 2, 2, 2, 1, 0], "wrong-value", "device 0: 2"),
    ("lab02.t3", [3, 3, 3, 2, 0, 0], "wrong-value", "device 4: 0", "1 device"),
    ("lab02.t3", [3, 3, 2.5, 2, 1, 0], "not-a-count", "2.5"),
    ("lab02.t3", [3, 3, 3, 2, 1, -1], "not-a-count", "-1"),
    ("lab02.t3", [3, 3, 3, 2, 1], "wrong-length"),
    ("lab02.t3", 3, "not-a-list"),
    ("lab02.t3", [3, 3, 3, 2, 1, None], "not-a-number"),
    ("lab02.t4", "device 1: 1F0 1F1 1F3 1B0 1F2 1B1 1B2 1B3", "unchanged"),
    ("lab02.t4", "device 1: 1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3", "deadlock", "device 1", "1F3", "0F3"),
    ("lab02.t4", "device 0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3", "too-much-memory", "device 0", "4 microbatches", "3"),
    ("lab02.t4", "device 1: 1F0 1F1 1B0 1F2 1F3 1B1 1B2 1B3", "too-much-memory", "device 1", "3 microbatches", "2"),
    ("lab02.t4", "device 1: 1F0 1F1 1B0 1F2 1B1 1B2 1F3 1B3", "too-slow", "21", "18"),
    ("lab02.t4", "device 1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2", "missing-backward", "stage 1", "microbatch 3"),
    ("lab02.t4", "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3", "not-one-line"),
    ("lab02.t4", "device 3: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3", "not-one-line"),
    ("lab02.t4", "1F3", "not-one-line"),
    ("lab02.t4", str(build("gpipe", 3, 4)), "several-devices-changed", "0, 1, 2"),
    ("lab02.t4", 1, "not-text"),
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
