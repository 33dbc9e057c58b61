"""Start workers in a sandbox of bubblewrap, or without a sandbox.

In the sandbox, a worker sees the Python interpreter and numpy, but no network, no other processes and none of the grader's files.
Bubblewrap gets a clean environment, and no secret is in its arguments. The worker runs as the user nobody, because the kernel does not
limit the number of processes of root. The sandbox has no ``/proc``, because a worker could read the environment of bubblewrap there.
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
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hybridlab.course.grading.syscalls import filter_pipe
from hybridlab.errors import HybridLabError

LIBRARY = Path(__file__).parents[2]
NOT_NEEDED = shutil.ignore_patterns("site-packages", "dist-packages", "test", "tests", "config-*", "idlelib", "*.opt-?.pyc")
NOBODY = 65534  # the number of the user and of the group nobody
ENVIRONMENT = {  # environment variables of every worker; numpy starts no threads, so that the limit on processes can be small
    "HOME": "/tmp",  # noqa: S108 - this path is inside the sandbox
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",  # sets have the same order in each run, so that the marks are the same
}
MOST_THREADS = 16  # the most threads that a worker of the kind "threads" may start; apart from threads, this kind is like "bare"
KINDS = ("library", "bare")  # kinds of workers; "library": with hybridlab except its course, and with numpy; "bare": with numpy only
# a worker of the kind "bare" must not import hybridlab; without a sandbox, it imports this program instead of an installed hybridlab
NOT_THERE = "raise ImportError('hybridlab is not there when a build is graded')\n"
FLAGS = ("-s", "-S", "-B", "-P")  # options of Python: no site directories, no bytecode files, no imports from the current folder


@dataclass(frozen=True)
class Limits:
    """The time, memory and disk space that the workers of a notebook may use.

    Computing time is the time in which a processor works for the student's code. It does not depend on what else the machine does.

    Parameters
    ----------
    seconds_a_task, seconds_a_notebook : float
        The most seconds of computing time for one cell or for all calls of one task, and for all cells and tasks of a notebook together.
    clock_a_request, clock_a_notebook : float
        The most seconds on the clock for one cell or one call, and for all together. They end what sleeps or waits for ever.
    memory, file_bytes : int
        The most bytes of address space, and the most bytes of all files together.
    processes : int
        The most processes and threads, including the first process of the sandbox.
    """

    seconds_a_task: float = 5.0
    seconds_a_notebook: float = 20.0
    clock_a_request: float = 60.0
    clock_a_notebook: float = 240.0
    memory: int = 2**30
    file_bytes: int = 16 * 2**20
    processes: int = 2

    @property
    def promise(self) -> str:
        """The sentence for students on the computing time that they have."""
        return (
            f"each task and each cell may use {self.seconds_a_task:g} s of computing time, "
            f"all of them together {self.seconds_a_notebook:g} s, whatever else the machine does"
        )

    def with_time(self, factor: float) -> "Limits":
        """Return these limits with more or less time, both of computing and on the clock.

        >>> Limits().with_time(2).seconds_a_task
        10.0
        """
        times = ("seconds_a_task", "seconds_a_notebook", "clock_a_request", "clock_a_notebook")
        return replace(self, **{name: factor * getattr(self, name) for name in times})

    def inside(self) -> dict[str, int]:
        """Return the limits that the worker sets on itself. The keys are names of the module ``resource`` without ``RLIMIT_``."""
        return {
            "AS": self.memory,
            "CORE": 0,
            "CPU": int(self.seconds_a_notebook) + 5,  # seconds of computing time; the grader ends a worker before this limit
            "FSIZE": self.file_bytes,
            "NOFILE": 64,
            "NPROC": self.processes,
        }


@dataclass(frozen=True)
class Runtime:
    """The files that a worker needs: its program, a Python interpreter and packages.

    Parameters
    ----------
    folder : Path
        A temporary folder with copies. Everyone can read it.
    mounts : tuple of (Path, Path)
        The files and folders that a worker can read in the sandbox. Each pair has the path outside and the path inside the sandbox.
    """

    folder: Path
    mounts: tuple[tuple[Path, Path], ...] = field(default=())


Start = Callable[[str], "subprocess.Popen[bytes]"]  # a function that takes the kind of a worker, starts the worker, and returns its process


def make_runtime(folder: Path, *, sandboxed: bool = True) -> Runtime:
    """Put the files that a worker needs into an empty folder, and return the paths to mount in the sandbox.

    The interpreter is copied only if other users cannot read it, for example in a home folder.

    Parameters
    ----------
    folder : Path
        The empty folder.
    sandboxed : bool
        Whether the worker will run in a sandbox. Without a sandbox, nothing is mounted.
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
    """Return a function that starts a worker in a sandbox of bubblewrap.

    Raises
    ------
    HybridLabError
        ``no-sandbox``: bubblewrap is not installed.
    """
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
            if calls is not None:  # bubblewrap has inherited its own copy of this end of the pipe
                os.close(calls)

    return start


def unprotected_starter(runtime: Runtime) -> Start:
    """Return a function that starts a worker without a sandbox. Students use it for their own code on their own machines."""
    return lambda kind: _start_program(_python(str(runtime.folder / "worker" / "worker.py")), dropped=False)


def packages_of(runtime: Runtime, kind: str, *, sandboxed: bool) -> list[str]:
    """Return the folders in which a worker's Python looks for packages."""
    if sandboxed:
        return ["/packages"]
    site = str(Path(np.__file__).parent.parent)
    return [str(runtime.folder if kind == "library" else runtime.folder / "bare"), site]


def _start_program(command: list[str], *, dropped: bool, handed_on: tuple[int, ...] = ()) -> "subprocess.Popen[bytes]":
    """Start a program with pipes for its standard input and output.

    With ``dropped``, the program gets a clean environment, and it runs as nobody if this process is root. The program also inherits the
    open files ``handed_on``.
    """
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if dropped and _is_root() else {}
    # on a student's machine, keep the environment, except variables that change how Python starts
    inherited = {} if dropped else {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = {**inherited, **ENVIRONMENT}
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]  # noqa: S603 - no argument comes from a student
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,  # a new process group, so that the worker and its children can be killed together
        pass_fds=handed_on,
        **as_nobody,
    )


def _python(script: str) -> list[str]:
    return [os.path.realpath(sys.executable), *FLAGS, script]


def _bubblewrap_arguments(runtime: Runtime, kind: str) -> Iterator[str]:
    """Yield the options of bubblewrap. Their order matters: a later mount covers an earlier mount of the same path."""
    yield from ("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session")
    yield from ("--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "worker")
    if "--disable-userns" in _options():  # bubblewrap 0.8 and later have this option
        yield "--disable-userns"
    for place in ("/lib", "/lib64"):  # on many systems these are links to folders in /usr; programs look for their loader in them
        if Path(place).is_symlink():
            yield from ("--symlink", os.readlink(place), place)  # noqa: PTH115 - the target must stay a relative path
    for outside, inside in runtime.mounts:
        if kind == "library" or inside.name != "hybridlab":
            yield from ("--ro-bind", str(outside), str(inside))
    for site in _site_directories(runtime):  # an empty folder hides the packages that are installed on this machine
        yield from ("--tmpfs", site, "--remount-ro", site)
    yield from ("--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom")
    # --size limits the file system of the next option, /tmp; a worker can write only there
    yield from ("--size", str(Limits().file_bytes), "--tmpfs", "/tmp", "--chdir", "/tmp", "--remount-ro", "/", "--")  # noqa: S108


@functools.cache
def _options() -> str:
    """Return the help text of bubblewrap, which lists its options."""
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True, check=False).stdout  # noqa: S607


def _site_directories(runtime: Runtime) -> Iterator[str]:
    """Yield the folders of installed packages that lie in mounted folders, as paths inside the sandbox."""
    for outside, inside in runtime.mounts:
        if inside.parts[:2] != ("/", "packages"):
            yield from (str(inside / name) for name in ("site-packages", "dist-packages") if (outside / name).is_dir())


def _interpreter() -> list[Path]:
    """Return the paths of the interpreter, of Python's library, and of the shared libraries that this process has loaded."""
    program = Path(os.path.realpath(sys.executable))
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    loaded = {Path(line.split(maxsplit=5)[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
    outside = {path for path in loaded if not path.is_relative_to(stdlib) and "site-packages" not in path.parts}
    system = {path for path in (Path("/usr/lib64"), Path("/lib64")) if path.is_dir() and not path.is_symlink()}
    return [program, stdlib, *_shared_libraries(outside, stdlib, system)]


def _shared_libraries(loaded: set[Path], stdlib: Path, system: set[Path]) -> list[Path]:
    """Return the folders of shared libraries. For libraries in a folder that contains Python's own library, return the files instead.

    Such a folder can be a home folder, and a worker must see nothing else in it. In all other cases folders are better than files: a
    program looks for a library by a name that is a link to the file, and the link is in the same folder.
    """
    folders = {path.parent for path in loaded if not stdlib.is_relative_to(path.parent)} | system
    files = {path for path in loaded if path.parent not in folders}
    return [*sorted(files), *sorted(folders)]


def _make_readable(path: Path, folder: Path) -> Path:
    """Return a path that workers can read: the path itself if they can read it, else the path of a copy in ``folder``."""
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
    """Make a hard link to a file if everyone can read the file, because a link takes no time. Else copy the file."""
    mode = Path(file).stat().st_mode
    if mode == _open_mode(mode):
        with contextlib.suppress(OSError):  # a hard link cannot be on another disk
            os.link(file, copy)
            return
    shutil.copy2(file, copy)


def _open_to_all(folder: Path) -> None:
    """Let everyone read a folder and everything in it, whatever the umask and the modes of the original files are."""
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode
        if mode != _open_mode(mode):
            path.chmod(_open_mode(mode))


def _open_mode(mode: int) -> int:
    """Return a file mode with which everyone has the owner's rights to read, and to run or enter, and only the owner can write."""
    return (mode | 0o444 | (0o111 if mode & stat.S_IXUSR else 0)) & ~0o022


def _is_root() -> bool:  # on Windows, there is no geteuid
    return hasattr(os, "geteuid") and os.geteuid() == 0


def folder_for_copies() -> str | None:
    """Return a folder for temporary files that workers can enter. None stands for Python's default folder.

    If the grader is root, the workers run as nobody. Then the user nobody can be unable to enter root's default folder.
    """
    if not _is_root():
        return None
    places = (tempfile.gettempdir(), "/tmp", "/var/tmp")  # noqa: S108 - a new folder with a random name is created in it
    return next((place for place in places if Path(place).is_dir() and _readable_by_everyone(Path(place))), None)


def _readable_by_everyone(path: Path) -> bool:
    """Return whether everyone can read a path. For this, everyone must also be able to enter all folders above the path."""
    folders = (path, *path.parents) if path.is_dir() else path.parents
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in folders) and bool(path.stat().st_mode & stat.S_IROTH)


def _without_course(folder: str, names: list[str]) -> list[str]:
    """Return the names in a folder that the copy of hybridlab leaves out: judges, and modules that need more than numpy.

    The copy contains the course's published programs, because labs call them.
    """
    left_out = {"hybridlab": {"labs", "widgets", "plot"}, "course": set(names) - {"__init__.py", "published"}}.get(Path(folder).name, set())
    return [name for name in names if name in left_out]


def _compile(folder: Path) -> None:
    """Compile a package to bytecode once for all workers, because workers cannot write bytecode files."""
    import compileall

    compileall.compile_dir(folder, quiet=2)
