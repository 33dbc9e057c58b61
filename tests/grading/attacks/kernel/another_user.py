"""Become root, or leave the folder that is the root."""

# %% below
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)

calls = [(os.setuid, 0), (os.setgid, 0), (os.setresuid, 0, 0, 0), (os.setgroups, [0]), (os.chroot, "/tmp")]
for call, *given in calls:
    try:
        call(*given)
    except OSError:
        pass
claim(str(os.getuid()))
