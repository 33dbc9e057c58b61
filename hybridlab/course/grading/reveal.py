"""What a student's copy of a lab leaves out, and how parts of it come back when a task has passed."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybridlab.checks import known_name
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.notebook import cell_text
from hybridlab.course.grading.specs import HAND_IN, HEADING, given_cell, sections
from hybridlab.course.tasks import TASKS
from hybridlab.errors import HybridLabError

GIVES_AWAY = {"solution", "reveals"}  # tags of cells that show the answer to a task
WITHOUT_CODE = "hide-input"  # the tag of a cell of which the lab shows only the output
FIGURE = "(a figure; the notebook shows it)"

Cell = Mapping[str, Any]


@dataclass(frozen=True)
class HeldBack:
    """The cells of a lab about the answer to a task, which a student's copy leaves out.

    Parameters
    ----------
    key : str
        The task, such as ``"lab11.t4"``.
    cells : tuple of dict
        The cells, with their outputs.
    before : tuple of dict
        The code cells that must run before them.
    """

    key: str
    cells: tuple[Cell, ...]
    before: tuple[Cell, ...]

    @property
    def text(self) -> str:
        """The cells as text for a terminal: Markdown, code, and printed outputs."""
        return "\n\n".join(part for cell in self.cells for part in _as_text(cell))


def revealed(key: str) -> HeldBack:
    r"""Return the cells about the answer to a task that a student's copy leaves out. Worked solutions are not among them.

    Parameters
    ----------
    key : str
        The task, such as ``"lab11.t4"``.

    Raises
    ------
    HybridLabError
        ``unknown-name``: there is no such task. ``nothing-to-reveal``: a copy leaves out nothing about its answer.

    Examples
    --------
    >>> revealed("lab02.t2").text[:40]
    '### Answer as a formula\n\nWith $F$ and $B'
    """
    lab = known_name(key, TASKS, "task")[:5]
    cells = json.loads(reference(lab).read_text(encoding="utf-8"))["cells"]
    found = held_back(cells)
    if key not in found:
        others = f"in this lab there is more about {', '.join(found)}" if found else "nor about another task of this lab"
        raise HybridLabError(f"a copy leaves out nothing about the answer to {key}, {others}", "nothing-to-reveal")
    places = found[key]
    return HeldBack(key, tuple(cells[place] for place in places), tuple(cells[place] for place in _needed(cells, places)))


def cells_left_out(cells: Sequence[Cell]) -> set[int]:
    """Return the indices of the cells that a student does not get.

    They are: (1) cells with a tag of ``GIVES_AWAY``; (2) sections *Solution*; (3) sections *Answer* with a cell of (1); (4) the first cell
    of a section of which no other cell remains.
    """
    tagged = {place for place, cell in enumerate(cells) if GIVES_AWAY & set(cell["metadata"].get("tags", ()))}
    gone = set(tagged)
    # inner sections first: when all of them are left out, only the first cell of the outer section remains
    for title, places in reversed(list(sections(cells))):
        whole = title.startswith("Solution") or (title.startswith("Answer") and tagged & set(places))
        # a cell with other text above its heading stays, because this text belongs to the section above
        alone = len(places) > 1 and gone.issuperset(places[1:]) and HEADING.match(cell_text(cells[places[0]]).strip())
        if whole or alone:
            gone |= set(places)
    return gone


def held_back(cells: Sequence[Cell]) -> dict[str, list[int]]:
    """Return, for each task, the indices of the left out cells that come back when this task has passed.

    They are all cells that are left out, except worked solutions and the headings above them. They belong to the nearest task above.
    """
    gone, found, task = cells_left_out(cells), dict[str, list[int]](), ""
    for place, cell in enumerate(cells):
        tags = cell["metadata"].get("tags", ())
        if "task" in tags:
            task = HAND_IN.findall(cell_text(cell))[-1]
        heading = HEADING.fullmatch(cell_text(cell).strip())
        if place in gone and "solution" not in tags and not (heading and heading[2].startswith("Solution")):
            found.setdefault(task, []).append(place)
    return found


def _needed(cells: Sequence[Cell], places: Iterable[int]) -> list[int]:
    """Return the indices of the code cells above that define names which the cells at ``places`` use, and of cells with imports only."""
    code = {place: given_cell(cell_text(cell), place) for place, cell in enumerate(cells) if cell["cell_type"] == "code"}
    own = [code[place] for place in places if place in code]
    wanted = {name for cell in own for name in cell.uses - cell.defines}
    needed = []
    for place, cell in sorted(code.items(), reverse=True):
        hidden = {"task", "reveals"} & set(cells[place]["metadata"].get("tags", ()))
        if own and place < own[0].place and not hidden and (cell.imports or cell.defines & wanted):
            needed.append(place)
            wanted = (wanted - cell.defines) | (cell.uses - cell.defines)
    return needed[::-1]


def _as_text(cell: Cell) -> Iterator[str]:
    """Yield the parts of a cell as text: its source, unless the lab hides it, and its outputs."""
    if cell["cell_type"] != "code" or WITHOUT_CODE not in cell["metadata"].get("tags", ()):
        yield cell_text(cell).strip()
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        yield FIGURE if "image/png" in data else "".join(output.get("text") or data.get("text/plain", "")).rstrip()
