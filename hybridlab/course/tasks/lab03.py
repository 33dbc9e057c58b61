"""Lab 3, bubbles and memory: the tasks and what each says to an answer."""

import numpy as np

from hybridlab import formulas
from hybridlab.checks import counted, known_name, short_repr
from hybridlab.costs import Costs
from hybridlab.course.published import report, zero_bubble
from hybridlab.course.tasks.answers import a_text, mistake_behind, near, require_number, some_numbers
from hybridlab.course.tasks.checking import Feedback, right, task, wrong
from hybridlab.errors import HybridLabError
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline


@task(
    "lab03.t1",
    title="The other number",
    prompt="give idle / ideal of the picture: the idle time of all devices over the busy time of all devices",
)
def the_other_number(answer: object) -> Feedback:
    """Judge idle / ideal of 1F1B on 3 devices with 4 microbatches, the last device 1.5 times as slow; two decimals."""
    value = require_number(answer, "idle / ideal", "0.25")
    timeline = simulate(build("1f1b", 3, 4), Costs(forward=[10, 10, 15], backward=[20, 20, 30]))
    busy, ratio = timeline.busy, timeline.bubble_ratio
    idle = timeline.makespan - busy
    truth = idle.sum() / busy.sum()
    if near(value, truth, 0.0061):
        return right(f"with this r the bubble ratio is r / (1 + r) = {ratio:.3f}, as the picture states")
    mistakes = [
        (ratio, "this is the bubble ratio, which divides by all device time: divide by the busy time of all devices"),
        (1 - ratio, "this is the busy share of all device time: the question is idle / ideal"),
        (1 / truth, "this is ideal / idle: it is the other way round"),
        ((3 - 1) / 4, "this is (K-1)/M, which holds for equal stages: device 2 is slower, so read the times"),
        (idle[0] / busy[0], "this is the number of device 0 alone: take all three devices"),
        (idle[2] / busy[2], "this is the number of device 2 alone, or (K-1)/(M+K-1): take the times of all three devices"),
    ]
    if near(value, 100 * truth, 0.61):
        return wrong(f"the lab asks for a share of one: write {value:g} % as {value / 100:g}")
    hint = "the idle time is 3 x makespan less the busy time; a device is busy for the sum of the lengths of its boxes"
    return wrong(mistake_behind(value, mistakes, 0.0061) or f"idle / ideal is not {value:g}: {hint}")


@task(
    "lab03.t2",
    title="Enough microbatches",
    prompt="give the smallest number of microbatches for which 1F1B on 8 devices has a bubble ratio of at most 0.10",
)
def enough_microbatches(answer: object) -> Feedback:
    """Judge the smallest number of microbatches for 8 devices and a bubble ratio of 0.10."""
    devices, most = 8, 0.10
    count = _a_count(answer)
    ratio = formulas.bubble_ratio(devices, count)
    message = f"with {counted(count, 'microbatch')} the bubble ratio is {ratio:.4f}"
    if ratio <= most < formulas.bubble_ratio(devices, max(count - 1, 1)):
        return right(f"the bubble ratio is {ratio:.4f}, and with one microbatch fewer it is above {most:.2f}")
    mistakes = [
        (70, "70 comes from (K-1)/M, which is idle / ideal: the bubble ratio is (K-1)/(M+K-1)"),
        (72, "72 comes from K/(M+K): the fill takes K-1 forwards, because the last device is not waited for"),
        (80, "80 comes from K/M: filling takes K-1 forwards, and the bubble ratio divides by M+K-1"),
        (27, "27 microbatches are enough for 4 devices: this pipeline has 8"),
    ]
    off = f"{message}: enough, but fewer are enough too" if ratio <= most else f"{message}: above {most:.2f}, take more"
    return wrong(mistake_behind(count, mistakes, 0) or off)


@task(
    "lab03.t3",
    title="The peaks of a short pipeline",
    prompt="give the peak activations of devices 0 to 5 of 1F1B on 6 devices with 4 microbatches, as a list",
)
def peaks_of_a_short_pipeline(answer: object) -> Feedback:
    """Judge the six peak activations of 1F1B with fewer microbatches than devices."""
    devices, microbatches = 6, 4
    peaks = some_numbers(answer, devices, "peak activations of a device")
    truth = _timeline("1f1b", devices, microbatches).peak_activations.tolist()
    if peaks == truth:
        return right("min(K-d, M): with fewer microbatches than devices, the first devices hold them all")
    warm_up = [min(devices - 1 - d, microbatches) for d in range(devices)]
    known = [
        ([devices - d for d in range(devices)], "device 0 cannot hold 6 activations: there are only 4 microbatches"),
        ([microbatches] * devices, "this is GPipe: in 1F1B device 5 runs every backward right after its forward"),
        (truth[::-1], "this is the right list from its end: device 0 waits longest for its first backward, so it holds most"),
        (warm_up, "this is the warm-up alone: one more forward runs before the first backward"),
    ]
    for values, sentence in known:
        if peaks == values:
            return wrong(sentence)
    return wrong(_at_first_difference(peaks, truth, "activations", f"of {microbatches} microbatches"))


@task(
    "lab03.t4",
    title="Thirty milliseconds",
    prompt="give the time in ms by which fill and drain lengthen the run of 2 stages, 8 microbatches, 50 and 80 ms a stage",
)
def thirty_milliseconds(answer: object) -> Feedback:
    """Judge the fill and drain, in ms, of the report's pipeline, which its section 7.2.2 puts at 30 ms."""
    time = require_number(answer, "a fill and drain in ms")
    costs = Costs(forward=report.FORWARD, backward=report.BACKWARD)
    timeline = simulate(build("1f1b", report.STAGES, report.MICROBATCHES), costs)
    truth = timeline.makespan - timeline.busy[0]
    if near(time, truth, 0.5):
        return right("(K-1)F to fill and (K-1)B to drain, as the report itself has it in section 5.3; 30 would be B - F")
    mistakes = [
        (30, "30 ms is the printed figure, but the first forward alone keeps device 1 waiting for 50 ms"),
        (50, "50 ms is the fill, while device 1 waits for its first forward: the drain comes on top"),
        (80, "80 ms is the drain, while device 0 waits for its last backward: the fill comes on top"),
        (2 * truth, "this adds up the idle time of both devices: they idle side by side, so the run gets longer by one of them"),
        (truth / 2, "this halves the times: 50 and 80 ms are the times of one stage here"),
        (timeline.makespan, "this is the makespan: take away what a device that never waits needs"),
        (timeline.busy[0], "this is the busy time of a device: the question is what waiting adds to it"),
        (truth + 40, "this holds the all-reduce too: it comes after the drain and is no part of it"),
        (truth / 1000, "this is in seconds: give ms"),
    ]
    hint = "when does device 1 start, and how long after its last backward does device 0 end?"
    return wrong(mistake_behind(time, mistakes, 0.001) or f"fill and drain do not lengthen the run by {time:g} ms: {hint}")


@task(
    "lab03.t5",
    title="A schedule that fits",
    prompt="give the name of the schedule and the GiB that it needs on each of the 8 devices, as (name, [eight numbers])",
    points=2,
)
def a_schedule_that_fits(answer: object) -> Feedback:
    """Judge the schedule of lowest bubble ratio that fits 16 GiB on devices 0 to 6 and 8 GiB on device 7."""
    gib, names = 1.5, ("gpipe", "1f1b", "zb-h1")
    if not isinstance(answer, list) or len(answer) != 2:
        raise HybridLabError(f"the answer is a name and a list, such as ('gpipe', [1.5, ...]), not {short_repr(answer)}")
    name = known_name(a_text(answer[0], "the name of a schedule", "gpipe").strip().lower(), names, "schedule to choose")
    room = np.array([16.0] * 7 + [8.0])
    need = {each: gib * _timeline(each, 8, 32).peak_activations for each in names}
    over = np.flatnonzero(need[name] > room)
    if over.size:
        least = " although its bubble ratio is the lowest" if name == "zb-h1" else ""
        message = f"{need[name][over[0]]:g} GiB, but it has {room[over[0]]:g}"
        return wrong(f"{name} does not fit{least}: device {over[0]} would need {message}")
    values = some_numbers(answer[1], 8, "GiB that a device needs")
    if np.allclose(values, need[name], atol=0.01):
        return right("it fits everywhere, and of those that fit it idles least")
    if np.allclose(values, need[name] / gib, atol=0.01):
        return wrong("these are microbatches: one microbatch takes 1.5 GiB on a device")
    if np.allclose(values, need[name][::-1], atol=0.01):
        return wrong("these are the right numbers from the last device to the first: device 0 comes first")
    return wrong(_at_first_difference(values, need[name].tolist(), "GiB", f"with {name}"))


@task(
    "lab03.t6",
    title="The price of messages",
    prompt="give the time in ms by which messages lengthen the 1F1B step on 16 devices with the times of RUNS[-1]",
    points=2,
)
def the_price_of_messages(answer: object) -> Feedback:
    """Judge the ms that latency adds to 1F1B's makespan: the times of 6.2B with 64 microbatches, on 16 devices."""
    time = require_number(answer, "a time in ms")
    run, devices = zero_bubble.RUNS[-1], 16
    truth = _price(run, devices)
    if near(time, truth, 0.06):
        return right("the makespan with messages less the one without; [2(K-1)M/K + 2(K-2)]C gives the same")
    others = [(_price(each, devices), f"with {each.model} and {each.microbatches}") for each in zero_bubble.RUNS[:-1]]
    mistakes = [
        (_price(run, run.devices), "this is the price on 8 devices: here the pipeline has 16"),
        (30 * run.latency, "this is what messages cost GPipe, 2(K-1)C: in 1F1B they come back every K microbatches"),
        (120 * run.latency, "this lacks the longer fill and drain, 2(K-2)C"),
        (run.latency, "this is one message: a step waits for many, one after the other"),
        (truth / 1000, "this is in seconds: give ms"),
        (_step(run, devices, True), "this is the whole step with messages: take away the step without them"),
        (_step(run, devices, False), "this is the whole step without messages: take it away from the step with them"),
        *((price, f"this is the price {message} microbatches: RUNS[-1] is 6.2B with 64") for price, message in others),
    ]
    hint = "simulate 16 devices with run.costs() and with run.costs(latency=False), and compare the makespans"
    return wrong(mistake_behind(time, mistakes, 0.06) or f"messages do not lengthen the step by {time:g} ms: {hint}")


def _timeline(name: str, devices: int, microbatches: int) -> Timeline:
    return simulate(build(name, devices, microbatches), Costs(forward=10, backward=20))


def _step(run: zero_bubble.Run, devices: int, latency: bool) -> float:
    return float(simulate(build("1f1b", devices, run.microbatches), run.costs(latency)).makespan)


def _price(run: zero_bubble.Run, devices: int) -> float:
    return _step(run, devices, True) - _step(run, devices, False)


def _at_first_difference(values: list[float], truth: list[float], unit: str, of: str) -> str:
    device = next(place for place, (value, true) in enumerate(zip(values, truth, strict=True)) if not near(value, true, 0.01))
    side = "less" if values[device] > truth[device] else "more"
    return f"device {device} holds {side} than {values[device]:g} {unit} {of}: count from its first forward to its first backward"


def _a_count(answer: object) -> int:
    number = require_number(answer, "a number of microbatches", "12")
    if number != int(number) or not 1 <= number <= 10**6:
        raise HybridLabError(f"a number of microbatches is a whole number of at least 1 and at most a million, not {number:g}")
    return int(number)
