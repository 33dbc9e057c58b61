"""Run the programs and commands of the page "Beyond one machine", except for the script for Slurm."""

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_sweep_executors import BIN, PATIENCE, ROOT

from hybridlab import REGISTRY

PAGE = (ROOT / "book/beyond_one_machine.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
PYTHON = shlex.quote(sys.executable)  # its path may have spaces
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


def started(line: str, folder: Path) -> subprocess.Popen[str]:
    """Start a command of the page in a folder with the programs of the page."""
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text, encoding="utf-8")
    return subprocess.Popen(
        shlex.split(line), cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def ended(program: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit code of a program and what it wrote; if it does not end, end it."""
    try:
        written, _ = program.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        written, _ = program.communicate()
    return program.returncode, written


def finished(line: str, folder: Path) -> list[dict[str, str]]:
    """Run a command of the page and return the table that it wrote."""
    status, written = ended(started(line, folder))
    assert status == 0, written
    assert "rows" in written
    with (folder / "table.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def the_command(begins: str) -> str:
    (line,) = {line for line in COMMANDS if line.startswith(begins) and "$" not in line}
    return line


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Give the table of the first program, with all schedules."""
    return finished(f"{PYTHON} on_one_machine.py", tmp_path_factory.mktemp("alone"))


def test_the_first_program_has_all_schedules(alone: list[dict[str, str]]) -> None:
    assert list(dict.fromkeys(row["schedule"] for row in alone)) == list(REGISTRY)
    assert len(alone) == 24 * len(REGISTRY)


@pytest.mark.slow
def test_the_command_for_mpi_gives_the_same_rows(alone: list[dict[str, str]], tmp_path: Path) -> None:
    line = the_command("mpiexec")
    assert line == "mpiexec -n 3 python -m mpi4py.futures on_mpi.py"
    assert finished(line, tmp_path) == [row for name in ("1f1b", "zb-h1") for row in alone if row["schedule"] == name]


def readable(file: Path) -> bool:
    """Return whether a file is there and complete: Dask makes it first and then writes it."""
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


@pytest.mark.slow
def test_the_commands_for_dask_give_the_same_rows(alone: list[dict[str, str]], tmp_path: Path) -> None:
    """The ports are free ones, since several tests may run at a time."""
    scheduler = started(f"{the_command('dask scheduler')} --port 0 --dashboard-address :0", tmp_path)
    programs = [scheduler]
    try:
        until = time.monotonic() + PATIENCE
        while not readable(tmp_path / "scheduler.json"):
            assert scheduler.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        programs.insert(0, started(f"{the_command('dask worker')} --dashboard-address :0", tmp_path))
        rows = finished(f"{PYTHON} on_dask.py", tmp_path)
    finally:
        for program in programs:
            program.send_signal(signal.SIGINT)
            try:
                program.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
                program.communicate()
    assert rows == [row for name in ("1f1b", "zb-h1") for row in alone if row["schedule"] == name]


@pytest.mark.slow
@pytest.mark.parametrize("package", [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("executorlib", "parsl", "ray")])
def test_other_executors_give_the_same_rows(package: str, alone: list[dict[str, str]], tmp_path: Path) -> None:
    rows = finished(f"{PYTHON} on_{package}.py", tmp_path)
    assert rows == [row for name in ("1f1b", "zb-h1") for row in alone if row["schedule"] == name]


def test_the_program_that_goes_on_keeps_its_rows(alone: list[dict[str, str]], tmp_path: Path) -> None:
    assert ended(started(f"{PYTHON} goes_on.py", tmp_path)) == (0, "")
    rows = (tmp_path / "rows.csv").read_text(encoding="utf-8")
    (tmp_path / "rows.csv").write_text(rows[: len(rows) // 2], encoding="utf-8")  # as if the program had been killed
    assert ended(started(f"{PYTHON} goes_on.py", tmp_path)) == (0, "")
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8") == rows
    assert list(csv.DictReader(rows.splitlines())) == [row for name in ("1f1b", "zb-h1") for row in alone if row["schedule"] == name]


def test_the_last_program_runs(tmp_path: Path) -> None:
    assert ended(started(f"{PYTHON} what_is_left.py", tmp_path)) == (0, "")
