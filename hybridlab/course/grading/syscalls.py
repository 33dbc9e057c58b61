"""A filter of system calls for workers. It closes what a sandbox leaves open although it hides files, network and other processes.

Without it a worker could take over the first process of its sandbox, which has no limits. It could hold memory that no limit counts. It
could leave notes in the keyring of the session, where the worker of the next submission finds them.
"""

import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping

# the number of each refused call on x86_64, and on aarch64
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
}  # the place of its numbers above, and the number by which the kernel knows it
LOAD, EQUAL, AT_LEAST, HAS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions of the kernel's filter
Instruction = tuple[int, int, int, int]  # what it does, how many to skip if it holds and if not, and its number
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
NO_SUCH_CALL = 0x00050000 | errno.ENOSYS  # as a kernel without this call answers
CLONE3, CLONE_THREAD = 435, 0x10000  # a call, and the flag of clone for a thread
X32 = 0x40000000  # from this number on, x86_64 has calls of programs with pointers of 32 bits


def call_filter(machine: str) -> bytes:
    """Return the filter as the kernel reads it; empty for a machine whose numbers are not known here.

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
    """Return the filter for a worker that may start threads but no processes. Empty for a machine whose numbers are not known here.

    A new thread and a new process are one call, ``clone``, which tells them apart by a flag. The flags of ``clone3`` cannot be seen by a
    filter, so it is answered as by a kernel without it; programs then use ``clone``.
    """
    if machine not in MACHINES:
        return b""
    place, number = MACHINES[machine]
    of_processes = {57: REFUSE, 58: REFUSE} if machine == "x86_64" else {}  # fork and vfork, which are other calls there
    only_threads = [
        (EQUAL, 0, 3, (56, 220)[place]),  # clone
        (LOAD, 0, 0, 16),  # the low half of its flags
        (HAS, 1, 0, CLONE_THREAD),
        (RETURN, 0, 0, REFUSE),
    ]
    return _assemble(number, {CLONE3: NO_SUCH_CALL, **of_processes}, only_threads)


def _assemble(number: int, answers: Mapping[int, int], more: Iterable[Instruction] = ()) -> bytes:
    """Return a filter that refuses all calls of other machines, and answers some calls by their number; other calls are allowed."""
    instructions = [
        (LOAD, 0, 0, 4),  # the machine that the caller takes this for
        (EQUAL, 1, 0, number),
        (RETURN, 0, 0, REFUSE),
        (LOAD, 0, 0, 0),  # the number of the call
        (AT_LEAST, 0, 1, X32),
        (RETURN, 0, 0, REFUSE),
        *(each for call, answer in answers.items() for each in ((EQUAL, 0, 1, call), (RETURN, 0, 0, answer))),
        *more,
        (RETURN, 0, 0, ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *each) for each in instructions)


def filter_pipe() -> int | None:
    """Return the end of a pipe from which bubblewrap reads the filter for this machine; None if there is no filter."""
    program = call_filter(platform.machine())
    if not program:
        return None
    reading, writing = os.pipe()
    os.write(writing, program)  # does not wait: a pipe holds more than this
    os.close(writing)
    return reading
