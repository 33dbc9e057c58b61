"""The coding task ("build") ``slowdown`` of lab 14: cases, judge, known mistakes, examples and changed tasks ("twists").

The student's function gets a step without latency, the same step with latency, and a critical path of the step with latency. It returns
how many ms longer the step is because of the latency, and the messages on the path.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from hybridlab.checks import counted, distinct_texts, short_repr
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import near, plain_values, require_number
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.maps import REVERSED, Map, at, each, like, scaled
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.labs.lab12.critical_path import BEGINS_AT, Rows, RowsOfExample, each_row
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate

Message = tuple[str, str]  # the operation whose output is sent, and the operation on another device that needs this output
Slowed = tuple[float, list[Message]]  # how many ms longer the step is, and the messages on the path
Step = tuple[Rows, Rows, list[str]]  # rows without and with latency, and a critical path of the rows with latency
ROUNDING = 1e-6  # ms; smaller differences come from rounding
# The codes of the faults in the messages. With each of them, the time in the answer is right.
PATH_FAULTS = (
    *("all-neighbours", "stages-for-devices", "forwards-alone", "last-message-first", "receiver-first"),
    *("no-message", "missing-message", "wrong-order"),
)

# Schedule, devices, microbatches, chunks, latency in ms
RUNS = [
    ("1f1b", 1, 1, 1, 1),
    ("1f1b", 2, 1, 1, 0.5),
    ("1f1b", 2, 2, 1, 0),
    ("gpipe", 2, 2, 1, 3),
    ("1f1b", 1, 3, 1, 2),
    ("interleaved", 1, 2, 2, 4),  # neighbours on the path with different stages, and no message
    ("1f1b", 2, 3, 1, 2),
    ("hanayo", 2, 2, 2, 3),  # a turn: two stages of the path follow each other on one device
    ("1f1b", 3, 4, 1, 1.5),
    ("zb-h1", 3, 4, 1, 2),
    ("eager-1f1b", 3, 6, 1, 1.5),
    ("interleaved", 2, 4, 2, 0.5),
    ("1f1b", 4, 7, 1, 2),
    ("hanayo", 4, 4, 2, 6.5),
    ("gpipe", 4, 5, 1, 0.5),
    ("hanayo", 3, 6, 2, 3),
    ("looped-bfs", 3, 6, 2, 1),
    ("eager-1f1b", 4, 8, 1, 4),
    ("1f1b", 5, 9, 1, 6),
    ("interleaved", 4, 8, 2, 7),
]


def slowed_step(name: str, sizes: tuple[int, int, int], forward: Any, backward: Any, latency: float) -> Step:
    """Return the step of a schedule without and with latency, and a critical path of the step with latency.

    >>> slowed_step("1f1b", (2, 1, 1), 1, 2, 0.5)[-1]
    ['0F0', '1F0', '1B0', '0B0']
    """
    free, late = (simulate(build(name, *sizes), Costs(forward=forward, backward=backward, p2p=p2p)) for p2p in (0.0, latency))
    return free.to_rows(), late.to_rows(), [str(operation.op) for operation in late.breakdown().critical_path]


def slowed_steps_of_many_kinds(rng: np.random.Generator) -> Iterator[Case]:
    """Yield steps from one device and one microbatch up. The devices have different speeds in two of three steps."""
    for place, (name, devices, microbatches, chunks, latency) in enumerate(RUNS):
        forward, backward = (rng.integers(2, 9, devices if place % 3 else 1) / 2 for _ in range(2))
        times = (forward * np.ones(devices), backward * np.ones(devices))
        each = f" with {chunks} chunks each" if chunks > 1 else ""
        sizes = f"{counted(devices, 'device')}{each} and {counted(microbatches, 'microbatch')}"
        words = f"{REGISTRY[name].title} on {sizes}, latency {latency:g} ms"
        yield Case(slowed_step(name, (devices, microbatches, chunks), *times, float(latency)), words)


def read_slowed(result: Any) -> Slowed:
    """Return the student's result as two values: how many ms longer the step is, and the messages on the path."""
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


def judge_slowed(slowed: Slowed, free: Rows, late: Rows, path: list[str]) -> Feedback:
    """Judge the two values of the student's result for one step: the ms by which the latency lengthens the step, and the messages."""
    longer, messages = slowed
    if not near(longer, end_of(late) - end_of(free), ROUNDING):
        steps = f"the step takes {end_of(free):g} ms without latency and {end_of(late):g} ms with latency"
        _, found = distinct_texts(end_of(late) - end_of(free), longer)
        return wrong("wrong-slowdown", f"{steps}: it is not {found} ms longer")
    wanted = _between(late, path, "device")
    if messages == wanted:
        return right()
    if messages == wanted[::-1]:
        return wrong("last-message-first", "your list goes from the end of the path to its begin: give the earliest message first")
    if messages == [(sender, receiver) for receiver, sender in wanted]:
        return wrong("receiver-first", "each message has its receiver first: give (sender, receiver)")
    for sender, receiver in messages:
        if (sender, receiver) in pairwise(path) and (sender, receiver) not in wanted:
            return wrong("no-message", f"{sender} and {receiver} run on one device: no message is sent between them")
        if (sender, receiver) not in wanted:
            return wrong(
                "no-message", f"{receiver} does not follow {sender} on the path, so no message of the path goes from one to the other"
            )
    missing = next((f"the one from {sender} to {receiver}" for sender, receiver in wanted if (sender, receiver) not in messages), None)
    if missing:
        return wrong("missing-message", f"your list lacks a message of the path: {missing}")
    return wrong("wrong-order", "your list has the messages of the path: give each of them once, in the order of the path")


def end_of(rows: Rows) -> float:
    """Return the end of the last operation in ms.

    >>> end_of([{"end": 3.0}, {"end": 2.0}])
    3.0
    """
    return float(max(row["end"] for row in rows))


def _between(rows: Rows, path: list[str], places: str) -> list[Message]:
    """Return the neighbours on the path for which the column ``places`` of their rows differs."""
    place_of = {row["op"]: row[places] for row in rows}
    return [(before, op) for before, op in pairwise(path) if place_of[before] != place_of[op]]


def _program(
    longer: Callable[[Rows, Rows, list[str]], float] = lambda free, late, path: end_of(late) - end_of(free),
    messages: Callable[[Rows, list[str]], list[Message]] = lambda late, path: _between(late, path, "device"),
) -> Callable[..., Slowed]:
    """Return a program for the task. Each argument replaces one of its two results by one with a known mistake."""
    return lambda free, late, path: (longer(free, late, path), messages(late, path))


def _times_of_messages(free: Rows, late: Rows, path: list[str]) -> float:
    row_of = {row["op"]: row for row in late}
    return float(sum(row_of[receiver]["start"] - row_of[sender]["end"] for sender, receiver in _between(late, path, "device")))


def _work_of_path(free: Rows, late: Rows, path: list[str]) -> float:
    row_of = {row["op"]: row for row in late}
    return float(sum(row_of[op]["end"] - row_of[op]["start"] for op in path))


MISTAKES = (
    KnownMistake(
        "whole-step",
        "your time is the whole step with latency: subtract the step without latency",
        _program(lambda free, late, path: end_of(late)),
    ),
    KnownMistake(
        "messages-times-latency",
        "your time is that of all messages on the path. Without latency another path can be the longest: subtract the step without latency",
        _program(_times_of_messages),
    ),
    KnownMistake(
        "work-of-the-path",
        "your time is the work on the path: the time by which the step is longer is the difference of the two steps",
        _program(_work_of_path),
    ),
    KnownMistake(
        "all-neighbours",
        "your list has all neighbours on the path: two operations of one device need no message between them",
        _program(messages=lambda late, path: [*pairwise(path)]),
    ),
    KnownMistake(
        "stages-for-devices",
        "your list has all neighbours with different stages: with chunks two stages can be on one device, and then no message is sent",
        _program(messages=lambda late, path: _between(late, path, "stage")),
    ),
    KnownMistake(
        "forwards-alone",
        "your list has only the activations on the path: gradients are messages as well",
        _program(messages=lambda late, path: [message for message in _between(late, path, "device") if "F" in message[0]]),
    ),
)


def _example(sizes: tuple[int, int, int], forward: Any, backward: Any, latency: float, result: Slowed) -> Example:
    free, late, path = slowed_step("1f1b", sizes, forward, backward, latency)
    return Example((RowsOfExample(free), RowsOfExample(late), path), result)


EXAMPLES = (_example((2, 1, 1), 1, 2, 0.5, (1.0, [("0F0", "1F0"), ("1B0", "0B0")])),)

_WHERE = Map(  # the places of operations in the rows with latency
    lambda path, case: like(path, [[row["op"] for row in case[1]].index(op) for op in path]),
    lambda places, case: like(places, [case[1][place]["op"] for place in places]),
)
_LENGTHS = each_row(lambda row, rows: {"end": row["end"] - row["start"]})
# A path from the end has the pairs of its messages the other way round and in the other order. So these three twists are not combined.
TWISTS = (
    Twist(
        "receiver-first",
        "a message is (receiver, sender): the operation that needs the value stands first",
        result=at(1, each(REVERSED)),
        about="order",
    ),
    Twist(
        "last-message-first",
        "the messages stand in the list from the last one of the path to the first",
        result=at(1, REVERSED),
        about="order",
    ),
    Twist("path-from-the-end", "`path` runs from the last operation back to the first", given={2: REVERSED}, about="order"),
    Twist("places", "`path` has the place of each operation in `late`, counted from 0", given={2: _WHERE}),
    Twist(
        "lengths",
        'row["end"] is not the time at which the operation ends, but how long it takes',
        given={0: _LENGTHS, 1: _LENGTHS},
        about="times",
    ),
    Twist(
        "late-begin",
        f"the step in `late` begins at {BEGINS_AT} ms, and the step in `free` at 0",
        given={1: each_row(lambda row, rows: {"start": row["start"] + BEGINS_AT, "end": row["end"] + BEGINS_AT})},
        about="times",
    ),
    Twist("seconds", "`longer` is in seconds, and the times in the rows are in ms", result=at(0, scaled(0.001))),
)
