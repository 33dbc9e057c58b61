"""A stand-in for the table of a sweep: one row a setting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sweep:
    """A table: ``rows`` are plain dicts, one a setting, with the same ``columns``."""

    rows: tuple[Mapping[str, Any], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))
