"""The launcher of an engine's processes: it starts them, gives them jobs, watches them and ends them."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridlab.checks import counted, known_name, one_time, short_repr, whole_number
from hybridlab.engines.board import CHECK, Board, FaultWatch, reset, times_file
from hybridlab.engines.job import Job, Measured, Progress, report_steps
from hybridlab.engines.start import ENGINES
from hybridlab.engines.worker import Answer, Order
from hybridlab.errors import HybridLabError, RunFailed

if TYPE_CHECKING:
    from multiprocessing.connection import Connection, Listener

MOST_PROCESSES = 64
STARTS = 120.0  # seconds that the processes may take to start
LEAVES = 1.0  # seconds that they may take to end by themselves after the last run
ENDS = 30.0  # seconds until a process has ended whose connection has, and until a rank has ended that others cannot reach
LAST_LINES = 12  # of what the processes have printed, in an error


class Group:
    """Processes of an engine that run jobs together, one process for each rank.

    Starting processes takes seconds. A group starts them once for several runs: give it to :func:`run` as its ``engine``. Use it in a
    ``with`` statement, which ends the processes. A fault ends them, too.

    The launcher has a connection to each process. The end of a process ends its connection, so the launcher notices it at once. The end
    of the launcher ends all connections, and then each process ends itself.

    Parameters
    ----------
    engine : {"mpi", "torch"}
        "mpi" starts the processes with mpiexec. "torch" starts processes that use torch.distributed with gloo.
    ranks : int
        The number of processes. A run uses the first of them, as many as it has ranks.
    patience : float
        A rank that stands at one place for this many seconds longer than the costs allow there counts as hanging.

    Raises
    ------
    HybridLabError
        The engine is not installed, or its processes do not start. The error contains the last lines that they have printed.
    """

    def __init__(self, engine: str, ranks: int, *, patience: float = 60.0) -> None:
        self.engine = known_name(engine, ENGINES, "engine of processes")
        self.ranks, self.patience = whole_number(ranks, "ranks", at_most=MOST_PROCESSES), one_time(patience, "patience")
        self._folder = Path(tempfile.mkdtemp(prefix="hybridlab-"))
        self._connections: dict[int, Connection[Any, Any]] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._pids: list[int] = []
        self._jobs = self._read = 0  # the number of the last job, and the bytes of output that were read
        try:
            self._start()
        except BaseException:
            self._kill()
            raise

    def _start(self) -> None:
        """Start the processes, and wait until all of them have connected."""
        from multiprocessing.connection import Listener  # a notebook that runs in a browser has no such module

        program = ["-c", f"from hybridlab.engines.worker import serve; serve({self.engine!r}, {str(self._folder)!r}, {self.ranks})"]
        commands = ENGINES[self.engine].commands(self.ranks, program)
        self._board = Board(self.ranks, self._folder / "board", new=True)
        key = os.urandom(32)  # other users of this machine can reach the port, but they do not know the key
        with Listener(("127.0.0.1", 0), backlog=self.ranks, authkey=key) as listener, self._output.open("ab") as output:
            (self._folder / "launcher").write_bytes(pickle.dumps((listener.address, key)))  # nobody else can read the folder
            # one thread for each rank's arithmetic: ranks that start several would compete for the cores
            environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
            environment["PYTHONPATH"] = os.pathsep.join(each for each in sys.path if each)  # ranks can import what this process can
            for command, variables in commands:
                self._processes.append(
                    subprocess.Popen(  # noqa: S603  # our own program
                        command,
                        env=environment | variables,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,  # Ctrl-C is for the launcher, which then ends the others
                    )
                )
            self._greet(listener)
        (self._folder / "launcher").unlink()  # from now on a keeper outlives its rank

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
                with suppress(EOFError):  # the process has ended, which is found below
                    rank, pids = each.recv()
                    self._connections[rank] = each
                    self._pids += pids
            ended = [process.poll() for process in self._processes]
            if any(code is not None for code in ended) or time.monotonic() - began > STARTS:
                seen = f"{len(self._connections)} of {self.ranks} processes of the engine {self.engine!r} started"
                raise RunFailed(f"only {seen}{self._last_lines()}", "not-started")

    def run(self, job: Job, arguments: dict[str, Any], progress: Progress | None = None) -> Measured:
        """Run a job on the first processes; after an error no process is left, and the group cannot run any more."""
        import cloudpickle

        if not self._connections:
            raise HybridLabError("these processes have ended: start new ones for another run", "group-ended")
        if job.ranks > self.ranks:
            wanted = f"a run of {counted(job.ranks, 'rank')} needs as many processes"
            raise HybridLabError(f"{wanted}, but {self.ranks} were started: start {job.ranks}", "wrong-number-of-processes")
        try:
            data = cloudpickle.dumps(arguments)
        except Exception as why:  # what the caller's own objects raise when they are pickled
            message = f"each rank gets a copy of the work, but {short_repr(arguments['work'])} cannot be copied to another process"
            raise HybridLabError(f"{message}: {why}", "not-picklable") from why
        self._jobs += 1
        file = self._folder / f"times{self._jobs}"
        times, watch = times_file(file, job, new=True), FaultWatch(self._board, job, self.patience)
        reset(self._board, job.ranks)
        try:
            for connection in self._connections.values():
                connection.send(Order(self._jobs, job.ranks, data))
            answers = self._answers(watch, report_steps(job, times, progress))
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

    def _answers(self, watch: FaultWatch, report: Callable[[], None]) -> dict[int, Answer]:
        """Wait for the answer of every rank, or raise the first fault. Call ``report`` now and then."""
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
            report()
        return answers

    def _look_for_an_end(self, ranks: dict[Any, int], watch: FaultWatch, seconds: float) -> None:
        """Raise the error of a rank whose process has ended. Others may report that they cannot reach it, which is only a consequence."""
        from multiprocessing.connection import wait

        left, end = list(ranks), time.monotonic() + seconds
        while left and (ready := wait(left, timeout=max(0.0, end - time.monotonic()))):
            for connection in ready:
                self._answer(connection, ranks[connection], watch)
            left = [each for each in left if each not in ready]

    def _answer(self, connection: Any, rank: int, watch: FaultWatch) -> Answer:
        """Return the answer of a rank; raise an error if its process has ended."""
        try:
            answer: Answer = connection.recv()
        except (EOFError, OSError):
            raise watch.gone(rank, self._how_it_ended(rank)) from None
        return answer

    def _how_it_ended(self, rank: int) -> str:
        """Return in words how the process of a rank has ended, with what it has printed last."""
        code = None
        if len(self._processes) > 1:  # each rank is a child of this process
            with suppress(subprocess.TimeoutExpired):
                code = self._processes[rank].wait(ENDS)  # the connection can end shortly before the process
        by = f"signal {signal.Signals(-code).name} ended it" if code and code < 0 else "it was killed, or it left Python"
        return f"{by}{self._last_lines()}"

    @property
    def _output(self) -> Path:
        return self._folder / "output"

    def _new_output(self) -> str:
        """Return what the processes have printed since the last call."""
        with self._output.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        self._read += len(text)
        return text.decode(errors="replace")

    def _last_lines(self) -> str:
        """Return the last lines that the processes have printed, for the end of an error; "" if there are none."""
        lines = self._new_output().strip().splitlines()[-LAST_LINES:]
        return "; it printed: " + " | ".join(lines) if lines else ""

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the processes; they get a second to end by themselves."""
        for connection in self._connections.values():
            with suppress(OSError):  # the process may have ended already
                connection.send(None)
        with suppress(subprocess.TimeoutExpired):
            began = time.monotonic()
            for process in self._processes if self._connections else []:
                process.wait(max(0.0, began + LEAVES - time.monotonic()))
        self._kill()

    def _kill(self) -> None:
        """End all processes at once, wait until they are gone, and remove their folder."""
        for connection in self._connections.values():
            connection.close()
        self._connections = {}
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with its children
            process.wait()  # so that it does not stay in the table of processes
        _wait_until_gone(self._pids)
        shutil.rmtree(self._folder, ignore_errors=True)


def _wait_until_gone(pids: Sequence[int]) -> None:
    """Wait until none of these processes lives; a process that has ended does not count, even if nobody has read its exit code yet."""
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
    except OSError:  # it has gone just now, or this system has no such files
        return not Path("/proc/self/stat").exists()
    return state.rpartition(")")[2].split()[0] not in "ZX"  # a name can contain spaces; Z and X have ended


def _measured_rows(job: Job, times: Any) -> list[dict[str, Any]]:
    """Return what was measured until a run failed: a dict for each operation that ended, in the order of time."""
    start, end = np.array(times).swapaxes(0, 1)
    zero, found = np.nanmin(start) if np.isfinite(end).any() else 0.0, []  # nanmin warns if there is nothing but NaN
    for step, row in np.argwhere(np.isfinite(end)).tolist():
        op, device = job.schedule.ops[row], int(job.schedule.device[row])
        named = {"step": step, "device": device, "op": str(op), "kind": str(op.kind), "stage": op.stage, "microbatch": op.microbatch}
        found.append({**named, "start": start[step, row] - zero, "end": end[step, row] - zero, "activations": None})
    return sorted(found, key=lambda each: each["start"])
