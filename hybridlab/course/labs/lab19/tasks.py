"""Lab 19, the shortest orders with split backwards: the tasks and the feedback on their answers."""

from typing import Any

from hybridlab.course.checking.checking import Feedback, task
from hybridlab.course.labs.lab17.orders import judge_order, partial_credit, prompt


@task(
    "lab19.t1",
    title="One activation more",
    prompt=prompt("one-more-activation"),
    points=4,
    partial_credit=partial_credit("one-more-activation"),
)
def one_activation_more(answer: Any) -> Feedback:
    """Judge an order for the puzzle with one activation more than ZB-H1 needs."""
    return judge_order(answer, "one-more-activation")


@task(
    "lab19.t2",
    title="Unequal devices",
    prompt=prompt("unequal-devices"),
    points=5,
    partial_credit=partial_credit("unequal-devices"),
)
def unequal_devices(answer: Any) -> Feedback:
    """Judge an order for the puzzle with unequal devices."""
    return judge_order(answer, "unequal-devices")
