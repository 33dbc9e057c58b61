"""Lab 17, schedules of your own: the tasks and the feedback on their answers."""

from typing import Any

from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, task
from hybridlab.course.labs.lab17.bounds import EXAMPLES, MISTAKES, TWISTS, Times, judge_bound, read_time, steps_to_bound
from hybridlab.course.labs.lab17.orders import credit_of_puzzle, judge_puzzle, prompt_of_puzzle


@task("lab17.t1", title="Two devices", prompt=prompt_of_puzzle("two-devices"), points=2, partial_credit=credit_of_puzzle("two-devices"))
def two_devices(answer: Any) -> Feedback:
    """Judge an order for the puzzle with two devices."""
    return judge_puzzle(answer, "two-devices")


@task("lab17.t2", title="Less memory", prompt=prompt_of_puzzle("little-memory"), points=3, partial_credit=credit_of_puzzle("little-memory"))
def less_memory(answer: Any) -> Feedback:
    """Judge an order for the puzzle with little memory."""
    return judge_puzzle(answer, "little-memory")


@build_task(
    "lab17.t3",
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
