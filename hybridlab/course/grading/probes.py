"""Probes: attempts to do what a sandbox forbids. Each function returns True if its attempt succeeds.

No probe does harm, even if it succeeds. A worker runs this file as a cell, so the file imports nothing of hybridlab. A canary is
a file outside the sandbox.
"""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import resource
import socket
import stat
import struct
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

CAPABILITY_VERSION = 0x20080522  # version 3 of the kernel's structures for capabilities
MULTIPATH = 262  # the number of the protocol multipath TCP


def reaches(*tries: Callable[[], object]) -> bool:
    """Call functions one after the other until one raises no error. Return whether there is such a function."""
    for attempt in tries:
        with contextlib.suppress(OSError, MemoryError):
            attempt()
            return True
    return False


def reads(canary: str) -> bool:
    """Try to read a file outside the sandbox."""
    return reaches(lambda: Path(canary).read_bytes())


def sees(canary: str) -> bool:
    """Try to see whether a file outside the sandbox exists."""
    return reaches(lambda: Path(canary).stat())


def changes(canary: str) -> bool:
    """Try to change the mode of a file outside the sandbox."""
    return reaches(lambda: Path(canary).chmod(0o600))


def writes(canary: str) -> bool:
    """Try to create a file outside the sandbox."""
    return reaches(lambda: Path(canary + ".written").touch())


def changes_programs() -> bool:
    """Try to change what later workers run: the program of the worker, Python's library, or the folders of packages."""
    worker = Path(str(sys.modules["__main__"].__file__))
    programs = [worker, worker.with_name("values.py"), Path(os.__file__)]
    folders = {path.parent for path in programs} | {Path(folder) for folder in sys.path if Path(folder).is_dir()}

    def make_folder(path: Path) -> None:
        path.mkdir()
        path.rmdir()

    return reaches(
        *(lambda path=path: os.close(os.open(path, os.O_WRONLY)) for path in programs),
        *(lambda folder=folder: make_folder(folder / "canary") for folder in folders),
    )


def finds_open_files() -> bool:
    """Look for an open file, folder or socket of the grader. The worker's own open files are only pipes and devices."""
    modes = []
    for number in range(256):  # more than enough: a worker may have 64 open files
        with contextlib.suppress(OSError):
            modes.append(os.fstat(number).st_mode)
    return not all(stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) for mode in modes)


def sees_processes() -> bool:
    """Try to see ``/proc``, the folder in which the kernel shows processes."""
    return sees("/proc/self")


def reads_processes(grader: int) -> bool:
    """Try to read what the kernel shows about a process: the grader, the worker itself, or process 1."""
    files = [f"{grader}/environ", f"{grader}/cmdline", "self/environ", "self/mem", "1/environ"]
    return reaches(
        *(lambda file=file: Path("/proc", file).open("rb").close() for file in files),
        *(lambda folder=folder: list(Path("/proc", folder).iterdir()) for folder in (".", f"{grader}/fd")),
        lambda: Path(f"/proc/{grader}/exe").readlink(),
    )


def signals(grader: int) -> bool:
    """Try to send a signal to the grader."""
    # signal 0 has no effect: the kernel only checks whether the worker has the right to send a signal
    return reaches(lambda: os.kill(grader, 0))


def reads_environment() -> bool:
    """Look for the secret of the grader in the environment."""
    return "HYBRIDLAB_SECRET" in os.environ


def imports(*names: str) -> bool:
    """Try to import modules. Return whether one of them can be imported."""
    for name in names:
        with contextlib.suppress(ImportError):
            import_module(name)
            return True
    return False


def has_rights_of_root() -> bool:
    """Return whether the worker is root, can become root, or has a right that only root has."""
    rights = ctypes.create_string_buffer(24)  # space for two structures, each with three numbers of 32 bits
    ctypes.CDLL(None).capget(struct.pack("Ii", CAPABILITY_VERSION, 0), rights)
    effective, permitted, _, more_effective, more_permitted, _ = struct.unpack("6I", rights.raw)
    return (
        0 in (os.getuid(), os.geteuid(), os.getgid(), os.getegid(), *os.getgroups())
        or any((effective, permitted, more_effective, more_permitted))
        or reaches(lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]))
    )


def forks() -> bool:
    """Try to start a process."""

    def fork() -> None:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)  # without this, the child would remain as a zombie process

    return reaches(fork)


def calls_kernel(calls: Iterable[Iterable[int]]) -> bool:
    """Try system calls that no worker needs: their numbers and arguments. The arguments are invalid, so an allowed call fails, too."""
    call = ctypes.CDLL(None, use_errno=True).syscall

    def refused(number: int, *arguments: int) -> bool:
        return call(number, *arguments) == -1 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS, errno.EAGAIN)

    return not all(refused(*each) for each in calls)


def raises_limits() -> bool:
    """Try to raise each limit of this process. Return True also if a limit is infinite."""
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC):
        now, most = resource.getrlimit(limit)  # only root may raise ``most``
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (now, most if most == resource.RLIM_INFINITY else most + 1))
            return True
    return False


def takes_memory() -> bool:
    """Try to reserve 1.5 GB of addresses. Nothing is written to this memory."""
    return reaches(lambda: mmap.mmap(-1, 1536 * 2**20).close())  # more than Limits.memory


def fills_disk(files: int, megabytes: int) -> bool:
    """Try to write several files of the same size into the worker's own folder. ``megabytes`` is the size of one file."""
    paths = [Path(f"full-{number}") for number in range(files)]
    try:
        return reaches(lambda: [path.write_bytes(bytes(megabytes * 2**20)) for path in paths])
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def connects(port: int) -> bool:
    """Try to connect to a TCP server on this machine."""
    return reaches(lambda: socket.create_connection(("127.0.0.1", port), 0.5).close())


def connects_on_detours(port: int) -> bool:
    """Try to connect to the server with multipath TCP or TCP fast open. Rules for ordinary TCP can fail to stop these."""

    def multipath() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MULTIPATH) as there:
            there.connect(("127.0.0.1", port))

    def fast() -> None:
        with socket.socket() as there:
            there.sendto(b"canary", socket.MSG_FASTOPEN, ("127.0.0.1", port))

    return reaches(multipath, fast)


def connects_to_programs(canary: str) -> bool:
    """Try to connect to Unix sockets of another program: one with a path, and one in the abstract namespace."""

    def connect(address: str) -> None:
        with socket.socket(socket.AF_UNIX) as there:
            there.connect(address)

    return reaches(lambda: connect(f"{canary}.socket"), lambda: connect(f"\0{canary}.socket"))


def sends_datagram(port: int) -> bool:
    """Send a UDP datagram and return False. Only the receiver, the doctor, knows whether the datagram has arrived."""

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
            there.sendto(b"canary", ("127.0.0.1", port))

    return reaches(send) and False  # always False; the doctor looks at its own socket


SEEN_BY_ALL = (os.__file__, os.devnull)  # files that all workers see
HELD = 60  # the number of an open file, which no other open file of a worker has
LOCK = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)  # the kernel's ``struct flock`` for a lock on a whole file
READ_LOCK = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
ON_OPEN_FILES = (36, 37)  # commands of fcntl for locks of an open file, and not of a process: ask, lock
OPENED, NO_WAITING = 0x20, os.O_NONBLOCK  # arguments of inotify: report that a file is opened; return at once if nothing has happened
WATCH: list[int] = []  # the open file with which ``traces`` watches files from its first call on


def leaves_traces() -> bool:
    """Do what another worker might see: lock files that all workers see, open them, and set the time of their last change. Return False."""
    for path in SEEN_BY_ALL:
        file = os.open(path, os.O_RDONLY)  # stays open until this worker ends
        for attempt in (
            lambda file=file: fcntl.flock(file, fcntl.LOCK_EX),
            lambda file=file: fcntl.fcntl(file, fcntl.F_SETLK, READ_LOCK),
            lambda file=file: fcntl.fcntl(file, ON_OPEN_FILES[1], READ_LOCK),
            lambda file=file: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK),
            lambda path=path: os.utime(path),
        ):
            reaches(attempt)
    os.dup2(os.open(os.devnull, os.O_RDONLY), HELD)
    return False


def traces() -> list[str]:
    """Return what this worker sees of locks on files that all workers see, of who opens them, and of the time of their last change.

    If another worker can change the result, then two workers can talk.
    """
    libc = ctypes.CDLL(None)
    if not WATCH:
        WATCH.append(libc.inotify_init1(NO_WAITING))
    found = [_told(lambda: os.read(WATCH[0], 4096))]
    for path in SEEN_BY_ALL:
        found += _traces_on(path)
        libc.inotify_add_watch(WATCH[0], os.fsencode(path), OPENED)
    return found


def _traces_on(path: str) -> list[str]:
    """Return what this worker sees of locks and leases on a file, and of the time of its last change."""

    def lock() -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_UN)

    def lease() -> None:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)  # the kernel refuses it if another process has opened the file
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)

    def locked() -> list[bytes]:
        return [fcntl.fcntl(file, command, LOCK)[:2] for command in (fcntl.F_GETLK, ON_OPEN_FILES[0])]

    file = os.open(path, os.O_RDONLY)
    try:
        return [_told(attempt) for attempt in (lock, lease, locked, lambda: os.fstat(file).st_mtime_ns)]
    finally:
        os.close(file)


def open_files(process: int) -> str:
    """Return what this worker sees of the open files of another process."""
    return _told(lambda: os.lstat(f"/proc/{process}/fd/{HELD}").st_mode)


def _told(attempt: Callable[[], object]) -> str:
    """Return the result of a function, or the name of its error, as text."""
    try:
        return repr(attempt())
    except OSError as why:
        return errno.errorcode.get(why.errno or 0, "error")
