"""Lab 8, threads: the tasks and the feedback on their answers."""

import re
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from hybridlab.costs import Costs
from hybridlab.course.checking.answers import require_parts, require_text
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, PartialCredit, right, task, wrong
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab08.runners import EXAMPLES, MISTAKES, TWISTS, judge_threads, read_threads, runs_in_threads
from hybridlab.course.published import report
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.schedules import build
from hybridlab.step import hybrid_step

LOST = Op(Kind.F, 1, 1)  # in task 4 the message with the output of this operation is lost


@number_task("lab08.t1", title="Count the queues", draws={"stages": (3, 4, 5, 6), "replicas": (3, 4, 5, 6, 7)})
@cache
def count_the_queues(stages: int = 4, replicas: int = 3) -> Question:
    """Ask how many pairs of a sender and a receiver there are, in pipelines and rings."""
    spans = hybrid_step(build("1f1b", stages, stages), Costs(forward=1, backward=1), replicas).timeline.spans
    sent = spans.of("send", "reduce-scatter", "all-gather")  # type: ignore[union-attr]  # a hybrid step has spans
    ranks, one_way = stages * replicas, (stages - 1) * replicas
    queues = Number(
        "a number of queues",
        len(set(zip(sent.device.tolist(), sent.peer.tolist(), strict=True))),
        hint="there are not {value} queues: count the queues of two neighbours in a pipeline and those of a rank in a ring, then multiply",
        mistakes=[
            (2 * one_way, "pipelines-alone", "these are the queues of the pipelines: the ranks of a ring send to each other as well"),
            (
                ranks,
                "rings-alone",
                "this is the number of queues in the rings, or of threads: the neighbours of a pipeline have queues as well",
            ),
            (
                one_way + ranks,
                "one-way",
                "this has one queue for two neighbours of a pipeline: they need two, because gradients come back",
            ),
            (
                2 * (one_way + ranks),
                "ring-both-ways",
                "this has two queues for each rank of a ring: a rank sends only to its neighbour on the right",
            ),
            (
                2 * one_way + stages * (replicas - 1),
                "ring-not-closed",
                f"a ring closes: its last rank sends to its first, so {replicas} ranks have {replicas} queues, not {replicas - 1}",
            ),
            (
                3 * ranks,
                "pipeline-closed",
                "a pipeline does not close: its last stage sends nothing to its first, "
                f"so {stages} stages have {stages - 1} pairs of neighbours",
            ),
            (
                2 * (stages - 1) + replicas,
                "one-of-each",
                f"this is one pipeline and one ring: there are {replicas} pipelines and {stages} rings",
            ),
            (ranks * (ranks - 1), "all-pairs", f"most of the {ranks} x {ranks - 1} pairs never send each other anything"),
        ],
        example="24",
    )
    return Question(
        f"give the number of queues of {stages} stages x {replicas} replicas, one for each pair of a sender and a receiver",
        [queues],
        "two neighbours of a pipeline have two queues, one for activations and one for gradients; each rank of a ring has one",
    )


@task(
    "lab08.t2",
    title="Too early",
    prompt="name the operations that start before their input exists, such as ['1F1', '1B0'], when no thread waits",
    points=2,
)
def too_early(answer: Any) -> Feedback:
    """Judge the list of the operations that start too early if no thread waits.

    The schedule is 1F1B with 2 stages and 2 microbatches. A forward takes 50 ms and a backward 80 ms.
    """
    words = answer if isinstance(answer, list) else require_text(answer, "the list of operations", "['1F1', '1B0']")
    ops = [Op.parse(word) for word in _words_of(words)]
    named = set(ops)
    if len(named) < len(ops):
        twice = next(op for place, op in enumerate(ops) if op in ops[:place])
        return wrong("twice", f"{twice} is named twice: name each operation once")
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
            return wrong("in-time", f"{op} starts at {start:g} ms, and {last} ends at {ready:g} ms, so {op} is in time")
    if missing:
        where = " and on ".join(f"stage {stage}" for stage in sorted(missing))
        how = "write down the start and the end of each operation without waiting, and compare"
        return wrong("more-are-early", f"more operations start too early, on {where}: {how}")
    return right(
        "1F0 starts together with the forward that makes its input, 0B0 starts 30 ms too early, and 0B1 80 ms too early: "
        "the total time shows none of this"
    )


@number_task(
    "lab08.t3",
    title="Who holds the lock",
    points=2,
    draws={"microbatches": (4, 6, 10, 12), "forward": (40, 50, 60), "backward": (70, 90, 110)},
)
def who_holds_the_lock(
    microbatches: int = report.MICROBATCHES, forward: float = report.FORWARD, backward: float = report.BACKWARD
) -> Question:
    """Ask how long Python's interpreter lock is held in the report's step. Forwards release the lock, and backwards hold it."""
    work = forward + backward
    of_device = microbatches * backward
    devices = report.STAGES * report.REPLICAS
    whole = report.estimate(microbatches=microbatches, forward=forward, backward=backward)
    pipeline = (microbatches + report.STAGES - 1) * work
    time = Number(
        "a time in ms",
        devices * of_device,
        hint="the lock is not held for {value} ms: count the backwards of all four devices",
        mistakes=[
            (
                devices * microbatches * work,
                "forwards-included",
                "this includes the forwards: a forward is a product of matrices, and this releases the lock",
            ),
            (
                devices * microbatches * forward,
                "forwards-alone",
                "these are the forwards: they release the lock, and the backwards hold it",
            ),
            (of_device, "one-device-alone", "this is the time of one device: four devices share one lock"),
            (
                report.STAGES * of_device,
                "one-replica-alone",
                "this is the time of one replica, or of one stage: the threads of all four devices share one lock",
            ),
            (
                whole.total,
                "step-of-sleeping-threads",
                "this is the time of a step in which the threads sleep: add up the times in which the lock is held",
            ),
            (
                pipeline,
                "pipeline-of-sleeping-threads",
                "this is the time of a pipeline in which the threads sleep: add up the times in which the lock is held",
            ),
            (backward, "one-backward", f"this is the time of one backward: every device runs {microbatches} backwards"),
            (
                devices * backward,
                "one-microbatch",
                f"this is the time of one microbatch of each replica: each replica has {microbatches} microbatches",
            ),
            (
                whole.compute,
                "one-device-with-forwards",
                "this is all that one device does: its forwards release the lock, and there are four devices",
            ),
            (devices * of_device / 1000, "seconds", "give ms, not seconds"),
            (
                devices * of_device + whole.all_reduce,
                "ring-included",
                "the ring exchanges messages: it holds the lock for almost no time",
            ),
        ],
        decimals=2,
        example="1640",
    )
    times = f"forwards of {forward:g} ms and backwards of {backward:g} ms"
    return Question(
        "give the time in ms for which the lock is held in one step, all threads together, with "
        f"{microbatches} microbatches of each replica, {times}",
        [time],
        "only one thread at a time can run a backward, so no order of them makes the step shorter than that",
    )


@task(
    "lab08.t4",
    title="Where they stand",
    prompt="name for each of the 3 devices the operation at which it stands in the end, such as ['0F3', '1F2', '2B0']",
    points=3,
)
def where_they_stand(answer: Any) -> Feedback:
    """Judge the operations at which the devices stop if one message is lost. The schedule is 1F1B with 3 stages and 4 microbatches."""
    texts = require_parts(_words_of(answer), 3, "a list of 3 operations, one for each device")
    schedule = build("1f1b", 3, 4)
    stops = where_devices_stop(schedule, LOST)
    for device, (text, stop, order) in enumerate(zip(texts, stops, schedule.orders, strict=True)):
        op = Op.parse(text)
        if op not in order:
            runs = " ".join(map(str, order))
            raise HybridLabError(f"{op} is not an operation of device {device}: it runs {runs}", "not-in-the-order")
        if order.index(op) < order.index(stop):
            needs = schedule.needs(op)
            why = f"the output of {needs[-1]} arrives" if needs else "it needs no input"
            return wrong("gets-past", f"device {device} gets past {op}: {why}, and no operation before {op} waits for ever")
        if op != stop:
            return wrong(
                "never-gets-there",
                f"device {device} never gets to {op}: an operation before {op} in the order of this device waits for ever",
            )
    return right("device 2 waits for the lost message, device 1 for the gradient of device 2, device 0 for that of device 1")


build_task(
    "lab08.t5",
    title="A thread for each device",
    prompt="write a function run_in_threads(orders, work, lost) that returns a list of each device's gradient, or raises an error",
    points=8,
    signature="run_in_threads(orders, work, lost)",
    cases=runs_in_threads,
    reads=read_threads,
    fresh=True,
    threads=True,
    mistakes=MISTAKES,
    twists=TWISTS,
    examples=EXAMPLES,
    partial_credit=[
        PartialCredit("right in threads where every message arrives", 0.5, ("deadlock-not-told", "lost-arrives")),
        PartialCredit("right in threads, but an error in a thread is lost", 0.75, ("error-lost",)),
    ],
    lesson="all devices worked at the same time, each in its own thread, and a run that could not end raised an error",
)(judge_threads)


def _words_of(answer: Any) -> list[Any]:
    """Return the words of an answer, which is text, a list, a list of lists or a dict. Labels such as ``device 0:`` are left out."""
    if isinstance(answer, str):
        return re.sub(r"device\s+\d+\s*:|,", " ", answer, flags=re.IGNORECASE).split()
    if isinstance(answer, (list, dict)):
        return [word for each in (answer.values() if isinstance(answer, dict) else answer) for word in _words_of(each)]
    return [answer]


def without_waiting(schedule: Schedule, forward: float, backward: float) -> dict[Op, tuple[float, float]]:
    """Return the start and the end of each operation if every device runs its order without waiting for messages.

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
