"""Test the commands on measured times: what they print and write, and what a wrong call says."""

import json
import sys
from pathlib import Path

import pytest
from cases import in_turn
from click.testing import CliRunner, Result

from hybridlab import Costs, Schedule, rank, simulate
from hybridlab.automatic import search
from hybridlab.commands import main

TIMES = "time in ms,first,middle,last\nforward,10,12,10\nbackward,20,24,21\nweight_gradient,9,11,9\np2p,1,3,\n"


@pytest.fixture
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "times.csv"
    path.write_text(TIMES, encoding="utf-8")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_rank_prints_the_table_and_writes_it(times: Path) -> None:
    done = run("rank", times, "--microbatches", 6, "--memory", 3, "--seconds", 0.1, "--csv", "table.csv", "--plot", "rank.png")
    ranking = rank(Costs.from_csv(times), 6, memory=3, seconds=0.1)
    assert (done.exit_code, done.stdout) == (0, f"{ranking!r}\n")
    assert Path("table.csv").read_text(encoding="utf-8") == ranking.to_csv()
    assert Path("rank.png").read_bytes().startswith(b"\x89PNG")


@in_turn("chunks", [1, 2])
def test_schedule_prints_orders_and_writes_csv_and_trace(times: Path, chunks: int) -> None:
    call = ["schedule", times, "--microbatches", 6, "--memory", 3, "--chunks", chunks, "--seconds", 0.1]
    done = run(*call, "--csv", "out.csv", "--trace", "trace.json")
    assert done.exit_code == 0, done.output
    made = Schedule.parse(done.stdout)
    assert (simulate(made, Costs.from_csv(times)).peak_activations <= 3).all()
    assert Schedule.from_csv(Path("out.csv").read_text(encoding="utf-8")) == made
    assert f"{simulate(made, Costs.from_csv(times)).makespan:.6g} ms: " in done.stderr
    slices = [event for event in json.loads(Path("trace.json").read_text(encoding="utf-8"))["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == made.kind.size


def test_an_interrupt_writes_the_best_so_far(times: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "greedy", stopped)
    done = run("schedule", times, "--microbatches", 6, "--csv", "out.csv")
    assert done.exit_code == 0
    assert "interrupted" in done.stderr
    assert Schedule.from_csv(Path("out.csv").read_text(encoding="utf-8")).microbatches == 6


@in_turn(
    "arguments, words",
    [
        (["rank", "none.csv", "--microbatches", 4], "'none.csv' cannot be read: No such file or directory"),
        (["rank", "times.csv", "--microbatches", 0], "microbatches must be a whole number of at least 1, not 0"),
        (["rank", "times.csv", "--microbatches", 4, "--memory", 0.5], "memory must hold at least 1 microbatch"),
        (["rank", "times.csv", "--microbatches", 4, "--unit", "h"], "unit is the unit of time"),
        (["rank", "times.csv", "--microbatches", 4, "--seconds", 0, "--plot", "rank.xyz"], "rank.xyz cannot be written"),
        (["schedule", "times.csv", "--microbatches", 4, "--per", "stage", "--chunks", 2], "the times are for 3 stages"),
        (["schedule", "times.csv", "--microbatches", 4, "--seconds", 0, "--csv", "none/out.csv"], "cannot be written"),
        (["schedule", "times.csv"], "Missing option '--microbatches'"),
    ],
)
@pytest.mark.usefixtures("times")
def test_a_wrong_call_is_told_in_a_sentence(arguments: list[object], words: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, words in done.stderr) == (2, True), done.output


def test_a_figure_without_matplotlib_is_refused_in_a_sentence(times: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hybridlab.plot", None)
    done = run("rank", times, "--microbatches", 4, "--seconds", 0, "--plot", "rank.png")
    assert (done.exit_code, "pip install 'hybridlab[labs]'" in done.stderr) == (2, True), done.output
