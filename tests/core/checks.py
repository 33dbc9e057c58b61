"""Check what must be true of every schedule and every timeline.

The checks are plain functions that raise AssertionError. The property tests run them on all schedules in the registry. The tests of
planted bugs run them on a library with a bug, and expect them to fail.
"""

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import oracle
from oracle import Node, Setting, Span

from hybridlab import REGISTRY, Schedule, Timeline

FROM_PAPERS = {  # (placement, bidirectional) from the papers; other schedules are compared with the registry
    **dict.fromkeys(("gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "interleaved", "looped-bfs", "interleaved-zb"), ("looped", False)),
    **dict.fromkeys(("hanayo", "zb-v", "v-half", "v-min", "dualpipe-v"), ("folded", False)),
    **dict.fromkeys(("chimera", "dualpipe"), ("looped", True)),
}
TOLERANCE = Fraction(1, 10**12)  # as a share of the makespan


def spans(timeline: Timeline) -> dict[Node, Span]:
    """Return the start and the end of every operation, as fractions that equal the floats exactly."""
    keys = ((op.kind.value, op.stage, op.microbatch) for op in timeline.ops)
    times = zip(timeline.start.tolist(), timeline.end.tolist(), strict=True)
    return {key: (Fraction(start), Fraction(end)) for key, (start, end) in zip(keys, times, strict=True)}


def small(timeline: Timeline) -> Fraction:
    """Return the rounding error that is allowed in the times of this timeline."""
    return TOLERANCE * Fraction(timeline.makespan)


# Checks of a schedule


def has_the_size_asked_for(schedule: Schedule, devices: int, microbatches: int, chunks: int) -> None:
    asked = (devices, microbatches, chunks, devices * chunks)
    assert (schedule.devices, schedule.microbatches, schedule.chunks, schedule.stages) == asked


def runs_everything_once(schedule: Schedule) -> None:
    counts = Counter(node for order in oracle.nodes(schedule) for node in order)
    for stage in range(schedule.stages):
        for microbatch in range(schedule.microbatches):
            runs = tuple(counts.pop((kind, stage, microbatch), 0) for kind in "FBIW")
            assert runs in {(1, 1, 0, 0), (1, 0, 1, 1)}, (stage, microbatch, runs)
    assert not counts, counts


def stages_are_where_they_belong(schedule: Schedule) -> None:
    """Chunk c of device d must be stage cK + d; with folded placement and odd c, it must be stage cK + K-1-d.

    A second copy of the weights must be placed in the opposite order of devices.
    """
    family = REGISTRY.get(schedule.name)
    registered = (family.placement, family.bidirectional) if family else ("looped", False)
    placement, bidirectional = FROM_PAPERS.get(schedule.name, registered)
    down = range(schedule.devices)
    folded = placement == "folded"
    path = tuple(device for chunk in range(schedule.chunks) for device in (reversed(down) if folded and chunk % 2 else down))
    assert schedule.paths == ((path, path[::-1]) if bidirectional else (path,))
    assert schedule.device_of == path
    if bidirectional:
        assert np.bincount(schedule.copy_of).tolist() == [schedule.microbatches // 2] * 2
    for (_, stage, microbatch), device in oracle.where(oracle.nodes(schedule)).items():
        assert device == schedule.paths[schedule.copy_of[microbatch]][stage]


def knows_what_operations_need(schedule: Schedule) -> None:
    every = {node for order in oracle.nodes(schedule) for node in order}
    for op in schedule.ops:
        needed = {(need.kind.value, need.stage, need.microbatch) for need in schedule.needs(op)}
        assert needed == set(oracle.inputs((op.kind.value, op.stage, op.microbatch), schedule.stages, every)), op


def slots_prove_that_it_can_run(schedule: Schedule) -> None:
    sourced = schedule.source >= 0
    assert (schedule.slot[schedule.source[sourced]] < schedule.slot[sourced]).all()
    same_device = np.diff(schedule.device) == 0
    assert (np.diff(schedule.slot)[same_device] >= 0).all()
    shared = {(schedule.ops[row], schedule.ops[row + 1]) for row in np.flatnonzero((np.diff(schedule.slot) == 0) & same_device)}
    together = oracle.partners(schedule)
    assert {((a.kind, *a[1:]), (b.kind, *b[1:])) for a, b in shared} == {pair for pair in together.items() if pair[0][0] == "F"}
    assert oracle.can_run(oracle.nodes(schedule))


def survives_writing_and_reading(schedule: Schedule) -> None:
    for again in (
        Schedule.parse(str(schedule), name=schedule.name),
        Schedule.parse(schedule.to_csv(), name=schedule.name),
        Schedule(schedule.name, schedule.turns),
        Schedule(schedule.name, [line.partition(": ")[2].split() for line in str(schedule).splitlines()]),
    ):
        assert again == schedule
        assert hash(again) == hash(schedule)
        assert again.orders == schedule.orders


SCHEDULE_CHECKS = (
    runs_everything_once,
    stages_are_where_they_belong,
    knows_what_operations_need,
    slots_prove_that_it_can_run,
    survives_writing_and_reading,
)


# Checks of a timeline of one setting


def starts_at_zero(timeline: Timeline, setting: Setting) -> None:
    assert timeline.start.min() == 0


def nothing_starts_before_its_input(timeline: Timeline, setting: Setting) -> None:
    schedule, when, slack = timeline.schedule, spans(timeline), small(timeline)
    device_of = oracle.where(oracle.nodes(schedule))
    for node, (start, _) in when.items():
        for needed in oracle.inputs(node, schedule.stages, when):
            arrival = when[needed][1] + Fraction(setting.hop(device_of[needed], device_of[node]))
            assert start >= arrival - slack, (node, float(start), needed, float(arrival))


def a_device_runs_one_operation_at_a_time(timeline: Timeline, setting: Setting) -> None:
    when, together = spans(timeline), oracle.partners(timeline.schedule)
    for order in oracle.nodes(timeline.schedule):
        for before, after in pairwise(order):
            if together.get(after) == before:
                assert when[after] == when[before], (before, after)
            else:
                assert when[after][0] >= when[before][1], (before, after)


def every_operation_takes_its_time(timeline: Timeline, setting: Setting) -> None:
    schedule, slack = timeline.schedule, small(timeline)
    device_of, together = oracle.where(oracle.nodes(schedule)), oracle.partners(schedule)
    for node, (start, end) in spans(timeline).items():
        takes = setting.duration(node[0], device_of[node], schedule.chunks)
        if node in together:
            takes += setting.duration(together[node][0], device_of[node], schedule.chunks) - setting.saved(device_of[node], schedule.chunks)
        assert abs(end - start - takes) <= slack, (node, float(end - start), float(takes))


def work_is_conserved(timeline: Timeline, setting: Setting) -> None:
    """Every device must compute for microbatches x (forward + full backward), less what overlapped pairs save."""
    slack, together = small(timeline), oracle.partners(timeline.schedule)
    for device, (busy, order) in enumerate(zip(timeline.busy.tolist(), oracle.nodes(timeline.schedule), strict=True)):
        once = Fraction(setting.forward[device]) + Fraction(setting.backward[device])
        saved = sum(node in together for node in order) // 2 * setting.saved(device, timeline.schedule.chunks)
        assert abs(Fraction(busy) - timeline.schedule.microbatches * once + saved) <= slack, (device, busy)


def makespan_covers_the_busiest_device(timeline: Timeline, setting: Setting) -> None:
    slack = small(timeline)
    assert Fraction(timeline.makespan) + slack >= max(
        oracle.works(oracle.nodes(timeline.schedule), setting, timeline.schedule.chunks, oracle.partners(timeline.schedule))
    )
    assert timeline.makespan * (1 + 1e-12) >= timeline.device_span >= timeline.busy.max() * (1 - 1e-12)


def makespan_covers_the_critical_path(timeline: Timeline, setting: Setting) -> None:
    path = oracle.critical_path(oracle.nodes(timeline.schedule), setting, timeline.schedule.chunks)
    assert Fraction(timeline.makespan) + small(timeline) >= path, (timeline.makespan, float(path))


def equals_the_longest_paths(timeline: Timeline, setting: Setting) -> None:
    schedule = timeline.schedule
    expected = oracle.times(oracle.nodes(schedule), setting, schedule.chunks, together=oracle.partners(schedule))
    when, slack = spans(timeline), TOLERANCE * max(end for _, end in expected.values())
    assert when.keys() == expected.keys()
    for node, (start, end) in when.items():
        assert abs(start - expected[node][0]) <= slack, (node, float(start), float(expected[node][0]))
        assert abs(end - expected[node][1]) <= slack, (node, float(end), float(expected[node][1]))


def bubble_ratio_is_idle_over_all(timeline: Timeline, setting: Setting) -> None:
    orders, schedule = oracle.nodes(timeline.schedule), timeline.schedule
    together = oracle.partners(schedule)
    whole = schedule.devices * max(end for _, end in oracle.times(orders, setting, schedule.chunks, together=together).values())
    idle = 1 - sum(oracle.works(orders, setting, schedule.chunks, together)) / whole if whole else Fraction(0)
    assert abs(Fraction(timeline.bubble_ratio) - idle) <= 1e-12
    assert 0 <= timeline.bubble_ratio <= 1


def peaks_equal_a_walk_through_the_order(timeline: Timeline, setting: Setting) -> None:
    expected = [float(peak) for peak in oracle.peaks(oracle.nodes(timeline.schedule), timeline.schedule.chunks)]
    np.testing.assert_allclose(timeline.peak_activations, expected, rtol=1e-15)


def peaks_equal_a_sweep_through_time(timeline: Timeline, setting: Setting) -> None:
    """The peaks must equal a count that goes through time.

    An activation is held from the start of F to the end of B or W. The activations are counted whenever a forward starts.
    """
    schedule, when = timeline.schedule, spans(timeline)
    if not (timeline.end > timeline.start).all():
        return  # if operations take no time, only their order shows which activations are held
    device_of = oracle.where(oracle.nodes(schedule))
    for device in range(schedule.devices):
        held = []
        for (kind, stage, microbatch), (start, _) in when.items():
            if kind == "F" and device_of[kind, stage, microbatch] == device:
                release = when.get(("B", stage, microbatch)) or when["W", stage, microbatch]
                held.append((start, release[1]))
        most = max(sum(start <= now < end for start, end in held) for now, _ in held)
        assert abs(timeline.peak_activations[device] - most / schedule.chunks) < 1e-12, device


def waits_are_explained(timeline: Timeline, setting: Setting) -> None:
    """If an operation waited for another one, it must start exactly when that one has ended and its message has arrived.

    The message takes one latency between two devices, and no time within one device.
    """
    schedule = timeline.schedule
    for row, other in enumerate(timeline.blocking_operation().tolist()):
        if other < 0:
            assert timeline.start[row] == 0
            continue
        arrival = timeline.end[other] + setting.hop(schedule.device[other], schedule.device[row])
        assert timeline.start[row] == arrival, (str(timeline.ops[row]), str(timeline.ops[other]))


def rows_and_trace_tell_the_same(timeline: Timeline, setting: Setting) -> None:
    rows = timeline.to_rows()
    assert [row["op"] for row in rows] == [str(op) for op in timeline.ops]
    assert [row["start"] for row in rows] == timeline.start.tolist()
    assert [row["end"] for row in rows] == timeline.end.tolist()
    in_microseconds = replace(timeline, unit="us")
    trace = json.loads(json.dumps(in_microseconds.to_chrome_trace(), allow_nan=False))
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == len(rows)
    for row, event in zip(rows, slices, strict=True):
        assert (event["name"], event["cat"], event["tid"]) == (row["op"], row["kind"], row["device"])
        assert event["ts"] == row["start"]
        assert event["dur"] >= 0
        assert abs(event["ts"] + event["dur"] - row["end"]) <= 1e-12 * timeline.makespan


TIMELINE_CHECKS = (
    starts_at_zero,
    nothing_starts_before_its_input,
    a_device_runs_one_operation_at_a_time,
    every_operation_takes_its_time,
    work_is_conserved,
    makespan_covers_the_busiest_device,
    makespan_covers_the_critical_path,
    equals_the_longest_paths,
    bubble_ratio_is_idle_over_all,
    peaks_equal_a_walk_through_the_order,
    peaks_equal_a_sweep_through_time,
    waits_are_explained,
    rows_and_trace_tell_the_same,
)
