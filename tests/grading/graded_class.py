"""A class of students for the tests of grading: copies of labs with answers, the command, and workers that all tests share."""

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import command_line
import numpy as np
import pytest
from click.testing import Result
from grading_worlds import lab_spec
from honest import honest_cell

from hybridlab.course.grading import cli
from hybridlab.course.grading.copies import student_copy
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.marks import Marks
from hybridlab.course.grading.records import read_records
from hybridlab.course.tasks import TASKS, Build, Question, Student

SECRET = "a secret of the tests, long enough"  # noqa: S105 - it protects nothing
COMMAND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from hybridlab.__main__ import command
command()
"""  # the command; Ctrl-C stops it, even where a shell runs the tests in the background
needs_bubblewrap = pytest.mark.needs("bwrap")
_OPEN = contextlib.ExitStack()  # open until the tests end
atexit.register(_OPEN.close)


def hybridlab(*arguments: object, secret: str | None = SECRET) -> Result:
    """Run the command in this process, and return its exit code and what it said."""
    return command_line.hybridlab(*arguments, variables={"HYBRIDLAB_SECRET": secret})


@cache
def shared_launcher() -> Launcher:
    """Return a launcher of workers. What they need is built once for all tests of a process."""
    return _OPEN.enter_context(launcher())


def quick_sandbox(monkeypatch: pytest.MonkeyPatch, workers: Launcher | None = None) -> None:
    """Let the command use the workers that all tests share, without a look at the sandbox first."""

    @contextlib.contextmanager
    def shared(name: str = "bubblewrap") -> Iterator[Launcher]:
        yield workers or shared_launcher()

    monkeypatch.setattr(cli, "launcher", shared)
    monkeypatch.setattr(cli, "require_sandbox", lambda workers: None)


def right_answer(key: str, student: str = "") -> str:
    """Return a cell with the right answer to a task, for a student's own sizes and twist; without a name, for those of the text."""
    spec, task = lab_spec(key[:5]), TASKS[key]
    data = (task.personal(Student(student).seed(key)) if student else task.instance(None)).data
    if isinstance(data, Build) and data.twist is not None:
        return honest_cell(key, data.twist, data.name, spec.solutions[key])
    if isinstance(data, Question):
        return f"check({key!r}, {right_value(data)!r})"
    return spec.solutions[key]


def right_value(question: Question) -> Any:
    """Return the right answer to a question as plain values."""
    values = [np.asarray(number.truth).tolist() for number in question.numbers]
    return values[0] if len(values) == 1 else values


def answered(lab: str, answers: Mapping[str, str], student: str = "", **about: str) -> dict[str, Any]:
    """Return a copy of a lab with answers, given as the sources of their cells. ``about`` is for its metadata."""
    copy = student_copy(lab, student)
    copy["metadata"]["hybridlab"].update(about)
    cells = {cell["metadata"]["hybridlab"].get("task"): cell for cell in copy["cells"] if cell["cell_type"] == "code"}
    for key, source in answers.items():
        cells[key]["source"] = source
    return copy


def solved(lab: str, student: str = "", keys: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a copy of a lab in which some tasks, by default all, have right answers."""
    return answered(lab, {key: right_answer(key, student) for key in keys or lab_spec(lab).stubs}, student)


def save(path: Path, notebook: Mapping[str, Any]) -> Path:
    """Write a notebook with its folder, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


@contextlib.contextmanager
def command(folder: Path, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    """Start the command in a process of its own, with the temporary files of this process in a folder."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    environment = {**os.environ, "HYBRIDLAB_SECRET": SECRET, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "TMPDIR": str(folder)}
    program = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def graded(out: Path) -> dict[str, Marks]:
    """Return the marks on record, by student."""
    return {marks.student: marks for marks in read_records(out / "records")}


def earned(marks: Marks) -> dict[str, float]:
    """Return the points of the tasks that have any, by key."""
    return {task.key: task.points for task in marks.tasks if task.points}


def out_of(lab: str, *keys: str) -> dict[str, float]:
    """Return the points of right answers, by key."""
    return {key: float(TASKS[key].points) for key in keys or lab_spec(lab).stubs}


def folder_for_tests() -> Path:
    """Return a folder that stays until the tests end."""
    return Path(_OPEN.enter_context(tempfile.TemporaryDirectory()))
