"""Test the measured runs of the library: that they are read rightly, and that the errors on them stay within their goals."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn

from hybridlab import HybridLabError
from hybridlab.course import comparisons

MEASURED = Path(__file__).parents[1] / "data" / "measured"
# errors beyond a goal, in per cent: mean and worst, rounded up
BEYOND_GOAL: dict[tuple[str, bool], tuple[float, float]] = {}


def table(name: str) -> Any:
    return json.loads((MEASURED / f"{name}.json").read_text(encoding="utf-8"))


@in_turn(
    "group, name",
    [
        ("H100, BF16", "dgxc_h100"),
        ("H100, FP8, NeMo 24.07", "nemo_h100_fp8"),
        ("H100, BF16, Grok-1", "grok1_moe"),
        ("H100, BF16, FSDP, MaxText 70B", "maxtext_fsdp_h100"),
        ("H100, Llama 3.1 405B", "dgxc_405b_2025"),
        ("H100, FP8, MLPerf GPT-3", "mlperf"),
        ("B200, BF16, 4 layers of DeepSeek-V2", "simumax_moe_b200"),
    ],
)
def test_a_run_is_that_of_the_source(group: str, name: str) -> None:
    """The NeMo table gives tokens a second, from which the source computed the same seconds."""
    runs, rows = comparisons.runs(group), table(name)["rows"]
    assert [run.plan.gpus for run in runs] == [row["gpus"] for row in rows]
    assert [run.seconds for run in runs] == pytest.approx([row["seconds"] for row in rows], rel=1e-5)
    for run, row in zip(runs, rows, strict=True):
        assert (run.model.layers, run.model.hidden, run.model.sequence) == (row["layers"], row["hidden"], row["seq"])
        if "memory_gib" in row:
            assert (run.nbytes, run.others_nbytes) == (row["memory_gib"] * 2**30, row["simumax_gib"] * 2**30)


def within_goals() -> Iterator[tuple[str, float, float | None]]:
    for target, found in comparisons.goals_reached():
        beyond = BEYOND_GOAL.get((target.group, target.memory))
        bounds = (target.mean, target.worst) if beyond is None else (each / 100 for each in beyond)
        for error, bound in zip((found.mean_error, found.worst_error), bounds, strict=True):
            yield target.group, error, bound


def test_no_error_on_measured_runs_is_beyond_its_goal_or_what_was_reached() -> None:
    assert [(group, error, bound) for group, error, bound in within_goals() if bound is not None and error > bound] == []


def test_what_is_recorded_for_plans_keeps_the_goals() -> None:
    assert all(each.holds for each in (*comparisons.choices_reached(), comparisons.fits_reached()))


def test_an_unknown_group_is_refused() -> None:
    with pytest.raises(HybridLabError, match="unknown group of runs 'H100'"):
        comparisons.runs("H100")
