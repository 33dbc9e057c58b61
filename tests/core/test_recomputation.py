"""Test what devices hold with recomputation, counted operation by operation and worked out by hand."""

from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from misuse import outcome, usual_or_junk
from strategies import supported

from hybridlab import REGISTRY, Costs, Schedule, build, formulas, recomputed_peak, simulate

SIZES = [(1, 1), (1, 5), (2, 4), (4, 2), (4, 8), (6, 12), (8, 16)]


def all_of(name: str) -> list[Schedule]:
    """Return the schedule at these sizes, or at the nearest sizes that it supports."""
    return [build(name, *size) for size in sorted({supported(name, *size) for size in SIZES})]


@in_turn("name", REGISTRY)
@in_turn("kept", [0, 0.1, 0.25, 1])
def test_rooms_counted_one_by_one(name: str, kept: float) -> None:
    schedules = all_of(name)
    assert len(schedules) > 2
    for schedule in schedules:
        rooms_are_right(schedule, kept)


def rooms_are_right(schedule: Schedule, kept: float) -> None:
    """A dict holds the memory of each stage and microbatch while the device's operations run one by one."""
    found = recomputed_peak(schedule, kept)
    for device, order in enumerate(schedule.orders):
        rooms: dict[tuple[int, int], float] = {}
        most = 0.0
        for op in order:
            rooms[op.stage, op.microbatch] = kept if op.kind == "F" else 1
            most = max(most, sum(rooms.values()))
            if op.kind in "BW":
                del rooms[op.stage, op.microbatch]
        assert not rooms
        assert found[device] == pytest.approx(most / schedule.chunks, abs=1e-12)


@in_turn("name", ["gpipe", "1f1b", "eager-1f1b"])
def test_with_whole_backwards_one_is_whole_and_the_others_are_kept(name: str) -> None:
    for device in range(6):
        held = formulas.peak_activations(name, 6, 20, device)
        assert recomputed_peak(build(name, 6, 20), 0.1)[device] == pytest.approx(1 + 0.1 * (held - 1))


def test_zb_h1_holds_one_whole_microbatch_more_on_each_device() -> None:
    assert recomputed_peak(build("zb-h1", 5, 11), 0.2) == pytest.approx([0.2 * (4 - d) + d + 1 for d in range(5)])


def test_nothing_thrown_away_is_the_peak_of_a_timeline() -> None:
    schedule = build("interleaved", 4, 8, 3)
    peak = simulate(schedule, Costs(forward=1, backward=2)).peak_activations
    assert recomputed_peak(schedule, 1).tolist() == peak.tolist()


@in_turn(
    "kept, code",
    [
        (-0.1, "negative"),
        (1.1, "out-of-range"),
        (float("nan"), "not-finite"),
        (float("inf"), "not-finite"),
        ("a tenth", "not-a-number"),
        (None, "not-a-number"),
        ([0.1], "out-of-range"),
        ([[0.1, 0.2]], "out-of-range"),
    ],
)
def test_what_is_no_part_is_refused(kept: Any, code: str) -> None:
    with refusal(code, "kept"):
        recomputed_peak(build("1f1b", 2, 2), kept)


@given(schedule=usual_or_junk([build("1f1b", 2, 3)]), kept=usual_or_junk([0.1, np.float32(0.5), 0, 1]))
def test_junk_gets_a_result_or_a_sentence(schedule: Any, kept: Any) -> None:
    peak = outcome(recomputed_peak, schedule, kept)
    if peak is not None:
        assert ((peak > 0) & (peak <= 2)).all()
