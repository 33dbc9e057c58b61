"""Tasks whose answer is a function of the student's own: it is called on many cases, and the first case that it fails is described."""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from io import StringIO
from typing import Any

import numpy as np

from hybridlab.checks import counted, short_repr
from hybridlab.course.checking.answers import plain_values, same
from hybridlab.course.checking.calls import ENDED, call, names_in, refuse_shared_memory
from hybridlab.course.checking.checking import Feedback, Instance, PartialCredit, Task, add_task, right, wrong
from hybridlab.course.checking.drawing import Renaming
from hybridlab.course.checking.maps import refuse_change
from hybridlab.course.checking.twists import Example, Twist, variants
from hybridlab.course.parts import save
from hybridlab.course.results import is_stub
from hybridlab.errors import HybridLabError

PUBLIC_SEED = 0  # the cases of the public check are the same each time
SOLUTION = "solution"  # a worked solution has this name; it is not saved for later labs
KEEPS_ITS_STATE = (
    "when it is called again for {}, after the call for {}, your function returns something else than the first time: "
    "a list outside the function, or a default such as `result=[]`, keeps what earlier calls have put into it"
)
WITHOUT_THE_TWIST = "your function does the task as it stands in the text, without your own change"
MOST_STEPS = 3_000_000  # lines of a student's function in a call that may never end, about a second
CASES_TO_TELL_APART = 8  # after a failed case, at most so many more show which known mistake it is


@dataclass(frozen=True)
class Case:
    """Arguments with which a student's function is called.

    Parameters
    ----------
    arguments : tuple
        The arguments in the order of the signature. The function gets a copy of them.
    words : str
        The arguments in the field's words, such as ``"3 devices and 2 microbatches"``. Feedback begins with "for " and these words.
    refused : bool
        Whether the arguments are bad, so that the function must raise an error. Any error is right.
    run : callable
        Calls the function: ``run(call, *arguments)``, where ``call`` takes the arguments in the signature. What it returns is the result.
        By default the function is called once, with the arguments. Others are for several calls, or for functions that take functions.
    """

    arguments: tuple[Any, ...]
    words: str
    refused: bool = False
    run: Callable[..., Any] = lambda call, *arguments: call(*arguments)


@dataclass(frozen=True)
class KnownMistake:
    """A known mistake of a build, with a program that makes this mistake.

    Parameters
    ----------
    code, sentence : str
        The code of the mistake, and the sentence for the student.
    result : callable
        What a function with this mistake returns for the arguments of a case; with a harness, what the harness returns. It may raise a
        :class:`HybridLabError` where it has no result.
    under : mapping of str to str or None
        The sentence under a twist, by the name of the twist, where the sentence of the text would be wrong; None if the mistake is none
        under this twist, or has no sentence there.
    """

    code: str
    sentence: str
    result: Callable[..., Any]
    under: Mapping[str, str | None] = field(default_factory=dict)

    def twisted(self, twist: Twist) -> "KnownMistake | None":
        """Return this mistake with its sentence under a twist; None if the twist leaves it out."""
        sentences = [self.under[each.name] for each in twist.rows or (twist,) if each.name in self.under]
        if None in sentences:
            return None
        return replace(self, sentence=sentences[-1] or self.sentence) if sentences else self


@dataclass(frozen=True)
class Build:
    """The data of a build: its cases, its judge and its known mistakes.

    Parameters
    ----------
    signature : str
        The function's name and arguments, such as ``"one_f_one_b(devices, microbatches)"``.
    cases : callable
        Takes a numpy ``Generator`` and returns the cases, from the smallest up.
    judge : callable
        Takes a result and the arguments of a case, and returns feedback. The expected value comes from the library, from a closed form
        or from a property. If it raises a :class:`HybridLabError`, the sentence and the code of this error become the feedback.
    reads : callable
        Turns what the function returned into what the judge takes, or raises a :class:`HybridLabError`.
    mistakes : sequence of KnownMistake
        The known mistakes. The first one that gives the same result as the student's function is named.
    lesson : str
        The sentence for a right function.
    fresh : bool
        Whether arrays in the result must have memory of their own, apart from the arguments and from each other.
    within : float
        By how much an array may differ from that of a known mistake, as a share of its largest number: more than 0 where right functions
        differ in their rounding.
    without : sequence of str
        Names of the library that a function may not use, because they do what the task asks for.
    library : bool
        Whether a function may use the library, because the lab gives a part of it. Any other build is graded with numpy alone.
    threads : bool
        Whether a function may start threads. Any other build is graded without.
    twists : sequence of Twist
        Changes to the task. Each student of a graded course gets one of them, or a combination of two.
    examples : sequence of Example
        Calls with their results, as they stand in the text.
    twist : Twist, optional
        The change that this build has; None for the task in the text.
    untwisted : Build, optional
        The build in the text, if this one has a twist.
    """

    signature: str
    cases: Callable[[np.random.Generator], Iterable[Case]]
    judge: Callable[..., Feedback]
    reads: Callable[[Any], Any]
    mistakes: Sequence[KnownMistake]
    lesson: str
    fresh: bool
    within: float = 0.0
    without: Sequence[str] = ()
    library: bool = False
    threads: bool = False
    twists: Sequence[Twist] = ()
    examples: Sequence[Example] = ()
    twist: Twist | None = None
    untwisted: "Build | None" = None

    @cached_property
    def variants(self) -> tuple[Twist, ...]:
        """The twists, and all their combinations of two."""
        return variants(self.twists)

    def twisted(self, seed: int) -> "Build":
        """Return the build with the twist that a seed draws; the build itself if it has no twists."""
        return self.with_twist(self.variants[seed % len(self.variants)]) if self.twists else self

    def with_twist(self, twist: Twist) -> "Build":
        """Return the build with a twist."""
        mistakes = [changed for each in self.mistakes if (changed := each.twisted(twist))] if twist.mistakes is None else twist.mistakes
        return replace(self, twist=twist, untwisted=self, judge=twist.judge or self.judge, mistakes=mistakes)

    @property
    def example(self) -> str:
        """The examples in a sentence, under the twist of this build."""
        twist = self.twist or Twist("", "")
        examples = [each for each in self.examples if each.of is None or each.of in twist.given]
        calls = [twist.example(self.name, each) for each in twist.examples or examples]
        return f"for example, {'; '.join(calls)}" if calls else ""

    @property
    def name(self) -> str:
        """The name of the function, under which it is saved for later labs."""
        return self.signature.partition("(")[0]

    @property
    def worker(self) -> str:
        """The kind of worker in which a function is graded: ``"library"``, ``"threads"`` or ``"bare"``."""
        return "library" if self.library else "threads" if self.threads else "bare"

    @cached_property
    def public_cases(self) -> tuple[Case, ...]:
        """The cases of the public check. They are made once, because many of them take longer to make than to try."""
        return self._cases_of(PUBLIC_SEED)

    def _cases_of(self, seed: int) -> tuple[Case, ...]:
        if self.untwisted is None or self.twist is None:
            return tuple(self.cases(np.random.default_rng(seed)))
        cases = self.untwisted.public_cases if seed == PUBLIC_SEED else self.untwisted._cases_of(seed)
        return cases if self.twist.cases is None else tuple(map(self.twist.cases, cases))

    def check(self, function: Any, seed: int = PUBLIC_SEED) -> Feedback:
        """Return the feedback on a function. It describes the first case that the function fails, if there is one."""
        if not callable(function):
            raise HybridLabError(
                f"the answer is a function {self.signature}: hand in its name, not {short_repr(function)}", "not-a-function"
            )
        if self.twist is None or self.untwisted is None:
            return self._check(function, seed)
        if (feedback := self._check(self.twist.undo(function), seed)).passed:
            return feedback
        missed = None if feedback.code in ENDED or self.twist.judge else self._missed(function, self.twist, self.untwisted)
        explanation = self.twist.explanation(own_names=feedback.drawing is not None)
        return missed or replace(feedback, messages=tuple(filter(None, (*feedback.messages, explanation, self.example))))

    def _missed(self, function: Callable[..., Any], twist: Twist, untwisted: "Build") -> Feedback | None:
        """Return the feedback on a function that does the task in the text, or one of two changes alone; None on any other.

        A function that was written for other arguments may never end. So its steps are counted; those of a function in another process
        cannot be counted, and it is not called with arguments that its author does not expect.
        """
        others = [untwisted, *(untwisted.with_twist(each) for each in twist.rows)]
        if not inspect.isfunction(function):
            others = [each for each in others if (each.twist.given if each.twist else {}) == twist.given or not self._takes_lists]
        counted_steps = _with_most_steps(function) if inspect.isfunction(function) else function
        with redirect_stdout(StringIO()):  # what the function prints has been shown once
            done = next((each for each in others if each._passes(counted_steps)), None)
        only = f"your function makes only this one of your changes: {done.twist.sentence}" if done and done.twist else WITHOUT_THE_TWIST
        return wrong("twist-missed", only, twist.reminder, *filter(None, [self.example])) if done else None

    @property
    def _takes_lists(self) -> bool:
        return isinstance(self.public_cases[0].arguments[0], list)

    def _check(self, function: Callable[..., Any], seed: int) -> Feedback:
        """Return the feedback on a function that does the task in the text."""
        cases = self.public_cases if seed == PUBLIC_SEED else self._cases_of(seed)
        passed = right(self.lesson)
        for place, case in enumerate(cases):
            feedback = self._tried(function, case)
            if not feedback.passed:
                about = (f"for {case.words}: {feedback.messages[0]}", *feedback.messages[1:])
                mistake = None  # an endless function is not called again
                if feedback.code not in ENDED:
                    if place and not self._passes_again(function, cases[0]):
                        return wrong("keeps-its-state", KEEPS_ITS_STATE.format(cases[0].words, case.words))
                    mistake = self._mistake(function, cases[place : place + CASES_TO_TELL_APART])
                if mistake is None:
                    return replace(feedback, messages=about)
                return replace(feedback, messages=(*about, mistake.sentence), code=mistake.code)
            passed = replace(feedback, messages=(self.lesson, *feedback.messages))
        used = next((name for name in self.without if name in names_in(function)), None)
        if used:
            return wrong("not-your-own", f"the results are right, but the library makes them: write the function without its `{used}`")
        tried = f"right in all {counted(len(cases), 'case')}, from {cases[0].words} to {cases[-1].words}"
        return replace(passed, messages=(*passed.messages, tried))

    def codes(self, function: Callable[..., Any], seed: int = PUBLIC_SEED) -> Iterator[str]:
        """Yield the code of each case that a function fails, for partial credit. No known mistake takes the place of a code here."""
        untwisted = self.twist.undo(function) if self.twist else function
        for case in self.public_cases if seed == PUBLIC_SEED else self._cases_of(seed):
            feedback = self._tried(untwisted, case)
            if not feedback.passed:
                yield feedback.code
            if feedback.code in ENDED:
                break

    def _tried(self, function: Callable[..., Any], case: Case) -> Feedback:
        """Return the feedback on one case."""
        try:
            if case.refused:
                return self._refused(function, case)
            feedback = self.judge(self._result(function, case), *deepcopy(case.arguments))
            return feedback if self.twist is None else _in_own_names(feedback, case, self.twist)
        except HybridLabError as why:
            return wrong(why.code or "refused", str(why))

    def _refused(self, function: Callable[..., Any], case: Case) -> Feedback:
        """Return the feedback on a case for which the function must raise an error."""
        try:
            case.run(lambda *arguments: call(function, arguments, self.signature, refused=True), *deepcopy(case.arguments))
        except HybridLabError as why:
            if why.code == "raises":
                return right()
            raise
        return wrong("not-refused", "the function returns a result, but it must raise an error, such as ValueError")

    def _result(self, function: Callable[..., Any], case: Case) -> Any:
        """Return what the function returns for a case, as the judge takes it. Raise if it fails, changes its arguments or shares memory."""
        given = deepcopy(case.arguments)
        returned = case.run(lambda *arguments: call(function, arguments, self.signature, case.refused), *given)
        for argument, before in zip(given, case.arguments, strict=True):
            refuse_change(argument, before)
        if returned is None:
            raise HybridLabError("the function returns None: does it end in return?", "returns-nothing")
        if self.fresh:
            refuse_shared_memory(returned, given)
        return self.reads(returned)

    def _passes(self, function: Callable[..., Any]) -> bool:
        untwisted = self.twist.undo(function) if self.twist else function
        return all(self._tried(untwisted, case).passed for case in self.public_cases)

    def _passes_again(self, function: Callable[..., Any], case: Case) -> bool:
        """Whether a function that has passed a case passes it once more. It does not if it keeps what earlier calls have done."""
        with redirect_stdout(StringIO()):  # what the function prints has been shown once
            return self._tried(function, case).passed

    def _mistake(self, function: Callable[..., Any], cases: Sequence[Case]) -> KnownMistake | None:
        """Return the known mistake behind the first of these cases, which has failed. Later cases tell mistakes apart."""
        mistakes = list(self.mistakes)
        for case in cases:
            agreeing = self._mistakes_in(function, case, mistakes)
            if case is not cases[0] and not agreeing:
                break
            mistakes = agreeing
            if len(mistakes) < 2:
                break
        return next(iter(mistakes), None)

    def _mistakes_in(self, function: Callable[..., Any], case: Case, mistakes: Sequence[KnownMistake]) -> list[KnownMistake]:
        """Return the known mistakes whose programs return for a case what the function returns."""
        try:
            if case.refused:
                return []
            with redirect_stdout(StringIO()):  # what the function prints has been shown once
                result = self._result(function, case)
        except HybridLabError:
            return []
        return [mistake for mistake in mistakes if self._gives(mistake, case, result)]

    def accepts(self, mistake: KnownMistake) -> bool:
        """Whether a function that makes a known mistake would pass the public cases. None should."""
        try:
            tried = (case.arguments for case in self.public_cases if not case.refused)
            return all(self.judge(self.reads(mistake.result(*deepcopy(given))), *deepcopy(given)).passed for given in tried)
        except HybridLabError:
            return False

    def _gives(self, mistake: KnownMistake, case: Case, result: Any) -> bool:
        try:
            return same(result, self.reads(mistake.result(*deepcopy(case.arguments))), self.within)
        except HybridLabError:
            return False


def _in_own_names(feedback: Feedback, case: Case, twist: Twist) -> Feedback:
    """Return feedback whose picture and sentences have the devices and operations of a student with a twist."""
    drawing = feedback.drawing
    if drawing is None or not any(row.drawn for row in twist.rows or (twist,)):
        return feedback
    drawing = replace(drawing, case=drawing.case or case.arguments, own_lines=twist.lines)
    renaming = Renaming.of(twist.lines, drawing.case, len(drawing.orders))
    return replace(feedback, drawing=drawing, messages=tuple(map(renaming.sentence, feedback.messages)))


def build_task(
    key: str,
    *,
    title: str,
    prompt: str,
    points: int,
    signature: str,
    cases: Callable[[np.random.Generator], Iterable[Case]],
    lesson: str,
    mistakes: Sequence[KnownMistake] = (),
    reads: Callable[[Any], Any] = plain_values,
    fresh: bool = False,
    within: float = 0.0,
    without: Sequence[str] = (),
    library: bool = False,
    threads: bool = False,
    twists: Sequence[Twist] = (),
    examples: Sequence[Example] = (),
    partial_credit: Sequence[PartialCredit] = (),
) -> Callable[[Callable[..., Feedback]], Callable[..., Feedback]]:
    """Return a decorator that adds a task for a function of the student's own. The decorated function judges the result of one case.

    Parameters
    ----------
    key, title, prompt, points, partial_credit
        The fields of :class:`~hybridlab.course.tasks.Task`.
    signature, cases, lesson, mistakes, reads, fresh, within, without, library, threads, twists, examples
        The fields of :class:`Build`.
    """

    def add(judge: Callable[..., Feedback]) -> Callable[..., Feedback]:
        build = Build(signature, cases, judge, reads, mistakes, lesson, fresh, within, without, library, threads, twists, examples)

        def judged(function: Any, seed: int | None) -> Feedback:
            if is_stub(function):
                return wrong("nothing-handed-in", f"nothing handed in yet: {prompt}")
            feedback = build.check(function, PUBLIC_SEED if seed is None else seed)
            return save_if_passed(feedback, build, function) if seed is None else feedback

        def instance(seed: int | None) -> Instance:
            return Instance(prompt, lambda function: judged(function, seed), build)

        add_task(Task(key, title, points, "build", instance, partial_credit))
        return judge

    return add


def save_if_passed(feedback: Feedback, build: Build, function: Any, then: str = "") -> Feedback:
    """Save a function that has passed for later labs, and return the feedback with a sentence about it.

    Parameters
    ----------
    feedback : Feedback
        The feedback on the function.
    build : Build
        The build that the function was written for.
    function : callable
        The function. One named ``solution`` is not saved.
    then : str
        A line of code for the end of the file.
    """
    name = getattr(function, "__name__", "")
    if not feedback.passed or name == SOLUTION:
        return feedback
    saved = save(name, function, then) if name == build.name else f"not saved for later labs: give your function the name {build.name}"
    return replace(feedback, messages=(*feedback.messages, saved))


def _with_most_steps(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises an error when a call takes more than :data:`MOST_STEPS` steps of Python in this thread."""

    @wraps(function)
    def limited(*arguments: Any) -> Any:
        steps = 0

        def count(frame: Any, event: str, argument: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps > MOST_STEPS:
                raise HybridLabError("the function does not end", "too-slow")
            return count

        before = sys.gettrace()
        sys.settrace(count)
        try:
            return function(*arguments)
        finally:
            sys.settrace(before)

    return limited
