"""Test lab 13's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracle import Setting, nodes, times
from solutions import solutions_of

from hybridlab import REGISTRY, Costs, Schedule, build, simulate
from hybridlab.bound import lower_bound
from hybridlab.course.published.zero_bubble import bubble_rate
from hybridlab.course.tasks import TASKS, check

UNEVEN = Setting((30, 10, 10), (30, 30, 40), (2 / 3, 2 / 3, 3 / 4), 0)
GIVEN = str(build("zb-h1", 3, 4))
NEARLY = GIVEN.replace("2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3", "2I1 2W0 2F2 2I2 2W1 2F3 2I3 2W2 2W3")
ONE_BY_ONE = "\n".join(
    f"device {stage}: " + " ".join(f"{stage}{kind}{microbatch}" for microbatch in range(4) for kind in "FIW") for stage in range(3)
)

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
    ("lab13.t3", ("zb-v", 924), "chunks-cost-messages"),
    ("lab13.t3", ("interleaved-zb", 1029), "chunks-cost-messages"),
    ("lab13.t3", ("1f1b", 1200), "not-the-shortest"),
    ("lab13.t3", ("zb-h2", 825), "does-not-fit", "15 microbatches"),
    ("lab13.t3", ("looped-bfs", 895), "does-not-fit", "24 microbatches"),
    ("lab13.t3", ("dualpipe", 800), "two-copies"),
    ("lab13.t3", ("zb-h1", 790), "no-messages", "5 ms"),
    ("lab13.t3", ("zb-h1", 900), "wrong-length-of-step", "900 ms"),
    ("lab13.t3", ("zbh1", 902), "unknown-name", "'zb-h1'"),
    ("lab13.t3", "zb-h1", "wrong-shape"),
    ("lab13.t3", ("zb-h1", "902"), "not-a-number"),
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
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab13.t1", np.array([80.0, 50.0, 60.0])),
    ("lab13.t1", (80, 50, 60)),
    ("lab13.t2", [0.122, 0.077]),
    ("lab13.t2", np.array([0.12195, 0.07692])),
    ("lab13.t2", (Fraction(50, 410), Fraction(30, 390))),
    ("lab13.t3", ["ZB-H1 ", 902.0]),
    ("lab13.t4", NEARLY),
    ("lab13.t4", Schedule.parse(NEARLY)),
    ("lab13.t4", Schedule.parse(NEARLY).to_csv()),
    ("lab13.t4", NEARLY.upper().splitlines()),
    ("lab13.t4", [list(order) for order in Schedule.parse(NEARLY).orders]),
    ("lab13.t4", solutions_of("lab13")["lab13.t4"].replace("device 0:", "").replace("device 1:", "").replace("device 2:", "")),
]


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_the_two_rates_are_those_of_the_clock(seed: int | None) -> None:
    prompt = TASKS["lab13.t2"].instance(seed).prompt
    devices, microbatches, *parts = (int(each) for each in re.findall(r"\b\d+\b", prompt.partition("ZB-H2")[2]))
    forward, input_gradient, weight_gradient = parts
    backward = input_gradient + weight_gradient
    costs = Costs(forward=forward, backward=backward, weight_share=weight_gradient / backward)
    run = simulate(build("zb-h2", devices, microbatches), costs)
    assert check("lab13.t2", [run.bubble_ratio, bubble_rate(run)], seed=seed).passed
    assert run.bubble_ratio > bubble_rate(run) > 0


def test_the_bubbles_are_those_of_the_clock() -> None:
    bubbles = []
    for forward, input_gradient, weight_gradient in [(10, 12, 6), (10, 6, 12), (8, 12, 10)]:
        backward = input_gradient + weight_gradient
        run = simulate(build("zb-h1", 6, 12), Costs(forward=forward, backward=backward, weight_share=weight_gradient / backward))
        bubbles.append(run.makespan - 12 * (forward + backward))
    assert check("lab13.t1", bubbles).passed


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


def test_the_choice_among_the_schedules_is_clear() -> None:
    """ZB-H1's 902 ms by the oracle; no other that fits is near, ZB-V 22 ms behind; without the latency others would win."""
    setting = Setting((10,) * 8, (20,) * 8, (0.6,) * 8, 5)
    schedule = build("zb-h1", 8, 24)
    assert max(float(end) for _, end in times(nodes(schedule), setting, 1).values()) == pytest.approx(902)
    lengths = {}
    for name, family in REGISTRY.items():
        run = simulate(build(name, 8, 24), setting.costs())
        if family.copies == 1 and run.peak_activations.max() <= 12:
            lengths[name] = run.makespan
    shortest = lengths.pop("zb-h1")
    assert all(length >= shortest + 1 for length in lengths.values()), "another schedule takes the place of the right answer"
    assert lengths["zb-v"] == pytest.approx(shortest + 22)
    free = simulate(build("interleaved-zb", 8, 24), Costs(forward=10, backward=20, weight_share=0.6)).makespan
    assert free < simulate(schedule, Costs(forward=10, backward=20, weight_share=0.6)).makespan


@pytest.mark.parametrize(("devices", "latency", "weight"), [(2, 4, 8), (4, 7, 14), (4, 7, 13.9), (8, 16, 32), (8, 16, 31), (3, 2, 0.5)])
def test_round_trips_are_waited_for_once_where_a_weight_gradient_is_as_long(devices: int, latency: float, weight: float) -> None:
    """The lab says about latency: for W >= 2C the bubble of ZB-H1 is the same for any number of microbatches."""
    costs = Costs(forward=10, backward=5 + weight, weight_share=weight / (5 + weight), p2p=latency)
    bubbles = []
    for microbatches in (4 * devices, 8 * devices):
        run = simulate(build("zb-h1", devices, microbatches), costs)
        bubbles.append(run.makespan - microbatches * (15 + weight))
    assert (bubbles[1] - bubbles[0] < 1e-6) == (weight >= 2 * latency)
