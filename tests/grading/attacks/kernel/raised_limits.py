"""Raise the limits again."""

# %% below
import resource

for name in ("AS", "NPROC", "FSIZE", "CPU", "NOFILE"):
    number = getattr(resource, "RLIMIT_" + name)
    for most in ((-1, -1), (2**40, 2**40), (10, -1)):
        try:
            resource.setrlimit(number, most)
        except (OSError, ValueError):
            pass
try:
    import os

    os.fork()
except OSError:
    pass
claim(1)
