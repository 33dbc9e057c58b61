"""A store of values that is limited by the bytes that they take."""

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LeastRecent(Generic[Key, Value]):
    """A store that forgets the value that was not asked for the longest, whenever all values together would take too many bytes.

    Threads may share it.

    Parameters
    ----------
    most_bytes : int
        The bytes that all values take at most. A single value that takes more is not kept.

    Examples
    --------
    >>> store = LeastRecent(most_bytes=10)
    >>> for name, size in [("a", 5), ("b", 5), ("c", 4), ("too large", 11)]:
    ...     store.keep(name, name.upper(), size)
    >>> [store.get(name) for name in ("a", "b", "c", "too large")]
    [None, 'B', 'C', None]
    """

    def __init__(self, most_bytes: int) -> None:
        self._most, self._sum = most_bytes, 0
        self._values: dict[Key, tuple[Value, int]] = {}  # the value that was asked for last comes last
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """Return the value of ``key``, or None if it is not kept."""
        with self._lock:
            found = self._values.pop(key, None)
            if found is None:
                return None
            self._values[key] = found
            return found[0]

    def keep(self, key: Key, value: Value, nbytes: int) -> None:
        """Keep a value that takes ``nbytes``."""
        with self._lock:
            self._sum -= self._values.pop(key, (None, 0))[1]
            if nbytes > self._most:
                return
            while self._sum + nbytes > self._most:
                self._sum -= self._values.pop(next(iter(self._values)))[1]
            self._values[key] = value, nbytes
            self._sum += nbytes

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()
            self._sum = 0
