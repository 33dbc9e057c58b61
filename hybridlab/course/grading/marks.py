"""Marks: what one student has earned in one lab, as frozen values. A record of them can be written and read."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class TaskMark:
    """What a student has earned in one task.

    Parameters
    ----------
    key, title : str
        The task, such as ``"lab02.t1"``, and its title.
    points, out_of : float
        The points earned, and those of a right answer. ``points`` is a part of ``out_of`` where a task gives partial credit.
    code : str
        The code of the feedback, such as ``"passed"`` or ``"one-device-alone"``.
    messages : tuple of str
        The sentences for the student. Text that came from the student can be in them; reports escape it.
    remarks : tuple of str
        Sentences on how the answer was found, such as that it was handed in twice.
    seed : int, optional
        The seed of the hidden cases of a build. Reports for students leave it out.
    """

    key: str
    title: str
    points: float
    out_of: float
    code: str
    messages: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True)
class Marks:
    """What a student has earned in a lab.

    Parameters
    ----------
    student, lab, course : str
        Whose marks they are, the lab such as ``"lab02"``, and the name of the course.
    run : str
        The label of the run, such as ``"practice"`` or ``"final"``.
    file, digest : str
        The name of the file that was handed in, and the SHA-256 of its bytes as hexadecimal digits.
    fingerprint : str
        A short digest of the secret, by which two runs with the same secret are known.
    tasks : tuple of TaskMark
        One for each task of the lab, in the order of the lab.
    remarks : tuple of str
        Sentences on the whole submission.
    needs_person : str
        Why a person has to look at it, or empty.
    common : bool
        Whether the sizes were those in the text of the lab, and not the student's own.
    """

    student: str
    lab: str
    course: str
    run: str
    file: str
    digest: str
    fingerprint: str
    tasks: tuple[TaskMark, ...]
    remarks: tuple[str, ...] = ()
    needs_person: str = ""
    common: bool = False

    @property
    def points(self) -> float:
        """The points earned in all tasks together."""
        return sum(task.points for task in self.tasks)

    @property
    def out_of(self) -> float:
        """The points of a lab without a mistake."""
        return sum(task.out_of for task in self.tasks)

    def to_json(self) -> dict[str, Any]:
        """Return the marks as plain values, for a record."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Marks":
        """Return the marks in a record.

        >>> mark = TaskMark("lab02.t2", "Predict a makespan", 2, 2, "passed", ("right",))
        >>> marks = Marks("ana", "lab02", "hybridlab", "final", "ana.ipynb", "0" * 64, "1f", (mark,))
        >>> Marks.from_json(marks.to_json()) == marks
        True
        """
        # JSON has lists in place of tuples
        tasks = tuple(
            TaskMark(**{**task, "messages": tuple(task["messages"]), "remarks": tuple(task["remarks"])}) for task in record["tasks"]
        )
        return cls(**{**record, "tasks": tasks, "remarks": tuple(record["remarks"])})
