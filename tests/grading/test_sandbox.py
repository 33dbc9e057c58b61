"""Test what a worker sees and may do in its sandbox. Each check is tried on a sandbox in which what it looks for is missing."""

import atexit
import contextlib
import errno
import itertools
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
from grading_worlds import World, new_world, shared_runtime, verdict

from hybridlab.course.grading import doctor, sandbox, syscalls
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.launch import launcher
from hybridlab.course.grading.sandbox import ENVIRONMENT, NOBODY, Limits, bubblewrap_starter

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
SANDBOXES = (("bubblewrap", "bwrap"), ("landlock", "landlock"))  # each kind of sandbox, and what it needs
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
    Probe("no socket can be made", "tried(socket.socket)", "PermissionError", without_filter=True),
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
    session = world.open(probes[0].kind, Budget(Limits()))
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
@pytest.mark.slow
def test_the_check_fails_in_a_sandbox_with_a_hole(probe: Probe) -> None:
    given = sandbox._bubblewrap_arguments

    def changed(*arguments: Any) -> Iterator[str]:
        *before, last = given(*arguments)
        yield from (*probe.arguments(before), last)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sandbox, "_bubblewrap_arguments", changed)
        if probe.without_filter:
            patched.setattr(sandbox, "filter_pipe", lambda: None)
        assert seen(new_world(replace(Limits(), **dict(probe.limits))), probe) != [probe.wanted]


@needs_bubblewrap
def test_without_the_filter_a_worker_has_still_a_network_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "filter_pipe", lambda: None)
    assert seen(new_world(), Probe("one network", "socket.if_nameindex()", None)) == [[(1, "lo")]]


@pytest.mark.slow
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


@in_turn("machine", sorted(syscalls.MACHINES))
def test_the_filter_refuses_what_its_tables_name(machine: str) -> None:
    program, (place, own) = syscalls.call_filter(machine), syscalls.MACHINES[machine]
    numbers = [pair[place] for pair in syscalls.REFUSED.values() if pair[place] is not None]
    for number in numbers:
        assert verdict(program, own, int(number or 0)) == syscalls.REFUSE
    for pair, arguments in syscalls.ONLY_WITH.values():
        for given in itertools.product(*(arguments.get(index, (0,)) for index in range(3))):
            assert verdict(program, own, pair[place], *given) == syscalls.ALLOW
            for index in arguments:
                assert verdict(program, own, pair[place], *given[:index], 99, *given[index + 1 :]) == syscalls.REFUSE
    special = {*numbers, *(pair[place] for pair, _ in syscalls.ONLY_WITH.values()), syscalls.FUTEX[place], syscalls.MMAP[place]}
    assert {verdict(program, own, call) for call in set(range(syscalls.NEWEST)) - special} == {syscalls.ALLOW}
    assert verdict(program, own, syscalls.NEWEST) == verdict(program, own, 2**30 + 41) == syscalls.NO_SUCH_CALL
    assert verdict(program, 0x40000003, 0) == syscalls.REFUSE
    assert syscalls.call_filter("vax") == b""


# written from the manual pages, and not from the tables of the filter
@in_turn(
    "machine, flock, fcntl, inotify, futex, mmap",
    [("x86_64", 73, 72, (253, 294), 202, 9), ("aarch64", 32, 25, (26,), 98, 222)],
)
def test_two_workers_cannot_talk_through_the_filter(
    machine: str, flock: int, fcntl: int, inotify: tuple[int, ...], futex: int, mmap: int
) -> None:
    def answers(call: int, *arguments: int) -> int:
        return verdict(syscalls.call_filter(machine), syscalls.MACHINES[machine][1], call, *arguments)

    locks, leases, notices, owners, pipes = (5, 6, 7, 12, 13, 14, 36, 37, 38), (1024, 1025), (1026,), (8, 9, 10, 11, 15, 16), (1031, 1032)
    for command in (*locks, *leases, *notices, *owners, *pipes):
        assert answers(fcntl, 3, command) == syscalls.REFUSE, command
    for command in (0, 1, 2, 3, 4, 1030):  # copy an open file; get and set its flags
        assert answers(fcntl, 3, command) == syscalls.ALLOW, command
    assert {answers(call) for call in (flock, *inotify)} == {syscalls.REFUSE}
    wait, wake, private = 0, 1, 128
    assert {answers(futex, 0, each) for each in (wait, wake)} == {0x00050000 | errno.EAGAIN}
    assert {answers(futex, 0, each | private) for each in (wait, wake)} == {syscalls.ALLOW}
    anonymous, huge = 0x22, 0x40000
    assert (answers(mmap, 0, 9, 3, anonymous), answers(mmap, 0, 9, 3, anonymous | huge)) == (syscalls.ALLOW, syscalls.REFUSE)


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(each, marks=pytest.mark.needs(program)) for each, program in SANDBOXES])
@in_turn("rule", ["none", "flock", "fcntl", "inotify_init1", "utimensat"])
def test_the_doctor_finds_each_way_to_talk(rule: str, name: str, request: pytest.FixtureRequest) -> None:
    with pytest.MonkeyPatch.context() as patched:
        for table in (syscalls.REFUSED, syscalls.ONLY_WITH):
            patched.delitem(table, rule, raising=False)  # type: ignore[arg-type]
        with launcher(name) as workers:
            found = {finding.name: finding.holds for finding in doctor._try_to_talk(workers)}
    hidden = name == "bubblewrap"
    assert found == {"two workers cannot talk through files": rule == "none", "two workers cannot talk through /proc": hidden}


NEEDED = """
import asyncio, random, tempfile, threading
import numpy as np
async def later(value):
    await asyncio.sleep(0)
    return value
threads = [threading.Thread(target=np.dot, args=(np.eye(50), np.eye(50))) for _ in range(4 * {threads})]
for each in threads: each.start()
for each in threads: each.join()
with tempfile.TemporaryDirectory() as folder:
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".npy") as file:
        np.save(file, np.linalg.inv(np.eye(90)))
        file.flush()
        read = np.load(file.name, mmap_mode="r").sum()
check("needed", [float(read), asyncio.run(later(len(threads))), int(np.random.default_rng().integers(1))])
"""


@pytest.mark.parametrize("name", [pytest.param(each, marks=pytest.mark.needs(program)) for each, program in SANDBOXES])
@in_turn("kind", ["bare", "threads"])
def test_the_filter_allows_what_right_answers_need(kind: str, name: str) -> None:
    threads = kind == "threads"
    with launcher(name) as workers, contextlib.closing(workers.open(kind, Budget(Limits()))) as session:
        handed, error = session.run(NEEDED.replace("{threads}", str(int(threads))), "a cell")
    assert (handed, error) == ([("needed", [90.0, 4 * threads, 0])], None)


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
        session = workers.open("library", Budget(Limits()))
        try:
            handed, error = session.run("from hybridlab import build\ncheck('devices', build('1f1b', 3, 4).devices)", "a cell")
        finally:
            session.close()
    assert (handed, error) == ([("devices", 3)], None)
    assert (closed / "__init__.py").stat().st_mode & 0o777 == 0o600, "the library itself is as it was"
