"""The program of one process of an engine: it runs its rank of each job that the launcher sends."""

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
    """The answer of a process: the spans and the result of its rank, or a fault and its cause.

    ``lost`` says that the messages between the ranks do not arrive any more, most likely because another rank has ended.
    """

    spans: list[list[SpanRow]]
    result: Any = None
    fault: BaseException | None = None
    cause: BaseException | None = None
    lost: bool = False
    refused: str = ""


def serve(engine: str, place: str, processes: int) -> None:
    """Run the jobs that the launcher sends, until it sends None; the file ``launcher`` in the folder ``place`` has its address."""
    from multiprocessing.connection import Client

    folder = Path(place)
    own = ENGINES[engine].begin(folder)
    for stream in (1, 2):  # print into a file: mpiexec would pass the text on later than the answers
        os.dup2(os.open(folder / "output", os.O_WRONLY | os.O_APPEND), stream)
    address, key = pickle.loads((folder / "launcher").read_bytes())  # noqa: S301  # the launcher wrote it
    launcher = Client(address, authkey=key)
    rank = ENGINES[engine].rank(folder)
    launcher.send((rank, own))  # after all processes have met in ``rank``, so the launcher knows that they can run
    orders: SimpleQueue[Order | None] = SimpleQueue()
    # a thread of its own, so that the end of the launcher is noticed while a job runs
    threading.Thread(target=_receive_orders, args=(launcher, orders), name="launcher", daemon=True).start()
    board = Board(processes, folder / "board")
    while (order := orders.get()) is not None:
        messages = ENGINES[engine].messages(order.ranks)
        answer = _run_job(rank, order, messages, board, folder, launcher) if rank < order.ranks else Answer([])
        try:
            launcher.send(answer)
        except Exception as why:  # a result of the caller's own can fail in any way when it is pickled
            launcher.send(Answer([], refused=f"the result of device {rank} cannot be copied to another process: {why}"))
    if engine == "torch":  # taking its process groups down takes gloo a second
        sys.stdout.flush()
        os._exit(0)


def _receive_orders(launcher: "Connection[Any, Any]", orders: "SimpleQueue[Order | None]") -> None:
    """Put each order into the queue; if the launcher is gone, end this process and its keeper, also in the middle of an operation."""
    try:
        while True:
            orders.put(launcher.recv())
    except (EOFError, OSError):
        os.killpg(os.getpgrp(), signal.SIGKILL)


def _run_job(rank: int, order: Order, messages: Transport, board: Board, folder: Path, launcher: "Connection[Any, Any]") -> Answer:
    """Run this rank of a job and return its answer. A fault is sent at once, and the launcher then ends this process."""
    try:
        job = checked_job(**pickle.loads(order.arguments))  # noqa: S301  # it comes from the launcher
    except BaseException as why:  # work of the caller's own can raise anything when it is loaded
        board.note(rank, DONE)
        return Answer([], refused=f"the work cannot be loaded in the process of device {rank}: {type(why).__name__}: {why}")

    def report(why: BaseException, lost: bool) -> None:
        launcher.send(Answer([], fault=_portable(why), cause=why.__cause__ and _portable(why.__cause__), lost=lost))

    device = Device(rank, job, ProcessExchange(rank, messages, board, report), times_file(folder / f"times{order.number}", job))
    device.run()
    return Answer(device.spans, device.result)


def _portable(why: BaseException) -> BaseException:
    """Return an error that the launcher can load: the error itself, or else one with its text."""
    try:
        pickle.loads(pickle.dumps(why))  # noqa: S301
    except Exception:  # an error of the caller's own can fail in any way here
        return RuntimeError(f"{type(why).__name__}: {why}")
    return why
