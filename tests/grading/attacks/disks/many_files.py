"""Make files without end, in folders within folders."""

# %% below
import os

claim(1)
for number in range(30_000):
    try:
        open(f"/tmp/{number}", "w").close()
    except OSError:
        break
try:
    for _ in range(500):
        os.mkdir("x")
        os.chdir("x")
except OSError:
    pass
