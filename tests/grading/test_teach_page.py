"""Test the page for instructors: its outputs are what the commands print, and its tables agree with the labs and the grader."""

import re
from pathlib import Path

import pytest
import teach_tables
import yaml
from teach_page import PAGE, Shown, blocks, run_blocks

from hybridlab.course.grading.labs import lab_notebooks
from hybridlab.course.grading.sandbox import Limits
from hybridlab.course.tasks import TASKS

ROOT = Path(__file__).resolve().parents[2]
TEXT = PAGE.read_text(encoding="utf-8")
needs_sandbox = pytest.mark.needs("bwrap")


@needs_sandbox
@pytest.mark.slow
def test_students_and_instructors_see_what_the_page_shows(tmp_path: Path) -> None:
    shown = blocks(TEXT)
    assert len(shown) > 8
    assert list(run_blocks(shown, tmp_path)) == shown


def test_a_changed_output_is_found(tmp_path: Path) -> None:
    block = Shown(("hybridlab --version", "echo $?"), ("hybridlab, version 0\n", "0\n"))
    (now,) = run_blocks([block], tmp_path)
    assert now != block
    assert re.fullmatch(r"hybridlab, version [\d.]+\n", now.outputs[0])
    assert blocks(f"text\n\n{now}\n\nmore") == [now], "a refreshed page is read again"


def test_the_exit_code_of_a_command_is_known_to_the_next(tmp_path: Path) -> None:
    (now,) = run_blocks([Shown(("false", "echo $?"), ("", ""))], tmp_path)
    assert now.outputs == ("", "1\n")


def test_the_weeks_have_every_lab_once_and_after_those_that_it_needs() -> None:
    labs = teach_tables.every_lab()
    assert labs == list(lab_notebooks())
    rows = teach_tables.weeks().splitlines()[2:]
    assert len(rows) == len(labs) + 1
    assert f"| {sum(task.points for task in TASKS.values())} |" in rows[-1]
    for lab, row in zip(labs, rows, strict=False):
        points = sum(task.points for task in TASKS.values() if task.key.startswith(lab))
        assert f"{lab}_" in row
        assert f"| {points} |" in row
        assert re.search(r"\| \d+( to \d+)?( \+ \d+)? \|", row), "its minutes"


def test_the_tasks_that_are_the_same_for_all_have_neither_sizes_nor_twists() -> None:
    same = set(re.findall(r"`(lab[\w.]+)`", teach_tables.same_for_all()))
    for key, task in TASKS.items():
        page = task.instance(None).prompt
        assert (key in same) == all(task.personal(seed).prompt == page for seed in (1, 5, 9)), key
    assert {key for key, task in TASKS.items() if task.kind == "written"} <= same


def test_every_mark_of_the_page_is_filled() -> None:
    page = teach_tables.fill(TEXT)
    assert "{{" not in page
    most = Limits()
    for words in (
        f"| {most.seconds_a_task:g} s |",
        f"| {most.seconds_a_notebook:g} s |",
        f"| {most.processes} |",
        "| 4 | a submission needs a person |",
    ):
        assert words in page
    for task in TASKS.values():
        assert (f"| `{task.key}` |" in teach_tables.partial_credit()) == bool(task.partial_credit)


def test_the_page_is_in_the_book() -> None:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert "book/teach" in [each["file"] for part in toc["parts"] for each in part["chapters"]]
