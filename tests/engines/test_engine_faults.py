"""Test what a run with real processes does when something goes wrong: it ends, it says where, and it leaves nothing behind.

No test requires speed: each waits long, and `make bench` prints how soon a fault is seen.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import refusal
from failing_work import CannotBeLoaded, FailingWork
from process_table import marked

from hybridlab import Costs, Deadlock, HybridLabError, Op, build
from hybridlab.engines import Group, StepWork, run, start
from hybridlab.engines.group import MOST_PROCESSES
from hybridlab.errors import RunFailed

LONG = 60.0  # seconds that no test has to wait
PATIENCE = 0.5  # seconds
SHARED = Path("/dev/shm")  # noqa: S108  # where MPICH has the memory that its processes share
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
        shared = set(SHARED.iterdir())
        yield mark
        assert gone(mark), f"left: {marked(mark)}"
        assert list(Path(folder).iterdir()) == []
        end = time.monotonic() + LONG
        while (left := {each for each in set(SHARED.iterdir()) - shared if "mpich" in each.name}) and time.monotonic() < end:
            time.sleep(0.05)  # a test beside this one may have started processes just now
        assert not left


def gone(mark: str) -> bool:
    """Wait until no process with this mark is left, and return whether this was so."""
    end = time.monotonic() + LONG
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.01)
    return not marked(mark)


def failed(work: StepWork, schedule: Any = WHOLE, engine: str = "mpi", **change: Any) -> RunFailed:
    with pytest.raises(RunFailed) as caught:
        run(schedule, work, **{"engine": engine, "replicas": 2, "patience": LONG} | change)
    return caught.value


PLACES = [
    (SPLIT, 0, "0F1", "0F1, the forward of microbatch 1 on stage 0"),
    (SPLIT, 3, "1I2", "1I2, the input gradient of microbatch 2 on stage 1"),
    (SPLIT, 1, "1W3", "1W3, the weight gradient of microbatch 3 on stage 1"),
    (WHOLE, 2, "0B0", "0B0, the backward of microbatch 0 on stage 0"),
    (WHOLE, 1, "ring", "the ring of stage 1"),
    (WHOLE, 2, "update", "its optimiser"),
    (WHOLE, 3, "begin", "the start"),
]


@pytest.mark.parametrize(("schedule", "rank", "place", "words"), PLACES)
def test_a_killed_process_is_named_with_its_operation(schedule: Any, rank: int, place: str, words: str) -> None:
    why = failed(FailingWork(rank, place, "kill"), schedule)
    assert (why.code, why.rank) == ("device-gone", rank)
    assert why.op == (Op.parse(place) if place[0].isdecimal() else None)
    assert str(why).startswith(f"the process of device {rank} ended at {words}: it was killed")


def test_what_was_measured_before_a_fault_is_kept() -> None:
    why = failed(FailingWork(1, "1B3", "kill"), costs=Costs(forward=2, backward=3))
    ended = {(row["device"], row["op"]) for row in why.measured}
    assert {(1, "1F0"), (1, "1B2"), (0, "0F3")} <= ended
    assert not {(1, "1B3"), (0, "0B3")} & ended
    assert all(row["end"] - row["start"] >= 2e-3 - 1e-6 for row in why.measured)  # type: ignore[operator]


def test_an_error_in_the_work_has_the_sentence_and_the_cause_that_threads_give() -> None:
    why, over_threads = (failed(FailingWork(2, "0F1", "error"), engine=engine) for engine in ("mpi", "threads"))
    assert (str(why), why.code, why.rank, why.op) == (str(over_threads), "device-failed", 2, Op.parse("0F1"))
    assert isinstance(why.__cause__, ZeroDivisionError)


def test_an_error_that_cannot_be_copied_is_told_in_words() -> None:
    why = failed(FailingWork(1, "1F0", "odd error"))
    assert str(why) == "device 1 failed at 1F0, the forward of microbatch 0 on stage 1: Planted: planted"
    assert str(why.__cause__) == "Planted: planted"


def test_a_process_that_leaves_python_is_found() -> None:
    class Leaves(FailingWork):
        def work(self, rank: int, op: Op, message: Any) -> Any:
            if rank == self.rank:  # an error has only the last lines of all ranks
                print(f"rank {rank} says {op}")
            return super().work(rank, op, message)

    why = failed(Leaves(0, "0B0", "exit"))
    assert (why.code, why.rank) == ("device-gone", 0)
    assert "rank 0 says 0B0" in str(why)


@pytest.mark.parametrize("way", ["sleep", "spin", "stop"])
def test_a_rank_that_hangs_is_named(way: str) -> None:
    why = failed(FailingWork(1, "1F1", way), patience=PATIENCE, costs=Costs(forward=1, backward=2))
    assert (why.code, why.rank, why.op) == ("device-hangs", 1, Op.parse("1F1"))
    assert "device 1 has stood at 1F1, the forward of microbatch 1 on stage 1 for 0.5 seconds longer than its costs allow" in str(why)


def test_a_long_operation_is_not_taken_for_a_rank_that_hangs() -> None:
    ran = run(build("1f1b", 1, 1), costs=Costs(forward=3 * PATIENCE, backward=0, unit="s"), engine="mpi", patience=PATIENCE)
    assert ran.timeline.makespan >= 3 * PATIENCE


@pytest.mark.parametrize("lost", ["0F1", "1B0"])
def test_a_lost_message_is_told_with_the_sentence_of_threads(lost: str) -> None:
    told = []
    for engine in ("threads", "mpi"):
        with pytest.raises(Deadlock) as caught:
            run(WHOLE, engine=engine, replicas=2, lost=[lost])
        told.append((str(caught.value), caught.value.code, caught.value.problems))
    assert told[0] == told[1]
    assert f"waits for the output of {lost} from device" in told[0][0]


def test_one_run_after_a_fault_needs_new_processes() -> None:
    with Group("mpi", 2, patience=LONG) as group:
        with pytest.raises(RunFailed):
            run(WHOLE, FailingWork(0, "0F0", "error"), engine=group)
        with refusal("group-ended", "start new ones"):
            run(WHOLE, engine=group)


def test_work_and_results_that_cannot_be_copied_are_refused() -> None:
    with refusal("not-picklable", "each rank gets a copy of the work", "cannot be copied to another process"):
        run(WHOLE, lambda rank, op, message, file=sys.__stdout__: None, engine="mpi")
    with refusal("not-picklable", "cannot be loaded in the process of device", "TypeError"):
        run(WHOLE, CannotBeLoaded(), engine="mpi")
    with refusal("not-picklable", "the result of device", "cannot be copied"):
        run(WHOLE, FailingWork(9, "", "unpicklable"), engine="mpi")


def test_the_wrong_number_of_processes_is_refused() -> None:
    with Group("mpi", 3, patience=LONG) as group:
        with refusal("wrong-number-of-processes", "a run of 4 ranks", "3 were started", "start 4"):
            run(WHOLE, engine=group, replicas=2)
        assert len(run(WHOLE, engine=group).results) == 2, "the group can still run"
    with refusal("too-large", "ranks", MOST_PROCESSES):
        Group("mpi", MOST_PROCESSES + 1)
    with refusal("unknown-name", "engine", "mpi"):
        run(WHOLE, engine="mpy")


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


# torch.distributed finds the same faults with the same words


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "way", "code"), [("1B0", "kill", "device-gone"), ("ring", "error", "device-failed"), ("0F1", "sleep", "device-hangs")]
)
def test_faults_over_torch_have_the_sentences_of_those_over_mpi(place: str, way: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess.Popen, "poll", lambda process: None)  # a connection can end before the code of its process is known
    rank = 1 if place == "1B0" else 0
    over_mpi, over_torch = (failed(FailingWork(rank, place, way), engine=engine, patience=PATIENCE) for engine in ("mpi", "torch"))
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
from hybridlab import FP16, build
from hybridlab.engines import TrainingWork, run, trained_weights
from hybridlab.training import Network, train

engine, way = sys.argv[1:]
schedule, small = build("1f1b", 2, 4), {"network": Network((64, 8, 10)), "batch": 64}
if way:
    run(schedule, FailingWork(1, "1B0", way), engine=engine, replicas=2)
else:
    ran = run(schedule, TrainingWork(schedule, 2, **small), engine=engine, replicas=2, wire=FP16, steps=3)
    expected = train(schedule, 2, wire=FP16, steps=3, **small).replicas
    sys.stdout.write(f"{np.array_equal(trained_weights(schedule, ran.results), expected)} {len(ran.timelines)}\\n")
"""


def started_by(launcher: list[str], engine: str, way: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(JOINED)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.run([*launcher, program, engine, way], capture_output=True, text=True, env=environment, timeout=5 * LONG, check=False)


def mpiexec(ranks: int) -> list[str]:
    return [start.mpi_commands(ranks, [])[0][0][0], "-n", str(ranks), sys.executable]


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]


def test_ranks_that_mpiexec_has_started_run_together_and_each_has_the_result(tmp_path: Path) -> None:
    ran = started_by(mpiexec(4), "mpi", "", tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count("True 3") == 4


@pytest.mark.parametrize(
    ("ranks", "way", "told"),
    [
        (3, "", "a run of 4 ranks needs as many processes, but 3 were started: start 4"),
        (4, "error", "device 1 failed at 1B0, the backward of microbatch 0 on stage 1: ZeroDivisionError: planted"),
        (4, "error, mpiexec slow", "device 1 failed at 1B0, the backward of microbatch 0 on stage 1: ZeroDivisionError: planted"),
        (4, "kill", "signal 9"),
    ],
)
def test_a_fault_of_ranks_that_mpiexec_has_started_ends_all_of_them(ranks: int, way: str, told: str, tmp_path: Path) -> None:
    ran = started_by(mpiexec(ranks), "mpi", way, tmp_path)
    assert ran.returncode != 0
    assert told in ran.stderr + ran.stdout


@pytest.mark.torch
@pytest.mark.slow
def test_ranks_that_torchrun_has_started_run_together_and_a_fault_ends_all_of_them(tmp_path: Path) -> None:
    ran = started_by(TORCHRUN, "torch", "", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("True 3") == 4
    ran = started_by(TORCHRUN, "torch", "error", tmp_path)
    assert ran.returncode != 0
    assert "device 1 failed at 1B0, the backward of microbatch 0 on stage 1: ZeroDivisionError: planted" in ran.stderr


# Programs of their own


def command(*arguments: object) -> subprocess.Popen[str]:
    program = [sys.executable, "-m", "hybridlab", "run", *map(str, arguments)]
    environment = os.environ | {"TMPDIR": tempfile.gettempdir(), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def wait_for_ranks(mark: str, ranks: int) -> None:
    """Wait until all ranks of a run have started: each has the board in its memory."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        boards = [pid for pid, line in marked(mark).items() if "engines.worker" in line and has_board(pid)]
        if len(boards) >= ranks:
            return
        time.sleep(0.05)
    raise AssertionError(f"the ranks have not started: {marked(mark)}")


def has_board(pid: int) -> bool:
    try:
        return "/board" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


FOR_EVER = ("--engine", "mpi", "--stages", 2, "--microbatches", 2, "--forward", 100_000)


def test_an_interrupt_ends_all_ranks(mark: str) -> None:
    with command(*FOR_EVER) as launcher:
        wait_for_ranks(mark, 2)
        launcher.send_signal(signal.SIGINT)
        _, told = launcher.communicate(timeout=LONG)
        assert (launcher.returncode, told.splitlines()[-1]) == (130, "interrupted")


def test_no_rank_outlives_its_launcher(mark: str) -> None:
    with command(*FOR_EVER) as launcher:
        wait_for_ranks(mark, 2)
        launcher.kill()
        launcher.communicate(timeout=LONG)
        assert gone(mark), f"left: {marked(mark)}"
    for left in Path(tempfile.gettempdir()).glob("hybridlab-*"):  # a killed launcher cannot remove its folder
        for file in left.iterdir():
            file.unlink()
        left.rmdir()


def test_two_runs_at_once_do_not_meet() -> None:
    call = ("--engine", "mpi", "--stages", 2, "--microbatches", 4, "--forward", 5, "--backward", 5, "--train", "--steps", 2)
    with command(*call, "--replicas", 2) as one, command(*call, "--schedule", "gpipe") as other:
        (of_one, _), (of_other, _) = (each.communicate(timeout=LONG) for each in (one, other))
        assert (one.returncode, other.returncode) == (0, 0)
    assert "1f1b" in of_one
    assert "2 x 2 ranks" in of_one
    assert "gpipe" in of_other
    assert of_one.splitlines()[-1].startswith("loss 2.")


def test_a_full_disk_for_the_trace_is_told_in_a_sentence() -> None:
    with command("--engine", "mpi", "--stages", 1, "--microbatches", 1, "--forward", 1, "--trace", "/dev/full") as launcher:
        printed, told = launcher.communicate(timeout=LONG)
        assert (launcher.returncode, told) == (2, "/dev/full cannot be written: No space left on device\n")
    assert "measured" in printed, "the result is not lost"


def test_a_fault_on_the_command_line_has_a_sentence_an_exit_code_and_the_trace_until_then(mark: str, tmp_path: Path) -> None:
    with command(*FOR_EVER[:-1], "5,100000", "--trace", tmp_path / "out.json", "--backward", 1) as launcher:
        wait_for_ranks(mark, 2)
        ranks = sorted(pid for pid in marked(mark) if has_board(pid) and pid != launcher.pid)
        time.sleep(0.5)  # device 0 has run its forwards by now; if it has not, nothing is written
        os.kill(ranks[0], signal.SIGKILL)
        _, told = launcher.communicate(timeout=LONG)
        assert launcher.returncode == 1
    assert "the process of device" in told
    if (tmp_path / "out.json").exists():
        events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
        assert {event["name"] for event in events if event["ph"] == "X"} <= {"0F0", "0F1"}


def test_a_machine_that_sleeps_makes_nobody_look_as_if_he_hung() -> None:
    """The time between two looks counts only up to a limit, because the launcher itself may have been asleep."""
    from hybridlab.engines.board import RUNS, WAITS, Board, FaultWatch, reset
    from hybridlab.engines.job import checked_job

    job = checked_job(WHOLE, None, 1)
    board = Board(2, Path(tempfile.gettempdir()) / "board", new=True)
    try:
        for state, code in ((RUNS, "device-hangs"), (WAITS, "deadlock")):
            reset(board, 2)
            watch = FaultWatch(board, job, patience=2.0)
            board.note(0, state, 0)
            board.note(1, state, 8)
            assert watch.fault(1e6) is None
            assert watch.fault(1e6) is None
            faults = [watch.fault(0.02) for _ in range(200)]
            found: Any = next(fault for fault in faults if fault is not None)
            assert found.code == code
    finally:
        del board
        (Path(tempfile.gettempdir()) / "board").unlink()


def test_hybridlab_errors_of_a_run_can_be_copied_to_another_process() -> None:
    import pickle

    why = RunFailed("a sentence", "a-code", 3, Op.parse("0F0"))
    why.measured = [{"op": "0F0", "start": np.float64(0.0)}]
    copy = pickle.loads(pickle.dumps(why))  # noqa: S301
    assert isinstance(copy, HybridLabError)
    assert (str(copy), copy.code, copy.rank, copy.op, copy.measured) == (str(why), "a-code", 3, why.op, why.measured)
