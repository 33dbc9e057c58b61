"""Mark a folder of submissions. Each notebook has its own workers. Its marks are written to a record, so a later run can continue."""

import hashlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from hybridlab.checks import counted
from hybridlab.course.checking.student import COURSE, Student
from hybridlab.course.grading.boundary import Broken, each_apart
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.cases import Secret
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.launch import Launcher
from hybridlab.course.grading.likeness import add_likenesses
from hybridlab.course.grading.marking import NOT_GRADED, mark
from hybridlab.course.grading.marks import Marks, TaskMark
from hybridlab.course.grading.notebook import Submission, read_submission
from hybridlab.course.grading.records import read_records, write_record
from hybridlab.course.grading.reports import short_number
from hybridlab.course.grading.specs import LabSpec, spec_of
from hybridlab.errors import HybridLabError

LONGER = 2  # the factor on all limits of time when a submission that was too slow is graded again, alone
CLOCKS = 3  # the factor from a notebook's limit on the clock to the limit for its whole submission, which includes the judges
COMPARING = 600.0  # seconds on the clock for the comparison of all programs of a class
MEMORY = 2 * 2**30  # the bytes that the grader itself may take for one submission


@dataclass(frozen=True)
class Assignment:
    """The settings of a run of the grader.

    Parameters
    ----------
    lab : str
        The lab, such as ``"lab02"``.
    secret : Secret
        The secret from which the hidden cases are drawn.
    course : str
        The name of the course, as in the copies of the students.
    run : str
        The label of the run. Each label has its own hidden cases, so a practice run does not reveal the cases of the final run.
    common : bool
        Whether all students have the tasks in the text of the lab: the same sizes, and no changes of a task ('twists').
    """

    lab: str
    secret: Secret
    course: str = COURSE
    run: str = "final"
    common: bool = False

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits. Two runs with equal digits have equal secrets, settings and versions, so they give the same marks."""
        # the functions that judge an answer can differ between two versions of hybridlab
        parts = (self.secret.fingerprint, self.lab, self.course, self.run, str(self.common), version("hybridlab"))
        return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def grade_file(path: Path, student: str, assignment: Assignment, launcher: Launcher) -> Marks:
    """Return the marks of one submission. A file that cannot be read gets no points, and a person has to look at it.

    Parameters
    ----------
    path : Path
        The notebook.
    student : str
        The student who handed in the notebook. A name in the notebook itself does not count.
    assignment : Assignment
        The settings of the run.
    launcher : Launcher
        Starts the workers.
    """
    spec = spec_of(reference(assignment.lab))
    lab, course, run, common = assignment.lab, assignment.course, assignment.run, assignment.common
    marks = Marks(student, lab, course, run, path.name, "", assignment.fingerprint, (), common=common)
    try:
        submission = read_submission(path)
    except HybridLabError as why:
        return replace(marks, tasks=_no_marks(spec, why.code or "unreadable"), needs_person=f"{why}", digest=digest_of(path))
    whose = None if assignment.common else Student(student, assignment.course)
    name = Student(student).name  # in lower case, so that "Ana" and "ana" have the same hidden cases
    budget = Budget(launcher.limits)
    tasks = tuple(mark(submission.cells, spec, whose, launcher.open, budget, lambda key: assignment.secret.seed(key, name, assignment.run)))
    failed = [f"{task.key} was {task.messages[0]}; grade again" for task in tasks if task.code in NOT_GRADED]
    question = _sentences(*failed, budget.near, _question(submission, student, assignment, spec))
    return replace(marks, tasks=tasks, digest=submission.digest, needs_person=question)


def grade_all(
    found: Mapping[str, Sequence[Path]], assignment: Assignment, launcher: Launcher, records: Path, *, jobs: int = 1
) -> Generator[Marks, None, None]:
    """Yield the marks of each submission as soon as they are known, and write a record of them.

    A submission with a record is not graded again. There is one exception: a fault of the grader prevented the grading of a task.

    Parameters
    ----------
    found : mapping of str to sequence of Path
        The files of each student. If a student has several files, none of them is graded: a person has to choose. Two names that differ
        only in capital letters count as one student.
    assignment : Assignment
        The settings of the run.
    launcher : Launcher
        Starts the workers.
    records : Path
        The folder of the records.
    jobs : int
        The number of submissions that are graded at the same time.

    Raises
    ------
    HybridLabError
        ``damaged-record`` or ``not-writable``. The submissions that were graded before the error have records.
    """
    # the digest is part of the key, so that a changed file is graded again
    known = {(marks.student, marks.file, marks.digest): marks for marks in read_records(records) if _counts(marks, assignment)}
    left: dict[str, Path] = {}
    for student, paths in found.items():
        if why := _unclear(student, found):
            yield _save(_for_a_person(student, paths, why, assignment), records)
        elif on_record := known.get((student, paths[0].name, digest_of(paths[0]))):
            yield on_record
        else:
            left[student] = paths[0]
    slow = []
    for _, marks in _each_graded(left, assignment, launcher, jobs):
        if any(task.code == "too-slow" for task in marks.tasks):
            slow.append(marks)  # tried again below
        else:
            yield _save(marks, records)
    patient = replace(launcher, limits=launcher.limits.with_time(LONGER))
    again = dict(_each_graded({marks.student: left[marks.student] for marks in slow}, assignment, patient, 1))
    for marks in slow:
        yield _save(_with_doubts(marks, again[marks.student]), records)


def _each_graded(files: Mapping[str, Path], assignment: Assignment, launcher: Launcher, jobs: int) -> Iterator[tuple[str, Marks]]:
    """Yield the marks of each student as soon as they are known. Each file is graded in a process of its own."""
    items = [(student, (path, student, assignment, launcher)) for student, path in files.items()]
    seconds = CLOCKS * launcher.limits.clock_a_notebook
    for student, marks in each_apart(grade_file, items, jobs=jobs, seconds=seconds, memory=MEMORY):
        yield student, _broken(student, files[student], marks.why, assignment) if isinstance(marks, Broken) else marks


def _with_doubts(first: Marks, alone: Marks) -> Marks:
    """Return the marks of a submission of which something was too slow. A person has to look if it comes to an end alone in more time."""
    ended = {task.key: task for task in alone.tasks if task.code != "too-slow"}
    doubts = [
        f"{task.key} was too slow, and came to an end when it was tried again alone with {LONGER} times the time: "
        f"it would get {short_number(ended[task.key].points)} of {short_number(task.out_of)} points"
        for task in first.tasks
        if task.code == "too-slow" and task.key in ended
    ]
    return replace(first, needs_person=_sentences(*doubts, first.needs_person))


def _broken(student: str, path: Path, why: str, assignment: Assignment) -> Marks:
    """Return the marks of a submission whose process has not graded it."""
    tasks = _no_marks(spec_of(reference(assignment.lab)), "judge-failed")
    marks = _for_a_person(student, [path], f"{path.name} was not graded: {why}; grade again", assignment)
    return replace(marks, tasks=tasks, digest=digest_of(path))


def marked_alike(marks: Sequence[Marks], found: Mapping[str, Sequence[Path]], lab: str) -> list[Marks]:
    """Return the marks of a class, with a sentence for a person on each program that is like another one. Points stay as they are.

    The comparison runs in a process of its own, too. If this process ends without a result, the sentence is on all marks.
    """
    comparison = ("likenesses", (marks, found, lab))
    ((_, compared),) = each_apart(add_likenesses, [comparison], jobs=1, seconds=COMPARING, memory=MEMORY)
    if isinstance(compared, Broken):
        why = f"the programs of the class were not compared with each other: {compared.why}"
        return [replace(each, needs_person=_sentences(each.needs_person, why)) for each in marks]
    result: list[Marks] = compared
    return result


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits; an empty text for a link or for a file that cannot be read."""
    if path.is_symlink() or not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def with_seeds(marks: Marks) -> Callable[[str], int | None]:
    """Return a function from the key of a task to the seed of the task's hidden cases in recorded marks."""
    seeds = {task.key: task.seed for task in marks.tasks}
    return lambda key: seeds.get(key)


def _save(marks: Marks, records: Path) -> Marks:
    """Write a record of marks, and return the marks."""
    write_record(marks, records)
    return marks


def _no_marks(spec: LabSpec, code: str) -> tuple[TaskMark, ...]:
    return tuple(TaskMark(task.key, task.title, 0.0, float(task.points), code, bonus=task.key in spec.bonus) for task in spec.tasks)


def _sentences(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _counts(marks: Marks, assignment: Assignment) -> bool:
    """Return whether recorded marks are valid for this run, so that the submission need not be graded again."""
    return marks.fingerprint == assignment.fingerprint and not any(task.code in NOT_GRADED for task in marks.tasks)


def _id_of(student: str) -> str:
    """Return the normalised name of a student, which determines the student's own sizes; an empty text if the name cannot be used."""
    try:
        return Student(student).name
    except HybridLabError:
        return ""


def _unclear(student: str, found: Mapping[str, Sequence[Path]]) -> str:
    """Return why a person must say which file belongs to which student; an empty text if this is clear."""
    paths = found[student]
    if not _id_of(student):
        return f"the file name {paths[0].name!r} has no name of a student: rename the file, such as lab02_ana.ipynb, and grade again"
    if len(paths) > 1:
        names = [path.name if path.parent == paths[0].parent else f"{path.parent.name}/{path.name}" for path in paths]
        return f"{student} has {counted(len(paths), 'file')} ({', '.join(names)}): leave one of them in the folder, and grade again"
    if same := [other for other in found if other != student and _id_of(other) == _id_of(student)]:
        others = " and ".join(map(repr, same))
        return f"{student!r} and {others} are one student, because capital letters do not matter: leave one file, and grade again"
    return ""


def _for_a_person(student: str, paths: Sequence[Path], why: str, assignment: Assignment) -> Marks:
    names = ", ".join(path.name for path in paths)
    tasks = _no_marks(spec_of(reference(assignment.lab)), "unclear-file")
    return Marks(student, assignment.lab, assignment.course, assignment.run, names, "", assignment.fingerprint, tasks, (), why)


def _question(submission: Submission, student: str, assignment: Assignment, spec: LabSpec) -> str:
    """Return why a person has to look at a readable submission; an empty text if nobody has to."""
    lab, course = assignment.lab, assignment.course
    if submission.lab and submission.lab != lab:
        return f"this is a copy of {submission.lab}, and {lab} is graded"
    if not any(spec.keys_in(cell) for cell in submission.cells):
        return f"this notebook has no task of {lab}: is it a copy that hybridlab start has made?"
    if assignment.common:
        return ""
    if submission.course and submission.course != course:
        return f"this copy was made for the course {submission.course!r}, and {course!r} is graded"
    own = f"graded with the sizes and twists of {student!r}"
    if not submission.student:
        return f"this copy was made without a name, and it was {own}"
    if _id_of(submission.student) != Student(student).name:
        return f"this copy was made for {submission.student!r}, and it was {own}"
    return ""
