"""Lab 13, zero bubble: the tasks and what each says to an answer."""

import numpy as np

from hybridlab.checks import short_repr
from hybridlab.costs import Costs
from hybridlab.course.published.zero_bubble import bubble_rate
from hybridlab.course.tasks.answers import a_text, mistake_behind, near, require_number, some_numbers
from hybridlab.course.tasks.checking import Feedback, right, task, wrong
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.schedules import REGISTRY, build, known_schedule
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

THREE_TIMES = ((10, 12, 6), (10, 6, 12), (8, 12, 10))  # F, I, W in ms
ROOM = 12  # microbatches a device


@task(
    "lab13.t1",
    title="ZB-H1's bubble by hand",
    prompt="give ZB-H1's bubble in ms for each of the three models, as a list of three numbers",
    points=2,
)
def bubbles_by_hand(answer: object) -> Feedback:
    """Judge the bubble of ZB-H1, makespan less work, of 6 devices and 12 microbatches for three sets of times."""
    values = some_numbers(answer, 3, "bubble of a model in ms")
    for place, (value, times) in enumerate(zip(values, THREE_TIMES, strict=True)):
        model, timeline = "abc"[place], _timeline("zb-h1", 6, 12, *times)
        truth = timeline.makespan - timeline.busy[0]
        if not near(value, truth, 0.01):
            said = mistake_behind(value, _slips(*times, timeline), 0.01)
            return wrong(f"model {model}: {said or f'not {value:g} ms: when does device 0 wait, and when does device 5 start?'}")
    return right("the paper's term counts for a; in b the last device starts too late for more, in c the first I comes back too late")


def _slips(forward: float, input_gradient: float, weight_gradient: float, timeline: Timeline) -> list[tuple[float, str]]:
    waits, paper = 5, forward + input_gradient - weight_gradient
    return [
        (waits * paper, "F + I - W is not all: a wait cannot be shorter than nothing, however long W is"),
        (waits * input_gradient, "(K-1)I is the time until the first input gradient is back on device 0: what else is there to wait for?"),
        (waits * forward, "(K-1)F is the time before the last device starts: what does device 0 wait for?"),
        (waits * (forward + input_gradient), "(K-1)(F + I) would be the bubble without any weight gradient to fill it"),
        (waits * (paper + 2 * weight_gradient), "this is 1F1B's bubble, (K-1)(F + B): in ZB-H1 I alone is waited for"),
        (waits * (paper - weight_gradient), "this is F + I - 2W, ZB-H2's: ZB-H1 has half of its warm-up"),
        (6 * (timeline.makespan - timeline.busy[0]) / waits, "this counts all 6 devices: a microbatch has 5 others to pass"),
        ((timeline.makespan - timeline.busy[0]) / waits, "this is one device's part: a microbatch has 5 to pass"),
        (timeline.makespan, "this is the whole step: take away the work of a device, M(F + I + W)"),
        (100 * timeline.bubble_ratio, "this is the bubble ratio in per cent: give ms"),
        (timeline.bubble_ratio, "this is the bubble ratio: give ms"),
    ]


@task(
    "lab13.t2",
    title="Two rates of one step",
    prompt="give the ratio of the sweeps' program and the rate of Table 5 for this ZB-H2, as [ratio, rate]",
)
def two_rates(answer: object) -> Feedback:
    """Judge bubble ratio and bubble rate of ZB-H2: 6 devices, 12 microbatches, F, I, W of 10, 12, 8 ms; three decimals."""
    values = some_numbers(answer, 2, "idle share, by one definition")
    timeline = _timeline("zb-h2", 6, 12, 10, 12, 8)
    truth = [timeline.bubble_ratio, bubble_rate(timeline)]
    makespan, span, work = timeline.makespan, timeline.device_span, float(timeline.busy[0])
    if all(map(_close, values, truth)):
        return right(f"one step of {makespan:g} ms, in which no device is at work for longer than {span:g} ms from start to end")
    if all(map(_close, values, truth[::-1])):
        return wrong("these are the right numbers in the wrong order: the ratio, which takes the makespan, comes first")
    if any(value > 1 for value in values):
        return wrong("a share is at most 1: divide the idle time, and write 5 % as 0.05")
    same = "the rate takes the longest time from a device's own first start to its own last end, the ratio the whole step"
    place = 0 if not _close(values[0], truth[0]) else 1
    whole = (makespan, span)[place]
    mistakes = [
        (truth[1 - place], f"this is the other one: {same}"),
        ((whole - work) / work, "this divides by the work: divide by the whole time, idle time included"),
        (0, "this ZB-H2 is not without bubble: 2W is less than F + I, and the last device starts late"),
        ((makespan - span) / makespan, "this is the difference of the two ends: take the work away from each"),
    ]
    return wrong(f"the {('ratio', 'rate')[place]}: {mistake_behind(values[place], mistakes, 6e-4) or f'not {values[place]:g}; {same}'}")


def _close(value: float, truth: float) -> bool:
    return near(value, truth, 6e-4)


@task(
    "lab13.t3",
    title="The shortest that fits",
    prompt="give the name of the schedule with the shortest step that fits, and the length of that step in ms, as (name, ms)",
    points=2,
)
def the_shortest_that_fits(answer: object) -> Feedback:
    """Judge the choice among one-copy schedules: 8 devices, 24 microbatches, F, I, W of 10, 8, 12, C of 5 ms, room for 12."""
    if not isinstance(answer, list) or len(answer) != 2:
        raise HybridLabError(f"the answer is a name and a time, such as ('gpipe', 1000), not {short_repr(answer)}")
    name = known_schedule(a_text(answer[0], "the name of a schedule", "gpipe").strip())
    time = require_number(answer[1], "the length of a step in ms", "1000")
    if REGISTRY[name].copies > 1:
        return wrong(f"{name} holds two copies of the weights on every device: choose among those with one")
    runs = {each: _timeline(each, 8, 24, 10, 8, 12, 5) for each, family in REGISTRY.items() if family.copies == 1}
    peak, best = float(runs[name].peak_activations.max()), min(run.makespan for run in runs.values() if run.peak_activations.max() <= ROOM)
    if peak > ROOM:
        return wrong(f"{name} does not fit: a device holds {peak:g} microbatches at once, and there is room for {ROOM}")
    if runs[name].makespan > best:
        message = f"{name} fits, but its step of {runs[name].makespan:g} ms is not the shortest of those that fit"
        dear = runs[name].schedule.chunks > 1
        return wrong(f"{message}: each of its microbatches changes the device about twice as often, at 5 ms a message" if dear else message)
    if not near(time, best, 0.06):
        bare = near(time, _timeline(name, 8, 24, 10, 8, 12).makespan, 0.06)
        return wrong(f"{name} is right, but its step does not take {time:g} ms{': a message takes 5 ms' if bare else ''}")
    return right("with free messages the schedules with two chunks win; at 5 ms a message they pay twice as often")


@task(
    "lab13.t4",
    title="Beat ZB-H1",
    prompt="write an order for 3 devices and 4 microbatches as text, one line a device, that is shorter than ZB-H1 in the same memory",
    points=3,
)
def beat_zb_h1(answer: object) -> Feedback:
    """Judge an order as text against ZB-H1, with uneven stages: able to run, 3 activations a device, a shorter makespan."""
    schedule = Schedule.parse(a_text(answer, "a schedule", "device 0: 0F0 0F1 0I0 0W0 0I1 0W1"), name="yours")
    size = (schedule.devices, schedule.stages, schedule.microbatches)
    if size != (3, 3, 4) or schedule.device_of != (0, 1, 2):
        return wrong("this order can run, but the task is 4 microbatches on 3 devices, with stage 0 on device 0, 1 on 1 and 2 on 2")
    costs = Costs(forward=[30, 10, 10], backward=[30, 30, 40], weight_share=[2 / 3, 2 / 3, 3 / 4])  # ms
    given, yours = (simulate(each, costs) for each in (build("zb-h1", 3, 4), schedule))
    full = np.flatnonzero(yours.peak_activations > 3)
    if full.size:
        return wrong(f"device {full[0]} holds {yours.peak_activations[full[0]]:g} microbatches at once, and there is room for 3")
    least, gain = 240, given.makespan - yours.makespan
    if gain < 0.01:
        late = int(yours.device[np.argmax(yours.end)])
        mine = yours.device == late
        idle = yours.end[mine].max() - yours.start[mine].min() - yours.busy[late]
        off = f"{-gain:g} ms longer than" if gain < -0.01 else "as long as"
        message = f"it has stood idle for {idle:g} ms since its first start" if idle > 0.01 else "it never paused"
        return wrong(f"your order takes {yours.makespan:g} ms, {off} ZB-H1; device {late} ends last, and {message}")
    message = f"your order takes {yours.makespan:g} ms, {gain:g} ms less than ZB-H1"
    if yours.makespan > least + 0.01:
        return right(f"{message}; the shortest takes {least} ms, since device 0 has that much work and need not wait once")
    return right(f"{message}; no order is shorter, since device 0 has that much work")


def _timeline(name: str, devices: int, microbatches: int, forward: float, i: float, w: float, p2p: float = 0.0) -> Timeline:
    return simulate(build(name, devices, microbatches), Costs(forward=forward, backward=i + w, weight_share=w / (i + w), p2p=p2p))
