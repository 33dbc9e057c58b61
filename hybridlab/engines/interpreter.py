"""Which calls let other threads run Python beside them, and which keep the interpreter to themselves."""

import threading
import time
from collections.abc import Callable
from itertools import pairwise

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError

TICK = 0.0005  # seconds between two looks at the clock


def longest_pause(call: Callable[[], object]) -> float:
    """Return the longest stretch in which no other thread ran Python while ``call`` ran, as a share of its time, 0 to 1.

    A second thread looks at the clock every half millisecond. A share near 0 says that the call let it, as sleeping and
    numpy's matrix products do; near 1 that it kept the interpreter to itself. The call must last a good part of a
    second, since the system and the interpreter take turns in slices of some milliseconds.

    >>> longest_pause(lambda: time.sleep(0.3)) < 0.5
    True
    """
    if not callable(call):
        raise HybridLabError(f"what is timed is a function without arguments, not {short_repr(call)}")
    ticks, done = [time.perf_counter()], threading.Event()

    def tick() -> None:
        while not done.wait(TICK):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick, name="clock", daemon=True)
    try:
        thread.start()
    except RuntimeError as why:
        message = f"longest_pause needs a second thread, which cannot be started ({why})"
        raise HybridLabError(f"{message}: a notebook that runs in a browser has none") from why
    start = time.perf_counter()
    try:
        call()
    finally:
        end = time.perf_counter()
        done.set()
        thread.join()
    inside = [start, *(tick for tick in ticks if start < tick < end), end]
    return max(after - before for before, after in pairwise(inside)) / (end - start)
