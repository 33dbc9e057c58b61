"""The worked solutions of the labs, taken from their cells tagged `solution`; and what a student finds before them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from hybridlab.tasks import Feedback, check

LABS = Path(__file__).resolve().parents[1] / "labs"
Call = tuple[str, Any, Feedback]  # key, answer, feedback


def cells_of(lab: str) -> list[NotebookNode]:
    """The cells of the notebook of a lab, such as "lab02"."""
    (path,) = LABS.glob(f"{lab}_*.ipynb")
    found: list[NotebookNode] = nbformat.read(path, as_version=4).cells
    return found


def is_solution(cell: NotebookNode) -> bool:
    return "solution" in cell.metadata.get("tags", [])


def handed_in(source: str, names: dict[str, Any] | None = None) -> Call:
    """What a cell hands to ``check``, which it does once; ``names`` are those it takes from the cells before it."""
    calls: list[Call] = []

    def recorded(key: str, answer: Any = None) -> Feedback:
        calls.append((key, answer, check(key, answer)))
        return calls[-1][2]

    exec(source, {**(names or {}), "check": recorded})  # noqa: S102 - a cell of our own lab
    (call,) = calls
    return call


def task_cells(lab: str) -> Iterator[tuple[NotebookNode, NotebookNode]]:
    """The cell in which a student answers and the cell after it, with the solution, task by task."""
    cells = cells_of(lab)
    for place, cell in enumerate(cells):
        if is_solution(cell):
            yield cells[place - 1], cell
