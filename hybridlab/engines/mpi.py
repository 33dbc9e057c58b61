"""Messages between the processes of an engine under MPI, with mpi4py."""

import time
from functools import cache
from typing import Any

POLL = 2e-4  # seconds between two looks for a message: a process that waits leaves its core to others
LOOKS = 10  # looks in a row before a process sleeps: MPI fetches messages only during a look, so the first look often finds nothing


class MPIMessages:
    """Messages over MPI: the tag of a message is its name. A process that waits looks and sleeps, because MPI's own waits use a core.

    Parameters
    ----------
    ranks : int
        How many of the processes take part in the run. All processes call this at the same time.
    """

    def __init__(self, ranks: int) -> None:
        from mpi4py import MPI

        self._mpi, self._bytes, self._comm = MPI, MPI.BYTE, _first_ranks(ranks)
        self._sends: list[tuple[Any, bytes]] = []  # a send needs its bytes until it has ended

    def send(self, receiver: int, name: int, data: bytes) -> None:
        """Send bytes under a name, without waiting."""
        self._sends.append((self._comm.Isend([data, self._bytes], receiver, name), data))

    def receive(self, sender: int, name: int) -> bytearray:
        """Wait for the bytes that a sender has sent under a name."""
        looks = 0
        # a matched probe, so that the bytes are read from this very message
        while (message := self._comm.Improbe(sender, name, status := self._mpi.Status())) is None:
            looks += 1
            if looks % LOOKS == 0:
                self._go_on()
        data = bytearray(status.Get_count(self._bytes))
        message.Recv([data, self._bytes])
        return data

    def meet(self) -> None:
        """Wait until all processes of the run have called this method."""
        request = self._comm.Ibarrier()
        while not request.Test():
            self._go_on()

    def sleep(self, until: float) -> None:
        """Sleep until ``time.perf_counter`` reaches a time; large messages need a look now and then to go on."""
        while (left := until - time.perf_counter()) > 0:
            self._sends = [send for send in self._sends if not send[0].Test()]
            time.sleep(min(left, 1e-3) if self._sends else left)

    def finish(self) -> None:
        """Wait until everything that this process has sent has left it."""
        while self._sends:
            self._go_on()

    def _go_on(self) -> None:
        """Forget the sends that have ended, and sleep for a moment."""
        self._sends = [send for send in self._sends if not send[0].Test()]
        time.sleep(POLL)


@cache
def _first_ranks(ranks: int) -> Any:
    """Return a communicator of the first ranks. Later runs use it again, because MPI has only some thousand communicators."""
    from mpi4py import MPI

    return MPI.COMM_WORLD.Split(0 if MPI.COMM_WORLD.rank < ranks else 1)
