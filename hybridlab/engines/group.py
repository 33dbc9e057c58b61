"""The launcher of an engine's processes: starting them, sending them jobs, watching them and ending them."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridlab.checks import counted, known_name, one_time, short_repr, whole_number
from hybridlab.engines.board import CHECK, Board, FaultWatch, reset, times_file
from hybridlab.engines.folders import temporary_folder
from hybridlab.engines.job import Job, Measured, report_steps
from hybridlab.engines.start import ENGINES
from hybridlab.engines.worker import Answer, Order
from hybridlab.errors import HybridLabError, RunFailed

if TYPE_CHECKING:
    from multiprocessing.connection import Connection, Listener

MOST_PROCESSES = 64
STARTS = 120.0  # seconds; the longest time that the processes may need to start
LEAVES = 1.0  # seconds; the longest time that processes have to end by themselves after the last run
ENDS = 30.0  # seconds; the longest wait for the end of a process that has lost its connection or that other ranks cannot reach
LAST_LINES = 12  # an error quotes at most this many lines of the processes' output


class Group:
    """Processes of an engine that run jobs together, one process for each rank.

    Starting processes takes seconds. A group starts its processes once for several runs: give the group to :func:`run` as ``engine``. Use a
    group in a ``with`` statement, which ends the processes. A fault in a run ends the processes, too.

    The launcher has a connection to each process. When a process ends, its connection ends, and the launcher notices this immediately. When
    the launcher ends, all connections end, and then each process ends itself.

    Parameters
    ----------
    engine : {"mpi", "torch"}
        "mpi" starts the processes with mpiexec. "torch" starts processes that use torch.distributed with gloo.
    ranks : int
        The number of processes. A run with R ranks uses the first R processes.
    patience : float
        Seconds. A rank counts as hanging if it stays at one place for this many seconds longer than the costs allow.

    Raises
    ------
    HybridLabError
        The engine is not installed, or its processes do not start. The error contains the last lines that the processes have printed.
    """

    def __init__(self, engine: str, ranks: int, *, patience: float = 60.0) -> None:
        self.engine = known_name(engine, ENGINES, "engine of processes")
        self.ranks, self.patience = whole_number(ranks, "ranks", at_most=MOST_PROCESSES), one_time(patience, "patience")
        self._ends = ExitStack()
        self._folder = self._ends.enter_context(temporary_folder())
        self._connections: dict[int, Connection[Any, Any]] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._pids: list[int] = []
        self._jobs = self._read = 0  # the number of the last job, and the number of bytes of output already read
        try:
            self._start()
        except BaseException:
            self._kill()
            raise

    def _start(self) -> None:
        """Start the processes, and wait until all of them have connected."""
        from multiprocessing.connection import Listener  # imported here, because Python in a browser does not have this module

        program = ["-c", f"from hybridlab.engines.worker import serve; serve({self.engine!r}, {str(self._folder)!r}, {self.ranks})"]
        commands = ENGINES[self.engine].commands(self.ranks, program)
        self._board = Board(self.ranks, self._folder / "board", new=True)
        key = os.urandom(32)  # protects the port from other users of this machine
        with Listener(("127.0.0.1", 0), backlog=self.ranks, authkey=key) as listener, self._output.open("ab") as output:
            (self._folder / "launcher").write_bytes(pickle.dumps((listener.address, key)))  # only this user can read the folder
            # one thread for the arithmetic of each rank: with more threads the ranks would compete for the cores
            environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
            # the path of this process, so that the ranks can import the same modules
            environment["PYTHONPATH"] = os.pathsep.join(each for each in sys.path if each)
            for command, variables in commands:
                self._processes.append(
                    subprocess.Popen(  # noqa: S603  # the command is our own
                        command,
                        env=environment | variables,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,  # Ctrl-C stops only the launcher, which then ends the processes
                    )
                )
            self._greet(listener)
        (self._folder / "launcher").unlink()  # from now on, a keeper stays alive when its rank ends

    def _greet(self, listener: "Listener") -> None:
        """Wait until every process has connected and has sent its rank."""
        from multiprocessing.connection import wait

        socket = listener._listener._socket  # type: ignore[attr-defined]  # Listener has no public way to wait for a limited time
        began = time.monotonic()
        strangers: list[Any] = []
        while len(self._connections) < self.ranks:
            ready = wait([socket, *strangers], timeout=CHECK)
            if socket in ready:
                strangers.append(listener.accept())
            for each in [each for each in strangers if each in ready]:
                strangers.remove(each)
                with suppress(EOFError):  # the process has ended; the check of ``ended`` below finds this
                    rank, pids = each.recv()
                    self._connections[rank] = each
                    self._pids += pids
            ended = [process.poll() for process in self._processes]
            if any(code is not None for code in ended) or time.monotonic() - began > STARTS:
                seen = f"{len(self._connections)} of {self.ranks} processes of the engine {self.engine!r} started"
                raise RunFailed(f"only {seen}{self._last_lines()}", "not-started")

    def run(self, job: Job, arguments: dict[str, Any], report: Callable[[int], None]) -> Measured:
        """Return the measurements of a job, run on the first processes. An error ends all processes and the whole group."""
        import cloudpickle

        if not self._connections:
            raise HybridLabError("the processes of this group have ended: start a new Group for another run", "group-ended")
        if job.ranks > self.ranks:
            wanted = f"a run of {counted(job.ranks, 'rank')} needs as many processes"
            raise HybridLabError(f"{wanted}, but {self.ranks} were started: start {job.ranks}", "wrong-number-of-processes")
        try:
            data = cloudpickle.dumps(arguments)
        except Exception as why:  # pickling the caller's objects can raise any error
            message = f"each rank gets a copy of the work, but {short_repr(arguments['work'])} cannot be copied to another process"
            raise HybridLabError(f"{message}: {why}", "not-picklable") from why
        self._jobs += 1
        file = self._folder / f"times{self._jobs}"
        times, watch = times_file(file, job, new=True), FaultWatch(self._board, job, self.patience)
        reset(self._board, job.ranks)
        try:
            for connection in self._connections.values():
                connection.send(Order(self._jobs, job.ranks, data))
            answers = self._answers(watch, report_steps(job, times, report))
        except BaseException as why:
            self._kill()
            if isinstance(why, RunFailed):
                why.measured = _measured_rows(job, times)
            raise
        finally:
            file.unlink(missing_ok=True)
        ranks = [answers[rank] for rank in range(job.ranks)]
        spans = [[row for answer in ranks for row in answer.spans[step]] for step in range(job.steps)]
        return Measured(np.array(times), spans, tuple(answer.result for answer in ranks), self._new_output())

    def _answers(self, watch: FaultWatch, look: Callable[[], None]) -> dict[int, Answer]:
        """Return the answer of every rank, or raise the first fault. Call ``look`` regularly while waiting."""
        from multiprocessing.connection import wait

        answers: dict[int, Answer] = {}
        ranks: dict[Any, int] = {connection: rank for rank, connection in self._connections.items()}
        looked = time.monotonic()
        while len(answers) < self.ranks:
            for connection in wait(list(ranks), timeout=CHECK):
                rank = ranks[connection]
                answers[rank] = answer = self._answer(connection, rank, watch)
                if answer.fault is not None:
                    self._look_for_an_end(ranks, watch, ENDS if answer.lost else 0.0)
                    answer.fault.__cause__ = answer.cause
                    raise answer.fault
                if answer.refused:
                    raise HybridLabError(answer.refused, "not-picklable")
            now = time.monotonic()
            if (fault := watch.find_fault(now - looked)) is not None:
                raise fault
            looked = now
            look()
        return answers

    def _look_for_an_end(self, ranks: dict[Any, int], watch: FaultWatch, seconds: float) -> None:
        """Raise the error of a rank whose process has ended. Errors of ranks that cannot reach this process are only a consequence."""
        from multiprocessing.connection import wait

        left, end = list(ranks), time.monotonic() + seconds
        while left and (ready := wait(left, timeout=max(0.0, end - time.monotonic()))):
            for connection in ready:
                self._answer(connection, ranks[connection], watch)
            left = [each for each in left if each not in ready]

    def _answer(self, connection: Any, rank: int, watch: FaultWatch) -> Answer:
        """Return the answer of a rank, or raise an error if its process has ended."""
        try:
            answer: Answer = connection.recv()
        except (EOFError, OSError):
            raise watch.gone(rank, self._how_it_ended(rank)) from None
        return answer

    def _how_it_ended(self, rank: int) -> str:
        """Return a text: how the process of a rank has ended, and the last lines that the processes have printed."""
        code = None
        if len(self._processes) > 1:  # each rank is a child of this process
            with suppress(subprocess.TimeoutExpired):
                code = self._processes[rank].wait(ENDS)  # the connection can end a moment before the process ends
        by = f"signal {signal.Signals(-code).name} ended it" if code and code < 0 else "it was killed, or it left Python"
        return f"{by}{self._last_lines()}"

    @property
    def _output(self) -> Path:
        return self._folder / "output"

    def _new_output(self) -> str:
        """Return the text that the processes have printed since the last call."""
        with self._output.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        self._read += len(text)
        return text.decode(errors="replace")

    def _last_lines(self) -> str:
        """Return the last lines that the processes have printed, as the end of an error message ("" without lines)."""
        lines = self._new_output().strip().splitlines()[-LAST_LINES:]
        return "; it printed: " + " | ".join(lines) if lines else ""

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the processes. Each process first has one second to end by itself."""
        for connection in self._connections.values():
            with suppress(OSError):  # the process may have ended already
                connection.send(None)
        with suppress(subprocess.TimeoutExpired):
            began = time.monotonic()
            for process in self._processes if self._connections else []:
                process.wait(max(0.0, began + LEAVES - time.monotonic()))
        self._kill()

    def _kill(self) -> None:
        """Kill all processes without delay, wait until they have ended, and remove their folder."""
        for connection in self._connections.values():
            connection.close()
        self._connections = {}
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the process and its children
            process.wait()  # reads the exit code, so that no zombie process is left
        _wait_until_gone(self._pids)
        self._ends.close()  # removes the folder


def _wait_until_gone(pids: Sequence[int]) -> None:
    """Wait until all these processes have ended. A zombie process (ended, but its exit code is unread) counts as ended."""
    left = list(pids)
    while left:
        left = [pid for pid in left if _lives(pid)]
        time.sleep(0.002 if left else 0.0)


def _lives(pid: int) -> bool:
    """Return whether a process still runs."""
    try:
        os.kill(pid, 0)  # signal 0 only asks whether the process exists
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # the process has just ended, or this system has no folder /proc
        return not Path("/proc/self/stat").exists()
    return state.rpartition(")")[2].split()[0] not in "ZX"  # zombie or dead; the name in brackets can contain spaces


def _measured_rows(job: Job, times: Any) -> list[dict[str, Any]]:
    """Return the operations that ended before a run failed: one dict for each operation, ordered by start."""
    start, end = np.array(times).swapaxes(0, 1)
    zero, found = np.nanmin(start) if np.isfinite(end).any() else 0.0, []  # nanmin warns if all values are NaN
    for step, row in np.argwhere(np.isfinite(end)).tolist():
        op, device = job.schedule.ops[row], int(job.schedule.device[row])
        named = {"step": step, "device": device, "op": str(op), "kind": str(op.kind), "stage": op.stage, "microbatch": op.microbatch}
        found.append({**named, "start": start[step, row] - zero, "end": end[step, row] - zero, "activations": None})
    return sorted(found, key=lambda each: each["start"])
