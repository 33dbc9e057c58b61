"""Coding tasks ('builds'): the student writes a function. It is called on many cases. The feedback describes the smallest failed case.

In a graded course each student does the lab's task with a small change (a 'twist'). "The task without a twist" is the task as the lab's
notebook states it.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from io import StringIO
from typing import Any

import numpy as np

from hybridlab.checks import counted, short_repr
from hybridlab.course.checking.answers import plain_values, same
from hybridlab.course.checking.calls import ENDED, Relayed, call, refuse_shared_memory
from hybridlab.course.checking.checking import Feedback, Instance, PartialCredit, Task, add_task, right, wrong
from hybridlab.course.checking.drawing import Renaming
from hybridlab.course.checking.maps import refuse_change
from hybridlab.course.checking.twists import Example, Twist, variants
from hybridlab.course.checking.uses import without_library
from hybridlab.course.parts import save
from hybridlab.course.results import is_stub
from hybridlab.errors import HybridLabError

PUBLIC_SEED = 0  # the seed of the public check, which has the same cases in each call
ALONE = "it is graded with Python and numpy alone"  # the end of the prompt of each task that may not use the library
SOLUTION = "solution"  # the name of each worked solution's function; a function with this name is not saved for later labs
KEEPS_ITS_STATE = (
    "when it is called again for {}, after the call for {}, your function returns something else than the first time: "
    "a list outside the function, or a default such as `result=[]`, keeps what earlier calls have added; make a new list in each call"
)
WITHOUT_THE_TWIST = "your function does the task as it stands in the text, without your own change"
MOST_STEPS = 3_000_000  # the most lines of code that one call may execute if it may never end; they take about a second
ASKED_AGAIN = 4  # one in so many hidden cases is asked a second time
MOST_FAILED, MOST_FAILED_IN_THREADS = 24, 3  # the most failed public cases that are tried; with threads, each can wait for seconds
LEAST_ASKED_AGAIN = 8  # the least number of hidden cases that are asked a second time; all, if there are fewer


@dataclass(frozen=True)
class Case:
    """Arguments with which a student's function is called.

    Parameters
    ----------
    arguments : tuple
        The arguments in the order of the signature. The function gets a copy of these arguments.
    words : str
        The arguments in words, such as ``"3 devices and 2 microbatches"``. Feedback begins with "for " and these words.
    refused : bool
        Whether the arguments are bad, so that the function must raise an error. An error of any type is accepted.
    run : callable
        The harness of the case: ``run(call, *arguments)`` calls the student's function through ``call`` and returns the result that is
        judged. By default it calls the function once, with ``arguments``. Another harness can call the function several times, or pass
        functions to it.
    """

    arguments: tuple[Any, ...]
    words: str
    refused: bool = False
    run: Callable[..., Any] = lambda call, *arguments: call(*arguments)


@dataclass(frozen=True)
class KnownMistake:
    """A known mistake of a coding task, with a program that makes this mistake.

    A mistake explains the failed cases of a student's function if its program returns the same result in each of these cases, and a right
    result in each case that the student's function passes.

    Parameters
    ----------
    code, sentence : str
        The code of the mistake, and the sentence for the student.
    result : callable
        Takes the arguments of a case. Returns what a function with this mistake returns or, if the case has a harness (``Case.run``),
        what the harness returns. It may raise a :class:`HybridLabError` if there is no result for these arguments.
    under : mapping of str to str or None
        Other sentences for twists under which ``sentence`` would be wrong, by the names of the twists. None leaves the mistake out: under
        that twist it is no mistake, or has no sentence.
    """

    code: str
    sentence: str
    result: Callable[..., Any]
    under: Mapping[str, str | None] = field(default_factory=dict)

    def twisted(self, twist: Twist) -> "KnownMistake | None":
        """Return this mistake with its sentence under a twist. Return None if the mistake is left out under this twist."""
        sentences = [self.under[each.name] for each in twist.rows or (twist,) if each.name in self.under]
        if None in sentences:
            return None
        return replace(self, sentence=sentences[-1] or self.sentence) if sentences else self


@dataclass(frozen=True)
class Build:
    """The data of a coding task ('build'): its cases, its judge and its known mistakes.

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
        Converts the value that the function returned into the value that the judge takes. Raises a :class:`HybridLabError` for a value
        that cannot be converted.
    mistakes : sequence of KnownMistake
        The known mistakes. The feedback names the first one that explains all failed cases; see :class:`KnownMistake`.
    lesson : str
        The sentence for a right function.
    fresh : bool
        Whether it is an error if arrays in the result share memory with the arguments or with each other.
    within : float
        The largest difference at which an array counts as equal to the array that a known mistake gives, as a share of the largest
        absolute value in the latter. It is above 0 if right functions can differ in their rounding errors.
    library : bool
        Whether a function may use the library, because the lab provides a part of the program. If False, the grader runs the function
        with numpy alone.
    threads : bool
        Whether a function may start threads. If False, it cannot start any in the grader.
    twists : sequence of Twist
        Changes of the task. Each student of a graded course gets one twist or a combination of two.
    examples : sequence of Example
        Calls with their results, as the lab's notebook shows them (without a twist).
    twist : Twist, optional
        The twist of this build; None for the task without a twist.
    untwisted : Build, optional
        The same build without a twist. None if this build has no twist itself.
    """

    signature: str
    cases: Callable[[np.random.Generator], Iterable[Case]]
    judge: Callable[..., Feedback]
    reads: Callable[[Any], Any]
    mistakes: Sequence[KnownMistake]
    lesson: str
    fresh: bool
    within: float = 0.0
    library: bool = False
    threads: bool = False
    twists: Sequence[Twist] = ()
    examples: Sequence[Example] = ()
    twist: Twist | None = None
    untwisted: "Build | None" = None

    @cached_property
    def variants(self) -> tuple[Twist, ...]:
        """The twists, then all combinations of two twists."""
        return variants(self.twists)

    def twisted(self, seed: int) -> "Build":
        """Return the build with the twist that a seed selects. Return this build unchanged if it has no twists."""
        return self.with_twist(self.variants[seed % len(self.variants)]) if self.twists else self

    def with_twist(self, twist: Twist) -> "Build":
        """Return the build with this twist."""
        mistakes = [changed for each in self.mistakes if (changed := each.twisted(twist))] if twist.mistakes is None else twist.mistakes
        return replace(self, twist=twist, untwisted=self, judge=twist.judge or self.judge, mistakes=mistakes)

    @property
    def calls(self) -> list[str]:
        """The examples under the twist of this build, such as ``"peaks(['0F0 0B0']) returns [1]"``."""
        twist = self.twist or Twist("", "")
        examples = [each for each in self.examples if each.of is None or each.of in twist.given]
        return [twist.example(self.name, each) for each in twist.examples or examples]

    @property
    def example(self) -> str:
        """A sentence with the examples under the twist of this build; empty if there are no examples."""
        return f"for example, {'; '.join(self.calls)}" if self.calls else ""

    @property
    def name(self) -> str:
        """The name of the function. The function is saved for later labs under this name."""
        return self.signature.partition("(")[0]

    @property
    def worker(self) -> str:
        """The kind of worker in which a function is graded: ``"library"``, ``"threads"`` or ``"bare"``."""
        return "library" if self.library else "threads" if self.threads else "bare"

    @cached_property
    def public_cases(self) -> tuple[Case, ...]:
        """The cases of the public check. They are computed once, because many cases take longer to compute than to run."""
        return self._cases_of(PUBLIC_SEED)

    def _cases_of(self, seed: int) -> tuple[Case, ...]:
        if self.untwisted is None or self.twist is None:
            return tuple(self.cases(np.random.default_rng(seed)))
        cases = self.untwisted.public_cases if seed == PUBLIC_SEED else self.untwisted._cases_of(seed)
        return cases if self.twist.cases is None else tuple(map(self.twist.cases, cases))

    def check(self, function: Any, seed: int = PUBLIC_SEED) -> Feedback:
        """Return the feedback on a function. If the function fails cases, the feedback describes the smallest of them."""
        if not callable(function):
            raise HybridLabError(
                f"the answer is a function {self.signature}: give its name without quotes and brackets, not {short_repr(function)}",
                "not-a-function",
            )
        feedback = self._check_with_twist(function, seed)
        return feedback if self.library else without_library(feedback, function)

    def _check_with_twist(self, function: Callable[..., Any], seed: int) -> Feedback:
        """Return the feedback on a function for this student's task, which can have a twist."""
        if self.twist is None or self.untwisted is None:
            return self._check(function, seed)
        if (feedback := self._check(self.twist.undo(function), seed)).passed:
            return feedback
        ended = any(code in ENDED for code in feedback.failed)
        missed = None if ended or self.twist.judge else self._missed(function, self.twist, self.untwisted)
        explanation = self.twist.explanation(own_names=feedback.drawing is not None)
        if missed:
            return replace(missed, failed=feedback.failed)
        return replace(feedback, messages=tuple(filter(None, (*feedback.messages, explanation, self.example))))

    def _missed(self, function: Callable[..., Any], twist: Twist, untwisted: "Build") -> Feedback | None:
        """Return the feedback on a function that does the task without a twist, or makes only one of two changes. Else return None.

        A function may never end if it gets arguments that it was not written for. So the executed lines of its code are counted, and an
        error ends a call with too many lines. In another process the lines cannot be counted. So a function in another process is not
        called with lists in a form that it was not written for.
        """
        others = [untwisted, *(untwisted.with_twist(each) for each in twist.rows)]
        if not inspect.isfunction(function):
            others = [each for each in others if (each.twist.given if each.twist else {}) == twist.given or not self._takes_lists]
        counted_steps = _with_most_steps(function) if inspect.isfunction(function) else function
        with redirect_stdout(StringIO()):  # the function's output has been shown in an earlier call
            done = next((each for each in others if each._passes(counted_steps)), None)
        only = f"your function makes only this one of your changes: {done.twist.sentence}" if done and done.twist else WITHOUT_THE_TWIST
        return wrong("twist-missed", only, twist.reminder, *filter(None, [self.example])) if done else None

    @property
    def _takes_lists(self) -> bool:
        return isinstance(self.public_cases[0].arguments[0], list)

    def _check(self, function: Callable[..., Any], seed: int) -> Feedback:
        """Return the feedback on a function for the task without a twist. A student's twist has been undone before."""
        attempts = sorted(self._attempts(function, seed), key=lambda each: each.place)
        failed = [each for each in attempts if not each.feedback.passed]
        if failed:
            told = next((each.feedback for each in failed if each.feedback.code == "keeps-its-state"), None)
            return replace(told or self._described(attempts, failed[0]), failed=tuple(each.feedback.code for each in failed))
        first, last = attempts[0], attempts[-1]
        tried = f"right in all {counted(last.place + 1, 'case')}, from {first.case.words} to {last.case.words}"
        return replace(last.feedback, messages=(self.lesson, *last.feedback.messages, tried))

    def _described(self, attempts: Sequence["Attempt"], smallest: "Attempt") -> Feedback:
        """Return the feedback on the smallest failed case. It names a known mistake only if this mistake explains all failed cases."""
        feedback = smallest.feedback
        about = (f"for {smallest.case.words}: {feedback.messages[0]}", *feedback.messages[1:])
        mistake = None if smallest.case.refused else self._mistake(attempts)
        if mistake is None:
            return replace(feedback, messages=about)
        return replace(feedback, messages=(*about, mistake.sentence), code=mistake.code)

    def codes(self, function: Callable[..., Any], seed: int = PUBLIC_SEED) -> Iterator[str]:
        """Yield the judge's code for each case that a function fails. Partial credit depends on these codes, not on known mistakes.

        ``check`` returns the same codes as ``Feedback.failed``.
        """
        untwisted = self.twist.undo(function) if self.twist else function
        return (each.feedback.code for each in self._attempts(untwisted, seed) if not each.feedback.passed)

    def _attempts(self, function: Callable[..., Any], seed: int) -> Iterator["Attempt"]:
        """Try a function on all cases, and yield each attempt. The public cases come in their order, from the smallest up.

        Hidden cases come in an order that the seed draws, and some of them come again later. So a function cannot know a case by the
        number of the call. After the first failed case, the case of the first call comes again: if the function fails it now, it has kept
        something of earlier calls. The attempts end with a failed case that the function has passed before, and with a case in which the
        function does not end. The public attempts end after some failed cases, which are enough to describe what is wrong.
        """
        cases = self.public_cases if seed == PUBLIC_SEED else self._cases_of(seed)
        order = list(range(len(cases))) if seed == PUBLIC_SEED else order_of_calls(len(cases), seed)
        passed, failed, tried = set[int](), 0, function
        for step, place in enumerate(order):  # the loop adds a repeated case to this list
            with redirect_stdout(StringIO()) if failed else nullcontext():  # a function's output is shown up to its first failed case
                attempt = self._attempt(tried, cases[place], place)
            code = attempt.feedback.code
            # with threads, a repeated case can also fail because the function depends on the time, so its own feedback is right
            if place in passed and not attempt.feedback.passed and code not in ENDED and not self.threads:
                sentence = KEEPS_ITS_STATE.format(cases[place].words, cases[order[step - 1]].words)
                yield replace(attempt, feedback=wrong("keeps-its-state", sentence))
                return
            yield attempt
            if code in ENDED:  # a function that did not end would not end in another call either
                return
            if attempt.feedback.passed:
                passed.add(place)
                continue
            failed += 1
            if failed == 1 and order[0] in passed:
                order.insert(step + 1, order[0])
            if inspect.isfunction(inspect.unwrap(function)):  # a wrong function may never end in a later case
                tried = _with_most_steps(function)
            if seed == PUBLIC_SEED and failed == (MOST_FAILED_IN_THREADS if self.threads else MOST_FAILED):
                return

    def _attempt(self, function: Callable[..., Any], case: Case, place: int) -> "Attempt":
        """Try a function on one case, which has the index ``place`` among the cases."""
        result: Any = None
        try:
            if case.refused:
                return Attempt(place, case, self._refused(function, case))
            result = self._result(function, case)
            feedback = self.judge(result, *deepcopy(case.arguments))
            feedback = feedback if self.twist is None else _in_own_names(feedback, case, self.twist)
        except HybridLabError as why:
            feedback = wrong(why.code or "refused", str(why))
        return Attempt(place, case, feedback, None if feedback.passed else result)

    def _tried(self, function: Callable[..., Any], case: Case) -> Feedback:
        """Return the feedback on a function for one case."""
        return self._attempt(function, case, 0).feedback

    def _refused(self, function: Callable[..., Any], case: Case) -> Feedback:
        """Return the feedback on a function for a case in which it must raise an error."""
        try:
            case.run(lambda *arguments: call(function, arguments, self.signature, refused=True), *deepcopy(case.arguments))
        except HybridLabError as why:
            if why.code == "raises":
                return right()
            raise
        return wrong("not-refused", "the function returns a result, but it must raise an error, such as ValueError")

    def _result(self, function: Callable[..., Any], case: Case) -> Any:
        """Return the function's result for a case, in the form that the judge takes.

        Raise a :class:`HybridLabError` if the function raises an error, changes its arguments, returns None or a value that cannot be
        judged, or if arrays share memory that must not.
        """
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

    def _mistake(self, attempts: Sequence["Attempt"]) -> KnownMistake | None:
        """Return the first known mistake that explains these attempts; None if no known mistake explains them.

        A mistake's program refuses no arguments, so the attempts in which the function must raise an error are left out.
        """
        # failed cases come first, because most mistakes do not explain the smallest of them
        ordered = sorted((each for each in attempts if not each.case.refused), key=lambda each: each.feedback.passed)
        if any(each.result is None and not each.feedback.passed for each in ordered):
            return None
        return next((mistake for mistake in self.mistakes if all(self._explains(mistake, each) for each in ordered)), None)

    def _explains(self, mistake: KnownMistake, attempt: "Attempt") -> bool:
        """Return whether a mistake's program does in one case what the student's function does: fail with the same result, or pass."""
        given, passed = attempt.case.arguments, attempt.feedback.passed
        try:
            result = mistake.result(*deepcopy(given))
        except HybridLabError:
            return passed  # without a result, the program does not contradict a function that passes
        try:
            read = self.reads(result)
            return self.judge(read, *deepcopy(given)).passed if passed else same(attempt.result, read, self.within)
        except HybridLabError:
            return False

    def accepts(self, mistake: KnownMistake) -> bool:
        """Return whether a program with a known mistake would pass the public cases. A test checks that none passes."""
        try:
            tried = (case.arguments for case in self.public_cases if not case.refused)
            return all(self.judge(self.reads(mistake.result(*deepcopy(given))), *deepcopy(given)).passed for given in tried)
        except HybridLabError:
            return False


@dataclass(frozen=True)
class Attempt:
    """One case on which a student's function was tried.

    Parameters
    ----------
    place : int
        The index of the case among the cases of the seed, from the smallest up.
    case : Case
        The case.
    feedback : Feedback
        The verdict on the function for this case.
    result : Any
        The function's result as the judge takes it, if the judge refused it. None if the function passed, or gave no such result.
    """

    place: int
    case: Case
    feedback: Feedback
    result: Any = None


def order_of_calls(cases: int, seed: int) -> list[int]:
    """Return the order in which hidden cases are asked, as indices of cases: all in a drawn order, and some of them again later.

    >>> order = order_of_calls(40, seed=7)
    >>> len(order), sorted(set(order)) == list(range(40))
    (50, True)
    """
    rng = np.random.default_rng((seed, cases))
    first = rng.random(cases)  # the time of the first call for each case, as a share of the whole
    again = rng.choice(cases, max(cases // ASKED_AGAIN, min(LEAST_ASKED_AGAIN, cases)), replace=False)
    times = [*zip(first, range(cases), strict=True), *((rng.uniform(first[place], 1), int(place)) for place in again)]
    return [place for _, place in sorted(times)]


def _in_own_names(feedback: Feedback, case: Case, twist: Twist) -> Feedback:
    """Return feedback with the devices and operations renamed, in picture and sentences, as the student's twist numbers them."""
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
    library: bool = False,
    threads: bool = False,
    twists: Sequence[Twist] = (),
    examples: Sequence[Example] = (),
    partial_credit: Sequence[PartialCredit] = (),
) -> Callable[[Callable[..., Feedback]], Callable[..., Feedback]]:
    """Return a decorator that adds a coding task ('build'). The decorated function judges the result of one case.

    Parameters
    ----------
    key, title, prompt, points, partial_credit
        The fields of :class:`~hybridlab.course.tasks.Task`.
    signature, cases, lesson, mistakes, reads, fresh, within, library, threads, twists, examples
        The fields of :class:`Build`.
    """

    def add(judge: Callable[..., Feedback]) -> Callable[..., Feedback]:
        build = Build(signature, cases, judge, reads, mistakes, lesson, fresh, within, library, threads, twists, examples)
        asked = prompt if library else f"{prompt}; {ALONE}"

        def judged(function: Any, seed: int | None) -> Feedback:
            if is_stub(function):
                return wrong("nothing-handed-in", f"nothing handed in yet: {asked}")
            feedback = build.check(function, PUBLIC_SEED if seed is None else seed)
            return save_if_passed(feedback, build, function) if seed is None else feedback

        def instance(seed: int | None) -> Instance:
            return Instance(asked, lambda function: judged(function, seed), build)

        add_task(Task(key, title, points, "build", instance, partial_credit))
        return judge

    return add


def save_if_passed(feedback: Feedback, build: Build, function: Any, then: str = "") -> Feedback:
    """Save a function for later labs if it has passed. Return the feedback with a sentence that says where the function is saved.

    Parameters
    ----------
    feedback : Feedback
        The feedback on the function.
    build : Build
        The build that the function was written for.
    function : callable
        The function. A function with the name ``solution`` is not saved. Every other one is saved under the name of the task.
    then : str
        Python code that is written at the end of the file.
    """
    if not feedback.passed or getattr(function, "__name__", "") == SOLUTION:
        return feedback
    return replace(feedback, messages=(*feedback.messages, save(build.name, function, then)))


def _with_most_steps(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does the same, but raises an error if a call executes more than :data:`MOST_STEPS` lines of code.

    Only lines that this thread executes are counted.
    """

    @wraps(function)
    def limited(*arguments: Any) -> Any:
        steps = 0

        def count(frame: Any, event: str, argument: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps > MOST_STEPS:
                raise Relayed("the function does not end: does each of its loops come to an end?", "too-slow")
            return count

        before = sys.gettrace()
        sys.settrace(count)
        try:
            return function(*arguments)
        finally:
            sys.settrace(before)

    return limited
