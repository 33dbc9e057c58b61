"""Lab 2, GPipe and 1F1B: the tasks and the feedback on their answers."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.tasks.answers import Mistake, near, require_number, require_numbers, require_text
from hybridlab.course.tasks.checking import Feedback, right, task, wrong, wrong_value
from hybridlab.errors import HybridLabError
from hybridlab.formulas import one_f_one_b_makespan, peak_activations
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

EXAMPLE = "device 0: 0F0 0F1 0B0 0B1"
BROKEN = (
    "device 0: 0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3",
    "device 1: 1F0 1F1 1F3 1B0 1F2 1B1 1B2 1B3",
    "device 2: 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3",
)


@task(
    "lab02.t1",
    title="Write 1F1B",
    prompt="write 1F1B for 3 devices and 4 microbatches as text, one line a device",
    points=3,
)
def write_1f1b(answer: Any) -> Feedback:
    """Judge a schedule as text. It must be complete, able to run, of the right size, and 1F1B on every device."""
    schedule = Schedule.parse(require_text(answer, "a schedule", EXAMPLE), name="yours")
    if (schedule.devices, schedule.microbatches) != (3, 4):
        size = f"{schedule.devices} devices and {schedule.microbatches} microbatches"
        return wrong("another-size", f"this schedule can run, but it has {size}; the task is 3 devices and 4 microbatches")
    faults = tuple(not_1f1b(schedule))
    if faults:
        sentences = [sentence for _, sentence in faults]
        return wrong(faults[0][0], "this schedule is complete and can run, but it is not 1F1B yet:", *sentences)
    peaks = ", ".join(f"{peak:g}" for peak in _unit_timeline(schedule).peak_activations)
    return right(f"complete, able to run, and 1F1B on every device; devices 0, 1, 2 hold at most {peaks} microbatches")


def not_1f1b(schedule: Schedule) -> Iterator[tuple[str, str]]:
    """For each device whose order differs from 1F1B, yield the code of its first fault and a sentence about the fault."""
    if schedule.device_of != tuple(range(schedule.devices)):
        yield "another-placement", "in 1F1B stage 0 is on device 0, stage 1 on device 1, and so on, one stage a device"
        return
    for device, order in enumerate(schedule.orders):
        fault = next(_faults_of_device(device, order, schedule.devices), None)
        if fault:
            yield fault


def _faults_of_device(device: int, order: Sequence[Op], devices: int) -> Iterator[tuple[str, str]]:
    part = next((op for op in order if op.kind in "IW"), None)
    if part:
        yield "split-backward", f"device {device} runs {part.words}; 1F1B runs full backwards (B), not their parts"
    for kind in (Kind.F, Kind.B):
        run = [op.microbatch for op in order if op.kind is kind]
        for earlier, later in pairwise(run):
            if later < earlier:
                sentence = f"device {device} runs the {kind.words} of microbatch {earlier} before that of microbatch {later}"
                yield "microbatches-out-of-order", f"{sentence}; 1F1B takes the microbatches in order"
    count = sum(op.kind is Kind.F for op in order)
    first = next((place for place, op in enumerate(order) if op.kind is Kind.B), 0)
    warmup = min(devices - 1 - device, count)
    wanted = min(warmup + 1, count)
    if first == count > max(1, wanted):
        starts = f"device {device} starts its first backward after all its {first} forwards, as GPipe does"
        yield "gpipe", f"{starts}; 1F1B's warm-up there is {warmup}, and the forward of the first pair makes {wanted}"
    elif first != wanted:
        starts = f"device {device} starts its first backward after {counted(first, 'forward')}"
        yield "wrong-warmup", f"{starts}; 1F1B's warm-up there is {warmup}, and the forward of the first pair makes {wanted}"
    last = max(place for place, op in enumerate(order) if op.kind is Kind.F)
    for op, following in pairwise(order[first : last + 1]):
        if op.kind is following.kind:
            sentence = f"device {device} runs {op} and {following} one after the other"
            yield "not-alternating", f"{sentence}; after its warm-up 1F1B alternates"


@task(
    "lab02.t2",
    title="Predict a makespan",
    prompt="give the makespan in ms of 1F1B on 6 devices with 10 microbatches, a forward of 3 ms and a backward of 5 ms",
    points=2,
)
def predict_makespan(answer: Any) -> Feedback:
    """Judge the makespan of 1F1B."""
    devices, microbatches, forward, backward = 6, 10, 3, 5
    work = microbatches * (forward + backward)
    slots = microbatches + devices - 1
    value = require_number(answer, "a makespan")
    if near(value, one_f_one_b_makespan(devices, microbatches, forward, backward), within=0.1):
        return right("the forwards before the last device starts, its work without a pause, and the backwards after it ends")
    mistakes: list[Mistake] = [
        (
            work,
            "one-device-alone",
            f"{work} ms is the work of one device; the last device does not start at once, and device 0 ends after it",
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
            f"one pair too many: a microbatch passes {devices - 1} devices before it reaches the last",
        ),
        (work * devices, "one-after-the-other", "that is one device working after the other; in a pipeline they work at the same time"),
        (slots * forward, "forwards-alone", "those are the forwards alone; the backwards follow the same path back"),
        (slots * backward, "backwards-alone", "those are the backwards alone; the forwards come before them"),
        (2 * slots, "slots-not-ms", "that is the number of unit slots; a forward takes 3 ms and a backward 5 ms"),
        (slots, "pairs-not-ms", "that is the number of forward and backward pairs, not yet ms"),
    ]
    if value < work:
        least = f"{value:g} ms is less than the work of one device, {microbatches} x ({forward} + {backward}) = {work} ms"
        return wrong_value(value, mistakes, least, within=0.1, code="less-than-the-work")
    hint = f"not {value:g} ms: follow the last device. When does it start, how long does it work, what is left to do then?"
    return wrong_value(value, mistakes, hint, within=0.1)


@task(
    "lab02.t3",
    title="Fewer microbatches than devices",
    prompt="give the warm-up of each of the 6 devices of 1F1B with 3 microbatches, as a list from device 0 on",
    points=2,
)
def short_warmup(answer: Any) -> Feedback:
    """Judge the warm-up of every device of a pipeline with fewer microbatches than devices."""
    devices, microbatches = 6, 3
    values = require_numbers(answer, devices, "warm-up of a device")
    truth = [min(devices - 1 - device, microbatches) for device in range(devices)]
    odd = next((value for value in values if value != int(value) or value < 0), None)
    if odd is not None:
        return wrong("not-a-count", f"a warm-up is a number of forwards, 0, 1, 2, ..., not {odd:g}")
    if values == truth:
        return right("where the warm-up takes all 3 microbatches, no pair is left, and the order there is GPipe's")
    first_pair = [min(devices - device, microbatches) for device in range(devices)]
    mistakes: list[Mistake] = [
        (
            truth[::-1],
            "reversed",
            "this is reversed: the backward of microbatch 0 reaches device 0 last, so device 0 has the longest warm-up",
        ),
        (
            first_pair,
            "first-pair-counted",
            "you have counted the forward of the first pair as well; the warm-up ends before the first pair",
        ),
    ]
    full = next((device for device in range(devices) if values[device] > microbatches), None)
    if full is not None:
        only = f"device {full} cannot warm up with {values[full]:g} forwards: there are only {microbatches} microbatches"
        return wrong_value(values, mistakes, only, code="more-than-microbatches")
    device = next(device for device in range(devices) if values[device] != truth[device])
    if device == devices - 1:
        last = f"device {device} is the last: it runs the backward of microbatch 0 right after its forward, in one pair"
        return wrong_value(values, mistakes, last, code="last-device-warms-up")
    after = counted(devices - 1 - device, "device")
    hint = (
        f"After its forward a microbatch passes {after} more. How many forwards can device {device} run meanwhile, and are there that many?"
    )
    return wrong_value(values, mistakes, f"device {device}: {values[device]:g} is not right. {hint}")


@task(
    "lab02.t4",
    title="Open a deadlock",
    prompt="give the new line of one device with which the order runs, within the memory and the makespan of 1F1B",
    points=3,
)
def open_deadlock(answer: Any) -> Feedback:
    """Judge the new line of one device. The order must be able to run, with at most the memory and the makespan of 1F1B."""
    given = [" ".join(line.split()) for line in require_text(answer, "the new line", EXAMPLE).splitlines() if line.strip()]
    lines = given if len(given) == len(BROKEN) else _broken_with(given)
    changed = [device for device, line in enumerate(lines) if line != BROKEN[device]]
    if not changed:
        return wrong("unchanged", "this is the order as it was, and it still deadlocks: which two operations wait for each other?")
    if len(changed) > 1:
        devices = ", ".join(map(str, changed))
        return wrong("several-devices-changed", f"you have changed devices {devices}; the order of one device is enough")
    timeline = _unit_timeline(Schedule.parse("\n".join(lines), name="yours"))
    size = timeline.schedule.devices, timeline.schedule.microbatches
    for device, peak in enumerate(timeline.peak_activations):
        most = peak_activations("1f1b", *size, device)
        if peak > most:
            held = f"device {device} holds {peak:g} microbatches at once; in 1F1B it holds {most:g}"
            return wrong("too-much-memory", f"this order runs, but {held}")
    soonest = one_f_one_b_makespan(*size, 1, 2)
    if timeline.makespan > soonest:
        ends = f"with a forward of 1 and a backward of 2 it ends at {timeline.makespan:g}; 1F1B ends at {soonest:g}"
        return wrong("too-slow", f"this order runs, but {ends}")
    return right(f"the order runs and ends at {soonest:g}, as 1F1B does: one operation in the wrong place had stopped all devices")


def _broken_with(given: Sequence[str]) -> list[str]:
    """Return the broken order with one line replaced. The new line says which device it is for."""
    lines = list(BROKEN)
    labels = [line.partition(":")[0] for line in BROKEN]
    label, _, order = given[0].partition(":")
    label = label.strip().lower()
    if len(given) != 1 or label not in labels:
        raise HybridLabError(f"hand in one line with its device in front, such as: {BROKEN[2]}", "not-one-line")
    for word in order.split():
        Op.parse(word)  # refused before Schedule.parse, which would name a line 2 that the student has not written
    lines[labels.index(label)] = f"{label}:{order}"
    return lines


def _unit_timeline(schedule: Schedule) -> Timeline:
    return simulate(schedule, Costs(forward=1, backward=2))
