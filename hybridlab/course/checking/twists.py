"""Twists: small changes to a build, one for each student, with which a copied solution is wrong."""

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from hybridlab.course.checking.calls import MOST_YIELDED
from hybridlab.errors import HybridLabError

Function = Callable[..., Any]

IN_WORDS_OF_THE_PAGE = "the sentences above describe the case and your result in the words of the text, without your own change"


def _as_it_is(function: Function) -> Function:
    return function


@dataclass(frozen=True)
class Twist:
    """A change to a build.

    Parameters
    ----------
    name : str
        A short name, such as ``"reversed-stages"``. Within a build each twist has its own.
    sentence : str
        What is different, as the end of a sentence that begins with "in your task": ``"line d has the operations of stage K-1-d"``.
    standard : callable
        Takes a function that does the task with this change, and returns one that does the task of the page. It renames arguments or
        results. What it cannot rename it hands on as it is, and the judge then says what is wrong.
    changes : mapping
        Fields of :class:`~hybridlab.course.tasks.Build` that have other values under this twist, such as its judge.
    """

    name: str
    sentence: str
    standard: Callable[[Function], Function] = _as_it_is
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reminder(self) -> str:
        """The change in a sentence."""
        return f"in your task, {self.sentence}"

    @property
    def told(self) -> str:
        """The sentence for a student who did not pass: a judge speaks of the task on the page, unless the twist has a judge of its own."""
        return self.reminder if "judge" in self.changes else f"{IN_WORDS_OF_THE_PAGE}; {self.reminder}"


def in_words_of_the_page(returned: Any, reads: Function, rename: Function) -> Any:
    """Return what ``rename`` makes of a result after ``reads`` has read it. A result that cannot be read is returned as it is.

    Parameters
    ----------
    returned : Any
        What a student's function has returned. Of an iterator the values are taken, as the judge takes them.
    reads : callable
        Turns the result into what the judge takes, or raises a :class:`HybridLabError`.
    rename : callable
        Takes what ``reads`` returned. It raises no errors.
    """
    if isinstance(returned, Iterator):
        returned = list(islice(returned, MOST_YIELDED))
    try:
        read = reads(returned)
    except HybridLabError:
        return returned  # the judge reads it again, and says what is wrong
    return rename(read)


def together(*twists: Twist) -> Twist:
    """Return the twist that has all these changes. The last of them is the first to rename a result."""

    def standard(function: Function) -> Function:
        for twist in reversed(twists):
            function = twist.standard(function)
        return function

    changes = {field: value for twist in twists for field, value in twist.changes.items()}
    return Twist("-and-".join(twist.name for twist in twists), "; ".join(twist.sentence for twist in twists), standard, changes)


def show_changes(argument: Any, passed_on: Any, before: Any, back: Function) -> None:
    """Write into an argument what a function has changed in the renamed argument that it got, so that the judge sees it.

    Parameters
    ----------
    argument : array or list
        The argument of the task on the page.
    passed_on, before : array or list
        What the function got in its place, after the call, and a copy from before the call.
    back : callable
        Takes an array or a list such as ``passed_on`` and returns one such as ``argument``.
    """
    if isinstance(passed_on, list):
        unchanged = len(passed_on) == len(before) and all(map(operator.is_, passed_on, before))
    else:
        unchanged = np.array_equal(passed_on, before, equal_nan=True)
    if not unchanged:
        argument[:] = back(passed_on)
