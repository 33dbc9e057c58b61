"""The coding task ("build") of lab 18, an automatic scheduler: cases, judge, known mistakes, examples and changed tasks ("twists")."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from hybridlab.bound import lower_bound
from hybridlab.checks import counted, distinct_texts
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Orders, is_empty, plain_values, require_orders
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.drawing import Drawing, marked_by
from hybridlab.course.checking.maps import REVERSED, Map, one_way, operations, scaled
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.labs.lab13.split import MICROBATCH_FIRST, OTHER_LETTERS
from hybridlab.errors import HybridLabError, InvalidSchedule
from hybridlab.schedule import Kind, Schedule
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

# The arguments of the student's function: K, M, the times F, I and W of each device in ms, the latency C in ms, and cap, the number of
# activations that fit on a device. Under a twist, C can be a pair of latencies, for activations and for gradients, and cap can be a list
# with one number for each device.
Model = tuple[int, int, list[float], list[float], list[float], Any, Any]

EXAMPLE_MODEL: Model = (8, 24, [10] * 8, [8] * 8, [12] * 8, 5, 12)  # the model of task 1
SIZES = [(1, 1, 1), (1, 3, 1), (2, 1, 1), (2, 3, 2), (3, 2, 3), (2, 4, 1), (4, 3, 2), (4, 8, 4), (5, 12, 3), (11, 12, 11)]  # K, M, cap
MODELS_IN_A_SET = 8  # the number of random models in a set; each set also has EXAMPLE_MODEL
WITHIN = 1e-6  # ms; smaller differences come from rounding
GIGABYTES = 3  # the memory of one activation in GB, under the twist "gigabytes"
# The sum of the makespans of a set must lie at least this share of the way from the sum of ZB-H1 to the sum of the lower bounds.
WAY = 1 / 3


def models_to_schedule(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: first single models from small to large, then sets of models.

    In a set, each device has room for 1.5 K to 2 K microbatches. The last model of each set is ``EXAMPLE_MODEL``.
    """
    for devices, microbatches, cap in SIZES:
        size = f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')}"
        yield _case_of_models([_model(rng, devices, microbatches, cap, True, int(rng.choice([0, 1, 3])))], f"{size}, cap {cap}")
    for stages, uneven, latencies in (
        ("even stages", False, (2, 7)),
        ("uneven stages and no latency", True, (0, 1)),
        ("uneven stages and a latency", True, (3, 9)),
    ):
        models = []
        for _ in range(MODELS_IN_A_SET):
            devices = int(rng.integers(4, 9))
            microbatches, cap = (
                int(rng.integers(low, high)) for low, high in ((2 * devices, 3 * devices), (-(-3 * devices // 2), 2 * devices))
            )
            models.append(_model(rng, devices, microbatches, cap, uneven, int(rng.integers(*latencies))))
        yield _case_of_models([*models, EXAMPLE_MODEL], f"{MODELS_IN_A_SET} models with {stages} and the example")


def _model(rng: np.random.Generator, devices: int, microbatches: int, cap: int, uneven: bool, latency: int) -> Model:
    times = rng.integers(4, 21, (3, devices)) if uneven else rng.integers(7, 14, (3, 1))
    forward, input_gradient, weight_gradient = np.broadcast_to(times, (3, devices)).tolist()
    return devices, microbatches, forward, input_gradient, weight_gradient, latency, cap


def _case_of_models(models: list[Model], words: str) -> Case:
    return Case((models,), words, run=_each)


def _each(call: Callable[..., Any], models: Sequence[Model]) -> list[Any]:
    return [call(*model) for model in models]


def _with_models(change: Callable[[Model], Model], describe: Callable[[str], str]) -> Callable[[Case], Case]:
    """Return a function that changes a case of the lab's task into a case of a twist.

    ``change`` takes each model of the case and returns the changed model. ``describe`` does the same with the words for the case.
    """
    return lambda case: replace(case, arguments=([change(model) for model in case.arguments[0]],), words=describe(case.words))


def read_orders_of_models(results: Sequence[Any]) -> list[Orders]:
    """Return the orders that the student's function returned, one for each model of a case."""
    return [_read_order(result) for result in results]


def _read_order(result: Any) -> Orders:
    plain = plain_values(result)
    if plain is None:
        raise HybridLabError("the function returns None: does it end in return?", "returns-nothing")
    if is_empty(plain):
        raise HybridLabError("the function returns no operations; return one text for each device, such as ['0F0 0I0 0W0']", "empty")
    return require_orders(plain)


def judge_models(orders: Sequence[Orders], models: Sequence[Model]) -> Feedback:
    """Return the feedback on the orders for one model or for a set of models.

    One order must be legal and within the cap. In a set, the sum of the makespans is also compared with ZB-H1 and with the lower bound.
    """
    runs = []
    for each, model in zip(orders, models, strict=True):
        run = _judge_order(each, model)
        if isinstance(run, Feedback):
            size = f"with {counted(model[0], 'device')} and {counted(model[1], 'microbatch')}: " if len(models) > 1 else ""
            return replace(run, messages=(size + run.messages[0], *run.messages[1:]))
        runs.append(run)
    return _judge_lengths(runs, models) if len(models) > 1 else right()


def _judge_order(orders: Orders, model: Model) -> Timeline | Feedback:
    """Return the timeline of a legal and complete order within the cap. For any other order, return the feedback on its first fault."""
    devices, microbatches, *_, cap = model
    if len(orders) != devices:
        return wrong(
            "another-size", f"the result has {counted(len(orders), 'line')}: return one line for each of {counted(devices, 'device')}"
        )
    uncut = next((op for order in orders for op in order if op.kind is Kind.B), None)
    if uncut:
        return wrong("full-backward", f"{uncut} is a full backward: write its input gradient I and its weight gradient W")
    costs = costs_of_model(model)
    try:
        schedule = Schedule("yours", orders)
    except InvalidSchedule as why:
        return replace(wrong(why.code, str(why)), drawing=Drawing(orders, costs, marked=marked_by(why), case=model))
    if schedule.stages != devices or schedule.device_of != tuple(range(devices)):
        return wrong(
            "another-device",
            "the order can run, but its stages are on other devices: line d must have the operations of stage d, for K lines and K stages",
        )
    if schedule.microbatches != microbatches:
        return wrong("another-number", f"the order has {counted(schedule.microbatches, 'microbatch')}, not {microbatches}")
    run = simulate(schedule, costs)
    room = np.broadcast_to(cap, devices)
    over = np.flatnonzero(run.peak_activations > room)
    if over.size:
        device = int(over[0])
        full = f"device {device} holds {run.peak_activations[device]:g} activations at the same time, and there is room for {room[device]}"
        feedback = wrong("too-much-memory", full)
        # A program whose cap is one too large also holds one activation too many, so only a second one shows when memory is freed.
        if run.peak_activations[device] > room[device] + 1 and _most_before_input_gradients(orders[device]) <= room[device]:
            rule = "an activation is held until its weight gradient W ends, not until its input gradient I ends"
            feedback = wrong("freed-by-input-gradient", f"{full}: {rule}; a forward must wait until there is room for its activation")
        return replace(feedback, drawing=Drawing(orders, costs, case=model))
    return run


def _most_before_input_gradients(order: Sequence[Any]) -> int:
    """Return how many microbatches, at most, have run their forward on a device and not yet their input gradient."""
    change = {Kind.F: 1, Kind.I: -1}
    return int(np.cumsum([change.get(op.kind, 0) for op in order]).max())


def costs_of_model(model: Model) -> Costs:
    """Return the costs of a model, in ms."""
    devices, _, forward, input_gradient, weight_gradient, latency, _ = model
    backward = np.add(input_gradient, weight_gradient)
    times: dict[str, Any] = {"forward": forward, "backward": backward, "weight_share": np.divide(weight_gradient, backward)}
    if isinstance(latency, (int, float)):
        return Costs(**times, p2p=latency)
    down, up = (np.triu(np.full((devices, devices), float(each)), 1) for each in latency)
    return Costs(**times, p2p_between=down + up.T) if devices > 1 else Costs(**times)


def _limits(model: Model) -> tuple[float, float]:
    """Return the makespan of ZB-H1 and the lower bound of all orders within the cap, in ms."""
    return _limits_of(tuple(tuple(part) if isinstance(part, list) else part for part in model))


@lru_cache(maxsize=4096)
def _limits_of(model: Any) -> tuple[float, float]:
    schedule, costs = build("zb-h1", *model[:2]), costs_of_model(model)
    return simulate(schedule, costs).makespan, lower_bound(schedule, costs, model[-1])


def _judge_lengths(runs: Sequence[Timeline], models: Sequence[Model]) -> Feedback:
    """Return the feedback on the sum of the makespans of a set.

    The sum must lie at least a third of the way from the sum of ZB-H1 to the sum of the lower bounds.
    """
    yours = sum(run.makespan for run in runs)
    given, least = np.sum([_limits(model) for model in models], axis=0).tolist()
    run, (zb_h1, bound) = runs[-1], _limits(models[-1])
    drawing = Drawing(
        run.schedule.turns, costs_of_model(models[-1]), scale={"lower bound": bound, "yours": run.makespan, "ZB-H1": zb_h1}, case=models[-1]
    )
    shown = f"the example: ZB-H1 {zb_h1:g} ms, yours {run.makespan:g} ms, lower bound {bound:g} ms"
    reached = f"in the last set of models your sum is {(given - yours) / (given - least):.0%} of the way from ZB-H1 to the lower bounds"
    goal = given - WAY * (given - least)
    if yours <= goal + WITHIN:
        return replace(right(reached, shown), drawing=drawing)
    found, wanted, of_zb_h1, of_bounds = distinct_texts(yours, goal, given, least)
    together, why = f"your steps of all models together take {found} ms", _longest_wait(run, models[-1])
    if run.makespan <= zb_h1 - WAY * (zb_h1 - bound) + WITHIN:
        why = "your order of the example is short enough, but those of other models are not: does your program use all of F, I, W and C?"
    asked = f"the task asks for at most {wanted} ms, which is a third of the way from ZB-H1 to the lower bounds of {of_bounds} ms"
    if yours > given + WITHIN:
        feedback = wrong("longer-than-zb-h1", f"{together}, more than the {of_zb_h1} ms of ZB-H1; {asked}", why, shown)
    else:
        feedback = wrong("too-near-to-zb-h1", f"{together}, and the steps of ZB-H1 take {of_zb_h1} ms; {asked}", why, shown)
    return replace(feedback, drawing=drawing)


def _longest_wait(run: Timeline, model: Model) -> str:
    """Return a sentence about idle time in the student's order that another order could fill or shorten."""
    devices, microbatches = model[:2]
    unused, full, room = np.zeros(devices), np.zeros(devices), np.zeros(devices)
    for device, cap in enumerate(np.broadcast_to(model[6], devices)):
        mine = run.device == device
        gaps = run.start[mine][1:] - run.end[mine][:-1]
        kinds = [op.kind for op, here in zip(run.ops, mine, strict=True) if here]
        forwards, input_gradients, weight_gradients = (
            np.cumsum([each is kind for each in kinds])[:-1] for kind in (Kind.F, Kind.I, Kind.W)
        )
        pending, held = input_gradients > weight_gradients, forwards - weight_gradients
        unused[device] = gaps[pending].sum()
        full[device] = gaps[~pending & (held >= cap)].sum()
        room[device] = gaps[~pending & (held < cap) & (forwards < microbatches)].sum()
    device = int(unused.argmax())
    if unused[device] > WITHIN:
        return f"in the example device {device} is idle for {unused[device]:g} ms although it has weight gradients to run"
    if room[0] > WITHIN:
        return f"in the example device 0 is idle for {room[0]:g} ms although it has room for another activation: it could run a forward"
    device, late = _forwards_behind_weight_gradients(run, model)
    if late > WITHIN:
        behind = f"in the example device {device} runs weight gradients for {late:g} ms while a forward waits"
        return f"{behind}: no device waits for a weight gradient, so run the forward first"
    device = int(full.argmax())
    if full[device] > WITHIN:
        return f"in the example device {device} is idle for {full[device]:g} ms because its memory is full: which operation frees some?"
    return "the picture shows the example: which device waits, and could it run another operation in that time?"


def _forwards_behind_weight_gradients(run: Timeline, model: Model) -> tuple[int, float]:
    """Return a device and a time in ms: the longest time that forwards wait for weight gradients on one device.

    Only forwards are counted that could run: their input has arrived, and the device has room for their activation.
    """
    devices, *_, latency, cap = model
    down = latency if isinstance(latency, (int, float)) else latency[0]
    spans = {op: (start, end) for op, start, end in zip(run.ops, run.start.tolist(), run.end.tolist(), strict=True)}
    late = np.zeros(devices)
    for device, (order, room) in enumerate(zip(run.schedule.orders, np.broadcast_to(cap, devices), strict=True)):
        for place, op in enumerate(order):
            forward = next((each for each in order[place:] if each.kind is Kind.F), None)
            held = sum({Kind.F: 1, Kind.W: -1}.get(each.kind, 0) for each in order[:place])
            if op.kind is Kind.W and forward is not None and held < room:
                sent = spans[forward._replace(stage=device - 1)][1] + down if device else 0.0
                late[device] += spans[op][1] - spans[op][0] if sent <= spans[op][0] + WITHIN else 0.0
    return int(late.argmax()), float(late.max())


def _for_all(order: Callable[[int, int], str]) -> Callable[[Sequence[Model]], list[str]]:
    """Return a program with a known mistake: it returns ``order(K, M)`` for each model and ignores all other arguments."""
    return lambda models: [order(*model[:2]) for model in models]


def _cut_in_two(name: str) -> Callable[[int, int], str]:
    """Return a function that returns the named schedule for K and M with its backwards cut in two.

    Each full backward becomes an input gradient and, directly behind it, the weight gradient.
    """
    return lambda *size: re.sub(r"(\d+)B(\d+)", r"\1I\2 \1W\2", str(build(name, *size)))


def _one_by_one(devices: int, microbatches: int) -> str:
    return "\n".join(" ".join(f"{device}{kind}{each}" for each in range(microbatches) for kind in "FIW") for device in range(devices))


MISTAKES = (
    KnownMistake(
        "zb-h1", "your order is ZB-H1, which uses neither the times nor cap: use both", _for_all(lambda *size: str(build("zb-h1", *size)))
    ),
    KnownMistake(
        "zb-h2", "your order is ZB-H2, which uses neither the times nor cap: use both", _for_all(lambda *size: str(build("zb-h2", *size)))
    ),
    KnownMistake(
        "weight-gradients-at-once",
        "your order is 1F1B with each backward cut in two. A weight gradient directly after its input gradient fills no gap: run it later",
        _for_all(_cut_in_two("1f1b")),
    ),
    KnownMistake(
        "all-forwards-first",
        "your order is GPipe: it runs all forwards first, so each device holds the activations of all microbatches",
        _for_all(_cut_in_two("gpipe")),
    ),
    KnownMistake(
        "one-by-one",
        "in your order a microbatch begins only when the microbatch before it has ended: let several run in the pipeline at the same time",
        _for_all(_one_by_one),
    ),
    KnownMistake(
        "arguments-exchanged",
        "your function uses K as the number of microbatches and M as the number of devices: exchange them",
        _for_all(lambda devices, microbatches: _one_by_one(microbatches, devices)),
    ),
)


def _count_from_the_last(stage: int, microbatch: int, case: tuple[Any, ...]) -> tuple[int, int]:
    return (case[0] - 1 - stage if stage < case[0] else stage), microbatch


def _add_room(model: Model) -> Model:
    """Return the model with one more activation of memory on every second device. The new cap is a list."""
    *first, cap = model
    return (*first, [cap + device % 2 for device in range(model[0])])


def _set_latencies_apart(model: Model) -> Model:
    *first, latency, cap = model
    return (*first, (max(latency - 2, 0), latency + 2), cap)


FROM_THE_LAST = operations(_count_from_the_last, _count_from_the_last).then(REVERSED)
A_CAP_EACH = Map(lambda cap, case: cap if isinstance(cap, list) else [cap] * case[0], lambda caps, case: min(caps))
TWO_LATENCIES = Map(lambda latency, case: latency if isinstance(latency, tuple) else (latency, latency), lambda both, case: max(both))
# cap is a list only if the twist "caps" is combined with the twist "last-stage-first".
CAPS_REVERSED = one_way(lambda cap: cap[::-1] if isinstance(cap, list) else cap)

EXAMPLES = (Example((2, 2, [10, 12], [9, 8], [7, 6], 1, 1), ["0F0 0I0 0W0 0F1 0I1 0W1", "1F0 1I0 1W0 1F1 1I1 1W1"]),)
TWISTS = (
    Twist(
        "last-stage-first",
        "forwards go from stage K-1 down to stage 0, and gradients come back from stage 0 up to stage K-1",
        given={2: REVERSED, 3: REVERSED, 4: REVERSED, 6: CAPS_REVERSED},
        result=FROM_THE_LAST,
        about="places",
        drawn=True,
    ),
    Twist(
        "caps",
        "`cap` is a list with one number for each device",
        given={6: A_CAP_EACH},
        about="cap",
        cases=_with_models(_add_room, lambda words: f"{words}, with room for one activation more on every second device"),
    ),
    Twist(
        "other-letters",
        "the letters are exchanged: an input gradient is written W, and a weight gradient I",
        result=OTHER_LETTERS,
    ),
    Twist(
        "two-latencies",
        "`C` is a pair: the latency of messages with activations, and that of messages with gradients",
        given={5: TWO_LATENCIES},
        cases=_with_models(_set_latencies_apart, lambda words: words.replace("no latency", "a short latency")),
    ),
    Twist("reversed-lines", "text d of the result has the operations of device K-1-d", result=REVERSED, drawn=True),
    Twist(
        "microbatch-first",
        "an operation is written microbatch, letter, stage: 3F0 is the forward of microbatch 3 on stage 0",
        result=MICROBATCH_FIRST,
        about="places",
    ),
    Twist(
        "gigabytes",
        f"an activation takes {GIGABYTES} GB, and `cap` is the memory of each device in GB",
        given={6: scaled(GIGABYTES)},
        about="cap",
    ),
)
