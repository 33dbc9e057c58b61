"""Attempts to get out of a sandbox, which show whether it holds. Each function returns whether it gets through.

None of them does harm, even if nothing stops it. A worker runs this file as a cell, so it imports nothing of hybridlab.
"""

import contextlib
import ctypes
import errno
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

CAPABILITY_VERSION = 0x20080522  # of the kernel's structures
MULTIPATH = 262  # the number of multipath TCP, a protocol of its own


def reaches(*tries: Callable[[], object]) -> bool:
    """Try several things in turn, and return whether one of them succeeds."""
    for attempt in tries:
        with contextlib.suppress(OSError, MemoryError):
            attempt()
            return True
    return False


def reads(canary: str) -> bool:
    """Read a file outside."""
    return reaches(lambda: Path(canary).read_bytes())


def sees(canary: str) -> bool:
    """See whether a file outside exists."""
    return reaches(lambda: Path(canary).stat())


def changes(canary: str) -> bool:
    """Change the mode of a file outside."""
    return reaches(lambda: Path(canary).chmod(0o600))


def writes(canary: str) -> bool:
    """Make a file outside."""
    return reaches(lambda: Path(canary + ".written").touch())


def changes_programs() -> bool:
    """Change what later workers run: the program of the worker, Python's library, and the folders in which packages are looked for."""
    programs = [Path(str(module.__file__)) for module in (sys.modules["__main__"], sys.modules["values"], os)]
    folders = {path.parent for path in programs} | {Path(folder) for folder in sys.path if Path(folder).is_dir()}

    def make_folder(path: Path) -> None:
        path.mkdir()
        path.rmdir()

    return reaches(
        *(lambda path=path: os.close(os.open(path, os.O_WRONLY)) for path in programs),
        *(lambda folder=folder: make_folder(folder / "canary") for folder in folders),
    )


def finds_open_files() -> bool:
    """Find a file, a folder or a socket that the grader has left open. The worker itself has pipes and devices."""
    modes = []
    for number in range(256):  # a worker may open 64
        with contextlib.suppress(OSError):
            modes.append(os.fstat(number).st_mode)
    return not all(stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) for mode in modes)


def sees_processes() -> bool:
    """See the folder in which the kernel shows processes."""
    return sees("/proc/self")


def reads_processes(grader: int) -> bool:
    """Read what the kernel shows of a process: the grader, the worker itself, and the first one."""
    files = [f"{grader}/environ", f"{grader}/cmdline", "self/environ", "self/mem", "1/environ"]
    return reaches(
        *(lambda file=file: Path("/proc", file).open("rb").close() for file in files),
        *(lambda folder=folder: list(Path("/proc", folder).iterdir()) for folder in (".", f"{grader}/fd")),
        lambda: Path(f"/proc/{grader}/exe").readlink(),
    )


def signals(grader: int) -> bool:
    """Reach the grader with a signal."""
    # the signal 0 does nothing; the kernel only checks the right to send it
    return reaches(lambda: os.kill(grader, 0))


def reads_environment() -> bool:
    """Read the secret of the grader."""
    return "HYBRIDLAB_SECRET" in os.environ


def imports(*names: str) -> bool:
    """Import one of several modules."""
    for name in names:
        with contextlib.suppress(ImportError):
            import_module(name)
            return True
    return False


def has_rights_of_root() -> bool:
    """Be root, become root, or have a right that only root has."""
    rights = ctypes.create_string_buffer(24)  # two structures of three numbers of 32 bits
    ctypes.CDLL(None).capget(struct.pack("Ii", CAPABILITY_VERSION, 0), rights)
    effective, permitted, _, more_effective, more_permitted, _ = struct.unpack("6I", rights.raw)
    return (
        0 in (os.getuid(), os.geteuid(), os.getgid(), os.getegid(), *os.getgroups())
        or any((effective, permitted, more_effective, more_permitted))
        or reaches(lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]))
    )


def forks() -> bool:
    """Start a process."""

    def fork() -> None:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)  # leaves no dead process behind

    return reaches(fork)


def calls_kernel(numbers: Iterable[int]) -> bool:
    """Make one of the kernel's calls that no worker needs, with arguments that make it fail at once where it is allowed."""
    call = ctypes.CDLL(None, use_errno=True).syscall

    def refused(number: int) -> bool:
        return call(number, -1, 0, 0, 0, 0) == -1 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS)

    return not all(map(refused, numbers))


def raises_limits() -> bool:
    """Raise one of the limits of this process, or find that it has none."""
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC):
        now, most = resource.getrlimit(limit)  # only root may raise the second
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (now, most if most == resource.RLIM_INFINITY else most + 1))
            return True
    return False


def takes_memory() -> bool:
    """Take 1.5 GB of addresses; nothing is written to them."""
    return reaches(lambda: mmap.mmap(-1, 1536 * 2**20).close())  # more than Limits.memory


def fills_disk(files: int, megabytes: int) -> bool:
    """Write several files of a size to the worker's own folder."""
    paths = [Path(f"full-{number}") for number in range(files)]
    try:
        return reaches(lambda: [path.write_bytes(bytes(megabytes * 2**20)) for path in paths])
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def connects(port: int) -> bool:
    """Connect to a server on this machine."""
    return reaches(lambda: socket.create_connection(("127.0.0.1", port), 0.5).close())


def connects_on_detours(port: int) -> bool:
    """Reach the server with multipath TCP or with TCP fast open, which rules for ordinary TCP can miss."""

    def multipath() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MULTIPATH) as there:
            there.connect(("127.0.0.1", port))

    def fast() -> None:
        with socket.socket() as there:
            there.sendto(b"canary", socket.MSG_FASTOPEN, ("127.0.0.1", port))

    return reaches(multipath, fast)


def connects_to_programs(canary: str) -> bool:
    """Connect to a program of this machine, by a path and by a name alone."""

    def connect(address: str) -> None:
        with socket.socket(socket.AF_UNIX) as there:
            there.connect(address)

    return reaches(lambda: connect(f"{canary}.socket"), lambda: connect(f"\0{canary}.socket"))


def sends_datagram(port: int) -> bool:
    """Send a datagram. Only its receiver knows whether it has arrived."""

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
            there.sendto(b"canary", ("127.0.0.1", port))

    return reaches(send) and False  # the doctor asks its own socket
