"""Twists: small changes to a build, one for each student, with which a copied solution is wrong."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from hybridlab.course.tasks.calls import MOST_YIELDED
from hybridlab.errors import HybridLabError

Function = Callable[..., Any]


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
    def told(self) -> str:
        """The sentence for a student who did not pass: the judge speaks of the task on the page."""
        return f"these sentences speak of the task as it stands on the page; in your task, {self.sentence}"


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
