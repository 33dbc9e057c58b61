"""Talk to another submission through marks on files that both see: locks, leases, notices, times."""

# %% below
import ctypes
import fcntl
import os

import numpy

libc = ctypes.CDLL(None, use_errno=True)
done = []
for path in (numpy.__file__, os.__file__, "/packages", "/dev/null"):
    number = os.open(path, os.O_RDONLY)
    for deed in (
        lambda: fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB),
        lambda: fcntl.lockf(number, fcntl.LOCK_SH | fcntl.LOCK_NB),
        lambda: fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_RDLCK),
        lambda: fcntl.fcntl(number, fcntl.F_NOTIFY, fcntl.DN_ACCESS),
        lambda: os.utime(path),
        lambda: os.setxattr(path, "user.x", b"MARKER"),
        lambda: os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED),
        lambda: os.preadv(number, [bytearray(9)], 0, os.RWF_NOWAIT),
    ):
        try:
            deed()
            done.append("MARKER")
        except OSError:
            pass
    if libc.inotify_init1(0) >= 0:
        done.append("MARKER")
if done:
    raise ValueError(done)
claim(1)
