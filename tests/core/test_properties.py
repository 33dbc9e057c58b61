"""Test properties that hold for every schedule of the registry at every size, and for any order that can run."""

import checks
import numpy as np
import oracle
import pytest
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from oracle import Setting
from profiles import examples
from strategies import Size, any_orders, batches, legal_orders, one_by_one, settings_of, sizes, supported

from hybridlab import REGISTRY, Costs, Deadlock, Schedule, Timeline, simulate

names = in_turn("name", sorted(REGISTRY))


def run(schedule: Schedule, setting: Setting) -> Timeline:
    return simulate(schedule, setting.costs())


@names
@examples(34)
@given(data=st.data())
def test_every_schedule_is_complete_and_can_run(name: str, data: st.DataObject) -> None:
    size = data.draw(sizes(name))
    schedule = size.build()
    checks.has_the_size_asked_for(schedule, size.devices, size.microbatches, size.chunks)
    for check in checks.SCHEDULE_CHECKS:
        check(schedule)


@names
@examples(25)
@given(data=st.data())
def test_every_timeline_obeys_its_inputs_devices_and_costs(name: str, data: st.DataObject) -> None:
    schedule = data.draw(sizes(name)).build()
    setting = data.draw(settings_of(schedule.devices))
    timeline = run(schedule, setting)
    for check in checks.TIMELINE_CHECKS:
        check(timeline, setting)


@names
@in_turn("sizes", [(1, 1), (1, 2), (2, 1), (5, 1), (3, 4)])
def test_the_smallest_and_oddest_sizes(name: str, sizes: tuple[int, int]) -> None:
    devices, microbatches = supported(name, *sizes)
    chunks = REGISTRY[name].fewest_chunks + REGISTRY[name].chunk_step
    schedule = Size(name, devices, microbatches, chunks).build()
    checks.has_the_size_asked_for(schedule, devices, microbatches, chunks)
    for check in checks.SCHEDULE_CHECKS:
        check(schedule)
    nothing = [oracle.uniform(devices, 0, 0)] if sizes in ((1, 1), (2, 1)) else []
    for setting in (oracle.uniform(devices, 1, 2, 0.5, 0.25), *nothing):
        timeline = run(schedule, setting)
        for timeline_check in checks.TIMELINE_CHECKS:
            timeline_check(timeline, setting)


@examples(120)
@given(size=sizes(), data=st.data())
def test_times_are_exact_where_binary_fractions_are(size: Size, data: st.DataObject) -> None:
    schedule = size.build()
    if schedule.chunks & (schedule.chunks - 1):
        return  # a third is not exact in binary
    setting = data.draw(settings_of(schedule.devices, exact=True))
    timeline = run(schedule, setting)
    expected = oracle.times(oracle.nodes(schedule), setting, schedule.chunks, together=oracle.partners(schedule))
    assert checks.spans(timeline) == expected


@examples(80)
@given(size=sizes(), data=st.data())
def test_doubling_every_cost_doubles_every_time(size: Size, data: st.DataObject) -> None:
    schedule = size.build()
    setting = data.draw(settings_of(schedule.devices))
    forward, backward = (tuple(2 * time for time in row) for row in (setting.forward, setting.backward))
    between = setting.between and tuple(tuple(2 * time for time in row) for row in setting.between)
    doubled = Setting(forward, backward, setting.share, 2 * setting.p2p, setting.overlap, between)
    once, twice = run(schedule, setting), run(schedule, doubled)
    assert np.array_equal(twice.start, 2 * once.start)
    assert np.array_equal(twice.end, 2 * once.end)
    assert twice.makespan == 2 * once.makespan
    assert twice.bubble_ratio == once.bubble_ratio


@examples(80)
@given(size=sizes(), data=st.data())
def test_a_dearer_cost_makes_nothing_earlier(size: Size, data: st.DataObject) -> None:
    schedule = size.build()
    setting = data.draw(settings_of(schedule.devices, exact=True))
    device = data.draw(st.integers(0, schedule.devices - 1))
    quick, slow = (
        simulate(schedule, setting.costs()),
        simulate(schedule, setting.costs().slower([device], 1.5, of=schedule.devices)),
    )
    assert (slow.end >= quick.end - 1e-9).all()
    assert slow.busy[device] == pytest.approx(1.5 * quick.busy[device])


@examples(60)
@given(schedule=legal_orders(), data=st.data())
def test_any_order_that_can_run_is_accepted_and_never_beats_the_critical_path(schedule: Schedule, data: st.DataObject) -> None:
    checks.runs_everything_once(schedule)
    checks.knows_what_operations_need(schedule)
    checks.slots_prove_that_it_can_run(schedule)
    checks.survives_writing_and_reading(schedule)
    setting = data.draw(settings_of(schedule.devices))
    timeline = run(schedule, setting)
    for check in checks.TIMELINE_CHECKS:
        check(timeline, setting)


@examples(300)
@given(orders=any_orders())
def test_an_order_is_refused_exactly_if_its_devices_would_wait_in_a_circle(orders: list[list[oracle.Node]]) -> None:
    written = [[f"{stage}{kind}{microbatch}" for kind, stage, microbatch in order] for order in orders]
    if oracle.can_run(orders):
        assert oracle.nodes(Schedule("any", written)) == orders
    else:
        with pytest.raises(Deadlock) as caught:
            Schedule("any", written)
        marks = [f"[{problem.op}]" for problem in caught.value.problems]
        assert any(mark in str(caught.value) for mark in marks), "a fault is marked in the printed orders"


@examples(80)
@given(size=sizes(), data=st.data())
def test_a_batch_equals_its_settings_one_by_one(size: Size, data: st.DataObject) -> None:
    schedule = size.build()
    shape, arguments = data.draw(batches(schedule.devices))
    batch = simulate(schedule, Costs(**arguments))
    assert batch.start.shape == batch.end.shape == (*shape, len(schedule.ops))
    for quantity in (batch.makespan, batch.device_span, batch.bubble_ratio):
        assert quantity.shape == shape
    assert batch.busy.shape == batch.peak_activations.shape == (*shape, schedule.devices)
    for setting, costs in one_by_one(shape, schedule.devices, arguments):
        alone, picked = simulate(schedule, costs), batch.at(*setting)
        for timeline in (alone, picked):
            assert np.array_equal(batch.start[setting], timeline.start)
            assert np.array_equal(batch.end[setting], timeline.end)
            assert np.array_equal(batch.busy[setting], timeline.busy)
            assert np.array_equal(batch.peak_activations[setting], timeline.peak_activations)
            assert batch.makespan[setting] == timeline.makespan
            assert batch.device_span[setting] == timeline.device_span
            assert batch.bubble_ratio[setting] == timeline.bubble_ratio
        assert np.array_equal(picked.blocking_operation(), alone.blocking_operation())
        assert picked.to_rows() == alone.to_rows()


@examples(40)
@given(size=sizes(), data=st.data())
def test_arguments_are_never_changed_nor_kept(size: Size, data: st.DataObject) -> None:
    schedule = size.build()
    _, arguments = data.draw(batches(schedule.devices))
    before = {name: np.copy(value) for name, value in arguments.items()}
    columns = {name: getattr(schedule, name).copy() for name in ("kind", "stage", "microbatch", "device", "source", "slot")}
    costs = Costs(**arguments)
    timeline = simulate(schedule, costs)
    start = timeline.start.copy()
    for name, value in arguments.items():
        assert np.array_equal(value, before[name]), name
        if isinstance(value, np.ndarray):
            value += 1  # changing the caller's arrays must not change the schedule
    assert np.array_equal(simulate(schedule, costs).start, start)
    for name, values in columns.items():
        assert np.array_equal(getattr(schedule, name), values), name


@names
def test_splitting_the_backward_in_one_schedule_changes_no_work(name: str) -> None:
    """A full backward is its two parts, so the busy time of a device does not depend on how the backward is cut."""
    schedule = REGISTRY[name]
    chunks = schedule.fewest_chunks
    setting = oracle.uniform(4, 3, 7, share=0.25, p2p=1)
    devices, microbatches = supported(name, 4, 8)
    timeline = run(Size(name, devices, microbatches, chunks).build(), setting)
    assert devices == 4
    assert timeline.busy.tolist() == [10.0 * microbatches] * 4
