"""Test what a worker sees and may do in its sandbox. Each check is tried on a sandbox in which what it looks for is missing."""

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn, refusal
from grading_worlds import PATIENT, World, new_world, shared_runtime, verdict

from hybridlab.course.grading import doctor, sandbox, syscalls
from hybridlab.course.grading.launch import launcher
from hybridlab.course.grading.sandbox import ENVIRONMENT, NOBODY, Limits, bubblewrap_starter
from hybridlab.course.grading.session import Budget

PROBE = """
import ctypes, errno, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def tried(work):
    try: return work()
    except BaseException as why: return type(why).__name__
def called(*given):
    ctypes.set_errno(0)
    return errno.errorcode.get(ctypes.get_errno(), "done") if libc.syscall(*given) < 0 else "done"
def thread():
    import threading
    threading.Thread(target=int).start()
    return "done"
def fork():
    child = os.fork()
    if not child: os._exit(0)
    os.waitpid(child, 0)
    return "done"
def large():
    with open("/tmp/large", "wb") as file: file.truncate(20 * 2**20)
    return "done"
def full():
    with open("/tmp/full", "wb") as file: file.write(b"1" * 12 * 2**20)
    with open("/tmp/more", "wb") as file: file.write(b"1" * 12 * 2**20)
    return "done"
def raised(name, most):
    import resource
    resource.setrlimit(getattr(resource, "RLIMIT_" + name), (most, most))
def visible(name):
    from importlib.util import find_spec
    try: return find_spec(name) is not None
    except ImportError: return False
check("probe", {expression})
"""
Arguments = list[str]
needs_bubblewrap = pytest.mark.needs("bwrap")


@dataclass(frozen=True)
class Probe:
    """What a cell sees, what it must see, and a sandbox in which it sees something else.

    Parameters
    ----------
    name : str
        A statement.
    expression : str
        What the cell looks at.
    wanted : Any
        What it must see.
    arguments : callable
        Changes the arguments of bubblewrap, those before the program.
    limits : dict
        Limits that are larger.
    without_filter : bool
        Whether the filter of system calls is left out.
    kind : str
        The kind of the worker.
    """

    name: str
    expression: str
    wanted: Any
    arguments: Callable[[Arguments], Arguments] = lambda given: given
    limits: tuple[tuple[str, Any], ...] = ()
    without_filter: bool = False
    kind: str = "bare"


def more(*added: str) -> Callable[[Arguments], Arguments]:
    """Return what adds arguments before the root becomes read-only."""
    return lambda given: [*given[:-2], *added, *given[-2:]]


def without(*left_out: str) -> Callable[[Arguments], Arguments]:
    """Return what leaves out a sequence of arguments where it stands first."""

    def changed(given: Arguments) -> Arguments:
        place = next(place for place in range(len(given)) if tuple(given[place : place + len(left_out)]) == left_out)
        return given[:place] + given[place + len(left_out) :]

    return changed


def some_unshared(given: Arguments) -> Arguments:
    """Share the processes of the machine."""
    return ["--unshare-net", "--unshare-ipc", "--unshare-uts", *without("--unshare-all")(given)]


def as_root(given: Arguments) -> Arguments:
    """Be root in the sandbox."""
    return ["--uid", "0", "--gid", "0", *without("--uid", str(NOBODY), "--gid", str(NOBODY))(given)]


@cache
def open_folder() -> Path:
    """Return a folder with the library and pip. Every worker can read it, also where the user nobody cannot read the project."""
    given = tempfile.TemporaryDirectory(prefix="hybridlab-tests-", dir=sandbox.folder_for_copies())
    atexit.register(given.cleanup)
    folder = Path(given.name)
    shutil.copytree(Path(sandbox.__file__).parents[2], folder / "hybridlab", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pip").mkdir()
    sandbox._open_to_all(folder)
    return folder


def showing(name: str, place: str) -> Callable[[Arguments], Arguments]:
    """Return what shows a part of that folder at a place of the sandbox."""
    return lambda given: more("--ro-bind", str(open_folder() / name), place)(given)


PROBES = (
    Probe("there is no /proc", "os.path.exists('/proc')", False, more("--proc", "/proc")),
    Probe("there is nothing of the course", "os.path.exists('/course')", False, showing("pip", "/course")),
    Probe("there are few devices", "sorted(os.listdir('/dev'))", ["null", "urandom"], more("--dev", "/dev")),
    Probe("other packages are not there", "visible('pytest') or visible('pip')", False, showing(".", "/packages")),
    Probe("numpy is there", "visible('numpy')", True, more("--tmpfs", "/packages")),
    Probe("the library is not there for a build", "visible('hybridlab')", False, showing("hybridlab", "/packages/hybridlab")),
    Probe("the library is there", "visible('hybridlab.schedules')", True, more("--tmpfs", "/packages"), kind="library"),
    Probe(
        "the tasks and their judges are not there",
        "visible('hybridlab.course.tasks') or visible('hybridlab.course.grading')",
        False,
        showing("hybridlab", "/packages/hybridlab"),
        kind="library",
    ),
    Probe("the worker is nobody", "(os.getuid(), os.getgid())", (NOBODY, NOBODY), as_root),
    Probe("the environment is the one given", "dict(os.environ)", {**ENVIRONMENT, "PWD": "/tmp"}, more("--setenv", "SECRET", "x")),  # noqa: S108
    Probe("the root cannot be written to", "tried(lambda: open('/x', 'w') and 'done')", "OSError", without("--remount-ro", "/")),
    Probe(
        "the packages cannot be written to", "tried(lambda: open('/packages/x', 'w') and 'done')", "OSError", more("--tmpfs", "/packages")
    ),
    Probe("the disk has 16 MB", "tried(full)", "OSError", without("--size", str(16 * 2**20))),
    Probe("a file has at most 16 MB", "tried(large)", "OSError", limits=(("file_bytes", 2**30),)),
    Probe("there is at most 1 GB of memory", "tried(lambda: len(mmap.mmap(-1, 2**30)))", "OSError", limits=(("memory", 2**33),)),
    Probe("no limit can be raised", "tried(lambda: raised('AS', 2**31))", "ValueError", limits=(("memory", 2**33),)),
    Probe("no process can be made", "tried(fork)", "BlockingIOError", limits=(("processes", 50),)),
    Probe("no thread can be made", "tried(thread)", "RuntimeError", limits=(("processes", 50),)),
    Probe("processes of the machine are not there", "os.getppid() == 1", True, some_unshared),
    Probe("there is one network, of the sandbox alone", "socket.if_nameindex()", [(1, "lo")], more("--share-net")),
    Probe("the host has another name", "os.uname().nodename", "worker", without("--hostname", "worker")),
    Probe("no user namespace can be made", "called(272, 0x10000000)", "EPERM", without("--disable-userns"), without_filter=True),
    Probe("no memory can be shared", "called(29, 0, 4096, 0o1600)", "EPERM", without_filter=True),
    Probe("nothing can be written into a keyring", "called(248, b'user', b'hybridlab', b'x', 1, -2)", "EPERM", without_filter=True),
    Probe("the first process cannot be stopped", "called(101, 16, 1, 0, 0)", "EPERM", without_filter=True),
    Probe(
        "nothing can be mounted", "called(165, b'none', b'/tmp', b'tmpfs', 0, None)", "EPERM", lambda given: ["--cap-add", "ALL", *given]
    ),
)


def seen(world: World, *probes: Probe) -> list[Any]:
    """Return what probes of one kind see, one after the other in a worker."""
    session = world.open(probes[0].kind, Budget(PATIENT.seconds_a_notebook))
    found = []
    try:
        for probe in probes:
            handed, error = session.run(PROBE.replace("{expression}", probe.expression), "code cell 1")
            assert error is None, f"{probe.name}: {error}"
            found.append(handed[0][1])
    finally:
        session.close()
    return found


@needs_bubblewrap
@pytest.mark.parametrize("kind", ["bare", "library"])
def test_a_worker_sees_what_it_must(kind: str) -> None:
    probes = [probe for probe in PROBES if probe.kind == kind]
    found = zip(probes, seen(new_world(), *probes), strict=True)
    assert {probe.name: what for probe, what in found if what != probe.wanted} == {}


@needs_bubblewrap
@in_turn("probe", PROBES[:-1])
def test_the_check_fails_in_a_sandbox_with_a_hole(probe: Probe) -> None:
    given = sandbox._bubblewrap_arguments

    def changed(*arguments: Any) -> Iterator[str]:
        *before, last = given(*arguments)
        yield from (*probe.arguments(before), last)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sandbox, "_bubblewrap_arguments", changed)
        if probe.without_filter:
            patched.setattr(sandbox, "filter_pipe", lambda: None)
        assert seen(new_world(replace(PATIENT, **dict(probe.limits))), probe) != [probe.wanted]


def test_the_probes_of_the_doctor_get_through_where_there_is_no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYBRIDLAB_SECRET", "a secret of these tests")
    monkeypatch.setattr(sandbox, "_without_course", lambda folder, names: [])
    with Path(__file__).open() as left_open, launcher("none") as workers:
        program = sandbox._python(str(workers.runtime.folder / "worker" / "worker.py"))
        handing_on = partial(sandbox._start_program, program, dropped=False, handed_on=(left_open.fileno(),))
        monkeypatch.setattr(sandbox, "unprotected_starter", lambda runtime: lambda kind: handing_on())
        held = {finding.name for finding in doctor.examine(workers) if finding.holds}
    assert held == {"a worker starts", "an endless loop is ended"} | ({"root is dropped"} if os.geteuid() else set())


def test_a_name_of_a_dict_is_in_a_limit_of_the_kernel() -> None:
    assert set(Limits().inside()) == {"AS", "CORE", "CPU", "FSIZE", "NOFILE", "NPROC"}


def test_a_library_of_the_system_comes_with_its_folder_and_one_beside_python_alone() -> None:
    """The Python of Debian lies below /usr, as the libraries of the system do; the links to these are in their folder."""
    debian, home, system = Path("/usr/lib/python3.11"), Path("/home/ana/python/lib/python3.14"), Path("/usr/lib/x86_64-linux-gnu")
    loaded = {system / "libz.so.1.2.13", system / "libc.so.6"}
    assert sandbox._shared_libraries(loaded, debian, {Path("/usr/lib64")}) == [system, Path("/usr/lib64")]
    own = home.with_name("libpython3.14.so.1.0")
    assert sandbox._shared_libraries(loaded | {own}, home, set()) == [own, system]
    fedora = Path("/usr/lib64")
    assert sandbox._shared_libraries({fedora / "libz.so.1"}, fedora / "python3.14", {fedora}) == [fedora]


def test_a_missing_program_is_told_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with refusal("no-sandbox", "apt-get install bubblewrap"):
        bubblewrap_starter(shared_runtime())


def test_the_filter_refuses_calls_of_other_machines_and_ends_in_a_verdict() -> None:
    for machine in syscalls.MACHINES:
        program = syscalls.call_filter(machine)
        assert len(program) == 8 * (2 * len(syscalls.REFUSED) + 7)
        assert verdict(program, syscalls.MACHINES[machine][1], 0) == syscalls.ALLOW
        assert verdict(program, 0x40000003, 0) == syscalls.REFUSE
        assert verdict(program, syscalls.MACHINES[machine][1], syscalls.X32 + 1) == syscalls.REFUSE
        for numbers in syscalls.REFUSED.values():
            assert verdict(program, syscalls.MACHINES[machine][1], numbers[syscalls.MACHINES[machine][0]]) == syscalls.REFUSE
    assert syscalls.call_filter("vax") == b""


@contextlib.contextmanager
def closed_to_others() -> Iterator[None]:
    """Close new files to all others, as the umask of many servers does."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@needs_bubblewrap
def test_a_library_that_only_root_can_read_is_copied_for_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "hybridlab"
    shutil.copytree(sandbox.LIBRARY, closed)
    for path in (closed, *closed.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    (closed / "schedules").chmod(0o777)
    monkeypatch.setattr(sandbox, "LIBRARY", closed)
    with closed_to_others(), launcher() as workers:
        assert not [path for path in workers.runtime.folder.rglob("*") if path.stat().st_mode & 0o022], "only the owner changes copies"
        session = workers.open("library", Budget(PATIENT.seconds_a_notebook))
        try:
            handed, error = session.run("from hybridlab import build\ncheck('devices', build('1f1b', 3, 4).devices)", "a cell")
        finally:
            session.close()
    assert (handed, error) == ([("devices", 3)], None)
    assert (closed / "__init__.py").stat().st_mode & 0o777 == 0o600, "the library itself is as it was"
