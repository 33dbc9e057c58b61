"""A run in existing processes: mpiexec, srun or torchrun has started the user's program several times, and each process calls ``run``."""

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

# Environment variables that MPICH, Open MPI, Slurm or torchrun sets if it has started several processes.
SIZES = {"mpi": ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE"), "torch": ("TORCHELASTIC_RUN_ID",)}
READS = 60.0  # seconds; the longest time that a rank waits until mpiexec has read the rank's error


def was_started(engine: str) -> bool:
    """Return whether mpiexec, srun or torchrun has started this process as one of several."""
    return any(name in os.environ for name in SIZES.get(engine, ()))


class JoinedExchange(ProcessExchange):
    """The exchange of a rank that has no launcher. An error ends the rank, and then mpiexec, srun or torchrun ends the other ranks."""

    def stop(self, fault: BaseException) -> NoReturn:
        """Raise the error. Under MPI, first print the error and end all ranks, because the other ranks would wait for ever."""
        if "mpi4py" in sys.modules:
            from mpi4py import MPI

            sys.stderr.write(f"{fault}\n")
            sys.stderr.flush()
            _wait_until_read(sys.__stderr__.fileno() if sys.__stderr__ else 2)
            MPI.COMM_WORLD.Abort(1)
        raise fault

    def leave(self) -> None:
        """Do nothing: no process reads the board, and :func:`run_joined` waits until all messages have arrived."""


def run_joined(engine: str, job: Job) -> Measured:
    """Run this process's rank of a job, and return the measurements of all ranks. Every rank gets the same result.

    No process watches the ranks: after a hang or a deadlock, the ranks go on until the user ends them.

    Raises
    ------
    HybridLabError
        The number of processes differs from the number of ranks, the processes are on several machines, or the work raises an error.
    """
    rank = ENGINES[engine].rank(None)
    started = _number_of_processes(engine)
    if started != job.ranks:
        wanted = f"a run of {counted(job.ranks, 'rank')} needs as many processes"
        raise HybridLabError(f"{wanted}, but {started} were started: start {job.ranks}", "wrong-number-of-processes")
    messages, times = ENGINES[engine].messages(job.ranks), no_times(job)
    device = Device(rank, job, JoinedExchange(rank, messages, Board(job.ranks), lambda fault, lost: None), times)
    device.run()
    first_free = job.ring_message(job.schedule.stages, 0)  # operations and rings use only smaller names of messages
    own = pickle.dumps((socket.gethostname(), np.array(times), device.spans, device.result))
    if rank:
        messages.send(0, first_free, own)
        parts = pickle.loads(messages.receive(0, first_free + 1))  # noqa: S301  # the data come from a rank of this run
    else:
        parts = [own, *(bytes(messages.receive(other, first_free)) for other in range(1, job.ranks))]
        for other in range(1, job.ranks):
            messages.send(other, first_free + 1, pickle.dumps(parts))
    messages.meet()  # no rank ends before all ranks have received their messages
    hosts, measured, spans, results = zip(*map(pickle.loads, parts), strict=True)
    if len(set(hosts)) > 1:
        raise HybridLabError("the ranks are on machines with different clocks: start all ranks on one machine", "several-machines")
    whole = np.where(np.isnan(measured), 0.0, measured).sum(axis=0)  # only one rank has measured each row
    steps = [[row for of_rank in spans for row in of_rank[step]] for step in range(job.steps)]
    return Measured(whole, steps, results, "")


def _wait_until_read(descriptor: int) -> None:
    """Wait until mpiexec has read the whole pipe. When a rank ends all others, mpiexec drops unread text."""
    if sys.platform == "win32":
        return  # Windows cannot count the unread bytes of a pipe
    import fcntl
    import termios

    end = time.monotonic() + READS
    while stat.S_ISFIFO(os.fstat(descriptor).st_mode) and time.monotonic() < end:
        if not int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder):  # number of unread bytes
            return
        time.sleep(0.001)


def _number_of_processes(engine: str) -> int:
    """Return how many processes were started together."""
    if engine == "mpi":
        from mpi4py import MPI

        return int(MPI.COMM_WORLD.size)
    from torch.distributed import get_world_size

    return int(get_world_size())
