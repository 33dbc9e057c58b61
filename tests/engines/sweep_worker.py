"""Run the same sweeps with one executor and keep the tables: ``python sweep_worker.py serial|processes|mpi|dask FILE``.

Workers run this file too, so that they know its schedules. A program for MPI is started by mpiexec, with ``-m mpi4py.futures``.
"""

import os
import pickle
import signal
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing import get_context
from pathlib import Path
from threading import Timer
from typing import Any

from hybridlab import REGISTRY, HybridLabError, Sweep, register, sweep
from hybridlab.arrays import Ints
from hybridlab.engines.start import names_of_shared_memory
from hybridlab.schedules.gpipe import gpipe
from hybridlab.sweep import jobs

GRID = {"devices": [3, 4], "microbatches": [4, 6], "forward": [1.0, 0.7], "backward": lambda forward: 2 * forward, "p2p": [0, 0.1]}
NAMES = tuple(REGISTRY)
ONE_SIZE = {**GRID, "devices": 4, "microbatches": 4}
BEFORE, AFTER = ("gpipe", "eager-1f1b", "zb-h1"), ("1f1b", "zb-h2")
FOLDER = Path(os.environ.get("HYBRIDLAB_SWEEPS", "."))  # where this program, its workers and the test leave files for each other


def add(name: str) -> Callable[[Callable[[int, int, int], Ints]], Any]:
    """Register a schedule of this program; it has the order of GPipe."""
    return register(name, title=name, summary="a schedule for tests", source="no paper")


def slow(devices: int, microbatches: int, chunks: int) -> Ints:
    """Wait until the sweep has been interrupted."""
    for _ in range(6000):
        if (FOLDER / "interrupted").exists():
            break
        time.sleep(0.1)
    return gpipe(devices, microbatches, chunks)


def deadly(devices: int, microbatches: int, chunks: int) -> Ints:
    """End the process of the worker."""
    os.kill(os.getpid(), signal.SIGKILL)
    return gpipe(devices, microbatches, chunks)


def deadly_once(devices: int, microbatches: int, chunks: int) -> Ints:
    """End the process of the worker, but only of the first that comes here."""
    with suppress(FileExistsError):
        (FOLDER / "died").touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
    return gpipe(devices, microbatches, chunks)


if __name__ in ("__main__", "__mp_main__", "__worker__"):  # in this program and its workers, but not in tests that import this file
    for own, rule in {"slow": slow, "deadly": deadly, "deadly-once": deadly_once}.items():
        add(own)(rule)


class Bar:
    """A bar that keeps how far it came, and says when so many rows are done that only slow ones are left."""

    def __init__(self, total: int, unit: str, disable: bool) -> None:
        self.total, self.n, self.seen = total, 0, [0]
        bars.append(self)

    def update(self, more: int) -> None:
        self.n += more
        self.seen.append(self.n)
        if self.n == ask_at:
            Timer(0.5, print, ["interrupt", os.getpid()], {"flush": True}).start()  # by then the program waits for the slow ones

    def close(self) -> None:
        pass


bars: list[Bar] = []
ask_at = 0


def interrupted(executor: Executor | None) -> Sweep:
    """Return the table of a sweep that is interrupted while only the slow schedule is left."""
    global ask_at
    ask_at = 16
    table = sweep(["gpipe", "slow"], {**GRID, "devices": 4, "microbatches": [4, 5, 6, 7]}, executor=executor, progress=True)
    (FOLDER / "interrupted").touch()
    ask_at = 0
    return table


def bereaved(name: str, executor: Executor | None) -> tuple[Sweep, list[str]]:
    """Return the table of a sweep with a job for each schedule, one of which kills its worker, and the warnings."""
    jobs.CELLS = 3 * 4 * 4 * 4
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = sweep([*BEFORE, name, *AFTER], ONE_SIZE, executor=executor)
    return table, [str(each.message) for each in caught if each.category is RuntimeWarning]


def unknown(executor: Executor | None) -> str:
    """Return the error of a sweep with a schedule that the workers do not know."""
    add("only-here")(gpipe)
    try:
        sweep(["gpipe", "only-here"], GRID, executor=executor)
    except HybridLabError as why:
        return f"{why.code}: {why}"
    return ""


@contextmanager
def workers(kind: str) -> Iterator[Callable[[int], Any]]:
    """Yield a function that returns an executor with so many workers, to be used in a ``with`` statement."""
    if kind == "serial":
        yield lambda count: nullcontext()
    elif kind == "processes":
        yield lambda count: ProcessPoolExecutor(count, mp_context=get_context("spawn"))
    elif kind == "mpi":
        from mpi4py.futures import MPIPoolExecutor

        yield lambda count: MPIPoolExecutor()
    else:
        import dask
        from distributed import Client, LocalCluster

        # Dask may start jobs in another order than that of their submission: four slow ones must not keep all threads from the quick ones
        room = {"n_workers": 2, "threads_per_worker": 4, "processes": True}
        with LocalCluster(**room, dashboard_address=":0") as cluster, Client(cluster) as client:
            dask.config.set({"distributed.comm.timeouts.connect": "10s"})  # from now on, whoever does not answer has died
            yield lambda count: nullcontext(client)


def main(kind: str, file: str, only: str = "") -> None:
    """Run all sweeps with an executor of this kind, or only the one with a schedule that kills its worker."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background of a shell would ignore it
    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar  # type: ignore[attr-defined]
    sys.modules["tqdm.auto"] = module
    jobs.CELLS = 500
    found: dict[str, Any] = {}
    if kind == "mpi":
        (FOLDER / "memory").write_text("\n".join(map(str, names_of_shared_memory())))
    with workers(kind) as start:
        if only:
            with start(2) as executor:
                found["dead"] = bereaved(only, executor)
            return
        with start(2) as executor:
            found["table"] = sweep(NAMES, GRID, executor=executor, progress=True)
            found["bar"] = (bars[0].total, bars[0].seen)
            if bars[0].n != bars[0].total:
                raise AssertionError(f"the bar came to {bars[0].n} of {bars[0].total}: it would not ask for the interrupt")
            if kind != "serial":
                found["unknown"] = unknown(executor)
            found["interrupted"] = interrupted(executor)
            if kind == "dask":
                found["by its executor"] = sweep(NAMES, GRID, executor=executor.get_executor())
        if kind == "processes":
            with start(1) as executor:
                found["dead"] = bereaved("deadly", executor)
        if kind == "dask":
            with start(2) as client:
                found["died once"] = bereaved("deadly-once", client)
                client.wait_for_workers(2)
                client.cluster.scheduler.allowed_failures = 0  # after one death a job is given up
                found["dead"] = bereaved("deadly", client)
    Path(file).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
