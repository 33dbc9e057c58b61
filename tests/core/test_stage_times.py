"""Test costs with one time for each stage or each microbatch: chunks of a device, and microbatches, can take different times."""

from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from cases import in_turn, refusal
from checks import small, spans
from hypothesis import given
from hypothesis import strategies as st
from oracle import Setting, critical_path, nodes, partners, times, works
from profiles import examples
from shortest import shortest
from strategies import Size, eighths, legal_orders, links, quarters, sizes

from hybridlab import REGISTRY, Costs, Schedule, build, hybrid_step, simulate
from hybridlab.automatic.for_times import templates_of, without_pairs
from hybridlab.bound import lower_bound, optimum
from hybridlab.simulation import durations, running_times

UNEVEN = Costs(forward=[1, 4, 4, 11], backward=[2, 8, 8, 22], per="stage")
ROUNDING = 1 + 1e-12


@st.composite
def settings_per_stage(draw: st.DrawFn, schedule: Schedule) -> Setting:
    """Draw times of every stage, of every microbatch, or of both, with exact sums in binary; a time can be zero."""
    per: str | tuple[str, str] = draw(st.sampled_from(["stage", "microbatch", ("device", "microbatch"), ("stage", "microbatch")]))
    sizes = {"device": schedule.devices, "stage": schedule.stages, "microbatch": schedule.microbatches}

    rng, shape = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), [sizes[axis] for axis in ([per] if isinstance(per, str) else per)]

    def rows(most: int, parts: int) -> tuple[Any, ...]:
        values = rng.integers(0, draw(st.integers(0, most)), shape, endpoint=True) / parts
        return tuple(tuple(each) if isinstance(each, list) else each for each in values.tolist())

    between = draw(links(schedule.devices, quarters))
    return Setting(rows(200, 4), rows(200, 4), rows(8, 8), draw(quarters), draw(eighths), between, per)


def makespan(schedule: Schedule, setting: Setting) -> Any:
    return max(end for _, end in times(nodes(schedule), setting, schedule.chunks, together=partners(schedule)).values())


@in_turn("name", sorted(REGISTRY))
@examples(40)
@given(data=st.data())
def test_every_schedule_has_the_times_of_the_oracle(name: str, data: st.DataObject) -> None:
    schedule = data.draw(sizes(name)).build()
    setting = data.draw(settings_per_stage(schedule))
    timeline = simulate(schedule, setting.costs())
    expected = times(nodes(schedule), setting, schedule.chunks, together=partners(schedule))
    busy = [float(work) for work in works(nodes(schedule), setting, schedule.chunks, partners(schedule))]
    if "stage" in setting.per or not schedule.chunks & (schedule.chunks - 1):
        assert spans(timeline) == expected
        assert timeline.busy.tolist() == busy
    else:  # a third of a time is not exact in binary
        assert timeline.busy == pytest.approx(busy)
        late = (abs(a - b) for node, span in spans(timeline).items() for a, b in zip(span, expected[node], strict=True))
        assert max(late) <= small(timeline)


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


@in_turn(
    "per, forward, backward",
    [
        ("stage", [32, 32, 1, 1], [1, 1, 32, 32]),
        ("microbatch", [1, 1, 1, 32], [32, 32, 1, 1]),
        (("device", "microbatch"), [[1, 1, 1, 32], [1, 1, 1, 32]], [32, 32, 1, 1]),
    ],
)
def test_no_bound_forgets_pairs_of_unlike_operations(per: Any, forward: Any, backward: Any) -> None:
    """A pair saves the shorter of its two times. These are of other stages and microbatches, so a bound must not pair like with like."""
    costs = Costs(forward=forward, backward=backward, overlap=1, per=per)
    template = templates_of(2, 4, chunks=2)[1]
    assert lower_bound(template, without_pairs(template, costs), memory=4) <= simulate(build("dualpipe-v", 2, 4), costs).makespan


@in_turn(
    "per, forward, backward",
    [
        ("microbatch", (9.0, 1.0, 2.0), (3.0, 7.0, 1.0)),
        (("device", "microbatch"), ((9.0, 1.0, 2.0), (1.0, 1.0, 8.0)), ((2.0, 2.0, 9.0), (1.0, 6.0, 3.0))),
    ],
)
def test_the_shortest_order_of_unlike_microbatches_is_that_of_all_orders(per: Any, forward: Any, backward: Any) -> None:
    """The solver takes equal microbatches in the order of their numbers. It must not do so if their times differ."""
    schedule = build("1f1b", 2, 3)
    shares = (0.5,) * 3 if per == "microbatch" else ((0.5,) * 3,) * 2
    setting = Setting(forward, backward, shares, 1.0, per=per)
    room = [Fraction(peak) for peak in simulate(schedule, setting.costs()).peak_activations.tolist()]
    least = shortest(schedule, setting, room, Fraction(1000))
    found = optimum(schedule, setting.costs(), seconds=30)
    assert found.proven
    assert found.makespan == least >= lower_bound(schedule, setting.costs())


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


def test_a_time_per_microbatch_belongs_to_its_microbatch_alone() -> None:
    """By hand, for two devices: 0F0 takes 1, 0F1 takes 3, and a backward takes as long as its forward."""
    costs, schedule = Costs(forward=[1, 3], backward=[1, 3], per="microbatch"), build("1f1b", 2, 2)
    assert simulate(schedule, costs).start.tolist() == [0, 1, 4, 10, 1, 2, 4, 7]
    assert (costs.devices, costs.stages, costs.microbatches) == (None, None, 2)
    assert [costs.duration(kind, 5, microbatch=1) for kind in "FBIW"] == [3, 3, 1.5, 1.5]
    slow = costs.slower([1], 2, of=2)
    assert (slow.per, slow.forward.tolist(), slow.slower([0], 10).forward.tolist()) == (
        ("device", "microbatch"),
        [[1, 3], [2, 6]],
        [[10, 30], [2, 6]],
    )
    assert slow.repeated(2).forward.tolist() == [[1, 3], [2, 6], [1, 3], [2, 6]]
    assert hybrid_step(schedule, slow, 2, ring_step=1).timeline.end.reshape(2, -1).tolist() == 2 * [simulate(schedule, slow).end.tolist()]
    same = Costs(forward=[[1], [2]], backward=3, per=["stage", "microbatch"])
    assert (same.stages, same.microbatches, same.table(2).shape) == (2, None, (4, 2))
    assert simulate(schedule, same) == simulate(schedule, Costs(forward=[1, 2], backward=3, per="stage"))
    batch = Costs(forward=np.arange(12.0).reshape(3, 2, 2), backward=1, per=("device", "microbatch"), p2p=[[0], [1], [2]])
    alone = [
        simulate(schedule, Costs(forward=forward, backward=1, per=("device", "microbatch"), p2p=p2p))
        for p2p, forward in enumerate(batch.forward)
    ]
    assert simulate(schedule, batch).end.tolist() == [each.end.tolist() for each in alone]


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
    lengths = Costs(forward=[1, 2, 3], backward=2, per="microbatch")
    with refusal("does-not-fit", "3 microbatches", "has 4"):
        simulate(build("1f1b", 2, 4), lengths)
    with refusal("missing-argument", "microbatch=3"):
        lengths.duration("F", 0)
    with refusal("out-of-range", "microbatches 0 to 2", 3):
        lengths.duration("F", 0, microbatch=3)
    with refusal("per-microbatch", "together"):
        lengths.pairs(2)
    with refusal("does-not-fit", "device and microbatch"):
        lengths.slower([0], 2, of=2).to_csv()
    with refusal("does-not-fit", "microbatches", "forward 2", "backward 3"):
        Costs(forward=[[1, 2], [3, 4]], backward=[1, 2, 3], per=("stage", "microbatch"))
    with refusal("does-not-fit", "before the last two", "forward (3,)", "backward (2,)"):
        Costs(forward=np.ones((3, 1, 1)), backward=np.ones((2, 1, 1)), per=("stage", "microbatch"))
    for per in (("microbatch", "stage"), ("stage",), [[], 1], ("device", "stage")):
        with refusal("unknown-name", "('stage', 'microbatch')"):
            Costs(forward=1, backward=2, per=per)


def test_the_oracle_tells_stages_from_devices() -> None:
    """A planted fault: stages that are taken for devices give other times."""
    setting = Setting((1.0, 4.0, 4.0, 11.0), (2.0, 8.0, 8.0, 22.0), (0.5,) * 4, 0.0, per="stage")
    schedule = build("interleaved", 2, 2)
    wrong = oracle.uniform(2, 10.0, 20.0)
    assert float(makespan(schedule, setting)) == simulate(schedule, UNEVEN).makespan != float(makespan(schedule, wrong))
