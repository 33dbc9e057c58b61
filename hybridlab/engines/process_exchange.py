"""The exchange of a rank with its own process: the rank sends messages as bytes and notes its places on the board."""

import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol

from hybridlab.engines.board import DONE, RUNS, WAITS, Board
from hybridlab.engines.device import Message
from hybridlab.engines.job import END


class Transport(Protocol):
    """The transport of messages between the processes of an engine."""

    def send(self, receiver: int, name: int, data: bytes) -> None:
        """Send bytes under a name, without waiting."""

    def receive(self, sender: int, name: int) -> bytes | bytearray:
        """Wait for the bytes that a sender has sent under a name."""

    def meet(self) -> None:
        """Wait until all processes of the run have called this method."""

    def sleep(self, until: float) -> None:
        """Sleep until ``time.perf_counter`` reaches a time. Messages move during the sleep."""

    def finish(self) -> None:
        """Wait until all sends of this process have ended."""


class ProcessExchange:
    """The exchange of the device ``rank``; see :class:`~hybridlab.engines.device.Exchange`.

    Parameters
    ----------
    rank : int
        The rank of this process.
    transport : Transport
        The transport of the messages.
    board : Board
        The board on which the rank notes its places.
    report : callable
        ``report(fault, lost)`` sends an error to the launcher. ``lost`` says whether the transport raised the error.
    """

    def __init__(self, rank: int, transport: Transport, board: Board, report: Callable[[BaseException, bool], None]) -> None:
        self._rank, self._transport, self._board, self._report = rank, transport, board, report
        self._lost = False

    def put(self, sender: int, receiver: int, name: int, message: Message) -> None:
        """Send a message under a name, without waiting."""
        data = pickle.dumps(tuple(message), protocol=pickle.HIGHEST_PROTOCOL)
        with self._noting_errors():
            self._transport.send(receiver, name, data)

    def take(self, sender: int, receiver: int, name: int) -> Any:
        """Wait until a message has arrived and can be used. Return its content."""
        self._board.note(self._rank, WAITS, name=name)
        with self._noting_errors():
            data = self._transport.receive(sender, name)
        content, usable = pickle.loads(data)  # noqa: S301  # the data come from a rank of this run
        self._board.note(self._rank, RUNS)
        self.sleep(usable)
        return content

    def meet(self, device: int, name: int) -> None:
        """Wait until all devices have called this method."""
        self._board.note(device, WAITS, name=name)
        with self._noting_errors():
            self._transport.meet()
        self._board.note(device, RUNS)

    def sleep(self, until: float) -> None:
        """Sleep until ``time.perf_counter`` reaches a time."""
        if until > time.perf_counter():
            self._transport.sleep(until)

    def stand(self, device: int, place: int) -> None:
        """Note the current place of the device."""
        self._board.note(device, RUNS, place)

    def stop(self, fault: BaseException) -> NoReturn:
        """Send an error to the launcher, and wait until it ends this process."""
        self._report(fault, self._lost)
        while True:  # wait, because the launcher would take the end of this process for a second fault
            time.sleep(1)

    def leave(self) -> None:
        """Finish all sends, and note that the device has finished."""
        self._board.note(self._rank, WAITS, name=END)  # if the receivers never take the messages, the watch finds a deadlock
        self._transport.finish()
        self._board.note(self._rank, DONE)

    @contextmanager
    def _noting_errors(self) -> Iterator[None]:
        """Record that the transport raised an error. The usual reason is that another rank has ended."""
        try:
            yield
        except Exception:
            self._lost = True
            raise
