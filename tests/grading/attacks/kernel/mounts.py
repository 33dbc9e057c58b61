"""Mount the disks of the machine."""

# %% below
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)

for kind in (b"tmpfs", b"proc", b"sysfs", b"overlay"):
    for place in (b"/tmp", b"/", b"/packages"):
        libc.mount(kind, place, kind, 0, None)
libc.umount2(b"/tmp", 2)
libc.umount2(b"/usr/lib", 2)
libc.mount(None, b"/", None, 0x1020, None)
claim(repr(os.listdir("/")))
