"""Twists: small changes of a build, one for each student, with which a copied solution is wrong."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from hybridlab.checks import short_repr
from hybridlab.course.checking.maps import Function, FunctionMap, Map

LONGEST_VALUE = 280  # characters of a value in an example

IN_WORDS_OF_THE_TEXT = "the sentences above describe the case and your result in the words of the text, without your own change"


@dataclass(frozen=True)
class Example:
    """A call with its result, as they stand in the text. Twists make another example of it.

    Parameters
    ----------
    arguments : tuple
        The arguments of the call.
    result : Any
        What the call returns.
    of : int, optional
        The place of an argument that is itself a function, and which is called here; None for the student's function.
    name : str
        The name of that function.
    """

    arguments: tuple[Any, ...]
    result: Any
    of: int | None = None
    name: str = ""


@dataclass(frozen=True)
class Twist:
    """A change of a build: a row of maps. Everything else about the twisted task follows from them.

    Parameters
    ----------
    name : str
        A short name, such as ``"reversed-stages"``. Within a build each twist has its own.
    sentence : str
        What is different, as the end of a sentence that begins with "in your task": ``"line d has the operations of stage K-1-d"``.
    given : mapping of int to Map
        The maps of arguments, by their place in the text.
    result : Map, optional
        The map of what the function returns.
    order : sequence of int
        For each argument that the student's function takes, its place in the text; empty for the same order.
    about : str
        What the twist changes, such as ``"order of the lines"``. Two twists about the same are not combined. By default, the name.
    drawn : bool
        Whether pictures show lines and operations as this twist has them, because it changes who runs what, and not only how it is written.
    cases : callable, optional
        Takes a :class:`~hybridlab.course.tasks.Case` and returns the one that takes its place, where the cases of the text are too narrow.
    judge, mistakes, examples : callable, sequence of KnownMistake, sequence of Example, optional
        A judge, known mistakes and examples of its own, for a change that no map can express.
    rows : tuple of Twist
        The twists that this one combines; empty for a twist that stands alone.
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
        """The change in a sentence."""
        return f"in your task, {self.sentence}"

    def explanation(self, own_names: bool) -> str:
        """Return the sentence for a student who did not pass: the judge knows the task in the text, unless the twist has its own judge.

        Parameters
        ----------
        own_names : bool
            Whether the sentences have the student's own devices and operations; see ``drawn``.
        """
        unseen = [row.sentence for row in self.rows or (self,) if not (row.drawn and own_names)]
        if self.judge or not unseen:
            return self.reminder
        if len(unseen) < len(self.rows):
            return f"the sentences above describe the case and your result without this change: {unseen[0]}; {self.reminder}"
        return f"{IN_WORDS_OF_THE_TEXT}; {self.reminder}"

    @property
    def subject(self) -> str:
        """What the twist changes: two twists about the same are not combined."""
        return self.about or self.name

    @property
    def map(self) -> FunctionMap:
        """The map of the student's function."""
        return FunctionMap(self.given, self.result, self.order)

    def undo(self, function: Function) -> Function:
        """Return a function that does the task in the text, from one that does it with this twist.

        >>> from hybridlab.course.checking.maps import scaled
        >>> Twist("sum", "the result is a sum over 4 ranks", result=scaled(4)).undo(lambda value: 4 * value)(3)
        3.0
        """
        without_twist: Function = self.map.undo(function, ())
        return without_twist

    def lines(self, lines: list[list[str]], case: tuple[Any, ...]) -> Any:
        """Return lines of operations, as they stand in the text, as this twist has them; see ``drawn``.

        Parameters
        ----------
        lines : list of list of str
            The operations of each line.
        case : tuple
            The arguments of the call.
        """
        for row in self.rows or (self,):
            if row.drawn:  # of a build that takes orders, the map of the orders
                inner = row.given.get(0) or row.result
                lines = lines if inner is None else inner.apply(lines, case)
        return lines

    def example(self, name: str, example: Example) -> str:
        """Return the sentence of an example under this twist, for a function with this name.

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
    """Return the twist that makes both changes, the first one first.

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
    """Return the twists of a build, and after them all combinations of two that are about different things.

    >>> rows = [Twist("a", "a"), Twist("b", "b", about="lines"), Twist("c", "c", about="lines")]
    >>> [twist.name for twist in variants(rows)]
    ['a', 'b', 'c', 'a-and-b', 'a-and-c']
    """
    rows = tuple(twists)
    return (*rows, *(combined(*pair) for pair in combinations(rows, 2) if _combine(*pair)))


def _combine(first: Twist, second: Twist) -> bool:
    """Whether two twists can be combined. A judge of its own knows its own change alone."""
    return first.subject != second.subject and not (first.judge or second.judge) and not (first.order and second.order)


def _written(value: Any) -> str:
    """Return a value as it stands in code, on one line."""
    if callable(value):
        return str(value.__name__)
    text = f"np.array({value.tolist()})" if isinstance(value, np.ndarray) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_VALUE else short_repr(value)
