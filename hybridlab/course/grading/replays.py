"""Functions that know the results of the public cases and solve nothing: a counter of calls, and a table of arguments.

A student could write both from what the public cases show. Hidden cases must refuse them.
"""

import dis
import inspect
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from copy import deepcopy
from io import StringIO
from typing import Any

import numpy as np

from hybridlab.course.grading.specs import LabSpec
from hybridlab.course.results import listed
from hybridlab.course.tasks import Build

Function = Callable[..., Any]
_LOADS = ("LOAD_NAME", "LOAD_GLOBAL")  # bytecode instructions that look up a name outside the function's local variables


def worked_solution(spec: LabSpec, key: str) -> Function:
    """Return the function that the worked solution of a coding task hands in. It runs the given cells of the lab that it needs.

    >>> from hybridlab.course.grading.labs import reference
    >>> from hybridlab.course.grading.specs import spec_of
    >>> worked_solution(spec_of(reference("lab03")), "lab03.t3")(["0F0 0B0"])
    [1]
    """
    handed: dict[str, Function] = {}
    names: dict[str, Any] = {}
    source = spec.solutions[key]
    with redirect_stdout(StringIO()):
        for cell in spec.imports:
            exec(cell, names)  # noqa: S102 - a cell of the lab itself
        names["check"] = lambda task, answer=None: handed.update({task: answer})
        needed = [cell for name in sorted(_names_of(source) - set(names)) for cell in spec.providers(name, [key])]
        for cell in (*dict.fromkeys(needed), source):
            exec(cell, names)  # noqa: S102
    return handed[key]


def _names_of(source: str) -> set[str]:
    """Return the names that a cell and the functions in it use as global names."""
    codes, names = [compile(source, "a cell", "exec")], set[str]()
    for code in codes:  # the loop adds inner functions to this list
        codes += filter(inspect.iscode, code.co_consts)
        names |= {step.argval for step in dis.get_instructions(code) if step.opname in _LOADS}
    return names


def replays(build: Build, solution: Function) -> Iterator[tuple[str, Callable[[], Function]]]:
    """Yield two names, each with a function that makes a new replay of the results that a solution has for the public cases.

    A counter returns the results in the order of the calls, again and again. A table returns the result for the same arguments, and
    raises a KeyError for other ones. Functions among the arguments are all alike to it.
    """
    calls: list[tuple[Any, Callable[[], Any]]] = []

    def recorded(*arguments: Any) -> Any:
        key = _key(arguments)
        try:
            result = listed(solution(*arguments))
        except Exception as why:
            calls.append((key, _raising(why)))
            raise
        calls.append((key, _returning(deepcopy(result))))
        return result

    for _ in build.codes(recorded):
        pass  # a right solution has no codes; a wrong one fails another gate
    table = dict(calls)

    def counter() -> Function:
        numbers = iter(range(1 << 30))
        return lambda *arguments: calls[next(numbers) % len(calls)][1]()

    yield "counter", counter
    yield "table", lambda: lambda *arguments: table[_key(arguments)]()


def _returning(result: Any) -> Callable[[], Any]:
    return lambda: deepcopy(result)


def _raising(error: Exception) -> Callable[[], Any]:
    def raises() -> None:
        raise error

    return raises


def _key(value: Any) -> Any:
    """Return a value that is equal for equal arguments, and can be the key of a dict."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    if isinstance(value, dict):
        return tuple((_key(name), _key(each)) for name, each in value.items())
    return "a function" if callable(value) else repr(value)
