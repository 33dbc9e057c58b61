"""Attacks on the grader: submissions in which one task is solved, and which try to get points for the others, too.

Each file in the folder ``attacks`` is one attack, and the name of its folder says what it attacks. The file begins with its aim. Then come
its cells. The line above a cell says where it is put:

- ``# %% above``: above the honest cells.
- ``# %% below``: below them.
- ``# %% instead``: nowhere. Its code runs in this process, and changes the list ``cells`` that is handed in.

A cell can use the names of ``FIRST_LINES`` and all that the cells above it define. An attack has failed if the marks are exactly those of
the solved task. Never run a file: only the sandbox of the grader protects a machine from it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.specs import LabSpec

PLACE = re.compile(r"^# %% (above|below|instead)\n", flags=re.MULTILINE)
FIRST_LINES = """\
others = {others}
PORT, WATCHED = "{port}", "{watched}"
def claim(answer, function=None):
    for key, kind in others.items():
        check(key, (function or (lambda *given: answer)) if kind == "build" else answer)
"""  # of each cell: the kinds of unsolved tasks, a port of this machine, a folder for everyone, and a function that answers all tasks


@dataclass(frozen=True)
class Attack:
    """An attack on the grader.

    Parameters
    ----------
    on : str
        What it attacks: the name of its folder.
    name : str
        A short name, such as ``"patched-checker"``.
    placed : tuple of (str, str)
        Where each cell is put, and its code.
    """

    on: str
    name: str
    placed: tuple[tuple[str, str], ...]

    def cells(self, spec: LabSpec, honest: Sequence[CodeCell], port: int = 9, watched: str = "/nowhere") -> list[CodeCell]:
        """Return the cells that are handed in.

        Parameters
        ----------
        spec : LabSpec
            What a lab asks for.
        honest : sequence of CodeCell
            The answer cells of a copy in which one task is solved.
        port : int
            A port of this machine that an attack may try to reach.
        watched : str
            A folder that an attack may try to reach.
        """
        sources = {cell.source for cell in honest}
        others = {task.key: task.kind for task in spec.tasks if spec.stubs[task.key] in sources}
        first_lines = FIRST_LINES.format(others=others, port=port, watched=watched)
        cells = list(honest)
        for place, code in self.placed:
            if place == "instead":
                names: dict[str, Any] = {"cells": cells, "others": others, "first_lines": first_lines, "CodeCell": CodeCell}
                exec(code, names)  # noqa: S102 - a file of these tests
                cells = names["cells"]
            else:
                cell = CodeCell(first_lines + code)
                cells = [cell, *cells] if place == "above" else [*cells, cell]
        return cells


def read_attack(path: Path) -> Attack:
    """Return the attack in a file."""
    _, *parts = PLACE.split(path.read_text(encoding="utf-8"))
    return Attack(path.parent.name, path.stem.replace("_", "-"), tuple(zip(parts[::2], parts[1::2], strict=True)))


ATTACKS: Mapping[str, Attack] = MappingProxyType(
    {attack.name: attack for attack in map(read_attack, sorted(Path(__file__).with_name("attacks").glob("*/*.py")))}
)
