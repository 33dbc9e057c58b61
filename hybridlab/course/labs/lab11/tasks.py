"""Lab 11, recomputation and microbatches: the tasks and the feedback on their answers."""

from typing import Any

from hybridlab import formulas
from hybridlab.checks import counted, distinct_texts, short_repr, whole_number
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import near, require_count, require_numbers, require_parts, require_text
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, right, task, wrong
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab03 import peaks
from hybridlab.course.labs.lab11 import recomputed_peaks
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate
from hybridlab.step.recomputation import recomputed_peak
from hybridlab.timeline import Timeline

KEPT = 0.1  # share of an activation that is kept; the rest is computed again
SAMPLES, DEVICES = 64, 8  # in task 3
ROOM, SECOND_COPY = 12.0, 5.0  # unit: the activations of one sample; the memory of a device, and of a second copy of the weights
BUDGET = 1500.0  # ms
PARTS = ("schedule", "chunks", "microbatches", "recompute")


@number_task(
    "lab11.t1",
    title="Where the recomputation goes",
    draws={"devices": (6, 7, 8, 9), "microbatches": (14, 16, 18), "forward": (40, 50, 60)},
)
def where_the_recomputation_goes(devices: int = 8, microbatches: int = 16, forward: int = 50) -> Question:
    """Ask for ZB-H1's makespan if half of each forward is recomputed, r = 0.5. I takes (1 + r)F, and W takes F."""
    backward, others = 2.5 * forward, devices - 1
    sizes = devices, microbatches, forward
    truth = formulas.zb_h1_makespan(*sizes, backward, forward)
    busy = microbatches * (forward + backward)
    time = Number(
        "a makespan in ms",
        truth,
        hint=f"the makespan is not {{value}} ms: F is {forward}, I is {1.5 * forward:g} and W is {forward} ms: "
        "put them into M(F + B) + (K - 1)(F + I - W)",
        mistakes=[
            (
                busy + others * forward,
                "old-bubble",
                f"this has the bubble of r = 0, {others} x {forward} ms: the recomputing makes I longer, so the bubble grows as well",
            ),
            (
                busy + others * backward / 2,
                "backward-halved",
                "this splits the backward in halves: the weight gradient takes F as before, all of the recomputing is in I",
            ),
            (
                formulas.zb_h1_makespan(*sizes, 2 * forward, forward),
                "nothing-recomputed",
                "this is the step without recomputing",
            ),
            (
                formulas.zb_h1_makespan(*sizes, 3 * forward, forward),
                "all-recomputed",
                "this recomputes the whole forward: here r is 0.5",
            ),
            (
                3 * microbatches * forward + truth - busy,
                "old-busy-time",
                "this has the longer bubble, but the busy time without recomputing",
            ),
            (busy, "busy-time-alone", "this is the busy time of a device alone: add the bubble"),
            (truth - busy, "bubble-alone", "this is the bubble alone: add the busy time of a device"),
            (
                formulas.one_f_one_b_makespan(*sizes, backward),
                "1f1b",
                "this is 1F1B: ZB-H1 fills a part of the bubble with weight gradients",
            ),
            (truth + 1.5 * forward, "k-for-k-1", "this bubble is K times F + I - W: the right one is K - 1 times as long as F + I - W"),
        ],
        example="2700",
    )
    return Question(
        f"give the makespan in ms of ZB-H1 on {devices} devices, {microbatches} microbatches, a forward of {forward} ms, "
        "half of it recomputed",
        [time],
        "M(F + B) + (K - 1)(F + I - W): all of the recomputing is in I, so the bubble grows by (K - 1)rF",
    )


@number_task(
    "lab11.t2", title="How far the ratio can fall", points=2, draws={"devices": (6, 7, 8, 9), "latency": (80, 85, 95, 105, 110, 115)}
)
def how_far_the_ratio_can_fall(devices: int = 8, latency: int = 100) -> Question:
    """Ask for the limits of two bubble ratios as the number of microbatches grows. A forward takes 50 ms, a backward 100 ms."""
    work, others = 150, devices - 1
    idle, ideal = 2 * others * latency, devices * work
    trip = ideal + idle
    in_flight = [round(formulas.peak_activations(name, devices, 2 * devices)) for name in ("1f1b", "eager-1f1b")]
    floors = [1 - work * count / trip for count in in_flight]

    def has(place: int, value: float) -> str:
        """Return an expression that is true if an answer has this wrong value in this place."""
        return f"near(value[{place}], {value}, 0.0005)"

    both = Number(
        "floor of a schedule",
        floors,
        hint="the floor of {names[place]} is not {value[place]:g}: how long is a round trip, K(F + B) + 2(K - 1)C, and how many "
        "microbatches can be in flight meanwhile?",
        given={"names": ("1F1B", "eager 1F1B"), "percents": [100 * floor for floor in floors]},
        fields=("Floor of 1F1B", "Floor of eager 1F1B"),
        example="0.25",
        mistakes=[
            (
                "near(value, percents, 0.3)",
                "per-cent",
                "the lab asks for shares of one: write {value[0]:g} % as {value[0] / 100:g}",
            ),
            (
                has(0, 0.0),
                "no-floor",
                f"1F1B's floor is not 0: for every {devices} microbatches it waits for messages to go down the pipeline and back",
            ),
            (
                has(0, 1 - work / (work + idle)),
                "a-trip-each",
                f"this waits for a round trip for every microbatch: {devices} microbatches share one round trip",
            ),
            (has(0, idle / ideal), "idle-over-ideal", "this is idle / ideal: divide by the whole time, idle time included"),
            (
                has(0, 1 - ideal / (ideal + 2 * devices * latency)),
                "k-messages",
                f"this has K messages each way: from device 0 to device {others} there are {others} messages",
            ),
            (
                has(0, 1 - ideal / (ideal + others * latency)),
                "one-way",
                "this has the messages of one way: they go down the pipeline and come back",
            ),
            (has(0, floors[1]), "swapped", "this is the floor of eager 1F1B: 1F1B comes first in the list"),
            (
                has(1, 0.0),
                "all-hidden",
                f"eager 1F1B hides a latency up to (F + B)/2, which is {work / 2:g} ms: here it is {latency}",
            ),
            (
                has(1, floors[0]),
                "eight-in-flight",
                f"this is the floor of 1F1B: on device 0, eager 1F1B has {in_flight[1]} microbatches in flight, not {in_flight[0]}",
            ),
            (
                has(1, 1 - 2 * ideal / trip),
                "sixteen-in-flight",
                f"this has {2 * devices} microbatches in flight: eager 1F1B holds 2K - 1 at most",
            ),
            (
                has(1, floors[0] / 2),
                "halved",
                f"twice the warm-up does not halve the ratio: {in_flight[1]} microbatches share the round trip of {trip} ms",
            ),
        ],
        decimals=3,
    )
    return Question(
        f"give the floors of 1F1B and of eager 1F1B on {devices} devices at a latency of {latency} ms, to 3 decimals, as a list of two",
        [both],
        f"in a round trip a device runs the microbatches that can be in flight: {in_flight[0]} under 1F1B, {in_flight[1]} under eager 1F1B",
    )


@task(
    "lab11.t3",
    title="A plan that fits",
    prompt="give a plan that holds at most 12 samples and takes at most 1500 ms, as (schedule, chunks, microbatches, recompute)",
    points=3,
)
def a_plan_that_fits(answer: Any) -> Feedback:
    """Judge a plan for 64 samples on 8 devices by its memory and its makespan."""
    wanted = "a name, two numbers and True or False, such as ('1f1b', 1, 8, False)"
    parts = [answer.get(name) for name in PARTS] if isinstance(answer, dict) and answer.keys() == set(PARTS) else answer
    text, chunks, microbatches, recompute = require_parts(parts, 4, wanted)
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
        return wrong("does-not-fit", f"{takes}, but a device needs room for {peak:g} samples and has room for {ROOM:g}")
    if timeline.makespan <= BUDGET:
        return right(f"{takes} and needs room for {peak:g} samples; no plan that fits without recomputing takes less than 1857.5 ms")
    slow = f"the plan fits, but {takes}, more than {BUDGET:g}: the devices are idle for {100 * timeline.bubble_ratio:.0f} % of the time"
    if not recompute:
        return wrong("no-recomputation", slow, "what else would fit if a microbatch kept only a tenth of its activations?")
    if microbatches < SAMPLES:
        hint = "smaller microbatches make fill and drain shorter: but does this schedule then wait longer for messages?"
        return wrong("large-microbatches", slow, hint)
    hint = "which schedules wait for messages only in the fill and the drain, and which of these schedules has the shortest fill and drain?"
    return wrong("waits-for-messages", slow, hint)


def run_batch(name: str, microbatches: int, recompute: bool, chunks: int | None = None) -> tuple[Timeline, float]:
    """Return the timeline of a plan of task 3, and the memory that the plan needs on a device.

    On a device the forward of a sample takes 5 ms and the backward 10 ms. A message takes 10 ms.

    Parameters
    ----------
    name : str
        The schedule.
    microbatches : int
        The number of microbatches into which the 64 samples are cut.
    recompute : bool
        Whether the devices recompute the forwards, and so keep only a tenth of the activations.
    chunks : int, optional
        The number of chunks of a device. The default is the fewest chunks that the schedule supports.

    Returns
    -------
    Timeline
        Times in ms.
    float
        The memory in activations of one sample, including a second copy of the weights if the schedule has one.

    Examples
    --------
    >>> timeline, peak = run_batch("1f1b", 16, recompute=False)
    >>> timeline.makespan, peak
    (1780.0, 32.0)
    """
    size, again = SAMPLES / whole_number(microbatches, "microbatches"), int(recompute)  # again: the share of a forward that runs twice
    schedule = build(name, DEVICES, microbatches, chunks)
    costs = Costs(forward=5 * size, backward=(10 + 5 * again) * size, weight_share=1 / (2 + again), p2p=10)
    peak = recomputed_peak(schedule, KEPT if recompute else 1.0).max()
    return simulate(schedule, costs), round(float(peak) * size, 6) + SECOND_COPY * (schedule.copies - 1)


@build_task(
    "lab11.t4",
    title="Build the memory count with recomputation",
    prompt="write a function recomputed_peaks(orders, kept) that returns the most that each device holds at once with recomputation",
    points=5,
    signature="recomputed_peaks(orders, kept)",
    cases=recomputed_peaks.orders_and_shares,
    mistakes=recomputed_peaks.MISTAKES,
    twists=peaks.TWISTS,
    examples=recomputed_peaks.EXAMPLES,
    within=1e-9,
    lesson="recomputation saves memory between a forward and its backward, and nothing between an input gradient and its weight gradient",
)
def peaks_with_recomputation(answer: Any, orders: list[str], kept: float) -> Feedback:
    """Judge the peaks of all devices for the orders of one case."""
    if not isinstance(answer, list) or len(answer) != len(orders):
        given = counted(len(answer), "number") if isinstance(answer, list) else f"{answer!r:.40}"
        return wrong("another-size", f"the result is a list with one number for each line, {len(orders)} in all, not {given}")
    values = require_numbers(answer, len(orders), "peak of a device", "1.7")
    for line, value in zip(orders, values, strict=True):
        peak = recomputed_peaks.peak_of_line(line, kept)
        if not near(value, peak, 1e-9):
            device = Op.parse(line.split()[0]).stage
            wanted, found = distinct_texts(peak, value)
            holds = f"device {device} runs {line}: its peak is {wanted}; you returned {found}"
            return wrong("too-much" if value > peak else "too-little", holds)
    return right()
