"""Test lab 13's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from forms import form_by_form
from oracle import Setting, nodes, times
from solutions import solutions_of

from hybridlab import Costs, Schedule, build, simulate
from hybridlab.bound import lower_bound
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.marking import mark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.specs import spec_of
from hybridlab.course.labs.lab13.split import MISTAKES
from hybridlab.course.published.zero_bubble import bubble_rate
from hybridlab.course.tasks import TASKS, check

UNEVEN = Setting((30, 10, 10), (30, 30, 40), (2 / 3, 2 / 3, 3 / 4), 0)
GIVEN = str(build("zb-h1", 3, 4))
NEARLY = GIVEN.replace("2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3", "2I1 2W0 2F2 2I2 2W1 2F3 2I3 2W2 2W3")
ONE_BY_ONE = "\n".join(
    f"device {stage}: " + " ".join(f"{stage}{kind}{microbatch}" for microbatch in range(4) for kind in "FIW") for stage in range(3)
)


@pytest.fixture(scope="module")
def workers() -> Iterator[Launcher]:
    with launcher("none") as started:
        yield started


def split_by_place(lines: list[str], late: list[int]) -> list[str]:
    """Split the backwards by the places of the weight gradients, without a queue."""
    orders = []
    for line, wait in zip(lines, late, strict=True):
        ops = line.replace("B", "I").split()
        places = [place for place, op in enumerate(ops) if "I" in op]
        rows = [(place, 0, op) for place, op in enumerate(ops)]
        for number, place in enumerate(places):
            after = places[number + wait] if number + wait < len(places) else len(ops)
            rows.append((after, 1 + number, ops[place].replace("I", "W")))
        orders.append(" ".join(op for *_, op in sorted(rows)))
    return orders


def changed(change: Callable[[str], str]) -> Callable[[list[str], list[int]], list[str]]:
    return lambda lines, late: [change(line) for line in split_by_place(lines, late)]


def lines_of(name: str, devices: int, microbatches: int) -> list[str]:
    return [" ".join(map(str, order)) for order in build(name, devices, microbatches).orders]


PROGRAMS = {mistake.code: mistake.result for mistake in MISTAKES}
# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab13.t1", [80, 20, 60], "paper-term", "model b"),
    ("lab13.t1", [80, 50, 50], "paper-term", "model c"),
    ("lab13.t1", [80, 30, 60], "input-gradients-alone", "model b"),
    ("lab13.t1", [60, 50, 60], "input-gradients-alone", "model a"),
    ("lab13.t1", [80, 50, 40], "forwards-alone", "model c"),
    ("lab13.t1", [110, 80, 100], "no-weight-gradients"),
    ("lab13.t1", [140, 140, 150], "1f1b"),
    ("lab13.t1", [80, -40, 60], "zb-h2"),
    ("lab13.t1", [96, 60, 72], "all-devices"),
    ("lab13.t1", [16, 10, 12], "one-device-alone"),
    ("lab13.t1", [416, 386, 420], "whole-step"),
    ("lab13.t1", [80 / 416, 50, 60], "bubble-ratio"),
    ("lab13.t1", [8000 / 416, 50, 60], "per-cent"),
    ("lab13.t1", [80, 50, 61], "wrong-value", "model c", "61 ms"),
    ("lab13.t1", [80, 50], "wrong-length", "2"),
    ("lab13.t1", 80, "not-a-list"),
    ("lab13.t2", [30 / 390, 50 / 410], "swapped"),
    ("lab13.t2", [50 / 410, 50 / 410], "the-other-one", "the rate:"),
    ("lab13.t2", [30 / 390, 30 / 390], "the-other-one", "the ratio:"),
    ("lab13.t2", [50 / 360, 30 / 360], "divided-by-work", "the ratio:"),
    ("lab13.t2", [50 / 410, 30 / 360], "divided-by-work", "the rate:"),
    ("lab13.t2", [50 / 410, 0], "no-bubble"),
    ("lab13.t2", [20 / 410, 30 / 390], "difference-of-ends"),
    ("lab13.t2", [12.2, 7.7], "above-1"),
    ("lab13.t2", [0.3, 0.0769], "wrong-value", "the ratio:", "0.3"),
    ("lab13.t2", [0.12, 0.077], "too-few-decimals", "the ratio:", "3 decimals"),
    ("lab13.t2", [0.122, 0.08], "too-few-decimals", "the rate:", "0.08"),
    ("lab13.t2", [0.1228, 0.0769], "wrong-value", "the ratio:", "0.1228"),
    ("lab13.t2", 0.122, "not-a-list"),
    ("lab13.t3", lambda lines, late: split_by_place(lines, [0] * len(lines)), "late-not-used"),
    ("lab13.t3", lambda lines, late: split_by_place(lines, [99] * len(lines)), "all-at-the-end"),
    ("lab13.t3", lambda lines, late: split_by_place(lines, [wait + 1 for wait in late]), "one-too-late"),
    ("lab13.t3", lambda lines, late: split_by_place(lines, [max(wait - 1, 0) for wait in late]), "one-too-early"),
    ("lab13.t3", lambda lines, late: split_by_place(lines, [late[0]] * len(lines)), "late-of-device-0"),
    *(("lab13.t3", PROGRAMS[code], code) for code in ("newest-first", "before-the-input-gradient", "rest-is-missing", "rest-reversed")),
    ("lab13.t3", changed(lambda line: re.sub(r"( \S*W\d+)+$", "", line)), "missing-weight-gradient"),
    ("lab13.t3", changed(lambda line: re.sub(r"(\S*I\d+) (\S*W\d+)", r"\2 \1", line)), "too-early", "0W0"),
    (
        "lab13.t3",
        changed(lambda line: re.sub(r"(\S*W\d+) (\S*F\d+)", r"\2 \1", line)),
        "another-order",
        "late[0]",
        "where the task asks for",
    ),
    ("lab13.t3", changed(lambda line: line.replace("I0", "B0").replace(" 0W0", "")), "full-backward", "0B0"),
    ("lab13.t3", lambda lines, late: lines, "full-backward", "0B0"),
    ("lab13.t3", lambda lines, late: [*split_by_place(lines, late), "9F0"], "another-size", "2 lines"),
    ("lab13.t3", lambda lines, late: [split_by_place(lines, late), late.clear()][0], "changes-its-argument"),
    ("lab13.t3", lambda lines, late: [], "empty"),
    ("lab13.t3", lambda lines: [], "signature", "split_backwards(lines, late)"),
    ("lab13.t3", "0F0 0I0 0W0", "not-a-function"),
    ("lab13.t4", GIVEN, "no-gain", "270 ms", "device 2", "30 ms"),
    ("lab13.t4", GIVEN.replace("0I0 0W0 0F3", "0F3 0I0 0W0"), "too-much-memory", "device 0", "4 microbatches"),
    ("lab13.t4", str(build("1f1b", 3, 4)), "longer", "300 ms", "30 ms", "device 0"),
    ("lab13.t4", ONE_BY_ONE, "longer"),
    ("lab13.t4", GIVEN.replace(" 2W3", ""), "missing-weight-gradient", "microbatch 3"),
    ("lab13.t4", GIVEN.replace("2F0 2I0", "2I0 2F0"), "too-early"),
    ("lab13.t4", GIVEN.replace("2W2 2W3", "2W3 2W3"), "doubled-operation", "2W3"),
    ("lab13.t4", str(build("zb-h1", 3, 3)), "another-size", "4 microbatches", "3 devices"),
    ("lab13.t4", str(build("zb-v", 3, 4)), "another-size", "stage 0", "device 0"),
    ("lab13.t4", 240, "not-a-list"),
    ("lab13.t4", "device 0: 0X0", "unknown-operation", "line 1", "'0X0'"),
    ("lab13.t4", simulate(Schedule.parse(NEARLY), UNEVEN.costs()), "wrong-type", "Timeline"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab13.t1", np.array([80.0, 50.0, 60.0])),
    ("lab13.t1", (80, 50, 60)),
    ("lab13.t2", [0.122, 0.077]),
    ("lab13.t2", np.array([0.12195, 0.07692])),
    ("lab13.t2", (Fraction(50, 410), Fraction(30, 390))),
    ("lab13.t3", split_by_place),
    (
        "lab13.t3",
        form_by_form(
            split_by_place, "\n".join, lambda lines: [line.split() for line in lines], lambda lines: Schedule.parse("\n".join(lines))
        ),
    ),
    ("lab13.t4", NEARLY),
    ("lab13.t4", Schedule.parse(NEARLY)),
    ("lab13.t4", Schedule.parse(NEARLY).to_csv()),
    ("lab13.t4", NEARLY.upper().splitlines()),
    ("lab13.t4", [list(order) for order in Schedule.parse(NEARLY).orders]),
    ("lab13.t4", solutions_of("lab13")["lab13.t4"].replace("device 0:", "").replace("device 1:", "").replace("device 2:", "")),
]


@in_turn("seed", [None, *range(8)])
def test_the_two_rates_are_those_of_the_clock(seed: int | None) -> None:
    prompt = TASKS["lab13.t2"].instance(seed).prompt
    devices, microbatches, *parts = (int(each) for each in re.findall(r"\b\d+\b", prompt.partition("ZB-H2")[2]))
    forward, input_gradient, weight_gradient = parts
    backward = input_gradient + weight_gradient
    costs = Costs(forward=forward, backward=backward, weight_share=weight_gradient / backward)
    run = simulate(build("zb-h2", devices, microbatches), costs)
    assert check("lab13.t2", [run.bubble_ratio, bubble_rate(run)], seed=seed).passed
    assert run.bubble_ratio > bubble_rate(run) > 0


@in_turn("seed", [None, *range(8)])
def test_the_bubbles_are_those_of_the_clock(seed: int | None) -> None:
    text = TASKS["lab13.t1"].instance(seed).prompt.partition("bubble")[2]
    devices, microbatches, *parts = (int(each) for each in re.findall(r"\b\d+\b", text))
    bubbles = []
    for forward, input_gradient, weight_gradient in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        backward = input_gradient + weight_gradient
        costs = Costs(forward=forward, backward=backward, weight_share=weight_gradient / backward)
        run = simulate(build("zb-h1", devices, microbatches), costs)
        bubbles.append(run.makespan - microbatches * (forward + backward))
    assert len(bubbles) == 3
    assert check("lab13.t1", bubbles, seed=seed).passed


@in_turn("devices, microbatches", [(1, 1), (2, 1), (3, 2), (4, 8), (5, 13)])
def test_zb_h1_and_zb_h2_are_orders_with_full_backwards_that_are_split_late(devices: int, microbatches: int) -> None:
    """Lab 13 says this about 1F1B and d, and about eager 1F1B and 2d; other numbers of microbatches late give other orders."""
    solution = solutions_of("lab13")["lab13.t3"]
    for full, split, step in (("1f1b", "zb-h1", 1), ("eager-1f1b", "zb-h2", 2)):
        late = [step * device for device in range(devices)]
        assert solution(lines_of(full, devices, microbatches), late) == lines_of(split, devices, microbatches)


def test_the_picture_of_an_order_is_the_students_own() -> None:
    for order, words in [(NEARLY, "250 ms"), (GIVEN.replace("2F0 2I0", "2I0 2F0"), "2I0")]:
        drawing = check("lab13.t4", order).drawing
        assert drawing is not None
        assert words in repr(drawing.figure())


def length_of(text: str) -> Fraction:
    """Return the makespan of an order with the uneven stages, computed in a second, independent way (oracle.py)."""
    return max(end for _, end in times(nodes(Schedule.parse(text, name="yours")), UNEVEN, 1).values())


def test_the_order_to_beat_takes_270_ms_and_the_solution_240() -> None:
    assert float(length_of(GIVEN)) == pytest.approx(270)
    assert float(length_of(NEARLY)) == pytest.approx(250)
    assert float(length_of(solutions_of("lab13")["lab13.t4"])) == pytest.approx(240)


def test_no_order_is_shorter_than_the_solution() -> None:
    """Device 0 alone has four microbatches of 30 + 10 + 20 ms to compute."""
    schedule = Schedule.parse(solutions_of("lab13")["lab13.t4"], name="yours")
    assert lower_bound(schedule, UNEVEN.costs()) == pytest.approx(4 * (30 + 10 + 20))
    shortest, longer = (check("lab13.t4", order).messages[0] for order in (solutions_of("lab13")["lab13.t4"], NEARLY))
    assert [time for time in ("240 ms", "250 ms", "30 ms", "20 ms") if time in shortest] == ["240 ms", "30 ms"]
    assert [time for time in ("240 ms", "250 ms", "30 ms", "20 ms") if time in longer] == ["240 ms", "250 ms", "20 ms"]


@in_turn("devices, latency, weight", [(2, 4, 8), (4, 7, 14), (4, 7, 13.9), (8, 16, 32), (8, 16, 31), (3, 2, 0.5)])
def test_round_trips_are_waited_for_once_where_a_weight_gradient_is_as_long(devices: int, latency: float, weight: float) -> None:
    """The lab says about latency: for W >= 2C the bubble of ZB-H1 is the same for any number of microbatches."""
    costs = Costs(forward=10, backward=5 + weight, weight_share=weight / (5 + weight), p2p=latency)
    bubbles = []
    for microbatches in (4 * devices, 8 * devices):
        run = simulate(build("zb-h1", devices, microbatches), costs)
        bubbles.append(run.makespan - microbatches * (15 + weight))
    assert (bubbles[1] - bubbles[0] < 1e-6) == (weight >= 2 * latency)


@in_turn("key", ["lab02.t1", "lab03.t7", "lab13.t4"])
def test_every_task_for_an_order_takes_a_schedule_here_and_in_the_grader(key: str, workers: Launcher) -> None:
    answer = solutions_of(key[:5])[key]
    text = answer if isinstance(answer, str) else "\n".join(answer)
    assert check(key, Schedule.parse(text, name="mine")).passed
    cell = CodeCell(f'from hybridlab import Schedule\nmine = Schedule.parse("""{text}""", name="mine")\ncheck("{key}", mine)', key)
    marks = list(mark([cell], spec_of(reference(key[:5])), None, workers.open, Budget(workers.limits), lambda task: 7))
    assert next(each.code for each in marks if each.key == key) == "passed"
