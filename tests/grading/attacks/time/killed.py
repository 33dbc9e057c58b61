"""Send signals to all that can be reached."""

# %% below
import os
import signal

claim(1)
for process in (1, 0, -1, os.getppid(), -os.getpgid(0)):
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(process, number)
        except OSError:
            pass
