"""Become another program, which replies in the place of the worker."""

# %% below
import os
import sys

claim(1)
os.execv(sys.executable, [sys.executable, "-c", "import os\nwhile True: os.write(3, b'1'); os.write(4, b'{}\\n')"])
