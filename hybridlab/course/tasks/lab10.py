"""Lab 10, more devices: the tasks and the feedback on their answers."""

from itertools import pairwise

from hybridlab import formulas
from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.tasks.answers import Mistake, near, require_count, require_numbers
from hybridlab.course.tasks.checking import Feedback, right, task, wrong, wrong_value
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
    speedup, efficiency = require_numbers(answer, 2, "speedup, then the efficiency")
    makespan, alone = cut_pipeline("1f1b", 16, 32, 16).makespan, 32 * WORK
    true = alone / makespan
    if not near(speedup, true, 0.006):
        mistakes: list[Mistake] = [
            (
                alone / 16 / makespan,
                "efficiency-first",
                "this is the efficiency, or one device with 2 microbatches: the same work is all 32 of them",
            ),
            (
                cut_pipeline("1f1b", 2, 4, 16).makespan / makespan,
                "against-first-point",
                "this compares with 2 devices and 4 microbatches, the first point of the line",
            ),
            (
                cut_pipeline("1f1b", 2, 32, 16).makespan / makespan,
                "against-two-devices",
                "this compares with 2 devices: a speedup compares with one",
            ),
            (makespan / alone, "inverted", "this is the inverse: divide the time of one device alone by the time of the 16"),
            (
                cut_pipeline("1f1b", 16, 32).makespan / makespan,
                "against-no-latency",
                "this compares with the same pipeline without latency: take one device",
            ),
            (
                alone / cut_pipeline("1f1b", 16, 32).makespan,
                "no-latency",
                "this is the speedup without latency: its makespan is 3525 ms",
            ),
            (16, "nobody-waits", "16 would be the speedup of devices that never wait"),
        ]
        hint = f"the speedup is not {speedup:g}: how long does one device need for 32 microbatches of 1200 ms each?"
        return wrong_value(speedup, mistakes, hint, 0.006, code="wrong-speedup")
    if not near(efficiency, true / 16, 0.006):
        mistakes = [
            (1 - true / 16, "bubble-ratio", "this is the bubble ratio, and the efficiency is 1 minus it"),
            (100 * true / 16, "per-cent", "the efficiency is a share from 0 to 1"),
            (true / 2, "divided-by-2", "divide it by all 16 devices"),
            (true / 32, "divided-by-microbatches", "divide it by the devices, not by the microbatches"),
            (1 - formulas.bubble_ratio(16, 32), "efficiency-without-latency", "this is M/(M+K-1), the efficiency without latency"),
        ]
        hint = "the efficiency is the speedup divided by the 16 devices"
        return wrong_value(efficiency, mistakes, hint, 0.006, about="the speedup is right; ", code="wrong-efficiency")
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
    warmups = require_numbers(answer, 4, "warm-up of a device")
    odd = next((value for value in warmups if value != int(value) or not 0 <= value <= 16), None)
    if odd is not None:
        return wrong("not-a-count", f"a warm-up is a number of forwards from 0 to 16, not {odd:g}")
    drops = [int(warmup - following) for warmup, following in pairwise(warmups)]
    for device in range(3):
        if min(warmups[device], 15) < min(warmups[device + 1], 15):
            waits = f"device {device + 1} waits for a forward that device {device} runs only after its first backward"
            return wrong("deadlock", f"these devices wait for ever: {waits}, and that backward needs device {device + 1}")
    timeline, fastest = warmed_up([int(value) for value in warmups]), formulas.gpipe_makespan(4, 16, 12.5, 25, 16)
    activations = timeline.peak_activations.sum()
    summary = f"makespan {timeline.makespan:g} ms, {activations:g} activations in all"
    if timeline.makespan > fastest + 1e-6:
        device = drops.index(min(drops))
        gap = f"device {device} warms up with {counted(drops[device], 'forward')} more than device {device + 1}"
        return wrong("too-slow", f"{summary}: above {fastest:g} ms", f"{gap}; how many does a message there and one back need?")
    if activations > 16:
        hint = "where can a device warm up with less and still never wait for a message?"
        return wrong("too-much-memory", f"{summary}: fast enough, but 16 are enough", hint)
    more = "two forwards more than the next device, so that a message there and one back are hidden"
    return right(f"{summary}, where GPipe holds 64: {more}")


@task(
    "lab10.t3",
    title="The best number",
    prompt="give the number of devices on which GPipe ends soonest, with 16 microbatches and a latency of 5 ms",
    points=2,
)
def the_best_number(answer: object) -> Feedback:
    """Judge the K with GPipe's shortest makespan: 16 microbatches, 1200 ms each, divided by the devices; latency 5 ms."""
    devices = require_count(answer, "a number of devices", most=10_000)
    time, fewer, more = (whole_model(each) for each in (devices, max(devices - 1, 1), devices + 1))
    summary = f"{counted(devices, 'device')} take {time:.2f} ms"
    if time <= min(fewer, more):
        return right(f"{summary}; one more saves less computing than the two latencies that it adds")
    adds = f"{summary}: a device more adds a message there and one back"
    mistakes: list[Mistake] = [
        (32, "best-of-the-sweep", f"32 are the best of the sweep's five, not of all: {summary}, and 33 take {more:.2f}"),
        (16, "as-many-as-microbatches", f"more devices than microbatches are no fault: {summary}, and 17 take {more:.2f}"),
        (43, "m-for-m-1-rounded-down", f"{summary}, and 42 a little less: (M-1) microbatches share the devices, not M"),
        (44, "m-for-m-1", f"{summary}: (M-1) microbatches share the devices, not M"),
        (60, "one-message", adds),
        (61, "one-message", adds),
    ]
    if fewer < time:
        return wrong_value(devices, mistakes, f"{summary}, and one fewer takes {fewer:.2f}: go on in that direction", code="too-many")
    return wrong_value(devices, mistakes, f"{summary}, and one more takes {more:.2f}: go on in that direction", code="too-few")


def whole_model(devices: int) -> float:
    """Return the makespan in ms of task 3 on this many devices, by the closed form.

    >>> whole_model(1)
    19200.0
    """
    return formulas.gpipe_makespan(devices, 16, WORK / 3 / devices, WORK * 2 / 3 / devices, 5)


def cut_pipeline(name: str, devices: int, microbatches: int, p2p: float = 0.0) -> Timeline:
    """Return the timeline of a schedule in the sweeps. The devices share a forward of 400 ms and a backward of 800 ms.

    >>> cut_pipeline("1f1b", 16, 32, 16).makespan
    4933.0
    """
    return simulate(build(name, devices, microbatches), Costs(forward=400 / devices, backward=800 / devices, p2p=p2p))


def warmed_up(warmups: list[int], microbatches: int = 16) -> Timeline:
    """Return the timeline of 1F1B with one warm-up for each device. A forward takes 12.5 ms, a backward 25 ms, a message 16 ms.

    >>> warmed_up([3, 2, 1, 0]).makespan
    1160.5
    """
    orders = [_order_with_warmup(device, warmup, microbatches) for device, warmup in enumerate(warmups)]
    return simulate(Schedule("yours", orders), Costs(forward=12.5, backward=25, p2p=16))


def _order_with_warmup(device: int, warmup: int, microbatches: int) -> list[Op]:
    forwards, backwards = ([Op(kind, device, microbatch) for microbatch in range(microbatches)] for kind in (Kind.F, Kind.B))
    first, rest = forwards[:warmup], forwards[warmup:]
    pairs = [op for pair in zip(rest, backwards, strict=False) for op in pair]
    return [*first, *pairs, *backwards[len(rest) :]]
