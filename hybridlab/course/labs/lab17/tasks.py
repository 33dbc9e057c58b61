"""Lab 17, schedules of your own: the tasks and the feedback on their answers."""

from dataclasses import replace
from typing import Any

from hybridlab.course.checking.answers import Orders, require_orders
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, PartialCredit, right, task, wrong
from hybridlab.course.checking.drawing import Drawing, marked_by
from hybridlab.course.labs.lab17.bounds import EXAMPLES, MISTAKES, TWISTS, Times, judge_bound, read_time, steps_to_bound
from hybridlab.course.puzzles import PUZZLES, YOUR_ORDER, Puzzle
from hybridlab.errors import InvalidSchedule
from hybridlab.schedule import Op, Schedule


def _prompt(name: str) -> str:
    puzzle = PUZZLES[name]
    sizes = f"{puzzle.devices} devices and {puzzle.microbatches} microbatches"
    room = f"holds at most {puzzle.memory} activations on each device"
    return f"write an order of {sizes}, one line a device, that {room} and is as short as the shortest order"


def _partial_credit(name: str) -> list[PartialCredit]:
    """Return the partial credit of a puzzle. An order that can run earns one share of the points, and each further goal one equal share."""
    _, _, *higher = PUZZLES[name].goals
    share = 1 / (1 + len(higher))
    reached = ["complete and able to run", *(goal.words.removeprefix("is ") for goal in higher)]
    return [PartialCredit(reached[place], share * (place + 1), (f"misses-{goal.name}",)) for place, goal in enumerate(higher)]


@task("lab17.t1", title="Two devices", prompt=_prompt("two-devices"), points=2, partial_credit=_partial_credit("two-devices"))
def two_devices(answer: Any) -> Feedback:
    """Judge an order for the first puzzle."""
    return _judge_order(answer, PUZZLES["two-devices"])


@task("lab17.t2", title="Less memory", prompt=_prompt("little-memory"), points=3, partial_credit=_partial_credit("little-memory"))
def less_memory(answer: Any) -> Feedback:
    """Judge an order for the second puzzle."""
    return _judge_order(answer, PUZZLES["little-memory"])


@task(
    "lab17.t3",
    title="One activation more",
    prompt=_prompt("one-more-activation"),
    points=4,
    partial_credit=_partial_credit("one-more-activation"),
)
def one_activation_more(answer: Any) -> Feedback:
    """Judge an order for the third puzzle."""
    return _judge_order(answer, PUZZLES["one-more-activation"])


@task(
    "lab17.t4",
    title="Unequal devices",
    prompt=_prompt("unequal-devices"),
    points=5,
    partial_credit=_partial_credit("unequal-devices"),
)
def unequal_devices(answer: Any) -> Feedback:
    """Judge an order for the fourth puzzle."""
    return _judge_order(answer, PUZZLES["unequal-devices"])


def _judge_order(answer: Any, puzzle: Puzzle) -> Feedback:
    """Return the feedback on an order: the goals that the order reaches, and what is missing for the next goal."""
    orders = require_orders(answer)
    standing = puzzle.judge("\n".join(f"device {device}: {' '.join(map(str, order))}" for device, order in enumerate(orders)))
    drawing = Drawing(orders, puzzle.costs, marked=standing.too_many or _marked_faults(orders))
    if orders == require_orders(puzzle.start):
        feedback = wrong("unchanged", f"your order is the one that the puzzle starts with: {standing.sentence}")
    elif standing.code == "solved":
        feedback = right(standing.sentence)
    else:
        feedback = wrong(standing.code, standing.sentence)
    return replace(feedback, drawing=drawing)


def _marked_faults(orders: Orders) -> tuple[Op, ...]:
    """Return the operations that the error marks as wrong if ``orders`` cannot run. For orders that can run, the result is empty."""
    try:
        Schedule(YOUR_ORDER, orders)
    except InvalidSchedule as why:
        return marked_by(why)
    return ()


@build_task(
    "lab17.t5",
    title="Build a lower bound",
    prompt="write a function least_time(M, cap, F, B, C) that returns a time in ms that no order within the memory can beat",
    points=6,
    signature="least_time(M, cap, F, B, C)",
    cases=steps_to_bound,
    reads=read_time,
    mistakes=MISTAKES,
    twists=TWISTS,
    examples=EXAMPLES,
    lesson="an order that is as long as your bound is the shortest, and needs no other proof",
)
def a_lower_bound(answer: float, microbatches: int, cap: int, forward: Times, backward: Times, latency: float) -> Feedback:
    """Judge the bound for one case."""
    return judge_bound(answer, microbatches, cap, forward, backward, latency)
