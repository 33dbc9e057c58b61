"""The worked solutions of the labs, from their cells with the tag `solution`. The names that these cells need are defined here."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import combinations
from threading import Condition
from typing import Any

import numpy as np
import pytest
from notebooks import LABS, Cell, cells_of

from hybridlab import A100_80GB, REGISTRY, Costs, Transformer, WireFormat, build, formulas, hybrid_step, published, search, simulate
from hybridlab.collectives import Link, ring_all_reduce
from hybridlab.course.published.zero_bubble import RUNS
from hybridlab.course.tasks import TASKS

NAMES_OF_LABS = sorted(path.name[:5] for path in LABS.glob("lab*.ipynb"))
each_lab = pytest.mark.parametrize("lab", NAMES_OF_LABS)


def _encoded(values: Any, block: int) -> tuple[Any, Any]:
    packet = WireFormat("INT8", block=block).encode(values)
    return packet.codes, packet.scales


# Cells before a solution define these names, and the solutions use them.
NAMES: dict[str, Any] = {
    "np": np,
    "Condition": Condition,
    "ThreadPoolExecutor": ThreadPoolExecutor,
    "REGISTRY": REGISTRY,
    "Costs": Costs,
    "build": build,
    "combinations": combinations,
    "formulas": formulas,
    "hybrid_step": hybrid_step,
    "Link": Link,
    "simulate": simulate,
    "published": published,
    "search": search,
    "A100_80GB": A100_80GB,
    "nmse": lambda found, true: np.mean((found - true) ** 2) / np.mean(true**2),
    "ring_all_reduce": ring_all_reduce,
    "wire": WireFormat("INT8", block=256),
    "my_encode": _encoded,
    "my_decode": lambda codes, scales, block: codes * np.repeat(scales.astype(float), block)[: len(codes)],
    "gpt": Transformer(layers=48, hidden=8192, heads=64),
    "RUNS": RUNS,
    "costs": Costs(forward=10, backward=20),
}


def given_code(lab: str, name: str) -> str:
    """Return the cell of a lab that gives a function to students."""
    return next(cell.source for cell in lab_cells(lab) if cell.source.startswith(f"def {name}("))


def lab_cells(lab: str) -> tuple[Cell, ...]:
    """Return the cells of a lab's notebook; the lab is named like "lab02"."""
    (path,) = LABS.glob(f"{lab}_*.ipynb")
    return cells_of(path)


def tasks_of(lab: str) -> list[str]:
    """Return the keys of a lab's tasks, in their order."""
    return [key for key in TASKS if key.startswith(f"{lab}.")]


def is_solution(cell: Cell) -> bool:
    return "solution" in cell.tags


def task_cells(lab: str) -> Iterator[tuple[Cell, Cell]]:
    """Yield two cells for each solution: the last cell above it in which a student answers, and the solution itself."""
    answer = None
    for cell in lab_cells(lab):
        if "task" in cell.tags:
            answer = cell
        elif is_solution(cell):
            assert answer, f"a solution stands above the first task:\n{cell.source}"
            yield answer, cell


for _lab, _name in (("lab08", "in_threads"), ("lab09", "all_reduce")):
    exec(given_code(_lab, _name), NAMES)  # noqa: S102 - a cell of our own lab


def handed_in(source: str) -> tuple[str, Any]:
    """Run a cell, and return the task's key and the answer from its only call of ``check``."""
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
    return {key: answer for lab in NAMES_OF_LABS for key, answer in solutions_of(lab).items()}
