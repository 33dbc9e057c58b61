"""A run in processes that are there already: mpiexec, srun or torchrun has started the program, and each process calls ``run``."""

import os
import pickle
import socket
import stat
import sys
import time
from typing import NoReturn

import numpy as np

from hybridlab.checks import counted
from hybridlab.engines.board import Board
from hybridlab.engines.device import Device
from hybridlab.engines.job import Job, Measured, no_times
from hybridlab.engines.process_exchange import ProcessExchange
from hybridlab.engines.start import ENGINES
from hybridlab.errors import HybridLabError

# Variables of the environment that exist if a launcher has started several processes: those of MPICH, Open MPI, Slurm and torchrun.
SIZES = {"mpi": ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE"), "torch": ("TORCHELASTIC_RUN_ID",)}
READS = 60.0  # seconds that a rank waits until mpiexec has read its error


def was_started(engine: str) -> bool:
    """Return whether this process is one of several that mpiexec, srun or torchrun has started."""
    return any(name in os.environ for name in SIZES.get(engine, ()))


class JoinedExchange(ProcessExchange):
    """The exchange of a rank without a launcher. An error ends the rank, and the program that started the ranks ends the others."""

    def stop(self, fault: BaseException) -> NoReturn:
        """Raise the error. Under MPI the other ranks would wait for ever, so print the error and end all ranks."""
        if "mpi4py" in sys.modules:
            from mpi4py import MPI

            sys.stderr.write(f"{fault}\n")
            sys.stderr.flush()
            _wait_until_read(sys.__stderr__.fileno() if sys.__stderr__ else 2)
            MPI.COMM_WORLD.Abort(1)
        raise fault

    def leave(self) -> None:
        """Do nothing: nobody looks at the board, and :func:`run_joined` waits until all messages have arrived."""


def run_joined(engine: str, job: Job) -> Measured:
    """Run this process's rank of a job, and return what all ranks have measured, on each of them.

    Nobody watches the ranks: a rank that hangs, or ranks that all wait, go on until somebody ends them.

    Raises
    ------
    HybridLabError
        The number of processes is not that of the ranks, the processes are on several machines, or the work raises an error.
    """
    rank = ENGINES[engine].rank(None)
    started = _number_of_processes(engine)
    if started != job.ranks:
        wanted = f"a run of {counted(job.ranks, 'rank')} needs as many processes"
        raise HybridLabError(f"{wanted}, but {started} were started: start {job.ranks}", "wrong-number-of-processes")
    messages, times = ENGINES[engine].messages(job.ranks), no_times(job)
    device = Device(rank, job, JoinedExchange(rank, messages, Board(job.ranks), lambda fault, lost: None), times)
    device.run()
    first_free = job.ring_message(job.schedule.stages, 0)  # names of messages from here on are not used by operations or rings
    own = pickle.dumps((socket.gethostname(), np.array(times), device.spans, device.result))
    if rank:
        messages.send(0, first_free, own)
        parts = pickle.loads(messages.receive(0, first_free + 1))  # noqa: S301  # it comes from a rank of the same run
    else:
        parts = [own, *(bytes(messages.receive(other, first_free)) for other in range(1, job.ranks))]
        for other in range(1, job.ranks):
            messages.send(other, first_free + 1, pickle.dumps(parts))
    messages.meet()  # nobody ends before all have what was sent to them
    hosts, measured, spans, results = zip(*map(pickle.loads, parts), strict=True)
    if len(set(hosts)) > 1:
        raise HybridLabError("the ranks are on several machines, whose clocks differ: start all of them on one", "several-machines")
    whole = np.where(np.isnan(measured), 0.0, measured).sum(axis=0)  # each row has a time on one rank only
    steps = [[row for of_rank in spans for row in of_rank[step]] for step in range(job.steps)]
    return Measured(whole, steps, results, "")


def _wait_until_read(descriptor: int) -> None:
    """Wait until the other end of a pipe has read everything: when a rank ends all others, mpiexec drops what it has not read yet."""
    if sys.platform == "win32":
        return  # pipes of Windows cannot be asked
    import fcntl
    import termios

    end = time.monotonic() + READS
    while stat.S_ISFIFO(os.fstat(descriptor).st_mode) and time.monotonic() < end:
        if not int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder):  # bytes still in the pipe
            return
        time.sleep(0.001)


def _number_of_processes(engine: str) -> int:
    """Return how many processes were started together."""
    if engine == "mpi":
        from mpi4py import MPI

        return int(MPI.COMM_WORLD.size)
    from torch.distributed import get_world_size

    return int(get_world_size())
