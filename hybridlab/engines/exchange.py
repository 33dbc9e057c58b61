"""The communication between threads: queues of messages, waiting for all devices, stopping all threads, finding deadlocks."""

import threading
import time
from collections import defaultdict
from typing import Any, NamedTuple

from hybridlab.checks import counted
from hybridlab.errors import Deadlock
from hybridlab.schedule import Op
from hybridlab.schedule.validation import Problem

MOST_DEVICES_NAMED = 8  # the error of a deadlock names at most this many devices
CHECK_INTERVAL = 0.1  # seconds between two checks for an interrupt


class StoppedError(Exception):
    """Another thread has failed, and therefore this thread must end as well."""


class Message(NamedTuple):
    """A message in a queue.

    Parameters
    ----------
    content : object
        The object that the sender sends.
    usable : float
        The time from which on the receiver can use it, in seconds of ``time.perf_counter``.
    """

    content: Any
    usable: float


class Wait(NamedTuple):
    """The message or the meeting that a blocked device waits for.

    Parameters
    ----------
    name : object
        The name of the message. None if the device waits until all devices meet (:meth:`Exchange.meet`).
    content : str
        A description in words of the message or the meeting.
    op : Op, optional
        The operation that needs the message.
    """

    name: Any
    content: str
    op: Op | None


class Exchange:
    """One queue for each pair of a sender and a receiver, shared by the threads of all devices.

    A receiver takes a message by its name and leaves the other messages in the queue, so that messages may arrive in any order. A message
    is in the queue as soon as its sender puts it there. So if all threads are blocked at the same time, no message can arrive any more.
    The thread that blocks last then stops all threads with a :class:`Deadlock`, and no timeout is needed. Any error stops all threads,
    also while they sleep.

    Parameters
    ----------
    devices : int
        The number of devices.
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
        """Put a message under its ``name`` into the queue from ``sender`` to ``receiver``, without waiting."""
        with self._lock:
            self._queues[sender, receiver][name] = message
            if receiver in self._waits and self._waits[receiver].name == name:
                self._wake_up(receiver)

    def take(self, sender: int, receiver: int, name: Any, content: str, op: Op | None = None) -> Any:
        """Wait until the message ``name`` is there and usable, and return its content.

        ``content`` describes the message in words, and ``op`` is the operation that needs the message. The error of a deadlock names
        both.
        """
        with self._lock:
            queue = self._queues[sender, receiver]
            if name not in queue:
                self._block(receiver, Wait(name, f"{content} from device {sender}", op))
            message = queue.pop(name)
        self.sleep(message.usable)
        return message.content

    def meet(self, device: int, content: str) -> None:
        """Wait until every device has called this method; ``content`` describes this meeting in words, for the error of a deadlock."""
        with self._lock:
            self._met.add(device)
            if len(self._met) == len(self._wake):
                for each in self._met - {device}:
                    self._wake_up(each)
                self._met = set()
            else:
                self._block(device, Wait(None, content, None))

    def leave(self) -> None:
        """Record that a device has finished; if all devices that still run are blocked now, this is a deadlock."""
        with self._lock:
            self._running -= 1
            self._find_deadlock()
            if self._running <= 0:
                self._finished.set()

    def wait_for_all(self) -> None:
        """Wait until every device has finished; unlike ``Thread.join``, this can be called again after an interrupt."""
        while not self._finished.wait(CHECK_INTERVAL):
            pass  # wait in short intervals: an interrupt just before a wait begins would not end this wait

    def sleep(self, until: float) -> None:
        """Sleep until ``time.perf_counter`` reaches ``until``; if the threads are stopped, raise :class:`StoppedError` at once."""
        while (left := until - time.perf_counter()) > 0:
            if self._stopped.wait(left):
                raise StoppedError
        self.go_on()

    def go_on(self) -> None:
        """Raise :class:`StoppedError` if the threads are stopped."""
        if self._stopped.is_set():
            raise StoppedError

    def stop(self, fault: BaseException) -> None:
        """Stop all threads; only the first error is kept in the attribute ``fault``."""
        with self._lock:
            self._stop(fault)

    def _stop(self, fault: BaseException) -> None:
        self.fault = fault if self.fault is None else self.fault
        self._stopped.set()
        for each in self._wake:
            each.notify()

    def _wake_up(self, device: int) -> None:
        del self._waits[device]
        self._wake[device].notify()

    def _block(self, device: int, wait: Wait) -> None:
        """Block the device until it is woken up or stopped."""
        self._waits[device] = wait
        self._find_deadlock()
        while device in self._waits:
            self.go_on()
            self._wake[device].wait()

    def _find_deadlock(self) -> None:
        """Stop all threads if every running thread is blocked, because then no thread can send a message any more."""
        if self._waits and len(self._waits) == self._running:
            stuck = [Problem(_wait_sentence(device, wait), "deadlock", device, op=wait.op) for device, wait in sorted(self._waits.items())]
            first = "; ".join(problem.sentence for problem in stuck[:MOST_DEVICES_NAMED])
            unnamed = len(stuck) - MOST_DEVICES_NAMED
            more = f"; so do {counted(unnamed, 'device')} more" if unnamed > 0 else ""
            self._stop(Deadlock(f"every thread waits and no message is on its way: {first}{more}", "deadlock", tuple(stuck)))


def _wait_sentence(device: int, wait: Wait) -> str:
    at = "" if wait.op is None else f" stands at {wait.op} and"
    return f"device {device}{at} waits for {wait.content}"
