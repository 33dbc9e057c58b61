"""Test what a run with real processes does when something goes wrong: it ends, it says where, and it leaves nothing behind.

No test requires speed: each waits long, and `make bench` prints how soon a fault is seen.
"""

import itertools
import json
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from command_line import end_of, hybridlab
from failing_work import CannotBeLoaded, FailingWork, Planted
from process_table import marked

from hybridlab import Costs, Deadlock, HybridLabError, Op, Schedule, build
from hybridlab.engines import Group, StepWork, run, start
from hybridlab.engines import group as group_module
from hybridlab.engines.board import LOADS, RUNS, WAITS, Board, FaultWatch, reset
from hybridlab.engines.folders import remove_dead, temporary_folder
from hybridlab.engines.group import MOST_PROCESSES
from hybridlab.engines.job import END, Job, checked_job
from hybridlab.engines.worker import Answer, _portable
from hybridlab.errors import RunFailed
from hybridlab.timeline.chrome import chrome_trace

LONG = 60.0  # seconds that no test has to wait
PATIENCE = 2.0  # seconds
numbers = itertools.count()
SPLIT = build("zb-h1", 2, 4)
WHOLE = build("1f1b", 2, 4)


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Mark all processes that a test starts. After the test none is left, and none of their files."""
    mark = f"HYBRIDLAB_TEST=engines-{os.getpid()}-{next(numbers)}."
    monkeypatch.setenv(*mark.split("="))
    with tempfile.TemporaryDirectory(prefix="t") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield mark
        assert gone(mark), f"left: {marked(mark)}"
        assert list(Path(folder).iterdir()) == []


def gone(mark: str) -> bool:
    """Wait until no process with this mark is left, and return whether this was so."""
    end = time.monotonic() + LONG
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.01)
    return not marked(mark)


def failed(work: StepWork, schedule: Schedule = WHOLE, engine: str | Group = "mpi", **change: Any) -> RunFailed:
    with pytest.raises(RunFailed) as caught:
        run(schedule, work, **{"engine": engine, "replicas": 2, "patience": LONG} | change)
    return caught.value


# Processes that end


@pytest.mark.slow
def test_the_memory_that_processes_share_has_no_name_any_more_when_all_have_started() -> None:
    """So nothing of it is left, however they end."""
    with Group("mpi", 2) as group:
        lines = [line for pid in group._pids for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    shared = [line for line in lines if "/mpich_shm" in line]
    assert shared
    assert all(line.endswith("(deleted)") for line in shared)


def look_late(group: Group, last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the launcher look at the connection of one rank last, and half a second after an end: mpiexec can end all ranks meanwhile."""
    group._connections[last] = group._connections.pop(last)
    wait = multiprocessing.connection.wait

    def late(connections: list[Any], timeout: float | None = None) -> list[Any]:
        if not wait(connections, timeout):
            return []
        time.sleep(0.5)
        return wait(connections, 0)

    monkeypatch.setattr(multiprocessing.connection, "wait", late)


@pytest.mark.slow
def test_the_end_of_a_rank_ends_no_other_process() -> None:
    """Left alone, mpiexec ends all of them, most often within milliseconds."""
    with Group("mpi", 2) as group:
        rank, *others = group._pids
        os.kill(rank, signal.SIGKILL)
        end = time.monotonic() + LONG
        while group_module._lives(rank) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.5)
        assert [group_module._lives(each) for each in (rank, *others)] == [False, True, True, True]


PLACES = [
    (WHOLE, 1, 2, "ring", "the ring of stage 1"),
    pytest.param(WHOLE, 0, 1, "begin", "the start", marks=pytest.mark.slow),
    pytest.param(WHOLE, 2, 2, "0B0", "0B0, the backward of microbatch 0 on stage 0", marks=pytest.mark.slow),
    pytest.param(SPLIT, 1, 1, "1I2", "1I2, the input gradient of microbatch 2 on stage 1", marks=pytest.mark.slow),
    pytest.param(SPLIT, 1, 1, "1W3", "1W3, the weight gradient of microbatch 3 on stage 1", marks=pytest.mark.slow),
    pytest.param(WHOLE, 0, 1, "update", "its optimiser", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("schedule", "rank", "replicas", "place", "words"), PLACES)
def test_a_killed_process_is_named_with_its_operation_however_late_the_launcher_looks(
    schedule: Schedule, rank: int, replicas: int, place: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Group("mpi", 2 * replicas) as group:
        look_late(group, rank, monkeypatch)
        why = failed(FailingWork(rank, place, "kill"), schedule, group, replicas=replicas)
    assert (why.code, why.rank) == ("device-gone", rank)
    assert why.op == (Op.parse(place) if place[0].isdecimal() else None)
    assert str(why).startswith(f"the process of device {rank} ended at {words}: it was killed")


def test_what_was_measured_before_a_process_was_killed_is_kept() -> None:
    why = failed(FailingWork(1, "1B3", "kill"), costs=Costs(forward=2, backward=3), replicas=1)
    assert (why.code, why.rank, why.op) == ("device-gone", 1, Op.parse("1B3"))
    assert "1B3, the backward of microbatch 3 on stage 1: it was killed" in str(why)
    ended = {(row["device"], row["op"]) for row in why.measured}
    assert {(1, "1F0"), (1, "1B2"), (0, "0F3")} <= ended
    assert not {(1, "1B3"), (0, "0B3")} & ended
    assert all(row["end"] - row["start"] >= 2e-3 - 1e-6 for row in why.measured)  # type: ignore[operator]
    assert why.measured[0]["start"] == 0
    events = chrome_trace(why.measured, 1e6, "until it failed")["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == [row["op"] for row in why.measured]


def test_a_process_that_leaves_python_is_found_and_the_error_has_what_it_printed() -> None:
    class Leaves(FailingWork):
        def work(self, rank: int, op: Op, message: Any) -> Any:
            print(f"rank {rank} says {op}")
            return super().work(rank, op, message)

    why = failed(Leaves(0, "0B0", "exit"), build("1f1b", 1, 1), replicas=1)
    assert (why.code, why.rank) == ("device-gone", 0)
    assert "rank 0 says 0B0" in str(why)


def answers_of(reports: dict[int, Answer], ended: int | None, tmp_path: Path) -> Any:
    """Let a launcher of two ranks get these reports; then one rank ends if it is to end. Return what the launcher raises or returns."""
    here, there = zip(*(multiprocessing.connection.Pipe() for _ in range(2)), strict=True)
    group: Any = Group.__new__(Group)
    group.ranks, group._connections, group._processes = 2, dict(enumerate(here)), []
    group._folder, group._read = tmp_path, 0
    (tmp_path / "output").touch()
    for rank, answer in reports.items():
        there[rank].send(answer)
    timer = threading.Timer(0.2, there[ended].close if ended is not None else list)
    timer.start()
    try:
        return group._answers(FaultWatch(Board(2), checked_job(WHOLE, None, 1), LONG), lambda: None)
    except HybridLabError as why:
        return why
    finally:
        timer.join()
        for each in (*here, *there):
            each.close()


def test_a_rank_that_cannot_reach_another_one_is_not_named_if_that_one_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report comes first, and the end of the other rank is seen later."""
    fault = RunFailed("device 0 failed at 0B0: connection closed by peer", "device-failed", 0)
    lost, own = Answer([], fault=fault, lost=True), Answer([], fault=fault)
    found = answers_of({0: lost}, 1, tmp_path)
    assert (found.code, found.rank) == ("device-gone", 1)
    assert answers_of({0: own}, 1, tmp_path).code == "device-failed", "an error of its own is told at once"
    monkeypatch.setattr(group_module, "ENDS", 0.1)
    assert answers_of({0: lost}, None, tmp_path).code == "device-failed", "nobody has ended"


def test_the_end_of_a_process_that_a_run_does_not_use_is_told() -> None:
    found = watched()[1].gone(2, "it was killed")
    assert (str(found), found.code, found.rank) == ("process 2, which this run does not use, has ended: it was killed", "device-gone", 2)


# Errors


def test_an_error_in_the_work_has_the_sentence_and_the_cause_that_threads_give_and_ends_the_processes() -> None:
    work = FailingWork(2, "0F1", "error")
    with Group("mpi", 4, patience=LONG) as group:
        why, over_threads = (failed(work, engine=engine) for engine in (group, "threads"))
        with refusal("group-ended", "start a new Group"):
            run(WHOLE, engine=group)
    assert (str(why), why.code, why.rank, why.op) == (str(over_threads), "device-failed", 2, Op.parse("0F1"))
    assert isinstance(why.__cause__, ZeroDivisionError)


def test_an_error_that_cannot_be_copied_is_told_in_words() -> None:
    assert (type(_portable(Planted("planted", "twice"))), str(_portable(Planted("planted", "twice")))) == (RuntimeError, "Planted: planted")
    kept = ValueError("as it is")
    assert _portable(kept) is kept


def test_what_cannot_be_run_is_refused_and_what_cannot_be_loaded_ends_the_processes() -> None:
    with Group("mpi", 3, patience=LONG) as group:
        with refusal("wrong-number-of-processes", "a run of 4 ranks", "3 were started", "start 4"):
            run(WHOLE, engine=group, replicas=2)
        with refusal("not-picklable", "each rank gets a copy of the work", "cannot be copied to another process"):
            run(WHOLE, lambda rank, op, message, file=sys.__stdout__: None, engine=group)
        assert len(run(WHOLE, engine=group).results) == 2, "the group can still run"
        with refusal("not-picklable", "cannot be loaded in the process of device", "TypeError"):
            run(WHOLE, CannotBeLoaded(), engine=group)
    with refusal("too-large", "ranks", MOST_PROCESSES):
        Group("mpi", MOST_PROCESSES + 1)
    with refusal("unknown-name", "engine", "mpi"):
        run(WHOLE, engine="mpy")


def test_a_result_that_cannot_be_copied_is_refused() -> None:
    with refusal("not-picklable", "the result of device", "cannot be copied"):
        run(build("1f1b", 1, 1), FailingWork(9, "", "unpicklable"), engine="mpi")


def test_a_missing_mpiexec_or_mpi4py_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(start.sysconfig, "get_path", lambda name: "nowhere")
        patch.setenv("PATH", "")
        with refusal("not-installed", "mpiexec", "pip install 'hybridlab[mpi]'"):
            run(WHOLE, engine="mpi")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "mpi4py", None)
        with refusal("not-installed", "mpi4py", "pip install 'hybridlab[mpi]'"):
            run(WHOLE, engine="mpi")


def test_an_mpiexec_that_fails_is_told_with_what_it_printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "mpiexec"
    broken.write_text("#!/bin/sh\necho no such host >&2\nexit 7\n")
    broken.chmod(0o755)
    monkeypatch.setattr(start.sysconfig, "get_path", lambda name: str(tmp_path))
    with refusal("not-started", "only 0 of 2 processes", "no such host"):
        run(WHOLE, engine="mpi")


@pytest.mark.slow
def test_a_rank_that_ends_before_all_have_started_ends_mpiexec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the launcher need not wait until its time for the start is up."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py/__init__.py").write_text("raise SystemExit('no such library')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with refusal("not-started", "only 0 of 1 processes", "no such library"):
        Group("mpi", 1)


def test_errors_of_a_run_can_be_copied_to_another_process() -> None:
    import pickle

    why = RunFailed("a sentence", "a-code", 3, Op.parse("0F0"))
    why.measured = [{"op": "0F0", "start": np.float64(0.0)}]
    copy = pickle.loads(pickle.dumps(why))  # noqa: S301
    assert isinstance(copy, HybridLabError)
    assert (str(copy), copy.code, copy.rank, copy.op, copy.measured) == (str(why), "a-code", 3, why.op, why.measured)


# Ranks that hang or wait; in most tests nobody runs, and the clock is the test's own


def watched(costs: Costs | None = None, patience: float = PATIENCE) -> tuple[Board, FaultWatch, Job]:
    job = checked_job(WHOLE, costs, 1)
    board = Board(2)
    reset(board, 2)
    return board, FaultWatch(board, job, patience), job


def seconds_until(watch: FaultWatch, code: str, most: float = 200.0, look: float = 0.02) -> float:
    """Look at the board again and again, and return after how many seconds there is a fault with this code."""
    for looks in range(1, int(most / look)):
        if (fault := watch.find_fault(look)) is not None:
            assert fault.code == code
            return looks * look
    raise AssertionError(f"no {code}")


@in_turn("costs, longest", [(None, 0.0), (Costs(forward=3, backward=1, unit="s"), 3.0), (Costs(forward=0, backward=0, p2p=500), 0.5)])
def test_a_rank_hangs_when_it_stands_longer_than_patience_and_the_longest_cost(costs: Costs | None, longest: float) -> None:
    board, watch, _ = watched(costs)
    board.note(0, RUNS, 0)
    board.note(1, RUNS, 9)
    assert watch.find_fault(0.02) is None
    assert seconds_until(watch, "device-hangs") == pytest.approx(PATIENCE + longest, abs=0.05)


def test_a_rank_that_hangs_is_named_with_its_operation_but_a_rank_that_still_loads_has_more_time() -> None:
    board, watch, job = watched()
    board.note(1, RUNS, job.schedule.ops.index(Op.parse("1F1")))
    watch.find_fault(0.02)
    for _ in range(99):
        assert watch.find_fault(0.02) is None
        board.note(1, RUNS)
    assert seconds_until(watch, "device-hangs") == pytest.approx(PATIENCE, abs=0.05)
    fault: Any = watch.find_fault(0.02)
    assert (fault.rank, fault.op) == (1, Op.parse("1F1"))
    assert "device 1 has stood at 1F1, the forward of microbatch 1 on stage 1 for 2 seconds longer than its costs allow" in str(fault)
    board, watch, _ = watched()
    assert seconds_until(watch, "device-hangs") == pytest.approx(LOADS, abs=0.05)


def test_all_wait_only_if_nobody_runs() -> None:
    board, watch, job = watched(patience=LONG)
    row = job.schedule.ops.index(Op.parse("1F0"))
    board.note(0, RUNS, 0)
    board.note(1, WAITS, name=row)
    assert all(watch.find_fault(0.02) is None for _ in range(500))
    board.note(0, WAITS, name=END)
    assert seconds_until(watch, "deadlock") == pytest.approx(1, abs=0.05)
    assert "device 0 waits for the end of all other pipelines; device 1 stands at 1F0" in str(watch.find_fault(0.02))


@pytest.mark.parametrize(("state", "code"), [(RUNS, "device-hangs"), (WAITS, "deadlock")])
def test_a_machine_that_sleeps_makes_nobody_look_as_if_he_hung(state: int, code: str) -> None:
    """The time between two looks counts only up to a limit, because the launcher itself may have been asleep."""
    board, watch, _ = watched()
    board.note(0, state, 0)
    board.note(1, state, 8)
    assert watch.find_fault(1e6) is None
    assert watch.find_fault(1e6) is None
    assert seconds_until(watch, code) > 0.5


@pytest.mark.parametrize("way", ["stop", pytest.param("spin", marks=pytest.mark.slow)])
def test_a_rank_that_hangs_is_ended(way: str) -> None:
    why = failed(FailingWork(1, "1F1", way), patience=PATIENCE, costs=Costs(forward=1, backward=2), replicas=1)
    assert (why.code, why.rank, why.op) == ("device-hangs", 1, Op.parse("1F1"))


def test_a_lost_message_is_told_with_the_sentence_of_threads() -> None:
    told = []
    for engine in ("threads", "mpi"):
        with pytest.raises(Deadlock) as caught:
            run(WHOLE, engine=engine, replicas=2, lost=["0F1"])
        told.append((str(caught.value), caught.value.code, caught.value.problems))
    assert told[0] == told[1]
    assert "waits for the output of 0F1 from device" in told[0][0]


# torch.distributed finds the same faults with the same words


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "way", "code"), [("1B0", "kill", "device-gone"), ("ring", "error", "device-failed"), ("0F1", "sleep", "device-hangs")]
)
def test_faults_over_torch_have_the_sentences_of_those_over_mpi(place: str, way: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess.Popen, "poll", lambda process: None)  # a connection can end before the code of its process is known
    rank = 1 if place == "1B0" else 0
    over_mpi = failed(FailingWork(rank, place, way), patience=PATIENCE)
    with Group("torch", 4, patience=PATIENCE) as group:
        if way == "kill":  # the others report that they cannot reach it, and the launcher sees their reports first
            look_late(group, rank, monkeypatch)
        over_torch = failed(FailingWork(rank, place, way), engine=group)
    assert (over_torch.code, over_torch.rank, over_torch.op) == (over_mpi.code, over_mpi.rank, over_mpi.op)
    assert over_torch.code == code
    if way == "kill":
        assert str(over_torch).endswith("signal SIGKILL ended it"), "each process of torch is the launcher's own child"
        assert str(over_torch).partition(": ")[0] == str(over_mpi).partition(": ")[0]
    else:
        assert str(over_torch) == str(over_mpi)


@pytest.mark.torch
@pytest.mark.slow
def test_a_lost_message_over_torch_is_told_with_the_sentence_of_threads() -> None:
    told = []
    for engine in ("threads", "torch"):
        with pytest.raises(Deadlock) as caught:
            run(WHOLE, engine=engine, replicas=2, lost=["0F1"])
        told.append(str(caught.value))
    assert told[0] == told[1]


# Ranks that mpiexec or torchrun has started

JOINED = """
import sys
import numpy as np
from failing_work import FailingWork
from small_data import small_data
from hybridlab import FP16, build
from hybridlab.engines import TrainingWork, run, trained_weights
from hybridlab.training import Network, train

engine, way, replicas = *sys.argv[1:3], int(sys.argv[3])
schedule, small = build("1f1b", 2, 4), {"network": Network((12, 8, 4)), "data": small_data(), "batch": 64}
if way:
    run(schedule, FailingWork(1, "1B0", way), engine=engine, replicas=replicas)
else:
    ran = run(schedule, TrainingWork(schedule, replicas, **small), engine=engine, replicas=replicas, wire=FP16, steps=3)
    expected = train(schedule, replicas, wire=FP16, steps=3, **small).replicas
    rings = [step.spans.of("reduce-scatter", "all-gather", "optimiser") for step in ran.timelines]
    after = all(ring.start.min() >= step.end.max() for step, ring in zip(ran.timelines, rings))
    sys.stdout.write(f"{np.array_equal(trained_weights(schedule, ran.results), expected)} {len(ran.timelines)} {after}\\n")
"""


def started_by(launcher: list[str], engine: str, way: str, folder: Path, replicas: int = 2) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(JOINED)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*launcher, program, engine, way, str(replicas)], capture_output=True, text=True, env=environment, timeout=5 * LONG, check=False
    )


def mpiexec(ranks: int) -> list[str]:
    return [start.mpi_commands(ranks, [])[0][0][0], "-n", str(ranks), sys.executable]


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]


def test_ranks_that_mpiexec_has_started_run_together_and_each_has_the_result(tmp_path: Path) -> None:
    ran = started_by(mpiexec(4), "mpi", "", tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count("True 3 True") == 4


@pytest.mark.parametrize(
    ("replicas", "way", "told"),
    [
        pytest.param(2, "", "a run of 4 ranks needs as many processes, but 2 were started: start 4", marks=pytest.mark.slow),
        (1, "error, mpiexec slow", "device 1 failed at 1B0, the backward of microbatch 0 on stage 1: ZeroDivisionError: planted"),
        pytest.param(1, "kill", "signal 9", marks=pytest.mark.slow),
    ],
)
def test_a_fault_of_ranks_that_mpiexec_has_started_ends_all_of_them(replicas: int, way: str, told: str, tmp_path: Path) -> None:
    ran = started_by(mpiexec(2), "mpi", way, tmp_path, replicas)
    assert ran.returncode != 0
    assert told in ran.stderr + ran.stdout


@pytest.mark.torch
@pytest.mark.slow
def test_ranks_that_torchrun_has_started_run_together_and_a_fault_ends_all_of_them(tmp_path: Path) -> None:
    ran = started_by(TORCHRUN, "torch", "", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("True 3 True") == 4
    ran = started_by(TORCHRUN, "torch", "error", tmp_path)
    assert ran.returncode != 0
    assert "device 1 failed at 1B0, the backward of microbatch 0 on stage 1: ZeroDivisionError: planted" in ran.stderr


# Programs of their own

COMMAND = """
import signal, sys
from hybridlab.commands import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a program that a shell starts in the background ignores it
main(["run", *sys.argv[1:]], prog_name="hybridlab")
"""


@contextmanager
def command(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start the command; if it still runs at the end, end it."""
    program = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    environment = os.environ | {"TMPDIR": tempfile.gettempdir(), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as launcher:
        try:
            yield launcher
        finally:
            launcher.kill()


def wait_for_ranks(mark: str, ranks: int) -> list[int]:
    """Wait until all ranks of the runs have started, each of which has a board in its memory, and return their processes."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        boards = [pid for pid, line in marked(mark).items() if "engines.worker" in line and has_board(pid)]
        if len(boards) >= ranks:
            return boards
        time.sleep(0.05)
    raise AssertionError(f"the ranks have not started: {marked(mark)}")


def has_board(pid: int) -> bool:
    try:
        return "/board" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


FOR_EVER = ("--engine", "mpi", "--devices", 2, "--microbatches", 2, "--forward", 100_000)


@pytest.mark.slow
def test_an_interrupt_and_the_end_of_the_launcher_end_all_ranks_of_this_run_and_no_others(mark: str) -> None:
    with command(*FOR_EVER) as one, command(*FOR_EVER, "--devices", 1) as two, command(*FOR_EVER) as other:
        wait_for_ranks(mark, 5)
        one.send_signal(signal.SIGINT)
        two.send_signal(signal.SIGTERM)  # as Slurm and timeout do
        assert (end_of(one)[1].splitlines()[-1], one.returncode) == ("interrupted", 130)
        assert (end_of(two)[1].splitlines()[-1], two.returncode) == (
            "ended by the signal SIGTERM: what was not yet printed or written is lost",
            143,
        )
        assert len(wait_for_ranks(mark, 2)) == 2, "the other run goes on"
        [living] = Path(tempfile.gettempdir()).iterdir()
        with Group("mpi", 1):
            assert living.exists(), "the next start removes no folder of a process that lives"
        other.kill()
        other.communicate(timeout=LONG)
        assert gone(mark), f"left: {marked(mark)}"
    assert living.exists(), "a killed launcher cannot remove its folder"
    with Group("mpi", 1):
        assert not living.exists(), "the next start removes it"


def test_what_is_no_folder_of_this_library_or_of_this_user_is_never_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    others = [tmp_path / "hybridlab-run", tmp_path / "t-hybridlab-run-1", tmp_path / "target"]
    dead, link, file = (tmp_path / f"hybridlab-run-{name}" for name in ("dead", "link", "file"))
    for each in (*others, dead):
        each.mkdir()
        (each / "board").touch()
    link.symlink_to(tmp_path / "target")
    file.touch()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        remove_dead(tmp_path)
        assert dead.exists()
    remove_dead(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([*others, link, file])
    with temporary_folder(tmp_path) as living:
        remove_dead(tmp_path)
        assert living.exists()
    assert (tmp_path / "target/board").exists()


def test_a_fault_on_the_command_line_has_a_sentence_an_exit_code_and_the_trace_until_then(mark: str, tmp_path: Path) -> None:
    with command(*FOR_EVER[:-1], "5,100000", "--trace", tmp_path / "out.json", "--backward", 1) as launcher:
        ranks = wait_for_ranks(mark, 2)
        time.sleep(0.5)  # device 0 has run its forwards by now; if it has not, nothing is written
        os.kill(ranks[0], signal.SIGKILL)
        _, told = end_of(launcher)
        assert launcher.returncode == 1
    assert "the process of device" in told
    if (tmp_path / "out.json").exists():
        events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
        assert {event["name"] for event in events if event["ph"] == "X"} <= {"0F0", "0F1"}


def called(*arguments: object) -> Any:
    return hybridlab("run", "--forward", 1, "--backward", 1, *arguments)


def test_the_command_prints_the_measured_step_and_the_losses_of_a_training() -> None:
    done = called("--devices", 2, "--microbatches", 4, "--replicas", 2, "--train", "--steps", 2)
    assert done.exit_code == 0, done.output
    assert "1f1b" in done.stdout
    assert "2 x 2 ranks, engine threads" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("loss 2.")


def test_a_full_disk_for_the_trace_is_told_in_a_sentence() -> None:
    done = called("--devices", 1, "--microbatches", 1, "--trace", "/dev/full")
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, "/dev/full cannot be written: No space left on device")
    assert "measured" in done.stdout, "the result is not lost"
