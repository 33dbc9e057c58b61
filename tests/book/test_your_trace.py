"""Run every cell of the page "Traces of your own job", hold its sentences against what its cells compute, and try its commands."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from command_line import hybridlab

from hybridlab import Costs, Schedule, Timeline, build, simulate

BOOK = Path(__file__).resolve().parents[2] / "book"
RECORDED = BOOK / "your_trace"


@pytest.fixture(scope="module")
def page() -> tuple[dict[str, Any], str]:
    """Return the names that the cells of the page define, and what they print."""
    text = (BOOK / "your_trace.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.chdir(BOOK), contextlib.redirect_stdout(printed):
        for cell in re.findall(r"```\{code-cell\} python3\n(?:---\n.*?\n---\n)?(.*?)```", text, re.DOTALL):
            exec(compile(cell, "your_trace.md", "exec"), names)  # noqa: S102
    return names, printed.getvalue()


def test_the_recorded_step_is_1f1b_and_its_last_stage_is_half_as_long_again(page: tuple[dict[str, Any], str]) -> None:
    step, costs = page[0]["step"], page[0]["costs"]
    assert str(step.schedule) == str(build("1f1b", 4, 8))
    others = costs.forward[:3].mean() + costs.backward[:3].mean()
    assert 1.25 < (costs.forward[3] + costs.backward[3]) / others < 1.75
    assert f"{step.makespan:.1f}" == "330.6", "the alternative text of the picture has this number"


def test_most_of_the_critical_path_runs_on_device_3_which_is_almost_always_busy(page: tuple[dict[str, Any], str]) -> None:
    path = page[0]["where"].critical_path
    assert sum(each.op.stage == 3 for each in path) > len(path) / 2
    step = page[0]["step"]
    on_3 = step.device == 3
    assert (step.end - step.start)[on_3].sum() > 0.9 * (step.end[on_3].max() - step.start[on_3].min())


def test_the_simulation_is_about_as_long_and_the_schedule_made_is_shorter(page: tuple[dict[str, Any], str]) -> None:
    names, printed = page
    assert 0 < 1 - names["again"].makespan / names["step"].makespan < 0.15
    assert names["made"].makespan < names["again"].makespan
    assert simulate(names["made"], names["costs"]).peak_activations.max() <= 4
    assert names["made"].to_csv() in printed


def test_the_order_made_for_the_trace_ran_in_torch_and_was_shorter_as_predicted(page: tuple[dict[str, Any], str]) -> None:
    names, printed = page
    step, better = names["step"], names["better"]
    predicted = [simulate(ran.schedule, names["costs"]).makespan for ran in (step, better)]
    assert printed.count(" measured ") == 2
    assert better.schedule.orders != step.schedule.orders
    assert better.peak_activations.max() <= 4
    assert better.makespan / step.makespan == pytest.approx(predicted[1] / predicted[0], rel=0.05)
    assert predicted[0] < step.makespan < 1.15 * predicted[0]
    assert predicted[1] < better.makespan < 1.15 * predicted[1]


def command(*arguments: object) -> Result:
    return hybridlab("trace", *arguments)


def test_the_command_prints_where_the_step_went_and_writes_times_and_orders(tmp_path: Path) -> None:
    done = command(RECORDED, "--costs", tmp_path / "times.csv", "--csv", tmp_path / "orders.csv")
    step = Timeline.from_chrome_trace(RECORDED)
    assert done.exit_code == 0, done.output
    assert f"makespan {step.makespan:.6g} ms, idle {step.bubble_ratio:.1%}" in done.stdout
    assert "critical path" in done.stdout
    assert str(Schedule.from_csv(tmp_path / "orders.csv")) == str(step.schedule)
    read, made = Costs.from_csv(tmp_path / "times.csv"), Costs.from_timeline(step)
    assert simulate(build("zb-h1", 4, 8), read).makespan == simulate(build("zb-h1", 4, 8), made).makespan


def test_wrong_files_are_told_in_a_sentence(tmp_path: Path) -> None:
    done = command(tmp_path / "nowhere.json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "cannot be read: No such file" in done.stderr
    (tmp_path / "cut.json").write_text('{"traceEvents": [{"name": "PP:0F0"', encoding="utf-8")
    assert "cut off" in command(tmp_path / "cut.json").stderr
