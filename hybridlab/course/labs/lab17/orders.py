"""The puzzles of the labs 17 and 19 as tasks: the prompt, the partial credit, and the feedback on a student's order."""

from dataclasses import replace
from typing import Any

from hybridlab.course.checking.answers import Orders, require_orders
from hybridlab.course.checking.checking import Feedback, PartialCredit, right, wrong
from hybridlab.course.checking.drawing import Drawing, marked_by
from hybridlab.course.puzzles import PUZZLES, YOUR_ORDER
from hybridlab.errors import InvalidSchedule
from hybridlab.schedule import Op, Schedule


def prompt_of_puzzle(name: str) -> str:
    """Return what to hand in for a puzzle, in one sentence."""
    puzzle = PUZZLES[name]
    sizes = f"{puzzle.devices} devices and {puzzle.microbatches} microbatches"
    room = f"holds at most {puzzle.memory} activations on each device"
    return f"write an order of {sizes}, one line a device, that {room} and is as short as the shortest order"


def credit_of_puzzle(name: str) -> list[PartialCredit]:
    """Return the partial credit of a puzzle. An order that can run earns one share of the points, and each further goal one equal share."""
    _, _, *higher = PUZZLES[name].goals
    share = 1 / (1 + len(higher))
    reached = ["complete and able to run", *(goal.words.removeprefix("is ") for goal in higher)]
    return [PartialCredit(reached[place], share * (place + 1), (f"misses-{goal.name}",)) for place, goal in enumerate(higher)]


def judge_puzzle(answer: Any, name: str) -> Feedback:
    """Return the feedback on an order: the goals of the puzzle that the order reaches, and what is missing for the next goal."""
    orders, puzzle = require_orders(answer), PUZZLES[name]
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
