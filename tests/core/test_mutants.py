"""Test the list of planted faults: each still fits its file; `make mutants` tries them."""

from collections import Counter
from pathlib import Path

import budget
from mutants import SIZES, mutants

ROOT = Path(__file__).resolve().parents[2]
FAULTS = mutants()


def test_the_old_text_of_every_fault_stands_exactly_once_in_its_file() -> None:
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in {each.file for each in FAULTS}}
    assert {each.name: texts[each.file].count(each.old) for each in FAULTS if texts[each.file].count(each.old) != 1} == {}
    assert [each.name for each in FAULTS if each.new == each.old] == []


def test_names_differ_and_rooms_and_sizes_exist() -> None:
    assert [name for name, count in Counter(each.name for each in FAULTS).items() if count > 1] == []
    assert {f"tests/{each.room}" for each in FAULTS} <= set(budget.BUDGET)
    assert all(each.size in SIZES and (each.size == "kernel") == (each.room == "core") for each in FAULTS)


def test_every_part_of_the_project_has_enough_faults() -> None:
    rooms = Counter(each.room for each in FAULTS)
    assert rooms["core"] >= 20
    assert rooms["labs"] + rooms["grading"] >= 20
    assert rooms["widgets"] >= 10
    assert sum(each.file.startswith("book/") for each in FAULTS) >= 10
