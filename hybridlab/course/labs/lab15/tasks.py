"""Lab 15, imbalance: the tasks and the feedback on their answers."""

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from hybridlab import formulas
from hybridlab.arrays import Floats
from hybridlab.checks import counted, short_repr
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import near, require_count, require_numbers
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, right, task, wrong
from hybridlab.course.checking.questions import EXACT, Number, Question, number_task
from hybridlab.course.labs.lab15.cuts import EXAMPLES, MISTAKES, TWISTS, loads_of, models_to_cut, read_counts
from hybridlab.errors import HybridLabError
from hybridlab.schedules import build
from hybridlab.simulation import simulate

LAYERS = np.array([2.0] + 14 * [4.0] + [12.0])  # the forward time of each layer in task 2, in ms


@number_task("lab15.t1", title="Whose idle time", points=2, draws={"first": (11, 12, 13), "last": (14, 15), "microbatches": (16, 17, 18)})
@cache
def idle_by_schedule_or_imbalance(first: int = 12, last: int = 14, microbatches: int = 12) -> Question:
    """Ask how much idle time the schedule causes and how much the imbalance causes, with 1F1B on 4 devices, in ms.

    ``first`` and ``last`` are the forwards of the first and the last device in ms. The other forwards take 10 ms, and B = 2F.
    """
    forward = np.array([first, 10.0, 10.0, last])
    devices = forward.size
    timeline = simulate(build("1f1b", devices, microbatches), Costs(forward=forward, backward=2 * forward))
    most, busy, length = float(timeline.busy.max()), float(timeline.busy.sum()), float(timeline.makespan)
    schedule, imbalance = truth = [devices * (length - most), devices * most - busy]
    idle, share = schedule + imbalance, devices * length
    equal_stages = share * formulas.bubble_ratio(devices, microbatches)
    parts = Number(
        "idle ms of one cause",
        truth,
        fields=("Idle ms of the schedule", "Idle ms of the imbalance"),
        hint=f"the sum of the two parts is {{sum(value)}} ms, but 4 x step minus all busy times is {idle:.10g} ms",
        code="wrong-sum",
        mistakes=[
            (
                truth[::-1],
                "swapped",
                f"these are the right numbers in the wrong order: a step of {most:g} ms, the work of the busiest device, would lose time "
                "by imbalance alone",
            ),
            (
                [each / devices for each in truth],
                "one-device",
                "your answers are means over the devices: give the idle time of all four devices together",
            ),
            (
                [schedule / devices, imbalance],
                "schedule-of-one-device",
                f"the step is {length - most:g} ms longer than the work of the busiest device: each of the four devices loses this time",
            ),
            (
                [idle, 0],
                "no-imbalance",
                "you compare the step with the mean busy time, so the imbalance loses nothing: compare with the busiest device",
            ),
            (
                [equal_stages, idle - equal_stages],
                "equal-stages",
                "your share (K-1)/(M + K-1) holds if stages are equal: here take the step minus the work of the busiest device",
            ),
            ([each / share for each in truth], "shares", "your answers are shares of the time of all devices: give the idle times in ms"),
            (
                [100 * each / share for each in truth],
                "per-cent",
                "your answers are per cent of the time of all devices: give the idle times in ms",
            ),
            (
                f"near(sum(value), {idle}, {EXACT})",
                "wrong-division",
                "the sum of the two parts is right, but each part is wrong: how long is the shortest step that any schedule could reach?",
            ),
        ],
        decimals=2,
    )
    return Question(
        "give the idle time of all devices that the schedule loses, and the idle time that the imbalance loses, in whole ms, with "
        f"forwards of {first}, 10, 10 and {last} ms and {microbatches} microbatches, as (schedule, imbalance)",
        [parts],
        "with more microbatches the loss by the schedule stays the same in ms, and the loss by imbalance grows",
    )


@task(
    "lab15.t2",
    title="Where to cut",
    prompt="give the numbers of layers on devices 0 to 3 that make the step shortest, such as [4, 4, 4, 4]",
    points=3,
)
def the_shortest_cut(answer: Any) -> Feedback:
    """Judge a cut of 16 layers into 4 stages by the makespan of 1F1B with 8 microbatches and B = 2F."""
    if isinstance(answer, list) and len(answer) == 3:
        raise HybridLabError(
            "these three numbers are the places of the cuts: give how many layers each of the 4 devices has", "places-of-cuts"
        )
    values = require_numbers(answer, 4, "number of layers of a device")
    if near(sum(values), LAYERS.sum(), 0.01):
        return wrong("ms-not-layers", f"{short_repr(answer)} are times in ms: give how many layers each device has, 16 in all")
    counts = [require_count(value, "a number of layers", "4", most=16) for value in values]
    if sum(counts) != LAYERS.size:
        there = f"the four stages have {sum(counts)} layers, the model has {LAYERS.size}: embedding, 14 blocks, output layer"
        if counts[-1] == LAYERS.size and counts == sorted(counts):
            return wrong("layers-up-to-cuts", f"your numbers count all layers up to each cut: {there}")
        return wrong("another-number-of-layers", there)
    times = loads_of(LAYERS, counts)
    length, best = float(_steps_of(times[None])[0]), _shortest_step()
    slow = int(times.argmax())
    pace = f"device {slow} sets the pace, with {times[slow]:g} ms for a forward of its {counted(counts[slow], 'layer')}"
    takes = f"the step takes {length:g} ms; {pace}"
    if length <= best * (1 + 1e-9):
        return right(f"{takes}: no cut has a smaller largest load, and the heavy devices come first, where the warm-up keeps them busy")
    if not lighter_cut_exists(LAYERS, len(counts), float(times[slow])):
        hint = "no cut has a smaller largest load, but it matters which devices have this load: which devices wait in fill and drain?"
        return wrong("heavy-devices-late", takes, hint)
    hint = "give this device fewer layers; on the last device, put fewer blocks beside the output layer"
    return wrong("too-heavy", takes, hint)


@build_task(
    "lab15.t3",
    title="A partition",
    prompt="write a function partition(times, devices) that returns the number of layers of each device and makes the largest load as "
    "small as possible",
    points=6,
    signature="partition(times, devices)",
    cases=models_to_cut,
    mistakes=MISTAKES,
    twists=TWISTS,
    examples=EXAMPLES,
    reads=read_counts,
    lesson="the best cut for d devices follows from the best cuts of the first layers for d - 1 devices",
)
def a_partition(counts: list[float], times: Floats, devices: int) -> Feedback:
    """Judge a cut. The cut is right if no other cut has a smaller largest load."""
    if len(counts) != devices:
        there = f"the result has {counted(len(counts), 'number')}, and there are {counted(devices, 'device')}"
        return wrong("another-number-of-devices", f"{there}: give the number of layers of each device")
    if near(sum(counts), float(times.sum()), EXACT) and sum(counts) != times.size:
        return wrong(
            "loads-not-layers", f"the sum of your numbers is {sum(counts):g}, the time of all layers in ms: return numbers of layers"
        )
    if 0 in counts:
        return wrong("empty-device", f"device {counts.index(0)} has no layer: give each device at least one")
    layers = [require_count(count, f"the number of layers of device {device}", "4") for device, count in enumerate(counts)]
    if sum(layers) != times.size:
        there = f"the devices have {counted(sum(layers), 'layer')}, and the model has {times.size}"
        if layers[-1] == times.size and layers == sorted(layers):
            return wrong(
                "layers-up-to-cuts",
                f"{there}: your numbers count all layers up to the end of each device, so subtract those of the devices before it",
            )
        return wrong("another-number-of-layers", there)
    loads = loads_of(times, layers)
    heaviest = int(loads.argmax())
    if lighter_cut_exists(times, devices, float(loads[heaviest])):
        most = f"device {heaviest} has a load of {loads[heaviest]:g} ms"
        return wrong("not-the-least", f"{most}, the largest load of your cut: another cut has a smaller load on each device")
    return right()


def lighter_cut_exists(times: Floats, devices: int, load: float) -> bool:
    """Return whether some cut for this number of devices gives each device a load of less than ``load`` ms.

    >>> lighter_cut_exists(np.array([1, 4, 4, 4, 11]), 2, 13), lighter_cut_exists(np.array([1, 4, 4, 4, 11]), 2, 14)
    (False, True)
    """
    if times.max() >= load:
        return False
    needed, filled = 1, 0.0  # each device takes as many layers as it can, because no other cut then needs fewer devices
    for time in times.tolist():
        filled += time
        if filled >= load:
            needed, filled = needed + 1, time
    return needed <= devices


def _steps_of(loads: Floats) -> Floats:
    """Return the makespans of task 2 in ms. Each row of ``loads`` has the forward times of the four devices in one cut, in ms."""
    found: Floats = simulate(build("1f1b", 4, 8), Costs(forward=loads, backward=2 * loads)).makespan
    return found


@cache
def _shortest_step() -> float:
    """Return the makespan of the best of all cuts in task 2, in ms."""
    cuts = [np.diff([0, *places, LAYERS.size]) for places in combinations(range(1, LAYERS.size), 3)]
    return float(_steps_of(np.array([loads_of(LAYERS, cut.tolist()) for cut in cuts])).min())
