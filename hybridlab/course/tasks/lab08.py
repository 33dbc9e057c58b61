"""Lab 8, threads: the tasks and the feedback on their answers."""

from itertools import accumulate, pairwise

import numpy as np

from hybridlab.costs import Costs
from hybridlab.course.published import report
from hybridlab.course.tasks.answers import require_number, require_parts, require_text
from hybridlab.course.tasks.checking import Feedback, judge_value, right, task, wrong
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.schedules import build
from hybridlab.step import hybrid_step

LOST = Op(Kind.F, 1, 1)  # in task 4 the message with its output is lost


@task(
    "lab08.t1",
    title="Count the queues",
    prompt="give the number of queues of 4 stages x 3 replicas, one for each pair of a sender and a receiver",
)
def count_the_queues(answer: object) -> Feedback:
    """Judge how many pairs of a sender and a receiver there are: 4 stages, 3 replicas, pipelines and rings."""
    count = require_number(answer, "a number of queues", "24")
    spans = hybrid_step(build("1f1b", 4, 4), Costs(forward=1, backward=1), 3).timeline.spans
    sent = spans.of("send", "reduce-scatter", "all-gather")  # type: ignore[union-attr]  # a hybrid step has spans
    truth = len(set(zip(sent.device.tolist(), sent.peer.tolist(), strict=True)))
    hint = "count for a pair of neighbours in a pipeline and for a rank in a ring, then multiply"
    return judge_value(
        count,
        truth,
        lesson="between neighbours of a pipeline two, one for activations and one for gradients; in a ring one for each rank",
        mistakes=[
            (18, "pipelines-alone", "these are the queues of the pipelines: the ranks of a ring send to each other as well"),
            (
                12,
                "rings-alone",
                "these are the queues of the rings, or the threads: the neighbours of a pipeline have queues as well",
            ),
            (
                21,
                "one-way",
                "activations go one way and their gradients come back: neighbours of a pipeline need two queues",
            ),
            (42, "ring-both-ways", "a ring sends one way only: each rank has one queue to its neighbour on the right"),
            (26, "ring-not-closed", "a ring closes: its last rank sends to its first, so 3 ranks have 3 queues, not 2"),
            (
                36,
                "pipeline-closed",
                "a pipeline does not close: its last stage sends nothing to its first, so 4 stages have 3 pairs of neighbours",
            ),
            (9, "one-of-each", "this is one pipeline and one ring: there are 3 pipelines and 4 rings"),
            (132, "all-pairs", "most of the 12 x 11 pairs never send each other anything"),
        ],
        hint=f"there are not {count:g} queues: {hint}",
    )


@task(
    "lab08.t2",
    title="Too early",
    prompt="name the operations that start before their input exists, such as '1F1 1B0', when no thread waits",
    points=2,
)
def too_early(answer: object) -> Feedback:
    """Judge which operations run too early without waiting: 2 stages, 2 microbatches, 1F1B, 50 and 80 ms."""
    named = {Op.parse(each) for each in require_text(answer, "the list of operations", "1F1 1B0").replace(",", " ").split()}
    schedule = build("1f1b", 2, 2)
    times = without_waiting(schedule, report.FORWARD, report.BACKWARD)
    strange = sorted(named - times.keys())
    if strange:
        known = "its operations are 0F0 to 1B1"
        raise HybridLabError(f"{strange[0]} is not an operation of 2 stages and 2 microbatches under 1F1B: {known}", "not-in-the-schedule")
    missing = set()
    for op, (start, _) in times.items():
        needs = schedule.needs(op)
        ready = max((times[need][1] for need in needs), default=0.0)
        if start < ready and op not in named:
            missing.add(op.stage)
        if start >= ready and op in named:
            if not needs:
                return wrong("needs-nothing", f"{op} needs nothing from another operation: it may start at any time")
            last = max(needs, key=lambda need: (times[need][1], need))
            return wrong("in-time", f"{op} starts at {start:g} ms, and {last} ends at {ready:g} ms: in time")
    if missing:
        where = " and on ".join(f"stage {stage}" for stage in sorted(missing))
        how = "write down the start and the end of each operation without waiting, and compare"
        return wrong("more-are-early", f"more operations start too early, on {where}: {how}")
    return right("the forward has no input at all, and the gradients of the backwards end 30 and 80 ms after these begin: no total tells")


@task(
    "lab08.t3",
    title="Who holds the lock",
    prompt="give the time in ms for which the lock is held in one step, all threads together",
    points=2,
)
def who_holds_the_lock(answer: object) -> Feedback:
    """Judge how long the lock of the interpreter is held in the report's step. Forwards release it, and backwards do not."""
    time = require_number(answer, "a time in ms", "1640")
    truth = report.STAGES * report.REPLICAS * report.MICROBATCHES * report.BACKWARD
    return judge_value(
        time,
        truth,
        0.01,
        lesson="only one thread at a time can run a backward, so no order of them makes the step shorter than that",
        mistakes=[
            (4160, "forwards-included", "this has the forwards as well: a product of matrices releases the lock"),
            (1600, "forwards-alone", "these are the forwards: they release the lock, and the backwards hold it"),
            (640, "one-device-alone", "this is one device: there are four, and they share one lock"),
            (1280, "one-replica-alone", "this is one replica, or one stage: all four threads share one lock"),
            (1210, "step-of-sleeping-threads", "this is the step of threads that sleep"),
            (1170, "pipeline-of-sleeping-threads", "this is the pipeline of threads that sleep"),
            (80, "one-backward", "this is one backward: every device runs 8 of them"),
            (320, "one-microbatch", "this is one microbatch of each replica: there are 8"),
            (
                1040,
                "one-device-with-forwards",
                "this is all that one device does: its forwards release the lock, and there are four devices",
            ),
            (2.56, "seconds", "give ms, not seconds"),
            (2600, "ring-included", "the ring exchanges messages: it holds the lock for next to nothing"),
        ],
        hint=f"the lock is not held for {time:g} ms: count the backwards of all four devices",
    )


@task(
    "lab08.t4",
    title="Where they stand",
    prompt="name for each of the 3 devices the operation at which it stands in the end, such as ['0F3', '1F2', '2B0']",
    points=3,
)
def where_they_stand(answer: object) -> Feedback:
    """Judge at which operation each device of 1F1B stops when one message is lost: 3 stages, 4 microbatches."""
    texts = require_parts(answer, 3, "a list of 3 operations, one for each device")
    schedule = build("1f1b", 3, 4)
    stops = where_devices_stop(schedule, LOST)
    for device, (text, stop, order) in enumerate(zip(texts, stops, schedule.orders, strict=True)):
        op = Op.parse(text)
        if op not in order:
            runs = " ".join(map(str, order))
            raise HybridLabError(f"{op} is not an operation of device {device}: it runs {runs}", "not-in-the-order")
        if order.index(op) < order.index(stop):
            needs = schedule.needs(op)
            why = f"its input {needs[-1]} comes" if needs else "it needs no input"
            return wrong("gets-past", f"device {device} gets past {op}: {why}, and nothing before it waits for ever")
        if op != stop:
            return wrong("never-gets-there", f"device {device} never gets to {op}: an operation before it in its order waits for ever")
    return right("device 2 waits for the lost message, device 1 for the gradient of device 2, device 0 for that of device 1")


def without_waiting(schedule: Schedule, forward: float, backward: float) -> dict[Op, tuple[float, float]]:
    """Return start and end of each operation if every device runs its order without waiting for messages.

    >>> from hybridlab.schedules import build
    >>> without_waiting(build("1f1b", 2, 1), 50, 80)[Op.parse("1B0")]
    (50, 130)
    """
    spans: dict[Op, tuple[float, float]] = {}
    for order in schedule.orders:
        durations = [forward if op.kind is Kind.F else backward for op in order]
        ends = list(accumulate(durations))
        spans |= {op: (end - duration, end) for op, duration, end in zip(order, durations, ends, strict=True)}
    return spans


def where_devices_stop(schedule: Schedule, lost: Op) -> tuple[Op, ...]:
    """Return the operation at which each device stops if the message with the output of ``lost`` never arrives."""
    never = (schedule.source == schedule.ops.index(lost)) & schedule.crosses  # for each row, whether the operation never starts
    before = schedule.before
    for row in np.argsort(schedule.slot, kind="stable").tolist():
        never[row] |= any(never[needed] for needed in (schedule.source[row], before[row]) if needed >= 0)
    bounds = pairwise([*schedule.first.tolist(), never.size])
    stops = (start + int(never[start:stop].argmax()) if never[start:stop].any() else stop - 1 for start, stop in bounds)
    return tuple(schedule.ops[row] for row in stops)
