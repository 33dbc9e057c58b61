"""The program of one process of an engine: the process runs its rank of each job that the launcher sends."""

import os
import pickle
import signal
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridlab.engines.board import DONE, Board, times_file
from hybridlab.engines.device import Device
from hybridlab.engines.job import SpanRow, checked_job
from hybridlab.engines.process_exchange import ProcessExchange, Transport
from hybridlab.engines.start import ENGINES

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class Order(NamedTuple):
    """A message from the launcher to every process: the number of the job, its ranks, and the pickled arguments of :func:`checked_job`."""

    number: int
    ranks: int
    arguments: bytes


class Answer(NamedTuple):
    """The answer of a process: either the spans and the result of its rank, or a fault and its cause.

    ``lost`` is True if the transport of messages failed. The usual reason is that another rank has ended.
    """

    spans: list[list[SpanRow]]
    result: Any = None
    fault: BaseException | None = None
    cause: BaseException | None = None
    lost: bool = False
    refused: str = ""


def serve(engine: str, place: str, processes: int) -> None:
    """Run the jobs from the launcher until the launcher sends None. The file ``launcher`` in the folder ``place`` has its address."""
    from multiprocessing.connection import Client

    folder = Path(place)
    own = ENGINES[engine].begin(folder)
    for stream in (1, 2):  # print into a file, because mpiexec would pass on the text after the answers
        os.dup2(os.open(folder / "output", os.O_WRONLY | os.O_APPEND), stream)
    address, key = pickle.loads((folder / "launcher").read_bytes())  # noqa: S301  # the launcher wrote it
    launcher = Client(address, authkey=key)
    rank = ENGINES[engine].rank(folder)
    launcher.send((rank, own))  # sent after all processes have met in ``rank``: the launcher then knows that they run
    orders: SimpleQueue[Order | None] = SimpleQueue()
    # a second thread receives orders, to notice the end of the launcher even while a job runs
    threading.Thread(target=_receive_orders, args=(launcher, orders), name="launcher", daemon=True).start()
    board = Board(processes, folder / "board")
    while (order := orders.get()) is not None:
        messages = ENGINES[engine].messages(order.ranks)
        answer = _run_job(rank, order, messages, board, folder, launcher) if rank < order.ranks else Answer([])
        try:
            launcher.send(answer)
        except Exception as why:  # pickling the caller's result can raise any error
            launcher.send(Answer([], refused=f"the result of device {rank} cannot be copied to another process: {why}"))
    if engine == "torch":  # skip the shutdown of gloo's process groups, which takes a second
        sys.stdout.flush()
        os._exit(0)


def _receive_orders(launcher: "Connection[Any, Any]", orders: "SimpleQueue[Order | None]") -> None:
    """Put each order into the queue. If the launcher has ended, kill this process and its keeper, even during an operation."""
    try:
        while True:
            orders.put(launcher.recv())
    except (EOFError, OSError):
        os.killpg(os.getpgrp(), signal.SIGKILL)


def _run_job(rank: int, order: Order, messages: Transport, board: Board, folder: Path, launcher: "Connection[Any, Any]") -> Answer:
    """Run this rank of a job and return its answer. Send a fault without delay; the launcher then ends this process."""
    try:
        job = checked_job(**pickle.loads(order.arguments))  # noqa: S301  # the data come from the launcher
    except BaseException as why:  # loading the caller's work can raise any error
        board.note(rank, DONE)
        return Answer([], refused=f"the work cannot be loaded in the process of device {rank}: {type(why).__name__}: {why}")

    def report(why: BaseException, lost: bool) -> None:
        launcher.send(Answer([], fault=_portable(why), cause=why.__cause__ and _portable(why.__cause__), lost=lost))

    device = Device(rank, job, ProcessExchange(rank, messages, board, report), times_file(folder / f"times{order.number}", job))
    device.run()
    return Answer(device.spans, device.result)


def _portable(why: BaseException) -> BaseException:
    """Return an error that the launcher can load: the error itself, or else a RuntimeError with its text."""
    try:
        pickle.loads(pickle.dumps(why))  # noqa: S301
    except Exception:  # pickling the caller's error can raise any error
        return RuntimeError(f"{type(why).__name__}: {why}")
    return why
