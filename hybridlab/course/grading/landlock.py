"""Start workers under Landlock. A grader uses it if bubblewrap cannot run, as in a Docker container.

Landlock is a part of the Linux kernel. With Landlock, a thread gives up rights for itself and for all programs that it starts. The grader
starts each worker from a new thread that gives up its rights, so the other threads of the grader keep theirs. If the grader is root, the
worker runs as the user nobody. The rules for a worker are:

- Files: a worker may read the interpreter, numpy and its own program. A worker of the kind "library" may also read hybridlab. A worker may
  write into one new folder, which is removed when the worker ends.
- Network: a worker may not use TCP. From ABI 6 on, it can reach no process and no abstract socket outside the sandbox. A filter of system
  calls refuses what Landlock cannot refuse (``syscalls``).
- Processes: the kernel counts all processes and threads of a user against one limit. The limit of a worker is 1, so a worker can start
  no process and no thread. A worker that may start threads has a higher limit: the number of processes and threads of its user at the
  start, and some more. For such a worker, a filter refuses new processes.

The sandbox does not prevent the following (measured on ABI 7; ``hybridlab doctor --sandbox landlock`` prints the first four):

- A worker can see the names, sizes and owners of files in all folders that its user may enter, and the targets of symbolic links. It
  cannot read the files.
- Paths below ``/proc`` exist, so a worker can find out which processes run. It can read nothing about them.
- Each file has at most ``Limits.file_bytes``, but there is no limit on the sum of all files while the worker runs. So leave enough space
  in the folder for temporary files, or mount a small file system there.
- A worker can see which numbers the open files of another worker have (in ``/proc``). So the notebooks of two students can talk to each
  other if they run at the same time, and ``--jobs 1`` prevents this. A worker can also see when a file was last read.
- If the grader is not root, the worker runs as the user of the grader.
- If the grader itself is killed by force, a sleeping worker can live on. It uses only its own memory.
- A worker can list the names of packages beside the interpreter. It cannot read the packages.
"""

import contextlib
import functools
import itertools
import os
import platform
import secrets
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybridlab.course.grading.sandbox import ENVIRONMENT, FLAGS, KINDS, NOBODY, Runtime, Start
from hybridlab.course.grading.syscalls import MACHINES, filter_this_thread
from hybridlab.errors import HybridLabError

if TYPE_CHECKING:
    import landlockpy

LEAST_ABI = 4  # the first version of Landlock with rules for TCP
PROCESSES = 1  # the limit of processes of a worker without threads; other processes of the same user only make the limit stricter
OTHERS = 48  # threads that other workers may start later; they run as the same user, and so count against the same limit
LEFT_OPEN = (
    "no file outside can be seen",
    "there is no /proc",
    "all files together are limited",
    "two workers cannot talk through /proc",
)  # guarantees that Landlock does not give; hybridlab doctor reports them, and grading is still allowed


def require_landlock() -> None:
    """Raise an error if workers cannot run under Landlock on this machine.

    Raises
    ------
    HybridLabError
        ``no-sandbox``: (1) the package landlockpy is not installed; (2) the kernel has no Landlock, or an old version of it; or (3) the
        numbers of this machine's system calls are not known.
    """
    try:
        import landlockpy
    except ImportError:
        raise HybridLabError(
            "the package landlockpy is not installed, so nothing was graded: pip install 'hybridlab[landlock]', then run "
            "hybridlab doctor --sandbox landlock",
            "no-sandbox",
        ) from None
    abi = landlockpy.abi_version()
    otherwise = "so nothing was graded: grade on Linux 6.7 or newer, or with --sandbox bubblewrap"
    if abi < 1:
        raise HybridLabError(f"this kernel has no Landlock, or it is switched off, {otherwise}", "no-sandbox")
    if abi < LEAST_ABI:
        raise HybridLabError(
            f"Landlock of this kernel has ABI {abi}, which cannot refuse TCP (ABI {LEAST_ABI} can), {otherwise}", "no-sandbox"
        )
    if (machine := platform.machine()) not in MACHINES:
        raise HybridLabError(
            f"the system calls of {machine or 'this machine'} are not known here, and Landlock alone leaves sockets open, so nothing was "
            "graded: grade on x86_64 or aarch64, or with --sandbox bubblewrap",
            "no-sandbox",
        )


def processes_of_its_user() -> int:
    """Return the number of processes and threads of the user as whom workers run. The kernel counts both against one limit."""
    user, found = NOBODY if os.geteuid() == 0 else os.geteuid(), 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended since its folder was listed
            found += len(list((process / "task").iterdir())) if process.stat().st_uid == user else 0
    return found


def landlock_starter(runtime: Runtime) -> Start:
    """Return a function that starts a worker under Landlock.

    Raises
    ------
    HybridLabError
        The errors of :func:`require_landlock`.
    """
    require_landlock()

    def start(kind: str) -> "subprocess.Popen[bytes]":
        folder = Path(tempfile.mkdtemp(dir=runtime.folder / "landlock"))
        try:
            if os.geteuid() == 0:
                os.chown(folder, NOBODY, NOBODY)
            return _start(runtime, kind, folder)
        except BaseException:
            _remove_folder(folder)
            raise

    return start


def gather_packages(runtime: Runtime) -> None:
    """Create a folder of packages for each kind of worker. It has links to numpy and, for the kind "library", to hybridlab."""
    for kind in KINDS:
        folder = _packages(runtime, kind)
        folder.mkdir(parents=True)
        for each in (folder, folder.parent):  # the user of a worker must be able to enter these folders, whatever the umask is
            each.chmod(0o755)
        for outside, inside in _mounts(runtime, kind):
            if inside.parts[:2] == ("/", "packages"):
                (folder / inside.name).symlink_to(outside)


def landlock_packages(runtime: Runtime, kind: str) -> list[str]:
    """Return the folders in which a worker's Python looks for packages."""
    return [str(_packages(runtime, kind))]


class _FolderWorker(subprocess.Popen[bytes]):
    """A process with its own folder. The folder is removed when the process has ended."""

    folder: Path

    def wait(self, timeout: float | None = None) -> int:
        code = super().wait(timeout)
        _remove_folder(self.folder)
        return code


def _start(runtime: Runtime, kind: str, folder: Path) -> _FolderWorker:
    """Start a worker from a new thread that first gives up its rights.

    After that, the thread cannot read the grader's files. So everything that it needs, imports too, is read before.
    """
    as_nobody: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    environment = {**ENVIRONMENT, "HOME": str(folder), "TMPDIR": str(folder), **_home(runtime)}
    command = _command(runtime)

    def start_restricted() -> _FolderWorker:
        rules.restrict()
        filter_this_thread()
        return _FolderWorker(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            start_new_session=True,  # a new process group, so that the worker and its children can be killed together
            **as_nobody,
        )

    # a thread cannot get its rights back, so each worker needs a new thread
    with _rules(runtime, kind, folder) as rules, ThreadPoolExecutor(1) as thread:
        worker = thread.submit(start_restricted).result()
    worker.folder = folder
    return worker


def _rules(runtime: Runtime, kind: str, folder: Path) -> "landlockpy.Ruleset":
    """Return the rules for a worker: its rights on files, no TCP, and no access to processes outside the sandbox."""
    import landlockpy
    from landlockpy import AccessFS

    reading = AccessFS.READ_FILE | AccessFS.READ_DIR
    writing = AccessFS.WRITE_FILE | AccessFS.TRUNCATE | AccessFS.MAKE_REG | AccessFS.MAKE_DIR | AccessFS.MAKE_SYM
    removing = AccessFS.REMOVE_FILE | AccessFS.REMOVE_DIR | AccessFS.REFER
    scope = landlockpy.Scope.ABSTRACT_UNIX_SOCKET | landlockpy.Scope.SIGNAL  # landlockpy ignores the scope if the kernel has an ABI below 6
    rules = landlockpy.Ruleset(scoped=scope)
    for path, only_names in _readable_parts(runtime, kind):
        granted = AccessFS.READ_FILE | AccessFS.EXECUTE | (AccessFS.READ_DIR if path.is_dir() else AccessFS.NONE)
        rules.allow_path(path, AccessFS.READ_DIR if only_names else granted)
    rules.allow_path(folder, reading | writing | removing)
    rules.allow_path("/dev/null", AccessFS.READ_FILE | AccessFS.WRITE_FILE)
    rules.allow_path("/dev/urandom", AccessFS.READ_FILE)
    return rules


def _packages(runtime: Runtime, kind: str) -> Path:
    return runtime.folder / "landlock" / f"packages-{kind}"


def _mounts(runtime: Runtime, kind: str) -> Iterator[tuple[Path, Path]]:
    return ((outside, inside) for outside, inside in runtime.mounts if kind == "library" or inside.name != "hybridlab")


@functools.cache
def _readable_parts(runtime: Runtime, kind: str) -> tuple[tuple[Path, bool], ...]:
    """Return pairs: a file or folder that a worker may read, and whether the worker may only list the names in this folder."""
    # packages other than numpy are hidden: students need not know what is installed on the grader's machine
    site = {outside / name for outside, _ in runtime.mounts for name in ("site-packages", "dist-packages")}
    hidden = frozenset(path for path in site if path.is_dir())
    parts = [(_packages(runtime, kind), False)]
    for outside, _ in _mounts(runtime, kind):
        parts += _parts_without(outside, hidden)
    return tuple(dict.fromkeys(parts))


def _parts_without(folder: Path, hidden: frozenset[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the parts of a folder that a worker may read, as pairs like those of ``_readable_parts``.

    A rule of Landlock for a folder applies to everything below the folder. So a folder that contains a hidden folder needs a rule for
    each of its other entries.
    """
    if not any(path.is_relative_to(folder) for path in hidden):
        yield folder, False
    elif folder not in hidden:
        yield folder, True
        for path in folder.iterdir():
            if not path.is_symlink():
                yield from _parts_without(path, hidden)


def _command(runtime: Runtime) -> list[str]:
    """Return the command that starts a worker. Landlock mounts nothing, so files have the same paths inside and outside."""
    place = {inside: outside for outside, inside in runtime.mounts}
    return [str(place[Path(os.path.realpath(sys.executable))]), *FLAGS, str(runtime.folder / "worker" / "worker.py")]


def _home(runtime: Runtime) -> dict[str, str]:
    """Return environment variables with which a copied interpreter finds its modules and shared libraries; none without a copy."""
    place = {inside: outside for outside, inside in runtime.mounts}
    library = Path(sysconfig.get_paths()["stdlib"])
    if place[library] == library:
        return {}
    # PYTHONHOME is the prefix; Python's library lies some folders below the prefix, such as in lib/python3.11
    above = len(library.relative_to(sys.base_prefix).parts)
    copied = [
        outside for outside, inside in runtime.mounts if outside != inside and inside.parts[:2] not in (("/", "packages"), ("/", "worker"))
    ]
    libraries = dict.fromkeys(str(path if path.is_dir() else path.parent) for path in copied if path != place[library])
    return {"PYTHONHOME": str(place[library].parents[above - 1]), "LD_LIBRARY_PATH": ":".join(libraries)}


def _remove_folder(folder: Path) -> None:
    """Remove a folder with everything that a worker has put into it, such as thousands of nested folders without read permission.

    The path of a deeply nested folder is too long for the kernel. So each inner folder is first moved to the top, with a new name.
    """
    number, mark = itertools.count(), secrets.token_hex(8)  # a random name, which no file of the worker has
    with contextlib.suppress(FileNotFoundError):
        folder.chmod(0o700)
        while found := list(folder.iterdir()):
            for path in found:
                if path.is_symlink() or not path.is_dir():
                    path.unlink()
                    continue
                path.chmod(0o700)
                for inner in path.iterdir():
                    if inner.is_symlink() or not inner.is_dir():
                        inner.unlink()
                    else:
                        inner.chmod(0o700)
                        inner.rename(folder / f"{mark}-{next(number)}")
                path.rmdir()
        folder.rmdir()
