"""Fills the tables on the page for instructors from the labs, their tasks and the grader, while the book is built.

Before `book/teach.md` is read, Markdown replaces `{{ weeks }}`, `{{ partial_credit }}`, `{{ same_for_all }}`, `{{ limits }}` and
`{{ exit_codes }}`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from hybridlab.course.grading import notebook
from hybridlab.course.grading.command_line import main
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.reports import short_number
from hybridlab.course.grading.sandbox import Limits
from hybridlab.course.grading.specs import LabSpec, spec_of
from hybridlab.course.tasks import Task

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE = "book/teach"
WEEKS = (("lab01",), ("lab02",), ("lab03",), ("lab04",), ("lab05",), ("lab06",), ("lab07",))
WEEKS += (("lab08", "lab09"), ("lab10", "lab11"), ("lab12", "lab13"), ("lab14", "lab15"), ("lab16", "lab17"), ("lab18", "lab19"))
MARKS = re.compile(r"\{\{ (\w+) \}\}")
TAKES = re.compile(r"\bIt takes ([^.;]*?) minutes(?:; the optional parts take another (\d+))?")
KINDS = ("number", "written", "build")
SEEDS = range(4)  # enough to see whether the numbers of a task are drawn


def fill(text: str) -> str:
    """Return the page with the marks replaced."""
    parts = {"weeks": weeks, "partial_credit": partial_credit, "same_for_all": same_for_all, "limits": limits, "exit_codes": exit_codes}
    return MARKS.sub(lambda mark: parts[mark[1]](), text)


def weeks() -> str:
    """Return the labs of each week, with their minutes, their points, and their tasks of each kind."""
    rows = []
    for week, labs in enumerate(WEEKS, 1):
        for lab in labs:
            kinds = Counter(task.kind for task in spec(lab).tasks)
            rows.append([str(week), link(lab), minutes(lab), str(points(lab)), *(str(kinds[kind]) for kind in KINDS)])
    total = sum(map(points, every_lab()))
    return table(["week", "lab", "minutes", "points", *KINDS], [*rows, ["", "all labs", "", str(total), "", "", ""]])


def partial_credit() -> str:
    """Return the tasks that give partial credit, and what an answer with it is."""
    tasks = [task for lab in every_lab() for task in spec(lab).tasks]
    rows = [
        [f"`{task.key}`", credit.reached, f"{short_number(credit.share * task.points)} of {task.points}"]
        for task in tasks
        for credit in task.partial_credit
    ]
    return table(["task", "a wrong answer that is", "points"], rows)


def same_for_all() -> str:
    """Return the tasks of each lab that ask every student for the same answer, with the share of the points that they have."""
    rows = []
    for lab in every_lab():
        same = [task for task in spec(lab).tasks if not differs(task)]
        keys = ", ".join(f"`{task.key}`" for task in same) or "none"
        rows.append([str(int(lab[3:])), keys, f"{sum(task.points for task in same)} of {points(lab)}"])
    return table(["lab", "tasks that are the same for all", "points"], rows)


def differs(task: Task) -> bool:
    """Return whether students get different versions of a task: drawn numbers, or a build with a twist."""
    if task.kind == "build":
        return bool(task.instance(None).data.twists)
    return any(task.instance(seed).prompt != task.prompt for seed in SEEDS)


def limits() -> str:
    """Return what a notebook may use while it is graded."""
    most = Limits()
    rows = [
        ["computing time for a cell, or for all calls of a task", f"{most.seconds_a_task:g} s"],
        ["computing time for all cells and tasks of a notebook", f"{most.seconds_a_notebook:g} s"],
        ["time on the clock for a cell, or for a call", f"{most.clock_a_request:g} s"],
        ["time on the clock for a notebook", f"{most.clock_a_notebook:g} s"],
        ["memory", f"{most.memory // 2**20:,} MiB"],
        ["files, all together; they are gone afterwards", f"{most.file_bytes // 2**20} MiB"],
        ["processes and threads, one of them for the sandbox", str(most.processes)],
        ["size of a notebook", f"{notebook.MOST_BYTES / 1e6:g} MB"],
    ]
    return table(["what", "at most"], rows)


def exit_codes() -> str:
    """Return the exit codes of the command, as its help tells them."""
    _, _, told = " ".join((main.help or "").split()).partition("Exit codes: ")
    return table(["code", "meaning"], [list(found) for found in re.findall(r"(\d+) ([^;.]+)", told)])


def every_lab() -> list[str]:
    return [lab for labs in WEEKS for lab in labs]


@cache
def spec(lab: str) -> LabSpec:
    return spec_of(reference(lab))


def points(lab: str) -> int:
    return sum(task.points for task in spec(lab).tasks)


def minutes(lab: str) -> str:
    """Return the minutes that the first cell of a lab states, such as "75 + 10" with those of its optional parts."""
    cell = json.loads(reference(lab).read_text(encoding="utf-8"))["cells"][0]
    found = TAKES.search(" ".join("".join(cell["source"]).split()))
    if not found:
        raise ValueError(f"{lab} does not say how long it takes")
    return " + ".join(filter(None, (found[1].removeprefix("about "), found[2])))


def link(lab: str) -> str:
    return f"{{doc}}`../labs/{reference(lab).stem}`"


def table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read_page(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == PAGE:
        source[0] = fill(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
