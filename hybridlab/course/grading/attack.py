"""What an attack is: a submission of which one task is solved, and more points are wanted for the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.specs import LabSpec

Cells = Callable[[LabSpec, Sequence[CodeCell]], list[CodeCell]]

# the first lines of a cell: what is not solved, and a function that hands in one answer for all of it
CLAIMS = """\
others = {others}
PORT, WATCHED = "{port}", "{watched}"
def claim(answer, function=None):
    for key, kind in others.items():
        check(key, (function or (lambda *given: answer)) if kind == "build" else answer)
"""
PORT, WATCHED = "__PORT__", "__WATCHED__"  # a test puts a port of its own, and a folder that everyone can write to, in their place


@dataclass(frozen=True)
class Attack:
    """An attack on the grader.

    Parameters
    ----------
    name : str
        A short name, such as ``"patched-checker"``.
    aim : str
        What it tries.
    cells : callable
        Takes what a lab asks for, and the code cells of a copy in which one task is solved. Returns the cells that are handed in.
    """

    name: str
    aim: str
    cells: Cells


def last(source: str) -> Cells:
    """Return what puts an attack below the honest cells."""
    return lambda spec, honest: [*honest, _with_claims(source, spec, honest)]


def first(source: str) -> Cells:
    """Return what puts an attack above the honest cells."""
    return lambda spec, honest: [_with_claims(source, spec, honest), *honest]


def in_turn_with(*sources: str) -> Cells:
    """Return what puts several cells below the honest ones."""
    return lambda spec, honest: [*honest, *(_with_claims(source, spec, honest) for source in sources)]


def instead(change: Callable[[LabSpec, str, CodeCell], CodeCell | None]) -> Cells:
    """Return what changes each cell that is not solved, or deletes it."""

    def cells(spec: LabSpec, honest: Sequence[CodeCell]) -> list[CodeCell]:
        open_tasks = unsolved(spec, honest)
        changed = (change(spec, _task_of(spec, cell), cell) if _task_of(spec, cell) in open_tasks else cell for cell in honest)
        return [cell for cell in changed if cell is not None]

    return cells


def unsolved(spec: LabSpec, honest: Sequence[CodeCell]) -> Mapping[str, str]:
    """Return the kinds of the tasks whose cells are still those of the copy, by their keys."""
    stubs = {cell.source for cell in honest}
    return MappingProxyType({task.key: task.kind for task in spec.tasks if spec.stubs[task.key] in stubs})


def placed(cells: Sequence[CodeCell], port: int, watched: str) -> list[CodeCell]:
    """Return cells in which a port and a folder stand for their placeholders."""
    return [replace(cell, source=cell.source.replace(PORT, str(port)).replace(WATCHED, watched)) for cell in cells]


def solved(spec: LabSpec, honest: Sequence[CodeCell]) -> CodeCell:
    """Return the first cell that is solved."""
    stubs = set(spec.stubs.values())
    return next(cell for cell in honest if cell.source not in stubs and spec.keys_in(cell))


def _with_claims(source: str, spec: LabSpec, honest: Sequence[CodeCell]) -> CodeCell:
    claims = CLAIMS.replace("{others}", repr(dict(unsolved(spec, honest)))).replace("{port}", PORT).replace("{watched}", WATCHED)
    return CodeCell(claims + source.strip("\n") + "\n")


def _task_of(spec: LabSpec, cell: CodeCell) -> str:
    return next(iter(spec.keys_in(cell)), "")
