"""Test where the time of a step went: each device's parts add up to the makespan, and the critical path is made of work and messages."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from strategies import Size, legal_orders, settings_of, sizes

from hybridlab import REGISTRY, Costs, Timeline, build, hybrid_step, simulate
from hybridlab.timeline import Breakdown

COLUMNS = ("forward", "backward", "weight", "paired", "optimiser", "warm_up", "steady", "cool_down", "after")


def by_hand(timeline: Timeline) -> list[dict[str, float]]:
    """Return the columns of each device without spans, from the rows of the timeline and its text, with plain loops."""
    rows = timeline.to_rows()
    first, last = min(row["start"] for row in rows), max(row["end"] for row in rows)
    found = []
    for device, turns in enumerate(timeline.schedule.turns):
        times = {row["op"]: (row["start"], row["end"]) for row in rows if row["device"] == device}
        spent = dict.fromkeys(COLUMNS, 0.0)
        first_backward = min(start for op, (start, _) in times.items() if "B" in op or "I" in op)
        last_forward = max(end for op, (_, end) in times.items() if "F" in op)
        now = first
        for turn in turns:
            start, end = times[str(turn[0])]
            name = {"F": "forward", "B": "backward", "I": "backward", "W": "weight"}[turn[0].kind]
            spent["paired" if len(turn) > 1 else name] += end - start
            spent["warm_up" if start <= first_backward else "cool_down" if now >= last_forward else "steady"] += start - now
            now = end
        found.append(spent | {"after": last - now})
    return found


def adds_up(where: Breakdown, makespan: float) -> bool:
    total: Any = sum(getattr(where, name) for name in COLUMNS)
    return bool(np.allclose(total, makespan, rtol=1e-12, atol=1e-9))


@examples(80)
@given(size=sizes(), data=st.data())
def test_the_parts_of_each_device_are_those_found_by_hand_and_add_up(size: Size, data: st.DataObject) -> None:
    timeline = simulate(size.build(), data.draw(settings_of(size.devices)).costs())
    where = timeline.breakdown()
    assert adds_up(where, timeline.makespan)
    for device, spent in enumerate(by_hand(timeline)):
        assert {name: getattr(where, name)[device] for name in COLUMNS} == pytest.approx(spent, rel=1e-9, abs=1e-9)


@examples(80)
@given(size=sizes(), data=st.data())
def test_work_and_latencies_on_the_critical_path_add_up_to_the_makespan(size: Size, data: st.DataObject) -> None:
    """The latencies come from the costs, and a step waits only for the operation before it on the path."""
    setting = data.draw(settings_of(size.devices, exact=True))
    costs = setting.costs()
    timeline = simulate(size.build(), costs)
    if size.chunks & (size.chunks - 1):
        return  # a third is not exact in binary
    path = timeline.breakdown().critical_path
    total = path[0].start
    for before, step in zip((None, *path[:-1]), path, strict=True):
        moves = before is not None and before.device != step.device
        latency = costs.latency(np.array([before.device]), np.array([step.device]))[0] if before is not None and moves else 0.0
        assert step.wait == latency
        total += latency + (step.end - step.start)
    assert total == timeline.makespan == timeline.breakdown().makespan


@examples(40)
@given(schedule=legal_orders())
def test_each_step_of_the_path_is_before_the_next_on_its_device_or_makes_its_input(schedule: Any) -> None:
    path = simulate(schedule, Costs(forward=3, backward=5, p2p=0.5)).breakdown().critical_path
    order = [op for turns in schedule.turns for turn in turns for op in turn]
    for before, step in pairwise(path):
        partner = next(turn for turns in schedule.turns for turn in turns if step.op in turn)
        needed = {each for op in partner for each in schedule.needs(op)}
        follows = before.device == step.device and order.index(before.op) < order.index(step.op)
        assert follows or before.op in needed


@in_turn("name", REGISTRY)
def test_a_step_with_rings_and_optimisers_adds_up(name: str) -> None:
    step = hybrid_step(build(name, 4, 8), Costs(forward=1, backward=2, p2p=0.25), 2, ring_step=0.5, optimiser=3, overlap=True)
    where = step.timeline.breakdown()
    assert adds_up(where, step.makespan)
    assert where.optimiser.tolist() == [3 * REGISTRY[name].copies] * 8
    assert where.makespan == pytest.approx(step.makespan)
    assert where.rest > 0


def test_one_f_one_b_by_its_closed_form() -> None:
    """Narayanan et al., SC 2021, section 2.2: the bubble of 1F1B is (K - 1)(F + B), for every device."""
    where = simulate(build("1f1b", 4, 8), Costs(forward=1, backward=2)).breakdown()
    idle = where.warm_up + where.steady + where.cool_down + where.after
    assert idle.tolist() == [9] * 4
    assert where.warm_up.tolist() == [6, 5, 4, 3]
    assert where.after.tolist() == [0, 2, 4, 6]


def test_a_short_gap_of_a_measured_run_is_no_wait_for_an_old_message() -> None:
    """Device 1 pauses for 0.1 between its operations. Its second forward waited for the device: the input came long before."""
    schedule = build("gpipe", 2, 2)  # 0F0 0F1 0B0 0B1, 1F0 1F1 1B0 1B1
    start = [0, 1, 15, 18, 2, 7.1, 12.2, 14.3]
    end = [1, 2, 17, 20, 7, 12.1, 14.2, 16.3]
    where = Timeline(schedule, start, end).breakdown()  # type: ignore[arg-type]
    assert [str(step.op) for step in where.critical_path] == ["0F0", "1F0", "1F1", "1B0", "1B1", "0B1"]
    assert [step.wait for step in where.critical_path] == pytest.approx([0, 1, 0.1, 0.1, 0.1, 1.7])


def test_a_breakdown_prints_the_columns_in_use() -> None:
    lines = repr(simulate(build("gpipe", 1, 2), Costs(forward=1, backward=2, unit="s")).breakdown()).splitlines()
    assert lines == [
        "<Breakdown of 6, in s>",
        "device  forward  backward",
        "     0        2         4",
        "critical path: 6 of work + 0 between operations",
    ]


def test_a_batch_is_refused() -> None:
    with refusal("several-settings", "breakdown()", "at()"):
        simulate(build("1f1b", 2, 2), Costs(forward=[[1], [2]], backward=2)).breakdown()
