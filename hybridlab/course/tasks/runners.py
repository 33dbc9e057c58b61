"""Pipelines on which a student's runner is tried, which has a thread for each device, and what it does wrong with threads and messages."""

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import short_repr
from hybridlab.costs import Costs
from hybridlab.course.tasks.calls import Later, relayed_from
from hybridlab.course.tasks.executors import SIZES, Faults, Watch
from hybridlab.course.tasks.partial import run_partly, turns_of
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op
from hybridlab.training import Network

MEETING = 2.0  # seconds for which an operation waits until those have begun that can run at the same time
PATIENCE = 3.0  # seconds without an operation, after which threads are taken to wait for ever
LOOKING = 0.05  # seconds between two looks at a function that has not returned
LEAVING = 0.5  # seconds in which threads that the function has left behind may end
RAISED = object()  # the result of a function that has raised an error where it must


class Trouble(NamedTuple):
    """What is special about a case.

    Parameters
    ----------
    lost : tuple of str
        Operations whose messages get lost.
    raises : str
        Why the function must raise an error: ``""`` if it must not, ``"lost"``, ``"order"`` or ``"work"``.
    failing : str
        The operation in which ``work`` raises an error.
    long : float
        How many seconds one operation takes.
    slow : str
        This operation.
    """

    lost: tuple[str, ...] = ()
    raises: str = ""
    failing: str = ""
    long: float = 0.0
    slow: str = "0F0"


NO_TROUBLE = Trouble()


class ThreadWatch:
    """The ``work`` that a runner gets, and the faults that it sees, as pairs of a code and a sentence.

    ``work`` is called from several threads. For a caller in another process no call waits here: it raises :class:`Later`, and the caller
    asks again.

    Parameters
    ----------
    orders : sequence of str
        The line of operations of each device; stage d is on device d.
    weights : sequence of arrays, each of shape (parameters,)
        The parameters of each stage.
    inputs : sequence of arrays, each of shape (samples, features)
        The samples of each microbatch.
    labels : array, shape (microbatches, samples)
        The classes of the samples.
    trouble : Trouble
        What is special about the case.
    """

    def __init__(self, orders: Sequence[str], weights: Sequence[Floats], inputs: Sequence[Floats], labels: Ints, trouble: Trouble) -> None:
        self.watch = Watch(orders, Network(SIZES), weights, inputs, labels)
        self.faults = self.watch.faults
        self._inputs, self._trouble = inputs, trouble
        self._last = len(orders) - 1
        self._names = {name for line in orders for name in line.split()}
        self._together = frozenset[str]() if trouble.raises else operations_at_once(orders)
        self._kept: dict[tuple[int, int], Any] = {}
        self._thread_of: dict[int, int] = {}
        self._begun: dict[tuple[str, int], float] = {}  # operations that run, by their threads: when they began
        self._seen: set[str] = set()  # all that have begun
        self._news = threading.Condition()
        self._returned = False
        self._touched = time.monotonic()

    def work(self, name: str, message: Any) -> tuple[str | None, Any, Any]:
        """Run an operation, and return who needs its output, the output and the gradient of the weights."""
        caller = relayed_from.get()
        thread = threading.get_ident() if caller is None else caller
        with self._news:
            if self._returned:
                raise SystemExit  # ends a thread that the function has left behind
            op = self._checked(name)
            if (name, thread) not in self._begun:
                self._begin(name, op, thread)
            while (wait := self._wait(name, thread)) > 0 and not self._returned:
                if caller is not None:
                    raise Later
                self._news.wait(wait)
            del self._begun[name, thread]
            if self._returned:
                raise SystemExit
            self._touched = time.monotonic()
            self._news.notify_all()
            if name == self._trouble.failing:
                raise HybridLabError(f"out of memory in {name}", "failed")
            return self._computed(op, message)

    def ended(self) -> None:
        """Note that the function has returned or raised an error."""
        with self._news:
            self._returned = True
            self._news.notify_all()

    def idle(self) -> float:
        """Return for how many seconds no operation has run."""
        with self._news:
            return 0.0 if self._begun else time.monotonic() - self._touched

    def waiting(self, died: Sequence[str]) -> str:
        """Return a sentence about threads that wait for ever."""
        if self.faults:
            return f"{self.faults[0][1]}; then your function waits for ever"
        why = f"; a thread has ended with {died[0]}" if died else ""
        able = self.watch.able_to_run() if not self._trouble.raises else []
        if able:
            return f"your threads wait for ever, although the input of {able[0]} is there{why}"
        return f"all threads wait, no message is on its way, and your function neither returns nor raises an error{why}"

    def _checked(self, name: Any) -> Op:
        if not isinstance(name, str) or name not in self._names:
            raise HybridLabError(
                f"work(name, message) takes the name of an operation of the lines, not {short_repr(name)}", "wrong-argument"
            )
        return Op.parse(name)

    def _begin(self, name: str, op: Op, thread: int) -> None:
        """Note that an operation begins, and whether its thread may run it."""
        self._begun[name, thread] = self._touched = time.monotonic()
        self._seen.add(name)
        self._news.notify_all()
        owner = self._thread_of.setdefault(op.stage, thread)
        others = [device for device, other in self._thread_of.items() if other == thread and device != op.stage]
        if owner != thread:
            self._fault("another-thread", f"{name} runs on another thread than the operations of device {op.stage} before it")
        if others and not self._trouble.raises:  # a pool of threads gives the thread that an error has ended to the next device
            self._fault("one-thread", f"devices {others[0]} and {op.stage} run on the same thread: each device has a thread of its own")
        sender = f"{op.stage - 1}F{op.microbatch}" if op.kind is Kind.F else f"{op.stage + 1}B{op.microbatch}"
        if sender in self._trouble.lost:
            self._fault("lost-arrives", f"{name} runs, but the message of {sender} is lost: an operation in lost sends nothing")

    def _wait(self, name: str, thread: int) -> float:
        """Return for how many seconds an operation that has begun still waits."""
        lasted = time.monotonic() - self._begun[name, thread]
        if name == self._trouble.slow and self._trouble.long:
            return self._trouble.long - lasted
        missing = sorted(self._together - self._seen)
        if name not in self._together or not missing or self.faults:
            return 0.0
        if lasted >= MEETING:
            self._fault(
                "not-at-once",
                f"{name} and {missing[0]} can run at the same time, but {missing[0]} does not begin while {name} runs: "
                "hold no lock and wait for no thread while work runs",
            )
        return MEETING - lasted

    def _computed(self, op: Op, message: Any) -> tuple[str | None, Any, Any]:
        stage, microbatch = op.stage, op.microbatch
        if op.kind is Kind.F:
            value = self._inputs[microbatch] if stage == 0 and message is None else message
            output, self._kept[stage, microbatch] = self.watch.forward(stage, microbatch, value)
            if stage < self._last:
                return f"{stage + 1}F{microbatch}", output, 0.0
            return f"{stage}B{microbatch}", 1.0, 0.0
        if (stage, microbatch) not in self._kept:
            self._fault("too-early", f"{op} runs before {stage}F{microbatch}")
            raise HybridLabError(f"{op} runs before {stage}F{microbatch}", "too-early")
        of_input, of_weights = self.watch.backward(stage, microbatch, message, self._kept.pop((stage, microbatch)))
        return (f"{stage - 1}B{microbatch}", of_input, of_weights) if stage else (None, None, of_weights)

    def _fault(self, code: str, sentence: str) -> None:
        self.faults.append((code, sentence))


def operations_at_once(orders: Sequence[str]) -> frozenset[str]:
    """Return the most operations that can run at the same time; none if there is never more than one.

    Where every operation takes one unit of time, those that start together do not need each other.

    >>> sorted(operations_at_once(["0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"]))
    ['0F1', '1F0']
    """
    starts = defaultdict(set)
    for ran in run_partly(turns_of([line.split() for line in orders]), Costs(forward=1, backward=1))[0]:
        for (op,), start, _ in ran:
            starts[start].add(str(op))
    most = max((starts[start] for start in sorted(starts)), key=len, default=set())
    return frozenset(most if len(most) > 1 else ())


def watched_threads(
    call: Callable[..., Any], orders: list[str], weights: Sequence[Floats], inputs: list[Floats], labels: Ints, trouble: Trouble
) -> tuple[Any, Faults]:
    """Return what a runner returns and the faults of its threads, or raise an error if it waits for ever.

    The runner is called in a thread of its own, whose threads end with the program even if they wait for ever.
    """
    watch = ThreadWatch(orders, weights, inputs, labels, trouble)
    outcome: list[Any] = []
    died: list[str] = []

    def calling() -> None:
        try:
            outcome.append(call(orders, watch.work, list(trouble.lost)))
        except BaseException as why:  # it is raised in the thread of the judge
            outcome.append(why)
        finally:
            watch.ended()

    def note(how: threading.ExceptHookArgs) -> None:
        died.append(f"{how.exc_type.__name__}: {how.exc_value}")

    others = set(threading.enumerate())
    before, threading.excepthook = threading.excepthook, note
    try:
        caller = threading.Thread(target=calling, daemon=True)
        _start_caller(caller)
        while caller.is_alive() and watch.idle() < PATIENCE:
            caller.join(LOOKING)
        if caller.is_alive():
            raise HybridLabError(watch.waiting(died), "waits-for-ever")
    finally:
        watch.ended()
        end = time.monotonic() + LEAVING
        for thread in set(threading.enumerate()) - others:
            with contextlib.suppress(RuntimeError):  # it is only about to start
                thread.join(max(0.0, end - time.monotonic()))
        threading.excepthook = before
    if isinstance(outcome[0], BaseException):
        return _raised(outcome[0], watch, trouble, died)
    return outcome[0], _faults_of_a_result(watch, trouble, died)


def _start_caller(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError as why:
        told = f"a runner needs threads, which cannot be started ({why})"
        raise HybridLabError(f"{told}: a notebook that runs in a browser has none", "no-threads") from why


def _raised(error: BaseException, watch: ThreadWatch, trouble: Trouble, died: Sequence[str]) -> tuple[Any, Faults]:
    """Return the result of a runner that has raised an error where it must, or raise an error that says why it must not."""
    code = error.code if isinstance(error, HybridLabError) else ""
    if code == "too-slow":
        raise HybridLabError(f"{error}; {watch.waiting(died)}", "waits-for-ever")
    if code == "raises" and watch.faults:  # the fault is the cause
        fault, sentence = watch.faults[0]
        raise HybridLabError(f"{sentence}; then {error}", fault)
    if code == "raises" and trouble.raises:
        return RAISED, []
    if code == "raises" and trouble.long > 1:
        told = f"{trouble.slow} takes {trouble.long:g} s, and this is no deadlock, because it ends and then sends its output"
        raise HybridLabError(f"{error}; {told}", "gave-up")
    raise error


def _faults_of_a_result(watch: ThreadWatch, trouble: Trouble, died: Sequence[str]) -> Faults:
    """Return the faults of a runner that has returned a result."""
    if watch.faults:
        return watch.faults
    if trouble.raises == "work":
        told = f"work raises an error in {trouble.failing}, and your function returns a result"
        return [("error-lost", f"{told}: an error ends its own thread alone, so keep it, and raise it when all threads have ended")]
    if trouble.raises:
        return [("deadlock-not-told", "a message never comes, so the line of a device cannot end; your function must raise an error")]
    if left := watch.watch.unfinished():
        why = f" (a thread has ended with {died[0]})" if died else ""
        told = f"when your function returns, {left[0]} has not run{why}"
        return [("missing-operation", f"{told}: let each thread run its whole line, and join the threads before you return")]
    return []
