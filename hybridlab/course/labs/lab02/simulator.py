"""The coding task ("build") ``simulate`` of lab 2: the orders to try, the judge of times, known mistakes, changes ("twists")."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from hybridlab.checks import counted, distinct_texts, short_repr
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import plain_values, require_number, require_orders, same
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.drawing import Drawing
from hybridlab.course.checking.maps import REVERSED, RUNNING_SUMS, Map, at, each, keys, operations, scaled, shifted
from hybridlab.course.checking.partial import Stop, run_partly, timeline_of, turns_of
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.errors import HybridLabError, InvalidSchedule
from hybridlab.schedule import Op, Schedule
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

Times = dict[str, tuple[float, float]]  # start and end of each operation in ms
Clock = Callable[[list[str], list[float], list[float], float], Times]  # a simulator: orders, forward, backward, latency -> times

LONGEST_WORDS = 60  # characters: a sentence shows all operations of an order up to this length
NAMED = {"gpipe": "GPipe", "1f1b": "1F1B", "eager-1f1b": "eager 1F1B"}
NAMED_SIZES = [(1, 3), (3, 1), (3, 2), (2, 4), (3, 4), (5, 3), (4, 5)]
TWO_DIGITS = [("1f1b", 2, 11), ("gpipe", 11, 3)]  # sizes whose stages or microbatches have numbers of two digits


def orders_of_many_kinds(rng: np.random.Generator) -> Iterator[Case]:
    """Yield orders from the smallest up: named schedules, random orders that can run, and orders that end in a deadlock."""
    yield _case(["0F0 0B0"], [1], [2], 0)
    yield _case(["0F0 0F1 0B0 0B1"], [2], [3], 1)
    yield _case(["0F0 0B0", "1F0 1B0"], [1, 1], [2, 2], 0)
    yield _case(["0F0 0B0", "1F0 1B0"], [1, 2], [2, 3], 0.5)
    yield _case(["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"], [1, 1], [2, 2], 0)
    yield _case(["0F0 0F1 0B0 0B1", "1F1 1B1 1F0 1B0"], [1, 2], [2, 1], 0)
    yield _case(["0B0 0F0"], [1], [2], 0)
    yield _case(["0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"], [1, 1], [2, 2], 0)
    yield _case(["0F0 0F1 0B0 0B1", "1B0 1F0 1F1 1B1"], [1, 1], [2, 2], 0)
    cases = [_named(name, size, rng) for name in NAMED for size in NAMED_SIZES]
    cases += [_named(name, size, rng) for name, *size in TWO_DIGITS]
    sizes = [(int(rng.integers(1, 7)), int(rng.integers(1, 8))) for _ in range(12)]
    cases += [_random(_shuffled(size, rng), "a random order", rng) for size in sizes]
    sizes = [(int(rng.integers(2, 6)), int(rng.integers(2, 7))) for _ in range(12)]
    cases += [_random(_deadlocked(size, rng), "an order that ends in a deadlock", rng) for size in sizes]
    yield from sorted(cases, key=lambda case: sum(len(line.split()) for line in case.arguments[0]))
    yield _case(str(build("1f1b", 4, 8)).splitlines(), [1] * 4, [2] * 4, 0, "1F1B")


def _case(orders: Sequence[str], forward: list[float], backward: list[float], latency: float, name: str = "") -> Case:
    lines = [line.split(": ")[-1] for line in orders]
    size = f"{counted(len(lines), 'device')} and {counted(1 + max(op.microbatch for op in require_orders(lines)[0]), 'microbatch')}"
    short = f"the order {' | '.join(lines)}" + ("" if can_run(lines) else ", which ends in a deadlock")
    what = short if _is_short(lines) else f"{name} of {size}"
    times = [", ".join(f"{time:g}" for time in each) for each in (forward, backward)]
    return Case((lines, forward, backward, latency), f"{what}, forward {times[0]}, backward {times[1]}, latency {latency:g}")


def _is_short(orders: Sequence[str]) -> bool:
    """Whether the order is so short that the words for a case show all its operations."""
    return sum(map(len, orders)) <= LONGEST_WORDS


def _named(name: str, size: Sequence[int], rng: np.random.Generator) -> Case:
    return _random(str(build(name, *size)).splitlines(), NAMED[name], rng)


def _random(orders: Sequence[str], name: str, rng: np.random.Generator) -> Case:
    """Return a case with random times. They are multiples of 0.5 ms, so that their sums have no rounding error."""
    forward, backward = (rng.integers(2, 9, len(orders)) / 2 for _ in range(2))
    return _case(orders, forward.tolist(), backward.tolist(), float(rng.choice([0, 0.5, 1, 3])), name)


def _shuffled(size: tuple[int, int], rng: np.random.Generator) -> list[str]:
    """Return a random order that can run, in which microbatches can overtake each other."""
    given = build("gpipe", *size)
    needs = {op: given.needs(op) for op in given.ops}
    left = list(given.ops)
    done: set[Op] = set()
    lines: list[list[str]] = [[] for _ in range(given.devices)]
    while left:
        ready = [op for op in left if done.issuperset(needs[op])]
        op = ready[int(rng.integers(len(ready)))]
        left.remove(op)
        done.add(op)
        lines[op.stage].append(str(op))
    return [" ".join(line) for line in lines]


def _deadlocked(size: tuple[int, int], rng: np.random.Generator) -> list[str]:
    """Return a random order that ends in a deadlock. Two operations of a device are exchanged until there is a deadlock."""
    lines = [line.split() for line in _shuffled(size, rng)]
    while can_run(orders := [" ".join(line) for line in lines]):
        line = lines[int(rng.integers(len(lines)))]
        one, other = rng.choice(len(line), 2, replace=False).tolist()
        line[one], line[other] = line[other], line[one]
    return orders


def can_run(orders: Sequence[str]) -> bool:
    """Whether an order, given as one string for each device, can run to its end."""
    try:
        Schedule("order", require_orders(list(orders)))
    except InvalidSchedule:
        return False
    return True


def read_times(result: Any) -> Times:
    """Return the start and the end of each operation, read from the result of a student's simulator."""
    op = next((op for op in result if not isinstance(op, (str, Op))), None) if isinstance(result, dict) else None
    if op is not None:
        raise HybridLabError(f"a key of the dict is an operation as text, such as '0F0', not {short_repr(op)}", "not-text")
    values = plain_values(result)
    wanted = "a dict from operations to (start, end), such as {'0F0': (0, 1)}"
    if not isinstance(values, dict):
        raise HybridLabError(f"the function returns {wanted}, not {short_repr(values)}", "not-a-dict")
    times = {}
    for op, span in values.items():
        if not isinstance(op, str) or not isinstance(span, list) or len(span) != 2:
            raise HybridLabError(
                f"the function returns {wanted}, but it has {short_repr(op)}: {short_repr(span)}", "not-a-start-and-an-end"
            )
        start, end = (require_number(time, f"the start or the end of {op}") for time in span)
        times[op] = start, end
    return times


def judge_times(times: Times, orders: list[str], forward: list[float], backward: list[float], latency: float) -> Feedback:
    """Return the feedback on a student's times for one order. In a deadlock, only the operations that run before it have times."""
    goal, stops, expected = _right_run(tuple(orders), tuple(forward), tuple(backward), latency)
    fault = next(_faults(times, expected, orders, stops, latency), None)
    if fault is None:
        return replace(right(), drawing=None if stops else _picture_of(times, goal, ()))
    op, code, sentence = fault
    lines = "\n".join(f"device {device}: {line}" for device, line in enumerate(orders))
    shown = [] if _is_short(orders) else [f"the orders are\n{lines}"]
    drawing = _picture_of(times, goal, (Op.parse(op),)) if op in expected else None
    return replace(wrong(code, sentence, *shown), drawing=drawing)


@lru_cache(256)  # more than the number of public cases, so that all of them stay in the cache
def _right_run(
    orders: tuple[str, ...], forward: tuple[float, ...], backward: tuple[float, ...], latency: float
) -> tuple[Timeline, Sequence[Stop], Times]:
    """Return the right timeline, the operations at which a deadlock stops the devices, and the right times."""
    turns, costs = turns_of(require_orders(list(orders))), Costs(forward=forward, backward=backward, p2p=latency)
    ran, stops = run_partly(turns, costs)
    goal = timeline_of(turns, ran, costs.unit) if stops else simulate(Schedule("the goal", turns), costs)
    spans = zip(goal.start.tolist(), goal.end.tolist(), strict=True)
    return goal, stops, dict(zip(map(str, goal.ops), spans, strict=True)) if any(ran) else {}


def _faults(times: Times, expected: Times, orders: list[str], stops: Sequence[Stop], latency: float) -> Iterator[tuple[str, str, str]]:
    """Yield the operation, the code and the sentence of each fault. Faults of operations that should run are sorted by the right start.

    So the first fault is not caused by another one: all operations that should start earlier have the right times.
    """
    device_of = {op: device for device, line in enumerate(orders) for op in line.split()}
    behind = {op: before for line in orders for before, op in pairwise(line.split())}
    for op in times.keys() - device_of.keys():
        yield op, "not-in-the-orders", f"the result has {short_repr(op)}, which is no operation of the orders"
    for op, (start, end) in sorted(expected.items(), key=lambda each: each[1]):
        if op not in times:
            yield op, "missing-operation", f"the result lacks {op}, which runs from {start:g} to {end:g} ms"
            continue
        if same(times[op], (start, end)):
            continue
        device, (mine, ends) = device_of[op], times[op]
        free = expected[behind[op]][1] if op in behind else 0.0
        needed, messages = _input_of(op, device_of)
        arrival = expected[needed][1] + messages * latency if needed else 0.0
        if same(mine, start):
            ended, _ = distinct_texts(ends, end)
            takes = f"on device {device} it takes {end - start:g} ms"
            yield op, "wrong-end", f"{op} starts at {start:g} ms and ends at {ended} ms in your result; {takes}"
            continue
        found, freed, arrived, soonest = distinct_texts(mine, free, arrival, start)
        starts = f"{op} starts at {found} ms in your result"
        has_input = f"its input, from {needed}, arrives at {arrived} ms" if needed else "it needs no input"
        if mine < 0:
            yield op, "before-the-begin", f"{starts}, but the first operation can start at 0 ms"
        elif mine < free:
            yield op, "device-busy", f"{starts}, but device {device} runs {behind[op]} until {freed} ms"
        elif mine < start:
            yield op, "input-missing", f"{starts}, but {has_input}"
        else:
            can = f"it can start at {soonest} ms: device {device} is free at {freed} ms, and {has_input}"
            yield op, "too-late", f"{starts}, but {can}"
    for op in sorted(times.keys() & device_of.keys() - expected.keys()):
        stop = next(stop for stop in stops if stop.device == device_of[op])
        why = f"device {stop.device} stops at {stop.op}, which waits for {stop.needed} for ever"
        yield op, "never-starts", f"{op} has a start in your result, but {why}"


def _input_of(op: str, device_of: dict[str, int]) -> tuple[str, int]:
    """Return the operation whose output ``op`` needs ("" for none), and the number of messages that carry this output (0 or 1)."""
    kind, stage, microbatch = (each := Op.parse(op)).kind, each.stage, each.microbatch
    other = f"{stage - 1}F{microbatch}" if kind == "F" else f"{stage + 1}B{microbatch}"
    if other in device_of:
        return other, 1
    return ("", 0) if kind == "F" else (f"{stage}F{microbatch}", 0)


def _picture_of(times: Times, goal: Timeline, marked: tuple[Op, ...]) -> Drawing | None:
    """Return the picture of a student's times, or None if an operation has no time.

    If an operation is marked as wrong, the right times stand below the student's.
    """
    if any(str(op) not in times for op in goal.ops):
        return None
    starts, ends = zip(*(times[str(op)] for op in goal.ops), strict=True)
    drawing = Drawing.of_times(starts, ends, goal, marked)
    return drawing if marked else replace(drawing, goal=None)


# operation, its device, number of devices, latency -> the operations that it needs, each with the delay of its result in ms
Needs = Callable[[str, int, int, float], dict[str, float]]


def _needs(op: str, device: int, devices: int, latency: float) -> dict[str, float]:
    """Return the operations that ``op`` needs. The value of each is the time in ms from its end to the arrival of its result."""
    kind = "F" if "F" in op else "B"
    microbatch = op.split(kind)[1]
    if kind == "F":
        return {f"{device - 1}F{microbatch}": latency} if device else {}
    return {f"{device}F{microbatch}": 0.0} | ({f"{device + 1}B{microbatch}": latency} if device < devices - 1 else {})


def _every_need_late(*op: Any) -> dict[str, float]:
    return dict.fromkeys(_needs(*op), op[-1])


def _forwards_only(*op: Any) -> dict[str, float]:
    return {needed: late for needed, late in _needs(*op).items() if "F" in needed}


def _other_devices_only(*op: Any) -> dict[str, float]:
    return {needed: late for needed, late in _needs(*op).items() if not needed.startswith(f"{op[1]}F")}


def _one_digit(*op: Any) -> dict[str, float]:
    return {needed[: needed.index(kind) + 2]: late for needed, late in _needs(*op).items() for kind in "FB" if kind in needed}


def _third_character(*op: Any) -> dict[str, float]:
    """Return the needs of an operation whose microbatch is taken to be its third character: 1 for 0F10, and F for 10F0."""
    return {needed[: needed.index(kind) + 1] + op[0][2]: late for needed, late in _needs(*op).items() for kind in "FB" if kind in needed}


def _clock(needs: Needs, in_order: bool, one_at_a_time: bool) -> Clock:
    """Return a simulator with a wrong rule.

    ``needs`` returns the operations that an operation waits for. Without ``in_order`` a device runs any operation that is ready.
    Without ``one_at_a_time`` a device runs several operations at the same time.
    """

    def times_of(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Times:
        waiting, free = [line.split() for line in orders], [0.0] * len(orders)
        times: Times = {}
        before = -1
        while before < len(times):
            before = len(times)
            for device, line in enumerate(waiting):
                for op in line[:1] if in_order else line:
                    needed = needs(op, device, len(orders), latency)
                    if needed.keys() <= times.keys():
                        arrivals = [times[each][1] + late for each, late in needed.items()]
                        start = max([free[device] * one_at_a_time, *arrivals])
                        free[device] = start + (forward if "F" in op else backward)[device]
                        times[op] = start, free[device]
                        line.remove(op)
                        break
        return times

    return times_of


def _one_pass(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Times:
    """Return the times of a simulator that goes through the devices once and does not wait for inputs without a time."""
    times: Times = {}
    for device, line in enumerate(orders):
        free = 0.0
        for op in line.split():
            needed = _needs(op, device, len(orders), latency).items()
            start = max([free, *(times[each][1] + late for each, late in needed if each in times)])
            free = start + (forward if "F" in op else backward)[device]
            times[op] = start, free
    return times


def _right_times(orders: list[str], costs: Costs) -> Times:
    """Return the times of a right simulator, run with the wrong costs of a known mistake."""
    ran, _ = run_partly(turns_of(require_orders(orders)), costs)
    return {str(each.turn[0]): (each.start, each.end) for turns in ran for each in turns}


def _with(costs: Callable[[list[float], list[float], float], Costs]) -> Clock:
    """Return a simulator with wrong costs, which ``costs`` makes from the arguments of the simulator."""
    return lambda orders, forward, backward, latency: _right_times(orders, costs(forward, backward, latency))


def _durations(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Times:
    times = _right_times(orders, Costs(forward=forward, backward=backward, p2p=latency))
    return {op: (start, end - start) for op, (start, end) in times.items()}


def _nothing_in_a_deadlock(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Times:
    return _right_times(orders, Costs(forward=forward, backward=backward, p2p=latency)) if can_run(orders) else {}


MISTAKES = (
    KnownMistake(
        "no-latency",
        "your messages take no time: a result reaches another device `latency` ms after the operation has ended",
        _with(lambda forward, backward, latency: Costs(forward=forward, backward=backward)),
        under={
            "slow-messages": "your messages take no time: a result reaches another device 2 x `latency` ms after the operation has ended",
            "microseconds": "your messages take no time: a result reaches another device `latency` / 1000 ms after the operation has ended",
        },
    ),
    KnownMistake(
        "latency-within-a-device",
        "your latency also delays results that stay on their device: on the stage where forwards end, the backward needs no message",
        _clock(_every_need_late, in_order=True, one_at_a_time=True),
    ),
    KnownMistake(
        "latency-blocks-the-device",
        "your devices wait while their messages are on the way: a device can start its next operation immediately",
        _with(lambda forward, backward, latency: Costs(forward=np.add(forward, latency), backward=np.add(backward, latency))),
    ),
    KnownMistake(
        "times-of-device-0",
        "all your devices have the times of device 0: in the lists each device has times of its own",
        _with(lambda forward, backward, latency: Costs(forward=forward[0], backward=backward[0], p2p=latency)),
        under={"last-stage-first": "all your devices have the times of the last device: in the lists each device has times of its own"},
    ),
    KnownMistake(
        "times-exchanged",
        "you have exchanged the times of forwards and backwards",
        _with(lambda forward, backward, latency: Costs(forward=backward, backward=forward, p2p=latency)),
    ),
    KnownMistake(
        "several-at-a-time",
        "your devices run several operations at the same time: an operation also waits for the end of the operation before it",
        _clock(_needs, in_order=True, one_at_a_time=False),
    ),
    KnownMistake(
        "gradient-missing",
        "your backwards wait for their own forward alone: they also need the gradient of the next stage",
        _clock(_forwards_only, in_order=True, one_at_a_time=True),
        under={
            "last-stage-first": "your backwards wait for their own forward alone: a backward of stage d also needs a gradient of stage d-1"
        },
    ),
    KnownMistake(
        "own-forward-missing",
        "on the stage where forwards end, you run a backward before its own forward: a backward needs the activations of its forward",
        _clock(_other_devices_only, in_order=True, one_at_a_time=True),
    ),
    KnownMistake(
        "not-in-order",
        "your devices take any operation that is ready: a device runs its line in order, and waits if the next operation is not ready",
        _clock(_needs, in_order=False, one_at_a_time=True),
    ),
    KnownMistake(
        "one-pass",
        "you go through the devices once, and start operations whose input has no time yet: come back to such an operation later",
        _one_pass,
    ),
    KnownMistake(
        "nothing-in-a-deadlock",
        "your result is empty in a deadlock: the operations that run before the deadlock have times",
        _nothing_in_a_deadlock,
    ),
    KnownMistake(
        "duration-for-end",
        "your second number is the duration of the operation: return the time at which the operation ends",
        _durations,
        under={"durations": None},
    ),
    KnownMistake(
        "one-digit",
        "you read only one digit of the microbatch: 0F10 is the forward of microbatch 10",
        _clock(_one_digit, in_order=True, one_at_a_time=True),
    ),
    KnownMistake(
        "third-character",
        "you take the third character of an operation for its microbatch: in 10F0 the third character is the letter, and in 0F10 it is 1",
        _clock(_third_character, in_order=True, one_at_a_time=True),
    ),
)


BEGINS_AT = 5  # ms


def _from_the_last(stage: int, microbatch: int, case: tuple[Any, ...]) -> tuple[int, int]:
    """Return the stage of an operation, counted from the other end, and its microbatch."""
    stages = len(case[0])
    return (stages - 1 - stage if stage < stages else stage), microbatch


EXAMPLES = (
    Example((["0F0 0B0", "1F0 1B0"], [1, 1], [2, 2], 0.5), {"0F0": (0, 1), "1F0": (1.5, 2.5), "1B0": (2.5, 4.5), "0B0": (5.0, 7.0)}),
)
FROM_THE_LAST = operations(_from_the_last, _from_the_last)
CLOCK_TWISTS = (
    Twist(
        "slow-device-0",
        "device 0 also loads the data, and takes twice the times in the lists",
        given={1: at(0, scaled(0.5)), 2: at(0, scaled(0.5))},
        about="devices",
    ),
    Twist("slow-messages", "a message takes twice `latency`", given={3: scaled(0.5)}, about="messages"),
    Twist(
        "long-backwards",
        "`backward[d]` is the time for the gradient of the inputs alone: the gradient of the weights takes as long again",
        given={2: scaled(0.5)},
    ),
    Twist("later-begin", f"the step begins at {BEGINS_AT} ms, not at 0", result=shifted(BEGINS_AT), about="result"),
    Twist(
        "last-stage-first",
        "forwards go from stage K-1 down to stage 0, and gradients come back from stage 0 up to stage K-1",
        given={0: REVERSED.then(FROM_THE_LAST), 1: REVERSED, 2: REVERSED},
        result=keys(FROM_THE_LAST),
        about="devices",
    ),
    Twist(
        "slow-last-device",
        "the last device also computes the loss, and takes twice the times in the lists",
        given={1: at(-1, scaled(0.5)), 2: at(-1, scaled(0.5))},
        about="devices",
    ),
    Twist(
        "durations",
        "the value of an operation is (start, duration)",
        result=each(Map(RUNNING_SUMS.undo, RUNNING_SUMS.apply)),
        about="result",
    ),
    Twist("microseconds", "`latency` is in microseconds, and all other times are in ms", given={3: scaled(1000)}, about="messages"),
)
