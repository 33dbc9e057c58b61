"""The page book/torch.md for tests: the names that its cells define, without torch."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

BOOK = Path(__file__).resolve().parents[2] / "book"
TEXT = (BOOK / "torch.md").read_text(encoding="utf-8")


def cells() -> dict[str, Any]:
    """Run every cell of the page in turn and return the names that they define."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in re.findall(r"```\{code-cell\} python3\n(?:---\n.*?\n---\n)?(.*?)```", TEXT, re.DOTALL):
            exec(compile(cell, "torch.md", "exec"), names)  # noqa: S102 - our own page
    return names
