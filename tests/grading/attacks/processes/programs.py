"""Run programs of the machine."""

# %% below
import os
import subprocess
import sys

for command in (["sh", "-c", f"touch {WATCHED}/sh"], [sys.executable, "-c", "while True: pass"], ["curl", "http://127.0.0.1:" + PORT]):
    try:
        subprocess.run(command, timeout=0.3)
    except (OSError, subprocess.SubprocessError):
        pass
    try:
        os.posix_spawnp(command[0], command, {})
    except OSError:
        pass
claim(1)
