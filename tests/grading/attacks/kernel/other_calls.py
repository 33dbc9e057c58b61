"""Use calls of the kernel that few programs need."""

# %% below
import ctypes

libc = ctypes.CDLL(None, use_errno=True)

buffer = ctypes.create_string_buffer(512)
numbers = (425, 321, 298, 323, 280, 428, 429, 430, 432, 442, 175, 313, 246, 169, 167, 304, 310, 311)
for number in numbers:
    libc.syscall(number, buffer, 0, 0, 0, 0)
claim(1)
