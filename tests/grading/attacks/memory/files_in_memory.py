"""Take memory through files without a name, and through pipes."""

# %% below
import os

kept = []
for _ in range(200):
    try:
        kept.append(os.memfd_create("x"))
        while True:
            os.write(kept[-1], b"1" * 2**20)
    except OSError:
        pass
claim(len(kept) * 0)
