"""Test the worker that may start threads: it starts few of them and no process, and threads that a function leaves behind do no harm."""

import errno
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cases import in_turn
from grading_worlds import verdict

from hybridlab.course.checking.calls import Later
from hybridlab.course.grading import launch, syscalls
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.sandbox import MOST_THREADS, Limits

THREADS = """
import threading
begun, ended = [], threading.Event()
def wait():
    begun.append(1)
    ended.wait()
try:
    for _ in range(1000):
        threading.Thread(target=wait, daemon=True).start()
except RuntimeError:
    pass
ended.set()
check("threads", len(begun))
"""
PROCESSES = """
import os
def started(make):
    try:
        return make() != 0 or os._exit(0)
    except OSError:
        return False
makers = [os.fork, os.forkpty, lambda: os.posix_spawn("/bin/true", ["true"], {})]
check("processes", [started(make) for make in makers])
"""
ALLOW_ALL = struct.pack("HBBI", syscalls.RETURN, 0, 0, syscalls.ALLOW)


@pytest.fixture(
    scope="module",
    params=[pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")), pytest.param("landlock", marks=pytest.mark.needs("landlock"))],
)
def workers(request: pytest.FixtureRequest) -> Iterator[Launcher]:
    with launcher(request.param) as found:
        yield found


def tried(workers: Launcher, source: str, kind: str) -> Any:
    """Return what a cell hands in, in a worker of its own."""
    session = workers.open(kind, Budget(Limits()))
    try:
        ((_, answer),), error = session.run(source, "cell 1")
        assert error is None, error
        return answer
    finally:
        session.close()


def started(work: Callable[[], int]) -> int:
    """Return how many threads start: at least half of those allowed in one of some tries, because other programs of the user start some."""
    return next((found for found in (work() for _ in range(20)) if found >= MOST_THREADS // 2), 0)


def test_threads_start_but_not_many(workers: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under Landlock more of them start where others of the same user end meanwhile, but never all of them."""
    most = MOST_THREADS if workers.sandbox == "bubblewrap" else 999
    assert 0 < started(lambda: tried(workers, THREADS, "threads")) <= most
    assert tried(workers, THREADS, "bare") == 0
    monkeypatch.setattr(launch, "threads_filter", lambda machine: syscalls.threads_filter("vax"))
    assert tried(workers, THREADS, "threads") == 0, "a machine without known numbers has no threads"


def test_the_threads_of_one_worker_leave_room_for_those_of_another_one(workers: Launcher) -> None:
    def beside_half() -> int:
        first, second = (workers.open("threads", Budget(Limits())) for _ in range(2))
        try:
            ((_, others),), _ = second.run(f"{THREADS.replace('1000', str(MOST_THREADS // 2)).replace('ended.set()', '')}", "cell 1")
            ((_, begun),), _ = first.run(THREADS, "cell 1")
        finally:
            first.close()
            second.close()
        return int(begun) if others == MOST_THREADS // 2 else 0

    assert started(beside_half)


def test_no_process_starts_beside_threads(workers: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried(workers, PROCESSES, "threads") == [False] * 3
    monkeypatch.setattr(launch, "threads_filter", lambda machine: ALLOW_ALL)
    assert True in tried(workers, PROCESSES, "threads"), "the filter refuses processes, not another limit"


def called_twice(workers: Launcher, source: str, *arguments: Any) -> list[Any]:
    """Return what a function of a worker returns, called twice."""
    session = workers.open("threads", Budget(Limits()))
    try:
        ((_, function),), _ = session.run(source, "cell 1")
        return [session.call(function.number, arguments, fresh=False, cell="cell 1") for _ in range(2)]
    finally:
        session.close()


def test_all_threads_of_a_call_ask_at_the_same_time(workers: Launcher) -> None:
    """Each call of `meet` waits for the other one: a relay of one call at a time would wait for ever."""
    asking: set[int] = set()

    def meet(number: int) -> int:
        asking.add(number)
        if len(asking) < 2:
            raise Later
        return -number

    source = """
from concurrent.futures import ThreadPoolExecutor
def both(meet):
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(meet, [1, 2]))
check("both", both)
"""
    assert called_twice(workers, source, meet) == [[-1, -2]] * 2


def test_a_thread_that_is_left_behind_does_not_ask_in_the_next_call(workers: Launcher) -> None:
    heard: list[str] = []

    def ask(word: str) -> None:
        heard.append(word)
        if word == "late":
            raise Later

    source = """
import threading
before = []
def leave(ask):
    for word in before:
        word.join(250)
    late = threading.Thread(target=ask, args=("late",), daemon=True)
    late.start()
    before.append(late)
    ask("first")
    return sum(thread.is_alive() for thread in before[:-1])
check("leave", leave)
"""
    assert called_twice(workers, source, ask) == [0, 0]
    assert heard.count("first") == 2


@in_turn("machine", syscalls.MACHINES)
def test_the_filter_allows_a_clone_for_a_thread_alone(machine: str) -> None:
    program, own = syscalls.threads_filter(machine), syscalls.MACHINES[machine][1]
    clone = {"x86_64": 56, "aarch64": 220}[machine]
    assert verdict(program, own, clone, 0x3D0F00) == syscalls.ALLOW, "the flags with which the C library starts a thread"
    assert verdict(program, own, clone, 17) == syscalls.REFUSE, "a process: its flags are the number of a signal"
    assert verdict(program, own, 435) == 0x00050000 | errno.ENOSYS
    assert verdict(program, own, 0) == syscalls.ALLOW
    assert verdict(program, 3, 0) == syscalls.REFUSE
    if machine == "x86_64":
        assert verdict(program, own, 57) == verdict(program, own, 58) == syscalls.REFUSE
