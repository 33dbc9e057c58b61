"""Lab 2's tasks: every way to write the right order passes, and every wrong answer gets the code of its mistake."""

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from instances import instances_of
from solutions import lab_cells, solutions_of
from strategies import legal_orders

from hybridlab import InvalidSchedule, Schedule, build, published
from hybridlab.course.labs.lab02.tasks import BROKEN, not_1f1b
from hybridlab.course.tasks import check

LINE = "device 1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3"


def test_the_solution_of_task_1_is_1f1b_as_built() -> None:
    assert Schedule.parse(solutions_of("lab02")["lab02.t1"]).orders == build("1f1b", 3, 4).orders


# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab02.t1", str(build("1f1b", 3, 4)).replace("device 0: ", "").replace("device", "  Device")),
    ("lab02.t1", str(build("1f1b", 3, 4)).lower()),
    ("lab02.t1", build("1f1b", 3, 4)),
    ("lab02.t1", str(build("1f1b", 3, 4)).replace("0B0 ", "0B0, ").replace("1B0 ", "1B0,")),
    ("lab02.t1", build("1f1b", 3, 4).orders),
    ("lab02.t1", build("1f1b", 3, 4).to_csv()),
    ("lab02.t1", str(build("1f1b", 3, 4)).splitlines()),
    ("lab02.t1", [str(build("1f1b", 3, 4))]),
    ("lab02.t1", [[str(op) for op in order] for order in build("1f1b", 3, 4).orders]),
    ("lab02.t2", 120.0),
    ("lab02.t2", np.int64(120)),
    ("lab02.t3", 3 * 3 + 10 * (5 + 10) + 3 * 6),
    ("lab02.t3", np.float64(177)),
    ("lab02.t4", str(build("1f1b", 3, 4))),
    ("lab02.t4", str(build("1f1b", 3, 4)).upper()),
    ("lab02.t4", str(build("1f1b", 3, 4)).lower()),
    ("lab02.t4", build("1f1b", 3, 4)),
    ("lab02.t4", build("1f1b", 3, 4).orders),
    ("lab02.t4", build("1f1b", 3, 4).to_csv()),
    ("lab02.t4", str(build("1f1b", 3, 4)).splitlines()),
    ("lab02.t4", LINE.replace(" ", "   ").upper()),
    ("lab02.t4", f"\n{LINE.lower()}\n"),
    ("lab02.t4", [LINE]),
    ("lab02.t4", LINE.removeprefix("device 1: ")),
    ("lab02.t4", LINE.removeprefix("device 1: ").split()),
    ("lab02.t4", LINE.removeprefix("device 1: ").replace(" ", ",")),
    ("lab02.t4", LINE.replace(":", "")),
    ("lab02.t4", build("1f1b", 3, 4).orders[1]),
]


def moved(text: str, op: str, behind: str) -> str:
    """The schedule with one operation moved behind another."""
    return text.replace(f"{op} ", "").replace(behind, f"{behind} {op}")


ONE_F_ONE_B = str(build("1f1b", 3, 4))
TURNED = re.sub(r"(?<=[FB])[23]", lambda match: str(5 - int(match[0])), ONE_F_ONE_B)  # microbatch 3 before 2
LAST_FIRST = """
0F0 0F1 0F2 0B2 0F3 0B3 0B1 0B0
1F0 1F1 1F2 1B2 1F3 1B3 1B1 1B0
2F0 2F1 2F2 2B2 2F3 2B3 2B1 2B0
"""
UPSIDE_DOWN = """
0F0 0B0 0F1 0B1 0F2 0B2 0F3 0B3
1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3
2F0 2F1 2F2 2B0 2F3 2B1 2B2 2B3
"""
# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab02.t1", 7, "not-a-list", "7"),
    ("lab02.t1", {"0F0 0B0", "1F0 1B0"}, "not-a-list"),
    ("lab02.t1", "F0 F1 B0 B1", "unknown-operation", "line 1", "column 1", "'F0'"),
    ("lab02.t1", ONE_F_ONE_B.replace("2B3", "2X3"), "unknown-operation", "line 3", "column 39", "'2X3'"),
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
    ("lab02.t1", moved(ONE_F_ONE_B, "0F2", "0B0"), "wrong-warmup", "device 0", "2 forwards", "after 3", "warm-up has 2"),
    ("lab02.t1", moved(ONE_F_ONE_B, "1F2", "1F1"), "wrong-warmup", "device 1", "3 forwards", "after 2", "warm-up has 1"),
    ("lab02.t1", moved(ONE_F_ONE_B, "1F3", "1F2"), "not-alternating", "device 1", "1F2", "1F3"),
    ("lab02.t1", moved(ONE_F_ONE_B, "0F3", "0B1"), "not-alternating", "device 0", "0B0", "0B1"),
    ("lab02.t1", str(build("looped-bfs", 3, 4)), "another-placement"),
    ("lab02.t1", UPSIDE_DOWN, "reversed", "0B0", "1F1", "grows with the number of the stage"),
    ("lab02.t1", LAST_FIRST, "microbatches-out-of-order", "backward of microbatch 2 before that of microbatch 0"),
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
    ("lab02.t2", "120 ms", "not-a-number", "57"),
    ("lab02.t2", [120], "not-a-number"),
    ("lab02.t3", 117, "as-fast-as-the-others"),
    ("lab02.t3", 195, "all-devices-slow"),
    ("lab02.t3", 123, "slower-once", "10 pairs"),
    ("lab02.t3", 150, "one-device-alone"),
    ("lab02.t3", 159, "no-drain"),
    ("lab02.t3", 168, "no-fill"),
    ("lab02.t3", 90, "less-than-the-work", "90 ms", "10 x (5 + 10)"),
    ("lab02.t3", 180, "wrong-value", "180 ms"),
    ("lab02.t3", "177 ms", "not-a-number"),
    ("lab02.t4", BROKEN[1], "unchanged"),
    ("lab02.t4", LINE.replace("1B0 1F2 1B1 1F3", "1F2 1F3 1B0 1B1"), "deadlock", "device 1", "1F3", "0F3"),
    ("lab02.t4", BROKEN[0].replace("0B0 0F3", "0F3 0B0"), "too-much-memory", "device 0", "4 microbatches", "3"),
    ("lab02.t4", LINE.replace("1B1 1F3", "1F3 1B1"), "too-much-memory", "device 1", "3 microbatches", "2"),
    ("lab02.t4", LINE.replace("1F3 1B2", "1B2 1F3"), "too-slow", "21", "18"),
    ("lab02.t4", LINE.removesuffix(" 1B3"), "missing-backward", "stage 1", "microbatch 3"),
    ("lab02.t4", LINE.replace("device 1", "device 3"), "not-one-line"),
    ("lab02.t4", "1F0 1F1 2B0", "not-one-line"),
    ("lab02.t4", "device 1: 1F0\ndevice 2: 2F0", "wrong-device-number", "device 0", "device 1"),
    ("lab02.t4", ["0F0 0B0", "1F0 1B0"], "not-one-line"),
    ("lab02.t4", LINE.replace("1B3", "1X3"), "unknown-operation", "'1X3'"),
    ("lab02.t4", LINE.replace("device 1", "device 0"), "missing-stage", "stage 0"),
    ("lab02.t4", str(build("gpipe", 3, 4)), "several-devices-changed", "0, 1, 2"),
    ("lab02.t4", 1, "not-a-list"),
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
    (source,) = (cell.source for cell in lab_cells("lab02") if "broken = " in cell.source)
    names: dict[str, Any] = {"build": build}
    exec(source, names)  # noqa: S102 - a cell of our own lab
    assert names["broken"].split() == "\n".join(BROKEN).split()


def test_every_instance_of_the_questions_takes_its_answer_and_names_its_mistakes() -> None:
    for instance in (*instances_of("lab02.t2").values(), *instances_of("lab02.t3").values()):
        (number,) = instance.data.numbers
        assert instance.judge(number.truth).passed
        codes = {code for _, code, _ in number.mistakes}
        wrong = [value for value, *_ in number.mistakes if not isinstance(value, str)]
        assert all(instance.judge(value).code in codes for value in wrong), instance.prompt


def test_the_last_device_sets_the_pace_in_every_instance_of_task_3() -> None:
    for seed, instance in instances_of("lab02.t3").items():
        prompt = instance.prompt
        devices, microbatches, forward, backward, slow_forward, slow_backward = map(int, re.findall(r"(?<!1F)(?<!\d)\d+(?!F)", prompt))
        fill_and_drain, work = (devices - 1) * (forward + backward), microbatches * (slow_forward + slow_backward)
        assert check("lab02.t3", fill_and_drain + work, seed=seed).passed, prompt


@in_turn(
    "key, answer, words",
    [
        ("lab02.t1", str(build("1f1b", 3, 4)), ["makespan 18"]),
        ("lab02.t1", str(build("gpipe", 3, 4)), ["Marked as wrong"]),
        ("lab02.t1", str(build("1f1b", 3, 4)).replace(" 2B3", ""), ["2B3, which is missing"]),
        ("lab02.t4", BROKEN, ["Device 1 stops at 1F3", "waits for 0F3", "the goal"]),
        ("lab02.t4", LINE, ["makespan 18"]),
    ],
)
def test_the_feedback_has_the_picture_of_the_answer(key: str, answer: Any, words: Sequence[str]) -> None:
    feedback = check(key, answer)
    assert feedback.drawing is not None
    picture = repr(feedback.drawing.figure()).replace("\n", " ")
    assert all(word in picture for word in words), picture
    assert ("the goal" in picture) is (key == "lab02.t4" and not feedback.passed), "the goal of task 1 is its answer"
