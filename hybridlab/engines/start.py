"""The engines with processes, "mpi" and "torch": how each starts its processes, finds their ranks, and sends messages."""

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
KEEPER_STAYS = 60.0  # seconds; after this time, a keeper (see behind_a_keeper) ends by itself


def mpi_commands(ranks: int, program: list[str]) -> list[tuple[list[str], dict[str, str]]]:
    """Return the command that starts all processes with one mpiexec, as a list of (command, environment variables)."""
    beside_python = Path(sysconfig.get_path("scripts")) / "mpiexec"
    found = str(beside_python) if os.access(beside_python, os.X_OK) else shutil.which("mpiexec")
    if find_spec("mpi4py") is None:
        raise HybridLabError(f"the engine 'mpi' needs mpi4py, which is not installed: {INSTALL.format('mpi')}", "not-installed")
    if found is None:
        needs = "the engine 'mpi' needs the program mpiexec, which is not there"
        raise HybridLabError(f"{needs}: {INSTALL.format('mpi')} brings one", "not-installed")
    return [([found, "-disable-auto-cleanup", "-n", str(ranks), sys.executable, *program], {})]


def behind_a_keeper(folder: Path) -> list[int]:
    """Fork this process. The child becomes the rank and returns the process ids of both; this process becomes the keeper.

    When a process of mpiexec ends, mpiexec ends all its other processes within milliseconds, even with ``-disable-auto-cleanup``. The
    launcher could then not find which process ended first. So the process that mpiexec has started, the keeper, only waits for its child,
    the rank. If the rank is killed, the keeper stays alive. mpiexec then notices nothing, and all other ranks go on until the launcher ends
    them. If a rank ends before all ranks have started, its keeper ends too, so that mpiexec ends.
    """
    child = os.fork()
    if not child:
        return [os.getpid(), os.getppid()]
    _, status = os.waitpid(child, 0)
    if status and all_have_started(folder):
        time.sleep(KEEPER_STAYS)  # the launcher kills the keeper much sooner
    os._exit(1 if status else 0)  # skips the clean-up of Python, because the child does the clean-up


def all_have_started(folder: Path) -> bool:
    """Return whether all processes have connected. The launcher then removes the file with its address."""
    return not (folder / "launcher").exists()


def rank_in_mpi(folder: Path | None) -> int:
    """Return the rank of this process. The first call starts MPI. MPI does not use the folder.

    MPICH creates a file for the memory that its processes share. Killed processes would leave this file behind. So rank 0 deletes the name
    of the file as soon as all processes have opened the file. The memory itself exists until the last process ends.
    """
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    world.Barrier()
    if world.rank == 0:
        for file in names_of_shared_memory():
            file.unlink(missing_ok=True)
    return int(world.rank)


def names_of_shared_memory() -> set[Path]:
    """Return the files of MPICH that this process has mapped into its memory. The set is empty on systems other than Linux."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    return {Path(line.split(maxsplit=5)[5]) for line in lines if "/mpich_shm" in line and not line.endswith("(deleted)")}


def torch_commands(ranks: int, program: list[str]) -> list[tuple[list[str], dict[str, str]]]:
    """Return the commands that start the processes, one for each rank, as a list of (command, environment variables)."""
    if find_spec("torch") is None:
        raise HybridLabError(f"the engine 'torch' needs torch, which is not installed: {INSTALL.format('torch')}", "not-installed")
    # "lo", because all ranks are on this machine; without this variable gloo looks up the machine's address, and this can fail
    near = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" and "GLOO_SOCKET_IFNAME" not in os.environ else {}
    return [([sys.executable, *program], near | {"RANK": str(rank), "WORLD_SIZE": str(ranks)}) for rank in range(ranks)]


def rank_in_torch(folder: Path | None) -> int:
    """Return the rank of this process. The processes find each other through a file in the folder, or through torchrun's variables."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)  # with several threads each, the ranks would compete for the cores
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if not dist.is_initialized():
        method = "env://" if folder is None else f"file://{folder / 'rendezvous'}"
        dist.init_process_group("gloo", init_method=method, rank=rank, world_size=world)
    return rank


class Engine(NamedTuple):
    """The functions of an engine.

    ``commands`` returns the commands that start the engine's processes. ``begin`` runs first in each process, and returns the ids of the
    processes that the launcher must end. ``rank`` returns the rank of a process. ``messages`` returns the transport of messages.
    """

    commands: Callable[[int, list[str]], list[tuple[list[str], dict[str, str]]]]
    begin: Callable[[Path], list[int]]
    rank: Callable[[Path | None], int]
    messages: Callable[[int], Transport]


ENGINES = {
    "mpi": Engine(mpi_commands, behind_a_keeper, rank_in_mpi, MPIMessages),
    "torch": Engine(torch_commands, lambda folder: [os.getpid()], rank_in_torch, torch_messages),
}
