"""Lab 19, the shortest orders with split backwards: the tasks and the feedback on their answers."""

from functools import cache
from typing import Any

import numpy as np

from hybridlab.course.checking.checking import Feedback, task
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab17.orders import credit_of_puzzle, judge_puzzle, prompt_of_puzzle


@task(
    "lab19.t1",
    title="One activation more",
    prompt=prompt_of_puzzle("one-more-activation"),
    points=4,
    partial_credit=credit_of_puzzle("one-more-activation"),
)
def one_activation_more(answer: Any) -> Feedback:
    """Judge an order for the puzzle with one activation more than ZB-H1 needs."""
    return judge_puzzle(answer, "one-more-activation")


@number_task(
    "lab19.t2",
    title="The device that decides",
    points=2,
    draws={"first": (7, 8, 9), "microbatches": (6, 7, 8), "latency": (2, 3, 4, 5, 6)},
)
@cache
def the_device_that_decides(first: int = 8, microbatches: int = 6, latency: int = 3) -> Question:
    """Ask for a lower bound in ms with split backwards: the largest sum of the time before a device begins and its work.

    ``first`` is the time of a forward on device 0 in ms. The forwards of the other devices take 12, 10 and 11 ms, and F = I = W. With
    these numbers the largest sum is that of device 3, and device 1 has the most work.
    """
    times = np.array([first, 12, 10, 11])
    begin = np.cumsum([0, *times[:-1]]) + latency * np.arange(4)
    work = 3 * microbatches * times
    sums = begin + work
    busiest, decides = int(work.argmax()), int(sums.argmax())
    bound = Number(
        "a time in ms",
        int(sums.max()),
        hint="{value} ms is not the largest sum: for each device add the forwards and messages before its first forward, and its work",
        mistakes=[
            (
                int(sums[busiest]),
                "busiest-device",
                f"this is the sum of device {busiest}, which has the most work: device {decides} has less work, but it begins later",
            ),
            (int(work[busiest]), "work-alone", f"this is the work of device {busiest} alone: add the time before it begins"),
            (
                int(sums[decides]) - decides * latency,
                "no-latency",
                f"device {decides} begins later than that: {decides} messages are sent before its first forward",
            ),
            (int(begin[decides] + work[decides] / 3), "forwards-alone", "a device also runs an input gradient and a weight gradient"),
            (
                int(sums[decides] + times[decides]),
                "own-forward",
                f"device {decides} begins with its first forward, so this forward is a part of its work, and you have counted it twice",
            ),
            (
                int(sums[decides] + 2 * begin[decides] - decides * latency),
                "full-backwards",
                "this is the bound for full backwards: here a device can end with a weight gradient, and nothing has to follow",
            ),
        ],
    )
    sizes = f"forwards of {first}, 12, 10 and 11 ms on devices 0 to 3, F = I = W, {microbatches} microbatches, and messages of {latency} ms"
    return Question(
        f"give the largest sum of begin and work in ms, with {sizes}",
        [bound],
        f"device {decides} decides: no order is shorter, although device {busiest} has more work",
    )


@task(
    "lab19.t3",
    title="Unequal devices",
    prompt=prompt_of_puzzle("unequal-devices"),
    points=5,
    partial_credit=credit_of_puzzle("unequal-devices"),
)
def unequal_devices(answer: Any) -> Feedback:
    """Judge an order for the puzzle with unequal devices."""
    return judge_puzzle(answer, "unequal-devices")
