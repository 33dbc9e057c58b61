"""Test lab 13's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from forms import form_by_form
from oracle import Setting, nodes, times
from solutions import solutions_of

from hybridlab import REGISTRY, Costs, Schedule, build, simulate
from hybridlab.bound import lower_bound
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.marking import mark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.specs import spec_of
from hybridlab.course.labs.lab13.scheduler import EXAMPLE_MODEL
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


def as_on_device_0(devices: int, microbatches: int, forward: Any, input_gradient: Any, weight_gradient: Any, *given: Any) -> Any:
    """A scheduler that takes each time of device 0 for that of all devices."""
    return scheduler()(devices, microbatches, *([each[0]] * devices for each in (forward, input_gradient, weight_gradient)), *given)


def scheduler(
    first: str = "IFW",
    depth: float | None = None,
    until: str = "W",
    late: float = 0.0,
    room: Callable[[int, int], int] = lambda cap, devices: cap,
    lines: Callable[[list[list[str]], int], Any] = lambda lines, devices: [" ".join(line) for line in lines],
) -> Callable[..., Any]:
    """Return a scheduler that always runs the operation that can start first.

    ``first`` decides between operations that can start at the same time. With ``depth``, device d runs at most 1 + depth (K-1-d) forwards
    before their input gradients. A device holds an activation ``until`` this operation. A weight gradient waits, as if it were so many ms
    ``late``, for the other operations. ``room`` changes the cap, ``lines`` the result.
    """

    def zero_bubble(devices: int, microbatches: int, *given: Any) -> Any:
        *times, latency, cap = given
        duration = dict(zip("FIW", times, strict=True))
        ends: dict[tuple[str, int, int], float] = {}
        done = [dict.fromkeys("FIW", 0) for _ in range(devices)]
        free, orders = [0.0] * devices, [list[str]() for _ in range(devices)]

        def input_of(kind: str, device: int, microbatch: int) -> float | None:
            other = device - 1 if kind == "F" else device + 1
            if kind == "W":
                return ends.get(("I", device, microbatch))
            if 0 <= other < devices:
                end = ends.get((kind, other, microbatch))
                return None if end is None else end + latency
            return 0.0 if kind == "F" else ends.get(("F", device, microbatch))

        def may_run(kind: str, device: int) -> bool:
            ahead = done[device]["F"] - done[device]["I"]
            fits = done[device]["F"] - done[device][until] < room(cap, devices)
            return kind != "F" or (fits and (depth is None or ahead < 1 + depth * (devices - 1 - device)))

        for _ in range(3 * devices * microbatches):
            ready = []
            for device in range(devices):
                for kind in "FIW":
                    number = done[device][kind]
                    there = input_of(kind, device, number) if number < microbatches and may_run(kind, device) else None
                    if there is not None:
                        start = max(there, free[device])
                        ready.append((start + late * (kind == "W"), first.index(kind), start, device, kind, number))
            *_, start, device, kind, number = min(ready)
            free[device] = ends[kind, device, number] = start + duration[kind][device]
            done[device][kind] += 1
            orders[device].append(f"{device}{kind}{number}")
        return lines(orders, devices)

    return zero_bubble


def from_the_library(name: str, change: Callable[[str], str] = lambda text: text) -> Callable[..., Any]:
    return lambda devices, microbatches, *times: change(str(build(name, devices, microbatches)))


def split(text: str) -> str:
    """Cut each full backward in two."""
    return re.sub(r"(\d+)B(\d+)", r"\1I\2 \1W\2", text)


def weights_last(text: str) -> str:
    lines = (split(line).split()[2:] for line in text.splitlines())
    return "\n".join(" ".join([op for op in line if "W" not in op] + [op for op in line if "W" in op]) for line in lines)


def one_by_one(devices: int, microbatches: int, *times: Any) -> list[str]:
    return [" ".join(f"{device}{kind}{number}" for number in range(microbatches) for kind in "FIW") for device in range(devices)]


def the_examples(devices: int, microbatches: int, *times: Any) -> list[str]:
    """The two examples of the lab, and nothing else."""
    return ["0F0 0I0 0W0 0F1 0I1 0W1"] if devices == 1 else ["0F0 0F1 0I0 0W0 0I1 0W1", "1F0 1I0 1F1 1I1 1W0 1W1"]


def sorting(devices: int, microbatches: int, forward: list[float], *given: Any) -> Any:
    result = scheduler()(devices, microbatches, forward, *given)
    forward.append(0)
    return result


def reversed_lines(orders: list[list[str]], devices: int) -> Any:
    return [" ".join(line) for line in reversed(orders)]


def without_last(orders: list[list[str]], devices: int) -> Any:
    last = max(int(op.split("F")[1]) for op in orders[0] if "F" in op)
    kept = [[op for op in line if int(re.split("[FIW]", op)[1]) < max(last, 1)] for line in orders]
    return [" ".join(line) for line in kept]


def one_without_end(orders: list[list[str]], devices: int) -> Any:
    return [" ".join(line[: -1 if devices > 1 and device == 0 else None]) for device, line in enumerate(orders)]


def with_full_backward(orders: list[list[str]], devices: int) -> Any:
    return [" ".join(line).replace(f"{device}I0", f"{device}B0").replace(f" {device}W0", "") for device, line in enumerate(orders)]


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
    ("lab13.t4", simulate(Schedule.parse(NEARLY), UNEVEN.costs()), "wrong-type", "Timeline"),
    ("lab13.t5", from_the_library("zb-h1"), "zb-h1", "cap 1", "2 activations"),
    ("lab13.t5", from_the_library("zb-h2"), "zb-h2"),
    ("lab13.t5", from_the_library("1f1b", split), "weight-gradients-at-once"),
    ("lab13.t5", from_the_library("1f1b", weights_last), "freed-by-input-gradient", "3 activations", "there is room for 1"),
    ("lab13.t5", from_the_library("gpipe", split), "all-forwards-first"),
    ("lab13.t5", one_by_one, "one-by-one", "the example", "ZB-H1 902 ms", "lower bound 825 ms"),
    ("lab13.t5", lambda devices, microbatches, *times: one_by_one(microbatches, devices), "arguments-exchanged", "3 lines"),
    ("lab13.t5", scheduler("FIW"), "longer-than-zb-h1", "its memory is full", "ZB-H1 902 ms", "yours 954 ms", "lower bound 825 ms"),
    ("lab13.t5", scheduler(late=10_000), "longer-than-zb-h1", "is idle for", "although it has weight gradients to run"),
    ("lab13.t5", scheduler("WIF"), "longer-than-zb-h1", "device 7 runs weight gradients for 276 ms while a forward waits"),
    ("lab13.t5", as_on_device_0, "too-near-to-zb-h1", "uneven stages", "does your program use all of F, I, W and C?"),
    ("lab13.t5", scheduler(depth=1), "too-near-to-zb-h1", "a third of the way", "device 0 is idle for", "room for another activation"),
    ("lab13.t5", scheduler(until="I"), "freed-by-input-gradient", "there is room for 1", "its weight gradient W"),
    ("lab13.t5", scheduler("FIW", room=lambda cap, devices: cap + 1), "too-much-memory", "there is room for 1", "2 activations"),
    ("lab13.t5", scheduler(room=lambda cap, devices: cap + 1), "too-much-memory", "there is room for 1", "2 activations"),
    ("lab13.t5", scheduler(lines=reversed_lines), "another-device", "stage d"),
    ("lab13.t5", scheduler(lines=without_last), "another-number", "2 microbatches", "not 3"),
    ("lab13.t5", scheduler(lines=one_without_end), "missing-weight-gradient"),
    ("lab13.t5", scheduler(lines=with_full_backward), "full-backward", "0B0"),
    ("lab13.t5", scheduler(lines=lambda orders, devices: [*map(" ".join, orders), "0F0"]), "another-size", "2 lines"),
    ("lab13.t5", scheduler(lines=lambda orders, devices: "\n".join(map(" ".join, orders)).replace("F", "X")), "unknown-operation"),
    ("lab13.t5", the_examples, "another-number"),
    ("lab13.t5", sorting, "changes-its-argument"),
    ("lab13.t5", lambda *given: print(end=""), "returns-nothing"),
    ("lab13.t5", lambda *given: [""] * given[0], "empty"),
    ("lab13.t5", lambda *given: 864, "not-a-list"),
    ("lab13.t5", lambda *given: [864], "not-a-list"),
    ("lab13.t5", lambda devices, microbatches: [], "signature"),
    ("lab13.t5", "device 0: 0F0 0I0 0W0", "not-a-function"),
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
    ("lab13.t5", scheduler()),
    ("lab13.t5", scheduler("FIW", depth=2)),
    (
        "lab13.t5",
        form_by_form(
            scheduler(lines=lambda orders, devices: tuple(orders)),
            lambda orders: orders,
            lambda orders: "\n".join(map(" ".join, orders)),
            lambda orders: Schedule.parse("\n".join(map(" ".join, orders))),
            lambda orders: {f"device {place}": line for place, line in enumerate(orders)},
        ),
    ),
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


@in_turn("devices, latency, weight", [(2, 4, 8), (4, 7, 14), (4, 7, 13.9), (8, 16, 32), (8, 16, 31), (3, 2, 0.5)])
def test_round_trips_are_waited_for_once_where_a_weight_gradient_is_as_long(devices: int, latency: float, weight: float) -> None:
    """The lab says about latency: for W >= 2C the bubble of ZB-H1 is the same for any number of microbatches."""
    costs = Costs(forward=10, backward=5 + weight, weight_share=weight / (5 + weight), p2p=latency)
    bubbles = []
    for microbatches in (4 * devices, 8 * devices):
        run = simulate(build("zb-h1", devices, microbatches), costs)
        bubbles.append(run.makespan - microbatches * (15 + weight))
    assert (bubbles[1] - bubbles[0] < 1e-6) == (weight >= 2 * latency)


def length_for_example(order: Any) -> Fraction:
    """Return the makespan in ms of an order for the example of task 5, computed in a second, independent way (oracle.py)."""
    devices, _, *times, latency, _ = EXAMPLE_MODEL
    forward, input_gradient, weight_gradient = (each[0] for each in times)
    backward = input_gradient + weight_gradient
    setting = Setting((forward,) * devices, (backward,) * devices, (Fraction(weight_gradient) / Fraction(backward),) * devices, latency)
    text = order if isinstance(order, str) else "\n".join(order)
    return max(Fraction(end) for _, end in times_of(text, setting))


def times_of(text: str, setting: Setting) -> Sequence[Any]:
    return list(times(nodes(Schedule.parse(text, name="yours")), setting, 1).values())


def test_the_lengths_for_the_example_are_those_of_the_oracle() -> None:
    assert float(length_for_example(str(build("zb-h1", 8, 24)))) == pytest.approx(902)
    assert float(length_for_example(solutions_of("lab13")["lab13.t5"](*EXAMPLE_MODEL))) == pytest.approx(864)


def test_an_order_reaches_the_bound_of_the_example() -> None:
    """So the scale of task 5 ends at the best possible order."""
    order = scheduler("FIW", depth=2)(*EXAMPLE_MODEL)
    assert float(length_for_example(order)) == pytest.approx(825)
    devices, microbatches, forward, input_gradient, weight_gradient, latency, cap = EXAMPLE_MODEL
    backward = forward[0] * 0 + input_gradient[0] + weight_gradient[0]
    costs = Costs(forward=forward, backward=backward, weight_share=weight_gradient[0] / backward, p2p=latency)
    assert lower_bound(build("zb-h1", devices, microbatches), costs, cap) == pytest.approx(825)
    assert simulate(Schedule.parse("\n".join(order)), costs).peak_activations.max() <= cap


def test_the_two_examples_of_the_text_are_legal_and_the_second_takes_70_ms() -> None:
    setting = Setting((10, 10), (20, 20), (0.5, 0.5), 0)
    second = "\n".join(the_examples(2, 2))
    assert max(Fraction(end) for _, end in times_of(second, setting)) == 70
    for cap, order in ((1, the_examples(1, 2)), (2, the_examples(2, 2))):
        run = simulate(Schedule.parse("\n".join(order)), Costs(forward=10, backward=20))
        assert run.peak_activations.max() == cap
    assert scheduler()(1, 2, [1], [1], [1], 0, 1) == the_examples(1, 2)


@in_turn("passes", [True, False])
def test_the_picture_of_a_scheduler_has_its_timeline_and_a_scale(passes: bool) -> None:
    feedback = check("lab13.t5", scheduler() if passes else scheduler("FIW"))
    assert feedback.passed == passes
    assert feedback.drawing is not None
    figure = feedback.drawing.figure()
    assert figure is not None
    yours = 864 if passes else 954
    assert f"makespan {yours} ms" in repr(figure)
    assert f"On a scale: lower bound 825 ms, yours {yours} ms, ZB-H1 902 ms." in repr(figure)
    (scale,) = (axes for axes in figure.axes if axes.get_gid() == "scale")
    times_shown = {"lower bound": 825, "yours": yours, "ZB-H1": 902}
    places = {text.get_text(): text.get_position()[0] for text in scale.texts}
    left, mine, right = (places[f"{name} {time} ms"] for name, time in times_shown.items())
    assert (mine - left) / (right - left) == pytest.approx((yours - 825) / (902 - 825))
    assert sorted(line.get_xdata()[0] for line in scale.lines[1:]) == pytest.approx(sorted([left, mine, right]))
    shown = " ".join(feedback.messages)
    assert all(words in shown for words in ("ZB-H1 902 ms", f"yours {yours} ms", "lower bound 825 ms"))


def test_two_names_on_the_scale_that_would_overlap_stand_in_two_rows() -> None:
    drawing = check("lab13.t5", one_by_one).drawing  # 5424 ms, so that ZB-H1 and the bound are near to each other
    assert drawing is not None
    figure = drawing.figure()
    assert figure is not None
    (scale,) = (axes for axes in figure.axes if axes.get_gid() == "scale")
    rows = {text.get_text(): text.get_position()[1] for text in scale.texts}
    assert rows["ZB-H1 902 ms"] < rows["lower bound 825 ms"] - 0.15


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_plain_schedulers_pass_for_other_cases_and_hungry_ones_do_not(seed: int) -> None:
    build = TASKS["lab13.t5"].instance(None).data
    for passing in (scheduler(), scheduler(depth=2), scheduler("FIW", depth=2)):
        assert build.check(passing, seed).passed
    assert build.check(scheduler("FIW"), seed).code == "longer-than-zb-h1"
    assert build.check(scheduler(depth=1), seed).code in ("longer-than-zb-h1", "too-near-to-zb-h1")
    assert set(build.codes(scheduler("FIW"), seed)) <= {"longer-than-zb-h1", "too-near-to-zb-h1"}


@in_turn("key", ["lab02.t1", "lab03.t7", "lab13.t4"])
def test_every_task_for_an_order_takes_a_schedule_here_and_in_the_grader(key: str, workers: Launcher) -> None:
    answer = solutions_of(key[:5])[key]
    text = answer if isinstance(answer, str) else "\n".join(answer)
    assert check(key, Schedule.parse(text, name="mine")).passed
    cell = CodeCell(f'from hybridlab import Schedule\nmine = Schedule.parse("""{text}""", name="mine")\ncheck("{key}", mine)', key)
    marks = list(mark([cell], spec_of(reference(key[:5])), None, workers.open, Budget(workers.limits), lambda task: 7))
    assert next(each.code for each in marks if each.key == key) == "passed"


RANKS, ROOM = 'enumerate("IFW")', 'm - turn["W", d] < cap'  # in the worked solution


@pytest.mark.parametrize(
    ("changes", "points"),
    [
        pytest.param({}, 10.0, marks=pytest.mark.slow),
        pytest.param({RANKS: 'enumerate("FIW")', ROOM: f'{ROOM} and m - turn["I", d] < K - d'}, 6.67, marks=pytest.mark.slow),
        ({RANKS: 'enumerate("FIW")'}, 3.33),
        ({ROOM: 'm - turn["I", d] < cap'}, 0.0),
    ],
)
def test_partial_credit_is_for_legal_orders_and_for_those_as_short_as_zb_h1(
    changes: dict[str, str], points: float, workers: Launcher
) -> None:
    spec = spec_of(reference("lab13"))
    source = spec.solutions["lab13.t5"]
    for before, after in changes.items():
        assert before in source
        source = source.replace(before, after)
    marks = list(mark([CodeCell(source, "lab13.t5")], spec, None, workers.open, Budget(workers.limits), lambda task: 7))
    assert next(each.points for each in marks if each.key == "lab13.t5") == points
