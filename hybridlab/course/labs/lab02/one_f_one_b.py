"""The coding task ("build") ``one_f_one_b`` of lab 2: the judge and the picture of orders, known mistakes, changes ("twists")."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Orders, is_empty, plain_values, require_orders
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.drawing import Drawing, first_differences, marked_by
from hybridlab.course.checking.maps import REVERSED, ChangeOfPlace, Map, arranged, like, of_value, operations, refuse
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.errors import HybridLabError, InvalidSchedule
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

UNIT_COSTS = Costs(forward=1, backward=2)
_BACKWARD = re.compile(r"(\d+)B(\d+)|(\d+)I(\d+)[\s,]+\3W\4(?!\d)")  # 1B0, or its two halves in a row: 1I0 1W0
# the codes of faults that an order can have although it is complete and can run
NOT_1F1B = ("gpipe", "microbatches-out-of-order", "not-alternating", "wrong-warmup")
GROWING_WARM_UP = "your warm-up grows with the number of the stage: stage 0 has the longest, and the last stage has none"


def not_1f1b(schedule: Schedule) -> Iterator[tuple[str, str]]:
    """For each device whose order differs from 1F1B, yield the code of its first fault and a sentence about the fault."""
    if schedule.device_of != tuple(range(schedule.devices)):
        yield "another-placement", "in 1F1B stage 0 is on device 0, stage 1 on device 1, and so on, one stage a device"
        return
    for device, order in enumerate(schedule.orders):
        fault = next(_faults_of_device(device, order, schedule.devices), None)
        if fault:
            yield fault


def _faults_of_device(device: int, order: Sequence[Op], devices: int) -> Iterator[tuple[str, str]]:
    part = next((op for op in order if op.kind in "IW"), None)
    if part:
        yield "split-backward", f"device {device} runs {part.words}; 1F1B runs full backwards (B), not their parts"
    for kind in (Kind.F, Kind.B):
        run = [op.microbatch for op in order if op.kind is kind]
        for found, wanted_here in zip(run, sorted(run), strict=True):
            if found != wanted_here:
                sentence = f"device {device} runs the {kind.words} of microbatch {found} before that of microbatch {wanted_here}"
                yield "microbatches-out-of-order", f"{sentence}; 1F1B takes the microbatches in order"
    count = sum(op.kind is Kind.F for op in order)
    first = next((place for place, op in enumerate(order) if op.kind is Kind.B), 0)
    warmup = min(devices - 1 - device, count)
    wanted = min(warmup + 1, count)
    parts = f"the warm-up has {warmup}" + (", and the first pair has one more forward" if wanted > warmup else "")
    should = f"in 1F1B its first backward comes after {wanted}: {parts}"
    if first == count > max(1, wanted):
        yield "gpipe", f"device {device} starts its first backward after all its {first} forwards, as GPipe does; {should}"
    elif first != wanted:
        yield "wrong-warmup", f"device {device} starts its first backward after {counted(first, 'forward')}; {should}"
    last = max(place for place, op in enumerate(order) if op.kind is Kind.F)
    for op, following in pairwise(order[first : last + 1]):
        if op.kind is following.kind:
            sentence = f"device {device} runs {op} and {following} one after the other"
            yield "not-alternating", f"{sentence}; after its warm-up 1F1B alternates"


def unit_timeline(schedule: Schedule) -> Timeline:
    """Return the timeline of a schedule in which a forward takes 1 unit of time and a backward takes 2."""
    return simulate(schedule, UNIT_COSTS)


def judge_order(
    orders: Orders, judge: Callable[[Schedule], Feedback], devices: int, microbatches: int, *, with_goal: bool = True
) -> Feedback:
    """Return the feedback on a student's orders, with a picture of them.

    If the orders can run, ``judge`` gives the feedback on their schedule. If they cannot run, the feedback is the schedule's error.
    Below wrong orders the picture shows 1F1B, unless ``with_goal`` is False.
    """
    try:
        feedback = judge(Schedule("yours", orders))
    except InvalidSchedule as why:
        drawing = drawing_of(orders, devices, microbatches, marked_by(why) or None, with_goal)
        return replace(wrong(why.code, str(why)), drawing=drawing)
    if feedback.passed:
        return replace(feedback, drawing=Drawing(orders, UNIT_COSTS))
    return replace(feedback, drawing=drawing_of(orders, devices, microbatches, with_goal=with_goal))


@lru_cache(128)  # more than the number of public cases, so that all of them stay in the cache
def _goal_of(devices: int, microbatches: int) -> Timeline:
    return unit_timeline(build("1f1b", devices, microbatches))


def drawing_of(orders: Orders, devices: int, microbatches: int, marked: tuple[Op, ...] | None = None, with_goal: bool = True) -> Drawing:
    """Return the picture of the orders. If ``with_goal``, the picture also shows 1F1B, below the orders.

    If ``marked`` is None, the picture marks the first operation of each device that differs from 1F1B.
    """
    goal = _goal_of(devices, microbatches)
    return Drawing(orders, UNIT_COSTS, goal if with_goal else None, first_differences(orders, goal) if marked is None else marked)


def judge_one_f_one_b(orders: Orders, devices: int, microbatches: int) -> Feedback:
    """Return the feedback on a student's orders for one size. They pass if they can run and every device runs 1F1B."""
    if len(orders) != devices:
        return wrong("another-size", f"the result has {counted(len(orders), 'line')}, not one for each of {counted(devices, 'device')}")

    def judged(schedule: Schedule) -> Feedback:
        if schedule.microbatches != microbatches:
            return wrong("another-number", f"the order has {counted(schedule.microbatches, 'microbatch')}, not {microbatches}")
        fault = next(not_1f1b(schedule), None)
        return wrong(*fault) if fault else right()

    return judge_order(orders, judged, devices, microbatches)


def sizes_of_pipelines(rng: np.random.Generator) -> Iterator[Case]:
    """Yield small sizes and 30 random sizes up to 12 devices and 24 microbatches, from the smallest to the largest."""
    small = {size for size in product(range(1, 4), range(1, 6)) if size[0] * size[1] <= 10}
    drawn = rng.permutation(sorted({*product(range(1, 13), range(1, 25))} - small))[:30].tolist()
    for devices, microbatches in sorted([*small, *map(tuple, drawn)], key=lambda size: (size[0] * size[1], size)):
        yield Case((devices, microbatches), f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')}")


def read_lines(result: Any) -> Orders:
    """Return the order of each device that a student's function has returned."""
    plain = plain_values(result)
    if is_empty(plain):
        raise HybridLabError("the function returns no operations; return one text for each device, such as ['0F0 0B0']", "empty")
    for line in plain if isinstance(plain, list) else [plain]:
        if isinstance(line, str) and (joined := re.search(r"(?<!\d)\d+[FBfb]\d+[FBfb]\d+", line)):
            raise HybridLabError(f"a space is missing between two operations: {joined[0]!r}", "no-space")
    return require_orders(plain)


def _text_of(name: str) -> Callable[[int, int], str]:
    return lambda devices, microbatches: str(build(name, devices, microbatches))


Part = Callable[[int, int], Sequence[str]]  # warm-up, microbatches -> operations; "F2" is the forward of microbatch 2


def _three_parts(warmup: Callable[[int, int, int], int], pairs: Part | None = None, end: Part | None = None) -> Callable[..., list[str]]:
    """Return a program that writes 1F1B in three parts: warm-up, pairs and end. One of the parts is wrong.

    ``warmup`` takes the device, the number of devices and the number of microbatches, and returns a number of forwards. ``pairs`` and
    ``end`` replace the right pairs and the right end.
    """

    def right_pairs(ahead: int, microbatches: int) -> list[str]:
        return [op for first in range(microbatches - ahead) for op in (f"F{first + ahead}", f"B{first}")]

    def right_end(ahead: int, microbatches: int) -> list[str]:
        return [f"B{microbatch}" for microbatch in range(max(microbatches - ahead, 0), microbatches)]

    def orders(devices: int, microbatches: int) -> list[str]:
        lines = []
        for device in range(devices):
            ahead = max(warmup(device, devices, microbatches), 0)
            parts = [f"F{microbatch}" for microbatch in range(ahead)]
            parts += [*(pairs or right_pairs)(ahead, microbatches), *(end or right_end)(ahead, microbatches)]
            lines.append(" ".join(f"{device}{op}" for op in parts))
        return lines

    return orders


def _warmup(device: int, devices: int, microbatches: int) -> int:
    return min(devices - 1 - device, microbatches)


def _backward_first(ahead: int, microbatches: int) -> list[str]:
    return [op for first in range(microbatches - ahead) for op in (f"B{first}", f"F{first + ahead}")]


def _newest_first(ahead: int, microbatches: int) -> list[str]:
    return [op for microbatch in range(ahead, microbatches) for op in (f"F{microbatch}", f"B{microbatch}")]


MISTAKES = (
    KnownMistake(
        "all-forwards-first", "your function writes GPipe: in 1F1B a device runs its first backward as soon as it can", _text_of("gpipe")
    ),
    KnownMistake(
        "warm-up-too-long",
        "your warm-up is one forward too long: on stage s it has K-1-s forwards, and the first pair begins with one more forward",
        _three_parts(lambda device, devices, microbatches: min(devices - device, microbatches)),
    ),
    KnownMistake(
        "eager",
        "your warm-up is that of eager 1F1B, twice as long, which needs more memory: on stage s it has K-1-s forwards",
        _three_parts(lambda device, devices, microbatches: min(2 * (devices - 1 - device), microbatches)),
    ),
    KnownMistake(
        "same-warm-up",
        "all your stages have the warm-up of stage 0: on stage s it has K-1-s forwards",
        _three_parts(lambda device, devices, microbatches: min(devices - 1, microbatches)),
    ),
    KnownMistake(
        "reversed",
        GROWING_WARM_UP,
        _three_parts(lambda device, devices, microbatches: min(device, microbatches)),
    ),
    KnownMistake(
        "no-warm-up",
        "your devices have no warm-up; without it the later stages have nothing to do",
        _three_parts(lambda device, devices, microbatches: 0),
    ),
    KnownMistake(
        "warm-up-too-short",
        "your warm-up is one forward too short: on stage s it has K-1-s forwards, and the first pair begins with one more forward",
        _three_parts(lambda device, devices, microbatches: min(devices - 2 - device, microbatches)),
    ),
    KnownMistake(
        "arguments-exchanged",
        "you take devices for microbatches, and microbatches for devices: the first argument is the number of devices",
        lambda devices, microbatches: str(build("1f1b", microbatches, devices)),
        under={"microbatches-first": None},
    ),
    KnownMistake(
        "warm-up-beyond-the-last",
        "your warm-up runs microbatches that do not exist: on stage s it has K-1-s forwards, or M if M is smaller",
        _three_parts(lambda device, devices, microbatches: devices - 1 - device),
    ),
    KnownMistake(
        "backward-first",
        "your pairs run the backward before the forward; in a pair the forward comes first",
        _three_parts(_warmup, pairs=_backward_first),
    ),
    KnownMistake(
        "newest-first",
        "your pairs run the backward of the microbatch whose forward has just ended; take the oldest microbatch that the device holds",
        _three_parts(_warmup, pairs=_newest_first, end=lambda ahead, microbatches: [f"B{each}" for each in range(ahead)]),
    ),
    KnownMistake(
        "no-cool-down",
        "your order ends after the last pair; add the cool-down: the backwards that are left",
        _three_parts(_warmup, end=lambda ahead, microbatches: []),
    ),
)


Number = Callable[[int, int], int]  # number of a microbatch, count of microbatches -> another number


def _with_microbatches(apply: Number, undo: Number) -> Map:
    """Return the map that renumbers the microbatches 0 to M-1. Any other number stays unchanged."""

    def change(number: Number) -> ChangeOfPlace:
        return lambda stage, microbatch, case: (stage, number(microbatch, case[1]) if microbatch < case[1] else microbatch)

    return operations(change(apply), change(undo))


def _half(number: int, count: int) -> int:
    return count + number if number % 2 else number // 2  # an odd number is wrong here: map it to a number that no microbatch has


def _exchange_halves(orders: Any) -> Any:
    """Return orders after two exchanges: each B has become I and W; each I with its W directly after it has become B."""

    def exchanged(line: str) -> str:
        return _BACKWARD.sub(lambda found: found.expand(r"\1I\2 \1W\2" if found[1] else r"\3B\4"), line)

    if isinstance(orders, str):
        return exchanged(orders)
    if not isinstance(orders, (list, tuple)):
        refuse(orders, "a list")
    return like(orders, [exchanged(line) if isinstance(line, str) else like(line, exchanged(" ".join(line)).split()) for line in orders])


EXAMPLES = (
    Example((2, 3), ["0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"]),
    Example((3, 1), ["0F0 0B0", "1F0 1B0", "2F0 2B0"]),
)


def order_twists(device_d_runs: str) -> tuple[Twist, ...]:
    """Return changes ("twists") of a coding task whose function writes one line of operations for each device.

    The second argument of the function is the number of microbatches, M.

    Parameters
    ----------
    device_d_runs : str
        The beginning of a sentence, such as ``"device d runs stage"``. The number of the stage follows.
    """
    return (
        Twist("reversed-stages", f"{device_d_runs} K-1-d", result=REVERSED, about="stages", drawn=True),
        Twist(
            "last-microbatch-first",
            "the microbatches run from the last one, M-1, down to 0",
            result=_with_microbatches(lambda number, count: count - 1 - number, lambda number, count: count - 1 - number),
            about="microbatches",
            drawn=True,
        ),
        Twist(
            "split-backward",
            "the backward has two operations: a device runs the weight gradient, such as `0W0`, directly after the input gradient `0I0`",
            result=of_value(_exchange_halves, _exchange_halves),
        ),
        Twist(
            "one-stage-further",
            f"{device_d_runs} (d+1) mod K",
            result=arranged(lambda count: [(line + 1) % count for line in range(count)]),
            about="stages",
            drawn=True,
        ),
        Twist(
            "even-microbatches",
            "the microbatches have the even numbers 0, 2, ..., 2M-2, because another replica has the odd ones",
            result=operations(
                lambda stage, microbatch, case: (stage, 2 * microbatch), lambda stage, microbatch, case: (stage, _half(microbatch, case[1]))
            ),
            about="microbatches",
        ),
        Twist(
            "microbatch-0-last",
            "the microbatches run in the order 1, 2, ..., M-1, 0",
            result=_with_microbatches(lambda number, count: (number + 1) % count, lambda number, count: (number - 1) % count),
            about="microbatches",
            drawn=True,
        ),
    )


TWISTS = (
    *order_twists("device d runs stage"),
    Twist("microbatches-first", "the function is called as one_f_one_b(microbatches, devices)", order=(1, 0)),
)
