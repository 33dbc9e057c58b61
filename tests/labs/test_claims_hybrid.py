"""Test claims about the whole hybrid step and its bytes: each right number is recomputed with the public library.

Row numbers are from ../shared/reference/claims.md. ``FIGURES`` has the right values of each row, with as many digits as in that file.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybridlab import FP16, FP32, INT8, Costs, HybridStep, build, hybrid_step, published, ring_all_reduce, simulate
from hybridlab.collectives import Link, all_reduce_time

CLAIMS = Path(__file__).parents[3] / "shared" / "reference" / "claims.md"
needs_claims = pytest.mark.skipif(not CLAIMS.is_file(), reason="needs ../shared/reference beside the repository")

A_STAGE = Costs(forward=50, backward=80)  # ms; reading A of the report's 50/80 ms
THE_MODEL = Costs(forward=25, backward=40)  # reading B of the same figures: each of two stages has half of the model
MICROBATCHES = (2, 4, 8, 16)
REPLICAS = (2, 4, 8)

FIGURES = {
    33: ("AR = 2(P_d-1) x 20 ms = 40 ms", "2(P_d-1)(alpha + S/(P_d B))"),
    35: ("1210", "9*130+40", "9*65+40 = 625 ms"),
    39: ("4160", "3.44x (eff. 86 %)", "2080/625 = 3.33x", "11 % bubble + 3 % AR"),
    40: ("4.96 %", "60/1230 = 4.9 %", "AR alone 3.3 %"),
    42: ("430/690/1210/2250 (A)", "235/365/625/1145 (B)", "2.42/3.01/3.44/3.70 (A)", "2.21/2.85/3.33/3.63 (B)"),
    43: ("9.3 % at 2 -> 1.8 % at 16 (A)",),
    45: ("0/20/60/140", "20/30/35 ms"),
    61: ("12*6*30 = 2160", "2448", "4320"),
}


def step(microbatches: int = 8, costs: Costs = A_STAGE, replicas: int = 2, **how: Any) -> HybridStep:
    """Return the step of the report: 1F1B on two stages, and 20 ms for each step of the ring."""
    return hybrid_step(build("1f1b", 2, microbatches), costs, replicas, **(how or {"ring_step": 20}))


def joined(values: list[float], digits: int = 0) -> str:
    return "/".join(f"{value:.{digits}f}" for value in values)


@needs_claims
@pytest.mark.parametrize("row", FIGURES)
def test_the_figures_are_those_of_the_row(row: int) -> None:
    (line,) = (line for line in CLAIMS.read_text().splitlines() if line.startswith(f"| {row} |"))
    for figure in FIGURES[row]:
        assert figure in line


# Row 33


def test_the_all_reduce_of_two_replicas_takes_40_ms() -> None:
    assert step().all_reduce_time == 2 * (2 - 1) * 20 == 40
    assert step(ring_step=0.0).all_reduce_time == 0


@pytest.mark.parametrize("replicas", [1, *REPLICAS])
@pytest.mark.parametrize("latency", [0.0, 5e-6])
def test_a_ring_step_is_latency_and_a_piece_over_the_bandwidth(replicas: int, latency: float) -> None:
    """The setting is S = 8 MB at 2 GB/s; times are in ms."""
    nbytes, bandwidth = 8e6, 2e9
    link = Link(latency, bandwidth)
    got = step(replicas=replicas, link=link, gradient_bytes=int(nbytes)).all_reduce_time
    assert got == pytest.approx(1e3 * all_reduce_time("ring", replicas, nbytes, link), abs=1e-12)
    assert got == pytest.approx(1e3 * 2 * (replicas - 1) * (latency + nbytes / (replicas * bandwidth)), abs=1e-12)


# Rows 35 and 39


def test_a_step_takes_1210_ms_or_625() -> None:
    assert step().makespan == 9 * 130 + 40 == 1210
    assert step(costs=THE_MODEL).makespan == 9 * 65 + 40 == 625


def test_the_speedup_is_3_44_against_one_device_that_does_the_same_work() -> None:
    run = step()
    assert run.single_device_time == 16 * 2 * 130 == 4160
    assert f"{run.speedup:.2f}x (eff. {100 * run.efficiency:.0f} %)" in FIGURES[39]
    other = step(costs=THE_MODEL)
    assert f"{other.single_device_time:.0f}/{other.makespan:.0f} = {other.speedup:.2f}x" in FIGURES[39]
    assert f"{1040 / run.makespan:.2f}" == "0.86", "the report's: a quarter of the work against all of the step"
    assert run.single_device_time == 4 * 1040


def test_the_speedup_lacks_a_bubble_and_little_communication() -> None:
    run, pipeline = step(), simulate(build("1f1b", 2, 8), A_STAGE)
    assert f"{100 * pipeline.bubble_ratio:.0f} % bubble + {100 * run.communication_share:.0f} % AR" in FIGURES[39]
    assert run.efficiency == pytest.approx((1 - pipeline.bubble_ratio) * (1 - run.communication_share))


# Row 40


def test_20_ms_more_belong_in_the_denominator_too() -> None:
    run = step()
    with_sync = run.all_reduce_time + 20
    assert f"{100 * with_sync / run.makespan:.2f} %" in FIGURES[40]
    assert f"60/1230 = {100 * with_sync / (run.makespan + 20):.1f} %" in FIGURES[40]
    assert f"AR alone {100 * run.communication_share:.1f} %" in FIGURES[40]


# Rows 42 and 43


@pytest.mark.parametrize(("reading", "costs"), [("A", A_STAGE), ("B", THE_MODEL)])
def test_totals_and_speedups_rise_with_the_microbatches(reading: str, costs: Costs) -> None:
    runs = [step(microbatches, costs) for microbatches in MICROBATCHES]
    assert f"{joined([run.makespan for run in runs])} ({reading})" in FIGURES[42]
    assert f"{joined([run.speedup for run in runs], 2)} ({reading})" in FIGURES[42]
    speedups = [run.speedup for run in runs]
    assert speedups == sorted(speedups)


def test_communication_weighs_less_with_more_microbatches() -> None:
    shares = [100 * step(microbatches).communication_share for microbatches in MICROBATCHES]
    assert f"{shares[0]:.1f} % at 2 -> {shares[-1]:.1f} % at 16 (A)" in FIGURES[43]
    assert shares == sorted(shares, reverse=True)


# Row 45


def test_all_reduces_at_10_ms_a_step() -> None:
    assert joined([step(replicas=replicas, ring_step=10).all_reduce_time for replicas in (1, *REPLICAS)]) in FIGURES[45]


def test_a_ring_bound_by_its_bandwidth_does_not_grow_without_end() -> None:
    """The all-reduce takes 20 ms with two replicas: S/B is 20 ms, and the limit for many replicas is 2 S/B = 40 ms."""
    times = [step(replicas=each, link=Link(0.0, 80e6), gradient_bytes=1_600_000).all_reduce_time for each in (*REPLICAS, 64)]
    assert f"{joined(times[:3])} ms" in FIGURES[45]
    assert times[-1] == pytest.approx(40 * 63 / 64)


# Row 61


def test_2160_bytes_leave_out_the_scales_and_fp16_sends_4320() -> None:
    """Each of 12 ranks sends 6 messages of 30 numbers."""
    values = np.random.default_rng(0).standard_normal((4, 120))
    rings = {wire: ring_all_reduce(values, wire) for wire in (INT8, FP16, FP32)}
    stages = 3
    assert stages * rings[INT8].payload_bytes.sum() == 12 * 6 * 30 == 2160
    assert stages * rings[INT8].bytes_sent.sum() == 72 * INT8.nbytes(30) == 2448
    assert stages * rings[FP16].bytes_sent.sum() == 72 * FP16.nbytes(30) == 4320
    assert stages * rings[FP32].bytes_sent.sum() == 72 * FP32.nbytes(30) == 8640


def test_the_published_counts_are_those_of_the_payload() -> None:
    for mode, wire in {"INT8": INT8, "FP16": FP16, "FP32": FP32}.items():
        assert published.simulator(comm_mode=mode).comm_bytes == 72 * wire.payload_bytes(30)
