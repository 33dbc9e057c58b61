"""Lab 10, more devices: the tasks and the feedback on their answers."""

import math
from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement, pairwise, takewhile
from typing import Any

import numpy.typing as npt

from hybridlab import formulas
from hybridlab.arrays import Floats
from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import require_numbers
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, PartialCredit, right, wrong
from hybridlab.course.checking.drawing import Drawing
from hybridlab.course.checking.expressions import Table, filled
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab10.eager import EXAMPLES, MISTAKES, TWISTS, latencies_to_hide, least_step, makespans, warmed_up
from hybridlab.schedule import Kind
from hybridlab.schedules import build

WORK = 1200.0  # ms that one microbatch takes on one device alone; a third of this time is the forward
FORWARD, BACKWARD = 12.5, 25.0  # ms on a device in task 2
MOST = 200  # the largest number of devices that task 3 tries; the best number is far smaller


@number_task(
    "lab10.t1",
    title="As fast as one",
    draws={"microbatches": (32, 48), "latency": (16, 16.5, 17, 17.5, 18, 18.5, 19, 19.5, 20)},
)
def as_fast_as_one(microbatches: int = 32, latency: float = 16) -> Question:
    """Ask for the speedup and the efficiency of 1F1B on 16 devices. A microbatch takes 1200 ms on one device."""
    devices = 16
    makespan, alone, free = cut_1f1b(devices, microbatches, latency), microbatches * WORK, cut_1f1b(devices, microbatches)
    true = alone / makespan
    speedup = Number(
        "speedup",
        true,
        hint=f"the speedup is not {{value}}: how long does one device need for {microbatches} microbatches of 1200 ms each?",
        code="wrong-speedup",
        mistakes=[
            (
                true / devices,
                "efficiency-first",
                f"this is the efficiency, or your one device runs only {microbatches // devices} microbatches: let it run all "
                f"{microbatches}",
            ),
            (
                cut_1f1b(2, 4, latency) / makespan,
                "against-first-point",
                "this compares with 2 devices and 4 microbatches, the first point of the line",
            ),
            (
                cut_1f1b(2, microbatches, latency) / makespan,
                "against-two-devices",
                "this compares with 2 devices: a speedup compares with one",
            ),
            (makespan / alone, "inverted", "this is the inverse: divide the time of one device alone by the time of the 16"),
            (
                free / makespan,
                "against-no-latency",
                "this compares with the same pipeline without latency: compare with one device",
            ),
            (alone / free, "no-latency", f"this is the speedup without latency: its makespan is {free:g} ms"),
            (devices, "nobody-waits", "16 would be the speedup of devices that never wait"),
        ],
        decimals=2,
    )
    efficiency = Number(
        "efficiency",
        true / devices,
        hint="the efficiency is the speedup divided by the 16 devices",
        code="wrong-efficiency",
        mistakes=[
            (1 - true / devices, "bubble-ratio", "this is the bubble ratio, and the efficiency is 1 minus it"),
            (100 * true / devices, "per-cent", "the efficiency is a share from 0 to 1"),
            (true / 2, "divided-by-2", "divide the speedup by all 16 devices"),
            (true / microbatches, "divided-by-microbatches", "divide the speedup by the devices, not by the microbatches"),
            (
                1 - formulas.bubble_ratio(devices, microbatches),
                "efficiency-without-latency",
                "this is M/(M+K-1), the efficiency without latency",
            ),
        ],
        label="the speedup is right; ",
        decimals=2,
    )
    return Question(
        f"give speedup and efficiency, to 2 decimals, of 1F1B with a makespan of {makespan:g} ms on 16 devices, {microbatches} "
        f"microbatches and a latency of {latency:g} ms, as (speedup, efficiency)",
        [speedup, efficiency],
        "within one pipeline the efficiency is one minus the bubble ratio: "
        "about half of the time is lost, more of it to messages than to fill and drain",
    )


@number_task(
    "lab10.t2", title="Buy the time back", points=3, draws={"devices": (3, 4, 5), "microbatches": (16, 20), "latency": range(15, 19)}
)
@cache
def buy_the_time_back(devices: int = 4, microbatches: int = 16, latency: int = 16) -> Question:
    """Ask for warm-ups with which 1F1B has GPipe's makespan and the fewest activations. Eager 1F1B has these warm-ups."""
    eager = build("eager-1f1b", devices, microbatches)
    truth = [sum(1 for _ in takewhile(lambda op: op.kind is Kind.F, order)) - 1 for order in eager.orders]
    fastest, least = formulas.gpipe_makespan(devices, microbatches, FORWARD, BACKWARD, latency), sum(truth) + devices

    def times_of(warmups: npt.ArrayLike) -> Floats:
        return makespans(warmups, microbatches, FORWARD, BACKWARD, latency)

    # A warm-up of M forwards gives the same order as M - 1. If a warm-up is shorter than that of the next device, both wait for ever.
    falling = sorted(warmups[::-1] for warmups in combinations_with_replacement(range(microbatches), devices))
    given = {"makespan": Table(times_of, falling), "counts": range(microbatches + 1)}
    capped = [f"min(value[{device}], {microbatches - 1})" for device in range(devices)]
    time, held = f"makespan({', '.join(capped)})", " + ".join(f"min(value[{device}] + 1, {microbatches})" for device in range(devices))
    summary = f"makespan {{{time}:g}} ms, {{{held}:g}} activations in all"
    stuck = [f"{own} < {following}" for own, following in pairwise(capped)]
    waiting = f"index([{', '.join(stuck)}], True)"
    drops = ", ".join(f"value[{device}] - value[{device + 1}]" for device in range(devices - 1))
    least_drop = f"index([{drops}], min({drops}))"
    gap = f"device {{{least_drop}}} warms up with {{counted(min({drops}), 'forward')}} more than device {{{least_drop} + 1}}"
    warmups = Number(
        "warm-up of a device",
        truth,
        hint=f"{summary}: fast enough, but {least} are enough\nwhere can a device warm up with less and still never wait for a message?",
        code="too-much-memory",
        given=given,
        fields=[f"Warm-up of device {device}" for device in range(devices)],
        mistakes=[
            (
                "len(without(value, counts)) > 0",
                "not-a-count",
                f"a warm-up is a number of forwards from 0 to {microbatches}, not {{without(value, counts)[0]:g}}",
            ),
            (
                " or ".join(stuck),
                "deadlock",
                f"these devices wait for ever: device {{{waiting} + 1}} waits for a forward that device {{{waiting}}} runs only after its "
                f"first backward, and that backward needs device {{{waiting} + 1}}",
            ),
            (
                f"{time} > {fastest + 1e-6}",
                "too-slow",
                f"{summary}: above {fastest:g} ms\n{gap}; how many forwards hide a message there and one back?",
            ),
        ],
    )
    return Question(
        f"give a list of {devices} warm-ups, device 0 first, with which 1F1B runs {microbatches} microbatches at a latency of {latency} ms "
        f"in {fastest:g} ms and holds {least} activations in all",
        [warmups],
        f"{filled(summary, {**given, 'value': truth})}, where GPipe holds {devices * microbatches}: each device warms up with two forwards "
        "more than the next one, and these hide a message there and one back",
    )


@number_task("lab10.t3", title="The best number", points=2, draws={"microbatches": (16, 20, 22, 24), "latency": (3, 3.5, 4, 4.5, 7)})
@cache
def the_best_number(microbatches: int = 16, latency: float = 5) -> Question:
    """Ask for the number of devices K with which GPipe has the shortest makespan. A microbatch takes 1200/K ms on each device."""

    def time(devices: float) -> float:
        return whole_model(int(devices), microbatches, latency)

    def summary(devices: float) -> str:
        return f"{counted(int(devices), 'device')} take {time(devices):.2f} ms"

    truth = min(range(1, MOST), key=time)
    with_m, one_way = int(math.sqrt(WORK * microbatches / (2 * latency))), round(math.sqrt(WORK * (microbatches - 1) / latency))
    shared = "the devices share M-1 microbatches, not M, because the first microbatch goes through the model alone"
    added = "this adds one message for a further device: a further device adds two messages, one there and one back"
    devices = Number(
        "a number of devices",
        truth,
        hint="{value} is not the best number of devices: one device more saves 1200(M-1)/K - 1200(M-1)/(K+1) of computing and adds 2C",
        code="not-the-best",
        mistakes=[
            (32, "best-of-the-sweep", "32 is the best of the five numbers in the sweep, not of all numbers"),
            (microbatches, "as-many-as-microbatches", "the best number of devices does not have to be the number of microbatches"),
            (with_m, "m-for-m-1-rounded-down", shared),
            (with_m + 1, "m-for-m-1", shared),
            (one_way, "one-message", added),
            (one_way + 1, "one-message", added),
        ],
        whole=True,
        most=10_000,
    )
    return Question(
        f"give the number of devices on which GPipe ends soonest, with {microbatches} microbatches and a latency of {latency:g} ms",
        [devices],
        f"{summary(truth)}; one more device saves less time of computing than the 2C that it adds",
    )


def whole_model(devices: int, microbatches: int = 16, latency: float = 5) -> float:
    """Return the makespan in ms of task 3 on this many devices, by the closed form.

    >>> whole_model(1)
    19200.0
    """
    return formulas.gpipe_makespan(devices, microbatches, WORK / 3 / devices, WORK * 2 / 3 / devices, latency)


def cut_1f1b(devices: int, microbatches: int, latency: float = 0.0) -> float:
    """Return the makespan in ms of 1F1B in the sweeps, by the closed form. The devices share a forward of 400 ms and a backward of 800 ms.

    >>> cut_1f1b(16, 32, 16)
    4933.0
    """
    return formulas.one_f_one_b_makespan(devices, microbatches, WORK / 3 / devices, WORK * 2 / 3 / devices, latency)


@build_task(
    "lab10.t4",
    title="Build a warm-up that hides a latency",
    prompt="write a function eager(devices, microbatches, forward, backward, latency) that returns the warm-up of each device",
    points=5,
    signature="eager(devices, microbatches, forward, backward, latency)",
    cases=latencies_to_hide,
    mistakes=MISTAKES,
    twists=TWISTS,
    examples=EXAMPLES,
    partial_credit=[
        PartialCredit("able to run for all sizes", 1 / 5, ("longer-than-gpipe",)),
        PartialCredit("as fast as GPipe for all sizes, with more activations than needed", 2 / 5, ("too-much-memory",)),
    ],
    lesson="each device warms up with 1 + 2C/(F+B) forwards more than the next one, rounded up: they run while two messages travel",
)
def eager_warmups(answer: Any, devices: int, microbatches: int, forward: float, backward: float, latency: float) -> Feedback:
    """Judge the warm-ups of one size: the order must run, take no longer than GPipe, and hold no more activations than needed."""
    values = require_numbers(answer, devices, "warm-up of a device", "3")
    odd = next((value for value in values if value != int(value) or not 0 <= value <= microbatches), None)
    if odd is not None:
        return wrong("not-a-count", f"a warm-up is a number of forwards from 0 to M, here {microbatches}, not {odd:g}")
    warmups = [int(value) for value in values]
    stuck = next((d for d, (own, then) in enumerate(pairwise(warmups)) if min(own, microbatches - 1) < min(then, microbatches - 1)), None)
    if stuck is not None:
        waits = f"device {stuck + 1} waits for a forward that device {stuck} runs only after its first backward"
        return wrong("deadlock", f"with warm-ups of {warmups} {waits}, and that backward needs device {stuck + 1}: they wait for ever")
    timeline = warmed_up(tuple(warmups), microbatches, forward, backward, latency)
    drawing = Drawing(timeline.schedule.orders, Costs(forward=forward, backward=backward, p2p=latency))
    fastest = formulas.gpipe_makespan(devices, microbatches, forward, backward, latency)
    held = f"warm-ups of {warmups} take {timeline.makespan:g} ms and hold {timeline.peak_activations.sum():g} activations in all"
    if timeline.makespan > fastest + 1e-6:
        return replace(wrong("longer-than-gpipe", f"{held}: {fastest:g} ms are possible, as under GPipe"), drawing=drawing)
    step = least_step(devices, microbatches, forward, backward, latency)
    least = sum(min(step * behind + 1, microbatches) for behind in range(devices))
    if timeline.peak_activations.sum() > least:
        return replace(wrong("too-much-memory", f"{held}: that is fast enough, but {least:g} would be enough"), drawing=drawing)
    return right()
