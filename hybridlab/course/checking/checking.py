"""Tasks, the feedback on an answer, and the registry of all tasks. The file of a lab adds its tasks; a notebook calls ``check``."""

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

MOST_DRAWS = 20  # seeds that are tried until the sizes differ from those in the text
WIDTH = 72  # characters in a line of the printed feedback, as many as fit on a page of the book


@dataclass(frozen=True, repr=False)
class Feedback:
    """The verdict on an answer, the sentences that explain it, and a code for programs.

    Parameters
    ----------
    passed : bool
        Whether the answer is right.
    messages : tuple of str
        The sentences for the student. They may be reworded from version to version.
    task : str
        The key of the task, such as ``"lab02.t1"``.
    code : str
        The name of the mistake, such as ``"one-device-alone"``; ``"passed"`` for a right answer and ``"nothing-handed-in"``
        for an empty one. Within a task each sentence has its own code. The code stays the same if the sentence is reworded.
    drawing : Drawing, optional
        The picture of an answer that is a schedule or a timeline; a notebook shows it.

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

    def _ipython_display_(self) -> None:
        """Show the drawing above the text. Without a drawing a notebook shows the text as it shows any value."""
        figure = None if self.drawing is None else self.drawing.figure()
        if figure is None:
            raise NotImplementedError  # IPython then shows the text
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
        become the feedback. A build gets the function that was handed in; any other task gets plain values (text, numbers, lists and
        dicts of them; never empty).
    data : Question or Build or None
        What the judge compares the answer with, for programs that grade: right values, cases, known mistakes.
    """

    prompt: str
    judge: Judge
    data: Any = None


@dataclass(frozen=True)
class PartialCredit:
    """Partial credit: a share of the points for a wrong answer whose feedback has one of some codes.

    Parameters
    ----------
    reached : str
        What such an answer is already, in a few words: ``"complete and able to run"``.
    share : float
        The share of the points that it earns, less than 1.
    codes : tuple of str
        The codes of the feedback on such answers.
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
        A few words.
    points : int
        The number of points for a right answer, at least 1.
    kind : str
        ``"number"`` for a number or a list of them, ``"build"`` for a function of the student's own, ``"written"`` for anything else.
    instance : callable
        Takes a seed, or None for the public instance, that of the text, and returns the :class:`Instance`. The same seed always gives the
        same one.
    partial_credit : sequence of PartialCredit
        The partial credit for wrong answers. Any other wrong answer earns nothing.
    """

    key: str
    title: str
    points: int
    kind: str
    instance: Callable[[int | None], Instance]
    partial_credit: Sequence[PartialCredit] = ()

    def credit_for(self, code: str) -> PartialCredit | None:
        """Return the partial credit for a wrong answer whose feedback has this code, if there is any."""
        return next((credit for credit in self.partial_credit if code in credit.codes), None)

    @property
    def prompt(self) -> str:
        """What to hand in, in one sentence, with the numbers of the text."""
        return self.instance(None).prompt

    def personal(self, seed: int) -> Instance:
        """Return the instance of one student: other sizes than those in the text, or a twist, where the task has them.

        Parameters
        ----------
        seed : int
            The seed of this student and this task.
        """
        public = self.instance(None)
        if self.kind == "build":
            build = public.data.twisted(seed)
            prompt = f"{public.prompt}. In your task, {build.twist.sentence}" if build.twist else public.prompt
            return Instance(prompt, build.check, build)
        # some draws give the public sizes again; the prompt shows them all
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
        If there is a task with this key already, or if the points are not a whole number of at least 1.
    """
    if new.key in _TASKS:
        raise HybridLabError(f"a task {new.key!r} exists already: choose another key", "exists-already")
    whole_number(new.points, "points")
    _TASKS[new.key] = new


def task(key: str, *, title: str, prompt: str, points: int = 1, partial_credit: Sequence[PartialCredit] = ()) -> Callable[[Judge], Judge]:
    """Return a decorator that adds a task with a judge of its own. The decorated function judges the answers.

    Parameters
    ----------
    key, title, points, partial_credit
        The fields of :class:`Task`.
    prompt : str
        What to hand in, in one sentence.
    """

    def add(judge: Judge) -> Judge:
        # its numbers are fixed, so every seed gives the same instance
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
        A function for a task that asks for one. Else text, a number, a schedule, or a list or dict of these. If the answer has any
        other type, the feedback says so.
    seed : int, optional
        Draws other numbers for a task with numbers, and other cases for a function. By default the numbers are those of the text, and
        the cases are the same each time.

    Returns
    -------
    Feedback
        Whether the answer is right, the sentences that explain why, and the code of the mistake.

    Raises
    ------
    HybridLabError
        If there is no task with this key, or the seed is not a whole number of at least 0. No answer raises an error.

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
        # a function goes to the judge as it is; any other answer must be plain values
        value = answer if known.kind == "build" and callable(answer) else plain_values(answer)
        feedback = wrong("nothing-handed-in", f"nothing handed in yet: {asked.prompt}") if is_empty(value) else asked.judge(value)
    except HybridLabError as why:
        feedback = wrong(why.code or "refused", str(why))
    return replace(feedback, task=known.key)


def _judge_of_both(own: Instance, public: Instance) -> Judge:
    """Return the judge of a student's own numbers. It says so where an answer is right for the public numbers."""

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
    """Whether an answer is right; one that the judge refuses is not."""
    try:
        return asked.judge(answer).passed
    except HybridLabError:
        return False


def right(*messages: str) -> Feedback:
    """Return the feedback on a right answer. The messages say what can be learned from it."""
    return Feedback(True, messages, code="passed")


def wrong(code: str, *messages: str) -> Feedback:
    """Return the feedback on a wrong answer: the code of the mistake, and messages that say what is wrong and where to look."""
    return Feedback(False, messages, code=code)


def _wrapped(line: str) -> list[str]:
    """Return the indented lines for one line of a message. A long sentence is broken at spaces; a line of a schedule is not broken."""
    if re.match(r"device \d+: (\.\.\.|\[?\d+[FBIW])", line):
        return [f"  {line}"]
    inner = " " * (2 + len(line) - len(line.lstrip()))
    return textwrap.wrap(line.strip(), WIDTH, initial_indent=inner, subsequent_indent=inner + "  ") or [""]
