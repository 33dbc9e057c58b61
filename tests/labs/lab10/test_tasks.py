"""Test lab 10's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import math
import re
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from forms import form_by_form

from hybridlab import Costs, build, check, simulate
from hybridlab.course.labs.lab10.eager import latencies_to_hide, least_step, warmed_up
from hybridlab.course.labs.lab10.tasks import whole_model
from hybridlab.course.tasks import TASKS

SPEEDUP = 38400 / 4933  # 32 microbatches of 1200 ms; (32 + 15) 75 + [2 * 15 * 32/16 + 2 * 14] 16 = 4933


def eager(step: Callable[[int, int, int], int]) -> Callable[..., list[int]]:
    """A program that lets each device warm up with some forwards more than the next one, by F, B and C."""

    def warmups(devices: int, microbatches: int, forward: int, backward: int, latency: int) -> list[int]:
        return [min(microbatches, after * step(forward, backward, latency)) for after in range(devices - 1, -1, -1)]

    return warmups


def pairs_needed(forward: int, backward: int, latency: int) -> int:
    """The pairs that a device runs while two messages travel, and the pair of the next device."""
    pair, needed = forward + backward, 1
    while needed * pair < pair + 2 * latency:
        needed += 1
    return needed


right_eager = eager(pairs_needed)
one_forward_more = eager(lambda forward, backward, latency: 1)
two_forwards_more = eager(lambda forward, backward, latency: 2)
three_forwards_more = eager(lambda forward, backward, latency: pairs_needed(forward, backward, latency) + 3)
one_message = eager(lambda forward, backward, latency: 1 + math.ceil(latency / (forward + backward)))
rounds_down = eager(lambda forward, backward, latency: 1 + int(2 * latency / (forward + backward)))
one_too_many_at_the_edge = eager(lambda forward, backward, latency: 2 + int(2 * latency / (forward + backward)))
divides_by_the_forward = eager(lambda forward, backward, latency: 1 + math.ceil(2 * latency / forward))
divides_by_the_backward = eager(lambda forward, backward, latency: 1 + math.ceil(2 * latency / backward))
rounds_to_the_nearest = eager(lambda forward, backward, latency: 1 + round(2 * latency / (forward + backward)))
without_its_own_pair = eager(lambda forward, backward, latency: math.ceil(2 * latency / (forward + backward)))


one_pair_fewer = eager(lambda forward, backward, latency: pairs_needed(forward, backward, latency) - 1)


def all_forwards(devices: int, microbatches: int, forward: int, backward: int, latency: int) -> list[int]:
    return devices * [microbatches]


def for_the_whole_pipeline(devices: int, *others: int) -> list[int]:
    return eager(lambda forward, backward, latency: 1 + math.ceil(2 * (devices - 1) * latency / (forward + backward)))(devices, *others)


def adds_once(devices: int, microbatches: int, *times: int) -> list[int]:
    """Like 1F1B, and each device but the last runs the further forwards of one round trip."""
    further = pairs_needed(*times) - 1
    return [min(devices - 1 - device + further * (device < devices - 1), microbatches) for device in range(devices)]


def last_device_too(*size: int) -> list[int]:
    return [min(warmup + 1, size[1]) for warmup in right_eager(*size)]


def from_the_last(*size: int) -> list[int]:
    return right_eager(*size)[::-1]


def never_stops(devices: int, microbatches: int, forward: int, backward: int, latency: int) -> list[int]:
    return [pairs_needed(forward, backward, latency) * after for after in range(devices)][::-1]


def grows(*size: int) -> list[int]:
    return [min(device, size[1]) for device in range(size[0])]


def most_on_the_last(*size: int) -> list[int]:
    return [0] * (size[0] - 1) + [2 if size[0] > 1 and size[1] > 1 else 0]


def half_a_forward(*size: int) -> list[float]:
    return [0.5] * size[0]


def too_few_on_the_first(*size: int) -> list[int]:
    found = right_eager(*size)
    return [found[1] if size[0] > 2 else found[0], *found[1:]]


def one_number_too_many(*size: int) -> list[int]:
    return [*right_eager(*size), 0]


def examples_of_the_text(*size: int) -> list[int] | None:
    return {(4, 16): [9, 6, 3, 0], (3, 12): [2, 1, 0]}.get(size[:2], 0)  # type: ignore[return-value]


def asks_the_judge(*size: int) -> list[int]:
    from hybridlab.course.labs.lab10.eager import least_step

    return eager(lambda *times: least_step(*size))(*size)


# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab10.t1", (2400 / 4933, 0.49), "efficiency-first"),
    ("lab10.t1", (3064 / 4933, 0.49), "against-first-point"),
    ("lab10.t1", (20312 / 4933, 0.49), "against-two-devices"),
    ("lab10.t1", (4933 / 38400, 0.49), "inverted"),
    ("lab10.t1", (3525 / 4933, 0.49), "against-no-latency"),
    ("lab10.t1", (38400 / 3525, 0.49), "no-latency"),
    ("lab10.t1", (16, 1), "nobody-waits"),
    ("lab10.t1", (5, 0.49), "wrong-speedup"),
    ("lab10.t1", (SPEEDUP, 1 - SPEEDUP / 16), "bubble-ratio"),
    ("lab10.t1", (SPEEDUP, 100 * SPEEDUP / 16), "per-cent"),
    ("lab10.t1", (SPEEDUP, SPEEDUP / 2), "divided-by-2"),
    ("lab10.t1", (SPEEDUP, SPEEDUP / 32), "divided-by-microbatches"),
    ("lab10.t1", (SPEEDUP, 32 / 47), "efficiency-without-latency"),
    ("lab10.t1", (SPEEDUP, 0.9), "wrong-efficiency"),
    ("lab10.t1", (7.8, 0.49), "too-few-decimals"),
    ("lab10.t1", (7.78, 0.5), "too-few-decimals", "the speedup is right"),
    ("lab10.t1", SPEEDUP, "not-a-list"),
    ("lab10.t1", (SPEEDUP,), "wrong-length", "1"),
    ("lab10.t2", [3, 2, 1, 0], "too-slow", "1 forward", "device 1"),
    ("lab10.t2", [4, 3, 2, 1], "too-slow", "1128.5 ms", "14 activations"),
    ("lab10.t2", [6, 4, 3, 0], "too-slow", "device 1", "1 forward"),
    ("lab10.t2", [6, 4, 2, 1], "too-slow", "device 2", "1 forward"),
    ("lab10.t2", [16, 16, 16, 16], "too-much-memory", "64 activations"),
    ("lab10.t2", [7, 4, 2, 0], "too-much-memory", "17 activations"),
    ("lab10.t2", [0, 2, 4, 6], "deadlock", "device 1", "device 0"),
    ("lab10.t2", [6, 4, 2, 3], "deadlock", "device 3"),
    ("lab10.t2", [9, 4, 4, 0], "too-slow", "device 1", "0 forwards"),
    ("lab10.t2", [17, 4, 2, 0], "not-a-count", "0 to 16", "17"),
    ("lab10.t2", [6.5, 4, 2, 0], "not-a-count", "0 to 16", "6.5"),
    ("lab10.t2", [-1, 4, 2, 0], "not-a-count", "0 to 16", "-1"),
    ("lab10.t2", [6, 4, 2], "wrong-length"),
    ("lab10.t3", 32, "best-of-the-sweep"),
    ("lab10.t3", 16, "as-many-as-microbatches"),
    ("lab10.t3", 43, "m-for-m-1-rounded-down"),
    ("lab10.t3", 44, "m-for-m-1"),
    ("lab10.t3", 60, "one-message"),
    ("lab10.t3", 1, "not-the-best", "1"),
    ("lab10.t3", 128, "not-the-best", "128"),
    ("lab10.t3", 41, "not-the-best", "41"),
    ("lab10.t3", 42.4, "not-a-whole-number"),
    ("lab10.t3", 0, "out-of-range"),
    ("lab10.t4", one_forward_more, "1f1b", "3 devices and 12 microbatches", "hide no latency"),
    ("lab10.t4", two_forwards_more, "always-two", "2 devices and 12 microbatches", "one is enough"),
    ("lab10.t4", all_forwards, "gpipe", "1 device and 6 microbatches"),
    ("lab10.t4", one_message, "one-way", "comes back"),
    ("lab10.t4", rounds_down, "rounded-down", "round up"),
    ("lab10.t4", one_too_many_at_the_edge, "one-more-at-the-edge", "is a multiple of F + B"),
    ("lab10.t4", divides_by_the_forward, "forwards-alone", "F + B"),
    ("lab10.t4", divides_by_the_backward, "backwards-alone", "15 ms", "F + B"),
    ("lab10.t4", rounds_to_the_nearest, "to-the-nearest", "16 ms", "round up"),
    ("lab10.t4", for_the_whole_pipeline, "whole-pipeline", "3 devices", "9 would be enough", "only two messages"),
    ("lab10.t4", adds_once, "added-once", "3 devices", "the next device"),
    ("lab10.t4", without_its_own_pair, "own-pair-forgotten"),
    ("lab10.t4", last_device_too, "last-device-warms-up", "no next device"),
    ("lab10.t4", from_the_last, "reversed"),
    ("lab10.t4", never_stops, "not-a-count", "from 0 to M, here 1"),
    ("lab10.t4", examples_of_the_text, "not-a-list"),
    ("lab10.t4", grows, "deadlock"),
    ("lab10.t4", most_on_the_last, "deadlock", "device 1 waits"),
    ("lab10.t4", half_a_forward, "not-a-count", "0.5"),
    ("lab10.t4", three_forwards_more, "too-much-memory", "fast enough"),
    ("lab10.t4", too_few_on_the_first, "longer-than-gpipe", "are possible, as under GPipe"),
    ("lab10.t4", one_number_too_many, "wrong-length"),
    ("lab10.t4", lambda *size: [float("nan")] * size[0], "not-a-number"),
    ("lab10.t4", asks_the_judge, "not-your-own", "`least_step`"),
    ("lab10.t4", [9, 6, 3, 0], "not-a-function", "eager(devices, microbatches, forward, backward, latency)"),
]
# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab10.t1", (7.78, 0.49)),
    ("lab10.t1", [np.float64(SPEEDUP), 0.4865]),
    ("lab10.t2", np.array([6, 4, 2, 0])),
    ("lab10.t2", (6.0, 4, 2, 0)),
    ("lab10.t2", range(6, -1, -2)),
    ("lab10.t3", 42.0),
    ("lab10.t3", np.int64(42)),
    ("lab10.t4", right_eager),
    ("lab10.t4", form_by_form(right_eager, np.array, lambda warmups: tuple(map(float, warmups)))),
    ("lab10.t4", lambda *size: [min(warmup, max(size[1] - 1, 0)) for warmup in right_eager(*size)]),
]


def ends(warmups: Sequence[int], microbatches: int = 16, latency: float = 16) -> float | None:
    """Return the makespan of task 2, found by asking every device in turn what it can run.

    It is None if all devices wait for ever.
    """
    lanes = []
    for device, warmup in enumerate(warmups):
        lane = [("F", device, number) for number in range(warmup)]
        for number in range(microbatches):
            lane += [("F", device, number + warmup)] * (number + warmup < microbatches) + [("B", device, number)]
        lanes.append(lane)
    done: dict[tuple[str, int, int], float] = {}
    free = [0.0] * len(lanes)
    while any(lanes):
        before = len(done)
        for device, lane in enumerate(lanes):
            while lane:
                kind, _, number = lane[0]
                last = device == len(lanes) - 1
                sent = (kind, device - 1 if kind == "F" else device + 1, number)
                if (kind == "F" and device == 0) or (kind == "B" and last):
                    arrived = 0.0
                elif sent in done:
                    arrived = done[sent] + latency
                else:
                    break
                free[device] = done[lane.pop(0)] = max(free[device], arrived) + (12.5 if kind == "F" else 25)
        if len(done) == before:
            return None
    return max(done.values())


def numbers_of(key: str, seed: int) -> list[float]:
    """The numbers in the prompt of a task."""
    return [float(number) for number in re.findall(r"\b\d+(?:\.\d+)?", TASKS[key].instance(seed).prompt.replace("1F1B", ""))]


def test_no_warmups_are_as_fast_with_fewer_activations() -> None:
    fast = {warmups for warmups in product(range(9), range(7), range(5), range(3)) if ends(warmups) == 19 * 37.5 + 6 * 16}
    held = {warmups: sum(warmup + 1 for warmup in warmups) for warmups in fast}
    assert min(held.values()) == 16
    assert [warmups for warmups in fast if held[warmups] == 16] == [(6, 4, 2, 0)]


@in_turn("seed", range(4))
def test_no_other_warmups_are_right_for_other_sizes(seed: int) -> None:
    """Warm-ups that grow from one device to the next deadlock, so the test tries those that do not."""
    devices, _, microbatches, latency, time, held = numbers_of("lab10.t2", seed)
    assert time == (microbatches + devices - 1) * 37.5 + 2 * (devices - 1) * latency
    most = int(held - devices)
    falling = combinations_with_replacement(range(most, -1, -1), int(devices))
    fast = [warmups for warmups in falling if sum(warmups) <= most and ends(warmups, int(microbatches), latency) == time]
    assert len(fast) == 1
    assert check("lab10.t2", fast[0], seed=seed).passed


@in_turn("seed", range(5))
def test_the_speedup_at_other_latencies(seed: int) -> None:
    _, makespan, _, microbatches, latency = numbers_of("lab10.t1", seed)
    timeline = simulate(build("1f1b", 16, int(microbatches)), Costs(forward=25, backward=50, p2p=latency))
    assert timeline.makespan == makespan
    speedup = microbatches * 1200 / makespan
    assert check("lab10.t1", (speedup, speedup / 16), seed=seed).passed
    assert 0.45 < speedup / 16 < 0.55, "about half of the time is lost"
    assert makespan - (microbatches + 15) * 75 > 15 * 75, "more to messages than to fill and drain"


@in_turn("seed", range(9))
def test_the_best_number_for_other_batches(seed: int) -> None:
    microbatches, latency = numbers_of("lab10.t3", seed)
    times = {devices: 1200 * (microbatches - 1) / devices + 2 * (devices - 1) * latency for devices in range(1, 1000)}
    best = min(times, key=times.__getitem__)
    assert check("lab10.t3", best, seed=seed).passed
    assert times[best] < times[33] < times[32] < times[16], "as the sentences about mistakes say"


@in_turn("warmups", [(3, 2, 1, 0), (6, 4, 2, 0), (16, 16, 16, 16), (8, 5, 2, 0), (9, 4, 3, 2)])
def test_the_judge_runs_the_warmups_that_were_handed_in(warmups: tuple[int, ...]) -> None:
    run = warmed_up(warmups, 16, 12.5, 25, 16)
    assert run.makespan == ends(warmups)
    assert run.peak_activations.tolist() == [min(warmup + 1, 16) for warmup in warmups]


@in_turn("warmups, name", [((3, 2, 1, 0), "1f1b"), ((6, 4, 2, 0), "eager-1f1b"), ((16,) * 4, "gpipe")])
def test_three_warmups_are_known_schedules(warmups: tuple[int, ...], name: str) -> None:
    assert warmed_up(warmups, 16, 12.5, 25, 16).schedule.orders == build(name, 4, 16).orders


def test_devices_wait_for_ever_where_one_warms_up_less_than_the_next() -> None:
    for warmups in product((0, 2, 14, 15, 16), repeat=4):
        assert (check("lab10.t2", list(warmups)).code == "deadlock") == (ends(warmups) is None)


@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_task_3_has_one_best_number(step: int) -> None:
    """GPipe's makespan has three parts: one microbatch alone, the other microbatches divided by the devices, and one round trip."""
    times = {devices: 1200 + 1200 * 15 / devices + 2 * (devices - 1) * 5 for devices in range(1, 10_001)}
    assert min(times, key=lambda devices: times[devices]) == 42
    tried = [*range(1, 200), *range(200, 10_001, step)]
    assert [devices for devices in tried if check("lab10.t3", devices).passed] == [42]
    assert whole_model(42) == pytest.approx(times[42])


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_warmups_of_the_judge_follow_from_a_round_trip_between_neighbours(seed: int) -> None:
    """A device needs as many pairs as take (F + B) + 2C, and with one forward fewer from device to device the step is longer."""

    def same_order(one: Sequence[float], other: Sequence[float], microbatches: int) -> bool:
        return bool((np.minimum(one, microbatches - 1) == np.minimum(other, microbatches - 1)).all())

    for case in latencies_to_hide(np.random.default_rng(seed)):
        microbatches = case.arguments[1]
        judged = eager(lambda *times, size=case.arguments: least_step(*size))(*case.arguments)
        assert same_order(judged, right_eager(*case.arguments), microbatches)
        fastest = ends_of(case.arguments, all_forwards)
        assert ends_of(case.arguments, right_eager) == fastest
        if case.arguments[4] and not same_order(one_pair_fewer(*case.arguments), right_eager(*case.arguments), microbatches):
            assert ends_of(case.arguments, one_pair_fewer) > fastest


def ends_of(size: tuple[int, ...], program: Callable[..., list[int]]) -> float:
    return warmed_up(tuple(program(*size)), *size[1:]).makespan


@in_turn(
    "program, share",
    [
        (right_eager, None),
        (one_too_many_at_the_edge, 2 / 5),
        (divides_by_the_forward, 2 / 5),
        (all_forwards, 2 / 5),
        (rounds_down, 1 / 5),
        (one_message, 1 / 5),
        (two_forwards_more, 1 / 5),
        (never_stops, 0),
        (from_the_last, 0),
        (most_on_the_last, 0),
        (too_few_on_the_first, 1 / 5),
        (examples_of_the_text, 0),
    ],
)
def test_partial_credit_for_warmups_that_can_run(program: Callable[..., Any], share: float | None) -> None:
    task = TASKS["lab10.t4"]
    found = [task.credit_for(code) for code in task.instance(None).data.codes(program)]
    assert min((credit.share if credit else 0 for credit in found), default=None) == (share and pytest.approx(share))


def test_no_hint_on_the_best_number_tells_a_direction() -> None:
    """Hints give neither a time nor a direction, so the best number cannot be found by trying."""
    hints = {tuple(check("lab10.t3", devices).messages) for devices in range(1, 200) if devices not in (16, 32, 42, 43, 44, 59, 60, 61)}
    assert len({re.sub(r"^\d+", "", messages[0]) for messages in hints}) == 1
    spoken = [message for devices in range(1, 200) if devices != 42 for message in check("lab10.t3", devices).messages]
    assert not [message for message in spoken if re.search(r"go on|direction|\d+\.\d|less|\b42\b", message)]
