"""Start a program in several processes that torch.distributed joins, wait for all of them, and leave none behind.

A test starts a program with :func:`run_ranks`, or with :func:`run_once` if several tests read its results. The program calls :func:`join`
first. This file can be imported without torch.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONG = 600.0  # seconds; a run takes some ten of them, and more only on a machine that is very busy


def run_ranks(program: Path, ranks: int, folder: Path, seconds: float = LONG) -> None:
    """Run ``program`` in ``ranks`` processes and return when all have ended; raise an error with what they printed if one fails.

    The program gets its rank, the number of ranks, an empty folder in which the ranks meet, and ``folder``, where its data are.
    """
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests/engines"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    settings = {"OMP_NUM_THREADS": "1", "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    with tempfile.TemporaryDirectory() as meeting:
        logs = [(Path(meeting) / f"rank{rank}.log").open("w+", encoding="utf-8") for rank in range(ranks)]
        started: list[subprocess.Popen[Any]] = []
        try:
            for rank, log in enumerate(logs):
                command = [sys.executable, str(program), str(rank), str(ranks), meeting, str(folder)]
                # a rank ends when this pipe closes, so that it never outlives the tests
                one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **settings})
                started.append(one)
            failed = _first_failure(started, time.monotonic() + seconds)
        finally:
            for one in started:
                one.kill()
                one.wait()
                one.stdin.close()  # type: ignore[union-attr]
            texts = [_text(log) for log in logs]
        if failed is not None:
            raise AssertionError(f"{program.name}: {failed}\n" + "\n".join(f"rank {rank}:\n{text}" for rank, text in enumerate(texts)))


def run_once(factory: pytest.TempPathFactory, name: str, run: Callable[[Path], None]) -> Path:
    """Call ``run`` with an empty folder, only once for all processes that run tests, and return the folder with its results."""
    from filelock import FileLock  # torch needs it, too

    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(folder.with_suffix(".lock")):
        failure = folder / "failure"
        if not folder.exists():
            folder.mkdir()
            try:
                run(folder)
            except BaseException as why:
                failure.write_text(str(why), encoding="utf-8")
                raise
        assert not failure.exists(), failure.read_text(encoding="utf-8")
    return folder


def _first_failure(started: list[subprocess.Popen[Any]], until: float) -> str | None:
    """Wait until all processes have ended or one has failed; return a sentence about the failure, or None."""
    while True:
        codes = [one.poll() for one in started]
        for rank, code in enumerate(codes):
            if code:
                return f"rank {rank} ended with {code}"
        if None not in codes:
            return None
        if time.monotonic() > until:
            return f"rank {codes.index(None)} had not ended when the time was up"
        time.sleep(0.05)


def _text(log: Any) -> str:
    log.seek(0)
    text: str = log.read()[-3000:]
    log.close()
    return text


def join() -> tuple[int, Path]:
    """Join the other processes of this run over gloo; return the own rank and the folder of the data."""
    threading.Thread(target=_end_with_the_starter, daemon=True).start()
    import torch
    import torch.distributed as dist

    rank, ranks, meeting, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=(meeting / "store").as_uri(), rank=rank, world_size=ranks)
    return rank, folder


def _end_with_the_starter() -> None:
    sys.stdin.read()  # returns when the process that has started this one closes the pipe, or ends in any way
    os._exit(1)
