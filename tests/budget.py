"""The budget of tests: how many each folder may have in each size; whoever adds more raises a number in ``tests/budget.toml``."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

BUDGET: dict[str, dict[str, int]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def folder_of(test: str) -> str:
    """Return the folder whose budget counts a test, by the test's id: its room, or ``doctests`` outside the rooms.

    >>> folder_of("tests/core/test_mesh.py::test_ring"), folder_of("hybridlab/mesh.py::hybridlab.mesh.Mesh")
    ('tests/core', 'doctests')
    """
    room = re.match(r"tests/\w+(?=/)", test)
    return room[0] if room else "doctests"


def counted(tests: Iterable[str]) -> Counter[str]:
    """Return how many of these tests each folder has; benchmarks are no tests."""
    return Counter(folder for folder in map(folder_of, tests) if folder != "tests/benchmarks")


def size_of(config: pytest.Config) -> str:
    """Return the size of a run of pytest: ``quick`` leaves out tests with the mark ``slow``, ``full`` does not."""
    return "quick" if config.getoption("markexpr") == "not slow" else "full"


def too_many(counts: Mapping[str, int], size: str) -> list[str]:
    """Return a sentence for each folder that has more tests than its budget.

    >>> [sentence] = too_many({"tests/core": 10**6}, "quick")
    >>> sentence.partition(", ")[0]
    'tests/core has 1000000 tests in the quick size'
    """
    allowed = {folder: row[size] for folder, row in BUDGET.items()}
    return [
        f"{folder} has {count} tests in the {size} size, and tests/budget.toml allows {allowed.get(folder, 0)}: "
        "drop one that another test covers, or raise the number"
        for folder, count in sorted(counts.items())
        if count > allowed.get(folder, 0)
    ]
