"""Test what a site with its own Python is built from: pinned versions, hashes, what each package needs, and refusals."""

import base64
import hashlib
import json
import os
import re
import shlex
import sys
import tarfile
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

import lite
import pytest
import runtime
from browser import serving
from cases import in_turn
from jupyterlite_pyodide_kernel.constants import PYODIDE_CDN_URL, PYODIDE_VERSION
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# ipython, which Pyodide has, brings traitlets; the kernel itself has a stand-in for the last package
BROUGHT = {*runtime.PACKAGES, "traitlets", "widgetsnbextension"}
IN_A_BROWSER = {"sys_platform": "emscripten", "platform_system": "Emscripten", "os_name": "posix", "python_version": "3.14", "extra": ""}
NEEDS = {"numpy": [], "pillow": [], "matplotlib": ["numpy", "Pillow", "python_dateutil"], "python-dateutil": ["six"], "six": [], "rich": []}


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach the servers of these tests directly, also on a machine with a proxy."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Give a folder that is like Pyodide's release, with small packages."""
    folder = tmp_path / "release"
    folder.mkdir()
    packages = {}
    for name, depends in NEEDS.items():
        content = f"the wheel of {name}".encode()
        (folder / f"{name}-1.whl").write_bytes(content)
        packages[name] = {"file_name": f"{name}-1.whl", "sha256": hashlib.sha256(content).hexdigest(), "depends": depends}
    (folder / runtime.LOCK).write_text(json.dumps({"info": {"python": "3.14"}, "packages": packages}), encoding="utf-8")
    return folder


@pytest.fixture
def site(tmp_path: Path, release: Path) -> Path:
    """Give a folder for Pyodide that has the lock alone."""
    folder = tmp_path / "pyodide"
    folder.mkdir()
    (folder / runtime.LOCK).write_bytes((release / runtime.LOCK).read_bytes())
    return folder


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Give a file that is like npm's package."""
    package = tmp_path / "package"
    package.mkdir()
    for name in (*runtime.CORE, "README.md"):
        (package / name).write_text(f"the text of {name}", encoding="utf-8")
    path = tmp_path / "core.tgz"
    with tarfile.open(path, "w:gz") as made:
        made.add(package, "package")
    return path


def integrity(path: Path) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# What is pinned


def test_the_pinned_python_is_the_one_that_the_kernel_expects() -> None:
    assert runtime.VERSION == PYODIDE_VERSION, "with a new kernel, pin VERSION and INTEGRITY again: npm view pyodide@VERSION dist.integrity"
    assert len(base64.b64decode(runtime.INTEGRITY.removeprefix("sha512-"))) == hashlib.sha512().digest_size


def test_each_wheel_for_widgets_is_pinned_in_the_installed_version() -> None:
    lines = [line for line in runtime.WHEELS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    pins = [re.fullmatch(r"(\S+)==(\S+) --hash=sha256:[0-9a-f]{64}", line) for line in lines]
    assert all(pins), lines
    pinned = {canonicalize_name(pin[1]): pin[2] for pin in pins if pin}
    assert pinned == {name: version(name) for name in pinned}
    assert set(pinned) == brought_by(lite.WIDGETS), "what the widgets need, and nothing else"


def brought_by(names: tuple[str, ...]) -> set[str]:
    """Return the packages and all that they need in a browser, without those that the site has anyway."""
    found: set[str] = set()
    ahead = [*names]
    while ahead:
        name = canonicalize_name(ahead.pop())
        if name not in found | BROUGHT:
            found.add(name)
            needs = [Requirement(text) for text in requires(name) or []]
            ahead += [need.name for need in needs if need.marker is None or need.marker.evaluate(IN_A_BROWSER)]
    return found


def test_all_that_a_lab_installs_is_in_the_site() -> None:
    assert {*lite.COMPILED, *lite.DIGITS, "numpy"} <= set(runtime.PACKAGES)


# Where packages come from


@in_turn("named, place", [(None, None), ("", None), ("download", PYODIDE_CDN_URL)])
def test_the_variable_says_where_packages_come_from(named: str | None, place: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(runtime.VARIABLE, raising=False)
    if named is not None:
        monkeypatch.setenv(runtime.VARIABLE, named)
    assert runtime.source() == place


def test_the_variable_can_name_a_folder_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(runtime.VARIABLE, str(tmp_path))
    assert runtime.source() == str(tmp_path)
    monkeypatch.setenv(runtime.VARIABLE, "yes")
    with pytest.raises(runtime.LiteError, match=r"^HYBRIDLAB_PYTHON is 'yes': write the word download, or the path of a folder"):
        runtime.source()


@pytest.mark.parametrize("over", ["files", "http"])
def test_the_wanted_packages_come_with_all_that_they_need_and_nothing_else(release: Path, site: Path, over: str) -> None:
    with serving(release) as address:
        runtime.choose(site, str(release) if over == "files" else address.rstrip("/"), ["matplotlib"])
    assert names_in(site) == {runtime.LOCK, *(f"{name}-1.whl" for name in set(NEEDS) - {"rich"})}
    assert all((site / name).read_bytes() == (release / name).read_bytes() for name in names_in(site) - {runtime.LOCK})
    before, after = (json.loads((folder / runtime.LOCK).read_text(encoding="utf-8")) for folder in (release, site))
    assert after == before | {"packages": {name: before["packages"][name] for name in set(NEEDS) - {"rich"}}}


def test_a_file_with_another_hash_is_refused(release: Path, site: Path) -> None:
    (release / "six-1.whl").write_bytes(b"another wheel")
    with pytest.raises(runtime.LiteError, match=r"^six-1\.whl is not the file that is expected: its SHA-256 is \w{64}, and the lock has"):
        runtime.choose(site, str(release), ["matplotlib"])
    assert "six-1.whl" not in names_in(site)


@pytest.mark.parametrize("over", ["files", "http"])
def test_a_file_that_is_missing_is_told_with_another_way(release: Path, site: Path, over: str) -> None:
    (release / "six-1.whl").unlink()
    words = r"^six-1\.whl cannot be read from .* HYBRIDLAB_PYTHON can also be the path of a folder with the files of Pyodide"
    with serving(release) as address, pytest.raises(runtime.LiteError, match=words):
        runtime.choose(site, str(release) if over == "files" else address.rstrip("/"), ["six"])


def test_a_server_that_is_not_there_is_told(site: Path) -> None:
    with serving(site) as address:
        pass  # from here on, nobody listens there
    with pytest.raises(runtime.LiteError, match=r"^six-1\.whl cannot be read from http"):
        runtime.choose(site, address.rstrip("/"), ["six"])


def test_a_package_that_pyodide_does_not_have_is_told(release: Path, site: Path) -> None:
    with pytest.raises(runtime.LiteError, match=r"^Pyodide [\d.]+ has no package torch, "):
        runtime.choose(site, str(release), ["torch"])


# The core


def test_the_core_is_unpacked_if_it_is_the_one_that_is_pinned(archive: Path, site: Path) -> None:
    runtime.unpack(archive, site, integrity(archive))
    assert names_in(site) == set(runtime.CORE)
    assert all((site / name).read_text(encoding="utf-8") == f"the text of {name}" for name in runtime.CORE)


def test_another_core_is_refused_before_it_is_unpacked(archive: Path, tmp_path: Path) -> None:
    expected = integrity(archive)
    archive.write_bytes(archive.read_bytes() + b"more")
    (tmp_path / "empty").mkdir()
    with pytest.raises(runtime.LiteError, match=r"^core\.tgz is not the file that is expected: its integrity is sha512-"):
        runtime.unpack(archive, tmp_path / "empty", expected)
    assert not names_in(tmp_path / "empty")


@pytest.mark.skipif(os.name == "nt", reason="a script is a program only where files can be executable")
def test_the_core_is_npms_package_in_the_pinned_version(archive: Path, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    npm, program = programs / "npm", tmp_path / "npm.py"
    wanted = ["pack", f"pyodide@{runtime.VERSION}", "--silent"]
    program.write_text(f"import shutil, sys\nassert sys.argv[1:] == {wanted}\nshutil.copy({str(archive)!r}, '.')\n", encoding="utf-8")
    # Python's path may have spaces, which the first line of a script cannot have
    npm.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(program))} "$@"\n', encoding="utf-8")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(runtime, "INTEGRITY", integrity(archive))
    runtime.core(site)
    assert names_in(site) == set(runtime.CORE)
    program.write_text("raise SystemExit('no network')\n", encoding="utf-8")
    with pytest.raises(runtime.LiteError, match=r"^Fetching Python for the browser failed; its last lines:\nno network"):
        runtime.core(site)


def test_without_npm_it_says_what_to_install(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any, **__: Any) -> None:
        return None

    monkeypatch.setattr(runtime.shutil, "which", nothing)
    with pytest.raises(runtime.LiteError, match=r"install Node\.js"):
        runtime.core(site)
