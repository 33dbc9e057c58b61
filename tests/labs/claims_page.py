"""The page of published claims, run as the book runs it: all cells in order, with shared variables."""

import ast
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hybridlab.course.claims import Judged

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "book/claims.md").read_text(encoding="utf-8")
LAST = "from myst_nb import glue"


def cells() -> list[str]:
    """Return the code of every cell."""
    blocks = [block.split("\n```")[0].split("\n", 1)[1] for block in TEXT.split("```{code-cell}")[1:]]
    return [block.split("\n---\n")[-1].strip() for block in blocks]


@contextmanager
def inside(folder: str) -> Iterator[None]:
    """Run cells in the folder of their page, or in the folder of a reader's notebook."""
    before = Path.cwd()
    os.chdir(ROOT / folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_page(folder: str = "book") -> dict[str, Any]:
    """Run all cells except the last, and return their variables; ``tables`` has the tables that they show.

    The last cell is left out because it gives the summary to the book.
    """
    names: dict[str, Any] = {}
    tables: list[Judged] = []
    with inside(folder):
        for cell in cells():
            if cell.startswith(LAST):
                break
            exec(compile(cell, "book/claims.md", "exec"), names)  # noqa: S102 - a page of our own
            shown = ast.parse(cell).body[-1]
            if isinstance(shown, ast.Expr) and isinstance(shown.value, ast.Name) and isinstance(names[shown.value.id], Judged):
                tables.append(names[shown.value.id])
    return names | {"tables": tables}


def summed_up() -> list[str]:
    """Return the names of the tables that the last cell counts."""
    return re.findall(r"\w+", cells()[-1].split("count_verdicts(")[1].split(")")[0])
