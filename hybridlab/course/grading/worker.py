"""The program of a worker. It runs a student's cells and functions, and answers each request of the grader with one line of JSON.

The program needs Python's own library, and numpy for values that are arrays. It imports nothing of hybridlab. The student's code runs in
the same process and can change everything in it. So the worker knows no right answers, and the grader does not trust its messages. While
the student's code runs, ``sys.modules`` does not have this program, so that nothing changes its names by accident.

Each request is a line of JSON. There are three kinds: ``start``, ``run`` (a cell) and ``call`` (a function). A student's function can
call functions of the grader. For such a call, the worker sends a request to the grader and reads the reply.
"""

import __future__

import ast
import functools
import inspect
import io
import json
import os
import re
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable
from threading import get_ident  # the names are bound now, because the student's code can change what the modules hold
from time import sleep
from types import CodeType, FunctionType, ModuleType
from typing import Any

if __name__ == "__main__":  # as a program, this file belongs to no package; copies of values.py and results.py are in the same folder
    sys.path.insert(0, os.path.dirname(__file__))  # noqa: PTH120
    from results import is_stub, listed, shared_memory  # type: ignore[import-not-found]
    from values import Json, decoded, encoded  # type: ignore[import-not-found]

    sys.path.pop(0)
else:
    from hybridlab.course.results import is_stub, listed, shared_memory
    from hybridlab.course.values import Json, decoded, encoded

MOST_BYTES = 1_000_000  # the longest line that the grader reads
SENT_AS_TEXT = ("hybridlab.schedule.schedule", "Schedule"), ("hybridlab.schedule.ops", "Op")  # classes; their values are sent as text
FROM_THE_FUTURE = __future__.annotations.compiler_flag
TIMED = re.compile(r"^(\s*)%time(?:it)?\s+(?=[^-\s])")  # "%time f()": the statement after this magic command of IPython runs
# "files = !ls": the variable becomes None
CAPTURED = re.compile(r"^(\s*[\w, ]+=\s*)[!%].*")
# "%matplotlib inline", "!ls", "?print", "print?": the line is ignored
MAGIC = re.compile(r"^(\s*)(?:[%!?].*|[\w.]+\?\??\s*)$")
SECONDS_TO_RETRY = 0.002  # the first pause before the worker calls a function of the grader again, if the function could not answer yet
MOST_SECONDS_TO_RETRY = 0.05  # each pause is longer than the one before, up to this one
RELEASED: deque[int] = deque()  # numbers of handles that the student's code no longer uses


class Handle:
    """A reference to a value of the grader, by its number. The grader stores the value as long as this object exists."""

    def __init__(self, number: int, ask: Callable[..., Any] | None = None) -> None:
        self._number, self._ask = number, ask

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function in the grader, and return its result."""
        if self._ask is None:
            raise TypeError("this is no function")
        return self._ask(self._number, arguments, named)

    def __del__(self) -> None:
        RELEASED.append(self._number)  # Python can call __del__ in any thread, even during a request, so do not send a message here


class Missing:
    """A stand-in for a module or a name that cannot be imported here. Only using the stand-in raises an error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name in _GIVEN and self._name == "hybridlab":
            return _GIVEN[name]
        raise NotThere(f"{self._name}.{name}" if self._name == "hybridlab" else self._name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Raise ``NotThere``."""
        raise NotThere(self._name)


class NotThere(ImportError):
    """The student's code uses a module or a name that cannot be imported here.

    Parameters
    ----------
    name : str
        The module, or the name with its module, such as ``"hybridlab.Costs"``.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not there when work is graded")
        self.missing = name.removeprefix("hybridlab.")


class _Anyone:
    """A stand-in for ``hybridlab.Student``. Its ``check`` hands in an answer; the student's name has no effect."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.check = _GIVEN["check"]

    def __call__(self, key: str) -> None:
        """Do nothing. In a notebook, this call shows the student's own question."""


class _Shell:
    """A stand-in for the shell of IPython, which ``get_ipython()`` returns in a notebook. All its methods do nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **named: None


_GIVEN: dict[str, Any] = {"Student": _Anyone}  # stand-ins for names of hybridlab that a notebook needs in every worker


def _stand_in(statement: ast.stmt, alias: Any) -> Any:
    """Return the stand-in for a name in an import from hybridlab; None if the name needs no stand-in."""
    from_there = isinstance(statement, ast.ImportFrom) and (statement.module or "").partition(".")[0] == "hybridlab"
    return _GIVEN.get(getattr(alias, "name", "")) if from_there else None


def _execute(code: CodeType, names: dict[str, Any]) -> None:
    """Run a statement of the student's code. A statement with ``await`` outside a function runs in an event loop, as in a notebook."""
    if not code.co_flags & inspect.CO_COROUTINE:
        exec(code, names)  # noqa: S102 - running the student's code is the purpose of the worker
        return
    import asyncio  # imported here, because it takes time and few notebooks need it

    asyncio.run(FunctionType(code, names)())


class Worker:
    """The variables of a notebook, and the answers that its cells have handed in.

    Parameters
    ----------
    requests : file
        The file with the grader's requests.
    replies : int
        The number of the open file for the replies.
    """

    def __init__(self, requests: io.BufferedReader, replies: int) -> None:
        self._requests, self._replies = requests, replies
        self._nonce, self._id, self._flags = "", 0, 0
        self._calling = 0  # the request whose function is running; only threads of this function may call functions of the grader
        self._relay = threading.Lock()  # only one thread at a time sends a request and reads the reply
        self._handed: list[tuple[str, Any]] = []
        self._functions: list[Any] = []
        _GIVEN.update(check=self._check, part=self._part)
        # as in a notebook, code below `if __name__ == "__main__"` runs
        self._names: dict[str, Any] = {"__name__": "__main__", **_GIVEN, "display": lambda *values, **named: None, "get_ipython": _Shell}

    def hide(self) -> None:
        """Let ``__main__`` be a module with the variables of the notebook, as in IPython, and remove the worker's own modules."""
        main = ModuleType("__main__")
        main.__dict__.update(self._names, __file__=__file__)
        sys.modules["__main__"], self._names = main, main.__dict__
        for name in ("values", "results"):
            sys.modules.pop(name, None)

    def serve(self) -> None:
        """Answer requests until the grader closes the file of requests."""
        while line := self._requests.readline():
            request = json.loads(line)
            self._id = request["id"]
            self._send(getattr(self, f"do_{request['do']}")(**request["with"]))

    def do_start(self, nonce: str, limits: dict[str, int], packages: list[str], calls: str = "") -> dict[str, Json]:
        """Set the limits of this process, add the folders of packages, and put a filter of system calls on this process.

        The student's code cannot raise the limits again. ``calls`` is the filter in hexadecimal digits.
        """
        self._nonce = nonce
        if limits:
            import resource  # imported here because Windows does not have this module; there a worker has no limits

            for name, most in limits.items():
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
        if calls:
            _filter_calls(bytes.fromhex(calls))
        sys.path.extend(packages)
        return {}

    def do_run(self, source: str, cell: str) -> dict[str, Json]:
        """Run the statements of a cell, one after the other. If a statement uses a module that is not there, go on with the next one."""
        self._handed = []
        error = None
        try:
            for statement in _statements(source, cell):
                try:
                    self._run(statement, cell)
                except NotThere as why:
                    error = error or self._describe_error(why, cell)
        except BaseException as why:  # no error of the student's code may end the worker
            error = self._describe_error(why, cell)
        return {"handed": [[str(key)[:40], encoded(answer, self._encode_other)] for key, answer in self._handed], "error": error}

    def do_call(self, function: int, arguments: list[Json], fresh: bool, cell: str) -> dict[str, Json]:
        """Call a function that was handed in. Report a warning of an invalid cast; the grader decides whether the warning is an error."""
        called = self._functions[function]
        given = [decoded(argument, self._look_up) for argument in arguments]
        try:
            inspect.signature(called).bind(*given)
        except TypeError as why:  # check before the call, because the call itself can raise TypeError, too
            return {"error": {"kind": "signature", "text": str(why)[:300]}}
        except ValueError:
            pass  # a function written in C has no signature
        self._calling = self._id
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("ignore")
                warnings.filterwarnings("always", "invalid value encountered in cast", RuntimeWarning)
                result = listed(called(*given))
        except BaseException as why:
            return {"error": self._describe_error(why, cell)}
        finally:
            with self._relay:  # wait until no thread of the function is waiting for a reply
                self._calling = 0
        # the function has had copies of the grader's arguments; the grader compares them with what it has sent
        after = [encoded(argument, self._encode_other) for argument in given]
        reported = [_describe_warning(each, cell) for each in warned[:1]]
        shared = shared_memory(result, given) if fresh else None
        return {"result": encoded(result, self._encode_other), "arguments": after, "shared": shared and shared[0], "warned": reported}

    def _run(self, statement: ast.stmt, cell: str) -> None:
        """Run one statement. If an import fails, its names become stand-ins."""
        if "hybridlab" in sys.modules:  # `hybridlab.check` must be the stand-in, too
            vars(sys.modules["hybridlab"]).update(_GIVEN)
        # stand-ins replace names even if hybridlab is installed
        if any(_stand_in(statement, alias) for alias in getattr(statement, "names", ())):
            for alias in statement.names:  # type: ignore[attr-defined]
                self._import(statement, alias, cell)  # type: ignore[arg-type]
            return
        try:
            flags = self._flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as in a notebook
            code = compile(ast.Module([statement], []), cell, "exec", flags, dont_inherit=True)
            self._flags |= code.co_flags & FROM_THE_FUTURE  # imports from __future__ apply to all later cells
            _execute(code, self._names)
        except ImportError:
            if not isinstance(statement, (ast.Import, ast.ImportFrom)):
                raise
            for alias in statement.names:
                self._import(statement, alias, cell)

    def _import(self, statement: ast.Import | ast.ImportFrom, alias: ast.alias, cell: str) -> None:
        """Import one name of an import statement. If the import fails, the name becomes a stand-in."""
        if given := _stand_in(statement, alias):
            self._names[alias.asname or alias.name] = given
            return
        if isinstance(statement, ast.Import):
            single: ast.stmt = ast.Import([alias])
            name = alias.asname or alias.name.partition(".")[0]
        else:
            single, name = ast.ImportFrom(statement.module, [alias], statement.level), alias.asname or alias.name
        try:
            exec(compile(ast.fix_missing_locations(ast.Module([single], [])), cell, "exec"), self._names)  # noqa: S102
        except Exception:
            whole = alias.name.partition(".")[0] if isinstance(statement, ast.Import) else f"{statement.module}.{alias.name}"
            if alias.name != "*":
                self._names[name] = Missing(whole)

    def _check(self, key: Any = "", answer: Any = None, **_: Any) -> None:
        """Hand in an answer. In grading, this function replaces ``check``."""
        self._handed.append((key, answer))

    def _part(self, name: str, otherwise: Any = None) -> Any:
        """Return ``otherwise``; without it, return the last function with this name that was handed in. In grading, this replaces ``part``.

        ``otherwise`` comes first, because the student's own function can solve a changed task ('twist'), and the rest of the lab needs
        the function without this change.
        """
        own = (each for each in reversed(self._functions) if getattr(each, "__name__", "") == name and not is_stub(each))
        return next(own, None) if otherwise is None else otherwise

    def _encode_other(self, value: Any) -> Json:
        """Return the JSON of a value that JSON cannot hold: the number of a function, the text of a schedule, or the fields of a plan."""
        if isinstance(value, Handle):
            return {"handle": [value._number, value._ask is not None]}
        kind = type(value)
        if (kind.__module__, kind.__name__) in SENT_AS_TEXT:
            return str(value)
        if kind.__module__.startswith("hybridlab.") and isinstance(value, tuple):
            return encoded(tuple(value))
        if (kind.__module__, kind.__name__) == ("hybridlab.planner.plan", "Plan"):
            return encoded({name: getattr(value, name) for name in kind.__dataclass_fields__})
        if not callable(value):
            return None
        self._functions.append(value)
        return {"function": [len(self._functions) - 1, str(getattr(value, "__name__", ""))[:40], is_stub(value)]}

    def _look_up(self, name: str, content: Json) -> Any:
        """Return the handle of a value of the grader."""
        if name != "handle":
            raise ValueError("a value of an unknown type")
        number, is_function = content
        return Handle(number, functools.partial(self._ask, self._id) if is_function else None)

    def _ask(self, request: int, number: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call a function of the grader, and return its result. Any thread of the student's function may use this method."""
        pause = SECONDS_TO_RETRY
        while "later" in (reply := self._send_call(request, number, arguments, named)):
            sleep(pause)  # the lock is free during the pause, so other threads can send their requests
            pause = min(1.5 * pause, MOST_SECONDS_TO_RETRY)
        if "error" in reply:
            raise Declined(reply["error"])
        for place, changed in reply["changed"]:
            arguments[place][...] = decoded(changed)
        return arguments[reply["same"]] if "same" in reply else decoded(reply["value"], self._look_up)

    def _send_call(self, request: int, number: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Ask the grader to call one of its functions, and return the grader's reply."""
        with self._relay:
            if request != self._calling:
                raise SystemExit  # end this thread: its function has returned, so nobody answers its requests
            sent = [encoded(argument, self._encode_other) for argument in arguments]
            released = [RELEASED.popleft() for _ in range(len(RELEASED))]
            by_name = {name: encoded(argument, self._encode_other) for name, argument in named.items()}
            thread = get_ident()
            self._send({"callback": number, "arguments": sent, "named": by_name, "released": released, "thread": thread})
            reply: dict[str, Any] = json.loads(self._requests.readline())
            return reply

    def _send(self, reply: dict[str, Json]) -> None:
        """Write one line for the grader. If the line is too long or cannot be JSON, write an error instead."""
        try:
            line = json.dumps({"id": self._id, "nonce": self._nonce, **reply}).encode()
        except (ValueError, RecursionError):
            line = b""
        if not 0 < len(line) < MOST_BYTES:
            line = json.dumps({"id": self._id, "nonce": self._nonce, "error": {"kind": "too-large"}}).encode()
        line += b"\n"
        while line:
            line = line[os.write(self._replies, line) :]  # a pipe can accept only some of the bytes

    def _describe_error(self, why: BaseException, cell: str) -> dict[str, Json]:
        """Return the description of an error: its type, its text, and the number of the line in the student's cell."""
        # the innermost line in the cell itself, not in a library that the cell calls
        places = [place.lineno for place in traceback.extract_tb(why.__traceback__) if place.filename == cell]
        line = places[-1] if places else why.lineno if isinstance(why, SyntaxError) else None
        name = why.name if isinstance(why, NameError) else None
        kind = "refused" if isinstance(why, Declined) else "not-there" if isinstance(why, NotThere) else "raises"
        text = str(getattr(why, "msg", None) or why)[:300]
        missing = str(getattr(why, "missing", ""))[:40]
        return {"kind": kind, "type": type(why).__name__[:40], "line": line, "text": text, "name": name, "missing": missing}


def _describe_warning(warned: warnings.WarningMessage, cell: str) -> dict[str, Json]:
    """Return the description of a warning, with the same keys as the description of an error."""
    line = warned.lineno if warned.filename == cell else None
    return {"kind": "raises", "type": warned.category.__name__[:40], "line": line, "text": str(warned.message)[:300], "name": None}


class Declined(Exception):
    """A function of the grader has raised an error for a call from the worker."""


def _statements(source: str, cell: str) -> list[ast.stmt]:
    """Return the statements of a cell. If the cell is not valid Python, first replace the lines that only IPython understands."""
    try:
        return ast.parse(source, cell).body
    except SyntaxError:
        # replace each line by one line, so that the line numbers in errors stay right
        plain = (MAGIC.sub(r"\1pass", TIMED.sub(r"\1", CAPTURED.sub(r"\1None", line))) for line in source.splitlines())
        return ast.parse("\n".join(plain), cell).body


def _filter_calls(program: bytes) -> None:
    """Put a filter of system calls on this process. Nobody can remove the filter again."""
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    if ctypes.CDLL(None, use_errno=True).prctl(22, 2, ctypes.byref(Program(len(program) // 8, program)), 0, 0):
        raise OSError(ctypes.get_errno(), "this system refuses a filter of system calls")


def serve_standard_input() -> None:
    """Answer requests from standard input on standard output. Output of the student's code is discarded."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.dup(1)
    # files 0, 1 and 2 are for the student's code, so requests and replies use copies with other numbers
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    worker = Worker(requests, replies)
    worker.hide()
    worker.serve()


if __name__ == "__main__":
    serve_standard_input()
