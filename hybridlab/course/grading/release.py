"""Release a lab to a class. Before that, gates check that submissions with known marks get these marks.

Here a build is a coding task: the answer is a function of the student. A twist is a change of a coding task for one student.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.course.checking.checking import check_with
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.copies import student_copy, tell_assistants
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.launch import Launcher
from hybridlab.course.grading.marking import NOT_GRADED, mark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.records import write_whole
from hybridlab.course.grading.replays import replays, worked_solution
from hybridlab.course.grading.specs import LabSpec, spec_of
from hybridlab.course.tasks import Build, Instance, Question, Student, Task
from hybridlab.errors import HybridLabError

CLASS = ("ana", "ben", "chi")  # invented students; the gates check the tasks with their sizes and twists
Tell = Callable[[str], None]  # a function that shows what is checked next


@dataclass(frozen=True)
class Gate:
    """A condition for the release of a lab, and the result of checking it.

    Parameters
    ----------
    name : str
        The condition, in a few words.
    tried : int
        The number of submissions or answers that were checked.
    faults : tuple of str
        One sentence for each violation of the condition.
    """

    name: str
    tried: int
    faults: tuple[str, ...]


def gates(lab: str, launcher: Launcher, course: str, tell: Tell = lambda what: None) -> Iterator[Gate]:
    """Check each condition for the release of a lab, and yield the results.

    Parameters
    ----------
    lab : str
        The lab, such as ``"lab02"``.
    launcher : Launcher
        Starts the workers.
    course : str
        The name of the course.
    tell : callable
        Takes a few words that say what is checked next.
    """
    spec = spec_of(reference(lab))
    seed = secrets.randbits(62) + 1  # never 0, the seed of the public cases
    trial = _Trial(spec, launcher, seed)
    tell("the worked solutions")
    yield Gate("the worked solutions get all points", 1, tuple(trial.below(_reference(spec), 1.0)))
    tell("an empty copy")
    yield Gate("an empty copy gets none", 1, tuple(trial.above(_empty_copy(lab), 0.0)))
    tell("known wrong answers")
    yield _try_wrong_answers(spec, course)
    tell("a counter and a table of public results")
    yield _try_replays(spec, seed)
    tell("public solutions in copies of students")
    yield _try_public_solutions(trial, spec, course)


def release(lab: str, out: Path, launcher: Launcher, course: str, tell: Tell = lambda what: None) -> list[Gate]:
    """Check all conditions. If none is violated, write the copy for students and its description, and return the results.

    Raises
    ------
    HybridLabError
        ``gate-failed``: a condition is violated, and nothing was written. ``not-writable``: a file cannot be written.
    """
    if out.exists() and not out.is_dir():
        raise HybridLabError(f"cannot write to {out}: it is no folder; choose another one with --out", "not-writable")
    tried = list(gates(lab, launcher, course, tell))
    faults = [f"{gate.name}: {fault}" for gate in tried for fault in gate.faults]
    if faults:
        raise HybridLabError(
            "\n".join([f"{lab} is not released; its gate has found {counted(len(faults), 'fault')}:", *faults]), "gate-failed"
        )
    spec = spec_of(reference(lab))
    copy = student_copy(lab, course=course)
    about = {
        "lab": lab,
        "title": spec.title,
        "course": course,
        "hybridlab": version("hybridlab"),
        "points": spec.out_of,
        "tasks": [
            {"key": task.key, "title": task.title, "kind": task.kind, "points": task.points, "bonus": task.key in spec.bonus}
            for task in spec.tasks
        ],
        "gate": [{"name": gate.name, "tried": gate.tried} for gate in tried],
    }
    write_whole(out / f"{lab}.ipynb", json.dumps(copy, indent=1, ensure_ascii=False) + "\n")
    write_whole(out / f"{lab}.json", json.dumps(about, indent=1) + "\n")
    tell_assistants(out)
    return tried


class _Trial:
    """Mark notebooks for the gates. Each release draws new hidden cases."""

    def __init__(self, spec: LabSpec, launcher: Launcher, seed: int) -> None:
        self.spec, self._launcher, self._seed = spec, launcher, seed

    def points(self, cells: Sequence[CodeCell], student: Student | None = None) -> dict[str, float]:
        """Mark a notebook. Return for each task the earned share of the points, from 0 to 1."""
        marks = list(mark(cells, self.spec, student, self._launcher.open, Budget(self._launcher.limits), lambda key: self._seed))
        if failed := [each for each in marks if each.code in NOT_GRADED]:
            raise HybridLabError(f"{self.spec.lab} is not released: {failed[0].key} was {failed[0].messages[0]}", "gate-failed")
        return {each.key: each.points / each.out_of for each in marks}

    def below(self, cells: Sequence[CodeCell], least: float) -> Iterator[str]:
        """Yield a sentence for each task with a smaller share of the points than ``least``."""
        for key, share in self.points(cells).items():
            if share < least:
                yield f"{key} gets {share:.0%}"

    def above(self, cells: Sequence[CodeCell], most: float) -> Iterator[str]:
        """Yield a sentence for each task with a larger share of the points than ``most``."""
        for key, share in self.points(cells).items():
            if share > most:
                yield f"{key} gets {share:.0%}"


def _reference(spec: LabSpec) -> list[CodeCell]:
    return [CodeCell(source, key) for key, source in spec.solutions.items()]


def _empty_copy(lab: str) -> list[CodeCell]:
    cells = student_copy(lab)["cells"]
    return [CodeCell("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]


def _try_wrong_answers(spec: LabSpec, course: str) -> Gate:
    """Check that each known mistake is found, for the tasks in the text of the lab and for those of some students."""
    tried, faults = 0, dict[str, None]()  # a dict removes duplicates: two students can have the same sizes, and so the same faults
    for task in spec.tasks:
        for asked in (task.instance(None), *(task.personal(Student(name, course).seed(task.key)) for name in CLASS)):
            for mistake, passes in _mistakes(task, asked):
                tried += 1
                if passes:
                    faults[f"{task.key} accepts {mistake}"] = None
    return Gate("no known wrong answer passes", tried, tuple(faults))


def _try_replays(spec: LabSpec, seed: int) -> Gate:
    """Check that functions which only know the results of the public cases fail the hidden cases of each build."""
    tried, faults = 0, list[str]()
    for task in (each for each in spec.tasks if each.kind == "build"):
        build: Build = task.instance(None).data
        for name, replay in replays(build, worked_solution(spec, task.key)):
            tried += 1
            faults += [f"{task.key} accepts a {name}"] * (not any(build.codes(replay(), seed)))
    return Gate("no counter and no table of public results passes", tried, tuple(faults))


def _mistakes(task: Task, asked: Instance) -> Iterator[tuple[str, bool]]:
    """Yield the code of each known mistake of a task, and whether an answer with this mistake passes."""
    data = asked.data
    if isinstance(data, Build):
        for mistake in data.mistakes:
            yield mistake.code, data.accepts(mistake)
    if isinstance(data, Question):
        for code, answer in _wrong_numbers(data):
            yield code, check_with(task, asked, answer).passed


def _wrong_numbers(question: Question) -> Iterator[tuple[str, Any]]:
    """Yield pairs: the code of a known mistake, and an answer whose only wrong number is the value of this mistake."""
    right = [number.truth for number in question.numbers]
    for place, number in enumerate(question.numbers):
        for value, code, _ in number.mistakes:
            if isinstance(value, str):  # the mistake is a rule, not a value
                continue
            if not number.meets(value, number.truth):  # for some sizes, the value of a mistake is also the right value
                answer = [np.asarray(each).tolist() for each in (*right[:place], value, *right[place + 1 :])]
                yield code, answer if len(right) > 1 else answer[0]


def _try_public_solutions(trial: _Trial, spec: LabSpec, course: str) -> Gate:
    """Check that builds with twists refuse the public solutions, which solve the task without a twist."""
    twisted = [task.key for task in spec.tasks if task.kind == "build" and task.instance(None).data.twists]
    faults = []
    for name in CLASS if twisted else ():
        points = trial.points(_reference(spec), Student(name, course))
        faults += [f"{key} accepts the public solution from {name}" for key in twisted if points[key] > 0]
    return Gate("no build accepts the public solution", len(CLASS) * len(twisted), tuple(faults))
