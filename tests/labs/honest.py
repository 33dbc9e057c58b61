"""Honest solutions of builds with a twist: the published solution, changed by the function for this twist in the lab's ``honest.py``."""

import re
from collections.abc import Callable
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from solutions import solutions_of

from hybridlab.course.tasks import Build, Twist

LABS = Path(__file__).parent
Function = Callable[..., Any]
Change = Callable[[Function], Function]  # from a function that does the task in the text to one that does it with a twist


@cache
def changes() -> dict[tuple[str, str], Change]:
    """Return the changes in all files ``honest.py`` of the labs, by the key of the task and the name of the twist."""
    labs = sorted(path.parent.name for path in LABS.glob("lab*/honest.py"))
    listed = [import_module(f"{lab}.honest").TWISTED for lab in labs]
    return {(key, name): change for of_lab in listed for key, of_build in of_lab.items() for name, change in of_build.items()}


def honest(key: str, twist: Twist, last_change_first: bool = False) -> Function:
    """Return the published solution with a twist. Where a twist is two changes, their order must not matter."""
    names = [each.name for each in twist.rows or (twist,)]
    missing = [name for name in names if (key, name) not in changes()]
    assert not missing, f"write the twist {missing[0]!r} of {key} once more in tests/labs/{key[:5]}/honest.py"
    if last_change_first:
        names.reverse()
    return reduce(lambda function, name: changes()[key, name](function), names, solutions_of(key[:5])[key])


def spread(build: Build, count: int = 6) -> list[int]:
    """Return the places of a few public cases, from small to large; the largest take too long."""
    size = max(len(build.public_cases) * 3 // 4, 1)
    return sorted({size * place // count for place in range(count)} | {min(1, size - 1)})


def honest_cell(key: str, twist: Twist, name: str, published: str) -> str:
    """Return the source of a cell that hands in an honest solution with a twist.

    Parameters
    ----------
    key : str
        The task.
    twist : Twist
        The twist.
    name : str
        The name of the function.
    published : str
        The cell that has the published solution. It defines ``solution``.
    """
    written = (LABS / key[:5] / "honest.py").read_text(encoding="utf-8")
    definitions = re.sub(r"^check\(.*$", "", published, flags=re.MULTILINE)
    return f"{written}\n\n{definitions}\n{name} = {own_call(key, twist)}\ncheck({key!r}, {name})\n"


def own_call(key: str, twist: Twist, changes: str = "TWISTED") -> str:
    """Return the source of a call that changes ``solution`` into an honest solution with a twist.

    >>> from hybridlab.course.tasks import Twist
    >>> own_call("lab15.t3", Twist("sums", "times are sums"))
    "TWISTED['lab15.t3']['sums'](solution)"
    """
    return reduce(lambda inner, each: f"{changes}[{key!r}][{each.name!r}]({inner})", twist.rows or (twist,), "solution")
