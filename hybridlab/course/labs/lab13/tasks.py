"""Lab 13, zero bubble: the tasks and the feedback on their answers."""

from dataclasses import replace
from typing import Any

import numpy as np

from hybridlab import formulas
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Orders, require_orders
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, PartialCredit, right, task, wrong
from hybridlab.course.checking.drawing import Drawing, marked_by
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab02.one_f_one_b import read_lines
from hybridlab.course.labs.lab13 import split
from hybridlab.errors import InvalidSchedule
from hybridlab.schedule import Schedule
from hybridlab.schedules import build
from hybridlab.simulation import simulate

UNEVEN = Costs(forward=[30, 10, 10], backward=[30, 30, 40], weight_share=[2 / 3, 2 / 3, 3 / 4])  # ms, task 4

Times = tuple[float, float, float]  # F, I and W in ms


@number_task(
    "lab13.t1",
    title="ZB-H1's bubble by hand",
    points=2,
    draws={
        "devices": (5, 6, 7, 8),
        "a": ((12, 14, 9), (13, 15, 10), (11, 16, 9), (14, 13, 10)),
        "b": ((14, 9, 16), (13, 10, 17), (15, 9, 17), (16, 10, 19)),
        "c": ((9, 14, 11), (10, 15, 13), (11, 16, 13), (9, 13, 11)),
    },
)
def bubbles_by_hand(devices: int = 6, a: Times = (10, 12, 6), b: Times = (10, 6, 12), c: Times = (8, 12, 10)) -> Question:
    """Ask for the bubble of ZB-H1 (makespan minus work) in ms, for three models with 12 microbatches.

    ``a``, ``b`` and ``c`` are the times F, I and W of the models in ms.
    """
    models = {"a": a, "b": b, "c": c}
    written = ", ".join(f"{forward}, {i} and {w} ms in model {name}" for name, (forward, i, w) in models.items())
    return Question(
        f"give ZB-H1's bubble in whole ms for each of the three models, as a list of three numbers, on {devices} devices with 12 "
        f"microbatches; F, I and W take {written}",
        [_bubble(name, devices, *times) for name, times in models.items()],
        "the longest chain is that of the last input gradient in a, of the last device in b, and of the first input gradient in c",
    )


def _bubble(model: str, devices: int, forward: float, input_gradient: float, weight_gradient: float) -> Number:
    """Return one number of a question: the bubble of one model in ms, with the known mistakes about this bubble."""
    microbatches, others, term = 12, devices - 1, forward + input_gradient - weight_gradient
    makespan = formulas.zb_h1_makespan(devices, microbatches, forward, input_gradient + weight_gradient, weight_gradient)
    bubble = makespan - microbatches * (forward + input_gradient + weight_gradient)
    return Number(
        "bubble of a model in ms",
        bubble,
        hint=f"the bubble is not {{value}} ms: when does device 0 wait, and when does device {others} start?",
        label=f"model {model}: ",
        fields=(f"Bubble of model {model} in ms",),
        decimals=2,
        mistakes=[
            (
                others * term,
                "paper-term",
                "(K-1)(F + I - W) belongs to the chain of the last input gradient: with these times another chain is longer",
            ),
            (
                others * input_gradient,
                "input-gradients-alone",
                "(K-1)I is the time until the first input gradient is back on device 0: what else is there to wait for?",
            ),
            (
                others * forward,
                "forwards-alone",
                "(K-1)F is the time before the last device starts: what does device 0 wait for?",
            ),
            (
                others * (forward + input_gradient),
                "no-weight-gradients",
                "(K-1)(F + I) would be the bubble if no weight gradient filled it: some weight gradients run in this time",
            ),
            (
                others * (term + 2 * weight_gradient),
                "1f1b",
                "your answer is 1F1B's bubble, (K-1)(F + B): under ZB-H1 a device waits only for I, not for W",
            ),
            (
                others * (term - weight_gradient),
                "zb-h2",
                "your answer is ZB-H2's bubble, with F + I - 2W: the warm-up of ZB-H1 is half as long",
            ),
            (
                devices * bubble / others,
                "all-devices",
                f"your answer counts all {devices} devices: a microbatch goes from the first device to the last in {others} moves",
            ),
            (
                bubble / others,
                "one-device-alone",
                f"your answer is the wait for one device: a microbatch goes from the first device to the last in {others} moves",
            ),
            (makespan, "whole-step", "your answer is the whole step: subtract the work of a device, M(F + I + W)"),
            (100 * bubble / makespan, "per-cent", "your answer is the bubble ratio in per cent: give the bubble in ms"),
            (bubble / makespan, "bubble-ratio", "your answer is the bubble ratio: give the bubble in ms"),
        ],
    )


@number_task(
    "lab13.t2",
    title="Two rates of one step",
    points=2,
    draws={"devices": (4, 5, 6), "microbatches": (14, 15, 16), "input_gradient": (11, 12, 13), "weight_gradient": (7, 8)},
)
def two_rates(devices: int = 6, microbatches: int = 12, input_gradient: int = 12, weight_gradient: int = 8) -> Question:
    """Ask for the bubble ratio and the bubble rate of ZB-H2 with a forward of 10 ms."""
    forward = 10
    sizes = devices, microbatches, forward, input_gradient + weight_gradient, weight_gradient
    work = microbatches * (forward + input_gradient + weight_gradient)
    makespan, span = formulas.zb_h2_makespan(*sizes), formulas.zb_h2_span(*sizes)
    truth = [(makespan - work) / makespan, (span - work) / span]
    definitions = "the ratio divides by the whole step; the rate divides by the longest time from a device's first start to its last end"

    def share(name: str, whole: float, own: float, other: float) -> Number:
        return Number(
            "idle share of a step",
            own,
            example="0.25",
            hint=f"the share is not {{value}}: {definitions}",
            label=f"the {name}: ",
            fields=(f"Bubble {name}",),
            decimals=3,
            mistakes=[
                (other, "the-other-one", f"your answer is the other of the two shares: {definitions}"),
                (
                    (whole - work) / work,
                    "divided-by-work",
                    "your answer is the idle time divided by the work: divide by the whole time, idle time included",
                ),
                (0, "no-bubble", "with these times ZB-H2 has a bubble: 2W is less than F + I, and the last device starts late"),
                (
                    (makespan - span) / makespan,
                    "difference-of-ends",
                    "your answer is the difference between makespan and span: subtract the work from each of them",
                ),
            ],
        )

    swapped = "these are the right numbers in the wrong order: the ratio, which takes the makespan, comes first"
    return Question(
        "give the bubble ratio (by the makespan) and the bubble rate (by the device span), to 3 decimals, "
        f"for ZB-H2 on {devices} devices with "
        f"{microbatches} microbatches and F, I, W of {forward}, {input_gradient}, {weight_gradient} ms, as [ratio, rate]",
        [share("ratio", makespan, *truth), share("rate", span, *truth[::-1])],
        f"the makespan is {makespan:g} ms, and the longest device span is {span:g} ms",
        [
            (f"near(value, {truth[::-1]}, 0.0005)", "swapped", swapped),
            (
                "max(value) > 1",
                "above-1",
                "a share is at most 1: divide the idle time, and write 5 % as 0.05",
            ),
        ],
    )


@build_task(
    "lab13.t3",
    title="Split the backwards of any order",
    prompt="write a function split_backwards(lines, late) that returns one line of operations for each device",
    points=6,
    signature="split_backwards(lines, late)",
    cases=split.orders_to_split,
    reads=read_lines,
    mistakes=split.MISTAKES,
    twists=split.TWISTS,
    examples=split.EXAMPLES,
    lesson="no device waits for a weight gradient, so each device can run it as late as its memory allows",
)
def build_split_backwards(orders: Orders, lines: list[str], late: list[int]) -> Feedback:
    """Judge the orders of one case, operation by operation."""
    return split.judge_split(orders, lines, late)


@task(
    "lab13.t4",
    title="Beat ZB-H1",
    prompt="write an order for 3 devices and 4 microbatches as text, one line a device, that is shorter than ZB-H1 in the same memory",
    points=3,
    partial_credit=[PartialCredit("complete and able to run", 1 / 3, ("too-much-memory", "longer", "no-gain"))],
)
def beat_zb_h1(answer: Any) -> Feedback:
    """Judge an order for uneven stages. The order must run, hold at most 3 activations on a device, and be shorter than ZB-H1."""
    orders = require_orders(answer)
    try:
        feedback = _judge_shorter(Schedule("yours", orders))
    except InvalidSchedule as why:
        return replace(wrong(why.code, str(why)), drawing=Drawing(orders, UNEVEN, marked=marked_by(why)))
    return replace(feedback, drawing=Drawing(orders, UNEVEN))


def _judge_shorter(schedule: Schedule) -> Feedback:
    size = (schedule.devices, schedule.stages, schedule.microbatches)
    if size != (3, 3, 4) or schedule.device_of != (0, 1, 2):
        wanted = "4 microbatches on 3 devices, with stage 0 on device 0, stage 1 on device 1 and stage 2 on device 2"
        return wrong("another-size", f"your order can run, but the task asks for {wanted}")
    given, yours = (simulate(each, UNEVEN) for each in (build("zb-h1", 3, 4), schedule))
    full = np.flatnonzero(yours.peak_activations > 3)
    if full.size:
        peak = f"device {full[0]} holds {yours.peak_activations[full[0]]:g} microbatches at the same time"
        return wrong("too-much-memory", f"{peak}, and there is room for 3")
    least, gain = 240, given.makespan - yours.makespan
    takes = f"your order takes {yours.makespan:g} ms"
    if gain < 0.01:
        last = int(yours.device[np.argmax(yours.end)])
        of_last = yours.device == last
        idle = yours.end[of_last].max() - yours.start[of_last].min() - yours.busy[last]
        paused = f"it has been idle for {idle:g} ms since its first start" if idle > 0.01 else "it never paused"
        if gain < -0.01:
            return wrong("longer", f"{takes}, {-gain:g} ms longer than ZB-H1; device {last} ends last, and {paused}")
        return wrong("no-gain", f"{takes}, as long as ZB-H1; device {last} ends last, and {paused}")
    summary = f"{takes}, {gain:g} ms less than ZB-H1"
    if yours.makespan > least + 0.01:
        return right(f"{summary}; the shortest takes {least} ms, since device 0 has that much work and need not wait")
    return right(f"{summary}; no order is shorter, since device 0 has that much work")
