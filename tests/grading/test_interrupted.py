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
from cases import in_turn, refusal
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
    right_answer,
    save,
    shared_launcher,
    solved,
)
from grading_worlds import lab_spec

from hybridlab.course.grading import boundary, cli, launch, reports, session
from hybridlab.course.grading import grade as grading
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.cases import Secret
from hybridlab.course.grading.copies import student_copy
from hybridlab.course.grading.grade import Assignment, grade_all
from hybridlab.course.grading.launch import Launcher
from hybridlab.course.grading.marking import MOST_WORKERS, Attempts, Player
from hybridlab.course.grading.marks import TaskMark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.records import read_records
from hybridlab.course.grading.sandbox import Limits, Runtime
from hybridlab.course.grading.session import Ended, Session
from hybridlab.course.grading.specs import LabSpec
from hybridlab.course.grading.submissions import find_submissions
from hybridlab.course.tasks import TASKS, Student
from hybridlab.errors import HybridLabError

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
    students: list[str] = []
    own = grading.grade_file

    def counted(path: Path, student: str, *rest: Any) -> Any:
        students.append(student)
        return own(path, student, *rest)

    monkeypatch.setattr(grading, "grade_file", counted)
    return students


@pytest.fixture
def without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark without workers: a task has all points if its cell is the right one. What is on record does not depend on how marks are made."""

    @contextlib.contextmanager
    def nobody(name: str = "bubblewrap") -> Iterator[Launcher]:
        yield Launcher("none", Runtime(Path("/nowhere")), Limits())

    def looked_at(cells: Sequence[CodeCell], spec: LabSpec, student: Student | None, *rest: Any) -> Iterator[TaskMark]:
        sources = {cell.task: cell.source for cell in cells}
        for task in spec.tasks:
            points = float(task.points) if sources.get(task.key) == right_answer(task.key, student.name if student else "") else 0.0
            yield TaskMark(task.key, task.title, points, float(task.points), "passed" if points else "nothing-handed-in")

    monkeypatch.setattr(cli, "launcher", nobody)
    monkeypatch.setattr(cli, "require_sandbox", lambda workers: None)
    monkeypatch.setattr(grading, "mark", looked_at)


@pytest.fixture
def with_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark in workers that all tests share, two tasks of the lab: a number and a function."""
    quick_sandbox(monkeypatch)
    own = grading.spec_of

    def smaller(path: Path) -> LabSpec:
        spec = own(path)
        return replace(spec, tasks=tuple(task for task in spec.tasks if task.key in (T2, T5)))

    monkeypatch.setattr(grading, "spec_of", smaller)


def grade(submissions: Path, out: Path, *more: object, secret: str = SECRET) -> Any:
    return hybridlab("grade", submissions, "--lab", "lab02", "--out", out, "--jobs", 1, *more, secret=secret)


@pytest.mark.usefixtures("without_workers")
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
    assert said.stderr == "interrupted: 2 of 4 submissions graded, on record and in the reports; the same command grades the others\n"
    assert sorted(path.stem for path in (tmp_path / "records").iterdir()) == ["ana", "ben"]
    assert sorted(path.stem for path in (tmp_path / "feedback").iterdir()) == ["ana", "ben"], "there are reports of what is done"
    monkeypatch.setattr(grading, "mark", own)
    graded_files.clear()
    said = grade(submissions, tmp_path, "--json")
    assert said.exit_code == 0, said.output
    assert [each["student"] for each in json.loads(said.stdout)["submissions"]] == list(CLASS)
    assert graded_files == ["chi", "dan"]
    assert {student: earned(marks) for student, marks in graded(tmp_path).items()} == dict.fromkeys(CLASS, out_of("lab02", T2))
    assert len((tmp_path / "grades.csv").read_text().splitlines()) == 5


@pytest.mark.usefixtures("without_workers")
def test_reports_that_cannot_be_written_leave_those_of_the_last_run_whole(
    submissions: Path, graded_files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade(submissions, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    own = reports._junit
    monkeypatch.setattr(reports, "_junit", lambda marks: own(marks) and (_ for _ in ()).throw(KeyboardInterrupt))
    assert grade(submissions, tmp_path).exit_code == 130
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


@pytest.mark.usefixtures("without_workers")
@in_turn("change", ["secret", "run", "course", "common", "file"])
def test_a_record_of_another_run_is_not_used(change: str, graded_files: list[str], tmp_path: Path) -> None:
    folder, out = tmp_path / change, tmp_path / f"marks of {change}"
    save(folder / "lab02_ana.ipynb", solved("lab02", "ana", keys=(T2,)))
    grade(folder, out)
    more: dict[str, list[object]] = {"run": ["--run", "practice"], "course": ["--course", "physics"], "common": ["--common"]}
    if change == "file":
        save(folder / "lab02_ana.ipynb", student_copy("lab02", "ana"))
    for _ in range(2):
        grade(folder, out, *more.get(change, []), secret=SECRET + change if change == "secret" else SECRET)
        assert graded_files == ["ana", "ana"], "graded again, and then found on record"
    graded_files.clear()


@pytest.mark.usefixtures("without_workers")
@in_turn("content", [b"", b"{}", b'{"student": "ana"', b"[1]", b"\xff\xfe"])
def test_a_damaged_record_is_named_before_anything_is_graded(
    content: bytes, submissions: Path, graded_files: list[str], tmp_path: Path
) -> None:
    (tmp_path / "records").mkdir(exist_ok=True)
    (tmp_path / "records" / "ana.json").write_bytes(content)
    said = grade(submissions, tmp_path)
    assert (said.exit_code, said.stdout, graded_files) == (2, "", [])
    assert "records/ana.json" in said.stderr
    assert said.stderr.endswith("; delete it and grade again\n")
    assert not (tmp_path / "grades.csv").exists()


def without_starts(monkeypatch: pytest.MonkeyPatch, fails: Callable[[int], bool], why: Exception | None) -> None:
    """Let some workers not start, by the order in which they start: with an error of the system, or by breaking off at once."""
    starts = iter(range(1000))
    own = launch.sandbox.bubblewrap_starter

    def starter(runtime: Any) -> Any:
        start = own(runtime)

        def started(kind: str) -> Any:
            if not fails(next(starts)):
                return start(kind)
            if why:
                raise why
            return subprocess.Popen(["/bin/true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

        return started

    monkeypatch.setattr(launch.sandbox, "bubblewrap_starter", starter)


NO_START: list[tuple[Exception | None, str]] = [
    (None, "no worker could be started: it broke off"),
    (OSError(errno.EAGAIN, "Resource temporarily unavailable"), "no worker could be started: Resource temporarily unavailable"),
    (HybridLabError("bubblewrap is not installed, so nothing was graded", "no-sandbox"), "bubblewrap is not installed"),
]


@needs_bubblewrap
@pytest.mark.usefixtures("with_workers")
@pytest.mark.parametrize(("why", "words"), [NO_START[0], *(pytest.param(*each, marks=pytest.mark.slow) for each in NO_START[1:])])
def test_a_worker_that_does_not_start_needs_a_person_and_the_next_run_grades_again(
    why: Exception | None, words: str, graded_files: list[str], tmp_path: Path
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    for student in CLASS[:2]:
        save(folder / f"lab02_{student}.ipynb", solved("lab02", student, keys=(T2,)))
    with pytest.MonkeyPatch.context() as patched:
        without_starts(patched, lambda number: number >= 2, why)  # both workers of the first student start
        said = grade(folder, out)
    assert said.exit_code == 4
    marks = graded(out)
    assert earned(marks["ana"]) == out_of("lab02", T2)
    assert {task.code for task in marks["ben"].tasks} == {"no-worker"}
    assert marks["ben"].needs_person.startswith(f"{T2} was not graded, and a person will look at it: {words}")
    assert f"  not graded, and a person will look at it: {words[:20]}" in (out / "feedback" / "ben.md").read_text()
    graded_files.clear()
    said = grade(folder, out)
    assert (said.exit_code, graded_files) == (0, ["ben"])
    assert earned(graded(out)["ben"]) == out_of("lab02", T2)


@contextlib.contextmanager
def started_by(parent: str, child: str) -> Iterator[Any]:
    """Start a process that starts another one, which is not stopped together with it, as when bubblewrap is stopped too early."""
    starting = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True).pid, flush=True)"
    command = [sys.executable, "-c", f"{starting}; {parent}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout
        left = int(process.stdout.readline())  # from here on it runs
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)


def talk_to(process: Any) -> Session:
    return Session(lambda: process, inside={}, packages=[], budget=Budget(replace(Limits(), clock_a_request=0.1)))  # it never answers


SLEEPS = "import time; time.sleep(3600)"


def test_a_worker_that_outlives_its_bubblewrap_ends_when_nothing_more_can_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SECONDS_TO_END", 120.0)
    with started_by(SLEEPS, "import sys; sys.stdin.read()") as process, refusal("too-slow", "0.1 s"):
        talk_to(process)


def test_nobody_waits_for_ever_for_a_process_that_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SECONDS_TO_END", 0.2)
    before = set(threading.enumerate())
    with started_by(SLEEPS, SLEEPS) as process, refusal("still-runs", "0.2 s", "end it"):
        talk_to(process)
    for reader in set(threading.enumerate()) - before:
        reader.join(120)


@needs_bubblewrap
def test_a_judge_that_fails_costs_no_other_task_and_the_next_run_grades_again(
    graded_files: list[str], with_workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "in" / "lab02_ana.ipynb", solved("lab02", "ana", keys=(T2, T5)))
    own = grading.spec_of

    def broken(answer: Any) -> Any:
        return [][1]

    def with_fault(path: Path) -> Any:
        spec = own(path)
        page = TASKS[T2].instance(None)
        fault = replace(spec.tasks[0], instance=lambda seed: replace(page, judge=broken))
        return replace(spec, tasks=(fault, *spec.tasks[1:]))

    with monkeypatch.context() as patched:
        patched.setattr(grading, "spec_of", with_fault)
        said = grade(tmp_path / "in", tmp_path / "out")
    marks = graded(tmp_path / "out")["ana"]
    assert said.exit_code == 4
    assert earned(marks) == out_of("lab02", T5)
    assert marks.tasks[0].code == "judge-failed"
    assert f"{T2} was not graded, and a person will look at it: its judge has failed with IndexError in test_inter" in marks.needs_person
    assert grade(tmp_path / "in", tmp_path / "out").exit_code == 0
    assert earned(graded(tmp_path / "out")["ana"]) == out_of("lab02", T2, T5)
    assert graded_files == ["ana", "ana"]


@needs_bubblewrap
@pytest.mark.usefixtures("with_workers")
def test_work_that_ends_every_worker_gets_no_points_and_no_person(tmp_path: Path) -> None:
    """It is the student's own code that ends them, unlike a worker that does not start."""
    save(tmp_path / "in" / "lab02_ana.ipynb", answered("lab02", dict.fromkeys((T2, T5), "import os\nos._exit(1)"), "ana"))
    assert grade(tmp_path / "in", tmp_path / "out").exit_code == 0
    marks = graded(tmp_path / "out")["ana"]
    assert (marks.points, marks.needs_person) == (0, "")
    assert {task.code for task in marks.tasks} == {"ended"}


def test_a_notebook_that_ends_every_worker_gets_no_more_workers_for_its_next_tasks() -> None:
    started = []

    class Ends(Session):
        alive = busy = False

        def __init__(self) -> None:
            started.append(self)
            assert len(started) <= MOST_WORKERS, "more workers than a notebook may have"

        def run(self, source: str, label: str) -> Any:
            raise Ended(f"{label} ended", "ended")

        def close(self) -> None:
            pass

    attempts = Attempts(Budget(Limits()))
    cells = [CodeCell(f"ends({number})") for number in range(2 * MOST_WORKERS)]
    players = [Player(cells, lab_spec("lab02"), Ends, attempts) for _ in range(3)]
    assert {player.play().code for player in players for _ in range(3)} == {"ended"}
    assert len(started) == MOST_WORKERS


@needs_bubblewrap
@pytest.mark.usefixtures("with_workers")
@pytest.mark.slow
def test_what_is_too_slow_is_tried_again_alone_and_needs_a_person_if_it_ends_then(tmp_path: Path) -> None:
    works = "import time\nbegun = time.process_time()\nwhile time.process_time() - begun < {}: pass\n"
    for name, seconds in (("ana", "0.75"), ("ben", "1e9")):
        cell = works.format(seconds) + right_answer(T2, name)
        save(tmp_path / "in" / f"lab02_{name}.ipynb", answered("lab02", {T2: cell, T5: right_answer(T5, name)}, name))
    hurried = replace(shared_launcher(), limits=replace(Limits(), seconds_a_task=0.5))
    found = find_submissions(tmp_path / "in", "lab02")
    marks = {each.student: each for each in grade_all(found, Assignment("lab02", Secret(SECRET)), hurried, tmp_path / "out")}
    assert {name: earned(each) for name, each in marks.items()} == dict.fromkeys(("ana", "ben"), out_of("lab02", T5))
    assert marks["ana"].needs_person == (
        f"{T2} was too slow, and came to an end when it was tried again alone with 2 times the time: it would get 2 of 2 points"
    )
    assert marks["ben"].needs_person == ""
    assert "it took longer than 0.5 s of computing time" in marks["ben"].tasks[0].messages[0]
    assert {each.student: each for each in read_records(tmp_path / "out")} == marks


@needs_bubblewrap
@pytest.mark.slow
def test_two_jobs_grade_as_one_does_and_go_on_after_an_interrupt(
    submissions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "each_apart", boundary.each_apart)
    assignment, found = Assignment("lab02", Secret(SECRET)), dict([*find_submissions(submissions, "lab02").items()][:3])
    running: Iterator[Any] = grade_all(found, assignment, shared_launcher(), tmp_path, jobs=2)
    first = next(running)
    with pytest.raises(KeyboardInterrupt):
        running.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
    assert [path.stem for path in tmp_path.iterdir()] == [first.student]
    alone = {marks.student: marks for marks in grade_all(found, assignment, shared_launcher(), tmp_path / "alone")}
    together = {marks.student: marks for marks in grade_all(found, assignment, shared_launcher(), tmp_path, jobs=2)}
    assert together == alone
    assert {student: earned(marks) for student, marks in together.items()} == dict.fromkeys(CLASS[:3], out_of("lab02", T2))


def test_a_process_of_the_grader_that_is_killed_costs_one_student(
    submissions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "each_apart", boundary.each_apart)
    found = dict([*find_submissions(submissions, "lab02").items()][:2])
    unlucky = Launcher("none", Killing(), Limits())  # type: ignore[arg-type]
    marks = list(grade_all(found, Assignment("lab02", Secret(SECRET)), unlucky, tmp_path, jobs=2))
    assert {each.needs_person.partition(" was not graded: ")[0] for each in marks} == {paths[0].name for paths in found.values()}
    assert all("is there enough memory for --jobs" in each.needs_person and each.points == 0 for each in marks)


class Killing:
    """Kills the process that opens it, as a system without memory does."""

    @property
    def folder(self) -> Path:
        os.kill(os.getpid(), signal.SIGKILL)
        return Path("/")


@needs_bubblewrap
def test_a_session_that_is_closed_has_no_process() -> None:
    with contextlib.closing(shared_launcher().open("bare", Budget(Limits()))) as session:
        assert isinstance(session, Session)
        pid = session._process.pid
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)
