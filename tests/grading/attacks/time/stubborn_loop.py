"""Swallow every signal and every exception."""

# %% below
import signal
import time

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass


def stubborn(*given):
    while True:
        try:
            while True:
                time.sleep(0.01)
        except BaseException:
            continue
        finally:
            continue


claim(1)
stubborn()
