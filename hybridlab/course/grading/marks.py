"""The marks of one student in one lab, as frozen values. They can be converted to JSON and back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class TaskMark:
    """The mark of one student in one task.

    Parameters
    ----------
    key, title : str
        The task, such as ``"lab02.t1"``, and its title.
    points, out_of : float
        The points that the student has earned, and the points of a right answer. With partial credit, ``points`` is between 0 and
        ``out_of``.
    code : str
        The code of the feedback, such as ``"passed"`` or ``"one-device-alone"``.
    messages : tuple of str
        The sentences for the student. They can contain text from the student, so reports escape them.
    remarks : tuple of str
        Further sentences for the student, such as that two answers were handed in.
    seed : int, optional
        The seed of the hidden cases of a coding task. Reports for students do not contain the seed.
    bonus : bool
        Whether the task is optional. Its points count on top of the points that the lab is out of.
    """

    key: str
    title: str
    points: float
    out_of: float
    code: str
    messages: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    seed: int | None = None
    bonus: bool = False


@dataclass(frozen=True)
class Marks:
    """The marks of one student in one lab.

    Parameters
    ----------
    student, lab, course : str
        The name of the student, the lab such as ``"lab02"``, and the name of the course.
    run : str
        The label of the run, such as ``"practice"`` or ``"final"``.
    file, digest : str
        The name of the file that was handed in, and the SHA-256 of its bytes as hexadecimal digits.
    fingerprint : str
        A short digest of the secret, the settings and the version. Two runs with the same fingerprint give the same marks.
    tasks : tuple of TaskMark
        One mark for each task, in the order of the lab.
    remarks : tuple of str
        Sentences on the whole submission.
    needs_person : str
        Why a person has to look at the submission; an empty text if nobody has to.
    common : bool
        Whether the student had the sizes in the text of the lab, and not sizes of their own.
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
        """The sum of the points that the student has earned in all tasks. With bonus points it can be more than ``out_of``."""
        return sum(task.points for task in self.tasks)

    @property
    def bonus(self) -> float:
        """The sum of the points that the student has earned in optional tasks. They are a part of ``points``."""
        return sum(task.points for task in self.tasks if task.bonus)

    @property
    def out_of(self) -> float:
        """The sum of the points of all tasks that are not optional. Right answers get these points."""
        return sum(task.out_of for task in self.tasks if not task.bonus)

    def to_json(self) -> dict[str, Any]:
        """Return the marks as a dict of plain values, which can be written as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Marks":
        """Return the marks from a dict of ``to_json``, also from a dict that was written as JSON and read again.

        >>> mark = TaskMark("lab02.t2", "Predict a makespan", 2, 2, "passed", ("right",))
        >>> marks = Marks("ana", "lab02", "hybridlab", "final", "ana.ipynb", "0" * 64, "1f", (mark,))
        >>> Marks.from_json(marks.to_json()) == marks
        True
        """
        # JSON has no tuples, so a record from a file has lists
        tasks = tuple(
            TaskMark(**{**task, "messages": tuple(task["messages"]), "remarks": tuple(task["remarks"])}) for task in record["tasks"]
        )
        return cls(**{**record, "tasks": tasks, "remarks": tuple(record["remarks"])})
