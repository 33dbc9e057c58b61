"""Lab 18, the shortest step in a given memory: the tasks and the feedback on their answers."""

from typing import Any

from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Orders, near, require_number, require_parts, require_text
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, PartialCredit, right, task, wrong
from hybridlab.course.labs.lab18.scheduler import EXAMPLES, MISTAKES, TWISTS, Model, judge_models, models_to_schedule, read_orders_of_models
from hybridlab.schedules import REGISTRY, build, known_schedule
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

ROOM = 12  # microbatches whose activations fit on a device


@task(
    "lab18.t1",
    title="The shortest that fits",
    prompt="give the name of the schedule with the shortest step that fits, and the length of that step in ms, as (name, ms)",
    points=2,
)
def the_shortest_that_fits(answer: Any) -> Feedback:
    """Judge the name of a schedule and its step in ms. The schedule must have one copy of the weights.

    The setting is 8 devices, 24 microbatches, F, I and W of 10, 8 and 12 ms, C of 5 ms, and room for 12 activations.
    """
    text, length = require_parts(answer, 2, "a name and a time, such as ('gpipe', 1000)")
    name = known_schedule(require_text(text, "the name of a schedule", "gpipe").strip())
    time = require_number(length, "the length of a step in ms", "1000")
    if REGISTRY[name].copies > 1:
        return wrong("two-copies", f"{name} holds two copies of the weights on every device: choose among the schedules with one copy")
    timeline, best = (
        _split_timeline(name, 8, 24, 10, 8, 12, 5),
        902.0,
    )  # ms: the makespan of the best schedule in the library; a student may register further schedules
    peak = float(timeline.peak_activations.max())
    if peak > ROOM:
        return wrong(
            "does-not-fit", f"{name} does not fit: a device holds {peak:g} microbatches at the same time, and there is room for {ROOM}"
        )
    if timeline.makespan > best + 0.01:
        longer = f"{name} fits, but its step of {timeline.makespan:g} ms is not the shortest: another schedule that fits is shorter"
        if timeline.schedule.chunks > 1:
            why = "each of its microbatches moves between devices about twice as often, and each message takes 5 ms"
            return wrong("chunks-cost-messages", f"{longer}: {why}")
        return wrong("not-the-shortest", longer)
    if near(time, timeline.makespan, 0.06):
        return right("without latency interleaved-zb is shorter; with 5 ms a message it loses more: it sends about twice as many messages")
    without = _split_timeline(name, 8, 24, 10, 8, 12).makespan
    off = f"{name} is right, but its step does not take {time:g} ms"
    if near(time, without, 0.06):
        return wrong("no-messages", f"{off}: a message takes 5 ms")
    return wrong("wrong-length-of-step", off)


@build_task(
    "lab18.t2",
    title="Build an automatic scheduler",
    prompt="write a function zero_bubble(K, M, F, I, W, C, cap) that returns one line of operations for each device",
    points=10,
    signature="zero_bubble(K, M, F, I, W, C, cap)",
    cases=models_to_schedule,
    reads=read_orders_of_models,
    mistakes=MISTAKES,
    twists=TWISTS,
    examples=EXAMPLES,
    lesson="a device first runs what another device waits for, and fills its gaps with weight gradients, which also free its memory",
    partial_credit=[
        PartialCredit("legal and within the cap", 1 / 3, ("longer-than-zb-h1",)),
        PartialCredit("as short as ZB-H1 in total", 2 / 3, ("too-near-to-zb-h1",)),
    ],
)
def build_zero_bubble(orders: list[Orders], models: list[Model]) -> Feedback:
    """Judge the orders of one model or of a set of models."""
    return judge_models(orders, models)


def _split_timeline(name: str, devices: int, microbatches: int, forward: float, i: float, w: float, p2p: float = 0.0) -> Timeline:
    """Return the timeline of a schedule. ``forward``, ``i``, ``w`` and ``p2p`` are the times of F, I, W and of a message in ms."""
    return simulate(build(name, devices, microbatches), Costs(forward=forward, backward=i + w, weight_share=w / (i + w), p2p=p2p))
