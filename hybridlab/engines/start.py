"""The engines of processes: how the processes of each engine are started and find their rank, and what carries their messages."""

import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from hybridlab.engines.mpi import MPIMessages
from hybridlab.engines.process_exchange import Transport
from hybridlab.engines.torch import torch_messages
from hybridlab.errors import HybridLabError

INSTALL = "pip install 'hybridlab[{}]'"
KEPT = 60.0  # seconds after which a keeper ends by itself


def mpi_commands(ranks: int, program: list[str]) -> list[tuple[list[str], dict[str, str]]]:
    """Return the commands that start the processes, each with the variables of its environment: one mpiexec starts all."""
    beside_python = Path(sysconfig.get_path("scripts")) / "mpiexec"
    found = str(beside_python) if os.access(beside_python, os.X_OK) else shutil.which("mpiexec")
    if find_spec("mpi4py") is None:
        raise HybridLabError(f"the engine 'mpi' needs mpi4py, which is not installed: {INSTALL.format('mpi')}", "not-installed")
    if found is None:
        needs = "the engine 'mpi' needs the program mpiexec, which is not there"
        raise HybridLabError(f"{needs}: {INSTALL.format('mpi')} brings one", "not-installed")
    return [([found, "-disable-auto-cleanup", "-n", str(ranks), sys.executable, *program], {})]


def behind_a_keeper(folder: Path) -> list[int]:
    """Go on in a child of this process, and return the numbers of both processes.

    When a process of mpiexec ends, mpiexec ends all others within milliseconds, also with ``-disable-auto-cleanup``. A launcher that is not
    quick enough would then find all of them ended, and could not tell which was the first. So the process that mpiexec has started, the
    keeper, only waits for its child, which is the rank. If the rank is killed, the keeper stays, mpiexec sees no end, and all other ranks
    go on until the launcher ends them. A rank that ends before all have started takes its keeper with it, so that mpiexec ends, too.
    """
    child = os.fork()
    if not child:
        return [os.getpid(), os.getppid()]
    _, status = os.waitpid(child, 0)
    if status and all_have_started(folder):
        time.sleep(KEPT)  # the launcher ends it much sooner
    os._exit(1 if status else 0)


def all_have_started(folder: Path) -> bool:
    """Return whether the launcher has heard of all processes: then it has removed the file with its address."""
    return not (folder / "launcher").exists()


def rank_in_mpi(folder: Path | None) -> int:
    """Return the rank of this process. MPI starts with this call, and needs no file in the folder.

    MPICH makes a file for the memory that its processes share, and a killed process would leave it behind. So the name of the file is
    removed as soon as all processes have opened it. The memory itself stays until the last of them ends.
    """
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    world.Barrier()
    if world.rank == 0:
        for file in names_of_shared_memory():
            file.unlink(missing_ok=True)
    return int(world.rank)


def names_of_shared_memory() -> set[Path]:
    """Return the files of MPICH that this process has in its memory. Only Linux tells them."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    return {Path(line.split(maxsplit=5)[5]) for line in lines if "/mpich_shm" in line and not line.endswith("(deleted)")}


def torch_commands(ranks: int, program: list[str]) -> list[tuple[list[str], dict[str, str]]]:
    """Return the commands that start the processes, each with the variables of its environment."""
    if find_spec("torch") is None:
        raise HybridLabError(f"the engine 'torch' needs torch, which is not installed: {INSTALL.format('torch')}", "not-installed")
    near = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" and "GLOO_SOCKET_IFNAME" not in os.environ else {}
    return [([sys.executable, *program], near | {"RANK": str(rank), "WORLD_SIZE": str(ranks)}) for rank in range(ranks)]


def rank_in_torch(folder: Path | None) -> int:
    """Return the rank of this process, after all have found each other: through a file in the folder, or as torchrun tells them."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if not dist.is_initialized():
        method = "env://" if folder is None else f"file://{folder / 'rendezvous'}"
        dist.init_process_group("gloo", init_method=method, rank=rank, world_size=world)
    return rank


class Engine(NamedTuple):
    """The parts of an engine.

    They are the commands that start its processes, how a started process becomes that of a rank (it returns the numbers of the processes
    that the launcher must end), how it finds its rank, and what carries messages.
    """

    commands: Callable[[int, list[str]], list[tuple[list[str], dict[str, str]]]]
    begin: Callable[[Path], list[int]]
    rank: Callable[[Path | None], int]
    messages: Callable[[int], Transport]


ENGINES = {
    "mpi": Engine(mpi_commands, behind_a_keeper, rank_in_mpi, MPIMessages),
    "torch": Engine(torch_commands, lambda folder: [os.getpid()], rank_in_torch, torch_messages),
}
