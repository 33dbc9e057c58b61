"""The coding task ('build') of lab 8 in which a student writes a runner with a thread for each device.

This file has the runs on which the runner is tried, the checks of its threads, the known mistakes and the changes of the task ('twists').
"""

import contextlib
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import counted, short_repr
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import near
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.calls import Caller, Later, busy_threads, relayed_from
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.maps import REVERSED, SPLIT_WORDS, FunctionMap, Map, each, each_number, exchanged
from hybridlab.course.checking.partial import run_partly, turns_of
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.labs.lab07.executors import SIZES, Faults, Watch, lines_of_schedule, order_by_chance, parts_of_a_run
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op
from hybridlab.training import Network, loss_and_gradient

LOOKING = 0.02  # seconds between two looks of the judge
# The judge does not count seconds, because threads take longer on a busy machine. It counts the looks in which all threads slept. Threads
# that work for very long without an operation wait in a loop, so a look at them counts a little, too.
BUSY = 0.1
MEETING = 40  # looks; an operation waits at most so long until the operations that can run at the same time have begun
PATIENCE = 40  # looks; if no operation runs for so long, the judge assumes that the threads wait for ever
LEAVING = 0.5  # seconds; threads that still run when the function returns get so long to end
RAISED = object()  # stands for the result of a function that has raised an error, as it must


class Trouble(NamedTuple):
    """What goes wrong or takes long in a case.

    Parameters
    ----------
    lost : tuple of str
        Operations whose messages get lost.
    raises : str
        Why the function must raise an error: ``"lost"`` (a message gets lost), ``"order"`` (the order cannot run) or ``"work"`` (``work``
        raises an error). ``""`` if the function must return a result.
    failing : str
        The operation in which ``work`` raises an error.
    long : float
        The seconds that each of the operations ``slow`` takes.
    slow : str
        The operations that take ``long`` seconds, with blanks between them.
    """

    lost: tuple[str, ...] = ()
    raises: str = ""
    failing: str = ""
    long: float = 0.0
    slow: str = "0F0"


NO_TROUBLE = Trouble()


class ThreadWatch:
    """The watch over a student's runner, which calls the method ``work`` from several threads.

    ``work`` notes what the runner does wrong in ``faults``, as pairs of an error code and a sentence. If the caller is in another process,
    ``work`` never waits: it raises :class:`Later`, and the caller calls ``work`` again.

    Parameters
    ----------
    orders : sequence of str
        One line of text for each device, with the operations of the device. Stage d is on device d.
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
        self._begun: dict[tuple[str, int], float] = {}  # by operation and thread: when it began
        self._seen: set[str] = set()  # all operations that have begun
        self._news = threading.Condition()
        self._returned = False
        self._quiet = 0.0  # the looks since an operation last began or ended in which all threads slept
        self._caller: Caller | None = None

    def work(self, name: str, message: Any) -> tuple[str | None, Any, Any]:
        """Run an operation, and return three things: the operation that needs its output, the output, and the gradient of the weights."""
        caller = relayed_from.get()
        thread = threading.get_ident() if caller is None else caller.thread
        with self._news:
            self._caller = caller
            if self._returned:
                raise SystemExit  # ends a thread that still runs after the function has returned
            op = self._checked(name)
            if (name, thread) not in self._begun:
                self._begin(name, op, thread)
            while self._must_wait(name, thread) and not self._returned:
                if caller is not None:
                    raise Later
                self._news.wait(LOOKING)
            del self._begun[name, thread]
            if self._returned:
                raise SystemExit
            self._quiet = 0.0
            self._news.notify_all()
            if name == self._trouble.failing:
                raise HybridLabError(f"out of memory in {name}", "failed")
            return self._computed(op, message)

    def ended(self) -> None:
        """Note that the function has returned or raised an error."""
        with self._news:
            self._returned = True
            self._news.notify_all()

    def look(self) -> bool:
        """Look whether a thread works. Return whether all threads wait for ever: no operation runs, and all threads have slept for long."""
        with self._news:
            # in this process, the judge itself is at work
            asleep = self._caller.asleep() if self._caller else busy_threads("self") <= 1
            self._quiet += 1.0 if asleep else BUSY
            return not self._begun and self._quiet >= PATIENCE

    def waiting(self, died: Sequence[str]) -> str:
        """Return a sentence that says why the threads wait for ever."""
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
        """Note that an operation begins. Note a fault if it runs on a wrong thread, or if its input is lost."""
        self._begun[name, thread] = time.monotonic()
        self._quiet = 0.0
        self._seen.add(name)
        self._news.notify_all()
        owner = self._thread_of.setdefault(op.stage, thread)
        others = [device for device, other in self._thread_of.items() if other == thread and device != op.stage]
        if owner != thread:
            self._fault("another-thread", f"{name} runs on another thread than the operations that device {op.stage} has run before")
        if others and not self._trouble.raises:  # after an error, a pool of threads may use a thread for another device
            self._fault("one-thread", f"devices {others[0]} and {op.stage} run on the same thread: each device has a thread of its own")
        sender = f"{op.stage - 1}F{op.microbatch}" if op.kind is Kind.F else f"{op.stage + 1}B{op.microbatch}"
        if sender in self._trouble.lost:
            self._fault("lost-arrives", f"{name} runs, but the message of {sender} is lost: an operation in lost sends nothing")

    def _must_wait(self, name: str, thread: int) -> bool:
        """Return whether an operation that has begun must wait before it is computed."""
        if self._trouble.long and name in self._trouble.slow.split():
            return time.monotonic() - self._begun[name, thread] < self._trouble.long
        if name not in self._together or self.faults or name not in self.watch.able_to_run():
            return False  # an operation in a wrong order or without its input need not wait: its fault is noted when it is computed
        missing = sorted(self._together - self._seen)
        if not missing:
            self._count_threads()
            return False
        if self._quiet >= MEETING:
            self._fault(
                "not-at-once",
                f"{name} and {missing[0]} can run at the same time, but {missing[0]} does not begin while {name} runs: "
                "hold no lock and wait for no thread while work runs",
            )
            return False
        return True

    def _count_threads(self) -> None:
        """Note a fault if the student's process has fewer threads than operations that run at this time."""
        running = sorted(self._together & {name for name, _ in self._begun})
        if self._caller is not None and 0 < self._caller.threads() < len(running):
            self._fault("one-thread", f"{running[0]} and {running[1]} run on the same thread: each device has a thread of its own")

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
    """Return a largest set of operations that can run at the same time; an empty set if two operations never can.

    The orders are simulated with one unit of time for every operation. Operations that start at the same time do not need each other.

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
    """Return the result of a runner and the faults of its threads, or raise an error if the runner waits for ever.

    The runner is called in a daemon thread, so all its threads end with the program, even if they wait for ever.
    """
    watch = ThreadWatch(orders, weights, inputs, labels, trouble)
    outcome: list[Any] = []
    died: list[str] = []

    def calling() -> None:
        try:
            outcome.append(call(orders, watch.work, list(trouble.lost)))
        except BaseException as why:  # the judge's thread raises this error
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
        stuck = False
        while caller.is_alive() and not stuck:
            caller.join(LOOKING)
            stuck = caller.is_alive() and watch.look()
        if stuck:
            raise HybridLabError(watch.waiting(died), "waits-for-ever")
    finally:
        watch.ended()
        end = time.monotonic() + LEAVING
        for thread in set(threading.enumerate()) - others:
            with contextlib.suppress(RuntimeError):  # a thread that has not started cannot be joined
                thread.join(max(0.0, end - time.monotonic()))
        threading.excepthook = before
    if isinstance(outcome[0], BaseException):
        return _raised(outcome[0], watch, trouble, died)
    return outcome[0], _faults_of_a_result(watch, trouble, died)


def _start_caller(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError as why:
        seen = f"a runner needs threads, which cannot be started ({why})"
        raise HybridLabError(f"{seen}: a notebook that runs in a browser has none", "no-threads") from why


def _raised(error: BaseException, watch: ThreadWatch, trouble: Trouble, died: Sequence[str]) -> tuple[Any, Faults]:
    """Return ``RAISED`` if a runner has raised an error as it must; otherwise raise an error that says what is wrong."""
    code = error.code if isinstance(error, HybridLabError) else ""
    if code == "too-slow":
        raise HybridLabError(f"{error}; {watch.waiting(died)}", "waits-for-ever")
    if code == "raises" and watch.faults:  # the fault has caused the error
        fault, sentence = watch.faults[0]
        raise HybridLabError(f"{sentence}; then {error}", fault)
    if code == "raises" and trouble.raises:
        return RAISED, []
    if code == "raises" and trouble.long > 1:
        seen = f"{trouble.slow} takes {trouble.long:g} s and then sends its output, so this is no deadlock: wait for it"
        raise HybridLabError(f"{error}; {seen}", "gave-up")
    raise error


def _faults_of_a_result(watch: ThreadWatch, trouble: Trouble, died: Sequence[str]) -> Faults:
    """Return the faults of a runner that has returned a result."""
    if watch.faults:
        return watch.faults
    if trouble.raises == "work":
        seen = f"work raises an error in {trouble.failing}, and your function returns a result"
        return [
            (
                "error-lost",
                f"{seen}: an error ends only the thread that raises it; so save the error, and raise it when all threads have ended",
            )
        ]
    if trouble.raises:
        return [
            (
                "deadlock-not-told",
                "your function returns a result, but a message never comes, so a device cannot run its whole line: raise an error",
            )
        ]
    if left := watch.watch.unfinished():
        why = f" (a thread has ended with {died[0]})" if died else ""
        seen = f"when your function returns, {left[0]} has not run{why}"
        return [("missing-operation", f"{seen}: let each thread run its whole line, and join the threads before you return")]
    return []


LONG_BEFORE_JOIN, LONG_BEFORE_END = 0.1, 0.3  # seconds that the slow operation of a case takes
LONG_OPERATION = 1.8  # seconds, longer than the patience of the judge, so that no program can wait with a time limit in place of a count


def read_threads(result: tuple[Any, Faults]) -> tuple[list[Floats], Faults]:
    """Return the gradients and the faults of a run, or raise an error if the runner has returned something else."""
    returned, faults = result
    if faults or returned is RAISED:
        return [], faults
    if returned is None:
        raise HybridLabError("the function returns None: does it end in return?", "returns-nothing")
    if not isinstance(returned, (tuple, list)):
        raise HybridLabError(f"the function returns a list with one gradient for each device, not {short_repr(returned)}", "not-a-list")
    for device, gradient in enumerate(returned):
        if not isinstance(gradient, np.ndarray) or gradient.dtype != np.float64:
            kind = f"an array of {gradient.dtype}" if isinstance(gradient, np.ndarray) else short_repr(gradient)
            raise HybridLabError(f"the gradient of device {device} is an array of float64, not {kind}", "wrong-dtype")
    return list(returned), faults


def judge_threads(
    result: tuple[list[Floats], Faults], orders: list[str], weights: Sequence[Floats], inputs: list[Floats], labels: Ints, trouble: Trouble
) -> Feedback:
    """Judge one run: first its threads and messages, then its gradients. One device computes the right gradients."""
    gradients, faults = result
    if faults:
        return wrong(*faults[0])
    if trouble.raises:
        return right()
    if len(gradients) != len(weights):
        return wrong(
            "another-size", f"there are {counted(len(gradients), 'gradient')}, not one for each of {counted(len(weights), 'device')}"
        )
    for device, (found, wanted) in enumerate(zip(gradients, _on_one_device(weights, inputs, labels), strict=True)):
        if found.shape != wanted.shape:
            return wrong("another-shape", f"the gradient of device {device} has shape {found.shape}, and its weights have {wanted.shape}")
        if not near(found.tolist(), wanted.tolist(), 1e-9):
            place = int(np.argmax(~(np.abs(found - wanted) <= 1e-9)))
            seen = f"number {place} of device {device}'s gradient is {found[place]:.6g}"
            return wrong("wrong-gradient", f"{seen}; one device that runs the whole network finds {wanted[place]:.6g}")
    return right()


def _on_one_device(weights: Sequence[Floats], inputs: Sequence[Floats], labels: Ints) -> list[Floats]:
    """Return the gradient of each stage. One device computes all gradients with the whole network."""
    _, gradient = loss_and_gradient(Network(SIZES), np.concatenate(weights), np.concatenate(inputs), labels.ravel())
    return np.split(gradient, np.cumsum([len(each) for each in weights])[:-1])


RUNNING = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3), (3, 5), (4, 3), (4, 6)]  # devices and microbatches


def runs_in_threads(rng: np.random.Generator) -> Iterator[Case]:
    """Yield orders that can run, from the smallest up, and then runs in which the function must raise an error."""
    for devices, microbatches in RUNNING:
        size = f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')}"
        alone = devices * microbatches == 1
        lines = lines_of_schedule("1f1b", devices, microbatches)
        yield _run_case(rng, f"1F1B with {size}", lines, Trouble(long=LONG_BEFORE_JOIN * alone))
        if microbatches > 1:
            yield _run_case(rng, f"GPipe with {size}", lines_of_schedule("gpipe", devices, microbatches))
            yield _run_case(rng, f"a random order with {size}", order_by_chance(rng, devices, microbatches))
    yield _run_case(rng, "2 devices and 12 microbatches", order_by_chance(rng, 2, 12))
    # devices 0, 1 and 2 wait, in this order, when 3F0 and 3B0 send their messages: waking one thread at a time wakes the wrong ones
    late = Trouble(long=LONG_BEFORE_JOIN, slow="1F0 2F0 3F0")
    words = f"4 devices, where 1F0, 2F0 and 3F0 take {LONG_BEFORE_JOIN:g} s each"
    yield _run_case(rng, words, [f"{d}F0 {d}B0" for d in range(4)], late)
    pair = ["0F0 0B0", "1F0 1B0"]
    yield _run_case(rng, f"2 devices, where 0F0 takes {LONG_OPERATION:g} s", pair, Trouble(long=LONG_OPERATION))
    yield _run_case(rng, "the lines ['0B0 0F0']", ["0B0 0F0"], Trouble(raises="order"))
    yield _run_case(rng, "the lines ['0F0 0B0', '1B0 1F0']", ["0F0 0B0", "1B0 1F0"], Trouble(raises="order"))
    yield _run_case(rng, "the lines ['', '1F0 1B0']", ["", "1F0 1B0"], Trouble(raises="order"))
    yield _run_case(rng, "2 lines that wait for each other", ["0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"], Trouble(raises="order"))
    for devices, microbatches in ((2, 1), (2, 3), (3, 4), (4, 4)):
        lines = order_by_chance(rng, devices, microbatches)
        for kind, senders in (("F", range(devices - 1)), ("B", range(1, devices))):
            lost = f"{rng.choice(senders)}{kind}{rng.integers(microbatches)}"
            yield _run_case(rng, f"{counted(devices, 'device')}, where the message of {lost} is lost", lines, Trouble((lost,), "lost"))
    late = Trouble(("1B0",), "lost", long=LONG_BEFORE_END, slow="1B0")
    yield _run_case(rng, f"2 devices, where 1B0 takes {LONG_BEFORE_END:g} s and its message is lost", pair, late)  # by then device 0 waits
    for name in ("1F0", "1B0"):
        late = Trouble((), "work", name, LONG_BEFORE_END, name)
        yield _run_case(rng, f"2 devices, where work raises an error in {name} after {LONG_BEFORE_END:g} s", pair, late)
    for devices, microbatches in ((1, 1), (2, 2), (3, 4)):
        lines = order_by_chance(rng, devices, microbatches)
        failing = str(rng.choice(" ".join(lines).split()))
        words = f"{counted(devices, 'device')}, where work raises an error in {failing}"
        yield _run_case(rng, words, lines, Trouble((), "work", failing))


def _run_case(rng: np.random.Generator, words: str, lines: list[str], trouble: Trouble = NO_TROUBLE) -> Case:
    """Return a case with random weights, inputs and labels."""
    network, samples = Network(SIZES), int(rng.integers(1, 4))
    microbatches = 1 + max(Op.parse(name).microbatch for line in lines for name in line.split())
    cuts = np.cumsum([network.count(layers) for layers in network.stages(len(lines))])[:-1]
    weights = np.split(rng.normal(size=network.parameters), cuts)
    inputs = list(rng.normal(size=(microbatches, samples, SIZES[0])))
    labels = rng.integers(0, SIZES[-1], (microbatches, samples))
    return Case((lines, weights, inputs, labels, trouble), words, run=watched_threads)


def wrong_gradients(change: Callable[[list[list[Floats]], list[int]], list[Floats]]) -> Callable[..., Any]:
    """Return a function that computes the wrong result of a known mistake.

    ``change`` makes this result from two things: the gradients of each microbatch, and the last microbatch in each device's line.
    """

    def result(orders: list[str], weights: Sequence[Floats], inputs: list[Floats], labels: Ints, trouble: Trouble) -> Any:
        if trouble.raises:
            raise HybridLabError("there are no gradients", "no-result")
        last = [Op.parse(line.split()[-1]).microbatch for line in orders]
        return change([gradients for _, gradients in parts_of_a_run(weights, inputs, labels)], last), []

    return result


def _sums(parts: list[list[Floats]]) -> list[Floats]:
    return [np.add.reduce(of_device) for of_device in zip(*parts, strict=True)]


MISTAKES = [
    KnownMistake(
        "last-microbatch",
        "these are the gradients of the last microbatch alone: add up those of all microbatches",
        wrong_gradients(lambda parts, last: [parts[microbatch][device].copy() for device, microbatch in enumerate(last)]),
    ),
    KnownMistake(
        "mean-of-microbatches",
        "the gradients are divided by the number of microbatches: each gradient is already a part of the mean, so add them up",
        wrong_gradients(lambda parts, last: [total / len(parts) for total in _sums(parts)]),
        under={"means": "the gradients are divided by the number of microbatches twice: divide them once"},
    ),
    KnownMistake(
        "added-twice",
        "each gradient is added twice: only the thread of a device may add to the sum of this device",
        wrong_gradients(lambda parts, last: [2 * total for total in _sums(parts)]),
    ),
    KnownMistake(
        "reversed",
        "your list of gradients goes from the last device to the first",
        wrong_gradients(lambda parts, last: _sums(parts)[::-1]),
    ),
    KnownMistake(
        "without-the-last",
        "the gradient of the last microbatch in each line is missing: add the gradient of every operation",
        wrong_gradients(
            lambda parts, last: [total - parts[microbatch][d] for d, (total, microbatch) in enumerate(zip(_sums(parts), last, strict=True))]
        ),
    ),
]


def _other_names(names: list[str], case: tuple[Any, ...]) -> list[str]:
    """Return the operations of the lines that are not in ``names``."""
    return [name for line in case[0] for name in line.split() if name not in names]


def _microbatches(case: tuple[Any, ...]) -> int:
    return len(set(re.findall(r"(?<=F)\d+", " ".join(case[0]))))


def toy_work(name: str, message: Any) -> tuple[str | None, Any, Any]:
    """Return the result of an operation in an example with two stages. The gradient of stage s and microbatch m is (s + 1)(2m + 1)."""
    stage, kind, microbatch = name[0], name[1], name[2:]
    to = {"0F": f"1F{microbatch}", "1F": f"1B{microbatch}", "1B": f"0B{microbatch}"}.get(name[:2])
    gradient = np.array([(int(stage) + 1) * (2.0 * int(microbatch) + 1)]) if kind == "B" else 0.0
    return to, None if to is None else 1.0, gradient


toy_work.__name__ = "work"  # examples show this name, as the signature does
EXAMPLES = (
    Example((["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"], toy_work, []), [np.array([4.0]), np.array([8.0])]),
    Example(("1B1", 1.0), ("0B1", 1.0, np.array([6.0])), of=1, name="work"),
)
TWISTS = (
    Twist(
        "last-device-first",
        "the lines of `orders` go from the last device to device 0: the first line belongs to the last device",
        given={0: REVERSED},
    ),
    Twist(
        "delivered",
        "the third argument names the operations whose messages arrive: all other messages are lost",
        given={2: Map(_other_names, _other_names)},
    ),
    Twist("message-first", "the arguments of `work` stand in the other order: `work(message, name)`", given={1: FunctionMap(order=(1, 0))}),
    Twist(
        "means",
        "the function returns the mean over the microbatches in place of the sum: divide each sum by the number of microbatches in the "
        "lines",
        result=each_number(lambda value, case: value / _microbatches(case), lambda value, case: value * _microbatches(case)),
    ),
    Twist("gradient-first", "`work` returns `(gradient, to, output)`", given={1: FunctionMap(result=exchanged((2, 0, 1)))}),
    Twist(
        "lists-of-names", 'each line of `orders` is a list of names, such as `["0F0", "0B0"]`, and no text', given={0: each(SPLIT_WORDS)}
    ),
)
