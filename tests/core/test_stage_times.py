"""Test costs with one time for each stage: the chunks of a device can take different times."""

from typing import Any

import numpy as np
import oracle
import pytest
from cases import in_turn, refusal
from checks import spans
from hypothesis import given
from hypothesis import strategies as st
from oracle import Setting, critical_path, nodes, partners, times, works
from profiles import examples
from strategies import Size, eighths, legal_orders, links, quarters, sizes

from hybridlab import REGISTRY, Costs, Schedule, build, hybrid_step, simulate
from hybridlab.bound import lower_bound, optimum
from hybridlab.simulation import durations, running_times

UNEVEN = Costs(forward=[1, 4, 4, 11], backward=[2, 8, 8, 22], per="stage")
ROUNDING = 1 + 1e-12


@st.composite
def settings_per_stage(draw: st.DrawFn, schedule: Schedule) -> Setting:
    """Draw times of every stage, with exact sums in binary; a time can be zero."""

    def row(values: st.SearchStrategy[float]) -> tuple[float, ...]:
        return tuple(draw(st.lists(values, min_size=schedule.stages, max_size=schedule.stages)))

    return Setting(
        row(quarters), row(quarters), row(eighths), draw(quarters), draw(eighths), draw(links(schedule.devices, quarters)), "stage"
    )


def makespan(schedule: Schedule, setting: Setting) -> Any:
    return max(end for _, end in times(nodes(schedule), setting, schedule.chunks, together=partners(schedule)).values())


@in_turn("name", sorted(REGISTRY))
@examples(40)
@given(data=st.data())
def test_every_schedule_has_the_times_of_the_oracle(name: str, data: st.DataObject) -> None:
    schedule = data.draw(sizes(name)).build()
    setting = data.draw(settings_per_stage(schedule))
    timeline = simulate(schedule, setting.costs())
    assert spans(timeline) == times(nodes(schedule), setting, schedule.chunks, together=partners(schedule))
    assert timeline.busy.tolist() == [float(work) for work in works(nodes(schedule), setting, schedule.chunks, partners(schedule))]


@examples(60)
@given(size=sizes(), data=st.data())
def test_equal_parts_for_all_chunks_are_the_times_of_the_device(size: Size, data: st.DataObject) -> None:
    schedule = size.build()
    forward, backward, share, overlap = (data.draw(values) for values in (quarters, quarters, eighths, eighths))
    more: dict[str, Any] = {"weight_share": share, "overlap": overlap, "p2p": data.draw(quarters)}
    whole = simulate(schedule, Costs(forward=forward, backward=backward, **more))
    parts = (np.full(schedule.stages, time) / schedule.chunks for time in (forward, backward))
    divided = simulate(schedule, Costs(**dict(zip(("forward", "backward"), parts, strict=True)), **more, per="stage"))
    assert divided.makespan == pytest.approx(whole.makespan)
    assert divided.start == pytest.approx(whole.start)


@examples(80)
@given(schedule=st.one_of(legal_orders(), sizes().map(Size.build)), data=st.data())
def test_no_order_beats_its_bound(schedule: Schedule, data: st.DataObject) -> None:
    setting = data.draw(settings_per_stage(schedule))
    bound = lower_bound(schedule, setting.costs())
    assert bound <= float(makespan(schedule, setting)) * ROUNDING
    if not schedule.pairs.size:
        parts = [critical_path(nodes(schedule), setting, schedule.chunks), *works(nodes(schedule), setting, schedule.chunks)]
        assert bound * ROUNDING >= float(max(parts)), "no less than the longest chain and the busiest device"


def test_an_activation_stays_until_its_weight_gradient_has_run() -> None:
    """Device 0 has room for one: 0F0, 1F0, 1I0, 0I0 and 0W0 take 5, and the second microbatch takes as long after it."""
    assert lower_bound(build("zb-h1", 2, 2), Costs(forward=1, backward=2), memory=1) == 5 + 5


def test_the_shortest_order_is_found_for_them() -> None:
    """Device 1 has the stages 1 and 2. Its load is 2 x (4 + 4 + 8 + 8) = 48 ms, and 1 ms comes before it and 2 ms after it."""
    found = optimum(build("hanayo", 2, 2), Costs(forward=[1, 4, 4, 1], backward=[2, 8, 8, 2], per="stage"), seconds=30)
    assert found.proven
    assert found.makespan == found.bound == 1 + 48 + 2


def test_settings_are_simulated_together_as_they_are_alone() -> None:
    forward = np.array([[1, 4, 4, 11], [11, 4, 4, 1], [5, 5, 5, 5]])
    schedule = build("zb-v", 2, 4)
    together = simulate(schedule, Costs(forward=forward, backward=2 * forward, per="stage"))
    alone = [simulate(schedule, Costs(forward=row, backward=2 * row, per="stage")) for row in forward]
    assert together.start.tolist() == [each.start.tolist() for each in alone]
    assert durations(schedule, Costs(forward=forward, backward=1, per="stage")).shape == (3, schedule.kind.size)


def test_replicas_run_the_same_stages() -> None:
    schedule = build("interleaved", 2, 2)
    alone = simulate(schedule, UNEVEN)
    step = hybrid_step(schedule, UNEVEN, 3, ring_step=5)
    assert step.timeline.end.reshape(3, -1).tolist() == 3 * [alone.end.tolist()]
    between = Costs(forward=[1, 4, 4, 11], backward=[2, 8, 8, 22], per="stage", p2p_between=[[0, 3], [3, 0]])
    assert hybrid_step(schedule, between, 2, ring_step=5).timeline.end.reshape(2, -1).tolist() == 2 * [
        simulate(schedule, between).end.tolist()
    ]


@examples(30)
@given(size=sizes(), data=st.data())
def test_a_thread_sleeps_as_long_as_an_operation_takes(size: Size, data: st.DataObject) -> None:
    schedule = size.build()
    costs = data.draw(settings_per_stage(schedule)).costs()
    timeline = simulate(schedule, costs)
    assert running_times(schedule, costs) == pytest.approx(timeline.end - timeline.start)


def test_a_time_per_stage_belongs_to_its_stage_alone() -> None:
    assert [UNEVEN.duration("F", stage) for stage in range(4)] == [1, 4, 4, 11]
    assert UNEVEN.duration("W", 3) == 11
    assert (UNEVEN.stages, UNEVEN.devices) == (4, None)
    assert Costs(forward=[1, 4, 4, 11], backward=[2, 8, 8, 22]) != UNEVEN
    same = Costs(forward=3, backward=6, per="stage")
    assert (same.stages, same.duration("F", 99)) == (None, 3)
    assert (
        simulate(build("interleaved", 2, 2), same).makespan == simulate(build("interleaved", 2, 2), Costs(forward=6, backward=12)).makespan
    )
    assert UNEVEN.longer(2).duration("F", 3) == 22
    with refusal("out-of-range", "stages 0 to 3", 4):
        UNEVEN.duration("F", 4)


def test_what_does_not_fit_is_refused_in_words() -> None:
    with refusal("does-not-fit", "for 4 stages", "has 6", "6 stages"):
        simulate(build("1f1b", 6, 2), UNEVEN)
    with refusal("does-not-fit", "stages", "forward 2", "backward 3"):
        Costs(forward=[1, 2], backward=[1, 2, 3], per="stage")
    with refusal("does-not-fit", "p2p_between is for 3 devices", "has 2"):
        simulate(build("interleaved", 2, 2), Costs(forward=1, backward=2, per="stage", p2p_between=[1, 1]))
    with refusal("unknown-name", "stage", "'stages'"):
        Costs(forward=1, backward=2, per="stages")
    with refusal("per-stage", "stages"):
        UNEVEN.slower([0], 2)
    with refusal("conflicting-arguments", "chunks"):
        UNEVEN.duration("F", 0, chunks=2)


def test_the_oracle_tells_stages_from_devices() -> None:
    """A planted fault: stages that are taken for devices give other times."""
    setting = Setting((1.0, 4.0, 4.0, 11.0), (2.0, 8.0, 8.0, 22.0), (0.5,) * 4, 0.0, per="stage")
    schedule = build("interleaved", 2, 2)
    wrong = oracle.uniform(2, 10.0, 20.0)
    assert float(makespan(schedule, setting)) == simulate(schedule, UNEVEN).makespan != float(makespan(schedule, wrong))
