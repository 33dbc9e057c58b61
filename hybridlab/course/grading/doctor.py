"""Is there a sandbox here, and does it hold? The same questions are asked before anything is graded."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hybridlab.course.grading.landlock import LEFT_OPEN
from hybridlab.course.grading.launch import Launcher
from hybridlab.course.grading.sandbox import NOBODY
from hybridlab.course.grading.session import Budget, Ended
from hybridlab.errors import HybridLabError

# Each cell hands in True if it was stopped. What it tries is harmless even if nothing stops it.
PROBES = {
    "no file outside can be read": """
try:
    open({canary!r}).close()
    check("stopped", False)
except OSError:
    check("stopped", True)
""",
    "no file outside can be seen": """
import os
check("stopped", not os.path.exists({canary!r}))
""",
    "no file outside can be changed": """
import os
try:
    os.chmod({canary!r}, 0o600)
    check("stopped", False)
except OSError:
    check("stopped", True)
""",
    "no file outside can be written": """
try:
    open({canary!r} + ".written", "w").close()
    check("stopped", False)
except OSError:
    check("stopped", True)
""",
    "there is no /proc": """
import os
check("stopped", not os.path.exists("/proc/self"))
""",
    "nothing about a process can be read": """
import os
found = []
files = ["{grader}/environ", "{grader}/cmdline", "self/environ", "self/mem", "1/environ"]
tries = [(open, name) for name in files] + [(os.listdir, ""), (os.listdir, "{grader}/fd"), (os.readlink, "{grader}/exe")]
for read, name in tries:
    try:
        read("/proc/" + name)
        found.append(name)
    except OSError:
        pass
check("stopped", not found)
""",
    "no signal reaches the grader": """
import os
try:
    os.kill({grader}, 0)
    check("stopped", False)
except OSError:
    check("stopped", True)
""",
    "the environment is clean": """
import os
check("stopped", "HYBRIDLAB_SECRET" not in os.environ)
""",
    "no other packages can be seen": """
try:
    import click
    check("stopped", False)
except ImportError:
    check("stopped", True)
""",
    "root is dropped": """
import os
check("stopped", 0 not in (os.getuid(), os.geteuid(), os.getgid(), os.getegid(), *os.getgroups()))
""",
    "no process can be started": """
import os
try:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    check("stopped", False)
except OSError:
    check("stopped", True)
""",
    "memory is limited": """
import mmap
try:
    mmap.mmap(-1, 1536 * 2**20).close()  # addresses alone; nothing is written to them
    check("stopped", False)
except (OSError, MemoryError):
    check("stopped", True)
""",
    "the disk is limited": """
try:
    with open("full", "wb") as file:
        file.write(bytes(32 * 2**20))
    check("stopped", False)
except OSError:
    check("stopped", True)
""",
    "all files together are limited": """
import os
written = 0
try:
    for name in ("full", "fuller", "fullest"):
        with open(name, "wb") as file:
            written += file.write(bytes(10 * 2**20))
except OSError:
    pass
for name in ("full", "fuller", "fullest"):
    if os.path.exists(name):
        os.remove(name)
check("stopped", written < 30 * 2**20)
""",
    "TCP is closed": """
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), 0.5).close()
    check("stopped", False)
except OSError:
    check("stopped", True)
""",
    "TCP is closed on detours": """
import socket
reached = []
try:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as multipath:
        multipath.connect(("127.0.0.1", {port}))
    reached.append("multipath")
except OSError:
    pass
try:
    with socket.socket() as fast:
        fast.sendto(b"canary", socket.MSG_FASTOPEN, ("127.0.0.1", {port}))
    reached.append("fast open")
except OSError:
    pass
check("stopped", not reached)
""",
    "no socket of another program can be reached": """
import socket
try:
    with socket.socket(socket.AF_UNIX) as local:
        local.connect({canary!r} + ".socket")
    check("stopped", False)
except OSError:
    check("stopped", True)
""",
    "UDP is closed": """
import socket
try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.sendto(b"canary", ("127.0.0.1", {port}))
    check("stopped", True)
except OSError:
    check("stopped", True)
""",
}
ENABLE = """\
enable it with one of these, as root:
  apt-get install apparmor-profiles
  cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/
  apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict
or, less strict:
  sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"""


@dataclass(frozen=True)
class Observation:
    """What one question has shown.

    Parameters
    ----------
    name : str
        What should hold, in a few words.
    holds : bool
        Whether it does.
    sentence : str
        What to do if it does not.
    left_open : bool
        Whether this sandbox is known to leave this open. Work is graded all the same, because the instructor has asked for this sandbox.
    """

    name: str
    holds: bool
    sentence: str = ""
    left_open: bool = False


def examined(launcher: Launcher) -> Iterator[Observation]:
    """Yield what holds in the sandbox: first whether it starts, then each limit, then whether a loop is ended."""
    known = LEFT_OPEN if launcher.sandbox == "landlock" else ()
    with tempfile.TemporaryDirectory() as folder, _listening(Path(folder)) as (port, heard):
        canary = Path(folder) / "canary"
        canary.write_text("a file outside")
        canary.chmod(0o666)
        Path(folder).chmod(0o777)
        if os.geteuid() == 0:
            os.chown(canary, NOBODY, NOBODY)  # so that nothing but the sandbox protects it
        try:
            session = launcher.open("bare", Budget(60.0))
        except Ended as why:
            advice = f"; {why_not_started()}" if launcher.sandbox == "bubblewrap" else ""
            yield Observation("a worker starts", False, f"{why}{advice}")
            return
        yield Observation("a worker starts", True)
        try:
            for name, probe in PROBES.items():
                handed, error = session.run(probe.format(canary=str(canary), port=port, grader=os.getpid()), "canary")
                held = not error and handed == [("stopped", True)] and not (name == "UDP is closed" and heard())
                yield Observation(name, held, "" if held or name in known else "a canary was not stopped", not held and name in known)
        except Ended as why:
            yield Observation("a worker goes on after a canary", False, str(why))
            return
        finally:
            session.close()
        yield Observation("nothing was written outside", {path.name for path in Path(folder).iterdir()} - {"canary.socket"} == {"canary"})
    yield _loop_is_ended(launcher)


def require_sandbox(launcher: Launcher) -> None:
    """Raise an error if a canary is not stopped by the sandbox, so that nothing is graded in it."""
    first = next((finding for finding in examined(launcher) if not (finding.holds or finding.left_open)), None)
    if first:
        told = f"{first.name}: no" + (f" ({first.sentence})" if first.sentence else "")
        raise HybridLabError(f"the sandbox does not hold, so nothing was graded. {told}. hybridlab doctor says more", "no-sandbox")


def why_not_started() -> str:
    """Return a sentence on why bubblewrap does not start, with the command that enables it."""
    if sys.platform != "linux":
        return "work is graded on Linux, where bubblewrap is; elsewhere hybridlab check tries it without a sandbox"
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed: apt-get install bubblewrap (Debian, Ubuntu) or dnf install bubblewrap (Fedora)"
    trial = [program, "--unshare-user", "--unshare-all", "--ro-bind", "/", "/", "true"]
    said = subprocess.run(trial, capture_output=True, text=True, check=False, env={}).stderr.strip()  # noqa: S603
    if "uid map" in said or "Permission denied" in said or "Operation not permitted" in said:
        return f"this system refuses it ({said[:120]}); in a container, start the container with its own user namespaces allowed; {ENABLE}"
    return f"bubblewrap says: {said[:200]}" if said else "bubblewrap runs by itself; hybridlab doctor says more"


def _loop_is_ended(launcher: Launcher) -> Observation:
    quick = replace(launcher, limits=replace(launcher.limits, seconds_a_cell=0.5))
    with contextlib.suppress(Ended), contextlib.closing(quick.open("bare", Budget(60.0))) as session:
        try:
            session.run("while True:\n    try:\n        while True: pass\n    except BaseException: pass", "canary")
        except Ended as why:
            return Observation("an endless loop is ended", why.code == "too-slow")
    return Observation("an endless loop is ended", False)


@contextlib.contextmanager
def _listening(folder: Path) -> Iterator[tuple[int, Callable[[], bool]]]:
    """Listen on a port of this machine, for TCP and UDP, and at a path. Yield the port, and a function that says whether UDP was heard."""
    with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket(socket.AF_UNIX) as local:
        with contextlib.suppress(OSError):  # of a path that is too long
            local.bind(str(folder / "canary.socket"))
            (folder / "canary.socket").chmod(0o777)
            local.listen()
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        udp.settimeout(0.2)

        def heard() -> bool:
            try:
                return bool(udp.recv(16))
            except OSError:
                return False

        yield port, heard
