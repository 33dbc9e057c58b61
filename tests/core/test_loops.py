"""Test that all loops of the simulation compute the same times, bit by bit, and that what the library keeps changes nothing."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import oracle
import pytest
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from strategies import crossing_orders, legal_orders, settings_of, sizes

from hybridlab import REGISTRY, Costs, HybridLabError, Schedule, Timeline, build, formulas, simulate
from hybridlab.schedules import forget, registry
from hybridlab.schedules.recently_used import RecentlyUsed
from hybridlab.simulation import simulate_many
from hybridlab.simulation.loops import Edges, all_settings, one_by_one, row_by_row
from hybridlab.simulation.simulation import _is_wide
from hybridlab.step.replicas import replicate

Loop = Callable[[Schedule, Costs], Edges]


def loops_for(schedule: Schedule) -> list[Loop]:
    """Return the loops that can simulate this schedule; only one of them knows overlapped pairs."""
    every: list[Loop] = [lambda schedule, costs: all_settings([(schedule, costs)], [0]), one_by_one, row_by_row]
    return every[:1] if schedule.pairs.size else every


def times_of(schedule: Schedule, costs: Costs) -> list[tuple[bytes, bytes]]:
    """Return the bytes of start and end that each loop computes."""
    return [(start.tobytes(), end.tobytes()) for start, end in (loop(schedule, costs) for loop in loops_for(schedule))]


@in_turn("name", sorted(REGISTRY))
@examples(40)
@given(data=st.data())
def test_all_loops_compute_the_same_bits(name: str, data: st.DataObject) -> None:
    size = data.draw(sizes(name))
    schedule = size.build()
    setting = data.draw(settings_of(schedule.devices))
    assert len(set(times_of(schedule, setting.costs()))) == 1
    per_stage = [1 + stage / 7 for stage in range(schedule.stages)]
    assert len(set(times_of(schedule, Costs(forward=per_stage, backward=2, p2p=0.3, per="stage")))) == 1


@examples(100)
@given(schedule=st.one_of(legal_orders(), crossing_orders()), data=st.data())
def test_all_loops_compute_the_same_bits_for_any_order(schedule: Schedule, data: st.DataObject) -> None:
    assert len(set(times_of(schedule, data.draw(settings_of(schedule.devices)).costs()))) == 1


@in_turn("devices, microbatches", [(1, 1), (1, 40), (40, 1), (16, 24)])
@in_turn("name", ["gpipe", "1f1b", "zb-h1", "zb-v"])
def test_every_loop_equals_the_longest_paths(name: str, devices: int, microbatches: int) -> None:
    """The times are binary fractions, so they are exact, and the test's own program must find the very same."""
    schedule = build(name, devices, microbatches)
    setting = oracle.uniform(devices, 1.5, 2.5, 0.5, 0.125)
    expected = oracle.times(oracle.nodes(schedule), setting, schedule.chunks)
    keys = [(op.kind.value, op.stage, op.microbatch) for op in schedule.ops]
    start, end = (np.array([float(expected[key][side]) for key in keys]).tobytes() for side in (0, 1))
    assert set(times_of(schedule, setting.costs())) == {(start, end)}


@in_turn("devices", [1, 4, 16])
def test_every_loop_equals_the_closed_forms(devices: int) -> None:
    """The times are binary fractions, so closed forms and loops agree exactly."""
    forward, backward, weight = 1.5, 2.5, 1.25
    split = (devices, 64, forward, backward, weight)
    for name, expected in {
        "gpipe": formulas.gpipe_makespan(devices, 64, forward, backward),
        "1f1b": formulas.one_f_one_b_makespan(devices, 64, forward, backward),
        "zb-h1": formulas.zb_h1_makespan(*split),
        "zb-h2": formulas.zb_h2_makespan(*split),
    }.items():
        costs = Costs(forward=forward, backward=backward, weight_share=weight / backward)
        schedule = build(name, devices, 64)
        assert [end.max() for _, end in (loop(schedule, costs) for loop in loops_for(schedule))] == [expected] * 3


def test_both_loops_for_one_setting_are_chosen() -> None:
    assert not _is_wide(build("1f1b", 8, 64))
    assert _is_wide(build("1f1b", 64, 512))
    assert not _is_wide(build("1f1b", 64, 2)), "most devices have nothing to do in most slots"
    assert _is_wide(replicate(build("1f1b", 4, 8), 32))
    assert not _is_wide(Schedule.from_slots("far apart", [[[0, 2**34]], [[1, 2**35]]], [0]))


@in_turn("costs", [Costs(forward=1, backward=2, p2p=0.1), Costs(forward=[1, 2] * 8, backward=3)])
def test_long_schedules_go_through_the_loop_in_parts(monkeypatch: pytest.MonkeyPatch, costs: Costs) -> None:
    whole = one_by_one(build("1f1b", 16, 9), costs)
    with monkeypatch.context() as short:
        short.setattr("hybridlab.simulation.loops.BLOCK", 7)
        for loop in (one_by_one, row_by_row):
            for before, after in zip(whole, loop(build("1f1b", 16, 9), costs), strict=True):
                assert before.tobytes() == after.tobytes()


@in_turn("name", sorted(REGISTRY))
def test_a_batch_has_the_bits_of_its_settings(name: str) -> None:
    schedule = build(name, 4, 8)
    forward, p2p = np.array([1.1, 0.0, 3.3]), np.array([0.1, 0.7, 0.0])
    batch = simulate(schedule, Costs(forward=forward[:, None], backward=2.2, p2p=p2p[:, None], overlap=0.3))
    for setting in range(3):
        alone = simulate(schedule, Costs(forward=forward[setting], backward=2.2, p2p=p2p[setting], overlap=0.3))
        assert batch.at(setting) == alone


def test_schedules_simulated_in_one_pass_are_those_simulated_alone() -> None:
    settings = [Costs(forward=[[1], [2]], backward=2, p2p=p2p, overlap=0.5, unit=unit) for p2p, unit in ((0, "s"), (1, "us"), (2, None))]
    runs = [(build(name, 2, 4), costs) for name, costs in zip(("1f1b", "dualpipe-v", "zb-h1"), settings, strict=True)]
    assert simulate_many(runs) == [simulate(*run) for run in runs]


@in_turn("batch", [(), (3,)])
def test_a_simulated_timeline_passes_the_checks_of_a_given_one(batch: tuple[int, ...]) -> None:
    simulated = simulate(build("dualpipe-v", 4, 8), Costs(forward=np.ones((*batch, 1)), backward=2, unit="s"))
    assert simulated == Timeline(simulated.schedule, simulated.start, simulated.end, unit="s")
    for array in (simulated.start, simulated.end):
        assert not array.flags.writeable
        assert array.base is None or not array.base.flags.writeable


def test_build_keeps_what_it_has_built() -> None:
    forget()
    first = build("1f1b", 4, 8)
    assert build("1F1B", np.int64(4), 8, 1) is first
    assert build("1f1b", 4, 9) is not first
    forget()
    again = build("1f1b", 4, 8)
    assert again is not first
    assert again == first


@in_turn("devices", [True, 4.0, "4", None])
def test_a_kept_schedule_does_not_make_other_arguments_right(devices: Any) -> None:
    for known in (1, 4):
        build("1f1b", known, 8)
    with pytest.raises(HybridLabError):
        build("1f1b", devices, 8)


def test_a_changed_rule_builds_again(monkeypatch: pytest.MonkeyPatch) -> None:
    old = build("1f1b", 3, 5)
    changed = replace(registry._FAMILIES["1f1b"], rule=registry._FAMILIES["eager-1f1b"].rule)
    monkeypatch.setitem(registry._FAMILIES, "1f1b", changed)
    assert build("1f1b", 3, 5) != old


@in_turn("name", sorted(REGISTRY))
def test_a_kept_schedule_takes_at_most_the_bytes_it_is_counted_with(name: str) -> None:
    """Everything that a schedule computes later is counted from the start."""
    build(name, 8, 64)
    forget()
    tracemalloc.start()
    schedule = build(name, 8, 64)
    simulate(schedule, Costs(forward=1, backward=2))
    for computed in (schedule.walk, schedule.steps, schedule.messages, schedule.pairs, schedule.ops, schedule._row_of):
        assert computed is not None
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held <= registry.BYTES * schedule.kind.size + 20_000


def test_the_store_stays_within_its_bytes() -> None:
    store: RecentlyUsed[int, str] = RecentlyUsed(100)
    for number in range(50):
        store.keep(number, str(number), 30)
        assert store.get(number) == str(number)
    assert [number for number in range(50) if store.get(number)] == [47, 48, 49]
    store.get(47)
    store.keep(50, "50", 30)
    assert store.get(47) == "47"
    assert store.get(48) is None, "the least recently used value goes first"
    store.keep(47, "large", 100)
    assert store.get(49) is None
    assert store.get(47) == "large"
    store.keep(47, "too large", 101)
    assert store.get(47) is None
    store.keep(1, "whole", 100)
    assert store.get(1) == "whole", "the bytes of a value that was taken out are free again"
