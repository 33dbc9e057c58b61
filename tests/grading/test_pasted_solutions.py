"""Public solutions pasted into the copies of three students: at most one graded build in ten passes."""

from pathlib import Path

from graded_class import earned, folder_for_tests, lab_spec, needs_bubblewrap, out_of, save, shared_launcher, solved

from hybridlab.course.grading.cases import Secret
from hybridlab.course.grading.grade import Assignment, grade_file
from hybridlab.course.grading.marks import TaskMark
from hybridlab.course.tasks import TASKS

pytestmark = needs_bubblewrap
SECRET_OF_TEST = Secret("the secret of this test")
CLASS = ("ana", "ben", "chi")


def pasted(lab: str) -> list[TaskMark]:
    """The marks of the public solutions in copies of three students."""
    marks: list[TaskMark] = []
    for student in CLASS:
        path = save(folder_for_tests() / f"{lab}_{student}.ipynb", solved(lab))
        marks += grade_file(path, student, Assignment(lab, SECRET_OF_TEST), shared_launcher()).tasks
    return marks


def test_a_pasted_public_solution_earns_nothing_for_a_build_and_little_for_numbers() -> None:
    """The gate of a release tries the builds of each lab. A few drawn sizes have the same right value by chance."""
    marks = {kind: [mark for mark in pasted("lab02") if TASKS[mark.key].kind == kind] for kind in ("build", "number")}
    assert len(marks["build"]) == 3 * sum(TASKS[key].kind == "build" for key in lab_spec("lab02").stubs)
    assert [(mark.key, mark.points) for mark in marks["build"] if mark.points] == []
    assert sum(mark.points > 0 for mark in marks["number"]) <= len(marks["number"]) / 3


def test_the_same_public_solutions_get_all_points_on_the_page(tmp_path: Path) -> None:
    """So it is the twists that refuse them."""
    path = save(tmp_path / "lab05_ana.ipynb", solved("lab05"))
    marks = grade_file(path, "ana", Assignment("lab05", SECRET_OF_TEST, common=True), shared_launcher())
    assert earned(marks) == out_of("lab05")
