"""Runs that do not come to their end, and what is on record: nothing is lost, nothing is half-written, and nothing is graded twice."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import refusal
from graded_class import (
    SECRET,
    answered,
    earned,
    folder_for_tests,
    graded,
    hybridlab,
    needs_bubblewrap,
    out_of,
    quick_sandbox,
    save,
    shared_launcher,
    solved,
)

from hybridlab.course.grading import grade as grading
from hybridlab.course.grading import launch, reports, session
from hybridlab.course.grading.cases import Secret
from hybridlab.course.grading.copies import student_copy
from hybridlab.course.grading.grade import Assignment, grade_all
from hybridlab.course.grading.launch import Launcher
from hybridlab.course.grading.sandbox import Limits
from hybridlab.course.grading.session import Budget, Session
from hybridlab.course.grading.submissions import find_submissions
from hybridlab.course.tasks import TASKS
from hybridlab.errors import HybridLabError

pytestmark = needs_bubblewrap
CLASS = ("ana", "ben", "chi", "dan")
T2, T5 = "lab02.t2", "lab02.t5"


@pytest.fixture(scope="module")
def submissions() -> Path:
    folder = folder_for_tests()
    for student in CLASS:
        save(folder / f"lab02_{student}.ipynb", solved("lab02", student, keys=(T2,)))
    return folder


@pytest.fixture
def graded_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The students whose files are graded, in order. The command uses workers that all tests share."""
    quick_sandbox(monkeypatch)
    students: list[str] = []
    own = grading.grade_file

    def counted(path: Path, student: str, *rest: Any) -> Any:
        students.append(student)
        return own(path, student, *rest)

    monkeypatch.setattr(grading, "grade_file", counted)
    return students


def grade(submissions: Path, out: Path, *more: object, secret: str = SECRET) -> Any:
    return hybridlab("grade", submissions, "--lab", "lab02", "--out", out, "--jobs", 1, *more, secret=secret)


def test_an_interrupted_run_goes_on_where_it_stopped(
    submissions: Path, graded_files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = grading.mark

    def interrupted(*arguments: Any) -> Any:
        if graded_files == ["ana", "ben", "chi"]:
            raise KeyboardInterrupt
        return own(*arguments)

    monkeypatch.setattr(grading, "mark", interrupted)
    said = grade(submissions, tmp_path)
    assert said.exit_code == 130
    assert said.stderr == "interrupted: 2 of 4 submissions graded and on record; the same command grades the others\n"
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*.*"))] == ["records/ana.json", "records/ben.json"]
    monkeypatch.setattr(grading, "mark", own)
    graded_files.clear()
    said = grade(submissions, tmp_path)
    assert said.exit_code == 0, said.output
    assert graded_files == ["chi", "dan"]
    assert {student: earned(marks) for student, marks in graded(tmp_path).items()} == dict.fromkeys(CLASS, out_of("lab02", T2))
    assert len((tmp_path / "grades.csv").read_text().splitlines()) == 5


def test_reports_that_cannot_be_written_leave_those_of_the_last_run_whole(
    submissions: Path, graded_files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade(submissions, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    own = reports._junit
    monkeypatch.setattr(reports, "_junit", lambda marks: own(marks) and (_ for _ in ()).throw(KeyboardInterrupt))
    assert grade(submissions, tmp_path).exit_code == 130
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


@pytest.mark.parametrize("change", ["secret", "run", "course", "common", "file"])
def test_a_record_of_another_run_is_not_used(change: str, submissions: Path, graded_files: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "in"
    save(folder / "lab02_ana.ipynb", json.loads((submissions / "lab02_ana.ipynb").read_text()))
    grade(folder, tmp_path / "out")
    more: dict[str, list[object]] = {"run": ["--run", "practice"], "course": ["--course", "physics"], "common": ["--common"]}
    if change == "file":
        save(folder / "lab02_ana.ipynb", student_copy("lab02", "ana"))
    grade(folder, tmp_path / "out", *more.get(change, []), secret=SECRET + change if change == "secret" else SECRET)
    assert graded_files == ["ana", "ana"]
    grade(folder, tmp_path / "out", *more.get(change, []), secret=SECRET + change if change == "secret" else SECRET)
    assert graded_files == ["ana", "ana"]


@pytest.mark.parametrize("content", [b"", b"{}", b'{"student": "ana"', b"[1]", b"\xff\xfe"])
def test_a_damaged_record_is_named_before_anything_is_graded(
    content: bytes, submissions: Path, graded_files: list[str], tmp_path: Path
) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "ana.json").write_bytes(content)
    said = grade(submissions, tmp_path)
    assert (said.exit_code, said.stdout, graded_files) == (2, "", [])
    assert "records/ana.json" in said.stderr
    assert said.stderr.endswith("; delete it and grade again\n")
    assert not (tmp_path / "grades.csv").exists()


def without_starts(monkeypatch: pytest.MonkeyPatch, fails: Callable[[int], bool], why: Exception | None) -> None:
    """Let some workers not start, by the order in which they start: with an error of the system, or by breaking off at once."""
    starts = iter(range(1000))
    own = launch.sandbox.bubblewrapped

    def bubblewrapped(made: Any) -> Any:
        start = own(made)

        def started(kind: str) -> Any:
            if not fails(next(starts)):
                return start(kind)
            if why:
                raise why
            return subprocess.Popen(["/bin/true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

        return started

    monkeypatch.setattr(launch.sandbox, "bubblewrapped", bubblewrapped)


NO_START: list[tuple[Exception | None, str]] = [
    (None, "no worker could be started: it broke off"),
    (OSError(errno.EAGAIN, "Resource temporarily unavailable"), "no worker could be started: Resource temporarily unavailable"),
    (HybridLabError("bubblewrap is not installed, so nothing was graded", "no-sandbox"), "bubblewrap is not installed"),
]


@pytest.mark.parametrize(("why", "words"), NO_START)
def test_a_worker_that_does_not_start_needs_a_person_and_the_next_run_grades_again(
    why: Exception | None, words: str, submissions: Path, graded_files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        without_starts(patched, lambda number: 2 <= number < 8, why)  # both workers of the first student start
        said = grade(submissions, tmp_path)
    assert said.exit_code == 4
    marks = graded(tmp_path)
    assert earned(marks["ana"]) == earned(marks["chi"]) == earned(marks["dan"]) == out_of("lab02", T2)
    assert {task.code for task in marks["ben"].tasks} == {"no-worker"}
    assert marks["ben"].needs_person.startswith(f"lab02.t1 was not graded, and a person will look at it: {words}")
    assert f"  not graded, and a person will look at it: {words[:20]}" in (tmp_path / "feedback" / "ben.md").read_text()
    graded_files.clear()
    said = grade(submissions, tmp_path)
    assert (said.exit_code, graded_files) == (0, ["ben"])
    assert earned(graded(tmp_path)["ben"]) == out_of("lab02", T2)


def leaves(child: str) -> Any:
    """Start what is not stopped together with the process that started it, as when bubblewrap is stopped too early."""
    parent = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True); time.sleep(60)"
    command = [sys.executable, "-c", parent]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def talk_to(process: Any) -> Session:
    limits = replace(Limits(), seconds_a_notebook=2.0)
    return Session(lambda: process, limits, inside={}, packages=[], budget=Budget(1))


def test_a_worker_that_outlives_its_bubblewrap_ends_when_nothing_more_can_come() -> None:
    with refusal("too-slow", "2 s"):
        talk_to(leaves("import sys; sys.stdin.read()"))


def test_nobody_waits_for_ever_for_a_process_that_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SECONDS_TO_END", 0.2)
    process = leaves("import time; time.sleep(4)")
    before = set(threading.enumerate())
    with refusal("still-runs", "0.2 s", "end it"):
        talk_to(process)
    for reader in set(threading.enumerate()) - before:
        reader.join()
    process.stdout.close()


def test_a_judge_that_fails_costs_no_other_task_and_the_next_run_grades_again(
    graded_files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "in" / "lab02_ana.ipynb", solved("lab02", "ana"))
    own = grading.spec_of

    def broken(answer: Any) -> Any:
        return [][1]

    def with_fault(path: Path) -> Any:
        spec = own(path)
        page = TASKS["lab02.t1"].instance(None)
        fault = replace(spec.tasks[0], instance=lambda seed: replace(page, judge=broken))
        return replace(spec, tasks=(fault, *spec.tasks[1:]))

    with monkeypatch.context() as patched:
        patched.setattr(grading, "spec_of", with_fault)
        said = grade(tmp_path / "in", tmp_path / "out")
    marks = graded(tmp_path / "out")["ana"]
    assert said.exit_code == 4
    assert earned(marks) == {key: points for key, points in out_of("lab02").items() if key != "lab02.t1"}
    assert marks.tasks[0].code == "judge-failed"
    assert "lab02.t1 was not graded, and a person will look at it: its judge has failed with IndexError in test_inter" in marks.needs_person
    assert grade(tmp_path / "in", tmp_path / "out").exit_code == 0
    assert earned(graded(tmp_path / "out")["ana"]) == out_of("lab02")


def test_work_that_ends_every_worker_gets_no_points_and_no_person(graded_files: list[str], tmp_path: Path) -> None:
    """It is the student's own code that ends them, unlike a worker that does not start."""
    stops = {f"lab02.t{number}": "import os\nos._exit(1)" for number in range(1, 7)}
    save(tmp_path / "in" / "lab02_ana.ipynb", answered("lab02", stops, "ana"))
    assert grade(tmp_path / "in", tmp_path / "out").exit_code == 0
    marks = graded(tmp_path / "out")["ana"]
    assert (marks.points, marks.needs_person) == (0, "")
    assert {task.code for task in marks.tasks} == {"ended"}


def test_two_jobs_grade_as_one_does_and_go_on_after_an_interrupt(submissions: Path, tmp_path: Path) -> None:
    assignment, found = Assignment("lab02", Secret(SECRET)), find_submissions(submissions, "lab02")
    running: Iterator[Any] = grade_all(found, assignment, shared_launcher(), tmp_path, jobs=2)
    first = next(running)
    with pytest.raises(KeyboardInterrupt):
        running.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
    assert [path.stem for path in tmp_path.iterdir()] == [first.student]
    alone = {marks.student: marks for marks in grade_all(found, assignment, shared_launcher(), tmp_path / "alone")}
    together = {marks.student: marks for marks in grade_all(found, assignment, shared_launcher(), tmp_path, jobs=2)}
    assert together == alone
    assert {student: earned(marks) for student, marks in together.items()} == dict.fromkeys(CLASS, out_of("lab02", T2))


def test_a_process_of_the_grader_that_is_killed_is_told(submissions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_submissions(submissions, "lab02")
    unlucky = Launcher("bubblewrap", Killing(), shared_launcher().limits)  # type: ignore[arg-type]
    with pytest.raises(HybridLabError, match="is there enough memory for --jobs") as caught:
        list(grade_all(found, Assignment("lab02", Secret(SECRET)), unlucky, tmp_path, jobs=2))
    assert caught.value.code == "grader-ended"


class Killing:
    """Kills the process that opens it, as a system without memory does."""

    @property
    def mounts(self) -> Sequence[Any]:
        os.kill(os.getpid(), signal.SIGKILL)
        return ()

    folder = Path("/")


def test_a_session_that_is_closed_has_no_process() -> None:

    with contextlib.closing(shared_launcher().open("bare", Budget(5.0))) as session:
        assert isinstance(session, Session)
        pid = session._process.pid
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)
