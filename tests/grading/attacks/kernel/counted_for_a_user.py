"""Use up what the kernel counts for all processes of a user: sizes of pipes, signals, watches."""

# %% below
import ctypes
import fcntl
import os
import select

libc = ctypes.CDLL(None, use_errno=True)
kept = []
try:
    while True:
        reading, writing = os.pipe()
        kept.append(writing)
        os.close(reading)
        fcntl.fcntl(writing, 1031, 2**20)
except OSError:
    pass
for _ in range(10_000):
    libc.syscall(129, os.getpid(), 40, ctypes.create_string_buffer(128))
os.closerange(60, 64)
try:
    while True:
        kept.append(select.epoll())
except OSError:
    pass
claim(1)
