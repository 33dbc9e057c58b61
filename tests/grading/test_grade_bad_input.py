"""Bad input of the command: a sentence that says what would work, the right exit code, and nothing half-written."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn
from graded_class import answered, earned, graded, hybridlab, needs_bubblewrap, out_of, quick_sandbox, save, shared_launcher, solved

from hybridlab.course.grading import cli, doctor, sandbox
from hybridlab.course.grading import grade as grading
from hybridlab.course.grading.copies import student_copy
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.records import read_records
from hybridlab.course.grading.submissions import find_submissions
from hybridlab.errors import HybridLabError


def folder_of(path: Path, *students: str) -> Path:
    """Return a folder of submissions, empty copies."""
    for student in students:
        save(path / f"lab02_{student}.ipynb", student_copy("lab02", student))
    return path


def never(*arguments: Any, **named: Any) -> Iterator[Any]:
    raise AssertionError("something was graded")
    yield


@pytest.fixture
def nothing_is_graded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "grade_all", never)


REFUSED: dict[str, tuple[Callable[[Path], list[object]], str]] = {
    "no folder": (lambda base: [base / "none", "--lab", "lab02"], "none': give the folder of submissions"),
    "a file as the folder": (lambda base: [save(base / "a.ipynb", {}), "--lab", "lab02"], "a.ipynb': give the folder of submissions"),
    "an empty folder": (lambda base: [base, "--lab", "lab02"], "expected notebooks such as ana/lab02.ipynb or lab02_ana.ipynb"),
    "another lab alone": (lambda base: [folder_of(base, "ana"), "--lab", "lab03"], "there are only notebooks of lab02"),
    "an unknown lab": (lambda base: [folder_of(base, "ana"), "--lab", "lap02"], "unknown lab 'lap02': did you mean 'lab02'?"),
    "no lab": (lambda base: [folder_of(base, "ana")], "give the folder of submissions and --lab"),
    "no submissions": (lambda base: ["--lab", "lab02"], "give the folder of submissions and --lab"),
    "no jobs": (lambda base: [folder_of(base, "ana"), "--lab", "lab02", "--jobs", 0], "0 is not in the range x>=1"),
    "an unknown sandbox": (lambda base: [folder_of(base, "ana"), "--lab", "lab02", "--sandbox", "none"], "'none' is not"),
    "an unknown option": (lambda base: [folder_of(base, "ana"), "--lap", "lab02"], "--lap"),
}


@pytest.mark.usefixtures("nothing_is_graded")
@in_turn("fault", REFUSED)
def test_a_command_that_is_not_right_is_refused_in_a_sentence(fault: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    (arguments, words), tmp_path = REFUSED[fault], tmp_path_factory.mktemp("refused")
    (tmp_path / "in").mkdir()
    said = hybridlab("grade", *arguments(tmp_path / "in"), "--out", tmp_path / "out")
    assert (said.exit_code, said.stdout) == (2, "")
    assert words in " ".join(said.stderr.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("nothing_is_graded")
@in_turn("secret, words", [(None, "HYBRIDLAB_SECRET is not set"), ("short", "HYBRIDLAB_SECRET has 5 characters")])
def test_without_a_long_secret_nothing_is_graded(secret: str | None, words: str, tmp_path: Path) -> None:
    said = hybridlab("grade", folder_of(tmp_path, "ana"), "--lab", "lab02", "--out", tmp_path / "out", secret=secret)
    assert said.exit_code == 2
    assert said.stderr.startswith(f"{words}: put a secret of at least 16 characters into this environment variable; python -c ")
    assert "short" not in said.stderr
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_cannot_be_written_is_found_before_anything_is_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_is_graded: None
) -> None:
    quick_sandbox(monkeypatch)
    (tmp_path / "out").write_text("a file")
    said = hybridlab("grade", folder_of(tmp_path / "in", "ana"), "--lab", "lab02", "--out", tmp_path / "out")
    assert said.exit_code == 2
    assert "choose another folder with --out" in said.stderr
    assert (tmp_path / "out").read_text() == "a file"


HANDED_IN: dict[str, tuple[Callable[[Path], object], str]] = {
    "not a notebook": (lambda path: path.write_bytes(b"\x89PNG\r\n"), "' is no text: hand in the file .ipynb"),
    "an empty file": (lambda path: path.write_bytes(b""), "' is empty: save the notebook"),
    "no cells": (lambda path: save(path, answered("lab02", {}) | {"cells": []}), "has no code: answer its tasks"),
    "no task": (
        lambda path: save(path, other_notebook()),
        "this notebook has no task of lab02: is it a copy that hybridlab start has made?",
    ),
    "another course": (
        lambda path: save(path, answered("lab02", {}, path.stem, course="physics")),
        "this copy was made for the course 'physics', and 'hybridlab' is graded",
    ),
    "no name": (lambda path: save(path, answered("lab02", {})), "this copy was made without a name"),
}


def other_notebook() -> dict[str, Any]:
    cell = {"cell_type": "code", "source": "print('hello')", "metadata": {}, "outputs": [], "execution_count": None}
    return {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def of_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grade the second task of a lab alone: it is a number, and quick."""
    own = grading.spec_of
    monkeypatch.setattr(grading, "spec_of", lambda path: replace(own(path), tasks=own(path).tasks[1:2]))


@needs_bubblewrap
def test_files_that_are_not_right_need_a_person_and_do_not_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_sandbox(monkeypatch)
    of_one_task(monkeypatch)
    folder, out = tmp_path / "in", tmp_path / "out"
    folder_of(folder, "ana")
    for fault, (hand_in, _) in HANDED_IN.items():
        hand_in(folder / f"{fault.replace(' ', '-')}.ipynb")
    for name in ("\N{NO-BREAK SPACE}.ipynb", os.fsdecode(b"lab02_\xff.ipynb")):  # they name no student
        (folder / name).write_bytes((folder / "lab02_ana.ipynb").read_bytes())
    said = hybridlab("grade", folder, "--lab", "lab02", "--out", out, "--jobs", 1)
    assert said.exit_code == 4, said.output
    marks = graded(out)
    assert f"{len(HANDED_IN) + 3} submissions graded" in said.stdout
    assert len(marks) == len(HANDED_IN) + 3
    assert [name for name, each in marks.items() if not each.needs_person] == ["ana"]
    for fault, (_, words) in HANDED_IN.items():
        student = fault.replace(" ", "-")
        assert words in marks[student].needs_person, fault
        assert f"  {student:20} 0 of 2  needs a person: " in said.stdout
        assert words.split(":")[0] in (out / "grades.csv").read_text()


@pytest.mark.usefixtures("nothing_is_graded")
def test_a_folder_in_place_of_a_file_is_no_submission(tmp_path: Path) -> None:
    (tmp_path / "in" / "lab02_ana.ipynb").mkdir(parents=True)
    said = hybridlab("grade", tmp_path / "in", "--lab", "lab02", "--out", tmp_path / "out")
    assert (said.exit_code, "no submission of lab02" in said.stderr) == (2, True)


@needs_bubblewrap
def test_names_that_differ_in_capital_letters_are_one_student(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_sandbox(monkeypatch)
    of_one_task(monkeypatch)
    save(tmp_path / "in" / "Ana" / "lab02.ipynb", solved("lab02", "ana", keys=("lab02.t2",)))
    save(tmp_path / "in" / "ana" / "lab02.ipynb", student_copy("lab02", "ana"))
    save(tmp_path / "in" / "ben" / "lab02.ipynb", solved("lab02", "BEN", keys=("lab02.t2",)))
    said = hybridlab("grade", tmp_path / "in", "--lab", "lab02", "--out", tmp_path / "out", "--jobs", 1)
    assert said.exit_code == 4
    marks = graded(tmp_path / "out")
    assert {name: earned(each) for name, each in marks.items()} == {"Ana": {}, "ana": {}, "ben": out_of("lab02", "lab02.t2")}
    one = "are one student, because capital letters do not matter: leave one file, and grade again"
    assert {name: each.needs_person for name, each in marks.items()} == {
        "Ana": f"'Ana' and 'ana' {one}",
        "ana": f"'ana' and 'Ana' {one}",
        "ben": "",
    }


def test_without_bubblewrap_nothing_is_graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_is_graded: None) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None)
    said = hybridlab("grade", folder_of(tmp_path, "ana"), "--lab", "lab02", "--out", tmp_path / "out")
    assert (said.exit_code, said.stdout) == (3, "")
    assert said.stderr.startswith("bubblewrap is not installed, so nothing was graded: install it (Debian and Ubuntu: apt-get install")
    assert not (tmp_path / "out").exists()
    said = hybridlab("doctor")
    assert said.exit_code == 3
    assert "apt-get install bubblewrap" in said.stderr


def test_on_another_system_nothing_is_graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_is_graded: None) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    said = hybridlab("grade", folder_of(tmp_path, "ana"), "--lab", "lab02", "--out", tmp_path / "out")
    assert said.exit_code == 3
    assert "work is graded on Linux, because only there are bubblewrap and Landlock; here, hybridlab check tries a notebook" in said.stderr


LOOSE = {
    "no file outside can be read": "not os.path.exists('/etc')",
    "root is dropped": "os.getuid() > 0",
    "memory is limited": "1 / 0",
    "there is no /proc": "True",
}


@needs_bubblewrap
@in_turn("probe", LOOSE)
def test_a_canary_that_is_not_stopped_ends_the_run_before_anything_is_graded(
    probe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_is_graded: None
) -> None:
    monkeypatch.setattr(cli, "launcher", shared_with())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(doctor, "PROBES", {"bare": doctor.PROBES["bare"] | {probe: LOOSE[probe]}})
        said = hybridlab("grade", folder_of(tmp_path, "ana"), "--lab", "lab02", "--out", tmp_path / "out")
    assert (said.exit_code, said.stdout) == (3, "")
    assert said.stderr.startswith(f"the sandbox does not hold, so nothing was graded. {probe}: no (a canary was not stopped)")
    assert not (tmp_path / "out").exists()


def shared_with(**limits: Any) -> Any:
    """Return what takes the place of ``launcher``: the workers that all tests share, with other limits."""

    @contextlib.contextmanager
    def shared(name: str = "bubblewrap") -> Iterator[Launcher]:
        workers = shared_launcher()
        yield replace(workers, limits=replace(workers.limits, **limits))

    return shared


@pytest.mark.slow
@needs_bubblewrap
def test_looser_limits_are_found_by_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "launcher", shared_with(memory=2**32, processes=50))
    said = hybridlab("doctor", secret=None)
    assert said.exit_code == 3
    assert {line for line in said.stdout.splitlines() if line.startswith("NO ")} == {
        "NO   no process can be started",
        "NO   memory is limited",
    }
    assert said.stdout.endswith("nothing can be graded here\n")


@needs_bubblewrap
def test_a_worker_that_ends_in_a_canary_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PROBES", {"bare": {"a probe": "os._exit(1)"}})
    monkeypatch.setattr(cli, "launcher", shared_with())
    said = hybridlab("doctor")
    assert said.exit_code == 3
    assert said.stdout.splitlines()[1:] == ["NO   a worker goes on after a canary", "it broke off", "nothing can be graded here"]


@needs_bubblewrap
def test_the_doctor_finds_every_limit_here() -> None:
    said = hybridlab("doctor", secret=None)
    assert said.exit_code == 0, said.output
    assert said.stdout.count("yes  ") == sum(map(len, doctor.PROBES.values())) + 5
    assert said.stdout.endswith("work can be graded here\n")


@needs_bubblewrap
def test_a_system_that_refuses_bubblewrap_gets_the_commands_that_enable_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    refusing.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(sandbox, "_options", lambda: "")  # what this program says is not kept for the tests after this one
    monkeypatch.setattr(cli, "launcher", shared_with())
    said = hybridlab("doctor")
    assert said.exit_code == 3
    assert said.stdout.startswith("NO   a worker starts\n")
    assert "this system refuses it (bwrap: setting up uid map: Permission denied)" in said.stdout
    assert "  sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\nnothing can be graded here\n" in said.stdout


def test_a_file_that_was_not_graded_cannot_be_explained(tmp_path: Path) -> None:
    path = save(tmp_path / "lab02_ana.ipynb", student_copy("lab02"))
    said = hybridlab("grade", "--explain", path, "--out", tmp_path)
    assert said.exit_code == 2
    assert "is on no record in" in said.stderr
    said = hybridlab("grade", "--explain", tmp_path / "none.ipynb", "--out", tmp_path)
    assert said.exit_code == 2
    assert "there is no file 'none.ipynb'" in said.stderr


def test_start_check_and_pack_refuse_bad_input_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "lab03_times.csv").write_text("09:00 lab03.t1")
    words = {
        ("start", "lab99", "--to", tmp_path): "unknown lab 'lab99'",
        ("start", "lab02", "--as", "a/b", "--to", tmp_path): "the name of a student has 1 to 80 printable characters",
        ("check", tmp_path / "lab02.ipynb"): "there is no file 'lab02.ipynb'",
        ("check", save(tmp_path / "thesis.ipynb", other_notebook())): "unknown lab 'thesis.ipynb'",
        ("check", save(tmp_path / "course" / "lab03.ipynb", student_copy("lab03")), "--times"): "line 1 of 'lab03_times.csv' is damaged",
        ("pack", tmp_path / "lab02.ipynb"): "there is no file 'lab02.ipynb'",
    }
    for arguments, sentence in words.items():
        said = hybridlab(*arguments)
        assert (said.exit_code, sentence in said.stderr) == (2, True), (arguments, said.stderr)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["course", "lab03.ipynb", "lab03_times.csv", "thesis.ipynb"]
    assert (tmp_path / "course" / "lab03_times.csv").read_text() == "09:00 lab03.t1"
    assert hybridlab("start", "lab02", "--to", tmp_path).exit_code == 0
    said = hybridlab("start", "lab02", "--to", tmp_path)
    assert said.exit_code == 2
    assert "lab02.ipynb exists already" in said.stderr
    assert json.loads((tmp_path / "lab02.ipynb").read_text())["metadata"]["hybridlab"]["student"] == ""


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root can read every folder, so the system refuses here by a patch."""
    folder_of(tmp_path, "ana")
    folder_of(tmp_path / "closed", "zoe")
    look = os.scandir

    def refusing(path: Any) -> Any:
        if Path(path) in refused:
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", refusing)
    refused = [tmp_path / "closed"]
    assert sorted(find_submissions(tmp_path, "lab02")) == ["ana", "closed"]
    refused = [tmp_path]
    with pytest.raises(HybridLabError, match="cannot be read"):
        find_submissions(tmp_path, "lab02")


def test_a_record_that_never_ends_and_a_disk_without_room_end_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "ana.json")
    with pytest.raises(HybridLabError, match="cannot read the record"):
        read_records(tmp_path)

    def full(*arguments: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sandbox.shutil, "copy", full)
    with pytest.raises(HybridLabError, match="No space left on device; set TMPDIR"), launcher("bubblewrap"):
        pass
