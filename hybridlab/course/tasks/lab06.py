"""Lab 6, the whole step: the tasks and the feedback on their answers."""

from hybridlab.checks import counted, known_name
from hybridlab.collectives import Link
from hybridlab.costs import Costs
from hybridlab.course.published import report
from hybridlab.course.tasks.answers import Mistake, near, require_count, require_number, require_parts, require_text
from hybridlab.course.tasks.checking import Feedback, judge_value, right, task, wrong, wrong_value
from hybridlab.schedules import build
from hybridlab.step import HybridStep, hybrid_step
from hybridlab.wire import FP16, WireFormat

COSTS = Costs(forward=10, backward=20)  # ms
CHANGES = ("overlap", "chunks", "int8", "link")
BUDGET = 280.0  # ms


@task(
    "lab06.t1",
    title="A step by hand",
    prompt="give the length in ms of the step of 3 stages, 4 replicas and 6 microbatches, with rings and optimiser",
)
def a_step_by_hand(answer: object) -> Feedback:
    """Judge the length of a serial step: 1F1B, forward 10, backward 20, ring step 5, optimiser 8 ms."""
    time = require_number(answer, "a length in ms", "210")
    stages, replicas, microbatches, ring_step, optimiser = 3, 4, 6, 5, 8
    step = hybrid_step(build("1f1b", stages, microbatches), COSTS, replicas, ring_step=ring_step, optimiser=optimiser)
    rest = ring_step * 2 * (replicas - 1) + optimiser
    pipeline = step.makespan - rest
    return judge_value(
        time,
        step.makespan,
        0.01,
        lesson="the pipeline, then 2(D-1) steps of all rings at the same time, then all optimisers at the same time",
        mistakes=[
            (pipeline, "pipeline-alone", "this is the pipeline alone: the rings and the optimiser come after it"),
            (pipeline + rest - optimiser, "no-optimiser", "this lacks the optimiser, which runs when the rings have ended"),
            (pipeline + optimiser, "no-rings", "this lacks the rings, which run between pipeline and optimiser"),
            (
                pipeline + rest + 2 * ring_step,
                "d-ring-steps",
                "this has 2D steps of the ring: a ring of 4 takes 3 to add up and 3 to pass on",
            ),
            (
                pipeline + rest - 3 * ring_step,
                "one-half-of-the-ring",
                "this has D-1 steps of the ring: the sums have to be passed on as well, in D-1 more",
            ),
            (
                pipeline + rest + 2 * 2 * 3 * ring_step,
                "rings-in-turn",
                "this has the rings of the three stages one after the other: they run at the same time",
            ),
            (
                pipeline + 2 * 11 * ring_step + optimiser,
                "one-ring-over-all",
                "this has one ring over all 12 devices: a ring joins the 4 that hold the same stage",
            ),
            (
                pipeline + 2 * 2 * ring_step + optimiser,
                "rings-of-stages",
                "this has rings of the 3 stages: a ring joins the 4 replicas of one stage",
            ),
            (microbatches * 30 + rest, "no-fill-and-drain", "this lacks fill and drain: a pipeline takes (M + K - 1)(F + B)"),
            ((microbatches + stages) * 30 + rest, "one-pair-too-many", "one pair too many in the pipeline: (M + K - 1)(F + B)"),
            (
                pipeline + rest + 2 * optimiser,
                "optimisers-in-turn",
                "this has the optimisers of the stages one after the other: they run at the same time",
            ),
            (step.single_device_time, "one-device-alone", "this is the time of one device doing all the work"),
            (
                (replicas * microbatches + 2) * 30 + rest,
                "one-pipeline-for-all",
                "each replica has 6 microbatches of its own: they do not share one pipeline",
            ),
        ],
        hint=f"the step does not take {time:g} ms: add up the pipeline, 2(D-1) steps of a ring, and one optimiser",
    )


@task(
    "lab06.t2",
    title="Nine tenths of four",
    prompt="give the smallest number of microbatches for which the report's four GPUs reach a speedup of at least 3.6",
    points=2,
)
def nine_tenths_of_four(answer: object) -> Feedback:
    """Judge the smallest M for an efficiency of 0.9: two stages, two replicas, 50 and 80 ms, ring step 20 ms, serial."""
    count, least = require_count(answer, "a number of microbatches", most=10_000), 3.6
    speedup = _step_of_the_report(count).speedup
    reached = f"with {counted(count, 'microbatch')} the speedup is {speedup:.3f}"
    if speedup >= least > _step_of_the_report(max(count - 1, 1)).speedup:
        return right(f"{reached}; fill, drain and ring cost the same whatever M is, and weigh less the more there is to do")
    mistakes: list[Mistake] = [
        (9, "bubble-alone", f"9 comes from the bubble alone, M/(M+1): the ring takes its 40 ms as well, and {reached}"),
        (24, "both-replicas", f"24 is the number for both replicas: M counts the microbatches of one, and {reached}"),
        (6, "shared", f"6 would be right if the replicas shared the 12: M counts the microbatches of one, and {reached}"),
    ]
    if speedup >= least:
        return wrong_value(count, mistakes, f"{reached}: enough, but fewer are enough too", code="more-than-enough")
    return wrong_value(count, mistakes, f"{reached}: below {least:g}, take more", code="too-few")


@task(
    "lab06.t3",
    title="What is left exposed",
    prompt="give the exposed communication in ms of the interleaved step under overlap, with a ring step of 30 ms",
    points=2,
)
def what_is_left_exposed(answer: object) -> Feedback:
    """Judge the exposed communication of interleaved 1F1B: 4 devices, 2 chunks, 8 microbatches, 4 replicas, 10 and 20 ms."""
    time = require_number(answer, "an exposed communication in ms", "42")
    step = hybrid_step(build("interleaved", 4, 8, 2), COSTS, 4, ring_step=30, overlap=True)
    truth, rings = step.exposed_communication, step.all_reduce_time
    hint = "the ring of stage 4 starts at 245 ms and takes 90; stage 0 ends at 285 ms; when can its ring start, and end?"
    return judge_value(
        time,
        truth,
        0.01,
        lesson="the ring of stage 4 still runs when stage 0 has ended, so the ring of stage 0 waits for it",
        mistakes=[
            (rings, "no-overlap", "this is the whole all-reduce: the ring of stage 4 starts 40 ms before the pipeline ends"),
            (rings / 2, "last-ring-alone", "this is the ring of stage 0 alone: it has to wait until the device's first ring is done"),
            (
                rings / 2 - 40,
                "first-ring-alone",
                "this is what is left of the first ring when the pipeline ends: the second comes on top",
            ),
            (rings - truth, "hidden-part", "this is the hidden communication: the question is what is left"),
            (
                2 * rings - 40,
                "whole-ring-steps",
                "each ring takes half of the 30 ms a step, because a chunk has half of the device's gradients",
            ),
            (
                0,
                "nothing-exposed",
                "nothing would be exposed if both rings were over when the pipeline ends: the second has not even begun",
            ),
            (step.makespan, "whole-step", "this is the whole step: take away the pipeline"),
            (step.makespan - truth, "pipeline-alone", "this is the pipeline: by how much does the step outlast it?"),
        ],
        hint=f"{time:g} ms is not what is exposed: {hint}",
    )


@task(
    "lab06.t4",
    title="Two changes",
    prompt="name the two changes that bring the step to at most 280 ms, and its length in ms, as (change, change, ms)",
    points=3,
)
def two_changes(answer: object) -> Feedback:
    """Judge a pair of changes to a plan, and the length of the step with both."""
    *names, length = require_parts(answer, 3, "two changes and a time, such as ('int8', 'link', 345.0)")
    first, second = (known_name(require_text(name, "a change", "int8").strip().lower(), CHANGES, "change") for name in names)
    if first == second:
        return wrong("same-change-twice", f"{first} twice is one change: name two")
    makespan = changed_step(first, second).makespan
    time = require_number(length, "the length of the step in ms", "345")
    summary = f"{first} and {second} together make the step {makespan:.1f} ms long"
    if makespan > BUDGET:
        above = f"{summary}, which is above {BUDGET:g}"
        if "chunks" not in (first, second):
            return wrong("no-chunks", above, "fill and drain take 90 ms of the step, more than the rings: which change shortens them?")
        return wrong("rings-exposed", above, "with chunks the pipeline takes 262.5 ms, so at most 17.5 ms of the rings may be exposed")
    if near(time, makespan, 0.1):
        return right(f"{summary}; overlap gains nothing without chunks, and with them more than half the bytes or twice the bandwidth")
    before = changed_step().makespan
    gains = sum(before - changed_step(each).makespan for each in (first, second))
    added: list[Mistake] = [
        (before - gains, "gains-added", "these are the right two, but their gains do not add up: overlap gains only where there are chunks")
    ]
    hint = f"these are the right two, but they do not make the step {time:g} ms long: run hybrid_step with both"
    return wrong_value(time, added, hint, within=0.1, code="wrong-length-of-step")


def changed_step(*changes: str) -> HybridStep:
    """Return the step of task 4 with these changes.

    >>> print(f"{changed_step().makespan:.1f} ms")
    390.1 ms
    """
    wire = WireFormat("INT8", block=256, scale="FP16") if "int8" in changes else FP16
    link = Link(latency=10e-6, bandwidth=50e9 if "link" in changes else 25e9)
    schedule = build("interleaved", 4, 8, 4) if "chunks" in changes else build("1f1b", 4, 8)
    return hybrid_step(schedule, COSTS, 4, link=link, gradient_bytes=10**9, wire=wire, overlap="overlap" in changes)


def _step_of_the_report(microbatches: int) -> HybridStep:
    costs = Costs(forward=report.FORWARD, backward=report.BACKWARD)
    return hybrid_step(build("1f1b", report.STAGES, microbatches), costs, report.REPLICAS, ring_step=report.RING_STEP)
