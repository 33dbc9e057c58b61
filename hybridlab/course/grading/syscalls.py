"""A filter of system calls for workers. Even with no files, no network and no other processes, a worker needs such a filter.

Without the filter, a worker could:

1. take control of the first process of its sandbox, which has no limits;
2. use memory that no limit counts;
3. write data into the kernel's keyring, where the worker of the next submission could read the data.
"""

import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping

# refused system calls: their numbers on x86_64 and on aarch64
REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
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
MACHINES = {
    "x86_64": (0, 0xC000003E),
    "aarch64": (1, 0xC00000B7),
}  # for each machine: the index of its numbers in REFUSED, and the kernel's number of the machine (AUDIT_ARCH)
LOAD, EQUAL, AT_LEAST, HAS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # operations in the kernel's filter language (BPF)
Instruction = tuple[int, int, int, int]  # operation; instructions to skip if its comparison is true; to skip if false; operand
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
NO_SUCH_CALL = 0x00050000 | errno.ENOSYS  # the answer of a kernel that does not have the call
CLONE3, CLONE_THREAD = 435, 0x10000  # the number of the call clone3; the flag with which clone starts a thread
X32 = 0x40000000  # the first number of the calls for programs with 32-bit pointers on x86_64


def call_filter(machine: str) -> bytes:
    """Return the filter as bytes for the kernel; no bytes if this file does not know the machine's system calls.

    Parameters
    ----------
    machine : str
        The name of the machine, such as ``"x86_64"``.
    """
    if machine not in MACHINES:
        return b""
    place, number = MACHINES[machine]
    return _assemble(number, {numbers[place]: REFUSE for numbers in REFUSED.values()})


def threads_filter(machine: str) -> bytes:
    """Return the filter for a worker that may start threads but no processes.

    Return no bytes if this file does not know the machine's system calls. The call ``clone`` starts a thread or a process, depending on
    a flag, which the filter checks. A filter cannot see the flags of ``clone3``. So the filter answers that the kernel does not have
    ``clone3``; programs then use ``clone``.
    """
    if machine not in MACHINES:
        return b""
    place, number = MACHINES[machine]
    of_processes = {57: REFUSE, 58: REFUSE} if machine == "x86_64" else {}  # fork and vfork, which exist only on x86_64
    only_threads = [
        (EQUAL, 0, 3, (56, 220)[place]),  # if the call is not clone, skip the check of its flags
        (LOAD, 0, 0, 16),  # load the low 32 bits of the flags
        (HAS, 1, 0, CLONE_THREAD),
        (RETURN, 0, 0, REFUSE),
    ]
    return _assemble(number, {CLONE3: NO_SUCH_CALL, **of_processes}, only_threads)


def _assemble(number: int, answers: Mapping[int, int], more: Iterable[Instruction] = ()) -> bytes:
    """Return a filter as bytes. It refuses calls for other machines, gives ``answers`` by the number of the call, and allows the rest."""
    instructions = [
        (LOAD, 0, 0, 4),  # load the machine for which the calling program was compiled
        (EQUAL, 1, 0, number),
        (RETURN, 0, 0, REFUSE),
        (LOAD, 0, 0, 0),  # load the number of the call
        (AT_LEAST, 0, 1, X32),
        (RETURN, 0, 0, REFUSE),
        *(each for call, answer in answers.items() for each in ((EQUAL, 0, 1, call), (RETURN, 0, 0, answer))),
        *more,
        (RETURN, 0, 0, ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *each) for each in instructions)


def filter_pipe() -> int | None:
    """Return the reading end of a pipe with the filter for bubblewrap; None if there is no filter for this machine."""
    program = call_filter(platform.machine())
    if not program:
        return None
    reading, writing = os.pipe()
    os.write(writing, program)  # does not block, because the filter fits into the buffer of a pipe
    os.close(writing)
    return reading
