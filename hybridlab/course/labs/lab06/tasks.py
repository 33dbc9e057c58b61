"""Lab 6, the hybrid step: the tasks, and the feedback on answers to them."""

from dataclasses import replace

import numpy as np

from hybridlab.checks import counted, distinct_texts, known_name
from hybridlab.collectives import Link
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import require_number, require_parts, require_text, same
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, right, task, wrong
from hybridlab.course.checking.drawing import Drawing
from hybridlab.course.checking.expressions import filled
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab06.overlap import (
    EXAMPLES,
    MISTAKES,
    TWISTS,
    Rings,
    Rows,
    given_by,
    read_rings,
    rings_of,
    steps_of_many_kinds,
)
from hybridlab.course.published import report
from hybridlab.schedules import build
from hybridlab.step import HybridStep, hybrid_step, with_rings
from hybridlab.wire import FP16, WireFormat

COSTS = Costs(forward=10, backward=20)  # ms
CHANGES = ("overlap", "chunks", "int8", "link")
BUDGET = 280.0  # ms
WITHIN = 1e-6  # ms: smaller differences come from rounding


@number_task(
    "lab06.t1",
    title="A step by hand",
    draws={"replicas": (4, 6, 8), "microbatches": (6, 7, 8), "forward": (10, 11), "ring_step": (5, 7, 9), "optimiser": (8, 11)},
)
def a_step_by_hand(replicas: int = 4, microbatches: int = 6, forward: int = 10, ring_step: int = 5, optimiser: int = 8) -> Question:
    """Ask for the length of a training step under 1F1B. A backward takes twice the time of a forward.

    The rings start when all pipelines have ended.
    """
    stages, backward, pair = 3, 2 * forward, 3 * forward
    costs = Costs(forward=forward, backward=backward)
    step = hybrid_step(build("1f1b", stages, microbatches), costs, replicas, ring_step=ring_step, optimiser=optimiser)
    ring = 2 * (replicas - 1) * ring_step
    rest = ring + optimiser
    pipeline = step.makespan - rest
    length = Number(
        "a length in ms",
        step.makespan,
        hint="the step does not take {value} ms: add up the pipeline, 2(D-1) steps of a ring, and one optimiser",
        mistakes=[
            (pipeline, "pipeline-alone", "your answer is the pipeline alone: the rings and the optimiser come after it"),
            (pipeline + ring, "no-optimiser", "your answer lacks the optimiser, which runs when the rings have ended"),
            (pipeline + optimiser, "no-rings", "your answer lacks the rings, which run between pipeline and optimiser"),
            (
                pipeline + rest + 2 * ring_step,
                "d-ring-steps",
                f"your answer has 2D steps of the ring: a ring of {replicas} takes {replicas - 1} to add up and {replicas - 1} to pass on",
            ),
            (
                pipeline + rest - ring // 2,
                "one-half-of-the-ring",
                "your answer has D-1 steps of the ring: D-1 more steps pass the sums on",
            ),
            (
                pipeline + stages * ring + optimiser,
                "rings-in-turn",
                "your answer has the rings of the three stages one after the other: these rings run at the same time",
            ),
            (
                pipeline + 2 * (stages * replicas - 1) * ring_step + optimiser,
                "one-ring-over-all",
                f"your answer has one ring over all {stages * replicas} devices: a ring joins the {replicas} devices of one stage",
            ),
            (
                pipeline + 2 * (stages - 1) * ring_step + optimiser,
                "rings-of-stages",
                f"your answer has rings of the 3 stages: a ring joins the {replicas} replicas of one stage",
            ),
            (microbatches * pair + rest, "no-fill-and-drain", "your answer lacks fill and drain: a pipeline takes (M + K - 1)(F + B)"),
            (
                (microbatches + stages) * pair + rest,
                "one-pair-too-many",
                "your answer has one F + B too many: a pipeline takes (M + K - 1)(F + B)",
            ),
            (
                pipeline + ring + stages * optimiser,
                "optimisers-in-turn",
                "your answer has the optimisers of the stages one after the other: these run at the same time",
            ),
            (
                step.single_device_time,
                "one-device-alone",
                "your answer is the time of one device that does all the work: the devices of the mesh share it",
            ),
            (
                (replicas * microbatches + stages - 1) * pair + rest,
                "one-pipeline-for-all",
                f"each replica has {microbatches} microbatches of its own: the replicas do not share one pipeline",
            ),
        ],
    )
    times = f"forward {forward}, backward {backward}, step of a ring {ring_step}, optimiser {optimiser} ms"
    prompt = (
        f"give the length in ms of a step under 1F1B with {stages} stages, {replicas} replicas and {microbatches} microbatches; {times}"
    )
    return Question(prompt, [length], "the pipeline, then 2(D-1) steps of all rings at the same time, then all optimisers at the same time")


@number_task(
    "lab06.t2",
    title="Microbatches for an efficiency of 90 %",
    points=2,
    draws={"forward": (30, 40, 50, 60), "ring_step": (10, 15, 20, 25, 30, 40)},
)
def microbatches_for_an_efficiency(forward: float = report.FORWARD, ring_step: float = report.RING_STEP) -> Question:
    """Ask for the smallest M (microbatches of a replica) with which a step of the report's mesh has an efficiency of 0.9."""
    least = 3.6  # speedup: an efficiency of 0.9 on 4 devices

    def step_with(microbatches: int) -> HybridStep:
        costs = Costs(forward=forward, backward=report.BACKWARD)
        return hybrid_step(build("1f1b", report.STAGES, microbatches), costs, report.REPLICAS, ring_step=ring_step)

    one, two = step_with(1), step_with(2)
    each = two.makespan - one.makespan  # ms that one microbatch more takes
    times = {"alone": one.single_device_time, "each": each, "others": one.makespan - each}
    reached = "with {counted(value, 'microbatch')} the speedup is {alone * value / (others + each * value):.3f}"
    fewest = next(count for count in range(1, 100) if step_with(count).speedup >= least)
    of_one = "M counts the microbatches of one replica, and all replicas have as many"
    count = Number(
        "a number of microbatches",
        fewest,
        whole=True,
        most=10_000,
        example="10",
        hint=f"{reached}: this is below {least:g}, so take more microbatches",
        code="too-few",
        given=times,
        mistakes=[
            (
                9,
                "bubble-alone",
                f"9 comes from the bubble alone, M/(M+1): the ring takes its {one.all_reduce_time:g} ms as well, and {reached}",
            ),
            (2 * fewest, "both-replicas", f"{of_one}: {reached}, more than enough"),
            (-(-fewest // 2), "shared", f"{of_one}: {reached}, not enough"),
            (
                "value > truth",
                "more-than-enough",
                f"{reached}: these are enough, but fewer microbatches are enough, too",
            ),
        ],
    )
    prompt = (
        f"give the smallest number of microbatches of each replica with which the report's four GPUs reach a speedup of {least:g}, "
        f"if a forward takes {forward:g} ms, a backward {report.BACKWARD:g} ms and a step of a ring {ring_step:g} ms"
    )
    with_fewest = filled(reached, {**times, "value": fewest})
    lesson = f"{with_fewest}; fill, drain and ring take the same time for every M, and count less the more there is to do"
    return Question(prompt, [count], lesson)


@number_task(
    "lab06.t3", title="What is left exposed", points=2, draws={"replicas": (3, 4, 5), "ring_step": (30, 36, 42), "forward": (10, 12)}
)
def what_is_left_exposed(replicas: int = 4, ring_step: int = 30, forward: int = 10) -> Question:
    """Ask for the exposed communication of interleaved 1F1B under overlap: 4 devices, 2 chunks, 8 microbatches."""
    costs = Costs(forward=forward, backward=2 * forward)
    step = hybrid_step(build("interleaved", 4, 8, 2), costs, replicas, ring_step=ring_step, overlap=True)
    truth, rings = step.exposed_communication, step.all_reduce_time
    first, last = (step.timeline.end[step.timeline.schedule.stage == stage].max() for stage in (4, 0))
    gap = last - first
    exposed = Number(
        "an exposed communication in ms",
        truth,
        hint=f"{{value}} ms is not what is exposed: the ring of stage 4 starts at {first:g} ms and takes {rings / 2:g}; stage 0 ends at "
        f"{last:g} ms; when can its ring start, and when does it end?",
        mistakes=[
            (rings, "no-overlap", f"your answer is the whole all-reduce: the ring of stage 4 starts {gap:g} ms before the pipeline ends"),
            (
                rings / 2,
                "last-ring-alone",
                "your answer is the ring of stage 0 alone: this ring must wait until the device's first ring has ended",
            ),
            (
                rings / 2 - gap,
                "first-ring-alone",
                "your answer is half of the rings minus the hidden part: two rings run one after the other, and each has 2(D-1) steps",
            ),
            (gap, "hidden-part", "your answer is the hidden communication: the task asks for the exposed communication"),
            (
                2 * rings - gap,
                "whole-ring-steps",
                f"each ring takes half of the {ring_step} ms a step, because a chunk has half of the device's gradients",
            ),
            (
                0,
                "nothing-exposed",
                "nothing would be exposed if both rings ended before the pipeline: at its end the second ring has not even begun",
            ),
            (step.makespan, "whole-step", "your answer is the whole step: subtract the pipeline"),
            (step.makespan - truth, "pipeline-alone", "your answer is the time of the pipeline: how much later does the step end?"),
        ],
    )
    sizes = f"4 devices with 2 chunks each, 8 microbatches and {replicas} replicas, forward {forward} and backward {2 * forward} ms"
    ends = f"stage 4 ends at {first:g} ms and stage 0 at {last:g} ms, and a step of the ring takes {ring_step} ms for a whole device"
    prompt = f"give the exposed communication in ms of interleaved under overlap with {sizes}; {ends}"
    return Question(prompt, [exposed], "the ring of stage 4 still runs when stage 0 has ended, so the ring of stage 0 waits for it")


@task(
    "lab06.t4",
    title="Two changes",
    prompt="name the two changes that bring the step to at most 280 ms, and its length in ms to one decimal, as (change, change, ms)",
    points=3,
)
def two_changes(answer: object) -> Feedback:
    """Judge two changes to a plan, and the length of the step with both changes."""
    *names, length = require_parts(answer, 3, "two changes and a time, such as ('int8', 'link', 345.0)")
    first, second = (known_name(require_text(name, "a change", "int8").strip().lower(), CHANGES, "change") for name in names)
    if first == second:
        return wrong("same-change-twice", f"your answer has the change {first} twice: name two different changes")
    makespan = changed_step(first, second).makespan
    time = require_number(length, "the length of the step in ms", "345")
    summary = f"{first} and {second} together make the step {makespan:.1f} ms long"
    if makespan > BUDGET:
        above = f"{summary}, which is above {BUDGET:g}"
        if "chunks" not in (first, second):
            return wrong("no-chunks", above, "fill and drain take 90 ms of the step, more than the rings: which change shortens them?")
        return wrong("rings-exposed", above, "with chunks the pipeline takes 262.5 ms, so at most 17.5 ms of the rings may be exposed")
    before = changed_step().makespan
    gain = sum(before - changed_step(each).makespan for each in (first, second))
    length_of_step = Number(
        "the length of the step in ms",
        makespan,
        hint="these are the right two changes, but the step does not take {value} ms: run hybrid_step with both changes",
        mistakes=[
            (
                before - gain,
                "gains-added",
                "these are the right two changes, but you have added their gains: overlap saves time only if there are chunks",
            )
        ],
        decimals=1,
        code="wrong-length-of-step",
    )
    gains = "overlap saves nothing without chunks; with them overlap saves more than int8 or link"
    return length_of_step.check(time) or right(f"{summary}; {gains}")


def changed_step(*changes: str) -> HybridStep:
    """Return the step of task 4 with these changes.

    >>> print(f"{changed_step().makespan:.1f} ms")
    390.1 ms
    """
    wire = WireFormat("INT8", block=256, scale="FP16") if "int8" in changes else FP16
    link = Link(latency=10e-6, bandwidth=50e9 if "link" in changes else 25e9)
    schedule = build("interleaved", 4, 8, 4) if "chunks" in changes else build("1f1b", 4, 8)
    return hybrid_step(schedule, COSTS, 4, link=link, gradient_bytes=10**9, wire=wire, overlap="overlap" in changes)


@build_task(
    "lab06.t5",
    title="Rings beside the drain",
    prompt="write a function overlapped_rings(rows, ring_time) that returns the start and the end of the ring of each stage",
    points=6,
    signature="overlapped_rings(rows, ring_time)",
    cases=steps_of_many_kinds,
    mistakes=MISTAKES,
    twists=TWISTS,
    examples=EXAMPLES,
    reads=read_rings,
    lesson="a ring starts when the last replica has the last gradient of its stage, and when the link of its devices is free",
)
def overlapped_rings(rings: Rings, rows: Rows, ring_time: float) -> Feedback:
    """Judge a student's start and end of each ring of a step. If one is wrong, a picture shows them above the right rings."""
    given = given_by(rows)
    goal = rings_of(given, ring_time)
    unknown = sorted(rings.keys() - goal.keys())
    if unknown:
        return wrong("unknown-stage", f"your result has a stage {unknown[0]}: the pipeline has only {counted(len(goal), 'stage')}")
    missing = sorted(goal.keys() - rings.keys())
    if missing:
        source = "weight gradients (W)" if any(row["kind"] == "W" for row in rows) else "full backwards (B)"
        return wrong(
            "no-ring",
            f"your result has no ring of stage {missing[0]}: each stage has a ring, and the gradients of this stage come from its {source}",
        )
    faulty = sorted((stage for stage in goal if not same(rings[stage], goal[stage])), key=lambda stage: goal[stage])
    if not faulty:
        return right()
    mine, wanted = (np.array([times[stage] for stage in sorted(goal)]) for times in (rings, goal))
    below = with_rings(given.timeline, wanted)
    drawing = Drawing.of_rings(mine[:, 0], mine[:, 1], given.timeline, below, faulty[:1])
    return replace(_judge_ring(faulty[0], rings, goal, rows, ring_time), drawing=drawing)


def _judge_ring(stage: int, rings: Rings, goal: Rings, rows: Rows, ring_time: float) -> Feedback:
    """Return the feedback on the first wrong ring. All rings that start earlier in ``goal`` are right."""
    (start, end), (first, _) = rings[stage], goal[stage]
    last = max((row for row in rows if row["stage"] == stage), key=lambda row: row["end"])
    begins, complete, soonest = distinct_texts(start, last["end"], first) if abs(start - first) > WITHIN else [f"{start:g}"] * 3
    ring, runs = f"the ring of stage {stage}", f"from {begins} to {end:g} ms"
    ready = f"{last['op']} ends on rank {last['device']} at {complete} ms"
    if start < last["end"] - WITHIN:
        return wrong("before-the-gradients", f"{ring} runs {runs}, but the gradients of stage {stage} are not complete before {ready}")
    if start < first - WITHIN:
        other = next(each for each in goal if same(goal[each][1], first))
        busy = f"rank {last['device']} still has the ring of stage {other}, from {goal[other][0]:g} to {soonest} ms"
        return wrong("link-is-busy", f"{ring} runs {runs}, but {busy}")
    if start > first + WITHIN:
        return wrong("later-than-it-could", f"{ring} runs {runs}, but it could start at {soonest} ms: {ready}, and the link is free")
    takes, wanted = distinct_texts(end - start, ring_time)
    return wrong("wrong-length", f"{ring} runs {runs}, which is {takes} ms, but a ring takes {wanted} ms")
