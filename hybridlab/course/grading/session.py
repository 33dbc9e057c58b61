"""The grader's end of the conversation with a worker: requests with a deadline, and functions that live in the worker."""

import builtins
import contextlib
import itertools
import json
import os
import queue
import secrets
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridlab.course.checking.calls import Later, Relayed, refusing, relayed_from
from hybridlab.course.grading.sandbox import Limits
from hybridlab.course.grading.worker import MOST_BYTES
from hybridlab.course.results import SHARED
from hybridlab.course.values import Json, Opaque, decoded, encoded
from hybridlab.errors import HybridLabError

CHUNK = 65536  # bytes that are read at once
MOST_LINES = 10_000  # of a cell
SECONDS_TO_END = 30.0  # for what a worker has started, after the worker was stopped
MOST_WAITING = 2  # lines in the queue; a worker that sends one without a request is ended, so more are never read
BUILTIN_ERRORS = {name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}


class Ended(HybridLabError):
    """The worker has ended: it was late, it broke off, or it sent what nobody had asked for. Its functions and values are lost."""


class Budget:
    """The seconds that a notebook may still use. It changes, because all workers of a notebook share it."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds


class Session:
    """A worker, and the conversation with it.

    Parameters
    ----------
    start : callable
        Starts the process of the worker.
    limits : Limits
        What it may use.
    inside : mapping
        The limits that the worker sets on itself.
    packages : list of str
        Where it looks for packages.
    budget : Budget
        The seconds of the notebook. All workers of a notebook share it.
    calls : bytes
        A filter of system calls that the worker puts on itself.
    echo : bool
        Whether sentences repeat the texts of the student's errors. When work is graded they do not: a text can give hidden cases away.
    """

    def __init__(
        self,
        start: Callable[[], Any],
        limits: Limits,
        *,
        inside: dict[str, int],
        packages: list[str],
        budget: Budget,
        calls: bytes = b"",
        echo: bool = False,
    ) -> None:
        self._limits, self._budget, self._echo = limits, budget, echo
        self._nonce, self._id = secrets.token_hex(16), 0  # each reply repeats both; other lines in the pipe are no replies
        self._held: dict[int, Any] = {}  # values of this process that the worker knows by a number
        self._numbers = itertools.count()
        self._refused_with = ""  # the last error that a function of this process has raised for the worker
        self.alive = True
        self.busy = False  # whether it has been asked, and has not replied
        self._process = start()
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        begin = {"nonce": self._nonce, "limits": inside, "packages": packages, "calls": calls.hex()}
        self._ask("start", begin, limits.seconds_a_notebook)

    def run(self, source: str, cell: str) -> tuple[list[tuple[str, Any]], dict[str, Any] | None]:
        """Run a cell. Return the answers that it has handed in, as pairs with the keys of their tasks, and a description of its error."""
        reply = self._ask_in_time("run", {"source": source, "cell": cell})
        handed, error = reply.get("handed", []), reply.get("error")
        try:
            pairs = [(str(key), self._decode(answer)) for key, answer in handed]
        except (TypeError, ValueError, RecursionError):
            raise self._end("ended", "what it answered cannot be read") from None
        return pairs, error if isinstance(error, dict) else None

    def call(
        self, function: int, arguments: tuple[Any, ...], *, fresh: bool, cell: str, provide: Callable[[str], bool] = lambda name: False
    ) -> Any:
        """Return what a function of the worker returns.

        ``provide`` takes a name that the function misses, and returns whether it exists now.

        Raises
        ------
        Relayed
            The function raised an error, changed its arguments or returned what shares their memory.
        """
        sent = [encoded(argument, self._keep) for argument in arguments]
        asked = {
            "function": function,
            "arguments": sent,
            "fresh": fresh,
            "cell": cell,
        }  # it does not say whether the case must be refused: that would give the answer away
        try:
            reply = self._ask_in_time("call", asked)
        except Ended as why:
            raise Relayed(str(why), "too-slow" if why.code == "too-slow" else "ended") from None
        finally:
            self._held.clear()
        error = reply.get("error")
        if isinstance(error, dict) and error.get("name") and provide(str(error["name"])):
            return self.call(function, arguments, fresh=fresh, cell=cell, provide=provide)
        # a worker reports this warning in every call; here it is an error, unless the case must be refused
        if not error and not refusing.get() and isinstance(reply.get("warned"), list):
            error = next(iter(reply["warned"]), None)  # the whole number that a NaN becomes differs from machine to machine
        if error:
            raise _relayed_error(*self.describe_error(error, cell), error)
        if reply.get("changed"):
            raise Relayed("the function changes its argument; work on a copy", "changes-its-argument")
        try:
            result = self._decode(reply["result"])
        except (KeyError, TypeError, ValueError, RecursionError):
            raise Relayed(str(self._end("ended", "what it answered cannot be read")), "ended") from None
        if sentence := SHARED.get(str(reply.get("shared"))):  # without names of arrays, which the worker could choose
            raise Relayed(sentence.format(arrays="two arrays of the result"), reply["shared"])
        return result

    def describe_error(self, error: Any, cell: str) -> tuple[str, str]:
        """Return a sentence and a code for an error of the student's code, as the worker describes it."""
        error = error if isinstance(error, dict) else {}
        text = str(error.get("text", ""))[:300] if self._echo else ""
        if error.get("kind") == "signature":
            return "the function does not take these arguments" + (
                f": {text}" if text else "; see how it is called in the task"
            ), "signature"
        if error.get("kind") == "too-large":
            return f"the result is too large: at most {MOST_BYTES:,} bytes are read", "too-large"
        number = error.get("line")  # a large number could smuggle arguments of hidden cases out
        line = f"line {number} of {cell} raises" if type(number) is int and 0 < number < MOST_LINES else "the function raises"
        if error.get("kind") == "refused" and self._refused_with:
            return f"{line} an error: {self._refused_with}", "raises"
        kind = str(error.get("type", ""))  # the name of a class of the student could smuggle them out, too
        named = kind if self._echo or kind in BUILTIN_ERRORS else "an error of its own kind"
        return f"{line} {named}" + (f": {text}" if text else ""), "raises"

    def close(self) -> None:
        """End the worker and wait until nothing more comes from it."""
        self.alive = False
        self._kill()
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # ends the worker if bubblewrap was killed before it could end its worker
        self._process.wait()
        self._reader.join(SECONDS_TO_END)
        if self._reader.is_alive():
            why = f"a worker was stopped, but a process that it started still runs after {SECONDS_TO_END:g} s"
            raise HybridLabError(f"{why}: end it, then run the same command again", "still-runs")
        with contextlib.suppress(OSError):
            self._process.stdout.close()

    def _kill(self) -> None:
        """Kill the worker and all that it has started in its group. Windows has no groups."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL) if hasattr(os, "killpg") else self._process.kill()

    def _ask_in_time(self, do: str, request: dict[str, Json]) -> dict[str, Any]:
        """Send a request within the seconds that a cell and the notebook have left, and return the reply."""
        if self._budget.left <= 0:
            raise self._end("too-slow", f"the notebook has used its {self._limits.seconds_a_notebook:g} s")
        begun = time.monotonic()
        try:
            return self._ask(do, request, min(self._limits.seconds_a_cell, self._budget.left))
        finally:
            self._budget.left -= time.monotonic() - begun

    def _ask(self, do: str, request: dict[str, Json], seconds: float) -> dict[str, Any]:
        """Send a request, answer the worker's own requests, and return its reply."""
        if not self.alive:
            raise Ended("the worker has ended before", "ended")
        if not self._lines.empty():  # a line that came after the last reply
            raise self._end("unasked", "it broke off" if self._lines.get() is None else "it said what nobody had asked")
        self._id += 1
        deadline = time.monotonic() + seconds
        self.busy = True
        self._send({"id": self._id, "do": do, "with": request}, deadline)
        while "callback" in (reply := self._receive(deadline, seconds)):
            self._send(self._call_back(reply), deadline)
        self.busy = False
        return reply

    def _send(self, message: dict[str, Json], deadline: float) -> None:
        """Write a line for the worker. A worker that does not read it in time is killed: a full pipe takes no more."""
        waiting = threading.Timer(max(0.0, deadline - time.monotonic()), self._kill)
        waiting.daemon = True
        waiting.start()
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._end("ended", "it broke off") from None
        finally:
            waiting.cancel()

    def _receive(self, deadline: float, seconds: float) -> dict[str, Any]:
        """Return the next line of the worker, which must be the reply to the last request, or a call of a function of the grader."""
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise self._end("too-slow", f"it took longer than {seconds:.2g} s: does each of its loops come to an end?") from None
        if line is None:
            raise self._end("ended", "it broke off")
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            raise self._end("ended", "what it answered cannot be read") from None
        if not isinstance(reply, dict) or reply.get("id") != self._id or reply.get("nonce") != self._nonce:
            late = isinstance(reply, dict) and reply.get("id") == self._id - 1  # a second reply to the request before
            raise self._end("unasked" if late else "ended", "it said what nobody had asked")
        return reply

    def _call_back(self, request: dict[str, Any]) -> dict[str, Json]:
        """Call a function of the grader for the worker."""
        try:
            for number in request.get("released", []):
                self._held.pop(number, None)
            function = self._held[request["callback"]]
            arguments = [self._decode(argument) for argument in request["arguments"]]
            named = {str(name): self._decode(argument) for name, argument in request["named"].items()}
            thread = int(request["thread"])
        except (KeyError, TypeError, ValueError, RecursionError, AttributeError):
            raise self._end("ended", "what it asked cannot be read") from None
        caller = relayed_from.set(thread)  # for functions that must know which thread of the worker calls
        try:
            result = function(*arguments, **named)
        except Later:
            return {"later": True}
        except Exception as why:  # of an argument that the student chose
            self._refused_with = str(why)
            return {"error": str(why)}
        finally:
            relayed_from.reset(caller)
        arrays = [(place, array) for place, array in enumerate(arguments) if isinstance(array, np.ndarray)]
        # a function may write into an array that it gets; the worker has a copy, and must change it, too
        changed = [[place, now] for place, array in arrays if (now := encoded(array)) != request["arguments"][place]]
        given_back = next((place for place, array in arrays if array is result), None)
        same = {} if given_back is None else {"same": given_back}
        return {"value": None if same else encoded(result, self._keep), "changed": changed, **same}

    def _keep(self, value: Any) -> Json:
        """Hold a value for the worker, and return the JSON that stands for it there."""
        number = next(self._numbers)
        self._held[number] = value
        return {"handle": [number, callable(value)]}

    def _decode(self, content: Json) -> Any:
        return decoded(content, self._look_up)

    def _look_up(self, name: str, content: Json) -> Any:
        """Return the value behind JSON that is no plain value: one that is held here, or a function of the worker."""
        if name == "handle":
            number = content[0]
            return self._held[number] if number in self._held else Opaque("object of an earlier call")
        if name == "function":
            number, called, stub = content
            if not isinstance(number, int):
                raise ValueError("a function has a number")
            return Function(number, str(called), bool(stub))
        raise ValueError("a value of an unknown type")

    def _end(self, code: str, why: str) -> Ended:
        """End the worker, and return the error to raise."""
        self.close()
        return Ended(why, code)

    def _read(self) -> None:
        """Put the lines of the worker into the queue, and None at the end. A line that is too long is the last one."""
        rest = b""
        stream = self._process.stdout.fileno()
        while True:
            try:
                chunk = os.read(stream, CHUNK)
            except OSError:
                chunk = b""
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._lines.put(line)
            if not chunk or len(rest) > MOST_BYTES or self._lines.qsize() > MOST_WAITING:
                self._lines.put(None)
                break
        while chunk and self.alive:  # the rest is dropped; a full pipe would stop the worker, and whatever else writes to it
            try:
                chunk = os.read(stream, CHUNK)
            except OSError:
                chunk = b""


def _relayed_error(sentence: str, code: str, error: Any) -> Relayed:
    """Return the error for a judge. Its context has the kind of the student's error, as with a function of this process."""
    relayed = Relayed(sentence, code)
    kind = BUILTIN_ERRORS.get(str(error.get("type"))) if isinstance(error, dict) else None
    if kind is not None and issubclass(kind, (ArithmeticError, ValueError, RuntimeWarning)) and not issubclass(kind, UnicodeError):
        relayed.__context__ = kind(sentence)
    return relayed


class Function:
    """A function that a student has handed in, as the worker knows it."""

    def __init__(self, number: int, name: str, stub: bool) -> None:
        self.number, self.name, self.stub = number, name, stub


class Remote:
    """A function of the worker that can be called here.

    Parameters
    ----------
    session : Session
        The session with the worker that has it.
    function : Function
        The function, as the worker knows it.
    fresh : bool
        Whether arrays in its result must have memory of their own.
    cell : str
        The words for its cell in sentences.
    provide : callable
        Takes a name that the function misses, and returns whether it exists now.
    """

    def __init__(self, session: Session, function: Function, *, fresh: bool, cell: str, provide: Callable[[str], bool]) -> None:
        self._session, self._function, self._fresh, self._cell, self._provide = session, function, fresh, cell, provide
        self.__name__ = function.name

    def __call__(self, *arguments: Any) -> Any:
        """Call the function in its worker."""
        return self._session.call(self._function.number, arguments, fresh=self._fresh, cell=self._cell, provide=self._provide)
