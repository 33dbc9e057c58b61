"""Start a JupyterLab on this machine with its own settings, for tests that run notebooks in a browser."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser import PATIENCE

FOLDERS = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR", "LAB_SETTINGS_DIR", "LAB_WORKSPACES_DIR")

# Waits until the open notebook has a kernel. If a cell is run earlier, the run is lost, or JupyterLab asks which kernel to start.
CONNECTED = """async () => {
  const { context, sessionContext } = jupyterapp.shell.currentWidget;
  await context.ready;
  await sessionContext.ready;
  await sessionContext.session.kernel.info;
}"""


def ask(address: str, method: str = "GET", body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310, our own server
    with urllib.request.urlopen(request, timeout=PATIENCE / 1000) as answer:  # noqa: S310
        return json.loads(answer.read() or "null")


def stop_kernels(address: str) -> None:
    for kernel in ask(f"{address}/api/kernels"):
        ask(f"{address}/api/kernels/{kernel['id']}", "DELETE")


@contextmanager
def jupyter(folder: Path, root: Path) -> Iterator[str]:
    """Give the address of a JupyterLab on the folder ``root``; it uses only the settings in ``folder``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {f"JUPYTER{'' if name.startswith('LAB_') else '_'}{name}": str(folder / name) for name in FOLDERS}
    flags = [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={root}", "--no-browser"]
    flags += ["--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True", "--allow-root", "--LabApp.expose_app_in_browser=True"]
    with (folder / "log").open("w") as log, subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *flags],
        env=os.environ | own | {"IPYTHONDIR": str(folder / "ipython")}, stdout=log, stderr=subprocess.STDOUT,
    ) as server:  # fmt: skip
        try:
            address = f"http://127.0.0.1:{port}"
            until_it_answers(f"{address}/api/status", server, folder / "log")
            yield address
            stop_kernels(address)
        finally:
            server.kill()  # kernels that still run end together with the server


def until_it_answers(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end and server.poll() is None:
        try:
            ask(address)
        except OSError:
            time.sleep(0.1)  # the server does not listen yet
        else:
            return
    pytest.fail(f"JupyterLab did not start: {log.read_text()}", pytrace=False)
