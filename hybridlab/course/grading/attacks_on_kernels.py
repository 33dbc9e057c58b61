"""Attacks on the kernel: processes that outlive the worker, other programs, and calls that lead out of the sandbox."""

from hybridlab.course.grading.attack import Attack, first, last

ON_PROCESSES = (
    Attack(
        "fork-bomb",
        "make processes without end",
        last("""
import os
claim(1)
for _ in range(10**4):
    try: os.fork()
    except OSError: pass
"""),
    ),
    Attack(
        "thread-bomb",
        "make threads without end",
        last("""
import threading, time
claim(1)
for _ in range(200):
    try: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError: pass
"""),
    ),
    Attack(
        "outliving-process",
        "leave a process behind that has left the session and its parents",
        last("""
import os, time
def outlive():
    if os.fork(): return
    os.setsid()
    if os.fork(): os._exit(0)
    while True: time.sleep(1)
try: outlive()
except OSError: pass
claim(1)
"""),
    ),
    Attack(
        "left-alone",
        "ask the kernel not to end the process with its parent, and close all that is open",
        last("""
import ctypes, os
claim(1)
libc = ctypes.CDLL(None)
libc.prctl(1, 0, 0, 0, 0)
try: os.setsid()
except OSError: pass
os.closerange(0, 256)
while True: pass
"""),
    ),
    Attack(
        "background-thread",
        "answer from a thread when the cell has ended",
        first("""
import threading, time
def work():
    while True: time.sleep(0.01); claim(1)
try: threading.Thread(target=work, daemon=True).start()
except RuntimeError: pass
"""),
    ),
    Attack(
        "programs",
        "run programs of the machine",
        last("""
import os, subprocess, sys
for command in (["sh", "-c", f"touch {WATCHED}/sh"], [sys.executable, "-c", "while True: pass"], ["curl", "http://127.0.0.1:" + PORT]):
    try: subprocess.run(command, timeout=0.3)
    except (OSError, subprocess.SubprocessError): pass
    try: os.posix_spawnp(command[0], command, {})
    except OSError: pass
claim(1)
"""),
    ),
    Attack(
        "another-program",
        "become another program, which replies in the place of the worker",
        last("""
import os, sys
claim(1)
os.execv(sys.executable, [sys.executable, "-c", "import os\\nwhile True: os.write(3, b'1'); os.write(4, b'{}\\\\n')"])
"""),
    ),
)

KERNEL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
"""

ON_THE_KERNEL = (
    Attack(
        "mounts",
        "mount the disks of the machine",
        last(
            KERNEL
            + """
for kind in (b"tmpfs", b"proc", b"sysfs", b"overlay"):
    for place in (b"/tmp", b"/", b"/packages"): libc.mount(kind, place, kind, 0, None)
libc.umount2(b"/tmp", 2); libc.umount2(b"/usr/lib", 2);
libc.mount(None, b"/", None, 0x1020, None)
claim(repr(os.listdir("/")))
"""
        ),
    ),
    Attack(
        "namespaces",
        "make a user namespace, and become root in it",
        last(
            KERNEL
            + """
for flags in (0x10000000, 0x10020000, 0x20000000, 0x40000000, 0x00020000): libc.unshare(flags)
libc.setns(0, 0)
claim(str(os.getuid()), lambda *given: os.listdir("/"))
"""
        ),
    ),
    Attack(
        "another-user",
        "become root, or leave the folder that is the root",
        last(
            KERNEL
            + """
calls = [(os.setuid, 0), (os.setgid, 0), (os.setresuid, 0, 0, 0), (os.setgroups, [0]), (os.chroot, "/tmp")]
for call, *given in calls:
    try: call(*given)
    except OSError: pass
claim(str(os.getuid()))
"""
        ),
    ),
    Attack(
        "traced-processes",
        "stop another process, and run inside it",
        last(
            KERNEL
            + """
for process in (1, os.getppid(), 0, 3, 4):
    for request in (16, 0x4206, 0x4208): libc.ptrace(request, process, 0, 0)
    handle = libc.syscall(434, process, 0)
    for number in range(8): libc.syscall(438, handle, number, 0)
claim(1)
"""
        ),
    ),
    Attack(
        "keyrings",
        "leave a note for the next submission in a keyring",
        last(
            KERNEL
            + """
for ring in (-1, -2, -3, -4, -5): libc.syscall(248, b"user", b"hybridlab", b"answers", 7, ring)
found = libc.syscall(249, b"user", b"hybridlab", None, -3)
claim(found)
"""
        ),
    ),
    Attack(
        "raised-limits",
        "raise the limits again",
        last("""
import resource
for name in ("AS", "NPROC", "FSIZE", "CPU", "NOFILE"):
    number = getattr(resource, "RLIMIT_" + name)
    for most in ((-1, -1), (2**40, 2**40), (10, -1)):
        try: resource.setrlimit(number, most)
        except (OSError, ValueError): pass
try:
    import os
    os.fork()
except OSError: pass
claim(1)
"""),
    ),
    Attack(
        "other-calls",
        "use calls of the kernel that few programs need",
        last(
            KERNEL
            + """
buffer = ctypes.create_string_buffer(512)
numbers = (425, 321, 298, 323, 280, 428, 429, 430, 432, 442, 175, 313, 246, 169, 167, 304, 310, 311)
for number in numbers: libc.syscall(number, buffer, 0, 0, 0, 0)
claim(1)
"""
        ),
    ),
)

ATTACKS_ON_KERNELS = (*ON_PROCESSES, *ON_THE_KERNEL)
