"""Lab 11, recomputation and microbatches: the tasks and the feedback on their answers."""

from hybridlab import formulas
from hybridlab.checks import short_repr, whole_number
from hybridlab.costs import Costs
from hybridlab.course.tasks.answers import (
    Mistake,
    mistake_behind,
    near,
    require_count,
    require_number,
    require_numbers,
    require_parts,
    require_text,
)
from hybridlab.course.tasks.checking import Feedback, judge_value, right, task, wrong
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate
from hybridlab.step.recomputation import recomputed_peak
from hybridlab.timeline import Timeline

KEPT = 0.1  # share of an activation that is kept; the rest is computed again
SAMPLES, DEVICES = 64, 8  # of task 3
ROOM, SECOND_COPY = 12.0, 5.0  # in samples' activations: what fits on a device, and what a second copy of the weights takes
BUDGET = 1500.0  # ms


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
    hint = "F is 50, I is 75 and W is 50 ms: put them into M(F + B) + (K - 1)(F + I - W)"
    return judge_value(
        time,
        truth,
        0.5,
        lesson="M(F + B) + (K - 1)(F + I - W): all of the recomputing is in I, so the bubble grows by (K - 1)rF",
        mistakes=[
            (
                busy + 350,
                "old-bubble",
                "this has the bubble of r = 0, 7 x 50 ms: the recomputing makes I longer, so the bubble grows as well",
            ),
            (
                busy + 437.5,
                "backward-halved",
                "this splits the backward in halves: the weight gradient takes F as before, all of the recomputing is in I",
            ),
            (formulas.zb_h1_makespan(*sizes, 100, 50), "nothing-recomputed", "this is the step without recomputing"),
            (formulas.zb_h1_makespan(*sizes, 150, 50), "all-recomputed", "this recomputes the whole forward: here r is 0.5"),
            (2400 + truth - busy, "old-busy-time", "this has the longer bubble, but the busy time without recomputing"),
            (busy, "busy-time-alone", "this is the busy time of a device: the bubble comes on top"),
            (truth - busy, "bubble-alone", "this is the bubble: the busy time comes on top"),
            (
                formulas.one_f_one_b_makespan(*sizes, backward),
                "1f1b",
                "this is 1F1B: ZB-H1 fills a part of the bubble with weight gradients",
            ),
            (microbatches * 175 + 8 * 75, "k-for-k-1", "this has K times F + I - W: the bubble has it K - 1 times"),
        ],
        hint=f"the makespan is not {time:g} ms: {hint}",
    )


@task(
    "lab11.t2",
    title="How far the ratio can fall",
    prompt="give the floors of 1F1B and of eager 1F1B on 8 devices at a latency of 100 ms, as a list of two",
    points=2,
)
def how_far_the_ratio_can_fall(answer: object) -> Feedback:
    """Judge the limits of two bubble ratios for endless microbatches: F 50, B 100, C 100 ms, 8 and 15 in flight."""
    values = require_numbers(answer, 2, "floor of a schedule")
    trip, work = DEVICES * 150 + 2 * (DEVICES - 1) * 100, 150
    floors = [1 - work * count / trip for count in (DEVICES, 2 * DEVICES - 1)]
    if near(values, floors, 0.003):
        return right("a device runs as many microbatches in a round trip as may be in flight: 8, or 15")
    if near(values, [100 * floor for floor in floors], 0.3):
        return wrong("per-cent", f"the lab asks for shares of one: write {values[0]:g} % as {values[0] / 100:g}")
    hint = "how long is a round trip, K(F + B) + 2(K - 1)C, and how many microbatches may be in flight meanwhile?"
    of_first: list[Mistake] = [
        (
            0.0,
            "no-floor",
            "1F1B's floor is not 0: for every 8 microbatches it waits for messages to go down the pipeline and back",
        ),
        (1 - 150 / 1550, "a-trip-each", "this waits for a round trip for every microbatch: 8 microbatches share one"),
        (1400 / 1200, "idle-over-ideal", "this is idle / ideal: divide by the whole time, idle time included"),
        (1600 / 2800, "k-messages", "this has K messages each way: from device 0 to device 7 there are 7"),
        (700 / 1900, "one-way", "this has the messages of one way: they go down the pipeline and come back"),
        (floors[1], "swapped", "this is the floor of eager 1F1B: 1F1B comes first in the list"),
    ]
    of_second: list[Mistake] = [
        (0.0, "all-hidden", "eager 1F1B hides a latency up to (F + B)/2, which is 75 ms: here it is 100"),
        (floors[0], "eight-in-flight", "this is the floor of 1F1B: eager 1F1B has 15 in flight on device 0, not 8"),
        (1 - 150 * 16 / trip, "sixteen-in-flight", "this has 16 microbatches in flight: eager 1F1B holds 2K - 1 at most"),
        (
            floors[0] / 2,
            "halved",
            "twice the warm-up does not halve the ratio: 15 microbatches share the round trip of 2600 ms",
        ),
    ]
    mistake = mistake_behind(values[0], of_first, 0.003) or mistake_behind(values[1], of_second, 0.003)
    if mistake:
        return wrong(*mistake[1:])
    place = 0 if not near(values[0], floors[0], 0.003) else 1
    return wrong("wrong-value", f"the floor of {('1F1B', 'eager 1F1B')[place]} is not {values[place]:g}: {hint}")


@task(
    "lab11.t3",
    title="A plan that fits",
    prompt="give a plan that holds at most 12 samples and takes at most 1500 ms, as (schedule, chunks, microbatches, recompute)",
    points=3,
)
def a_plan_that_fits(answer: object) -> Feedback:
    """Judge a plan for 64 samples on 8 devices by its memory and its makespan."""
    wanted = "a name, two numbers and True or False, such as ('1f1b', 1, 8, False)"
    text, chunks, microbatches, recompute = require_parts(answer, 4, wanted)
    if not isinstance(recompute, bool):
        raise HybridLabError(f"the answer is {wanted}, not {short_repr(answer)}", "wrong-shape")
    name = require_text(text, "the name of a schedule", "1f1b").strip().lower()
    chunks, microbatches = (
        require_count(chunks, "a number of chunks", most=64),
        require_count(microbatches, "a number of microbatches", most=SAMPLES),
    )
    if SAMPLES % microbatches:
        possible = "1, 2, 4, 8, 16, 32 or 64 are possible"
        return wrong("samples-not-divisible", f"64 samples cannot be cut into {microbatches} equal microbatches: {possible}")
    timeline, peak = run_batch(name, microbatches, recompute, chunks)
    takes = f"{REGISTRY[name].title} takes {timeline.makespan:.1f} ms"
    if peak > ROOM:
        return wrong("does-not-fit", f"{takes}, but a device needs room for {peak:g} samples and has it for {ROOM:g}")
    if timeline.makespan <= BUDGET:
        return right(f"{takes} and needs room for {peak:g} samples; no plan that fits without recomputing takes less than 1857.5 ms")
    slow = f"{takes} and fits, but that is above {BUDGET:g}: the devices idle {100 * timeline.bubble_ratio:.0f} % of the time"
    if not recompute:
        return wrong("no-recomputation", slow, "what else would fit if a microbatch kept only a tenth of its activations?")
    if microbatches < SAMPLES:
        hint = "smaller microbatches make fill and drain shorter: does this schedule wait longer for messages if there are more of them?"
        return wrong("large-microbatches", slow, hint)
    hint = "which schedules wait for messages only in the fill and the drain, and which of them has the shorter ones?"
    return wrong("waits-for-messages", slow, hint)


def run_batch(name: str, microbatches: int, recompute: bool, chunks: int | None = None) -> tuple[Timeline, float]:
    """Return the timeline of a plan of task 3, and the room that it needs on a device.

    A sample takes 5 ms forward and 10 ms backward on a device, a message 10 ms.

    Parameters
    ----------
    name : str
        The schedule.
    microbatches : int
        Into how many the 64 samples are cut.
    recompute : bool
        Whether forwards run again, so that a tenth of the activations is kept.
    chunks : int, optional
        Chunks a device; the fewest that the schedule supports if left out.

    Returns
    -------
    Timeline
        Times in ms.
    float
        Samples whose activations need room, a second copy of the weights included.

    Examples
    --------
    >>> timeline, peak = run_batch("1f1b", 16, recompute=False)
    >>> timeline.makespan, peak
    (1780.0, 32.0)
    """
    size, part = SAMPLES / whole_number(microbatches, "microbatches"), int(recompute)
    schedule = build(name, DEVICES, microbatches, chunks)
    costs = Costs(forward=5 * size, backward=(10 + 5 * part) * size, weight_share=1 / (2 + part), p2p=10)
    peak = recomputed_peak(schedule, KEPT if recompute else 1.0).max()
    return simulate(schedule, costs), round(float(peak) * size, 6) + SECOND_COPY * (schedule.copies - 1)
