"""Make threads without end."""

# %% below
import threading
import time

claim(1)
for _ in range(200):
    try:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError:
        pass
