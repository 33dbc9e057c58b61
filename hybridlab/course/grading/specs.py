"""The tasks and cells of a lab, as its own notebook defines them: given cells, answer cells, solutions, and the calls that hand in."""

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hybridlab.course.grading.notebook import CodeCell, cell_text
from hybridlab.course.tasks import TASKS, Task

# a call of check; the group is the key of the task
HAND_IN = re.compile(r"""\bcheck\(\s*["']([\w.]+)["']""")
HEADING = re.compile(r"(#+) +(.+)")
# a code block in Markdown; a line with # in such a block is not a heading
FENCED = re.compile(r"^(```|~~~).*?^\1", flags=re.DOTALL | re.MULTILINE)
OPTIONAL = re.compile(r"Optional\b")  # the beginning of the title of a section whose tasks are for bonus points


@dataclass(frozen=True)
class GivenCell:
    """A code cell of the lab that is not for an answer: students get it with its code.

    Parameters
    ----------
    source : str
        The code of the cell.
    defines, uses : frozenset of str
        The names that the cell assigns, defines or imports, and the names that it reads.
    imports : bool
        Whether the cell has only imports.
    place : int
        The index of the cell among the code cells of the lab.
    """

    source: str
    defines: frozenset[str]
    uses: frozenset[str]
    imports: bool
    place: int


@dataclass(frozen=True)
class LabSpec:
    """The tasks and cells of a lab.

    Parameters
    ----------
    lab : str
        The lab, such as ``"lab02"``.
    title : str
        The title of the lab.
    tasks : tuple of Task
        The tasks, in the order of the lab.
    given : tuple of GivenCell
        The given code cells, in the order of the lab, without cells that reveal an answer.
    hand_ins : mapping of str to str
        For each task, the statement that hands in the answer, such as ``check("lab02.t2", my_makespan)``.
    stubs : mapping of str to str
        For each task, the code of the answer cell before a student has changed it.
    solutions : mapping of str to str
        For each task, the code of the worked solution.
    places : mapping of str to int
        For each task, the index of the answer cell among the code cells of the lab.
    bonus : frozenset of str
        The tasks in optional sections. Their points are bonus points: they are no part of the points that a lab is out of.
    """

    lab: str
    title: str
    tasks: tuple[Task, ...]
    given: tuple[GivenCell, ...]
    hand_ins: Mapping[str, str]
    stubs: Mapping[str, str]
    solutions: Mapping[str, str]
    places: Mapping[str, int]
    bonus: frozenset[str] = frozenset()

    @property
    def out_of(self) -> int:
        """The points of all tasks that are not optional."""
        return sum(task.points for task in self.tasks if task.key not in self.bonus)

    @property
    def imports(self) -> tuple[str, ...]:
        """The code of the given cells with imports only. They run before all other cells, because a student can have deleted them."""
        return tuple(cell.source for cell in self.given if cell.imports)

    def gives(self, source: str) -> bool:
        """Return whether ``source`` is the unchanged code of a given cell."""
        return _bare(source) in self._given_code

    @cached_property
    def _given_code(self) -> frozenset[str]:
        return frozenset(_bare(cell.source) for cell in self.given)

    def keys_in(self, cell: CodeCell) -> tuple[str, ...]:
        """Return the keys of the tasks that a cell answers: the task in its metadata, and the tasks in its calls of check."""
        keys = dict.fromkeys([cell.task, *HAND_IN.findall(cell.source)])
        return tuple(key for key in keys if key in self.stubs)

    def providers(self, name: str, keys: Sequence[str]) -> tuple[str, ...]:
        """Return the given cells that define a name, in the order in which they must run. All of them stand above the tasks ``keys``."""
        # a cell below the task can give another value to the name
        before = max((self.places[key] for key in keys if key in self.places), default=math.inf)
        wanted, needed = {name}, list[GivenCell]()
        for cell in reversed(self.given):  # from the bottom, because the cells above define the names that a needed cell uses
            if cell.place < before and cell.defines & wanted and not cell.imports:
                needed.append(cell)
                wanted |= cell.uses
        return tuple(cell.source for cell in reversed(needed))


def spec_of(path: Path) -> LabSpec:
    """Return the tasks and cells of a lab.

    Parameters
    ----------
    path : Path
        The lab's own notebook, with its solutions.
    """
    lab = path.name[:5]  # "lab02" from "lab02_one_f_one_b.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    title = _source(cells[0]).splitlines()[0].lstrip("# ")
    code = [(_source(cell), cell["metadata"].get("tags", [])) for cell in cells if cell["cell_type"] == "code"]
    stubs: dict[str, str] = {}
    solutions: dict[str, str] = {}
    places: dict[str, int] = {}
    optional = {place for title, section in sections(cells) if OPTIONAL.match(title) for place in section}
    for place, (source, tags) in enumerate(code):
        cells_of_tasks = stubs if "task" in tags else solutions if "solution" in tags else {}
        cells_of_tasks.update(dict.fromkeys(HAND_IN.findall(source), source))
        places.update(dict.fromkeys(HAND_IN.findall(source) if cells_of_tasks is stubs else [], place))
    return LabSpec(
        lab,
        title,
        tuple(TASKS[key] for key in stubs),
        tuple(given_cell(source, place) for place, (source, tags) in enumerate(code) if not {"task", "solution", "reveals"} & set(tags)),
        {key: _hand_in(source) for key, source in stubs.items()},
        stubs,
        solutions,
        places,
        frozenset(key for place in optional for key in HAND_IN.findall(_source(cells[place])) if key in stubs),
    )


def sections(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, range]]:
    """Yield the title of each section and the indices of its cells. As in JupyterLab, the highest heading of a cell counts."""
    headings: list[tuple[int, int, str]] = []
    for place, cell in enumerate(cells):
        if cell["cell_type"] == "markdown":
            found = [match for match in map(HEADING.fullmatch, FENCED.sub("", cell_text(cell)).splitlines()) if match]
            headings += [(place, *min(((len(each[1]), each[2]) for each in found), key=lambda each: each[0]))] if found else []
    for number, (place, level, title) in enumerate(headings):
        end = next((later for later, other, _ in headings[number + 1 :] if other <= level), len(cells))
        yield title, range(place, end)


def _source(cell: Mapping[str, Any]) -> str:
    return "".join(cell["source"])


def _bare(source: str) -> str:
    """Return the code of a cell without blanks at the ends of lines, and without empty lines around the code. Editors change these."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def _hand_in(source: str) -> str:
    """Return the last statement of an answer cell, which hands in the answer."""
    last = ast.parse(source).body[-1]
    return ast.unparse(last)


def given_cell(source: str, place: int) -> GivenCell:
    """Return a given cell with the names that it defines and uses. ``place`` is its index.

    Names inside functions of the cell count, too. So sometimes a cell runs although it is not needed, which does no harm.
    """
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names}
    named = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assigned = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return GivenCell(
        source,
        frozenset(imported | named | assigned),
        frozenset(name.id for name in names if isinstance(name.ctx, ast.Load)),
        all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body),
        place,
    )
