"""Test what is recorded of two documents as they are stored: classes that one lacks, and a table that the scan of the other spoilt."""

import re
from itertools import groupby

from beside import SOURCES

from hybridlab.course.published.sweeps import IMPORTED
from hybridlab.course.published.timelines import SCANNED_CELLS


def test_the_notebook_of_sweeps_imports_its_schedules_and_defines_none() -> None:
    text = (SOURCES / "schedule-sweeps.txt").read_text(encoding="utf-8")
    (imported,) = re.findall(r"^from pipeline import (.+)$", text, re.MULTILINE)
    assert tuple(imported.split(", ")) == IMPORTED
    assert not re.findall(r"^\s*class ", text, re.MULTILINE)


def test_the_scanned_grid_of_the_simulator_has_too_many_cells() -> None:
    table = (SOURCES / "hybrid-simulator.txt").read_text(encoding="utf-8").split("R11(S2)\n")[1].split("\n\n")[0]
    step, cells = -1, []
    for line in table.splitlines():
        words = line.split()
        step += words[0].isdigit()  # a row begins with its number and goes on in the next line
        cells += [step] * len([word for word in words if not word.isdigit()])
    assert tuple(len(list(each)) for _, each in groupby(cells)) == SCANNED_CELLS
