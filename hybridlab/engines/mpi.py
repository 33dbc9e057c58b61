"""Messages between the processes of an engine under MPI, with mpi4py."""

import time
from functools import cache
from typing import Any

POLL = 2e-4  # seconds of sleep between checks for a message; during the sleep other processes can use the core
LOOKS = 10  # checks in a row before a sleep: MPI fetches messages only during a check, so the first check often finds none


class MPIMessages:
    """Messages over MPI. The tag of a message is its name. Processes sleep while they wait, because a wait of MPI keeps a core busy.

    Parameters
    ----------
    ranks : int
        The number of processes in the run. All processes of the group must construct this object at the same time.
    """

    def __init__(self, ranks: int) -> None:
        from mpi4py import MPI

        self._mpi, self._bytes, self._comm = MPI, MPI.BYTE, _first_ranks(ranks)
        self._sends: list[tuple[Any, bytes]] = []  # MPI needs the bytes until the send has ended

    def send(self, receiver: int, name: int, data: bytes) -> None:
        """Send bytes under a name, without waiting."""
        self._sends.append((self._comm.Isend([data, self._bytes], receiver, name), data))

    def receive(self, sender: int, name: int) -> bytearray:
        """Wait for the bytes that a sender has sent under a name."""
        looks = 0
        # a matched probe: Recv below then reads exactly this message
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
        """Sleep until ``time.perf_counter`` reaches a time. Check the sends regularly, because a large send moves only during a check."""
        while (left := until - time.perf_counter()) > 0:
            self._sends = [send for send in self._sends if not send[0].Test()]
            time.sleep(min(left, 1e-3) if self._sends else left)

    def finish(self) -> None:
        """Wait until all sends of this process have ended."""
        while self._sends:
            self._go_on()

    def _go_on(self) -> None:
        """Drop the sends that have ended, and sleep for a moment."""
        self._sends = [send for send in self._sends if not send[0].Test()]
        time.sleep(POLL)


@cache
def _first_ranks(ranks: int) -> Any:
    """Return a communicator of the first ranks. Later runs reuse the communicator, because MPI has only a few thousand."""
    from mpi4py import MPI

    return MPI.COMM_WORLD.Split(0 if MPI.COMM_WORLD.rank < ranks else 1)
