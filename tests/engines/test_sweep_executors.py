"""Test that sweeps give the same on real processes, MPI and Dask, and what is left of one that is interrupted or loses a worker."""

import os
import pickle
import signal
import subprocess
import sys
import time
import uuid
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any

import psutil
import pytest
from sweep_worker import AFTER, BEFORE, GRID, NAMES, ONE_SIZE

from hybridlab import Sweep, sweep

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests/engines/sweep_worker.py"
BIN = Path(sys.executable).parent
PATIENCE = 300  # seconds for a program that takes ten
KINDS = ("serial", "processes", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("mpi", "dask")))  # they take long to start
RESULTS = ("makespan", "device_span", "bubble_ratio", "peak_activations")


def command(kind: str, *arguments: str, program: Path = PROGRAM) -> list[str]:
    """Return the command that starts a program with an executor of this kind."""
    start = [str(BIN / "mpiexec"), "-n", "3", sys.executable, "-m", "mpi4py.futures"] if kind == "mpi" else [sys.executable]
    return [*start, str(program), kind, *arguments]


def left_behind(mark: str) -> list[str]:
    """Return the processes that have the mark in their environment and are still there after a minute."""
    until = time.monotonic() + 60
    while True:
        there = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("HYBRIDLAB_MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                    there.append(" ".join(process.cmdline()))
            except psutil.Error:
                continue
        if not there or time.monotonic() > until:
            return there
        time.sleep(0.1)


def run(kind: str, folder: Path, *more: str) -> tuple[int, str]:
    """Run the program, interrupt it when it asks for it, and return its status and what it wrote; no process may be left."""
    mark = uuid.uuid4().hex
    environment = {**os.environ, "HYBRIDLAB_SWEEPS": str(folder), "HYBRIDLAB_MARK": mark, "PYTHONPATH": str(ROOT)}
    with (
        (folder / "errors.txt").open("w+") as errors,
        subprocess.Popen(
            command(kind, str(folder / "found.pickle"), *more),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
            start_new_session=True,
        ) as program,
    ):
        overdue = Timer(PATIENCE, os.killpg, [program.pid, signal.SIGKILL])
        overdue.start()
        try:
            assert program.stdout is not None
            for line in program.stdout:
                if line.startswith("interrupt "):
                    os.kill(int(line.split()[1]), signal.SIGINT)
            status = program.wait()
        finally:
            overdue.cancel()
            program.kill()
        errors.seek(0)
        written = errors.read()
    assert not left_behind(mark)
    return status, written


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function from the name of an executor to the tables that its program kept; the program starts once."""

    @cache
    def of(kind: str) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp(kind)
        status, written = run(kind, folder)
        assert status == 0, written
        kept: dict[str, Any] = pickle.loads((folder / "found.pickle").read_bytes())  # noqa: S301 - of our own making
        return kept

    return of


def results(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in RESULTS)


@pytest.mark.parametrize("kind", KINDS)
def test_an_executor_gives_the_same_table_and_loses_nothing(kind: str, found: Any) -> None:
    """One start of the program serves all statements about an executor."""
    kept = found(kind)
    assert kept["table"] == sweep(NAMES, GRID), "every value is the same, bit for bit, and refused rows have their reason"
    assert any("microbatches" in str(reason) for reason in kept["table"].column("refused"))
    rows, seen = kept["bar"]
    assert rows == seen[-1] == len(kept["table"].where(refused=None))
    assert len(seen) > 20
    assert seen == sorted(seen), "the bar counts the rows that are done"
    interrupted_sweep_keeps_what_finished(kept["interrupted"])
    if kind != "serial":
        assert kept["unknown"].startswith("unknown-name: a worker does not know a schedule of this sweep (unknown schedule 'only-here')")
    if kind == "processes":
        broken_pool_keeps_what_finished(*kept["dead"])
    if kind == "dask":
        assert kept["by its executor"] == kept["table"]
        a_job_that_kills_its_worker_is_left_out(*kept["dead"])
        a_job_whose_worker_died_runs_on_another(*kept["died once"])


def interrupted_sweep_keeps_what_finished(table: Sweep) -> None:
    finished, waiting = table.where(schedule="gpipe"), table.where(schedule="slow")
    assert finished == sweep("gpipe", {**GRID, "devices": 4, "microbatches": [4, 5, 6, 7]})
    assert table.not_run == waiting
    assert len(waiting) == len(finished) == 16
    assert set(waiting.column("refused")) == {"not run: the sweep was interrupted"}
    assert {results(row) for row in waiting} == {(None,) * 4}
    assert "32 rows, 0 refused, 16 not run" in repr(table)


def broken_pool_keeps_what_finished(table: Sweep, warned: list[str]) -> None:
    """With one worker the jobs run in their order, so that it is known which have finished."""
    finished = table.where(refused=None)
    assert finished == sweep(BEFORE, ONE_SIZE)
    assert set(table.not_run.column("schedule")) == {"deadly", *AFTER}
    assert all("a worker of the executor died (BrokenProcessPool: " in reason for reason in table.not_run.column("refused"))
    assert len(warned) == 1
    assert warned[0].startswith("12 of 24 rows have no results, not run: a worker of the executor died (BrokenProcessPool: ")


def a_job_that_kills_its_worker_is_left_out(table: Sweep, warned: list[str]) -> None:
    """Dask may also give up a job that waited on the worker when it died."""
    assert set(table.where(schedule="deadly").values) <= set(table.not_run.values)
    assert all("a worker of the executor died (KilledWorker: " in reason for reason in table.not_run.column("refused"))
    alone = sweep([*BEFORE, *AFTER], ONE_SIZE).values
    assert set(table.where(refused=None).values) <= set(alone)
    assert len(table.where(refused=None)) + len(table.not_run) == 24
    assert len(warned) == 1
    assert f"{len(table.not_run)} of 24 rows" in warned[0]


def a_job_whose_worker_died_runs_on_another(table: Sweep, warned: list[str]) -> None:
    assert not warned
    assert not table.not_run
    for name in (*BEFORE, *AFTER):
        assert table.where(schedule=name) == sweep(name, ONE_SIZE)
    assert [results(row) for row in table.where(schedule="deadly-once")] == [results(row) for row in table.where(schedule="gpipe")]


@pytest.mark.slow
def test_a_worker_of_mpi_that_dies_ends_the_whole_program(tmp_path: Path) -> None:
    status, _ = run("mpi", tmp_path, "deadly")
    for file in (tmp_path / "memory").read_text().splitlines():
        Path(file).unlink(missing_ok=True)  # the shared memory of an MPI program that was killed would stay for ever
    assert status != 0
    assert not (tmp_path / "found.pickle").exists()


def test_an_executor_of_mpi_without_workers_is_refused(tmp_path: Path) -> None:
    """The test shows that this executor would wait for ever only in a program of its own, which mpiexec did not start."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PMI")}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "mpi", "nowhere"],
        capture_output=True,
        text=True,
        env={**environment, "HYBRIDLAB_SWEEPS": str(tmp_path), "PYTHONPATH": str(ROOT)},
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    assert "MPIPoolExecutor has no workers" in done.stderr
    assert "mpiexec -n 3 python -m mpi4py.futures script.py" in done.stderr
