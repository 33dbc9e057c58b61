"""The worked solutions of the labs, taken from their cells tagged `solution`, and the cells before them."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbformat import NotebookNode

from hybridlab import A100_80GB, REGISTRY, Costs, Transformer, build, formulas, hybrid_step, search, simulate
from hybridlab.collectives import Link
from hybridlab.published.zero_bubble import RUNS

LABS = Path(__file__).resolve().parents[1] / "labs"
# What the cells before a solution define and the solutions use.
NAMES: dict[str, Any] = {
    "np": np,
    "REGISTRY": REGISTRY,
    "Costs": Costs,
    "build": build,
    "combinations": combinations,
    "formulas": formulas,
    "hybrid_step": hybrid_step,
    "Link": Link,
    "simulate": simulate,
    "search": search,
    "A100_80GB": A100_80GB,
    "gpt": Transformer(layers=48, hidden=8192, heads=64),
    "RUNS": RUNS,
    "costs": Costs(forward=10, backward=20),
}


def cells_of(lab: str) -> list[NotebookNode]:
    """The cells of the notebook of a lab, such as "lab02"."""
    (path,) = LABS.glob(f"{lab}_*.ipynb")
    found: list[NotebookNode] = nbformat.read(path, as_version=4).cells
    return found


def is_solution(cell: NotebookNode) -> bool:
    return "solution" in cell.metadata.get("tags", [])


def task_cells(lab: str) -> Iterator[tuple[NotebookNode, NotebookNode]]:
    """The cell in which a student answers and the cell after it, with the solution, task by task."""
    cells = cells_of(lab)
    for place, cell in enumerate(cells):
        if is_solution(cell):
            yield cells[place - 1], cell


def handed_in(source: str) -> tuple[str, Any]:
    """The task's key and the answer that a cell hands to ``check``, which it does once."""
    calls: list[tuple[str, Any]] = []
    exec(source, {**NAMES, "check": lambda key, answer: calls.append((key, answer))})  # noqa: S102 - a cell of our own lab
    (call,) = calls
    return call


SOLUTIONS = dict(handed_in(solution.source) for path in sorted(LABS.glob("lab*.ipynb")) for _, solution in task_cells(path.name[:5]))
