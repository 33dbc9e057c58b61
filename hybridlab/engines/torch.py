"""Messages between the processes of an engine with torch.distributed, over gloo."""

import struct
import time
from functools import cache
from typing import Any

HEAD = struct.Struct("qq")  # the name of a message and the number of its bytes
FIRST = 4096  # bytes of the first part of a message


class TorchMessages:
    """Messages over torch.distributed's sends and receives, which need no tags, as NCCL has none.

    The first part of a message has a fixed length. It has the name of the message, the number of its bytes, and as many of them as fit.
    A receive of the next first part is always under way for every sender, so that gloo fetches the part while this rank computes. A
    receiver takes the messages of a sender in the order in which they were sent, and stores those that it does not need yet. Messages to
    higher ranks and to lower ranks have process groups of their own, so that the sends of two ranks to each other never wait for each
    other.

    Parameters
    ----------
    ranks : int
        How many of the processes take part in the run. All processes call this at the same time.
    """

    def __init__(self, ranks: int) -> None:
        import torch
        import torch.distributed as dist

        self._torch, self._dist, self._rank = torch, dist, dist.get_rank()
        self._up, self._down, self._all = (dist.new_group(list(range(ranks))) for _ in range(3))
        self._sends: list[tuple[Any, Any]] = []  # with their tensors, which must live until the send has ended
        self._early: dict[tuple[int, int], bytes] = {}
        others = [other for other in range(ranks) if other != self._rank] if self._rank < ranks else []
        self._firsts = {other: torch.empty(FIRST, dtype=torch.uint8) for other in others}
        self._coming = {other: self._start_to_receive(other) for other in others}

    def send(self, receiver: int, name: int, data: bytes) -> None:
        """Send bytes under a name, without waiting."""
        group = self._up if receiver > self._rank else self._down
        head = HEAD.pack(name, len(data))
        parts = [(head + data[: FIRST - HEAD.size]).ljust(FIRST), data[FIRST - HEAD.size :]]
        for part in filter(None, parts):
            tensor = self._torch.frombuffer(bytearray(part), dtype=self._torch.uint8)  # a bytearray, because a tensor must be writable
            self._sends.append((self._dist.isend(tensor, receiver, group), tensor))

    def receive(self, sender: int, name: int) -> bytes:
        """Wait for the bytes that a sender has sent under a name."""
        while (sender, name) not in self._early:
            self._coming[sender].wait()
            first = self._firsts[sender].numpy().tobytes()
            arrived, length = HEAD.unpack_from(first)
            data = first[HEAD.size : HEAD.size + length]
            if len(data) < length:
                rest = self._torch.empty(length - len(data), dtype=self._torch.uint8)
                self._dist.recv(rest, sender, self._from(sender))
                data += rest.numpy().tobytes()
            self._early[sender, arrived] = data  # perhaps the message that is wanted, perhaps another
            self._coming[sender] = self._start_to_receive(sender)
        return self._early.pop((sender, name))

    def meet(self) -> None:
        """Wait until all processes of the run have called this method."""
        self.finish()  # a barrier knows nothing of sends that are still under way
        self._dist.barrier(self._all)

    def sleep(self, until: float) -> None:
        """Sleep until ``time.perf_counter`` reaches a time; gloo's own thread sends and receives meanwhile."""
        time.sleep(max(0.0, until - time.perf_counter()))

    def finish(self) -> None:
        """Wait until everything that this process has sent has left it."""
        while self._sends:
            self._sends.pop()[0].wait()

    def _from(self, sender: int) -> Any:
        """Return the process group of the messages from a sender: it sends down to lower ranks, or up."""
        return self._down if sender > self._rank else self._up

    def _start_to_receive(self, sender: int) -> Any:
        return self._dist.irecv(self._firsts[sender], sender, self._from(sender))


# Later runs use the object again, because each process group has threads of its own, and a receive is always under way.
torch_messages = cache(TorchMessages)
