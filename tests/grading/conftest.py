"""Fixtures for tests of grading: a world to mark in, and a server and a folder that no worker may reach."""

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grading_worlds import World, new_world

from hybridlab.course.grading import grade


@pytest.fixture(scope="session", autouse=True)
def one_process() -> Iterator[None]:
    """Grade in the process of the tests, which can change the grader. The tests of the boundary between submissions start the command."""

    def each_here(work: Any, items: Any, **settings: Any) -> Iterator[tuple[str, Any]]:
        return ((name, work(*arguments)) for name, arguments in items)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grade, "each_apart", each_here)
        # the right answers of these tests are alike: they stand in the repository
        patched.setattr(grade, "add_likenesses", lambda marks, found, lab: list(marks))
        yield


@pytest.fixture
def world() -> World:
    """Return a place where submissions are marked."""
    return new_world()


class Listener:
    """A server for TCP and UDP on this machine that remembers what it receives.

    Parameters
    ----------
    port : int
        Its port on 127.0.0.1.
    """

    def __init__(self) -> None:
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.heard: list[str] = []
        for listen in (self._connections, self._datagrams):
            threading.Thread(target=listen, daemon=True).start()

    def _connections(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.tcp.accept()
                self.heard.append("a connection")
                connection.close()

    def _datagrams(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.udp.recvfrom(1000)
                self.heard.append("a datagram")

    def close(self) -> None:
        for each in (self.tcp, self.udp):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture(scope="session")
def listener() -> Iterator[Listener]:
    """Return a server on this machine."""
    server = Listener()
    yield server
    server.close()


@pytest.fixture(scope="session")
def watched() -> Iterator[Path]:
    """Return an empty folder to which everyone can write."""
    folder = Path(tempfile.mkdtemp(prefix="hybridlab-watched-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)
