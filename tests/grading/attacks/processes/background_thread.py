"""Answer from a thread when the cell has ended."""

# %% above
import threading
import time


def work():
    while True:
        time.sleep(0.01)
        claim(1)


try:
    threading.Thread(target=work, daemon=True).start()
except RuntimeError:
    pass
