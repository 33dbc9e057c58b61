"""A student with own numbers and own twists solves every lab from top to bottom, and later cells use what earlier labs have saved."""

import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from graded_class import solved
from grading_worlds import lab_spec
from honest import LABS, own_call
from nbclient import NotebookClient
from solutions import NAMES_OF_LABS, tasks_of

from hybridlab import Student
from hybridlab.course.parts import ELSEWHERE
from hybridlab.course.tasks import TASKS, Build


def solution_to_save(key: str, student: str) -> str:
    """Return the source of a cell with a build that can be saved: a function of its own that calls an honest solution."""
    build = TASKS[key].personal(Student(student).seed(key)).data
    published = re.sub(r"^check\(.*$", "", lab_spec(key[:5]).solutions[key], flags=re.MULTILINE)
    call = own_call(key, build.twist, f"honest_{key[:5]}.TWISTED")
    definition = f"def {build.name}(*arguments):\n    return {call}(*arguments)\n"
    return f"import honest_{key[:5]}\n\n{published}\n{definition}\ncheck({key!r}, {build.name})\n"


def problems_of(lab: str, student: str, folder: Path) -> list[str]:
    """Run a student's copy of a lab with right answers. Return the answers that did not pass, and the functions that were not saved."""
    notebook = nbformat.from_dict(solved(lab, student))
    cells = {cell.metadata.get("hybridlab", {}).get("task"): cell for cell in notebook.cells if cell.cell_type == "code"}
    builds = {key: data for key in tasks_of(lab) if isinstance(data := TASKS[key].instance(None).data, Build)}
    if builds:
        (folder / f"honest_{lab}.py").write_text((LABS / lab / "honest.py").read_text(encoding="utf-8"), encoding="utf-8")
    for key in builds:
        cells[key].source = solution_to_save(key, student)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    shown = {key: _text_of(cells[key]) for key in tasks_of(lab)}
    wrong = [f"{key} of {student}: {text}" for key, text in shown.items() if f"{key}: passed" not in text]
    return wrong + [f"{key} of {student} was not saved: {shown[key]}" for key in builds if "saved as" not in shown[key]]


def _text_of(cell: Any) -> str:
    return "".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)


STUDENTS = os.environ.get("HYBRIDLAB_STUDENTS", "")  # names of students, with commas between them, who solve all labs
TAKE_LONG = () if STUDENTS else ("lab07", "lab08", "lab16")  # they train, wait, or start processes


@pytest.mark.slow
@pytest.mark.parametrize("student", (STUDENTS or "chi").split(","))
def test_a_student_solves_every_lab(student: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ELSEWHERE, str(tmp_path))
    labs = [lab for lab in NAMES_OF_LABS if lab not in TAKE_LONG]
    assert [problem for lab in labs for problem in problems_of(lab, student, tmp_path)] == []
