"""Lab 14, latency and imbalance: the tasks and the feedback on their answers."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from hybridlab import formulas
from hybridlab.arrays import Floats
from hybridlab.checks import counted, short_repr
from hybridlab.costs import Costs
from hybridlab.course.tasks.answers import near, require_count, require_numbers, require_parts, require_text
from hybridlab.course.tasks.checking import Feedback, right, task, wrong
from hybridlab.course.tasks.questions import Number, Question, number_task
from hybridlab.errors import HybridLabError
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

DEVICES, MICROBATCHES, LATENCY = 8, 32, 10.0  # of task 2; times in ms
ROOM, SECOND_COPY = 12.0, 5.0  # in activations of a microbatch
LAYERS = np.array([2.0] + 14 * [4.0] + [12.0])  # forward time of each layer in task 4, ms
WHY_SLOW = {  # the code and the reason by the name of the schedule
    "1f1b": ("too-few-in-flight", "K microbatches in flight are too few for the round trip: it has no other work in the meantime"),
    "zb-h1": ("hides-5-ms", "putting off the weight gradient hides a latency of half a weight gradient, 5 ms, and no more"),
    "dualpipe-v": (
        "folded-without-overlap",
        "folded, each microbatch crosses from device to device twice as often, and nothing is gained without overlap",
    ),
    "v-half": ("few-in-flight", "it holds few microbatches, so few are on their way and the devices wait for them"),
    "v-min": ("fewest-in-flight", "it holds the fewest microbatches, so the fewest are on their way and the devices wait for them"),
}
MANY_CHUNKS = "more chunks mean more messages: the bubble shrinks, but the waits grow faster"


@number_task("lab14.t1", title="The crossing point", draws={"devices": (3, 4), "forward": (20, 22, 24), "backward": (28, 29, 30)})
def the_crossing_point(devices: int = 4, forward: int = 20, backward: int = 30) -> Question:
    """Ask for the latency at which eager 1F1B overtakes interleaved 1F1B with 2 chunks."""
    microbatches, chunks = 4 * devices, 2
    sizes, times = (devices, microbatches), (forward, backward)

    def line(steps: Callable[[float], float]) -> tuple[float, float]:
        """Return the bubble without latency, and by how many ms the step grows for each ms of latency."""
        return steps(0) - microbatches * (forward + backward), round(steps(1) - steps(0))

    bubble, eager = line(lambda latency: formulas.eager_one_f_one_b_makespan(*sizes, *times, latency))
    bubble_of_chunks, interleaved = line(lambda latency: formulas.interleaved_makespan(*sizes, chunks, *times, latency))
    _, plain = line(lambda latency: formulas.one_f_one_b_makespan(*sizes, *times, latency))
    ahead = bubble - bubble_of_chunks
    hiding, chunk = (forward + backward) / 2, forward / chunks
    latency = Number(
        "a latency in ms",
        ahead / (interleaved - eager),
        hint="the lines do not cross at {value} ms: set (M + K-1)(F + B) + 2(K-1)C equal to (M + (K-1)/v)(F + B) + 2(vK-1)C",
        mistakes=[
            (
                bubble / (interleaved - eager),
                "one-way-or-no-bubble",
                "messages go both ways, and interleaved keeps a bubble of (K-1)(F + B)/v: one of the two is missing",
            ),
            (
                ahead / (2 * chunks * (devices - 1) - eager),
                "folded",
                "a message of interleaved also goes from the last device to the first: 2(vK-1) of them, not 2v(K-1)",
            ),
            (
                ahead / interleaved,
                "eager-never-waits",
                "eager 1F1B waits as well, for 2(K-1) messages: the difference of the two slopes counts",
            ),
            (
                ahead / (plain - eager),
                "1f1b",
                f"{plain} is the slope of 1F1B: eager 1F1B waits for 2(K-1) messages, {eager}",
            ),
            (
                hiding,
                "end-of-hiding",
                f"{hiding:g} ms is where eager 1F1B stops hiding its messages: the lines have crossed long before",
            ),
            (
                chunk,
                "end-of-closed-form",
                f"{chunk:g} ms is a chunk's forward, where the closed form of interleaved ends: the lines cross before that",
            ),
            (0, "no-latency", "without latency interleaved is ahead: its bubble is half as long"),
            (ahead, "head-start", f"{ahead:g} ms is the head start of interleaved: how much of it does each ms of latency take?"),
        ],
        decimals=2,
        example="4.5",
    )
    return Question(
        f"give the latency in ms, to 2 decimals, from which eager 1F1B is faster than interleaved 1F1B with {chunks} chunks, "
        f"on {devices} devices, with {microbatches} microbatches, a forward of {forward} and a backward of {backward} ms",
        [latency],
        f"interleaved starts {ahead:g} ms ahead and loses {interleaved} - {eager} ms for each ms of latency, whatever M is",
    )


@task(
    "lab14.t2",
    title="A schedule for a slow link",
    prompt="give the fastest schedule that fits and its chunks a device, as (name, chunks)",
    points=2,
)
def a_schedule_for_a_slow_link(answer: Any) -> Feedback:
    """Judge a schedule and its chunks: 8 devices, 32 microbatches, 10 and 20 ms, a latency of 10 ms, room for 12 activations."""
    text, number = require_parts(answer, 2, "a name and a number of chunks, such as ('interleaved', 2)")
    name = require_text(text, "the name of a schedule", "interleaved").strip().lower()
    chunks = require_count(number, "a number of chunks", "4", most=16)
    timeline = slow_link(name, chunks)
    peak = float(timeline.peak_activations.max())
    takes = f"{name} with {counted(chunks, 'chunk')} takes {timeline.makespan:.0f} ms"
    if _memory_needed(timeline) > ROOM:
        there = f"there is room for {ROOM:g}"
        if timeline.schedule.copies > 1:
            weights = f"its second copy of the weights takes the room of {SECOND_COPY:g} more"
            holds = f"one of its devices holds {peak:g} microbatches, and {weights}"
            return wrong("second-copy", f"{name} does not fit: {holds}; {there}")
        return wrong("does-not-fit", f"{name} does not fit: one of its devices holds {peak:g} microbatches; {there}")
    best = 1375.0  # ms, of the library's schedules; a student may register others
    if timeline.makespan <= best + 0.01:
        return right(f"{takes} and holds {peak:g} microbatches: it keeps halves of them, so that twice as many are on their way")
    lost = timeline.makespan - slow_link(name, chunks, 0.0).makespan
    slower = f"{takes}, {lost:.0f} of them for messages: another one fits and is faster"
    if chunks > 2 or name in ("interleaved", "interleaved-zb", "hanayo"):
        return wrong("many-chunks", slower, MANY_CHUNKS)
    code, *reason = WHY_SLOW.get(name, ("too-slow",))
    return wrong(code, slower, *reason)


@number_task(
    "lab14.t3", title="Whose idle time", points=2, draws={"first": (11, 12, 13), "last": (14, 15, 16), "microbatches": (12, 13, 14)}
)
@cache
def whose_idle_time(first: int = 12, last: int = 14, microbatches: int = 12) -> Question:
    """Ask for the two parts of the idle time of 1F1B on 4 devices, two of them with forwards of 10 ms; B = 2F."""
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
        hint=lambda values: f"the devices idle for {idle:g} ms in all, these are {sum(values):g}: 4 x step less all busy times",
        code="wrong-sum",
        mistakes=[
            (
                truth[::-1],
                "swapped",
                f"these are the right numbers in the wrong order: a step of {most:g} ms, the work of the busiest device, "
                "has only the imbalance",
            ),
            (
                [each / devices for each in truth],
                "one-device",
                "these are means over the devices: the question is about all four together",
            ),
            (
                [schedule / devices, imbalance],
                "schedule-of-one-device",
                f"the step is {length - most:g} ms longer than the work of the busiest device: that is lost on all four devices",
            ),
            (
                [idle, 0],
                "no-imbalance",
                "compared with the mean busy time there is no imbalance: compare with the busiest device",
            ),
            (
                [equal_stages, idle - equal_stages],
                "equal-stages",
                "(K-1)/(M + K-1) of the time is for equal stages: here take the step less the busiest device",
            ),
            ([each / share for each in truth], "shares", "these are shares of the device time: give ms"),
            ([100 * each / share for each in truth], "per-cent", "these are per cent of the device time: give ms"),
            (
                lambda values: near(sum(values), idle, 0.5),
                "wrong-division",
                "together they are the whole idle time, but each part is wrong: how long would the step be at least?",
            ),
        ],
        decimals=2,
    )
    return Question(
        f"give the idle ms of all devices that the schedule loses, and those that the imbalance loses, with forwards of {first}, 10, 10 "
        f"and {last} ms and {microbatches} microbatches, as (schedule, imbalance)",
        [parts],
        "with as many microbatches as you like the first becomes small beside the work, the second grows with it",
    )


@task(
    "lab14.t4",
    title="Where to cut",
    prompt="give the numbers of layers on devices 0 to 3 that make the step shortest, such as [4, 4, 4, 4]",
    points=3,
)
def where_to_cut(answer: Any) -> Feedback:
    """Judge a cut of 16 layers into 4 stages by its makespan under 1F1B; 8 microbatches, B = 2F."""
    if isinstance(answer, list) and len(answer) == 3:
        raise HybridLabError("three numbers are the places of the cuts: give how many layers each of the 4 devices has", "places-of-cuts")
    values = require_numbers(answer, 4, "number of layers of a device")
    if near(sum(values), LAYERS.sum(), 0.01):
        return wrong("ms-not-layers", f"{short_repr(answer)} are ms: give how many layers each device has, 16 in all")
    counts = [require_count(value, "a number of layers", "4", most=16) for value in values]
    if sum(counts) != LAYERS.size:
        there = f"the four stages have {sum(counts)} layers, the model has {LAYERS.size}: embedding, 14 blocks, output layer"
        if counts[-1] == LAYERS.size and counts == sorted(counts):
            return wrong("layers-up-to-cuts", f"these are the layers up to each cut: {there}")
        return wrong("another-number-of-layers", there)
    times = loads(counts)
    length, best = float(_makespans(times[None])[0]), _shortest()
    slow = int(times.argmax())
    pace = f"device {slow} sets the pace, with {times[slow]:g} ms for a forward of its {counted(counts[slow], 'layer')}"
    takes = f"the step takes {length:g} ms; {pace}"
    if length <= best * (1 + 1e-9):
        return right(f"{takes}: nothing is lighter than that, and the heavy devices come first, where the warm-up gives them work")
    if times[slow] == 20:
        hint = "no cut has a lighter heaviest device, but the places of the heavy ones matter: which devices wait in fill and drain?"
        return wrong("heavy-devices-late", takes, hint)
    hint = "give it fewer layers; if it is the last device, put fewer blocks beside the output layer"
    return wrong("too-heavy", takes, hint)


def slow_link(name: str, chunks: int | None = None, latency: float = LATENCY) -> Timeline:
    """Return the step of task 2 under a schedule.

    >>> float(slow_link("1f1b").makespan)
    1850.0
    """
    return simulate(build(name, DEVICES, MICROBATCHES, chunks), Costs(forward=10, backward=20, p2p=latency))


def loads(counts: Sequence[int]) -> Floats:
    """Return the forward time of each stage in task 4, in ms, for these numbers of layers.

    >>> loads([4, 4, 4, 4]).tolist()
    [14.0, 16.0, 16.0, 24.0]
    """
    return np.array([part.sum() for part in np.split(LAYERS, np.cumsum(counts)[:-1])])


def _makespans(times: Floats) -> Floats:
    """Return the makespans of 1F1B with these forward times. Each row of four times is one setting."""
    found: Floats = simulate(build("1f1b", 4, 8), Costs(forward=times, backward=2 * times)).makespan
    return found


@cache
def _shortest() -> float:
    """Return the makespan of the best cut in task 4, among all ways to cut."""
    cuts = [np.diff([0, *places, LAYERS.size]) for places in combinations(range(1, LAYERS.size), 3)]
    return float(_makespans(np.array([loads(cut.tolist()) for cut in cuts])).min())


def _memory_needed(timeline: Timeline) -> float:
    """Return the most memory that a device needs, in activations of a microbatch. A second copy of the weights is included."""
    return float(timeline.peak_activations.max()) + SECOND_COPY * (timeline.schedule.copies - 1)
