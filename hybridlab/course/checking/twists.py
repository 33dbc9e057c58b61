"""Twists: small changes of a coding task ('build'). Students get different twists, so that a copied solution fails.

"The task without a twist" is the task as the lab's notebook states it. A twist consists of maps. They change the arguments and the result
of the task without a twist into those of the student's task, and back.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from hybridlab.checks import short_repr
from hybridlab.course.checking.maps import Function, FunctionMap, Map

LONGEST_VALUE = 280  # the most characters of a value in an example; a longer value is shortened

IN_WORDS_OF_THE_TEXT = "the sentences above describe the case and your result for the task of the lab, without your own change"


@dataclass(frozen=True)
class Example:
    """A call and its result in the task without a twist. ``Twist.example`` returns the same example under a twist.

    Parameters
    ----------
    arguments : tuple
        The arguments of the call.
    result : Any
        What the call returns.
    of : int, optional
        None if the example calls the student's function. If it calls a function that is an argument of the student's function, the index
        of this argument.
    name : str
        The name of the called function, if ``of`` is given.
    """

    arguments: tuple[Any, ...]
    result: Any
    of: int | None = None
    name: str = ""


@dataclass(frozen=True)
class Twist:
    """A change of a coding task, as maps of its arguments and its result. The examples, cases and judging follow from these maps.

    Parameters
    ----------
    name : str
        A short name, such as ``"reversed-stages"``. The twists of one build have different names.
    sentence : str
        What is different, as the end of a sentence that begins with "in your task": ``"line d has the operations of stage K-1-d"``.
    given : mapping of int to Map
        The maps of arguments, by the index of the argument in the signature without a twist.
    result : Map, optional
        The map of the function's result.
    order : sequence of int
        For each argument of the student's function, the index of this argument in the signature without a twist. Empty if the order is
        the same.
    about : str
        The subject of the change, such as ``"order of the lines"``. Two twists with the same subject are not combined. The default is
        the name of the twist.
    drawn : bool
        Whether pictures show devices and operations with the numbers that they have under this twist. True for a twist that changes which
        device runs which operation; False for a twist that changes only the form of arguments or results.
    cases : callable, optional
        Takes a :class:`~hybridlab.course.tasks.Case` and returns a case that replaces it. Used if the cases without a twist cannot show
        whether a function makes the change.
    judge, mistakes, examples : callable, sequence of KnownMistake, sequence of Example, optional
        The twist's own judge, known mistakes and examples, for a change that no map can express.
    rows : tuple of Twist
        The two twists of a combination; empty for a single twist.
    """

    name: str
    sentence: str
    given: Mapping[int, Map] = field(default_factory=dict)
    result: Map | None = None
    order: Sequence[int] = ()
    about: str = ""
    drawn: bool = False
    cases: Callable[[Any], Any] | None = None
    judge: Callable[..., Any] | None = None
    mistakes: Sequence[Any] | None = None
    examples: Sequence[Example] = ()
    rows: "tuple[Twist, ...]" = ()

    @property
    def reminder(self) -> str:
        """The sentence that reminds the student of the change."""
        return f"in your task, {self.sentence}"

    def explanation(self, own_names: bool) -> str:
        """Return a sentence for a student who has not passed: a reminder of the twist, and a remark on feedback without it.

        Feedback describes cases and results of the task without a twist, unless the twist has its own judge.

        Parameters
        ----------
        own_names : bool
            Whether the feedback has the student's own numbers of devices and operations; see ``drawn``.
        """
        unseen = [row.sentence for row in self.rows or (self,) if not (row.drawn and own_names)]
        if self.judge or not unseen:
            return self.reminder
        if len(unseen) < len(self.rows):
            return f"the sentences above describe the case and your result without this change: {unseen[0]}; {self.reminder}"
        return f"{IN_WORDS_OF_THE_TEXT}; {self.reminder}"

    @property
    def subject(self) -> str:
        """The subject of the change. Two twists with the same subject are not combined."""
        return self.about or self.name

    @property
    def map(self) -> FunctionMap:
        """The map from a function for the task without a twist to a function for the student's task."""
        return FunctionMap(self.given, self.result, self.order)

    def undo(self, function: Function) -> Function:
        """Return a function for the task without a twist, from a function for the task with this twist.

        >>> from hybridlab.course.checking.maps import scaled
        >>> Twist("sum", "the result is a sum over 4 ranks", result=scaled(4)).undo(lambda value: 4 * value)(3)
        3.0
        """
        without_twist: Function = self.map.undo(function, ())
        return without_twist

    def lines(self, lines: list[list[str]], case: tuple[Any, ...]) -> Any:
        """Return lines of operations as they are under this twist, if it is ``drawn``. Return the same lines if it is not.

        Parameters
        ----------
        lines : list of list of str
            For each device, its operations in the task without a twist.
        case : tuple
            The arguments of the call.
        """
        for row in self.rows or (self,):
            if row.drawn:  # the map of the orders: of argument 0 if the function takes orders, else of the result
                inner = row.given.get(0) or row.result
                lines = lines if inner is None else inner.apply(lines, case)
        return lines

    def example(self, name: str, example: Example) -> str:
        """Return the text of an example under this twist, for a student's function with this name.

        >>> Twist("swapped", "the arguments are exchanged", order=(1, 0)).example("power", Example((2, 3), 8))
        'power(3, 2) returns 8'
        """
        inner = self.map if example.of is None else self.given.get(example.of, FunctionMap())
        if not isinstance(inner, FunctionMap):
            inner = FunctionMap()
        own = ", ".join(_written(value) for value in inner.arguments(example.arguments))
        result = example.result if inner.result is None else inner.result.apply(example.result, example.arguments)
        return f"{example.name or name}({own}) returns {_written(result)}"


def combined(first: Twist, second: Twist) -> Twist:
    """Return the twist that makes both changes: the change of ``first``, then the change of ``second``.

    >>> from hybridlab.course.checking.maps import REVERSED, scaled
    >>> both = combined(Twist("sums", "there are sums", result=scaled(2)), Twist("last-first", "the last is first", result=REVERSED))
    >>> both.name, both.sentence, both.undo(lambda: [6, 4])()
    ('sums-and-last-first', 'there are sums; the last is first', [2.0, 3.0])
    """
    both = first.map.then(second.map)
    return Twist(
        f"{first.name}-and-{second.name}",
        f"{first.sentence}; {second.sentence}",
        both.given,
        both.result,
        both.order,
        cases=_both_cases(first.cases, second.cases),
        rows=(first, second),
    )


def _both_cases(first: Function | None, second: Function | None) -> Function | None:
    if first is None or second is None:
        return first or second
    return lambda case: second(first(case))


def variants(twists: Iterable[Twist]) -> tuple[Twist, ...]:
    """Return the twists of a build, then all combinations of two twists with different subjects.

    >>> rows = [Twist("a", "a"), Twist("b", "b", about="lines"), Twist("c", "c", about="lines")]
    >>> [twist.name for twist in variants(rows)]
    ['a', 'b', 'c', 'a-and-b', 'a-and-c']
    """
    rows = tuple(twists)
    return (*rows, *(combined(*pair) for pair in combinations(rows, 2) if _combine(*pair)))


def _combine(first: Twist, second: Twist) -> bool:
    """Return whether two twists can be combined. A twist with its own judge cannot, because this judge knows no other change."""
    return first.subject != second.subject and not (first.judge or second.judge) and not (first.order and second.order)


def _written(value: Any) -> str:
    """Return a value as Python code on one line. A long value is shortened."""
    if callable(value):
        return str(value.__name__)
    text = f"np.array({value.tolist()})" if isinstance(value, np.ndarray) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_VALUE else short_repr(value)
