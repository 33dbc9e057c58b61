"""A store of the values that were used last, as many as fit in a number of bytes."""

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class RecentlyUsed(Generic[Key, Value]):
    """A store that forgets the least recently used values when all values together would take too many bytes.

    Several threads can use the same store.

    Parameters
    ----------
    most_bytes : int
        The bytes that all values take at most. A single value that takes more is not stored.

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
        self._values: dict[Key, tuple[Value, int]] = {}  # the value that was used last comes last
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """Return the value of ``key``, or None if it is not in the store."""
        with self._lock:
            found = self._values.pop(key, None)
            if found is None:
                return None
            self._values[key] = found  # now it is the last one
            return found[0]

    def keep(self, key: Key, value: Value, nbytes: int) -> None:
        """Store a value that takes ``nbytes``, and forget old values until there is room for it."""
        with self._lock:
            self._sum -= self._values.pop(key, (None, 0))[1]
            if nbytes > self._most:
                return
            while self._sum + nbytes > self._most:
                self._sum -= self._values.pop(next(iter(self._values)))[1]  # the first one has not been used for the longest time
            self._values[key] = value, nbytes
            self._sum += nbytes

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()
            self._sum = 0
