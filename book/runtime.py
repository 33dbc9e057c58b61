"""Fetch Python for the browser and the packages of the labs, so that the site can host them.

`HYBRIDLAB_PYTHON` says where Pyodide's packages come from: `download` means its public file server, and everything else is a folder with
the files of its release. Versions are pinned, and a file whose hash is not the pinned one is refused.
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from jupyterlite_pyodide_kernel.constants import PYODIDE_CDN_URL, PYODIDE_PYTHON_VERSION
from packaging.utils import canonicalize_name

VARIABLE = "HYBRIDLAB_PYTHON"
VERSION = "314.0.6"  # of npm's package `pyodide`: the one that JupyterLite's kernel expects
INTEGRITY = "sha512-BKDTJyIqFxC4BExLqeRS3f5xvXZIjOt8C3zGLN/Cc7tFxSwvKVhVkchQQ2AGLOtR4YrVOIFxbV8poyDOOmWwxQ=="
LOCK = "pyodide-lock.json"  # names, hashes and needs of the packages that are built for this version
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", LOCK)
# what the kernel installs, what the labs import, and what the wheels for widgets need
PACKAGES = ("micropip", "ipython", "jedi", "numpy", "matplotlib", "pillow", "scikit-learn", "typing-extensions")
WHEELS = Path(__file__).with_name("wheels.lock")
RELEASE = f"a folder with the files of Pyodide {VERSION}'s release"
PATIENCE = 120  # seconds in which a server must answer


class LiteError(Exception):
    """JupyterLite cannot be built; the message says why."""


def run(what: str, *command: str, folder: Path) -> None:
    """Run a program in ``folder``, silently.

    Raises:
        LiteError: it failed; the message contains the last lines that it printed.
    """
    done = subprocess.run(  # noqa: S603 - this environment's Python, or npm
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise LiteError(f"{what} failed; its last lines:\n" + "\n".join(done.stdout.splitlines()[-20:]))


def source() -> str | None:
    """Return where Pyodide's packages come from, an address or a folder, or None if the site does not host Python.

    Raises:
        LiteError: the variable is neither the word nor a folder.
    """
    named = os.environ.get(VARIABLE, "")
    if named in ("", "download"):
        return PYODIDE_CDN_URL if named else None
    if not Path(named).is_dir():
        raise LiteError(f"{VARIABLE} is {named!r}: write the word download, or the path of {RELEASE}.")
    return named


def host(lite: Path, where: str) -> None:
    """Put all that a lab fetches into JupyterLite's folder: Pyodide's core, packages from ``where``, and the wheels for widgets."""
    pyodide = lite / "static/pyodide"
    pyodide.mkdir(parents=True)
    core(pyodide)
    choose(pyodide, where, PACKAGES)
    pip = f"pip download --quiet --require-hashes --no-deps --only-binary :all: --platform any --python-version {PYODIDE_PYTHON_VERSION}"
    files = ("--requirement", str(WHEELS), "--dest", str(lite / "pypi"))
    run("Fetching the packages for widgets", sys.executable, "-m", *pip.split(), *files, folder=lite)


def core(folder: Path) -> None:
    """Put Pyodide's core into ``folder``."""
    npm = shutil.which("npm", path=os.pathsep.join((os.environ.get("PATH", ""), str(Path(sys.executable).parent))))
    if npm is None:
        raise LiteError("Python for the browser comes from npm, and there is no npm here: install Node.js, which brings it.")
    with tempfile.TemporaryDirectory() as place:
        run("Fetching Python for the browser", npm, "pack", f"pyodide@{VERSION}", "--silent", folder=Path(place))
        (archive,) = Path(place).glob("*.tgz")
        unpack(archive, folder, INTEGRITY)


def unpack(archive: Path, folder: Path, integrity: str) -> None:
    """Unpack the files of the core from npm's package, if it is the one with this integrity."""
    got = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{got}" != integrity:
        raise LiteError(f"{archive.name} is not the file that is expected: its integrity is sha512-{got}, and {integrity} is pinned.")
    with tarfile.open(archive) as opened:
        for name in CORE:
            (folder / name).write_bytes(opened.extractfile(f"package/{name}").read())


def choose(folder: Path, where: str, wanted: Iterable[str]) -> None:
    """Put the wanted packages and all that they need into ``folder``, and keep only their names in its lock.

    Raises:
        LiteError: the lock does not have a package, or a file cannot be read or is not the one of the lock.
    """
    lock = json.loads((folder / LOCK).read_text(encoding="utf-8"))
    lock["packages"] = needed(lock["packages"], wanted)
    for package in lock["packages"].values():
        name = package["file_name"]
        content = fetched(where, name)
        got = hashlib.sha256(content).hexdigest()
        if got != package["sha256"]:
            raise LiteError(f"{name} is not the file that is expected: its SHA-256 is {got}, and the lock has {package['sha256']}.")
        (folder / name).write_bytes(content)
    (folder / LOCK).write_text(json.dumps(lock), encoding="utf-8")


def needed(packages: Mapping[str, Any], wanted: Iterable[str]) -> dict[str, Any]:
    """Return the wanted packages and all that they need, by name."""
    chosen: dict[str, Any] = {}
    ahead = list(wanted)
    while ahead:
        name = canonicalize_name(ahead.pop())
        if name not in packages:
            raise LiteError(f"Pyodide {VERSION} has no package {name}, so the labs cannot run in a browser without another server.")
        if name not in chosen:
            chosen[name] = packages[name]
            ahead += packages[name]["depends"]
    return dict(sorted(chosen.items()))


def fetched(where: str, name: str) -> bytes:
    """Return the content of a file of Pyodide's release.

    Raises:
        LiteError: it cannot be read.
    """
    try:
        if Path(where).is_dir():
            return (Path(where) / name).read_bytes()
        with urlopen(f"{where}/{name}", timeout=PATIENCE) as answer:  # noqa: S310 - the address of Pyodide's file server
            return bytes(answer.read())
    except (OSError, HTTPException) as error:
        if isinstance(error, HTTPError):
            error.close()  # it holds the page that the server has sent with it
        raise LiteError(f"{name} cannot be read from {where} ({error}). {VARIABLE} can also be the path of {RELEASE}.") from error
