"""Lab 3, bubbles and memory: the tasks and the feedback on their answers."""

from hybridlab import formulas
from hybridlab.checks import counted, known_name
from hybridlab.costs import Costs
from hybridlab.course.published import report, zero_bubble
from hybridlab.course.tasks.answers import (
    Mistake,
    near,
    require_count,
    require_number,
    require_numbers,
    require_parts,
    require_text,
)
from hybridlab.course.tasks.checking import Feedback, judge_value, right, task, wrong, wrong_value
from hybridlab.schedules import build
from hybridlab.simulation import simulate


@task(
    "lab03.t1",
    title="The other number",
    prompt="give idle / ideal of the picture: the idle time of all devices over the busy time of all devices",
)
def the_other_number(answer: object) -> Feedback:
    """Judge idle time / ideal time of 1F1B, to two decimals, if the last of 3 devices takes 1.5 times as long; 4 microbatches."""
    value = require_number(answer, "idle / ideal", "0.25")
    timeline = simulate(build("1f1b", 3, 4), Costs(forward=[10, 10, 15], backward=[20, 20, 30]))
    busy, ratio = timeline.busy, timeline.bubble_ratio
    idle = timeline.makespan - busy
    truth = idle.sum() / busy.sum()
    if near(value, 100 * truth, 0.61):
        return wrong("per-cent", f"the lab asks for a share of one: write {value:g} % as {value / 100:g}")
    hint = "the idle time is 3 x makespan less the busy time; a device is busy for the sum of the lengths of its boxes"
    return judge_value(
        value,
        truth,
        0.0061,
        lesson=f"with this r the bubble ratio is r / (1 + r) = {ratio:.3f}, as the picture states",
        mistakes=[
            (ratio, "bubble-ratio", "this is the bubble ratio, which divides by all device time: divide by the busy time of all devices"),
            (1 - ratio, "busy-share", "this is the busy share of all device time: the question is idle / ideal"),
            (1 / truth, "inverted", "this is ideal / idle: it is the other way round"),
            ((3 - 1) / 4, "equal-stages", "this is (K-1)/M, which holds for equal stages: device 2 is slower, so read the times"),
            (idle[0] / busy[0], "device-0-alone", "this is the number of device 0 alone: take all three devices"),
            (
                idle[2] / busy[2],
                "device-2-alone",
                "this is the number of device 2 alone, or (K-1)/(M+K-1): take the times of all three devices",
            ),
        ],
        hint=f"idle / ideal is not {value:g}: {hint}",
    )


@task(
    "lab03.t2",
    title="Enough microbatches",
    prompt="give the smallest number of microbatches for which 1F1B on 8 devices has a bubble ratio of at most 0.10",
)
def enough_microbatches(answer: object) -> Feedback:
    """Judge the smallest number of microbatches for 8 devices and a bubble ratio of 0.10."""
    devices, most = 8, 0.10
    count = require_count(answer, "a number of microbatches", most=10**6)
    ratio = formulas.bubble_ratio(devices, count)
    if ratio <= most < formulas.bubble_ratio(devices, max(count - 1, 1)):
        return right(f"the bubble ratio is {ratio:.4f}, and with one microbatch fewer it is above {most:.2f}")
    mistakes: list[Mistake] = [
        (70, "idle-over-ideal", "70 comes from (K-1)/M, which is idle / ideal: the bubble ratio is (K-1)/(M+K-1)"),
        (72, "k-for-k-1", "72 comes from K/(M+K): the fill takes K-1 forwards, because no device waits for the last one"),
        (80, "k-over-m", "80 comes from K/M: filling takes K-1 forwards, and the bubble ratio divides by M+K-1"),
        (27, "another-pipeline", "27 microbatches are enough for 4 devices: this pipeline has 8"),
    ]
    reached = f"with {counted(count, 'microbatch')} the bubble ratio is {ratio:.4f}"
    if ratio <= most:
        return wrong_value(count, mistakes, f"{reached}: enough, but fewer are enough too", code="more-than-enough")
    return wrong_value(count, mistakes, f"{reached}: above {most:.2f}, take more", code="too-few")


@task(
    "lab03.t3",
    title="The peaks of a short pipeline",
    prompt="give the peak activations of devices 0 to 5 of 1F1B on 6 devices with 4 microbatches, as a list",
)
def peaks_of_a_short_pipeline(answer: object) -> Feedback:
    """Judge the six peak activations of 1F1B with fewer microbatches than devices."""
    devices, microbatches = 6, 4
    peaks = require_numbers(answer, devices, "peak activations of a device")
    truth = _peaks("1f1b", devices, microbatches)
    if near(peaks, truth, 0.01):
        return right("min(K-d, M): with fewer microbatches than devices, the first devices hold them all")
    warm_up = [min(devices - 1 - d, microbatches) for d in range(devices)]
    mistakes: list[Mistake] = [
        (
            [devices - d for d in range(devices)],
            "more-than-microbatches",
            "device 0 cannot hold 6 activations: there are only 4 microbatches",
        ),
        ([microbatches] * devices, "gpipe", "this is GPipe: in 1F1B device 5 runs every backward right after its forward"),
        (
            truth[::-1],
            "reversed",
            "this is the right list, reversed: device 0 waits longest for its first backward, so it holds most",
        ),
        (warm_up, "warm-up-alone", "this is the warm-up alone: one more forward runs before the first backward"),
    ]
    return _wrong_device(peaks, truth, mistakes, "activations", f"of {microbatches} microbatches")


@task(
    "lab03.t4",
    title="Thirty milliseconds",
    prompt="give the time in ms by which fill and drain lengthen the run of 2 stages, 8 microbatches, 50 and 80 ms a stage",
)
def thirty_milliseconds(answer: object) -> Feedback:
    """Judge the fill and drain, in ms, of the report's pipeline; section 7.2.2 of the report says 30 ms."""
    time = require_number(answer, "a fill and drain in ms")
    costs = Costs(forward=report.FORWARD, backward=report.BACKWARD)
    timeline = simulate(build("1f1b", report.STAGES, report.MICROBATCHES), costs)
    truth = timeline.makespan - timeline.busy[0]
    if near(time, truth, 0.5):
        return right("(K-1)F to fill and (K-1)B to drain, as the report itself has it in section 5.3; 30 would be B - F")
    mistakes: list[Mistake] = [
        (30, "printed-figure", "30 ms is the printed figure, but the first forward alone keeps device 1 waiting for 50 ms"),
        (50, "fill-alone", "50 ms is the fill, while device 1 waits for its first forward: the drain comes on top"),
        (80, "drain-alone", "80 ms is the drain, while device 0 waits for its last backward: the fill comes on top"),
        (
            2 * truth,
            "both-devices-added",
            "this adds up the idle time of both devices: they idle side by side, so the run gets longer by one of them",
        ),
        (truth / 2, "halved-times", "this halves the times: 50 and 80 ms are the times of one stage here"),
        (timeline.makespan, "makespan", "this is the makespan: take away what a device that never waits needs"),
        (timeline.busy[0], "busy-time", "this is the busy time of a device: the question is what waiting adds to it"),
        (truth + 40, "all-reduce-included", "this includes the all-reduce: it comes after the drain and is no part of it"),
        (truth / 1000, "seconds", "this is in seconds: give ms"),
    ]
    hint = "when does device 1 start, and how long after its last backward does device 0 end?"
    return wrong_value(time, mistakes, f"fill and drain do not lengthen the run by {time:g} ms: {hint}", within=0.001)


@task(
    "lab03.t5",
    title="A schedule that fits",
    prompt="give the name of the schedule and the GiB that it needs on each of the 8 devices, as (name, [eight numbers])",
    points=2,
)
def a_schedule_that_fits(answer: object) -> Feedback:
    """Judge which schedule has the lowest bubble ratio and fits in memory: 16 GiB on devices 0 to 6, 8 GiB on device 7."""
    gib, names = 1.5, ("gpipe", "1f1b", "zb-h1")
    parts = require_parts(answer, 2, "a name and a list, such as ('gpipe', [1.5, ...])")
    name = known_name(require_text(parts[0], "the name of a schedule", "gpipe").strip().lower(), names, "schedule to choose")
    capacity = [16.0] * 7 + [8.0]
    peaks = _peaks(name, 8, 32)
    need = [gib * peak for peak in peaks]
    over = next((device for device in range(8) if need[device] > capacity[device]), None)
    if over is not None:
        least = " although its bubble ratio is the lowest" if name == "zb-h1" else ""
        size = f"{need[over]:g} GiB, but it has {capacity[over]:g}"
        return wrong("does-not-fit", f"{name} does not fit{least}: device {over} would need {size}")
    values = require_numbers(parts[1], 8, "GiB that a device needs")
    if near(values, need, 0.01):
        return right("it fits everywhere, and of those that fit it idles least")
    mistakes: list[Mistake] = [
        (peaks, "microbatches-not-gib", "these are microbatches: one microbatch takes 1.5 GiB on a device"),
        (need[::-1], "reversed", "these are the right numbers from the last device to the first: device 0 comes first"),
    ]
    return _wrong_device(values, need, mistakes, "GiB", f"with {name}")


@task(
    "lab03.t6",
    title="The price of messages",
    prompt="give the time in ms by which messages lengthen the 1F1B step on 16 devices with the times of RUNS[-1]",
    points=2,
)
def the_price_of_messages(answer: object) -> Feedback:
    """Judge how many ms latency adds to 1F1B's makespan. The times are those of the model 6.2B; 64 microbatches, 16 devices."""
    time = require_number(answer, "a time in ms")
    run, devices = zero_bubble.RUNS[-1], 16
    others: list[Mistake] = [
        (
            _cost_of_latency(other, devices),
            "another-run",
            f"this is the cost of messages with {other.model} and {other.microbatches} microbatches: RUNS[-1] is 6.2B with 64",
        )
        for other in zero_bubble.RUNS[:-1]
    ]
    truth = _cost_of_latency(run, devices)
    hint = "simulate 16 devices with run.costs() and with run.costs(latency=False), and compare the makespans"
    return judge_value(
        time,
        truth,
        0.06,
        lesson="the makespan with messages less the one without; [2(K-1)M/K + 2(K-2)]C gives the same",
        mistakes=[
            (_cost_of_latency(run, run.devices), "another-pipeline", "this is the cost of messages on 8 devices: here the pipeline has 16"),
            (
                30 * run.latency,
                "gpipe",
                "this is what messages cost GPipe, 2(K-1)C: in 1F1B devices wait for them again every K microbatches",
            ),
            (120 * run.latency, "no-fill-and-drain", "this lacks the longer fill and drain, 2(K-2)C"),
            (run.latency, "one-message", "this is one message: a step waits for many, one after the other"),
            (truth / 1000, "seconds", "this is in seconds: give ms"),
            (
                _makespan_of_run(run, devices, True),
                "step-with-messages",
                "this is the whole step with messages: take away the step without them",
            ),
            (
                _makespan_of_run(run, devices, False),
                "step-without-messages",
                "this is the whole step without messages: take it away from the step with them",
            ),
            *others,
        ],
        hint=f"messages do not lengthen the step by {time:g} ms: {hint}",
    )


def _peaks(name: str, devices: int, microbatches: int) -> list[float]:
    """Return the peak activations of every device, in microbatches."""
    return [float(peak) for peak in simulate(build(name, devices, microbatches), Costs(forward=10, backward=20)).peak_activations]


def _makespan_of_run(run: zero_bubble.ZeroBubbleRun, devices: int, latency: bool) -> float:
    return float(simulate(build("1f1b", devices, run.microbatches), run.costs(latency)).makespan)


def _cost_of_latency(run: zero_bubble.ZeroBubbleRun, devices: int) -> float:
    return _makespan_of_run(run, devices, True) - _makespan_of_run(run, devices, False)


def _wrong_device(values: list[float], truth: list[float], mistakes: list[Mistake], unit: str, of: str) -> Feedback:
    """Return the feedback on a list with one number for each device. It names a known mistake, or the first wrong device."""
    device = next(place for place in range(len(truth)) if not near(values[place], truth[place], 0.01))
    side, code = ("less", "too-much") if values[device] > truth[device] else ("more", "too-little")
    hint = f"device {device} holds {side} than {values[device]:g} {unit} {of}: count from its first forward to its first backward"
    return wrong_value(values, mistakes, hint, within=0.01, code=code)
