"""Test costs that are taken from timelines: exact on simulated ones, and sensible on measured ones."""

from pathlib import Path

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from strategies import Size, quarters, sizes

from hybridlab import REGISTRY, Costs, Schedule, Timeline, build, hybrid_step, rank, simulate

TORCH = Path(__file__).resolve().parents[1] / "data" / "torch_trace_rank*.json.gz"
SPLIT = {name for name in REGISTRY if "W" in str(build(name, 4, 8))}
PAIRED = {name for name in REGISTRY if "(" in str(build(name, 4, 8))}
times = st.integers(1, 100).map(lambda number: number / 4)  # sums of quarters are exact
per_device = st.lists(times, min_size=4, max_size=4)
shares = st.lists(st.sampled_from([0, 0.25, 0.5, 0.75, 1]), min_size=4, max_size=4)


@in_turn("name", REGISTRY)
@examples(40)
@given(forward=per_device, backward=per_device, share=shares, p2p=quarters, overlap=st.sampled_from([0, 0.25, 0.5, 1]))
def test_a_simulated_timeline_gives_its_costs_back(
    name: str, forward: list[float], backward: list[float], share: list[float], p2p: float, overlap: float
) -> None:
    """A backward that is not split does not show its parts, and only overlapped pairs show what they save."""
    costs = Costs(
        forward=forward, backward=backward, weight_share=share if name in SPLIT else 0.5, p2p=p2p, overlap=overlap if name in PAIRED else 0
    )
    timeline = simulate(build(name, 4, 8), costs)
    found = Costs.from_timeline(timeline)
    assert (found.forward.tolist(), found.backward.tolist()) == (forward, backward)
    assert found.weight_share == pytest.approx(np.broadcast_to(costs.weight_share, 4), rel=1e-12)
    assert found.overlap == pytest.approx(costs.overlap, rel=1e-12)
    assert (found.p2p.tolist(), found.unit, found.per) == ([p2p], "ms", "device")
    assert simulate(timeline.schedule, found).start == pytest.approx(timeline.start, rel=1e-12)


@examples(60)
@given(size=sizes(), data=st.data(), unit=st.sampled_from(["s", "us", None]))
def test_the_makespan_is_that_of_the_timeline(size: Size, data: st.DataObject, unit: str | None) -> None:
    """It holds for per="stage" and for latencies that differ from link to link, even where a latency cannot be told from a busy device."""
    stages = size.build().stages
    drawn = [data.draw(st.lists(times, min_size=stages, max_size=stages)) for _ in range(2)]
    between = np.array(data.draw(st.lists(quarters, min_size=size.devices**2, max_size=size.devices**2))).reshape(
        size.devices, size.devices
    )
    np.fill_diagonal(between, 0)
    costs = Costs(forward=drawn[0], backward=drawn[1], weight_share=0.25, p2p_between=between, unit=unit, per="stage")
    timeline = simulate(size.build(), costs)
    found = Costs.from_timeline(timeline, per="stage", links=True)
    assert (found.forward.tolist(), found.backward.tolist()) == tuple(drawn)
    assert simulate(timeline.schedule, found).makespan == pytest.approx(timeline.makespan, rel=1e-12)
    assert found.unit == unit


@in_turn("name", sorted(REGISTRY.keys() - PAIRED))
@in_turn("per", ["microbatch", ("device", "microbatch"), ("stage", "microbatch")])
def test_microbatches_of_different_lengths_have_their_own_times(name: str, per: str | tuple[str, str]) -> None:
    schedule = build(name, 4, 8)
    tokens = np.array([1, 4, 2, 9, 3, 7, 5, 6])
    places = {"device": 4, "stage": schedule.stages}.get(per[0], 0)
    times = np.multiply.outer(2 + np.arange(places), tokens) if places else tokens
    costs = Costs(forward=2 * times, backward=4 * times, weight_share=0.25 if name in SPLIT else 0.5, p2p=1, per=per)
    timeline = simulate(schedule, costs)
    found = Costs.from_timeline(timeline, per=per)
    assert found == costs
    assert simulate(schedule, found).makespan == timeline.makespan


@in_turn("name", sorted(PAIRED))
def test_the_time_of_a_pair_is_not_the_time_of_its_operations(name: str) -> None:
    """Nearly all forwards and full backwards are in pairs here."""
    schedule = build(name, 2, 24)
    forward = [4.0 + stage for stage in range(schedule.stages)]
    backward = [10.0 + 3 * stage for stage in range(schedule.stages)]
    costs = Costs(forward=forward, backward=backward, overlap=0.5, per="stage")
    found = Costs.from_timeline(simulate(schedule, costs), per="stage")
    assert (found.forward.tolist(), found.backward.tolist(), found.overlap.tolist()) == (forward, backward, [0.5])


@in_turn("name", ["1f1b", "zb-h1", "gpipe"])
def test_each_link_gets_its_latency(name: str) -> None:
    costs = Costs(forward=4, backward=8, p2p_between=[0.5, 3, 1])
    found = Costs.from_timeline(simulate(build(name, 4, 8), costs), links=True)
    assert found.p2p_between is not None
    assert found.p2p_between.tolist() == [0.5, 3, 1]
    one = Costs.from_timeline(simulate(build(name, 4, 8), costs))
    assert (one.p2p.tolist(), one.p2p_between) == ([0.5], None)


def test_a_link_without_messages_has_the_median_of_the_others() -> None:
    between = [[0, 1, 9, 9], [2, 0, 3, 9], [9, 4, 0, 5], [9, 9, 6, 0]]
    found = Costs.from_timeline(simulate(build("1f1b", 4, 8), Costs(forward=4, backward=8, p2p_between=between)), links=True)
    assert found.p2p_between is not None
    expected = np.where(np.array(between) == 9, 3.5, between)
    assert found.p2p_between.tolist() == expected.tolist()


def test_a_slow_message_or_operation_changes_no_median() -> None:
    timeline = simulate(build("gpipe", 2, 4), Costs(forward=4, backward=8, p2p=1))
    late = np.where(timeline.start >= 10, 7.0, 0.0)  # the fifth forward and all that follows come later
    found = Costs.from_timeline(Timeline(timeline.schedule, timeline.start + late, timeline.end + late))
    assert (found.forward.tolist(), found.backward.tolist(), found.p2p.tolist()) == ([4, 4], [8, 8], [1])


def test_a_backward_that_is_not_split_has_the_given_share() -> None:
    timeline = simulate(build("1f1b", 2, 4), Costs(forward=4, backward=8))
    assert Costs.from_timeline(timeline).weight_share.tolist() == [0.5, 0.5]
    assert Costs.from_timeline(timeline, weight_share=0.4).weight_share.tolist() == [0.4, 0.4]


def test_messages_that_nobody_waited_for_have_no_latency() -> None:
    """On one device there are none. In this run each message comes while its receiver is busy."""
    assert Costs.from_timeline(simulate(build("interleaved", 1, 2, 2), Costs(forward=1, backward=2, p2p=5))).p2p.tolist() == [0]


def test_the_costs_of_a_mesh_are_those_of_all_its_ranks() -> None:
    step = hybrid_step(build("1f1b", 2, 4), Costs(forward=[1, 2], backward=[3, 5], p2p=0.5), 2, ring_step=1)
    assert Costs.from_timeline(step.timeline).backward.tolist() == [3, 5, 3, 5]


def test_costs_of_torchs_trace_rank_all_schedules() -> None:
    """The stages slept 3 ms in each forward, 3 in each input gradient and 2.5 in each weight gradient; a sleep is never shorter."""
    timeline = Timeline.from_chrome_trace(str(TORCH))
    stages = Costs.from_timeline(timeline, per="stage")
    assert (stages.forward > 3).all()
    assert (stages.backward > 5.5).all()
    assert stages.weight_share[0] == 1, "torch leaves all of stage 0's backward to W"
    assert (stages.weight_gradient[1:] > 2.5).all()
    assert 0 < stages.p2p[0] < 3
    devices = Costs.from_timeline(timeline)
    assert len(rank(devices, microbatches=8, seconds=0.05)) > 5


def test_costs_are_written_as_csv_and_read_back(tmp_path: Path) -> None:
    for costs in (
        Costs(forward=[1 / 3, 2], backward=[0.7, 5], weight_share=[0.25, 0.5], p2p=0.1),
        Costs(forward=[1, 2, 3], backward=4, p2p_between=[0.5, 0.25]),
        Costs(forward=1, backward=3, p2p_between=[[0, 1], [2, 0]]),
        Costs(forward=[1, 2], backward=[3, 4], overlap=0.75),
    ):
        path = tmp_path / "times.csv"
        path.write_text(costs.to_csv(), encoding="utf-8")
        again = Costs.from_csv(path)
        for name in ("forward", "backward", "weight_share", "p2p", "overlap"):
            assert np.array_equal(*np.broadcast_arrays(getattr(again, name), getattr(costs, name))), name
        assert np.array_equal(again.p2p_between, costs.p2p_between) or costs.p2p_between is None  # type: ignore[arg-type]


@in_turn(
    "wrong, code, words",
    [
        (build("1f1b", 2, 4), "wrong-type", ["Timeline"]),
        (3, "wrong-type", ["3"]),
        (simulate(build("1f1b", 2, 4), Costs(forward=[[1], [2]], backward=3)), "several-settings", ["at()"]),
    ],
)
def test_what_is_no_timeline_of_one_setting_is_refused(wrong: object, code: str, words: list[str]) -> None:
    with refusal(code, *words):
        Costs.from_timeline(wrong)  # type: ignore[arg-type]


def test_other_refusals() -> None:
    timeline = simulate(build("1f1b", 2, 4), Costs(forward=1, backward=3))
    turned = simulate(Schedule("turned", build("1f1b", 2, 4).orders[::-1]), Costs(forward=[1, 2], backward=[3, 5], per="stage"))
    with refusal("other-placement", "[1, 0]", "per='stage'"):
        Costs.from_timeline(turned)
    assert Costs.from_timeline(turned, per="stage").forward.tolist() == [1, 2]
    with refusal("unknown-name", "per"):
        Costs.from_timeline(timeline, per="rank")
    paired = simulate(build("dualpipe-v", 2, 4), Costs(forward=1, backward=3))
    with refusal("overlapped-pairs", "microbatch", "per='stage'"):
        Costs.from_timeline(paired, per=("stage", "microbatch"))
    with refusal("not-true-or-false", "links"):
        Costs.from_timeline(timeline, links=1)  # type: ignore[arg-type]
    with refusal("out-of-range", "weight_share"):
        Costs.from_timeline(timeline, weight_share=1.5)
    with refusal("several-settings", "to_csv()"):
        Costs(forward=[[1], [2]], backward=3).to_csv()
