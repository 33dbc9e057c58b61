"""Windows and macOS: students can check their work there, and nothing is graded."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from cases import in_turn
from command_line import hybridlab

from hybridlab.course.grading.copies import start
from hybridlab.errors import HybridLabError

WITHOUT = {"win32": ("killpg", "geteuid", "setsid", "fork", "O_NOFOLLOW", "O_NONBLOCK"), "darwin": ()}  # what os lacks there


@pytest.fixture(params=WITHOUT)
def elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make this system look like another one."""
    monkeypatch.setattr(sys, "platform", request.param)
    for name in WITHOUT[request.param]:
        monkeypatch.delattr(os, name, raising=False)
    if request.param == "win32":
        # Python finds out once, when it starts, that Windows has none of them
        monkeypatch.setattr(shutil, "_use_fd_functions", False)
        monkeypatch.setattr(shutil, "_rmtree_impl", shutil._rmtree_unsafe, raising=False)  # Python 3.14
    return str(request.param)


def test_a_student_can_check_a_notebook(elsewhere: str, tmp_path: Path) -> None:
    copy = start("lab02", tmp_path, "ana")
    text = copy.read_text(encoding="utf-8")
    copy.write_text(text.replace("my_makespan = ...", "my_makespan = 80"), encoding="utf-8")
    result = hybridlab("check", copy)
    assert result.exit_code == 1
    assert "lab02.t2: not yet (0 of 2 points)" in result.output
    assert "nothing handed in yet: write 1F1B" in result.output
    told = json.loads(hybridlab("check", copy, "--json").stdout)
    assert (told["points"], told["not_right_yet"][1]) == (0, "lab02.t2")


@in_turn("arguments", [["grade", "submissions", "--lab", "lab02"], ["doctor"], ["release", "lab02", "--out", "dist"]])
def test_nothing_is_graded(
    elsewhere: str, arguments: list[str], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("HYBRIDLAB_SECRET", "a secret of a test of other systems")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "submissions").mkdir()
    start("lab02", tmp_path / "submissions", "ana").rename(tmp_path / "submissions" / "lab02_ana.ipynb")
    result = hybridlab(*arguments)
    assert result.exit_code == 3, result.output
    assert "on Linux" in result.output
    assert not list(tmp_path.glob("dist*"))
    assert not (tmp_path / "grades" / "grades.csv").exists()


def test_a_worker_runs_without_the_limits_of_unix(tmp_path: Path) -> None:
    """A worker for a student's own code sets no limits, so it needs no module ``resource``, which Windows lacks."""
    from hybridlab.course.grading.budget import Budget
    from hybridlab.course.grading.launch import launcher
    from hybridlab.course.grading.sandbox import Limits

    with launcher("none") as local:
        session = local.open("library", Budget(Limits()))
        try:
            handed, error = session.run("import sys\ncheck('lab02.t2', 'resource' in sys.modules)", "a cell")
        finally:
            session.close()
    assert handed == [("lab02.t2", False)]
    assert error is None


def test_an_unknown_sandbox_is_no_sandbox() -> None:
    from hybridlab.course.grading.launch import launcher

    with pytest.raises((HybridLabError, ValueError)), launcher("chroot") as _:
        pass
