"""The cells of a stored notebook, read as plain JSON, because an import of nbformat takes seconds."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from folds import ANSWERS, OPTIONAL

LABS = Path(__file__).resolve().parents[2] / "labs"
HEADING = re.compile(r"(#+) +(.+)")


@dataclass(frozen=True)
class Cell:
    """A cell: its kind ("code" or "markdown"), source and tags, and the stored outputs if it is a code cell.

    ``collapsed`` says that JupyterLab folds the section below the heading in this cell.
    """

    kind: str
    source: str
    tags: tuple[str, ...]
    outputs: tuple[dict[str, Any], ...]
    collapsed: bool = False

    def results(self) -> list[str]:
        """Return the text of each result, without what the cell printed. Feedback with a picture shows the picture, then the text."""
        return ["".join(each["data"]["text/plain"]) for each in self.outputs if each["output_type"] in ("execute_result", "display_data")]

    def heading(self) -> tuple[int, str] | None:
        """Return the level and the title of the first heading of the highest level in a markdown cell, as JupyterLab reads it."""
        text = re.sub(r"^(```|~~~).*?^\1", "", self.source, flags=re.DOTALL | re.MULTILINE) if self.kind == "markdown" else ""
        found = [match for match in map(HEADING.fullmatch, text.splitlines()) if match]
        return min(((len(match[1]), match[2].strip()) for match in found), key=lambda heading: heading[0], default=None)


@cache
def cells_of(path: Path) -> tuple[Cell, ...]:
    """Return the cells of a notebook in version 4 of the format, from top to bottom."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    return tuple(
        Cell(
            each["cell_type"],
            "".join(each["source"]),
            tuple(each["metadata"].get("tags", ())),
            tuple(each.get("outputs", ())),
            each["metadata"].get("jp-MarkdownHeadingCollapsed", False),
        )
        for each in notebook["cells"]
    )


def is_folded(title: str) -> bool:
    """Return whether a section with this title is folded: a worked solution, an answer or an optional part."""
    return bool(ANSWERS.match(title) or OPTIONAL.match(title))


def with_folds(cells: Iterable[Cell]) -> Iterator[tuple[Cell, tuple[str, ...]]]:
    """Yield each cell with the titles of the folded sections around it, the outermost first.

    A heading belongs to its own section. The section ends at the next heading of the same or of a higher level.
    """
    open_sections: list[tuple[int, str]] = []
    for cell in cells:
        if heading := cell.heading():
            open_sections = [each for each in open_sections if each[0] < heading[0]]
            if is_folded(heading[1]):
                open_sections.append(heading)
        yield cell, tuple(title for _, title in open_sections)
