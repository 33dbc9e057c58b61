"""Take the worked solutions of the labs from their cells tagged `solution`, with the cells that come before them."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from notebooks import LABS, Cell, cells_of

from hybridlab import A100_80GB, REGISTRY, Costs, Transformer, build, formulas, hybrid_step, search, simulate
from hybridlab.collectives import Link
from hybridlab.course.published.zero_bubble import RUNS

# Cells before a solution define these names, and the solutions use them.
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


def lab_cells(lab: str) -> tuple[Cell, ...]:
    """Return the cells of a lab's notebook; the lab is named like "lab02"."""
    (path,) = LABS.glob(f"{lab}_*.ipynb")
    return cells_of(path)


def is_solution(cell: Cell) -> bool:
    return "solution" in cell.tags


def task_cells(lab: str) -> Iterator[tuple[Cell, Cell]]:
    """Return two cells for each task: the one in which a student answers, and the next one, which has the solution."""
    yield from (pair for pair in pairwise(lab_cells(lab)) if is_solution(pair[1]))


def handed_in(source: str) -> tuple[str, Any]:
    """Return the task's key and the answer from the only call of ``check`` in a cell."""
    calls: list[tuple[str, Any]] = []
    exec(source, {**NAMES, "check": lambda key, answer: calls.append((key, answer))})  # noqa: S102 - a cell of our own lab
    (call,) = calls
    return call


@cache
def solutions_of(lab: str) -> dict[str, Any]:
    """Return the answers that the solutions of a lab give to ``check``, by the keys of their tasks."""
    return dict(handed_in(solution.source) for _, solution in task_cells(lab))


@cache
def solutions() -> dict[str, Any]:
    """Return the answers of all labs, in the order of the labs."""
    return {key: answer for path in sorted(LABS.glob("lab*.ipynb")) for key, answer in solutions_of(path.name[:5]).items()}
