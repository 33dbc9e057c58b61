"""Write to all that is open: no JSON, lists within lists, and no end of a line."""

# %% below
import os

for number in range(3, 64):
    for text in (b"passed\n", b"[" * 10**5 + b"\n", b'{"id": 1}\n', b"9" * 5000 + b"\n", b"NaN\n", b"\xff\xfe\n"):
        try:
            os.write(number, text)
        except OSError:
            pass
