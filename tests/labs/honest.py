"""Honest solutions of builds with a twist: the published solution, changed by what the lab's ``honest.py`` says about the twist."""

from collections.abc import Callable
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from solutions import solutions_of

from hybridlab.course.tasks import Build, Twist

Function = Callable[..., Any]
Change = Callable[[Function], Function]  # from a function that does the task in the text to one that does it with a twist


@cache
def changes() -> dict[tuple[str, str], Change]:
    """Return what the files ``honest.py`` of the labs say, by the key of the task and the name of the twist."""
    labs = sorted(path.parent.name for path in Path(__file__).parent.glob("lab*/honest.py"))
    listed = [getattr(import_module(f"{lab}.honest"), "TWISTED", {}) for lab in labs]
    return {(key, name): change for of_lab in listed for key, of_build in of_lab.items() for name, change in of_build.items()}


def honest(key: str, twist: Twist, last_change_first: bool = False) -> Function:
    """Return the published solution with a twist. Of two changes, the order must not matter."""
    names = [each.name for each in twist.rows or (twist,)]
    return reduce(
        lambda function, name: changes()[key, name](function), names[:: -1 if last_change_first else 1], solutions_of(key[:5])[key]
    )


def spread(build: Build, count: int = 6) -> list[int]:
    """Return the places of a few public cases from the smallest to the largest, without the last ones, which take longest."""
    size = max(len(build.public_cases) * 3 // 4, 1)
    return sorted({size * place // count for place in range(count)} | {min(1, size - 1)})
