"""Lab 10, more devices: the tasks and what each says to an answer."""

from itertools import pairwise
from typing import Any

from hybridlab import formulas
from hybridlab.checks import counted, short_repr
from hybridlab.costs import Costs
from hybridlab.course.tasks.answers import mistake_behind, near, require_number, some_numbers
from hybridlab.course.tasks.checking import Feedback, right, task, wrong
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

WORK = 1200.0  # ms that one microbatch takes on one device alone, a third of it forward


@task(
    "lab10.t1",
    title="As fast as one",
    prompt="give speedup and efficiency of 1F1B on 16 devices, 32 microbatches and a latency of 16 ms, as (speedup, efficiency)",
)
def as_fast_as_one(answer: object) -> Feedback:
    """Judge speedup and efficiency of 1F1B on 16 devices: 32 microbatches of 1200 ms, latency 16 ms."""
    speedup, efficiency = some_numbers(answer, 2, "speedup, then the efficiency")
    makespan, alone = pipeline("1f1b", 16, 32, 16).makespan, 32 * WORK
    true = alone / makespan
    speedups = [
        (alone / 16 / makespan, "this is the efficiency, or one device with 2 microbatches: the same work is all 32 of them"),
        (pipeline("1f1b", 2, 4, 16).makespan / makespan, "this compares with 2 devices and 4 microbatches, the first point of the line"),
        (pipeline("1f1b", 2, 32, 16).makespan / makespan, "this compares with 2 devices: a speedup is against one"),
        (makespan / alone, "this is the other way round: the time of one device alone stands above the line"),
        (pipeline("1f1b", 16, 32).makespan / makespan, "this compares with the same pipeline without latency: take one device"),
        (alone / pipeline("1f1b", 16, 32).makespan, "this is the speedup without latency: its makespan is 3525 ms"),
        (16, "16 would be the speedup of devices that never wait"),
    ]
    if not near(speedup, true, 0.006):
        message = f"the speedup is not {speedup:g}: how long does one device need for 32 microbatches of 1200 ms each?"
        return wrong(mistake_behind(speedup, speedups, 0.006) or message)
    efficiencies = [
        (1 - true / 16, "the speedup is right; this is the bubble ratio, and the efficiency is the rest of 1"),
        (100 * true / 16, "the speedup is right; the efficiency is a share from 0 to 1"),
        (true / 2, "the speedup is right; divide it by all 16 devices"),
        (true / 32, "the speedup is right; divide it by the devices, not by the microbatches"),
        (1 - formulas.bubble_ratio(16, 32), "the speedup is right; this is M/(M+K-1), the efficiency without latency"),
    ]
    if not near(efficiency, true / 16, 0.006):
        message = "the speedup is right; the efficiency is the speedup of one device among the 16"
        return wrong(mistake_behind(efficiency, efficiencies, 0.006) or message)
    lost = "half of the time is lost, and more to messages than to fill and drain"
    return right(f"within one pipeline the efficiency is one minus the bubble ratio: {lost}")


@task(
    "lab10.t2",
    title="Buy the time back",
    prompt="give the warm-up of each of the 4 devices, as a list from device 0 on",
    points=3,
)
def buy_the_time_back(answer: object) -> Feedback:
    """Judge warm-ups of 1F1B on 4 devices, 16 microbatches, 12.5, 25 and 16 ms: GPipe's makespan with 16 activations in all."""
    warmups = some_numbers(answer, 4, "warm-up of a device")
    odd = next((value for value in warmups if value != int(value) or not 0 <= value <= 16), None)
    if odd is not None:
        return wrong(f"a warm-up is a number of forwards from 0 to 16, not {odd:g}")
    steps = [int(here - after) for here, after in pairwise(warmups)]
    for device in range(3):
        if min(warmups[device], 15) < min(warmups[device + 1], 15):
            waits = f"device {device + 1} waits for a forward that device {device} runs only after its first backward"
            return wrong(f"these devices wait for ever: {waits}, and that backward comes from device {device + 1}")
    found, fastest = warmed_up([int(value) for value in warmups]), formulas.gpipe_makespan(4, 16, 12.5, 25, 16)
    held = found.peak_activations.sum()
    message = f"makespan {found.makespan:g} ms, {held:g} activations in all"
    if found.makespan > fastest + 1e-6:
        device = steps.index(min(steps))
        gap = f"device {device} warms up with {counted(steps[device], 'forward')} more than device {device + 1}"
        return wrong(f"{message}: above {fastest:g} ms", f"{gap}; how many does a message there and one back need?")
    if held > 16:
        return wrong(
            f"{message}: fast enough, but 16 are enough", "where can a device warm up with less and still never wait for a message?"
        )
    return right(
        f"{message}, where GPipe holds 64: two forwards more than the next device, so that a message there and one back are hidden"
    )


@task(
    "lab10.t3",
    title="The best number",
    prompt="give the number of devices on which GPipe ends soonest, with 16 microbatches and a latency of 5 ms",
    points=2,
)
def the_best_number(answer: object) -> Feedback:
    """Judge the K for which GPipe's makespan is least: 16 microbatches of 1200 ms cut over the devices, latency 5 ms."""
    number = require_number(answer, "a number of devices", "12")
    if number != int(number) or not 1 <= number <= 10_000:
        raise HybridLabError(f"a number of devices is a whole number from 1 to 10,000, not {short_repr(answer)}")
    devices = int(number)
    here, fewer, more = (whole_model(each) for each in (devices, max(devices - 1, 1), devices + 1))
    message = f"{counted(devices, 'device')} take {here:.2f} ms"
    if here <= min(fewer, more):
        return right(f"{message}; one more saves less computing than the two latencies that it adds")
    mistakes = [
        (32, f"32 are the best of the sweep's five, not of all: {message}, and 33 take {more:.2f}"),
        (16, f"more devices than microbatches are no fault: {message}, and 17 take {more:.2f}"),
        (43, f"{message}, and 42 a little less: (M-1) microbatches share the devices, not M"),
        (44, f"{message}: (M-1) microbatches share the devices, not M"),
        (60, f"{message}: a device more adds a message there and one back"),
        (61, f"{message}: a device more adds a message there and one back"),
    ]
    side = f"one fewer takes {fewer:.2f}" if fewer < here else f"one more takes {more:.2f}"
    return wrong(mistake_behind(devices, mistakes, 0) or f"{message}, and {side}: go on in that direction")


def whole_model(devices: int) -> float:
    """Return the makespan in ms of task 3 on this many devices, by the closed form.

    >>> whole_model(1)
    19200.0
    """
    return formulas.gpipe_makespan(devices, 16, WORK / 3 / devices, WORK * 2 / 3 / devices, 5)


def pipeline(name: str, devices: int, microbatches: int, p2p: float = 0.0) -> Timeline:
    """Return the timeline of a schedule of the sweeps: 400 ms forward and 800 ms backward, cut over the devices.

    >>> pipeline("1f1b", 16, 32, 16).makespan
    4933.0
    """
    return simulate(build(name, devices, microbatches), Costs(forward=400 / devices, backward=800 / devices, p2p=p2p))


def warmed_up(warmups: list[int], microbatches: int = 16) -> Timeline:
    """Return the timeline of 1F1B with these warm-ups, one a device; a forward takes 12.5, a backward 25, a message 16 ms.

    >>> warmed_up([3, 2, 1, 0]).makespan
    1160.5
    """
    return simulate(
        Schedule("yours", [_order(*each, microbatches) for each in enumerate(warmups)]), Costs(forward=12.5, backward=25, p2p=16)
    )


def _order(device: int, warmup: int, microbatches: int) -> list[Any]:
    forwards, backwards = ([Op(kind, device, microbatch) for microbatch in range(microbatches)] for kind in (Kind.F, Kind.B))
    first, rest = forwards[:warmup], forwards[warmup:]
    pairs = [op for pair in zip(rest, backwards, strict=False) for op in pair]
    return [*first, *pairs, *backwards[len(rest) :]]
