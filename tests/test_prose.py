"""The prose keeps up with the library: examples run, public names are documented, cited papers are in the bibliography."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PUBLIC = (
    "hybridlab",
    "hybridlab.formulas",
    "hybridlab.planner",
    "hybridlab.course.published",
    "hybridlab.plot",
    "hybridlab.course.comparisons",
)
PUBLIC += ("hybridlab.widgets", "hybridlab.course.tasks")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "book/api.md", "book/notation.md"])
def test_examples_of_the_page_run(page: str) -> None:
    """In a process of their own: one of them registers a schedule."""
    done = subprocess.run([sys.executable, "-m", "doctest", page], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ">>> " in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_api_reference(module: str) -> None:
    page = (ROOT / "book/api.md").read_text(encoding="utf-8")
    whole = re.search(rf"automodule:: {re.escape(module)}\n   :members:\n", page)
    names = getattr(importlib.import_module(module), "__all__", None)
    assert names or whole, f"{module} is missing from book/api.md"
    for name in names or ():
        named = re.search(rf"(auto\w+|data):: (hybridlab\.([\w.]+\.)?)?{re.escape(name)}\b", page)
        submodule = re.search(rf"automodule:: {re.escape(module)}(\.course)?\.{re.escape(name)}\n", page)
        assert whole or named or submodule, f"{module}.{name} is missing from book/api.md"


def test_every_paper_cited_in_the_library_is_in_the_bibliography() -> None:
    references = (ROOT / "book/references.bib").read_text(encoding="utf-8")
    cited = {
        number
        for path in (ROOT / "hybridlab").rglob("*.py")
        for number in re.findall(r"arXiv[: ](\d{4}\.\d{5})", path.read_text(encoding="utf-8"))
    }
    assert cited
    assert not {number for number in cited if number not in references}


def test_the_first_screen_of_readme_has_a_picture_and_the_two_commands() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:12]
    picture = re.search(r"!\[(?P<alt>[^\]]{60,})\]\((?P<path>[^)]+)\)", "\n".join(lines))
    assert picture, "no picture with a description"
    assert (ROOT / picture["path"]).is_file()
    assert all(any(line.startswith(f"    make {target} ") for line in lines) for target in ("lab", "test"))
