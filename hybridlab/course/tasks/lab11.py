"""Lab 11, recomputation and microbatches: the tasks and what each says to an answer."""

from hybridlab import formulas
from hybridlab.checks import short_repr, whole_number
from hybridlab.costs import Costs
from hybridlab.course.tasks.answers import a_text, mistake_behind, near, require_number, some_numbers
from hybridlab.course.tasks.checking import Feedback, right, task, wrong
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate
from hybridlab.step.recomputation import recomputed_peak
from hybridlab.timeline import Timeline

KEPT = 0.1  # of an activation, where the rest is computed again
SAMPLES, DEVICES = 64, 8  # of the batch of task 3, and of its pipeline
ROOM, SECOND_COPY, BUDGET = 12.0, 5.0, 1500.0  # samples whose activations fit on each device, and in place of weights; ms


@task(
    "lab11.t1",
    title="Where the recomputation goes",
    prompt="give the makespan in ms of ZB-H1 on 8 devices, 16 microbatches, a forward of 50 ms, half of it recomputed",
)
def where_the_recomputation_goes(answer: object) -> Feedback:
    """Judge ZB-H1's makespan with r = 0.5: the input gradient (1 + r)F, the weight gradient F."""
    time = require_number(answer, "a makespan in ms", "2700")
    devices, microbatches, forward, part = 8, 16, 50.0, 0.5
    backward = (2 + part) * forward
    sizes = devices, microbatches, forward
    truth = formulas.zb_h1_makespan(*sizes, backward, forward)
    busy = microbatches * (forward + backward)
    if near(time, truth, 0.5):
        return right("M(F + B) + (K - 1)(F + I - W): all of the recomputing is in I, so the bubble grows by (K - 1)rF")
    mistakes = [
        (busy + 350, "this has the bubble of r = 0, 7 x 50 ms: the recomputing makes I longer, so the bubble grows as well"),
        (busy + 437.5, "this splits the backward in halves: the weight gradient takes F as before, all of the recomputing is in I"),
        (formulas.zb_h1_makespan(*sizes, 100, 50), "this is the step without recomputing"),
        (formulas.zb_h1_makespan(*sizes, 150, 50), "this recomputes the whole forward: here r is 0.5"),
        (2400 + truth - busy, "this has the longer bubble, and the old busy time"),
        (busy, "this is the busy time of a device: the bubble comes on top"),
        (truth - busy, "this is the bubble: the busy time comes on top"),
        (formulas.one_f_one_b_makespan(*sizes, backward), "this is 1F1B: ZB-H1 fills a part of the bubble with weight gradients"),
        (microbatches * 175 + 8 * 75, "this has K times F + I - W: the bubble has it K - 1 times"),
    ]
    hint = "F is 50, I is 75 and W is 50 ms: put them into M(F + B) + (K - 1)(F + I - W)"
    return wrong(mistake_behind(time, mistakes, 0.5) or f"the makespan is not {time:g} ms: {hint}")


@task(
    "lab11.t2",
    title="How far the ratio can fall",
    prompt="give the floors of 1F1B and of eager 1F1B on 8 devices at a latency of 100 ms, as a list of two",
    points=2,
)
def how_far_the_ratio_can_fall(answer: object) -> Feedback:
    """Judge the limits of two bubble ratios for endless microbatches: F 50, B 100, C 100 ms, 8 and 15 in flight."""
    values = some_numbers(answer, 2, "floor of a schedule")
    trip, work = DEVICES * 150 + 2 * (DEVICES - 1) * 100, 150
    floors = [1 - work * count / trip for count in (DEVICES, 2 * DEVICES - 1)]
    if all(near(value, truth, 0.003) for value, truth in zip(values, floors, strict=True)):
        return right("a device runs as many microbatches in a round trip as may be in flight: 8, or 15")
    if all(near(value, 100 * truth, 0.3) for value, truth in zip(values, floors, strict=True)):
        return wrong(f"the lab asks for shares of one: write {values[0]:g} % as {values[0] / 100:g}")
    known = [
        (0, 0.0, "1F1B's floor is not 0: for every 8 microbatches it waits for messages to go down the pipeline and back"),
        (0, 1 - 150 / 1550, "this waits a round trip for every microbatch: 8 of them share one"),
        (0, 1400 / 1200, "this is idle / ideal: divide by all of the time"),
        (0, 1600 / 2800, "this has K messages each way: from device 0 to device 7 there are 7"),
        (0, 700 / 1900, "this has the messages of one way: they go down the pipeline and come back"),
        (0, floors[1], "this is the floor of eager 1F1B: 1F1B comes first in the list"),
        (1, 0.0, "eager 1F1B hides a latency up to (F + B)/2, which is 75 ms: here it is 100"),
        (1, floors[0], "this is the floor of 1F1B: eager 1F1B has 15 in flight on device 0, not 8"),
        (1, 1 - 150 * 16 / trip, "this has 16 microbatches in flight: eager 1F1B holds 2K - 1 at most"),
        (1, floors[0] / 2, "twice the warm-up does not halve the ratio: 15 microbatches share the round trip of 2600 ms"),
    ]
    for place, number, sentence in known:
        if near(values[place], number, 0.003):
            return wrong(sentence)
    place = 0 if not near(values[0], floors[0], 0.003) else 1
    hint = "how long is a round trip, K(F + B) + 2(K - 1)C, and how many microbatches may be in flight meanwhile?"
    return wrong(f"the floor of {('1F1B', 'eager 1F1B')[place]} is not {values[place]:g}: {hint}")


@task(
    "lab11.t3",
    title="A plan that fits",
    prompt="give a plan that holds at most 12 samples and takes at most 1500 ms, as (schedule, chunks, microbatches, recompute)",
    points=3,
)
def a_plan_that_fits(answer: object) -> Feedback:
    """Judge a plan for 64 samples on 8 devices by its memory and its makespan."""
    if not isinstance(answer, list) or len(answer) != 4 or not isinstance(answer[3], bool):
        raise HybridLabError(f"a plan is a name, two numbers and True or False, such as ('1f1b', 1, 8, False), not {short_repr(answer)}")
    name = a_text(answer[0], "the name of a schedule", "1f1b").strip().lower()
    chunks, microbatches = _a_count(answer[1], "a number of chunks", 64), _a_count(answer[2], "a number of microbatches", SAMPLES)
    if SAMPLES % microbatches:
        return wrong(f"64 samples cannot be cut into {microbatches} equal microbatches: 1, 2, 4, 8, 16, 32 or 64 are possible")
    timeline, peak = plan(name, microbatches, answer[3], chunks)
    message = f"{REGISTRY[name].title} takes {timeline.makespan:.1f} ms"
    if peak > ROOM:
        return wrong(f"{message}, but a device needs room for {peak:g} samples and has it for {ROOM:g}")
    if timeline.makespan <= BUDGET:
        return right(f"{message} and needs room for {peak:g} samples; no plan that fits without recomputing takes less than 1857.5 ms")
    slow = f"{message} and fits, but that is above {BUDGET:g}: the devices idle {100 * timeline.bubble_ratio:.0f} % of the time"
    if not answer[3]:
        return wrong(slow, "what else would fit if a microbatch kept only a tenth of its activations?")
    if microbatches < SAMPLES:
        return wrong(slow, "smaller microbatches make fill and drain shorter: does this schedule pay for more of them in waits?")
    return wrong(slow, "which schedules wait for messages in the fill and the drain alone, and which of them has the shorter ones?")


def plan(name: str, microbatches: int, recompute: bool, chunks: int | None = None) -> tuple[Timeline, float]:
    """Return the timeline of a plan of task 3, and for how many samples' activations a device needs room, a second copy included.

    A sample takes 5 ms forward and 10 ms backward on a device, a message 10 ms.

    >>> timeline, peak = plan("1f1b", 16, recompute=False)
    >>> timeline.makespan, peak
    (1780.0, 32.0)
    """
    size, part = SAMPLES / whole_number(microbatches, "microbatches"), int(recompute)
    schedule = build(name, DEVICES, microbatches, chunks)
    costs = Costs(forward=5 * size, backward=(10 + 5 * part) * size, weight_share=1 / (2 + part), p2p=10)
    peak = recomputed_peak(schedule, KEPT if recompute else 1.0).max()
    return simulate(schedule, costs), round(float(peak) * size, 6) + SECOND_COPY * (schedule.copies - 1)


def _a_count(answer: object, what: str, most: int) -> int:
    number = require_number(answer, what, "12")
    if number != int(number) or not 1 <= number <= most:
        raise HybridLabError(f"{what} is a whole number of at least 1 and at most {most:,}, not {number:g}")
    return int(number)
