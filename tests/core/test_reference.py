"""Compare the library with values from other programs: orders operation by operation, and 540 simulated times."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn

from hybridlab import REGISTRY, Costs, Schedule, Timeline, build, simulate

DATA = Path(__file__).parents[1] / "data"

ORDERS: dict[str, list[str]] = json.loads((DATA / "orders.json").read_text())["orders"]
POINTS: list[dict[str, Any]] = json.loads((DATA / "sweeps.json").read_text())["points"]
OURS = [key for key in ORDERS if key.split("|")[0] in REGISTRY]
SWEEPS = sorted({(point["sweep"], point["schedule"]) for point in POINTS})


def test_the_reference_covers_the_five_schedules() -> None:
    assert len(POINTS) == 540
    five = {"gpipe", "1f1b", "interleaved", "hanayo", "zb-h1"}
    assert {point["schedule"] for point in POINTS} == five
    assert {key.split("|")[0] for key in OURS} == five | {"looped-bfs", "interleaved-zb", "zb-v", "dualpipe-v"}


@in_turn("key", OURS)
def test_orders_equal_the_reference_op_for_op(key: str) -> None:
    name, *sizes = key.split("|")
    schedule = build(name, *map(int, sizes))
    assert [list(map(str, order)) for order in schedule.orders] == [re.sub("[(;)]", " ", line).split() for line in ORDERS[key]]
    assert str(schedule) == "\n".join(f"device {device}: {line}" for device, line in enumerate(ORDERS[key]))
    assert Schedule(name, [line.split() for line in ORDERS[key]]) == schedule


def run(point: dict[str, Any]) -> Timeline:
    schedule = build(point["schedule"], point["devices"], point["microbatches"], point["chunks"])
    if "backward" in point:
        costs = Costs(forward=point["forward"], backward=point["backward"], p2p=point["p2p"])
    else:
        backward = point["input_grad"] + point["weight_grad"]
        costs = Costs(forward=point["forward"], backward=backward, weight_share=point["weight_grad"] / backward, p2p=point["p2p"])
    return simulate(schedule, costs)


@in_turn("sweep, schedule", SWEEPS)
def test_every_point_of_the_sweeps_comes_out(sweep: str, schedule: str) -> None:
    points = [point for point in POINTS if (point["sweep"], point["schedule"]) == (sweep, schedule)]
    for point in points:
        timeline = run(point)
        assert timeline.makespan == pytest.approx(point["total_time"], rel=1e-9, abs=0), point
        assert timeline.bubble_ratio == pytest.approx(point["bubble_ratio"], rel=1e-9, abs=1e-12), point


@in_turn(
    "name, chunks, makespan",
    [
        ("gpipe", 1, 4554.5),
        ("1f1b", 1, 6506.5),
        ("interleaved", 2, 5720),
        ("hanayo", 2, 8544),
        ("hanayo", 4, 12578.125),
        ("zb-h1", 1, 5356.5),
    ],
)
def test_latency_that_cannot_be_hidden(name: str, chunks: int, makespan: float) -> None:
    """The setting has 32 devices, 64 microbatches, forward 12.5, backward 25 and latency 16."""
    costs = Costs(forward=12.5, backward=25, p2p=16)
    assert simulate(build(name, 32, 64, chunks), costs).makespan == makespan
