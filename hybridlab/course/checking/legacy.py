"""LEGACY."""

import operator
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.results import MOST_YIELDED
from hybridlab.errors import HybridLabError


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
            function = twist.undo(function)
        return function

    changes = {field: value for twist in twists for field, value in twist.changes.items()}
    return Twist(
        "-and-".join(twist.name for twist in twists), "; ".join(twist.sentence for twist in twists), standard=standard, changes=changes
    )


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
