"""Partial credit: which wrong answers earn a part of the points, and that nothing else does."""

from collections.abc import Iterator
from typing import Any

import pytest
from cases import in_turn
from test_tasks_answers import listed

from hybridlab import HybridLabError, Schedule
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.marking import mark
from hybridlab.course.grading.marks import TaskMark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.specs import spec_of
from hybridlab.course.tasks import TASKS

WITH_RUNGS = [task for task in TASKS.values() if task.partial_credit]
SIZES = {"lab02.t1": (3, 4), "lab03.t7": (4, 8), "lab13.t4": (3, 4)}  # of tasks whose answer is a whole schedule
SIZES |= {"lab17.t1": (2, 3), "lab17.t2": (3, 4), "lab19.t1": (4, 6), "lab19.t3": (4, 8)}
GPIPE = "\n".join(" ".join([f"{d}F{m}" for m in range(4)] + [f"{d}B{m}" for m in range(4)]) for d in range(3))
GPIPE_FOR_ALL = """def one_f_one_b(devices, microbatches):
    return [" ".join([f"{d}F{m}" for m in range(microbatches)] + [f"{d}B{m}" for m in range(microbatches)]) for d in range(devices)]

check("lab02.t5", one_f_one_b)"""
# it forgets a backward for more than 6 microbatches, so it is not complete for all sizes
GPIPE_FOR_FEW = GPIPE_FOR_ALL.replace('{d}B{m}" for m in range(microbatches)', '{d}B{m}" for m in range(min(microbatches, 6))')


@pytest.fixture(scope="module")
def workers() -> Iterator[Launcher]:
    with launcher("none") as started:
        yield started


def marked(workers: Launcher, key: str, source: str) -> TaskMark:
    spec = spec_of(reference(key[:5]))
    marks = mark([CodeCell(source, key)], spec, None, workers.open, Budget(workers.limits), lambda task: 7)
    return next(each for each in marks if each.key == key)


@in_turn("task", WITH_RUNGS)
def test_rungs_rise_and_stay_below_all_points(task: Any) -> None:
    shares = [rung.share for rung in task.partial_credit]
    assert shares == sorted(shares)
    assert all(0 < share < 1 for share in shares)
    codes = [code for rung in task.partial_credit for code in rung.codes]
    assert len(codes) == len(set(codes))
    assert "passed" not in codes
    assert "nothing-handed-in" not in codes


@in_turn("key", SIZES)
def test_partial_credit_is_for_orders_that_are_complete_and_can_run(key: str) -> None:
    rows = [(answer, code) for task, answer, code, *_ in listed("WRONG") if task == key and TASKS[key].credit_for(code)]
    assert rows
    for answer, _ in rows:
        schedule = Schedule.parse("\n".join(answer) if isinstance(answer, list) else str(answer))
        assert (schedule.devices, schedule.microbatches) == SIZES[key]


@in_turn("key", SIZES)
def test_an_order_that_cannot_run_earns_nothing(key: str) -> None:
    broken = 0
    for task, answer, code, *_ in listed("WRONG"):
        if task != key or not isinstance(answer, str):
            continue
        try:
            Schedule.parse(answer)
        except HybridLabError:
            broken += 1
            assert TASKS[key].credit_for(code) is None, (answer, code)
    assert broken


def test_gpipe_earns_a_third_where_1f1b_is_asked_for(workers: Launcher) -> None:
    mark_of_text = marked(workers, "lab02.t1", f'check("lab02.t1", """{GPIPE}""")')
    assert (mark_of_text.points, mark_of_text.out_of, mark_of_text.code) == (1.0, 3.0, "gpipe")
    assert mark_of_text.remarks == ("partial credit: complete and able to run",)
    assert marked(workers, "lab02.t5", GPIPE_FOR_ALL).points == 2.0


def test_a_function_earns_a_rung_only_if_it_stands_on_it_for_all_sizes(workers: Launcher) -> None:
    assert marked(workers, "lab02.t5", GPIPE_FOR_FEW).points == 0.0


def test_the_deadlock_as_it_was_given_earns_nothing(workers: Launcher) -> None:
    given = "device 1: 1F0 1F1 1F3 1B0 1F2 1B1 1B2 1B3"
    assert marked(workers, "lab02.t4", f'check("lab02.t4", "{given}")').points == 0.0
    # it runs, but device 1 holds all microbatches
    greedy = marked(workers, "lab02.t4", 'check("lab02.t4", "device 1: 1F0 1F1 1F2 1B0 1F3 1B1 1B2 1B3")')
    assert (greedy.code, greedy.points) == ("too-much-memory", 1.0)
