"""Lab 8, threads: the tasks and what each says to an answer."""

from itertools import accumulate, pairwise

import numpy as np

from hybridlab.checks import short_repr
from hybridlab.costs import Costs
from hybridlab.course.published import report
from hybridlab.course.tasks.answers import a_text, mistake_behind, near, require_number
from hybridlab.course.tasks.checking import Feedback, right, task, wrong
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.schedules import build
from hybridlab.step import hybrid_step

LOST = Op(Kind.F, 1, 1)  # task 4: the message with its output


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
    if near(count, truth, 0):
        return right("between neighbours of a pipeline two, one for activations and one for gradients; in a ring one for each rank")
    mistakes = [
        (18, "these are the queues of the pipelines: the ranks of a ring send to each other as well"),
        (12, "these are the queues of the rings, or the threads: the neighbours of a pipeline have queues as well"),
        (21, "activations go one way and their gradients come back: neighbours of a pipeline need two queues"),
        (42, "a ring sends one way only: each rank has one queue to its neighbour on the right"),
        (26, "a ring closes: its last rank sends to its first, so 3 ranks have 3 queues, not 2"),
        (36, "a pipeline does not close: its last stage sends nothing to its first, so 4 stages have 3 pairs of neighbours"),
        (9, "this is one pipeline and one ring: there are 3 pipelines and 4 rings"),
        (132, "most of the 12 x 11 pairs never send each other anything"),
    ]
    hint = "count for a pair of neighbours in a pipeline and for a rank in a ring, then multiply"
    return wrong(mistake_behind(count, mistakes, 0) or f"there are not {count:g} queues: {hint}")


@task(
    "lab08.t2",
    title="Too early",
    prompt="name the operations that start before their input exists, such as '1F1 1B0', when no thread waits",
    points=2,
)
def too_early(answer: object) -> Feedback:
    """Judge which operations run too early without waiting: 2 stages, 2 microbatches, 1F1B, 50 and 80 ms."""
    named = {Op.parse(each) for each in a_text(answer, "the list of operations", "1F1 1B0").replace(",", " ").split()}
    schedule = build("1f1b", 2, 2)
    times = without_waiting(schedule, report.FORWARD, report.BACKWARD)
    strange = sorted(named - times.keys())
    if strange:
        raise HybridLabError(f"{strange[0]} is not an operation of 2 stages and 2 microbatches under 1F1B: its operations are 0F0 to 1B1")
    missing = set()
    for op, (start, _) in times.items():
        ready, need = max(((times[need][1], need) for need in schedule.needs(op)), default=(0.0, op))
        if start < ready and op not in named:
            missing.add(op.stage)
        if start >= ready and op in named:
            message = f"{op} starts at {start:g} ms, and {need} ends at {ready:g} ms: in time"
            return wrong(message if need != op else f"{op} needs nothing from another operation: it may start at any time")
    if missing:
        where = " and on ".join(f"stage {stage}" for stage in sorted(missing))
        return wrong(f"more start too early, on {where}: write down when each starts and ends where nobody waits, and compare")
    return right("the forward has no input at all, and the gradients of the backwards end 30 and 80 ms after these begin: no total tells")


@task(
    "lab08.t3",
    title="Who holds the lock",
    prompt="give the time in ms for which the lock is held in one step, all threads together",
    points=2,
)
def who_holds_the_lock(answer: object) -> Feedback:
    """Judge how long the interpreter is held: the report's step, forwards that release it and backwards that do not."""
    time = require_number(answer, "a time in ms", "1640")
    truth = report.STAGES * report.REPLICAS * report.MICROBATCHES * report.BACKWARD
    if near(time, truth, 0.01):
        return right("only one thread at a time can run a backward, so no order of them makes the step shorter than that")
    mistakes = [
        (4160, "this has the forwards as well: a product of matrices releases the lock"),
        (1600, "these are the forwards: they release the lock, and the backwards hold it"),
        (640, "this is one device: there are four, and one lock for all of them"),
        (1280, "this is one replica, or one stage: the lock is one for all four threads"),
        (1210, "this is the step of threads that sleep"),
        (1170, "this is the pipeline of threads that sleep"),
        (80, "this is one backward: every device runs 8 of them"),
        (320, "this is one microbatch of each replica: there are 8"),
        (1040, "this is all that one device does: its forwards release the lock, and there are four devices"),
        (2.56, "give ms, not seconds"),
        (2600, "the ring exchanges messages: it holds the lock for next to nothing"),
    ]
    hint = "count the backwards of all four devices"
    return wrong(mistake_behind(time, mistakes, 0.01) or f"the lock is not held for {time:g} ms: {hint}")


@task(
    "lab08.t4",
    title="Where they stand",
    prompt="name for each of the 3 devices the operation at which it stands in the end, such as ['0F3', '1F2', '2B0']",
    points=3,
)
def where_they_stand(answer: object) -> Feedback:
    """Judge where the devices of 1F1B stand when one message is lost: 3 stages, 4 microbatches."""
    if not isinstance(answer, list) or len(answer) != 3:
        raise HybridLabError(f"the answer is a list of 3 operations, one for each device, not {short_repr(answer)}")
    schedule = build("1f1b", 3, 4)
    stand = standing(schedule, LOST)
    for device, (text, at, order) in enumerate(zip(answer, stand, schedule.orders, strict=True)):
        op = Op.parse(text)
        if op not in order:
            raise HybridLabError(f"{op} is not an operation of device {device}: it runs {' '.join(map(str, order))}")
        need = schedule.needs(op)[-1] if schedule.needs(op) else op
        if order.index(op) < order.index(at):
            message = f"its input {need} comes" if need != op else "it needs no input"
            return wrong(f"device {device} gets past {op}: {message}, and nothing before it waits for ever")
        if op != at:
            return wrong(f"device {device} never gets to {op}: an operation before it in its order waits for ever")
    return right("device 2 waits for the lost message, device 1 for the gradient of device 2, device 0 for that of device 1")


def without_waiting(schedule: Schedule, forward: float, backward: float) -> dict[Op, tuple[float, float]]:
    """Return start and end of every operation where each device runs its order without waiting for anything.

    >>> from hybridlab.schedules import build
    >>> without_waiting(build("1f1b", 2, 1), 50, 80)[Op.parse("1B0")]
    (50, 130)
    """
    found: dict[Op, tuple[float, float]] = {}
    for order in schedule.orders:
        lasts = [forward if op.kind is Kind.F else backward for op in order]
        ends = list(accumulate(lasts))
        found |= {op: (end - last, end) for op, last, end in zip(order, lasts, ends, strict=True)}
    return found


def standing(schedule: Schedule, lost: Op) -> tuple[Op, ...]:
    """Return the operation at which each device stands when the message with the output of ``lost`` never arrives."""
    never = (schedule.source == schedule.ops.index(lost)) & schedule.crosses  # by row: it never starts
    before = schedule.before
    for row in np.argsort(schedule.slot, kind="stable").tolist():
        never[row] |= any(never[needed] for needed in (schedule.source[row], before[row]) if needed >= 0)
    bounds = pairwise([*schedule.first.tolist(), never.size])
    stands = (start + int(never[start:stop].argmax()) if never[start:stop].any() else stop - 1 for start, stop in bounds)
    return tuple(schedule.ops[row] for row in stands)
