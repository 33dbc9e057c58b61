"""Test the commands on times and schedules: what they print and write, how they end, and what a wrong call says."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import command_line
import pytest
from cases import in_turn
from command_line import end_of, every_command, hybridlab, json_of

from hybridlab import REGISTRY, Costs, Memory, Schedule, build, rank, schedule_for, simulate
from hybridlab.automatic import search
from hybridlab.hardware import H100
from hybridlab.model import Transformer
from hybridlab.planner import search as search_plans

TIMES = "time in ms,device 0,device 1,device 2\nforward,10,12,10\nbackward,20,24,21\nweight_gradient,9,11,9\np2p,1,3,\n"


@pytest.fixture
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(search, "FIRST_POLICIES", 60_000)  # a search without effort then takes less time
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "times.csv"
    path.write_text(TIMES, encoding="utf-8")
    return path


def test_rank_prints_the_table_and_writes_it(times: Path) -> None:
    done = hybridlab("rank", times, "--microbatches", 6, "--memory", 3, "--seconds", 0.1, "--csv", "table.csv", "--plot", "rank.png")
    ranking = rank(Costs.from_csv(times), 6, memory=3, seconds=0.1)
    assert (done.exit_code, done.stdout) == (0, f"{ranking!r}\n")
    assert Path("table.csv").read_text(encoding="utf-8") == ranking.to_csv()
    assert Path("rank.png").read_bytes().startswith(b"\x89PNG")
    times.write_text(
        "time in ms,device 0,device 1,device 2,device 3\nforward,10,10,10,10\nbackward,20,20,20,20\nweight_gradient,12,12,12,12\np2p,5\n",
        encoding="utf-8",
    )
    call = ["rank", times, "--microbatches", 12, "--memory", 3, "--seconds", 0, "--most-chunks", 2]
    (note,) = (each for each in json_of(*call)["notes"] if "frees" in each)
    assert "say so: with --held-after 0.5 a schedule with 2 chunks takes" in note
    assert note in hybridlab(*call).stdout


@in_turn("chunks, placement", [(1, "any"), (2, "v")])
def test_schedule_prints_orders_and_writes_csv_and_trace(times: Path, chunks: int, placement: str) -> None:
    call = ["schedule", times, "--microbatches", 6, "--memory", 3, "--chunks", chunks, "--placement", placement, "--seconds", 0.1]
    done = hybridlab(*call, "--csv", "out.csv", "--trace", "trace.json")
    assert done.exit_code == 0, done.output
    made = Schedule.parse(done.stdout)
    assert (simulate(made, Costs.from_csv(times)).peak_activations <= 3).all()
    assert Schedule.from_csv("out.csv") == made
    assert f"{simulate(made, Costs.from_csv(times)).makespan:.6g} ms: " in done.stderr
    slices = [event for event in json.loads(Path("trace.json").read_text(encoding="utf-8"))["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == made.kind.size


def test_an_interrupt_writes_the_best_so_far(times: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "greedy", stopped)
    done = hybridlab("schedule", times, "--microbatches", 6, "--csv", "out.csv")
    assert done.exit_code == 130
    assert "interrupted: these are the best results so far" in done.stderr
    assert Schedule.from_csv("out.csv").microbatches == 6


@in_turn(
    "arguments, words",
    [
        (["rank", "none.csv", "--microbatches", 4], "'none.csv' cannot be read: No such file or directory"),
        (["rank", "times.csv", "--microbatches", 0], "microbatches must be a whole number of at least 1, not 0"),
        (["rank", "times.csv", "--microbatches", 4, "--memory", 0.5], "memory must hold at least 1 microbatch"),
        (["rank", "times.csv", "--microbatches", 4, "--unit", "h"], "unit"),
        (["rank", "times.csv", "--microbatches", 4, "--unit", "s"], "--unit s contradicts the file"),
        (["rank", "times.csv", "--microbatches", 4, "--per", "stage"], "leave --per out, or correct the line"),
        (["rank", "times.csv", "--microbatches", 4, "--held-after", 2], "--held-after is a part of an activation"),
        (["rank", "bare.csv", "--microbatches", 4, "--per", "device"], "give --unit s, ms, us or slots"),
        (["rank", "one.csv", "--microbatches", 4, "--per", "device"], "as in --devices 4"),
        (["trace", "event.json"], "as in --events F=forward_step --events B=backward_step --schedule 1f1b"),
        (["rank", os.fsdecode(b"caf\xe9.csv"), "--microbatches", 4], "caf"),
        (["rank", "times.csv", "--microbatches", 4, "--memory", "80GB"], "memory in bytes needs --activation"),
        (["rank", "times.csv", "--microbatches", 4, "--activation", "1GB"], "--activation and --weights need --memory"),
        (["rank", "times.csv", "--microbatches", 4, "--memory", 4, "--weights", "1GB"], "--weights counts bytes"),
        (
            ["rank", "times.csv", "--microbatches", 4, "--memory", "80GB", "--activation", "1,1"],
            "--activation 1 has no unit, so it would be bytes",
        ),
        (
            ["rank", "times.csv", "--microbatches", 4, "--memory", 80, "--activation", "1GB"],
            "--memory 80 has no unit, so it would be bytes",
        ),
        (["rank", "times.csv", "--microbatches", 4, "--memory", 8, "--activation", 1, "--weights", 0], "write 8GB for gigabytes"),
        (["rank", "times.csv", "--microbatches", 4, "--memory", "4,4"], "3 devices"),
        (["schedules", "--devices", 0, "--microbatches", 4], "devices must be a whole number of at least 1"),
        (["schedules", "--devices", 4, "--microbatches", 4, "--weights", "1GB"], "--weights needs --activation"),
        (["schedules", "--devices", 4, "--microbatches", 4, "--activation", "1,1,1,1"], "--activation 1 has no unit"),
        (["schedules", "--devices", 4, "--microbatches", 4, "--activation", "1GB", "--weights", 20], "--weights 20 has no unit"),
        (["simulate", "none.csv", "times.csv"], "none.csv"),
        (["simulate", "times.csv", "times.csv"], "line 1, column 1: 'time' is not an operation"),
        (["plan", "--layers", 2, "--hidden", 64, "--heads", 2, "--gpus", 8, "--gpu", "H100"], "did you mean 'H100-SXM5-80GB'"),
        (["plan", "--layers", 200, "--hidden", 16384, "--heads", 128, "--gpus", 8], "none of"),
        (["plan", "--layers", 2, "--heads", 2, "--gpus", 8], "(--hidden), or its file with --config"),
        (["plan", "--config", "times.csv", "--layers", 2, "--gpus", 8], "times.csv has the sizes of the model: leave --layers out"),
        (["plan", "--config", "times.csv", "--gpus", 8], "times.csv"),
        (["run", "--wire", "FP8"], "FP8 is E4M3 or E5M2"),
        (["run", "--forward", "ten"], "'ten' is not a time"),
        (["trace", "times.csv", "--events", "F"], "F=forward_step"),
        (["trace", "times.csv", "--chunks", 2], "--chunks needs --schedule"),
        (["rank", "times.csv", "--microbatches", 4, "--seconds", 0, "--plot", "rank.xyz"], "rank.xyz cannot be written"),
        (["schedule", "times.csv", "--microbatches", 4, "--per", "stage", "--chunks", 2], "device"),
        (["schedule", "times.csv", "--microbatches", 4, "--seconds", 0, "--csv", "none/out.csv"], "cannot be written"),
        (["schedule", "times.csv", "--microbatches", 4, "--chunks", 2, "--placement", "loop"], "from device 2 to device 0"),
        (["schedule", "times.csv"], "Missing option '--microbatches'"),
    ],
)
@pytest.mark.usefixtures("times")
def test_a_wrong_call_is_told_in_a_sentence(arguments: list[object], words: str) -> None:
    Path("bare.csv").write_text("time,device 0,device 1\nforward,1,2\nbackward,2,4\n", encoding="utf-8")
    Path("one.csv").write_text("time in ms,time\nforward,1\nbackward,2\n", encoding="utf-8")
    Path("event.json").write_text('[{"ph": "X", "name": "matmul", "ts": 0, "dur": 1}]', encoding="utf-8")
    done = hybridlab(*arguments)
    assert (done.exit_code, words in done.stderr) == (2, True), done.output


def test_a_figure_without_matplotlib_is_refused_in_a_sentence(times: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hybridlab.plot", None)
    done = hybridlab("rank", times, "--microbatches", 4, "--seconds", 0, "--plot", "rank.png")
    assert (done.exit_code, "pip install 'hybridlab[labs]'" in done.stderr) == (2, True), done.output


def test_times_come_from_standard_input(times: Path) -> None:
    call = ["--microbatches", 4, "--seconds", 0]
    assert hybridlab("rank", "-", *call, stdin=TIMES).stdout == hybridlab("rank", times, *call).stdout
    order = build("1f1b", 3, 4)
    Path("order.csv").write_text(order.to_csv(), encoding="utf-8")
    assert json_of("simulate", "-", times, stdin=order.to_csv()) == json_of("simulate", "order.csv", "-", stdin=TIMES)


def test_a_name_that_is_not_utf_8_can_be_read_and_written(times: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    times.rename(name)
    done = hybridlab("rank", name, "--microbatches", 4, "--seconds", 0, "--csv", f"{name}.csv", "--plot", f"{name}.png")
    assert (done.exit_code, done.stderr) == (0, "caf\\udce9.csv: written\ncaf\\udce9.png: written\n")
    assert Path(f"{name}.csv").exists()


@in_turn(
    "options, memory",
    [
        (["--memory", 3], 3),
        (["--memory", "2,3,1"], [2, 3, 1]),
        (["--memory", 80], 80),
        (["--memory", "8GB", "--activation", "2GB", "--weights", "2GB"], Memory("8GB", activation="2GB", weights="2GB")),
        (["--memory", "8GB,8GB,6GB", "--activation", "2GB"], Memory(["8GB", "8GB", "6GB"], activation="2GB")),
    ],
)
@pytest.mark.usefixtures("times")
def test_memory_and_messages_are_as_in_python(options: list[object], memory: Any) -> None:
    call = ["times.csv", "--microbatches", 6, "--seconds", 0, *options]
    costs = Costs.from_csv("times.csv")
    found = json_of("schedule", *call, "--held-after", 0.5, "--messages", "ordered")
    assert found["makespan"] == schedule_for(costs, 6, memory=memory, seconds=0, held_after=0.5, messages="ordered").makespan
    ranking = rank(costs, 6, memory=memory, seconds=0, most_chunks=1, split=False, messages="ordered")
    found = json_of("rank", *call, "--most-chunks", 1, "--no-split", "--messages", "ordered")
    assert (found["schedules"], found["notes"]) == (ranking.to_rows(), list(ranking.notes))


def test_schedules_shows_the_whole_registry_with_its_memory_and_bubble(tmp_path: Path) -> None:
    found = json_of("schedules", "--devices", 4, "--microbatches", 8, "--forward", 2, "--backward", 3, "--p2p", 1)
    assert {each["schedule"] for each in found["schedules"] + found["left_out"]} == set(REGISTRY)
    for each in found["schedules"]:
        timeline = simulate(build(each["schedule"], 4, 8, each["chunks"]), Costs(forward=2, backward=3, p2p=1))
        assert each["peak"] == timeline.peak_activations.max()
        assert (each["makespan"], each["device_span"]) == (timeline.makespan, timeline.device_span)
        assert each["bubble_ratio"] == timeline.bubble_ratio
        assert "memory_gb" not in each
    in_bytes = json_of("schedules", "--devices", 4, "--microbatches", 8, "--activation", "2GB", "--weights", "10GB")
    assert {each["schedule"]: each["memory_gb"] for each in in_bytes["schedules"]}["chimera"] == 2 * 10 + 4 * 2
    of_stages = json_of("schedules", "--devices", 2, "--microbatches", 4, "--activation", "1GB", "--weights", "10GB,2GB")
    rows = {each["schedule"]: each["memory_gb"] for each in of_stages["schedules"]}
    assert (rows["1f1b"], rows["chimera"]) == (10 + 2, 10 + 2 + 2)
    reasons = {each["schedule"]: each["reason"] for each in of_stages["left_out"]}
    assert reasons["zb-v"] == "it has 4 stages, but the memory lists weights for 2 stages: list 4, or give one amount"
    lines = hybridlab("schedules", "--devices", 3, "--microbatches", 4, "--csv", tmp_path / "all.csv").stdout.splitlines()
    assert (
        (tmp_path / "all.csv")
        .read_text(encoding="utf-8")
        .startswith("schedule,chunks,copies,peak,makespan,device_span,bubble_ratio,messages\n")
    )
    assert any(line.startswith("chimera is left out: chimera needs an even number of devices") for line in lines)
    lines = hybridlab("schedules", "--devices", 8, "--microbatches", 32).stdout.splitlines()
    assert lines[0].split() == ["schedule", "chunks", "copies", "peak", "makespan", "span", "idle", "messages"]
    rows = {line.split()[0]: line.split()[4:6] for line in lines}
    assert (rows["zb-h1"], rows["zb-h2"]) == (["103", "103"], ["103", "96"])  # 32 x 3: no bubble
    assert lines[-1].endswith("(Qi et al., arXiv 2401.10241). It is shorter than the makespan for zb-v, zb-h2.")


def test_messages_in_a_file_of_torch_are_left_out_with_a_note_or_simulated(times: Path) -> None:
    whole = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n"
    crossed = whole.replace("1RECV_F1,1F1,1B0,1SEND_B0", "1B0,1SEND_B0,1RECV_F1,1F1")
    times.write_text("time in ms,device 0,device 1\nforward,1,1\nbackward,2,2\np2p,1\n", encoding="utf-8")
    for text in (whole, crossed):
        Path("torch.csv").write_text(text, encoding="utf-8")
        done = hybridlab("simulate", "torch.csv", times)
        assert done.stderr.startswith("8 sends and receives of the file are left out: ")
        assert json_of("simulate", "torch.csv", times)["notes"] == [done.stderr.strip()]
    done = hybridlab("simulate", "torch.csv", times, "--messages", "file")
    assert (done.exit_code, "device 0 waits at 'send 0F1 to 1'" in done.stderr) == (1, True), done.output
    found = json_of("simulate", "-", times, "--messages", "file", stdin=whole)
    assert (found["makespan"], found["notes"]) == (13, [])


def test_an_order_of_ones_own_is_simulated(times: Path) -> None:
    timeline = simulate(build("zb-h1", 3, 5), Costs.from_csv(times))
    Path("order.csv").write_text(timeline.schedule.to_csv(), encoding="utf-8")  # type: ignore[union-attr]
    found = json_of("simulate", "order.csv", times, "--trace", "trace.json")
    assert (found["makespan"], found["unit"]) == (timeline.makespan, "ms")
    assert found["idle"] == (timeline.makespan - timeline.busy).tolist()
    assert found["peak_activations"] == timeline.peak_activations.tolist()
    events = json.loads(Path("trace.json").read_text(encoding="utf-8"))["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == [str(op) for op in timeline.schedule.ops]
    ordered = simulate(build("zb-h1", 3, 5), Costs.from_csv(times), messages="ordered")
    assert json_of("simulate", "order.csv", times, "--messages", "ordered")["makespan"] == ordered.makespan
    assert hybridlab("simulate", "order.csv", times).stdout.startswith(f"makespan {timeline.makespan:g} ms, idle ")


def test_events_of_any_name_are_read_with_the_schedule_that_ran(tmp_path: Path) -> None:
    names = ["forward_step", "forward_step", "backward_step", "backward_step"]
    events = [{"ph": "X", "name": name, "ts": 9000 * place, "dur": 2000} for place, name in enumerate(names)]
    (tmp_path / "trace.json").write_text(json.dumps(events), encoding="utf-8")
    call = ["trace", tmp_path / "trace.json", "--events", "F=forward_step", "--events", "B=backward_step"]
    found = json_of(*call, "--schedule", "gpipe", "--chunks", 1, "--csv", tmp_path / "orders.csv")
    assert (found["makespan"], found["unit"], found["devices"]) == (29.0, "ms", 1)
    assert [step["op"] for step in found["critical_path"]] == ["0F0", "0F1", "0B0", "0B1"]
    assert (tmp_path / "orders.csv").read_text(encoding="utf-8") == build("gpipe", 1, 2).to_csv()


def test_plan_answers_as_search_does(tmp_path: Path) -> None:
    call = ["plan", "--layers", 24, "--hidden", 2304, "--heads", 24, "--gpus", 32, "--most", 3, "--csv", tmp_path / "plans.csv"]
    plans = search_plans(Transformer(24, 2304, 24), 32, H100)
    found = json_of(*call)
    assert (found["plans"], found["fit"], found["tried"]) == (plans.to_rows(3), len(plans), plans.tried)
    assert (tmp_path / "plans.csv").read_text(encoding="utf-8") == plans.to_csv()
    assert len(hybridlab(*call).stdout.splitlines()) == 2 + 3
    config = {"model_type": "gpt2", "n_layer": 24, "n_embd": 2304, "n_head": 24, "n_positions": 1024, "vocab_size": 50257}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    read = json_of("plan", "--config", tmp_path / "config.json", "--sequence", 512, "--gpus", 32, "--most", 1)
    model = Transformer.from_config(tmp_path / "config.json", 512)
    assert read["plans"] == search_plans(model, 32, H100).to_rows(1)


# What all commands promise


@in_turn("name", sorted(every_command()))
def test_every_help_has_examples_that_can_be_called(name: str) -> None:
    command, words = every_command()[name], name.split()
    lines = [line.strip() for line in hybridlab(*words, "--help").stdout.partition("Examples:\n")[2].splitlines()]
    assert lines
    for line in lines:
        program, *arguments = shlex.split(re.split(" [<>] ", line)[0])
        assert [program, *arguments[: len(words)]] == ["hybridlab", *words]
        command.make_context(name, arguments[len(words) :])


def test_every_test_of_the_command_line_refuses_a_traceback() -> None:
    helper = Path(command_line.__file__)
    assert [path.name for path in helper.parent.rglob("test_*.py") if "CliRunner" in path.read_text(encoding="utf-8")] == [
        Path(__file__).name
    ]


FILES_ONLY = {"start", "pack", "reveal", "release", "zoo record"}  # these commands make files for people


def test_every_command_with_results_can_print_them_as_json_and_options_have_one_name() -> None:
    options: dict[str, set[Any]] = {}
    for name, command in every_command().items():
        here = {text: option for option in command.params for text in option.opts if text.startswith("--")}
        assert ("--json" in here) == (name not in FILES_ONLY)
        for text, option in here.items():
            options.setdefault(text, set()).add((type(option.type), option.is_flag))  # type: ignore[attr-defined]
    assert {text for text, kinds in options.items() if len(kinds) > 1} <= {"--chunks"}  # schedule takes 1 or 2


# Ends of a process

SEARCHING = """
import signal, sys
from hybridlab.automatic import search
from hybridlab.bound import solver
from hybridlab.commands import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a program that a shell starts in the background ignores it
for before in ("policies", "exchanges", "windows"):  # searches before it take long
    if before != "%(part)s":
        setattr(search, before, lambda *arguments, **named: [])
home = search if hasattr(search, "%(part)s") else solver
own = home.%(part)s

def told(*arguments, **named):
    sys.stderr.write("searching\\n")
    sys.stderr.flush()
    return own(*arguments, **named)

home.%(part)s = told
main(sys.argv[1:], prog_name="hybridlab")
"""


@in_turn("part, number", [("exchanges", signal.SIGINT), ("interruptible", signal.SIGINT), ("exchanges", signal.SIGTERM)])
def test_one_signal_ends_a_search_with_a_sentence(times: Path, part: str, number: signal.Signals) -> None:
    call = ["rank", str(times), "--microbatches", "40", "--memory", "3", "--seconds", "1000"]
    program = [sys.executable, "-c", SEARCHING % {"part": part}, *call]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as command:
        try:
            assert command.stderr is not None
            assert command.stderr.readline() == "searching\n"
            command.send_signal(number)
            printed, told = end_of(command)
        finally:
            command.kill()
    if number is signal.SIGTERM:
        assert (command.returncode, told.splitlines()[-1]) == (
            143,
            "ended by the signal SIGTERM: what was not yet printed or written is lost",
        )
    else:
        assert (command.returncode, told.splitlines()[-1]) == (130, "interrupted: these are the best results so far")
        assert "made for these times" in printed


def printed_to(place: str, *arguments: str) -> tuple[int, str]:
    """Run a command with its standard output in a file. Return its exit code and what it said."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("PYTHONUNBUFFERED", None)  # most users have a buffer
    line = f"{shlex.join([sys.executable, '-m', 'hybridlab', *arguments])} {place}"
    done = subprocess.run(line, shell=True, stderr=subprocess.PIPE, text=True, env=environment, check=False)  # noqa: S602
    return done.returncode, done.stderr


@in_turn("arguments", [["--help"], ["schedules", "--devices", "4", "--microbatches", "8"]])
def test_a_full_disk_for_the_output_is_told_in_a_sentence(arguments: Sequence[str]) -> None:
    assert printed_to("> /dev/full", *arguments) == (2, "the output cannot be written: No space left on device\n")


def test_an_output_that_nobody_reads_and_a_closed_input_end_without_a_traceback(times: Path) -> None:
    code, told = printed_to("| true", "schedules", "--devices", "4", "--microbatches", "8")
    assert (code, told) == (0, "")
    code, told = printed_to("<&-", "rank", "-", "--microbatches", "4")
    assert (code, told) == (2, "standard input is closed: give the name of a file\n")
