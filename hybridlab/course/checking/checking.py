"""Tasks, the feedback on an answer, and the registry of all tasks. Each lab has a module that adds its tasks; a notebook calls ``check``.

The public instance of a task has the numbers that the lab's notebook shows. In a graded course each student gets an instance with other
numbers, or with a small change of a coding task (a 'twist').
"""

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from hybridlab.checks import known_name, whole_number
from hybridlab.course.checking.answers import is_empty, plain_values
from hybridlab.course.checking.drawing import Drawing
from hybridlab.errors import HybridLabError

MOST_DRAWS = 20  # the most seeds that are tried to find numbers that differ from the public ones
WIDTH = 72  # the most characters in a line of the printed feedback; a page of the site shows no more


@dataclass(frozen=True, repr=False)
class Feedback:
    """The verdict on an answer, the sentences that explain it, and a code for programs.

    Parameters
    ----------
    passed : bool
        Whether the answer is right.
    messages : tuple of str
        The sentences for the student. Their words can change from version to version.
    task : str
        The key of the task, such as ``"lab02.t1"``.
    code : str
        The name of the mistake, such as ``"one-device-alone"``; ``"passed"`` for a right answer and ``"nothing-handed-in"``
        for an empty answer. Within a task each sentence has its own code. The code stays the same if the words of the sentence change.
    drawing : Drawing, optional
        The picture of an answer that is a schedule or a timeline. A notebook shows this picture above the sentences.
    failed : tuple of str
        For a coding task, the judge's code of each failed case, without known mistakes. Partial credit depends on these codes.

    Examples
    --------
    >>> Feedback(False, ("stage 2 never runs the backward of microbatch 7",), "lab02.t1")
    lab02.t1: not yet
      stage 2 never runs the backward of microbatch 7
    """

    passed: bool
    messages: tuple[str, ...]
    task: str = ""
    code: str = ""
    drawing: Drawing | None = field(default=None, compare=False)
    failed: tuple[str, ...] = field(default=(), compare=False)

    def _ipython_display_(self) -> None:
        """Show the drawing above the sentences. Without a drawing, IPython shows the ``repr`` of the feedback, as it does for any value."""
        figure = None if self.drawing is None else self.drawing.figure()
        if figure is None:
            raise NotImplementedError  # this makes IPython show the repr
        from IPython.display import display

        display(figure)  # type: ignore[no-untyped-call]
        display({"text/plain": repr(self)}, raw=True)  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        lines = [f"{self.task}: {'passed' if self.passed else 'not yet'}"]
        for message in self.messages:
            lines += [part for line in message.splitlines() for part in _wrapped(line)]
        return "\n".join(lines)


Judge = Callable[[Any], Feedback]


@dataclass(frozen=True)
class Instance:
    """A task with its numbers filled in.

    Parameters
    ----------
    prompt : str
        What to hand in, in one sentence.
    judge : callable
        Takes the answer and returns :class:`Feedback`. If it raises a :class:`HybridLabError`, the sentence and the code of this error
        become the feedback. The answer to a coding task ('build') is a function. Any other answer is a plain value (text, a number, or a
        list or dict of such values) and is never empty.
    data : Question or Build or None
        The data that the judge uses, such as right values, cases and known mistakes. The grader reads them, too.
    """

    prompt: str
    judge: Judge
    data: Any = None


@dataclass(frozen=True)
class PartialCredit:
    """Partial credit: the share of the points that a wrong answer earns if the code of its feedback is one of ``codes``.

    Parameters
    ----------
    reached : str
        What such an answer already achieves, in a few words for the report: ``"complete and able to run"``.
    share : float
        The share of the points, less than 1.
    codes : tuple of str
        The codes of feedback that earn this share.
    """

    reached: str
    share: float
    codes: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """One task of a lab.

    Parameters
    ----------
    key : str
        The lab and the number of the task, such as ``"lab02.t1"``.
    title : str
        A heading of a few words.
    points : int
        The number of points for a right answer, at least 1.
    kind : str
        The kind of answer: ``"number"`` for a number or a list of numbers, ``"build"`` for a function that the student writes,
        ``"written"`` for any other answer.
    instance : callable
        Takes a seed and returns the :class:`Instance`; None gives the public instance. The same seed always gives the same instance.
    partial_credit : sequence of PartialCredit
        The partial credit for wrong answers. A wrong answer with none of these codes earns no points.
    """

    key: str
    title: str
    points: int
    kind: str
    instance: Callable[[int | None], Instance]
    partial_credit: Sequence[PartialCredit] = ()

    def credit_for(self, code: str) -> PartialCredit | None:
        """Return the partial credit for a wrong answer whose feedback has this code; None if this code earns no points."""
        return next((credit for credit in self.partial_credit if code in credit.codes), None)

    @property
    def prompt(self) -> str:
        """What to hand in, in one sentence, with the public numbers."""
        return self.instance(None).prompt

    def personal(self, seed: int) -> Instance:
        """Return the instance of one student: with numbers other than the public ones, or with a twist.

        Return the public instance if the task has neither other numbers nor twists.

        Parameters
        ----------
        seed : int
            The seed for this student and this task.
        """
        public = self.instance(None)
        if self.kind == "build":
            build = public.data.twisted(seed)
            prompt = f"{public.prompt}. In your task, {build.twist.sentence}" if build.twist else public.prompt
            return Instance(prompt, build.check, build)
        # Some seeds give the public numbers again. Prompts are compared because a prompt shows all numbers of its instance.
        drawn = (self.instance(seed + again) for again in range(MOST_DRAWS))
        own = next((instance for instance in drawn if instance.prompt != public.prompt), None)
        return public if own is None else replace(own, judge=_judge_of_both(own, public))


_TASKS: dict[str, Task] = {}
TASKS: Mapping[str, Task] = MappingProxyType(_TASKS)


def add_task(new: Task) -> None:
    """Add a task to ``TASKS``.

    Raises
    ------
    HybridLabError
        If a task with this key exists already, or if the points are not a whole number of at least 1.
    """
    if new.key in _TASKS:
        raise HybridLabError(f"a task {new.key!r} exists already: choose another key", "exists-already")
    whole_number(new.points, "points")
    _TASKS[new.key] = new


def task(key: str, *, title: str, prompt: str, points: int = 1, partial_credit: Sequence[PartialCredit] = ()) -> Callable[[Judge], Judge]:
    """Return a decorator that adds a task of the kind ``"written"``. The decorated function judges the answers.

    Parameters
    ----------
    key, title, points, partial_credit
        The fields of :class:`Task`.
    prompt : str
        What to hand in, in one sentence.
    """

    def add(judge: Judge) -> Judge:
        # a task of this kind has fixed numbers, so every seed gives the same instance
        add_task(Task(key, title, points, "written", lambda seed: Instance(prompt, judge), partial_credit))
        return judge

    return add


def check(key: str, answer: Any = None, *, seed: int | None = None) -> Feedback:
    """Return feedback on an answer to a task.

    Parameters
    ----------
    key : str
        The task, such as ``"lab02.t1"``.
    answer : Any
        A function if the task asks for a function. Else text, a number, a schedule, or a list or dict of these. If the answer has any
        other type, the feedback says so.
    seed : int, optional
        A seed for other numbers of a number task, or for other cases of a coding task. By default the numbers are those that the lab's
        notebook shows, and the cases are the same in each call.

    Returns
    -------
    Feedback
        Whether the answer is right, sentences that explain the verdict, and the code of the mistake.

    Raises
    ------
    HybridLabError
        If there is no task with this key, or the seed is not a whole number of at least 0. An answer never raises an error.

    Examples
    --------
    >>> import hybridlab.course.tasks  # adds the tasks of the labs
    >>> check("lab02.t1", "")  # doctest: +ELLIPSIS
    lab02.t1: not yet
      nothing handed in yet: write 1F1B for 3 devices ...
    >>> check("lab02.t2", 80).code
    'one-device-alone'
    """
    known = TASKS[known_name(key, TASKS, "task")]
    return check_with(known, known.instance(None if seed is None else whole_number(seed, "seed", at_least=0)), answer)


def check_with(known: Task, asked: Instance, answer: Any) -> Feedback:
    """Return feedback on an answer to one instance of a task; see :func:`check`."""
    try:
        # the judge of a coding task takes the function itself; all other judges take plain values
        value = answer if known.kind == "build" and callable(answer) else plain_values(answer)
        feedback = wrong("nothing-handed-in", f"nothing handed in yet: {asked.prompt}") if is_empty(value) else asked.judge(value)
    except HybridLabError as why:
        feedback = wrong(why.code or "refused", str(why))
    return replace(feedback, task=known.key)


def _judge_of_both(own: Instance, public: Instance) -> Judge:
    """Return the judge for a student's own numbers. If a wrong answer is right for the public numbers, the feedback says so."""

    def judge(answer: Any) -> Feedback:
        try:
            feedback = own.judge(answer)
        except HybridLabError:
            if _is_right(public, answer):
                return misses
            raise
        return misses if not feedback.passed and _is_right(public, answer) else feedback

    misses = wrong("numbers-of-the-page", f"this is right for the numbers in the text, but yours are others: {own.prompt}")
    return judge


def _is_right(asked: Instance, answer: Any) -> bool:
    """Return whether an answer is right. An answer for which the judge raises an error is not right."""
    try:
        return asked.judge(answer).passed
    except HybridLabError:
        return False


def right(*messages: str) -> Feedback:
    """Return the feedback on a right answer. The messages say what the task teaches."""
    return Feedback(True, messages, code="passed")


def wrong(code: str, *messages: str) -> Feedback:
    """Return the feedback on a wrong answer. The messages say what is wrong and what the student can look at next."""
    return Feedback(False, messages, code=code)


def _wrapped(line: str) -> list[str]:
    """Return the indented lines to print for one line of a message. Long sentences are wrapped at spaces; a row of a schedule is not."""
    if re.match(r"device \d+: (\.\.\.|\[?\d+[FBIW])", line):
        return [f"  {line}"]
    inner = " " * (2 + len(line) - len(line.lstrip()))
    return textwrap.wrap(line.strip(), WIDTH, initial_indent=inner, subsequent_indent=inner + "  ") or [""]
