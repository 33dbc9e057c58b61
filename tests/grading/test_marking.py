"""Test how a submission is marked without a worker: what a lab gives to a cell, and partial credit."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cases import in_turn

from hybridlab.course.checking.checking import Instance, wrong
from hybridlab.course.grading.marking import HandIn, Outcome, _judge
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.session import Function
from hybridlab.course.grading.specs import LabSpec, spec_of
from hybridlab.course.tasks import TASKS

CELLS = [
    ("import numpy as np\nfrom math import pi", []),
    ("devices = 6", []),
    ("sizes = {'devices': devices}", []),
    ("def total(sizes): return sizes['devices']", []),
    ("my_makespan = ...\ncheck('lab02.t2', my_makespan)", ["task"]),
    ("check('lab02.t2', 120)", ["solution"]),
    ("devices = 8\nprint(total(sizes))", []),
    ("peaks = devices * np.ones(3)", []),
    ("my_peaks = ...\ncheck('lab02.t3', my_peaks)", ["task"]),
    ("print('the answer is 3')", ["reveals"]),
]


def spec(folder: Path) -> LabSpec:
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": ["# A lab\n", "text"]}]
    cells += [{"cell_type": "code", "metadata": {"tags": tags}, "source": source.splitlines(True)} for source, tags in CELLS]
    path = folder / "lab02_of_tests.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return spec_of(path)


def test_a_lab_is_read_from_its_notebook(tmp_path: Path) -> None:
    lab = spec(tmp_path)
    assert (lab.lab, lab.title, [task.key for task in lab.tasks]) == ("lab02", "A lab", ["lab02.t2", "lab02.t3"])
    assert lab.imports == (CELLS[0][0],)
    assert lab.hand_ins == {"lab02.t2": "check('lab02.t2', my_makespan)", "lab02.t3": "check('lab02.t3', my_peaks)"}
    assert (lab.stubs["lab02.t2"], lab.solutions) == (CELLS[4][0], {"lab02.t2": CELLS[5][0]})
    given = [source for source, tags in CELLS if lab.gives(f"\n{source}  \n")]
    assert given == [source for source, tags in CELLS if not tags]


@in_turn(
    "name, keys, places",
    [
        ("devices", ["lab02.t2"], [1]),
        ("sizes", ["lab02.t2"], [1, 2]),  # with what it uses itself
        ("total", ["lab02.t2"], [1, 2, 3]),
        ("devices", ["lab02.t3"], [1, 2, 3, 6]),
        ("devices", [], [1, 2, 3, 6]),
        ("peaks", ["lab02.t2"], []),  # it stands below this task
        ("np", ["lab02.t2"], []),  # imports have run
        ("nobody", [], []),
    ],
)
def test_a_name_comes_with_all_that_it_needs_and_from_above_the_task_alone(
    tmp_path: Path, name: str, keys: list[str], places: list[int]
) -> None:
    assert spec(tmp_path).providers(name, keys) == tuple(CELLS[place][0] for place in places)


def test_a_cell_answers_the_tasks_that_it_names(tmp_path: Path) -> None:
    lab = spec(tmp_path)
    assert lab.keys_in(CodeCell("check(\"lab02.t3\", 1); check( 'lab02.t9', 1)", "lab02.t2")) == ("lab02.t2", "lab02.t3")
    assert lab.keys_in(CodeCell("recheck('lab02.t3', 1)", "lab03.t2")) == ()


@in_turn(
    "codes, share",
    [
        (["too-much-memory"], 0.4),
        (["too-much-memory", "longer-than-gpipe", "too-much-memory"], 0.2),  # the worst case counts
        (["too-much-memory", "never-runs"], None),  # which earns no credit
        ([], None),
    ],
)
def test_partial_credit_is_that_of_the_worst_case(codes: list[str], share: float | None) -> None:
    feedback = replace(wrong("too-much-memory", "more than needed"), failed=tuple(codes))
    build = SimpleNamespace(fresh=False, check=lambda function: feedback, twist=None)
    player: Any = SimpleNamespace(label=lambda place: "a cell")
    outcome: Any = Outcome(None)  # type: ignore[arg-type]
    asked: Any = Instance("a schedule", build.check, build)  # type: ignore[arg-type]
    feedback, credit = _judge(TASKS["lab10.t4"], asked, player, outcome, HandIn(Function(0, "schedule", False), 0), None)
    assert feedback.code == "too-much-memory"
    assert (credit and credit.share) == share
