"""A measurement of whether a function call lets other threads run at the same time."""

import threading
import time
from collections.abc import Callable
from itertools import pairwise

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError

TICK = 0.0005  # seconds between two readings of time.perf_counter


def longest_pause(call: Callable[[], object]) -> float:
    """Return the longest time in which other threads could not run Python during ``call``, divided by the duration of the call.

    A second thread reads the clock every half millisecond. A result near 0 means that the second thread could run during the call. Sleeping
    and numpy's matrix products give results near 0. A result near 1 means that the call did not release the interpreter lock (GIL).

    Parameters
    ----------
    call : callable
        A function without arguments. The call should last some tenths of a second, because the system and the interpreter switch threads
        only every few milliseconds.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    HybridLabError
        ``call`` cannot be called, or a second thread cannot be started. Errors that ``call`` raises reach the caller unchanged.

    Examples
    --------
    >>> longest_pause(lambda: time.sleep(1)) < 0.5
    True
    """
    if not callable(call):
        raise HybridLabError(f"longest_pause takes a function without arguments, not {short_repr(call)}", "wrong-type")
    ticks, done = [time.perf_counter()], threading.Event()

    def tick() -> None:
        while not done.wait(TICK):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick, name="clock", daemon=True)
    try:
        thread.start()
    except RuntimeError as why:
        failed = f"longest_pause needs a second thread, which cannot be started ({why})"
        raise HybridLabError(f"{failed}: Python in a browser has no threads", "no-threads") from why
    start = time.perf_counter()
    try:
        call()
    finally:
        end = time.perf_counter()
        done.set()
        thread.join()
    inside = [start, *(tick for tick in ticks if start < tick < end), end]  # without ticks, the whole call is one pause
    return max(after - before for before, after in pairwise(inside)) / (end - start)
