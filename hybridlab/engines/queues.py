"""The communication between the threads of a run: queues of messages, meetings of all devices, stopping, and finding deadlocks."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hybridlab.engines.device import Message, StoppedError
from hybridlab.engines.job import Job

CHECK_INTERVAL = 0.1  # seconds between two checks for an interrupt


class Queues:
    """One queue for each pair of a sender and a receiver, shared by the threads of all devices.

    A receiver takes a message by its name, so messages may arrive in any order. A message is in the queue as soon as its sender has put it
    there. So if all threads are blocked at the same time, no message can arrive any more: this is a deadlock. The last thread that blocks
    then stops all threads with the error :class:`Deadlock`, so no timeout is needed. Any error stops all threads, even threads that sleep.

    Parameters
    ----------
    job : Job
        The job that the threads run.
    """

    def __init__(self, job: Job) -> None:
        self.fault: BaseException | None = None
        self._job = job
        self._lock = threading.Lock()
        # one condition for each thread, so that a message wakes only its receiver
        self._wake = [threading.Condition(self._lock) for _ in range(job.ranks)]
        self._stopped = threading.Event()
        self._queues: defaultdict[tuple[int, int], dict[int, Message]] = defaultdict(dict)
        self._waits: dict[int, int] = {}  # blocked device -> name of the message or the meeting
        self._met: set[int] = set()
        self._running = job.ranks
        self._finished = threading.Event()

    def put(self, sender: int, receiver: int, name: int, message: Message) -> None:
        """Put a message under its ``name`` into the queue from ``sender`` to ``receiver``, without waiting."""
        with self._lock:
            self._queues[sender, receiver][name] = message
            if self._waits.get(receiver) == name:
                self._wake_up(receiver)

    def take(self, sender: int, receiver: int, name: int) -> Any:
        """Wait until the message ``name`` has arrived and can be used. Return its content."""
        with self._lock:
            queue = self._queues[sender, receiver]
            if name not in queue:
                self._block(receiver, name)
            message = queue.pop(name)
        self.sleep(message.usable)  # after releasing the lock, so that the other threads can go on
        return message.content

    def meet(self, device: int, name: int) -> None:
        """Wait until every device has called this method."""
        with self._lock:
            self._met.add(device)
            if len(self._met) == len(self._wake):
                for each in self._met - {device}:
                    self._wake_up(each)
                self._met = set()
            else:
                self._block(device, name)

    def leave(self) -> None:
        """Record that a device has finished. If all remaining devices are blocked now, stop them with a deadlock error."""
        with self._lock:
            self._running -= 1  # perhaps all remaining devices wait for this device
            self._find_deadlock()
            if self._running <= 0:
                self._finished.set()

    def wait_for_all(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait until every device has finished, and call ``meanwhile`` regularly.

        Unlike ``Thread.join``, this method can be called again after an interrupt.
        """
        while not self._finished.wait(CHECK_INTERVAL):  # short waits, because an interrupt just before a wait does not end this wait
            meanwhile()

    def sleep(self, until: float) -> None:
        """Sleep until ``time.perf_counter`` reaches ``until``. Raise :class:`StoppedError` as soon as the threads are stopped."""
        while (left := until - time.perf_counter()) > 0:
            if self._stopped.wait(left):
                raise StoppedError
        self.go_on()

    def stand(self, device: int, place: int) -> None:
        """Raise :class:`StoppedError` if the threads are stopped. Threads do not note their places."""
        self.go_on()

    def go_on(self) -> None:
        """Raise :class:`StoppedError` if the threads are stopped."""
        if self._stopped.is_set():
            raise StoppedError

    def stop(self, fault: BaseException) -> None:
        """Stop all threads, and store the error in ``fault`` if it is the first error."""
        with self._lock:
            self._stop(fault)

    def _stop(self, fault: BaseException) -> None:
        """Stop all threads. The caller must hold the lock."""
        self.fault = fault if self.fault is None else self.fault
        self._stopped.set()
        for each in self._wake:
            each.notify()

    def _wake_up(self, device: int) -> None:
        """Wake up a blocked device."""
        del self._waits[device]
        self._wake[device].notify()

    def _block(self, device: int, name: int) -> None:
        """Block the device until it is woken up or stopped."""
        self._waits[device] = name
        self._find_deadlock()
        while device in self._waits:  # a condition can wake up without a notification
            self.go_on()
            self._wake[device].wait()

    def _find_deadlock(self) -> None:
        """Stop all threads if every running thread is blocked, because then no thread can send a message any more."""
        if self._waits and len(self._waits) == self._running:
            self._stop(self._job.deadlock(self._waits))
