"""The budget of tests: how many each folder may have in each size; whoever adds more raises a number in ``tests/budget.toml``."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

BUDGET: dict[str, dict[str, int]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def folder_of(test: str) -> str:
    """Return the folder whose budget counts a test, by the test's id: its room, or ``doctests`` outside the rooms.

    >>> folder_of("tests/core/test_mesh.py::test_ring"), folder_of("hybridlab/mesh.py::hybridlab.mesh.Mesh")
    ('tests/core', 'doctests')
    """
    room = re.match(r"tests/\w+(?=/)", test)
    return room[0] if room else "doctests"


def counted(tests: Iterable[tuple[str, bool]]) -> dict[str, Counter[str]]:
    """Return for each size how many tests each folder has. A test is its id, and whether it has the mark ``slow``. Benchmarks are no tests.

    >>> counted([("tests/core/test_mesh.py::test_ring", False), ("tests/core/test_mesh.py::test_large", True)])
    {'quick': Counter({'tests/core': 1}), 'full': Counter({'tests/core': 2})}
    """
    counts: dict[str, Counter[str]] = {"quick": Counter(), "full": Counter()}
    for test, slow in tests:
        folder = folder_of(test)
        if folder != "tests/benchmarks":
            counts["full"][folder] += 1
            counts["quick"][folder] += not slow
    return counts


def too_many(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a sentence for each folder that has more tests than its budget, in either size.

    >>> [sentence] = too_many({"quick": {"tests/core": 10**6}})
    >>> sentence.partition(", ")[0]
    'tests/core has 1000000 tests in the quick size'
    """
    return [
        f"{folder} has {count} tests in the {size} size, and tests/budget.toml allows {BUDGET.get(folder, {}).get(size, 0)}: "
        "drop one that another test covers, or raise the number"
        for size, folders in counts.items()
        for folder, count in sorted(folders.items())
        if count > BUDGET.get(folder, {}).get(size, 0)
    ]
