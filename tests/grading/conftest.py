"""Fixtures for tests of grading: no limits of time, a world to mark in, and a server and a folder that no worker may reach."""

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from grading_worlds import PATIENT, World, new_world

from hybridlab.course.grading import launch


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Give workers without limits of their own all the time that they need, so that a busy machine costs no points."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(launch, "Limits", lambda: PATIENT)
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
