"""Test the hybrid step: corrected numbers of the published report, properties of all schedules, and a second way to time it."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import oracle
import pytest
import step_oracle
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import outcome, usual_or_junk
from profiles import examples
from strategies import Size, batches, crossing_orders, one_by_one, quarters, settings_of, sizes, supported

from hybridlab import (
    BF16,
    FP16,
    FP32,
    INT8,
    REGISTRY,
    Costs,
    HybridStep,
    Op,
    Schedule,
    WireFormat,
    build,
    hybrid_step,
    simulate,
)
from hybridlab.collectives import Link, all_reduce_time, ring_all_reduce
from hybridlab.step import step as step_module

REPORT = Costs(forward=50, backward=80)  # ms; reading A of the report: of one stage
HALVES = Costs(forward=25, backward=40)  # reading B: of the whole model, on two stages
LINK = Link(5e-6, 25e9)
names = in_turn("name", sorted(REGISTRY))


def report_step(microbatches: int = 8, costs: Costs = REPORT, **how: Any) -> HybridStep:
    return hybrid_step(build("1f1b", 2, microbatches), costs, 2, **({"ring_step": 20} | how))


# The report's numbers, corrected


def test_the_reports_total_and_its_speedup_put_right() -> None:
    """The total of 1210 ms is right, but the speedup of 0.86x is not.

    The four GPUs do four times the work of the report's baseline.
    """
    step = report_step()
    assert (step.makespan, step.all_reduce_time, step.exposed_communication) == (1210, 40, 40)
    assert step.makespan == 1040 + 40 + 130
    assert step.single_device_time == 2 * 2 * 8 * 130 == 4160
    assert round(step.speedup, 2) == 3.44
    assert round(step.efficiency, 2) == 0.86
    assert round(step.communication_share, 3) == 0.033
    assert 1040 / step.makespan == pytest.approx(0.86, abs=0.005), "the report's baseline: a quarter of the work"


def test_twenty_ms_more_of_communication_lengthen_what_they_are_divided_by() -> None:
    """Test 4 of the report: 60 of 1230 ms are 4.9 %, and 40 of 1210 ms are 3.3 %; the report divides 60 by 1210."""
    more = report_step(ring_step=30)
    assert (more.makespan, round(100 * more.communication_share, 1)) == (1230, 4.9)
    assert round(100 * report_step().communication_share, 1) == 3.3


def test_the_published_configuration_laid_out_whole() -> None:
    """K = 3, D = 4, M = 6 in unit times: 16 time steps, not 8 rows; 156 operations and optimisers, not 144 events."""
    step = hybrid_step(build("1f1b", 3, 6), Costs(forward=1, backward=1), 4)
    kinds = Counter(row["kind"] for row in step.timeline.to_rows())
    assert kinds == {"F": 72, "B": 72, "optimiser": 12, "send": 96, "receive": 96, "reduce-scatter": 36, "all-gather": 36}
    assert kinds["F"] + kinds["B"] + kinds["optimiser"] == 144 + 12
    assert step.makespan == 16


def test_the_other_reading() -> None:
    """Here 50 and 80 ms are for the whole model, so each stage has half of them."""
    step = report_step(costs=HALVES)
    assert (step.makespan, step.single_device_time) == (625, 2080)
    assert round(step.speedup, 2) == 3.33
    assert round(step.communication_share, 3) == 0.064


def test_eight_microbatches_shared_by_the_replicas() -> None:
    assert [round(report_step(4, costs).speedup, 2) for costs in (REPORT, HALVES)] == [3.01, 2.85]


@in_turn(
    "costs, totals, speedups",
    [
        (REPORT, [430, 690, 1210, 2250], [2.42, 3.01, 3.44, 3.70]),
        (HALVES, [235, 365, 625, 1145], [2.21, 2.85, 3.33, 3.63]),
    ],
)
def test_more_microbatches_pay(costs: Costs, totals: list[float], speedups: list[float]) -> None:
    """Benchmark 1: with 2, 4, 8, 16 microbatches the speedup rises and the share of communication falls."""
    steps = [report_step(microbatches, costs) for microbatches in (2, 4, 8, 16)]
    assert [step.makespan for step in steps] == totals
    assert [round(step.speedup, 2) for step in steps] == speedups
    shares = [step.communication_share for step in steps]
    assert shares == sorted(shares, reverse=True)
    if costs is REPORT:
        assert [round(100 * share, 1) for share in (shares[0], shares[-1])] == [9.3, 1.8]


def test_the_same_four_gpus_cut_three_ways() -> None:
    """This is benchmark 2 with exactly 4 GPUs and 8 microbatches in all, and with the model divided among the stages."""
    for (stages, replicas), total in {(1, 4): 380, (2, 2): 365, (4, 1): 357.5}.items():
        costs = Costs(forward=50 / stages, backward=80 / stages)
        assert hybrid_step(build("1f1b", stages, 8 // replicas), costs, replicas, ring_step=20).makespan == total


def test_all_reduce_of_one_to_eight_replicas() -> None:
    """Benchmark 3: 0, 20, 60, 140 ms at 10 ms a step, and what share of the total that is."""
    steps = [hybrid_step(build("1f1b", 2, 8), REPORT, replicas, ring_step=10) for replicas in (1, 2, 4, 8)]
    assert [step.all_reduce_time for step in steps] == [0, 20, 60, 140]
    assert [round(100 * step.communication_share, 2) for step in steps] == [0, 1.68, 4.88, 10.69]


# Properties over the registry


@st.composite
def steps(draw: st.DrawFn, name: str | None = None, most: int = 60) -> tuple[Size, oracle.Setting, int, dict[str, Any]]:
    """A size with at most ``most`` operations in a pipeline, the costs of each device, the replicas, and other arguments of the step."""
    size = draw(sizes(name).filter(lambda size: 3 * size.devices * size.chunks * size.microbatches <= most))
    how = {"ring_step": draw(quarters), "optimiser": draw(quarters), "overlap": draw(st.booleans())}
    return size, draw(settings_of(size.devices, exact=True)), draw(st.integers(1, 4)), how


@names
@examples(40)
@given(data=st.data())
def test_serial_is_the_sum_of_its_parts_and_overlap_never_slower(name: str, data: st.DataObject) -> None:
    size, setting, replicas, how = data.draw(steps(name, most=200))
    schedule = size.build()
    pipeline = simulate(schedule, setting.costs())
    serial, beside = (hybrid_step(schedule, setting.costs(), replicas, **(how | {"overlap": each})) for each in (False, True))
    copies, update = schedule.copies, schedule.copies * how["optimiser"]
    rings = copies * 2 * (replicas * copies - 1) * how["ring_step"]
    assert serial.all_reduce_time == beside.all_reduce_time == pytest.approx(rings)
    assert serial.makespan == pytest.approx(pipeline.makespan + rings + update)
    assert serial.exposed_communication == pytest.approx(rings)
    small = 1e-9 * serial.makespan
    assert beside.makespan <= serial.makespan + small
    assert beside.makespan >= pipeline.makespan + update - small
    for device in range(size.devices):
        held = set(schedule.stage[schedule.device == device].tolist())
        ready = [pipeline.end[schedule.stage == stage].max() for stage in held]
        assert beside.makespan >= min(ready) + rings + update - small
    assert -small <= beside.exposed_communication <= rings + small
    for step in (serial, beside):
        assert step.single_device_time == pytest.approx(float(replicas * pipeline.busy.sum() + size.devices * how["optimiser"]))
        assert step.peak_activations.tolist() == pipeline.peak_activations.tolist() * replicas
        assert 0 <= step.communication_share <= 1
        assert step.speedup <= step.mesh.size * (1 + 1e-12)
        busy = float(step.timeline.busy.sum())
        assert busy == pytest.approx(float(replicas * (pipeline.busy.sum() + size.devices * update)))


@lru_cache(maxsize=2)
def all_rows(step: HybridStep) -> list[dict[str, Any]]:
    return step.timeline.to_rows()


def rows_of(step: HybridStep, *kinds: str) -> list[dict[str, Any]]:
    return [row for row in all_rows(step) if row["kind"] in kinds]


def check_rings(step: HybridStep, overlap: bool) -> None:
    """A ring has 2 (ranks - 1) steps, each on all its ranks at once, and starts after the stage's last backward on all of them."""
    mesh, schedule = step.mesh, step.timeline.schedule
    hops = rows_of(step, "reduce-scatter", "all-gather")
    ranks = mesh.replicas * schedule.copies
    assert len(hops) == 2 * (ranks - 1) * ranks * schedule.stages
    ops = rows_of(step, "F", "B", "I", "W")
    of_stage = defaultdict(list)
    for hop in hops:
        of_stage[hop["stage"]].append(hop)
    for stage, ring in of_stage.items():
        ended = [row["end"] for row in ops if row["stage"] == stage or not overlap]
        assert min(hop["start"] for hop in ring) >= max(ended), "no hop starts before the last backward on any replica"
        group = [replica * mesh.stages + path[stage] for replica in range(mesh.replicas) for path in schedule.paths]
        assert set(group) == {row["device"] for row in ops if row["stage"] == stage}, "a ring joins all that hold the stage"
        assert {(hop["device"], hop["peer"]) for hop in ring} == set(pairwise([*group, group[0]]))
        assert schedule.copies > 1 or tuple(pairwise([*group, group[0]])) == mesh.ring(schedule.device_of[stage])
        for phase in ("reduce-scatter", "all-gather"):
            for number in range(ranks - 1):
                together = [hop for hop in ring if (hop["kind"], hop["step"]) == (phase, number)]
                assert len(together) == ranks
                assert len({(hop["start"], hop["end"]) for hop in together}) == 1
                assert {hop["chunk"] for hop in together} == set(range(ranks))
    for device in range(mesh.size):
        mine = sorted((hop["start"], hop["end"]) for hop in hops if hop["device"] == device)
        assert all(earlier[1] <= later[0] for earlier, later in pairwise(mine)), "hops of a device do not overlap"


def check_chunks(step: HybridStep) -> None:
    """Follow the pieces: in each step, a rank must send what it received in the step before.

    At the end, it must have received every piece.
    """
    hops = rows_of(step, "reduce-scatter", "all-gather")
    ranks = step.mesh.replicas * step.timeline.schedule.copies
    for stage in {hop["stage"] for hop in hops}:
        ring = [hop for hop in hops if hop["stage"] == stage]
        sends = {(hop["device"], hop["kind"], hop["step"]): hop for hop in ring}
        for hop in ring:
            last = hop["step"] == ranks - 2
            key = ("all-gather", 0) if last and hop["kind"] == "reduce-scatter" else (hop["kind"], hop["step"] + 1)
            onward = sends.get((hop["peer"], *key))
            assert onward is None or onward["chunk"] == hop["chunk"]
        for rank in {hop["device"] for hop in ring}:
            heard = {hop["chunk"] for hop in ring if hop["peer"] == rank and hop["kind"] == "all-gather"}
            own = {hop["chunk"] for hop in ring if hop["device"] == rank and (hop["kind"], hop["step"]) == ("all-gather", 0)}
            assert heard | own == set(range(ranks))
            assert not heard & own


def check_messages(step: HybridStep, setting: oracle.Setting) -> None:
    """Each message has one send and one receive, between the end of its operation and the start of the operation that needs it."""
    schedule = step.timeline.schedule
    ops = {(row["device"], row["op"]): row for row in rows_of(step, "F", "B", "I", "W")}
    sends, receives = rows_of(step, "send"), rows_of(step, "receive")
    assert len(sends) == len(receives) == int(schedule.messages.sum())
    assert np.bincount([row["device"] for row in sends], minlength=step.mesh.size).tolist() == schedule.messages.tolist()
    arrived = {(row["device"], row["op"].split()[1]): row for row in receives}
    for row in sends:
        source = ops[row["device"], row["op"].split()[1]]
        assert row["start"] == source["end"], "a send starts where its operation ends"
        ends = (row["device"], row["peer"]) if row["kind"] == "send" else (row["peer"], row["device"])
        late = setting.hop(*(rank % len(setting.forward) for rank in ends))
        assert row["end"] - row["start"] == pytest.approx(late)
        assert (row["stage"], row["microbatch"]) == (source["stage"], source["microbatch"])
        receive = arrived.pop((row["peer"], source["op"]))
        assert (receive["peer"], receive["start"], receive["end"]) == (row["device"], row["start"], row["end"])
        assert step.mesh.coordinates(row["peer"]).replica == step.mesh.coordinates(row["device"]).replica
    assert not arrived
    received = {(row["device"], row["op"].split()[1]): row["end"] for row in receives}
    for (device, _), row in ops.items():
        for need in (str(need) for need in schedule.needs(Op.parse(row["op"]))):
            end = ops[device, need]["end"] if (device, need) in ops else received[device, need]
            assert end <= row["start"], "what an operation needs is there before it starts"


def check_optimisers(step: HybridStep, optimiser: float) -> None:
    rows = rows_of(step, "optimiser")
    assert [row["device"] for row in rows] == list(range(step.mesh.size))
    before = rows_of(step, "F", "B", "I", "W", "reduce-scatter", "all-gather")
    for row in rows:
        assert row["start"] >= max(other["end"] for other in before if other["device"] == row["device"])
        assert row["end"] - row["start"] == pytest.approx(step.timeline.schedule.copies * optimiser)


def every_check(step: HybridStep, setting: oracle.Setting, how: dict[str, Any]) -> None:
    check_rings(step, how["overlap"])
    check_chunks(step)
    check_messages(step, setting)
    check_optimisers(step, how["optimiser"])


@names
@examples(25)
@given(data=st.data())
def test_messages_rings_and_optimisers_keep_to_the_rules(name: str, data: st.DataObject) -> None:
    size, setting, replicas, how = data.draw(steps(name))
    every_check(hybrid_step(size.build(), setting.costs(), replicas, **how), setting, how)


# Comparison with a second clock


@names
@examples(12)
@given(data=st.data(), slow=st.booleans())
def test_the_step_equals_a_naive_loop_over_events(name: str, data: st.DataObject, slow: bool) -> None:
    """All times must be exactly equal, even if each rank has its own speed."""
    size, setting, replicas, how = data.draw(steps(name, most=100))
    every = data.draw(settings_of(size.devices * replicas, exact=True)) if slow else setting
    equals_the_naive_loop(size.build(), every, replicas, how)


@examples(60)
@given(schedule=crossing_orders(), data=st.data(), replicas=st.integers(1, 2))
def test_rings_of_any_holders_keep_to_the_naive_loop_and_never_wait_in_a_circle(
    schedule: Schedule, data: st.DataObject, replicas: int
) -> None:
    """Two or three copies on shifted devices: rings share devices, so that some rings wait for other rings."""
    assert schedule.copies > 1
    setting = data.draw(settings_of(schedule.devices, exact=True))
    how = {"ring_step": data.draw(quarters), "optimiser": data.draw(quarters)}
    for overlap in (False, True):
        equals_the_naive_loop(schedule, setting, replicas, how | {"overlap": overlap})


def equals_the_naive_loop(schedule: Schedule, setting: oracle.Setting, replicas: int, how: dict[str, Any]) -> None:
    """Check that the step equals the naive loop; the setting has values for one pipeline's devices, or for all ranks."""
    devices, chunks = schedule.devices, schedule.chunks
    row = {divmod(rank, devices): rank % len(setting.forward) for rank in range(devices * replicas)}
    durations = {(rank, kind): setting.duration(kind, place, chunks) for rank, place in row.items() for kind in "FBIW"}
    saved = {rank: setting.saved(place, chunks) for rank, place in row.items()}
    others = (Fraction(setting.p2p), Fraction(how["ring_step"]) / chunks, Fraction(how["optimiser"]))
    orders, together = oracle.nodes(schedule), oracle.partners(schedule)
    pairs = [(one, other) for one, other in permutations(row, 2) if one[0] == other[0]]
    between = {(one, other): Fraction(setting.hop(row[one], row[other])) for one, other in pairs}
    wanted = step_oracle.Step(orders, replicas, durations, *others, how["overlap"], together, saved, between).run()
    step = hybrid_step(schedule, setting.costs(), replicas, **how)
    for row in rows_of(step, "F", "B", "I", "W"):
        place = step.mesh.coordinates(row["device"])
        times = wanted.ops[(place.replica, place.stage), (row["kind"], row["stage"], row["microbatch"])]
        assert [row["start"], row["end"]] == pytest.approx([float(time) for time in times])
    for stage, times in wanted.rings.items():
        ring = [row for row in rows_of(step, "reduce-scatter", "all-gather") if row["stage"] == stage]
        seen = [min(row["start"] for row in ring), max(row["end"] for row in ring)]
        assert how["ring_step"] == 0 or seen == pytest.approx([float(time) for time in times])
    for row in rows_of(step, "optimiser"):
        place = step.mesh.coordinates(row["device"])
        assert row["start"] == pytest.approx(float(wanted.optimisers[place.replica, place.stage][0]))
    assert step.makespan == pytest.approx(float(wanted.makespan))
    assert set(wanted.rings) == {row["stage"] for row in rows_of(step, "reduce-scatter")}


@examples(30)
@given(schedule=crossing_orders() | sizes().map(Size.build), overlap=st.booleans())
def test_equal_schedules_have_equal_steps(schedule: Schedule, overlap: bool) -> None:
    """The order of the rings depends only on the orders, not on the slots: a schedule that is read from text gets new slots."""
    how: dict[str, Any] = {"ring_step": 0.75, "overlap": overlap}
    again = Schedule.parse(str(schedule), name=schedule.name)
    one, other = (hybrid_step(each, Costs(forward=1, backward=2, p2p=0.25), 2, **how) for each in (schedule, again))
    assert one.timeline.to_rows() == other.timeline.to_rows()


# By hand


def times_of(step: HybridStep, kind: str) -> list[tuple[int, float, float]]:
    return [(row["device"], row["start"], row["end"]) for row in rows_of(step, kind)]


def test_a_small_step_by_hand() -> None:
    """K = 2, M = 1, D = 2: F = 1, B = 2, latency 0.5. Stage 1 ends at 4.5, and its ring runs while stage 0 still computes."""
    costs = Costs(forward=1, backward=2, p2p=0.5)
    step = hybrid_step(build("1f1b", 2, 1), costs, 2, ring_step=1, overlap=True, optimiser=3)
    ends = [(row["device"], row["op"], row["end"]) for row in rows_of(step, "F", "B")]
    one = [("0F0", 1), ("0B0", 7), ("1F0", 2.5), ("1B0", 4.5)]
    assert ends == [(rank, *ended) for rank, ended in zip([0, 0, 1, 1, 2, 2, 3, 3], one * 2, strict=True)]
    assert times_of(step, "reduce-scatter") == [(0, 7, 8), (1, 4.5, 5.5), (2, 7, 8), (3, 4.5, 5.5)]
    assert times_of(step, "all-gather") == [(0, 8, 9), (1, 5.5, 6.5), (2, 8, 9), (3, 5.5, 6.5)]
    assert times_of(step, "optimiser") == [(0, 9, 12), (1, 6.5, 9.5), (2, 9, 12), (3, 6.5, 9.5)]
    assert times_of(step, "send") == [(0, 1, 1.5), (1, 4.5, 5), (2, 1, 1.5), (3, 4.5, 5)]
    assert sorted(times_of(step, "receive")) == [(0, 4.5, 5), (1, 1, 1.5), (2, 4.5, 5), (3, 1, 1.5)]
    assert (step.makespan, step.exposed_communication, step.single_device_time) == (12, 2, 2 * 6 + 2 * 3)
    serial = hybrid_step(build("1f1b", 2, 1), costs, 2, ring_step=1, optimiser=3)
    assert {start for _, start, _ in times_of(serial, "reduce-scatter")} == {7}
    assert serial.makespan == 12, "stage 0 ends last and hides nothing, so overlap gains nothing here"


def test_two_copies_of_the_weights_by_hand() -> None:
    """Chimera, K = 2, M = 2, D = 1: stage 1 is done at 4.5 on both devices, stage 0 at 7; each has a ring of the two."""
    costs, how = Costs(forward=1, backward=2, p2p=0.5), {"ring_step": 1, "optimiser": 1.5}
    step = hybrid_step(build("chimera", 2, 2), costs, 1, overlap=True, **how)
    ends = [(row["device"], row["op"], row["end"]) for row in rows_of(step, "F", "B")]
    assert ends[:4] == [(0, "0F0", 1), (0, "1F1", 2.5), (0, "1B1", 4.5), (0, "0B0", 7)]
    assert ends[4:] == [(1, "0F1", 1), (1, "1F0", 2.5), (1, "1B0", 4.5), (1, "0B1", 7)]
    assert times_of(step, "reduce-scatter") == [(0, 4.5, 5.5), (0, 7, 8), (1, 4.5, 5.5), (1, 7, 8)]
    assert times_of(step, "all-gather") == [(0, 5.5, 6.5), (0, 8, 9), (1, 5.5, 6.5), (1, 8, 9)]
    assert times_of(step, "optimiser") == [(0, 9, 12), (1, 9, 12)], "each device updates two copies"
    assert (step.makespan, step.all_reduce_time, step.exposed_communication) == (12, 4, 2)
    assert step.single_device_time == 2 * 2 * 3 + 2 * 1.5, "one device has one copy"
    serial = hybrid_step(build("chimera", 2, 2), costs, 1, **how)
    assert times_of(serial, "reduce-scatter") == [(0, 7, 8), (0, 9, 10), (1, 7, 8), (1, 9, 10)]
    assert (serial.makespan, serial.exposed_communication) == (14, 4)


def test_a_pair_takes_its_own_time_on_every_rank() -> None:
    """Rank 2 (device 0 of replica 1) is twice as slow, and a pair saves half of its shorter operation."""
    schedule = build("dualpipe-v", 2, 4)
    step = hybrid_step(schedule, Costs(forward=[2, 2, 4, 2], backward=[4, 4, 8, 4], overlap=0.5), 2)
    everyone = step.timeline.schedule
    pairs = everyone.pairs
    assert pairs.size == 2 * schedule.pairs.size > 0
    takes = np.array([1 + 2 - 0.5, 1 + 2 - 0.5, 2 + 4 - 1, 1 + 2 - 0.5])[everyone.device[pairs]]
    for row in (pairs, pairs + 1):
        assert (step.timeline.end[row] - step.timeline.start[row]).tolist() == takes.tolist()


@in_turn("name", ["gpipe", "1f1b"])
def test_overlap_hides_nothing_where_the_first_stage_ends_last(name: str) -> None:
    """Without latency the last backward of stage 0 is the last operation of the step, and the ring of stage 0 must come after it."""
    serial, beside = (hybrid_step(build(name, 4, 8), REPORT, 4, ring_step=20, overlap=each) for each in (False, True))
    assert serial.makespan == beside.makespan == 11 * 130 + 120
    first = [row["end"] for row in rows_of(beside, "all-gather") if row["stage"] == 3 and row["step"] == 2]
    assert set(first) == {11 * 130 - 3 * 80 + 120}, "the last stage's ring is over long before"


def test_chunks_let_part_of_the_ring_hide() -> None:
    """In interleaved 1F1B the gradients of chunk 1 are finished first, and their ring runs beside the remaining operations."""
    serial, beside = (hybrid_step(build("interleaved", 4, 8, 2), REPORT, 4, ring_step=20, overlap=each) for each in (False, True))
    assert serial.exposed_communication == serial.all_reduce_time == 120
    assert beside.exposed_communication == 60
    assert serial.makespan - beside.makespan == 60


def test_a_slow_rank_keeps_its_whole_ring_waiting() -> None:
    """The setting is K = 2, D = 2, M = 1, and rank 3 (stage 1 of replica 1) is twice as slow."""
    costs = Costs(forward=1, backward=[2, 2, 2, 4])
    step = hybrid_step(build("1f1b", 2, 1), costs, 2, ring_step=1, overlap=True)
    assert times_of(step, "reduce-scatter") == [(0, 8, 9), (1, 6, 7), (2, 8, 9), (3, 6, 7)]
    assert (step.makespan, step.single_device_time) == (10, 14)


def test_one_replica_has_no_ring() -> None:
    for overlap in (False, True):
        step = hybrid_step(build("1f1b", 4, 8), REPORT, 1, ring_step=20, overlap=overlap, optimiser=5)
        assert (step.makespan, step.all_reduce_time, step.exposed_communication) == (11 * 130 + 5, 0, 0)
        assert rows_of(step, "reduce-scatter", "all-gather") == []
        starts = [start for _, start, _ in times_of(step, "optimiser")]
        assert starts == ([1190, 1270, 1350, 1430][::-1] if overlap else [1430] * 4)


@names
@in_turn("sizes, replicas", [((1, 1), 1), ((1, 1), 5), ((1, 2), 2), ((2, 1), 3), ((4, 2), 2), ((5, 1), 1)])
def test_the_smallest_and_oddest_sizes(name: str, sizes: tuple[int, int], replicas: int) -> None:
    devices, microbatches = supported(name, *sizes)
    for overlap in (False, True):
        how = {"ring_step": 3, "optimiser": 1, "overlap": overlap}
        every_check(
            hybrid_step(build(name, devices, microbatches), Costs(forward=1, backward=2, p2p=0.5), replicas, **how),
            oracle.uniform(devices, 1, 2, p2p=0.5),
            how,
        )


def test_nothing_takes_any_time() -> None:
    step = hybrid_step(build("1f1b", 2, 2), Costs(forward=0, backward=0), 2)
    assert (step.makespan, step.speedup, step.efficiency, step.communication_share) == (0, 0, 0, 0)


def test_communication_is_free_unless_it_is_priced() -> None:
    free = report_step(ring_step=None)
    assert (free.makespan, free.exposed_communication, free.all_reduce_time) == (1170, 0, 0)
    assert free.timeline.spans is not None
    assert free.timeline.spans.of("all-gather").nbytes.tolist() == [-1] * 4


def test_all_devices_idle_share_and_efficiency_are_one_whole() -> None:
    """The sum is 1 only without an optimiser, because every replica repeats the optimiser's work."""
    step = report_step()
    assert step.efficiency + step.timeline.bubble_ratio == pytest.approx(1)


# Batches of costs


@examples(30)
@given(data=st.data())
def test_a_batch_equals_its_settings_one_by_one(data: st.DataObject) -> None:
    size, _, replicas, how = data.draw(steps())
    schedule = size.build()
    shape, arguments = data.draw(batches(size.devices))
    batch = hybrid_step(schedule, Costs(**arguments), replicas, **how)
    assert batch.timeline.start.shape[:-1] == shape
    for setting, costs in one_by_one(shape, size.devices, arguments):
        one = hybrid_step(schedule, costs, replicas, **how)
        for quantity in ("makespan", "exposed_communication", "single_device_time", "speedup", "communication_share", "efficiency"):
            assert getattr(batch, quantity)[setting] == pytest.approx(getattr(one, quantity)), quantity
        assert batch.all_reduce_time == one.all_reduce_time
        assert batch.peak_activations[setting].tolist() == one.peak_activations.tolist()
        assert batch.timeline.at(*setting).to_rows() == one.timeline.to_rows()


# Rings over a link


def ring_bytes(parameters: int, replicas: int, wire: WireFormat) -> int:
    """Return all bytes of one ring, added up from the pieces that numpy cuts; each piece travels 2(D-1) times."""
    pieces = np.array_split(np.zeros(parameters), replicas)
    return 2 * (replicas - 1) * sum(wire.encode(piece, np.random.default_rng(0)).nbytes for piece in pieces)


WIRES = [FP32, FP16, BF16, INT8, WireFormat("INT8", block=256, scale="FP16"), WireFormat("INT8", stochastic=True)]


@examples(100)
@given(
    parameters=st.integers(0, 400),
    replicas=st.integers(1, 6),
    chunks=st.sampled_from([1, 2, 3]),
    wire=st.sampled_from(WIRES),
    latency=st.sampled_from([0, 5e-6, 1e-3]),
    bandwidth=st.sampled_from([1e3, 25e9]),
    unit=st.sampled_from(["us", "ms", "s"]),
)
def test_a_ring_over_a_link(
    parameters: int, replicas: int, chunks: int, wire: WireFormat, latency: float, bandwidth: float, unit: str
) -> None:
    """For each chunk the ring takes 2(D-1) messages of the largest piece; its bytes are the bytes of the encoded packets."""
    schedule = build("1f1b", 2, 2) if chunks == 1 else build("interleaved", 2, 2, chunks)
    how = {"link": Link(latency, bandwidth), "gradient_bytes": 2 * parameters, "wire": wire}
    step = hybrid_step(schedule, Costs(forward=1, backward=2, unit=unit), replicas, **how)
    of_a_chunk = [len(part) for part in np.array_split(np.zeros(parameters), chunks)]
    largest = math.ceil(of_a_chunk[0] / replicas)
    seconds = 2 * (replicas - 1) * chunks * (latency + wire.nbytes(largest) / bandwidth)
    assert step.all_reduce_time == pytest.approx(seconds * {"us": 1e6, "ms": 1e3, "s": 1}[unit])
    hops = rows_of(step, "reduce-scatter", "all-gather")
    assert sum(hop["nbytes"] for hop in hops) == 2 * sum(ring_bytes(each, replicas, wire) for each in of_a_chunk)


def test_bytes_can_be_written_as_people_write_them() -> None:
    """Row 69 of the claims: 20 ms a step between two replicas is 0.9 GB of gradients over 22.5 GB/s."""
    step = hybrid_step(build("1f1b", 2, 8), REPORT, 2, link=Link(0, 22.5e9), gradient_bytes=np.float32(0.9e9))
    assert step.all_reduce_time == pytest.approx(40)


@in_turn("wire, total", [(FP32, 8640), (FP16, 4320), (INT8, 2448)])
def test_the_bytes_of_the_published_configuration(wire: WireFormat, total: int) -> None:
    """12 devices x 6 messages of 30 numbers; the published 2160 leave the 4 bytes of each scale out."""
    how = {"link": Link(0, 1e9), "gradient_bytes": 2 * 120, "wire": wire}
    hops = rows_of(hybrid_step(build("1f1b", 3, 6), REPORT, 4, **how), "reduce-scatter", "all-gather")
    assert sum(hop["nbytes"] for hop in hops) == total


@in_turn("replicas", [1, 2, 3])
@in_turn("wire", WIRES)
def test_a_device_with_two_copies_moves_twice_the_gradients(wire: WireFormat, replicas: int) -> None:
    """The rings have 2D ranks, and the given bytes are for one copy."""
    how = {"link": Link(1e-6, 1e9), "gradient_bytes": 2 * 101, "wire": wire}
    step = hybrid_step(build("dualpipe", 4, 8), REPORT, replicas, **how)
    hops = rows_of(step, "reduce-scatter", "all-gather")
    assert sum(hop["nbytes"] for hop in hops) == 4 * ring_bytes(101, 2 * replicas, wire)
    largest = wire.nbytes(math.ceil(101 / (2 * replicas)))
    assert step.all_reduce_time == pytest.approx(2 * 2 * (2 * replicas - 1) * (1e-3 + largest / 1e6))


@in_turn("wire", WIRES)
def test_the_ring_of_a_step_sends_what_the_ring_on_arrays_sends(wire: WireFormat) -> None:
    """Both must have equal phases, steps, senders, receivers, chunks and bytes, for each rank and each hop."""
    values = np.random.default_rng(1).standard_normal((5, 23))
    ring = ring_all_reduce(values, wire, rng=np.random.default_rng(2))
    step = hybrid_step(build("1f1b", 1, 1), REPORT, 5, link=LINK, gradient_bytes=2 * 23, wire=wire)
    columns = ("kind", "step", "device", "peer", "chunk", "nbytes")
    ours = {tuple(hop[name] for name in columns) for hop in rows_of(step, "reduce-scatter", "all-gather")}
    theirs = {
        (hop.phase, hop.step, *(int(column[place]) for column in (hop.sender, hop.receiver, hop.chunk, hop.nbytes)))
        for hop in ring.hops
        for place in range(5)
    }
    assert ours == theirs
    assert len(ours) == 2 * 4 * 5


def test_a_bandwidth_bound_ring_is_no_constant_step() -> None:
    """Benchmark 3 calibrated to 20 ms with 2 replicas: 20, 30 and 35 ms with 2, 4 and 8, not 20, 60 and 140."""
    rings = [report_ring(replicas).all_reduce_time for replicas in (1, 2, 4, 8)]
    assert rings == pytest.approx([0, 20, 30, 35])


def report_ring(replicas: int) -> HybridStep:
    how = {"link": Link(0, 25e9), "gradient_bytes": 500_000_000}
    return hybrid_step(build("1f1b", 2, 8), REPORT, replicas, **how)


@in_turn("replicas", [2, 3, 8])
def test_the_time_of_a_ring_is_that_of_the_collective(replicas: int) -> None:
    """If all pieces are equal, the step's ring takes the time of the ring's cost formula."""
    link, nbytes = Link(5e-6, 25e9), 2 * 24_000
    step = hybrid_step(build("1f1b", 2, 2), REPORT, replicas, link=link, gradient_bytes=nbytes)
    assert step.all_reduce_time == pytest.approx(1000 * all_reduce_time("ring", replicas, nbytes, link))


# What is refused


@in_turn(
    "how, code, words",
    [
        ({"ring_step": -1}, "negative", "ring_step -1"),
        ({"ring_step": float("nan")}, "not-finite", "ring_step nan"),
        ({"ring_step": float("inf")}, "not-finite", "ring_step inf"),
        ({"ring_step": [1, 2]}, "wrong-shape", "ring_step"),
        ({"ring_step": "20"}, "not-a-number", "ring_step"),
        ({"optimiser": -3}, "negative", "optimiser -3"),
        ({"optimiser": [1, 2]}, "wrong-shape", "optimiser"),
        ({"gradient_bytes": 10}, "missing-argument", "link gradient_bytes"),
        ({"link": LINK}, "missing-argument", "gradient_bytes link"),
        ({"link": LINK, "ring_step": 1}, "conflicting-arguments", "ring_step gradient_bytes"),
        ({"link": LINK, "gradient_bytes": 11}, "not-divisible", "gradient_bytes 2 11"),
        ({"link": LINK, "gradient_bytes": -2}, "too-small", "gradient_bytes 0"),
        ({"link": LINK, "gradient_bytes": 1.5}, "not-a-whole-number", "gradient_bytes"),
        ({"link": Link(1e199, 25e9), "gradient_bytes": 10}, "too-large", "ring"),
        ({"link": (1e-6, 25e9), "gradient_bytes": 10}, "wrong-type", "link"),
        ({"ring_step": 1, "gradient_bytes": 10}, "conflicting-arguments", "ring_step gradient_bytes"),
        ({"wire": "FP16"}, "wrong-type", "wire"),
        ({"overlap": 1}, "not-true-or-false", "overlap True False 1"),
    ],
)
def test_refusals(how: dict[str, Any], code: str, words: str) -> None:
    with refusal(code, *words.split()):
        hybrid_step(build("1f1b", 2, 2), REPORT, 2, **how)


def test_refusals_of_sizes() -> None:
    schedule = build("1f1b", 2, 2)
    for replicas in (0, -1, 1.5, True, None, "2"):
        with refusal("too-small" if replicas in (0, -1) else "not-a-whole-number", "replicas"):
            hybrid_step(schedule, REPORT, replicas)  # type: ignore[arg-type]
    with refusal("does-not-fit", "3 devices", "2 devices", "4 ranks"):
        hybrid_step(schedule, Costs(forward=[1, 2, 3], backward=2), 2)
    with refusal("too-large", "replicas", "settings"):
        hybrid_step(schedule, REPORT, 10_000)
    with refusal("wrong-type", "Schedule", "Costs", "1 and 2"):
        hybrid_step(1, 2, 2)  # type: ignore[arg-type]
    with refusal("two-copies-on-a-device", "device 1", "stage 1"):
        hybrid_step(Schedule.parse("0F0 2F1 2B1 0B0\n1F1 1F0 1B1 1B0\n0F1 2F0 2B0 0B1"), REPORT, 1)
    everyone = hybrid_step(schedule, REPORT, 2).timeline.schedule
    with refusal("wrong-type", "one pipeline", "<Replicated"):
        hybrid_step(everyone, REPORT, 2)


time = usual_or_junk([0, 1, 2.5])


@examples(300)
@given(
    schedule=usual_or_junk([build("1f1b", 2, 2), build("interleaved", 2, 2), build("chimera", 2, 2)]),
    costs=usual_or_junk([REPORT, Costs(forward=[[1], [2]], backward=3)]),
    replicas=usual_or_junk([1, 2, 3]),
    ring_step=time,
    optimiser=time,
    overlap=usual_or_junk([False, True]),
)
def test_junk(schedule: Any, costs: Any, replicas: Any, ring_step: Any, optimiser: Any, overlap: Any) -> None:
    """The result must be a step with finite times, or an error of the library."""
    how = {"ring_step": ring_step, "optimiser": optimiser, "overlap": overlap}
    step = outcome(hybrid_step, schedule, costs, replicas, **how)
    if step is not None:
        assert np.isfinite(step.makespan).all()
        assert np.isfinite(step.speedup).all()
        assert repr(step)


def test_a_step_shows_itself_in_a_line() -> None:
    assert repr(report_step()) == (
        "<HybridStep of <Replicated 1f1b: 4 devices, 8 microbatches, 1 chunk, 2 replicas>: makespan 1210, speedup 3.44>"
    )
    assert repr(report_step(costs=Costs(forward=[[1], [2]], backward=3))).endswith(": several settings>")


# Planted bugs: the checks above must find each


def slow_first_replica() -> HybridStep:
    """A step for all checks: stage 1 of replica 0 is slow, so that its ring waits for one of three replicas."""
    forward = [1.0] * 9
    forward[1] = 3.0
    return hybrid_step(build("1f1b", 3, 4), Costs(forward=forward, backward=2, p2p=0.5), 3, ring_step=0.75, overlap=True, optimiser=2)


def checked(step: HybridStep) -> None:
    every_check(step, oracle.uniform(step.mesh.size, 1, 2, p2p=0.5), {"overlap": True, "optimiser": 2})


def changed(name: str, change: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of the step module with its result changed: a planted fault."""
    part = getattr(step_module, name)
    return lambda *arguments: change(part(*arguments))


PLANTED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a ring that does not wait for the slowest replica": ("ring_times", lambda edges: edges - 2),
    "a ring that waits for its own device alone": ("ring_times", lambda edges: edges - np.array([0, 1, 0])[:, None]),
    "hops that overlap": ("hop_spans", lambda pair: (pair[0], replace(pair[1], start=pair[1].start - 0.5))),
    "a ring that goes the other way round": (
        "hop_spans",
        lambda pair: tuple(replace(each, peer=(each.device - 3) % 9) for each in pair),
    ),
    "an all-gather that begins at the chunk a rank began with": (
        "hop_spans",
        lambda pair: (pair[0], replace(pair[1], chunk=(pair[1].chunk - 1) % 3)),
    ),
    "a message that leaves before its operation has ended": (
        "message_spans",
        lambda pair: tuple(replace(each, start=each.start - 0.25) for each in pair),
    ),
    "a message to another replica": (
        "message_spans",
        lambda pair: (replace(pair[0], peer=(pair[0].peer + 3) % 9), pair[1]),
    ),
    "an optimiser that does not wait for the ring": (
        "optimiser_spans",
        lambda spans: replace(spans, start=spans.start - 1, end=spans.end - 1),
    ),
    "an optimiser forgotten": ("optimiser_spans", lambda spans: spans.where(spans.device != 4)),
}


def test_the_step_without_a_planted_bug_passes() -> None:
    checked(slow_first_replica())


@in_turn("bug", PLANTED)
def test_a_planted_bug_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, change = PLANTED[bug]
    with monkeypatch.context() as planted:
        planted.setattr(step_module, name, changed(name, change))
        with pytest.raises(AssertionError):
            checked(slow_first_replica())


PLANTED_IN_COPIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a ring of the first copies alone": ("holders", lambda ranks: ranks[:, ::2]),
    "a ring for each replica": ("holders", lambda ranks: ranks[:, :2]),
    "copies that take turns the other way round": ("holders", lambda ranks: ranks[:, ::-1]),
    "a ring that does not wait for the other copy": ("ring_times", lambda edges: edges - 0.25),
    "an optimiser for one copy alone": ("optimiser_spans", lambda spans: replace(spans, end=(spans.start + spans.end) / 2)),
    "a message to another replica": (
        "message_spans",
        lambda pair: (replace(pair[0], peer=(pair[0].peer + 4) % 8), pair[1]),
    ),
}


@in_turn("bug", ["", *PLANTED_IN_COPIES])
def test_a_bug_planted_in_a_step_of_two_copies_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def step() -> HybridStep:
        costs = Costs(forward=[1, 1, 3, 1, 1, 1, 1, 1], backward=2, p2p=0.5)
        return hybrid_step(build("chimera", 4, 4), costs, 2, ring_step=0.75, overlap=True, optimiser=2)

    if not bug:
        checked(step())
        return
    name, change = PLANTED_IN_COPIES[bug]
    with monkeypatch.context() as planted:
        planted.setattr(step_module, name, changed(name, change))
        with pytest.raises(AssertionError):
            checked(step())
