"""Public solutions pasted into the copies of three students: at most one graded build in ten passes."""

from functools import cache
from pathlib import Path

import pytest
from graded_class import earned, folder_for_tests, lab_spec, needs_bubblewrap, out_of, save, shared_launcher, solved

from hybridlab.course.grading.cases import Secret
from hybridlab.course.grading.grade import Assignment, grade_file
from hybridlab.course.grading.marks import TaskMark
from hybridlab.course.tasks import TASKS

pytestmark = needs_bubblewrap
SECRET_OF_TEST = Secret("the secret of this test")
CLASS = ("ana", "ben", "chi")
LABS = sorted({key[:5] for key, task in TASKS.items() if task.kind == "build"})


@cache
def pasted(lab: str) -> list[TaskMark]:
    """The marks of the public solutions in copies of three students."""
    marks: list[TaskMark] = []
    for student in CLASS:
        path = save(folder_for_tests() / f"{lab}_{student}.ipynb", solved(lab))
        marks += grade_file(path, student, Assignment(lab, SECRET_OF_TEST), shared_launcher()).tasks
    return marks


@pytest.mark.parametrize("lab", [pytest.param(lab, marks=() if lab == "lab02" else pytest.mark.slow) for lab in LABS])
def test_no_build_accepts_a_pasted_public_solution(lab: str) -> None:
    marks = [mark for mark in pasted(lab) if TASKS[mark.key].kind == "build"]
    assert len(marks) == 3 * sum(TASKS[key].kind == "build" for key in lab_spec(lab).stubs)
    assert [(mark.key, mark.points) for mark in marks if mark.points] == []


def test_the_same_public_solutions_get_all_points_on_the_page(tmp_path: Path) -> None:
    """So it is the twists that refuse them."""
    path = save(tmp_path / "lab05_ana.ipynb", solved("lab05"))
    marks = grade_file(path, "ana", Assignment("lab05", SECRET_OF_TEST, common=True), shared_launcher())
    assert earned(marks) == out_of("lab05")


def test_most_numbers_of_the_page_are_wrong_for_a_student() -> None:
    """A few drawn sizes have the same right value by chance."""
    marks = [mark for mark in pasted("lab02") if TASKS[mark.key].kind == "number"]
    assert sum(mark.points > 0 for mark in marks) <= len(marks) / 3
