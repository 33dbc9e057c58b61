"""Lab 2's builds: right functions pass whatever form their result has, and each wrong program gets the code of its mistake."""

import re
from collections.abc import Sequence
from copy import deepcopy
from fractions import Fraction
from itertools import islice, pairwise
from typing import Any

import numpy as np
from cases import in_turn
from forms import form_by_form
from hypothesis import assume, given
from strategies import any_orders

from hybridlab import Costs, InvalidSchedule, Schedule, build, simulate
from hybridlab.course.labs.lab02 import one_f_one_b, simulator
from hybridlab.course.labs.lab02 import tasks as lab02_tasks
from hybridlab.course.tasks import TASKS, check


def three_parts(device: int, warmup: int, microbatches: int) -> str:
    """The line of a device with a warm-up of some forwards, then pairs, then the backwards that are left."""
    line = [f"{device}F{microbatch}" for microbatch in range(warmup)]
    for microbatch in range(microbatches):
        if microbatch + warmup < microbatches:
            line.append(f"{device}F{microbatch + warmup}")
        line.append(f"{device}B{microbatch}")
    return " ".join(line)


def right_lines(devices: int, microbatches: int) -> list[str]:
    return [three_parts(device, min(devices - 1 - device, microbatches), microbatches) for device in range(devices)]


def by_hand(devices: int, microbatches: int) -> Schedule:
    """A schedule that a student has written, as an object of the library."""
    return Schedule.parse("\n".join(right_lines(devices, microbatches)))


def one_forward_too_few(devices: int, microbatches: int) -> list[str]:
    return [three_parts(device, min(max(devices - 2 - device, 0), microbatches), microbatches) for device in range(devices)]


def gpipe(devices: int, microbatches: int) -> list[str]:
    every = range(microbatches)
    return [" ".join([f"{device}F{m}" for m in every] + [f"{device}B{m}" for m in every]) for device in range(devices)]


def one_forward_too_many(devices: int, microbatches: int) -> list[str]:
    return [three_parts(device, min(devices - device, microbatches), microbatches) for device in range(devices)]


def one_warmup_for_all(devices: int, microbatches: int) -> list[str]:
    return [three_parts(device, min(devices - 1, microbatches), microbatches) for device in range(devices)]


def last_device_first(devices: int, microbatches: int) -> list[str]:
    return [three_parts(device, min(device, microbatches), microbatches) for device in range(devices)]


def no_warmup(devices: int, microbatches: int) -> list[str]:
    return [three_parts(device, 0, microbatches) for device in range(devices)]


def no_limit(devices: int, microbatches: int) -> list[str]:
    lines = []
    for device in range(devices):
        warmup = devices - 1 - device
        line = [f"{device}F{m}" for m in range(warmup)]
        for m in range(microbatches - warmup):
            line += [f"{device}F{warmup + m}", f"{device}B{m}"]
        line += [f"{device}B{m}" for m in range(max(0, microbatches - warmup), microbatches)]
        lines.append(" ".join(line))
    return lines


def backward_first(devices: int, microbatches: int) -> list[str]:
    lines = []
    for device in range(devices):
        warmup = min(devices - 1 - device, microbatches)
        line = [f"{device}F{m}" for m in range(warmup)]
        for m in range(microbatches):
            line.append(f"{device}B{m}")
            line += [f"{device}F{m + warmup}"] * (m + warmup < microbatches)
        lines.append(" ".join(line))
    return lines


def newest_first(devices: int, microbatches: int) -> list[str]:
    lines = []
    for device in range(devices):
        warmup = min(devices - 1 - device, microbatches)
        line = [f"{device}F{m}" for m in range(warmup)]
        for m in range(warmup, microbatches):
            line += [f"{device}F{m}", f"{device}B{m}"]
        lines.append(" ".join(line + [f"{device}B{m}" for m in range(warmup)]))
    return lines


def no_cooldown(devices: int, microbatches: int) -> list[str]:
    lines = []
    for device in range(devices):
        warmup = min(devices - 1 - device, microbatches)
        line = [f"{device}F{m}" for m in range(warmup)]
        for m in range(warmup, microbatches):
            line += [f"{device}F{m}", f"{device}B{m - warmup}"]
        lines.append(" ".join(line))
    return lines


def wrong_from_5_microbatches(lines_of: Any) -> Any:
    """A function that is right for 1 device and for fewer than 5 microbatches."""
    return lambda *size: lines_of(*size) if size[0] > 1 and size[1] >= 5 else build("1f1b", *size)


def first_device_as_in_gpipe(devices: int, microbatches: int) -> list[str]:
    return [gpipe(devices, microbatches)[0], *str(build("1f1b", devices, microbatches)).splitlines()[1:]]


def two_forwards_too_many(devices: int, microbatches: int) -> list[str]:
    return [three_parts(device, min(devices + 1 - device, microbatches), microbatches) for device in range(devices)]


def last_microbatch_first(devices: int, microbatches: int) -> list[str]:
    text = str(build("1f1b", devices, microbatches))
    return re.sub(r"(?<=[FB])\d+", lambda number: str(microbatches - 1 - int(number[0])), text).splitlines()


def two_by_two(devices: int, microbatches: int) -> list[str]:
    """On device 0 two backwards and two forwards take turns."""
    lines = str(build("1f1b", devices, microbatches)).splitlines()
    return [lines[0].replace("0B0 0F2 0B1 0F3", "0B0 0B1 0F2 0F3"), *lines[1:]]


def adding(devices: int, microbatches: int, lines: list[str] = []) -> list[str]:  # noqa: B006 - the mistake
    """A function whose default keeps the lines of earlier calls."""
    lines += right_lines(devices, microbatches)
    return lines


def only_the_examples(devices: int, microbatches: int) -> list[str]:
    """A function that knows the examples of the text by heart."""
    known = {(2, 3): ["0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"], (3, 1): ["0F0 0B0", "1F0 1B0", "2F0 2B0"]}
    return known.get((devices, microbatches), [f"{device}F0 {device}B0" for device in range(devices)])


Spans = dict[str, tuple[float, float]]


def a_simulator(orders: Sequence[str], forward: Sequence[float], backward: Sequence[float], latency: float, *, wrong: str = "") -> Spans:
    """The times of a simulator that asks again and again which device can run its next operation; ``wrong`` names a mistake in it."""
    rest = [line.split() for line in orders]
    clock = [0.0] * len(orders)
    spans: Spans = {}
    stuck = False
    while not stuck:
        stuck = True
        for device, queue in enumerate(rest):
            for op in queue if wrong == "any ready operation" else queue[:1]:
                kind = "F" if "F" in op else "B"
                number = op[2] if wrong == "third character" else op.split(kind)[1]
                number = number[:1] if wrong == "one digit" else number
                inputs = {}
                if kind == "F" and device > 0:
                    inputs[f"{device - 1}F{number}"] = latency
                if kind == "B" and device < len(orders) - 1 and wrong != "no gradient":
                    inputs[f"{device + 1}B{number}"] = latency
                if kind == "B" and wrong != "no activations":
                    inputs[f"{device}F{number}"] = latency if wrong == "latency at home" else 0
                if not all(each in spans for each in inputs):
                    continue
                arrivals = [spans[each][1] + (0 if wrong == "no latency" else late) for each, late in inputs.items()]
                start = max([0 if wrong == "at the same time" else clock[device], *arrivals])
                clock[device] = (
                    start + (forward if (kind == "F") != (wrong == "exchanged") else backward)[0 if wrong == "one time for all" else device]
                )
                if wrong == "sending":
                    clock[device] += latency
                    spans[op] = start, clock[device]
                spans[op] = start, clock[device]
                queue.remove(op)
                stuck = False
                break
    if any(rest) and wrong == "all or nothing":
        return {}
    if any(rest) and wrong == "refuses":
        raise RuntimeError("deadlock")
    if wrong == "durations":
        return {op: (start, end - start) for op, (start, end) in spans.items()}
    return spans


def once_from_above(orders: Sequence[str], forward: Sequence[float], backward: Sequence[float], latency: float) -> Spans:
    """Each device in turn, from the first operation to the last."""
    spans: Spans = {}
    for device, line in enumerate(orders):
        time = 0.0
        for op in line.split():
            stage, microbatch = re.split("[FB]", op)
            other = f"{int(stage) - 1}F{microbatch}" if "F" in op else f"{int(stage) + 1}B{microbatch}"
            start = max(time, spans[other][1] + latency if other in spans else 0)
            time = start + (forward if "F" in op else backward)[device]
            spans[op] = start, time
    return spans


def with_mistake(wrong: str) -> Any:
    return lambda *case: a_simulator(*case, wrong=wrong)


def sending_apart(orders: Sequence[str], forward: Sequence[float], backward: Sequence[float], latency: float) -> Spans:
    return a_simulator(orders, [each + latency for each in forward], [each + latency for each in backward], 0)


def changed(change: Any) -> Any:
    """A simulator whose result is changed for the order of two devices and two microbatches."""
    return lambda *case: change(a_simulator(*case)) if case[0][1:] == ["1F0 1B0 1F1 1B1"] else a_simulator(*case)


def known_orders(orders: Sequence[str], forward: Sequence[float], backward: Sequence[float], latency: float) -> Spans:
    """A simulator that knows the examples of the text by heart."""
    if latency:
        return {"0F0": (0, 1), "1F0": (1.5, 2.5), "1B0": (2.5, 4.5), "0B0": (5, 7)}
    return {"0F0": (0, 1)}


def changes_its_orders(orders: list[str], *times: Any) -> Spans:
    spans = a_simulator(orders, *times)
    orders.clear()
    return spans


# Each row has a task and another function that is right.
RIGHT: list[tuple[str, Any]] = [
    ("lab02.t5", lambda devices, microbatches: right_lines(devices, microbatches)),
    (
        "lab02.t5",
        form_by_form(
            by_hand,
            lambda schedule: schedule,
            str,
            lambda schedule: schedule.to_csv(),
            lambda schedule: schedule.orders,
            lambda schedule: [[str(op) for op in order] for order in schedule.orders],
            lambda schedule: {f"device {d}": line for d, line in enumerate(schedule.orders)},
        ),
    ),
    ("lab02.t6", lambda *case: {np.str_(op): np.array(span) for op, span in a_simulator(*case).items()}),
    ("lab02.t6", lambda *case: {op: [Fraction(start), np.float64(end)] for op, (start, end) in a_simulator(*case).items()}),
]
# Each row has a task, a wrong function, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab02.t5", gpipe, "all-forwards-first", "1 device and 2 microbatches"),
    ("lab02.t5", one_forward_too_many, "warm-up-too-long", "1 device and 2 microbatches"),
    ("lab02.t5", one_warmup_for_all, "same-warm-up", "2 devices and 2 microbatches"),
    ("lab02.t5", last_device_first, "reversed", "2 devices and 2 microbatches", "1B0"),
    ("lab02.t5", no_warmup, "no-warm-up", "2 devices and 2 microbatches", "device 0"),
    ("lab02.t5", one_forward_too_few, "warm-up-too-short", "2 devices and 2 microbatches"),
    ("lab02.t5", lambda devices, microbatches: right_lines(microbatches, devices), "arguments-exchanged", "1 device and 2 microbatches"),
    ("lab02.t5", lambda *size: [line.replace(" ", "") for line in right_lines(*size)], "no-space", "'0F00B0'"),
    ("lab02.t5", adding, "keeps-its-state", "1 device and 2 microbatches", "again for 1 device and 1 microbatch"),
    ("lab02.t5", lambda devices, microbatches: str(build("1f1b", devices, microbatches)).splitlines(), "not-your-own", "`build`"),
    ("lab02.t5", no_limit, "warm-up-beyond-the-last", "3 devices and 1 microbatch"),
    ("lab02.t5", backward_first, "backward-first", "device 0", "0B0", "0F0"),
    ("lab02.t5", newest_first, "newest-first", "2 devices and 2 microbatches"),
    ("lab02.t5", no_cooldown, "no-cool-down", "2 devices and 1 microbatch"),
    ("lab02.t5", only_the_examples, "another-number", "1 device and 2 microbatches", "1 microbatch, not 2"),
    ("lab02.t5", lambda devices, microbatches: str(build("1f1b", 1, microbatches)), "another-size", "1 line", "2 devices"),
    ("lab02.t5", lambda devices, microbatches: build("zb-h1", devices, microbatches), "split-backward", "device 0"),
    ("lab02.t5", wrong_from_5_microbatches(first_device_as_in_gpipe), "gpipe", "2 devices and 5 microbatches", "all its 5 forwards"),
    ("lab02.t5", wrong_from_5_microbatches(two_forwards_too_many), "wrong-warmup", "device 0", "4 forwards"),
    ("lab02.t5", last_microbatch_first, "microbatches-out-of-order", "microbatch 1", "microbatch 0"),
    ("lab02.t5", two_by_two, "not-alternating", "0B0", "0B1"),
    ("lab02.t5", lambda devices, microbatches: build("eager-1f1b", devices, microbatches), "eager", "device 0"),
    ("lab02.t5", lambda devices, microbatches: build("1f1b", devices, microbatches).orders[::-1], "another-placement"),
    ("lab02.t5", lambda devices, microbatches: print(build("1f1b", devices, microbatches)), "returns-nothing"),
    ("lab02.t5", lambda devices, microbatches: [], "empty", "['0F0 0B0']"),
    ("lab02.t5", lambda devices: [], "signature", "one_f_one_b(devices, microbatches)"),
    ("lab02.t5", lambda devices, microbatches: [f"{1 // (microbatches - 1)}"], "raises", "1 device and 1 microbatch", "ZeroDivisionError"),
    ("lab02.t5", str(build("1f1b", 3, 4)), "not-a-function"),
    ("lab02.t6", with_mistake("no latency"), "no-latency", "1F0", "1 ms", "1.5 ms"),
    ("lab02.t6", with_mistake("latency at home"), "latency-within-a-device", "from 1F0, arrives at 3.5 ms"),
    ("lab02.t6", sending_apart, "latency-blocks-the-device", "0F0"),
    ("lab02.t6", with_mistake("one time for all"), "times-of-device-0", "1F0"),
    ("lab02.t6", with_mistake("exchanged"), "times-exchanged", "0F0", "1 ms"),
    ("lab02.t6", with_mistake("at the same time"), "several-at-a-time", "device 0", "0F0"),
    ("lab02.t6", with_mistake("no gradient"), "gradient-missing", "0B0", "1B0", "4 ms"),
    ("lab02.t6", with_mistake("no activations"), "own-forward-missing", "0B0", "0F0"),
    ("lab02.t6", with_mistake("any ready operation"), "not-in-order"),
    ("lab02.t6", once_from_above, "one-pass", "0B0", "1B0"),
    ("lab02.t6", with_mistake("all or nothing"), "nothing-in-a-deadlock", "0F0"),
    ("lab02.t6", with_mistake("durations"), "duration-for-end", "0B0"),
    ("lab02.t6", with_mistake("one digit"), "one-digit", "0F10"),
    ("lab02.t6", with_mistake("third character"), "third-character", "1F10", "0F10"),
    ("lab02.t6", with_mistake("refuses"), "raises", "RuntimeError", "0B0 0F0, which ends in a deadlock"),
    ("lab02.t6", lambda *case: {(int(op[0]), op[1], op[2:]): span for op, span in a_simulator(*case).items()}, "not-text", "(0, 'F', '0')"),
    ("lab02.t6", known_orders, "missing-operation", "0B0", "from 1 to 3"),
    ("lab02.t6", changed(lambda spans: spans | {"1F1": (3, 4)}), "device-busy", "1F1", "3 ms", "1B0", "4 ms"),
    ("lab02.t6", changed(lambda spans: spans | {"0F0": (-1, 0)}), "before-the-begin", "0F0", "-1 ms", "0 ms"),
    ("lab02.t6", changed(lambda spans: spans | {"0B0": (3, 5)}), "input-missing", "0B0", "3 ms", "1B0", "4 ms"),
    ("lab02.t6", changed(lambda spans: spans | {"1B1": (6, 8)}), "too-late", "1B1", "6 ms", "5 ms", "1F1"),
    ("lab02.t6", changed(lambda spans: spans | {"1B1": (5, 8)}), "wrong-end", "1B1", "8 ms", "2 ms"),
    ("lab02.t6", changed(lambda spans: spans | {"2F0": (5, 8)}), "not-in-the-orders", "2F0"),
    ("lab02.t6", changed(lambda spans: {op: span for op, span in spans.items() if op != "1B1"}), "missing-operation", "1B1", "5 to 7"),
    ("lab02.t6", lambda *case: a_simulator(*case) | {op: (9, 9) for op in case[0][0].split() if case[0][0] == "0B0 0F0"}, "never-starts"),
    ("lab02.t6", changed(lambda spans: spans | {"1B1": (5, float("nan"))}), "not-a-number", "1B1"),
    ("lab02.t6", changed(lambda spans: list(spans.items())), "not-a-dict"),
    ("lab02.t6", lambda *case: {op: start for op, (start, _) in a_simulator(*case).items()}, "not-a-start-and-an-end", "'0F0'"),
    ("lab02.t6", changes_its_orders, "changes-its-argument"),
    ("lab02.t6", lambda orders, costs: {}, "signature", "simulate(orders, forward, backward, latency)"),
    ("lab02.t6", "0F0", "not-a-function"),
]


def passes(key: str, function: Any) -> bool:
    """Whether a function is right in the first cases of a build."""
    data = TASKS[key].instance(None).data
    try:
        cases = islice(data.cases(np.random.default_rng(0)), 12)
        return all(data.judge(data.reads(function(*deepcopy(case.arguments))), *case.arguments).passed for case in cases)
    except Exception:
        return False


def test_no_solution_of_a_build_can_be_imported() -> None:
    modules = {module.__name__: module for module in (lab02_tasks, one_f_one_b, simulator)}
    values = [value for module in modules.values() for value in vars(module).values() if getattr(value, "__module__", "") in modules]
    assert len(values) > 20
    assert passes("lab02.t6", a_simulator)
    assert not any(passes(key, value) for key in ("lab02.t5", "lab02.t6") for value in values)


@in_turn("key", ["lab02.t5", "lab02.t6"])
def test_a_function_without_code_is_nothing_handed_in(key: str) -> None:
    def one_f_one_b(devices: int, microbatches: int) -> Any: ...

    assert check(key, one_f_one_b).code == "nothing-handed-in"


def test_another_seed_gives_other_orders() -> None:
    cases = TASKS["lab02.t6"].instance(None).data.cases
    drawn = [{case.words for case in cases(np.random.default_rng(seed))} for seed in range(5)]
    assert all(len(each) > 45 for each in drawn)
    assert all(len(one - other) > 20 for one, other in pairwise(drawn))


def test_the_orders_for_the_simulator_have_all_edges() -> None:
    orders = [case.arguments[0] for case in TASKS["lab02.t6"].instance(None).data.cases(np.random.default_rng(0))]
    sizes = {(len(lines), len(lines[0].split()) // 2) for lines in orders}
    assert sizes >= {(1, 1), (1, 3), (3, 1), (5, 3), (2, 11), (11, 3), (4, 8)}
    assert 12 < sum(not can_run(lines) for lines in orders) < 20
    lengths = [len(" ".join(lines).split()) for lines in orders[9:-1]]
    assert lengths == sorted(lengths)


def can_run(lines: Sequence[str]) -> bool:
    try:
        Schedule.parse("\n".join(lines))
    except InvalidSchedule:
        return False
    return True


def test_the_times_of_the_judge_are_those_of_the_library_and_of_another_simulator() -> None:
    legal = 0
    for case in TASKS["lab02.t6"].instance(None).data.cases(np.random.default_rng(1)):
        lines, forward, backward, latency = deepcopy(case.arguments)
        costs = Costs(forward=forward, backward=backward, p2p=latency)
        assert a_simulator(*case.arguments) == simulator._right_times(lines, costs), case.words
        if can_run(lines):
            legal += 1
            timeline = simulate(Schedule.parse("\n".join(lines)), costs)
            spans = zip(timeline.start.tolist(), timeline.end.tolist(), strict=True)
            assert dict(zip(map(str, timeline.ops), spans, strict=True)) == simulator._right_times(lines, costs), case.words
    assert legal > 35


@given(orders=any_orders())
def test_the_operations_that_run_before_a_deadlock_have_the_times_of_another_simulator(orders: Any) -> None:
    assume(all(kind in "FB" for order in orders for kind, *_ in order))
    lines = [" ".join(f"{stage}{kind}{microbatch}" for kind, stage, microbatch in order) for order in orders]
    costs = Costs(forward=1, backward=2, p2p=0.5)
    assert a_simulator(lines, [1] * len(lines), [2] * len(lines), 0.5) == simulator._right_times(lines, costs)


@in_turn(
    "key, answer, words",
    [
        ("lab02.t5", last_device_first, ["stops at", "1F1", "the goal"]),
        ("lab02.t5", one_forward_too_many, ["Marked as wrong: 0F1", "the goal"]),
        ("lab02.t6", with_mistake("no latency"), ["makespan 8 ms", "Marked as wrong: 1F0", "the goal", "makespan 9 ms"]),
        ("lab02.t6", a_simulator, ["4 devices, 8 microbatches", "makespan 33 ms"]),
    ],
)
def test_the_feedback_has_the_picture_of_the_answer(key: str, answer: Any, words: Sequence[str]) -> None:
    feedback = check(key, answer)
    assert feedback.drawing is not None
    picture = repr(feedback.drawing.figure()).replace("\n", " ")
    assert all(word in picture for word in words), picture
    assert ("the goal" in picture) is not feedback.passed
