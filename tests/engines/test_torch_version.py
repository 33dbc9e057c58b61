"""Test the rule for tests that need torch: where it runs them, where it leaves them out, and where it makes a missing torch an error."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch_version

ROOT = Path(__file__).resolve().parents[2]


def set_version(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    """Let torch of this version be installed, or none."""

    def found(name: str) -> str:
        assert name == "torch"
        if version is None:
            raise importlib.metadata.PackageNotFoundError
        return version

    monkeypatch.setattr(importlib.metadata, "version", found)


def item(*marks: pytest.Mark) -> Any:
    """A test with these marks of torch."""
    return SimpleNamespace(iter_markers=lambda name: iter(marks))


PLAIN, ANY, NEWER = item(), item(pytest.mark.torch.mark), item(pytest.mark.torch.mark, pytest.mark.torch(since="2.15").mark)


@pytest.mark.parametrize(
    ("version", "kept"),
    [(None, [PLAIN]), ("2.12.1", [PLAIN]), ("2.13.0+cpu", [PLAIN, ANY]), ("2.15.0", [PLAIN, ANY, NEWER]), ("2.16.0", [PLAIN])],
)
def test_tests_that_need_another_torch_are_left_out(version: str | None, kept: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    set_version(monkeypatch, version)
    items = [ANY, PLAIN, NEWER]
    out = torch_version.take_out(items)
    assert {*map(id, items)} == {*map(id, kept)}
    assert {*map(id, out)} == {*map(id, [PLAIN, ANY, NEWER])} - {*map(id, kept)}


def test_a_missing_torch_is_an_error_if_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    set_version(monkeypatch, None)
    monkeypatch.setenv("HYBRIDLAB_TORCH", "1")
    with pytest.raises(pytest.UsageError, match=r"make setup-torch$"):
        torch_version.must_be_there()
    set_version(monkeypatch, "2.13.0")
    torch_version.must_be_there()
    set_version(monkeypatch, None)
    monkeypatch.delenv("HYBRIDLAB_TORCH")
    torch_version.must_be_there()


@pytest.mark.parametrize("processes", ["0", "2"])
def test_one_line_tells_how_many_tests_were_left_out(processes: str, tmp_path: Path) -> None:
    one = "import pytest\n@pytest.mark.torch(since='9.9')\ndef test_torch(): raise ValueError\n"
    (tmp_path / "test_some.py").write_text(f"{one}@pytest.mark.parametrize('n', range(3))\ndef test_other(n): pass\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
    setting = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "CI": "true", "HYBRIDLAB_TORCH": ""}
    for name in [name for name in setting if name.startswith("PYTEST_")]:
        del setting[name]
    ran = subprocess.run(
        [*command, "-n", processes, "test_some.py"], cwd=tmp_path, env=setting, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(re.findall(r"^1 test of torch left out: .*$", ran.stdout, flags=re.MULTILINE)) == 1, ran.stdout
    assert "3 passed" in ran.stdout


def test_the_versions_are_those_of_the_extra_and_of_the_makefile() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest, too_new = (".".join(map(str, version)) for version in (torch_version.OLDEST, torch_version.TOO_NEW))
    assert project["optional-dependencies"]["torch"] == [f"torch>={oldest},<{too_new}"]
    pinned = re.search(r"^TORCH := torch==(\S+?)\$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert pinned
    assert torch_version.OLDEST <= torch_version.numbered(pinned[1]) < torch_version.TOO_NEW
