"""Test V-Half and V-Min: the paper's memory and bubble, and the order, compared with a second planner.

The library copies microbatches as soon as they repeat. The planner here was written from the rule in words, and places every microbatch
operation by operation.
"""

from itertools import accumulate, product

import pytest
from cases import in_turn

from hybridlab import Costs, Schedule, Timeline, build, simulate
from hybridlab.schedules.controllable_memory import building_block

EQUAL = Costs(forward=2, backward=4)  # forward, input gradient and weight gradient of a chunk take one unit each
PERIOD = 6
PARTS = {"v-half": 2, "v-min": 3}
PEAK = {"v-half": lambda k: -(-(k + 2) // 2), "v-min": lambda k: (k + 4) // 3}  # in closed_forms.md, from the paper
BUBBLE = {"v-half": 1 / 2, "v-min": 2 / 3}  # from the same file, as a share of 1F1B's bubble
names = in_turn("name", sorted(PARTS))


def run(name: str, devices: int, microbatches: int) -> Timeline:
    return simulate(build(name, devices, microbatches), EQUAL)


@names
@in_turn("devices", [*range(1, 10), 12, 13, 16, 17, 32])
def test_the_peak_is_the_published_one_and_the_bubble_at_most_the_published_part_of_1f1b(name: str, devices: int) -> None:
    for microbatches in (max(devices, 2), 2 * devices + 1, 3 * devices + 2):
        timeline, usual = run(name, devices, microbatches), run("1f1b", devices, microbatches)
        most = BUBBLE[name] * (usual.makespan - microbatches * PERIOD)
        assert timeline.peak_activations.max() == PEAK[name](devices)
        assert timeline.makespan - microbatches * PERIOD <= most
        assert timeline.device_span - microbatches * PERIOD <= most


@names
@in_turn("devices", range(1, 10))
def test_few_microbatches_never_take_more_memory(name: str, devices: int) -> None:
    for microbatches in range(1, devices + 1):
        assert run(name, devices, microbatches).peak_activations.max() <= min(microbatches, PEAK[name](devices))


@in_turn("devices, microbatches", product((2, 3, 4, 6, 7, 16, 27), (1, 2, 5, 40)))
def test_no_pass_of_v_min_ever_waits(devices: int, microbatches: int) -> None:
    """The last microbatch enters at 6(M-1), goes down and up twice without waiting, and leaves one weight gradient to do."""
    assert run("v-min", devices, microbatches).makespan == PERIOD * (microbatches - 1) + 4 * devices + 1


@names
@in_turn("devices", [1, 2, 5, 6, 9])
def test_more_microbatches_add_no_bubble(name: str, devices: int) -> None:
    few, many = run(name, devices, 2 * devices + 2), run(name, devices, 50 * devices)
    assert many.makespan - few.makespan == PERIOD * (48 * devices - 2)


def test_all_devices_of_the_block_hold_their_two_activations_equally_long() -> None:
    for part, devices in product((2, 3), (1, 2, 5, 12)):
        f0, f1, i1, i0 = building_block(devices, part)
        assert len(set((i0 - f0 + i1 - f1).tolist())) == 1
        assert set(((f1 - i1)[:-1] - (f1 - i1)[1:]).tolist()) <= {PERIOD // part}


def test_the_order_of_a_small_v_half() -> None:
    """While device 0 waits for the first microbatch, it starts two more; its fourth place in memory is kept for chunk 1."""
    assert str(build("v-half", 2, 3)) == (
        "device 0: 0F0 0F1 0F2 3F0 3I0 3W0 3F1 0I0 3I1 0W0 3W1 0I1 0W1 3F2 3I2 3W2 0I2 0W2\n"
        "device 1: 1F0 2F0 1F1 2F1 2I0 1I0 2W0 1F2 2I1 1I1 1W0 2F2 2W1 1W1 2I2 1I2 2W2 1W2"
    )


def planned(devices: int, microbatches: int, part: int, ahead: bool, capacity: int, kept: bool = True) -> list[list[str]]:
    """Return the order of every device, planned one operation at a time; with ``kept``, places in memory are kept for chunk 1."""
    stages, last = 2 * devices, 2 * devices - 1
    down, up = [PERIOD // part - 1] * (devices - 1), [1] * (devices - 1)
    path = [("F", stage) for stage in range(stages)] + [("I", stage) for stage in reversed(range(stages))]
    place = dict(zip(path, accumulate([0, *down, 1, *up, 2, *down, 1, *up]), strict=True))
    ran: dict[tuple[str, int, int], int] = {}
    orders: list[list[str]] = [[] for _ in range(devices)]

    def needs(kind: str, stage: int, microbatch: int) -> tuple[str, int, int] | None:
        if kind == "W":
            return "I", stage, microbatch
        if kind == "I":
            return ("F" if stage == last else "I"), min(stage + 1, last), microbatch
        return ("F", stage - 1, microbatch) if stage else None

    now = 0
    while len(ran) < 3 * stages * microbatches:
        assert now < 100 * (microbatches + devices), "the devices wait for ever"
        for device in range(devices):
            own = (device, last - device)
            held = {s: sum((("F", s, i) in ran) - (("W", s, i) in ran) for i in range(microbatches)) for s in own}
            could = []
            for kind, stage in product("FIW", own):
                microbatch = next((i for i in range(microbatches) if (kind, stage, i) not in ran), None)
                if microbatch is None:
                    continue
                need = needs(kind, stage, microbatch)
                here = ran.get(need, now) < now if need else ahead or now >= PERIOD * microbatch
                full = sum(held.values()) >= capacity or (kept and stage == device and held[stage] >= capacity - 1 - device // part)
                if here and not (kind == "F" and full):
                    by = ("I" if kind == "W" else kind, stage)
                    could.append((kind == "W", place[by] + PERIOD * microbatch, path.index(by), kind, stage, microbatch))
            if could:
                *_, kind, stage, microbatch = min(could)
                ran[kind, stage, microbatch] = now
                orders[device].append(f"{stage}{kind}{microbatch}")
        now += 1
    return orders


@names
@in_turn("devices, microbatches", [*product(range(1, 8), (1, 2, 3, 7)), (4, 25), (5, 21), (6, 24)])
def test_every_operation_lies_where_the_rule_puts_it(name: str, devices: int, microbatches: int) -> None:
    orders = planned(devices, microbatches, PARTS[name], name == "v-half", 2 * PEAK[name](devices))
    assert [[str(op) for op in order] for order in build(name, devices, microbatches).orders] == orders


@in_turn("devices", [2, 5, 6])
def test_a_planner_that_overlooks_the_memory_takes_more_than_the_published_peak(devices: int) -> None:
    careless = Schedule("careless", planned(devices, 3 * devices, 2, True, capacity=10**6, kept=False))
    assert simulate(careless, EQUAL).peak_activations.max() > PEAK["v-half"](devices)


def test_a_planner_that_keeps_no_place_for_chunk_1_waits_for_ever() -> None:
    with pytest.raises(AssertionError, match="wait for ever"):
        planned(5, 15, 2, True, capacity=8, kept=False)


@in_turn("devices", [4, 7, 10])
def test_v_min_that_lets_microbatches_in_ahead_loses_time(devices: int) -> None:
    hasty = Schedule("hasty", planned(devices, 2 * devices, 3, True, capacity=2 * PEAK["v-min"](devices)))
    assert simulate(hasty, EQUAL).makespan > run("v-min", devices, 2 * devices).makespan
