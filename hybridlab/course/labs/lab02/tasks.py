"""Lab 2, GPipe and 1F1B: the tasks, and the feedback on answers to them."""

import re
from dataclasses import replace
from typing import Any

from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Orders, require_orders
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, PartialCredit, right, task, wrong
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab02 import one_f_one_b, simulator
from hybridlab.course.labs.lab02.one_f_one_b import (
    GROWING_WARM_UP,
    NOT_1F1B,
    drawing_of,
    judge_one_f_one_b,
    judge_order,
    not_1f1b,
    unit_timeline,
)
from hybridlab.course.labs.lab02.simulator import Times, judge_times
from hybridlab.errors import HybridLabError
from hybridlab.formulas import one_f_one_b_makespan, peak_activations
from hybridlab.schedule import Kind, Schedule
from hybridlab.schedules import build
from hybridlab.simulation import simulate

BROKEN = (
    "device 0: 0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3",
    "device 1: 1F0 1F1 1F3 1B0 1F2 1B1 1B2 1B3",
    "device 2: 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3",
)
BROKEN_SIZE = 3, 4  # devices and microbatches


@task(
    "lab02.t1",
    title="Write 1F1B",
    prompt="write 1F1B for 3 devices and 4 microbatches as text, one line a device",
    points=3,
    partial_credit=[PartialCredit("complete and able to run", 1 / 3, NOT_1F1B)],
)
def write_1f1b(answer: Any) -> Feedback:
    """Judge an order. It must be complete, able to run, of the right size, and 1F1B on every device."""
    orders = require_orders(_upper(answer))
    feedback = judge_order(orders, _judge_1f1b, 3, 4, with_goal=False)  # 1F1B below the orders would show the answer
    if not feedback.passed and _is_reversed(orders):
        return replace(feedback, messages=(*feedback.messages, GROWING_WARM_UP), code="reversed")
    return feedback


def _is_reversed(orders: Orders) -> bool:
    """Whether device d runs d + 1 forwards before its first backward: a warm-up of d, and the forward of the first pair."""
    forwards = [next((place for place, op in enumerate(order) if op.kind is not Kind.F), len(order)) for order in orders]
    return len(orders) > 1 and forwards == list(range(1, len(orders) + 1))


def _judge_1f1b(schedule: Schedule) -> Feedback:
    if (schedule.devices, schedule.microbatches) != (3, 4):
        size = f"{schedule.devices} devices and {schedule.microbatches} microbatches"
        return wrong("another-size", f"this schedule can run, but it has {size}; the task has 3 devices and 4 microbatches")
    faults = tuple(not_1f1b(schedule))
    if faults:
        sentences = [sentence for _, sentence in faults]
        return wrong(faults[0][0], "this schedule is complete and can run, but it is not 1F1B yet:", *sentences)
    peaks = ", ".join(f"{peak:g}" for peak in unit_timeline(schedule).peak_activations)
    return right(f"complete, able to run, and 1F1B on every device; devices 0, 1, 2 hold at most {peaks} microbatches")


@number_task(
    "lab02.t2",
    title="Predict a makespan",
    points=2,
    draws={"devices": range(4, 9), "microbatches": range(9, 14), "forward": (3, 4), "backward": (5, 7, 9)},
)
def predict_makespan(devices: int = 6, microbatches: int = 10, forward: int = 3, backward: int = 5) -> Question:
    """Ask for the makespan of 1F1B."""
    work = microbatches * (forward + backward)
    slots = microbatches + devices - 1
    sizes = f"{devices} devices with {microbatches} microbatches, a forward of {forward} ms and a backward of {backward} ms"
    makespan = Number(
        "a makespan in ms",
        one_f_one_b_makespan(devices, microbatches, forward, backward),
        example="57",
        hint="the makespan is not {value} ms: follow the last device. When does it start, how long does it work, what comes after it?",
        mistakes=[
            (
                work,
                "one-device-alone",
                f"{work} ms is the work of one device; the last device starts later than device 0, and device 0 ends after the last device",
            ),
            (
                work + (devices - 1) * forward,
                "no-drain",
                "you have counted the wait before the last device starts, but not the backwards after it ends",
            ),
            (
                work + (devices - 1) * backward,
                "no-fill",
                "you have counted the backwards after the last device ends, but not the wait before it starts",
            ),
            (
                work + devices * (forward + backward),
                "one-pair-too-many",
                f"your answer has one pair too many: a microbatch passes {devices - 1} devices before it reaches the last device",
            ),
            (
                work * devices,
                "one-after-the-other",
                "in your answer one device works after the other; in a pipeline the devices work at the same time",
            ),
            (slots * forward, "forwards-alone", "your answer is the time of the forwards alone; the backwards follow the same path back"),
            (slots * backward, "backwards-alone", "your answer is the time of the backwards alone; the forwards come before them"),
            (2 * slots, "slots-not-ms", f"your answer counts slots, not ms; a forward takes {forward} ms and a backward {backward} ms"),
            (slots, "pairs-not-ms", "your answer counts pairs of a forward and a backward, not ms"),
            (
                f"value < {work}",
                "less-than-the-work",
                f"{{value}} ms is less than the work of one device, {microbatches} x ({forward} + {backward}) = {work} ms",
            ),
        ],
    )
    lesson = "the forwards before the last device starts, its work without a pause, and the backwards after it ends"
    return Question(f"give the makespan in ms of 1F1B on {sizes}", [makespan], lesson)


@number_task(
    "lab02.t3",
    title="One slower device",
    points=2,
    draws={"devices": range(4, 9), "microbatches": range(9, 14), "forward": (3, 4), "slower": (2, 3)},
)
def predict_with_a_slow_device(devices: int = 4, microbatches: int = 10, forward: int = 3, slower: int = 2) -> Question:
    """Ask for the makespan of 1F1B if the last device needs ``slower`` ms more for each forward, and twice that for each backward."""
    backward = 2 * forward
    slow_forward, slow_backward = forward + slower, backward + 2 * slower
    others, last = forward + backward, slow_forward + slow_backward
    fill, drain, slots = (devices - 1) * forward, (devices - 1) * backward, microbatches + devices - 1
    costs = Costs(
        forward=[forward] * (devices - 1) + [slow_forward],
        backward=[backward] * (devices - 1) + [slow_backward],
    )
    sizes = f"{devices} devices with {microbatches} microbatches, a forward of {forward} ms and a backward of {backward} ms"
    makespan = Number(
        "a makespan in ms",
        simulate(build("1f1b", devices, microbatches), costs).makespan,
        example="57",
        hint="the makespan is not {value} ms: follow the last device again. When does it start, how long does it work, what follows it?",
        mistakes=[
            (slots * others, "as-fast-as-the-others", "your answer is the makespan if the last device is as fast as the others"),
            (
                slots * last,
                "all-devices-slow",
                "your answer is the makespan if every device is as slow as the last; the pipeline fills and drains through fast devices",
            ),
            (
                slots * others + last - others,
                "slower-once",
                f"the last device is slower in each of its {microbatches} pairs, not only in one",
            ),
            (microbatches * last, "one-device-alone", "your answer is the work of the last device; add fill and drain"),
            (fill + microbatches * last, "no-drain", "your answer lacks the backwards after the last device ends"),
            (drain + microbatches * last, "no-fill", "your answer lacks the forwards before the last device starts"),
            (
                f"value < {microbatches * last}",
                "less-than-the-work",
                f"{{value}} ms is less than the work of the last device, {microbatches} x ({slow_forward} + {slow_backward}) ms",
            ),
        ],
    )
    prompt = f"give the makespan in ms of 1F1B on {sizes}; on the last device they take {slow_forward} and {slow_backward} ms"
    return Question(prompt, [makespan], "the slowest device sets the pace; the other devices only add the time to fill and to drain")


@task(
    "lab02.t4",
    title="Open a deadlock",
    prompt="give the new line of one device with which the order runs, within the memory and the makespan of 1F1B",
    points=3,
    partial_credit=[
        PartialCredit("able to run", 1 / 3, ("too-much-memory",)),
        PartialCredit("able to run, within the memory of 1F1B", 2 / 3, ("too-slow",)),
    ],
)
def open_deadlock(answer: Any) -> Feedback:
    """Judge the new line of one device. The order must be able to run, with at most the memory and the makespan of 1F1B."""
    orders, broken = _with_new_line(_upper(answer)), require_orders(list(BROKEN))
    changed = [device for device, order in enumerate(orders) if order != broken[device]]
    if not changed:
        unchanged = wrong("unchanged", "your order is the old one, which ends in a deadlock: which two operations wait for each other?")
        return replace(unchanged, drawing=drawing_of(orders, *BROKEN_SIZE))
    if len(changed) > 1:
        devices = ", ".join(map(str, changed))
        return wrong("several-devices-changed", f"you have changed devices {devices}; the order of one device is enough")
    return judge_order(orders, _judge_opened, *BROKEN_SIZE)


def _judge_opened(schedule: Schedule) -> Feedback:
    timeline = unit_timeline(schedule)
    size = timeline.schedule.devices, timeline.schedule.microbatches
    for device, peak in enumerate(timeline.peak_activations):
        most = peak_activations("1f1b", *size, device)
        if peak > most:
            held = f"device {device} holds {peak:g} microbatches at the same time; in 1F1B it holds {most:g}"
            return wrong("too-much-memory", f"this order runs, but {held}")
    soonest = one_f_one_b_makespan(*size, 1, 2)
    if timeline.makespan > soonest:
        ends = f"with a forward of 1 and a backward of 2 it ends at {timeline.makespan:g}; 1F1B ends at {soonest:g}"
        return wrong("too-slow", f"this order runs, but {ends}")
    return right(f"the order runs and ends at {soonest:g}, as 1F1B does: one operation in the wrong place had stopped all devices")


def _with_new_line(answer: Any) -> Orders:
    """Return the answer if it is a whole order; if it is one line, return the broken order with this line in it."""
    if isinstance(answer, list) and all(isinstance(op, str) and re.fullmatch(r"\d+[FB]\d+", op) for op in answer):
        answer = " ".join(answer)  # the answer is one line, given as a list of operations
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    lines = answer.strip().splitlines() if isinstance(answer, str) else []
    if len(lines) != 1:
        orders = require_orders(answer)
        if len(orders) == len(BROKEN):
            return orders
    else:
        label, words = re.fullmatch(r"(?:DEVICE\s+(\d{1,9})\b)?\s*:?(.*)", lines[0], re.IGNORECASE).groups()  # type: ignore[union-attr]
        (order,) = require_orders(words)
        stages = {op.stage for op in order} if label is None else {int(label)}
        if len(stages) == 1 and (device := stages.pop()) < len(BROKEN):
            whole = require_orders(list(BROKEN))
            return (*whole[:device], order, *whole[device + 1 :])
    raise HybridLabError(f"hand in one line, such as {BROKEN[2]!r}, or the whole order of {len(BROKEN)} lines", "not-one-line")


def _upper(answer: Any) -> Any:
    """Return the answer with all operations in upper case."""
    if isinstance(answer, list):
        return type(answer)(map(_upper, answer))  # the values of a set stay Unordered, so that require_orders refuses them
    return re.sub(r"\b\d+[fbiw]\d+\b", lambda op: op[0].upper(), answer) if isinstance(answer, str) else answer


@build_task(
    "lab02.t5",
    title="Build 1F1B",
    prompt="write a function one_f_one_b(devices, microbatches) that returns one line of operations for each device",
    points=6,
    signature="one_f_one_b(devices, microbatches)",
    cases=one_f_one_b.sizes_of_pipelines,
    reads=one_f_one_b.read_lines,
    mistakes=one_f_one_b.MISTAKES,
    twists=one_f_one_b.TWISTS,
    examples=one_f_one_b.EXAMPLES,
    lesson="a warm-up of min(K-1-d, M) forwards, then pairs, then the backwards that are left",
    partial_credit=[PartialCredit("complete and able to run for all sizes", 1 / 3, NOT_1F1B)],
)
def build_one_f_one_b(orders: Orders, devices: int, microbatches: int) -> Feedback:
    """Judge a student's orders for one size. They pass if they can run and every device runs 1F1B."""
    return judge_one_f_one_b(orders, devices, microbatches)


@build_task(
    "lab02.t6",
    title="Build a simulator",
    prompt="write a function simulate(orders, forward, backward, latency) that returns the start and the end of each operation that runs",
    points=10,
    signature="simulate(orders, forward, backward, latency)",
    cases=simulator.orders_of_many_kinds,
    reads=simulator.read_times,
    mistakes=simulator.MISTAKES,
    twists=simulator.CLOCK_TWISTS,
    examples=simulator.EXAMPLES,
    lesson="an operation starts when its device is free and its input has arrived; in a deadlock no device has such an operation",
)
def build_simulator(times: Times, orders: list[str], forward: list[float], backward: list[float], latency: float) -> Feedback:
    """Judge a student's times for one order. In a deadlock, only the operations that run before it have times."""
    return judge_times(times, orders, forward, backward, latency)
