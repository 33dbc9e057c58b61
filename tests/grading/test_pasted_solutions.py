"""Public solutions in a student's copy: the twists and the drawn sizes refuse them, and on the page they get all points."""

from pathlib import Path

from graded_class import earned, needs_bubblewrap, out_of, save, shared_launcher, solved

from hybridlab.course.checking.checking import check_with
from hybridlab.course.grading.cases import Secret
from hybridlab.course.grading.grade import Assignment, grade_file
from hybridlab.course.tasks import TASKS, Student, Task

CLASS = ("ana", "ben", "chi")


def public_answer_passes(task: Task, student: str) -> bool:
    """Whether the right answer to the question on the page is right for the sizes of a student."""
    page, asked = task.instance(None), task.personal(Student(student).seed(task.key))
    values = [number.truth for number in page.data.numbers]
    return check_with(task, asked, values[0] if len(values) == 1 else values).passed


def test_most_numbers_of_the_page_are_wrong_for_a_student() -> None:
    """A few drawn sizes have the same right value by chance. The gate of a release tries the builds."""
    drawn = [task for key, task in TASKS.items() if task.kind == "number" and task.instance(0).prompt != task.prompt]
    passed = [(task.key, student) for task in drawn for student in CLASS if public_answer_passes(task, student)]
    assert drawn
    assert len(passed) <= len(drawn) * len(CLASS) / 5, passed


@needs_bubblewrap
def test_public_solutions_get_all_points_with_the_sizes_on_the_page(tmp_path: Path) -> None:
    path = save(tmp_path / "lab05_ana.ipynb", solved("lab05"))
    marks = grade_file(path, "ana", Assignment("lab05", Secret("the secret of this test"), common=True), shared_launcher())
    assert earned(marks) == out_of("lab05")
