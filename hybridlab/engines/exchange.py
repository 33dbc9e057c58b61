"""What passes between threads: queues of messages, meetings, the word to stop, and the proof that nothing can arrive any more."""

import threading
import time
from collections import defaultdict
from typing import Any, NamedTuple

from hybridlab.checks import counted
from hybridlab.errors import Deadlock
from hybridlab.schedule import Op
from hybridlab.schedule.validation import Problem

MOST_NAMED = 8  # devices in one sentence
LOOK = 0.1  # seconds between two looks for an interrupt


class StoppedError(Exception):
    """Another thread has failed: this one must end as well."""


class Message(NamedTuple):
    """What a sender put into a queue, and from when on the receiver can use it (``time.perf_counter``, seconds)."""

    content: Any
    usable: float


class Wait(NamedTuple):
    """What a device is blocked for: a message by its ``name`` (None: a meeting of all), at operation ``op`` (None: at none)."""

    name: Any
    what: str
    op: Op | None


class Exchange:
    """One queue for each pair of a sender and a receiver, shared by the threads of ``devices`` devices.

    A receiver takes the message that it names and leaves the others in the queue, so that what arrives out of order is kept.
    Messages are there as soon as they are put, so when all threads are blocked at once, none can ever go on: the last one to
    block finds the :class:`Deadlock`, without any clock. The first fault stops all threads, sleeping ones too.
    """

    def __init__(self, devices: int) -> None:
        self.fault: BaseException | None = None
        self._lock = threading.Lock()
        self._wake = [threading.Condition(self._lock) for _ in range(devices)]
        self._stopped = threading.Event()
        self._queues: defaultdict[tuple[int, int], dict[Any, Message]] = defaultdict(dict)
        self._waits: dict[int, Wait] = {}
        self._met: set[int] = set()
        self._running = devices
        self._finished = threading.Event()

    def put(self, sender: int, receiver: int, name: Any, message: Message) -> None:
        """Put a message under its ``name`` into the queue from ``sender`` to ``receiver``; never waits."""
        with self._lock:
            self._queues[sender, receiver][name] = message
            if receiver in self._waits and self._waits[receiver].name == name:
                self._awaken(receiver)

    def take(self, sender: int, receiver: int, name: Any, what: str, op: Op | None = None) -> Any:
        """Return the content of the message ``name``, once it is there and usable. An error calls it ``what``."""
        with self._lock:
            queue = self._queues[sender, receiver]
            if name not in queue:
                self._block(receiver, Wait(name, f"{what} from device {sender}", op))
            message = queue.pop(name)
        self.sleep(message.usable)
        return message.content

    def meet(self, device: int, what: str) -> None:
        """Wait until every device is here."""
        with self._lock:
            self._met.add(device)
            if len(self._met) == len(self._wake):
                for each in self._met - {device}:
                    self._awaken(each)
                self._met = set()
            else:
                self._block(device, Wait(None, what, None))

    def leave(self) -> None:
        """Tell that a device has finished: whoever still waits may now wait for ever."""
        with self._lock:
            self._running -= 1
            self._find_deadlock()
            if self._running <= 0:
                self._finished.set()

    def wait_for_all(self) -> None:
        """Wait until every device has finished. An interrupted wait can be taken up again, other than that of ``Thread.join``."""
        while not self._finished.wait(LOOK):
            pass  # an interrupt that comes just before a wait begins does not end it

    def sleep(self, until: float) -> None:
        """Sleep until ``time.perf_counter`` shows ``until``, or raise :class:`StoppedError` as soon as the threads are stopped."""
        while (left := until - time.perf_counter()) > 0:
            if self._stopped.wait(left):
                raise StoppedError
        self.go_on()

    def go_on(self) -> None:
        """Raise :class:`StoppedError` if the threads are stopped."""
        if self._stopped.is_set():
            raise StoppedError

    def stop(self, fault: BaseException) -> None:
        """Stop all threads; the first fault is the one that is kept."""
        with self._lock:
            self._stop(fault)

    def _stop(self, fault: BaseException) -> None:
        self.fault = fault if self.fault is None else self.fault
        self._stopped.set()
        for each in self._wake:
            each.notify()

    def _awaken(self, device: int) -> None:
        del self._waits[device]
        self._wake[device].notify()

    def _block(self, device: int, wait: Wait) -> None:
        self._waits[device] = wait
        self._find_deadlock()
        while device in self._waits:
            self.go_on()
            self._wake[device].wait()

    def _find_deadlock(self) -> None:
        """Stop all threads if each one that is left is blocked: a put would have woken the one it was for."""
        if self._waits and len(self._waits) == self._running:
            stuck = [Problem(_sentence(device, wait), "waits-for-ever", device, op=wait.op) for device, wait in sorted(self._waits.items())]
            message = "; ".join(problem.sentence for problem in stuck[:MOST_NAMED])
            more = f"; so do {counted(len(stuck) - MOST_NAMED, 'device')} more" if len(stuck) > MOST_NAMED else ""
            self._stop(Deadlock(f"every thread waits and no message is on its way: {message}{more}", "deadlock", tuple(stuck)))


def _sentence(device: int, wait: Wait) -> str:
    at = "" if wait.op is None else f" stands at {wait.op} and"
    return f"device {device}{at} waits for {wait.what}"
