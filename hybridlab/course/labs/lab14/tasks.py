"""Lab 14, latency: the tasks and the feedback on their answers."""

from collections.abc import Callable
from typing import Any

from hybridlab import formulas
from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import require_count, require_parts, require_text
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, PartialCredit, right, task, wrong
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab12.critical_path import Rows
from hybridlab.course.labs.lab14 import least_microbatches, slowdown
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

DEVICES, MICROBATCHES, LATENCY = 8, 32, 10.0  # the setting of task 2; the latency in ms
ROOM, SECOND_COPY = 12.0, 5.0  # the memory of a device, and of a second copy of the weights, in activations of a microbatch
WHY_SLOW = {  # for the name of a schedule: the code of the feedback, and the reason why the schedule is slow here
    "1f1b": (
        "too-few-in-flight",
        "K microbatches in the pipeline are too few: while messages travel there and back, devices have no other work",
    ),
    "zb-h1": ("hides-5-ms", "a later weight gradient hides a latency of half its own time, 5 ms, and no more"),
    "dualpipe-v": (
        "folded-without-overlap",
        "in the folded placement each microbatch moves between devices twice as often, and this pays only if messages overlap with work",
    ),
    "v-half": ("few-in-flight", "this schedule holds few microbatches, so the devices often wait for messages"),
    "v-min": ("fewest-in-flight", "this schedule holds the fewest microbatches, so the devices wait for messages most often"),
}
MANY_CHUNKS = "more chunks mean more messages: the bubble gets shorter, but the waits for messages grow faster"


@number_task("lab14.t1", title="The crossing point", draws={"devices": (3, 4), "forward": (20, 22, 24), "backward": (28, 29, 30)})
def the_crossing_point(devices: int = 4, forward: int = 20, backward: int = 30) -> Question:
    """Ask for the latency from which eager 1F1B is faster than interleaved 1F1B with 2 chunks."""
    microbatches, chunks = 4 * devices, 2
    sizes, times = (devices, microbatches), (forward, backward)

    def line(steps: Callable[[float], float]) -> tuple[float, float]:
        """Return the bubble without latency in ms, and how many ms longer the step gets with each ms of latency."""
        return steps(0) - microbatches * (forward + backward), round(steps(1) - steps(0))

    bubble, eager = line(lambda latency: formulas.eager_one_f_one_b_makespan(*sizes, *times, latency))
    bubble_of_chunks, interleaved = line(lambda latency: formulas.interleaved_makespan(*sizes, chunks, *times, latency))
    _, plain = line(lambda latency: formulas.one_f_one_b_makespan(*sizes, *times, latency))
    ahead = bubble - bubble_of_chunks
    hiding, chunk = (forward + backward) / 2, forward / chunks
    latency = Number(
        "a latency in ms",
        ahead / (interleaved - eager),
        hint="the two steps are not equal at {value} ms: set (M + K-1)(F + B) + 2(K-1)C equal to (M + (K-1)/v)(F + B) + 2(vK-1)C",
        mistakes=[
            (
                bubble / (interleaved - eager),
                "one-way-or-no-bubble",
                "messages go both ways, and interleaved has a bubble of (K-1)(F + B)/v: your answer leaves out one of the two",
            ),
            (
                ahead / (2 * chunks * (devices - 1) - eager),
                "folded",
                "interleaved also sends messages from the last device to the first: it waits for 2(vK-1) messages, not for 2v(K-1)",
            ),
            (
                ahead / interleaved,
                "eager-never-waits",
                "eager 1F1B waits as well, for 2(K-1) messages: divide by the difference of the two slopes",
            ),
            (
                ahead / (plain - eager),
                "1f1b",
                f"{plain} is the slope of 1F1B: eager 1F1B waits for 2(K-1) messages, so its slope is {eager}",
            ),
            (
                hiding,
                "end-of-hiding",
                f"at {hiding:g} ms eager 1F1B stops hiding its messages: the two steps are equal at a shorter latency",
            ),
            (
                chunk,
                "end-of-closed-form",
                f"{chunk:g} ms is a chunk's forward, where the closed form of interleaved ends: the steps are equal at a shorter latency",
            ),
            (
                0,
                "no-latency",
                "without latency interleaved is faster, because its bubble is half as long: find the latency that takes away this lead",
            ),
            (
                ahead,
                "head-start",
                f"{ahead:g} ms is the lead of interleaved without latency: how much of this lead does each ms of latency take away?",
            ),
        ],
        decimals=2,
        example="4.5",
    )
    return Question(
        f"give the latency in ms, to 2 decimals, from which eager 1F1B is faster than interleaved 1F1B with {chunks} chunks, "
        f"on {devices} devices, with {microbatches} microbatches, a forward of {forward} and a backward of {backward} ms",
        [latency],
        f"without latency interleaved is {ahead:g} ms ahead; it loses {interleaved} - {eager} ms of this for each ms of latency, for any M",
    )


@task(
    "lab14.t2",
    title="A schedule for a slow link",
    prompt="give the fastest schedule that fits and its chunks a device, as (name, chunks)",
    points=2,
)
def a_schedule_for_a_slow_link(answer: Any) -> Feedback:
    """Judge the name of a schedule and its number of chunks on each device.

    The setting is 8 devices, 32 microbatches, forwards of 10 ms, backwards of 20 ms, a latency of 10 ms, and room for 12 activations.
    """
    text, number = require_parts(answer, 2, "a name and a number of chunks, such as ('interleaved', 2)")
    name = require_text(text, "the name of a schedule", "interleaved").strip().lower()
    chunks = require_count(number, "a number of chunks", "4", most=16)
    timeline = slow_link(name, chunks)
    peak = float(timeline.peak_activations.max())
    takes = f"{name} with {counted(chunks, 'chunk')} takes {timeline.makespan:.0f} ms"
    if _memory_needed(timeline) > ROOM:
        there = f"there is room for {ROOM:g}"
        if timeline.schedule.copies > 1:
            weights = f"its second copy of the weights takes as much memory as {SECOND_COPY:g} more"
            holds = f"one of its devices holds {peak:g} microbatches, and {weights}"
            return wrong("second-copy", f"{name} does not fit: {holds}; {there}")
        return wrong("does-not-fit", f"{name} does not fit: one of its devices holds {peak:g} microbatches; {there}")
    best = 1375.0  # ms: the makespan of the best schedule in the library; a student may register further schedules
    if timeline.makespan <= best + 0.01:
        return right(f"{takes} and holds {peak:g} microbatches: its pieces have half as many layers, so twice as many are in flight")
    lost = timeline.makespan - slow_link(name, chunks, 0.0).makespan
    slower = f"{takes}, and {lost:.0f} ms of them are lost by messages: another schedule fits and is faster"
    if chunks > 2 or name in ("interleaved", "interleaved-zb", "hanayo"):
        return wrong("many-chunks", slower, MANY_CHUNKS)
    code, *reason = WHY_SLOW.get(name, ("too-slow",))
    return wrong(code, slower, *reason)


@build_task(
    "lab14.t3",
    title="The messages that count",
    prompt="write a function slowdown(free, late, path) that returns by how many ms the latency lengthens the step, and the messages on "
    "the path",
    points=3,
    signature="slowdown(free, late, path)",
    cases=slowdown.slowed_steps_of_many_kinds,
    mistakes=slowdown.MISTAKES,
    twists=slowdown.TWISTS,
    examples=slowdown.EXAMPLES,
    reads=slowdown.read_slowed,
    partial_credit=[PartialCredit("right about the time by which each step is longer", 1 / 2, slowdown.PATH_FAULTS)],
    lesson="each message on the path adds at most the latency; the step grows by less if another chain is the longest one without latency",
)
def the_messages_that_lengthen_the_step(slowed: slowdown.Slowed, free: Rows, late: Rows, path: list[str]) -> Feedback:
    """Judge the result for one step."""
    return slowdown.judge_slowed(slowed, free, late, path)


@build_task(
    "lab14.t4",
    title="GPipe that recomputes",
    prompt="write a function least_microbatches(devices, forward, backward, latency, most) that returns the least number of microbatches "
    "at which GPipe, which recomputes, is as fast as 1F1B, or 0 if there is none up to most",
    points=4,
    signature="least_microbatches(devices, forward, backward, latency, most)",
    cases=least_microbatches.sizes_and_times,
    mistakes=least_microbatches.MISTAKES,
    twists=least_microbatches.TWISTS,
    examples=least_microbatches.EXAMPLES,
    reads=least_microbatches.read_count,
    lesson="GPipe loses (M + K-1)F by recomputing, and with nearly every further microbatch 1F1B waits for two more messages",
)
def gpipe_that_recomputes(count: int, devices: int, forward: float, backward: float, latency: float, most: int) -> Feedback:
    """Judge the least number of microbatches for one size."""
    return least_microbatches.judge_least(count, devices, forward, backward, latency, most)


def slow_link(name: str, chunks: int | None = None, latency: float = LATENCY) -> Timeline:
    """Return the timeline of a step in the setting of task 2, with the named schedule.

    >>> float(slow_link("1f1b").makespan)
    1850.0
    """
    return simulate(build(name, DEVICES, MICROBATCHES, chunks), Costs(forward=10, backward=20, p2p=latency))


def _memory_needed(timeline: Timeline) -> float:
    """Return the largest memory of a device, in activations of a microbatch. It includes a second copy of the weights."""
    return float(timeline.peak_activations.max()) + SECOND_COPY * (timeline.schedule.copies - 1)
