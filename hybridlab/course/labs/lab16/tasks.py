"""Lab 16, real processes: the tasks and the feedback on their answers."""

from functools import cache
from typing import Any

import numpy as np

from hybridlab import formulas
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import require_parts, require_text
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, PartialCredit, right, task, wrong
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab07.executors import lines_of_schedule
from hybridlab.course.labs.lab16.rendezvous import (
    EXAMPLES,
    MISTAKES,
    TWISTS,
    as_it_comes,
    judge_plans,
    last_entries,
    orders_to_connect,
    read_plans,
)
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule, inputs_from_others, read_actions, written_actions
from hybridlab.schedules import build
from hybridlab.simulation import simulate

DEVICES, SLOWER = 4, 1.5  # the number of ranks, and how many times as slow the slow stage is
RANKS, MICROBATCHES = 3, 4  # the sizes of task 3


@number_task("lab16.t1", title="A signed error", draws={"microbatches": (8, 9, 10, 11, 12), "late": (17, 23, 29, 34)})
@cache
def a_signed_error(microbatches: int = 8, late: int = 28) -> Question:
    """Ask for the signed error of a predicted step, in per cent of the measured step."""
    predicted = formulas.one_f_one_b_makespan(DEVICES, microbatches, 20, 40)
    measured = predicted + late
    truth = 100 * (predicted / measured - 1)
    error = Number(
        "an error in %",
        truth,
        hint="the error is not {value} %: divide the predicted step by the measured step, and subtract 1",
        mistakes=[
            (
                -truth,
                "sign",
                "your sign is wrong: the error is predicted / measured - 1, so a prediction that is too short has an error below 0",
            ),
            (
                100 * late / predicted,
                "of-the-prediction",
                "your answer is how much longer the measured step is, in % of the prediction: give the error in % of the measured step",
            ),
            (
                -100 * late / predicted,
                "divided-by-the-prediction",
                "you have divided by the prediction: divide by the measured step, because it is what really took place",
            ),
            (truth / 100, "share", "your answer is the error as a share: give the error in %"),
            (-late, "ms", "your answer is the difference in ms: give the difference in % of the measured step"),
            (late, "ms-and-sign", "your answer is how many ms the measured step is longer: give the error of the prediction in %"),
            (100 + truth, "not-less-one", "your answer is predicted / measured in %: subtract 100 %"),
        ],
        decimals=1,
        example="2.5",
    )
    return Question(
        f"give the error in % of a clock that predicts {predicted:g} ms for a step that takes {measured:g} ms, with sign and one decimal",
        [error],
        "the clock knows no message that takes time and no process that wakes up late, so it is nearly always a little too short",
    )


@number_task(
    "lab16.t2", title="One slow stage", points=2, draws={"microbatches": (6, 7, 9, 10), "forward": (12, 14, 16, 24), "slow": (1, 2)}
)
@cache
def one_slow_stage(microbatches: int = 8, forward: int = 20, slow: int = 2) -> Question:
    """Ask for the makespan of GPipe in ms if one of four stages is slower."""
    times = np.full(DEVICES, float(forward))
    times[slow] *= SLOWER
    backward = 2 * times

    def closed(ahead: float, back: float) -> float:
        return formulas.gpipe_makespan(DEVICES, microbatches, ahead, back)

    truth = float(simulate(build("gpipe", DEVICES, microbatches), Costs(forward=times, backward=backward)).makespan)
    busy = microbatches * float(times[slow] + backward[slow])
    ahead = float(times.sum() + (microbatches - 1) * times.max())
    slowed_fill = DEVICES * float(times.max() + backward.max()) + (microbatches - 1) * float(times[0] + backward[0])
    step = Number(
        "a time in ms",
        truth,
        hint="GPipe does not take {value} ms: its first microbatch goes through all stages. After how many ms does each next one follow?",
        mistakes=[
            (
                closed(float(times.mean()), float(backward.mean())),
                "mean-times",
                "your answer is the formula with the mean times: microbatches leave the slow stage at its pace, not at the mean pace",
            ),
            (
                closed(float(times.max()), float(backward.max())),
                "all-slow",
                "your answer is the step if all stages are slow: fill and drain go through the other stages faster",
            ),
            (
                closed(forward, 2 * forward),
                "no-slow-stage",
                "your answer is the step without a slow stage: the slow stage delays the microbatches",
            ),
            (
                busy,
                "slow-stage-alone",
                "your answer is the work of the slow stage alone: add the other stages, before its first operation and after its last one",
            ),
            (ahead, "forwards-alone", "your answer is the time of the forwards: add the backwards, which follow in the same way"),
            (slowed_fill, "slow-fill", "your answer slows down only fill and drain: the slow stage delays each microbatch after the first"),
        ],
        decimals=1,
        example="725",
    )
    return Question(
        f"give the makespan in ms of GPipe on {DEVICES} devices with {microbatches} microbatches, where a forward takes {forward} ms and a "
        f"backward {2 * forward} ms, and stage {slow} is {SLOWER:g} times as slow",
        [step],
        "the first microbatch takes the sum of all stages; each other one adds the time of the slowest stage, once there and once back",
    )


@task(
    "lab16.t3",
    title="Who waits for whom",
    prompt="name for each of the 3 ranks the action at which it stands in the end, "
    "such as ['receive 1B0 from 1', 'send 1F2 to 2', 'receive 1F3 from 1']",
    points=3,
)
def who_waits_for_whom(answer: Any) -> Feedback:
    """Judge at which action each rank of 1F1B waits for ever if it receives, runs and sends in the order of its own line."""
    texts = require_parts(answer, RANKS, "a list of 3 actions, one for each rank")
    lines = lines_of_schedule("1f1b", RANKS, MICROBATCHES)
    needs = inputs_from_others(Schedule.parse(lines))
    plans = read_plans(as_it_comes(lines, needs))
    for rank, (text, stands) in enumerate(zip(texts, last_entries(plans), strict=True)):
        entry = read_actions(require_text(text, "an action", "send 0F1 to 1"))
        words = written_actions(entry)
        if entry[0].verb == "run":
            return wrong("runs", f"rank {rank} does not wait at '{words}' for ever: an operation ends, so name a send or a receive")
        if entry not in plans[rank]:
            raise HybridLabError(f"'{words}' is not in the list of rank {rank}", "not-in-the-list")
        if plans[rank].index(entry) < plans[rank].index(stands):
            return wrong("gets-past", f"rank {rank} gets past '{words}': rank {entry[0].peer} comes to this message, too")
        if entry != stands:
            return wrong("never-gets-there", f"rank {rank} never gets to '{words}': it waits for ever at an earlier action")
    return right("ranks 1 and 2 send to each other, and neither receives; rank 0 waits because rank 1 does not go on")


build_task(
    "lab16.t4",
    title="Who sends when",
    prompt="write a function communication(orders, needs, rank) that returns the list of actions of one rank",
    points=8,
    signature="communication(orders, needs, rank)",
    cases=orders_to_connect,
    reads=read_plans,
    mistakes=MISTAKES,
    twists=TWISTS,
    examples=EXAMPLES,
    partial_credit=[
        PartialCredit("free of deadlocks, but longer than the order alone", 0.5, ("longer",)),
        PartialCredit("right for all orders that can run", 0.75, ("not-refused",)),
    ],
    lesson="the lists of all ranks fit together, so no circle of ranks can wait, and no operation starts later than it must",
)(judge_plans)
