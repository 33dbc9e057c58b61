"""Releases a lab to a class, behind a gate: nothing is released unless the marks of known submissions are right."""

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import hybridlab
from hybridlab.checks import counted
from hybridlab.course.grading.attacks import ATTACKS
from hybridlab.course.grading.copies import student_copy
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.launch import Launcher
from hybridlab.course.grading.marking import mark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.records import write_whole
from hybridlab.course.grading.specs import LabSpec, spec_of
from hybridlab.course.tasks import Build, Instance, Question, Student, Task
from hybridlab.course.tasks.checking import check_with
from hybridlab.errors import HybridLabError

CLASS = ("ana", "ben", "chi")  # whose sizes and twists the gate tries
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Gate:
    """One condition of a release.

    Parameters
    ----------
    name : str
        What must hold.
    tried : int
        How many submissions or answers were tried.
    faults : tuple of str
        What did not hold, a sentence each.
    """

    name: str
    tried: int
    faults: tuple[str, ...]


def gates(lab: str, launcher: Launcher, course: str, tell: Tell = lambda what: None) -> Iterator[Gate]:
    """Yield each condition of a release, tried on a lab.

    Parameters
    ----------
    lab : str
        The lab, such as ``"lab02"``.
    launcher : Launcher
        Starts the workers.
    course : str
        The name of the course.
    tell : callable
        Gets a few words on what is tried next.
    """
    spec = spec_of(reference(lab))
    seed = secrets.randbits(62) + 1
    trial = _Trial(spec, launcher, seed)
    tell("the worked solutions")
    yield Gate("the worked solutions get all points", 1, tuple(trial.below(_reference(spec), 1.0)))
    tell("an empty copy")
    yield Gate("an empty copy gets none", 1, tuple(trial.above(_copied(lab), 0.0)))
    tell("known wrong answers")
    yield _wrong_answers(spec, course)
    tell("public solutions in copies of students")
    yield _pasted(trial, spec, course)
    yield _attacked(trial, spec, tell)


def release(lab: str, out: Path, launcher: Launcher, course: str, tell: Tell = lambda what: None) -> list[Gate]:
    """Write the copy for students and its description, if all conditions hold. Return the conditions.

    Raises
    ------
    HybridLabError
        A condition does not hold, and nothing was written; or the folder cannot be written.
    """
    tried = list(gates(lab, launcher, course, tell))
    faults = [f"{gate.name}: {fault}" for gate in tried for fault in gate.faults]
    if faults:
        first = f"{lab} is not released, because {counted(len(faults), 'fault')} was found:"
        raise HybridLabError("\n".join([first, *faults]), "gate-failed")
    spec = spec_of(reference(lab))
    copy = student_copy(lab, course=course)
    about = {
        "lab": lab,
        "title": spec.title,
        "course": course,
        "hybridlab": hybridlab.__version__,
        "points": sum(task.points for task in spec.tasks),
        "tasks": [{"key": task.key, "title": task.title, "kind": task.kind, "points": task.points} for task in spec.tasks],
        "gate": [{"name": gate.name, "tried": gate.tried} for gate in tried],
    }
    write_whole(out / f"{lab}.ipynb", json.dumps(copy, indent=1, ensure_ascii=False) + "\n")
    write_whole(out / f"{lab}.json", json.dumps(about, indent=1) + "\n")
    return tried


class _Trial:
    """Marks notebooks, with hidden cases that are drawn anew for each release."""

    def __init__(self, spec: LabSpec, launcher: Launcher, seed: int) -> None:
        self.spec, self._launcher, self._seed = spec, launcher, seed

    def points(self, cells: Sequence[CodeCell], student: Student | None = None) -> dict[str, float]:
        """Return the points of each task, as shares of all its points."""
        seconds = self._launcher.limits.seconds_a_notebook
        marks = mark(cells, self.spec, student, self._launcher.open, seconds, lambda key: self._seed)
        return {each.key: each.points / each.out_of for each in marks}

    def below(self, cells: Sequence[CodeCell], least: float) -> Iterator[str]:
        for key, share in self.points(cells).items():
            if share < least:
                yield f"{key} gets {share:.0%}"

    def above(self, cells: Sequence[CodeCell], most: float) -> Iterator[str]:
        for key, share in self.points(cells).items():
            if share > most:
                yield f"{key} gets {share:.0%}"


def _reference(spec: LabSpec) -> list[CodeCell]:
    return [CodeCell(source, key) for key, source in spec.solutions.items()]


def _copied(lab: str) -> list[CodeCell]:
    cells = student_copy(lab)["cells"]
    return [CodeCell("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]


def _wrong_answers(spec: LabSpec, course: str) -> Gate:
    """Try the wrong value of each known mistake, and the program of each known mistake, on the page and for some students."""
    tried, faults = 0, []
    for task in spec.tasks:
        for asked in (task.instance(None), *(task.personal(Student(name, course).seed(task.key)) for name in CLASS)):
            passing = _passing_mistakes(task, asked)
            for mistake, passes in passing:
                tried += 1
                if passes:
                    faults.append(f"{task.key} accepts {mistake}")
    return Gate("no known wrong answer passes", tried, tuple(dict.fromkeys(faults)))


def _passing_mistakes(task: Task, asked: Instance) -> Iterator[tuple[str, bool]]:
    """Yield each known mistake of a task, and whether an answer with it passes."""
    data = asked.data
    if isinstance(data, Build):
        for slip in data.slips:
            yield slip.code, data.accepts(slip)
    if isinstance(data, Question) and len(data.numbers) == 1:
        number = data.numbers[0]
        for value, code, _ in number.mistakes:
            if not callable(value):
                yield code, check_with(task, asked, value).passed and not number.meets(value, number.truth)


def _pasted(trial: _Trial, spec: LabSpec, course: str) -> Gate:
    """Hand in the public solutions as the work of some students: builds with a twist must not pass."""
    twisted = [task.key for task in spec.tasks if task.kind == "build" and task.instance(None).data.twists]
    faults = []
    for name in CLASS if twisted else ():
        points = trial.points(_reference(spec), Student(name, course))
        faults += [f"{key} accepts the public solution from {name}" for key in twisted if points[key] > 0]
    return Gate("no build accepts the public solution", len(CLASS) * len(twisted), tuple(faults))


def _attacked(trial: _Trial, spec: LabSpec, tell: Tell) -> Gate:
    """Hand in each attack. It must not get more than the honest part of it."""
    first = next(iter(spec.solutions))
    honest = [CodeCell(spec.solutions[key] if key == first else spec.stubs[key], key) for key in spec.stubs]
    earned = trial.points(honest)
    faults = []
    for place, attack in enumerate(ATTACKS.values()):
        tell(f"attack {place + 1} of {len(ATTACKS)}: {attack.name}")
        points = trial.points(attack.cells(spec, honest))
        faults += [f"{attack.name} raises {key} to {share:.0%}" for key, share in points.items() if share > earned[key]]
    return Gate("no attack gets more than its honest part", len(ATTACKS), tuple(faults))
