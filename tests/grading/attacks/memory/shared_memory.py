"""Take memory that no process owns."""

# %% below
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
for _ in range(20):
    number = libc.shmget(0, 200 * 2**20, 0o1600)
    if number < 0:
        break
    place = libc.shmat(number, None, 0)
    ctypes.memset(place, 1, 200 * 2**20)
    libc.shmdt(ctypes.c_void_p(place))
claim(1)
