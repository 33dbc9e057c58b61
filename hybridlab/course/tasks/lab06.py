"""Lab 6, the whole step: the tasks and what each says to an answer."""

from typing import Any

from hybridlab.checks import counted, known_name, short_repr
from hybridlab.collectives import Link
from hybridlab.costs import Costs
from hybridlab.course.published import report
from hybridlab.course.tasks.answers import a_text, mistake_behind, near, require_number
from hybridlab.course.tasks.checking import Feedback, right, task, wrong
from hybridlab.errors import HybridLabError
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
    if near(time, step.makespan, 0.01):
        return right("the pipeline, then 2(D-1) steps of all rings at the same time, then all optimisers at the same time")
    mistakes = [
        (pipeline, "this is the pipeline alone: the rings and the optimiser come after it"),
        (pipeline + rest - optimiser, "this lacks the optimiser, which runs when the rings have ended"),
        (pipeline + optimiser, "this lacks the rings, which run between pipeline and optimiser"),
        (pipeline + rest + 2 * ring_step, "this has 2D steps of the ring: a ring of 4 takes 3 to add up and 3 to pass on"),
        (pipeline + rest - 3 * ring_step, "this has D-1 steps of the ring: the sums have to be passed on as well, in D-1 more"),
        (pipeline + rest + 2 * 2 * 3 * ring_step, "this has the rings of the three stages one after the other: they run at the same time"),
        (pipeline + 2 * 11 * ring_step + optimiser, "this has one ring over all 12 devices: a ring joins the 4 that hold the same stage"),
        (pipeline + 2 * 2 * ring_step + optimiser, "this has rings of the 3 stages: a ring joins the 4 replicas of one stage"),
        (microbatches * 30 + rest, "this lacks fill and drain: a pipeline takes (M + K - 1)(F + B)"),
        ((microbatches + stages) * 30 + rest, "one pair too many in the pipeline: (M + K - 1)(F + B)"),
        (pipeline + rest + 2 * optimiser, "this has the optimisers of the stages one after the other: they run at the same time"),
        (step.single_device_time, "this is the time of one device doing all the work"),
        ((replicas * microbatches + 2) * 30 + rest, "each replica has 6 microbatches of its own: they do not share one pipeline"),
    ]
    hint = "add up the pipeline, 2(D-1) steps of a ring, and one optimiser"
    return wrong(mistake_behind(time, mistakes, 0.01) or f"the step does not take {time:g} ms: {hint}")


@task(
    "lab06.t2",
    title="Nine tenths of four",
    prompt="give the smallest number of microbatches for which the report's four GPUs reach a speedup of at least 3.6",
    points=2,
)
def nine_tenths_of_four(answer: object) -> Feedback:
    """Judge the smallest M for an efficiency of 0.9: two stages, two replicas, 50 and 80 ms, ring step 20 ms, serial."""
    count, least = _a_count(answer), 3.6
    speedup = _of_the_report(count).speedup
    message = f"with {counted(count, 'microbatch')} the speedup is {speedup:.3f}"
    if speedup >= least > _of_the_report(max(count - 1, 1)).speedup:
        return right(f"{message}; fill, drain and ring cost the same whatever M is, and weigh less the more there is to do")
    mistakes = [
        (9, f"9 come from the bubble alone, M/(M+1): the ring takes its 40 ms as well, and {message}"),
        (24, f"24 are those of both replicas: M counts the microbatches of one, and {message}"),
        (6, f"6 would be right if the 12 were shared by the replicas: M counts the microbatches of one, and {message}"),
    ]
    off = f"{message}: enough, but fewer are enough too" if speedup >= least else f"{message}: below {least:g}, take more"
    return wrong(mistake_behind(count, mistakes, 0) or off)


@task(
    "lab06.t3",
    title="What is left exposed",
    prompt="give the exposed communication in ms of the interleaved step under overlap, with a ring step of 30 ms",
    points=2,
)
def what_is_left_exposed(answer: object) -> Feedback:
    """Judge the exposed communication of interleaved 1F1B: 4 devices, 2 chunks, 8 microbatches, 4 replicas, 10 and 20 ms."""
    time = require_number(answer, "an exposed communication in ms", "42")
    schedule = build("interleaved", 4, 8, 2)
    step = hybrid_step(schedule, COSTS, 4, ring_step=30, overlap=True)
    truth, all_of_it = step.exposed_communication, step.all_reduce_time
    if near(time, truth, 0.01):
        return right("the ring of stage 4 still runs when stage 0 has ended, so the ring of stage 0 waits for it")
    mistakes = [
        (all_of_it, "this is the whole all-reduce: the ring of stage 4 starts 40 ms before the pipeline ends"),
        (all_of_it / 2, "this is the ring of stage 0 alone: it has to wait until the device's first ring is done"),
        (all_of_it / 2 - 40, "this is what is left of the first ring when the pipeline ends: the second comes on top"),
        (all_of_it - truth, "this is what is hidden: the question is what is left"),
        (2 * all_of_it - 40, "each ring takes half of the 30 ms a step, because a chunk has half of the device's gradients"),
        (0, "nothing would be exposed if both rings were over when the pipeline ends: the second has not even begun"),
        (step.makespan, "this is the whole step: take away the pipeline"),
        (step.makespan - truth, "this is the pipeline: by how much does the step outlast it?"),
    ]
    hint = "the ring of stage 4 starts at 245 ms and takes 90; stage 0 ends at 285 ms; when can its ring start, and end?"
    return wrong(mistake_behind(time, mistakes, 0.01) or f"{time:g} ms is not what is exposed: {hint}")


@task(
    "lab06.t4",
    title="Two changes",
    prompt="name the two changes that bring the step to at most 280 ms, and its length in ms, as (change, change, ms)",
    points=3,
)
def two_changes(answer: object) -> Feedback:
    """Judge a pair of changes to a plan, and the length of the step with both."""
    if not isinstance(answer, list) or len(answer) != 3:
        raise HybridLabError(f"the answer is two changes and a time, such as ('int8', 'link', 345.0), not {short_repr(answer)}")
    first, second = (known_name(a_text(each, "a change", "int8").strip().lower(), CHANGES, "change") for each in answer[:2])
    if first == second:
        return wrong(f"{first} twice is one change: name two")
    length = plan(first, second).makespan
    time = require_number(answer[2], "the length of the step in ms", "345")
    message = f"{first} and {second} together make the step {length:.1f} ms long"
    if length > BUDGET:
        return wrong(f"{message}, which is above {BUDGET:g}", _why_not({first, second}))
    if not near(time, length, 0.1):
        gain = sum(plan().makespan - plan(each).makespan for each in (first, second))
        if near(time, plan().makespan - gain, 0.1):
            return wrong("these are the right two, but their gains do not add up: one gains only where the other is")
        return wrong(f"these are the right two, but they do not make the step {time:g} ms long: run hybrid_step with both")
    return right(f"{message}; overlap gains nothing without chunks, and with them more than half the bytes or twice the bandwidth")


def plan(*changes: str) -> HybridStep:
    """Return the step of task 4 with these changes.

    >>> print(f"{plan().makespan:.1f} ms")
    390.1 ms
    """
    wire = WireFormat("INT8", block=256, scale="FP16") if "int8" in changes else FP16
    link = Link(latency=10e-6, bandwidth=50e9 if "link" in changes else 25e9)
    schedule = build("interleaved", 4, 8, 4) if "chunks" in changes else build("1f1b", 4, 8)
    return hybrid_step(schedule, COSTS, 4, link=link, gradient_bytes=10**9, wire=wire, overlap="overlap" in changes)


def _why_not(changes: set[str]) -> str:
    if "chunks" not in changes:
        return "fill and drain take 90 ms of the step, more than the rings: which change shortens them?"
    return "with chunks the pipeline takes 262.5 ms, so at most 17.5 ms of the rings may be left to see"


def _of_the_report(microbatches: int) -> HybridStep:
    costs = Costs(forward=report.FORWARD, backward=report.BACKWARD)
    return hybrid_step(build("1f1b", report.STAGES, microbatches), costs, report.REPLICAS, ring_step=report.RING_STEP)


def _a_count(answer: Any) -> int:
    number = require_number(answer, "a number of microbatches", "12")
    if number != int(number) or not 1 <= number <= 10_000:
        raise HybridLabError(f"a number of microbatches is a whole number of at least 1 and at most 10,000, not {number:g}")
    return int(number)
