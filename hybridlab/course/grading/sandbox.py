"""The sandbox: a process that sees an interpreter, numpy and nothing else, without network, other processes or files of its own.

Bubblewrap makes it. It gets a clean environment and no secret in its arguments, and the worker runs as nobody: as root the limit on
processes would not hold. There is no ``/proc``, because the environment of bubblewrap itself would be readable there.
"""

import contextlib
import functools
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hybridlab.course.grading.syscalls import filter_pipe
from hybridlab.errors import HybridLabError

LIBRARY = Path(__file__).parents[2]
NOT_NEEDED = shutil.ignore_patterns("site-packages", "dist-packages", "test", "tests", "config-*", "idlelib", "*.opt-?.pyc")
NOBODY = 65534
ENVIRONMENT = {  # of every worker; numpy starts no threads of its own, so that the limit on processes can be small
    "HOME": "/tmp",  # noqa: S108 - of the sandbox
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",  # the same order of sets in each run, so that the marks are the same
}
MOST_THREADS = 16  # of a worker of the kind "threads", which is "bare" and may start threads
KINDS = ("library", "bare")  # with hybridlab, without its course; with numpy alone
# the program that a worker without a sandbox finds in place of hybridlab, where hybridlab is installed
NOT_THERE = "raise ImportError('hybridlab is not there when a build is graded')\n"
FLAGS = ("-s", "-S", "-B", "-P")  # of Python: no site directories, no bytecode, nothing from the current folder


@dataclass(frozen=True)
class Limits:
    """What a worker may use.

    Parameters
    ----------
    seconds_a_cell, seconds_a_notebook : float
        How long a cell or a call may take, and all of them together, in seconds of a clock on the wall.
    memory, file_bytes : int
        Bytes of address space, and bytes of all files together.
    processes : int
        Processes and threads, including the first process of the sandbox.
    """

    seconds_a_cell: float = 3.0
    seconds_a_notebook: float = 10.0
    memory: int = 2**30
    file_bytes: int = 16 * 2**20
    processes: int = 2

    def inside(self) -> dict[str, int]:
        """Return the limits that the worker sets on itself, by their names in the module ``resource``."""
        return {
            "AS": self.memory,
            "CORE": 0,
            "CPU": int(self.seconds_a_notebook) + 5,  # seconds; the grader ends a worker of one thread before
            "FSIZE": self.file_bytes,
            "NOFILE": 64,
            "NPROC": self.processes,
        }


@dataclass(frozen=True)
class Runtime:
    """What a worker needs: its own program, an interpreter and packages.

    Parameters
    ----------
    folder : Path
        The folder for copies that everyone can read.
    mounts : tuple of (Path, Path)
        What can be read in the sandbox: its path outside, and its path inside.
    """

    folder: Path
    mounts: tuple[tuple[Path, Path], ...] = field(default=())


Start = Callable[[str], "subprocess.Popen[bytes]"]  # takes the kind of a worker, and starts it


def make_runtime(folder: Path, *, sandboxed: bool = True) -> Runtime:
    """Put what a worker needs into an empty folder, and return what to mount.

    The interpreter is copied only if others cannot read it, such as one below a home folder.

    Parameters
    ----------
    folder : Path
        The folder.
    sandboxed : bool
        Whether the worker will run in a sandbox. Without one nothing is mounted.
    """
    here = Path(__file__).parent
    (folder / "worker").mkdir()
    for program in (here / "worker.py", here.parent / "values.py", here.parent / "results.py"):
        shutil.copy(program, folder / "worker")
    library = folder / "hybridlab"
    shutil.copytree(LIBRARY, library, ignore=_without_course, copy_function=_link)
    _compile(library)
    if not sandboxed:
        (folder / "bare").mkdir()
        (folder / "bare" / "hybridlab.py").write_text(NOT_THERE, encoding="utf-8")
        return Runtime(folder)
    mounts = [(folder / "worker", Path("/worker")), (library, Path("/packages/hybridlab"))]
    site = Path(np.__file__).parent.parent
    mounts += [(_make_readable(path, folder), Path("/packages") / path.name) for path in sorted(site.glob("numpy*")) if path.is_dir()]
    mounts += [(_make_readable(path, folder), path) for path in _interpreter()]
    _open_to_all(folder)
    return Runtime(folder, tuple(mounts))


def bubblewrap_starter(runtime: Runtime) -> Start:
    """Return a function that starts a worker in a sandbox of bubblewrap."""
    program = shutil.which("bwrap")
    if program is None:
        raise HybridLabError(
            "bubblewrap is not installed, so nothing was graded: install it (Debian and Ubuntu: apt-get install bubblewrap; "
            "Fedora: dnf install bubblewrap), then run hybridlab doctor",
            "no-sandbox",
        )

    def start(kind: str) -> "subprocess.Popen[bytes]":
        calls = filter_pipe()
        filtered = () if calls is None else ("--seccomp", str(calls))
        try:
            command = [program, *filtered, *_bubblewrap_arguments(runtime, kind), *_python("/worker/worker.py")]
            return _start_program(command, dropped=True, handed_on=() if calls is None else (calls,))
        finally:
            if calls is not None:  # bubblewrap has an end of its own
                os.close(calls)

    return start


def unprotected_starter(runtime: Runtime) -> Start:
    """Return a function that starts a worker without a sandbox, for a student's own code on the student's own machine."""
    return lambda kind: _start_program(_python(str(runtime.folder / "worker" / "worker.py")), dropped=False)


def packages_of(runtime: Runtime, kind: str, *, sandboxed: bool) -> list[str]:
    """Return the folders in which a worker looks for packages."""
    if sandboxed:
        return ["/packages"]
    site = str(Path(np.__file__).parent.parent)
    return [str(runtime.folder if kind == "library" else runtime.folder / "bare"), site]


def _start_program(command: list[str], *, dropped: bool, handed_on: tuple[int, ...] = ()) -> "subprocess.Popen[bytes]":
    """Start a program with pipes.

    With ``dropped`` it gets a clean environment, and root becomes nobody first. ``handed_on`` are open files that it gets, too.
    """
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if dropped and _is_root() else {}
    # a student's own environment stays, without variables that change how Python starts
    inherited = {} if dropped else {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = {**inherited, **ENVIRONMENT}
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]  # noqa: S603 - the arguments are our own
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,  # a group of its own, which is killed as a whole
        pass_fds=handed_on,
        **as_nobody,
    )


def _python(script: str) -> list[str]:
    return [os.path.realpath(sys.executable), *FLAGS, script]


def _bubblewrap_arguments(runtime: Runtime, kind: str) -> Iterator[str]:
    """Yield the options of bubblewrap. It follows them in this order: a later mount covers an earlier one."""
    yield from ("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session")
    yield from ("--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "worker")
    if "--disable-userns" in _options():  # from bubblewrap 0.8 on
        yield "--disable-userns"
    for place in ("/lib", "/lib64"):  # links where /usr has everything; the loader is looked for there
        if Path(place).is_symlink():
            yield from ("--symlink", os.readlink(place), place)  # noqa: PTH115 - the target as it is written
    for outside, inside in runtime.mounts:
        if kind == "library" or inside.name != "hybridlab":
            yield from ("--ro-bind", str(outside), str(inside))
    for site in _site_directories(runtime):  # an empty folder covers the packages that are installed outside
        yield from ("--tmpfs", site, "--remount-ro", site)
    yield from ("--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom")
    # the size is that of the next file system, /tmp, the only place where a worker can write
    yield from ("--size", str(Limits().file_bytes), "--tmpfs", "/tmp", "--chdir", "/tmp", "--remount-ro", "/", "--")  # noqa: S108


@functools.cache
def _options() -> str:
    """Return what bubblewrap says about its options."""
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True, check=False).stdout  # noqa: S607


def _site_directories(runtime: Runtime) -> Iterator[str]:
    """Yield the folders of other packages below what is mounted."""
    for outside, inside in runtime.mounts:
        if inside.parts[:2] != ("/", "packages"):
            yield from (str(inside / name) for name in ("site-packages", "dist-packages") if (outside / name).is_dir())


def _interpreter() -> list[Path]:
    """Return the interpreter, its library, and the folders or files of the shared libraries that this process has loaded."""
    program = Path(os.path.realpath(sys.executable))
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    loaded = {Path(line.split(maxsplit=5)[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
    outside = {path for path in loaded if not path.is_relative_to(stdlib) and "site-packages" not in path.parts}
    system = {path for path in (Path("/usr/lib64"), Path("/lib64")) if path.is_dir() and not path.is_symlink()}
    return [program, stdlib, *_shared_libraries(outside, stdlib, system)]


def _shared_libraries(loaded: set[Path], stdlib: Path, system: set[Path]) -> list[Path]:
    """Return the folders of shared libraries, and the single files of those that lie in a folder above Python's own library.

    Such a folder can be a home folder, of which a worker must see nothing else. A folder is better than a file where it is allowed: a
    program looks for a library by a name that is a link to the file, in the same folder.
    """
    folders = {path.parent for path in loaded if not stdlib.is_relative_to(path.parent)} | system
    files = {path for path in loaded if path.parent not in folders}
    return [*sorted(files), *sorted(folders)]


def _make_readable(path: Path, folder: Path) -> Path:
    """Return the path itself if everyone can read it, or if workers run as this user; else a copy in ``folder``."""
    if _readable_by_everyone(path) or not _is_root():
        return path
    copy = folder / "copies" / path.relative_to("/")
    copy.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, copy, ignore=NOT_NEEDED, copy_function=_link)
    else:
        _link(path, copy)
    return copy


def _link(file: str | Path, copy: str | Path) -> None:
    """Give a file a second name, which takes no time, if everyone can read it; else copy it."""
    mode = Path(file).stat().st_mode
    if mode == _open_mode(mode):
        with contextlib.suppress(OSError):  # a second name cannot be on another disk
            os.link(file, copy)
            return
    shutil.copy2(file, copy)


def _open_to_all(folder: Path) -> None:
    """Let everyone read what lies in a folder, whatever the umask is and whoever could read the files that were copied."""
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode
        if mode != _open_mode(mode):
            path.chmod(_open_mode(mode))


def _open_mode(mode: int) -> int:
    """Return a mode with which everyone can read, and run or enter, what its owner can, and only the owner can change it."""
    return (mode | 0o444 | (0o111 if mode & stat.S_IXUSR else 0)) & ~0o022


def _is_root() -> bool:  # Windows has no geteuid
    return hasattr(os, "geteuid") and os.geteuid() == 0


def folder_for_copies() -> str | None:
    """Return a folder in which workers can reach a temporary folder. None stands for the usual one.

    Where root is the grader, the workers run as nobody, and the usual folder of root can be closed to them.
    """
    if not _is_root():
        return None
    places = (tempfile.gettempdir(), "/tmp", "/var/tmp")  # noqa: S108 - the folder in it has a name that nobody can guess
    return next((place for place in places if Path(place).is_dir() and _readable_by_everyone(Path(place))), None)


def _readable_by_everyone(path: Path) -> bool:
    """Whether everyone can read a path. Everyone must be able to enter all folders above it, too."""
    folders = (path, *path.parents) if path.is_dir() else path.parents
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in folders) and bool(path.stat().st_mode & stat.S_IROTH)


def _without_course(folder: str, names: list[str]) -> list[str]:
    """Return the names in a folder that a copy of the library leaves out: judges, and what needs more than numpy.

    Published programs stay, because labs call them.
    """
    left_out = {"hybridlab": {"labs", "widgets", "plot"}, "course": set(names) - {"__init__.py", "published"}}.get(Path(folder).name, set())
    return [name for name in names if name in left_out]


def _compile(folder: Path) -> None:
    """Compile a package once, because a worker cannot write what it has compiled."""
    import compileall

    compileall.compile_dir(folder, quiet=2)
