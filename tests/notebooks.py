"""Read the cells of a stored notebook as plain JSON, because importing nbformat takes seconds."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

LABS = Path(__file__).resolve().parents[1] / "labs"


@dataclass(frozen=True)
class Cell:
    """A cell: its kind ("code" or "markdown"), source and tags, and the stored outputs if it is a code cell."""

    kind: str
    source: str
    tags: tuple[str, ...]
    outputs: tuple[dict[str, Any], ...]

    def results(self) -> list[str]:
        """Return the text of each result, without what the cell printed."""
        return ["".join(each["data"]["text/plain"]) for each in self.outputs if each["output_type"] == "execute_result"]


@cache
def cells_of(path: Path) -> tuple[Cell, ...]:
    """Return the cells of a notebook in version 4 of the format, from top to bottom."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    return tuple(
        Cell(each["cell_type"], "".join(each["source"]), tuple(each["metadata"].get("tags", ())), tuple(each.get("outputs", ())))
        for each in notebook["cells"]
    )
