"""The measured runs of Qi et al. (arXiv 2401.10241): copied exactly, and reproduced."""

import json
from itertools import product
from typing import Any

import pytest
from cases import in_turn, refusal
from published_data import DATA

from hybridlab import Costs, build, simulate
from hybridlab.course.published.zero_bubble import RUNS, ZeroBubbleRun, bubble_rate

REFERENCE = json.loads((DATA / "zero_bubble.json").read_text(encoding="utf-8"))
PAPER_NAMES = {"1f1b": "1F1B", "zb-h1": "ZB-H1", "zb-h2": "ZB-H2"}


def table(name: str, keys: int) -> dict[tuple[Any, ...], dict[str, float]]:
    """Return one table of the reference file: the first ``keys`` columns -> the other columns by name."""
    data = REFERENCE[name]
    return {tuple(row[:keys]): dict(zip(data["columns"][keys:], row[keys:], strict=True)) for row in data["rows"]}


def test_the_runs_equal_the_reference_file() -> None:
    times = {
        (run.model, run.devices, run.microbatches): {
            "TF": run.forward,
            "TB": run.input_gradient,
            "TW": run.weight_gradient,
            "Tcomm": run.latency,
        }
        for run in RUNS
    }
    assert times == table("table9_ms", keys=3)
    rates = {(run.model, run.devices, run.microbatches): dict(run.bubble_rate) for run in RUNS}
    assert rates == table("table5_bubble_rate", keys=3)
    speeds = {(run.model, run.microbatches): dict(run.throughput) for run in RUNS}
    assert speeds == table("table4_samples_per_gpu_per_s", keys=2)
    assert {run.model: run.samples for run in RUNS} == REFERENCE["microbatch_size"]


@in_turn("run, schedule", product(RUNS, PAPER_NAMES))
def test_the_published_rates_come_out_of_the_measured_times(run: ZeroBubbleRun, schedule: str) -> None:
    timeline = simulate(build(schedule, run.devices, run.microbatches), run.costs())
    assert f"{bubble_rate(timeline):.4f}" == f"{run.bubble_rate[PAPER_NAMES[schedule]]:.4f}"


@in_turn("run", RUNS)
def test_the_simulated_1f1b_is_at_most_five_percent_faster_than_the_measured_one(run: ZeroBubbleRun) -> None:
    makespan_ms = simulate(build("1f1b", run.devices, run.microbatches), run.costs()).makespan
    simulated = run.microbatches * run.samples / run.devices / (makespan_ms / 1000)
    assert 0.95 <= run.throughput["1F1B"] / simulated <= 0.97


def test_costs_without_latency_differ_in_the_latency_alone() -> None:
    run = RUNS[0]
    assert [run.costs(latency).p2p.item() for latency in (True, False)] == [run.latency, 0]
    assert run.costs().duration("W", 0) == pytest.approx(run.weight_gradient)
    assert run.costs(latency=False).duration("I", 0) == pytest.approx(run.input_gradient)


def test_the_rate_takes_the_longest_span_of_one_device() -> None:
    # The last device of this ZB-H1 starts 2 forwards late and ends last: 264 on one device, 270 over all of them.
    timeline = simulate(build("zb-h1", 4, 8), Costs(forward=10, backward=20, weight_share=0.6))
    assert (timeline.device_span, timeline.makespan) == (264, 270)
    assert bubble_rate(timeline) == pytest.approx((264 - 240) / 264)


def test_uneven_stages_batches_and_junk_are_refused() -> None:
    schedule = build("1f1b", 2, 4)
    uneven = simulate(schedule, Costs(forward=[1, 2], backward=2))
    with refusal("outside-the-formula", "equal stages"):
        bubble_rate(uneven)
    batch = simulate(schedule, Costs(forward=[[1], [2]], backward=2))
    with refusal("several-settings", "at()"):
        bubble_rate(batch)
    with refusal("not-a-timeline", "1f1b"):
        bubble_rate("1f1b")  # type: ignore[arg-type]
