"""A student of a graded course, whose own sizes and twists come from a digest of the names of course and student."""

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
    """What one student hands in for one task.

    Parameters
    ----------
    task, student : str
        The key of the task, and whose it is.
    prompt : str
        What to hand in, in one sentence, with the student's own sizes or twist.
    example : str
        Calls of a function with this twist, and what they return; empty for a task without a twist.
    """

    task: str
    student: str
    prompt: str
    example: str = ""

    def __repr__(self) -> str:
        sentences = tuple(filter(None, (self.prompt, self.example)))
        # laid out as feedback is, with another first line
        return repr(Feedback(True, sentences, self.task)).replace(": passed", f", for {self.student}:", 1)


class Student:
    """A student of a graded course. The numbers of tasks, and a small change to each build, are the student's own.

    They come from a public digest of the names of the course and of the student, so that a laptop finds the same ones as the grader.

    Parameters
    ----------
    name : str
        The student's name in the course, such as a login. Capital letters and blanks around it do not matter.
    course : str
        The name of the course.

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
        # NFC: a letter with an accent is one character on one system, and two on another
        self.name = unicodedata.normalize("NFC", checked_text(name, "name")).strip().casefold()
        self.course = unicodedata.normalize("NFC", checked_text(course, "course")).strip()
        if not self.name:
            raise HybridLabError("a student needs a name, such as Student('ana')", "empty")

    def seed(self, key: str) -> int:
        """Return the seed of this student and a task, a whole number below 2**32."""
        # not hash(), which differs from process to process; and no secret, because a laptop must find the same seed
        text = "\n".join(("hybridlab", self.course, self.name, key))
        return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4], "big")

    def __call__(self, key: str) -> Statement:
        """Return what this student hands in for a task."""
        task = TASKS[known_name(key, TASKS, "task")]
        asked = task.personal(self.seed(key))
        twisted = task.kind == "build" and asked.data.twist is not None
        return Statement(task.key, self.name, asked.prompt, asked.data.example if twisted else "")

    def check(self, key: str, answer: Any = None) -> Feedback:
        """Return feedback on this student's answer to a task: that of :func:`check`, for the student's own sizes and twist."""
        task = TASKS[known_name(key, TASKS, "task")]
        asked = task.personal(self.seed(key))
        if task.kind == "build" and is_stub(answer):
            answer = None  # nothing handed in yet
        feedback = check_with(task, asked, answer)
        if task.kind == "build":
            # the rest of the lab needs the function without the twist: these lines go into its saved copy
            then = f"from hybridlab import Student\n\n{asked.data.name} = {self!r}.undo_twist({key!r}, {asked.data.name})"
            feedback = save_if_passed(feedback, asked.data, answer, then)
        return feedback

    def undo_twist(self, key: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does a build without this student's twist, from one that does it with the twist.

        Raises
        ------
        HybridLabError
            If the task asks for no function, or ``function`` is none.
        """
        task = TASKS[known_name(key, TASKS, "task")]
        if task.kind != "build":
            raise HybridLabError(f"{key} asks for no function: only a task for a function has a twist", "not-a-build")
        if not callable(function):
            raise HybridLabError(f"function must be a function, not {short_repr(function)}", "not-a-function")
        twist = task.personal(self.seed(key)).data.twist
        if twist is None or twist.judge:  # what no map can express cannot be undone
            return function
        untwisted: Callable[..., Any] = twist.undo(function)
        untwisted.undone = twist.sentence  # type: ignore[attr-defined]  # `part` says so
        return untwisted

    def __repr__(self) -> str:
        return f"Student({self.name!r}, course={self.course!r})"
