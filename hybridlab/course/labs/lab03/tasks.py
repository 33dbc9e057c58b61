"""Lab 3, bubbles and memory: the tasks, and the feedback on answers to them."""

from dataclasses import replace
from functools import partial
from math import ceil, floor
from typing import Any

import numpy as np

from hybridlab import formulas
from hybridlab.checks import counted, distinct_texts, known_name
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import near, require_numbers, require_orders, require_parts, require_text
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, PartialCredit, right, task, wrong
from hybridlab.course.checking.drawing import Drawing, marked_by
from hybridlab.course.checking.expressions import Mistake, mistake_behind
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab03 import peaks
from hybridlab.course.published import report, zero_bubble
from hybridlab.errors import InvalidSchedule
from hybridlab.schedule import Op, Schedule
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

LAB_COSTS = Costs(forward=10, backward=20)  # ms

# The open task allows at most 5 activations on a device. 1F1B takes 410 ms. GPipe takes 360 ms, but holds 8 activations.
OPEN_DEVICES, OPEN_MICROBATCHES, OPEN_CAP = 4, 8, 5
OPEN_COSTS = Costs(forward=10, backward=20, p2p=5)  # ms
OPEN_1F1B = 410.0  # ms
OPEN_OPTIMUM = 370.0  # ms: no order in this memory is shorter, as hybridlab.bound.optimum proves; a test repeats the proof
OPEN_WITHIN = 0.05  # a share: how much longer than the shortest order an answer may take


@number_task("lab03.t1", title="The other number", draws={"microbatches": range(4, 9), "slow": (1.5, 2.0, 2.5, 3.0)})
def the_other_number(microbatches: int = 4, slow: float = 1.5) -> Question:
    """Ask for idle time / ideal time of 1F1B on 3 devices, if the last device takes ``slow`` times as long as the others."""
    costs = Costs(forward=[10, 10, 10 * slow], backward=[20, 20, 20 * slow])
    timeline = simulate(build("1f1b", 3, microbatches), costs)
    busy, ratio = timeline.busy, timeline.bubble_ratio
    idle = timeline.makespan - busy
    truth = float(idle.sum() / busy.sum())
    printed = round(ratio, 3)  # with the decimals that the picture of the lab shows
    number = Number(
        "idle / ideal",
        truth,
        decimals=2,
        example="0.25",
        hint="idle / ideal is not {value}: the idle time is 3 x makespan less the busy time; a device is busy for the sum of the "
        "lengths of its boxes",
        mistakes=[
            (
                "near(value, 100 * truth, 0.6)",
                "per-cent",
                "the lab asks for a share of one: write {value:g} % as {value / 100:g}",
            ),
            (
                ratio,
                "bubble-ratio",
                "your answer is the bubble ratio, which divides by all device time: divide by the busy time of all devices",
            ),
            (1 - ratio, "busy-share", "your answer is the busy share of all device time: the task asks for idle / ideal"),
            (
                0.375,
                "another-pipeline",
                "your answer belongs to the earlier pipeline with 4 devices: read the times of the pipeline with 3 devices",
            ),
            (1 / truth, "inverted", "your answer is ideal / idle: divide idle by ideal"),
            (1 + truth, "all-over-ideal", "your answer is the time of all devices / ideal: take the idle time alone"),
            (
                2 / microbatches,
                "equal-stages",
                "your answer is (K-1)/M, which holds for equal stages: device 2 is slower, so read the times",
            ),
            (idle[0] / busy[0], "device-0-alone", "your answer is idle / ideal of device 0 alone: take the times of all three devices"),
            (
                idle[2] / busy[2],
                "device-2-alone",
                "your answer is idle / ideal of device 2 alone: take the times of all three devices",
            ),
            (
                printed / (1 - printed),
                "rounded-too-early",
                f"your answer follows from the rounded bubble ratio {printed:.3f}: compute with the times, and round at the end",
            ),
        ],
    )
    sizes = f"1F1B on 3 devices with {microbatches} microbatches, where the last device takes {slow:g} times 10 and 20 ms"
    lesson = f"with this r the bubble ratio is r / (1 + r) = {ratio:.3f}"
    return Question(f"give idle / ideal of {sizes}, to 2 decimals", [number], lesson)


@number_task(
    "lab03.t2",
    title="Enough microbatches",
    draws={"devices": (6, 7, 8, 9, 11, 12, 13), "percent": (5, 10, 20)},
)
def enough_microbatches(devices: int = 8, percent: int = 10) -> Question:
    """Ask for the smallest number of microbatches with which the bubble ratio is at most ``percent`` / 100."""
    most = percent / 100

    def least(of: int) -> int:
        return -(-of // percent)  # a division that rounds up

    truth = least((devices - 1) * (100 - percent))

    reached = "with {counted(value, 'microbatch')} the bubble ratio is {(K - 1) / (value + K - 1):.4f}"
    number = Number(
        "a number of microbatches",
        truth,
        whole=True,
        most=10**6,
        example="12",
        code="more-than-enough",
        hint=f"{reached}: these are enough, but fewer microbatches are enough, too",
        given={"K": devices},
        mistakes=[
            (
                least((devices - 1) * 100),
                "idle-over-ideal",
                "{value} comes from (K-1)/M, which is idle / ideal: the bubble ratio is (K-1)/(M+K-1)",
            ),
            (
                least(devices * (100 - percent)),
                "k-for-k-1",
                "{value} comes from K/(M+K): the fill takes K-1 forwards, because no device waits for the last one",
            ),
            (
                least(devices * 100),
                "k-over-m",
                "{value} comes from K/M: filling takes K-1 forwards, and the bubble ratio divides by M+K-1",
            ),
            (
                least(3 * (100 - percent)),
                "another-pipeline",
                f"{{value}} microbatches are enough for 4 devices: this pipeline has {devices} devices",
            ),
            ("value < truth", "too-few", f"{reached}: above {most:.2f}, take more"),
        ],
    )
    prompt = f"give the smallest number of microbatches for which 1F1B on {devices} devices has a bubble ratio of at most {most:.2f}"
    factor = (100 - percent) // percent
    lesson = (
        f"the bubble ratio is {formulas.bubble_ratio(devices, truth):.4f}, and with one microbatch fewer it is above {most:.2f}; "
        f"in general at most {most:.2f} needs M of at least {factor}(K-1)"
    )
    return Question(prompt, [number], lesson)


@build_task(
    "lab03.t3",
    title="Build the memory count",
    prompt="write a function peaks(orders) that returns the most activations that each device holds at once",
    points=5,
    signature="peaks(orders)",
    cases=peaks.orders_to_count,
    mistakes=peaks.MISTAKES,
    twists=peaks.TWISTS,
    examples=peaks.EXAMPLES,
    lesson="the count depends on the order alone: no costs, no times",
)
def peaks_of_orders(answer: Any, orders: list[str]) -> Feedback:
    """Judge a student's peaks of all devices for the orders of one case."""
    if not isinstance(answer, list) or len(answer) != len(orders):
        given = f"{counted(len(answer), 'number')}" if isinstance(answer, list) else f"{answer!r:.40}"
        return wrong("another-size", f"the result is a list with one number for each line, {len(orders)} in all, not {given}")
    values = require_numbers(answer, len(orders), "peak of a device", "4")
    for line, value in zip(orders, values, strict=True):
        timeline, device = peaks.timeline_of_line(line), Op.parse(line.split()[0]).stage
        peak = float(timeline.peak_activations[0])
        if value != peak:
            reached = _op_that_holds(timeline, 0, peak)._replace(stage=device)
            right_one, found = distinct_texts(peak, value)
            holds = f"its peak is {right_one} (after {reached}); you returned {found}"
            return wrong("too-much" if value > peak else "too-little", f"device {device} runs {line}: {holds}")
    return right()


def _op_that_holds(timeline: Timeline, device: int, count: float) -> Op:
    """Return the first operation of a device at which the device holds ``count`` activations."""
    rows = np.flatnonzero((timeline.device == device) & (timeline.activations == count))
    return timeline.ops[int(rows[np.argmin(timeline.start[rows])])]


@number_task("lab03.t4", title="Thirty milliseconds", draws={"stages": (2, 3, 4, 5), "microbatches": (8, 10, 11, 13, 14)})
def thirty_milliseconds(stages: int = report.STAGES, microbatches: int = report.MICROBATCHES) -> Question:
    """Ask for the fill and drain of the report's pipeline in ms; section 7.2.2 of the report says 30 ms."""
    costs = Costs(forward=report.FORWARD, backward=report.BACKWARD)
    timeline = simulate(build("1f1b", stages, microbatches), costs)
    truth, last = float(timeline.makespan - timeline.busy[0]), stages - 1
    fill, drain = last * report.FORWARD, last * report.BACKWARD
    number = Number(
        "a time in ms",
        truth,
        hint=f"fill and drain do not lengthen the run by {{value}} ms: when does device {last} start, and how long after its last backward "
        "does device 0 end?",
        given={"ratio": timeline.bubble_ratio},
        mistakes=[
            (30, "printed-figure", "30 ms is the printed figure, but the first forward alone keeps device 1 waiting for 50 ms"),
            (fill, "fill-alone", f"{fill:g} ms is the fill, while device {last} waits for its first forward: the drain comes on top"),
            (drain, "drain-alone", f"{drain:g} ms is the drain, while device 0 waits for its last backward: the fill comes on top"),
            (
                stages * truth,
                "both-devices-added",
                f"your answer adds up the idle time of {'both' if stages == 2 else 'all'} devices: they are idle at the same time, so the "
                "run gets longer by the idle time of one device",
            ),
            (truth / 2, "halved-times", "your answer halves the times: 50 and 80 ms are the times of one stage here"),
            (timeline.makespan, "makespan", "your answer is the makespan: subtract the time of a device that never waits"),
            (timeline.busy[0], "busy-time", "your answer is the busy time of a device: the task asks for the time that waiting adds"),
            (truth + 40, "all-reduce-included", "your answer includes the all-reduce, which comes after the drain: leave it out"),
            ("near(value, truth / 1000, 1e-6)", "seconds", "your answer is in seconds: give ms"),
            (
                "near(value, ratio, 6e-4) or near(value, 100 * ratio, 0.06)",
                "bubble-ratio",
                "your answer is the bubble ratio, a share of the time: the task asks for the ms that waiting adds",
            ),
        ],
    )
    sizes = f"{stages} stages, {microbatches} microbatches, 50 and 80 ms a stage"
    prompt = f"give the time in ms by which fill and drain lengthen the run of {sizes}"
    lesson = "(K-1)F to fill and (K-1)B to drain, as the report itself has it in section 5.3; 30 would be B - F"
    return Question(prompt, [number], lesson)


@task(
    "lab03.t5",
    title="A schedule that fits",
    prompt="give the name of the schedule and the GiB that it needs on each of the 8 devices, as (name, [eight numbers])",
    points=2,
)
def a_schedule_that_fits(answer: object) -> Feedback:
    """Judge a choice: the schedule with the lowest bubble ratio that fits in memory, 16 GiB on devices 0 to 6 and 8 GiB on device 7."""
    gib, names = 1.5, ("gpipe", "1f1b", "zb-h1")
    parts = require_parts(answer, 2, "a name and a list, such as ('gpipe', [1.5, ...])")
    name = known_name(require_text(parts[0], "the name of a schedule", "gpipe").strip().lower(), names, "schedule to choose")
    capacity = [16.0] * 7 + [8.0]
    held = simulate(build(name, 8, 32), LAB_COSTS).peak_activations.tolist()
    need = [gib * peak for peak in held]
    over = next((device for device in range(8) if need[device] > capacity[device]), None)
    if over is not None:
        least = " although its bubble ratio is the lowest" if name == "zb-h1" else ""
        size = f"{need[over]:g} GiB, but it has {capacity[over]:g}"
        return wrong("does-not-fit", f"{name} does not fit{least}: device {over} would need {size} GiB")
    values = require_numbers(parts[1], 8, "GiB that a device needs")
    device = next((place for place in range(8) if not near(values[place], need[place], 0.01)), None)
    if device is None:
        return right("it fits everywhere; gpipe needs 48 GiB on every device, and zb-h1 needs 12 GiB on device 7")
    mistakes: list[Mistake] = [
        (held, "microbatches-not-gib", "your list counts microbatches: one microbatch takes 1.5 GiB on a device"),
        (capacity, "capacity", "your list is the memory that the devices have: the task asks for the memory that the schedule needs"),
        (
            " and ".join(f"value[{device}] in [{floor(each)}, {ceil(each)}]" for device, each in enumerate(need)),
            "rounded",
            "your numbers are rounded to whole GiB: give the exact numbers",
        ),
        (
            [gib * 32] * 8,
            "all-microbatches",
            "your list has M activations on every device, as in GPipe: 1F1B frees some before the last forward",
        ),
        (
            [each + gib for each in need],
            "one-too-many",
            "your list has one activation too many on each device: device 7 runs each backward right after its forward, so it holds 1",
        ),
        (
            [each - gib for each in need],
            "warm-up-alone",
            "your list counts the warm-up alone: one forward more runs before the first backward",
        ),
        (need[::-1], "reversed", "these are the right numbers from the last device to the first: device 0 comes first"),
    ]
    more, code = ("less", "too-much") if values[device] > need[device] else ("more", "too-little")
    hint = f"device {device} holds {more} than {values[device]:g} GiB: count the forwards from its first forward to its first backward"
    return wrong(*(mistake_behind(values, mistakes, partial(near, within=0.01)) or (code, hint)))


@number_task(
    "lab03.t6",
    title="The price of messages",
    points=2,
    draws={"devices": (16, 32), "microbatches": (64, 96, 128), "place": (-1, -2, -3, -4)},
)
def the_price_of_messages(devices: int = 16, microbatches: int = 64, place: int = -1) -> Question:
    """Ask how many ms latency adds to the makespan of 1F1B. The times are those of the measured run ``RUNS[place]``."""
    run, sizes = zero_bubble.RUNS[place], (devices, microbatches)
    truth = _cost_of_latency(run, *sizes)
    others = [other for other in zero_bubble.RUNS if other is not run]
    number = Number(
        "a time in ms",
        truth,
        decimals=1,
        hint="messages do not lengthen the step by {value} ms: how long is the step with messages, and how long without them?",
        mistakes=[
            (
                _cost_of_latency(run, run.devices, microbatches),
                "another-pipeline",
                f"your answer is the cost of messages on {run.devices} devices: here the pipeline has {devices}",
            ),
            (
                2 * (devices - 1) * run.latency,
                "gpipe",
                "your answer is the cost of messages in GPipe, 2(K-1)C: in 1F1B devices wait for messages again every K microbatches",
            ),
            (
                2 * (devices - 1) * microbatches / devices * run.latency,
                "no-fixed-part",
                "your answer lacks the part that does not grow with M, 2(K-2)C",
            ),
            (round(truth), "too-few-decimals", "{value} is right without decimals, but the task asks for 1 decimal"),
            (run.latency, "one-message", "your answer is the time of one message: a step waits for many messages, one after the other"),
            ("near(value, truth / 1000, 6e-4)", "seconds", "your answer is in seconds: give ms"),
            (
                _makespan_of_run(run, *sizes, run.latency),
                "step-with-messages",
                "your answer is the length of the step with messages: subtract the length of the step without messages",
            ),
            (
                _makespan_of_run(run, *sizes, 0.0),
                "step-without-messages",
                "your answer is the length of the step without messages: subtract it from the length of the step with messages",
            ),
            (
                " or ".join(f"near(value, {_cost_of_latency(other, *sizes)!r}, 0.05)" for other in others),
                "another-run",
                f"your answer is the cost of messages with the times of another run: RUNS[{place}] is {run.model} with {run.microbatches} "
                "microbatches",
            ),
        ],
    )
    prompt = (
        f"give the time in ms, to 1 decimal, by which messages lengthen the 1F1B step on {devices} devices with {microbatches} "
        f"microbatches and the times of RUNS[{place}]"
    )
    lesson = "the makespan with messages less the one without; [2(K-1)M/K + 2(K-2)]C gives the same"
    return Question(prompt, [number], lesson)


def _makespan_of_run(run: zero_bubble.ZeroBubbleRun, devices: int, microbatches: int, latency: float) -> float:
    backward = run.input_gradient + run.weight_gradient
    return formulas.one_f_one_b_makespan(devices, microbatches, run.forward, backward, latency)


def _cost_of_latency(run: zero_bubble.ZeroBubbleRun, devices: int, microbatches: int) -> float:
    return _makespan_of_run(run, devices, microbatches, run.latency) - _makespan_of_run(run, devices, microbatches, 0.0)


@task(
    "lab03.t7",
    title="Open: the fastest order in this memory",
    prompt="write an order of 4 devices and 8 microbatches that holds at most 5 activations on each device, one line a device",
    points=5,
    partial_credit=[
        PartialCredit("complete and able to run", 1 / 5, ("over-the-cap",)),
        PartialCredit("able to run, within the memory", 2 / 5, ("too-slow",)),
    ],
)
def fastest_in_memory(answer: Any) -> Feedback:
    """Judge an order of forwards and full backwards. It must run, fit in memory, and take at most 5 % longer than the shortest order."""
    orders = require_orders(answer)
    drawing = Drawing(orders, OPEN_COSTS)
    try:
        schedule = Schedule("yours", orders)
    except InvalidSchedule as why:
        return replace(wrong(why.code, str(why)), drawing=replace(drawing, marked=marked_by(why)))
    fault = _of_another_kind(schedule)
    if fault:
        return replace(fault, drawing=drawing)
    timeline = simulate(schedule, OPEN_COSTS)
    over = [device for device, peak in enumerate(timeline.peak_activations) if peak > OPEN_CAP]
    if over:
        marked = [_op_that_holds(timeline, device, OPEN_CAP + 1) for device in over]
        held = f"device {over[0]} holds {timeline.peak_activations[over[0]]:g} activations at the same time"
        memory = f"it has room for {OPEN_CAP}, and {marked[0]} is one too many"
        feedback = wrong("over-the-cap", f"this order takes {timeline.makespan:g} ms, but {held}: {memory}")
        return replace(feedback, drawing=replace(drawing, marked=tuple(marked)))
    feedback = _distance(timeline.makespan)
    if feedback.passed:
        return replace(feedback, drawing=replace(drawing, goal=_shortest_order()))
    if timeline.peak_activations[-1] > 1:
        asked = "device 3 runs a forward ahead of its backwards: does device 3 wait for a backward of another device?"
        feedback = replace(feedback, messages=(*feedback.messages, asked))
    return replace(feedback, drawing=drawing)


def _of_another_kind(schedule: Schedule) -> Feedback | None:
    """Return the feedback on an order with wrong operations, sizes or places of stages; None if the task asks for orders of this kind."""
    split = next((op for op in schedule.ops if op.kind in "IW"), None)
    if split:
        return wrong("split-backward", f"{split} is a part of a backward: this task has forwards (F) and full backwards (B) only")
    if (schedule.devices, schedule.microbatches) != (OPEN_DEVICES, OPEN_MICROBATCHES):
        size = f"{counted(schedule.devices, 'device')} and {counted(schedule.microbatches, 'microbatch')}"
        return wrong("another-size", f"this order can run, but it has {size}; the task has 4 devices and 8 microbatches")
    if schedule.paths != (tuple(range(OPEN_DEVICES)),):
        return wrong("another-placement", "in this task stage 0 is on device 0, stage 1 on device 1, and so on, one stage a device")
    return None


def _distance(makespan: float) -> Feedback:
    """Return the feedback on an order that fits in the memory. It depends on how much longer the order takes than the shortest order."""
    above = makespan / OPEN_OPTIMUM - 1
    took = f"legal, within the memory, and {makespan:g} ms long"
    if above > OPEN_WITHIN:
        distance = f"{100 * above:.1f} % longer than the shortest possible order; at most {100 * OPEN_WITHIN:g} % are accepted"
        feedback = wrong("too-slow", f"{took}: {distance}")
        slower = makespan - OPEN_1F1B
        if slower < 0:
            return feedback
        compared = f"it is {slower:g} ms slower than 1F1B, from which you started" if slower else "it is no faster than 1F1B"
        asked = "in your picture, which device is idle between its own operations, and for which message does it wait?"
        return replace(feedback, messages=(*feedback.messages, f"{compared}: {asked}"))
    if above > 0:
        return right(f"{took}: {100 * above:.1f} % longer than the shortest possible order, {OPEN_OPTIMUM:g} ms")
    return right(f"{took}: no order in this memory is shorter, as a solver has proven")


def _shortest_order() -> Timeline:
    """Return the timeline of a shortest order. The picture shows this timeline below an answer that passes."""
    longer, last = build("1f1b", OPEN_DEVICES + 1, OPEN_MICROBATCHES).orders, build("1f1b", OPEN_DEVICES, OPEN_MICROBATCHES).orders[-1]
    return simulate(Schedule("shortest order", (*longer[: OPEN_DEVICES - 1], last)), OPEN_COSTS)
