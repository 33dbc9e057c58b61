"""The engines of processes: how the processes of each engine are started and find their rank, and what carries their messages."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from hybridlab.engines.mpi import MPIMessages
from hybridlab.engines.process_exchange import Transport
from hybridlab.engines.torch import torch_messages
from hybridlab.errors import HybridLabError

INSTALL = "pip install 'hybridlab[{}]'"


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


def rank_in_mpi(folder: Path | None) -> int:
    """Return the rank of this process. MPI starts with this call, and needs no file in the folder.

    MPICH makes a file for the memory that its processes share, and a killed process would leave it behind. So the name of the file is
    removed as soon as all processes have opened it. The memory itself stays until the last of them ends.
    """
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    world.Barrier()
    if world.rank == 0:
        for file in _shared_memory():
            file.unlink(missing_ok=True)
    return int(world.rank)


def _shared_memory() -> set[Path]:
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
    """The three parts of an engine: the commands that start its processes, how a process finds its rank, and what carries messages."""

    commands: Callable[[int, list[str]], list[tuple[list[str], dict[str, str]]]]
    rank: Callable[[Path | None], int]
    messages: Callable[[int], Transport]


ENGINES = {"mpi": Engine(mpi_commands, rank_in_mpi, MPIMessages), "torch": Engine(torch_commands, rank_in_torch, torch_messages)}
