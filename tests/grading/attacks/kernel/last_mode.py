"""Change how the kernel treats the process: its mode, its name, its dumps, its filter."""

# %% below
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
claim(1)
for option in (4, 8, 15, 24, 26, 28, 35, 36, 38, 41, 53, 0x59616D61):
    libc.prctl(option, 0, 0, 0, 0)
    libc.prctl(option, 1, 0, 0, 0)
libc.personality(0x0400000)
libc.prctl(22, 1, 0, 0, 0)
claim(2)
