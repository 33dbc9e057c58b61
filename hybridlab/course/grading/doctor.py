"""Check whether this machine has a sandbox, and whether the sandbox stops attempts to leave it. Grading begins with the same check."""

import contextlib
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.landlock import LEFT_OPEN
from hybridlab.course.grading.launch import Launcher
from hybridlab.course.grading.sandbox import NOBODY
from hybridlab.course.grading.session import Ended, Session
from hybridlab.course.grading.syscalls import FUTEX, MACHINES, MMAP, ONLY_WITH, REFUSED
from hybridlab.errors import HybridLabError

# for each kind of worker: what the sandbox must guarantee, and the call of a function in `probes` that tries to break the guarantee
PROBES = {
    "bare": {
        "no file outside can be read": "reads(canary)",
        "no file outside can be seen": "sees(canary)",
        "no file outside can be changed": "changes(canary)",
        "no file outside can be written": "writes(canary)",
        "no program of a worker can be changed": "changes_programs()",
        "no open file is handed on": "finds_open_files()",
        "there is no /proc": "sees_processes()",
        "nothing about a process can be read": "reads_processes(grader)",
        "no signal reaches the grader": "signals(grader)",
        "the environment is clean": "reads_environment()",
        "no other packages can be seen": "imports('click', 'hybridlab')",
        "root is dropped": "has_rights_of_root()",
        "no process can be started": "forks()",
        "calls of the kernel that lead outside are refused": "calls_kernel(calls)",
        "no limit can be raised": "raises_limits()",
        "memory is limited": "takes_memory()",
        "the disk is limited": "fills_disk(files=1, megabytes=32)",
        "all files together are limited": "fills_disk(files=3, megabytes=10)",
        "TCP is closed": "connects(port)",
        "TCP is closed on detours": "connects_on_detours(port)",
        "no socket of another program can be reached": "connects_to_programs(canary)",
        "UDP is closed": "sends_datagram(port)",
    },
    "threads": {"no process can be started beside threads": "forks()"},
    "library": {"no judge can be imported": "imports('hybridlab.course.tasks', 'hybridlab.course.checking', 'hybridlab.course.grading')"},
}
WAKE = 1  # the operation of futex that wakes a waiting thread, also one of another process
ENABLE = """\
enable it with one of these, as root:
  apt-get install apparmor-profiles
  cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/
  apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict
or, less strict:
  sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"""


@dataclass(frozen=True)
class Observation:
    """Whether the sandbox gives one guarantee.

    Parameters
    ----------
    name : str
        The guarantee, in a few words.
    holds : bool
        Whether the sandbox gives the guarantee.
    sentence : str
        What to do, or what has happened, if the sandbox does not give the guarantee.
    left_open : bool
        Whether this kind of sandbox is known not to give the guarantee. The grader still grades, because the instructor chose this kind.
    """

    name: str
    holds: bool
    sentence: str = ""
    left_open: bool = False


def examine(launcher: Launcher) -> Iterator[Observation]:
    """Yield an observation for each guarantee of the sandbox: a worker starts, each limit works, an endless loop is ended."""
    with tempfile.TemporaryDirectory() as folder, _listen(Path(folder)) as (port, heard):
        canary = Path(folder) / "canary"
        canary.write_text("a file outside")
        # everyone may write to the file and the folder, so that nothing but the sandbox protects them
        canary.chmod(0o666)
        Path(folder).chmod(0o777)
        if os.geteuid() == 0:
            os.chown(canary, NOBODY, NOBODY)  # the user of a worker owns the file, so that file permissions do not protect it
        names = {"canary": str(canary), "port": port, "grader": os.getpid(), "calls": _refused_calls()}
        for kind in PROBES:
            if not (yield from _try_probes(launcher, kind, names, heard)):
                return
        yield from _try_to_talk(launcher)
        yield Observation("nothing was written outside", {path.name for path in Path(folder).iterdir()} - {"canary.socket"} == {"canary"})
    yield _try_endless_loop(launcher)


def _try_probes(
    launcher: Launcher, kind: str, names: Mapping[str, object], heard: Callable[[], bool]
) -> Generator[Observation, None, bool]:
    """Test each guarantee of the sandbox with one kind of worker, and yield an observation for each.

    Return whether the worker ran until the last probe.

    ``names`` are variables for the probes, such as the path of a file outside the sandbox. ``heard`` returns whether a UDP datagram
    has arrived at the grader.
    """
    try:
        session = launcher.open(kind, Budget(launcher.limits.with_time(10)))
    except Ended as why:
        advice = f"; {why_not_started()}" if launcher.sandbox == "bubblewrap" else ""
        yield Observation("a worker starts", False, f"{why}{advice}")
        return False
    if kind == "bare":
        yield Observation("a worker starts", True)
    with contextlib.closing(session):
        try:
            _give_probes(session, names)
            for name, call in PROBES[kind].items():
                # the probe in the worker does not know whether its datagram has arrived, so ask the receiver
                yield _observed(launcher, name, _answer(session, call) == [False] and not (name == "UDP is closed" and heard()))
        except Ended as why:
            yield Observation("a worker goes on after a canary", False, str(why))
            return False
    return True


def _try_to_talk(launcher: Launcher) -> Iterator[Observation]:
    """Let one worker leave traces, and compare what another worker sees before and after. Yield an observation for each guarantee."""
    try:
        with contextlib.ExitStack() as opened:
            one, other = (
                opened.enter_context(contextlib.closing(launcher.open("bare", Budget(launcher.limits.with_time(10))))) for _ in range(2)
            )
            for session in (one, other):
                _give_probes(session, {})
            process = _answer(one, "os.getpid()")
            calls = {
                "two workers cannot talk through files": "traces()",
                "two workers cannot talk through /proc": f"open_files(*{process!r})",
            }
            before = {name: _answer(other, call) for name, call in calls.items()}
            left = _answer(one, "leaves_traces()")
            for name, call in calls.items():
                yield _observed(launcher, name, left == [False] and len(before[name]) == 1 and _answer(other, call) == before[name])
    except Ended as why:
        yield Observation("two workers go on after a canary", False, str(why))


def _give_probes(session: Session, names: Mapping[str, object]) -> None:
    """Define the probes, and the variables that they need, in a worker."""
    session.run(Path(__file__).with_name("probes.py").read_text(encoding="utf-8"), "canary")
    session.run("".join(f"{name} = {what!r}\n" for name, what in names.items()), "canary")


def _answer(session: Session, call: str) -> list[object]:
    """Return a list with the result of a probe; an empty list if the probe raises an error."""
    handed, error = session.run(f"check('gets through', {call})", "canary")
    return [] if error else [result for _, result in handed]


def _observed(launcher: Launcher, name: str, held: bool) -> Observation:
    """Return the observation for a guarantee that a probe has tried to break."""
    known = launcher.sandbox == "landlock" and name in LEFT_OPEN
    return Observation(name, held, "" if held or known else "a canary was not stopped", known and not held)


def _refused_calls() -> list[list[int]]:
    """Return the numbers and arguments of system calls that no worker may make; an empty list if this machine's numbers are not known."""
    if (machine := platform.machine()) not in MACHINES:
        return []
    place = MACHINES[machine][0]
    numbers = [*(pair[place] for pair in REFUSED.values()), *(pair[place] for pair, _ in ONLY_WITH.values()), MMAP[place]]
    return [[number, *[-1] * 5] for number in numbers if number is not None] + [[FUTEX[place], 0, WAKE, 0, 0, 0]]


def require_sandbox(launcher: Launcher) -> None:
    """Raise an error if the sandbox does not give one of its guarantees. Then nothing is graded.

    Raises
    ------
    HybridLabError
        ``no-sandbox``: a worker does not start, or a probe gets through the sandbox.
    """
    first = next((finding for finding in examine(launcher) if not (finding.holds or finding.left_open)), None)
    if first:
        finding = f"{first.name}: no" + (f" ({first.sentence})" if first.sentence else "")
        raise HybridLabError(f"the sandbox does not hold, so nothing was graded. {finding}. hybridlab doctor says more", "no-sandbox")


def why_not_started() -> str:
    """Return a sentence that says why bubblewrap does not start, and how to enable it."""
    if sys.platform != "linux":
        return "work is graded on Linux, where bubblewrap is; elsewhere hybridlab check tries it without a sandbox"
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed: apt-get install bubblewrap (Debian, Ubuntu) or dnf install bubblewrap (Fedora)"
    trial = [program, "--unshare-user", "--unshare-all", "--ro-bind", "/", "/", "true"]
    said = subprocess.run(trial, capture_output=True, text=True, check=False, env={}).stderr.strip()  # noqa: S603
    if "uid map" in said or "Permission denied" in said or "Operation not permitted" in said:
        return f"this system refuses it ({said[:120]}); in a container, start the container with its own user namespaces allowed; {ENABLE}"
    return f"bubblewrap says: {said[:200]}" if said else "bubblewrap itself works; run hybridlab doctor to see what fails"


def _try_endless_loop(launcher: Launcher) -> Observation:
    """Return whether the grader ends an endless loop that catches every exception."""
    quick = Budget(replace(launcher.limits, seconds_a_task=0.5))
    with contextlib.suppress(Ended), contextlib.closing(launcher.open("bare", quick)) as session:
        try:
            session.run("while True:\n    try:\n        while True: pass\n    except BaseException: pass", "canary")
        except Ended as why:
            return Observation("an endless loop is ended", why.code == "too-slow")
    return Observation("an endless loop is ended", False)


@contextlib.contextmanager
def _listen(folder: Path) -> Iterator[tuple[int, Callable[[], bool]]]:
    """Listen on one port for TCP and UDP, and on two Unix sockets: one with a path, and one in the abstract namespace.

    Yield the port, and a function that returns whether a UDP datagram has arrived.
    """
    path = folder / "canary.socket"
    with (
        socket.socket() as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as local,
        socket.socket(socket.AF_UNIX) as named,
    ):
        with contextlib.suppress(OSError):  # the path of a Unix socket may have only about 100 bytes
            for listens, address in ((local, str(path)), (named, f"\0{path}")):
                listens.bind(address)
                listens.listen()
            path.chmod(0o777)
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        udp.settimeout(0.2)  # seconds; a datagram from the same machine arrives sooner

        def heard() -> bool:
            try:
                return bool(udp.recv(16))
            except OSError:
                return False

        yield port, heard
