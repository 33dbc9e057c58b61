"""Test `make serve`: the address that it prints works, Ctrl+C ends it without output, and errors are sentences."""

import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import PATIENCE
from cases import in_turn

SECONDS = PATIENCE / 1000
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@contextmanager
def serve(*arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """Start the program; it is killed at the end if it is still running."""
    command = [sys.executable, str(ROOT / "book/serve.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield server
        finally:
            server.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def test_it_serves_the_site_until_it_is_interrupted(site: Path) -> None:
    number = free_port()
    with serve(str(number)) as server:
        assert server.stdout
        assert server.stdout.readline() == f"The site is at http://localhost:{number} until you press Ctrl+C\n"
        with urllib.request.urlopen(f"http://127.0.0.1:{number}/index.html", timeout=SECONDS) as answer:
            assert answer.read() == (site / "index.html").read_bytes()
            assert answer.headers["Cache-Control"] == "no-cache", "else a browser shows the site of yesterday"
        server.send_signal(signal.SIGINT)
        said, complained = server.communicate(timeout=SECONDS)
    assert (server.returncode, said.strip(), complained) == (0, "", "")


@in_turn("method", ["GET", "HEAD"])
def test_an_address_without_a_page_shows_the_page_for_it(site: Path, method: str) -> None:
    number = free_port()
    with serve(str(number)) as server:
        assert server.stdout
        server.stdout.readline()
        asked = urllib.request.Request(f"http://127.0.0.1:{number}/labs/no%20such%20page.html", method=method)
        with pytest.raises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(asked, timeout=SECONDS)  # noqa: S310  # of this machine's own server
        with answer.value as page:
            assert page.code == 404
            assert page.headers.get_content_type() == "text/html"
            assert page.read() == ((site / "404.html").read_bytes() if method == "GET" else b"")


def test_a_port_in_use_is_told_in_a_sentence(site: Path, taken: socket.socket) -> None:
    number = taken.getsockname()[1]
    with serve(str(number)) as server:
        said, complained = server.communicate(timeout=SECONDS)
    assert server.returncode == 1
    assert said == ""
    assert complained.startswith(f"Port {number} is not available")
    assert "make serve PORT=" in complained
    assert complained.count("\n") == 1


@in_turn("text", ["0", "65536", "-1", "eight"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with serve(text) as server:
        _, complained = server.communicate(timeout=SECONDS)
    assert server.returncode == 1
    assert complained.startswith("A port is a number from 1 to 65535")
    assert repr(text) in complained
