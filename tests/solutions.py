"""The worked solutions of the labs, taken from their cells tagged `solution`, and the cells before them."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from notebooks import LABS, Cell, cells_of

from hybridlab import A100_80GB, REGISTRY, Costs, Transformer, build, formulas, hybrid_step, search, simulate
from hybridlab.collectives import Link
from hybridlab.course.published.zero_bubble import RUNS

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


def lab_cells(lab: str) -> tuple[Cell, ...]:
    """The cells of the notebook of a lab, such as "lab02"."""
    (path,) = LABS.glob(f"{lab}_*.ipynb")
    return cells_of(path)


def is_solution(cell: Cell) -> bool:
    return "solution" in cell.tags


def task_cells(lab: str) -> Iterator[tuple[Cell, Cell]]:
    """The cell in which a student answers and the cell after it, with the solution, task by task."""
    yield from (pair for pair in pairwise(lab_cells(lab)) if is_solution(pair[1]))


def handed_in(source: str) -> tuple[str, Any]:
    """The task's key and the answer in a cell's only call of ``check``."""
    calls: list[tuple[str, Any]] = []
    exec(source, {**NAMES, "check": lambda key, answer: calls.append((key, answer))})  # noqa: S102 - a cell of our own lab
    (call,) = calls
    return call


@cache
def solutions_of(lab: str) -> dict[str, Any]:
    """The answers that the solutions of a lab hand in, by the keys of their tasks."""
    return dict(handed_in(solution.source) for _, solution in task_cells(lab))


@cache
def solutions() -> dict[str, Any]:
    """The answers of all labs, in the order of the labs."""
    return {key: answer for path in sorted(LABS.glob("lab*.ipynb")) for key, answer in solutions_of(path.name[:5]).items()}
