"""Marks of a folder of submissions. Each notebook runs in workers of its own and gets a record, so that an interrupted run can go on."""

import hashlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from hybridlab.checks import counted
from hybridlab.course.checking.student import COURSE, Student
from hybridlab.course.grading.cases import Secret
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.launch import Launcher
from hybridlab.course.grading.marking import NOT_GRADED, mark
from hybridlab.course.grading.marks import Marks, TaskMark
from hybridlab.course.grading.notebook import Submission, read_submission
from hybridlab.course.grading.records import read_records, write_record
from hybridlab.course.grading.specs import LabSpec, spec_of
from hybridlab.errors import HybridLabError


@dataclass(frozen=True)
class Assignment:
    """What is graded, and how.

    Parameters
    ----------
    lab : str
        The lab, such as ``"lab02"``.
    secret : Secret
        The secret from which the hidden cases are drawn.
    course : str
        The name of the course, as in the copies of the students.
    run : str
        The label of the run. Another label draws other hidden cases: practice must not tell those of the final run.
    common : bool
        Whether all students have the sizes in the text of the lab, and no twists.
    """

    lab: str
    secret: Secret
    course: str = COURSE
    run: str = "final"
    common: bool = False

    @property
    def fingerprint(self) -> str:
        """Digits by which two runs are known to give the same marks: of the secret, the assignment and the version."""
        # another version of hybridlab can have other judges
        parts = (self.secret.fingerprint, self.lab, self.course, self.run, str(self.common), version("hybridlab"))
        return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def grade_file(path: Path, student: str, assignment: Assignment, launcher: Launcher) -> Marks:
    """Return the marks of one submission. What cannot be read has no points, and a person has to look at it.

    Parameters
    ----------
    path : Path
        The notebook.
    student : str
        Whose it is; what the notebook says about it does not count.
    assignment : Assignment
        What is graded, and how.
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
    name = Student(student).name  # in small letters: "Ana" and "ana" have the same hidden cases
    tasks = tuple(
        mark(
            submission.cells,
            spec,
            whose,
            launcher.open,
            launcher.limits.seconds_a_notebook,
            lambda key: assignment.secret.seed(key, name, assignment.run),
        )
    )
    failed = [f"{task.key} was {task.messages[0]}; grade again" for task in tasks if task.code in NOT_GRADED]
    question = "; ".join([*failed, *filter(None, [_question(submission, student, assignment, spec)])])
    return replace(marks, tasks=tasks, digest=submission.digest, needs_person=question)


def grade_all(
    found: Mapping[str, Sequence[Path]], assignment: Assignment, launcher: Launcher, records: Path, *, jobs: int = 1
) -> Iterator[Marks]:
    """Yield the marks of each submission as soon as they are known, and write a record of each.

    A submission that is on record is not graded again, unless one of its tasks could not be graded, through no fault of the student.

    Parameters
    ----------
    found : mapping of str to sequence of Path
        The files of each student. Of several files none is graded: a person has to choose. The same holds for names that differ only in
        capital letters, because they stand for one student.
    assignment : Assignment
        What is graded, and how.
    launcher : Launcher
        Starts the workers.
    records : Path
        The folder of the records.
    jobs : int
        How many submissions are graded at a time.

    Raises
    ------
    HybridLabError
        ``damaged-record``, ``not-writable``, or ``grader-ended``. What was graded before is on record.
    """
    # the digest: a file that has changed since is graded again
    known = {(marks.student, marks.file, marks.digest): marks for marks in read_records(records) if _counts(marks, assignment)}
    left: dict[str, Path] = {}
    for student, paths in found.items():
        if why := _unclear(student, found):
            yield _save(_for_a_person(student, paths, why, assignment), records)
        elif on_record := known.get((student, paths[0].name, digest_of(paths[0]))):
            yield on_record
        else:
            left[student] = paths[0]
    if jobs == 1 or len(left) < 2:  # a pool would only add the time in which its process starts
        for student, path in left.items():
            yield _save(grade_file(path, student, assignment, launcher), records)
        return
    # "spawn": a forked process would take over locks that threads of this one hold
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _leave_interrupts) as pool:
        try:
            waiting = [pool.submit(grade_file, path, student, assignment, launcher) for student, path in left.items()]
            for done in as_completed(waiting):
                yield _save(done.result(), records)
        except BrokenProcessPool:
            why = "a process of the grader was ended from outside; is there enough memory for --jobs?"
            raise HybridLabError(f"{why} The same command goes on where it stopped", "grader-ended") from None
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C no other submission begins


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, or an empty text if it is no file that can be read. A link is not followed."""
    if path.is_symlink() or not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def with_seeds(marks: Marks) -> Callable[[str], int | None]:
    """Return a function that takes the key of a task and returns the seed of its hidden cases in a record."""
    seeds = {task.key: task.seed for task in marks.tasks}
    return lambda key: seeds.get(key)


def _save(marks: Marks, records: Path) -> Marks:
    """Write a record of marks, and return the marks."""
    write_record(marks, records)
    return marks


def _no_marks(spec: LabSpec, code: str) -> tuple[TaskMark, ...]:
    return tuple(TaskMark(task.key, task.title, 0.0, float(task.points), code) for task in spec.tasks)


def _leave_interrupts() -> None:
    """Ignore Ctrl-C here. The process that has started this one handles it, and lets each submission in progress come to its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _counts(marks: Marks, assignment: Assignment) -> bool:
    """Whether marks on record are those that this run would give."""
    return marks.fingerprint == assignment.fingerprint and not any(task.code in NOT_GRADED for task in marks.tasks)


def _id_of(student: str) -> str:
    """Return the name from which a student's own sizes are drawn, or an empty text for no name."""
    try:
        return Student(student).name
    except HybridLabError:
        return ""


def _unclear(student: str, found: Mapping[str, Sequence[Path]]) -> str:
    """Return why it is not clear which file is a student's own, or an empty text."""
    paths = found[student]
    if not _id_of(student):
        return f"the name of {paths[0].name!r} names no student: give it one, such as lab02_ana.ipynb, and grade again"
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
    """Return why a person has to look at a submission, or an empty text."""
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
    if Student(submission.student).name != Student(student).name:
        return f"this copy was made for {submission.student!r}, and it was {own}"
    return ""
