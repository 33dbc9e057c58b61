"""The published tables of sections 6 and 7: copied exactly, reproduced by their own rules, and computed correctly.

Row numbers are those of tests/data/claims.md; the right numbers come from its formulas, written out here.
"""

from typing import Any

import pytest
from cases import in_turn, refusal
from published_data import PRINTED, claims

from hybridlab.course.published import benchmarks as b
from hybridlab.course.published import report

COUNTS = (2, 4, 8, 16)
DEPTHS = (1, 2, 4, 8)
RIGHT = {number: row.right for number, row in claims().items()}


def joined(values: list[float], digits: int | None = None) -> str:
    return "/".join(f"{value:g}" if digits is None else f"{value:.{digits}f}" for value in values)


def test_the_tables_are_those_that_the_report_prints() -> None:
    for name in ("benchmark_1", "benchmark_2", "benchmark_3"):
        assert [list(row) for row in getattr(b, name.upper())] == PRINTED[name]
    assert [[metric.expected, metric.observed] for metric in b.METRICS] == PRINTED["metrics"]


def test_the_arithmetic_of_the_report_gives_its_tables() -> None:
    for one in b.BENCHMARK_1:
        assert (one.compute, one.speedup) == (130 * one.microbatches, round(1040 / one.total, 2))
    assert [row.total - row.compute - row.communication for row in b.BENCHMARK_1] == [20, 40, 130, 40], "communication again, or the bubble"
    for two in b.BENCHMARK_2:
        assert two[1:4] == (50 * (two.stages - 1), 1040 / two.stages, 80 * (two.stages - 1)), "reading A, but the steady state of reading B"
        assert two.total == 130 * (two.stages - 1) + 1040 / two.stages
    for three in b.BENCHMARK_3:
        parts = report.estimate(replicas=three.replicas, ring_step=three.ring_step)
        assert (three.ring_steps, three.all_reduce) == (2 * (three.replicas - 1), parts.all_reduce)
        assert (round(100 * parts.all_reduce / parts.total, 1) == three.share) == (three.replicas < 8)
    assert int(10 * 100 * 140 / 1210) / 10 == b.BENCHMARK_3[-1].share, "140 ms of a step with 2 replicas, cut after one decimal"


@in_turn("reading, pair", [("A", 130), ("B", 65)])
def test_benchmark_1_rises_with_the_microbatches(reading: str, pair: int) -> None:
    """Row 42: 2M microbatches go through 2 stages."""
    rows = b.benchmark_1(reading)
    for microbatches, row in zip(COUNTS, rows, strict=True):
        assert row.printed.microbatches == microbatches
        assert row.right.makespan == (microbatches + 1) * pair + 40
        assert row.right.speedup == pytest.approx(2 * microbatches * 2 * pair / ((microbatches + 1) * pair + 40))
        assert row.right.communication_share == pytest.approx(40 / ((microbatches + 1) * pair + 40))
    assert f"{joined([row.right.makespan for row in rows])} ({reading})" in RIGHT[42]
    assert f"{joined([row.right.speedup for row in rows], 2)} ({reading})" in RIGHT[42]


@in_turn("reading", b.READINGS)
def test_benchmark_2_divides_all_of_the_work_or_none(reading: str) -> None:
    """Row 44."""
    rows = b.benchmark_2(reading)
    for stages, row in zip(DEPTHS, rows, strict=True):
        pair = 130 / stages if reading == "B" else 130
        assert row.right.makespan == pytest.approx((8 + stages - 1) * pair)
        assert row.right.mesh.size == stages
        assert row.right.single_device_time == pytest.approx(8 * stages * pair)
        assert row.right.exposed_communication == 0
    assert f"{reading} {joined([row.right.makespan for row in rows])}" in RIGHT[44]
    assert reading == "B" or f"speedup {'/'.join(f'{row.right.speedup:.3g}' for row in rows)}" in RIGHT[44]


@in_turn("stages, length", [(1, 380), (2, 365), (4, 357.5)])
def test_four_gpus_share_eight_microbatches(stages: int, length: float) -> None:
    """(8/D + K - 1) 130/K + 2(D - 1) 20 with KD = 4; row 44's last figures."""
    replicas = 4 // stages
    step = b.reading_step("B", stages, 8 // replicas, replicas)
    assert step.makespan == length == (8 // replicas + stages - 1) * 130 / stages + 2 * (replicas - 1) * 20
    assert f"({stages},{replicas}) {length:g}" in RIGHT[44]


def test_benchmark_3_divides_by_the_step_that_it_is_a_part_of() -> None:
    """Rows 45 and 46."""
    rows = b.benchmark_3("A")
    for row in rows:
        rings = 2 * (row.printed.replicas - 1) * 10
        assert row.right.all_reduce_time == rings == row.printed.all_reduce
        assert row.right.communication_share == pytest.approx(rings / (1170 + rings))
    assert [round(100 * row.right.communication_share, 1) for row in rows] == [0, 1.7, 4.9, 10.7]
    assert [round(100 * row.right.communication_share, 1) for row in b.benchmark_3("B")] == [0, 3.3, 9.3, 19.3]
    assert f"140/1310 = {100 * rows[-1].right.communication_share:.1f} %" in RIGHT[46]


@in_turn("reading, alone, speedup", [("A", 4160, "3.44"), ("B", 2080, "3.33")])
def test_one_gpu_that_does_the_same_work(reading: str, alone: float, speedup: str) -> None:
    """Rows 38 and 39."""
    step = b.reading_step(reading)
    assert step.single_device_time == alone == 2 * (2080 if reading == "A" else b.TEST_2.printed[0])
    assert f"{step.speedup:.2f}" == speedup
    assert f"{speedup}x" in RIGHT[39]


def test_the_observed_speedup_is_not_that_of_the_observed_times() -> None:
    """Row 47."""
    alone, four, speedup = (metric.observed for metric in b.METRICS[:3])
    assert round(alone / four, 3) == 0.847 != speedup
    assert round(b.TEST_2.printed[0] / 1210, 2) == b.TEST_3.printed[0]


@in_turn(
    "arguments, code, word",
    [
        (("C",), "unknown-name", "'C'"),
        (("a",), "unknown-name", "'A'"),
        (("B", 0), "too-small", "stages"),
        (("B", "2"), "not-a-whole-number", "stages"),
    ],
)
def test_another_reading_is_refused(arguments: Any, code: str, word: str) -> None:
    with refusal(code, word):
        b.reading_step(*arguments)
