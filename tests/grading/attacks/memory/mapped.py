"""Map memory in ways that are counted late: without a reserve, from a file with holes, and shared."""

# %% below
import mmap
import os

claim(1)
kept = []
with open("/tmp/holes", "wb") as file:
    try:
        os.truncate("/tmp/holes", 2**24)
    except OSError:
        pass
for flags in (0x22 | 0x4000, 0x21, 0x22 | 0x40000, 0x22 | 0x100, 0x22 | 0x2000):
    for _ in range(40):
        try:
            kept.append(mmap.mmap(-1, 2**26, flags=flags))
            kept[-1][::4096] = b"1" * (2**26 // 4096)
        except (OSError, ValueError, MemoryError):
            break
