"""Find out whether a student's function uses the library. Most functions are graded in a process that has no library."""

import dis
import functools
import inspect
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice, pairwise
from types import CellType, CodeType, ModuleType
from typing import Any

from hybridlab.course.checking.checking import Feedback, wrong
from hybridlab.course.parts import Part

LIBRARY = "hybridlab"
IN_EVERY_WORKER = {"check", "part", "Student"}  # names of the library for which the grader has stand-ins
MOST_VALUES = 1_000  # the most values of a list or dict that are searched
# values in which other values are searched, besides the functions, classes and objects of the notebook itself
WRAPPERS = (list, tuple, set, frozenset, dict, functools.partial, classmethod, staticmethod, property)


def without_library(feedback: Feedback, function: Any) -> Feedback:
    """Return the feedback on a function that may not use the library. With the library, no function passes.

    A wrong result comes first in the feedback, because it is wrong with and without the library.

    Parameters
    ----------
    feedback : Feedback
        The feedback on the results of the function.
    function : callable
        The student's function. Nothing is found in a function of another process, because no library is there.
    """
    names = library_in(function)
    if not names:
        return feedback
    through = f", which `{names[0]}` uses," if len(names) > 1 else ""
    sentence = f"this task is graded without the library, so `{names[-1]}`{through} is not there: write it with Python and numpy alone"
    if not feedback.passed:
        return replace(feedback, messages=(*feedback.messages, sentence))
    return wrong("not-your-own", f"your results are right, but {sentence}")


def library_in(function: Any) -> tuple[str, ...]:
    """Return the name of something of the library that a function uses, after the names of the helpers through which it uses it.

    Helpers are functions, classes and objects of the same notebook. The result is empty if the function does not use the library.

    >>> from hybridlab import simulate
    >>> library_in(simulate), library_in(max)
    (('simulate',), ())
    """
    function = function.function if isinstance(function, Part) else function
    if inspect.isfunction(function) and _is_of_library(function):
        function = inspect.unwrap(function)  # a function whose twist has been undone is a function of the library around the student's
    if inspect.isroutine(function) and _is_of_library(function):
        return (function.__name__,)
    if not inspect.isroutine(function) and not isinstance(function, type) and _is_of_library(function):
        return ()  # the grader's reference to a function in another process
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    notebook = _module_of(inner)
    waiting: deque[tuple[tuple[str, ...], Any]] = deque([((), function)])
    seen: list[Any] = []
    while waiting:
        path, value = waiting.popleft()  # first in, first out, so that the shortest path is found
        if any(value is each for each in seen):
            continue
        seen.append(value)
        for name, used in _used_by(value):
            further = path if not name or name.startswith("__") else (*path, name)
            if _is_of_library(used) and name not in IN_EVERY_WORKER:
                return further if further != path else (*path, getattr(used, "__name__", type(used).__name__))
            # modules and classes of other packages are not searched, because they have nothing of the library
            if isinstance(used, WRAPPERS) or "__wrapped__" in _attributes(used) or _module_of(used) == notebook:
                waiting.append((further, used))
    return ()


def _used_by(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each value that a value uses, with its name; the name is empty for a part of the value itself."""
    if inspect.isfunction(value):
        code = value.__code__
        closure = zip(code.co_freevars, value.__closure__ or (), strict=True)
        yield from ((name, cell.cell_contents) for name, cell in closure if cell != CellType())  # an empty cell has no contents
        yield from _used_in(code, value.__globals__)
        defaults = value.__defaults__ or ()
        yield from zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)
        yield from (value.__kwdefaults__ or {}).items()
    elif inspect.ismethod(value):
        yield from (("", value.__func__), ("", value.__self__))
    elif isinstance(value, functools.partial):
        yield from (("", each) for each in (value.func, *value.args, *value.keywords.values()))
    elif isinstance(value, (classmethod, staticmethod)):
        yield "", value.__func__
    elif isinstance(value, property):
        yield "", value.fget
    elif isinstance(value, (list, tuple, set, frozenset, dict)):
        yield from (("", each) for each in islice(value.values() if isinstance(value, dict) else value, MOST_VALUES))
    else:
        parents = value.__bases__ if isinstance(value, type) else (type(value),)
        yield from ((each.__name__, each) for each in parents)
    yield from _attributes(value).items()


def _used_in(code: CodeType, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the global names that bytecode reads or imports, with their values. The bytecode of inner functions counts, too."""
    imported = ""
    steps = list(dis.get_instructions(code))
    for step, following in pairwise(steps):
        if step.opname == "LOAD_GLOBAL" and step.argval in names:
            value = names[step.argval]
            # the grader has a student's saved function only if the same notebook hands it in
            own = isinstance(value, Part) and inspect.isfunction(names.get(value.name))
            yield step.argval, names[value.name] if own else value
        elif step.opname == "IMPORT_NAME":
            imported = step.argval
            if following.opname != "IMPORT_FROM":
                yield imported, ModuleType(imported)
        elif step.opname == "IMPORT_FROM":
            yield step.argval, ModuleType(imported)  # what is imported does not matter, but from where
    for inner in filter(inspect.iscode, code.co_consts):
        yield from _used_in(inner, names)


def _is_of_library(value: Any) -> bool:
    return _module_of(value).partition(".")[0] == LIBRARY


def _module_of(value: Any) -> str:
    """Return the name of a module, or of the module that defines a function, a class, or the class of another value."""
    if isinstance(value, ModuleType):
        return value.__name__
    if inspect.isfunction(value):
        return str(value.__globals__.get("__name__", ""))  # functools.wraps changes the attribute __module__, but not this name
    owner = value if inspect.isroutine(value) or isinstance(value, type) else type(value)
    return str(_attributes(value).get("__module__") or getattr(owner, "__module__", ""))


def _attributes(value: Any) -> Mapping[str, Any]:
    """Return the attributes of a value without running code of its class."""
    try:
        found: Mapping[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return {} if isinstance(value, ModuleType) else found
