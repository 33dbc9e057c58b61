"""A filter of system calls that refuses what Landlock does not refuse.

Without this filter, a worker under Landlock can do the following (measured on ABI 7):

- use UDP, multipath TCP and TCP fast open, and listen on a port;
- connect to Unix sockets of other programs if the sockets have a path;
- change the mode of any file of its user;
- change the limits and priorities of other processes of its user;
- watch folders for changes;
- write data into the keyring of the kernel.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Iterator

from hybridlab.course.grading.syscalls import ALLOW, AT_LEAST, EQUAL, LOAD, MACHINES, NO_SUCH_CALL, REFUSE, REFUSED, RETURN
from hybridlab.errors import HybridLabError

# calls that the filter refuses in addition to REFUSED: numbers on x86_64 and on aarch64; None if the machine does not have the call
MORE_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # sockets of every kind
    "socket": (41, 198),
    "socketpair": (53, 199),
    # signals, and calls that change or read other processes
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "setpriority": (141, 140),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    # calls that change owners, modes, times or attributes of files, and calls that watch files
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
}
PRLIMIT, FCNTL = (302, 261), (72, 25)  # the filter refuses these calls only with some arguments
# commands of fcntl: F_SETOWN, F_SETSIG, F_SETOWN_EX; with them a process can make the kernel send a signal to another process
OWNER_COMMANDS = (8, 10, 15)
NEWEST = 450  # the first number of newer calls; the filter answers them as a kernel that does not have them
# byte offsets in struct seccomp_data of: the call's number, the machine, and the low 32 bits of arguments 0 and 1
CALL, MACHINE, FIRST, SECOND = 0, 4, 16, 24
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2


class _Program(ctypes.Structure):  # the kernel's ``struct sock_fprog``: a filter and its length
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def gap_filter(machine: str) -> bytes:
    """Return the filter as bytes: an array of ``struct sock_filter`` of the kernel.

    Parameters
    ----------
    machine : str
        The name of the machine, ``"x86_64"`` or ``"aarch64"``.

    Raises
    ------
    HybridLabError
        ``no-sandbox``: this file does not know the numbers of this machine's system calls.

    Examples
    --------
    >>> len(gap_filter("x86_64")) % 8
    0
    """
    if machine not in MACHINES:
        raise HybridLabError(
            f"the system calls of {machine or 'this machine'} are not known here, and Landlock alone leaves sockets open, so nothing was "
            "graded: grade on x86_64 or aarch64, or with --sandbox bubblewrap",
            "no-sandbox",
        )
    return b"".join(struct.pack("=HBBI", *each) for each in _instructions(*MACHINES[machine]))


def close_gaps() -> None:
    """Put the filter on this thread and on all programs that this thread starts. Nobody can remove the filter again.

    The kernel accepts a filter only from a thread that can gain no new privileges (``PR_SET_NO_NEW_PRIVS``). Landlock sets this flag.
    """
    program = gap_filter(platform.machine())
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(_Program(len(program) // 8, program)), 0, 0):
        why = os.strerror(ctypes.get_errno())
        raise HybridLabError(
            f"this system refuses a filter of system calls ({why}), so nothing was graded: grade on another machine", "no-sandbox"
        )


def _instructions(place: int, machine: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the instructions of the filter, in the order in which the kernel runs them.

    An instruction is four numbers: its operation; how many instructions to skip if its comparison is true; how many to skip if it is
    false; its operand.
    """
    yield LOAD, 0, 0, MACHINE
    yield EQUAL, 1, 0, machine
    yield RETURN, 0, 0, REFUSE  # in programs for another machine, the same number means another call
    yield LOAD, 0, 0, CALL
    yield AT_LEAST, 0, 1, NEWEST
    yield RETURN, 0, 0, NO_SUCH_CALL
    for numbers in {**REFUSED, **MORE_REFUSED}.values():
        if (number := numbers[place]) is not None:
            yield EQUAL, 0, 1, number
            yield RETURN, 0, 0, REFUSE
    yield EQUAL, 0, 4, PRLIMIT[place]  # for any other call, skip to the comparison with FCNTL
    yield LOAD, 0, 0, FIRST
    yield EQUAL, 0, 1, 0  # process 0 stands for the calling process, which may change its own limits
    yield RETURN, 0, 0, ALLOW
    yield RETURN, 0, 0, REFUSE
    yield EQUAL, 1, 0, FCNTL[place]  # FCNTL is the last call to examine: the filter allows all other calls
    yield RETURN, 0, 0, ALLOW
    yield LOAD, 0, 0, SECOND
    for command in OWNER_COMMANDS:
        yield EQUAL, 0, 1, command
        yield RETURN, 0, 0, REFUSE
    yield RETURN, 0, 0, ALLOW
