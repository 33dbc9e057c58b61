"""A worker under Landlock, for a grader that cannot run bubblewrap, such as one in a container of Docker.

Landlock is a part of the kernel with which a thread gives up rights, for itself and for all programs that it starts. The thread that
starts a worker lives for a moment: the rest of the grader keeps its rights. A worker reads the interpreter, numpy, its own program and, if
it is of the kind "library", hybridlab. It writes into one new folder, which is removed when it ends. It binds and connects no TCP, and from
ABI 6 on it reaches no process and no abstract socket outside. What Landlock leaves open, a filter of system calls closes (``call_gaps``).
Root becomes nobody first. The limit of one process counts all that runs as a user. So a worker can start no process and no thread, whatever
else runs as nobody. A worker that may start threads gets a higher limit, by what runs as its user when it starts, and a filter refuses
new processes.

What stays open, as measured on ABI 7; ``hybridlab doctor --sandbox landlock`` prints the first three:

- A worker sees which files exist, how large they are and whose they are, below all folders that its user may enter. It reads none of them,
  but it reads where symbolic links lead.
- Paths below ``/proc`` exist: a worker can find out which processes run. It reads nothing about them.
- A file has at most ``Limits.file_bytes``, but all files together have no limit until the worker ends: keep space in the folder of
  temporary files, or mount a small file system there.
- Without root, the worker runs as the user of the grader.
- If the grader is killed in a way that it cannot notice, a worker that sleeps goes on. It holds nothing but its own memory.
- The names of packages beside the interpreter can be listed. The packages cannot be read.
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

from hybridlab.course.grading.call_gaps import close_gaps, gap_filter
from hybridlab.course.grading.sandbox import ENVIRONMENT, FLAGS, KINDS, NOBODY, Runtime, Start
from hybridlab.errors import HybridLabError

if TYPE_CHECKING:
    import landlockpy

LEAST_ABI = 4  # the first that has rules for TCP
PROCESSES = 1  # the worker itself; other processes of the same user count, too, and make the limit only stricter
OTHERS = 48  # threads that other workers may start beside a worker with threads, since the limit counts those of all of them
LEFT_OPEN = (
    "no file outside can be seen",
    "there is no /proc",
    "all files together are limited",
)  # hybridlab doctor reports these, and work is graded all the same


def require_landlock() -> None:
    """Raise an error if workers cannot run under Landlock here.

    Raises
    ------
    HybridLabError
        ``no-sandbox``: the package landlockpy is not installed, this kernel has no Landlock or too old a one, or the numbers of this
        machine's system calls are not known.
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
    gap_filter(platform.machine())


def processes_of_its_user() -> int:
    """Return how many processes and threads run as the user of workers. The kernel counts both against one limit."""
    user, found = NOBODY if os.geteuid() == 0 else os.geteuid(), 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            found += len(list((process / "task").iterdir())) if process.stat().st_uid == user else 0
    return found


def landlock_starter(runtime: Runtime) -> Start:
    """Return a function that starts a worker under Landlock.

    Raises
    ------
    HybridLabError
        As :func:`require_landlock`.
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
    """Create a folder of packages for each kind of worker, with links to numpy, and to hybridlab where the kind has it."""
    for kind in KINDS:
        folder = _packages(runtime, kind)
        folder.mkdir(parents=True)
        for each in (folder, folder.parent):  # whatever the umask is, the user of a worker can enter them
            each.chmod(0o755)
        for outside, inside in _mounts(runtime, kind):
            if inside.parts[:2] == ("/", "packages"):
                (folder / inside.name).symlink_to(outside)


def landlock_packages(runtime: Runtime, kind: str) -> list[str]:
    """Return the folders in which a worker looks for packages."""
    return [str(_packages(runtime, kind))]


class _FolderWorker(subprocess.Popen[bytes]):
    """A process with a folder of its own, which is removed when the process has ended."""

    folder: Path

    def wait(self, timeout: float | None = None) -> int:
        code = super().wait(timeout)
        _remove_folder(self.folder)
        return code


def _start(runtime: Runtime, kind: str, folder: Path) -> _FolderWorker:
    """Start a worker from a new thread that gives up its rights first.

    All that the grader must read is read before, imports included, because this thread can read nothing else.
    """
    as_nobody: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    environment = {**ENVIRONMENT, "HOME": str(folder), "TMPDIR": str(folder), **_home(runtime)}
    command = _command(runtime)

    def start_restricted() -> _FolderWorker:
        rules.restrict()
        close_gaps()
        return _FolderWorker(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            start_new_session=True,  # a group of its own, which is killed as a whole
            **as_nobody,
        )

    # a thread gets no right back, so each worker is started from a new one
    with _rules(runtime, kind, folder) as rules, ThreadPoolExecutor(1) as thread:
        worker = thread.submit(start_restricted).result()
    worker.folder = folder
    return worker


def _rules(runtime: Runtime, kind: str, folder: Path) -> "landlockpy.Ruleset":
    """Return the rules for a worker: what it may do with files. It may not use TCP, nor reach any process outside."""
    import landlockpy
    from landlockpy import AccessFS

    reading = AccessFS.READ_FILE | AccessFS.READ_DIR
    writing = AccessFS.WRITE_FILE | AccessFS.TRUNCATE | AccessFS.MAKE_REG | AccessFS.MAKE_DIR | AccessFS.MAKE_SYM
    removing = AccessFS.REMOVE_FILE | AccessFS.REMOVE_DIR | AccessFS.REFER
    scope = landlockpy.Scope.ABSTRACT_UNIX_SOCKET | landlockpy.Scope.SIGNAL  # left out by the package below ABI 6
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
    """Return pairs: a file or folder that a worker may read, and whether it may read nothing but the names in it."""
    # other packages than numpy are hidden: what is installed here is no business of a student
    site = {outside / name for outside, _ in runtime.mounts for name in ("site-packages", "dist-packages")}
    hidden = frozenset(path for path in site if path.is_dir())
    parts = [(_packages(runtime, kind), False)]
    for outside, _ in _mounts(runtime, kind):
        parts += _parts_without(outside, hidden)
    return tuple(dict.fromkeys(parts))


def _parts_without(folder: Path, hidden: frozenset[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the parts of a folder that have nothing hidden in them, as ``_readable_parts`` does.

    A rule of Landlock allows all below a folder. So a folder with something hidden in it is divided into its parts.
    """
    if not any(path.is_relative_to(folder) for path in hidden):
        yield folder, False
    elif folder not in hidden:
        yield folder, True
        for path in folder.iterdir():
            if not path.is_symlink():
                yield from _parts_without(path, hidden)


def _command(runtime: Runtime) -> list[str]:
    """Return the command of a worker. Nothing is mounted under Landlock: files have the paths that they have outside."""
    place = {inside: outside for outside, inside in runtime.mounts}
    return [str(place[Path(os.path.realpath(sys.executable))]), *FLAGS, str(runtime.folder / "worker" / "worker.py")]


def _home(runtime: Runtime) -> dict[str, str]:
    """Return the variables with which a copied interpreter finds its modules and shared libraries; none if it was not copied."""
    place = {inside: outside for outside, inside in runtime.mounts}
    library = Path(sysconfig.get_paths()["stdlib"])
    if place[library] == library:
        return {}
    # PYTHONHOME is the prefix: the library is some folders below it, as in lib/python3.11
    above = len(library.relative_to(sys.base_prefix).parts)
    copied = [
        outside for outside, inside in runtime.mounts if outside != inside and inside.parts[:2] not in (("/", "packages"), ("/", "worker"))
    ]
    libraries = dict.fromkeys(str(path if path.is_dir() else path.parent) for path in copied if path != place[library])
    return {"PYTHONHOME": str(place[library].parents[above - 1]), "LD_LIBRARY_PATH": ":".join(libraries)}


def _remove_folder(folder: Path) -> None:
    """Remove a folder, whatever a worker has put there: even folders in folders, thousands deep, that nobody may read.

    Such a path would be too long for the kernel. So each inner folder is moved to the top, under a new name, before its own turn.
    """
    number, mark = itertools.count(), secrets.token_hex(8)  # no file of the worker has such a name
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
