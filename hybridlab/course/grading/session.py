"""Talk to a worker from the grader: send requests with a deadline, and call functions that exist only in the worker."""

import builtins
import contextlib
import itertools
import json
import os
import queue
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridlab.course.checking.calls import Caller, Later, Relayed, refusing, relayed_from
from hybridlab.course.grading.budget import Budget, Meter
from hybridlab.course.grading.worker import MOST_BYTES
from hybridlab.course.results import SHARED
from hybridlab.course.values import Json, Opaque, decoded, encoded
from hybridlab.errors import HybridLabError

CHUNK = 65536  # the most bytes of one read
MOST_LINES = 10_000  # the largest line number of a cell that an error may name
SECONDS_TO_END = 30.0  # the time that processes started by a worker have to end after the worker was stopped
LOOKING = 0.05  # seconds between two looks at the computing time of a worker that has not replied
RECEIVED = 200  # after so many messages from a worker, the grader looks at the computing time, too
LEAST_PIPE = 4096  # bytes that a pipe can hold on every system
DOES_NOT_TAKE = "the function that it calls does not take these arguments; see how it is called in the task"
MOST_WAITING = 2  # the most lines in the queue; a worker may send a line only after a request, so a worker that sends more is ended
PUBLIC = frozenset(sys.modules["hybridlab"].__all__)  # the library's names that students import
BUILTIN_ERRORS = {name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}


class Ended(HybridLabError):
    """The worker has ended: it took too long, it crashed, or it sent a message without a request. Its functions and values are lost."""


class Session:
    """A worker, and the grader's connection to the worker.

    Parameters
    ----------
    start : callable
        Starts the process of the worker and returns the process.
    inside : mapping
        The limits that the worker sets on itself.
    packages : list of str
        The folders in which the worker looks for packages.
    budget : Budget
        The seconds that the notebook may still use. All workers of a notebook share the budget.
    calls : bytes
        The filter of system calls that the worker puts on itself; no bytes for no filter.
    echo : bool
        Whether sentences for the student contain the texts of the student's errors. In grading they do not, because such a text can
        reveal hidden cases.
    """

    def __init__(
        self,
        start: Callable[[], Any],
        *,
        inside: dict[str, int],
        packages: list[str],
        budget: Budget,
        calls: bytes = b"",
        echo: bool = False,
    ) -> None:
        self._budget, self._echo = budget, echo
        self._nonce, self._id = secrets.token_hex(16), 0  # a random text and the request's number; each reply repeats both
        self._held: dict[int, Any] = {}  # values of the grader; the worker knows each of them only by its number
        self._numbers = itertools.count()
        self._refused_with = ""  # the text of the last error of a grader's function that the worker has called
        self.alive = True
        self.busy = False  # whether the worker has not yet replied to a request
        self._waited = 0.0  # seconds on the clock that the present request has waited for the worker
        self._received = 0  # the number of messages from the worker
        self._charged = 0.0  # seconds of the worker's computing time that are charged to the budget
        self._process = start()
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()  # faster than Queue; thousands of messages come
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        begin = {"nonce": self._nonce, "limits": inside, "packages": packages, "calls": calls.hex()}
        self._meter: Meter | None = None  # the worker's start is not charged
        budget.begin("its start")
        self._ask("start", begin)
        self._meter = Meter(self._process.pid)
        self._charged = self._meter.seconds()

    def run(self, source: str, cell: str) -> tuple[list[tuple[str, Any]], dict[str, Any] | None]:
        """Run a cell. Return pairs of a task's key and a handed-in answer, and the description of the cell's error or None."""
        reply = self._ask_in_time("run", {"source": source, "cell": cell})
        handed, error = reply.get("handed", []), reply.get("error")
        try:
            pairs = [(str(key), self._decode(answer)) for key, answer in handed]
        except (TypeError, ValueError, RecursionError):
            raise self._end("ended", "its reply cannot be read") from None
        return pairs, error if isinstance(error, dict) else None

    def call(
        self, function: int, arguments: tuple[Any, ...], *, fresh: bool, cell: str, provide: Callable[[str], bool] = lambda name: False
    ) -> Any:
        """Call a function in the worker, and return its result.

        ``provide`` takes an undefined name that the function uses, tries to define it, and returns whether to call the function again.

        Raises
        ------
        Relayed
            The function took too long, raised an error, changed its arguments, or returned an array that shares memory.
        """
        sent = [encoded(argument, self._keep) for argument in arguments]
        # the worker does not know whether the function must refuse these arguments, because that is the answer
        asked = {"function": function, "arguments": sent, "fresh": fresh, "cell": cell}
        try:
            reply = self._ask_in_time("call", asked)
        except Ended as why:
            raise Relayed(str(why), "too-slow" if why.code == "too-slow" else "ended") from None
        finally:
            self._held.clear()
        error = reply.get("error")
        if isinstance(error, dict) and error.get("name") and provide(str(error["name"])):
            return self.call(function, arguments, fresh=fresh, cell=cell, provide=provide)
        # the worker reports a warning of an invalid cast; it counts as an error, unless the function must refuse these arguments
        if not error and not refusing.get() and isinstance(reply.get("warned"), list):
            error = next(iter(reply["warned"]), None)  # a NaN becomes different whole numbers on different machines
        if error:
            raise _relayed_error(*self.describe_error(error, cell), error)
        if json.dumps(reply.get("arguments")) != json.dumps(sent):
            raise Relayed("the function changes its argument; work on a copy", "changes-its-argument")
        try:
            result = self._decode(reply["result"])
        except (KeyError, TypeError, ValueError, RecursionError):
            raise Relayed(str(self._end("ended", "its reply cannot be read")), "ended") from None
        # the sentence uses no names of arrays from the worker, because the student could choose them
        if sentence := SHARED.get(str(reply.get("shared"))):
            raise Relayed(sentence.format(arrays="two arrays of the result"), reply["shared"])
        return result

    def describe_error(self, error: Any, cell: str) -> tuple[str, str]:
        """Return a sentence and an error code for an error of the student's program. ``error`` is the worker's description of the error."""
        error = error if isinstance(error, dict) else {}
        text = str(error.get("text", ""))[:300] if self._echo else ""
        if error.get("kind") == "signature":
            return "the function does not take these arguments" + (
                f": {text}" if text else "; see how it is called in the task"
            ), "signature"
        if error.get("kind") == "not-there":  # the name is said only if it is one of the library's: another text could reveal hidden cases
            name = str(error.get("missing"))
            known = f"hybridlab.{name}" if name in PUBLIC or self._echo else "a module that it imports"
            return f"{known} is not there when this task is graded: write your function with Python and numpy alone", "not-there"
        if error.get("kind") == "too-large":
            return f"the result is too large: at most {MOST_BYTES:,} bytes are read", "too-large"
        number = error.get("line")  # a student could use a large line number to reveal arguments of hidden cases
        line = f"line {number} of {cell} raises" if type(number) is int and 0 < number < MOST_LINES else "the function raises"
        if error.get("kind") == "refused" and self._refused_with:
            return f"{line} an error: {self._refused_with}", "raises"
        kind = str(error.get("type", ""))  # a student could also use the name of an error class to reveal them
        named = kind if self._echo or kind in BUILTIN_ERRORS else "an exception of a class of your own"
        return f"{line} {named}" + (f": {text}" if text else ""), "raises"

    def close(self) -> None:
        """End the worker, and wait until it sends no more output.

        Raises
        ------
        HybridLabError
            ``still-runs``: a process that the worker has started does not end.
        """
        self.alive = False
        self._kill()
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # if bubblewrap was killed before its worker, the worker ends because its input ends
        self._process.wait()
        self._reader.join(SECONDS_TO_END)
        if self._reader.is_alive():
            why = f"a worker was stopped, but a process that it started still runs after {SECONDS_TO_END:g} s"
            raise HybridLabError(f"{why}: end it, then run the same command again", "still-runs")
        with contextlib.suppress(OSError):
            self._process.stdout.close()

    def _kill(self) -> None:
        """Kill the worker and all processes in its process group. Windows has no process groups, so only the worker is killed there."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL) if hasattr(os, "killpg") else self._process.kill()

    def asleep(self) -> bool:
        """Return whether no thread of the worker works or could work at once."""
        return self._meter is None or self._meter.asleep()

    def threads(self) -> int:
        """Return the number of threads of the worker."""
        return self._meter.threads() if self._meter else 1

    def _ask_in_time(self, do: str, request: dict[str, Json]) -> dict[str, Any]:
        """Send a request and return the reply. Charge the computing time of the worker to the budget, and end a worker that exceeds it."""
        if exceeded := self._budget.exceeded():
            raise self._end("too-slow", exceeded)
        try:
            return self._ask(do, request)
        finally:
            self._budget.charge(self._computed(), self._waited)
            self._charged += self._computed()

    def _computed(self) -> float:
        """Return the computing time of the worker that is not charged yet."""
        return self._meter.seconds() - self._charged if self._meter else 0.0

    def _ask(self, do: str, request: dict[str, Json]) -> dict[str, Any]:
        """Send a request and return the reply. Before its reply, the worker can call functions of the grader."""
        if not self.alive:
            raise Ended("the worker has ended before", "ended")
        if not self._lines.empty():  # the worker has sent a line after its last reply
            raise self._end("unasked", "it broke off" if self._lines.get() is None else "it said what nobody had asked")
        self._id += 1
        self._waited = 0.0
        self.busy = True
        self._send({"id": self._id, "do": do, "with": request})
        while "callback" in (reply := self._receive()):
            self._send(self._call_back(reply))
        self.busy = False
        return reply

    def _send(self, message: dict[str, Json]) -> None:
        """Send one line to the worker."""
        line = json.dumps(message).encode() + b"\n"
        written = threading.Event()
        if len(line) > LEAST_PIPE:  # writing to a full pipe blocks, so another thread looks after a worker that does not read
            threading.Thread(target=self._kill_if_unread, args=(written,), daemon=True).start()
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            raise self._end("ended", "it broke off") from None
        finally:
            written.set()

    def _kill_if_unread(self, written: threading.Event) -> None:
        """Kill a worker that exceeds the budget before it has read a message."""
        waited = 0.0
        while not written.wait(LOOKING):
            waited += LOOKING
            if self._budget.exceeded(self._computed(), self._waited + waited):
                self._kill()
                return

    def _receive(self) -> dict[str, Any]:
        """Return the worker's next message: the reply to the last request, or a call of a function of the grader."""
        begun, before = time.monotonic(), self._waited
        while True:
            try:
                line = self._lines.get(timeout=LOOKING)
                break
            except queue.Empty:
                self._waited = before + time.monotonic() - begun
                if exceeded := self._budget.exceeded(self._computed(), self._waited):
                    raise self._end("too-slow", exceeded) from None
        self._waited = before + time.monotonic() - begun
        self._received += 1  # a worker that calls the grader again and again is never late, so look at its time now and then
        if self._received % RECEIVED == 0 and (exceeded := self._budget.exceeded(self._computed(), self._waited)):
            raise self._end("too-slow", exceeded)
        if line is None:
            raise self._end("ended", "it broke off")
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            raise self._end("ended", "its reply cannot be read") from None
        if not isinstance(reply, dict) or reply.get("id") != self._id or reply.get("nonce") != self._nonce:
            late = isinstance(reply, dict) and reply.get("id") == self._id - 1  # a second reply to the request before the last one
            raise self._end("unasked" if late else "ended", "it said what nobody had asked")
        return reply

    def _call_back(self, request: dict[str, Any]) -> dict[str, Json]:
        """Call a function of the grader that the worker asks for, and return the message with its result."""
        try:
            for number in request.get("released", []):
                self._held.pop(number, None)
            function = self._held[request["callback"]]
            arguments = [self._decode(argument) for argument in request["arguments"]]
            named = {str(name): self._decode(argument) for name, argument in request["named"].items()}
            thread = int(request["thread"])
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError, AttributeError):
            raise self._end("ended", "its request cannot be read") from None
        caller = relayed_from.set(Caller(thread, self.asleep, self.threads))  # some functions must know which thread calls them
        try:
            result = function(*arguments, **named)
        except Later:
            return {"later": True}
        except HybridLabError as why:
            self._refused_with = str(why)
            return {"error": str(why)}
        except Exception:  # the student chose the arguments: any error can occur, and its text can be the student's
            self._refused_with = DOES_NOT_TAKE
            return {"error": DOES_NOT_TAKE}
        finally:
            relayed_from.reset(caller)
        arrays = [(place, array) for place, array in enumerate(arguments) if isinstance(array, np.ndarray)]
        # a function can change an array in its arguments; the worker has another copy of the array, which must get the same change
        changed = [[place, now] for place, array in arrays if (now := encoded(array)) != request["arguments"][place]]
        given_back = next((place for place, array in arrays if array is result), None)
        same = {} if given_back is None else {"same": given_back}
        return {"value": None if same else encoded(result, self._keep), "changed": changed, **same}

    def _keep(self, value: Any) -> Json:
        """Store a value of the grader, and return the JSON that represents the value in messages to the worker."""
        number = next(self._numbers)
        self._held[number] = value
        return {"handle": [number, callable(value)]}

    def _decode(self, content: Json) -> Any:
        return decoded(content, self._look_up)

    def _look_up(self, name: str, content: Json) -> Any:
        """Return the value that a JSON reference stands for: a stored value of the grader, or a function of the worker."""
        if name == "handle":
            number, _ = content
            return self._held.get(number, Opaque("object of an earlier call"))
        if name == "function":
            number, called, stub = content
            if not isinstance(number, int):
                raise ValueError("a function has a number")
            return Function(number, str(called), bool(stub))
        raise ValueError("a value of an unknown type")

    def _end(self, code: str, why: str) -> Ended:
        """End the worker, and return the error that the caller raises."""
        self.close()
        return Ended(why, code)

    def _read(self) -> None:
        """Put the worker's lines into the queue, and None at the end. Stop at a line that is too long, or if there are too many lines."""
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
        while chunk and self.alive:  # read and ignore the rest, because processes that write to a full pipe would wait
            try:
                chunk = os.read(stream, CHUNK)
            except OSError:
                chunk = b""


def _relayed_error(sentence: str, code: str, error: Any) -> Relayed:
    """Return the error that replaces an error of the student's code.

    Its context is an error of the same class as the student's error, if judges look at this class.
    """
    relayed = Relayed(sentence, code)
    kind = BUILTIN_ERRORS.get(str(error.get("type"))) if isinstance(error, dict) else None
    if kind is not None and issubclass(kind, (ArithmeticError, ValueError, RuntimeWarning)) and not issubclass(kind, UnicodeError):
        relayed.__context__ = kind(sentence)
    return relayed


class Function:
    """A reference to a student's function in the worker: its number, its name, and whether it is a stub."""

    def __init__(self, number: int, name: str, stub: bool) -> None:
        self.number, self.name, self.stub = number, name, stub


class Remote:
    """A student's function that the grader can call. The call runs in the worker.

    Parameters
    ----------
    session : Session
        The session with the worker that has the function.
    function : Function
        The reference to the function.
    fresh : bool
        Whether arrays in the result must not share memory with each other or with the arguments.
    cell : str
        The words for the function's cell in sentences.
    provide : callable
        Takes an undefined name that the function uses, tries to define it, and returns whether to call the function again.
    """

    def __init__(self, session: Session, function: Function, *, fresh: bool, cell: str, provide: Callable[[str], bool]) -> None:
        self._session, self._function, self._fresh, self._cell, self._provide = session, function, fresh, cell, provide
        self.__name__ = function.name

    def __call__(self, *arguments: Any) -> Any:
        """Call the function in its worker."""
        return self._session.call(self._function.number, arguments, fresh=self._fresh, cell=self._cell, provide=self._provide)
