"""Test that the published solution of a build with a twist earns nothing, also where a task gives partial credit."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from cases import in_turn
from grading_worlds import lab_spec

from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.marking import mark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.tasks import TASKS, Student

KEY = "lab02.t5"
SPEC = replace(lab_spec("lab02"), tasks=(TASKS[KEY],))
GPIPE = """
def one_f_one_b(devices, microbatches):
    last_first = range(microbatches)[::-1]
    return [" ".join([f"{d}F{m}" for m in last_first] + [f"{d}B{m}" for m in last_first]) for d in range(devices)]

check("lab02.t5", one_f_one_b)
"""


@pytest.fixture(scope="module", params=["none", pytest.param("bubblewrap", marks=[pytest.mark.needs("bwrap"), pytest.mark.slow])])
def workers(request: pytest.FixtureRequest) -> Iterator[Launcher]:
    with launcher(request.param) as found:
        yield found


def points(workers: Launcher, source: str, student: Student) -> float:
    (task,) = mark([CodeCell(source, KEY)], SPEC, student, workers.open, Budget(workers.limits), lambda key: 5)
    return task.points


IMPORTS = "from hybridlab import Student, check as hand_in\n\nmine = Student('student-42')\ncheck = mine.check\n"


@in_turn(
    "source, earned",
    [
        (SPEC.solutions[KEY], 0),
        # where hybridlab is installed with its course, an import of check must not take the place of the grader's
        (f"{IMPORTS}{GPIPE}", 2),
        (f"{IMPORTS}{GPIPE.replace('check(', 'hand_in(')}", 2),
    ],
)
def test_a_published_solution_earns_nothing_and_an_own_program_a_part(workers: Launcher, source: str, earned: float) -> None:
    student = Student("student-42")
    assert TASKS[KEY].personal(student.seed(KEY)).data.twist.name == "last-microbatch-first"
    assert points(workers, source, student) == earned
