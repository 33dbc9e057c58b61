"""Test the start of several processes: which error comes back, and that no process stays."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from torch_start import ROOT, run_ranks

pytestmark = pytest.mark.slow  # as the tests that start torch

# Rank 1 does what the test asks for; the other ranks would wait for ten minutes. Each rank writes its process number.
PROGRAM = """
import os, sys, threading, time
import torch_start
ends = os._exit
os._exit = lambda code: (open(os.path.join(folder, f"{rank}.ended"), "w").close(), ends(code))
rank, folder = int(sys.argv[1]), sys.argv[4]
threading.Thread(target=torch_start._end_with_the_starter, daemon=True).start()
with open(os.path.join(folder, f"{rank}.part"), "w") as file:
    file.write(str(os.getpid()))
os.rename(file.name, os.path.join(folder, f"{rank}.pid"))
while rank != 1 and not os.path.exists(os.path.join(folder, "go on")) or not os.path.exists(os.path.join(folder, "0.pid")):
    time.sleep(0.01)
WHAT
"""


def program(folder: Path, what: str) -> Path:
    path = folder / "program.py"
    path.write_text(PROGRAM.replace("WHAT", what), encoding="utf-8")
    return path


def numbers(folder: Path) -> list[int]:
    """The process numbers of all ranks that have written theirs."""
    return [int(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.pid"))]


def runs(number: int) -> bool:
    """Whether there is a process with this number."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_ranks_that_end_well_leave_their_results(tmp_path: Path) -> None:
    run_ranks(program(tmp_path, "open(os.path.join(folder, 'go on'), 'w').close()"), 2, tmp_path)
    assert len(numbers(tmp_path)) == 2
    assert not any(map(runs, numbers(tmp_path)))


def test_a_rank_that_fails_ends_the_others_and_its_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"(?s)rank 1 ended with 1.*rank 1:.*ValueError: planted"):
        run_ranks(program(tmp_path, "raise ValueError('planted')"), 2, tmp_path)
    assert len(numbers(tmp_path)) == 2
    assert not any(map(runs, numbers(tmp_path)))


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="rank 0 had not ended when the time was up"):
        run_ranks(program(tmp_path, ""), 2, tmp_path, seconds=2)
    assert not any(map(runs, numbers(tmp_path)))


def test_ranks_end_if_the_process_that_started_them_is_killed(tmp_path: Path) -> None:
    text = f"import torch_start, pathlib; f = pathlib.Path({str(tmp_path)!r}); torch_start.run_ranks(f / 'program.py', 2, f)"
    program(tmp_path, "time.sleep(600)")
    with subprocess.Popen(
        [sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests/engines'}"}
    ) as starter:
        wait_until(lambda: len(numbers(tmp_path)) == 2)
        assert all(map(runs, numbers(tmp_path)))
        starter.send_signal(signal.SIGKILL)
    wait_until(lambda: len(list(tmp_path.glob("*.ended"))) == 2)


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait as long as a busy machine may need."""
    until = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)
