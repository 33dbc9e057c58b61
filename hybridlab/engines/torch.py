"""Messages between the processes of the engine "torch", with torch.distributed over gloo."""

import struct
import time
from functools import cache
from typing import Any

HEAD = struct.Struct("qq")  # the name of a message and the number of its bytes
FIRST = 4096  # bytes of the first block of a message


class TorchMessages:
    """Messages over the sends and receives of torch.distributed, without tags, because NCCL has no tags.

    The first block of a message has a fixed length. The block contains the name of the message, the number of bytes of its data, and the
    beginning of the data. For every sender, a receive of the next first block is always active, so that gloo fetches the block while this
    rank computes. A receiver takes the messages of a sender in the order of sending, and stores the messages that it does not need yet.
    Messages to higher ranks and messages to lower ranks use different process groups. So when two ranks send to each other, their sends
    never wait for each other.

    Parameters
    ----------
    ranks : int
        The number of processes in the run. All processes of the group must construct this object at the same time.
    """

    def __init__(self, ranks: int) -> None:
        import torch
        import torch.distributed as dist

        self._torch, self._dist, self._rank = torch, dist, dist.get_rank()
        self._up, self._down, self._all = (dist.new_group(list(range(ranks))) for _ in range(3))
        self._sends: list[tuple[Any, Any]] = []  # each send with its tensor, because the tensor must exist until the send has ended
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
            self._early[sender, arrived] = data  # this message can have another name than the wanted message
            self._coming[sender] = self._start_to_receive(sender)
        return self._early.pop((sender, name))

    def meet(self) -> None:
        """Wait until all processes of the run have called this method."""
        self.finish()  # a barrier does not wait for sends that have not ended
        self._dist.barrier(self._all)

    def sleep(self, until: float) -> None:
        """Sleep until ``time.perf_counter`` reaches a time. During the sleep, gloo's own thread sends and receives."""
        time.sleep(max(0.0, until - time.perf_counter()))

    def finish(self) -> None:
        """Wait until all sends of this process have ended."""
        while self._sends:
            self._sends.pop()[0].wait()

    def _from(self, sender: int) -> Any:
        """Return the process group for messages from a sender: "down" if the sender's rank is higher than this rank, else "up"."""
        return self._down if sender > self._rank else self._up

    def _start_to_receive(self, sender: int) -> Any:
        return self._dist.irecv(self._firsts[sender], sender, self._from(sender))


# Cached, because a new object would start new threads, and the receives of the old object are still active.
torch_messages = cache(TorchMessages)
