"""Test lab 18's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from cases import in_turn
from forms import form_by_form
from oracle import Setting, nodes, times
from solutions import solutions_of

from hybridlab import REGISTRY, Costs, Schedule, build, simulate
from hybridlab.bound import lower_bound
from hybridlab.course.checking.answers import require_orders
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.marking import mark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.specs import spec_of
from hybridlab.course.labs.lab18.scheduler import EXAMPLE_MODEL, judge_models
from hybridlab.course.tasks import TASKS


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
    ("lab18.t1", ("zb-v", 924), "chunks-cost-messages"),
    ("lab18.t1", ("interleaved-zb", 1029), "chunks-cost-messages"),
    ("lab18.t1", ("1f1b", 1200), "not-the-shortest"),
    ("lab18.t1", ("zb-h2", 825), "does-not-fit", "15 microbatches"),
    ("lab18.t1", ("looped-bfs", 895), "does-not-fit", "24 microbatches"),
    ("lab18.t1", ("dualpipe", 800), "two-copies"),
    ("lab18.t1", ("zb-h1", 790), "no-messages", "5 ms"),
    ("lab18.t1", ("zb-h1", 900), "wrong-length-of-step", "900 ms"),
    ("lab18.t1", ("zbh1", 902), "unknown-name", "'zb-h1'"),
    ("lab18.t1", "zb-h1", "wrong-shape"),
    ("lab18.t1", ("zb-h1", "902"), "not-a-number"),
    ("lab18.t2", from_the_library("zb-h1"), "zb-h1", "cap 1", "2 activations"),
    ("lab18.t2", from_the_library("zb-h2"), "zb-h2"),
    ("lab18.t2", from_the_library("1f1b", split), "weight-gradients-at-once"),
    ("lab18.t2", from_the_library("1f1b", weights_last), "freed-by-input-gradient", "3 activations", "there is room for 1"),
    ("lab18.t2", from_the_library("gpipe", split), "all-forwards-first"),
    ("lab18.t2", one_by_one, "one-by-one", "the example", "ZB-H1 902 ms", "lower bound 825 ms"),
    ("lab18.t2", lambda devices, microbatches, *times: one_by_one(microbatches, devices), "arguments-exchanged", "3 lines"),
    ("lab18.t2", scheduler("FIW"), "longer-than-zb-h1", "its memory is full", "ZB-H1 902 ms", "yours 954 ms", "lower bound 825 ms"),
    ("lab18.t2", scheduler(late=10_000), "longer-than-zb-h1", "is idle for", "although it has weight gradients to run"),
    ("lab18.t2", scheduler("WIF"), "longer-than-zb-h1", "device 7 runs weight gradients for 276 ms while a forward waits"),
    ("lab18.t2", as_on_device_0, "too-near-to-zb-h1", "uneven stages", "does your program use all of F, I, W and C?"),
    ("lab18.t2", scheduler(depth=1), "too-near-to-zb-h1", "a third of the way", "device 0 is idle for", "room for another activation"),
    ("lab18.t2", scheduler(until="I"), "freed-by-input-gradient", "there is room for 1", "its weight gradient W"),
    ("lab18.t2", scheduler("FIW", room=lambda cap, devices: cap + 1), "too-much-memory", "there is room for 1", "2 activations"),
    ("lab18.t2", scheduler(room=lambda cap, devices: cap + 1), "too-much-memory", "there is room for 1", "2 activations"),
    ("lab18.t2", scheduler(lines=reversed_lines), "another-device", "stage d"),
    ("lab18.t2", scheduler(lines=without_last), "another-number", "2 microbatches", "not 3"),
    ("lab18.t2", scheduler(lines=one_without_end), "missing-weight-gradient"),
    ("lab18.t2", scheduler(lines=with_full_backward), "full-backward", "0B0"),
    ("lab18.t2", scheduler(lines=lambda orders, devices: [*map(" ".join, orders), "0F0"]), "another-size", "2 lines"),
    ("lab18.t2", scheduler(lines=lambda orders, devices: "\n".join(map(" ".join, orders)).replace("F", "X")), "unknown-operation"),
    ("lab18.t2", the_examples, "another-number"),
    ("lab18.t2", sorting, "changes-its-argument"),
    ("lab18.t2", lambda *given: print(end=""), "returns-nothing"),
    ("lab18.t2", lambda *given: [""] * given[0], "empty"),
    ("lab18.t2", lambda *given: 864, "not-a-list"),
    ("lab18.t2", lambda *given: [864], "not-a-list"),
    ("lab18.t2", lambda devices, microbatches: [], "signature"),
    ("lab18.t2", "device 0: 0F0 0I0 0W0", "not-a-function"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab18.t1", ["ZB-H1 ", 902.0]),
    ("lab18.t2", scheduler()),
    ("lab18.t2", scheduler("FIW", depth=2)),
    (
        "lab18.t2",
        form_by_form(
            scheduler(lines=lambda orders, devices: tuple(orders)),
            lambda orders: orders,
            lambda orders: "\n".join(map(" ".join, orders)),
            lambda orders: Schedule.parse("\n".join(map(" ".join, orders))),
            lambda orders: {f"device {place}": line for place, line in enumerate(orders)},
        ),
    ),
]


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


def length_for_example(order: Any) -> Fraction:
    """Return the makespan in ms of an order for the example of task 2, computed in a second, independent way (oracle.py)."""
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
    assert float(length_for_example(solutions_of("lab18")["lab18.t2"](*EXAMPLE_MODEL))) == pytest.approx(864)


def test_an_order_reaches_the_bound_of_the_example() -> None:
    """So the scale of task 2 ends at the best possible order."""
    order = scheduler("FIW", depth=2)(*EXAMPLE_MODEL)
    assert float(length_for_example(order)) == pytest.approx(825)
    devices, microbatches, forward, input_gradient, weight_gradient, latency, cap = EXAMPLE_MODEL
    backward = input_gradient[0] + weight_gradient[0]
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
    for cap, code in ((1, "too-much-memory"), (2, "passed")):
        assert judge_models([require_orders(the_examples(2, 2))], [(2, 2, [10, 10], [10, 10], [10, 10], 0, cap)]).code == code


def checked_on_the_last_case(program: Any) -> Any:
    build = TASKS["lab18.t2"].instance(None).data
    return replace(build, cases=lambda rng: [*build.cases(rng)][-1:]).check(program)


@in_turn("passes", [True, False])
def test_the_picture_of_a_scheduler_has_its_timeline_and_a_scale(passes: bool) -> None:
    feedback = checked_on_the_last_case(scheduler() if passes else scheduler("FIW"))
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
    drawing = checked_on_the_last_case(one_by_one).drawing  # 5424 ms, so that ZB-H1 and the bound are near to each other
    assert drawing is not None
    figure = drawing.figure()
    assert figure is not None
    (scale,) = (axes for axes in figure.axes if axes.get_gid() == "scale")
    rows = {text.get_text(): text.get_position()[1] for text in scale.texts}
    assert rows["ZB-H1 902 ms"] < rows["lower bound 825 ms"] - 0.15


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_plain_schedulers_pass_for_other_cases_and_hungry_ones_do_not(seed: int) -> None:
    build = TASKS["lab18.t2"].instance(None).data
    for passing in (scheduler(), scheduler(depth=2), scheduler("FIW", depth=2)):
        assert build.check(passing, seed).passed
    assert build.check(scheduler("FIW"), seed).code == "longer-than-zb-h1"
    assert build.check(scheduler(depth=1), seed).code in ("longer-than-zb-h1", "too-near-to-zb-h1")
    assert set(build.codes(scheduler("FIW"), seed)) <= {"longer-than-zb-h1", "too-near-to-zb-h1"}


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
    spec = spec_of(reference("lab18"))
    source = spec.solutions["lab18.t2"]
    for before, after in changes.items():
        assert before in source
        source = source.replace(before, after)
    marks = list(mark([CodeCell(source, "lab18.t2")], spec, None, workers.open, Budget(workers.limits), lambda task: 7))
    assert next(each.points for each in marks if each.key == "lab18.t2") == points
