"""Call a student's function and return its result. If the call fails, raise an error that names the failing line of the student's code."""

import inspect
import linecache
import traceback
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from hybridlab.course.results import SHARED, listed, shared_memory
from hybridlab.errors import HybridLabError

ENDED = ("interrupted", "too-slow", "ended", "waits-for-ever")  # error codes after which a function is not called again
# True while the student's function runs on bad arguments, so that it must raise an error
refusing: ContextVar[bool] = ContextVar("refusing", default=False)


class Caller(NamedTuple):
    """Who calls a function of this process from the student's process.

    Parameters
    ----------
    thread : int
        The number of the thread that calls. The student's process tells it.
    asleep : callable
        Returns whether no thread of the student's process works or could work at once. This is seen from outside.
    threads : callable
        Returns the number of threads that the student's process has. This is seen from outside, too.
    """

    thread: int
    asleep: Callable[[], bool]
    threads: Callable[[], int]


# None if no other process calls
relayed_from: ContextVar[Caller | None] = ContextVar("relayed_from", default=None)


class Later(Exception):
    """Raised if a call from another process comes too early, before calls of other threads. The other process must repeat it later."""


class Relayed(HybridLabError):
    """An error that is passed on to the student unchanged, because it already has the right sentence and code."""


def busy_threads(process: int | str) -> int:
    """Return the number of threads of a process that work, or could work at once. Return 0 where the system does not tell (not Linux).

    Parameters
    ----------
    process : int or str
        The number of the process, or ``"self"`` for this process, in which the calling thread is one of them.
    """
    busy = 0
    for thread in Path("/proc", str(process), "task").glob("*/stat"):
        try:
            state = thread.read_text().rpartition(")")[2].split()[0]
        except OSError:  # the thread has ended since its folder was listed: something has worked
            state = "R"
        busy += state in "RD"  # running or able to run; waiting for a disk
    return busy


def call(function: Callable[..., Any], arguments: tuple[Any, ...], signature: str, refused: bool) -> Any:
    """Call the student's function and return its result.

    Parameters
    ----------
    function : callable
        The student's function.
    arguments : tuple
        The arguments of the call.
    signature : str
        The name and the arguments of the wanted function, for the error about other arguments.
    refused : bool
        Whether the arguments are bad, so that the function must raise an error.

    Raises
    ------
    HybridLabError
        The function takes other arguments (code ``signature``), raises an error (``raises``) or has been interrupted (``interrupted``).
    """
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as why:
        expected = f"the function is called as {signature}, but yours does not take these arguments"
        raise HybridLabError(f"{expected}: {why}", "signature") from None
    except Exception:  # noqa: S110 - no signature, as of a function written in C; the call below shows whether it takes the arguments
        pass
    try:
        with warnings.catch_warnings():
            if refused:
                warnings.simplefilter("ignore")  # a warning is not the error that the function must raise
            else:  # a NaN that is cast to a whole number gives different numbers on different machines
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
    """Return a sentence about an error of the student's function. It names the line of the student's code that raised the error."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    try:
        own = inspect.unwrap(function).__code__.co_filename
    except AttributeError:
        return f"the function raises {what}"
    # The last of these places is the line of the student's own file in which the error occurs. Places in libraries are left out.
    places = [place for place in traceback.extract_tb(error.__traceback__) if place.filename == own]
    if not places:
        return f"the function raises {what}"
    # For a notebook cell, IPython stores the source in linecache under the file name that it gives to the cell.
    line = (places[-1].line or linecache.getline(own, places[-1].lineno or 0)).strip()
    return f"line {places[-1].lineno} of your cell, `{line}`, raises {what}"


def refuse_shared_memory(returned: Any, arguments: Any) -> None:
    """Raise an error if arrays in a result share memory with the arguments or with each other."""
    if shared := shared_memory(returned, arguments):
        code, arrays = shared
        raise HybridLabError(SHARED[code].format(arrays=f"{arrays}, where result is what the function returns,"), code)
