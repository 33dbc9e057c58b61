"""The published tables of sections 6 and 7: copied exactly, reproduced by their own rules, and computed correctly.

Row numbers are from ../shared/reference/claims.md; the right numbers come from its formulas, written out here.
"""

import re
from pathlib import Path

import pytest
from cases import refusal

from hybridlab.course.published import benchmarks as b
from hybridlab.course.published.report import Figure

SHARED = Path(__file__).parents[3] / "shared"
REPORT, CLAIMS = SHARED / "sources" / "hybrid-report.txt", SHARED / "reference" / "claims.md"
needs_shared = pytest.mark.skipif(not REPORT.is_file() or not CLAIMS.is_file(), reason="needs ../shared beside the repository")

COUNTS = (2, 4, 8, 16)
DEPTHS = (1, 2, 4, 8)


def printed_rows(head: str, end: str) -> list[tuple[float, ...]]:
    """The rows of numbers between two lines of the report's text; a dash is 0."""
    text = REPORT.read_text()
    (section,) = re.findall(rf"{head}(.*?){end}", text, re.DOTALL)
    lines = [line.replace("-", "0").replace("%", "").replace("x", "").split("\t") for line in section.splitlines()]
    return [tuple(map(float, cells)) for cells in lines if len(cells) > 1 and cells[0].strip().isdigit()]


def row_of(number: int) -> str:
    (line,) = (line for line in CLAIMS.read_text().splitlines() if line.startswith(f"| {number} |"))
    return line


def joined(values: list[float], digits: int | None = None) -> str:
    return "/".join(f"{value:g}" if digits is None else f"{value:.{digits}f}" for value in values)


@needs_shared
def test_the_tables_are_those_that_the_report_prints() -> None:
    assert [tuple(row) for row in b.BENCHMARK_1] == printed_rows("Benchmark 1", "Observation")
    assert [tuple(row) for row in b.BENCHMARK_2] == printed_rows("Benchmark 2", "Observation")
    assert [tuple(row) for row in b.BENCHMARK_3] == printed_rows("Benchmark 3", r"7\. Results")


@needs_shared
def test_the_metrics_are_those_that_the_report_prints() -> None:
    (section,) = re.findall(r"7\.1\.2 Performance Metrics(.*?)7\.2 Discussion", REPORT.read_text(), re.DOTALL)
    cells = [line.split("\t")[1:3] for line in section.splitlines() if line.count("\t") == 3][1:]
    printed = [tuple(float(re.sub(r"[^\d.]", "", cell)) for cell in row) for row in cells]
    assert printed == [(metric.expected, metric.observed) for metric in b.METRICS]


@needs_shared
@pytest.mark.parametrize(
    ("figure", "pattern"),
    [
        (b.TEST_2, r"Compute only:\s*\$?8.*= (\d+)"),
        (b.TEST_3, r"1040 / 1210.*?(\d\.\d+)x"),
        (b.TEST_4_SYNC, r"Inter-stage Sync: ~(\d+) ms"),
        (b.TEST_4, r"60 / 1210.*?(\d+)%"),
    ],
    ids=lambda value: str(value).split(":")[0],
)
def test_the_figures_of_tests_2_to_4_are_printed(figure: Figure, pattern: str) -> None:
    assert [float(found) for found in re.findall(pattern, REPORT.read_text())] == list(figure.printed)


def test_the_arithmetic_of_the_report_gives_its_tables() -> None:
    for one in b.BENCHMARK_1:
        assert one.compute == 130 * one.microbatches
        total, speedup = one.counted_again
        assert (total, round(speedup, 2)) == (one.total, one.speedup)
    assert [row.total - row.compute - row.communication for row in b.BENCHMARK_1] == [20, 40, 130, 40], "communication again, or the bubble"
    for two in b.BENCHMARK_2:
        assert two.counted_again == two[1:]
        assert two.total == 130 * (two.stages - 1) + 1040 / two.stages
    for three in b.BENCHMARK_3:
        assert three.counted_again[:2] == (three.ring_steps, three.all_reduce)
    off = [row.replicas for row in b.BENCHMARK_3 if round(row.counted_again[2], 1) != row.share]
    assert off == [8]
    assert int(10 * 100 * 140 / 1210) / 10 == b.BENCHMARK_3[-1].share, "140 ms of a step with 2 replicas, cut after one decimal"


# Row 42: 2M microbatches through 2 stages


@pytest.mark.parametrize(("reading", "pair"), [("A", 130), ("B", 65)])
def test_benchmark_1_rises_with_the_microbatches(reading: str, pair: int) -> None:
    rows = b.benchmark_1(reading)
    for microbatches, row in zip(COUNTS, rows, strict=True):
        assert row.printed.microbatches == microbatches
        assert row.right.makespan == (microbatches + 1) * pair + 40
        assert row.right.speedup == pytest.approx(2 * microbatches * 2 * pair / ((microbatches + 1) * pair + 40))
        assert row.right.communication_share == pytest.approx(40 / ((microbatches + 1) * pair + 40))


@needs_shared
@pytest.mark.parametrize("reading", b.READINGS)
def test_benchmark_1_has_the_figures_of_the_claims(reading: str) -> None:
    rows = b.benchmark_1(reading)
    assert f"{joined([row.right.makespan for row in rows])} ({reading})" in row_of(42)
    assert f"{joined([row.right.speedup for row in rows], 2)} ({reading})" in row_of(42)
    assert joined([row.printed.total for row in rows]) in row_of(42)


# Row 44


@pytest.mark.parametrize("reading", b.READINGS)
def test_benchmark_2_divides_all_of_the_work_or_none(reading: str) -> None:
    for stages, row in zip(DEPTHS, b.benchmark_2(reading), strict=True):
        pair = 130 / stages if reading == "B" else 130
        assert row.right.makespan == pytest.approx((8 + stages - 1) * pair)
        assert row.right.mesh.size == stages
        assert row.right.single_device_time == pytest.approx(8 * stages * pair)
        assert row.right.exposed_communication == 0


@needs_shared
def test_benchmark_2_has_the_figures_of_the_claims() -> None:
    for reading in b.READINGS:
        assert f"{reading} {joined([row.right.makespan for row in b.benchmark_2(reading)])}" in row_of(44)
    assert "speedup 1/1.78/2.91/4.27" in row_of(44)
    assert [f"{row.right.speedup:.2f}" for row in b.benchmark_2("A")] == ["1.00", "1.78", "2.91", "4.27"]


@pytest.mark.parametrize(("stages", "length"), [(1, 380), (2, 365), (4, 357.5)])
def test_four_gpus_share_eight_microbatches(stages: int, length: float) -> None:
    """(8/D + K - 1) 130/K + 2(D - 1) 20 with KD = 4; row 44's last figures."""
    replicas = 4 // stages
    step = b.reading_step("B", stages, 8 // replicas, replicas)
    assert step.makespan == length == (8 // replicas + stages - 1) * 130 / stages + 2 * (replicas - 1) * 20
    if CLAIMS.is_file():
        assert f"({stages},{replicas}) {length:g}" in row_of(44)


# Rows 45 and 46


def test_benchmark_3_divides_by_the_step_that_it_is_a_part_of() -> None:
    for row in b.benchmark_3("A"):
        rings = 2 * (row.printed.replicas - 1) * 10
        assert row.right.all_reduce_time == rings == row.printed.all_reduce
        assert row.right.communication_share == pytest.approx(rings / (1170 + rings))
    assert [round(100 * row.right.communication_share, 1) for row in b.benchmark_3("A")] == [0, 1.7, 4.9, 10.7]
    assert [round(100 * row.right.communication_share, 1) for row in b.benchmark_3("B")] == [0, 3.3, 9.3, 19.3]


@needs_shared
def test_benchmark_3_has_the_figures_of_the_claims() -> None:
    assert joined([row.right.all_reduce_time for row in b.benchmark_3("A")]) in row_of(45)
    last = b.benchmark_3("A")[-1].right
    assert f"140/1310 = {100 * last.communication_share:.1f} %" in row_of(46)


# Rows 38, 39 and 47


@pytest.mark.parametrize(("reading", "alone", "speedup"), [("A", 4160, "3.44"), ("B", 2080, "3.33")])
def test_one_gpu_that_does_the_same_work(reading: str, alone: float, speedup: str) -> None:
    step = b.reading_step(reading)
    assert step.single_device_time == alone == 2 * (2080 if reading == "A" else b.TEST_2.printed[0])
    assert f"{step.speedup:.2f}" == speedup
    if CLAIMS.is_file():
        assert f"{speedup}x" in row_of(39)


def test_the_observed_speedup_is_not_that_of_the_observed_times() -> None:
    alone, four, speedup = (metric.observed for metric in b.METRICS[:3])
    assert round(alone / four, 3) == 0.847 != speedup
    assert round(b.TEST_2.printed[0] / 1210, 2) == b.TEST_3.printed[0]


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("C",), "unknown-name", "'C'"),
        (("a",), "unknown-name", "'A'"),
        (("B", 0), "too-small", "stages"),
        (("B", "2"), "not-a-whole-number", "stages"),
    ],
)
def test_another_reading_is_refused(arguments: tuple[str, int], code: str, word: str) -> None:
    with refusal(code, word):
        b.reading_step(*arguments)
