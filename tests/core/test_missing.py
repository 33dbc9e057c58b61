"""Test the rules of all tests: what is missing leaves tests out, or lets them fail in CI, and no folder exceeds its budget of tests."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import budget
import missing
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def outside_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def set_version(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    """Let torch of this version be installed, or none."""

    def found(name: str) -> str:
        assert name == "torch"
        if version is None:
            raise importlib.metadata.PackageNotFoundError
        return version

    monkeypatch.setattr(importlib.metadata, "version", found)


def item(*marks: pytest.Mark) -> Any:
    """A test with these marks."""
    return SimpleNamespace(iter_markers=lambda name: iter([mark for mark in marks if mark.name == name]))


PLAIN, ANY, NEWER = item(), item(pytest.mark.torch.mark), item(pytest.mark.torch.mark, pytest.mark.torch(since="2.15").mark)


@pytest.mark.parametrize(
    ("version", "kept"),
    [(None, [PLAIN]), ("2.12.1", [PLAIN]), ("2.13.0+cpu", [PLAIN, ANY]), ("2.15.0", [PLAIN, ANY, NEWER]), ("2.16.0", [PLAIN])],
)
def test_tests_that_need_another_torch_are_left_out(version: str | None, kept: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    set_version(monkeypatch, version)
    items = [ANY, PLAIN, NEWER]
    assert missing.take_out(items).total() == 3 - len(kept)
    assert {*map(id, items)} == {*map(id, kept)}


def test_a_missing_torch_is_an_error_if_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    set_version(monkeypatch, None)
    monkeypatch.setenv("HYBRIDLAB_TORCH", "1")
    with pytest.raises(pytest.UsageError, match=r"make setup-torch$"):
        missing.torch_must_be_there()
    set_version(monkeypatch, "2.13.0")
    missing.torch_must_be_there()
    set_version(monkeypatch, None)
    monkeypatch.delenv("HYBRIDLAB_TORCH")
    missing.torch_must_be_there()


def test_what_is_missing_is_named_and_in_ci_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "here", lambda name: name == "node")
    scripts, sandboxed, kernel = (item(pytest.mark.needs(name).mark) for name in ("node", "bwrap", "landlock"))
    items = [scripts, sandboxed, kernel]
    assert missing.take_out(items) == Counter({missing.TOOLS["bwrap"].missing: 1, missing.TOOLS["landlock"].missing: 1})
    assert items == [scripts]
    monkeypatch.setenv("CI", "true")
    items = [scripts, sandboxed, kernel]
    assert missing.take_out(items) == Counter({missing.TOOLS["landlock"].missing: 1}), "a kernel cannot be installed"
    assert items == [scripts, sandboxed]
    missing.must_be_here(scripts)
    with pytest.raises(pytest.fail.Exception, match="bubblewrap"):
        missing.must_be_here(sandboxed)


SOME = """
import pytest
@pytest.mark.torch(since="9.9")
def test_torch(): raise ValueError
@pytest.mark.parametrize("n", range(3))
def test_other(n): pass
@pytest.mark.slow
def test_large(): pass
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_line_tells_how_many_were_left_out_and_another_which_folder_has_too_many(processes: str, tmp_path: Path) -> None:
    (tmp_path / "tests/unknown").mkdir(parents=True)
    (tmp_path / "tests/unknown/test_some.py").write_text(SOME, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
    command += ["--rootdir", str(tmp_path), "-n", processes, "tests/unknown"]
    setting = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    setting |= {"PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in ("tests", "")), "HYBRIDLAB_TORCH": ""}
    ran = subprocess.run(command, cwd=tmp_path, env=setting, capture_output=True, text=True, check=False)
    assert len(re.findall(r"^1 test left out: .*torch.*$", ran.stdout, flags=re.MULTILINE)) == 1, ran.stdout + ran.stderr
    assert "3 passed" in ran.stdout
    for count, size in ((4, "quick"), (5, "full")):  # a quick run counts for both sizes
        line = rf"^tests/unknown has {count} tests in the {size} size, .* allows 0"
        assert len(re.findall(line, ran.stdout, flags=re.MULTILINE)) == 1, ran.stdout
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, "a budget that is exceeded fails the run"


def test_every_room_has_a_budget_and_every_budget_a_room() -> None:
    rooms = {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("test_*.py"))}
    assert set(budget.BUDGET) == rooms - {"tests/benchmarks"} | {"doctests"}
    assert all(row["quick"] <= row["full"] for row in budget.BUDGET.values())


def test_the_versions_of_torch_are_those_of_the_extra_and_of_the_makefile() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest, too_new = (".".join(map(str, version)) for version in (missing.OLDEST, missing.TOO_NEW))
    assert project["optional-dependencies"]["torch"] == [f"torch>={oldest},<{too_new}"]
    pinned = re.search(r"^TORCH := torch==(\S+?)\$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert pinned
    assert missing.OLDEST <= missing.numbered(pinned[1]) < missing.TOO_NEW
