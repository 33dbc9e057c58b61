"""The coding task ("build") ``slowdown`` of lab 14: cases, judge, known mistakes, examples and changed tasks ("twists").

The student's function returns how many ms longer a step is because of the latency, and the messages on a critical path.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from hybridlab.checks import counted, distinct_texts, short_repr
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import near, plain_values, require_number, require_orders
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.maps import REVERSED, at, each
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.labs.lab02.simulator import CLOCK_TWISTS, Times, can_run, orders_of_many_kinds
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op, Schedule
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate

Message = tuple[str, str]  # the operation whose output is sent, and the operation on another device that needs this output
Slowed = tuple[float, list[Message]]  # how many ms longer the step is, and the messages on a critical path
# Schedules that hide a part of the latency: name, devices, microbatches and latency in ms.
HIDING = [("eager-1f1b", 3, 6, 1.5), ("eager-1f1b", 4, 8, 4.0), ("1f1b", 4, 7, 2.0), ("gpipe", 4, 5, 0.5), ("1f1b", 5, 9, 6.0)]
ROUNDING = 1e-6  # ms; smaller differences come from rounding
# The codes of the faults of a path. With each of them, the time in the answer is right.
PATH_FAULTS = ("no-message", "has-slack", "late-begin", "gap", "ends-early", "no-messages", "last-message-first", "receiver-first")


def orders_that_run(rng: np.random.Generator) -> Iterator[Case]:
    """Yield orders that can run, each with times and a latency in ms.

    The first orders are those of lab 2's coding task. The last ones belong to schedules that hide a part of the latency.
    """
    yield from (case for case in orders_of_many_kinds(rng) if can_run(case.arguments[0]))
    for name, devices, microbatches, latency in HIDING:
        forward, backward = (rng.integers(2, 9, devices) / 2 for _ in range(2))
        times = (forward.tolist(), backward.tolist(), latency)
        lines = [line.partition(": ")[2] for line in str(build(name, devices, microbatches)).splitlines()]
        size = f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')}"
        yield Case((lines, *times), f"{REGISTRY[name].title} of {size}, forward {times[0]}, backward {times[1]}, latency {latency:g}")


@dataclass(frozen=True)
class MessageRun:
    """The run of an order: when each operation runs, and what each operation waits for.

    ``times`` has the start and the end of each operation in ms. ``before`` has, for each operation, the operation before it on its device.
    """

    times: Times
    before: dict[str, str]
    latency: float  # ms

    @classmethod
    def of(cls, orders: Sequence[str], forward: Sequence[float], backward: Sequence[float], latency: float) -> "MessageRun":
        """Return the run of an order as the library simulates it. The arguments are those of the student's function."""
        before = {op: earlier for line in orders for earlier, op in pairwise(line.split())}
        return cls(_times_of(tuple(orders), tuple(forward), tuple(backward), latency), before, latency)

    @property
    def makespan(self) -> float:
        """The end of the last operation in ms."""
        return max(end for _, end in self.times.values())

    def sender(self, op: str) -> str:
        """Return the operation on another device whose output ``op`` needs. Return "" if ``op`` needs no output of another device."""
        kind, stage, microbatch = Op.parse(op)
        other = f"{stage - 1}F{microbatch}" if kind == "F" else f"{stage + 1}B{microbatch}"
        return other if other in self.times else ""

    def arrival(self, op: str) -> float:
        """Return the time in ms when the message for ``op`` arrives."""
        return self.times[self.sender(op)][1] + self.latency

    def without_wait(self, op: str) -> list[str]:
        """Return ``op`` and, going back in time, the operations that its device runs before ``op`` without a wait between them."""
        found = [op]
        while (before := self.before.get(found[-1])) and near(self.times[before][1], self.times[found[-1]][0], ROUNDING):
            found.append(before)
        return found

    def from_zero(self, op: str) -> bool:
        """Return whether the device of ``op`` works from 0 ms to the end of ``op`` without a wait."""
        return near(self.times[self.without_wait(op)[-1]][0], 0.0, ROUNDING)

    def last(self) -> Iterator[str]:
        """Yield the operations that end at the same time as the step."""
        makespan = self.makespan
        yield from (op for op, (_, end) in self.times.items() if near(end, makespan, ROUNDING))

    def messages(self) -> list[Message]:
        """Return all messages of the run, in the order of their arrival."""
        return [(self.sender(op), op) for op in sorted(filter(self.sender, self.times), key=self.arrival)]


@cache
def _times_of(orders: tuple[str, ...], forward: tuple[float, ...], backward: tuple[float, ...], latency: float) -> Times:
    costs = Costs(forward=forward, backward=backward, p2p=latency)
    timeline = simulate(Schedule("the order", require_orders(list(orders))), costs)
    spans = zip(timeline.start.tolist(), timeline.end.tolist(), strict=True)
    return dict(zip(map(str, timeline.ops), spans, strict=True))


def read_slowed(result: Any) -> Slowed:
    """Return the student's result as two values: how many ms longer the step is, and the messages on a critical path."""
    values = plain_values(result)
    wanted = "two things: a time in ms, and a list of messages such as [('0F0', '1F0')]"
    if not isinstance(values, list) or len(values) != 2:
        raise HybridLabError(f"the function returns {wanted}, not {short_repr(values)}", "wrong-shape")
    longer, messages = values
    if isinstance(longer, list):
        raise HybridLabError(f"the function returns {wanted}: the time comes first", "exchanged")
    if type(messages) is not list:  # a set has no order
        raise HybridLabError(f"the messages are a list in the order of the path, not {short_repr(messages)}", "not-a-list")
    read = []
    for message in messages:
        if not isinstance(message, list) or len(message) != 2 or not all(isinstance(op, str) for op in message):
            raise HybridLabError(f"a message is a pair of operations, such as ('0F0', '1F0'), not {short_repr(message)}", "not-a-message")
        read.append((message[0], message[1]))
    return require_number(longer, "the time by which the step is longer"), read


def judge_slowed(slowed: Slowed, orders: list[str], forward: list[float], backward: list[float], latency: float) -> Feedback:
    """Judge the two values of the student's result for one order: the ms by which the latency lengthens the step, and the messages."""
    longer, messages = slowed
    mine = MessageRun.of(orders, forward, backward, latency)
    bare = MessageRun.of(orders, forward, backward, 0.0).makespan  # without latency, in ms
    if not near(longer, mine.makespan - bare, ROUNDING):
        steps = f"the step takes {bare:g} ms without latency and {mine.makespan:g} ms with latency"
        _, found = distinct_texts(mine.makespan - bare, longer)
        return wrong("wrong-slowdown", f"{steps}: it is not {found} ms longer")
    unknown = next((op for message in messages for op in message if op not in mine.times), None)
    if unknown is not None:
        return wrong("unknown-operation", f"{short_repr(unknown)} is not an operation of the orders")
    feedback = _judge_path(mine, messages)
    if feedback.passed:
        return feedback
    if _judge_path(mine, messages[::-1]).passed:
        return wrong(
            "last-message-first",
            "your list goes from the end of the step back to 0 ms: give the messages in the order of the path, the earliest first",
        )
    if _judge_path(mine, [(sender, receiver) for receiver, sender in messages]).passed:
        return wrong("receiver-first", "each message has its receiver first: give (sender, receiver)")
    return feedback


def _judge_path(run: MessageRun, messages: Sequence[Message]) -> Feedback:
    """Judge whether ``messages`` are all messages of one chain of operations that goes from 0 ms to the end of the step without a wait."""
    if not messages and not any(map(run.from_zero, run.last())):
        hint = "go back from the operation that ends last, and find what each operation has waited for"
        return wrong("no-messages", f"your path has no messages, but no device works without a wait from 0 ms to the end: {hint}")
    before = ""
    for sender, receiver in messages:
        if run.sender(receiver) != sender:
            needs = f"{receiver} needs {run.sender(receiver) or 'no message'}"
            return wrong("no-message", f"from {sender} to {receiver} there is no message between devices: {needs}")
        arrives, starts = run.arrival(receiver), run.times[receiver][0]
        if not near(arrives, starts, ROUNDING):
            late = f"the message from {sender} arrives at {arrives:g} ms, and {receiver} starts at {starts:g} ms"
            return wrong("has-slack", f"{late}: {receiver} does not wait for this message, so the message is not on the path")
        if not before and not run.from_zero(sender):
            return wrong("late-begin", f"your path begins at {sender}, but its device has waited before {sender}: for which message?")
        if before and before not in run.without_wait(sender):
            return wrong("gap", f"after {before} your path goes on at {sender}, but no chain of operations without a wait joins the two")
        before = receiver
    if messages and not any(before in run.without_wait(op) for op in run.last()):
        ends = f"the step ends at {run.makespan:g} ms, but no chain of operations without a wait goes from {before} to its end"
        return wrong("ends-early", f"{ends}: a message is missing at the end of your path")
    return right()


def _program(answer: Callable[[MessageRun, MessageRun, list[Message]], Slowed]) -> Callable[..., Slowed]:
    """Return a program with a known mistake: ``answer`` takes the runs with and without latency, and a critical path."""

    def result(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Slowed:
        late, bare = (MessageRun.of(orders, forward, backward, each) for each in (latency, 0.0))
        return answer(late, bare, _path_of(late))

    return result


def _path_of(run: MessageRun) -> list[Message]:
    op, path = next(run.last()), []
    while run.times[op][0] > 0:
        if run.sender(op) and near(run.arrival(op), run.times[op][0], ROUNDING):
            path.append((run.sender(op), op))
            op = run.sender(op)
        else:
            op = run.before[op]
    return path[::-1]


def _longer(late: MessageRun, bare: MessageRun) -> float:
    return late.makespan - bare.makespan


def _waited_for(run: MessageRun) -> list[Message]:
    """Return all messages for which a device waits, in the order of their arrival."""
    ends = {op: run.times[before][1] for op, before in run.before.items()}
    waits = [message for message in run.messages() if run.arrival(message[1]) > ends.get(message[1], 0.0)]
    return sorted(waits, key=lambda message: run.arrival(message[1]))


MISTAKES = (
    KnownMistake(
        "whole-step",
        "your time is the whole step with latency: subtract the step without latency",
        _program(lambda late, bare, path: (late.makespan, path)),
    ),
    KnownMistake(
        "messages-times-latency",
        "your time is that of all messages on the path. Without latency another path can be the longest: subtract the step without latency",
        _program(lambda late, bare, path: (len(path) * late.latency, path)),
    ),
    KnownMistake(
        "once-there-and-back",
        "your time is that of 2(K-1) messages, the way of one microbatch there and back: an order can wait for more messages",
        _program(lambda late, bare, path: (2 * max(Op.parse(op).stage for op in late.times) * late.latency, path)),
    ),
    KnownMistake(
        "all-messages",
        "your list has all messages of the step: most messages arrive while their device is still busy, and are not on the path",
        _program(lambda late, bare, path: (_longer(late, bare), late.messages())),
    ),
    KnownMistake(
        "every-wait",
        "your list has all messages that a device waits for: not every wait of a device delays the end of the step",
        _program(lambda late, bare, path: (_longer(late, bare), _waited_for(late))),
    ),
    KnownMistake(
        "forwards-alone",
        "your list has only the activations on the path: gradients are messages as well",
        _program(lambda late, bare, path: (_longer(late, bare), [each for each in path if "F" in each[0]])),
    ),
    KnownMistake(
        "path-without-latency",
        "your path is that of the run without latency: take the times of the run with latency",
        _program(lambda late, bare, path: (_longer(late, bare), _path_of(bare))),
    ),
)


EXAMPLES = (
    Example((["0F0 0B0", "1F0 1B0"], [1, 1], [2, 2], 0.5), (1.0, [("0F0", "1F0"), ("1B0", "0B0")])),
    Example(
        (["0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"], [10, 10], [20, 30], 10),
        (30, [("0F0", "1F0"), ("1B0", "0B0"), ("0F2", "1F2"), ("1B2", "0B2")]),
    ),
)
TWISTS = (
    *(twist for twist in CLOCK_TWISTS if twist.name in ("slow-device-0", "slow-last-device", "long-backwards", "slow-messages")),
    Twist(
        "receiver-first", "a message is (receiver, sender): the operation that needs the value stands first", result=at(1, each(REVERSED))
    ),
    Twist(
        "last-message-first",
        "the messages stand in the list from the last one of the path to the first",
        result=at(1, REVERSED),
    ),
)
