"""Print 1 GB."""

# %% below
import os
import sys

text = "1" * 2**20
for _ in range(1000):
    os.write(1, text.encode())
for _ in range(100):
    print(text)
    sys.stderr.write(text)
claim(1)
