"""A student of a graded course. The numbers of number tasks, and a small change ('twist') of each coding task, are the student's own.

A seed selects the numbers and the twist. The seed is a digest of the names of the course, the student and the task.
"""

import hashlib
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hybridlab.checks import checked_text, known_name, short_repr
from hybridlab.course.checking.builds import save_if_passed
from hybridlab.course.checking.checking import TASKS, Feedback, check_with
from hybridlab.course.results import is_stub
from hybridlab.errors import HybridLabError

COURSE = "hybridlab"


@dataclass(frozen=True, repr=False)
class Statement:
    """The statement of a task for one student.

    Parameters
    ----------
    task, student : str
        The key of the task, and the name of the student.
    prompt : str
        What to hand in, in one sentence, with the student's own numbers or twist.
    example : str
        Example calls of the function under the student's twist, with their results; empty for a task without a twist.
    """

    task: str
    student: str
    prompt: str
    example: str = ""

    def __repr__(self) -> str:
        sentences = tuple(filter(None, (self.prompt, self.example)))
        # a statement is printed in the form of feedback; only its first line differs
        return repr(Feedback(True, sentences, self.task)).replace(": passed", f", for {self.student}:", 1)


class Student:
    """A student of a graded course. The numbers of number tasks, and the twist of each coding task ('build'), are the student's own.

    The numbers and the twists depend on the names of the course and the student, but on no secret. So the student's computer and the
    grader find the same numbers and the same twists.

    Parameters
    ----------
    name : str
        The student's name in the course, such as a login. Upper and lower case make no difference, and blanks around the name are ignored.
    course : str
        The name of the course.

    Raises
    ------
    HybridLabError
        A name is not a text, or the student's name is empty.

    Examples
    --------
    >>> mine = Student("ana")
    >>> mine("lab02.t2")  # doctest: +ELLIPSIS
    lab02.t2, for ana:
      give the makespan in ms of 1F1B on ...
    >>> mine.check("lab02.t2", 80)  # doctest: +ELLIPSIS
    lab02.t2: not yet
      ...
    """

    def __init__(self, name: str, course: str = COURSE) -> None:
        # NFC: some systems write a letter with an accent as one character, others as two; the seed must not depend on this
        self.name = unicodedata.normalize("NFC", checked_text(name, "name")).strip().casefold()
        self.course = unicodedata.normalize("NFC", checked_text(course, "course")).strip()
        if not self.name:
            raise HybridLabError("a student needs a name, such as Student('ana')", "empty")

    def seed(self, key: str) -> int:
        """Return the seed for this student and a task: a whole number below 2**32."""
        # hash() would give another seed in each process. The digest has no secret key, so the student's computer finds the same seed.
        text = "\n".join(("hybridlab", self.course, self.name, key))
        return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4], "big")

    def __call__(self, key: str) -> Statement:
        """Return the statement of a task for this student."""
        task = TASKS[known_name(key, TASKS, "task")]
        asked = task.personal(self.seed(key))
        twisted = task.kind == "build" and asked.data.twist is not None
        return Statement(task.key, self.name, asked.prompt, asked.data.example if twisted else "")

    def check(self, key: str, answer: Any = None) -> Feedback:
        """Return feedback on this student's answer to a task. It is like :func:`check`, but for the student's own numbers and twist."""
        task = TASKS[known_name(key, TASKS, "task")]
        asked = task.personal(self.seed(key))
        if task.kind == "build" and is_stub(answer):
            answer = None  # nothing handed in yet
        feedback = check_with(task, asked, answer)
        if task.kind == "build":
            # Later labs need the function without the twist. These lines at the end of the saved file undo the twist.
            then = f"from hybridlab import Student\n\n{asked.data.name} = {self!r}.undo_twist({key!r}, {asked.data.name})"
            feedback = save_if_passed(feedback, asked.data, answer, then)
        return feedback

    def undo_twist(self, key: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function for the task without a twist, from the student's function for the task with the twist.

        If the twist is a change that cannot be undone, return ``function`` itself.

        Raises
        ------
        HybridLabError
            If the task does not ask for a function, or ``function`` is not a function.
        """
        task = TASKS[known_name(key, TASKS, "task")]
        if task.kind != "build":
            raise HybridLabError(f"{key} does not ask for a function, and only a task that asks for a function has a twist", "not-a-build")
        if not callable(function):
            raise HybridLabError(f"function must be a function, not {short_repr(function)}", "not-a-function")
        twist = task.personal(self.seed(key)).data.twist
        if twist is None or twist.judge:  # a twist with its own judge has no maps that could be undone
            return function
        untwisted: Callable[..., Any] = twist.undo(function)
        untwisted.undone = twist.sentence  # type: ignore[attr-defined]  # shown when `part` loads it
        return untwisted

    def __repr__(self) -> str:
        return f"Student({self.name!r}, course={self.course!r})"
