"""The coding task ("build") of lab 13: split the backwards of any order, and run the weight gradients late.

This file has the cases, the judge, the known mistakes, the examples and the changes of the task ("twists").
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Orders
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.drawing import Drawing, first_differences, marked_by
from hybridlab.course.checking.maps import REVERSED, SPLIT_WORDS, each, operations, shifted, words
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.errors import InvalidSchedule
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

COSTS = Costs(forward=1, backward=2)
FIRST = [("gpipe", 1, 1), ("1f1b", 1, 3), ("1f1b", 2, 3), ("eager-1f1b", 3, 4), ("interleaved", 2, 2), ("1f1b", 4, 2)]
Pieces = Callable[[list[str], list[str], int], list[str]]  # takes operations without W, the W and `late`, and returns a wrong order


def orders_to_split(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: orders of the library with full backwards, and how late each device runs its weight gradients.

    The first order has one operation of each kind. The last case gives ZB-H1, which is drawn if all cases are right.
    """
    names = ("1f1b", "eager-1f1b", "gpipe", "interleaved", "hanayo")
    drawn = [(str(rng.choice(names)), int(rng.integers(2, 7)), int(rng.integers(1, 3))) for _ in range(14)]
    sizes = sorted(((name, devices, groups * devices) for name, devices, groups in drawn), key=lambda size: size[1] * size[2])
    for name, devices, microbatches in [*FIRST, *sizes]:
        yield _case(name, microbatches, rng.integers(0, microbatches + 2, devices).tolist())
    yield _case("1f1b", 8, [0, 1, 2, 3])


def _case(name: str, microbatches: int, late: list[int]) -> Case:
    devices = len(late)
    return Case((_lines_of(name, devices, microbatches), late), f"{name} on {counted(devices, 'device')} with late = {late}")


def _lines_of(name: str, devices: int, microbatches: int) -> list[str]:
    return [" ".join(map(str, order)) for order in build(name, devices, microbatches).orders]


def _cut(pieces: Pieces) -> Callable[[list[str], list[int]], list[str]]:
    """Return a function of lines and ``late``. For each line, ``pieces`` puts the weight gradients among the other operations."""

    def split_backwards(lines: list[str], late: list[int]) -> list[str]:
        rows = (re.sub("B", "I", line).split() for line in lines)
        return [
            " ".join(pieces(row, [op.replace("I", "W") for op in row if "I" in op], wait)) for row, wait in zip(rows, late, strict=True)
        ]

    return split_backwards


def _delayed(by: int = 0, newest: bool = False, before: bool = False, rest: int = 1) -> Pieces:
    """Return pieces that run each weight gradient after ``late + by`` further input gradients, and the rest at the end.

    With ``newest``, the weight gradient that waits for the shortest time runs first. With ``before``, a weight gradient runs before the
    input gradient, not after it. ``rest`` is 1, 0 or -1: the weight gradients that are left run in order, not at all, or in reverse order.
    """

    def pieces(row: list[str], weights: list[str], late: int) -> list[str]:
        line: list[str] = []
        waiting: list[str] = []
        for op in row:
            if "I" in op:
                waiting.append(op.replace("I", "W"))
                turn = [waiting.pop(-1 if newest else 0)] if len(waiting) > max(late + by, 0) else []
                line += [*turn, op] if before else [op, *turn]
            else:
                line.append(op)
        return line + waiting[::rest] if rest else line

    return pieces


goal_lines = _cut(_delayed())


@lru_cache(64)  # the public cases are judged many times
def _goal_of(lines: tuple[str, ...], late: tuple[int, ...]) -> Timeline:
    return simulate(Schedule.parse(goal_lines(list(lines), list(late))), COSTS)


def judge_split(orders: Orders, lines: Sequence[str], late: Sequence[int]) -> Feedback:
    """Return the feedback on the order of each device: it must be the one that the task describes, operation by operation."""
    if len(orders) != len(lines):
        return wrong("another-size", f"the result has {counted(len(orders), 'line')}, not one for each of {counted(len(lines), 'device')}")
    goal = _goal_of(tuple(lines), tuple(late))
    drawing = Drawing(orders, COSTS, goal, first_differences(orders, goal))
    full = next((op for order in orders for op in order if op.kind is Kind.B), None)
    if full:
        return replace(
            wrong("full-backward", f"{full} is a full backward: write its input gradient I and its weight gradient W"), drawing=drawing
        )
    if orders == goal.schedule.orders:
        return replace(right(), drawing=Drawing(orders, COSTS))
    try:
        Schedule("yours", orders)
    except InvalidSchedule as why:
        return replace(wrong(why.code, str(why)), drawing=replace(drawing, marked=marked_by(why)))
    return replace(wrong("another-order", _first_difference(orders, goal.schedule.orders, late)), drawing=drawing)


def _first_difference(orders: Orders, wanted: Sequence[Sequence[Op]], late: Sequence[int]) -> str:
    device = next(device for device, order in enumerate(wanted) if orders[device] != order)
    mine, goal = next(pair for pair in zip(orders[device], wanted[device], strict=True) if pair[0] != pair[1])
    return f"device {device} runs {mine} where the task asks for {goal}: late[{device}] is {late[device]}"


MISTAKES = (
    KnownMistake(
        "late-not-used",
        "your weight gradients run directly after their input gradients on all devices: use `late`",
        _cut(lambda row, weights, late: _delayed()(row, weights, 0)),
    ),
    KnownMistake(
        "all-at-the-end",
        "your weight gradients all run at the end of a line: run one as soon as late[d] more input gradients have run",
        _cut(lambda row, weights, late: row + weights),
    ),
    KnownMistake(
        "one-too-late",
        "your weight gradients run one input gradient too late: with late[d] = 0 one runs directly after its own input gradient",
        _cut(_delayed(by=1)),
        under={"counted-from-1": "your weight gradients run one input gradient too late"},
    ),
    KnownMistake(
        "one-too-early",
        "your weight gradients run one input gradient too early: late[d] counts the input gradients after its own",
        _cut(_delayed(by=-1)),
        under={"counted-from-1": None},
    ),
    KnownMistake(
        "newest-first",
        "your devices run the weight gradient of the newest input gradient: take the one that waits for the longest time",
        _cut(_delayed(newest=True)),
    ),
    KnownMistake(
        "before-the-input-gradient",
        "your weight gradients run before the input gradient after which they belong",
        _cut(_delayed(before=True)),
    ),
    KnownMistake(
        "rest-is-missing",
        "the weight gradients that are left at the end of a line are missing",
        _cut(_delayed(rest=0)),
    ),
    KnownMistake(
        "rest-reversed",
        "the weight gradients that are left at the end of a line run in reverse order: the oldest one comes first",
        _cut(_delayed(rest=-1)),
    ),
    KnownMistake(
        "late-of-device-0",
        "all your devices use late[0]: device d uses late[d]",
        lambda lines, late: goal_lines(lines, [late[0]] * len(lines)),
        under={"late-from-the-last": None},
    ),
)


def _exchange_letters(word: str, case: tuple[Any, ...]) -> str:
    return word.translate(str.maketrans("IWiw", "WIwi"))


OTHER_LETTERS = words(_exchange_letters, _exchange_letters)
MICROBATCH_FIRST = operations(lambda stage, microbatch, case: (microbatch, stage), lambda microbatch, stage, case: (stage, microbatch))

EXAMPLES = (Example((["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"], [0, 1]), ["0F0 0F1 0I0 0W0 0I1 0W1", "1F0 1I0 1F1 1I1 1W0 1W1"]),)
TWISTS = (
    Twist("other-letters", "the letters are exchanged: an input gradient is written W, and a weight gradient I", result=OTHER_LETTERS),
    Twist("reversed-lines", "text d of the result has the operations of device K-1-d", result=REVERSED, drawn=True),
    Twist(
        "microbatch-first",
        "in the result an operation is written microbatch, letter, stage: 3F0 is the forward of microbatch 3 on stage 0",
        result=MICROBATCH_FIRST,
    ),
    Twist("late-from-the-last", "`late` begins with the last device: late[d] is for device K-1-d", given={1: REVERSED}),
    Twist(
        "counted-from-1",
        "`late` counts from 1: with late[d] = 1 a weight gradient runs directly after its own input gradient",
        given={1: shifted(1)},
    ),
    Twist("late-first", "the function is called as split_backwards(late, lines)", order=(1, 0)),
    Twist(
        "operations-apart",
        "`lines` has a list of operations for each device, such as ['0F0', '0B0'], not a text",
        given={0: each(SPLIT_WORDS)},
    ),
)
