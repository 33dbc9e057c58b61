"""Test workers under Landlock: what they cannot reach, what stays open and is told, and that honest work gets its marks."""

import contextlib
import os
import pickle
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cases import in_turn
from command_line import hybridlab

from hybridlab.course.grading import doctor, landlock
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.landlock import LEFT_OPEN
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.marking import mark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.sandbox import Limits, Runtime
from hybridlab.course.grading.session import Ended, Session
from hybridlab.course.grading.specs import spec_of
from hybridlab.errors import HybridLabError

runs = pytest.mark.needs("landlock")


@pytest.fixture(scope="module")
def workers() -> Iterator[Launcher]:
    with launcher("landlock") as found:
        yield found


def handed(session: Session, source: str) -> list[Any]:
    """Return what a cell hands in."""
    pairs, error = session.run(source, "cell 1")
    assert error is None, error
    return [answer for _, answer in pairs]


def tried(workers: Launcher, source: str, kind: str = "bare") -> Any:
    """Return what a cell hands in first, in a worker of its own."""
    session = workers.open(kind, Budget(Limits()))
    try:
        return handed(session, source)[0]
    finally:
        session.close()


@contextlib.contextmanager
def no_loop() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(doctor, "_try_endless_loop", lambda workers: doctor.Observation("an endless loop is ended", True))
        yield


def failing(workers: Launcher) -> set[str]:
    """Return the names of the findings that do not hold. An endless loop is not tried."""
    with no_loop():
        return {finding.name for finding in doctor.examine(workers) if not finding.holds}


@runs
def test_every_canary_is_stopped_but_for_what_is_told(workers: Launcher) -> None:
    findings = list(doctor.examine(workers))
    assert [finding.name for finding in findings if not finding.holds] == list(LEFT_OPEN)
    assert all(finding.left_open != finding.holds for finding in findings)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(doctor, "examine", lambda workers: iter(findings))
        doctor.require_sandbox(workers)


@runs
def test_the_filter_of_calls_closes_what_landlock_leaves_open(workers: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "filter_this_thread", lambda: None)
    detours = {"TCP is closed on detours", "UDP is closed", "no socket of another program can be reached"}
    closed = {
        "no file outside can be changed",
        "calls of the kernel that lead outside are refused",
        "two workers cannot talk through files",
    }
    found = failing(workers)
    assert found >= {*LEFT_OPEN, *closed, "no socket of another program can be reached", "UDP is closed"}
    assert found <= {*LEFT_OPEN, *closed, *detours, "no signal reaches the grader"}
    with no_loop(), pytest.raises(HybridLabError, match="does not hold, so nothing was graded"):
        doctor.require_sandbox(workers)


@pytest.mark.slow
@runs
def test_without_the_rules_of_landlock_files_are_open(workers: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    import landlockpy
    from landlockpy import _syscall

    monkeypatch.setattr(landlockpy.Ruleset, "restrict", lambda rules: _syscall.set_no_new_privs())
    found = failing(workers) - set(LEFT_OPEN)
    assert found == {
        "no file outside can be read",
        "no file outside can be written",
        "nothing about a process can be read",
        "nothing was written outside",
    }


@pytest.mark.slow
@runs
def test_without_the_limit_of_one_process_others_start(workers: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "PROCESSES", 500)
    assert failing(workers) - set(LEFT_OPEN) == {"no process can be started"}


@pytest.mark.slow
@runs
@pytest.mark.needs("root")
def test_root_that_is_not_dropped_is_found(workers: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    started = landlock._FolderWorker.__init__

    def as_root(self: Any, *arguments: Any, **named: Any) -> None:
        started(self, *arguments, **{name: value for name, value in named.items() if name not in ("user", "group", "extra_groups")})

    monkeypatch.setattr(landlock._FolderWorker, "__init__", as_root)
    assert "root is dropped" in failing(workers)


@pytest.mark.slow
@runs
def test_signals_are_stopped_on_a_kernel_that_has_no_scope_for_them(workers: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    import landlockpy

    none = landlockpy.Scope.NONE
    monkeypatch.setattr(landlockpy.ruleset, "scope_for_abi", lambda abi: none)
    assert failing(workers) == set(LEFT_OPEN)


@runs
@pytest.mark.parametrize("lab", ["lab02", pytest.param("lab05", marks=pytest.mark.slow)])
def test_worked_solutions_get_all_points(workers: Launcher, lab: str) -> None:
    spec = spec_of(reference(lab))
    cells = [CodeCell(source, key) for key, source in spec.solutions.items()]
    marks = list(mark(cells, spec, None, workers.open, Budget(workers.limits), lambda key: 7))
    assert marks
    assert {task.key: task.messages for task in marks if task.points < task.out_of} == {}


@runs
def test_a_worker_reads_its_kind_of_packages_and_nothing_else(workers: Launcher) -> None:
    importing = """
def found(name):
    try:
        __import__(name)
        return True
    except ImportError:
        return False

check("found", [found(name) for name in ("numpy", "hybridlab", "hybridlab.course", "hybridlab.course.grading", "click", "landlockpy")])
"""
    assert tried(workers, importing) == [True, False, False, False, False, False]
    assert tried(workers, importing, "library") == [True, True, True, False, False, False]
    library = workers.runtime.folder / "hybridlab" / "hardware.py"
    reading = f"""
def read(path):
    try:
        open(path).close()
        return True
    except OSError:
        return False

check("read", [read(path) for path in ({str(library)!r}, "/etc/passwd", {__file__!r}, {str(reference("lab02"))!r})])
"""
    assert tried(workers, reading) == [False, False, False, False]
    assert tried(workers, reading, "library") == [True, False, False, False]


@runs
def test_a_worker_reads_nothing_of_another_one(workers: Launcher) -> None:
    one, other = (workers.open("bare", Budget(Limits())) for _ in range(2))
    try:
        (path,) = handed(one, 'import os\nopen("secret", "w").write("42")\ncheck("path", os.path.abspath("secret"))')
        assert Path(path).read_text(encoding="utf-8") == "42"
        reading = f'try:\n    check("read", open({path!r}).read())\nexcept OSError as why:\n    check("read", type(why).__name__)'
        assert handed(one, reading) == ["42"]
        assert handed(other, reading) == ["PermissionError"]
    finally:
        one.close()
        other.close()


@pytest.mark.slow
@runs
@in_turn(
    "attack, code",
    [
        ("while True:\n    try:\n        while True: pass\n    except BaseException: pass", "too-slow"),
        ("import signal, time\nfor number in range(1, 32):\n    try: signal.signal(number, signal.SIG_IGN)\n"
         "    except OSError: pass\ntime.sleep(1000)", "too-slow"),
        ("import os\nos._exit(0)", "ended"),
        ("import ctypes\nctypes.string_at(0)", "ended"),
        ("import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'while True: pass'])", "ended"),
    ],
)  # fmt: skip
def test_a_worker_that_does_not_answer_is_ended_and_nothing_is_left(workers: Launcher, attack: str, code: str) -> None:
    session = workers.open("bare", Budget(replace(Limits(), seconds_a_task=0.5, clock_a_request=2.0)))
    group = session._process.pid
    with pytest.raises(Ended) as why:
        session.run(attack, "cell 1")
    assert why.value.code in (code, "too-slow")
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)
    assert {path.name for path in (workers.runtime.folder / "landlock").iterdir()} == {"packages-bare", "packages-library"}


@runs
def test_the_first_worker_of_a_new_process_starts(workers: Launcher) -> None:
    """A process that grades some of the submissions has imported less than this one, and a thread without rights imports nothing."""
    program = """
import pickle, sys
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.sandbox import Limits
session = pickle.load(sys.stdin.buffer).open("bare", Budget(Limits()))
print(session.run("check('one', 1)", "cell 1"))
session.close()
"""
    run = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(workers), capture_output=True, check=False)
    assert run.stdout == b"([('one', 1)], None)\n", run.stderr.decode()


@runs
def test_processes_and_threads_do_not_start(workers: Launcher) -> None:
    starting = """
import os, threading, subprocess, _thread
def started(make):
    try:
        return make() != 0 or os._exit(0)
    except (OSError, RuntimeError):
        return False
makers = [os.fork, os.forkpty, lambda: _thread.start_new_thread(print, ()), lambda: os.posix_spawn("/bin/true", ["true"], {})]
check("started", [started(make) for make in makers for _ in range(20)])
"""
    assert tried(workers, starting) == [False] * 80


@runs
def test_a_folder_that_is_hard_to_remove_is_removed(workers: Launcher) -> None:
    making = """
import os
home = os.getcwd()
for depth in range(1200):
    os.mkdir("d")
    os.chdir("d")
open("file", "w").close()
os.chdir(home)
os.mkdir("closed")
open("closed/file", "w").close()
os.umask(0o777)
os.mkdir("closed/more")
os.symlink("/", "outside")
os.symlink("/", "closed/outside")
check("home", home)
"""
    home = Path(tried(workers, making))
    assert home.parent == workers.runtime.folder / "landlock"
    assert not home.exists()
    assert Path("/usr").is_dir()


def test_what_lies_beside_packages_is_readable_without_them(tmp_path: Path) -> None:
    for name in ("lib/python3/os.py", "lib/python3/json/__init__.py", "lib/python3/site-packages/other.py", "lib/libc.so"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    mounts = ((tmp_path / "lib", Path("/lib")), (tmp_path / "lib/python3", Path("/lib/python3")))
    parts = landlock._readable_parts(Runtime(tmp_path, mounts), "bare")
    found = {str(path.relative_to(tmp_path)): names for path, names in parts}
    assert found == {
        "landlock/packages-bare": False,
        "lib": True,
        "lib/python3": True,
        "lib/python3/os.py": False,
        "lib/python3/json": False,
        "lib/libc.so": False,
    }


@in_turn(
    "abi, machine, said",
    [
        (None, "x86_64", "the package landlockpy is not installed"),
        (0, "x86_64", "this kernel has no Landlock"),
        (3, "x86_64", "has ABI 3, which cannot refuse TCP"),
        (4, "riscv64", "the system calls of riscv64 are not known here"),
    ],
)
def test_without_landlock_nothing_is_graded(
    abi: int | None, machine: str, said: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path = tmp_path_factory.mktemp("nothing")
    fake = type(sys)("landlockpy")
    fake.abi_version = lambda: abi  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "landlockpy", None if abi is None else fake)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setitem(
        sys.modules, "hybridlab.course.grading.release", SimpleNamespace(release=lambda *arguments: pytest.fail("released"))
    )
    monkeypatch.setenv("HYBRIDLAB_SECRET", "a secret for this very test")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "ana.ipynb").write_bytes(reference("lab02").read_bytes())
    commands = (
        ["grade", str(tmp_path / "work"), "--lab", "lab02", "--out", str(tmp_path / "grades"), "--sandbox", "landlock"],
        ["release", "lab02", "--out", str(tmp_path / "dist"), "--sandbox", "landlock"],
        ["doctor", "--sandbox", "landlock"],
    )
    for command in commands:
        result = hybridlab(*command)
        assert result.exit_code == 3, result.output
        assert said in result.output
        assert "so nothing was graded" in result.output
    assert not [path for folder in ("grades", "dist") for path in (tmp_path / folder).rglob("*") if path.is_file()]


@runs
@pytest.mark.slow
def test_the_doctor_tells_what_stays_open() -> None:
    result = hybridlab("doctor", "--sandbox", "landlock")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert [line for line in lines if line.startswith("no ")] == [f"no   {name} (Landlock leaves this open)" for name in LEFT_OPEN]
    assert lines[-1] == "work can be graded here"


@runs
def test_the_grader_keeps_its_rights(workers: Launcher, tmp_path: Path) -> None:
    def rights() -> list[str]:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.startswith(("NoNewPrivs", "Seccomp", "Cap"))]

    before = rights()
    assert tried(workers, 'check("one", 1)') == 1
    assert rights() == before
    (tmp_path / "file").write_text("written", encoding="utf-8")
    socket.socket().close()
