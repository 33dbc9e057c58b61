"""Twists: small changes to a build, one for each student, with which a copied solution is wrong."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

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
