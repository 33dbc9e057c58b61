"""A stand-in for the table of a sweep, until that lands."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sweep:
    """A table: the names of its columns, and a tuple of values for each row."""

    columns: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows, each a dict."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.values]
