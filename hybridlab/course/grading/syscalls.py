"""The filter of system calls for workers, the same in each kind of sandbox.

Even with no files, no network and no other processes, a worker needs such a filter. Without the filter, a worker could:

1. talk to the worker of another student, because both see the same files and use the same kernel. For example, one worker locks a file of
   numpy, and the other worker asks whether the file is locked;
2. take control of the first process of its sandbox, which has no limits;
3. use memory that no limit counts;
4. write data into the kernel's keyring, where the worker of the next submission could read the data.

Under Landlock, a worker could also use sockets other than TCP, change the mode of the user's files, and change the limits and priorities of
the user's other processes.

The filter cannot close two ways to talk, because it refuses only what no right answer needs. A worker can measure how busy the machine is:
how long a computation or the first read of a file takes. It can also watch a few numbers that the kernel counts up for all programs, such
as the number of a new pipe.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator

from hybridlab.errors import HybridLabError

# calls that are always refused: their numbers on x86_64 and on aarch64; None if the machine does not have the call
REFUSED: dict[str, tuple[int | None, int | None]] = {
    # other processes: their memory, files, signals, priorities and processors
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "kcmp": (312, 272),
    "get_robust_list": (274, 100),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "setpriority": (141, 140),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    # objects that processes share by a name or a number
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # sockets: their addresses, and messages with open files, which the kernel counts for each user
    "socket": (41, 198),
    "bind": (49, 200),
    "listen": (50, 201),
    "connect": (42, 203),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    # marks on files that another process can see: locks, owners, modes, times, attributes, numbers of links
    "flock": (73, 32),
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
    "link": (86, None),
    "linkat": (265, 37),
    # what happens to files: who opens them, and which of their parts the kernel holds in memory
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "mincore": (27, 232),
    "fadvise64": (221, 223),
    "readahead": (187, 213),
    "preadv2": (327, 286),
    "pwritev2": (328, 287),
    # what the kernel counts for all processes or for all of a user: memory, processes, free disk, messages, timers, requests
    "sysinfo": (99, 179),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "ustat": (136, None),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "timer_create": (222, 107),
    "io_setup": (206, 0),
    # memory that no limit counts, and programs in the kernel
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    # other sandboxes, and other folders
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
}
# calls that are refused except with these values of arguments: their numbers, and the allowed values of an argument by its index
ONLY_WITH: dict[str, tuple[tuple[int, int], dict[int, tuple[int, ...]]]] = {
    # copies and flags of an open file; all other commands are locks, leases, notices, owners of signals and sizes of pipes
    "fcntl": ((72, 25), {1: (0, 1, 2, 3, 4, 1030)}),
    # questions to a terminal (three), bytes that wait, whether reading waits, whether another program inherits the file (two)
    "ioctl": ((16, 29), {1: (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)}),
    # advice on the worker's own memory; not: remove pages of files from memory, or share equal pages with other processes
    "madvise": ((28, 233), {2: (*range(5), 8, 10, 11, *range(13, 20), 22, 23, 24, 102, 103)}),
    "prlimit64": ((302, 261), {0: (0,)}),  # process 0 stands for the calling process
    # a pair of Unix sockets for a stream, with or without two flags; asyncio needs it, and such a pair reaches nothing else
    "socketpair": ((53, 199), {0: (1,), 1: (1, 0x801, 0x80001, 0x80801)}),
}
# On a mapped file, a futex without this flag is shared with all processes that map the file: one process waits, another one wakes it.
# The answer is that of a futex whose value has changed; then the C library looks at the value again.
FUTEX, PRIVATE, LOOK_AGAIN = (202, 98), 128, 0x00050000 | errno.EAGAIN
MMAP, HUGE = (9, 222), 0x40000  # mmap with this flag takes large pages, of which the machine has one store for all processes
# The first number of newer calls, which the filter answers as a kernel that does not have them. On x86_64, the calls for programs with
# 32-bit pointers have larger numbers, too.
NEWEST = 449
MACHINES = {
    "x86_64": (0, 0xC000003E),
    "aarch64": (1, 0xC00000B7),
}  # for each machine: the index of its numbers in the tables above, and the kernel's number of the machine (AUDIT_ARCH)
LOAD, EQUAL, AT_LEAST, HAS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # operations in the kernel's filter language (BPF)
# byte offsets in struct seccomp_data of: the call's number, the machine, the low 32 bits of argument 0; each argument has 8 bytes
CALL, MACHINE, ARGUMENTS = 0, 4, 16
Instruction = tuple[int, int, int, int]  # operation; instructions to skip if its comparison is true; to skip if false; operand
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
NO_SUCH_CALL = 0x00050000 | errno.ENOSYS  # the answer of a kernel that does not have the call
CLONE3, CLONE_THREAD = 435, 0x10000  # the number of the call clone3; the flag with which clone starts a thread
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2


class _Program(ctypes.Structure):  # the kernel's ``struct sock_fprog``: a filter and its length
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def call_filter(machine: str) -> bytes:
    """Return the filter as bytes for the kernel; no bytes if this file does not know the machine's system calls.

    Parameters
    ----------
    machine : str
        The name of the machine, such as ``"x86_64"``.

    Examples
    --------
    >>> len(call_filter("x86_64")) % 8, call_filter("vax")
    (0, b'')
    """
    return _assembled(machine, _refusals(MACHINES[machine][0])) if machine in MACHINES else b""


def threads_filter(machine: str) -> bytes:
    """Return the filter for a worker that may start threads but no processes.

    Return no bytes if this file does not know the machine's system calls. The call ``clone`` starts a thread or a process, depending on
    a flag, which the filter checks. A filter cannot see the flags of ``clone3``. So the filter answers that the kernel does not have
    ``clone3``; programs then use ``clone``.
    """
    return _assembled(machine, _no_processes(machine)) if machine in MACHINES else b""


def filter_pipe() -> int | None:
    """Return the reading end of a pipe with the filter for bubblewrap; None if there is no filter for this machine."""
    program = call_filter(platform.machine())
    if not program:
        return None
    reading, writing = os.pipe()
    os.write(writing, program)  # does not block, because the filter fits into the buffer of a pipe
    os.close(writing)
    return reading


def filter_this_thread() -> None:
    """Put the filter on this thread and on all programs that this thread starts. Nobody can remove the filter again.

    The kernel accepts a filter only from a thread that can gain no new privileges (``PR_SET_NO_NEW_PRIVS``). Landlock sets this flag.

    Raises
    ------
    HybridLabError
        ``no-sandbox``: the kernel refuses the filter.
    """
    program = call_filter(platform.machine())
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(_Program(len(program) // 8, program)), 0, 0):
        why = os.strerror(ctypes.get_errno())
        raise HybridLabError(
            f"this system refuses a filter of system calls ({why}), so nothing was graded: grade on another machine", "no-sandbox"
        )


def _assembled(machine: str, rules: Iterator[Instruction]) -> bytes:
    """Return a filter as bytes: it refuses calls for other machines and newer calls, follows the rules, and allows all other calls.

    In programs for another machine, the same number means another call.
    """
    other = [(LOAD, 0, 0, MACHINE), (EQUAL, 1, 0, MACHINES[machine][1]), (RETURN, 0, 0, REFUSE)]
    newer = [(LOAD, 0, 0, CALL), (AT_LEAST, 0, 1, NEWEST), (RETURN, 0, 0, NO_SUCH_CALL)]
    return b"".join(struct.pack("=HBBI", *each) for each in (*other, *newer, *rules, (RETURN, 0, 0, ALLOW)))


def _refusals(place: int) -> Iterator[Instruction]:
    """Yield the rules for all workers. ``place`` is the index of the machine's numbers in the tables."""
    for numbers in REFUSED.values():
        if (number := numbers[place]) is not None:
            yield from ((EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE))
    for both, allowed in ONLY_WITH.values():
        checks = [each for argument, values in allowed.items() for each in _one_of(argument, values)]
        yield from _for_call(both[place], *checks, (RETURN, 0, 0, ALLOW))
    flag = [(LOAD, 0, 0, ARGUMENTS + 8 * 1), (HAS, 0, 1, PRIVATE), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, LOOK_AGAIN)]
    yield from _for_call(FUTEX[place], *flag)
    yield from _for_call(MMAP[place], (LOAD, 0, 0, ARGUMENTS + 8 * 3), (HAS, 0, 1, HUGE), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW))


def _no_processes(machine: str) -> Iterator[Instruction]:
    """Yield the rules that refuse new processes and allow new threads."""
    yield from ((EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, NO_SUCH_CALL))
    if machine == "x86_64":
        for number in (57, 58):  # fork and vfork, which exist only on x86_64
            yield from ((EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE))
    clone = (56, 220)[MACHINES[machine][0]]
    yield from _for_call(clone, (LOAD, 0, 0, ARGUMENTS), (HAS, 1, 0, CLONE_THREAD), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW))


def _for_call(number: int, *rules: Instruction) -> Iterator[Instruction]:
    """Yield rules for one call, which all other calls skip. The rules end in an answer."""
    yield EQUAL, 0, len(rules), number
    yield from rules


def _one_of(argument: int, values: tuple[int, ...]) -> Iterator[Instruction]:
    """Yield the rule that refuses a call if an argument has none of these values. ``argument`` is the argument's index."""
    yield LOAD, 0, 0, ARGUMENTS + 8 * argument
    for place, value in enumerate(values):
        yield EQUAL, len(values) - place, 0, value  # if equal, skip the other values and the refusal
    yield RETURN, 0, 0, REFUSE
