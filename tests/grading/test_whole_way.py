"""The whole way of a lab: students start, answer, check and pack; an instructor collects, grades, reads the reports and explains."""

import csv
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from cases import in_turn
from click.testing import Result
from graded_class import (
    answered,
    earned,
    folder_for_tests,
    graded,
    hybridlab,
    lab_spec,
    needs_bubblewrap,
    out_of,
    quick_sandbox,
    right_answer,
    save,
    shared_launcher,
    solved,
)

import hybridlab as library
from hybridlab.course.grading import cli
from hybridlab.course.grading.cases import Secret
from hybridlab.course.grading.escaping import file_name
from hybridlab.course.grading.grade import Assignment, grade_file
from hybridlab.course.grading.labs import lab_notebooks, reference
from hybridlab.course.grading.marks import Marks
from hybridlab.course.tasks import TASKS

QUICK = ("lab05",)  # of which a copy is graded in the quick tests, beside the class of lab 2
HALF = ("lab02.t2", "lab02.t5")
STOPS = "import os\nos._exit(0)"
PATCHES = """
import sys, builtins, json
for module in list(sys.modules.values()):
    for name in ("check", "_check", "passed", "judge"):
        try: setattr(module, name, lambda *arguments, **named: True)
        except Exception: pass
check("lab02.t1", "passed")
check("lab02.t5", lambda devices, microbatches: ["0F0 0B0"])
"""
GRADEBOOK = """Student,ID,SIS Login ID,Section,Lab 1 (7),Lab 2 (8)
    Points Possible,,,,10,26
"Doe, Ana",1,ana,one,3,
"Lo, Ben",2,ben,one,,
"Ng, Zoe",3,zoe,one,,
"""


@dataclass(frozen=True)
class Graded:
    """A graded class: the folder of submissions, the folder of marks, what the command said, and the marks by student."""

    submissions: Path
    out: Path
    said: Result
    marks: dict[str, Marks]


@pytest.fixture
def graded_once(monkeypatch: pytest.MonkeyPatch) -> Graded:
    """Collect what ten and more students hand in, and grade it once."""
    quick_sandbox(monkeypatch)
    base = folder_for_tests()
    folder = base / "submissions"
    own_copy(base, "ana", folder, dict.fromkeys(lab_spec("lab02").stubs))
    own_copy(base, "ben", folder, dict.fromkeys(HALF))
    own_copy(base, "chi", folder, {})
    own_copy(base, "dan", folder, {"lab02.t1": PATCHES, "lab02.t2": None, "lab02.t6": STOPS})
    (folder / "lab02_eva.ipynb").symlink_to(folder / "lab02_ana.ipynb")
    with zipfile.ZipFile(folder / "lab02_fox.zip", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("lab02.ipynb", b"[" * 50_000_000)
    (folder / "lab02_gus.ipynb").write_text("I have forgotten to save my notebook.")
    save(folder / "lab02_hal.ipynb", solved("lab04", "hal"))
    save(folder / "ida" / "lab02.ipynb", solved("lab02", "ida"))
    save(folder / "ida" / "lab02-1.ipynb", answered("lab02", {}, "ida"))
    (folder / "lab02_jan.ipynb").write_bytes((folder / "lab02_ana.ipynb").read_bytes())
    (folder / "kim").mkdir()
    with zipfile.ZipFile(folder / "kim" / "lab02.zip", "w") as packed:
        packed.writestr("my lab/lab02.ipynb", json.dumps(solved("lab02", "kim", keys=("lab02.t3",))))
    (base / "gradebook.csv").write_text(GRADEBOOK)
    said = hybridlab("grade", folder, "--lab", "2", "--out", base / "grades", "--canvas", base / "gradebook.csv", "--jobs", 1)
    return Graded(folder, base / "grades", said, graded(base / "grades"))


def own_copy(base: Path, student: str, folder: Path, answers: dict[str, str | None]) -> None:
    """Start, answer and pack as a student does. An answer of None is the right one."""
    said = hybridlab("start", "lab02", "--as", student, "--to", base / student)
    assert said.exit_code == 0, said.output
    path = base / student / "lab02.ipynb"
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        key = cell["metadata"].get("hybridlab", {}).get("task", "")
        if key in answers:
            cell["source"] = answers[key] or right_answer(key, student)
    save(path, notebook)
    said = hybridlab("pack", path, "--to", folder)
    assert said.exit_code == 0, said.output
    assert (folder / f"lab02_{student}.ipynb").is_file()


def every_submission_gets_the_points_of_its_honest_part_and_nothing_else(graded_once: Graded) -> None:
    written = {task.key: float(task.points) for task in lab_spec("lab02").tasks if task.kind == "written"}
    points: dict[str, dict[str, float]] = {
        "ana": out_of("lab02"),
        "ben": out_of("lab02", *HALF),
        "chi": {},
        "dan": {},  # the patches replace `check` in the student's own notebook, too, so nothing is handed in below them
        "eva": {},
        "fox": {},
        "gus": {},
        "hal": {},
        "ida": {},
        "jan": written,  # the answers of Ana that are the same for all students
        "kim": out_of("lab02", "lab02.t3"),
    }
    assert {student: earned(marks) for student, marks in graded_once.marks.items()} == points


def what_is_not_clear_needs_a_person(graded_once: Graded) -> None:
    asked = {student: marks.needs_person for student, marks in graded_once.marks.items() if marks.needs_person}
    words = {
        "eva": "is a link, which is not followed",
        "fox": "has 50.0 MB without its outputs",
        "gus": "it is no JSON",
        "hal": "this is a copy of lab04, and lab02 is graded",
        "ida": "ida has 2 files (lab02-1.ipynb, lab02.ipynb): leave one of them",
        "jan": "this copy was made for 'ana', and it was graded with the sizes and twists of 'jan'",
    }
    assert {student: words[student] in why for student, why in asked.items()} == dict.fromkeys(words, True)
    assert graded_once.said.exit_code == 4
    assert graded_once.said.stdout.count("  needs a person: ") == len(words)


def the_command_sums_up(graded_once: Graded) -> None:
    assert "11 submissions graded; see" in graded_once.said.stdout
    assert "  ana                  26 of 15\n" in graded_once.said.stdout
    assert "  ben                  8 of 15\n" in graded_once.said.stdout
    assert graded_once.said.stderr == ""


def every_report_is_there_for_every_student(graded_once: Graded) -> None:
    folders = {"classroom": "json", "feedback": "md", "records": "json", "results": "json"}
    of_students = {f"{folder}/{student}.{ending}" for folder, ending in folders.items() for student in graded_once.marks}
    there = {path.relative_to(graded_once.out).as_posix() for path in graded_once.out.rglob("*") if path.is_file()}
    assert there == of_students | {"gradebook.csv", "grades.csv", "junit.xml", "tasks.csv"}
    rows = csv.DictReader((graded_once.out / "grades.csv").read_text().splitlines())
    assert {row["student"]: float(row["points"]) for row in rows} == {name: marks.points for name, marks in graded_once.marks.items()}
    tests = [int(suite.get("tests", 0)) for suite in ElementTree.parse(graded_once.out / "junit.xml").getroot()]  # noqa: S314 - our own
    assert tests == [6] * 11
    for student, marks in graded_once.marks.items():
        assert json.loads((graded_once.out / "results" / f"{file_name(student)}.json").read_text())["score"] == marks.points


def a_student_reads_in_the_feedback_what_is_right_and_what_is_not_yet(graded_once: Graded) -> None:
    text = (graded_once.out / "feedback" / "ben.md").read_text()
    assert text.startswith("# lab02: 8 out of 15 points, 6 of them bonus points\n")
    assert "lab02.t5: passed\n  " in text
    assert "lab02.t6: not yet\n  nothing handed in yet: write a function" in text
    assert "Tasks with a function were tried on hidden cases that nobody saw before." in text


def the_gradebook_is_filled_and_the_other_cells_stay(graded_once: Graded) -> None:
    rows = (graded_once.out / "gradebook.csv").read_text().splitlines()
    before = GRADEBOOK.splitlines()
    assert rows == [*before[:2], before[2] + "26", before[3] + "8", before[4]]
    assert "2 students in the column Lab 2 (8)" in graded_once.said.stdout
    assert "Ng, Zoe of the gradebook has no marks" in graded_once.said.stdout


def a_submission_explained_has_the_marks_on_record(graded_once: Graded) -> None:
    said = hybridlab("grade", "--explain", graded_once.submissions / "lab02_dan.ipynb", "--out", graded_once.out, secret=None)
    assert said.exit_code == 0, said.output
    assert said.stdout.startswith("dan, lab02, run final\n")
    for task in graded_once.marks["dan"].tasks:
        points = f"({task.points:g} of {task.out_of:g} {'bonus ' * task.bonus}points)"
        assert f"{task.key}: {'passed' if task.points else 'not yet'} {points}" in said.stdout
        assert task.seed is None or f"hidden cases of the seed {task.seed}\n" in said.stdout


def a_file_that_two_students_have_handed_in_is_explained_for_both(graded_once: Graded) -> None:
    said = hybridlab("grade", "--explain", graded_once.submissions / "lab02_jan.ipynb", "--out", graded_once.out)
    assert "ana, lab02, run final" in said.stdout
    assert "jan, lab02, run final" in said.stdout
    assert "needs a person: this copy was made for 'ana'" in said.stdout


def other_marks_than_those_on_record_are_told(graded_once: Graded) -> None:
    record = json.loads((graded_once.out / "records" / "ben.json").read_text())
    record["tasks"][1].update(points=0.0, code="one-device-alone")
    other = graded_once.out.with_name("other")
    save(other / "records" / "ben.json", record)
    said = hybridlab("grade", "--explain", graded_once.submissions / "lab02_ben.ipynb", "--out", other)
    assert said.exit_code == 1
    assert "on record: 0 points, one-device-alone" in said.stdout


def a_second_run_grades_nothing_again(graded_once: Graded) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hybridlab.course.grading.grade.mark", None)  # it is not called
        said = hybridlab("grade", graded_once.submissions, "--lab", "lab02", "--out", graded_once.out, "--jobs", 1)
    assert said.exit_code == 4
    assert graded(graded_once.out) == graded_once.marks


QUESTIONS = (
    every_submission_gets_the_points_of_its_honest_part_and_nothing_else,
    what_is_not_clear_needs_a_person,
    the_command_sums_up,
    every_report_is_there_for_every_student,
    a_student_reads_in_the_feedback_what_is_right_and_what_is_not_yet,
    the_gradebook_is_filled_and_the_other_cells_stay,
    a_submission_explained_has_the_marks_on_record,
    a_file_that_two_students_have_handed_in_is_explained_for_both,
    other_marks_than_those_on_record_are_told,
    a_second_run_grades_nothing_again,
)


@needs_bubblewrap
@in_turn("question", QUESTIONS)
def test_of_a_graded_class(graded_once: Graded, question: Callable[[Graded], None]) -> None:
    question(graded_once)


def test_a_student_checks_right_answers_and_answers_that_are_not_right_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([datetime(2026, 3, 2, 9, 0, 40, tzinfo=UTC), datetime(2026, 3, 2, 9, 25, 5, tzinfo=UTC)])
    monkeypatch.setattr(cli, "utc_now", lambda: next(clock))
    path = tmp_path / "lab02.ipynb"
    answers = {"lab02.t2": 'check("lab02.t2", -1)', "lab02.t3": right_answer("lab02.t3", "ana")}
    said = hybridlab("check", save(path, answered("lab02", answers, "ana")), "--times", secret=None)
    assert said.exit_code == 1
    assert "lab02.t2: not yet (0 of 2 points)\n" in said.stdout
    assert "change them, save the notebook, and check again\nminutes of work until each task passed:\n  lab02.t1: not yet\n" in said.stdout
    said = hybridlab("check", save(path, solved("lab02", "ana")), "--times", secret=None)
    assert said.exit_code == 0, said.output
    assert said.stdout.startswith("lab02, for ana, as it was saved last\n")
    assert "\n26 of 15 points, 11 of them bonus points, on public cases; hidden cases run at grading\n" in said.stdout
    assert "hybridlab pack lab02.ipynb makes the file that you hand in\n" in said.stdout
    core, optional = re.findall(r"It takes about (\d+) minutes; the optional parts take another (\d+)", reference("lab02").read_text())[0]
    assert "  lab02.t2: 5\n  lab02.t3 (optional): -\n" in said.stdout, "five tasks share 25 minutes"
    assert f"  together: 15; the lab says {core}\n  optional tasks: 10; the lab says {optional}\n" in said.stdout
    rows = (tmp_path / "lab02_times.csv").read_text().splitlines()
    assert rows[:3] == ["time,task,state", "2026-03-02T09:00Z,lab02.t1,not tried", "2026-03-02T09:00Z,lab02.t2,not yet"]
    assert rows[7:] == [f"2026-03-02T09:25Z,lab02.t{number},passed" for number in range(1, 7)]


@pytest.mark.slow
def test_a_check_finds_neither_an_installed_package_nor_a_path_of_the_student(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds run with numpy alone, whatever is installed beside it."""
    site = tmp_path / "site-packages"
    site.mkdir()
    for package in (*Path(np.__file__).parents[1].glob("numpy*"), Path(library.__file__).parent):
        (site / package.name).symlink_to(package)
    monkeypatch.setattr(np, "__file__", str(site / "numpy" / "__init__.py"))
    monkeypatch.setenv("PYTHONPATH", str(Path(library.__file__).parents[1]))
    said = hybridlab("check", save(tmp_path / "lab02.ipynb", solved("lab02", "ana", keys=("lab02.t5",))))
    assert "lab02.t5: passed (6 of 6 bonus points)" in said.stdout


@needs_bubblewrap
@pytest.mark.parametrize("lab", [pytest.param(lab, marks=pytest.mark.slow) if lab not in QUICK else lab for lab in lab_notebooks()])
def test_right_answers_get_all_points_with_own_sizes_and_twists(lab: str, tmp_path: Path) -> None:
    path = save(tmp_path / f"{lab}_Zoë.ipynb", solved(lab, "Zoë"))
    marks = grade_file(path, "Zoë", Assignment(lab, Secret("the secret of this test")), shared_launcher())
    assert earned(marks) == out_of(lab)
    assert not marks.needs_person
    assert {task.key for task in marks.tasks if task.seed} == {key for key in lab_spec(lab).stubs if TASKS[key].kind == "build"}
