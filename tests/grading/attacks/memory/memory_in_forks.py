"""Take 3 GB in several processes."""

# %% below
import os

for _ in range(6):
    try:
        if os.fork() == 0:
            x = bytearray(500 * 2**20)
            while True:
                pass
    except OSError:
        pass
claim(1)
