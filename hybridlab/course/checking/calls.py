"""Calls of a student's function: its result, or an error whose sentence has the line of the student's own code."""

import dis
import inspect
import linecache
import traceback
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from hybridlab.course.results import SHARED, listed, shared_memory
from hybridlab.errors import HybridLabError

ENDED = ("interrupted", "too-slow", "ended", "waits-for-ever")  # codes after which a function is not called again
refusing: ContextVar[bool] = ContextVar(
    "refusing", default=False
)  # whether the case must be refused: the function that runs must raise an error
relayed_from: ContextVar[int | None] = ContextVar("relayed_from", default=None)  # the thread of another process that calls a function here


class Later(Exception):
    """Raised by a judge's function for a caller in another process: it must ask again, because other threads have to ask first."""


class Relayed(HybridLabError):
    """An error of a function that runs in another process. It already has its sentence and its code."""


def call(function: Callable[..., Any], arguments: tuple[Any, ...], signature: str, refused: bool) -> Any:
    """Call the student's function, and return its result. Whatever it raises becomes a sentence with the line that raised it."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as why:
        expected = f"the function is called as {signature}, but yours does not take these arguments"
        raise HybridLabError(f"{expected}: {why}", "signature") from None
    except ValueError:
        pass  # a function written in C has no signature to look at; calling it shows what it takes
    try:
        with warnings.catch_warnings():
            if refused:
                warnings.simplefilter("ignore")  # a warning is no error
            else:  # the whole number that a NaN becomes differs from machine to machine
                warnings.filterwarnings("error", "invalid value encountered in cast", RuntimeWarning)
            refusing.set(refused)
            return listed(function(*arguments))
    except Relayed:
        raise
    except KeyboardInterrupt:
        raise HybridLabError(
            "you have interrupted the function before it returned: does each of its loops come to an end?", "interrupted"
        ) from None
    except (Exception, SystemExit) as error:  # a call of exit() must not end a notebook
        raise HybridLabError(_describe_error(error, function), "raises") from None


def _describe_error(error: BaseException, function: Callable[..., Any]) -> str:
    """Return a sentence about an error of the student's function, with the line of the student's own code that raised it."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    try:
        own = inspect.unwrap(function).__code__.co_filename
    except AttributeError:
        return f"the function raises {what}"
    # the innermost line of the student's own file, not of a library that it calls
    places = [place for place in traceback.extract_tb(error.__traceback__) if place.filename == own]
    if not places:
        return f"the function raises {what}"
    # IPython stores a cell in linecache under the name of its file
    line = (places[-1].line or linecache.getline(own, places[-1].lineno or 0)).strip()
    return f"line {places[-1].lineno} of your cell, `{line}`, raises {what}"


def refuse_shared_memory(returned: Any, arguments: Any) -> None:
    """Raise an error if arrays in a result share memory with the arguments or with each other."""
    if shared := shared_memory(returned, arguments):
        code, arrays = shared
        raise HybridLabError(SHARED[code].format(arrays=f"{arrays}, where result is what the function returns,"), code)


def names_in(function: Callable[..., Any]) -> set[str]:
    """Return the names that a function and its helpers in the same file take from elsewhere: globals, attributes and imports."""
    names: set[str] = set()
    functions = [inspect.unwrap(function)]
    for each in functions:  # the list grows by helpers that are found
        codes = [each.__code__] if inspect.isfunction(each) else []
        for code in codes:  # grows by the functions inside a function, which are constants of its code
            codes += filter(inspect.iscode, code.co_consts)
            for step in dis.get_instructions(code):
                helper = each.__globals__.get(step.argval) if step.opname == "LOAD_GLOBAL" else None
                if inspect.isfunction(helper) and helper.__module__ == each.__module__:
                    functions += [helper] * (helper not in functions)
                elif step.opname in _USES:
                    names.add(step.argval)
    return names


_USES = {"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"}  # bytecode instructions that take a name from elsewhere
