"""Ask the kernel not to end the process with its parent, and close all that is open."""

# %% below
import ctypes
import os

claim(1)
libc = ctypes.CDLL(None)
libc.prctl(1, 0, 0, 0, 0)
try:
    os.setsid()
except OSError:
    pass
os.closerange(0, 256)
while True:
    pass
