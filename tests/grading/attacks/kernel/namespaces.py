"""Make a user namespace, and become root in it."""

# %% below
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)

for flags in (0x10000000, 0x10020000, 0x20000000, 0x40000000, 0x00020000):
    libc.unshare(flags)
libc.setns(0, 0)
claim(str(os.getuid()), lambda *given: os.listdir("/"))
