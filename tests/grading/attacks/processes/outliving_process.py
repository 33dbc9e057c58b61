"""Leave a process behind that has left the session and its parents."""

# %% below
import os
import time


def outlive():
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    while True:
        time.sleep(1)


try:
    outlive()
except OSError:
    pass
claim(1)
