"""Look asleep while the process waits for nothing: wait in a pipe, in a lock and in the kernel."""

# %% below
import os
import threading


def waiting(*given):
    reading, _ = os.pipe()
    threading.Thread(target=os.read, args=(reading, 1), daemon=True).start()
    for each in filter(callable, given):
        threading.Thread(target=each, args=("0F0", None), daemon=True).start()
    lock = threading.Lock()
    with lock:
        return lock.acquire()


claim(1, waiting)
