"""Fill the disk."""

# %% below
import os

for name in range(300):
    try:
        with open(f"/tmp/{name}", "wb") as file:
            while file.write(b"1" * 2**20):
                pass
    except OSError:
        pass
    if name > 20:
        break
claim(os.statvfs("/tmp").f_blocks * 0)
