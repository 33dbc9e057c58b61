"""Lab 13's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

import re
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def with_given(change: Callable[[Any], Any], late: bool) -> Callable[[Function], Function]:
    """Return the change of ``late``, or of ``lines``, wherever this argument stands."""
    return lambda split: lambda *given: split(*(change(each) if isinstance(each[0], int) == late else each for each in given))


def with_lines(change: Callable[[str], str]) -> Callable[[Function], Function]:
    return lambda split: lambda *given: [change(line) for line in split(*given)]


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab13.t3": {
        "other-letters": with_lines(lambda line: line.translate({ord("I"): "W", ord("W"): "I"})),
        "reversed-lines": lambda split: lambda *given: split(*given)[::-1],
        "microbatch-first": with_lines(lambda line: re.sub(r"(\d+)(\w)(\d+)", r"\3\2\1", line)),
        "late-from-the-last": with_given(lambda late: late[::-1], late=True),
        "counted-from-1": with_given(lambda late: [each - 1 for each in late], late=True),
        "late-first": lambda split: lambda first, second: split(second, first),
        "operations-apart": with_given(lambda lines: [" ".join(line) for line in lines], late=False),
    }
}
