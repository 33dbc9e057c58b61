"""Test that worked solutions, answers and optional parts of the labs are folded, in JupyterLab and on the site."""

import re
from itertools import pairwise
from pathlib import Path

from cases import in_turn
from notebooks import LABS, Cell, cells_of, is_folded, with_folds

all_labs = in_turn("path", sorted(LABS.glob("*.ipynb")))


def cell(source: str, kind: str = "markdown", collapsed: bool = False) -> Cell:
    return Cell(kind, source, (), (), collapsed)


def faults(cells: list[Cell]) -> list[str]:
    """Return a sentence for every section that JupyterLab or the site would fold in a wrong way."""
    found = []
    around: tuple[str, ...] = ()
    for each, folds in with_folds(cells):
        heading = each.heading()
        first = each.source.strip().splitlines()[:1]
        if each.collapsed and not (heading and is_folded(heading[1])):
            found.append(f"folded, but its title does not begin with Solution, Answer or Optional: {first}")
        if heading and is_folded(heading[1]):
            if not each.collapsed:
                found.append(f"not folded in JupyterLab; its cell lacks the metadata: {first}")
            if each.source.strip() != f"{'#' * heading[0]} {heading[1]}":
                found.append(f"the cell of a folded heading holds this heading alone: {first}")
        elif folds[: len(around)] != around and not each.source.lstrip().startswith("#"):
            found.append(f"the cell after a folded section begins with a heading: {first}")
        around = folds
    return found


def jumps(cells: list[Cell]) -> list[str]:
    """Return every heading that is more than one level below the heading before it. The book refuses it."""
    text = "\n".join(re.sub(r"^(```|~~~).*?^\1", "", each.source, flags=re.S | re.M) for each in cells if each.kind == "markdown")
    headings = re.findall(r"^(#+) .*", text, flags=re.M)
    return [f"{later} after {earlier}" for earlier, later in pairwise(headings) if len(later) > len(earlier) + 1]


@all_labs
def test_headings_go_down_one_level_at_a_time(path: Path) -> None:
    assert jumps(list(cells_of(path))) == []


def test_a_heading_that_jumps_is_found() -> None:
    assert jumps([cell("# Lab\n\n## 2. Next\n\n```\n#### no heading\n```"), cell("#### Answer", collapsed=True)]) == ["#### after ##"]


@all_labs
def test_a_folded_section_is_folded_in_jupyterlab_and_ends_at_a_heading(path: Path) -> None:
    assert faults(list(cells_of(path))) == []


SOLUTION = [cell("### Task 1"), cell("#### Solution", collapsed=True), cell("1 + 1", "code")]


@in_turn(
    "cells, fault",
    [
        ([*SOLUTION, cell("### Task 2")], None),
        ([*SOLUTION, cell("```python\n# a comment\n```"), cell("##### Part of it"), cell("## 2. Next")], None),
        ([*SOLUTION, cell("#### Answer", collapsed=True), cell("text")], None),
        ([cell("#### Solution"), cell("1 + 1", "code")], "not folded"),
        ([cell("### Optional: more"), cell("text")], "not folded"),
        ([cell("#### Solution\n\nIt is 2.", collapsed=True)], "alone"),
        ([cell("It is 2.\n\n#### Solution", collapsed=True)], "alone"),
        ([*SOLUTION, cell("The next thing.\n\n### Task 2")], "begins with a heading"),
        ([cell("### Task 1", collapsed=True)], "does not begin"),
        ([cell("text", collapsed=True)], "does not begin"),
    ],
)
def test_a_planted_fault_is_found(cells: list[Cell], fault: str | None) -> None:
    found = faults(cells)
    assert [fault in each for each in found] == [True] if fault else found == []


def test_a_section_ends_at_the_next_heading_of_its_level_or_a_higher_one() -> None:
    cells = [
        cell("## 1. A"), cell("### Optional: more"), cell("1", "code"), cell("#### Task 2"), cell("#### Solution"), cell("2", "code"),
        cell("#### On"), cell("### B"),
    ]  # fmt: skip
    more, solution = ("Optional: more",), ("Optional: more", "Solution")
    assert [folds for _, folds in with_folds(cells)] == [(), more, more, more, solution, solution, more, ()]
