"""Attacks on the machine: its processor, memory, disks and network."""

from hybridlab.course.grading.attack import Attack, in_turn_with, last

ON_TIME = (
    Attack("exit", "end the process at once", last("import os\nclaim(1)\nos._exit(0)")),
    Attack("exit-in-a-function", "end the process when a function is called", last("import os\nclaim(1, lambda *given: os._exit(0))")),
    Attack(
        "system-exit",
        "leave by an exception that nobody expects",
        last("""
import sys
def leaving(*given): sys.exit(0)
claim(1, leaving)
class Away(BaseException): pass
def raising(*given): raise Away
claim(1, raising)
import atexit
atexit.register(print, "passed")
sys.exit(0)
"""),
    ),
    Attack("segmentation-fault", "break the interpreter", last("import ctypes\nclaim(1)\nctypes.string_at(0)")),
    Attack(
        "killed",
        "send signals to all that can be reached",
        last("""
import os, signal
claim(1)
for process in (1, 0, -1, os.getppid(), -os.getpgid(0)):
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
        try: os.kill(process, number)
        except OSError: pass
"""),
    ),
    Attack(
        "broken-compiler",
        "give the compiler more than it can take",
        in_turn_with(
            "x = " + "(" * 20_000 + ")" * 20_000,
            "x = " + "-" * 200_000 + "1",
            "x = " + "+".join(["1"] * 60_000),
            "x = " + "[" * 150 + "]" * 150,
            "claim(1, eval('lambda *given: ' + '1 if 1 else ' * 5000 + '1'))",
            "x = " + "f'{" * 100 + "1" + "}'" * 100 + "\0",
        ),
    ),
    Attack("endless-loop", "never come to an end", last("claim(1)\nwhile True: pass")),
    Attack(
        "endless-function",
        "never return",
        last("""
def endless(*given):
    while True: pass
for key, kind in list(others.items())[-1:]: check(key, endless)
"""),
    ),
    Attack(
        "stubborn-loop",
        "swallow every signal and every exception",
        last("""
import signal, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def stubborn(*given):
    while True:
        try:
            while True: time.sleep(0.01)
        except BaseException: continue
        finally: continue
claim(1)
stubborn()
"""),
    ),
    Attack("long-number", "compute a number that no signal can interrupt", last("claim(1)\nx = 9**9**9")),
    Attack(
        "later",
        "write and loop in a handler of a timer, when another cell runs",
        last("""
import signal
def handler(*given):
    while True: pass
signal.signal(signal.SIGALRM, handler)
claim(1)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.01)
"""),
    ),
)

ON_MEMORY = (
    Attack(
        "memory-in-one-piece",
        "take 3 GB at once",
        last("""
claim(1)
x = bytearray(3 * 2**30)
x[::4096] = b"1" * len(x[::4096])
"""),
    ),
    Attack(
        "memory-in-pieces",
        "take memory until there is none, and go on",
        last("""
kept = []
def taking(*given):
    while True:
        try: kept.append(bytearray(2**22))
        except MemoryError: return kept
claim(1, lambda *given: len(taking()))
"""),
    ),
    Attack(
        "memory-in-forks",
        "take 3 GB in several processes",
        last("""
import os
for _ in range(6):
    try:
        if os.fork() == 0:
            x = bytearray(500 * 2**20)
            while True: pass
    except OSError: pass
claim(1)
"""),
    ),
    Attack(
        "shared-memory",
        "take memory that no process owns",
        last("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
for _ in range(20):
    number = libc.shmget(0, 200 * 2**20, 0o1600)
    if number < 0: break
    place = libc.shmat(number, None, 0)
    ctypes.memset(place, 1, 200 * 2**20)
    libc.shmdt(ctypes.c_void_p(place))
claim(1)
"""),
    ),
    Attack(
        "files-in-memory",
        "take memory through files without a name, and through pipes",
        last("""
import os
kept = []
for _ in range(200):
    try:
        kept.append(os.memfd_create("x"))
        while True: os.write(kept[-1], b"1" * 2**20)
    except OSError: pass
claim(len(kept) * 0)
"""),
    ),
    Attack(
        "much-printed",
        "print 1 GB",
        last("""
import os, sys
text = "1" * 2**20
for _ in range(1000): os.write(1, text.encode())
for _ in range(100): print(text); sys.stderr.write(text)
claim(1)
"""),
    ),
    Attack(
        "much-answered",
        "hand in 100 MB",
        last("""
for key, kind in others.items(): check(key, lambda *given: "1" * 100_000_000)
for key in list(others)[:1]: check(key, "1" * 100_000_000)
"""),
    ),
)

ON_DISKS = (
    Attack(
        "full-disk",
        "fill the disk",
        last("""
import os
for name in range(300):
    try:
        with open(f"/tmp/{name}", "wb") as file:
            while file.write(b"1" * 2**20): pass
    except OSError: pass
    if name > 20: break
claim(os.statvfs("/tmp").f_blocks * 0)
"""),
    ),
    Attack(
        "many-files",
        "make files without end, in folders within folders",
        last("""
import os
claim(1)
for number in range(30_000):
    try: open(f"/tmp/{number}", "w").close()
    except OSError: break
try:
    for _ in range(500): os.mkdir("x"); os.chdir("x")
except OSError: pass
"""),
    ),
    Attack(
        "written-outside",
        "write to each folder that may be the grader's",
        last("""
import os
places = "/ /dev /dev/shm /tmp/.. /srv /packages /packages/numpy /worker /usr/lib /home /var/tmp /run /root"
for folder in (WATCHED, *places.split()):
    for name in ("hybridlab-was-here", "sitecustomize.py", "conftest.py"):
        try: open(f"{folder}/{name}", "w").write("1")
        except OSError: pass
        try: os.symlink("/etc/passwd", f"{folder}/{name}-link")
        except OSError: pass
for path in ("/worker/worker.py", "/worker/values.py"):
    try: os.chmod(path, 0o777); open(path, "a").write("1")
    except OSError: pass
claim(1)
"""),
    ),
)

ON_THE_NETWORK = (
    Attack(
        "connection",
        "tell a server about the hidden cases by TCP",
        last("""
import socket
def told(*given):
    for address in ("127.0.0.1", "::1", "localhost"):
        try:
            with socket.create_connection((address, int(PORT) if PORT.isdigit() else 9), timeout=0.2) as there:
                there.sendall(repr(given).encode())
        except OSError: pass
told("MARKER")
claim(1, told)
"""),
    ),
    Attack(
        "datagrams",
        "tell a server about the hidden cases by UDP",
        last("""
import socket
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            with socket.socket(family, kind) as there: there.sendto(b"MARKER", (address, int(PORT) if PORT.isdigit() else 9))
        except OSError: pass
claim(1)
"""),
    ),
    Attack(
        "unix-sockets",
        "talk to programs of the machine",
        last("""
import glob, socket
known = ["\\0hybridlab-" + PORT, WATCHED + "/socket", "/run/docker.sock", "/var/run/docker.sock", "/run/systemd/private"]
for path in [*known, *glob.glob("/run/**", recursive=True)]:
    try:
        with socket.socket(socket.AF_UNIX) as there: there.connect(path); there.sendall(b"MARKER")
    except OSError: pass
claim(1)
"""),
    ),
)

ATTACKS_ON_MACHINES = (*ON_TIME, *ON_MEMORY, *ON_DISKS, *ON_THE_NETWORK)
