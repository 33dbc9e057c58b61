"""A store that holds the most recently used values, up to a limit in bytes."""

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class RecentlyUsed(Generic[Key, Value]):
    """A store with a limit in bytes. To stay below the limit, the store deletes the values that have not been used for the longest time.

    Several threads can use the same store.

    Parameters
    ----------
    most_bytes : int
        The limit for all values together. A single value above the limit is not stored.

    Examples
    --------
    >>> store = RecentlyUsed(most_bytes=10)
    >>> for name, size in [("a", 5), ("b", 5), ("c", 4), ("too large", 11)]:
    ...     store.keep(name, name.upper(), size)
    >>> [store.get(name) for name in ("a", "b", "c", "too large")]
    [None, 'B', 'C', None]
    """

    def __init__(self, most_bytes: int) -> None:
        self._most, self._sum = most_bytes, 0
        self._values: dict[Key, tuple[Value, int]] = {}  # each value and its bytes; the most recently used value comes last
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """Return the value of ``key``, or None if it is not in the store."""
        with self._lock:
            found = self._values.pop(key, None)
            if found is None:
                return None
            self._values[key] = found  # insert it again, so that it comes last
            return found[0]

    def keep(self, key: Key, value: Value, nbytes: int) -> None:
        """Store a value that takes ``nbytes``. Delete old values until there is room for the new value."""
        with self._lock:
            self._sum -= self._values.pop(key, (None, 0))[1]
            if nbytes > self._most:
                return
            while self._sum + nbytes > self._most:
                self._sum -= self._values.pop(next(iter(self._values)))[1]  # the first value has not been used for the longest time
            self._values[key] = value, nbytes
            self._sum += nbytes

    def clear(self) -> None:
        """Delete all values."""
        with self._lock:
            self._values.clear()
            self._sum = 0
